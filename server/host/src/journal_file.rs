//! A match's journal as a file: begun once, appended to by one process at a time, never overwritten.
//!
//! ```text
//!  Journal::create ──┐                                        append* ─▶ settle ─▶ packets may go
//!  Journal::resume ──┴─▶ locked, cut to what is sound ──▶        │          ╰─ Durability::Power: the disk has it
//!                                                                ╰─ fails: OnJournalFailure
//! ```

use std::fmt;
use std::fs::{File, Metadata};
use std::io::{self, Seek, SeekFrom, Write};
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicU8, Ordering};
use std::time::Duration;

use twinstep_core::Simulation;
use twinstep_protocol::journal::JournalError;

use super::journal_read::StoredJournal;
use super::logged;
use super::own_files::{
    Opened, copy_to_new, leads_to, make_new, open_alone, open_to_read, rename_to_free, sync_folder,
    with_end,
};
use twinstep_server::config::MatchConfig;
use twinstep_server::hooks::Resolver;
use twinstep_server::{Match, ResumeError, Resumed};

/// Who takes a journal up waits so long for the process that wrote it to let go of it, and looks so often.
const LOCK_PATIENCE: Duration = Duration::from_secs(2);
const LOCK_LOOK: Duration = Duration::from_millis(5);
/// Names for incomplete journals of one match.
const NAMES_MAX: u32 = 10_000;

impl JournalFileError {
    /// Whether the file is no journal of this version at all.
    #[must_use]
    pub fn is_foreign(&self) -> bool {
        matches!(
            self,
            JournalFileError::Damaged {
                source: JournalError::NotAJournal | JournalError::FormatVersion { .. },
                ..
            }
        )
    }
}

/// What a journal is to survive.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Durability {
    /// The end of the process, however it ends. Costs a system call a turn (measured: under 1 us).
    #[default]
    Process,
    /// The loss of power too. Costs a wait for the disk a turn, before its packets go (measured on a virtual
    /// disk: 4 ms, one in a hundred 9 ms; `twinstep-bench journal FOLDER` measures yours).
    Power,
}

/// What becomes of a match whose journal cannot be written.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum OnJournalFailure {
    /// It ends; what was written can be taken up again.
    #[default]
    End,
    /// It goes on without one, and the log says so again and again.
    GoOn,
}

/// Why a journal was not begun, written or read.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum JournalFileError {
    /// A file is already there.
    #[error(
        "{path} is already there and a journal is never overwritten; choose another path, or move it away"
    )]
    Exists {
        /// Which file.
        path: PathBuf,
    },
    /// Another process writes it.
    #[error("another process writes the journal {path}: stop it first, or begin a new match")]
    InUse {
        /// Which file.
        path: PathBuf,
    },
    /// It is not as it was when it was looked at.
    #[error(
        "the journal {path} was changed since it was looked at: look at it again before it is repaired"
    )]
    Changed {
        /// Which file.
        path: PathBuf,
    },
    /// It is compressed, and only plain ones are written.
    #[error("the journal {path} is compressed: unpack it with gunzip, and use that")]
    Compressed {
        /// Which file.
        path: PathBuf,
    },
    /// It cannot be made or written.
    #[error(
        "cannot write the journal {path}: {source}; choose a folder that exists, can be written to and has room"
    )]
    Unwritable {
        /// Which file.
        path: PathBuf,
        /// What the operating system said.
        source: io::Error,
    },
    /// It cannot be read.
    #[error(
        "cannot read the journal {path}: {source}; give it to the user that runs this program, or move it away"
    )]
    Unreadable {
        /// Which file.
        path: PathBuf,
        /// What the operating system said.
        source: io::Error,
    },
    /// It is damaged, or no journal at all.
    #[error(
        "expected a sound journal at {path}, but: {source}; move it away, or bring back an undamaged copy"
    )]
    Damaged {
        /// Which file.
        path: PathBuf,
        /// What is wrong.
        source: JournalError,
    },
    /// It stops before its first world.
    #[error(
        "the journal {path} was cut off before its first world: if a match was played in it, it is lost; bring back a \
         whole copy, or move it away to begin a new match"
    )]
    Cut {
        /// Which file.
        path: PathBuf,
    },
    /// Its match cannot be taken up again.
    #[error(
        "cannot take up the match of {path}: {source}; begin a new match, or move the file away"
    )]
    Resume {
        /// Which file.
        path: PathBuf,
        /// Why not.
        source: ResumeError,
    },
}

/// Waits until the disk has what a file holds.
type Wait = dyn Fn(&File) -> io::Result<()> + Send;

/// How the disk is waited for.
struct WaitForDisk(Box<Wait>);

impl fmt::Debug for WaitForDisk {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("WaitForDisk")
    }
}

/// The right to write a journal: of the match that writes it, until it is taken away from it.
///
/// Invariant: from then on the match writes nothing to what the name leads to, whenever its thread comes back.
#[derive(Debug)]
pub(super) struct JournalHold {
    path: PathBuf,
    /// The open file of the match, and with it its lock.
    file: Option<Arc<File>>,
    state: AtomicU8,
}

/// The states of a journal: at rest, being written, taken away from its match.
const AT_REST: u8 = 0;
const WRITTEN: u8 = 1;
const TAKEN: u8 = 2;

impl JournalHold {
    /// Does this with the file or its name, if it was not taken away.
    fn write<T>(&self, write: impl FnOnce() -> io::Result<T>) -> io::Result<T> {
        let state = |from, to| {
            self.state
                .compare_exchange(from, to, Ordering::AcqRel, Ordering::Acquire)
        };
        if state(AT_REST, WRITTEN).is_err() {
            return Err(io::Error::other(
                "it was taken away from a match that stood still",
            ));
        }
        let written = write();
        let _ = state(WRITTEN, AT_REST);
        written
    }

    /// Takes the journal away from a match whose thread may never come back: another one can take the match up then. Waits for
    /// the disk.
    ///
    /// # Errors
    /// A write is under way, and the file cannot be copied: it stays locked.
    pub(super) fn take_away(&self) -> io::Result<()> {
        let was = self.state.swap(TAKEN, Ordering::AcqRel);
        let Some(file) = &self.file else {
            return Ok(());
        };
        if was != WRITTEN && cfg!(unix) {
            return file.unlock();
        }
        // Nobody knows when that write ends, and no lock keeps it off: so the name leads to a copy from here on.
        if !leads_to(&self.path, file)? {
            return Ok(());
        }
        let copy = with_end(&self.path, ".copy");
        let _ = std::fs::remove_file(&copy);
        copy_to_new(&open_to_read(&self.path)?, &copy)?;
        std::fs::rename(&copy, &self.path)?;
        sync_folder(&self.path)
    }
}

/// An open journal, which no other process can open as well.
#[derive(Debug)]
pub struct Journal {
    path: PathBuf,
    file: Arc<File>,
    hold: Arc<JournalHold>,
    is_new: bool,
    durability: Durability,
    on_failure: OnJournalFailure,
    wait_for_disk: WaitForDisk,
    /// Where what was appended ends, of a regular file.
    end: Option<u64>,
    /// Something was appended since the disk was last waited for.
    unsettled: bool,
    /// Something was appended and settled.
    begun: bool,
    /// The disk has the file's name too, not only its bytes.
    named: bool,
}

impl Journal {
    /// Makes the file, which must not be there.
    ///
    /// # Errors
    /// A file that is there, or a folder that cannot be written.
    pub fn create(path: impl Into<PathBuf>) -> Result<Journal, JournalFileError> {
        let path = path.into();
        match make_new(&path) {
            Ok(Opened::Alone(file)) => Ok(Journal::over(path, file, true)),
            Ok(Opened::InUse) => Err(JournalFileError::InUse { path }),
            Err(error) if error.kind() == io::ErrorKind::AlreadyExists => {
                Err(JournalFileError::Exists { path })
            }
            Err(source) => Err(JournalFileError::Unwritable { path, source }),
        }
    }

    /// A new journal in a file that is already open and empty, or something else that takes bytes; it is written on from where
    /// it stands.
    #[must_use]
    pub fn from_file(path: impl Into<PathBuf>, file: File) -> Journal {
        Journal::over(path.into(), file, true)
    }

    fn over(path: PathBuf, file: File, is_new: bool) -> Journal {
        let about = file.metadata().ok().filter(Metadata::is_file);
        let file = Arc::new(file);
        let hold = JournalHold {
            path: path.clone(),
            file: about.as_ref().map(|_| file.clone()),
            state: AtomicU8::new(AT_REST),
        };
        Journal {
            path,
            hold: Arc::new(hold),
            end: about.map(|about| about.len()),
            file,
            is_new,
            durability: Durability::default(),
            on_failure: OnJournalFailure::default(),
            wait_for_disk: WaitForDisk(Box::new(File::sync_data)),
            unsettled: false,
            begun: false,
            named: false,
        }
    }

    /// Takes the match of a journal up again: see [`Match::resume`]. The file is cut to what is sound of it, and
    /// gets what the match writes from here on.
    ///
    /// Reads the whole file, piece by piece: in the memory of its largest record. If another process writes it, waits up to 2 s
    /// for that to end: one that hands its match over tells the players a moment before it lets go of the file.
    ///
    /// # Errors
    /// A file that cannot be read or written, that another process writes, or whose match cannot go on.
    pub fn resume<S: Simulation>(
        path: impl Into<PathBuf>,
        config: MatchConfig,
        rules: Arc<S::Rules>,
        resolver: impl Resolver<S>,
    ) -> Result<(Match<S>, Journal), JournalFileError> {
        let path = path.into();
        let unreadable = |source| JournalFileError::Unreadable {
            path: path.clone(),
            source,
        };
        // Before it is read: whoever wrote it must be gone.
        let file = match open_soon(&path).map_err(unreadable)? {
            Opened::Alone(file) => file,
            Opened::InUse => return Err(JournalFileError::InUse { path }),
        };
        Journal::take_up(path, file, config, rules, resolver)
    }

    /// As [`resume`](Self::resume), of a file that is this process's alone.
    pub(super) fn take_up<S: Simulation>(
        path: PathBuf,
        file: File,
        config: MatchConfig,
        rules: Arc<S::Rules>,
        resolver: impl Resolver<S>,
    ) -> Result<(Match<S>, Journal), JournalFileError> {
        let unreadable = |source| JournalFileError::Unreadable {
            path: path.clone(),
            source,
        };
        let stored = file.try_clone().and_then(StoredJournal::of);
        let mut stored = stored.map_err(unreadable)?;
        if stored.is_compressed() {
            return Err(JournalFileError::Compressed { path });
        }
        let resumed = Match::resume(config, &mut stored, rules, resolver);
        if let Some(source) = stored.failure() {
            return Err(unreadable(source));
        }
        let Resumed { match_, keep_bytes } =
            resumed.map_err(|source| JournalFileError::Resume {
                path: path.clone(),
                source,
            })?;
        let torn_bytes = stored.file_bytes() - keep_bytes;
        let mut journal = Journal::over(path, file, false);
        journal.end = journal.end.map(|_| keep_bytes);
        if let Err(source) = journal.cut() {
            return Err(journal.unwritable(source));
        }
        logged::info!(
            path = %journal.path.display(),
            tick = match_.world().tick().0,
            torn_bytes,
            "a match is taken up again"
        );
        Ok((match_, journal))
    }

    /// What it is to survive.
    #[must_use]
    pub fn durability(mut self, durability: Durability) -> Journal {
        self.durability = durability;
        self
    }

    /// What becomes of the match if it cannot be written.
    #[must_use]
    pub fn on_failure(mut self, on_failure: OnJournalFailure) -> Journal {
        self.on_failure = on_failure;
        self
    }

    /// On a disk that is waited for in this way.
    #[cfg(test)]
    pub(super) fn on_disk(
        mut self,
        wait: impl Fn(&File) -> io::Result<()> + Send + 'static,
    ) -> Journal {
        self.wait_for_disk = WaitForDisk(Box::new(wait));
        self
    }

    /// Where it is.
    #[must_use]
    pub fn path(&self) -> &Path {
        &self.path
    }

    /// Where it is, for a process that may stand in another folder.
    pub(super) fn found_from_anywhere(&self) -> PathBuf {
        let found = self.path.canonicalize();
        found.unwrap_or_else(|_| self.path.clone())
    }

    /// The handle that takes it away from its match.
    pub(super) fn hold(&self) -> Arc<JournalHold> {
        self.hold.clone()
    }

    pub(super) fn is_new(&self) -> bool {
        self.is_new
    }

    pub(super) fn failure_policy(&self) -> OnJournalFailure {
        self.on_failure
    }

    /// Hands bytes to the operating system: they survive this process.
    ///
    /// # Errors
    /// They cannot be written. None of them is in the file then, unless that cannot be cut either.
    pub fn append(&mut self, bytes: &[u8]) -> Result<(), JournalFileError> {
        self.unsettled = true;
        let hold = self.hold.clone();
        let written = hold.write(|| {
            (&*self.file).write_all(bytes).inspect_err(|_| {
                // A disk that runs full takes the beginning. Nobody saw what it belongs to.
                if let Err(error) = self.cut() {
                    logged::error!(path = %self.path.display(), %error, "the journal ends within a record");
                }
            })
        });
        written.map_err(|source| self.unwritable(source))?;
        self.end = self.end.map(|end| end + bytes.len() as u64);
        Ok(())
    }

    /// Cuts off what is behind the end. Not opened for appending: where that is done, Windows lets nobody cut.
    fn cut(&mut self) -> io::Result<()> {
        let Some(end) = self.end else {
            return Ok(());
        };
        self.file.set_len(end)?;
        (&*self.file).seek(SeekFrom::Start(end)).map(drop)
    }

    /// After this, what was appended survives what it is to survive.
    ///
    /// # Errors
    /// The disk does not take it.
    pub fn settle(&mut self) -> Result<(), JournalFileError> {
        if self.durability == Durability::Power && self.unsettled {
            let settled = (self.wait_for_disk.0)(&self.file).and_then(|()| match self.named {
                true => Ok(()),
                // A file whose name is lost is lost.
                false => sync_folder(&self.path),
            });
            settled.map_err(|source| self.unwritable(source))?;
            self.named = true;
        }
        self.begun |= self.unsettled;
        self.unsettled = false;
        Ok(())
    }

    /// Lets go of it, and waits until the disk has all of it.
    pub(super) fn finish(self) -> Result<(), JournalFileError> {
        // Whoever takes the match up need not wait for the disk. Without a lock there was none.
        let _ = self.file.unlock();
        self.file
            .sync_all()
            .map_err(|source| self.unwritable(source))
    }

    /// Removes a new file if not even its first world was written: nobody saw anything of its match, and whoever finds it
    /// would have to wonder.
    pub(super) fn discard_unbegun(self) {
        let is_file = self.file.metadata().is_ok_and(|data| data.is_file());
        if self.is_new && !self.begun && is_file {
            let _ = self.hold.write(|| std::fs::remove_file(&self.path));
        }
    }

    /// The match goes on without it: it gets another name, so that nobody takes it up where it stops.
    pub(super) fn abandon(self) {
        let named = |n: u32| match n {
            0 => with_end(&self.path, ".incomplete"),
            n => with_end(&self.path, format!(".incomplete-{n}")),
        };
        // One that another match left stays as it is.
        let give = |name: PathBuf| rename_to_free(&self.path, &name);
        let is_taken = |given: &io::Result<()>| matches!(given, Err(error) if error.kind() == io::ErrorKind::AlreadyExists);
        let given = self.hold.write(|| {
            let mut given = (0..NAMES_MAX).map(|n| give(named(n))).skip_while(is_taken);
            given
                .next()
                .unwrap_or(Err(io::ErrorKind::AlreadyExists.into()))
        });
        if let Err(error) = given {
            logged::error!(path = %self.path.display(), %error, "the incomplete journal keeps its name: do not take it up");
        }
    }

    fn unwritable(&self, source: io::Error) -> JournalFileError {
        JournalFileError::Unwritable {
            path: self.path.clone(),
            source,
        }
    }
}

impl Drop for Journal {
    fn drop(&mut self) {
        // Who could take it away has the file open as well.
        let _ = self.file.unlock();
    }
}

/// As [`open_alone`], but waits for a writer that is about to end.
pub(super) fn open_soon(path: &Path) -> io::Result<Opened> {
    let looks = LOCK_PATIENCE.as_millis() / LOCK_LOOK.as_millis();
    for _ in 0..looks {
        match open_alone(path)? {
            Opened::InUse => std::thread::sleep(LOCK_LOOK),
            opened => return Ok(opened),
        }
    }
    open_alone(path)
}

#[cfg(all(test, unix))]
mod tests {
    use super::*;

    /// Finding K3-E: what a match that hung had of its journal was never given back; and a thread that wakes late must not write
    /// into what another one goes on with.
    #[test]
    fn a_match_whose_journal_was_taken_away_writes_nothing_to_it_whenever_it_wakes() {
        let folder = std::env::temp_dir().join(format!("twinstep-taken-{}", std::process::id()));
        let _ = std::fs::remove_dir_all(&folder);
        std::fs::create_dir_all(&folder).unwrap();
        for is_writing in [false, true] {
            let path = folder.join(format!("match-{is_writing}.journal"));
            let mut lost = Journal::create(&path).unwrap();
            lost.append(b"one").unwrap();
            lost.settle().unwrap();
            assert!(matches!(open_alone(&path), Ok(Opened::InUse)));
            let hold = lost.hold();
            match is_writing {
                false => hold.take_away().unwrap(),
                // A write that the disk holds up: it is done when the journal is another one's already.
                true => hold
                    .write(|| {
                        hold.take_away().unwrap();
                        (&*lost.file).write_all(b"late")
                    })
                    .unwrap(),
            }
            let Ok(Opened::Alone(file)) = open_alone(&path) else {
                panic!("it is free");
            };
            lost.append(b"two").unwrap_err();
            lost.abandon();
            assert!(leads_to(&path, &file).unwrap());
            assert_eq!(std::fs::read(&path).unwrap(), b"one");
        }
        // Nor does one that had not begun remove it.
        let path = folder.join("match-9.journal");
        let lost = Journal::create(&path).unwrap();
        lost.hold().take_away().unwrap();
        lost.discard_unbegun();
        assert!(path.exists());
        std::fs::remove_dir_all(&folder).unwrap();
    }
}
