//! Runs the second process with every [`Change`] at once; if it differs, finds the change that causes the difference.
//!
//! ```text
//!   all changes, and runs from the middle ── equal ──▶ no fault
//!                                         └─ differs: no change at all, several times
//!                                              ├─ always the same difference: a match played before in this process
//!                                              ├─ other differences: hashes, addresses, chance
//!                                              └─ equal: from the middle, without a change
//!                                                   ├─ differs: a cache
//!                                                   └─ equal: half of the changes, and so on down to one
//! ```
//!
//! Invariant: a change is blamed only if runs with only this change always differ, and runs without any change never
//! do.

use std::collections::BTreeSet;

use twinstep_core::world::World;
use twinstep_core::{Simulation, Tick};

use crate::again::test_name;
use crate::fault::{Found, Kind};
use crate::moments::Trace;
use crate::process::change::Change;
use crate::process::request::{self, How};
use crate::process::{self, Judged, ask, judge};

/// The number of runs without a change that must agree before a change is blamed. A value drawn once per process may
/// agree by chance.
const SAME_RUNS: usize = 8;
/// The number of processes that repeat the same step under the same conditions.
const ALIKE: usize = 4;
/// The number of runs with a change that must differ before the change is blamed.
const OTHER_RUNS: usize = 4;
/// The reasons why parts of the check in a second process were skipped, if no fault was found.
#[derive(Default)]
pub(crate) struct Second {
    pub(crate) skipped: Option<String>,
    pub(crate) same_clock: Option<String>,
    pub(crate) same_environment: Option<String>,
    pub(crate) same_cores: Option<String>,
}

impl Second {
    pub(crate) fn left_out(why: &str) -> Second {
        Second {
            skipped: Some(why.to_owned()),
            same_clock: Some(why.to_owned()),
            same_environment: Some(why.to_owned()),
            same_cores: Some(why.to_owned()),
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
        let request = request::compare(self.trace, from_the_middle, How::of(changes));
        match ask(self.check, &self.test, &request, changes) {
            Ok(answer) => judge(&answer, &self.world_at),
            Err(error) => Ok(Judged::LeftOut(format!("it could not be started: {error}"))),
        }
    }

    /// Finds the cause of a difference that appears under all changes together.
    fn blame(&self, found: Found, changes: &[Change]) -> Found {
        if matches!(found.kind, Kind::Script | Kind::RulesDiffer) {
            // Whatever makes these differ, the fault is in the script or the rules.
            return found;
        }
        for _ in 0..SAME_RUNS {
            if let Err(mut found) = self.ask(false, &[]) {
                if found.kind == Kind::Process {
                    self.compare_second_processes(&mut found);
                }
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

    /// Names a difference that no change causes.
    ///
    /// ```text
    ///   second processes ── differ, but not with fixed addresses ──▶ an address
    ///                    ── agree, also with other arguments ──────▶ an earlier match in this process
    ///                    ── agree, but not with other arguments ───▶ the program's arguments
    /// ```
    fn compare_second_processes(&self, found: &mut Found) {
        let request = request::compare(self.trace, false, How::default());
        let answers = |changes: &[Change]| -> Option<BTreeSet<String>> {
            let answer = |_| {
                let answer = ask(self.check, &self.test, &request, changes).ok()?;
                answer.text().map(str::to_owned)
            };
            (0..SAME_RUNS).map(answer).collect()
        };
        let Some(free) = answers(&[]) else { return };
        if free.len() > 1 {
            if answers(&[Change::FixedAddresses]).is_some_and(|fixed| fixed.len() == 1) {
                found.kind = Kind::Address;
            }
        } else if answers(&[Change::Arguments]).is_some_and(|other| other == free) {
            found.kind = Kind::Earlier;
            found.what = format!(
                "this process != each of {SAME_RUNS} second processes, which ran this test alone"
            );
        } else {
            let (kind, text) = Change::Arguments.text();
            found.kind = kind;
            found.what = format!("this process != a second process {text}");
        }
    }

    /// Finds the change that causes the difference, by bisection. Returns `None` if runs with it do not always differ.
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

/// Runs the second process and judges its reply. `has_others` is `true` if it can play other matches first; `world_at`
/// returns the first process's world after a tick.
pub(crate) fn first<S: Simulation>(
    check: &str,
    has_others: bool,
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
    let clock: Vec<Change> = Change::of_the_clock().into_iter().collect();
    let mut rest: Vec<Change> = Change::of_the_cores().into_iter().collect();
    let mut second = Second::default();
    if clock.is_empty() {
        let why = "libfaketime is not installed (Debian: apt-get install libfaketime)";
        second.same_clock = Some(why.to_owned());
    }
    if rest.is_empty() {
        second.same_cores = Some("this process cannot give it fewer".to_owned());
    }
    if has_others {
        rest.push(Change::OthersFirst);
    }
    let all = [&clock[..], &environment, &rest].concat();
    let alone = process::has_earlier_checks().then(|| [&all[..], &[Change::Alone]].concat());
    let by_clock = [&clock[..], &rest].concat();
    let by_environment = [&environment[..], &rest].concat();
    let tries = [all, by_clock, by_environment, Vec::new()];
    // A test may need something that a change removes. In that case the change is left out.
    for changes in alone.into_iter().chain(tries) {
        match asking.ask(true, &changes) {
            Err(found) => return Err(asking.blame(found, &changes)),
            Ok(Judged::Agreed { is_shifted }) => {
                let has = |is: fn(&Change) -> bool| changes.iter().any(is);
                if has(Change::is_clock) && !is_shifted {
                    second.same_clock =
                        Some("libfaketime has no effect on this program".to_owned());
                }
                if let Some(why) = second.skipped.take() {
                    let lacks = |is| (!has(is)).then(|| why.clone());
                    let Second {
                        same_clock,
                        same_environment,
                        same_cores,
                        ..
                    } = &mut second;
                    *same_clock = same_clock.take().or_else(|| lacks(Change::is_clock));
                    *same_environment = lacks(Change::is_environment);
                    *same_cores = same_cores.take().or_else(|| lacks(Change::takes_cores));
                }
                return Ok(second);
            }
            Ok(Judged::LeftOut(why)) => second.skipped = Some(why),
        }
    }
    Ok(second)
}

/// Finds the cause of a step with two results if this process could not, by repeating the step in other processes.
///
/// ```text
///   several processes with equal addresses ── agree, but not if the step's memory moves ──▶ an address
///                                          ── agree, but their results vary ──────────────▶ a static
///   a process with a frozen clock          ── constant results, but not without ──────────▶ a clock
/// ```
pub(crate) fn settle(check: &str, found: &mut Found) {
    let (Some(test), Some(step)) = (test_name(), found.step.take()) else {
        return;
    };
    let repeats = |seed: u64, changes: &[Change]| -> Option<Vec<String>> {
        let answer = ask(check, &test, &request::repeat(&step, seed), changes).ok()?;
        let digests = answer.text()?.strip_prefix("repeats ")?;
        Some(digests.split(',').map(str::to_owned).collect())
    };
    let mut fixed = vec![Change::FixedAddresses];
    if repeats(0, &fixed).is_none() {
        fixed.clear();
    }
    let alike: Option<Vec<_>> = (0..ALIKE).map(|_| repeats(0, &fixed)).collect();
    let Some(alike) = alike else { return };
    if is_constant(&alike) {
        let moves = |seed| {
            let (one, other) = (repeats(seed, &fixed), repeats(seed, &fixed));
            one.is_some() && one == other && one.as_ref() != Some(&alike[0])
        };
        if (1..=ALIKE as u64).any(moves) && repeats(0, &fixed).as_ref() == Some(&alike[0]) {
            found.kind = Kind::Address;
        } else if !is_constant(&alike[0]) {
            // The processes agree, but their results vary between repetitions, so each process keeps a value.
            found.kind = Kind::Static;
        }
        return;
    }
    let clock: Vec<Change> = Change::of_a_frozen_clock().into_iter().collect();
    let frozen = |_| repeats(0, &clock).is_some_and(|digests| is_constant(&digests));
    let stands_still = !clock.is_empty() && (0..ALIKE).all(frozen);
    if stands_still && alike.iter().all(|digests| !is_constant(digests)) {
        found.kind = Kind::Clock;
    } else if found.kind == Kind::Impure {
        found.kind = Kind::Random;
    }
}

fn is_constant<T: PartialEq>(values: &[T]) -> bool {
    values.windows(2).all(|pair| pair[0] == pair[1])
}
