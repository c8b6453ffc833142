//! [`Change`]: a difference between the second process and this one.

use std::env;
use std::ffi::OsString;
use std::path::{Path, PathBuf};
use std::process::Command;

use crate::fault::Kind;

/// The offset by which libfaketime moves the second process's clock, to a different year, month, day, weekday and hour.
const AHEAD: &str = "+401.3d";
/// Prefixes of the environment variables that programs and tests need.
const KEPT: [&str; 22] = [
    "PATH",
    "LD_",
    "DYLD_",
    "CARGO",
    "RUST",
    "TWINSTEP",
    "NEXTEST",
    "LLVM_",
    "TMP",
    "TEMP",
    "ASAN_",
    "LSAN_",
    "TSAN_",
    "UBSAN_",
    "MIRI",
    "QEMU_",
    "WINE",
    "SYSTEMROOT",
    "WINDIR",
    "COMSPEC",
    "DISPLAY",
    "OUT_DIR",
];

#[derive(Clone)]
pub(crate) enum Change {
    /// The clock is a year ahead, by means of this library.
    Clock(PathBuf),
    /// The clock stands still, by means of this library.
    Frozen(PathBuf),
    /// The program and its stack lie at the same addresses in each process, where the system's `setarch` can do that.
    FixedAddresses,
    /// A variable of the environment has a different value, or none.
    Variable(OsString, Option<&'static str>),
    /// The working folder is a different one from the first tick onwards.
    Folder,
}

impl Change {
    pub(crate) fn apply(&self, to: &mut Command) {
        match self {
            Change::Clock(library) => to
                .env("LD_PRELOAD", library)
                .env("FAKETIME", AHEAD)
                // Sleeps must last as long as they do here.
                .env("FAKETIME_DONT_FAKE_MONOTONIC", "1"),
            Change::Variable(name, Some(value)) => to.env(name, value),
            Change::Variable(name, None) => to.env_remove(name),
            Change::Frozen(library) => to
                .env("LD_PRELOAD", library)
                .env("FAKETIME", "2020-01-01 00:00:00"),
            // The request, or the way to start it, says so.
            Change::Folder | Change::FixedAddresses => to,
        };
    }

    pub(crate) fn is_clock(&self) -> bool {
        matches!(self, Change::Clock(_))
    }

    pub(crate) fn moves_folder(&self) -> bool {
        matches!(self, Change::Folder)
    }

    pub(crate) fn fixes_addresses(&self) -> bool {
        matches!(self, Change::FixedAddresses)
    }

    /// A clock that stands still, if libfaketime is installed.
    pub(crate) fn of_a_frozen_clock() -> Option<Change> {
        clock_library().map(Change::Frozen)
    }

    /// The change of the clock, if libfaketime is installed.
    pub(crate) fn of_the_clock() -> Option<Change> {
        clock_library().map(Change::Clock)
    }

    pub(crate) fn of_the_environment() -> Vec<Change> {
        // Local times, localised texts and folders must differ from this process.
        let set = [
            ("TZ", "XYZ-13:37"),
            ("LC_ALL", "C"),
            ("LANG", "C"),
            ("HOME", "/another/home"),
            ("USERPROFILE", "/another/home"),
            ("USER", "another-user"),
            ("LOGNAME", "another-user"),
            ("USERNAME", "another-user"),
        ];
        let is_kept = |name: &str| {
            let name = name.to_ascii_uppercase();
            KEPT.iter().any(|begin| name.starts_with(begin))
                || set.iter().any(|(it, _)| *it == name)
        };
        let names = env::vars_os().map(|(name, _)| name);
        let removed = names.filter(|name| !is_kept(&name.to_string_lossy()));
        let removed = removed.map(|name| Change::Variable(name, None));
        let set = set.map(|(name, value)| Change::Variable(name.into(), Some(value)));
        let folder = (env::current_dir().ok() != Some(env::temp_dir())).then_some(Change::Folder);
        set.into_iter().chain(removed).chain(folder).collect()
    }

    pub(crate) fn text(&self) -> (Kind, String) {
        match self {
            Change::Clock(_) => (Kind::Clock, "whose clock is a year ahead".to_owned()),
            Change::Frozen(_) => (Kind::Clock, "whose clock stands still".to_owned()),
            Change::FixedAddresses => (Kind::Address, "with fixed addresses".to_owned()),
            Change::Folder => (Kind::Environment, "in another working folder".to_owned()),
            Change::Variable(name, value) => {
                let name = name.to_string_lossy();
                let how = if value.is_some() {
                    "differs"
                } else {
                    "is not set"
                };
                (
                    Kind::Environment,
                    format!("in which the variable `{name}` {how}"),
                )
            }
        }
    }
}

fn clock_library() -> Option<PathBuf> {
    let name = Path::new("faketime/libfaketime.so.1");
    let folders = std::fs::read_dir("/usr/lib").into_iter().flatten();
    let folders = folders.filter_map(|entry| Some(entry.ok()?.path()));
    let folders = folders.chain(["/usr/lib".into(), "/usr/local/lib".into()]);
    folders
        .map(|folder| folder.join(name))
        .find(|path| path.is_file())
}
