//! Twinstep's server: seals inputs into turns, runs the same simulation headless, and alone decides what
//! is not deterministic.
//!
//! [`Match`] is a state machine without I/O: packets and time go in, outputs come out in
//! the order in which they must be done. A host moves them: the tokio host of this crate over UDP, or a
//! test in virtual time.
//!
//! | module | what is in it |
//! |---|---|
//! | [`guide`] | **start here**: the guide for authors |
//! | [`prelude`] | what the server of a game imports, and who plays alone |
//! | [`game`] | the match |
//! | [`config`] | its policies |
//! | [`hooks`] | what a game decides on the server: resolver, referee |
//! | [`incident`] | what went wrong inside a match |
//! | [`host`] | many matches in one process, over one UDP socket, on tokio |
//! | [`local`] | the same match and its players in one process, without a server: to play alone, and for tests |
//! | [`physics`] | a mirror of lockstep positions for area queries, rays and casts |
//!
//! Four features are on by default: `host` (tokio, axum, UDP), `operator` (flags, files of settings), `physics` (rapier2d) and
//! `local` (the client's session).
//! Without them the match is left, and all that it needs to run in virtual time. A game that is only played locally
//! needs `local` alone.
//!
//! Law **One door**: nothing nondeterministic enters the simulation but as an action of a frame. Law
//! **Journal first**: a turn is written before anybody hears of it.

#![cfg_attr(
    not(all(
        feature = "host",
        feature = "local",
        feature = "operator",
        feature = "physics"
    )),
    allow(
        rustdoc::broken_intra_doc_links,
        reason = "the guide also names what is left out"
    )
)]

mod caught;
#[cfg(any(feature = "host", feature = "local"))]
mod chosen;
pub mod config;
mod cost;
mod down;
mod encoding;
pub mod game;
pub mod guide;
pub mod history;
pub mod hooks;
#[cfg(feature = "host")]
pub mod host;
pub mod incident;
#[cfg(feature = "local")]
pub mod local;
#[cfg(feature = "operator")]
pub mod operator;
mod outbox;
pub mod peer;
#[cfg(feature = "physics")]
pub mod physics;
pub mod prelude;
mod reach;
mod sealer;
pub mod seat;
mod standing;
mod stopwatch;
mod tally;
mod tempo;
mod up;

pub use config::MatchConfig;
pub use encoding::{Encoded, Encoding};
pub use game::{Match, MatchStats, Relief};
pub use hooks::{Admission, Decision, Look, Referee, Resolver};
pub use incident::{Incident, Trouble};
#[cfg(feature = "local")]
pub use local::{Local, LocalGame};
pub use outbox::{JobId, Output};
pub use peer::PeerId;
/// What a game meets of the protocol: journals played again, why a session ended. The rest of `twinstep-protocol` is
/// internal.
pub use twinstep_protocol::{packet::hello::CloseCode, replay};
/// What a game that lets players in meets of tickets; the crate `twinstep-udp` has the rest.
#[cfg(feature = "host")]
pub use twinstep_udp::{ServerAddress, Ticket, TicketError, TicketKey, TicketKeyError, TicketSpec};
