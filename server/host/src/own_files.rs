//! Files of this process: regular files that other users cannot read, with one writer, and that never replace another
//! file.
//!
//! ```text
//!  to write   open ─▶ lock ─▶ does the name still lead to it? ─▶ act ─▶ unlock
//!                                            ╰─ no: another process was faster, so try again
//! ```
//!
//! Invariant: only the process that has locked a file names, moves or removes it. (On Windows a file open for writing
//! can be read by others, but not opened for writing: no lock is needed, and a lock would keep readers out.)

#[cfg(unix)]
use std::fs::TryLockError;
use std::fs::{File, Metadata, OpenOptions};
use std::io;
use std::path::{Path, PathBuf};

/// The number of attempts to open a file that other processes may be moving.
const TRIES: u32 = 16;

// Advice to an operator if this process has no access to a file, starting with a semicolon; otherwise an empty text.
#[doc(hidden)]
#[must_use]
pub fn access_advice(error: &io::Error) -> &'static str {
    match error.kind() {
        io::ErrorKind::PermissionDenied => {
            "; let the user that runs this program own the file and its directory (chown)"
        }
        io::ErrorKind::ReadOnlyFilesystem => {
            "; the file system is read-only here (in a systemd unit: StateDirectory= or ReadWritePaths=)"
        }
        _ => "",
    }
}

/// The result of opening a file for writing.
pub enum FileLock {
    /// The file, locked by this process.
    Acquired(File),
    /// Another process, or another part of this process, writes it.
    InUse,
}

/// Options that refuse links, never wait for the other end of a pipe, and make new files readable by their owner only.
fn options() -> OpenOptions {
    #[allow(unused_mut)]
    let mut options = OpenOptions::new();
    #[cfg(unix)]
    {
        use rustix::fs::OFlags;
        use std::os::unix::fs::OpenOptionsExt;
        let flags = OFlags::NOFOLLOW | OFlags::NONBLOCK;
        options.mode(0o600).custom_flags(flags.bits() as i32);
    }
    options
}

fn writer() -> OpenOptions {
    let mut options = options();
    options.read(true).write(true);
    #[cfg(windows)]
    {
        use std::os::windows::fs::OpenOptionsExt;
        const SHARE_READ_AND_DELETE: u32 = 1 | 4;
        options.share_mode(SHARE_READ_AND_DELETE);
    }
    options
}

/// Opens a regular file for reading.
///
/// # Errors
/// If the file cannot be opened; or it is a link, a pipe, a device or a folder.
pub fn open_to_read(path: &Path) -> io::Result<File> {
    open(options().read(true), path)
}

/// Opens a regular file for writing, and locks it.
///
/// # Errors
/// The errors of [`open_to_read`].
pub fn open_locked(path: &Path) -> io::Result<FileLock> {
    take_alone(path, || open(&writer(), path))
}

/// Creates and locks a file that only its owner can read.
///
/// # Errors
/// If the name is taken, even by a dangling link ([`io::ErrorKind::AlreadyExists`]); or the file cannot be created.
pub fn create_locked(path: &Path) -> io::Result<FileLock> {
    take_alone(path, || writer().create_new(true).open(path))
}

fn take_alone(path: &Path, open: impl Fn() -> io::Result<File>) -> io::Result<FileLock> {
    for _ in 0..TRIES {
        let file = match open() {
            Ok(file) => file,
            Err(error) if is_shared(&error) => return Ok(FileLock::InUse),
            Err(error) => return Err(error),
        };
        if !lock(&file, path) {
            return Ok(FileLock::InUse);
        }
        if leads_to(path, &file)? {
            return Ok(FileLock::Acquired(file));
        }
        // Another process has moved the file, so the name now refers to a different file, or to none.
    }
    Ok(FileLock::InUse)
}

#[cfg(unix)]
fn lock(file: &File, path: &Path) -> bool {
    match file.try_lock() {
        Ok(()) => true,
        Err(TryLockError::WouldBlock) => false,
        // On a file system without locks, the operator has to ensure a single writer.
        Err(TryLockError::Error(error)) => {
            super::logged::warn!(path = %path.display(), %error, "cannot lock this file: make sure that no other process writes it");
            true
        }
    }
}

/// On Windows, a file open for writing is locked.
#[cfg(not(unix))]
fn lock(_: &File, _: &Path) -> bool {
    true
}

fn open(options: &OpenOptions, path: &Path) -> io::Result<File> {
    // This check gives a clear error; the check of the opened file is the one that counts.
    refuse_strange(&std::fs::symlink_metadata(path)?)?;
    let file = options.open(path)?;
    refuse_strange(&file.metadata()?)?;
    Ok(file)
}

fn refuse_strange(data: &Metadata) -> io::Result<()> {
    let kind = data.file_type();
    let what = if kind.is_file() {
        return Ok(());
    } else if kind.is_symlink() {
        "a link; name the file that it points to"
    } else if kind.is_dir() {
        "a directory"
    } else {
        "a pipe or a device"
    };
    let message = format!("expected a regular file, got {what}");
    Err(io::Error::new(io::ErrorKind::InvalidInput, message))
}

/// Returns `true` if Windows refuses to open the file because it is open elsewhere.
fn is_shared(error: &io::Error) -> bool {
    const SHARING_VIOLATION: i32 = 32;
    cfg!(windows) && error.raw_os_error() == Some(SHARING_VIOLATION)
}

#[cfg(unix)]
pub(super) fn leads_to(path: &Path, file: &File) -> io::Result<bool> {
    use std::os::unix::fs::MetadataExt;
    let ours = file.metadata()?;
    match std::fs::symlink_metadata(path) {
        Ok(data) => Ok((data.dev(), data.ino()) == (ours.dev(), ours.ino())),
        Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(false),
        Err(error) => Err(error),
    }
}

#[cfg(not(unix))]
pub(super) fn leads_to(path: &Path, file: &File) -> io::Result<bool> {
    use same_file::Handle;
    match Handle::from_path(path) {
        Ok(named) => Ok(named == Handle::from_file(file.try_clone()?)?),
        Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(false),
        Err(error) => Err(error),
    }
}

/// Renames a locked file, unless the new name is taken.
///
/// # Errors
/// If the name is taken ([`io::ErrorKind::AlreadyExists`]) or the file cannot be renamed: it then keeps its old name.
/// Or if the folder cannot be synced.
pub(super) fn rename_to_free(from: &Path, to: &Path) -> io::Result<()> {
    use io::ErrorKind::{PermissionDenied, Unsupported};
    match std::fs::hard_link(from, to) {
        Ok(()) => std::fs::remove_file(from)?,
        // On a file system without hard links, the name is reserved first.
        Err(error) if [Unsupported, PermissionDenied].contains(&error.kind()) => {
            drop(writer().create_new(true).open(to)?);
            std::fs::rename(from, to).inspect_err(|_| drop(std::fs::remove_file(to)))?;
        }
        Err(error) => return Err(error),
    }
    sync_folder(to)
}

/// Waits until the directory entry of a file is on disk.
pub(super) fn sync_folder(path: &Path) -> io::Result<()> {
    let folder = match path.parent() {
        Some(folder) if !folder.as_os_str().is_empty() => folder,
        _ => Path::new("."),
    };
    match cfg!(unix) {
        true => File::open(folder)?.sync_all(),
        // Other systems cannot wait for a folder.
        false => Ok(()),
    }
}

/// Appends to the name of a file.
pub fn with_end(path: &Path, end: impl AsRef<std::ffi::OsStr>) -> PathBuf {
    let mut name = path.as_os_str().to_owned();
    name.push(end);
    name.into()
}

/// Copies a file to a new file that only its owner can read. Returns the number of bytes. Removes an incomplete copy.
///
/// # Errors
/// If the new file exists, the old file cannot be read, or the new file cannot be written.
pub fn copy_to_new(mut from: &File, to: &Path) -> io::Result<u64> {
    use io::Seek;
    let FileLock::Acquired(mut copy) = create_locked(to)? else {
        return Err(io::ErrorKind::AlreadyExists.into());
    };
    let copied = (|| {
        from.rewind()?;
        let bytes = io::copy(&mut from, &mut copy)?;
        copy.sync_all()?;
        Ok(bytes)
    })();
    // Otherwise each attempt would leave an incomplete copy, perhaps on a full disk.
    copied.inspect_err(|_: &io::Error| drop(std::fs::remove_file(to)))
}

#[cfg(all(test, unix))]
mod tests {
    use std::os::unix::fs::symlink;

    use super::on_every_system::folder;
    use super::*;

    /// Findings O3-7 and O3-13: `/dev/zero` and a pipe were read without end, and links were written through.
    #[cfg(not(target_vendor = "apple"))]
    #[test]
    fn links_pipes_devices_and_folders_are_refused_without_waiting() {
        let folder = folder("strange");
        let file = folder.join("match.journal");
        std::fs::write(&file, "all of it").unwrap();
        let (link, pipe) = (folder.join("link"), folder.join("pipe"));
        symlink(&file, &link).unwrap();
        // No process is started for it: until its `exec` it would hold the locks of other tests.
        rustix::fs::mkfifoat(rustix::fs::CWD, &pipe, rustix::fs::Mode::RWXU).unwrap();
        for (path, what) in [
            (&link, "a link"),
            (&pipe, "a pipe"),
            (&PathBuf::from("/dev/zero"), "a device"),
            (&folder, "a directory"),
        ] {
            let read = open_to_read(path).unwrap_err().to_string();
            let written = open_locked(path).map(drop).unwrap_err().to_string();
            assert!(read.contains(what) && written.contains(what), "{read}");
        }
        // No file is created behind a dangling link.
        std::fs::remove_file(&file).unwrap();
        let made = create_locked(&link).map(drop).unwrap_err();
        assert_eq!(made.kind(), io::ErrorKind::AlreadyExists);
        assert!(!file.exists());
        std::fs::remove_dir_all(&folder).unwrap();
    }
}

#[cfg(test)]
mod on_every_system {
    use std::io::{Read, Write};

    use super::*;

    pub(super) fn folder(name: &str) -> PathBuf {
        let path = std::env::temp_dir().join(format!("twinstep-own-{name}-{}", std::process::id()));
        let _ = std::fs::remove_dir_all(&path);
        std::fs::create_dir_all(&path).unwrap();
        path
    }

    /// Finding O3-13: all users of the machine could read journals.
    #[test]
    fn new_files_are_private_and_never_replace_a_file() {
        let folder = folder("made");
        let (one, two) = (folder.join("one"), folder.join("two"));
        let Ok(FileLock::Acquired(mut file)) = create_locked(&one) else {
            panic!("it is not locked");
        };
        file.write_all(b"one").unwrap();
        #[cfg(unix)]
        {
            let data = file.metadata().unwrap();
            let mode = std::os::unix::fs::PermissionsExt::mode(&data.permissions());
            assert_eq!(mode & 0o777, 0o600);
        }
        assert!(matches!(open_locked(&one), Ok(FileLock::InUse)));
        std::fs::write(&two, "two").unwrap();
        let taken = rename_to_free(&one, &two).unwrap_err();
        assert_eq!(taken.kind(), io::ErrorKind::AlreadyExists);
        assert_eq!(std::fs::read(&two).unwrap(), b"two");
        let copied = copy_to_new(&file, &folder.join("copy")).unwrap();
        assert_eq!(copied, 3);
        rename_to_free(&one, &folder.join("three")).unwrap();
        assert!(leads_to(&folder.join("three"), &file).unwrap());
        // Windows may keep the old name of an open file until then.
        drop(file);
        assert!(!one.exists());
        std::fs::remove_dir_all(&folder).unwrap();
    }

    /// Finding K3-G: on Windows, no other handle could read an open journal.
    #[test]
    fn others_can_read_an_open_file_but_not_write_it() {
        let path = std::env::temp_dir().join(format!("twinstep-open-{}", std::process::id()));
        let _ = std::fs::remove_file(&path);
        let Ok(FileLock::Acquired(mut file)) = create_locked(&path) else {
            panic!("it is not locked");
        };
        file.write_all(b"one").unwrap();
        let mut text = String::new();
        let mut reader = open_to_read(&path).unwrap();
        reader.read_to_string(&mut text).unwrap();
        assert_eq!(text, "one");
        assert!(matches!(open_locked(&path), Ok(FileLock::InUse)));
        // The reader is still there.
        file.write_all(b"two").unwrap();
        reader.read_to_string(&mut text).unwrap();
        assert_eq!(text, "onetwo");
        // The owner of a journal also cuts and renames it.
        file.set_len(3).unwrap();
        let moved = with_end(&path, ".moved");
        rename_to_free(&path, &moved).unwrap();
        // On Windows, every existing name counted as that of every open file, so journals of ended matches were lost.
        let other = with_end(&path, ".other");
        std::fs::write(&other, "onetwo").unwrap();
        assert!(leads_to(&moved, &file).unwrap() && !leads_to(&other, &file).unwrap());
        std::fs::remove_file(&other).unwrap();
        assert!(!leads_to(&other, &file).unwrap());
        drop(file);
        assert!(matches!(open_locked(&moved), Ok(FileLock::Acquired(_))));
        std::fs::remove_file(&moved).unwrap();
    }
}
