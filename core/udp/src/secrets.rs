//! Files that hold secrets: readable by their owner only, replaced whole or not at all.
//!
//! Invariant: a secret is never in a file that others could open, not even for a moment: the file is made with
//! mode 0600 before its first byte is written. (On systems without unix modes the folder's own rules apply.)

use std::fs::{self, File, OpenOptions};
use std::io::{self, Read, Write};
use std::path::{Path, PathBuf};

/// Makes a new file; an existing one is an error ([`io::ErrorKind::AlreadyExists`]).
pub(crate) fn write_new(path: &Path, text: &str) -> io::Result<()> {
    let mut file = owner_only().create_new(true).write(true).open(path)?;
    file.write_all(text.as_bytes())?;
    file.sync_all()
}

/// Makes or replaces a file: readers see the old text or the new one, never a part.
pub(crate) fn write_over(path: &Path, text: &str) -> io::Result<()> {
    let mut name = path.file_name().unwrap_or_default().to_os_string();
    name.push(format!(".{:016x}.new", random_u64()));
    let fresh: PathBuf = path.with_file_name(name);
    let written = write_new(&fresh, text).and_then(|()| fs::rename(&fresh, path));
    if written.is_err() {
        // Best effort: what matters is the first error.
        let _ = fs::remove_file(&fresh);
    }
    written
}

/// The text of a file, and whether others than its owner may open it (their mode bits, e.g. 0o644).
///
/// Reads at most `limit` bytes: a wrong path must not cost the memory of what lies there.
pub(crate) fn read(path: &Path, limit: u64) -> io::Result<(String, Option<u32>)> {
    let file = File::open(path)?;
    let loose = loose_mode(&file)?;
    let mut bytes = Vec::new();
    file.take(limit).read_to_end(&mut bytes)?;
    // Lossy, because what is not text is reported by the parser as what it is: not such a file.
    Ok((String::from_utf8_lossy(&bytes).into_owned(), loose))
}

/// Opens files that are made with mode 0600.
pub(crate) fn owner_only() -> OpenOptions {
    #[allow(unused_mut)]
    let mut options = OpenOptions::new();
    #[cfg(unix)]
    {
        use std::os::unix::fs::OpenOptionsExt;
        options.mode(0o600);
    }
    options
}

#[cfg(unix)]
fn loose_mode(file: &File) -> io::Result<Option<u32>> {
    use std::os::unix::fs::PermissionsExt;
    let mode = file.metadata()?.permissions().mode() & 0o777;
    Ok((mode & 0o077 != 0).then_some(mode))
}

#[cfg(not(unix))]
fn loose_mode(_: &File) -> io::Result<Option<u32>> {
    Ok(None)
}

/// Random bytes from the operating system.
///
/// # Panics
/// If the operating system has none; then there is no secret to be had at all.
pub(crate) fn random<const N: usize>() -> [u8; N] {
    let mut bytes = [0; N];
    getrandom::fill(&mut bytes).expect("the operating system gives random bytes");
    bytes
}

/// A random number from the operating system.
pub(crate) fn random_u64() -> u64 {
    u64::from_le_bytes(random())
}

/// Lower-case hex digits, two a byte.
pub(crate) fn to_hex(bytes: &[u8]) -> String {
    use std::fmt::Write as _;
    let mut text = String::with_capacity(bytes.len() * 2);
    for byte in bytes {
        write!(text, "{byte:02x}").expect("writing to a String");
    }
    text
}

/// The bytes of hex digits in either case, or `None` if anything else is there.
pub(crate) fn from_hex(text: &str) -> Option<Vec<u8>> {
    let digits: Option<Vec<u8>> = text
        .chars()
        .map(|c| c.to_digit(16).map(|d| d as u8))
        .collect();
    let (pairs, rest) = digits.as_deref()?.as_chunks::<2>();
    rest.is_empty()
        .then(|| pairs.iter().map(|[high, low]| high << 4 | low).collect())
}

#[cfg(test)]
pub(crate) mod tests {
    use super::*;

    /// A folder of one test's own, removed at its end.
    pub(crate) struct Folder(pub(crate) PathBuf);

    impl Folder {
        pub(crate) fn new() -> Folder {
            let path = std::env::temp_dir().join(format!("twinstep-udp-{:016x}", random_u64()));
            fs::create_dir(&path).expect("a folder for the test");
            Folder(path)
        }

        pub(crate) fn file(&self, name: &str) -> PathBuf {
            self.0.join(name)
        }
    }

    impl Drop for Folder {
        fn drop(&mut self) {
            let _ = fs::remove_dir_all(&self.0);
        }
    }

    #[test]
    fn hex_comes_back_and_other_text_does_not() {
        let bytes: Vec<u8> = (0..=255).collect();
        assert_eq!(from_hex(&to_hex(&bytes)), Some(bytes));
        assert_eq!(from_hex("AbfF"), Some(vec![0xab, 0xff]));
        assert_eq!(from_hex("abc"), None);
        assert_eq!(from_hex("zz"), None);
        assert_eq!(from_hex("+1"), None);
    }

    #[test]
    fn replacing_a_file_leaves_no_other_file_behind() {
        let folder = Folder::new();
        let path = folder.file("secret");
        write_over(&path, "one").unwrap();
        write_over(&path, "two").unwrap();
        assert_eq!(read(&path, 100).unwrap(), ("two".to_string(), None));
        assert_eq!(fs::read_dir(&folder.0).unwrap().count(), 1);
    }

    #[test]
    fn reading_stops_at_the_limit() {
        let folder = Folder::new();
        let path = folder.file("long");
        write_new(&path, &"x".repeat(1_000)).unwrap();
        assert_eq!(read(&path, 10).unwrap().0.len(), 10);
    }
}
