//! The reasons why a journal cannot be played, and the description of its match.

use alloc::format;
use alloc::string::String;

use crate::journal::{JournalError, Record, WrittenBy};
use crate::packet::closed::CloseCode;
use crate::text::line;
use crate::wire::WireError;
use twinstep_core::Tick;
use twinstep_core::digest::DigestError;
use twinstep_core::world::FrameError;

/// The reason why a journal cannot be played further. Everything played before stays valid.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum ReplayError {
    /// The journal cannot be read: it is torn or corrupt, has another format version, is not a journal, or reading
    /// failed.
    #[error(transparent)]
    Journal(#[from] JournalError),
    #[error(
        "the journal is of {:?} version {}, rules {:016x}, and this program has {}",
        line(&about.game), about.sim_version, about.rules_digest, difference(*code, about)
    )]
    Mismatch { about: About, code: CloseCode },
    #[error("the rules of this program have no digest: {0}")]
    Rules(DigestError),
    #[error("the journal has no whole world to start from: restore a complete copy")]
    NoWorld,
    #[error("unexpected record at byte {offset}: the journal is damaged")]
    Misplaced { offset: u64 },
    #[error("the world at byte {offset} cannot be decoded by this build")]
    World { offset: u64 },
    #[error(
        "the turn at byte {offset} cannot be decoded: {error}; `powderkeg journal check` shows whether the journal is damaged, \
         else another build recorded it"
    )]
    Turn { offset: u64, error: WireError },
    #[error(
        "the turn at byte {offset} contradicts the world before it: {error} (damage, or another build)"
    )]
    Frame { offset: u64, error: FrameError },
    #[error(
        "the world of {tick} differs from the recorded one (byte {offset}; last equal at {agreed}): the step is not \
         deterministic, or another build recorded the journal"
    )]
    Differs {
        tick: Tick,
        agreed: Tick,
        offset: u64,
    },
}

fn difference(code: CloseCode, about: &About) -> String {
    let build = line(&about.build);
    let (other, advice) = match code {
        CloseCode::WrongRules => (
            "other rules (level or tuning)",
            "use the rules of its match",
        ),
        CloseCode::WrongGame => ("another game", "play it with the build that recorded it"),
        _ => ("another version", "play it with the build that recorded it"),
    };
    match about.build.is_empty() {
        true => format!("{other}: {advice}"),
        false => format!("{other}: {advice} (recorded by {build:?})"),
    }
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub struct About {
    pub game: String,
    pub sim_version: u32,
    pub rules_digest: u64,
    pub build: String,
    pub started_unix_s: u64,
    /// The command delay in turns; 0 without lockstep.
    pub command_delay: u8,
    pub by: WrittenBy,
}

impl About {
    pub(crate) fn of(record: &Record<'_>) -> Option<About> {
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
