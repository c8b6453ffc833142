//! Finds the reason why one step has two results: repeats it, immediately, after pauses and on other threads, and
//! compares the results.
//!
//! ```text
//!   the repetitions ── differ by the same number each time ──────▶ a counter outside the state
//!                   ── differ more after a pause than without ───▶ a clock
//!                   ── hold the same values in another order ────▶ a hash order
//!                   ── hold numbers close to our own addresses ──▶ an address
//!                   ── go up and down in another way ────────────▶ chance
//! ```

use std::hint::black_box;
use std::thread;
use std::time::Duration;

use twinstep_core::Simulation;
use twinstep_core::diff::Difference;
use twinstep_core::frame::FrameData;
use twinstep_core::world::World;

use crate::fault::{FIELDS_MAX, Found, Kind};
use crate::steps::{Steps, differences};

/// The most fields that are compared to recognise another order.
const LOOKED_AT: usize = 64;
/// The most attempts to catch a step that only sometimes disagrees with itself.
const TRIES: usize = 24;
/// Runs without a pause, and then with a pause before each. With this many, a step with two random results shows both,
/// and goes up and down.
const RUNS: usize = 24;
const PAUSED_RUNS: usize = 3;
const PAUSE: Duration = Duration::from_millis(3);
/// The pause for clocks of whole seconds.
const LONG_PAUSE: Duration = Duration::from_millis(1_100);
/// A number this close to an own address counts as an address.
const NEAR: u64 = 1 << 36;

/// Finds the cause of two results, `truth` and `again`, of one state and one frame.
pub(crate) fn of<S: Simulation>(
    rules: &S::Rules,
    before: &World<S>,
    frame: &FrameData<S>,
    truth: &World<S>,
    again: &World<S>,
) -> Found {
    let fields = differences(truth, again, FIELDS_MAX).unwrap_or_default();
    let mut steps = Steps::<S>::new(rules);
    let mut run = |pause: Duration| {
        if !pause.is_zero() {
            thread::sleep(pause);
        }
        let mut world = before.clone();
        steps.confirmed(&mut world, frame).is_ok().then_some(world)
    };
    let mut runs: Vec<World<S>> = (0..RUNS).filter_map(|_| run(Duration::ZERO)).collect();
    let at_once = runs.len();
    runs.extend((0..PAUSED_RUNS).filter_map(|_| run(PAUSE)));
    let kind = kind(rules, before, frame, truth, &runs, at_once);
    let text = "a step != the same step again, from the same state and frame";
    Found::new(kind, frame.tick, text).at(fields)
}

/// Checks whether the step itself gives two results, after another comparison failed. A random step may agree with
/// itself in some comparisons, and fail in any later one.
pub(crate) fn if_impure<S: Simulation>(
    rules: &S::Rules,
    before: &World<S>,
    frame: &FrameData<S>,
    truth: &World<S>,
) -> Option<Found> {
    let mut steps = Steps::<S>::new(rules);
    let mut tries = (0..TRIES).filter_map(|_| {
        let mut world = before.clone();
        steps.confirmed(&mut world, frame).is_ok().then_some(world)
    });
    let again = tries.find(|world| differences(truth, world, 1).is_some())?;
    Some(of(rules, before, frame, truth, &again))
}

fn kind<S: Simulation>(
    rules: &S::Rules,
    before: &World<S>,
    frame: &FrameData<S>,
    truth: &World<S>,
    runs: &[World<S>],
    at_once: usize,
) -> Kind {
    let fields: Vec<Vec<Difference>> = runs
        .iter()
        .map(|run| differences(truth, run, LOOKED_AT).unwrap_or_default())
        .collect();
    let differing: Vec<&Vec<Difference>> = fields.iter().filter(|f| !f.is_empty()).collect();
    let Some(first) = differing.first().and_then(|fields| fields.first()) else {
        return Kind::Impure;
    };
    if differing.iter().any(|fields| is_reordered(fields)) {
        return Kind::HashOrder;
    }
    // The first differing field, in each run; in runs where it does not differ, its first value.
    let value = |fields: &Vec<Difference>| {
        let same = fields.iter().find(|field| field.path == first.path);
        same.map_or(&first.left, |field| &field.right)
            .parse::<f64>()
    };
    let values: Result<Vec<f64>, _> = fields.iter().map(value).collect();
    let (Ok(values), Ok(at_first)) = (values, first.left.parse::<f64>()) else {
        // A value that is not a number has no direction; but it is visible whether it changes each time.
        let varies = |pair: &[World<S>]| differences(&pair[0], &pair[1], 1).is_some();
        return match runs[..at_once].windows(2).any(varies) {
            true => Kind::Chance,
            false => Kind::Impure,
        };
    };
    if values
        .iter()
        .chain([&at_first])
        .all(|value| is_address(*value))
    {
        return Kind::Address;
    }
    if values.windows(2).all(|pair| pair[0] == pair[1]) {
        // All repetitions agree, and only the first run differs: see whether it changes again within a second.
        thread::sleep(LONG_PAUSE);
        let moved = on_a_thread(rules, before, frame)
            .zip(runs.last())
            .is_some_and(|(later, last)| differences(last, &later, 1).is_some());
        return if moved { Kind::Clock } else { Kind::Impure };
    }
    let steps: Vec<f64> = values.windows(2).map(|pair| pair[1] - pair[0]).collect();
    let goes_up = steps.iter().all(|step| *step >= 0.0);
    let goes_down = steps.iter().all(|step| *step <= 0.0);
    let (quick, slow) = steps.split_at(at_once.saturating_sub(1).min(steps.len()));
    let is_even = |steps: &[f64]| steps.windows(2).all(|pair| pair[0] == pair[1]);
    if is_even(&steps) && steps.first().is_some_and(|step| *step != 0.0) {
        // A thread-local starts again on each new thread, a static does not.
        let mut fresh = (0..2).map(|_| on_a_thread(rules, before, frame));
        return match (fresh.next().flatten(), fresh.next().flatten()) {
            (Some(one), Some(other)) if differences(&one, &other, 1).is_none() => Kind::Thread,
            _ => Kind::Static,
        };
    }
    let most = |steps: &[f64]| {
        steps
            .iter()
            .fold(0.0, |most: f64, step| most.max(step.abs()))
    };
    if (goes_up || goes_down) && most(slow) > most(quick) {
        return Kind::Clock;
    }
    Kind::Chance
}

fn on_a_thread<S: Simulation>(
    rules: &S::Rules,
    before: &World<S>,
    frame: &FrameData<S>,
) -> Option<World<S>> {
    let work = || {
        let mut world = before.clone();
        let mut steps = Steps::<S>::new(rules);
        steps.confirmed(&mut world, frame).is_ok().then_some(world)
    };
    thread::scope(|scope| scope.spawn(work).join().ok().flatten())
}

/// Returns `true` if the fields hold the same values in another order.
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
