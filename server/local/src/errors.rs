//! Why a local game cannot be played, or not any more.

use twinstep_client::SessionEnd;
use twinstep_core::Tick;
use twinstep_core::bounds::SEATS_MAX;
use twinstep_core::digest::NanError;
use twinstep_protocol::packet::closed::CloseCode;

use twinstep_server::MatchStartError;

/// A local game, or one more client of it, that cannot begin.
#[derive(Clone, Debug, thiserror::Error)]
#[non_exhaustive]
pub enum LocalStartError {
    /// The match: its configuration, or a NaN in rules or state.
    #[error(transparent)]
    Match(#[from] MatchStartError),
    /// The rules or the start of a session hold a NaN.
    #[error("the session cannot be digested: {0}")]
    Nan(#[from] NanError),
    /// How many sit at a client.
    #[error("expected 1 to {SEATS_MAX} seats at a client, got {0}: more players need more clients")]
    Seats(usize),
    /// The match does not take it: it is full, for example.
    #[error("the match does not take this client: {0}")]
    Refused(CloseCode),
    /// It was over before it began: the rules of the session are not those of the match, for example.
    #[error(transparent)]
    Ended(#[from] LocalEnded),
    /// The match goes on, but never lets it in.
    #[error("the client did not come into the match within {0} ticks: this is a bug of Twinstep")]
    Stuck(u32),
}

/// Why a local game is over. It stays so.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum LocalEnded {
    /// A client's session is over, and it did not [leave](super::LocalGame::leave).
    #[error("client {client}: {closed}")]
    Session {
        /// Which client.
        client: usize,
        /// Why.
        closed: SessionEnd,
    },
    /// The match is over: its step failed whatever was left out of the frame. An online server would end it as well.
    #[error("the match is over: {incident}")]
    Match {
        /// What the incident of the match says: the tick, and what the panic said.
        incident: String,
    },
    /// The game's own code panicked where nothing may catch it: the input that was asked for, or the check of a session that
    /// verifies. Online the same panic would end the client's process. Steps and hooks are caught, as online.
    #[error(
        "the game panicked in a client's input or check, when the match was at {tick}: {message}"
    )]
    Panicked {
        /// The next tick of the match.
        tick: Tick,
        /// What the panic said.
        message: String,
    },
    /// All clients have left.
    #[error("all clients have left")]
    Deserted,
}
