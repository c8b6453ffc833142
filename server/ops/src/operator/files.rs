//! Which files a server's secrets and its memory are in, and that they can be read.
//!
//! ```text
//!  key-file        said, else the credential key-file
//!  old-key-file    said, else the credential old-key-file, else KEY-FILE.old if it is there
//!  state           said, else $STATE_DIRECTORY for a credential, else beside the key file
//!                  KEY-FILE.lineages  which tickets are out of date
//!                  KEY-FILE.bans      who is banned
//!                  KEY-FILE.admin     the admin port's token, unless admin-token-file names another
//! ```

use std::path::{Path, PathBuf};

use twinstep_host::internal::load_secret;
use twinstep_udp::{LineageFile, TicketKey, TicketKeyError};

use super::configured::Configured;
use super::error::SettingError;
use super::origin::SettingSource;
use crate::bans;

/// Where everything is.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Files {
    key: (PathBuf, SettingSource),
    old_key: Option<(PathBuf, SettingSource)>,
    pub(super) lineages: PathBuf,
    pub(super) bans: PathBuf,
    pub(super) token: PathBuf,
    token_from: SettingSource,
}

impl Files {
    /// Where they are, by what was chosen.
    pub(super) fn of(configured: &Configured) -> Result<Files, SettingError> {
        let found = |name| find(configured, name);
        let key = configured.expect("key-file", |_| found("key-file"))?;
        let old = named(&key.0, ".old");
        let old_key = found("old-key-file").or_else(|| {
            let is_there = old.exists();
            is_there.then_some((old, SettingSource::Default))
        });
        let own = match (&key.1, &configured.state) {
            (SettingSource::Credential(_), Some(state)) => Some(state.clone()),
            _ => None,
        };
        let state = configured.path("state").or(own);
        let base = match state {
            Some(folder) => folder.join(key.0.file_name().unwrap_or_default()),
            None => key.0.clone(),
        };
        let made = || (named(&base, ".admin"), SettingSource::Default);
        let (token, token_from) = found("admin-token-file").unwrap_or_else(made);
        Ok(Files {
            key,
            old_key,
            lineages: named(&base, ".lineages"),
            bans: named(&base, ".bans"),
            token,
            token_from,
        })
    }

    /// The keys that are alive, the newest first.
    pub(super) fn keys(&self) -> Result<Vec<TicketKey>, SettingError> {
        let mut keys: Vec<TicketKey> = Vec::new();
        for (path, from) in std::iter::once(&self.key).chain(&self.old_key) {
            let key = load(path, from)?;
            // An old one that is the new one, for a moment, is no second key.
            if keys.first() != Some(&key) {
                keys.push(key);
            }
        }
        Ok(keys)
    }

    /// Looks at all but the keys, and makes none.
    pub(super) fn check(&self) -> Result<(), SettingError> {
        LineageFile::load(&self.lineages)?;
        bans::check(&self.bans)?;
        match load(&self.token, &self.token_from) {
            // It is made at the start.
            Err(SettingError::Secret {
                source: TicketKeyError::Missing { .. },
                ..
            }) => Ok(()),
            other => other.map(drop),
        }
    }
}

fn load(path: &Path, from: &SettingSource) -> Result<TicketKey, SettingError> {
    load_secret(path).map_err(|source| SettingError::Secret {
        from: match from {
            SettingSource::Default => SettingSource::Flag("key-file".to_owned()),
            other => other.clone(),
        },
        source,
    })
}

/// The file that was named, or the credential of the setting's name.
fn find(configured: &Configured, name: &str) -> Option<(PathBuf, SettingSource)> {
    if let Some(path) = configured.path(name) {
        return Some((path, configured.source(name)));
    }
    let path = configured.credential(name)?;
    Some((path, SettingSource::Credential(name.to_owned())))
}

/// A file that belongs to another one.
fn named(path: &Path, end: &str) -> PathBuf {
    let mut name = path.as_os_str().to_owned();
    name.push(end);
    name.into()
}
