//! [`Files`]: finds a server's secrets and state files, and checks that they can be read.
//!
//! ```text
//!  key-file        the flag, else the credential key-file
//!  old-key-file    the flag, else the credential old-key-file, else KEY-FILE.old if it exists
//!  state           the flag, else $STATE_DIRECTORY for a credential, else next to the key file
//!                  KEY-FILE.lineages  rulings on tickets
//!                  KEY-FILE.bans      bans
//!                  KEY-FILE.saves     the folder of saved games
//!                  KEY-FILE.web       certificates for browsers, which the server made
//!                  KEY-FILE.admin     the admin port's token, unless admin-token-file names another
//! ```

use std::path::{Path, PathBuf};

use twinstep_host::internal::{CREDENTIALS_VARIABLE, load_secret};
use twinstep_udp::{LineageFile, TicketKey, TicketKeyError};

use super::error::SettingError;
use super::settings::Settings;
use crate::bans;

/// The environment variable in which systemd passes a service's state folder.
const STATE_VARIABLE: &str = "STATE_DIRECTORY";

#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Files {
    /// The key file, and the place that names it; the same for `old_key`.
    key: (PathBuf, String),
    old_key: Option<(PathBuf, String)>,
    pub(super) lineages: PathBuf,
    pub(super) bans: PathBuf,
    pub(super) saves: PathBuf,
    pub(super) web: PathBuf,
    pub(super) token: PathBuf,
    token_from: String,
}

impl Files {
    pub(super) fn of(settings: &Settings) -> Result<Files, SettingError> {
        let named_key = settings.key_file.as_ref();
        let key = find(named_key, "key-file").ok_or(SettingError::Missing {
            name: "key-file",
            about: "the key file for tickets",
        })?;
        let old = named(&key.0, ".old");
        let old_key = find(settings.old_key_file.as_ref(), "old-key-file").or_else(|| {
            let is_there = old.exists();
            is_there.then(|| (old, "--key-file".to_owned()))
        });
        let state = settings.state.clone();
        let state = state.or_else(|| folder_of(STATE_VARIABLE).filter(|_| named_key.is_none()));
        let base = match state {
            Some(folder) => folder.join(key.0.file_name().unwrap_or_default()),
            None => key.0.clone(),
        };
        let made = || (named(&base, ".admin"), "--admin-token-file".to_owned());
        let token = find(settings.admin_token_file.as_ref(), "admin-token-file");
        let (token, token_from) = token.unwrap_or_else(made);
        Ok(Files {
            key,
            old_key,
            lineages: named(&base, ".lineages"),
            bans: named(&base, ".bans"),
            saves: named(&base, ".saves"),
            web: named(&base, ".web"),
            token,
            token_from,
        })
    }

    pub(super) fn keys(&self) -> Result<Vec<TicketKey>, SettingError> {
        let mut keys: Vec<TicketKey> = Vec::new();
        for (path, from) in std::iter::once(&self.key).chain(&self.old_key) {
            let key = load(path, from)?;
            // During a key change, the old file may briefly hold the new key: that is not a second key.
            if keys.first() != Some(&key) {
                keys.push(key);
            }
        }
        Ok(keys)
    }

    pub(super) fn check(&self) -> Result<(), SettingError> {
        LineageFile::load(&self.lineages)?;
        bans::check(&self.bans)?;
        match load_secret(&self.token) {
            // A missing token is created at the start.
            Ok(_) | Err(TicketKeyError::Missing { .. }) => Ok(()),
            Err(error) => Err(SettingError::Token {
                from: self.token_from.clone(),
                source: error.into(),
            }),
        }
    }
}

fn load(path: &Path, from: &str) -> Result<TicketKey, SettingError> {
    load_secret(path).map_err(|source| SettingError::Secret {
        from: from.to_owned(),
        source,
    })
}

/// Returns the given file, or else the credential with the setting's name; and the place that names it.
fn find(named: Option<&PathBuf>, name: &str) -> Option<(PathBuf, String)> {
    if let Some(path) = named {
        return Some((path.clone(), format!("--{name}")));
    }
    let path = folder_of(CREDENTIALS_VARIABLE)?.join(name);
    path.exists().then(|| {
        (
            path,
            format!("the credential {name} (in ${CREDENTIALS_VARIABLE})"),
        )
    })
}

/// The folder that a service manager names in a variable; if there are several, separated by colons, the first.
fn folder_of(variable: &str) -> Option<PathBuf> {
    let value = std::env::var_os(variable)?;
    let first = std::env::split_paths(&value).next();
    first.filter(|path| !path.as_os_str().is_empty())
}

fn named(path: &Path, end: &str) -> PathBuf {
    let mut name = path.as_os_str().to_owned();
    name.push(end);
    name.into()
}
