//! Saved games as files: written whole or not at all, and read only up to the maximum size of a save.
//!
//! ```text
//!  write   NAME.RANDOM.new ─▶ bytes ─▶ disk ─▶ renamed to NAME ─▶ the folder's entry on disk
//! ```

use std::io::{self, Read};
use std::path::{Path, PathBuf};

use tokio::task::spawn_blocking;
use twinstep_core::Simulation;
use twinstep_protocol::save;
use twinstep_server::{
    LoadError, SAVE_BYTES_MAX, SAVE_INFO_BYTES_MAX, SaveFormatError, SaveInfo, SaveWriteError,
};
use twinstep_udp::replace_file;

use crate::handle::{MatchEnded, MatchHandle};
use crate::own_files::{open_to_read, rename_to_free};

/// The reason why a match was not saved to a file, or not loaded from one.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
#[expect(missing_docs, reason = "the messages explain the variants")]
pub enum SaveFileError {
    #[error("cannot save to {path}: {source}", path = path.display())]
    Write { path: PathBuf, source: io::Error },
    #[error("cannot read the saved game {path}: {source}", path = path.display())]
    Read { path: PathBuf, source: io::Error },
    #[error("cannot load the saved game {path}: {source}", path = path.display())]
    Load { path: PathBuf, source: LoadError },
    #[error("cannot list the saved game {path}: {source}", path = path.display())]
    Info {
        path: PathBuf,
        source: SaveFormatError,
    },
    #[error(transparent)]
    Save(#[from] SaveWriteError),
    #[error(transparent)]
    Ended(#[from] MatchEnded),
}

impl<S: Simulation> MatchHandle<S> {
    /// Saves the match to a file, from which [`Server::load`](super::Server::load) starts another match: see
    /// [`Match::save`](twinstep_server::Match::save). The file is written on another thread, and is on disk when this
    /// returns. It replaces a file with that name, whole or not at all. Returns its size in bytes.
    ///
    /// # Errors
    /// [`SaveFileError`] if the match is over, its world is too large, or the file cannot be written.
    pub async fn save(&self, path: impl Into<PathBuf>) -> Result<usize, SaveFileError> {
        let path = path.into();
        let save = self.inspect(|match_| match_.save()).await??;
        let written = spawn_blocking(move || write_save(&path, &save).map(|()| save.len()));
        // This fails only if the runtime has ended.
        written.await.unwrap_or(Err(MatchEnded.into()))
    }
}

/// Writes a save made by [`Match::save`](twinstep_server::Match::save) to a file that only its owner can read, and
/// waits until it is on disk. Replaces a file with that name, whole or not at all.
///
/// # Errors
/// [`SaveFileError::Write`] if the file cannot be written.
pub fn write_save(path: &Path, save: &[u8]) -> Result<(), SaveFileError> {
    replace_file(path, save).map_err(|source| {
        let path = path.to_owned();
        SaveFileError::Write { path, source }
    })
}

// The maximum number of files in a folder of saved games.
const SAVES_MAX: usize = 256;

/// Writes a save as `NAME.save` in a folder. A folder that does not exist is created so that only its owner can read
/// it. Returns the path of the save.
///
/// # Errors
/// [`SaveFileError::Write`] if the file cannot be written, or if it would be new and the folder already has 256 files.
pub fn write_save_in(folder: &Path, name: &str, save: &[u8]) -> Result<PathBuf, SaveFileError> {
    let path = folder.join(format!("{name}.save"));
    let prepare = || {
        make_folder(folder)?;
        match path.exists() || std::fs::read_dir(folder)?.count() < SAVES_MAX {
            true => Ok(()),
            false => Err(io::Error::other(format!(
                "the directory has {SAVES_MAX} files: remove some, or save under the name of one of them"
            ))),
        }
    };
    match prepare() {
        Ok(()) => write_save(&path, save).map(|()| path),
        Err(source) => Err(SaveFileError::Write { path, source }),
    }
}

/// Writes a save requested by a player to `match-ID.save`, and replaces this match's previous save. The save of an
/// earlier match with this number is kept as `match-ID.1.save`, or with the next free number, like its journal.
///
/// # Errors
/// The errors of [`write_save_in`].
pub(crate) fn write_match_save(
    folder: &Path,
    id: u64,
    save: &[u8],
) -> Result<PathBuf, SaveFileError> {
    let name = format!("match-{id}");
    let path = folder.join(format!("{name}.save"));
    if path.exists() && !are_of_one_match(&path, save) {
        let mut names = (1..=SAVES_MAX).map(|n| folder.join(format!("{name}.{n}.save")));
        let kept = names.find_map(|name| match rename_to_free(&path, &name) {
            Err(error) if error.kind() == io::ErrorKind::AlreadyExists => None,
            result => Some(result),
        });
        let full = || {
            Err(io::Error::other(format!(
                "all names up to {name}.{SAVES_MAX}.save are taken: move some of these files away"
            )))
        };
        if let Err(source) = kept.unwrap_or_else(full) {
            return Err(SaveFileError::Write { path, source });
        }
    }
    write_save_in(folder, &name, save)
}

fn are_of_one_match(path: &Path, new: &[u8]) -> bool {
    let began = |save: &[u8]| save::read(save).ok().map(|save| save.about.started_unix_s);
    read_save(path).is_ok_and(|old| began(&old).is_some() && began(&old) == began(new))
}

fn make_folder(folder: &Path) -> io::Result<()> {
    #[allow(unused_mut)]
    let mut builder = std::fs::DirBuilder::new();
    #[cfg(unix)]
    std::os::unix::fs::DirBuilderExt::mode(&mut builder, 0o700);
    builder.recursive(true).create(folder)
}

/// Reads a save for [`Match::load`](twinstep_server::Match::load). Reads at most [`SAVE_BYTES_MAX`] bytes.
///
/// # Errors
/// [`SaveFileError::Read`] if the file cannot be read, is larger, or is not a regular file.
pub fn read_save(path: &Path) -> Result<Vec<u8>, SaveFileError> {
    let read = || {
        let mut save = Vec::new();
        let file = open_to_read(path)?;
        file.take(SAVE_BYTES_MAX as u64 + 1)
            .read_to_end(&mut save)?;
        match save.len() > SAVE_BYTES_MAX {
            true => Err(io::Error::new(
                io::ErrorKind::FileTooLarge,
                format!(
                    "expected a saved game of at most {SAVE_BYTES_MAX} bytes, got a larger file"
                ),
            )),
            false => Ok(save),
        }
    };
    read().map_err(|source| {
        let path = path.to_owned();
        SaveFileError::Read { path, source }
    })
}

/// Reads the part of a save that a list shows: its game, label and owners. Reads at most [`SAVE_INFO_BYTES_MAX`] bytes,
/// and never the world, which may be damaged or of another version.
///
/// # Errors
/// [`SaveFileError::Read`] if the file cannot be read. [`SaveFileError::Info`] if it is not a save.
pub fn read_save_info(path: &Path) -> Result<SaveInfo, SaveFileError> {
    let mut beginning = Vec::new();
    let read = open_to_read(path).and_then(|file| {
        file.take(SAVE_INFO_BYTES_MAX as u64)
            .read_to_end(&mut beginning)
    });
    let path = path.to_owned();
    match read {
        Err(source) => Err(SaveFileError::Read { path, source }),
        Ok(_) => SaveInfo::read(&beginning).map_err(|source| SaveFileError::Info { path, source }),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn folder(name: &str) -> PathBuf {
        let folder = std::env::temp_dir().join(format!("twinstep-{name}-{}", std::process::id()));
        let _ = std::fs::remove_dir_all(&folder);
        std::fs::create_dir(&folder).unwrap();
        folder
    }

    // Finding R3.
    #[test]
    fn an_earlier_matchs_save_is_never_replaced_even_if_all_names_are_taken() {
        let folder = folder("match-save");
        let path = write_match_save(&folder, 3, b"earlier").unwrap();
        write_match_save(&folder, 3, b"later").unwrap();
        assert_eq!(
            read_save(&folder.join("match-3.1.save")).unwrap(),
            b"earlier"
        );
        for n in 2..=SAVES_MAX {
            std::fs::write(folder.join(format!("match-3.{n}.save")), "").unwrap();
        }
        let refused = write_match_save(&folder, 3, b"last").unwrap_err();
        let text = refused.to_string();
        assert!(text.contains("match-3.256.save are taken"), "{text}");
        assert_eq!(read_save(&path).unwrap(), b"later");
        std::fs::remove_dir_all(&folder).unwrap();
    }

    #[test]
    fn a_save_is_written_completely_or_not_at_all() {
        let folder = folder("save-file");
        let path = folder.join("evening.save");
        for save in [&[1; 3_000][..], &[2; 10]] {
            write_save(&path, save).unwrap();
            assert_eq!(read_save(&path).unwrap(), save);
        }
        assert_eq!(std::fs::read_dir(&folder).unwrap().count(), 1);
        // A folder with that name cannot be replaced.
        let taken = folder.join("taken");
        std::fs::create_dir(&taken).unwrap();
        let refused = write_save(&taken, &[3]).unwrap_err().to_string();
        assert!(refused.contains("taken"), "{refused}");
        assert!(write_save(&folder.join("none").join("x"), &[3]).is_err());
        assert_eq!(std::fs::read_dir(&folder).unwrap().count(), 2);
        let large = std::fs::File::create(&path).unwrap();
        large.set_len(SAVE_BYTES_MAX as u64 + 1).unwrap();
        drop(large);
        let refused = read_save(&path).unwrap_err().to_string();
        assert!(refused.contains("at most"), "{refused}");
        std::fs::remove_dir_all(&folder).unwrap();
    }
}
