//! Where a setting's value comes from: flags win over the environment, that over the file, that over defaults.

use std::collections::BTreeMap;
use std::ffi::OsString;
use std::path::{Path, PathBuf};

use clap::ArgMatches;
use toml::de::{DeTable, DeValue};

use super::error::SettingError;
use super::origin::SettingSource;
use super::setting::{ENVIRONMENT_PREFIX, Setting};

/// The setting that names the file of settings.
pub(super) const CONFIG: &str = "config";
/// Bytes of a file of settings.
const FILE_BYTES_MAX: u64 = 1 << 20;
/// A name is near enough if it is at least so alike, of 1.
const ALIKE_MIN: f64 = 0.7;

/// What was said of a setting, and where.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Said {
    pub(super) text: String,
    pub(super) from: SettingSource,
}

/// What each setting was said to be.
pub(super) type Sayings = BTreeMap<&'static str, Said>;

/// What flags said, by name: not looked at yet.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct GivenFlags(BTreeMap<String, String>);

impl GivenFlags {
    /// Takes them from what clap read with flags of these settings.
    pub(super) fn of(settings: &[Setting], matches: &ArgMatches) -> GivenFlags {
        let mut given = BTreeMap::new();
        for setting in settings {
            let name = setting.name();
            if setting.is_switch() {
                if matches.get_flag(name) {
                    given.insert(name.to_owned(), "true".to_owned());
                }
            } else if let Ok(Some(text)) = matches.try_get_one::<String>(name) {
                given.insert(name.to_owned(), text.clone());
            }
        }
        GivenFlags(given)
    }
}

/// Puts together what was said, by whom it counts most.
pub(super) fn gather(
    settings: &[Setting],
    flags: &GivenFlags,
    environment: impl IntoIterator<Item = (OsString, OsString)>,
) -> Result<Sayings, SettingError> {
    let mut said = from_environment(settings, environment)?;
    for setting in settings {
        let name = setting.name();
        if let Some(text) = flags.0.get(name) {
            let from = SettingSource::Flag(name.to_owned());
            let text = text.clone();
            said.insert(name, Said { text, from });
        }
    }
    if let Some(file) = said.get(CONFIG).filter(|file| file.text.is_empty()) {
        return Err(SettingError::Value {
            from: file.from.clone(),
            expected: "expected a file".to_owned(),
            got: String::new(),
        });
    }
    let path = said.get(CONFIG).map(|file| PathBuf::from(&file.text));
    if let Some(path) = path {
        for (name, value) in from_file(settings, &path)? {
            said.entry(name).or_insert(value);
        }
    }
    Ok(said)
}

fn find<'s>(settings: &'s [Setting], name: &str) -> Option<&'s Setting> {
    settings.iter().find(|setting| setting.name() == name)
}

/// The known name that a misspelt one is nearest to, if any is near.
fn nearest(known: impl Iterator<Item = String>, name: &str) -> Option<String> {
    let alike = known.map(|known| (strsim::jaro_winkler(&known, name), known));
    let near = alike.filter(|(alike, _)| *alike >= ALIKE_MIN);
    let nearest = near.max_by(|(a, _), (b, _)| a.total_cmp(b));
    nearest.map(|(_, known)| known)
}

/// What all variables have in common makes none of them near.
fn nearest_variable(settings: &[Setting], name: &str) -> Option<String> {
    let own = |name: &str| name.trim_start_matches(ENVIRONMENT_PREFIX).to_owned();
    let known = settings.iter().map(|setting| own(&setting.variable()));
    let nearest = nearest(known, &own(name))?;
    Some(format!("{ENVIRONMENT_PREFIX}{nearest}"))
}

fn from_environment(
    settings: &[Setting],
    environment: impl IntoIterator<Item = (OsString, OsString)>,
) -> Result<Sayings, SettingError> {
    let mut said = Sayings::new();
    for (name, text) in environment {
        let name = name.to_string_lossy().into_owned();
        if !name.starts_with(ENVIRONMENT_PREFIX) {
            continue;
        }
        let of_name = |setting: &&Setting| setting.variable() == name;
        let Some(setting) = settings.iter().find(of_name) else {
            return Err(SettingError::Unknown {
                nearest: nearest_variable(settings, &name),
                from: SettingSource::Environment(name),
            });
        };
        let from = SettingSource::Environment(name);
        let text = text.to_string_lossy().into_owned();
        said.insert(setting.name(), Said { text, from });
    }
    Ok(said)
}

fn from_file(settings: &[Setting], path: &Path) -> Result<Sayings, SettingError> {
    let failed = |source| SettingError::File {
        path: path.to_owned(),
        source,
    };
    if std::fs::metadata(path).map_err(failed)?.len() > FILE_BYTES_MAX {
        return Err(failed(std::io::ErrorKind::FileTooLarge.into()));
    }
    let text = std::fs::read_to_string(path).map_err(failed)?;
    let line_of = |at: usize| 1 + text[..at.min(text.len())].matches('\n').count();
    let table = DeTable::parse(&text).map_err(|error| SettingError::Syntax {
        path: path.to_owned(),
        line: line_of(error.span().map_or(0, |span| span.start)),
        what: error.message().to_owned(),
    })?;
    let mut said = Sayings::new();
    for (key, value) in table.get_ref() {
        let from = SettingSource::File {
            path: path.to_owned(),
            line: line_of(key.span().start),
            key: key.get_ref().to_string(),
        };
        // A file that names a file would have to be read twice.
        let setting = find(settings, key.get_ref()).filter(|known| known.name() != CONFIG);
        let Some(setting) = setting else {
            let known = settings.iter().map(|known| known.name().to_owned());
            let known = known.filter(|name| name != CONFIG);
            return Err(SettingError::Unknown {
                from,
                nearest: nearest(known, key.get_ref()),
            });
        };
        match text_of(value.get_ref()) {
            Some(text) => said.insert(setting.name(), Said { text, from }),
            None => {
                return Err(SettingError::Value {
                    from,
                    expected: format!("expected {}", setting.range()),
                    got: format!("a TOML {}", value.get_ref().type_str()),
                });
            }
        };
    }
    Ok(said)
}

/// A value as a flag would say it; a list with commas.
fn text_of(value: &DeValue<'_>) -> Option<String> {
    match value {
        DeValue::String(text) => Some(text.to_string()),
        DeValue::Integer(number) if number.radix() == 10 => Some(number.as_str().replace('_', "")),
        DeValue::Boolean(is) => Some(is.to_string()),
        DeValue::Array(list) => {
            let texts: Option<Vec<String>> = list
                .iter()
                .map(|one| match one.get_ref() {
                    DeValue::String(text) => Some(text.to_string()),
                    _ => None,
                })
                .collect();
            Some(texts?.join(","))
        }
        _ => None,
    }
}
