//! The imports of a game's client: `use twinstep_client::prelude::*;`
//!
//! The imports of the game's rules are in `twinstep_core::prelude`.

#[cfg(feature = "udp")]
pub use crate::{Client, ClientStartError, Ticket, TicketError};
pub use crate::{
    CommandError, CommandRefusal, CueEvent, CueId, CueKind, EntityMap, Event, Guess, MatchRequest,
    NoPicture, OwnerResolver, Pose, Poses, Progress, Reconcile, Scene, Session, SessionConfig,
    SessionEnd, Show, Smoothing, Spawner, Speculate,
};
