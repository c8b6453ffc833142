//! A folder of journals: finds the match that a starting server continues.
//!
//! Invariant: a match that a server has played is never ignored silently. A journal that cannot be resumed either stops
//! the search with an error that contains a remedy, or is listed in [`Unfinished::left_alone`].

use std::fmt;
use std::fs::File;
use std::io::{self, Read, Seek, SeekFrom};
use std::path::{Path, PathBuf};
use std::time::{Duration, SystemTime};

use twinstep_protocol::journal::{
    JournalError, JournalReader, Record, TAIL_BYTES_MAX, WrittenBy, guess_end_reason,
    looks_like_journal,
};
use twinstep_protocol::packet::hello::Hello;
use twinstep_protocol::replay::{Index, ReplayError};

use super::journal_file::JournalFileError;
use super::journal_read::StoredJournal;
use super::own_files::open_to_read;
use twinstep_server::internal::{is_over, is_resumable};

/// The file extension of journals.
pub const JOURNAL_EXTENSION: &str = twinstep_protocol::journal::EXTENSION;
/// The maximum size of a first record, in bytes.
const START_BYTES: u64 = 1 << 10;

/// The result of a search in a journal folder.
#[derive(Debug, Default)]
pub struct Unfinished {
    /// The newest journal that this program can continue.
    pub newest: Option<PathBuf>,
    /// The ignored journals, each with its reason: those newer than that one, newest first; then those without a start
    /// time.
    pub left_alone: Vec<(PathBuf, LeftAlone)>,
}

/// The reason why a journal is ignored.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum LeftAlone {
    /// The journal has no record.
    Empty,
    /// The journal's match is over.
    Ended(String),
    /// The recording of a client, which can only be viewed.
    Recording,
    /// The file is not a journal of this format.
    Foreign(JournalError),
    /// The journal belongs to another game, version or rules.
    Other(ReplayError),
    /// The path is a link, a pipe, a device or a folder.
    NotRegularFile,
}

impl LeftAlone {
    /// Returns `true` if the file may hold a match that an operator expects to continue.
    #[must_use]
    pub fn is_strange(&self) -> bool {
        !matches!(self, LeftAlone::Ended(_) | LeftAlone::Recording)
    }
}

impl fmt::Display for LeftAlone {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            LeftAlone::Empty => write!(f, "it is empty"),
            LeftAlone::Ended(reason) => write!(f, "its match is over: {}", reason.escape_debug()),
            LeftAlone::Recording => write!(f, "a client recorded it: it can only be watched"),
            LeftAlone::Foreign(error) => error.fmt(f),
            LeftAlone::Other(mismatch) => mismatch.fmt(f),
            LeftAlone::NotRegularFile => write!(f, "it is a link, a pipe, a device or a directory"),
        }
    }
}

/// Finds the newest journal in `folder` whose match has not ended, and whose game, version and rules are `ours`. The
/// newest journal belongs to the match that started last. Reads the start of each journal. Then, from the newest to the
/// one found, reads the newest and those that have not ended completely, and the end of the others.
///
/// # Errors
/// If a file cannot be read, or if a journal has a damaged first record or ends before its first world, because a match
/// may have been played in it. Later damage is reported when the journal is resumed.
pub fn newest_unfinished(folder: &Path, ours: &Hello) -> Result<Unfinished, JournalFileError> {
    let mut unfinished = Unfinished::default();
    let (mut begun, mut undated) = (Vec::new(), Vec::new());
    for path in journals(folder)? {
        let data = path.symlink_metadata();
        if !data.map_err(|source| unreadable(&path, source))?.is_file() {
            undated.push((path, LeftAlone::NotRegularFile));
            continue;
        }
        let beginning = look(&path).map_err(|source| unreadable(&path, source))?;
        match beginning {
            Beginning::At(start) => begun.push((start, path)),
            Beginning::None(why) => undated.push((path, why)),
        }
    }
    begun.sort();
    let newest = begun.len().saturating_sub(1);
    for (n, (_, path)) in begun.into_iter().enumerate().rev() {
        // The newest journal is read whole. Of older journals the last record is enough, unless it shows that the match
        // continues.
        let reason = match n < newest {
            true => ended(&path).map_err(|source| unreadable(&path, source))?,
            false => None,
        };
        let why = match reason {
            Some(reason) => Some(LeftAlone::Ended(reason)),
            None => left_alone(&path, ours)?,
        };
        match why {
            Some(why) => unfinished.left_alone.push((path, why)),
            None => {
                unfinished.newest = Some(path);
                break;
            }
        }
    }
    unfinished.left_alone.append(&mut undated);
    Ok(unfinished)
}

/// Returns the reason why a journal is ignored, or `None` if its match continues.
fn left_alone(path: &Path, ours: &Hello) -> Result<Option<LeftAlone>, JournalFileError> {
    let stored = StoredJournal::open(path);
    let mut stored = stored.map_err(|source| unreadable(path, source))?;
    let no_world = || JournalFileError::NoWorld {
        path: path.to_owned(),
    };
    let index = match Index::scan(&mut stored) {
        Ok(index) => index,
        Err(JournalError::Unreadable { why, .. }) => {
            let source = stored.failure().unwrap_or_else(|| io::Error::other(why));
            return Err(unreadable(path, source));
        }
        Err(JournalError::Torn { .. }) => return Err(no_world()),
        Err(source) => return Err(damaged(path, source)),
    };
    Ok(match (is_over(&index), index.check(ours)) {
        (_, Err(mismatch)) => Some(LeftAlone::Other(mismatch)),
        _ if index.about.by != WrittenBy::Server => Some(LeftAlone::Recording),
        (Some(reason), Ok(())) => Some(LeftAlone::Ended(reason.to_owned())),
        _ if index.worlds.is_empty() => return Err(no_world()),
        _ => None,
    })
}

/// The journals of a folder, in no particular order.
///
/// # Errors
/// If the folder cannot be read.
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

enum Beginning {
    /// A journal, perhaps incomplete, of a match that started at this Unix time, in seconds.
    At(u64),
    None(LeftAlone),
}

fn look(path: &Path) -> io::Result<Beginning> {
    let mut bytes = Vec::new();
    let file = open_to_read(path)?;
    let changed = file.metadata()?.modified()?;
    file.take(START_BYTES).read_to_end(&mut bytes)?;
    Ok(match JournalReader::new().read(&mut &bytes[..]) {
        Ok(Some(entry)) => match entry.record {
            Record::Start(start) => Beginning::At(start.started_unix_s),
            _ => unreachable!("a reader begins with a start or an error"),
        },
        Ok(None) => Beginning::None(LeftAlone::Empty),
        Err(error @ JournalError::FormatVersion { .. }) => {
            Beginning::None(LeftAlone::Foreign(error))
        }
        Err(JournalError::NotAJournal) if !looks_like_journal(&bytes) => {
            Beginning::None(LeftAlone::Foreign(JournalError::NotAJournal))
        }
        // There is no start time; the time of the last write is used instead.
        Err(_) => Beginning::At(seconds(changed)),
    })
}

fn seconds(time: SystemTime) -> u64 {
    let since = time.duration_since(SystemTime::UNIX_EPOCH);
    since.unwrap_or(Duration::ZERO).as_secs()
}

/// Returns the reason why a journal's match has ended, from the journal's last bytes, or `None` if it can be resumed.
pub fn ended(path: &Path) -> io::Result<Option<String>> {
    ended_of(&open_to_read(path)?)
}

pub(super) fn ended_of(mut file: &File) -> io::Result<Option<String>> {
    let length = file.metadata()?.len();
    file.seek(SeekFrom::Start(
        length.saturating_sub(TAIL_BYTES_MAX as u64),
    ))?;
    let mut tail = Vec::new();
    file.take(TAIL_BYTES_MAX as u64).read_to_end(&mut tail)?;
    let reason = guess_end_reason(&tail).filter(|reason| !is_resumable(reason));
    Ok(reason.map(ToOwned::to_owned))
}

fn unreadable(path: &Path, source: io::Error) -> JournalFileError {
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
