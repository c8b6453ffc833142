//! Runs the second process with every [`Change`] at once; if it differs, finds the change that makes the difference.
//!
//! ```text
//!   all changes, and runs from the middle ── equal ──▶ no fault
//!                                         └─ differs: no change at all, several times
//!                                              ├─ differs: hashes, addresses, chance
//!                                              └─ equal: from the middle, without a change
//!                                                   ├─ differs: a cache
//!                                                   └─ equal: half of the changes, and so on down to one
//! ```
//!
//! Invariant: a change is blamed only if the runs with it alone always differ, and those without any never do.

use std::env;
use std::ffi::OsString;
use std::path::{Path, PathBuf};
use std::process::Command;

use twinstep_core::world::World;
use twinstep_core::{Simulation, Tick};

use super::request::Request;
use super::{Judged, Trace, ask, judge};
use crate::again::test_name;
use crate::fault::{Found, Kind};

/// The time by which libfaketime moves the second process's clock: to another year, month, day, weekday and hour.
const AHEAD: &str = "+401.3d";
/// The runs without a change that must agree before a change is blamed. A value drawn once per process agrees by chance.
const SAME_RUNS: usize = 8;
/// The runs with one change that must differ before it is blamed.
const OTHER_RUNS: usize = 4;
/// Variables that programs and tests need, by their beginnings.
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

/// A difference between the second process and this one.
#[derive(Clone)]
pub(super) enum Change {
    /// The clock is a year ahead, by this library.
    Clock(PathBuf),
    /// A variable of the environment has another value, or none.
    Variable(OsString, Option<&'static str>),
    /// The working folder is another one, from the first tick on.
    Folder,
}

impl Change {
    pub(super) fn apply(&self, to: &mut Command) {
        match self {
            Change::Clock(library) => to
                .env("LD_PRELOAD", library)
                .env("FAKETIME", AHEAD)
                // Sleeps must last as long as they do here.
                .env("FAKETIME_DONT_FAKE_MONOTONIC", "1"),
            Change::Variable(name, Some(value)) => to.env(name, value),
            Change::Variable(name, None) => to.env_remove(name),
            // The request says so.
            Change::Folder => to,
        };
    }

    fn is_clock(&self) -> bool {
        matches!(self, Change::Clock(_))
    }

    /// All changes of the environment.
    fn of_the_environment() -> Vec<Change> {
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

    fn text(&self) -> (Kind, String) {
        match self {
            Change::Clock(_) => (Kind::Clock, "whose clock is a year ahead".to_owned()),
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

/// The reasons for what was skipped, when no fault was found.
#[derive(Default)]
pub(crate) struct Second {
    pub(crate) skipped: Option<String>,
    pub(crate) same_clock: Option<String>,
    pub(crate) same_environment: Option<String>,
}

impl Second {
    pub(crate) fn left_out(why: &str) -> Second {
        Second {
            skipped: Some(why.to_owned()),
            same_clock: Some(why.to_owned()),
            same_environment: Some(why.to_owned()),
        }
    }
}

struct Asking<'a, S: Simulation, F> {
    check: &'a str,
    test: String,
    trace: &'a Trace<S>,
    world_at: F,
}

impl<S: Simulation, F: Fn(Tick) -> Option<World<S>>> Asking<'_, S, F> {
    fn ask(&self, from_the_middle: bool, changes: &[Change]) -> Result<Judged, Found> {
        let leaves_folder = changes
            .iter()
            .any(|change| matches!(change, Change::Folder));
        let request = Request::encode(self.trace, from_the_middle, leaves_folder);
        match ask(self.check, &self.test, &request, changes) {
            Ok(answer) => judge(&answer, &self.world_at),
            Err(error) => Ok(Judged::LeftOut(format!("it could not be started: {error}"))),
        }
    }

    /// Names the cause of a difference that all changes together make.
    fn blame(&self, found: Found, changes: &[Change]) -> Found {
        if matches!(found.kind, Kind::Script | Kind::RulesDiffer) {
            // Whatever makes these differ, the script or the rules are the place to look at.
            return found;
        }
        for _ in 0..SAME_RUNS {
            if let Err(found) = self.ask(false, &[]) {
                return found;
            }
        }
        if let Err(mut found) = self.ask(true, &[]) {
            found.kind = Kind::Cache;
            "this process != a second process, in which matches begin in the middle"
                .clone_into(&mut found.what);
            return found;
        }
        let Some((change, mut by_it)) = self.narrow(changes) else {
            return found;
        };
        let (kind, text) = change.text();
        by_it.kind = kind;
        by_it.what = format!("this process != a second process {text}");
        by_it
    }

    /// Finds the one change that makes the difference, by halves.
    fn narrow(&self, changes: &[Change]) -> Option<(Change, Found)> {
        let mut left = changes.to_vec();
        while left.len() > 1 {
            let other = left.split_off(left.len() / 2);
            if self.ask(false, &left).is_ok() {
                left = other;
            }
        }
        let change = left.pop()?;
        let one = std::slice::from_ref(&change);
        let mut found = self.ask(false, one).err()?;
        for _ in 1..OTHER_RUNS {
            found = self.ask(false, one).err()?;
        }
        Some((change, found))
    }
}

/// Runs the second process and judges its answer. `world_at` returns the first process's world after a tick.
pub(crate) fn first<S: Simulation>(
    check: &str,
    trace: &Trace<S>,
    world_at: impl Fn(Tick) -> Option<World<S>>,
) -> Result<Second, Found> {
    let Some(test) = test_name() else {
        return Ok(Second::left_out("this thread is not named after a test"));
    };
    let asking = Asking {
        check,
        test,
        trace,
        world_at,
    };
    let environment = Change::of_the_environment();
    let clock: Vec<Change> = clock_library().map(Change::Clock).into_iter().collect();
    let mut second = Second::default();
    if clock.is_empty() {
        let why = "libfaketime is not installed (Debian: apt-get install libfaketime)";
        second.same_clock = Some(why.to_owned());
    }
    // A test may need what a change takes from it; it is then left out.
    let all = [&clock[..], &environment].concat();
    for changes in [all, clock, environment, Vec::new()] {
        let has_clock = changes.first().is_some_and(Change::is_clock);
        match asking.ask(true, &changes) {
            Err(found) => return Err(asking.blame(found, &changes)),
            Ok(Judged::Agreed { is_shifted }) => {
                if has_clock && !is_shifted {
                    second.same_clock =
                        Some("libfaketime has no effect on this program".to_owned());
                }
                let left_out = second.skipped.take();
                if changes.len() <= usize::from(has_clock) {
                    second.same_environment.clone_from(&left_out);
                }
                if !has_clock && second.same_clock.is_none() {
                    second.same_clock = left_out;
                }
                return Ok(second);
            }
            Ok(Judged::LeftOut(why)) => second.skipped = Some(why),
        }
    }
    Ok(second)
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
