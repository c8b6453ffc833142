//! Why one step has two results: more runs of it, at once, later, elsewhere, and what they have in common.
//!
//! ```text
//!   the same, a few more times ── the same number more each time ─────▶ a counter outside the state
//!                              ── more after a pause than without ────▶ a clock
//!                              ── the same values in another order ───▶ a hash order
//!                              ── numbers like those of our memory ───▶ an address
//!                              ── anything else that goes up and down ▶ chance
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

/// Fields that are looked at to tell an order from other differences.
const LOOKED_AT: usize = 64;
/// Tries to catch a step that disagrees with itself now and then.
const TRIES: usize = 24;
/// Runs at once, and then after a pause each. So many that what has two results by chance shows both, and goes up and down.
const RUNS: usize = 24;
const PAUSED_RUNS: usize = 3;
const PAUSE: Duration = Duration::from_millis(3);
/// For clocks of whole seconds.
const LONG_PAUSE: Duration = Duration::from_millis(1_100);
/// How far from our own memory a number may be to be taken for an address.
const NEAR: u64 = 1 << 36;

/// `truth` and `again` came of one state and one frame, and differ.
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
    let text = "a step != the same step once more, from the same state and frame";
    Found::new(kind, frame.tick, text).at(fields)
}

/// Whether the step itself gives two results, now that some way of running it has disagreed: chance may agree with itself
/// for a while, and then speak up anywhere.
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
    // The first field that differs, in each run; where it did not, it is what it was at first.
    let value = |fields: &Vec<Difference>| {
        let same = fields.iter().find(|field| field.path == first.path);
        same.map_or(&first.left, |field| &field.right)
            .parse::<f64>()
    };
    let values: Result<Vec<f64>, _> = fields.iter().map(value).collect();
    let (Ok(values), Ok(at_first)) = (values, first.left.parse::<f64>()) else {
        // What is no number has no direction; but whether it changes each time is plain.
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
        // It moved on once, between the first run and these: does it again within a second?
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
        // On threads of their own, a thread-local begins anew.
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

/// One step on a thread that never stepped before.
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

/// Whether the fields hold the same values in another order.
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

/// Whether a number lies near what lies in our own memory.
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
