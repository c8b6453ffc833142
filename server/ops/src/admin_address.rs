//! [`AdminAddress`]: the address of an admin port, on loopback or at a Unix socket.
//!
//! A process that may write to a Unix socket's file may use the whole admin port. So the file is restricted to its
//! owner before it gets its final path.
//!
//! Invariant: only a socket without a listener is ever replaced or removed.

use std::fmt;
use std::net::SocketAddr;
#[cfg(unix)]
use std::path::Path;
use std::path::PathBuf;
use std::str::FromStr;

const UNIX: &str = "unix:";

/// The address of an admin port: `127.0.0.1:7700` or `unix:/run/game/admin.sock`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum AdminAddress {
    /// An address on loopback.
    Tcp(SocketAddr),
    /// The path of a Unix socket.
    Unix(PathBuf),
}

impl fmt::Display for AdminAddress {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            AdminAddress::Tcp(address) => address.fmt(f),
            AdminAddress::Unix(path) => write!(f, "{UNIX}{}", path.display()),
        }
    }
}

impl FromStr for AdminAddress {
    type Err = String;

    fn from_str(text: &str) -> Result<AdminAddress, String> {
        let expected = "expected an address on this machine, such as 127.0.0.1:7700 or unix:/run/game/admin.sock";
        match text.strip_prefix(UNIX) {
            Some(path) if !path.is_empty() && cfg!(unix) => Ok(AdminAddress::Unix(path.into())),
            Some(_) => Err(expected.to_owned()),
            None => match text.parse::<SocketAddr>() {
                Ok(address) if address.ip().is_loopback() => Ok(AdminAddress::Tcp(address)),
                _ => Err(expected.to_owned()),
            },
        }
    }
}

impl From<SocketAddr> for AdminAddress {
    fn from(address: SocketAddr) -> AdminAddress {
        AdminAddress::Tcp(address)
    }
}

/// A bound Unix socket. Dropping it removes the file, unless another socket has replaced the file.
#[cfg(unix)]
pub(super) struct AdminSocket {
    path: PathBuf,
    inode: u64,
}

#[cfg(unix)]
impl AdminSocket {
    /// Listens at a socket that only its owner can open. Replaces a socket left there by a dead process.
    pub(super) fn bind(
        path: &Path,
    ) -> std::io::Result<(std::os::unix::net::UnixListener, AdminSocket)> {
        use std::io::{Error, ErrorKind};
        use std::os::unix::fs::{FileTypeExt, MetadataExt, PermissionsExt};
        use std::os::unix::net::{UnixListener, UnixStream};

        match std::fs::symlink_metadata(path) {
            Err(error) if error.kind() == ErrorKind::NotFound => {}
            Err(error) => return Err(error),
            Ok(data) if !data.file_type().is_socket() => {
                return Err(Error::new(
                    ErrorKind::AlreadyExists,
                    "a different kind of file is there",
                ));
            }
            Ok(_) => match UnixStream::connect(path) {
                Err(error) if error.kind() == ErrorKind::ConnectionRefused => {}
                Ok(_) => return Err(ErrorKind::AddrInUse.into()),
                Err(error) => return Err(error),
            },
        }
        // Created under another name first, so that it is private before it has its final name.
        let mut fresh = path.as_os_str().to_owned();
        fresh.push(format!(".{}", std::process::id()));
        let fresh = PathBuf::from(fresh);
        let _ = std::fs::remove_file(&fresh);
        let listener = UnixListener::bind(&fresh)?;
        let owner_only = std::fs::Permissions::from_mode(0o600);
        let placed = std::fs::set_permissions(&fresh, owner_only)
            .and_then(|()| listener.set_nonblocking(true))
            .and_then(|()| std::fs::rename(&fresh, path))
            .and_then(|()| std::fs::symlink_metadata(path));
        let data = placed.inspect_err(|_| drop(std::fs::remove_file(&fresh)))?;
        let socket = AdminSocket {
            path: path.to_owned(),
            inode: data.ino(),
        };
        Ok((listener, socket))
    }
}

#[cfg(unix)]
impl Drop for AdminSocket {
    fn drop(&mut self) {
        use std::os::unix::fs::MetadataExt;
        let data = std::fs::symlink_metadata(&self.path);
        if data.is_ok_and(|data| data.ino() == self.inode) {
            let _ = std::fs::remove_file(&self.path);
        }
    }
}

#[cfg(all(test, unix))]
mod tests {
    use std::os::unix::fs::PermissionsExt;
    use std::os::unix::net::UnixStream;

    use super::*;

    fn at(name: &str) -> PathBuf {
        let path = std::env::temp_dir().join(format!("twinstep-{name}-{}", std::process::id()));
        let _ = std::fs::remove_file(&path);
        path
    }

    #[test]
    fn a_socket_is_private_and_replaces_a_dead_one() {
        let path = at("socket");
        let (listener, socket) = AdminSocket::bind(&path).unwrap();
        let mode = std::fs::metadata(&path).unwrap().permissions().mode();
        assert_eq!(mode & 0o777, 0o600);
        UnixStream::connect(&path).unwrap();
        let taken = AdminSocket::bind(&path).err().unwrap();
        assert_eq!(taken.kind(), std::io::ErrorKind::AddrInUse);
        // As if its process had been killed.
        drop(listener);
        std::mem::forget(socket);
        let (_listener, socket) = AdminSocket::bind(&path).unwrap();
        UnixStream::connect(&path).unwrap();
        drop(socket);
        assert!(!path.exists());
    }

    #[test]
    fn only_a_dead_socket_is_ever_removed() {
        let path = at("file");
        std::fs::write(&path, "mine").unwrap();
        assert!(AdminSocket::bind(&path).is_err());
        assert_eq!(std::fs::read_to_string(&path).unwrap(), "mine");
        std::fs::remove_file(&path).unwrap();
        // Another process has taken the path.
        let (_old, socket) = AdminSocket::bind(&path).unwrap();
        std::fs::remove_file(&path).unwrap();
        std::fs::write(&path, "theirs").unwrap();
        drop(socket);
        assert!(path.exists());
        std::fs::remove_file(&path).unwrap();
    }

    #[test]
    fn admin_addresses_must_be_local() {
        for text in ["127.0.0.1:7700", "[::1]:1", "unix:/run/a b/x.sock"] {
            let address: AdminAddress = text.parse().unwrap();
            assert_eq!(address.to_string(), text);
        }
        for text in ["", "unix:", "10.0.0.1:7700", "/run/x.sock", "7700"] {
            assert!(text.parse::<AdminAddress>().is_err(), "{text}");
        }
    }
}
