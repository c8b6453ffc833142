//! The reasons why a local game cannot start, or is over.

use twinstep_client::SessionEnd;
use twinstep_core::Tick;
use twinstep_core::bounds::SEATS_MAX;
use twinstep_core::digest::DigestError;
use twinstep_protocol::packet::closed::CloseCode;

use twinstep_server::{LoadError, MatchStartError};

/// The reason why a local game cannot start, or another client cannot join it.
#[derive(Clone, Debug, thiserror::Error)]
#[non_exhaustive]
#[expect(missing_docs, reason = "the messages explain the variants")]
pub enum LocalStartError {
    #[error(transparent)]
    Match(#[from] MatchStartError),
    #[error(transparent)]
    Load(#[from] LoadError),
    #[error("cannot compute the digest of the session: {0}")]
    Nan(#[from] DigestError),
    #[error("expected 1 to {SEATS_MAX} seats per client, got {0}; add clients for more players")]
    Seats(usize),
    #[error("the match refused this client: {0}")]
    Refused(CloseCode),
    #[error(transparent)]
    Ended(#[from] LocalGameEnd),
    #[error("the client could not join the match within {0} ticks: this is a bug in Twinstep")]
    Stuck(u32),
}

/// The reason why a local game is over. It is final.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
#[expect(missing_docs, reason = "the messages name the fields")]
pub enum LocalGameEnd {
    /// A client's session is over although it did not [leave](super::LocalGame::leave).
    #[error("client {client}: {closed}")]
    Session { client: usize, closed: SessionEnd },
    /// The match is over: its step failed even without the optional parts of the frame. An online match would end too.
    #[error("the match is over: {incident}")]
    Match {
        /// The incident that ended the match, as text: the tick, and the message of the panic.
        incident: String,
    },
    /// The game's own code panicked where panics are not caught, in the `input` closure or in the check of a verifying
    /// session. Online, the same panic would end the client's process. Panics in steps and hooks are caught, both here
    /// and online.
    #[error(
        "the game panicked in a client's input or check, when the match was at {tick}: {message}"
    )]
    Panicked { tick: Tick, message: String },
    #[error("all clients have left")]
    Deserted,
}
