//! The server's key: its holder issues tickets that the server accepts.
//!
//! A key file is three lines, mode 0600, and is never overwritten:
//!
//! ```text
//! twinstep-key-1
//! 5be1c0a97f20d4e6                                                    its generation: random, public
//! 9f0c…64 hex digits…e1                                               the secret
//! ```
//!
//! At most two keys are alive: the first issues tickets, both verify them. To rotate, put a new key before the old one
//! ([`ServerEndpoint::set_keys`](crate::ServerEndpoint::set_keys)), and drop the old one when its last ticket has
//! expired. The generation names the key in each ticket (through the protocol id), so that the server knows which key
//! to try.

use std::fmt;
use std::io;
use std::path::{Path, PathBuf};

use crate::secrets::{self, Exposed, Guard, from_hex, random, random_u64, to_hex};

const FIRST_LINE: &str = "twinstep-key-1";

/// A 32-byte secret with its public generation.
#[derive(Clone, PartialEq, Eq)]
pub struct TicketKey {
    generation: u64,
    secret: [u8; 32],
}

impl TicketKey {
    /// Creates a new key from the operating system's random bytes.
    ///
    /// # Panics
    /// If the operating system has no random bytes.
    #[must_use]
    pub fn generate() -> TicketKey {
        TicketKey {
            generation: random_u64(),
            secret: random(),
        }
    }

    /// Reads a key file.
    ///
    /// # Errors
    /// [`TicketKeyError`] if the file is missing or unreadable, belongs to a user other than root and the user of this
    /// process, can be opened by others, or is not a key file.
    pub fn load(path: impl AsRef<Path>) -> Result<TicketKey, TicketKeyError> {
        TicketKey::load_guarded(path.as_ref(), Guard::Itself)
    }

    /// Like [`load`](Self::load), from a folder that protects its files, created for this process by a service manager:
    /// systemd's `$CREDENTIALS_DIRECTORY`, or a mounted secret of Kubernetes. The file may belong to another user, and
    /// its group may read it.
    ///
    /// # Errors
    /// The errors of [`load`](Self::load).
    pub fn load_credential(path: impl AsRef<Path>) -> Result<TicketKey, TicketKeyError> {
        TicketKey::load_guarded(path.as_ref(), Guard::Folder)
    }

    fn load_guarded(path: &Path, guard: Guard) -> Result<TicketKey, TicketKeyError> {
        let path = path.to_path_buf();
        let (text, exposed) = match secrets::read(&path, 1_024, guard) {
            Ok(read) => read,
            Err(e) if e.kind() == io::ErrorKind::NotFound => {
                return Err(TicketKeyError::Missing { path });
            }
            Err(source) => return Err(TicketKeyError::Unreadable { path, source }),
        };
        match exposed {
            Some(Exposed::Mode(mode)) => return Err(TicketKeyError::Permissions { path, mode }),
            Some(Exposed::Owner(owner)) => return Err(TicketKeyError::Owner { path, owner }),
            None => {}
        }
        parse(&text).map_err(|found| TicketKeyError::NotAKey { path, found })
    }

    /// Writes a key file with mode 0600, atomically. An existing file is never overwritten: if two processes save at
    /// the same time, one succeeds and the other gets an error.
    ///
    /// # Errors
    /// [`TicketKeyError::Exists`] if the file exists, or [`TicketKeyError::Unwritable`] if it cannot be written.
    pub fn save(&self, path: impl AsRef<Path>) -> Result<(), TicketKeyError> {
        let path = path.as_ref();
        let text = format!(
            "{FIRST_LINE}\n{:016x}\n{}\n",
            self.generation,
            to_hex(&self.secret)
        );
        secrets::write_new(path, &text).map_err(|source| {
            let path = path.to_path_buf();
            match source.kind() {
                io::ErrorKind::AlreadyExists => TicketKeyError::Exists { path },
                _ => TicketKeyError::Unwritable { path, source },
            }
        })
    }

    /// The public random number that names this key.
    #[must_use]
    pub fn generation(&self) -> u64 {
        self.generation
    }

    /// The protocol id of tickets for this game, wire version and key.
    pub(crate) fn protocol_id(&self, game: &str, wire_version: u32) -> u64 {
        let mut named = Vec::with_capacity(game.len() + 12);
        named.extend_from_slice(&self.generation.to_le_bytes());
        named.extend_from_slice(&wire_version.to_le_bytes());
        named.extend_from_slice(game.as_bytes());
        xxhash_rust::xxh3::xxh3_64(&named)
    }

    pub(crate) fn secret(&self) -> &[u8; 32] {
        &self.secret
    }

    /// A key with the same generation but a different secret.
    #[cfg(test)]
    pub(crate) fn forged(&self) -> TicketKey {
        TicketKey {
            generation: self.generation,
            ..TicketKey::generate()
        }
    }
}

/// Prints the generation, never the secret.
impl fmt::Debug for TicketKey {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "TicketKey({:016x})", self.generation)
    }
}

fn parse(text: &str) -> Result<TicketKey, String> {
    let mut lines = text.lines().map(str::trim_end);
    let (first, generation, secret, rest) =
        (lines.next(), lines.next(), lines.next(), lines.next());
    match first {
        None => return Err("it is empty".into()),
        Some(FIRST_LINE) => {}
        // A wrong file may contain a secret, so the error repeats nothing from it except a small number.
        Some(line) => {
            let version = line.strip_prefix("twinstep-key-");
            return Err(
                match version.and_then(|digits| digits.parse::<u16>().ok()) {
                    Some(version) => {
                        format!("it is a key of version {version}, which this program cannot read")
                    }
                    None => "its first line is not that of a key file".into(),
                },
            );
        }
    }
    let generation = generation
        .filter(|digits| digits.len() == 16)
        .and_then(|digits| u64::from_str_radix(digits, 16).ok())
        .ok_or("line 2 is not 16 hex digits")?;
    let secret = secret
        .and_then(from_hex)
        .and_then(|bytes| bytes.try_into().ok())
        .ok_or("line 3 is not 64 hex digits")?;
    if rest.is_some_and(|line| !line.is_empty()) {
        return Err("it has more than three lines".into());
    }
    Ok(TicketKey { generation, secret })
}

fn access_advice(error: &io::Error) -> &'static str {
    match error.kind() {
        io::ErrorKind::PermissionDenied => "; let the user that runs this program own it (chown)",
        _ => "",
    }
}

/// The reason why a key file could not be read or written.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
#[expect(missing_docs, reason = "the messages name the fields")]
pub enum TicketKeyError {
    #[error("there is no key file at {path}")]
    Missing { path: PathBuf },
    #[error("cannot read the key file {path}: {source}{}", access_advice(source))]
    Unreadable { path: PathBuf, source: io::Error },
    #[error(
        "the key file {path} has mode {mode:04o}, expected 0600. If only trusted users could read it: chmod 600 {path}. Otherwise make a new key; tickets of the old one stop working"
    )]
    Permissions { path: PathBuf, mode: u32 },
    #[error(
        "the key file {path} belongs to the user with id {owner}, expected root or the user that runs this program. If you trust \
         that user: chown USER {path}, where USER runs this program. Otherwise make a new key; tickets of the old one stop working"
    )]
    Owner { path: PathBuf, owner: u32 },
    #[error(
        "{path} is not a key file: {found}. Restore a complete copy, or move the file away and make a new key (tickets \
         of the old key stop working)"
    )]
    NotAKey {
        path: PathBuf,
        /// The first difference from the format of a key file, as a clause.
        found: String,
    },
    #[error(
        "{path} exists, and a key is never overwritten; choose another name, or move the file away (tickets made with it \
         need it)"
    )]
    Exists { path: PathBuf },
    #[error("cannot write the key file {path}: {source}")]
    Unwritable { path: PathBuf, source: io::Error },
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::secrets::tests::Folder;

    #[test]
    fn a_saved_key_is_loaded_unchanged_and_never_overwritten() {
        let folder = Folder::new();
        let path = folder.file("key");
        let key = TicketKey::generate();
        key.save(&path).unwrap();
        assert_eq!(TicketKey::load(&path).unwrap(), key);
        assert!(matches!(
            TicketKey::generate().save(&path),
            Err(TicketKeyError::Exists { .. })
        ));
        assert_eq!(TicketKey::load(&path).unwrap(), key);
    }

    /// Two servers that started together read each other's incomplete file.
    #[test]
    fn processes_creating_a_key_file_together_agree_on_one() {
        let folder = Folder::new();
        for n in 0..200 {
            let path = folder.file(&format!("key-{n}"));
            let make = || {
                match TicketKey::generate().save(&path) {
                    Ok(()) | Err(TicketKeyError::Exists { .. }) => {}
                    Err(error) => panic!("round {n}: {error}"),
                }
                TicketKey::load(&path).unwrap_or_else(|error| panic!("round {n}: {error}"))
            };
            let keys: Vec<TicketKey> = std::thread::scope(|scope| {
                let made: Vec<_> = (0..4).map(|_| scope.spawn(make)).collect();
                made.into_iter().map(|key| key.join().unwrap()).collect()
            });
            assert!(keys.iter().all(|key| *key == keys[0]), "round {n}");
        }
    }

    /// The error for an incomplete file contains a remedy, which works.
    #[test]
    fn a_truncated_key_file_can_be_moved_away_and_created_again() {
        let folder = Folder::new();
        let path = folder.file("key");
        TicketKey::generate().save(&path).unwrap();
        let whole = std::fs::read_to_string(&path).unwrap();
        for bytes in [0, 5, FIRST_LINE.len() + 3, whole.len() - 10] {
            secrets::replace_file(&path, &whole[..bytes]).unwrap();
            let error = TicketKey::load(&path).unwrap_err();
            assert!(matches!(error, TicketKeyError::NotAKey { .. }), "{error}");
            let said = error.to_string();
            assert!(said.contains("move the file away"), "{said}");
            std::fs::rename(&path, folder.file("away")).unwrap();
            TicketKey::generate().save(&path).unwrap();
            TicketKey::load(&path).unwrap();
        }
    }

    #[cfg(unix)]
    #[test]
    fn a_key_file_that_others_can_read_is_refused_with_the_command_to_run() {
        use std::os::unix::fs::PermissionsExt;
        let folder = Folder::new();
        let path = folder.file("key");
        TicketKey::generate().save(&path).unwrap();
        let mode = std::fs::metadata(&path).unwrap().permissions().mode();
        assert_eq!(mode & 0o777, 0o600);

        std::fs::set_permissions(&path, std::fs::Permissions::from_mode(0o640)).unwrap();
        let error = TicketKey::load(&path).unwrap_err();
        assert!(matches!(
            error,
            TicketKeyError::Permissions { mode: 0o640, .. }
        ));
        assert!(error.to_string().contains("chmod 600"), "{error}");
    }

    /// systemd and Kubernetes let a group read the files of a service's own folder.
    #[cfg(unix)]
    #[test]
    fn a_group_may_read_a_credential_but_other_users_may_not() {
        use std::os::unix::fs::PermissionsExt;
        let folder = Folder::new();
        let path = folder.file("key");
        let key = TicketKey::generate();
        key.save(&path).unwrap();
        let set = |mode| {
            std::fs::set_permissions(&path, std::fs::Permissions::from_mode(mode)).unwrap();
        };
        set(0o440);
        assert_eq!(TicketKey::load_credential(&path).unwrap(), key);
        for mode in [0o444, 0o460, 0o441] {
            set(mode);
            assert!(TicketKey::load_credential(&path).is_err(), "{mode:o}");
        }
    }

    /// The owner of a file can read it in any mode, so other users' files are refused. Only root can make this file.
    #[cfg(unix)]
    #[test]
    fn a_key_file_of_another_user_is_refused() {
        let folder = Folder::new();
        let path = folder.file("key");
        TicketKey::generate().save(&path).unwrap();
        if std::os::unix::fs::chown(&path, Some(4_242), None).is_err() {
            return;
        }
        let refused = TicketKey::load(&path).unwrap_err();
        assert!(
            matches!(refused, TicketKeyError::Owner { owner: 4_242, .. }),
            "{refused}"
        );
        assert!(TicketKey::load_credential(&path).is_ok());
    }

    #[test]
    fn another_kind_of_file_is_refused_with_its_first_difference() {
        let folder = Folder::new();
        let path = folder.file("key");
        let digits = "0123456789abcdef";
        let cases = [
            (String::new(), "it is empty"),
            ("hello".into(), "its first line"),
            ("twinstep-key-2\n".into(), "a key of version 2"),
            (format!("{FIRST_LINE}\nxyz"), "line 2"),
            (format!("{FIRST_LINE}\n{digits}\n{digits}"), "line 3"),
            (
                format!("{FIRST_LINE}\n{digits}\n{}\nmore", digits.repeat(4)),
                "three lines",
            ),
        ];
        for (text, expected) in cases {
            std::fs::remove_file(&path).ok();
            secrets::write_new(&path, &text).unwrap();
            let error = TicketKey::load(&path).unwrap_err().to_string();
            assert!(error.contains(expected), "{text:?} gave {error}");
        }
        let missing = TicketKey::load(folder.file("none")).unwrap_err();
        assert!(
            missing.to_string().contains("there is no key file"),
            "{missing}"
        );
    }

    /// Finding O3: newlines that became spaces made the error print the whole secret.
    #[test]
    fn no_error_contains_part_of_the_secret() {
        let folder = Folder::new();
        let path = folder.file("key");
        TicketKey::generate().save(&path).unwrap();
        let whole = std::fs::read_to_string(&path).unwrap();
        let secret = whole.lines().nth(2).unwrap().to_owned();
        let generation = whole.lines().nth(1).unwrap().to_owned();
        let mut damaged = vec![
            whole.replace('\n', " "),
            whole.replace('\n', ""),
            whole.replace('\n', "\r"),
            whole.replace('\n', "\n\n"),
            whole.replace("key-1", "key-2"),
            format!("twinstep-key-{secret}"),
            format!("twinstep-{secret}\n"),
            format!("{FIRST_LINE}\n{secret}\n{generation}\n"),
            format!("{secret}\n{generation}\n{FIRST_LINE}\n"),
            format!("{whole}{secret}"),
            whole.replace(&secret, &secret.to_uppercase()),
        ];
        damaged.extend((0..whole.len()).map(|at| whole[at..].to_owned()));
        damaged.extend((0..whole.len()).map(|at| whole[..at].to_owned()));
        for n in 0..whole.len() {
            let mut changed = whole.clone();
            changed.remove(n);
            damaged.push(changed.clone());
            changed.insert_str(n, &secret);
            damaged.push(changed);
        }
        for text in damaged {
            std::fs::remove_file(&path).unwrap();
            secrets::write_new(&path, &text).unwrap();
            let Err(error) = TicketKey::load(&path) else {
                continue;
            };
            let told = format!("{error} {error:?}").to_lowercase();
            for part in secret.as_bytes().windows(8) {
                let part = std::str::from_utf8(part).unwrap();
                assert!(!told.contains(part), "{text:?} made it say {told}");
            }
        }
    }

    #[test]
    fn debug_output_does_not_contain_the_secret() {
        let key = TicketKey::generate();
        assert!(!format!("{key:?}").contains(&to_hex(key.secret())[..8]));
    }

    #[test]
    fn game_wire_version_and_key_each_change_the_protocol_id() {
        let (one, two) = (TicketKey::generate(), TicketKey::generate());
        let id = one.protocol_id("powder", 3);
        assert_eq!(id, one.protocol_id("powder", 3));
        assert_ne!(id, one.protocol_id("powder", 4));
        assert_ne!(id, one.protocol_id("keg", 3));
        assert_ne!(id, two.protocol_id("powder", 3));
    }
}
