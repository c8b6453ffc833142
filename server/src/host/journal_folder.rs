//! A folder of journals: which match of it goes on when a server starts there.

use std::fmt;
use std::path::{Path, PathBuf};

use twinstep_core::journal::{JournalError, JournalReader, Record};
use twinstep_core::packet::hello::Hello;
use twinstep_core::replay::{Index, ReplayError};

use super::JournalFileError;
use crate::game::MOVED;

/// How names of journals end.
pub const JOURNAL_EXTENSION: &str = "journal";
/// Bytes that hold any first record.
const START_BYTES: u64 = 1 << 10;

/// What stands in a folder of journals.
#[derive(Debug, Default)]
pub struct Unfinished {
    /// The newest one that this program can go on with.
    pub newest: Option<PathBuf>,
    /// Those newer than it that were left alone, and why.
    pub left_alone: Vec<(PathBuf, LeftAlone)>,
}

/// Why a journal is left alone.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum LeftAlone {
    /// Its server was killed while it began: there is no world in it.
    Empty,
    /// Its match is over.
    Ended(String),
    /// It is of another game, version or rules.
    Other(ReplayError),
}

impl fmt::Display for LeftAlone {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            LeftAlone::Empty => write!(f, "there is no world in it"),
            LeftAlone::Ended(reason) => write!(f, "its match is over: {reason}"),
            LeftAlone::Other(mismatch) => mismatch.fmt(f),
        }
    }
}

/// Looks for the newest journal in `folder` whose match has not ended and which is of `ours`: game, version and
/// rules. Newest is whose match began last.
///
/// # Errors
/// A file that cannot be read, or a name that promises a journal and holds none. A damaged one is no error here,
/// but when it is taken up.
pub fn newest_unfinished(folder: &Path, ours: &Hello) -> Result<Unfinished, JournalFileError> {
    let mut begun = Vec::new();
    for path in journals(folder)? {
        let start = read_start(&path)?;
        begun.push((start, path));
    }
    begun.sort();
    let mut unfinished = Unfinished::default();
    for (_, path) in begun.into_iter().rev() {
        let bytes = std::fs::read(&path).map_err(|source| unreadable(&path, source))?;
        let index = match Index::scan(&bytes) {
            Ok(index) if !index.worlds.is_empty() => index,
            Err(source) if !is_beginning(&bytes, &source) => return Err(damaged(&path, source)),
            _ => {
                unfinished.left_alone.push((path, LeftAlone::Empty));
                continue;
            }
        };
        let why = match (&index.ended, index.check(ours)) {
            (_, Err(mismatch)) => LeftAlone::Other(mismatch),
            (Some(reason), Ok(())) if reason != MOVED => LeftAlone::Ended(reason.clone()),
            _ => {
                unfinished.newest = Some(path);
                break;
            }
        };
        unfinished.left_alone.push((path, why));
    }
    Ok(unfinished)
}

/// The journals of a folder, in no particular order.
///
/// # Errors
/// The folder cannot be read.
pub fn journals(folder: &Path) -> Result<Vec<PathBuf>, JournalFileError> {
    let listed = std::fs::read_dir(folder).and_then(|entries| {
        entries
            .map(|entry| entry.map(|entry| entry.path()))
            .collect::<Result<Vec<_>, _>>()
    });
    let mut paths = listed.map_err(|source| unreadable(folder, source))?;
    paths.retain(|path| path.extension().is_some_and(|end| end == JOURNAL_EXTENSION));
    Ok(paths)
}

/// When a journal's match began, in seconds since 1970.
fn read_start(path: &Path) -> Result<u64, JournalFileError> {
    use std::io::Read;
    let mut bytes = Vec::new();
    std::fs::File::open(path)
        .and_then(|file| file.take(START_BYTES).read_to_end(&mut bytes))
        .map_err(|source| unreadable(path, source))?;
    match JournalReader::new().read(&mut &bytes[..]) {
        Ok(Some(entry)) => match entry.record {
            Record::Start(start) => Ok(start.started_unix_s),
            _ => unreachable!("a reader begins with a start or an error"),
        },
        // Killed while it was made: there is nothing in it to lose.
        Ok(None) => Ok(0),
        Err(source) if is_beginning(&bytes, &source) => Ok(0),
        Err(source) => Err(damaged(path, source)),
    }
}

/// Whether not even the first record was written whole.
fn is_beginning(bytes: &[u8], error: &JournalError) -> bool {
    bytes.is_empty() || *error == JournalError::Torn { offset: 0 }
}

fn unreadable(path: &Path, source: std::io::Error) -> JournalFileError {
    JournalFileError::Unreadable {
        path: path.to_owned(),
        source,
    }
}

fn damaged(path: &Path, source: JournalError) -> JournalFileError {
    JournalFileError::Damaged {
        path: path.to_owned(),
        source,
    }
}
