//! The serials that are safe, beside the key file: what is known of them without a journal, or before one is read.
//!
//! ```text
//! twinstep-serials-1
//! 0000018bcfe56800 0000000000000001 p anna      serial, match, p: plays or w: watches, identity
//! ```
//!
//! Each change is read, made and written under a lock, and the file is replaced whole. So processes that share a key
//! lose nothing of each other, and a crash at any moment leaves the old file or the new one.
//!
//! Invariant: a serial in the file only rises. It is dropped when no ticket that is lower can be alive any more.

use std::collections::BTreeMap;
use std::fmt::Write;
use std::fs::File;
use std::io;
use std::path::{Path, PathBuf};
use std::time::Duration;

use crate::claims::{SerialOf, is_identity};
use crate::secrets::{self, Guard, owner_only, replace_file};
use crate::tickets::{CLOCK_SLACK, TICKET_LIFE_MAX};

/// The largest file that is read: a million identities.
const FILE_MAX_BYTES: u64 = 64 * 1_024 * 1_024;
const FIRST_LINE: &str = "twinstep-serials-1";

/// A file of safe serials.
#[derive(Clone, Debug)]
pub struct SafeSerials {
    path: PathBuf,
    serials: BTreeMap<SerialOf, u64>,
}

impl SafeSerials {
    /// Reads the file, if it is there, and sees that it can be written.
    ///
    /// # Errors
    /// [`SerialsError`]: it cannot be read or written, or is damaged.
    pub fn open(path: impl AsRef<Path>) -> Result<SafeSerials, SerialsError> {
        let path = path.as_ref().to_path_buf();
        let _lock = lock(&path).map_err(|source| SerialsError::Io {
            path: path.clone(),
            source,
        })?;
        let serials = read(&path)?;
        Ok(SafeSerials { path, serials })
    }

    /// Reads the file, if it is there, and neither locks nor makes anything: for whoever makes tickets by it.
    ///
    /// # Errors
    /// [`SerialsError`]: it cannot be read, or is damaged.
    pub fn load(path: impl AsRef<Path>) -> Result<SafeSerials, SerialsError> {
        let path = path.as_ref().to_path_buf();
        let serials = read(&path)?;
        Ok(SafeSerials { path, serials })
    }

    /// The lowest serial that lets an identity in; `None`: all do.
    #[must_use]
    pub fn safe(&self, of: &SerialOf) -> Option<u64> {
        self.serials.get(of).copied()
    }

    /// The safe serials of one match: whether it watches, its identity, the serial.
    pub fn of_match(&self, match_id: u64) -> impl Iterator<Item = (bool, &str, u64)> + '_ {
        self.serials
            .iter()
            .filter(move |(of, _)| of.match_id == match_id)
            .map(|(of, serial)| (of.watches, of.identity.as_str(), *serial))
    }

    /// Raises serials, here and in the file, and learns what other processes raised; waits until the disk has it
    /// (milliseconds: not for an I/O task's thread).
    ///
    /// # Errors
    /// [`SerialsError`]; then the file is as it was. They are raised here, and written with the next ones.
    pub fn raise(
        &mut self,
        raised: impl IntoIterator<Item = (SerialOf, u64)>,
        now_unix: Duration,
    ) -> Result<(), SerialsError> {
        self.merge(raised);
        let failed = |source| SerialsError::Io {
            path: self.path.clone(),
            source,
        };
        let _lock = lock(&self.path).map_err(failed)?;
        let theirs = read(&self.path)?;
        self.merge(theirs.clone());
        self.serials
            .retain(|_, serial| is_of_use(*serial, now_unix));
        if self.serials == theirs {
            return Ok(());
        }
        let mut text = format!("{FIRST_LINE}\n");
        for (of, serial) in &self.serials {
            let kind = if of.watches { 'w' } else { 'p' };
            let (id, identity) = (of.match_id, &of.identity);
            let _ = writeln!(text, "{serial:016x} {id:016x} {kind} {identity}");
        }
        replace_file(&self.path, &text).map_err(|source| SerialsError::Io {
            path: self.path.clone(),
            source,
        })
    }

    fn merge(&mut self, raised: impl IntoIterator<Item = (SerialOf, u64)>) {
        for (of, serial) in raised {
            let known = self.serials.entry(of).or_insert(serial);
            *known = serial.max(*known);
        }
    }
}

/// Whether a ticket with a lower serial may be alive: it was made before, by a clock that may have been wrong.
fn is_of_use(serial: u64, now_unix: Duration) -> bool {
    let made = Duration::from_millis(serial);
    now_unix < made.saturating_add(TICKET_LIFE_MAX + CLOCK_SLACK)
}

/// Held as long as the file is.
fn lock(path: &Path) -> io::Result<File> {
    let mut name = path.as_os_str().to_owned();
    name.push(".lock");
    let file = owner_only()
        .create(true)
        .truncate(false)
        .write(true)
        .open(name)?;
    match file.lock() {
        // A file system without locks: the operator sees to it.
        Err(error) if error.kind() != io::ErrorKind::Unsupported => Err(error),
        _ => Ok(file),
    }
}

fn read(path: &Path) -> Result<BTreeMap<SerialOf, u64>, SerialsError> {
    let failed = |source| SerialsError::Io {
        path: path.to_path_buf(),
        source,
    };
    let text = match secrets::read(path, FILE_MAX_BYTES + 1, Guard::Itself) {
        Ok((text, _)) if text.len() as u64 > FILE_MAX_BYTES => {
            return Err(failed(io::ErrorKind::FileTooLarge.into()));
        }
        Ok((text, _)) => text,
        Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(BTreeMap::new()),
        Err(source) => return Err(failed(source)),
    };
    let mut lines = text.split_inclusive('\n').enumerate();
    let damaged = |at: usize| SerialsError::Damaged {
        path: path.to_path_buf(),
        line: at + 1,
    };
    match lines.next() {
        Some((_, line)) if line.strip_suffix('\n') == Some(FIRST_LINE) => {}
        _ => return Err(damaged(0)),
    }
    lines
        .map(|(at, line)| parse(line).ok_or_else(|| damaged(at)))
        .collect()
}

fn parse(line: &str) -> Option<(SerialOf, u64)> {
    let mut parts = line.strip_suffix('\n')?.splitn(4, ' ');
    let mut number = || {
        let digits = parts.next().filter(|digits| digits.len() == 16)?;
        u64::from_str_radix(digits, 16).ok()
    };
    let (serial, match_id) = (number()?, number()?);
    let watches = match parts.next()? {
        "p" => false,
        "w" => true,
        _ => return None,
    };
    let identity = parts.next().filter(|text| is_identity(text))?.to_owned();
    let of = SerialOf {
        match_id,
        watches,
        identity,
    };
    Some((of, serial))
}

/// Why safe serials were not read or written.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum SerialsError {
    /// The operating system refused.
    #[error(
        "cannot use {path}, which says which tickets are out of date: {source}; give it, and the folder that it is \
         in, to the user that runs this program"
    )]
    Io {
        /// Which file.
        path: PathBuf,
        /// What the operating system said.
        source: io::Error,
    },
    /// It is not what this program writes.
    #[error(
        "line {line} of {path} is no safe serial (16 hex digits, 16 hex digits, p or w, a name); restore the file, or \
         make a new key and move the file away, so that old tickets cannot be used again"
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

    const NOW: Duration = Duration::from_secs(1_700_000_000);
    const NOW_MS: u64 = 1_700_000_000_000;

    fn of(identity: &str) -> SerialOf {
        SerialOf {
            match_id: 1,
            watches: false,
            identity: identity.to_owned(),
        }
    }

    fn said(path: &Path) -> Vec<(String, u64)> {
        let file = SafeSerials::open(path).unwrap();
        file.of_match(1)
            .map(|(_, identity, serial)| (identity.to_owned(), serial))
            .collect()
    }

    #[test]
    fn safe_serials_are_there_after_a_restart_and_only_rise() {
        let folder = Folder::new();
        let path = folder.file("serials");
        let mut file = SafeSerials::open(&path).unwrap();
        let zoe = SerialOf {
            match_id: 2,
            watches: true,
            identity: "Zoë of the east".into(),
        };
        file.raise([(of("anna"), NOW_MS), (zoe.clone(), NOW_MS)], NOW)
            .unwrap();
        file.raise([(of("anna"), NOW_MS - 5)], NOW).unwrap();
        assert_eq!(said(&path), [("anna".to_owned(), NOW_MS)]);
        let file = SafeSerials::open(&path).unwrap();
        let watchers: Vec<_> = file.of_match(2).collect();
        assert_eq!(watchers, [(true, "Zoë of the east", NOW_MS)]);
    }

    /// Finding H3: they overwrote each other's entries.
    #[test]
    fn two_processes_with_one_file_lose_nothing_of_each_other() {
        let folder = Folder::new();
        let path = folder.file("serials");
        let mut one = SafeSerials::open(&path).unwrap();
        let mut two = SafeSerials::open(&path).unwrap();
        for n in 0..50 {
            let (mine, theirs) = (format!("a{n}"), format!("b{n}"));
            one.raise([(of(&mine), NOW_MS)], NOW).unwrap();
            two.raise([(of(&theirs), NOW_MS)], NOW).unwrap();
        }
        assert_eq!(said(&path).len(), 100);
        assert_eq!(two.of_match(1).count(), 100, "and they learn of each other");
    }

    #[test]
    fn threads_that_write_at_once_lose_nothing_either() {
        let folder = Folder::new();
        let path = folder.file("serials");
        std::thread::scope(|scope| {
            for who in 0..4 {
                let path = &path;
                scope.spawn(move || {
                    let mut file = SafeSerials::open(path).unwrap();
                    for n in 0..10 {
                        file.raise([(of(&format!("{who}-{n}")), NOW_MS)], NOW)
                            .unwrap();
                    }
                });
            }
        });
        assert_eq!(said(&path).len(), 40);
    }

    /// Finding H3: it was pruned only at a start.
    #[test]
    fn what_no_ticket_can_be_lower_than_is_dropped_while_it_is_written() {
        let folder = Folder::new();
        let path = folder.file("serials");
        let mut file = SafeSerials::open(&path).unwrap();
        file.raise([(of("old"), NOW_MS), (of("revoked"), u64::MAX)], NOW)
            .unwrap();
        let later = NOW + TICKET_LIFE_MAX + CLOCK_SLACK;
        file.raise([(of("new"), NOW_MS + 1)], later - Duration::from_secs(1))
            .unwrap();
        assert_eq!(said(&path).len(), 3);
        file.raise([], later).unwrap();
        let left: Vec<_> = said(&path).into_iter().map(|(who, _)| who).collect();
        assert_eq!(left, ["new", "revoked"]);
    }

    #[test]
    fn damage_is_an_error_that_names_the_line() {
        let folder = Folder::new();
        let path = folder.file("serials");
        let sound = "0000018bcfe56800 0000000000000001 p anna";
        for (text, at) in [
            ("", 1),
            ("hello\n", 1),
            (&*format!("{FIRST_LINE}\n{sound}\nhello\n"), 3),
            (&*format!("{FIRST_LINE}\n{sound}"), 2),
            (&*format!("{FIRST_LINE}\n{}\n", &sound[1..]), 2),
            (&*format!("{FIRST_LINE}\n{}\n", sound.replace('p', "q")), 2),
        ] {
            std::fs::write(&path, text).unwrap();
            let error = SafeSerials::open(&path).unwrap_err();
            assert!(
                matches!(error, SerialsError::Damaged { line, .. } if line == at),
                "{text:?}: {error}"
            );
        }
    }
}
