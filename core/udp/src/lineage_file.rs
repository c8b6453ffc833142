//! The outdated tickets, in a file next to the key file, for programs without a journal, or before one is read.
//!
//! ```text
//! twinstep-lineages-1 8f3c19d2a45be601                     random: a new id after each rewrite
//! b 0000000000000001 p 5d0b…77 00000003 000000006553f100 anna     below: match, p: plays or w: watches, lineage,
//!                                                                 generation, until, identity
//! m 0000000000000001 w 0000018bcfe56800 anna                      made before: match, p or w, milliseconds, identity
//! ```
//!
//! A ruling is a line, appended under a lock; when half of the lines may be obsolete, the file is rewritten and
//! replaced as a whole. So processes that share a key keep and read each other's rulings. A crash at any moment costs
//! at most the rulings being appended. The next writer cuts off an incomplete line.
//!
//! Invariant: the file has at most about [`COMPACT_FROM`] lines or twice as many as useful rulings, whichever is more.
//! This module does not keep them in memory; its caller does.

use std::fmt::Write as _;
use std::fs::{self, File};
use std::io::{self, BufRead, BufReader, BufWriter, Read, Seek, SeekFrom, Write};
use std::path::{Path, PathBuf};
use std::thread;
use std::time::Duration;

use twinstep_protocol::identity::{Identity, MatchId, Role};
use twinstep_protocol::lineage::{LineageTable, Ruling};

use crate::claims::{Holder, IDENTITY_MAX_BYTES, is_identity};
use crate::secrets::{self, owner_only, random_u64};

/// The maximum number of lineages kept, which take about 80 MB. Beyond it, the lineages whose tickets expire first are
/// dropped.
pub const LINEAGES_MAX: usize = 500_000;

const FIRST_WORD: &str = "twinstep-lineages-1";
/// The longest line, including its line break, in bytes.
const LINE_MAX_BYTES: u64 = 80 + IDENTITY_MAX_BYTES as u64;
/// A file with fewer lines is not rewritten.
const COMPACT_FROM: u64 = 1_024;
/// The pause between attempts to take the lock, of which there are at most [`LOCK_STEPS_MAX`]. Another process holds it
/// only for milliseconds.
const LOCK_STEP: Duration = Duration::from_millis(20);
const LOCK_STEPS_MAX: u32 = 250;

/// A file of rulings.
#[derive(Debug)]
pub struct LineageFile {
    path: PathBuf,
    /// The id of the file that was read; 0 if none was.
    id: u64,
    bytes: u64,
    /// Not counting the first.
    lines: u64,
    /// The file is rewritten when it has this many lines.
    compact_at: u64,
}

impl LineageFile {
    /// Reads the file, if it exists, and checks that it can be written. Waits for the file's lock, so do not call this
    /// on an async runtime's thread.
    ///
    /// # Errors
    /// If the file cannot be used, is locked, or is damaged: see [`LineageFileError`].
    pub fn open(
        path: impl AsRef<Path>,
    ) -> Result<(LineageFile, LineageTable<Holder>), LineageFileError> {
        let mut file = LineageFile {
            path: path.as_ref().to_path_buf(),
            id: 0,
            bytes: 0,
            lines: 0,
            compact_at: COMPACT_FROM,
        };
        let mut table = LineageTable::new(LINEAGES_MAX);
        file.append(&[], 0, |holder, ruling| {
            table.apply(&holder, &ruling);
            table.tidy(0);
        })?;
        Ok((file, table))
    }

    /// Reads the file, if it exists. Does not lock or create the file, so programs can use it to issue tickets while a
    /// server runs.
    ///
    /// # Errors
    /// If the file cannot be used or is damaged: see [`LineageFileError`].
    pub fn load(path: impl AsRef<Path>) -> Result<LineageTable<Holder>, LineageFileError> {
        let path = path.as_ref();
        let mut table = LineageTable::new(LINEAGES_MAX);
        match look_at(path).and_then(|()| File::open(path)) {
            Err(error) if error.kind() == io::ErrorKind::NotFound => {}
            Err(error) => return Err(LineageFileError::io(path, error)),
            Ok(file) => drop(fold(path, file, &mut table)?),
        }
        Ok(table)
    }

    /// Appends rulings, and calls `learn` for each ruling not read before: another process's, or any in a rewritten
    /// file. Waits at most 5 s for the lock, and until the rulings are on disk, so do not call this on an async
    /// runtime's thread.
    ///
    /// # Errors
    /// [`LineageFileError`] if the file cannot be read or written. In that case it may or may not contain the rulings,
    /// which can be appended again.
    pub fn append(
        &mut self,
        rulings: &[(Holder, Ruling)],
        now_unix_s: u64,
        mut learn: impl FnMut(Holder, Ruling),
    ) -> Result<(), LineageFileError> {
        let path = self.path.clone();
        let failed = |error| LineageFileError::io(&path, error);
        let _lock = lock(&path)?;
        let is_there = match look_at(&path) {
            Err(error) if error.kind() == io::ErrorKind::NotFound => false,
            looked => looked.map(|()| true).map_err(failed)?,
        };
        if !is_there && rulings.is_empty() {
            return Ok(());
        }
        let mut file = owner_only()
            .create(true)
            .truncate(false)
            .read(true)
            .write(true)
            .open(&path)
            .map_err(failed)?;
        let len = file.metadata().map_err(failed)?.len();
        let id = match len {
            // A server must start even on a full disk, so the first line is written with the first ruling.
            0 if rulings.is_empty() => return Ok(()),
            0 => {
                let id = random_u64();
                file.write_all(first_line(id).as_bytes()).map_err(failed)?;
                id
            }
            _ => read_id(&path, &mut file)?,
        };
        // Another file, or an earlier copy of this one.
        if self.id != id || len < self.bytes {
            (self.id, self.lines) = (id, 0);
            self.bytes = first_line(id).len() as u64;
        }
        file.seek(SeekFrom::Start(self.bytes)).map_err(failed)?;
        self.bytes += read_lines(&path, &file, &mut self.lines, &mut learn)?;
        // The rest is an incomplete line left by a crashed process.
        file.set_len(self.bytes).map_err(failed)?;
        if !rulings.is_empty() {
            let mut text = String::new();
            for (holder, ruling) in rulings {
                write_line(&mut text, holder, ruling);
            }
            file.seek(SeekFrom::Start(self.bytes)).map_err(failed)?;
            file.write_all(text.as_bytes()).map_err(failed)?;
            file.sync_data().map_err(failed)?;
            self.bytes += text.len() as u64;
            self.lines += rulings.len() as u64;
        }
        // Windows may refuse to replace an open file.
        drop(file);
        if self.lines >= self.compact_at {
            self.compact(now_unix_s)?;
        }
        Ok(())
    }

    fn compact(&mut self, now_unix_s: u64) -> Result<(), LineageFileError> {
        let failed = |error| LineageFileError::io(&self.path, error);
        let mut table = LineageTable::new(LINEAGES_MAX);
        let file = File::open(&self.path).map_err(failed)?;
        fold(&self.path, file, &mut table)?;
        table.forget(now_unix_s);
        let id = random_u64();
        let (mut bytes, mut lines) = (0, 0);
        let fill = |file: &mut File| {
            let mut out = BufWriter::new(file);
            let mut line = first_line(id);
            let mut rulings = table.iter();
            loop {
                out.write_all(line.as_bytes())?;
                bytes += line.len() as u64;
                line.clear();
                let Some((holder, ruling)) = rulings.next() else {
                    return out.flush();
                };
                write_line(&mut line, holder, &ruling);
                lines += 1;
            }
        };
        secrets::replace_with(&self.path, fill).map_err(failed)?;
        (self.id, self.bytes, self.lines) = (id, bytes, lines);
        self.compact_at = COMPACT_FROM.max(2 * lines);
        Ok(())
    }
}

/// Takes the lock, which is held as long as the returned file is open.
fn lock(path: &Path) -> Result<File, LineageFileError> {
    let mut name = path.as_os_str().to_owned();
    name.push(".lock");
    let name = PathBuf::from(name);
    let failed = |error| LineageFileError::io(&name, error);
    let file = owner_only()
        .create(true)
        .truncate(false)
        .write(true)
        .open(&name)
        .map_err(failed)?;
    for _ in 0..LOCK_STEPS_MAX {
        match file.try_lock() {
            Ok(()) => return Ok(file),
            Err(fs::TryLockError::WouldBlock) => thread::sleep(LOCK_STEP),
            // The file system has no locks, so avoiding conflicts is up to the operator.
            Err(fs::TryLockError::Error(error)) if error.kind() == io::ErrorKind::Unsupported => {
                return Ok(file);
            }
            Err(fs::TryLockError::Error(error)) => return Err(failed(error)),
        }
    }
    Err(LineageFileError::Locked { path: name })
}

/// Refuses links, which could lead anywhere, and pipes, which would block.
fn look_at(path: &Path) -> io::Result<()> {
    match path.symlink_metadata()?.is_file() {
        true => Ok(()),
        false => Err(io::Error::other("it is not a regular file")),
    }
}

fn first_line(id: u64) -> String {
    format!("{FIRST_WORD} {id:016x}\n")
}

fn read_id(path: &Path, file: &mut File) -> Result<u64, LineageFileError> {
    let mut line = vec![0; first_line(0).len()];
    let damaged = || LineageFileError::Damaged {
        path: path.to_path_buf(),
        line: 1,
    };
    match file.read_exact(&mut line) {
        Ok(()) => {}
        Err(error) if error.kind() == io::ErrorKind::UnexpectedEof => return Err(damaged()),
        Err(error) => return Err(LineageFileError::io(path, error)),
    }
    let line = str::from_utf8(&line).ok();
    let id = line
        .and_then(|line| {
            line.strip_suffix('\n')?
                .strip_prefix(FIRST_WORD)?
                .strip_prefix(' ')
        })
        .filter(|id| id.len() == 16);
    id.and_then(|id| u64::from_str_radix(id, 16).ok())
        .ok_or_else(damaged)
}

fn fold(
    path: &Path,
    mut file: File,
    table: &mut LineageTable<Holder>,
) -> Result<u64, LineageFileError> {
    read_id(path, &mut file)?;
    let mut lines = 0;
    read_lines(path, &file, &mut lines, &mut |holder, ruling| {
        table.apply(&holder, &ruling);
        table.tidy(0);
    })?;
    Ok(lines)
}

fn read_lines(
    path: &Path,
    file: &File,
    lines: &mut u64,
    learn: &mut impl FnMut(Holder, Ruling),
) -> Result<u64, LineageFileError> {
    let mut file = BufReader::new(file);
    let (mut bytes, mut line) = (0, Vec::new());
    loop {
        line.clear();
        let read = (&mut file)
            .take(LINE_MAX_BYTES)
            .read_until(b'\n', &mut line);
        let read = read.map_err(|error| LineageFileError::io(path, error))? as u64;
        // The end of the file, perhaps after an incomplete line left by a killed process.
        if read < LINE_MAX_BYTES && line.last() != Some(&b'\n') {
            return Ok(bytes);
        }
        let text = str::from_utf8(&line).ok();
        let Some((holder, ruling)) = text.and_then(read_line) else {
            return Err(LineageFileError::Damaged {
                path: path.to_path_buf(),
                line: *lines + 2,
            });
        };
        learn(holder, ruling);
        bytes += read;
        *lines += 1;
    }
}

fn write_line(text: &mut String, holder: &Holder, ruling: &Ruling) {
    let Holder {
        match_id: MatchId(match_id),
        identity: Identity { name, role },
    } = holder;
    let side = match role {
        Role::Player => 'p',
        Role::Spectator => 'w',
    };
    let _ = match ruling {
        Ruling::Below {
            lineage,
            generation,
            until_unix_s,
        } => writeln!(
            text,
            "b {match_id:016x} {side} {lineage:016x} {generation:08x} {until_unix_s:016x} {name}"
        ),
        Ruling::MadeBefore { unix_ms } => {
            writeln!(text, "m {match_id:016x} {side} {unix_ms:016x} {name}")
        }
    };
}

fn read_line(line: &str) -> Option<(Holder, Ruling)> {
    fn number(rest: &mut &str, digits: usize) -> Option<u64> {
        let (number, behind) = rest.split_at_checked(digits)?;
        *rest = behind.strip_prefix(' ')?;
        u64::from_str_radix(number, 16).ok()
    }
    let line = line.strip_suffix('\n')?;
    let (kind, mut rest) = line.split_at_checked(2)?;
    let match_id = MatchId(number(&mut rest, 16)?);
    let (side, mut rest) = rest.split_at_checked(2)?;
    let role = match side {
        "p " => Role::Player,
        "w " => Role::Spectator,
        _ => return None,
    };
    let ruling = match kind {
        "b " => Ruling::Below {
            lineage: number(&mut rest, 16)?,
            generation: number(&mut rest, 8)?.try_into().ok()?,
            until_unix_s: number(&mut rest, 16)?,
        },
        "m " => Ruling::MadeBefore {
            unix_ms: number(&mut rest, 16)?,
        },
        _ => return None,
    };
    let holder = Holder {
        match_id,
        identity: Identity::new(Some(rest).filter(|text| is_identity(text))?, role),
    };
    Some((holder, ruling))
}

/// The reason why rulings could not be read or written.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
#[expect(missing_docs, reason = "the messages name the fields")]
pub enum LineageFileError {
    #[error(
        "cannot use {path}, the file of revoked or replaced tickets: {source}{}",
        advice(source)
    )]
    Io { path: PathBuf, source: io::Error },
    #[error(
        "cannot lock {path}: another process has held it for 5 s; `fuser {path}` names it. End that process if it hangs, then \
         start again"
    )]
    Locked { path: PathBuf },
    #[error(
        "line {line} of {path}, the file of revoked or replaced tickets, is damaged or from another version. Restore a \
         complete copy. Without one, make a new key and move the file away: with the old key, revoked tickets would work again"
    )]
    Damaged { path: PathBuf, line: u64 },
}

impl LineageFileError {
    fn io(path: &Path, source: io::Error) -> LineageFileError {
        LineageFileError::Io {
            path: path.to_path_buf(),
            source,
        }
    }
}

fn advice(error: &io::Error) -> &'static str {
    match error.kind() {
        io::ErrorKind::PermissionDenied => {
            "; let the user that runs this program own the file and its directory (chown)"
        }
        io::ErrorKind::ReadOnlyFilesystem => {
            "; the file system is read-only here (in a systemd unit: StateDirectory= or ReadWritePaths=)"
        }
        io::ErrorKind::NotFound | io::ErrorKind::NotADirectory => "; create the directory",
        io::ErrorKind::StorageFull | io::ErrorKind::QuotaExceeded => "; free some space there",
        _ => "",
    }
}

#[cfg(test)]
mod tests;
