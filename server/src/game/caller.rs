//! [`Caller`]: who dials while another session of its identity lives.

use std::time::Duration;

use crate::peer::PeerId;

/// A transport of an identity that has a session.
pub(super) struct Caller {
    pub(super) id: PeerId,
    pub(super) identity: String,
    pub(super) seats: usize,
    /// The serial of the ticket that it came by, if it came by one.
    pub(super) came_by: Option<u64>,
    pub(super) since: Duration,
}
