//! Why a match cannot be started, or taken up again.

use twinstep_core::PlayerId;
use twinstep_core::digest::NanError;
use twinstep_protocol::journal::WriteError;
use twinstep_protocol::replay::ReplayError;
use twinstep_protocol::text::line;

use crate::config::ConfigError;

/// A match that cannot be started.
#[derive(Clone, Debug, thiserror::Error)]
#[non_exhaustive]
pub enum MatchStartError {
    /// A policy out of its range.
    #[error(transparent)]
    Config(#[from] ConfigError),
    /// The rules or the state hold a NaN.
    #[error("the game cannot be digested: {0}")]
    Nan(#[from] NanError),
    /// The journal refuses its beginning.
    #[error("the journal cannot be started: {0}")]
    Journal(#[from] WriteError),
}

/// Why a match cannot be taken up again.
#[derive(Clone, Debug, thiserror::Error)]
#[non_exhaustive]
pub enum ResumeError {
    /// The journal cannot be played to its end: damaged in the middle, or not of this program.
    #[error(transparent)]
    Replay(#[from] ReplayError),
    /// The match is over.
    #[error(
        "the match of this journal is over ({}): begin a new one",
        line(reason)
    )]
    Over {
        /// Why it ended.
        reason: String,
    },
    /// It is what a client recorded: its seats have names instead of identities.
    #[error("a client wrote this journal: it can be watched, but not played on")]
    Recording,
    /// There are fewer seats than before.
    #[error(
        "expected seats for all who played, got {seats}, but {player} was there: allow more players"
    )]
    Seats {
        /// Seats by configuration.
        seats: usize,
        /// A player beyond them.
        player: PlayerId,
    },
    /// The configuration.
    #[error(transparent)]
    Start(#[from] MatchStartError),
}
