//! The reasons why a match cannot be started or resumed.

use twinstep_core::PlayerId;
use twinstep_core::bounds::RULES_BYTES_MAX;
use twinstep_core::digest::NanError;
use twinstep_protocol::journal::WriteError;
use twinstep_protocol::replay::ReplayError;
use twinstep_protocol::text::line;

use crate::config::ConfigError;

/// The reason why a match cannot be started.
#[derive(Clone, Debug, thiserror::Error)]
#[non_exhaustive]
pub enum MatchStartError {
    /// A policy is out of its range.
    #[error(transparent)]
    Config(#[from] ConfigError),
    /// The rules or the state hold a NaN.
    #[error("cannot compute the digest of the rules and the state: {0}")]
    Nan(#[from] NanError),
    /// The journal's first record cannot be written.
    #[error("the journal cannot be started: {0}")]
    Journal(#[from] WriteError),
    /// The match has started, so its rules are fixed.
    #[error("the match has started: rules can be chosen only while it waits for its players")]
    Started,
    /// The rules are too large to be sent to guests.
    #[error("expected rules of at most {RULES_BYTES_MAX} bytes to send to guests, got {bytes}")]
    RulesTooLarge {
        /// Their encoded size in bytes; `usize::MAX` if they cannot be encoded.
        bytes: usize,
    },
}

/// The reason why a match cannot be resumed.
#[derive(Clone, Debug, thiserror::Error)]
#[non_exhaustive]
pub enum ResumeError {
    /// The journal cannot be played to its end: the journal is damaged in the middle, or another program wrote it.
    #[error(transparent)]
    Replay(#[from] ReplayError),
    /// The match is over.
    #[error(
        "the match of this journal is over ({}): start a new one",
        line(reason)
    )]
    Over {
        /// The reason in the journal why the match ended.
        reason: String,
    },
    /// A client recorded this journal: its seats have names instead of identities.
    #[error("a client recorded this journal: it can be watched, but not resumed")]
    Recording,
    /// The configuration has fewer seats than the match had.
    #[error(
        "the journal has a player {player}, but the configuration has only {seats} seats: allow more players"
    )]
    Seats {
        /// The configured seats.
        seats: usize,
        /// A player of the match without a seat.
        player: PlayerId,
    },
    /// The match cannot be started with this configuration.
    #[error(transparent)]
    Start(#[from] MatchStartError),
}
