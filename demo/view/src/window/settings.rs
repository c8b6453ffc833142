//! [`Settings`]: what the player can change during a match, and the file that keeps it.
//!
//! | system | the file |
//! |---|---|
//! | Linux and others | `$XDG_CONFIG_HOME/powderkeg/settings.json`, else `~/.config/powderkeg/settings.json` |
//! | macOS | `~/Library/Application Support/powderkeg/settings.json` |
//! | Windows | `%APPDATA%\powderkeg\settings.json` |
//! | a browser | the page's storage |
//!
//! Invariant: a bad file or folder does not prevent playing. It is reported once, and stays unchanged until the player
//! changes a setting.

use std::io::{self, ErrorKind};
use std::path::{Path, PathBuf};

use glam::{Vec2, vec2};
use serde::{Deserialize, Serialize};

use super::atlas::Atlas;
use super::rect::Rect;
use crate::scene::palette::ColorMode;

#[cfg(not(target_arch = "wasm32"))]
const FILE_BYTES_MAX: u64 = 4 << 10;
const STEPS: u8 = 10;

#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(default)]
pub(crate) struct Settings {
    volume: u8,
    shake: u8,
    flashes: u8,
    pub(crate) colors: ColorMode,
    pub(crate) names: bool,
    pub(crate) large_text: bool,
    // Whether a frame waits for the screen. Used when a window opens.
    pub(crate) vsync: bool,
}

impl Default for Settings {
    fn default() -> Settings {
        Settings {
            volume: 7,
            shake: 8,
            flashes: STEPS,
            colors: ColorMode::default(),
            names: true,
            large_text: false,
            vsync: true,
        }
    }
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum SettingRow {
    Volume,
    Shake,
    Flashes,
    Colors,
    Names,
    Text,
    Vsync,
}

impl SettingRow {
    pub(crate) const ALL: [SettingRow; 7] = [
        SettingRow::Volume,
        SettingRow::Shake,
        SettingRow::Flashes,
        SettingRow::Colors,
        SettingRow::Names,
        SettingRow::Text,
        SettingRow::Vsync,
    ];

    pub(crate) fn page(screen: Rect, scale: f32) -> Rect {
        screen
            .shrunk(14.0 * scale)
            .middle_part(vec2(520.0, 346.0) * scale)
    }

    pub(crate) fn places(screen: Rect, scale: f32) -> [Rect; 7] {
        let mut inside = SettingRow::page(screen, scale).shrunk(22.0 * scale);
        inside.cut_top(48.0 * scale);
        SettingRow::ALL.map(|_| inside.cut_top(32.0 * scale))
    }
}

impl Settings {
    pub(crate) fn volume(&self) -> f32 {
        f32::from(self.volume) / f32::from(STEPS)
    }

    pub(crate) fn shake(&self) -> f32 {
        f32::from(self.shake) / f32::from(STEPS)
    }

    pub(crate) fn flashes(&self) -> f32 {
        f32::from(self.flashes) / f32::from(STEPS)
    }

    // The number of pixels per design pixel in a window of this size.
    pub(crate) fn scale(&self, size: Vec2) -> f32 {
        Atlas::scale_for(size, self.large_text)
    }

    /// Changes a row by a step up or down. A `click` on a full bar empties it.
    pub(crate) fn change(&mut self, row: SettingRow, up: bool, click: bool) {
        let step = |value: &mut u8| match up {
            true if click && *value == STEPS => *value = 0,
            true => *value = (*value + 1).min(STEPS),
            false => *value = value.saturating_sub(1),
        };
        match row {
            SettingRow::Volume => step(&mut self.volume),
            SettingRow::Shake => step(&mut self.shake),
            SettingRow::Flashes => step(&mut self.flashes),
            SettingRow::Colors => self.colors = self.colors.next(up),
            SettingRow::Names => self.names ^= true,
            SettingRow::Text => self.large_text ^= true,
            SettingRow::Vsync => self.vsync ^= true,
        }
    }
}

pub(crate) struct SettingsFile {
    path: Option<PathBuf>,
    /// The settings in the file, or those that would be there if it could be written.
    kept: Settings,
}

#[derive(Debug, thiserror::Error)]
#[error("the settings in {path} cannot be {done} ({why}); {next}", path = path.display())]
pub(crate) struct SettingsError {
    path: PathBuf,
    done: &'static str,
    why: String,
    next: &'static str,
}

impl SettingsFile {
    pub(crate) fn of_user() -> SettingsFile {
        if cfg!(target_arch = "wasm32") {
            return SettingsFile::at(Some("the browser's storage".into()));
        }
        // Relative paths are ignored (XDG Base Directory).
        let place = |name: &str| {
            let path = std::env::var_os(name).map(PathBuf::from);
            path.filter(|path| path.is_absolute())
        };
        let folder = if cfg!(windows) {
            place("APPDATA")
        } else if cfg!(target_os = "macos") {
            place("HOME").map(|home| home.join("Library/Application Support"))
        } else {
            place("XDG_CONFIG_HOME").or_else(|| place("HOME").map(|home| home.join(".config")))
        };
        SettingsFile::at(folder.map(|folder| folder.join("powderkeg/settings.json")))
    }

    fn at(path: Option<PathBuf>) -> SettingsFile {
        SettingsFile {
            path,
            kept: Settings::default(),
        }
    }

    /// Reads the settings. Without a file, returns the defaults.
    ///
    /// # Errors
    /// If the file exists and cannot be used.
    pub(crate) fn load(&mut self) -> Result<Settings, SettingsError> {
        if let Some(path) = &self.path {
            self.kept = match read(path) {
                Err(error) if error.kind() == ErrorKind::NotFound => Settings::default(),
                read => read.map_err(|error| SettingsError {
                    path: path.clone(),
                    done: "used",
                    why: error.to_string(),
                    next: "the defaults are used; fix the file, or change a setting to replace it",
                })?,
            };
        }
        Ok(self.kept.clone())
    }

    /// Writes the settings if they have changed. If the file cannot be written, the next attempt is at the next change.
    ///
    /// # Errors
    /// If the file cannot be written.
    pub(crate) fn keep(&mut self, settings: &Settings) -> Result<(), SettingsError> {
        if *settings == self.kept {
            return Ok(());
        }
        self.kept.clone_from(settings);
        let Some(path) = &self.path else {
            return Ok(());
        };
        write(path, settings).map_err(|error| SettingsError {
            path: path.clone(),
            done: "stored",
            why: error.to_string(),
            next: "they are lost when the window is closed; give write access to the file and its directory",
        })
    }
}

fn read(path: &Path) -> io::Result<Settings> {
    let settings: Settings = serde_json::from_str(&read_text(path)?)?;
    match settings.volume.max(settings.shake).max(settings.flashes) {
        0..=STEPS => Ok(settings),
        beyond => Err(io::Error::other(format!(
            "expected 0 to {STEPS}, got {beyond}"
        ))),
    }
}

fn write(path: &Path, settings: &Settings) -> io::Result<()> {
    write_text(path, serde_json::to_string_pretty(settings)?)
}

#[cfg(target_arch = "wasm32")]
fn read_text(_: &Path) -> io::Result<String> {
    crate::page::kept_settings().ok_or_else(|| ErrorKind::NotFound.into())
}

#[cfg(target_arch = "wasm32")]
fn write_text(_: &Path, text: String) -> io::Result<()> {
    let is_kept = crate::page::keep_settings(&text);
    let refused = || io::Error::other("the browser refuses to store data for this page");
    is_kept.then_some(()).ok_or_else(refused)
}

#[cfg(not(target_arch = "wasm32"))]
fn read_text(path: &Path) -> io::Result<String> {
    use std::io::Read;

    // Opening a pipe or a device here would block the window.
    if !std::fs::metadata(path)?.is_file() {
        return Err(io::Error::other("it is not a regular file"));
    }
    let mut text = String::new();
    std::fs::File::open(path)?
        .take(FILE_BYTES_MAX)
        .read_to_string(&mut text)?;
    Ok(text)
}

/// Replaces the file atomically: a process that is killed meanwhile leaves the old file.
#[cfg(not(target_arch = "wasm32"))]
fn write_text(path: &Path, text: String) -> io::Result<()> {
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

#[cfg(test)]
mod tests {
    use super::*;

    fn file(name: &str) -> (PathBuf, SettingsFile) {
        let folder = format!("powderkeg-settings-{name}-{}", std::process::id());
        let folder = std::env::temp_dir().join(folder);
        let _ = std::fs::remove_dir_all(&folder);
        let path = folder.join("powderkeg/settings.json");
        (folder, SettingsFile::at(Some(path)))
    }

    fn changed() -> Settings {
        let mut settings = Settings::default();
        settings.change(SettingRow::Volume, false, false);
        settings.change(SettingRow::Colors, true, false);
        settings.change(SettingRow::Names, true, true);
        settings
    }

    #[test]
    fn settings_go_from_end_to_end_in_whole_steps_and_a_click_on_a_full_bar_empties_it() {
        let mut settings = Settings::default();
        (0..20).for_each(|_| settings.change(SettingRow::Volume, true, false));
        (0..20).for_each(|_| settings.change(SettingRow::Shake, false, false));
        assert_eq!((settings.volume(), settings.shake()), (1.0, 0.0));
        settings.change(SettingRow::Volume, true, true);
        assert_eq!(settings.volume(), 0.0);
        settings.change(SettingRow::Colors, false, false);
        assert_eq!(settings.colors, ColorMode::Gray);
    }

    #[test]
    fn only_changed_settings_are_written() {
        let (folder, mut file) = file("kept");
        let path = file.path.clone().unwrap();
        assert_eq!(file.load().unwrap(), Settings::default());
        file.keep(&Settings::default()).unwrap();
        assert!(!path.exists());
        file.keep(&changed()).unwrap();
        assert_eq!(
            SettingsFile::at(Some(path.clone())).load().unwrap(),
            changed()
        );
        let files = std::fs::read_dir(path.parent().unwrap()).unwrap().count();
        assert_eq!(files, 1, "no temporary file is left");
        std::fs::remove_dir_all(folder).unwrap();
    }

    #[test]
    fn a_damaged_settings_file_is_reported_and_kept_until_a_setting_changes() {
        let (folder, file) = file("damaged");
        let path = file.path.unwrap();
        std::fs::create_dir_all(path.parent().unwrap()).unwrap();
        for text in [
            &b""[..],
            b"{\"volume\": 4",
            b"{\"volume\": 11}",
            b"{\"colors\": \"Pink\"}",
            b"\xff\xfe\x00",
        ] {
            std::fs::write(&path, text).unwrap();
            let mut file = SettingsFile::at(Some(path.clone()));
            let said = file.load().unwrap_err().to_string();
            assert!(
                !said.contains('\n') && said.contains("the defaults"),
                "{said}"
            );
            file.keep(&Settings::default()).unwrap();
            assert_eq!(std::fs::read(&path).unwrap(), text);
            file.keep(&changed()).unwrap();
            assert_eq!(
                SettingsFile::at(Some(path.clone())).load().unwrap(),
                changed()
            );
        }
        std::fs::remove_dir_all(&folder).unwrap();
        std::fs::create_dir_all(&path).unwrap();
        let mut blocked = SettingsFile::at(Some(path));
        assert!(blocked.load().is_err() && blocked.keep(&changed()).is_err());
        assert!(blocked.keep(&changed()).is_ok(), "not tried again");
        std::fs::remove_dir_all(folder).unwrap();
    }
}
