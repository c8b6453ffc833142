//! Finds the reason why one step has two results. Repeats the step immediately, after pauses, on other threads and with
//! its memory at other addresses, and compares the results.
//!
//! ```text
//!   the repetitions ── differ by the same number each time ────────────▶ a counter outside the state
//!                   ── give the same sequence on each new thread ──────▶ a thread-local
//!                   ── differ more after a pause than without ─────────▶ a clock
//!                   ── contain numbers close to our own addresses, or
//!                      differ only if their memory lies elsewhere, or
//!                      never differ on new threads (no heap holes) ────▶ an address
//!                   ── differ, and the step starts threads ────────────▶ the order of threads
//!                   ── differ, and the step creates hashers ───────────▶ a hash order, or a generator from a hasher
//!                   ── differ, and leave no trace ─────────────────────▶ a generator, or the last digits of a clock
//! ```
//!
//! If one process cannot find the cause, `blame` compares several.

use std::hint::black_box;
use std::thread;
use std::time::Duration;

use twinstep_core::diff::Difference;
use twinstep_core::frame::FrameData;
use twinstep_core::world::World;
use twinstep_core::{Simulation, codec};

use crate::fault::{FIELDS_MAX, Found, Kind};
use crate::sent;
use crate::steps::{Steps, differences, fold};
use crate::traces::{LARGE_BYTES, SMALL_BYTES, Traces, elsewhere, fill};

/// The number of fields compared to recognise a different order.
const LOOKED_AT: usize = 64;
/// A step is repeated this many times to detect that its result sometimes varies.
const TRIES: usize = 24;
/// A step is repeated with its memory at this many other places.
const PLACES: u64 = 16;
/// The number of repetitions at each place.
const SAME_PLACE: usize = 3;
/// The number of new threads that must give equal results.
const THREADS: u64 = 6;
/// The number of runs without a pause. In this many runs, a step with two random results shows both, and its values
/// rise and fall.
const RUNS: usize = 24;
const PAUSED_RUNS: usize = 3;
const PAUSE: Duration = Duration::from_millis(3);
/// The pause that reveals clocks with a resolution of a second.
const LONG_PAUSE: Duration = Duration::from_millis(1_100);
/// A number this close to one of the process's addresses counts as an address.
const NEAR: u64 = 1 << 36;

struct Repeatable<'a, S: Simulation> {
    rules: &'a S::Rules,
    before: &'a World<S>,
    frame: &'a FrameData<S>,
}

impl<S: Simulation> Repeatable<'_, S> {
    fn run(&self) -> Option<World<S>> {
        let (mut world, mut steps) = (self.before.clone(), Steps::<S>::new(self.rules));
        let stepped = steps.confirmed(&mut world, self.frame).is_ok();
        stepped.then_some(world)
    }

    fn digest(&self) -> Option<u64> {
        self.run()?.digest().ok()
    }

    /// Repeats the step and drops each world, so that the next one has the same address. Returns the digests.
    fn in_place(&self) -> [Option<u64>; TRIES] {
        let mut digests = [None; TRIES];
        // The first run meets a heap that other code has changed, so its digest is not kept.
        self.digest();
        digests.fill_with(|| self.digest());
        digests
    }

    fn on_a_thread(&self, places: u64) -> Option<[Option<u64>; TRIES]> {
        let work = || elsewhere(places, || self.in_place());
        thread::scope(|scope| scope.spawn(work).join().ok())
    }

    fn depends_on_places(&self) -> bool {
        let here = self.in_place();
        let there = |seed| elsewhere(seed, || self.digest());
        // The place is the cause only if each place always gives the same result.
        let moved = |seed| {
            let one = there(seed);
            one != here[0] && (0..SAME_PLACE).all(|_| there(seed) == one)
        };
        is_constant(&here) && (0..PLACES).any(moved) && self.in_place() == here
    }

    /// Returns `true` if the result changes from run to run, but is the same on new threads: their heaps have no holes,
    /// so each allocation has a higher address than the one before.
    fn depends_on_holes(&self) -> bool {
        let run = || {
            let held = (fill(LARGE_BYTES), fill(SMALL_BYTES));
            let digest = self.digest();
            drop(held);
            digest
        };
        let on_new_threads = || -> Vec<_> {
            thread::scope(|scope| {
                let started: Vec<_> = (0..THREADS).map(|_| scope.spawn(run)).collect();
                started.into_iter().map(|run| run.join().ok()).collect()
            })
        };
        let is_calm = || {
            let digests: Vec<_> = (0..SAME_PLACE).flat_map(|_| on_new_threads()).collect();
            is_constant(&digests)
        };
        let changes = || {
            let there = (0..PLACES).map(|seed| elsewhere(seed, || self.digest()));
            let digests: Vec<_> = there.chain(self.in_place()).collect();
            !is_constant(&digests)
        };
        // Repeated, so that a step whose result rarely changes does not seem calm by chance.
        (0..SAME_PLACE).all(|_| changes() && is_calm())
    }

    fn traces(&self) -> Traces {
        Traces::of(|| drop(self.run()))
    }

    /// Returns `true` if all new threads give the same sequence of results, wherever their memory lies, and the results
    /// within the sequence differ.
    fn counts_in_its_thread(&self) -> bool {
        let runs: Vec<_> = (0..THREADS)
            .map_while(|places| self.on_a_thread(places))
            .collect();
        runs.len() == THREADS as usize && is_constant(&runs) && !is_constant(&runs[0])
    }
}

fn is_constant<T: PartialEq>(values: &[T]) -> bool {
    values.windows(2).all(|pair| pair[0] == pair[1])
}

/// Finds the reason why one state and one frame have two results, `truth` and `again`.
pub(crate) fn of<S: Simulation>(
    rules: &S::Rules,
    before: &World<S>,
    frame: &FrameData<S>,
    truth: &World<S>,
    again: &World<S>,
) -> Found {
    let fields = differences(truth, again, FIELDS_MAX).unwrap_or_default();
    let trial = Repeatable {
        rules,
        before,
        frame,
    };
    let kind = kind(&trial, truth);
    let text = "a step != the same step again, from the same state and frame";
    unsettled(Found::new(kind, frame.tick, text).at(fields), before, frame)
}

/// Adds the step to a fault whose cause one process cannot find.
fn unsettled<S: Simulation>(mut found: Found, before: &World<S>, frame: &FrameData<S>) -> Found {
    let is_settled = !matches!(found.kind, Kind::Chance | Kind::HashOrder | Kind::Impure);
    let mut world = Vec::new();
    if !is_settled && codec::append(before, &mut world).is_ok() {
        found.step = Some((world, sent::frame_bytes(frame)));
    }
    found
}

/// Returns `true` if the step of a world that played these frames differs from the step of its copies, which agree.
pub(crate) fn differs_from_its_copies<S: Simulation>(
    rules: &S::Rules,
    first: &World<S>,
    frames: &[FrameData<S>],
    frame: &FrameData<S>,
) -> bool {
    let differs = || -> Option<bool> {
        let world = fold(rules, first, frames)?;
        let copy = Repeatable {
            rules,
            before: &world.clone(),
            frame,
        };
        let there = (0..PLACES).map(|seed| elsewhere(seed, || copy.digest()));
        // All three are stepped from the same place in the stack.
        let mut worlds = vec![copy.before.clone(), world, copy.before.clone()];
        let mut steps = Steps::<S>::new(rules);
        let mut digests = Vec::new();
        for world in &mut worlds {
            steps.confirmed(world, frame).ok()?;
            digests.push(world.digest().ok());
        }
        let copies: Vec<_> = there.chain([digests[0], digests[2]]).collect();
        Some(is_constant(&copies) && digests[1] != digests[0])
    };
    (0..SAME_PLACE).all(|_| differs() == Some(true))
}

/// Finds the cause for a step that rarely disagrees with itself: a comparison failed once, and then did not.
pub(crate) fn of_a_rare_one<S: Simulation>(
    rules: &S::Rules,
    before: &World<S>,
    frame: &FrameData<S>,
    fields: Vec<Difference>,
) -> Found {
    let trial = Repeatable {
        rules,
        before,
        frame,
    };
    let text = "a step != the same step again, in one of many repetitions";
    let found = Found::new(by_traces(&trial, is_reordered(&fields)), frame.tick, text);
    unsettled(found.at(fields), before, frame)
}

/// Checks, after another comparison failed, whether the step itself gives two results. A random step may pass some
/// comparisons and fail any later one.
pub(crate) fn if_impure<S: Simulation>(
    rules: &S::Rules,
    before: &World<S>,
    frame: &FrameData<S>,
    truth: &World<S>,
) -> Option<Found> {
    let trial = Repeatable {
        rules,
        before,
        frame,
    };
    let here = (0..TRIES).filter_map(|_| trial.run());
    let there = (0..PLACES).filter_map(|seed| elsewhere(seed, || trial.run()));
    let again = here
        .chain(there)
        .find(|world| differences(truth, world, 1).is_some())?;
    Some(of(rules, before, frame, truth, &again))
}

fn kind<S: Simulation>(trial: &Repeatable<'_, S>, truth: &World<S>) -> Kind {
    let mut runs: Vec<World<S>> = (0..RUNS).filter_map(|_| trial.run()).collect();
    let at_once = runs.len();
    runs.extend((0..PAUSED_RUNS).filter_map(|_| {
        thread::sleep(PAUSE);
        trial.run()
    }));
    let fields: Vec<Vec<Difference>> = runs
        .iter()
        .map(|run| differences(truth, run, LOOKED_AT).unwrap_or_default())
        .collect();
    let mut differing = fields.iter().filter(|fields| !fields.is_empty());
    let Some(first) = differing.clone().next().and_then(|fields| fields.first()) else {
        return by_traces(trial, false);
    };
    let is_reordered = differing.any(|fields| is_reordered(fields));
    let traces = trial.traces();
    if traces.starts_threads && !traces.hashes {
        // Threads rarely change their order, so the differences look like those of a clock or of another thread.
        return Kind::ThreadOrder;
    }
    // The first differing field's value in each run; the original value where the field does not differ.
    let value = |fields: &Vec<Difference>| {
        let same = fields.iter().find(|field| field.path == first.path);
        same.map_or(&first.left, |field| &field.right)
            .parse::<f64>()
    };
    let values: Result<Vec<f64>, _> = fields.iter().map(value).collect();
    if let (false, Ok(values), Ok(at_first)) = (is_reordered, values, first.left.parse::<f64>())
        && let Some(kind) = by_numbers(trial, at_first, &values, at_once)
    {
        return kind;
    }
    let digests: Vec<Option<u64>> = runs.iter().map(|run| run.digest().ok()).collect();
    if is_constant(&digests) {
        return by_one_result(trial, truth, digests[0]);
    }
    if is_constant(&digests[..at_once]) {
        return Kind::Clock;
    }
    if trial.counts_in_its_thread() {
        return Kind::Thread;
    }
    by_traces(trial, is_reordered)
}

/// Infers the cause from the traces that the step leaves; [`Kind::Impure`] if they do not show one cause.
fn by_traces<S: Simulation>(trial: &Repeatable<'_, S>, is_reordered: bool) -> Kind {
    let traces = trial.traces();
    if traces.starts_threads && !traces.hashes {
        return Kind::ThreadOrder;
    }
    if trial.depends_on_places() || trial.depends_on_holes() {
        return Kind::Address;
    }
    match (traces.starts_threads, traces.hashes) {
        (false, true) if is_reordered => Kind::HashOrder,
        (false, true) => Kind::Chance,
        _ => Kind::Impure,
    }
}

/// Returns `true` if the step starts threads, so that a comparison may fail because of their order.
pub(crate) fn starts_threads<S: Simulation>(
    rules: &S::Rules,
    before: &World<S>,
    frame: &FrameData<S>,
) -> bool {
    let trial = Repeatable {
        rules,
        before,
        frame,
    };
    trial.traces().starts_threads
}

/// Infers the cause from the numbers in one field; `None` if they do not show it.
fn by_numbers<S: Simulation>(
    trial: &Repeatable<'_, S>,
    at_first: f64,
    values: &[f64],
    at_once: usize,
) -> Option<Kind> {
    if values
        .iter()
        .chain([&at_first])
        .all(|value| is_address(*value))
    {
        return Some(Kind::Address);
    }
    let steps: Vec<f64> = values.windows(2).map(|pair| pair[1] - pair[0]).collect();
    let goes_up = steps.iter().all(|step| *step >= 0.0);
    let goes_down = steps.iter().all(|step| *step <= 0.0);
    if is_constant(&steps) && steps.first().is_some_and(|step| *step != 0.0) {
        // A thread-local starts again on each new thread, a static does not.
        return Some(match trial.counts_in_its_thread() {
            true => Kind::Thread,
            false => Kind::Static,
        });
    }
    let (quick, slow) = steps.split_at(at_once.saturating_sub(1).min(steps.len()));
    let most = |steps: &[f64]| {
        steps
            .iter()
            .fold(0.0, |most: f64, step| most.max(step.abs()))
    };
    ((goes_up || goes_down) && most(slow) > most(quick)).then_some(Kind::Clock)
}

/// Infers the cause if all repetitions agree and only the first run differs.
fn by_one_result<S: Simulation>(
    trial: &Repeatable<'_, S>,
    truth: &World<S>,
    last: Option<u64>,
) -> Kind {
    if trial.depends_on_places() {
        return Kind::Address;
    }
    if trial.counts_in_its_thread() {
        return Kind::Thread;
    }
    thread::sleep(LONG_PAUSE);
    let later = trial.on_a_thread(0).and_then(|digests| digests[0]);
    if later == truth.digest().ok() {
        // Another thread gives the first result of this one.
        return by_traces(trial, false);
    }
    if later.is_some() && later != last {
        return Kind::Clock;
    }
    by_traces(trial, false)
}

/// Returns `true` if the fields hold the same values in a different order, or one is a key of a map.
pub(crate) fn is_reordered(fields: &[Difference]) -> bool {
    if fields.iter().any(|field| field.path.contains("keys()[")) {
        return true;
    }
    let mut left: Vec<&str> = fields.iter().map(|field| field.left.as_str()).collect();
    let mut right: Vec<&str> = fields.iter().map(|field| field.right.as_str()).collect();
    left.sort_unstable();
    right.sort_unstable();
    left.len() >= 2 && left == right
}

/// Returns `true` if a number is close to an address in our own memory.
pub(crate) fn is_address(number: f64) -> bool {
    let (on_heap, on_stack) = (Box::new(0_u8), 0_u8);
    let in_program: fn(f64) -> bool = is_address;
    let places = [
        &raw const *black_box(&on_heap) as u64,
        &raw const *black_box(&on_stack) as u64,
        in_program as usize as u64,
    ];
    let number = number as u64;
    number > NEAR && places.iter().any(|place| place.abs_diff(number) < NEAR)
}
