//! [`SettingError`]: errors of an operator's settings, with their place, the expected form and the given value.

use std::path::PathBuf;

use twinstep_host::{HostError, JournalFileError};
use twinstep_udp::{LineageFileError, TicketKeyError};

use crate::{BansError, OpsError, SidecarError};

/// The reason why a server cannot be set up with its settings.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
#[expect(missing_docs, reason = "the messages name the fields")]
pub enum SettingError {
    #[error(
        "missing {name} ({about}): set --{name}, the variable {} or {name} = ... in the settings file",
        variable(name)
    )]
    Missing {
        name: &'static str,
        about: &'static str,
    },
    #[error("--{name}: {why}")]
    Refused { name: String, why: String },
    #[error("{from}: {source}")]
    Secret {
        from: String,
        source: TicketKeyError,
    },
    #[error("--fleet: {0}")]
    Fleet(#[from] SidecarError),
    #[error("--{name}: cannot use {path}: {source}; choose a folder that can be read and written")]
    Folder {
        name: &'static str,
        path: PathBuf,
        source: std::io::Error,
    },
    #[error(
        "expected a limit of at least {needed} open files, got {most}: raise it (`ulimit -n {needed}` in a shell, \
         LimitNOFILE={needed} in a unit of systemd)"
    )]
    OpenFiles { needed: u64, most: u64 },
    #[error(transparent)]
    Lineages(#[from] LineageFileError),
    #[error(transparent)]
    Bans(#[from] BansError),
    #[error(transparent)]
    Journal(#[from] JournalFileError),
    #[error(transparent)]
    Ops(#[from] OpsError),
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
