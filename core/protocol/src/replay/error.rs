//! Why a journal cannot be played, and what it is of: an error says both.

use alloc::string::String;

use crate::journal::{JournalError, Record, WrittenBy};
use crate::packet::closed::CloseCode;
use crate::text::line;
use crate::wire::WireError;
use twinstep_core::Tick;
use twinstep_core::world::FrameError;

/// Why a journal cannot be played further. What was played before stays good.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum ReplayError {
    /// The file is torn, corrupt, or no journal.
    #[error(transparent)]
    Journal(#[from] JournalError),
    /// The journal is of another game or version, or was played by other rules.
    #[error(
        "the journal does not fit this program: it is of {:?} version {}, rules {:016x}, written by build {:?}; \
         play it with that build ({code})",
        line(&about.game), about.sim_version, about.rules_digest, line(&about.build)
    )]
    Mismatch {
        /// What the journal is of.
        about: About,
        /// What differs.
        code: CloseCode,
    },
    /// There is no world to begin from.
    #[error(
        "the journal has no world: expected one behind its start, got the end of what is sound"
    )]
    NoWorld,
    /// A record that cannot stand where it does.
    #[error("the record at byte {offset} is out of place")]
    Misplaced {
        /// Where.
        offset: u64,
    },
    /// A world that cannot be decoded.
    #[error("the world at byte {offset} cannot be decoded by this build")]
    World {
        /// Where.
        offset: u64,
    },
    /// A turn that cannot be decoded.
    #[error("the turn at byte {offset} cannot be decoded: {error}")]
    Turn {
        /// Where.
        offset: u64,
        /// Why.
        error: WireError,
    },
    /// A frame that does not fit the world.
    #[error("the turn at byte {offset} does not fit: {error}")]
    Frame {
        /// Where.
        offset: u64,
        /// Why.
        error: FrameError,
    },
    /// The replayed world is not the one that was played.
    #[error(
        "the world of {tick} differs from the one that was played (record at byte {offset}; they agreed at \
         {agreed}): the step is not deterministic, or is not the one that was played"
    )]
    Differs {
        /// The first compared tick whose digest differs.
        tick: Tick,
        /// The last one whose digest agreed.
        agreed: Tick,
        /// Where the digest or world stands.
        offset: u64,
    },
}

/// What a journal is of.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct About {
    /// The game's name.
    pub game: String,
    /// The author's version of the simulation.
    pub sim_version: u32,
    /// The digest of the rules.
    pub rules_digest: u64,
    /// The build that began it.
    pub build: String,
    /// When the match began, in seconds since 1970.
    pub started_unix_s: u64,
    /// The command delay in turns; 0: no lockstep.
    pub command_delay: u8,
    /// Who wrote it.
    pub by: WrittenBy,
}

impl About {
    /// As a journal's first record says; `None`: it is no start.
    pub(super) fn of(record: &Record<'_>) -> Option<About> {
        let Record::Start(start) = record else {
            return None;
        };
        Some(About {
            game: start.game.into(),
            sim_version: start.sim_version,
            rules_digest: start.rules_digest,
            build: start.build.into(),
            started_unix_s: start.started_unix_s,
            command_delay: start.command_delay,
            by: start.by,
        })
    }
}
