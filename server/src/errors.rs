//! The reasons why a match cannot be started, resumed or loaded, and why a seat cannot be given.

use twinstep_core::PlayerId;
use twinstep_core::bounds::RULES_BYTES_MAX;
use twinstep_core::digest::DigestError;
use twinstep_protocol::journal::{IDENTITY_BYTES_MAX, WriteError};
use twinstep_protocol::replay::ReplayError;
use twinstep_protocol::save::SaveFormatError;
use twinstep_protocol::text::line;

use crate::config::ConfigError;

/// The reason why a match cannot be started.
#[derive(Clone, Debug, thiserror::Error)]
#[non_exhaustive]
#[expect(missing_docs, reason = "the messages explain the variants")]
pub enum MatchStartError {
    #[error(transparent)]
    Config(#[from] ConfigError),
    #[error("cannot compute the digest of the rules and the state: {0}")]
    Nan(#[from] DigestError),
    #[error("the journal cannot be started: {0}")]
    Journal(#[from] WriteError),
    #[error("the match has started: rules can be chosen only while it waits for its players")]
    Started,
    #[error("a match from a saved game keeps its rules: load another save, or start a new match")]
    Loaded,
    #[error("expected rules of at most {RULES_BYTES_MAX} bytes to send to guests, got {bytes}")]
    RulesTooLarge {
        /// The encoded size in bytes; `usize::MAX` if the rules cannot be encoded.
        bytes: usize,
    },
}

/// The reason why a match cannot be resumed.
#[derive(Clone, Debug, thiserror::Error)]
#[non_exhaustive]
#[expect(missing_docs, reason = "the messages explain the variants")]
pub enum ResumeError {
    #[error(transparent)]
    Replay(#[from] ReplayError),
    #[error("the match of this journal is over ({})", line(reason))]
    Over { reason: String },
    #[error("a client recorded this journal: it can be watched, but not resumed")]
    Recording,
    #[error("expected the journal of a match, got a saved game: load it into a new match instead")]
    Saved,
    #[error("the journal has {player}, but there are only {seats} seats: allow more players")]
    Seats { seats: usize, player: PlayerId },
    #[error(transparent)]
    Start(#[from] MatchStartError),
}

/// The reason why a match cannot start from a saved game.
#[derive(Clone, Debug, thiserror::Error)]
#[non_exhaustive]
#[expect(missing_docs, reason = "the messages explain the variants")]
pub enum LoadError {
    #[error(transparent)]
    Format(#[from] SaveFormatError),
    #[error("expected a saved game of {expected:?}, got one of {:?}", line(got))]
    Game { expected: String, got: String },
    #[error(
        "the game was saved by version {saved}, and this program has version {version}: update it"
    )]
    Newer { saved: u32, version: u32 },
    #[error(
        "the game was saved by version {saved}, and this program has version {version} and no upgrade for older saves: \
         load it with version {saved} (authors: set an upgrade function)"
    )]
    Older { saved: u32, version: u32 },
    #[error(
        "the game was saved with other rules (level or tuning): load it with those rules (authors: set an upgrade function \
         that adapts the state)"
    )]
    Rules,
    #[error("the saved game cannot be upgraded: {0}")]
    Upgrade(String),
    #[error(
        "the saved game does not fit the state of version {version}: load it with the build that saved it (authors: raise \
         VERSION when the state's type changes)"
    )]
    State { version: u32 },
    #[error("the saved game has {player}, but there are only {seats} seats: allow more players")]
    Seats { seats: usize, player: PlayerId },
    #[error(transparent)]
    Start(#[from] MatchStartError),
}

/// The reason why a seat cannot be given to an identity.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
#[expect(missing_docs, reason = "the messages explain the variants")]
pub enum SeatError {
    #[error("expected a player below {seats}, got {player}")]
    NoSeat { player: PlayerId, seats: usize },
    #[error("expected an identity of 1 to {IDENTITY_BYTES_MAX} bytes, got {bytes}")]
    Identity { bytes: usize },
    #[error("{:?} is {player}: it must leave first", line(identity))]
    Played { player: PlayerId, identity: String },
    #[error(
        "{:?} is {player}: it must leave before it can get another seat",
        line(identity)
    )]
    Plays { identity: String, player: PlayerId },
}
