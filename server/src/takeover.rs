//! [`PendingTakeover`]: who dials while another session of its identity lives.

use std::time::Duration;

use twinstep_protocol::lineage::Stamp;

use twinstep_protocol::identity::SessionId;

/// A transport of an identity that has a session.
pub(super) struct PendingTakeover {
    pub(super) id: SessionId,
    pub(super) identity: String,
    pub(super) seats: usize,
    /// The stamp of the ticket that it came by, if it came by one.
    pub(super) came_by: Option<Stamp>,
    pub(super) since: Duration,
}
