//! The names that a game's hooks and tests import: `use twinstep_server::prelude::*;`. A program that runs a server
//! imports `twinstep_host::prelude`, which includes this one.
//!
//! The names of the simulation itself are in `twinstep_core::prelude`.

pub use crate::config::{
    Announce, AnsweredBy, Checksums, Claims, Laggards, MatchConfig, SealWhen, Spectators,
    StartWhen, TickLength, TurnLength,
};
pub use crate::hooks::{Admission, Decision, HookContext, Referee, Resolver};
pub use crate::incident::{Incident, Trouble};
pub use crate::match_::Match;
pub use twinstep_protocol::packet::closed::CloseCode;
pub use twinstep_protocol::packet::request::MatchRequest;
