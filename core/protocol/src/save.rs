//! Saved games: a match as one file, from which another match starts.
//!
//! ```text
//!  Start (written by a save) · Label, if it has one · Shell · Reserved, one for each seat with an owner · World · End
//!                                                      ╰─ the bytes of the state in the world, and all that an
//!                                                         upgraded state needs
//! ```
//!
//! A save is a journal without turns, so its records have the journal's checks. It does not contain rulings on tickets:
//! its match admits each identity with any valid ticket. Everything that a list of saves shows ([`SaveInfo`]) comes
//! before the world. Invariant: a save without its end record is refused as incomplete.

use alloc::format;
use alloc::string::{String, ToString};
use alloc::vec::Vec;

use twinstep_core::bounds::{PLAYERS_MAX, WORLD_BYTES_MAX};
use twinstep_core::codec::{self, CodecError};
use twinstep_core::world::{World, WorldShell};
use twinstep_core::{PlayerId, Simulation, Tick};

use crate::journal::{
    self, Entry, IDENTITY_BYTES_MAX, JournalError, JournalWriter, LABEL_BYTES_MAX, OTHER_BYTES_MAX,
    Record, Start, WriteError, WrittenBy,
};
use crate::packet::hello::Hello;
use crate::replay::About;
use crate::text::line;

/// The maximum number of bytes at the start of a save that hold its [`SaveInfo`].
pub const SAVE_INFO_BYTES_MAX: usize =
    LABEL_BYTES_MAX + OTHER_BYTES_MAX + PLAYERS_MAX * (IDENTITY_BYTES_MAX + 16) + 1_024;

/// The maximum size of a save, in bytes. A longer file need not be read.
pub const SAVE_BYTES_MAX: usize = WORLD_BYTES_MAX + SAVE_INFO_BYTES_MAX;

/// The reason in the end record of a save.
const SAVED: &str = "saved";

#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum SaveWriteError {
    #[error("the world cannot be saved: {0}")]
    World(#[from] CodecError),
    #[error("the identities of the match cannot be saved: {0}")]
    Names(#[from] WriteError),
    #[error(
        "expected at most {LABEL_BYTES_MAX} bytes from `Simulation::save_label`, got {bytes}: return a shorter label"
    )]
    Label { bytes: usize },
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum SaveFormatError {
    #[error("expected a saved game, got a different kind of file")]
    NotASave,
    #[error("the saved game cannot be read: {}", words(.0))]
    Journal(#[source] JournalError),
    #[error("expected a saved game, got the journal of a match: resume the journal instead")]
    Journalled,
    #[error("the saved game is incomplete: load another copy of it, or an older save")]
    Incomplete,
}

fn words(error: &JournalError) -> String {
    match error {
        JournalError::Torn { offset } => {
            format!("it is torn at byte {offset}: load another copy of it, or an older save")
        }
        error => error.to_string(),
    }
}

impl From<JournalError> for SaveFormatError {
    fn from(error: JournalError) -> Self {
        match error {
            JournalError::NotAJournal => SaveFormatError::NotASave,
            error => SaveFormatError::Journal(error),
        }
    }
}

/// A save that was read. Its state is still encoded.
#[derive(Clone, Debug)]
pub struct Save<'a> {
    pub about: About,
    pub shell: WorldShell,
    pub owners: Vec<(PlayerId, String)>,
    pub world: &'a [u8],
    /// The encoded simulation, a part of the world.
    pub sim: &'a [u8],
}

/// A saved game's line in a list, read without its world. Its texts can be shown safely: each is one line, with
/// invisible characters escaped.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct SaveInfo {
    pub game: String,
    pub version: u32,
    pub rules_digest: u64,
    /// The time when the match started, in seconds since the Unix epoch.
    pub started_unix_s: u64,
    pub tick: Tick,
    /// The game's [label](Simulation::save_label); empty if there is none.
    pub label: String,
    pub owners: Vec<(PlayerId, String)>,
}

impl SaveInfo {
    /// Reads the start of a save: its first [`SAVE_INFO_BYTES_MAX`] bytes suffice. The world may be cut off.
    ///
    /// # Errors
    /// If the bytes are not the start of a save.
    pub fn read(beginning: &[u8]) -> Result<SaveInfo, SaveFormatError> {
        let (head, world) = SaveBeginning::read(&mut journal::records(beginning))?;
        match world {
            Ok(Record::World { .. }) | Err(SaveFormatError::Journal(JournalError::Torn { .. })) => {
            }
            Ok(_) | Err(SaveFormatError::Incomplete) => return Err(SaveFormatError::Incomplete),
            Err(error) => return Err(error),
        }
        let owners = head.owners.into_iter();
        Ok(SaveInfo {
            game: line(&head.about.game).to_string(),
            version: head.about.sim_version,
            rules_digest: head.about.rules_digest,
            started_unix_s: head.about.started_unix_s,
            tick: head.shell.tick(),
            label: line(&head.label).to_string(),
            owners: owners
                .map(|(player, owner)| (player, line(&owner).to_string()))
                .collect(),
        })
    }
}

/// Writes a save of `world`. `started_unix_s` is the time when the match started.
///
/// # Errors
/// If the world, a name or the label is too large, or if the world cannot be encoded.
pub fn write<'i, S: Simulation>(
    hello: &Hello,
    rules: &S::Rules,
    started_unix_s: u64,
    command_delay: u8,
    world: &World<S>,
    owners: impl IntoIterator<Item = (PlayerId, &'i str)>,
) -> Result<Vec<u8>, SaveWriteError> {
    let mut file = Vec::new();
    let label = world.sim().save_label(rules);
    if label.len() > LABEL_BYTES_MAX {
        let bytes = label.len();
        return Err(SaveWriteError::Label { bytes });
    }
    let start = Start {
        game: &hello.game,
        sim_version: hello.version,
        rules_digest: hello.rules,
        build: &hello.build,
        started_unix_s,
        command_delay,
        by: WrittenBy::Save,
    };
    let mut writer = JournalWriter::start(&start, &mut file)?;
    if !label.is_empty() {
        writer.append(&Record::Label(&label), &mut file)?;
    }
    let mut bytes = Vec::new();
    let sim_bytes = codec::size(world.sim())? as u64;
    codec::append(&(sim_bytes, world.shell()), &mut bytes)?;
    writer.append(&Record::Shell(&bytes), &mut file)?;
    for (player, identity) in owners {
        let identity = identity.as_bytes();
        writer.append(&Record::Reserved { player, identity }, &mut file)?;
    }
    bytes.clear();
    codec::append(world, &mut bytes)?;
    let tick = world.tick();
    let bytes = &bytes;
    writer.append(&Record::World { tick, bytes }, &mut file)?;
    writer.append(&Record::End { reason: SAVED }, &mut file)?;
    Ok(file)
}

struct SaveBeginning {
    about: About,
    label: String,
    sim_bytes: u64,
    shell: WorldShell,
    owners: Vec<(PlayerId, String)>,
}

impl SaveBeginning {
    // Also returns the record after it.
    fn read<'a>(
        records: &mut impl Iterator<Item = Result<Entry<'a>, JournalError>>,
    ) -> Result<(SaveBeginning, Result<Record<'a>, SaveFormatError>), SaveFormatError> {
        let mut next = || match records.next() {
            Some(entry) => Ok(entry?.record),
            None => Err(SaveFormatError::Incomplete),
        };
        let about = About::of(&next()?).ok_or(SaveFormatError::Incomplete)?;
        if about.by != WrittenBy::Save {
            return Err(SaveFormatError::Journalled);
        }
        let (label, shell) = match next()? {
            Record::Label(label) => (label, next()?),
            other => ("", other),
        };
        let Record::Shell(bytes) = shell else {
            return Err(SaveFormatError::Incomplete);
        };
        let (sim_bytes, shell) = codec::decode_whole::<(u64, WorldShell)>(bytes)
            .map_err(|_| SaveFormatError::Incomplete)?;
        let mut owners: Vec<(PlayerId, String)> = Vec::new();
        let after = loop {
            match next() {
                Ok(Record::Reserved { player, identity })
                    if owners.last().is_none_or(|(last, _)| *last < player) =>
                {
                    owners.push((player, String::from_utf8_lossy(identity).into_owned()));
                }
                other => break other,
            }
        };
        let head = SaveBeginning {
            about,
            label: label.into(),
            sim_bytes,
            shell,
            owners,
        };
        Ok((head, after))
    }
}

/// Reads a save without decoding its world. Needs memory beyond `file` only for names and open queries.
///
/// # Errors
/// If the bytes are not a whole save.
pub fn read(file: &[u8]) -> Result<Save<'_>, SaveFormatError> {
    let mut records = journal::records(file);
    let (head, world) = SaveBeginning::read(&mut records)?;
    let SaveBeginning {
        about,
        sim_bytes,
        shell,
        owners,
        ..
    } = head;
    let world = match world? {
        Record::World { tick, bytes } if tick == shell.tick() => bytes,
        _ => return Err(SaveFormatError::Incomplete),
    };
    // A world starts with its tick, then its simulation.
    let from = codec::size(&shell.tick()).map_err(|_| SaveFormatError::Incomplete)?;
    let sim = usize::try_from(sim_bytes)
        .ok()
        .and_then(|sim_bytes| world.get(from..from.checked_add(sim_bytes)?))
        .ok_or(SaveFormatError::Incomplete)?;
    let end = records.next().ok_or(SaveFormatError::Incomplete)??.record;
    let is_end = matches!(end, Record::End { reason: SAVED });
    if !is_end || records.next().is_some() {
        return Err(SaveFormatError::Incomplete);
    }
    Ok(Save {
        about,
        shell,
        owners,
        world,
        sim,
    })
}
