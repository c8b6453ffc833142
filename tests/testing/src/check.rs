//! [`check`]: runs one game, tick by tick, in ways that must agree.
//!
//! ```text
//!                      ┌─ again ─────────────────────────────── statics, chance, clocks
//!                      ├─ through serde ─────────────────────── skipped fields, hash orders
//!   before + frame ──▶ ├─ over a stray world by clone_from ──── fields that clone_from omits    ──▶ = after ?
//!                      ├─ as a prediction, on several screens ─ a missing withhold; not in lockstep
//!                      └─ on another thread ─────────────────── thread-locals
//!   all ticks       ──▶ immediately, 1.1 s later, in a second process, with other inputs of another player,
//!                       from the bytes of worlds in the middle
//! ```
//!
//! Invariant: `check` reports the first disagreement in the first tick that has one. A comparison runs after the ones
//! on which it relies.

mod ways;

use std::any::type_name;
use std::panic::Location;
use std::sync::mpsc::channel;
use std::thread;
use std::time::{Duration, Instant};

use twinstep_core::frame::FrameData;
use twinstep_core::world::World;
use twinstep_core::{Simulation, Tick};

use self::ways::{Ways, run_jobs};
use crate::again;
use crate::blame::{self, Second};
use crate::cause;
use crate::fault::{Fault, Found, Kind};
use crate::line::Line;
use crate::measure;
use crate::moments::{self, Moment, Trace};
use crate::process;
use crate::report::{Report, Size, Tried};
use crate::script::Script;
use crate::sources;
use crate::steps::{Steps, fold};
use crate::variants::VariantTally;

/// A pause after which a clock with a resolution of a second has advanced.
const PAUSE: Duration = Duration::from_millis(1_100);
const SECOND_MATCH: &str = "a second match in the same process";

/// Runs a game in several ways that must agree. Returns the first fault, or a report of the features tried and the
/// game's costs. Call it in a test:
///
/// ```
/// use twinstep_core::testing::doc::Counter; // your simulation
/// use twinstep_testing::{Script, check};
///
/// let report = check(Counter::default(), (), Script::inputs([0, 1, 2])).unwrap();
/// println!("{report}");
/// ```
///
/// Cost: about fourteen steps, nine copies and one round trip through serde per tick; in a second process four steps
/// per tick; and a 1.1 s pause that reveals clocks.
///
/// # Errors
/// If the game has a fault. Returns the first [`Fault`]: its kind, tick, fields, advice, and a command that reproduces
/// it.
///
/// # Panics
/// If one of the script's closures panics.
#[track_caller]
pub fn check<S: Simulation>(
    start: S,
    rules: S::Rules,
    mut script: Script<S>,
) -> Result<Report, Fault> {
    let name = process::name(Location::caller());
    script.begin();
    let others = std::mem::take(&mut script.others);
    if process::is_second(&name) {
        process::second(start, &rules, script, &others);
    }
    if process::leaves_out_earlier_checks() {
        return Ok(Report::left_out(&script));
    }
    let (seed, ticks) = (script.seed, script.ticks);
    let second_process = match (script.second_process, process::is_any_second()) {
        (false, _) => SecondProcess::No("the script turns it off"),
        // This process was started for a later check of the same test.
        (true, true) => SecondProcess::Settled,
        (true, false) => SecondProcess::Yes(&name),
    };
    let has_no_answers = !script.answers();
    let may_ask = matches!(second_process, SecondProcess::Yes(_));
    let has_others = !others.is_empty();
    whole(start, &rules, script, has_others, second_process).map_err(|mut found| {
        if may_ask {
            blame::settle(&name, &mut found);
        }
        let mut what = found.what;
        if matches!(found.kind, Kind::LostField | Kind::Lossy) {
            let skipped = sources::skipped_fields(type_name::<S>());
            if !skipped.is_empty() {
                // A skipped value that is computed again may differ in the last digits, like a rounded one.
                found.kind = Kind::LostField;
                what.push_str(&format!("; serde skips {}", skipped.join(", ")));
            }
        }
        if has_no_answers && found.kind == Kind::PanicUnanswered {
            what.push_str(" (the script answers no query: see `Script::outcomes`)");
        }
        Fault {
            kind: found.kind,
            tick: found.tick,
            what,
            fields: found.fields,
            again: again::command(&[("TWINSTEP_SEED", seed), ("TWINSTEP_TICKS", ticks.into())]),
        }
    })
}

enum SecondProcess<'a> {
    No(&'static str),
    /// This is the second process of another check.
    Settled,
    /// The second process finds the check by this name.
    Yes(&'a str),
}

/// Compares tick by tick, then the whole run.
#[expect(
    clippy::disallowed_methods,
    reason = "measures the duration, and waits for clocks to move on; no verdict depends on it"
)]
fn whole<S: Simulation>(
    start: S,
    rules: &S::Rules,
    script: Script<S>,
    has_others: bool,
    second_process: SecondProcess<'_>,
) -> Result<Report, Found> {
    let began = Instant::now();
    let (seed, players, ticks) = (script.seed, script.players, script.ticks);
    let first = script.world(start.clone());
    let mut line = Line::new(start, rules, script)?;
    let mut trace = Trace {
        rules: line.rules_digest(),
        ticks: Vec::new(),
        frames: Vec::new(),
        moments: Vec::new(),
    };
    let mut tally = VariantTally::default();
    let mut largest = (0, first.clone(), FrameData::empty(Tick(0)));
    let keys = thread::scope(|scope| {
        let (give, work) = channel();
        let (done, take) = channel();
        scope.spawn(move || run_jobs(rules, &work, &done));
        let mut ways = Ways::new(&first, seed, give, take);
        for _ in 0..ticks {
            line.tick()?;
            tally.record(&line.frame, &line.emitted.asks, &line.emitted.cues);
            let bytes = ways.compare(&mut line).map_err(|mut found| {
                if found.kind == Kind::Impure
                    && cause::differs_from_its_copies(rules, &first, &trace.frames, &line.frame)
                {
                    found.kind = Kind::Hidden;
                    "a step != the same step of a copy of the state".clone_into(&mut found.what);
                    found.step = None;
                }
                found
            })?;
            let tick = line.frame.tick;
            trace.ticks.push(line.digests());
            trace.frames.push(line.frame.clone());
            if let Some(until) = Moment::until(tick, ticks) {
                let bytes = ways.bytes().to_vec();
                trace.moments.push(Moment { tick, until, bytes });
            }
            if bytes > largest.0 {
                largest = (bytes, line.before.clone(), line.frame.clone());
            }
        }
        Ok(ways.keys.counts())
    })?;
    if let Err(mut found) = once_more(rules, &first, &trace, Kind::Static, SECOND_MATCH) {
        // A clock may have advanced by a second between the runs. In that case it also advances in a pause.
        let now = digests(rules, &first, &trace.frames);
        thread::sleep(PAUSE);
        if digests(rules, &first, &trace.frames) != now {
            found.kind = Kind::Clock;
        }
        return Err(found);
    }
    let Trace {
        ticks: digests,
        frames,
        moments,
        ..
    } = &trace;
    moments::compare(rules, &first, moments, frames, digests)?;
    let waited = Instant::now();
    let is_settled = matches!(second_process, SecondProcess::Settled);
    let second = match second_process {
        SecondProcess::No(why) => Ok(Second::left_out(why)),
        SecondProcess::Settled => Ok(Second::default()),
        SecondProcess::Yes(name) => {
            let ask = || {
                let world_at = |tick: Tick| fold(rules, &first, frames.get(..=tick.0 as usize)?);
                blame::first(name, has_others, &trace, world_at)
            };
            ask().map_err(|found| {
                // Threads keep their order in most runs.
                let frame = &frames[found.tick.0 as usize];
                let before = fold(rules, &first, &frames[..found.tick.0 as usize]);
                let threads = before.is_some_and(|it| cause::starts_threads(rules, &it, frame));
                let is_same = |again: Found| (again.kind, again.tick) == (found.kind, found.tick);
                let is_again = !threads || ask().err().is_some_and(is_same);
                (found, is_again)
            })
        }
    };
    let mut pause = Duration::ZERO;
    if !is_settled {
        pause = PAUSE.saturating_sub(waited.elapsed());
        thread::sleep(pause);
        let later = "the same match a second later";
        // This comes first, because a second process also runs a second later.
        once_more(rules, &first, &trace, Kind::Clock, later)?;
    }
    let second = second.map_err(|(found, is_again)| match is_again {
        true => found,
        false => rare(rules, &first, &trace, found),
    })?;
    let took = began.elapsed().saturating_sub(pause);
    let mut tried = Tried {
        ticks,
        players,
        keys,
        dropped_asks: line.steps.dropped_asks(),
        cues: line.cues,
        withheld_ticks: line.withheld_ticks,
        ..Tried::default()
    };
    tried.record(line.happened());
    let travelling = line.values.largest().into_iter();
    let mut sizes: Vec<Size> = travelling
        .map(|(what, bytes, bound)| Size { what, bytes, bound })
        .collect();
    sizes.push(Report::world_size(largest.0));
    Ok(Report {
        game: S::NAME,
        seed,
        untried: tried.missing::<S>(),
        lacks: tried.lacks::<S>(&largest.1, has_others),
        unused_variants: tally.unused(),
        tried,
        sizes,
        lockstep: !line.predicts(),
        tick_length: largest.1.tick_length(),
        costs: measure::costs(&mut line.steps, &largest.1, &largest.2),
        skipped: second.skipped,
        same_clock: second.same_clock,
        same_environment: second.same_environment,
        same_cores: second.same_cores,
        took,
    })
}

fn digests<S: Simulation>(rules: &S::Rules, first: &World<S>, frames: &[FrameData<S>]) -> Vec<u64> {
    let (mut world, mut steps) = (first.clone(), Steps::new(rules));
    let digest = |frame| {
        steps.confirmed(&mut world, frame).ok()?;
        world.digest().ok()
    };
    frames.iter().map_while(digest).collect()
}

/// Repeats the whole run. Its digests must equal the first run's.
fn once_more<S: Simulation>(
    rules: &S::Rules,
    first: &World<S>,
    trace: &Trace<S>,
    kind: Kind,
    what: &str,
) -> Result<(), Found> {
    let Err(found) = run_again(rules, first, trace, kind, what) else {
        return Ok(());
    };
    let again = run_again(rules, first, trace, kind, what);
    if found.kind == kind && again.is_ok() {
        return Err(rare(rules, first, trace, found));
    }
    Err(found)
}

/// Finds the cause of a fault that was found only once.
fn rare<S: Simulation>(
    rules: &S::Rules,
    first: &World<S>,
    trace: &Trace<S>,
    found: Found,
) -> Found {
    let tick = found.tick.0 as usize;
    match fold(rules, first, &trace.frames[..tick]) {
        Some(before) => cause::of_a_rare_one(rules, &before, &trace.frames[tick], found.fields),
        None => found,
    }
}

fn run_again<S: Simulation>(
    rules: &S::Rules,
    first: &World<S>,
    trace: &Trace<S>,
    kind: Kind,
    what: &str,
) -> Result<(), Found> {
    let (mut world, mut steps) = (first.clone(), Steps::new(rules));
    for (frame, (_, digest)) in trace.frames.iter().zip(&trace.ticks) {
        let text = || format!("a match != {what}");
        let before = world.clone();
        if let Err(words) = steps.confirmed(&mut world, frame) {
            return Err(Found::new(kind, frame.tick, format!("{}: {words}", text())));
        }
        if world.digest() != Ok(*digest) {
            // If the step also disagrees with itself here, time is not the cause.
            if let Some(found) = cause::if_impure(rules, &before, frame, &world) {
                return Err(found);
            }
            return Err(Found::new(kind, frame.tick, text()));
        }
    }
    Ok(())
}
