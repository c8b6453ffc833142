//! [`Configured`]: what an operator chose, looked at as a whole, and where each value comes from.

use std::ffi::OsString;
use std::fmt::Write;
use std::net::SocketAddr;
use std::path::PathBuf;
use std::str::FromStr;

use clap::ArgMatches;
use twinstep_host::internal::CREDENTIALS_VARIABLE;

use super::addresses::listened;
use super::error::SettingError;
use super::origin::SettingSource;
use super::setting::Setting;
use super::source::{CONFIG, Gathered, GivenFlags, Said, Sayings, gather};

/// The variable by which systemd names the folder of what a service must find again.
const STATE_VARIABLE: &str = "STATE_DIRECTORY";

/// What an operator chose, and where each value comes from.
///
/// Each getter is for settings of its kind.
///
/// # Panics
/// Getters panic where the table has no setting of that name and kind: that is a mistake in the program.
#[derive(Clone, Debug)]
pub struct Configured {
    settings: Vec<Setting>,
    flags: GivenFlags,
    environment: Vec<(OsString, OsString)>,
    said: Sayings,
    /// Variables that begin like settings and are none: see [`gather`].
    pub(super) strange: Vec<String>,
    /// Secrets that nobody named, and that the service manager has put there.
    credentials: Option<PathBuf>,
    /// Where the service manager lets a service keep what it must find again.
    pub(super) state: Option<PathBuf>,
}

impl Configured {
    /// Reads all of it, and looks at each value, and at all of them together.
    pub(super) fn read(
        settings: Vec<Setting>,
        flags: GivenFlags,
        environment: Vec<(OsString, OsString)>,
    ) -> Result<Configured, SettingError> {
        let Gathered {
            said,
            strange,
            mut errors,
        } = gather(&settings, &flags, environment.iter().cloned());
        for setting in &settings {
            if let Some(Said { text, from }) = said.get(setting.name())
                && let Err(expected) = setting.check(text)
            {
                errors.push(SettingError::Value {
                    from: from.clone(),
                    expected,
                    got: text.clone(),
                });
            }
        }
        let configured = Configured {
            settings,
            said,
            strange,
            flags,
            credentials: folder_of(&environment, CREDENTIALS_VARIABLE),
            state: folder_of(&environment, STATE_VARIABLE),
            environment,
        };
        let together = configured.settings.iter();
        errors.extend(together.filter_map(|setting| configured.check_together(setting).err()));
        SettingError::of_all(errors)?;
        Ok(configured)
    }

    /// By flags alone, without file or environment: for other tasks of a program than its server.
    ///
    /// # Errors
    /// [`SettingError`]: which flag, what was expected, what came.
    pub fn by_flags(
        settings: Vec<Setting>,
        matches: &ArgMatches,
    ) -> Result<Configured, SettingError> {
        let flags = GivenFlags::of(&settings, matches);
        Configured::read(settings, flags, Vec::new())
    }

    /// The same, read again: the file may say something else now.
    pub(super) fn again(&self) -> Result<Configured, SettingError> {
        let (settings, environment) = (self.settings.clone(), self.environment.clone());
        Configured::read(settings, self.flags.clone(), environment)
    }

    fn check_together(&self, setting: &Setting) -> Result<(), SettingError> {
        let Some(said) = self.chosen(setting.name()) else {
            return Ok(());
        };
        let needed = setting.needed();
        if !needed.is_empty() && !needed.iter().any(|other| self.chosen(other).is_some()) {
            let needs = needed.iter().map(|other| format!("--{other}"));
            return Err(SettingError::Alone {
                from: said.from.clone(),
                needs: needs.collect(),
            });
        }
        let excluded = setting.excluded().iter();
        match excluded.filter_map(|other| self.chosen(other)).next() {
            None => Ok(()),
            Some(other) => Err(SettingError::Conflict {
                from: said.from.clone(),
                other: other.from.clone(),
            }),
        }
    }

    /// What somebody said of a setting; who says what holds anyway has chosen nothing.
    fn chosen(&self, name: &str) -> Option<&Said> {
        let said = self.said.get(name)?;
        let setting = self.setting(name);
        let holds_anyway = match setting.is_switch() {
            true => said.text == "false",
            false => setting.default() == Some(&said.text),
        };
        (!holds_anyway).then_some(said)
    }

    /// Whether there is a setting of this name.
    pub(super) fn has(&self, name: &str) -> bool {
        self.settings.iter().any(|setting| setting.name() == name)
    }

    fn setting(&self, name: &str) -> &Setting {
        let found = self.settings.iter().find(|setting| setting.name() == name);
        found.unwrap_or_else(|| panic!("there is no setting {name}"))
    }

    /// What was said, or the default.
    #[must_use]
    pub fn text(&self, name: &str) -> Option<&str> {
        let said = self.said.get(name).map(|said| said.text.as_str());
        said.or(self.setting(name).default())
    }

    /// Where a value comes from.
    #[must_use]
    pub fn source(&self, name: &str) -> SettingSource {
        let said = self.said.get(name);
        said.map_or(SettingSource::Default, |said| said.from.clone())
    }

    /// Whether a switch is on.
    #[must_use]
    pub fn is_on(&self, name: &str) -> bool {
        assert!(self.setting(name).is_switch(), "{name} is no switch");
        self.text(name) == Some("true")
    }

    /// A value read by its type: a number, for example. `None`: nothing was said, and there is no default.
    #[must_use]
    pub fn get<T: FromStr>(&self, name: &str) -> Option<T> {
        self.get_by(name, |text| text.parse())
    }

    /// A value read by the function that checks it.
    #[must_use]
    pub fn get_by<T, E>(&self, name: &str, read: impl FnOnce(&str) -> Result<T, E>) -> Option<T> {
        let text = self.text(name)?;
        let read = read(text).ok();
        Some(read.unwrap_or_else(|| panic!("{name}: {text:?} was checked by another rule")))
    }

    /// A file or folder.
    #[must_use]
    pub fn path(&self, name: &str) -> Option<PathBuf> {
        self.text(name).map(PathBuf::from)
    }

    /// Where a socket listens.
    #[must_use]
    pub fn address(&self, name: &str) -> Option<SocketAddr> {
        self.get_by(name, listened)
    }

    /// As [`get`](Self::get), of what must be said.
    ///
    /// # Errors
    /// [`SettingError::Missing`].
    pub fn expect<T>(
        &self,
        name: &str,
        get: impl FnOnce(&Configured) -> Option<T>,
    ) -> Result<T, SettingError> {
        let setting = self.setting(name);
        get(self).ok_or_else(|| SettingError::Missing {
            name: setting.name(),
            about: setting.about().to_owned(),
            variable: setting.variable(),
        })
    }

    /// An error about a value that only together with others will not do.
    #[must_use]
    pub fn refuse(&self, name: &str, expected: impl Into<String>) -> SettingError {
        SettingError::Value {
            from: self.source(name),
            expected: expected.into(),
            got: self.text(name).unwrap_or_default().to_owned(),
        }
    }

    /// All settings as a file of settings says them, with where each comes from. Secrets are told by their files' names
    /// alone.
    #[must_use]
    pub fn print(&self) -> String {
        let mut out = String::new();
        for setting in &self.settings {
            let name = setting.name();
            if ["check", "print-config"].contains(&name) {
                continue;
            }
            let line = match (self.text(name), setting.is_switch()) {
                // A file that names a file is none.
                (Some(text), _) if name == CONFIG => format!("# config: {text}"),
                (Some(text), _) if setting.is_bare() => format!("{name} = {text}"),
                (Some(text), _) => format!("{name} = {}", quoted(text)),
                (None, _) if setting.is_secret() && self.credential(name).is_some() => {
                    let _ = writeln!(out, "{:<40}  # the credential {name}", format!("# {name}"));
                    continue;
                }
                (None, true) => format!("{name} = false"),
                (None, false) => format!("# {name}: not set"),
            };
            let from = match (self.text(name), setting.otherwise()) {
                (None, Some(otherwise)) => otherwise.to_owned(),
                _ => self.source(name).to_string(),
            };
            let _ = writeln!(out, "{line:<40}  # {from}");
        }
        out
    }

    /// What differs from an earlier reading, by name.
    pub(super) fn differs_from(&self, before: &Configured) -> Vec<&'static str> {
        let names = self.settings.iter().map(Setting::name);
        names
            .filter(|name| self.text(name) != before.text(name))
            .collect()
    }

    /// The file of a secret that nobody named, and that the service manager has put there.
    pub(super) fn credential(&self, name: &str) -> Option<PathBuf> {
        let path = self.credentials.as_ref()?.join(name);
        path.exists().then_some(path)
    }

    pub(super) fn is_secret(&self, name: &str) -> bool {
        self.setting(name).is_secret()
    }
}

/// A variable of the environment that names a folder, or several with colons: then the first.
fn folder_of(environment: &[(OsString, OsString)], name: &str) -> Option<PathBuf> {
    let (_, value) = environment.iter().find(|(key, _)| key == name)?;
    let first = std::env::split_paths(value).next();
    first.filter(|path| !path.as_os_str().is_empty())
}

/// A text as TOML quotes it.
fn quoted(text: &str) -> String {
    let mut out = String::from('"');
    for c in text.chars() {
        match c {
            '"' | '\\' => {
                out.push('\\');
                out.push(c);
            }
            c if c.is_control() => {
                let _ = write!(out, "\\u{:04x}", u32::from(c));
            }
            c => out.push(c),
        }
    }
    out.push('"');
    out
}
