//! Saved games: a match as one file, from which another match begins.
//!
//! ```text
//!  Start (written by a save) · Shell · Reserved, one for each seat with an owner · World · End
//!                                 ╰─ the bytes of the state in the world, and all that an upgraded state needs
//! ```
//!
//! A save is a journal without turns, so its records have the journal's checks. It has no rulings on tickets: its match
//! admits each identity with any valid ticket. Invariant: a save without its end record is refused as incomplete.

use alloc::string::String;
use alloc::vec::Vec;

use twinstep_core::bounds::{PLAYERS_MAX, WORLD_BYTES_MAX};
use twinstep_core::codec::{self, CodecError};
use twinstep_core::world::{World, WorldShell};
use twinstep_core::{PlayerId, Simulation};

use crate::journal::{
    self, IDENTITY_BYTES_MAX, JournalError, JournalWriter, OTHER_BYTES_MAX, Record, Start,
    WriteError, WrittenBy,
};
use crate::packet::hello::Hello;
use crate::replay::About;

/// The largest size of a save, in bytes. A file that is longer need not be read.
pub const SAVE_BYTES_MAX: usize =
    WORLD_BYTES_MAX + OTHER_BYTES_MAX + PLAYERS_MAX * (IDENTITY_BYTES_MAX + 16) + 1_024;

/// The reason in the end record of a save.
const SAVED: &str = "saved";

#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum SaveWriteError {
    #[error("the world cannot be saved: {0}")]
    World(#[from] CodecError),
    #[error("the names of the match cannot be saved: {0}")]
    Names(#[from] WriteError),
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum SaveFormatError {
    #[error("expected a saved game, got another kind of file")]
    NotASave,
    #[error("the saved game cannot be read: {0}")]
    Journal(#[source] JournalError),
    #[error("expected a saved game, got the journal of a match: resume the journal instead")]
    Journalled,
    #[error("the saved game is incomplete: load another copy of it, or an older save")]
    Incomplete,
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

/// Writes a save of `world`. `started_unix_s` is the time when the match began.
///
/// # Errors
/// If the world or a name is too large.
pub fn write<'i, S: Simulation>(
    hello: &Hello,
    started_unix_s: u64,
    command_delay: u8,
    world: &World<S>,
    owners: impl IntoIterator<Item = (PlayerId, &'i str)>,
) -> Result<Vec<u8>, SaveWriteError> {
    let mut file = Vec::new();
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

/// Reads a save without decoding its world. Needs no memory beyond `file` but for names and open queries.
///
/// # Errors
/// If the bytes are not a whole save.
pub fn read(file: &[u8]) -> Result<Save<'_>, SaveFormatError> {
    let mut records = journal::records(file);
    let mut next = || match records.next() {
        Some(entry) => Ok(entry?.record),
        None => Err(SaveFormatError::Incomplete),
    };
    let about = About::of(&next()?).ok_or(SaveFormatError::Incomplete)?;
    if about.by != WrittenBy::Save {
        return Err(SaveFormatError::Journalled);
    }
    let Record::Shell(bytes) = next()? else {
        return Err(SaveFormatError::Incomplete);
    };
    let (sim_bytes, shell) =
        codec::decode_whole::<(u64, WorldShell)>(bytes).map_err(|_| SaveFormatError::Incomplete)?;
    let mut owners: Vec<(PlayerId, String)> = Vec::new();
    let world = loop {
        match next()? {
            Record::Reserved { player, identity }
                if owners.last().is_none_or(|(last, _)| *last < player) =>
            {
                owners.push((player, String::from_utf8_lossy(identity).into_owned()));
            }
            Record::World { tick, bytes } if tick == shell.tick() => break bytes,
            _ => return Err(SaveFormatError::Incomplete),
        }
    };
    // A world begins with its tick, then its simulation.
    let from = codec::size(&shell.tick()).map_err(|_| SaveFormatError::Incomplete)?;
    let sim = usize::try_from(sim_bytes)
        .ok()
        .and_then(|sim_bytes| world.get(from..from.checked_add(sim_bytes)?))
        .ok_or(SaveFormatError::Incomplete)?;
    let is_end = matches!(next()?, Record::End { reason: SAVED });
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
