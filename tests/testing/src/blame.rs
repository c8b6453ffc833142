//! Runs the second process with every [`Change`] at once; if it differs, finds the change that causes the difference.
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
//! Invariant: a change is blamed only if runs with only this change always differ, and runs without any change never
//! do.

use std::collections::BTreeSet;

use twinstep_core::world::World;
use twinstep_core::{Simulation, Tick};

use crate::again::test_name;
use crate::fault::{Found, Kind};
use crate::moments::Trace;
use crate::process::change::Change;
use crate::process::request;
use crate::process::{Judged, ask, judge};

/// The number of runs without a change that must agree before a change is blamed. A value drawn once per process may
/// agree by chance.
const SAME_RUNS: usize = 8;
/// The number of processes that repeat a step in the same way.
const ALIKE: usize = 4;
/// The number of runs with a change that must differ before the change is blamed.
const OTHER_RUNS: usize = 4;
/// The reasons for skipped steps, if no fault was found.
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
        let leaves_folder = changes.iter().any(Change::moves_folder);
        let request = request::compare(self.trace, from_the_middle, leaves_folder);
        match ask(self.check, &self.test, &request, changes) {
            Ok(answer) => judge(&answer, &self.world_at),
            Err(error) => Ok(Judged::LeftOut(format!("it could not be started: {error}"))),
        }
    }

    /// Names the cause of a difference that all changes together produce.
    fn blame(&self, found: Found, changes: &[Change]) -> Found {
        if matches!(found.kind, Kind::Script | Kind::RulesDiffer) {
            // Whatever makes these differ, the fault is in the script or the rules.
            return found;
        }
        for _ in 0..SAME_RUNS {
            if let Err(mut found) = self.ask(false, &[]) {
                if found.kind == Kind::Process && self.is_fixed_by_addresses() {
                    found.kind = Kind::Address;
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

    /// Returns `true` if processes with the same addresses agree, and others do not.
    fn is_fixed_by_addresses(&self) -> bool {
        let request = request::compare(self.trace, false, false);
        let answers = |changes: &[Change]| -> Option<BTreeSet<String>> {
            let answer = |_| {
                let answer = ask(self.check, &self.test, &request, changes).ok()?;
                answer.text().map(str::to_owned)
            };
            (0..SAME_RUNS).map(answer).collect()
        };
        let fixed = answers(&[Change::FixedAddresses]);
        fixed.is_some_and(|fixed| fixed.len() == 1)
            && answers(&[]).is_some_and(|free| free.len() > 1)
    }

    /// Finds the one change that causes the difference, by bisection.
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

/// Runs the second process and judges its reply. `world_at` returns the first process's world after a tick.
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
    let clock: Vec<Change> = Change::of_the_clock().into_iter().collect();
    let mut second = Second::default();
    if clock.is_empty() {
        let why = "libfaketime is not installed (Debian: apt-get install libfaketime)";
        second.same_clock = Some(why.to_owned());
    }
    // A test may need what a change removes; in that case the change is left out.
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

/// Names the cause of a step with two results, if this process could not: repeats the step in other processes.
///
/// ```text
///   two processes with the same addresses ── alike, and otherwise with its memory elsewhere ──▶ an address
///                                         ── alike, and not constant ─────────────────────────▶ a static
///   a process with a frozen clock         ── constant, and otherwise without ─────────────────▶ a clock
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
            // The processes start alike, and then differ, so each keeps something.
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
