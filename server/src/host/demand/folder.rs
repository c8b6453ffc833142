//! The journals of matches that are made on demand: one name while a match can go on, numbers when it is over.
//!
//! ```text
//!  match-7.journal      plays, or was cut off: a ticket for match 7 takes it up again
//!  match-7.1.journal    over for good; the next one that ends gets the next free number
//! ```
//!
//! The name in play ends like all journals, with no mark of its own: what crashed must be found by the id alone, checked and
//! repaired by the same commands, and taken up by a server of one match too. It is the number that says "done".
//!
//! Invariant: what a match has played is never overwritten nor removed here, and a match that can go on is never passed over.

use std::fs::{File, OpenOptions, TryLockError};
use std::io;
use std::path::{Path, PathBuf};

use twinstep_core::Simulation;

use crate::game::Match;
use crate::host::blueprint::Blueprint;
use crate::host::config::HostError;
use crate::host::journal_file::{Journal, JournalFileError, sync_folder};
use crate::host::journal_folder::{JOURNAL_EXTENSION, ended};
use crate::host::journal_read::COMPRESSED_EXTENSION;

/// The journal of a match that can go on.
pub(super) fn in_play(folder: &Path, id: u64) -> PathBuf {
    folder.join(format!("match-{id}.{JOURNAL_EXTENSION}"))
}

/// Whether a match can go on there.
pub(super) fn goes_on(folder: &Path, id: u64) -> Result<bool, JournalFileError> {
    settle(folder, id)?;
    Ok(in_play(folder, id).exists())
}

/// A match, new or taken up again, and its journal in a folder.
pub(super) fn make_in<S: Simulation>(
    folder: &Path,
    id: u64,
    blueprint: Blueprint<S>,
) -> Result<(Match<S>, Journal), HostError> {
    settle(folder, id)?;
    let path = in_play(folder, id);
    if path.exists() {
        return Ok(blueprint.resume(path)?);
    }
    let game = blueprint.make()?;
    Ok((game, Journal::create(path)?))
}

/// Gives the journal of a match that is over a number; where it is then. One that can go on keeps its name.
pub(super) fn settle(folder: &Path, id: u64) -> Result<Option<PathBuf>, JournalFileError> {
    let path = in_play(folder, id);
    let failed = |source| JournalFileError::Unwritable {
        path: path.clone(),
        source,
    };
    let length = match std::fs::metadata(&path) {
        Ok(data) => data.len(),
        Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(None),
        Err(error) => return Err(failed(error)),
    };
    if length == 0 {
        // Its process was killed before it wrote anything: nobody saw anything of its match.
        if !is_locked(&path).map_err(failed)? {
            std::fs::remove_file(&path).map_err(failed)?;
        }
        return Ok(None);
    }
    if ended(&path).map_err(failed)?.is_none() {
        return Ok(None);
    }
    let numbered = |n: u64| folder.join(format!("match-{id}.{n}.{JOURNAL_EXTENSION}"));
    let is_free = |name: &PathBuf| !name.exists() && !compressed(name).exists();
    let free = (1..).map(numbered).find(is_free);
    let name = free.expect("some number is free");
    let renamed = std::fs::rename(&path, &name).and_then(|()| sync_folder(&name));
    renamed.map_err(failed)?;
    Ok(Some(name))
}

/// The name of a journal when it is compressed.
fn compressed(path: &Path) -> PathBuf {
    let mut name = path.as_os_str().to_owned();
    name.push(".");
    name.push(COMPRESSED_EXTENSION);
    name.into()
}

/// Whether another process writes a file.
fn is_locked(path: &Path) -> io::Result<bool> {
    let file: File = OpenOptions::new().write(true).open(path)?;
    Ok(matches!(file.try_lock(), Err(TryLockError::WouldBlock)))
}

#[cfg(test)]
mod tests {
    use twinstep_core::packet::hello::CloseCode;
    use twinstep_core::testing::doc::Counter;

    use super::*;
    use crate::outbox::Output;

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

    /// A process that ended its match and was killed before the journal had its number.
    fn over(folder: &Path, id: u64) {
        let (mut game, mut journal) = make_in(folder, id, blueprint()).unwrap();
        game.keep_journal().unwrap();
        game.end_journal(CloseCode::MatchOver);
        while let Some(output) = game.poll() {
            if let Output::Journal(bytes) = output {
                journal.append(bytes).unwrap();
            }
        }
        journal.finish().unwrap();
    }

    #[test]
    fn a_match_that_was_over_when_its_process_was_killed_is_not_gone_on_with() {
        let folder = folder("over");
        over(&folder, 7);
        assert!(!goes_on(&folder, 7).unwrap(), "nobody has a seat there");
        assert!(folder.join("match-7.1.journal").exists());
        over(&folder, 7);
        let (_, journal) = make_in(&folder, 7, blueprint()).unwrap();
        assert!(journal.is_new());
        assert!(folder.join("match-7.2.journal").exists());
        std::fs::remove_dir_all(&folder).unwrap();
    }

    #[test]
    fn an_empty_journal_is_removed_unless_another_process_is_about_to_write_it() {
        let folder = folder("empty");
        let path = in_play(&folder, 7);
        let theirs = File::create(&path).unwrap();
        theirs.lock().unwrap();
        settle(&folder, 7).unwrap();
        assert!(path.exists());
        drop(theirs);
        settle(&folder, 7).unwrap();
        assert!(!path.exists());
        std::fs::remove_dir_all(&folder).unwrap();
    }
}
