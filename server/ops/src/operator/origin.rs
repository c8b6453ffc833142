//! [`SettingSource`]: where a value stands, as an operator finds it again.

use std::fmt;
use std::path::PathBuf;

/// Where a value comes from.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum SettingSource {
    /// This flag, without `--`.
    Flag(String),
    /// This variable of the environment.
    Environment(String),
    /// A key in a file.
    File {
        /// Which file.
        path: PathBuf,
        /// On which line, from 1 on.
        line: usize,
        /// Which key.
        key: String,
    },
    /// A file of this name in the folder of credentials, `$CREDENTIALS_DIRECTORY`.
    Credential(String),
    /// Nothing was said.
    Default,
}

impl fmt::Display for SettingSource {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            SettingSource::Flag(name) => write!(f, "--{name}"),
            SettingSource::Environment(name) => write!(f, "the environment's {name}"),
            SettingSource::File { path, line, key } => {
                write!(f, "{}, line {line}, {key}", path.display())
            }
            SettingSource::Credential(name) => write!(f, "the credential {name}"),
            SettingSource::Default => write!(f, "default"),
        }
    }
}
