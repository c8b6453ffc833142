//! Where a setting's value comes from: flags win over the environment, that over the file, that over defaults.

use std::collections::BTreeMap;
use std::ffi::OsString;
use std::io::Read;
use std::path::{Path, PathBuf};

use clap::ArgMatches;
use toml::de::{DeTable, DeValue};
use twinstep_udp::open_regular;

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

/// All that was said, and what is wrong with it.
#[derive(Default)]
pub(super) struct Gathered {
    pub(super) said: Sayings,
    /// Variables of the environment that look like settings and are an orchestrator's, or are near none.
    pub(super) strange: Vec<String>,
    pub(super) errors: Vec<SettingError>,
}

/// Puts together what was said, by whom it counts most.
pub(super) fn gather(
    settings: &[Setting],
    flags: &GivenFlags,
    environment: impl IntoIterator<Item = (OsString, OsString)>,
) -> Gathered {
    let mut all = Gathered::default();
    from_environment(settings, environment, &mut all);
    for setting in settings {
        let name = setting.name();
        if let Some(text) = flags.0.get(name) {
            let from = SettingSource::Flag(name.to_owned());
            let text = text.clone();
            all.said.insert(name, Said { text, from });
        }
    }
    match all.said.get(CONFIG) {
        None => {}
        Some(file) if file.text.is_empty() => all.errors.push(SettingError::Value {
            from: file.from.clone(),
            expected: "expected a file".to_owned(),
            got: String::new(),
        }),
        Some(file) => {
            let path = PathBuf::from(&file.text);
            if let Err(error) = from_file(settings, &path, &mut all) {
                all.errors.push(error);
            }
        }
    }
    all
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

/// Whether Kubernetes sets a variable of this name and value in each container, for a Service: one that is called like the
/// game is no setting of it.
fn is_service_link(name: &str, value: &str) -> bool {
    let is_url = ["tcp://", "udp://", "sctp://"]
        .iter()
        .any(|scheme| value.starts_with(scheme));
    let is_of_port = || {
        let of_port = name.split_once("_PORT_").map(|(_, port)| port.split('_'));
        of_port.is_some_and(|mut words| {
            let number = words.next().unwrap_or_default();
            let protocol = words.next().unwrap_or_default();
            number.parse::<u16>().is_ok() && ["TCP", "UDP", "SCTP"].contains(&protocol)
        })
    };
    name.ends_with("_SERVICE_HOST")
        || name.ends_with("_SERVICE_PORT")
        || name.contains("_SERVICE_PORT_")
        || name.ends_with("_PORT") && is_url
        || is_of_port()
}

fn from_environment(
    settings: &[Setting],
    environment: impl IntoIterator<Item = (OsString, OsString)>,
    all: &mut Gathered,
) {
    for (name, text) in environment {
        let name = name.to_string_lossy().into_owned();
        if !name.starts_with(ENVIRONMENT_PREFIX) {
            continue;
        }
        let text = text.to_string_lossy().into_owned();
        let of_name = |setting: &&Setting| setting.variable() == name;
        let known = settings.iter().find(of_name);
        let nearest = match known {
            None if !is_service_link(&name, &text) => nearest_variable(settings, &name),
            _ => None,
        };
        match (known, nearest) {
            (Some(setting), _) => {
                let from = SettingSource::Environment(name);
                all.said.insert(setting.name(), Said { text, from });
            }
            (None, None) => all.strange.push(name),
            (None, nearest) => all.errors.push(SettingError::Unknown {
                nearest,
                from: SettingSource::Environment(name),
            }),
        }
    }
}

/// Takes the values of a file for settings that have none yet.
fn from_file(settings: &[Setting], path: &Path, all: &mut Gathered) -> Result<(), SettingError> {
    let failed = |source| SettingError::File {
        path: path.to_owned(),
        source,
    };
    let file = open_regular(path).map_err(failed)?;
    let mut text = String::new();
    file.take(FILE_BYTES_MAX + 1)
        .read_to_string(&mut text)
        .map_err(failed)?;
    if text.len() as u64 > FILE_BYTES_MAX {
        return Err(failed(std::io::ErrorKind::FileTooLarge.into()));
    }
    let line_of = |at: usize| 1 + text[..at.min(text.len())].matches('\n').count();
    let table = DeTable::parse(&text).map_err(|error| SettingError::Syntax {
        path: path.to_owned(),
        line: line_of(error.span().map_or(0, |span| span.start)),
        what: error.message().to_owned(),
    })?;
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
            all.errors.push(SettingError::Unknown {
                from,
                nearest: nearest(known, key.get_ref()),
            });
            continue;
        };
        match text_of(value.get_ref()) {
            Some(text) => {
                let said = Said { text, from };
                all.said.entry(setting.name()).or_insert(said);
            }
            None => all.errors.push(SettingError::Value {
                from,
                expected: format!("expected {}", setting.range()),
                got: format!("a TOML {}", value.get_ref().type_str()),
            }),
        }
    }
    Ok(())
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
