//! A match's journal as a file: created once, appended to by one process at a time, never overwritten.
//!
//! ```text
//!  Journal::create ──┐                                        append* ─▶ settle ─▶ packets may go
//!  Journal::resume ──┴─▶ locked, cut after the last good record ──▶        │          ╰─ Durability::Power: the disk has it
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
    FileLock, access_advice, copy_to_new, create_locked, leads_to, open_locked, open_to_read,
    rename_to_free, sync_folder, with_end,
};
use twinstep_server::config::MatchConfig;
use twinstep_server::hooks::Resolver;
use twinstep_server::{Match, ResumeError, Resumed};

const LOCK_PATIENCE: Duration = Duration::from_secs(2);
const LOCK_LOOK: Duration = Duration::from_millis(5);
const NAMES_MAX: u32 = 10_000;

impl JournalFileError {
    /// Returns `true` if the file is not a journal, or has another format version.
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

/// The failures that a journal survives.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Durability {
    /// The journal survives any end of the process. Costs one system call per turn (measured: under 1 us).
    #[default]
    Process,
    /// The journal also survives a power loss. Costs a wait for the disk per turn, before the packets of that turn
    /// leave (measured on a virtual disk: 4 ms, one in a hundred 9 ms; `twinstep-bench journal FOLDER` measures yours).
    Power,
}

/// A match's reaction if its journal cannot be written.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum OnJournalFailure {
    /// The match ends. It can be resumed from what was written.
    #[default]
    End,
    /// The match continues without a journal. The log repeats a warning.
    Continue,
}

/// The reason why a journal could not be created, written or read.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
#[expect(missing_docs, reason = "the messages explain the variants")]
pub enum JournalFileError {
    #[error("{path} exists; a journal is never overwritten: choose another path, or move it away")]
    Exists { path: PathBuf },
    #[error(
        "the journal {path} is in use by another process (`fuser {path}` names it), or by a match that hangs in this \
         process: end that process first, or start a new match"
    )]
    InUse { path: PathBuf },
    #[error("the journal {path} changed after it was checked: check it again, then repair it")]
    Changed { path: PathBuf },
    #[error("the journal {path} is compressed: unpack it with gunzip, and use that")]
    Compressed { path: PathBuf },
    #[error("cannot write the journal {path}: {source}{}", folder_advice(source))]
    Unwritable { path: PathBuf, source: io::Error },
    #[error(
        "cannot check or rename the journal {path}: {source}{}",
        access_advice(source)
    )]
    Unusable { path: PathBuf, source: io::Error },
    #[error("cannot read the journal {path}: {source}{}", access_advice(source))]
    Unreadable { path: PathBuf, source: io::Error },
    #[error("cannot use the journal {path}: {source}{}", damage_advice(source))]
    Damaged { path: PathBuf, source: JournalError },
    #[error(
        "the journal {path} ends before its first world, so nothing can be resumed: restore a complete copy, or move it \
         away to start a new match"
    )]
    NoWorld { path: PathBuf },
    #[error(
        "cannot resume the match of {path}: {source}; start a new match, or move the file away"
    )]
    Resume { path: PathBuf, source: ResumeError },
}

fn damage_advice(error: &JournalError) -> &'static str {
    match error {
        JournalError::NotAJournal => "",
        JournalError::FormatVersion { .. } => "",
        JournalError::Torn { offset: 0 } => {
            "; the file is empty, or cut off near its start: restore a complete copy, or move it away"
        }
        _ => "; restore a complete copy, or move it away",
    }
}

fn folder_advice(error: &io::Error) -> &'static str {
    match error.kind() {
        io::ErrorKind::PermissionDenied
        | io::ErrorKind::ReadOnlyFilesystem
        | io::ErrorKind::NotFound
        | io::ErrorKind::NotADirectory => "; choose an existing, writable directory",
        io::ErrorKind::StorageFull | io::ErrorKind::QuotaExceeded => "; free some space there",
        _ => "",
    }
}

type Wait = dyn Fn(&File) -> io::Result<()> + Send;

struct WaitForDisk(Box<Wait>);

impl fmt::Debug for WaitForDisk {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("WaitForDisk")
    }
}

/// The right to write a journal. The match holds it until the right is taken away.
///
/// Invariant: afterwards the match cannot write to the file at the journal's path, even if its thread continues.
#[derive(Debug)]
pub(super) struct JournalHold {
    path: PathBuf,
    file: Option<Arc<File>>,
    state: AtomicU8,
}

/// The states of a journal: idle, being written, taken away.
const AT_REST: u8 = 0;
const WRITTEN: u8 = 1;
const TAKEN: u8 = 2;

impl JournalHold {
    /// Runs `write`, which writes or renames the file, and marks the journal as being written meanwhile.
    ///
    /// # Errors
    /// The error of `write`. If the journal was taken away, `write` does not run.
    fn write<T>(&self, write: impl FnOnce() -> io::Result<T>) -> io::Result<T> {
        let state = |from, to| {
            self.state
                .compare_exchange(from, to, Ordering::AcqRel, Ordering::Acquire)
        };
        if state(AT_REST, WRITTEN).is_err() {
            return Err(io::Error::other(
                "its match hung, and the journal was closed",
            ));
        }
        let written = write();
        let _ = state(WRITTEN, AT_REST);
        written
    }

    /// Takes the journal away from a match whose thread may never return, so that the match can be resumed. Waits for
    /// the disk.
    ///
    /// # Errors
    /// If the file cannot be unlocked or, during a write and on Windows, copied. In that case, it stays locked.
    pub(super) fn take_away(&self) -> io::Result<()> {
        let was = self.state.swap(TAKEN, Ordering::AcqRel);
        let Some(file) = &self.file else {
            return Ok(());
        };
        if was != WRITTEN && cfg!(unix) {
            return file.unlock();
        }
        // The write under way may end at any time, and no lock stops it. So the name is moved to a copy.
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

/// An open journal. [`create`](Self::create) and [`resume`](Self::resume) lock the file against other writers.
#[derive(Debug)]
pub struct Journal {
    path: PathBuf,
    file: Arc<File>,
    hold: Arc<JournalHold>,
    is_new: bool,
    durability: Durability,
    on_failure: OnJournalFailure,
    wait_for_disk: WaitForDisk,
    /// The end of the appended bytes, if this is a regular file.
    end: Option<u64>,
    /// Bytes were appended since the last wait for the disk.
    unsettled: bool,
    /// Bytes were appended and settled.
    begun: bool,
    /// The directory entry of the file is also on disk.
    named: bool,
}

impl Journal {
    /// Creates the file, which must not exist.
    ///
    /// # Errors
    /// If the file exists, or the folder cannot be written.
    pub fn create(path: impl Into<PathBuf>) -> Result<Journal, JournalFileError> {
        let path = path.into();
        match create_locked(&path) {
            Ok(FileLock::Acquired(file)) => Ok(Journal::over(path, file, true)),
            Ok(FileLock::InUse) => Err(JournalFileError::InUse { path }),
            Err(error) if error.kind() == io::ErrorKind::AlreadyExists => {
                Err(JournalFileError::Exists { path })
            }
            Err(source) => Err(JournalFileError::Unwritable { path, source }),
        }
    }

    /// A new journal in an open, empty file, or another sink of bytes. Writes from the current position.
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

    /// Resumes the match of a journal: see [`Match::resume`]. Cuts the file after its last good record, and continues
    /// it.
    ///
    /// Reads the whole file in pieces, and needs memory for its largest record. If another process writes it, waits up
    /// to 2 s for that process to end: a process that releases its match closes the sessions a moment before it unlocks
    /// the file.
    ///
    /// # Errors
    /// If the file cannot be read or written, another process writes it, or its match cannot continue.
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
        // Locked before it is read, because the previous writer must have ended.
        let file = match open_soon(&path).map_err(unreadable)? {
            FileLock::Acquired(file) => file,
            FileLock::InUse => return Err(JournalFileError::InUse { path }),
        };
        Journal::resume_locked(path, file, config, rules, resolver)
    }

    pub(super) fn resume_locked<S: Simulation>(
        path: PathBuf,
        file: File,
        config: MatchConfig,
        rules: Arc<S::Rules>,
        resolver: impl Resolver<S>,
    ) -> Result<(Match<S>, Journal), JournalFileError> {
        let stored = file.try_clone().and_then(StoredJournal::of);
        let (resumed, file_bytes) = resumed(&path, stored, config, rules, resolver)?;
        let Resumed { match_, keep_bytes } = resumed;
        let torn_bytes = file_bytes - keep_bytes;
        let mut journal = Journal::over(path, file, false);
        journal.end = journal.end.map(|_| keep_bytes);
        if let Err(source) = journal.cut() {
            return Err(journal.unwritable(source));
        }
        logged::info!(
            "match" = match_named(&journal.path),
            path = %journal.path.display(),
            tick = match_.world().tick().0,
            cut_bytes = torn_bytes,
            "match resumed"
        );
        Ok((match_, journal))
    }

    // Resumes a match to check that it can be resumed. The file is neither locked nor changed.
    pub(super) fn rehearse<S: Simulation>(
        path: &Path,
        config: MatchConfig,
        rules: Arc<S::Rules>,
        resolver: impl Resolver<S>,
    ) -> Result<Match<S>, JournalFileError> {
        let (resumed, _) = resumed(path, StoredJournal::open(path), config, rules, resolver)?;
        Ok(resumed.match_)
    }

    /// Sets which failures the journal survives.
    #[must_use]
    pub fn durability(mut self, durability: Durability) -> Journal {
        self.durability = durability;
        self
    }

    /// Sets what happens to the match if the journal cannot be written.
    #[must_use]
    pub fn on_failure(mut self, on_failure: OnJournalFailure) -> Journal {
        self.on_failure = on_failure;
        self
    }

    #[cfg(test)]
    pub(super) fn on_disk(
        mut self,
        wait: impl Fn(&File) -> io::Result<()> + Send + 'static,
    ) -> Journal {
        self.wait_for_disk = WaitForDisk(Box::new(wait));
        self
    }

    /// The journal's path.
    #[must_use]
    pub fn path(&self) -> &Path {
        &self.path
    }

    pub(super) fn found_from_anywhere(&self) -> PathBuf {
        let found = self.path.canonicalize();
        found.unwrap_or_else(|_| self.path.clone())
    }

    pub(super) fn hold(&self) -> Arc<JournalHold> {
        self.hold.clone()
    }

    pub(super) fn is_new(&self) -> bool {
        self.is_new
    }

    pub(super) fn failure_policy(&self) -> OnJournalFailure {
        self.on_failure
    }

    /// Passes bytes to the operating system. From then on, they survive the end of this process.
    ///
    /// # Errors
    /// If the bytes cannot be written. In that case, none of them remain in the file, unless cutting it also fails.
    pub fn append(&mut self, bytes: &[u8]) -> Result<(), JournalFileError> {
        // Set even if the write fails, because some bytes may be in the file.
        self.unsettled = true;
        let hold = self.hold.clone();
        let written = hold.write(|| {
            (&*self.file).write_all(bytes).inspect_err(|_| {
                // A full disk takes the first part of a record. Nothing that depends on it was sent.
                if let Err(error) = self.cut() {
                    logged::error!("match" = match_named(&self.path), path = %self.path.display(), %error, "cannot cut off an incomplete record at the journal's end; a server that resumes the journal cuts it off itself");
                }
            })
        });
        written.map_err(|source| self.unwritable(source))?;
        self.end = self.end.map(|end| end + bytes.len() as u64);
        Ok(())
    }

    /// Cuts the file at `end`. The file is not opened in append mode, because Windows cannot cut such a file.
    fn cut(&mut self) -> io::Result<()> {
        let Some(end) = self.end else {
            return Ok(());
        };
        self.file.set_len(end)?;
        (&*self.file).seek(SeekFrom::Start(end)).map(drop)
    }

    /// Makes the appended bytes as durable as configured.
    ///
    /// # Errors
    /// If the bytes cannot be written to disk.
    pub fn settle(&mut self) -> Result<(), JournalFileError> {
        if self.durability == Durability::Power && self.unsettled {
            let settled = (self.wait_for_disk.0)(&self.file).and_then(|()| match self.named {
                true => Ok(()),
                // If the name is not on disk, a power loss loses the file.
                false => sync_folder(&self.path),
            });
            settled.map_err(|source| self.unwritable(source))?;
            self.named = true;
        }
        self.begun |= self.unsettled;
        self.unsettled = false;
        Ok(())
    }

    /// Unlocks the file, and waits until all of it is on disk.
    pub(super) fn finish(self) -> Result<(), JournalFileError> {
        // The next process need not wait for the disk. Without a lock this fails, which is fine.
        let _ = self.file.unlock();
        self.file
            .sync_all()
            .map_err(|source| self.unwritable(source))
    }

    /// Removes a new file without a first world, because no client saw its match, and the file would only confuse an
    /// operator.
    pub(super) fn discard_unbegun(self) {
        let is_file = self.file.metadata().is_ok_and(|data| data.is_file());
        if self.is_new && !self.begun && is_file {
            let _ = self.hold.write(|| std::fs::remove_file(&self.path));
        }
    }

    /// Renames the file, because the match continues without it and must not be resumed where the file ends.
    pub(super) fn abandon(self) {
        let named = |n: u32| match n {
            0 => with_end(&self.path, ".incomplete"),
            n => with_end(&self.path, format!(".incomplete-{n}")),
        };
        // The incomplete journal of another match keeps its name.
        let give = |name: PathBuf| rename_to_free(&self.path, &name);
        let is_taken = |given: &io::Result<()>| matches!(given, Err(error) if error.kind() == io::ErrorKind::AlreadyExists);
        let given = self.hold.write(|| {
            let mut given = (0..NAMES_MAX).map(|n| give(named(n))).skip_while(is_taken);
            given
                .next()
                .unwrap_or(Err(io::ErrorKind::AlreadyExists.into()))
        });
        if let Err(error) = given {
            logged::error!("match" = match_named(&self.path), path = %self.path.display(), %error, "the incomplete journal could not be renamed; move it away, so that no server resumes it");
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
        // Explicitly, because the hold also has the file open.
        let _ = self.file.unlock();
    }
}

// The id in the name of a journal, such as `match-7.journal`.
fn match_named(path: &Path) -> Option<u64> {
    let rest = path.file_name()?.to_str()?.strip_prefix("match-")?;
    rest.split(['.', '-']).next()?.parse().ok()
}

fn resumed<S: Simulation>(
    path: &Path,
    stored: io::Result<StoredJournal>,
    config: MatchConfig,
    rules: Arc<S::Rules>,
    resolver: impl Resolver<S>,
) -> Result<(Resumed<S>, u64), JournalFileError> {
    let path = || path.to_owned();
    let unreadable = |source| JournalFileError::Unreadable {
        path: path(),
        source,
    };
    let mut stored = stored.map_err(unreadable)?;
    if stored.is_compressed() {
        return Err(JournalFileError::Compressed { path: path() });
    }
    let resumed = Match::resume(config, &mut stored, rules, resolver);
    if let Some(source) = stored.failure() {
        return Err(unreadable(source));
    }
    let resumed = resumed.map_err(|source| JournalFileError::Resume {
        path: path(),
        source,
    })?;
    Ok((resumed, stored.file_bytes()))
}

/// Like [`open_locked`], but waits for a writer that is about to end.
pub(super) fn open_soon(path: &Path) -> io::Result<FileLock> {
    let looks = LOCK_PATIENCE.as_millis() / LOCK_LOOK.as_millis();
    for _ in 0..looks {
        match open_locked(path)? {
            FileLock::InUse => std::thread::sleep(LOCK_LOOK),
            opened => return Ok(opened),
        }
    }
    open_locked(path)
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Finding K3-E: the journal of a hung match was never unlocked. Its thread, if it wakes later, must not write to a
    /// file that another match has resumed.
    #[test]
    fn a_match_whose_journal_was_taken_away_cannot_write_to_it() {
        let folder = std::env::temp_dir().join(format!("twinstep-taken-{}", std::process::id()));
        let _ = std::fs::remove_dir_all(&folder);
        std::fs::create_dir_all(&folder).unwrap();
        for is_writing in [false, true] {
            let path = folder.join(format!("match-{is_writing}.journal"));
            let mut lost = Journal::create(&path).unwrap();
            lost.append(b"one").unwrap();
            lost.settle().unwrap();
            assert!(matches!(open_locked(&path), Ok(FileLock::InUse)));
            let hold = lost.hold();
            match is_writing {
                false => hold.take_away().unwrap(),
                // A write delayed by the disk, which completes when the journal already belongs to another match.
                true => hold
                    .write(|| {
                        hold.take_away().unwrap();
                        (&*lost.file).write_all(b"late")
                    })
                    .unwrap(),
            }
            let Ok(FileLock::Acquired(file)) = open_locked(&path) else {
                panic!("it is free");
            };
            lost.append(b"two").unwrap_err();
            lost.abandon();
            assert!(leads_to(&path, &file).unwrap());
            assert_eq!(std::fs::read(&path).unwrap(), b"one");
        }
        // A match that had not started does not remove the file either.
        let path = folder.join("match-9.journal");
        let lost = Journal::create(&path).unwrap();
        lost.hold().take_away().unwrap();
        lost.discard_unbegun();
        assert!(path.exists());
        std::fs::remove_dir_all(&folder).unwrap();
    }
}
