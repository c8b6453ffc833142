//! What is wrong with what an operator chose: where it stands, what was expected, what came.

use std::path::PathBuf;

use twinstep_host::{HostError, JournalFileError};
use twinstep_protocol::text::line;
use twinstep_udp::{LineageFileError, TicketKeyError};

use super::origin::SettingSource;
use crate::{BansError, OpsError, SidecarError};

/// Why a server is not set up as an operator chose.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum SettingError {
    /// Several things are wrong.
    #[error("{} things are wrong:{}", .0.len(), each(.0))]
    Several(Vec<SettingError>),
    /// There is no such setting.
    #[error("{from}: there is no such setting{}", nearest.as_ref().map(|near| format!("; did you mean {near}?")).unwrap_or_default())]
    Unknown {
        /// Where it stands, and how it is called there.
        from: SettingSource,
        /// The nearest one that is known, as it is called there.
        nearest: Option<String>,
    },
    /// A value will not do.
    #[error("{from}: {expected}, got {:?}", line(got))]
    Value {
        /// Where it stands.
        from: SettingSource,
        /// What was expected.
        expected: String,
        /// What came.
        got: String,
    },
    /// Nothing was said, and something must be.
    #[error("expected {name} ({about}): give --{name}, {variable} or, in the file, {name} = ...")]
    Missing {
        /// Which setting.
        name: &'static str,
        /// What it means.
        about: String,
        /// Its variable.
        variable: String,
    },
    /// It means nothing without another one.
    #[error("{from}: it means something only with {}", needs.join(" or "))]
    Alone {
        /// Where it stands.
        from: SettingSource,
        /// One of these is missing.
        needs: Vec<String>,
    },
    /// Two contradict each other.
    #[error("{from}: it cannot be used with {other}")]
    Conflict {
        /// Where the one stands.
        from: SettingSource,
        /// Where the other stands.
        other: SettingSource,
    },
    /// The file cannot be read.
    #[error("cannot read the file of settings {path}: {source}")]
    File {
        /// Which file.
        path: PathBuf,
        /// What the operating system said.
        source: std::io::Error,
    },
    /// The file is no TOML.
    #[error("{path}, line {line}: expected TOML, such as max-players = 8: {what}")]
    Syntax {
        /// Which file.
        path: PathBuf,
        /// Where.
        line: usize,
        /// What is wrong.
        what: String,
    },
    /// A secret, or a file that should hold one.
    #[error("{from}: {source}")]
    Secret {
        /// Where the file was named.
        from: SettingSource,
        /// What is wrong with it.
        source: TicketKeyError,
    },
    /// The manager of the fleet.
    #[error("{from}: {source}")]
    Fleet {
        /// Where it was chosen.
        from: SettingSource,
        /// What went wrong.
        source: SidecarError,
    },
    /// A folder that is to be written.
    #[error("{from}: cannot use {path}: {source}; choose a folder that can be read and written")]
    Folder {
        /// Where it was named.
        from: SettingSource,
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
    /// All errors as one, if there are any.
    pub(super) fn of_all(mut errors: Vec<SettingError>) -> Result<(), SettingError> {
        match errors.len() {
            0 => Ok(()),
            1 => Err(errors.remove(0)),
            _ => Err(SettingError::Several(errors)),
        }
    }
}

/// A row for each.
fn each(errors: &[SettingError]) -> String {
    errors.iter().map(|error| format!("\n- {error}")).collect()
}
