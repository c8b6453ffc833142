//! [`StoredJournal`]: reads journals in a folder, plain or compressed (gzip).
//!
//! The first bytes show which kind it is. Both kinds are read through a window, so a journal of any length takes the
//! memory of its largest record.

use std::fs::File;
use std::io::{self, BufReader, Read, Seek, SeekFrom};
use std::path::Path;

use flate2::bufread::MultiGzDecoder;
use twinstep_protocol::journal::{JournalSource, SourceError};

use super::own_files::open_to_read;

/// The first bytes of a compressed file (RFC 1952).
const MAGIC: [u8; 2] = [0x1f, 0x8b];
/// A compressed file may unpack to at most this many times its length, or to `PLAIN_BYTES` if that is more. Journals
/// compress about ten to one, but a hostile file of a few kilobytes could unpack to any length.
const RATIO_MAX: u64 = 100;
const TOO_LARGE: &str =
    "it unpacks to more than 100 times its size: if you trust it, unpack it with gunzip first";
const PLAIN_BYTES: u64 = 256 << 20;
const WINDOW_BYTES: usize = 256 << 10;
/// The extension that compressed journals add to their name.
pub const COMPRESSED_EXTENSION: &str = "gz";

/// A journal in a file, plain or compressed, read in pieces. Reading backwards in a compressed journal unpacks it again
/// from the start.
#[derive(Debug)]
pub struct StoredJournal {
    bytes: Stored,
    file_bytes: u64,
    /// The bytes read last; they start at `offset`.
    window: Vec<u8>,
    offset: u64,
    failed: Option<io::Error>,
}

#[derive(Debug)]
enum Stored {
    Plain(File),
    Compressed {
        unpacked: Box<MultiGzDecoder<BufReader<File>>>,
        at: u64,
    },
}

impl StoredJournal {
    /// Opens a journal for reading.
    ///
    /// # Errors
    /// If the file cannot be opened, or is not a regular file.
    pub fn open(path: impl AsRef<Path>) -> io::Result<StoredJournal> {
        StoredJournal::of(open_to_read(path.as_ref())?)
    }

    /// Like [`open`](Self::open), for an open file.
    pub fn of(mut file: File) -> io::Result<StoredJournal> {
        let file_bytes = file.metadata()?.len();
        file.rewind()?;
        let mut first = Vec::new();
        (&file).take(MAGIC.len() as u64).read_to_end(&mut first)?;
        file.rewind()?;
        let bytes = match first == MAGIC {
            true => Stored::Compressed {
                unpacked: Box::new(MultiGzDecoder::new(BufReader::new(file))),
                at: 0,
            },
            false => Stored::Plain(file),
        };
        Ok(StoredJournal {
            bytes,
            file_bytes,
            window: Vec::new(),
            offset: 0,
            failed: None,
        })
    }

    /// Returns `true` if the file is compressed.
    #[must_use]
    pub fn is_compressed(&self) -> bool {
        matches!(self.bytes, Stored::Compressed { .. })
    }

    pub(super) fn file_bytes(&self) -> u64 {
        self.file_bytes
    }

    /// The unpacked length in bytes, which must be at least `from`.
    pub fn plain_bytes(&mut self, from: u64) -> Result<u64, SourceError> {
        if !self.is_compressed() {
            return Ok(self.file_bytes);
        }
        let mut end = from;
        loop {
            match self.window(end, 1)?.len() {
                0 => return Ok(end),
                more => end += more as u64,
            }
        }
    }

    /// Takes the error that stopped the last read, if any.
    pub fn failure(&mut self) -> Option<io::Error> {
        self.failed.take()
    }

    /// Fills the window with at least `least` bytes starting at `offset`, or with all remaining bytes.
    fn fill(&mut self, offset: u64, least: usize) -> io::Result<()> {
        let behind = offset.checked_sub(self.offset);
        let kept = behind.and_then(|behind| usize::try_from(behind).ok());
        match kept.filter(|kept| *kept <= self.window.len()) {
            Some(kept) if self.window.len() - kept >= least => return Ok(()),
            Some(kept) => drop(self.window.drain(..kept)),
            None => self.window.clear(),
        }
        self.offset = offset;
        let from = offset + self.window.len() as u64;
        let more = (least - self.window.len()).max(WINDOW_BYTES) as u64;
        match &mut self.bytes {
            Stored::Plain(file) => {
                file.seek(SeekFrom::Start(from))?;
                file.take(more).read_to_end(&mut self.window)?;
            }
            Stored::Compressed { unpacked, at } => {
                // Compressed data can only be read forward, so start again.
                if from < *at {
                    let file = unpacked.get_mut().get_mut();
                    file.rewind()?;
                    let again = file.try_clone()?;
                    **unpacked = MultiGzDecoder::new(BufReader::new(again));
                    *at = 0;
                }
                let most = PLAIN_BYTES.max(self.file_bytes.saturating_mul(RATIO_MAX));
                let passed = io::copy(
                    &mut unpacked.by_ref().take((from - *at).min(most)),
                    &mut io::sink(),
                )?;
                *at += passed;
                if *at == from {
                    *at += unpacked.by_ref().take(more).read_to_end(&mut self.window)? as u64;
                }
                if *at > most {
                    return Err(io::Error::new(io::ErrorKind::FileTooLarge, TOO_LARGE));
                }
            }
        }
        Ok(())
    }
}

impl JournalSource for StoredJournal {
    fn window(&mut self, offset: u64, least: usize) -> Result<&[u8], SourceError> {
        if let Err(error) = self.fill(offset, least) {
            let why = match error.kind() {
                io::ErrorKind::FileTooLarge => TOO_LARGE,
                io::ErrorKind::UnexpectedEof => "it is compressed, and cut off",
                io::ErrorKind::InvalidInput | io::ErrorKind::InvalidData => {
                    "the compressed data is damaged"
                }
                _ => "the disk cannot be read",
            };
            self.failed = Some(error);
            // A half-filled window must not be taken for the end.
            self.window.clear();
            return Err(SourceError(why));
        }
        let at = usize::try_from(offset - self.offset).unwrap_or(usize::MAX);
        Ok(self.window.get(at..).unwrap_or_default())
    }
}

#[cfg(test)]
mod tests {
    use std::io::Write;
    use std::path::PathBuf;

    use flate2::Compression;
    use flate2::write::GzEncoder;

    use super::*;

    fn compressed(path: &Path) -> PathBuf {
        let copy = path.with_extension("journal.gz");
        let mut encoder = GzEncoder::new(File::create(&copy).unwrap(), Compression::default());
        encoder.write_all(&std::fs::read(path).unwrap()).unwrap();
        encoder.finish().unwrap();
        copy
    }

    fn read_all(path: &Path) -> Result<Vec<u8>, SourceError> {
        let (mut stored, mut all) = (StoredJournal::open(path).unwrap(), Vec::new());
        loop {
            match stored.window(all.len() as u64, 1)? {
                [] => return Ok(all),
                more => all.extend_from_slice(more),
            }
        }
    }

    fn folder(name: &str) -> PathBuf {
        let folder = std::env::temp_dir().join(format!("twinstep-{name}-{}", std::process::id()));
        let _ = std::fs::remove_dir_all(&folder);
        std::fs::create_dir_all(&folder).unwrap();
        folder
    }

    /// Finding K3-K: a compressed journal was read whole, and journals above 4 GiB were refused.
    #[test]
    fn any_part_of_a_plain_or_compressed_journal_can_be_read() {
        let folder = folder("windows");
        let path = folder.join("match-7.1.journal");
        let mut draw = twinstep_core::Mwc::seed(7);
        let bytes: Vec<u8> = (0..3_000_000).map(|_| draw.below(256) as u8).collect();
        std::fs::write(&path, &bytes).unwrap();
        for (path, is_compressed) in [(path.clone(), false), (compressed(&path), true)] {
            let mut stored = StoredJournal::open(&path).unwrap();
            assert_eq!(stored.is_compressed(), is_compressed);
            assert_eq!(stored.plain_bytes(0).unwrap(), bytes.len() as u64);
            for _ in 0..60 {
                let at = draw.below(3_000_100) as usize;
                let bits = draw.below(21);
                let least = draw.below(1 << bits) as usize;
                let window = stored.window(at as u64, least).unwrap();
                let there = bytes.get(at..).unwrap_or_default();
                assert!(window.len() >= least.min(there.len()), "{at} {least}");
                assert!(there.starts_with(window), "{at} {least}");
            }
        }
        std::fs::remove_dir_all(&folder).unwrap();
    }

    /// Finding O3-7: a compressed file of 8 MB took 4 GB of memory and half a minute.
    #[test]
    fn a_file_unpacking_to_a_hundred_times_its_length_is_refused() {
        let folder = folder("bomb");
        let path = folder.join("match-7.1.journal.gz");
        let mut encoder = GzEncoder::new(File::create(&path).unwrap(), Compression::fast());
        let zeros = vec![0; 1 << 20];
        for _ in 0..PLAIN_BYTES / zeros.len() as u64 {
            encoder.write_all(&zeros).unwrap();
        }
        encoder.write_all(b"and one more").unwrap();
        encoder.finish().unwrap();
        let mut stored = StoredJournal::open(&path).unwrap();
        let SourceError(why) = stored.plain_bytes(0).unwrap_err();
        assert!(why.contains("gunzip"), "{why}");
        let failed = stored.failure().unwrap();
        assert_eq!(failed.kind(), io::ErrorKind::FileTooLarge);
        assert!(stored.window.capacity() < 4 * WINDOW_BYTES);
        drop(stored);
        std::fs::remove_dir_all(&folder).unwrap();
    }

    #[test]
    fn plain_and_compressed_journals_are_read_and_damage_is_an_error() {
        let folder = folder("gz");
        let path = folder.join("match-7.1.journal");
        let bytes: Vec<u8> = (0..100_000_u32).map(|n| (n / 64) as u8).collect();
        std::fs::write(&path, &bytes).unwrap();
        assert_eq!(read_all(&path).unwrap(), bytes);
        let whole = compressed(&path);
        assert_eq!(read_all(&whole).unwrap(), bytes);
        // Damage must not look like a shorter journal.
        let mut damaged = std::fs::read(&whole).unwrap();
        damaged.truncate(damaged.len() - 9);
        std::fs::write(&whole, &damaged).unwrap();
        assert!(read_all(&whole).is_err());
        std::fs::remove_dir_all(&folder).unwrap();
    }
}
