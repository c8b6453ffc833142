//! What is wrong with what an operator chose: where it stands, what was expected, what came.

use std::path::PathBuf;

use twinstep_host::{HostError, JournalFileError};
use twinstep_udp::{LineageFileError, TicketKeyError};

use crate::{BansError, OpsError, SidecarError};

/// Why a server is not set up as an operator chose.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum SettingError {
    /// A setting that must be given is missing.
    #[error(
        "expected {name} ({about}): give --{name}, {} or, in the file, {name} = ...",
        variable(name)
    )]
    Missing {
        /// Its name.
        name: &'static str,
        /// Its meaning.
        about: &'static str,
    },
    /// A value will not do, as the program or other settings have it.
    #[error("--{name}: {why}")]
    Refused {
        /// The name of the setting.
        name: String,
        /// What was expected, and what came.
        why: String,
    },
    /// A secret, or a file that should hold one.
    #[error("{from}: {source}")]
    Secret {
        /// Where the file was named.
        from: String,
        /// What is wrong with it.
        source: TicketKeyError,
    },
    /// The manager of the fleet.
    #[error("--fleet: {0}")]
    Fleet(#[from] SidecarError),
    /// A folder that is to be written.
    #[error("--{name}: cannot use {path}: {source}; choose a folder that can be read and written")]
    Folder {
        /// The setting that named it.
        name: &'static str,
        /// Which folder.
        path: PathBuf,
        /// What the operating system said.
        source: std::io::Error,
    },
    /// The process may open too few files.
    #[error(
        "expected to be allowed {needed} open files, but the limit is {most}: raise it (`ulimit -n {needed}` in a shell, \
         LimitNOFILE={needed} in a unit of systemd)"
    )]
    OpenFiles {
        /// As many as the server needs.
        needed: u64,
        /// As many as the operating system grants.
        most: u64,
    },
    /// Which tickets are out of date.
    #[error(transparent)]
    Lineages(#[from] LineageFileError),
    /// Who is banned.
    #[error(transparent)]
    Bans(#[from] BansError),
    /// A journal that was cut off.
    #[error(transparent)]
    Journal(#[from] JournalFileError),
    /// The admin port, or the bans.
    #[error(transparent)]
    Ops(#[from] OpsError),
    /// The server cannot start.
    #[error(transparent)]
    Host(#[from] HostError),
}

impl SettingError {
    /// An error about a value that clap took, in words: what was expected, and what came.
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
