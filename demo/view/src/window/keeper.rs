//! [`Keeper`]: the settings in a file of the user's, where the system keeps such files.
//!
//! | system | the file |
//! |---|---|
//! | Linux and others | `$XDG_CONFIG_HOME/powderkeg/settings.json`, else `~/.config/powderkeg/settings.json` |
//! | macOS | `~/Library/Application Support/powderkeg/settings.json` |
//! | Windows | `%APPDATA%\powderkeg\settings.json` |
//!
//! `serde_json` reads and writes it. The folder is found by our own code: `dirs` asks the process's environment itself,
//! which a test must not change.
//!
//! Invariant: a bad file or folder keeps nobody from playing. It is reported once. A file that cannot be understood
//! stays as it is until the player changes a setting.

use std::collections::BTreeMap;
use std::ffi::OsString;
use std::fs::File;
use std::io::{self, ErrorKind, Read};
use std::path::{Path, PathBuf};

use serde::{Deserialize, Serialize};

use super::input::Bindings;
use super::palette::ColorMode;
use super::settings::Settings;

/// A longer file is none of ours.
const FILE_BYTES_MAX: u64 = 64 << 10;

#[cfg(windows)]
const MISSING: &str = "APPDATA is not set";
#[cfg(not(windows))]
const MISSING: &str = "HOME is not set";

/// What became of the file.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub(crate) enum KeeperError {
    #[error(
        "settings are lost when the window is closed: {MISSING}, so there is no place to store them; set it"
    )]
    NoPlace,
    #[error(
        "the settings in {path} cannot be read ({source}), so the defaults are used; make the file readable, or remove it"
    )]
    Unreadable { path: PathBuf, source: io::Error },
    #[error(
        "the settings in {path} are damaged ({reason}), so the defaults are used; mend the file, or change a setting to \
         have it written anew"
    )]
    Damaged { path: PathBuf, reason: String },
    #[error(
        "settings cannot be stored in {path} ({source}), so they are lost when the window is closed; make the file and its \
         folder writable"
    )]
    Unwritable { path: PathBuf, source: io::Error },
}

/// See the [module](self).
pub(crate) struct Keeper {
    /// None: there is no place.
    path: Option<PathBuf>,
    /// What the file holds, or would if it could be written.
    kept: Settings,
}

impl Keeper {
    /// That of whoever runs the program.
    pub(crate) fn of_user() -> Keeper {
        Keeper::at(folder(|name| std::env::var_os(name)).map(|folder| folder.join("settings.json")))
    }

    fn at(path: Option<PathBuf>) -> Keeper {
        Keeper {
            path,
            kept: Settings::default(),
        }
    }

    /// What was kept; the usual ones if nothing was.
    ///
    /// # Errors
    /// Something was, and cannot be used: the usual ones hold.
    pub(crate) fn load(&mut self) -> Result<Settings, KeeperError> {
        let Some(path) = &self.path else {
            return Ok(Settings::default());
        };
        let text = match read(path) {
            Ok(text) => text,
            Err(error) if error.kind() == ErrorKind::NotFound => return Ok(Settings::default()),
            Err(source) => {
                let path = path.clone();
                return Err(KeeperError::Unreadable { path, source });
            }
        };
        let saved = serde_json::from_str(&text).map_err(|error| error.to_string());
        self.kept = saved
            .and_then(Saved::settings)
            .map_err(|reason| KeeperError::Damaged {
                path: path.clone(),
                reason,
            })?;
        Ok(self.kept.clone())
    }

    /// Writes these, if they differ from what was written last. A change is tried once: what cannot be written is not
    /// tried again before the next change.
    ///
    /// # Errors
    /// They cannot be written.
    pub(crate) fn keep(&mut self, settings: &Settings) -> Result<(), KeeperError> {
        if *settings == self.kept {
            return Ok(());
        }
        self.kept.clone_from(settings);
        let path = self.path.as_ref().ok_or(KeeperError::NoPlace)?;
        write(path, &Saved::of(settings)).map_err(|source| KeeperError::Unwritable {
            path: path.clone(),
            source,
        })
    }
}

/// Where this system keeps settings, by its environment. What is no full path does not count (XDG Base Directory).
fn folder(variable: impl Fn(&str) -> Option<OsString>) -> Option<PathBuf> {
    let place = |name: &str| {
        variable(name)
            .map(PathBuf::from)
            .filter(|path| path.is_absolute())
    };
    let folder = if cfg!(windows) {
        place("APPDATA")
    } else if cfg!(target_os = "macos") {
        place("HOME").map(|home| home.join("Library/Application Support"))
    } else {
        place("XDG_CONFIG_HOME").or_else(|| place("HOME").map(|home| home.join(".config")))
    };
    folder.map(|folder| folder.join("powderkeg"))
}

fn read(path: &Path) -> io::Result<String> {
    // A pipe or a device in its place would keep the window waiting.
    if !std::fs::metadata(path)?.is_file() {
        return Err(io::Error::other("it is no file"));
    }
    let mut text = String::new();
    File::open(path)?
        .take(FILE_BYTES_MAX)
        .read_to_string(&mut text)?;
    Ok(text)
}

/// As a whole or not at all: whoever is killed meanwhile keeps the old ones.
fn write(path: &Path, saved: &Saved) -> io::Result<()> {
    let text = serde_json::to_string_pretty(saved).map_err(io::Error::other)?;
    if let Some(folder) = path.parent() {
        std::fs::create_dir_all(folder)?;
    }
    let new = path.with_extension(format!("{}.new", std::process::id()));
    let written = std::fs::write(&new, text + "\n").and_then(|()| std::fs::rename(&new, path));
    if written.is_err() {
        let _ = std::fs::remove_file(&new);
    }
    written
}

/// As the file has it. What is missing is as usual.
#[derive(Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
struct Saved {
    volume_percent: u8,
    shake_percent: u8,
    colors: String,
    names: bool,
    keys: BTreeMap<String, String>,
}

impl Default for Saved {
    fn default() -> Saved {
        Saved::of(&Settings::default())
    }
}

impl Saved {
    fn of(settings: &Settings) -> Saved {
        let percent = |part: f32| libm::roundf(part * 100.0) as u8;
        Saved {
            volume_percent: percent(settings.volume),
            shake_percent: percent(settings.shake),
            colors: format!("{:?}", settings.colors),
            names: settings.names,
            keys: settings.keys.to_names(),
        }
    }

    fn settings(self) -> Result<Settings, String> {
        let part = |name: &str, percent: u8| match percent {
            0..=100 => Ok(f32::from(percent) / 100.0),
            _ => Err(format!("expected 0 to 100 of {name}, got {percent}")),
        };
        let named = |mode: &ColorMode| format!("{mode:?}") == self.colors;
        let colors = ColorMode::ALL.into_iter().find(named);
        Ok(Settings {
            volume: part("volume_percent", self.volume_percent)?,
            shake: part("shake_percent", self.shake_percent)?,
            colors: colors.ok_or("expected Safe, Contrast or Gray of colors, got another word")?,
            names: self.names,
            keys: Bindings::of_names(&self.keys)?,
        })
    }
}

#[cfg(test)]
mod tests {
    use macroquad::prelude::KeyCode;

    use super::*;
    use crate::window::input::WindowAct;

    /// A folder in place of the user's.
    struct Home(PathBuf);

    impl Home {
        fn new(name: &str) -> Home {
            let folder = format!("powderkeg-settings-{name}-{}", std::process::id());
            let folder = std::env::temp_dir().join(folder);
            let _ = std::fs::remove_dir_all(&folder);
            std::fs::create_dir_all(&folder).unwrap();
            Home(folder)
        }

        fn file(&self) -> PathBuf {
            self.0.join("powderkeg/settings.json")
        }

        fn keeper(&self) -> Keeper {
            Keeper::at(Some(self.file()))
        }

        fn with(&self, text: impl AsRef<[u8]>) -> Keeper {
            std::fs::create_dir_all(self.file().parent().unwrap()).unwrap();
            std::fs::write(self.file(), text).unwrap();
            self.keeper()
        }
    }

    impl Drop for Home {
        fn drop(&mut self) {
            let _ = std::fs::remove_dir_all(&self.0);
        }
    }

    fn changed() -> Settings {
        let mut settings = Settings::default();
        settings.change_volume(-3);
        settings.change_colors(1);
        settings.names = false;
        settings.keys.bind(WindowAct::Dash, KeyCode::LeftAlt);
        settings
    }

    #[test]
    fn what_was_changed_is_there_in_the_next_match() {
        let home = Home::new("kept");
        let mut keeper = home.keeper();
        assert_eq!(keeper.load().unwrap(), Settings::default());
        keeper.keep(&Settings::default()).unwrap();
        assert!(!home.file().exists(), "nobody changed anything");
        keeper.keep(&changed()).unwrap();
        assert_eq!(home.keeper().load().unwrap(), changed());
        let files = std::fs::read_dir(home.0.join("powderkeg")).unwrap().count();
        assert_eq!(files, 1, "nothing is left lying about");
    }

    #[test]
    fn what_a_file_does_not_tell_is_as_usual() {
        let home = Home::new("part");
        let settings = home.with(r#"{"volume_percent": 40}"#).load().unwrap();
        assert_eq!(settings.volume, 0.4);
        assert_eq!(settings.keys, Bindings::default());
    }

    #[test]
    fn a_damaged_file_is_said_in_a_line_and_stays_until_something_is_changed() {
        let home = Home::new("damaged");
        for text in [
            &b""[..],
            b"{\"volume_percent\": 4",
            b"{\"volume_percent\": 101}",
            b"{\"volume_percent\": -1}",
            b"{\"volume\": 50}",
            b"{\"colors\": \"Pink\"}",
            b"{\"keys\": {\"Dash\": \"W\"}}",
            b"70",
            b"\xff\xfe\x00",
        ] {
            let mut keeper = home.with(text);
            let said = keeper.load().unwrap_err().to_string();
            assert!(
                !said.contains('\n') && said.contains("the defaults are used"),
                "{said}"
            );
            keeper.keep(&Settings::default()).unwrap();
            assert_eq!(std::fs::read(home.file()).unwrap(), text);
            keeper.keep(&changed()).unwrap();
            assert_eq!(home.keeper().load().unwrap(), changed());
        }
    }

    #[test]
    fn what_cannot_be_read_or_written_is_said_once_for_each_change() {
        let home = Home::new("blocked");
        std::fs::create_dir_all(home.file()).unwrap();
        let mut keeper = home.keeper();
        assert!(matches!(keeper.load(), Err(KeeperError::Unreadable { .. })));
        let refused = keeper.keep(&changed());
        assert!(matches!(refused, Err(KeeperError::Unwritable { .. })));
        keeper.keep(&changed()).unwrap();
        let mut nowhere = Keeper::at(None);
        assert_eq!(nowhere.load().unwrap(), Settings::default());
        assert!(matches!(
            nowhere.keep(&changed()),
            Err(KeeperError::NoPlace)
        ));
        nowhere.keep(&changed()).unwrap();
    }

    #[test]
    #[cfg(not(any(windows, target_os = "macos")))]
    fn settings_are_where_the_environment_says() {
        let of = |xdg: Option<&str>, home: Option<&str>| {
            folder(|name| match name {
                "XDG_CONFIG_HOME" => xdg.map(OsString::from),
                "HOME" => home.map(OsString::from),
                _ => None,
            })
        };
        let path = |text: &str| Some(PathBuf::from(text));
        assert_eq!(of(Some("/x"), Some("/users/a")), path("/x/powderkeg"));
        assert_eq!(
            of(None, Some("/users/a")),
            path("/users/a/.config/powderkeg")
        );
        assert_eq!(
            of(Some("x"), Some("/users/a")),
            path("/users/a/.config/powderkeg")
        );
        assert_eq!(of(Some(""), None), None);
    }
}
