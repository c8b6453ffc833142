//! Twinstep's server: it seals inputs into turns, runs the same simulation headless, and makes the decisions that are
//! not deterministic.
//!
//! [`Match`] is a state machine without I/O: packets and time go in, outputs come out in the order in which they must
//! be executed. A host, or a test in virtual time, executes them.
//!
//! | module | contents |
//! |---|---|
//! | [`prelude`] | the names that a game's hooks and tests import |
//! | [`Match`] | the match |
//! | [`config`] | its policies |
//! | [`hooks`] | a game's decisions on the server: resolver, referee |
//! | [`incident`] | faults inside a match |
//! | [`replay`] | playing journals |
//! | [`internal`] | for the hosts of this repository |
//!
//! `twinstep-host` runs matches in a process, over UDP; `twinstep-local` runs one in its player's process;
//! `twinstep-rapier2d` answers area queries and moves rigid bodies. The guide for authors is `twinstep-guide`.
//!
//! Law **One door**: nondeterminism enters the simulation only as an entry of a frame. Law **Journal first**: a turn is
//! written before a client can see it.

mod blame;
mod caught;
mod clock;
pub mod config;
mod cost;
mod cutoff;
mod degradation;
mod diagnostics;
mod digests;
mod down;
mod encoding;
mod errors;
mod fold;
pub mod history;
pub mod hooks;
mod identity_limits;
pub mod incident;
mod journal;
mod match_;
mod mode;
mod outbox;
pub mod peer;
mod people;
mod player_list;
pub mod prelude;
mod queries;
mod reach;
mod sealer;
pub mod seat;
mod server_world;
mod set_up;
mod snapshots;
mod stopwatch;
mod tally;
mod tempo;
mod up;

pub use config::MatchConfig;
pub use degradation::Degradation;
pub use diagnostics::{MatchStats, Report};
pub use encoding::{EncodedWorld, Saving, WorldEncoding};
pub use errors::{LoadError, MatchStartError, ResumeError, SeatError};
pub use fold::{FoldError, Folded};
pub use hooks::{Admission, Decision, HookContext, Referee, Resolver};
pub use incident::{Incident, Trouble};
pub use journal::{KEPT, MOVED};
pub use match_::{Match, OldSave, Resumed, Upgrade};
pub use outbox::{JobId, Output};
/// The part of the protocol that games use: replays of journals, and the close codes of sessions. The rest of
/// `twinstep-protocol` is internal.
pub use twinstep_protocol::identity::{Identity, Role, SessionId};
pub use twinstep_protocol::packet::request::MatchRequest;
pub use twinstep_protocol::save::{
    SAVE_BYTES_MAX, SAVE_INFO_BYTES_MAX, SaveFormatError, SaveInfo, SaveWriteError,
};
pub use twinstep_protocol::{
    lobby::{Lobby, LobbyPlayer, StartCondition},
    packet::closed::CloseCode,
    replay,
};

/// The interface between a match and the hosts of this repository. Internal: it changes without notice.
pub mod internal {
    pub use crate::incident::{Notices, panic_message};
    pub use crate::journal::{is_over, is_resumable};
    pub use crate::people::{ConnectionState, Present};
    pub use crate::set_up::{Hooks, MaybeResolver};
    pub use crate::stopwatch::{Stopwatch, Timed};
    pub use crate::tally::{JoinResult, KickReason, Tally};
}
