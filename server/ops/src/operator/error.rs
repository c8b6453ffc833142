//! [`SettingError`]: errors of an operator's settings, with their place, the expected form and the given value.

use std::path::PathBuf;

use twinstep_host::{HostError, JournalFileError};
use twinstep_udp::{LineageFileError, TicketKeyError};

use crate::{BansError, OpsError, SidecarError};

/// The reason why a server cannot be set up with its settings.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum SettingError {
    /// A required setting is missing.
    #[error(
        "missing {name} ({about}): set --{name}, the variable {} or {name} = ... in the settings file",
        variable(name)
    )]
    Missing {
        /// The name of the setting.
        name: &'static str,
        /// The meaning of the setting.
        about: &'static str,
    },
    /// A value is unusable, for the program or with other settings.
    #[error("--{name}: {why}")]
    Refused {
        /// The name of the setting.
        name: String,
        /// The expected and the given value.
        why: String,
    },
    /// A file with a secret is unusable.
    #[error("{from}: {source}")]
    Secret {
        /// The place where the file was named.
        from: String,
        /// The reason.
        source: TicketKeyError,
    },
    /// The fleet manager failed.
    #[error("--fleet: {0}")]
    Fleet(#[from] SidecarError),
    /// A folder cannot be written.
    #[error("--{name}: cannot use {path}: {source}; choose a folder that can be read and written")]
    Folder {
        /// The setting that names it.
        name: &'static str,
        /// The folder.
        path: PathBuf,
        /// The error of the operating system.
        source: std::io::Error,
    },
    /// The process may open too few files.
    #[error(
        "expected a limit of at least {needed} open files, got {most}: raise it (`ulimit -n {needed}` in a shell, \
         LimitNOFILE={needed} in a unit of systemd)"
    )]
    OpenFiles {
        /// The number that the server needs.
        needed: u64,
        /// The limit of the operating system.
        most: u64,
    },
    /// The file of rulings on tickets is unusable.
    #[error(transparent)]
    Lineages(#[from] LineageFileError),
    /// The file of bans is unusable.
    #[error(transparent)]
    Bans(#[from] BansError),
    /// The journal of an interrupted match is unusable.
    #[error(transparent)]
    Journal(#[from] JournalFileError),
    /// The admin port or the bans are unusable.
    #[error(transparent)]
    Ops(#[from] OpsError),
    /// The server cannot start.
    #[error(transparent)]
    Host(#[from] HostError),
}

impl SettingError {
    /// The error for a value that clap accepted: the expected and the given value.
    #[must_use]
    pub fn refused(name: &str, why: &str) -> SettingError {
        SettingError::Refused {
            name: name.to_owned(),
            why: why.to_owned(),
        }
    }
}

fn variable(name: &str) -> String {
    let name = name.replace('-', "_").to_ascii_uppercase();
    format!("TWINSTEP_{name}")
}
