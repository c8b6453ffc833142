//! [`Change`]: a difference between the second process and this one.

use std::env;
use std::ffi::OsString;
use std::io;
use std::path::{Path, PathBuf};
use std::process::{Child, Command};

use crate::fault::Kind;
use crate::sources;

/// The setting with which libfaketime moves the second process's clock: to a different year, month, day, weekday and
/// hour, and at each reading of it by another day, hour, minute and second, so that a run sees all of them.
const AHEAD: &str = "+401.3d i90061";
/// The variable that makes the second process leave out the test's earlier checks.
pub(super) const ALONE: &str = "TWINSTEP_TESTING_ALONE";
/// Prefixes of the environment variables that programs and tests need.
const KEPT: [&str; 23] = [
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
    "FAKETIME",
    "WINE",
    "SYSTEMROOT",
    "WINDIR",
    "COMSPEC",
    "DISPLAY",
    "OUT_DIR",
];
/// Variables that differ in the second process: local times, localised texts, folders and logs.
const CHANGED: [(&str, &str); 9] = [
    ("TZ", "XYZ-13:37"),
    ("LC_ALL", "C"),
    ("LANG", "C"),
    ("HOME", "/another/home"),
    ("USERPROFILE", "/another/home"),
    ("USER", "another-user"),
    ("LOGNAME", "another-user"),
    ("USERNAME", "another-user"),
    ("RUST_LOG", "off"),
];
/// Environment variables that are often set on other machines. The second process sets those that this one lacks.
const COMMON_VARIABLES: [&str; 15] = [
    "CI",
    "DEBUG",
    "DEV",
    "EDITOR",
    "ENV",
    "HOSTNAME",
    "LANGUAGE",
    "LOG",
    "LOG_LEVEL",
    "NO_COLOR",
    "PORT",
    "PROFILE",
    "SEED",
    "TEST",
    "VERBOSE",
];
const COMMON_VALUE: &str = "1";

#[derive(Clone)]
pub(crate) enum Change {
    /// The clock is a year ahead, faked by this library.
    Clock(PathBuf),
    /// The clock stands still, faked by this library.
    Frozen(PathBuf),
    /// The program and its stack lie at the same addresses in each process, where the system's `setarch` can do that.
    FixedAddresses,
    /// A variable of the environment has a different value, or none.
    Variable(OsString, Option<&'static str>),
    /// The working folder is a different one from the first tick onwards.
    Folder,
    /// The process has one core.
    OneCore,
    /// The program has more arguments.
    Arguments,
    /// The earlier checks of the test are left out.
    Alone,
    /// The matches of [`Script::also_on`](crate::Script::also_on) are played first.
    OthersFirst,
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
            Change::Alone => to.env(ALONE, "1"),
            Change::Arguments => to.args(["--color", "never"]),
            // The request contains these changes, or `ask` and `spawn` apply them.
            Change::Folder | Change::FixedAddresses | Change::OneCore | Change::OthersFirst => to,
        };
    }

    pub(crate) fn is_clock(&self) -> bool {
        matches!(self, Change::Clock(_))
    }

    pub(crate) fn is_environment(&self) -> bool {
        matches!(self, Change::Variable(..) | Change::Folder)
    }

    pub(crate) fn moves_folder(&self) -> bool {
        matches!(self, Change::Folder)
    }

    pub(crate) fn fixes_addresses(&self) -> bool {
        matches!(self, Change::FixedAddresses)
    }

    pub(crate) fn takes_cores(&self) -> bool {
        matches!(self, Change::OneCore)
    }

    pub(crate) fn plays_others_first(&self) -> bool {
        matches!(self, Change::OthersFirst)
    }

    pub(crate) fn of_a_frozen_clock() -> Option<Change> {
        clock_library().map(Change::Frozen)
    }

    pub(crate) fn of_the_clock() -> Option<Change> {
        clock_library().map(Change::Clock)
    }

    /// One core, if this process has several and can restrict the second process to one.
    pub(crate) fn of_the_cores() -> Option<Change> {
        (cores::count() > 1).then_some(Change::OneCore)
    }

    pub(crate) fn of_the_environment() -> Vec<Change> {
        let is_kept = |name: &str| {
            let name = name.to_ascii_uppercase();
            KEPT.iter().any(|begin| name.starts_with(begin))
        };
        let is_changed = |name: &str| CHANGED.iter().any(|(it, _)| *it == name);
        let names = env::vars_os().map(|(name, _)| name);
        let removed = names.filter(|name| {
            let name = name.to_string_lossy();
            !is_kept(&name) && !is_changed(&name)
        });
        let removed = removed.map(|name| Change::Variable(name, None));
        let named = sources::variables().iter().map(String::as_str);
        let common = COMMON_VARIABLES.into_iter().chain(named);
        let absent = common
            .filter(|name| env::var_os(name).is_none() && !is_kept(name) && !is_changed(name));
        let added = absent.map(|name| Change::Variable(name.into(), Some(COMMON_VALUE)));
        let changed = CHANGED.map(|(name, value)| Change::Variable(name.into(), Some(value)));
        let folder = (env::current_dir().ok() != Some(env::temp_dir())).then_some(Change::Folder);
        let all = changed.into_iter().chain(removed).chain(added);
        all.chain(folder).collect()
    }

    /// The kind of fault that this change shows, and a description of the second process.
    pub(crate) fn text(&self) -> (Kind, String) {
        let (kind, text) = match self {
            Change::Clock(_) => (
                Kind::Clock,
                "whose clock is a year ahead, and one more day at each reading",
            ),
            Change::Frozen(_) => (Kind::Clock, "whose clock stands still"),
            Change::FixedAddresses => (Kind::Address, "with fixed addresses"),
            Change::Folder => (Kind::Environment, "in another working folder"),
            Change::OneCore => (Kind::Cores, "that has one core"),
            Change::Arguments => (Kind::Environment, "with other arguments of the program"),
            Change::Alone => (
                Kind::Earlier,
                "in which the earlier checks of this test are left out",
            ),
            Change::OthersFirst => (
                Kind::Earlier,
                "in which a match of `Script::also_on` was played before",
            ),
            Change::Variable(name, value) => {
                let how = match (value, env::var_os(name)) {
                    (None, _) => "is not set",
                    (Some(_), None) => "is set",
                    (Some(_), Some(_)) => "differs",
                };
                let name = name.to_string_lossy();
                let text = format!("in which the variable `{name}` {how}");
                return (Kind::Environment, text);
            }
        };
        (kind, text.to_owned())
    }
}

/// Starts the second process, on one core if `OneCore` is among the changes.
pub(crate) fn spawn(command: &mut Command, changes: &[Change]) -> io::Result<Child> {
    match changes.iter().any(Change::takes_cores) {
        true => cores::with_one(|| command.spawn()),
        false => command.spawn(),
    }
}

#[cfg(target_os = "linux")]
mod cores {
    use rustix::thread::{CpuSet, sched_getaffinity, sched_getcpu, sched_setaffinity};

    pub(super) fn count() -> u32 {
        sched_getaffinity(None).map_or(1, |cores| cores.count())
    }

    /// Gives this thread one core while `work` runs. A process that it starts keeps this core.
    pub(super) fn with_one<T>(work: impl FnOnce() -> T) -> T {
        let Ok(all) = sched_getaffinity(None) else {
            return work();
        };
        let mut one = CpuSet::new();
        one.set(sched_getcpu());
        // If the system refuses, the second process has the cores of this one.
        let _ = sched_setaffinity(None, &one);
        let done = work();
        let _ = sched_setaffinity(None, &all);
        done
    }
}

#[cfg(not(target_os = "linux"))]
mod cores {
    pub(super) fn count() -> u32 {
        1
    }

    pub(super) fn with_one<T>(work: impl FnOnce() -> T) -> T {
        work()
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
