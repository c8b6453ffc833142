//! Journals as they lie in a folder: plain while their match can go on, compressed (gzip) when it is over.
//!
//! Whoever reads one need not know which: what a file begins with says it.

use std::fs::{File, TryLockError};
use std::io::{self, BufReader, Read, Write};
use std::path::{Path, PathBuf};

use flate2::Compression;
use flate2::read::MultiGzDecoder;
use flate2::write::GzEncoder;

use super::journal_file::sync_folder;

/// What a compressed file begins with (RFC 1952).
const MAGIC: [u8; 2] = [0x1f, 0x8b];
/// A compressed journal is not read beyond so many bytes: a file of a few kilobytes may claim to hold any number.
const PLAIN_BYTES_MAX: u64 = 4 << 30;
/// How names of compressed journals end, behind the journal's own name.
pub(super) const COMPRESSED_EXTENSION: &str = "gz";

/// Whether these are the first bytes of a compressed file.
pub(super) fn is_compressed(bytes: &[u8]) -> bool {
    bytes.starts_with(&MAGIC)
}

/// Reads a whole journal, plain or compressed. A compressed one takes as much memory as a plain one, up to 4 GiB.
///
/// # Errors
/// A file that cannot be read, or a compressed one that is damaged or too large.
pub fn read_journal(path: impl AsRef<Path>) -> io::Result<Vec<u8>> {
    let bytes = std::fs::read(path)?;
    if !is_compressed(&bytes) {
        return Ok(bytes);
    }
    let mut plain = Vec::new();
    let most = PLAIN_BYTES_MAX + 1;
    MultiGzDecoder::new(&bytes[..])
        .take(most)
        .read_to_end(&mut plain)?;
    match plain.len() as u64 {
        bytes if bytes < most => Ok(plain),
        _ => Err(io::ErrorKind::FileTooLarge.into()),
    }
}

/// Puts a compressed file in the place of a journal that nobody writes any more; where it is. `None`: another process does so
/// just now, or has done so. A crash at any moment leaves one of the two whole, or both, and beside them at most a part that
/// the next try overwrites.
pub(super) fn compress(path: &Path) -> io::Result<Option<PathBuf>> {
    let named = |end: &str| {
        let mut name = path.as_os_str().to_owned();
        name.push(end);
        PathBuf::from(name)
    };
    let (part, whole) = (named(".gz.part"), named(".gz"));
    let source = match File::options().read(true).append(true).open(path) {
        Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(None),
        source => source?,
    };
    // Held until it is gone: so of two processes with one folder, one writes.
    match source.try_lock() {
        Err(TryLockError::WouldBlock) => return Ok(None),
        Err(TryLockError::Error(error)) if error.kind() != io::ErrorKind::Unsupported => {
            return Err(error);
        }
        _ if !path.exists() => return Ok(None),
        _ => {}
    }
    let compressed = write_compressed(&source, &part).and_then(|()| std::fs::rename(&part, &whole));
    if compressed.is_err() {
        let _ = std::fs::remove_file(&part);
    }
    compressed?;
    sync_folder(&whole)?;
    std::fs::remove_file(path)?;
    Ok(Some(whole))
}

fn write_compressed(source: &File, to: &Path) -> io::Result<()> {
    let changed = source.metadata()?.modified()?;
    let mut encoder = GzEncoder::new(File::create(to)?, Compression::default());
    io::copy(&mut BufReader::new(source), &mut encoder)?;
    let mut written = encoder.finish()?;
    written.flush()?;
    // It is as old as its match.
    written.set_modified(changed)?;
    written.sync_all()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_journal_is_read_whether_it_is_compressed_or_not_and_damage_is_an_error() {
        let folder = std::env::temp_dir().join(format!("twinstep-gz-{}", std::process::id()));
        let _ = std::fs::remove_dir_all(&folder);
        std::fs::create_dir_all(&folder).unwrap();
        let path = folder.join("match-7.1.journal");
        let bytes: Vec<u8> = (0..100_000_u32).map(|n| (n / 64) as u8).collect();
        std::fs::write(&path, &bytes).unwrap();
        assert_eq!(read_journal(&path).unwrap(), bytes);
        let changed = std::time::SystemTime::UNIX_EPOCH + std::time::Duration::from_secs(1 << 30);
        let file = File::options().append(true).open(&path).unwrap();
        file.set_modified(changed).unwrap();
        // Not while another process does so.
        let theirs = File::open(&path).unwrap();
        theirs.lock().unwrap();
        assert_eq!(compress(&path).unwrap(), None);
        assert_eq!(read_journal(&path).unwrap(), bytes);
        drop(theirs);
        let whole = compress(&path).unwrap().unwrap();
        assert_eq!(whole, folder.join("match-7.1.journal.gz"));
        assert_eq!(read_journal(&whole).unwrap(), bytes);
        let kept = std::fs::metadata(&whole).unwrap();
        assert!(kept.len() < 10_000, "{} bytes", kept.len());
        assert_eq!(kept.modified().unwrap(), changed);
        let names = std::fs::read_dir(&folder).unwrap();
        assert_eq!(names.count(), 1, "nothing else is left there");
        assert_eq!(compress(&path).unwrap(), None, "it is done");
        let names = std::fs::read_dir(&folder).unwrap();
        assert_eq!(names.count(), 1, "and leaves nothing either");
        // Cut off, or altered: never silently less.
        let mut damaged = std::fs::read(&whole).unwrap();
        damaged.truncate(damaged.len() - 9);
        std::fs::write(&whole, &damaged).unwrap();
        assert!(read_journal(&whole).is_err());
        std::fs::remove_dir_all(&folder).unwrap();
    }
}
