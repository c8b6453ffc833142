//! What the client of a game imports: `use twinstep_client::prelude::*;`
//!
//! The words of the rules themselves are in `twinstep_core::prelude`.

#[cfg(feature = "udp")]
pub use crate::client::{Client, ClientStartError, Ended};
pub use crate::cues::{CueEvent, CueId, CueKind};
pub use crate::entities::{EntityMap, Spawner};
pub use crate::hooks::{Guess, OwnerResolver, Speculate};
pub use crate::picture::{Hidden, Poses, Show, Smoothing};
pub use crate::session::{Closed, CommandError, Event, Progress, Session, SessionConfig};
pub use crate::smooth::Pose;
pub use crate::timeline::Reconcile;
pub use twinstep_protocol::packet::refusal::RefusalReason;
#[cfg(feature = "udp")]
pub use twinstep_udp::{Ticket, TicketError};
