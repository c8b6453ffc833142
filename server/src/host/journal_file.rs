//! A match's journal as a file: begun once, appended to, never overwritten.

use std::fs::{File, OpenOptions};
use std::io::{self, Write};
use std::path::{Path, PathBuf};

use twinstep_core::journal::{JournalError, Record, records};

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
}

/// An open journal.
#[derive(Debug)]
pub(super) struct JournalFile {
    path: PathBuf,
    file: File,
}

impl JournalFile {
    /// Makes the file, which must not be there.
    pub(super) fn create(path: PathBuf) -> Result<JournalFile, JournalFileError> {
        match OpenOptions::new().append(true).create_new(true).open(&path) {
            Ok(file) => Ok(JournalFile { path, file }),
            Err(error) if error.kind() == io::ErrorKind::AlreadyExists => {
                Err(JournalFileError::Exists { path })
            }
            Err(source) => Err(JournalFileError::Unwritable { path, source }),
        }
    }

    /// Hands bytes to the operating system: they survive this process, and a loss of power within a while.
    pub(super) fn append(&mut self, bytes: &[u8]) -> Result<(), JournalFileError> {
        self.file
            .write_all(bytes)
            .map_err(|source| self.unwritable(source))
    }

    /// Waits until the disk has all of it.
    pub(super) fn finish(self) -> Result<(), JournalFileError> {
        self.file
            .sync_all()
            .map_err(|source| self.unwritable(source))
    }

    fn unwritable(&self, source: io::Error) -> JournalFileError {
        JournalFileError::Unwritable {
            path: self.path.clone(),
            source,
        }
    }
}

/// The ids of the tickets that a match's journal says were used. Reads the whole file into memory.
///
/// A torn end is what a crash leaves; whatever stood there was never acted upon.
///
/// # Errors
/// A file that cannot be read, is damaged, or is no journal.
pub fn used_tickets(path: impl AsRef<Path>) -> Result<Vec<u64>, JournalFileError> {
    let path = path.as_ref();
    let bytes = std::fs::read(path).map_err(|source| JournalFileError::Unreadable {
        path: path.to_owned(),
        source,
    })?;
    let mut used = Vec::new();
    for entry in records(&bytes) {
        match entry {
            Ok(entry) => {
                if let Record::Ticket { id, .. } = entry.record {
                    used.push(id);
                }
            }
            Err(JournalError::Torn { .. }) => break,
            Err(source) => {
                return Err(JournalFileError::Damaged {
                    path: path.to_owned(),
                    source,
                });
            }
        }
    }
    Ok(used)
}
