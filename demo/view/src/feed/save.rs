//! A replay, saved while the match runs: what this screen saw confirmed, as a journal.

use std::io;
use std::path::{Path, PathBuf};
use std::time::Duration;

use twinstep_host::JOURNAL_EXTENSION;

/// Why a replay was not saved.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum SaveError {
    /// There is nothing to save.
    #[error(
        "there is nothing to save: a recording begins when this screen is in a match, and a replay is a file already"
    )]
    Nothing,
    /// The file cannot be written.
    #[error("cannot write {path}: {source}; go to a folder that can be written, and try again")]
    Unwritable {
        /// Which file.
        path: PathBuf,
        /// What the operating system said.
        source: io::Error,
    },
}

/// Writes a journal to a new file in `folder`, named by the time; its path.
pub(super) fn save(
    journal: &[u8],
    folder: &Path,
    now_unix: Duration,
) -> Result<PathBuf, SaveError> {
    let name = format!("powderkeg-{}.{JOURNAL_EXTENSION}", now_unix.as_millis());
    let path = folder.join(name);
    match std::fs::write(&path, journal) {
        Ok(()) => Ok(path),
        Err(source) => Err(SaveError::Unwritable { path, source }),
    }
}
