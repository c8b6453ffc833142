//! Files that hold secrets: readable only by their owner, created and replaced atomically.
//!
//! Invariant: a secret is never in a file that others could open, not even for a moment: the file gets mode 0600 before
//! its first byte is written. (On systems without Unix modes the folder's own rules apply.)

use std::fs::{self, File, OpenOptions};
use std::io::{self, Read, Write};
use std::path::{Path, PathBuf};
use std::time::Duration;

const FRESH: &str = ".new";
/// A temporary file older than this was left behind by a killed process.
const LEFT_AFTER: Duration = Duration::from_secs(60);
// Half a second in all.
const READER_TRIES: u32 = 25;
const READER_STEP: Duration = Duration::from_millis(20);

/// Creates a file: readers see all of it or no file, even after a power loss. (On a file system without hard links they
/// may see an empty file.) An existing file is an error ([`io::ErrorKind::AlreadyExists`]) and stays unchanged; if two
/// processes create it together, one gets that error.
pub(crate) fn write_new(path: &Path, text: &str) -> io::Result<()> {
    if path.symlink_metadata().is_ok() {
        return Err(io::ErrorKind::AlreadyExists.into());
    }
    put(
        path,
        |file| file.write_all(text.as_bytes()),
        |fresh| place_new(fresh, path),
    )
}

/// Creates or replaces a file that only its owner can read. Readers see the old text or the new one, never a part, even
/// after a power loss. Waits until the disk has the text.
///
/// # Errors
/// If the operating system refuses. The old file is then unchanged, except if only making the new name durable failed.
pub fn replace_file(path: &Path, bytes: impl AsRef<[u8]>) -> io::Result<()> {
    replace_with(path, |file| file.write_all(bytes.as_ref()))
}

/// Like [`replace_file`], with the bytes that `fill` writes.
pub(crate) fn replace_with(
    path: &Path,
    fill: impl FnOnce(&mut File) -> io::Result<()>,
) -> io::Result<()> {
    put(path, fill, |fresh| rename(fresh, path))
}

fn rename(fresh: &Path, path: &Path) -> io::Result<()> {
    // Windows may refuse to replace an open file. A virus scanner closes it soon.
    const ACCESS_DENIED: i32 = 5;
    const SHARING_VIOLATION: i32 = 32;
    let mut renamed = fs::rename(fresh, path);
    for _ in 0..READER_TRIES {
        let code = renamed.as_ref().err().and_then(io::Error::raw_os_error);
        if !cfg!(windows) || !matches!(code, Some(ACCESS_DENIED | SHARING_VIOLATION)) {
            break;
        }
        std::thread::sleep(READER_STEP);
        renamed = fs::rename(fresh, path);
    }
    renamed
}

/// Fills a temporary file in the same folder, and renames it once it is on disk.
fn put(
    path: &Path,
    fill: impl FnOnce(&mut File) -> io::Result<()>,
    place: impl FnOnce(&Path) -> io::Result<()>,
) -> io::Result<()> {
    clear_away(path);
    let mut name = path.file_name().unwrap_or_default().to_os_string();
    name.push(format!(".{:016x}{FRESH}", random_u64()));
    let fresh: PathBuf = path.with_file_name(name);
    let mut file = owner_only().create_new(true).write(true).open(&fresh)?;
    let filled = fill(&mut file).and_then(|()| file.sync_all());
    drop(file);
    let placed = filled.and_then(|()| place(&fresh));
    // After a successful link both names exist. Best effort: only the first error matters.
    let _ = fs::remove_file(&fresh);
    placed.and_then(|()| sync_folder(path))
}

/// Gives a file its name, unless the name is taken.
fn place_new(fresh: &Path, path: &Path) -> io::Result<()> {
    match fs::hard_link(fresh, path) {
        // A file system without hard links, such as FAT: reserve the name first, and rename over it.
        Err(error)
            if [io::ErrorKind::Unsupported, io::ErrorKind::PermissionDenied]
                .contains(&error.kind()) =>
        {
            owner_only().create_new(true).write(true).open(path)?;
            rename(fresh, path).inspect_err(|_| drop(fs::remove_file(path)))
        }
        linked => linked,
    }
}

/// Removes temporary files of processes killed while replacing this file.
fn clear_away(path: &Path) {
    let (Some(name), Ok(entries)) = (path.file_name(), fs::read_dir(folder_of(path))) else {
        return;
    };
    let is_left = |other: &std::ffi::OsStr| {
        let between = other
            .as_encoded_bytes()
            .strip_prefix(name.as_encoded_bytes())
            .and_then(|rest| rest.strip_prefix(b"."))
            .and_then(|rest| rest.strip_suffix(FRESH.as_bytes()));
        between.is_some_and(|id| id.len() == 16 && id.iter().all(u8::is_ascii_hexdigit))
    };
    for entry in entries.flatten().filter(|e| is_left(&e.file_name())) {
        let changed = entry.metadata().and_then(|data| data.modified());
        let age = changed.map(|at| at.elapsed().unwrap_or_default());
        // A younger one may belong to another process that is about to use it.
        if age.is_ok_and(|age| age >= LEFT_AFTER) {
            let _ = fs::remove_file(entry.path());
        }
    }
}

fn folder_of(path: &Path) -> &Path {
    let folder = path.parent().filter(|p| !p.as_os_str().is_empty());
    folder.unwrap_or(Path::new("."))
}

/// Makes a file's new name durable as well.
#[cfg(unix)]
fn sync_folder(path: &Path) -> io::Result<()> {
    File::open(folder_of(path))?.sync_all()
}

#[cfg(not(unix))]
fn sync_folder(_: &Path) -> io::Result<()> {
    Ok(())
}

/// The protection of a file from other users.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Guard {
    Itself,
    /// The file's folder, which a service manager created for this process: the file may belong to another user, and
    /// its group may read it.
    Folder,
}

#[cfg_attr(not(unix), allow(dead_code, reason = "only Unix says so"))]
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Exposed {
    /// The file's mode lets other users open it, for example 0o644.
    Mode(u32),
    /// The owner is this user id, which is neither this process's user nor root.
    Owner(u32),
}

/// The text of a file, and how other users could have read it, if they could.
///
/// Reads at most `limit` bytes, so that a wrong path does not cost the memory of a large file.
pub(crate) fn read(path: &Path, limit: u64, guard: Guard) -> io::Result<(String, Option<Exposed>)> {
    let file = open_regular(path)?;
    let loose = exposed(&file, guard)?;
    let mut bytes = Vec::new();
    file.take(limit).read_to_end(&mut bytes)?;
    // Lossy, because the parser then reports a binary file as the wrong kind of file.
    Ok((String::from_utf8_lossy(&bytes).into_owned(), loose))
}

/// Opens a regular file for reading. Other kinds are refused: a pipe's other side may never write, and a device never
/// ends.
///
/// # Errors
/// If the operating system refuses, or the path is not a regular file.
pub fn open_regular(path: &Path) -> io::Result<File> {
    let mut options = OpenOptions::new();
    options.read(true);
    #[cfg(unix)]
    {
        use std::os::unix::fs::OpenOptionsExt;
        // Otherwise opening a pipe waits for its other end.
        options.custom_flags(rustix::fs::OFlags::NONBLOCK.bits() as i32);
    }
    let file = options.open(path)?;
    let kind = file.metadata()?.file_type();
    if kind.is_file() {
        return Ok(file);
    }
    let is = if kind.is_dir() {
        "a directory"
    } else {
        "a pipe, a socket or a device"
    };
    let words = format!("expected a regular file, but this is {is}; name a file");
    Err(io::Error::new(io::ErrorKind::InvalidInput, words))
}

/// Options that create files with mode 0600, and do not follow links.
pub(crate) fn owner_only() -> OpenOptions {
    #[allow(unused_mut)]
    let mut options = OpenOptions::new();
    #[cfg(unix)]
    {
        use std::os::unix::fs::OpenOptionsExt;
        options
            .mode(0o600)
            .custom_flags(rustix::fs::OFlags::NOFOLLOW.bits().cast_signed());
    }
    options
}

#[cfg(unix)]
fn exposed(file: &File, guard: Guard) -> io::Result<Option<Exposed>> {
    use std::os::unix::fs::MetadataExt;
    let data = file.metadata()?;
    let mode = data.mode() & 0o777;
    let others = match guard {
        Guard::Itself => 0o077,
        // An access list from systemd or a group from Kubernetes looks like a group with read access.
        Guard::Folder => 0o037,
    };
    if mode & others != 0 {
        return Ok(Some(Exposed::Mode(mode)));
    }
    let user = rustix::process::geteuid().as_raw();
    let is_ours = guard == Guard::Folder || [0, user].contains(&data.uid());
    Ok((!is_ours).then_some(Exposed::Owner(data.uid())))
}

#[cfg(not(unix))]
fn exposed(_: &File, _: Guard) -> io::Result<Option<Exposed>> {
    Ok(None)
}

/// Random bytes from the operating system.
///
/// # Panics
/// If the operating system has none, because then no secret can be created.
pub(crate) fn random<const N: usize>() -> [u8; N] {
    let mut bytes = [0; N];
    getrandom::fill(&mut bytes).expect("the operating system gives random bytes");
    bytes
}

/// A random number from the operating system.
///
/// # Panics
/// If the operating system has none.
#[must_use]
pub fn random_u64() -> u64 {
    u64::from_le_bytes(random())
}

pub(crate) fn to_hex(bytes: &[u8]) -> String {
    use std::fmt::Write as _;
    let mut text = String::with_capacity(bytes.len() * 2);
    for byte in bytes {
        write!(text, "{byte:02x}").expect("writing to a String");
    }
    text
}

/// The bytes of hex digits in either case. Returns `None` for any other text.
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
    fn hex_survives_a_round_trip_and_other_text_is_rejected() {
        let bytes: Vec<u8> = (0..=255).collect();
        assert_eq!(from_hex(&to_hex(&bytes)), Some(bytes));
        assert_eq!(from_hex("AbfF"), Some(vec![0xab, 0xff]));
        assert_eq!(from_hex("abc"), None);
        assert_eq!(from_hex("zz"), None);
        assert_eq!(from_hex("+1"), None);
    }

    /// A key file that could not be written completely stayed, and blocked every later start.
    #[test]
    fn an_incompletely_written_file_is_removed() {
        let folder = Folder::new();
        let path = folder.file("key");
        let full = |file: &mut File| {
            file.write_all(b"twinstep-k")?;
            Err(io::ErrorKind::StorageFull.into())
        };
        let failed = put(&path, full, |fresh| place_new(fresh, &path));
        assert_eq!(failed.unwrap_err().kind(), io::ErrorKind::StorageFull);
        assert_eq!(fs::read_dir(&folder.0).unwrap().count(), 0);
        write_new(&path, "whole").unwrap();
        let again = write_new(&path, "another").unwrap_err();
        assert_eq!(again.kind(), io::ErrorKind::AlreadyExists);
        // Another process that checked before the name was taken.
        let late = put(&path, |_| Ok(()), |fresh| place_new(fresh, &path));
        assert_eq!(late.unwrap_err().kind(), io::ErrorKind::AlreadyExists);
        assert_eq!(
            read(&path, 100, Guard::Itself).unwrap(),
            ("whole".to_string(), None)
        );
        assert_eq!(fs::read_dir(&folder.0).unwrap().count(), 1);
    }

    #[test]
    fn replacing_a_file_leaves_no_temporary_file() {
        let folder = Folder::new();
        let path = folder.file("secret");
        replace_file(&path, "one").unwrap();
        replace_file(&path, "two").unwrap();
        assert_eq!(
            read(&path, 100, Guard::Itself).unwrap(),
            ("two".to_string(), None)
        );
        assert_eq!(fs::read_dir(&folder.0).unwrap().count(), 1);
    }

    #[test]
    fn a_file_that_another_program_reads_for_a_moment_is_replaced() {
        let folder = Folder::new();
        let path = folder.file("bans");
        replace_file(&path, "one").unwrap();
        let mut options = OpenOptions::new();
        // Virus scanners and editors often open files so that no other program can write or remove them.
        #[cfg(windows)]
        std::os::windows::fs::OpenOptionsExt::share_mode(&mut options, 1);
        let reader = options.read(true).open(&path).unwrap();
        std::thread::scope(|threads| {
            threads.spawn(|| {
                std::thread::sleep(Duration::from_millis(100));
                drop(reader);
            });
            replace_file(&path, "two").unwrap();
        });
        assert_eq!(fs::read(&path).unwrap(), b"two");
    }

    /// Finding O12: each process killed between the two steps left a file behind that was never removed.
    #[test]
    fn only_temporary_files_of_killed_processes_are_removed() {
        let folder = Folder::new();
        let path = folder.file("anna.rejoin");
        let old = std::time::UNIX_EPOCH + Duration::from_secs(1_000);
        let make = |name: &str, at: Option<std::time::SystemTime>| {
            let file = File::create(folder.file(name)).unwrap();
            if let Some(at) = at {
                file.set_modified(at).unwrap();
            }
        };
        make("anna.rejoin.0123456789abcdef.new", Some(old));
        make("anna.rejoin.fedcba9876543210.new", None);
        make("anna.rejoin.notes.new", Some(old));
        make("bob.rejoin.0123456789abcdef.new", Some(old));
        replace_file(&path, "one").unwrap();
        let mut names: Vec<_> = fs::read_dir(&folder.0)
            .unwrap()
            .map(|entry| entry.unwrap().file_name().into_string().unwrap())
            .collect();
        names.sort();
        let left = [
            "anna.rejoin",
            "anna.rejoin.fedcba9876543210.new",
            "anna.rejoin.notes.new",
            "bob.rejoin.0123456789abcdef.new",
        ];
        assert_eq!(names, left);
    }

    /// Finding O3-9: reading a pipe at a key file's path never ended.
    #[cfg(all(unix, not(target_vendor = "apple")))]
    #[test]
    fn a_path_to_another_kind_of_file_is_refused_immediately() {
        let folder = Folder::new();
        let pipe = folder.file("pipe");
        // No process is started for it: until its `exec` it would hold the locks of other tests.
        rustix::fs::mkfifoat(rustix::fs::CWD, &pipe, rustix::fs::Mode::RWXU).unwrap();
        for path in [pipe.as_path(), Path::new("/dev/zero"), &folder.0] {
            let refused = read(path, 10, Guard::Itself).unwrap_err();
            assert!(
                refused.to_string().contains("expected a regular file"),
                "{refused}"
            );
        }
    }

    #[test]
    fn reading_stops_at_the_limit() {
        let folder = Folder::new();
        let path = folder.file("long");
        write_new(&path, &"x".repeat(1_000)).unwrap();
        assert_eq!(read(&path, 10, Guard::Itself).unwrap().0.len(), 10);
    }
}
