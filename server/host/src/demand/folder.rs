//! The journals of matches created on demand: a fixed name while the match can continue, a numbered one after its end.
//!
//! ```text
//!  match-7.journal      running, or interrupted: a ticket for match 7 resumes it
//!  match-7.1.journal    over for good; the next journal gets the next free number
//! ```
//!
//! The name of a running match's journal has no special mark. After a crash, the journal can therefore be found by the
//! id alone, checked and repaired with the usual commands, and resumed by a single-match server. A number in the name
//! means "over".
//!
//! Invariant: a journal with a record is never overwritten or removed here, and a match that can continue is never
//! ignored, however many processes share the folder.

use std::io;
use std::path::{Path, PathBuf};

use twinstep_core::Simulation;
use twinstep_protocol::identity::MatchId;

use crate::blueprint::Blueprint;
use crate::config::HostError;
use crate::journal_file::{Journal, JournalFileError, open_soon};
use crate::journal_folder::{JOURNAL_EXTENSION, ended_of};
use crate::own_files::{FileLock, leads_to, open_locked, rename_to_free};
use twinstep_server::Match;

/// The number of attempts to find a journal that other processes may be moving.
const TRIES: u32 = 16;

pub(super) fn in_play(folder: &Path, id: MatchId) -> PathBuf {
    folder.join(format!("match-{id}.{JOURNAL_EXTENSION}"))
}

/// Returns `true` if match `id` can continue from a journal in the folder.
pub(super) fn goes_on(folder: &Path, id: MatchId) -> Result<bool, JournalFileError> {
    settle(folder, id)?;
    Ok(in_play(folder, id).exists())
}

pub(super) fn make_in<S: Simulation>(
    folder: &Path,
    id: MatchId,
    blueprint: Blueprint<S>,
) -> Result<(Match<S>, Journal), HostError> {
    let path = in_play(folder, id);
    // Another process with this folder may end or start a match with this id between two attempts.
    for _ in 0..TRIES {
        settle(folder, id)?;
        match open_soon(&path) {
            Ok(FileLock::Acquired(file)) => {
                let failed = |source| unusable(&path, source);
                let is_empty = file.metadata().map_err(failed)?.len() == 0;
                if !is_empty && ended_of(&file).map_err(failed)?.is_none() {
                    return Ok(blueprint.resume_locked(path, file)?);
                }
            }
            Ok(FileLock::InUse) => return Err(JournalFileError::InUse { path }.into()),
            Err(error) if error.kind() == io::ErrorKind::NotFound => match Journal::create(&path) {
                Err(JournalFileError::Exists { .. } | JournalFileError::InUse { .. }) => {}
                Err(error) => return Err(error.into()),
                Ok(journal) => {
                    return match blueprint.make() {
                        Ok(match_) => Ok((match_, journal)),
                        Err(error) => {
                            journal.discard_unbegun();
                            Err(error.into())
                        }
                    };
                }
            },
            Err(source) => return Err(JournalFileError::Unreadable { path, source }.into()),
        }
    }
    Err(JournalFileError::InUse { path }.into())
}

/// If the match is over, renames its journal to the next free number, and returns the new path. Otherwise returns
/// `None`. Removes a journal without a record.
pub(super) fn settle(folder: &Path, id: MatchId) -> Result<Option<PathBuf>, JournalFileError> {
    let path = in_play(folder, id);
    let failed = |source| unusable(&path, source);
    // The lock is held until the end, so that other processes do not move or write the file meanwhile.
    let file = match open_locked(&path) {
        Ok(FileLock::Acquired(file)) => file,
        Ok(FileLock::InUse) => return Ok(None),
        Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(None),
        Err(error) => return Err(failed(error)),
    };
    if file.metadata().map_err(failed)?.len() == 0 {
        // The process was killed before the first record, so no client saw the match.
        std::fs::remove_file(&path).map_err(failed)?;
        return Ok(None);
    }
    if ended_of(&file).map_err(failed)?.is_none() {
        return Ok(None);
    }
    let last = last_number(folder, id).map_err(failed)?;
    let named = |n: u64| folder.join(format!("match-{id}.{n}.{JOURNAL_EXTENSION}"));
    // If a process was killed before it removed the old name, the journal already has a number.
    if leads_to(&named(last), &file).map_err(failed)? {
        std::fs::remove_file(&path).map_err(failed)?;
        return Ok(Some(named(last)));
    }
    for name in (last + 1..).map(named) {
        match rename_to_free(&path, &name) {
            Ok(()) => return Ok(Some(name)),
            Err(error) if error.kind() == io::ErrorKind::AlreadyExists => {}
            Err(error) => return Err(failed(error)),
        }
    }
    unreachable!("some number is free")
}

/// The highest number among this match's journals, compressed or not; 0 if there are none.
fn last_number(folder: &Path, id: MatchId) -> io::Result<u64> {
    let mut last = 0;
    for entry in std::fs::read_dir(folder)? {
        let name = entry?.file_name();
        let number = name.to_str().and_then(|name| {
            let rest = name.strip_prefix(&format!("match-{id}."))?;
            let (number, end) = rest.split_once('.')?;
            end.starts_with(JOURNAL_EXTENSION)
                .then(|| number.parse().ok())?
        });
        last = last.max(number.unwrap_or(0));
    }
    Ok(last)
}

fn unusable(path: &Path, source: io::Error) -> JournalFileError {
    JournalFileError::Unusable {
        path: path.to_owned(),
        source,
    }
}

#[cfg(test)]
mod tests {
    use twinstep_core::testing::doc::Counter;
    use twinstep_protocol::packet::closed::CloseCode;

    use std::fs::File;

    use super::*;
    use twinstep_server::Output;

    fn folder(name: &str) -> PathBuf {
        let name = format!("twinstep-folder-{name}-{}", std::process::id());
        let path = std::env::temp_dir().join(name);
        let _ = std::fs::remove_dir_all(&path);
        std::fs::create_dir_all(&path).unwrap();
        path
    }

    fn blueprint() -> Blueprint<Counter> {
        Blueprint::action(Counter::default(), ())
    }

    /// Writes a journal as left by a process that was killed between the end of its match and the renaming.
    fn over(folder: &Path, id: MatchId) {
        let (mut match_, mut journal) = make_in(folder, id, blueprint()).unwrap();
        match_.keep_journal().unwrap();
        match_.end_journal(CloseCode::MatchOver);
        while let Some(output) = match_.poll() {
            if let Output::Journal(bytes) = output {
                journal.append(bytes).unwrap();
            }
        }
        journal.finish().unwrap();
    }

    #[test]
    fn a_finished_match_is_not_resumed_after_its_process_was_killed() {
        let folder = folder("over");
        over(&folder, MatchId(7));
        assert!(
            !goes_on(&folder, MatchId(7)).unwrap(),
            "no player has a seat there"
        );
        assert!(folder.join("match-7.1.journal").exists());
        over(&folder, MatchId(7));
        // A process was killed after it gave the number and before it removed the old name.
        let second = folder.join("match-7.2.journal");
        std::fs::hard_link(in_play(&folder, MatchId(7)), second).unwrap();
        let (_, journal) = make_in(&folder, MatchId(7), blueprint()).unwrap();
        assert!(journal.is_new());
        assert!(folder.join("match-7.2.journal").exists());
        assert!(!folder.join("match-7.3.journal").exists());
        // The next number follows the highest one, even if lower numbers were removed (finding K3-L9).
        drop(journal);
        std::fs::remove_file(in_play(&folder, MatchId(7))).unwrap();
        std::fs::write(folder.join("match-7.40.journal.gz"), "").unwrap();
        over(&folder, MatchId(7));
        let settled = settle(&folder, MatchId(7)).unwrap();
        assert_eq!(settled, Some(folder.join("match-7.41.journal")));
        std::fs::remove_dir_all(&folder).unwrap();
    }

    #[test]
    fn an_empty_journal_is_removed_unless_another_process_is_about_to_write_it() {
        let folder = folder("empty");
        let path = in_play(&folder, MatchId(7));
        let theirs = File::create(&path).unwrap();
        theirs.lock().unwrap();
        settle(&folder, MatchId(7)).unwrap();
        assert!(path.exists());
        drop(theirs);
        settle(&folder, MatchId(7)).unwrap();
        assert!(!path.exists());
        std::fs::remove_dir_all(&folder).unwrap();
    }

    /// Finding K3-J: two processes that ended and started matches with the same id in one folder renamed and removed
    /// each other's journals.
    #[test]
    fn two_processes_sharing_a_folder_lose_no_journal() {
        let folder = folder("race");
        let begun = std::sync::atomic::AtomicU64::new(0);
        // Locks belong to open files, so threads can stand for processes.
        std::thread::scope(|scope| {
            for _ in 0..4 {
                scope.spawn(|| {
                    for _ in 0..60 {
                        let (mut match_, mut journal) =
                            match make_in(&folder, MatchId(7), blueprint()) {
                                Ok(made) => made,
                                Err(HostError::Journal(JournalFileError::InUse { .. })) => continue,
                                Err(error) => panic!("{error}"),
                            };
                        assert!(journal.is_new(), "each match that was begun is over");
                        begun.fetch_add(1, std::sync::atomic::Ordering::Relaxed);
                        match_.keep_journal().unwrap();
                        match_.end_journal(CloseCode::MatchOver);
                        while let Some(output) = match_.poll() {
                            if let Output::Journal(bytes) = output {
                                journal.append(bytes).unwrap();
                            }
                        }
                        drop(journal);
                        settle(&folder, MatchId(7)).unwrap();
                    }
                });
            }
        });
        settle(&folder, MatchId(7)).unwrap();
        let begun = begun.into_inner();
        assert!(begun > 60, "only {begun} were begun");
        assert_eq!(last_number(&folder, MatchId(7)).unwrap(), begun);
        assert_eq!(std::fs::read_dir(&folder).unwrap().count() as u64, begun);
        std::fs::remove_dir_all(&folder).unwrap();
    }
}
