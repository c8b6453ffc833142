//! [`Checkup`]: checks whether a journal is intact, and cuts off damage.
//!
//! ```text
//!  good records  ……………│ torn                 the last record is incomplete: cut off when resumed
//!                       │ zeros or junk        left by a loss of power: `repair` cuts it off
//!                       │ damage · records …   bytes in the middle were altered: `repair` cuts off what follows
//! ```
//!
//! Invariant: a repair never writes to the original before a complete copy of it is on disk.

use std::fs::File;
use std::io;
use std::path::{Path, PathBuf};
use std::time::Duration;

use twinstep_core::{Simulation, Tick};
use twinstep_host::internal::{FileLock, create_locked, open_locked, with_end};
use twinstep_host::{JournalFileError, StoredJournal};
use twinstep_protocol::journal::{JournalError, Remains, SourceError, UpTo, remains};
use twinstep_protocol::replay::{Index, Survey};

/// The kind of damage to a journal.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Harm {
    /// The last record is incomplete. A resume cuts it off as well, because no client saw its content.
    Torn,
    /// Zeros, or other bytes that are not records, follow the last record.
    Junk,
    /// Records follow that can no longer be verified.
    Middle {
        /// The records that seem to follow.
        remains: Remains,
        /// The number of ticks lost with them, as far as is known.
        ticks: u32,
    },
}

/// The result of a check.
#[derive(Clone, Debug)]
pub struct Checkup {
    /// The index of the journal's good records.
    pub index: Index,
    /// The tick at which the match continues.
    pub next: Tick,
    /// The playing time up to that tick.
    pub length: Duration,
    /// The length of a tick.
    pub tick: Duration,
    /// The length of the file, unpacked if it is compressed.
    pub file_bytes: u64,
    /// The first damage: where and why, and its kind.
    pub harm: Option<(JournalError, Harm)>,
}

impl Checkup {
    /// Checks a journal of this game, of any rules and version.
    ///
    /// # Errors
    /// If the file cannot be read, the first record is damaged, or the journal ends before the first world.
    pub fn check_file<S: Simulation>(path: &Path) -> Result<Checkup, JournalFileError> {
        let unreadable = |source| JournalFileError::Unreadable {
            path: path.to_owned(),
            source,
        };
        let mut stored = StoredJournal::open(path).map_err(unreadable)?;
        let looked = look::<S>(&mut stored, path);
        match stored.failure() {
            Some(source) => Err(unreadable(source)),
            None => looked,
        }
    }
}

/// Checks an open journal; `stored` keeps the error if it cannot be read.
fn look<S: Simulation>(
    stored: &mut StoredJournal,
    path: &Path,
) -> Result<Checkup, JournalFileError> {
    let no_world = || JournalFileError::NoWorld {
        path: path.to_owned(),
    };
    let unreadable = |SourceError(why)| JournalFileError::Unreadable {
        path: path.to_owned(),
        source: io::Error::other(why),
    };
    let index = match Index::scan(&mut *stored) {
        Ok(index) if !index.worlds.is_empty() => index,
        Ok(_) | Err(JournalError::Torn { .. }) => return Err(no_world()),
        Err(source) => {
            return Err(JournalFileError::Damaged {
                path: path.to_owned(),
                source,
            });
        }
    };
    let end = index.sound_bytes();
    let journal = &mut *stored;
    let survey = Survey::of::<S>(UpTo { journal, end }, &index);
    let next = survey.first + survey.ticks;
    let harm = match index.stopped {
        None => None,
        Some(stopped @ JournalError::Torn { .. }) => Some((stopped, Harm::Torn)),
        Some(stopped) => {
            let harm = match remains(stored, end).map_err(unreadable)? {
                None => Harm::Junk,
                Some(remains) => {
                    // Estimated from earlier turns, but not less than a later world shows.
                    let of_turns = u64::from(survey.ticks) * remains.turns / index.turns.max(1);
                    let of_turns = of_turns.try_into().unwrap_or(u32::MAX);
                    let named = remains
                        .newest
                        .map_or(0, |newest| newest.0.saturating_sub(next.0));
                    let ticks = named.max(of_turns);
                    Harm::Middle { remains, ticks }
                }
            };
            Some((stopped, harm))
        }
    };
    Ok(Checkup {
        next,
        length: survey.length,
        tick: survey.tick,
        file_bytes: stored.plain_bytes(end).map_err(unreadable)?,
        index,
        harm,
    })
}

impl Checkup {
    /// Cuts off the damage, after copying the whole file next to it. Returns the path of the copy.
    ///
    /// # Errors
    /// If the file is compressed, or another process writes it or has written to it since the check; or the copy or the
    /// cut fails. Before the cut, the original is unchanged.
    pub fn repair(&self, path: &Path) -> Result<PathBuf, JournalFileError> {
        let failed = |source| JournalFileError::Unwritable {
            path: path.to_owned(),
            source,
        };
        let FileLock::Acquired(file) = open_locked(path).map_err(failed)? else {
            return Err(JournalFileError::InUse {
                path: path.to_owned(),
            });
        };
        let stored = file.try_clone().and_then(StoredJournal::of);
        if stored.map_err(failed)?.is_compressed() {
            return Err(JournalFileError::Compressed {
                path: path.to_owned(),
            });
        }
        io::Seek::rewind(&mut &file).map_err(failed)?;
        // If a server has resumed the match since the check, the damage is gone, and good turns are in its place.
        if file.metadata().map_err(failed)?.len() != self.file_bytes {
            return Err(JournalFileError::Changed {
                path: path.to_owned(),
            });
        }
        let kept = copy_beside(path, |copy| io::copy(&mut &file, copy)).map_err(failed)?;
        let cut = file.set_len(self.index.sound_bytes());
        cut.and_then(|()| file.sync_all()).map_err(failed)?;
        Ok(kept)
    }
}

/// Creates a complete copy under a free name, `.damaged` or with a number. If that fails, no copy is left.
fn copy_beside(
    path: &Path,
    copy_to: impl FnOnce(&mut File) -> io::Result<u64>,
) -> io::Result<PathBuf> {
    let (kept, mut file) = make_beside(path)?;
    let copied = copy_to(&mut file).and_then(|_| file.sync_all());
    match copied {
        Ok(()) => Ok(kept),
        Err(error) => {
            // Otherwise each attempt would leave an incomplete copy, perhaps on a full disk.
            let _ = std::fs::remove_file(&kept);
            Err(error)
        }
    }
}

fn make_beside(path: &Path) -> io::Result<(PathBuf, File)> {
    for n in 1_u32.. {
        let kept = with_end(
            path,
            match n {
                1 => ".damaged".to_owned(),
                n => format!(".damaged-{n}"),
            },
        );
        match create_locked(&kept) {
            Ok(FileLock::Acquired(file)) => return Ok((kept, file)),
            Ok(FileLock::InUse) => {}
            Err(error) if error.kind() == io::ErrorKind::AlreadyExists => {}
            Err(error) => return Err(error),
        }
    }
    unreachable!("no folder has so many files")
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Each attempt to repair a journal on a full disk left another file there.
    #[test]
    fn an_incomplete_copy_is_removed() {
        let folder = std::env::temp_dir().join(format!("twinstep-copy-{}", std::process::id()));
        let _ = std::fs::remove_dir_all(&folder);
        std::fs::create_dir_all(&folder).unwrap();
        let path = folder.join("match.journal");
        for _ in 0..3 {
            let failed = copy_beside(&path, |copy| {
                io::Write::write_all(copy, b"half of it")?;
                Err(io::ErrorKind::StorageFull.into())
            });
            assert_eq!(failed.unwrap_err().kind(), io::ErrorKind::StorageFull);
            assert_eq!(std::fs::read_dir(&folder).unwrap().count(), 0);
        }
        let kept = copy_beside(&path, |_| Ok(0)).unwrap();
        assert_eq!(kept, folder.join("match.journal.damaged"));
        std::fs::remove_dir_all(&folder).unwrap();
    }
}
