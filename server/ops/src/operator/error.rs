//! [`SettingError`]: errors of an operator's settings, with their place, the expected form and the given value.

use std::collections::BTreeMap;
use std::path::PathBuf;

use twinstep_host::{HostError, JournalFileError};
use twinstep_udp::{LineageFileError, TicketKeyError};

use crate::{AdminError, BansError, OpsError, SidecarError};

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
    #[error("{from}: {why}")]
    Refused { from: String, why: String },
    #[error("{from}: {source}")]
    Secret {
        from: String,
        source: TicketKeyError,
    },
    #[error("{from}: {source}")]
    Token { from: String, source: AdminError },
    #[error("--fleet: {0}")]
    Fleet(#[from] SidecarError),
    #[error(
        "{from}: cannot use {path}: {source}; choose a readable and writable directory{}",
        folder_advice(from)
    )]
    Folder {
        from: String,
        path: PathBuf,
        source: std::io::Error,
    },
    #[error(
        "expected a hard limit of at least {needed} open files, got {hard}: raise it (LimitNOFILE={needed} in a systemd \
         unit; `nofile` in /etc/security/limits.conf for a login; `ulimit -n {needed}` as root)"
    )]
    OpenFiles { needed: u64, hard: u64 },
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
    /// The error for a value that clap accepted, but that is refused; `why` states the expected and the given value.
    #[must_use]
    pub fn refused(name: &str, why: &str) -> SettingError {
        SettingError::Refused {
            from: format!("--{name}"),
            why: why.to_owned(),
        }
    }

    /// Replaces the flag with the place of the value, if the value comes from elsewhere.
    pub(super) fn placed(mut self, places: &BTreeMap<String, String>) -> SettingError {
        if let SettingError::Refused { from, .. }
        | SettingError::Folder { from, .. }
        | SettingError::Secret { from, .. }
        | SettingError::Token { from, .. } = &mut self
            && let Some(place) = places.get(from.trim_start_matches('-'))
        {
            from.clone_from(place);
        }
        self
    }
}

fn folder_advice(from: &str) -> &'static str {
    match from.to_ascii_lowercase().replace('_', "-") {
        // Their default directory is the key file's.
        from if from.ends_with("key-file") => ", or set --state DIR for the state files",
        _ => "",
    }
}

fn variable(name: &str) -> String {
    let name = name.replace('-', "_").to_ascii_uppercase();
    format!("TWINSTEP_{name}")
}
