//! What the server of a game imports, and who plays alone: `use twinstep_server::prelude::*;`
//!
//! The words of the rules themselves are in `twinstep_core::prelude`.

pub use crate::config::{
    Announce, AnsweredBy, Claims, Laggards, MatchConfig, SealWhen, Spectators, TickLength,
    TurnLength,
};
pub use crate::game::Match;
pub use crate::hooks::{Admission, Decision, Look, Referee, Resolver};
#[cfg(feature = "host")]
pub use crate::host::{Host, HostConfig, HostError, Running, Server};
pub use crate::incident::{Incident, Trouble};
#[cfg(feature = "local")]
pub use crate::local::{Local, LocalEnded, LocalGame, LocalStartError};
#[cfg(feature = "host")]
pub use twinstep_udp::{Ticket, TicketKey};
