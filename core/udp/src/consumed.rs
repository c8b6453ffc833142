//! Ticket ids that were used, for hosts without a journal: a text file beside the key file.
//!
//! One line a ticket, appended and synced *before* its session may speak:
//!
//! ```text
//! 00f3a1b2c3d4e5f6 1700000600        id, expiry in unix seconds
//! ```
//!
//! Invariant: what [`append`](ConsumedTickets::append) returned `Ok` for is there after a crash or power loss. A
//! torn last line was never acknowledged and is dropped; any other damage is an error, never a guess.

use std::collections::BTreeMap;
use std::fs::File;
use std::io::{self, Read, Seek, SeekFrom, Write};
use std::path::{Path, PathBuf};
use std::time::Duration;

use crate::secrets::{owner_only, write_over};
use crate::tickets::CLOCK_SLACK_S;

/// The largest file that is read: two million tickets.
const FILE_MAX_BYTES: u64 = 64 * 1_024 * 1_024;

/// An open file of used ticket ids.
#[derive(Debug)]
pub struct ConsumedTickets {
    path: PathBuf,
    file: File,
    length: u64,
    ids: BTreeMap<u64, u64>,
}

impl ConsumedTickets {
    /// Whether [`open`](ConsumedTickets::open) will do, while another process still writes the file: nothing in it is
    /// touched.
    ///
    /// # Errors
    /// As [`open`](ConsumedTickets::open).
    pub fn check(path: impl AsRef<Path>) -> Result<(), ConsumedError> {
        let path = path.as_ref();
        let failed = |source| ConsumedError::Io {
            path: path.to_path_buf(),
            source,
        };
        let mut file = open_or_make(path).map_err(failed)?;
        let text = read_whole_lines(&mut file).map_err(failed)?;
        match text.lines().position(|line| parse(line).is_none()) {
            None => Ok(()),
            Some(index) => Err(ConsumedError::Damaged {
                path: path.to_path_buf(),
                line: index + 1,
            }),
        }
    }

    /// Opens the file, or makes it; drops tickets that expired well before `now_unix`: nobody can use them.
    ///
    /// # Errors
    /// [`ConsumedError`]: the file cannot be opened, read or written, or is damaged.
    pub fn open(
        path: impl AsRef<Path>,
        now_unix: Duration,
    ) -> Result<ConsumedTickets, ConsumedError> {
        let path = path.as_ref().to_path_buf();
        let failed = |source| ConsumedError::Io {
            path: path.clone(),
            source,
        };
        let mut file = open_or_make(&path).map_err(failed)?;
        let text = read_whole_lines(&mut file).map_err(failed)?;
        let mut ids = BTreeMap::new();
        let mut expired = 0;
        for (index, line) in text.lines().enumerate() {
            let (id, expires) = parse(line).ok_or_else(|| ConsumedError::Damaged {
                path: path.clone(),
                line: index + 1,
            })?;
            if expires.saturating_add(CLOCK_SLACK_S) > now_unix.as_secs() {
                ids.insert(id, expires);
            } else {
                expired += 1;
            }
        }
        let mut length = text.len() as u64;
        if expired > 0 {
            let kept: String = ids
                .iter()
                .map(|(&id, &expires)| line(id, expires))
                .collect();
            write_over(&path, &kept).map_err(failed)?;
            file = open_or_make(&path).map_err(failed)?;
            length = kept.len() as u64;
        }
        // Drops the torn tail, so that the next line begins where a line begins.
        file.set_len(length).map_err(failed)?;
        file.sync_all().map_err(failed)?;
        sync_folder(&path).map_err(failed)?;
        Ok(ConsumedTickets {
            path,
            file,
            length,
            ids,
        })
    }

    /// The ids of tickets that were used and could still be tried.
    pub fn ids(&self) -> impl Iterator<Item = u64> + '_ {
        self.ids.keys().copied()
    }

    /// Writes a used ticket and waits until the disk has it (milliseconds: not for an I/O task's thread).
    ///
    /// # Errors
    /// [`ConsumedError::Io`]; then the ticket must not be admitted.
    pub fn append(&mut self, ticket_id: u64, expires_unix_s: u64) -> Result<(), ConsumedError> {
        let line = line(ticket_id, expires_unix_s);
        let written = self
            .file
            .seek(SeekFrom::Start(self.length))
            .and_then(|_| self.file.write_all(line.as_bytes()))
            .and_then(|()| self.file.sync_data());
        if let Err(source) = written {
            // Whatever part was written goes, or the next line would follow it. If even this fails, the
            // next append overwrites it from the same place.
            let _ = self.file.set_len(self.length);
            return Err(ConsumedError::Io {
                path: self.path.clone(),
                source,
            });
        }
        self.length += line.len() as u64;
        self.ids.insert(ticket_id, expires_unix_s);
        Ok(())
    }
}

fn open_or_make(path: &Path) -> io::Result<File> {
    owner_only()
        .create(true)
        .truncate(false)
        .read(true)
        .write(true)
        .open(path)
}

/// The text up to the last end of a line.
fn read_whole_lines(file: &mut File) -> io::Result<String> {
    let mut text = Vec::new();
    file.take(FILE_MAX_BYTES + 1).read_to_end(&mut text)?;
    if text.len() as u64 > FILE_MAX_BYTES {
        return Err(io::ErrorKind::FileTooLarge.into());
    }
    let whole = text
        .iter()
        .rposition(|&b| b == b'\n')
        .map_or(0, |at| at + 1);
    text.truncate(whole);
    // Lossy, because a line that is no text is then found to be no ticket either.
    Ok(String::from_utf8_lossy(&text).into_owned())
}

fn line(ticket_id: u64, expires_unix_s: u64) -> String {
    format!("{ticket_id:016x} {expires_unix_s}\n")
}

fn parse(line: &str) -> Option<(u64, u64)> {
    let (id, expires) = line.split_once(' ')?;
    let id = (id.len() == 16).then(|| u64::from_str_radix(id, 16).ok())??;
    Some((id, expires.parse().ok()?))
}

/// A new file's name must be on the disk too.
#[cfg(unix)]
fn sync_folder(path: &Path) -> io::Result<()> {
    let folder = path.parent().filter(|p| !p.as_os_str().is_empty());
    File::open(folder.unwrap_or(Path::new(".")))?.sync_all()
}

#[cfg(not(unix))]
fn sync_folder(_: &Path) -> io::Result<()> {
    Ok(())
}

/// Why used ticket ids were not read or written.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum ConsumedError {
    /// The operating system refused.
    #[error(
        "cannot use {path}, the list of used tickets: {source}; no ticket may be admitted without it"
    )]
    Io {
        /// Which file.
        path: PathBuf,
        /// What the operating system said.
        source: io::Error,
    },
    /// A line other than the last is not what this program writes.
    #[error(
        "line {line} of {path} is no used ticket (16 hex digits, a space, a time); restore the file, or make a new key \
         and move the file away, so that old tickets cannot be used again"
    )]
    Damaged {
        /// Which file.
        path: PathBuf,
        /// Which line, from 1.
        line: usize,
    },
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::secrets::tests::Folder;

    const NOW: Duration = Duration::from_secs(1_000);

    fn ids(path: &Path) -> Vec<u64> {
        let tickets = ConsumedTickets::open(path, NOW).expect("a whole file");
        tickets.ids().collect()
    }

    #[test]
    fn used_tickets_are_there_after_a_restart_until_they_expire() {
        let folder = Folder::new();
        let path = folder.file("used");
        let mut tickets = ConsumedTickets::open(&path, NOW).unwrap();
        tickets.append(3, 2_000).unwrap();
        tickets.append(u64::MAX, 1_001).unwrap();
        drop(tickets);
        assert_eq!(ids(&path), [3, u64::MAX]);
        let later =
            ConsumedTickets::open(&path, Duration::from_secs(1_001 + CLOCK_SLACK_S)).unwrap();
        assert_eq!(later.ids().collect::<Vec<_>>(), [3]);
    }

    #[test]
    fn a_tail_torn_at_any_byte_is_dropped_and_the_next_line_is_whole() {
        let folder = Folder::new();
        let path = folder.file("used");
        for cut in 1..22 {
            std::fs::remove_file(&path).ok();
            let mut tickets = ConsumedTickets::open(&path, NOW).unwrap();
            tickets.append(1, 2_000).unwrap();
            tickets.append(2, 2_000).unwrap();
            let whole = tickets.length;
            drop(tickets);
            let file = File::options().write(true).open(&path).unwrap();
            file.set_len(whole - cut).unwrap();

            let mut tickets = ConsumedTickets::open(&path, NOW).unwrap();
            assert_eq!(tickets.ids().collect::<Vec<_>>(), [1], "cut {cut}");
            tickets.append(5, 2_000).unwrap();
            drop(tickets);
            assert_eq!(ids(&path), [1, 5], "cut {cut}");
        }
    }

    #[test]
    fn damage_before_the_last_line_is_an_error_that_names_the_line() {
        let folder = Folder::new();
        let path = folder.file("used");
        std::fs::write(
            &path,
            "0000000000000001 2000\nhello\n0000000000000002 2000\n",
        )
        .unwrap();
        assert!(matches!(
            ConsumedTickets::open(&path, NOW),
            Err(ConsumedError::Damaged { line: 2, .. })
        ));
    }
}
