//! What the client of a game imports: `use twinstep_client::prelude::*;`
//!
//! The words of the rules themselves are in `twinstep_core::prelude`.

#[cfg(feature = "udp")]
pub use crate::{Client, ClientStartError, Ticket, TicketError};
pub use crate::{
    CommandError, CueEvent, CueId, CueKind, EntityMap, Event, Guess, Hidden, OwnerResolver, Pose,
    Poses, Progress, Reconcile, RefusalReason, Session, SessionConfig, SessionEnd, Show, Smoothing,
    Spawner, Speculate,
};
