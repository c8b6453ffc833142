//! [`check`]: one game, run in ways that must agree, a tick at a time.
//!
//! ```text
//!                      ┌─ once more ─────────────────────────── statics, chance, clocks
//!                      ├─ through serde ─────────────────────── fields that are skipped, hash orders
//!   before + frame ──▶ ├─ over a stray world by clone_from ──── fields that are left behind     ──▶ = after ?
//!                      ├─ as a prediction, on several screens ─ a missing withhold
//!                      └─ on another thread ─────────────────── thread-locals
//!   all of it       ──▶ at once, 1.1 s later, in a second process, where another player did something else
//! ```
//!
//! Invariant: the first way that disagrees at the first tick where one does is what is told; ways that presume that others
//! agree come after these.

mod ways;

use std::panic::Location;
use std::sync::mpsc::channel;
use std::thread;
use std::time::{Duration, Instant};

use twinstep_core::frame::FrameData;
use twinstep_core::world::World;
use twinstep_core::{Simulation, Tick};

use self::ways::{Ways, elsewhere};
use crate::again;
use crate::cause;
use crate::fault::{Fault, Found, Kind};
use crate::line::Line;
use crate::measure;
use crate::process::{self, Second, Trace};
use crate::report::{Report, Size, Tried};
use crate::script::Script;
use crate::steps::Steps;

/// What a clock in seconds needs to move on.
const PAUSE: Duration = Duration::from_millis(1_100);
const SECOND_MATCH: &str = "a second match in the same process";

/// Runs a game in ways that must agree, and names the first fault; without one it says what was tried and what the game
/// costs. Call it in a test:
///
/// ```
/// use twinstep_core::testing::doc::Counter; // your simulation
/// use twinstep_testing::{Script, check};
///
/// let report = check(Counter::default(), (), Script::inputs([0, 1, 2])).unwrap();
/// println!("{report}");
/// ```
///
/// Cost: about ten steps, seven copies and one round of serde for each tick; the same run in a second process; and 1.1 s,
/// after which clocks show.
///
/// # Errors
/// The first [`Fault`]: its kind, tick, fields, advice, and a command that finds it again.
///
/// # Panics
/// If the script's own closures do.
#[track_caller]
pub fn check<S: Simulation>(
    start: S,
    rules: S::Rules,
    mut script: Script<S>,
) -> Result<Report, Fault> {
    let name = process::name(Location::caller());
    script.begin();
    if process::is_second(&name) {
        process::second(start, &rules, script);
    }
    let (seed, ticks) = (script.seed, script.ticks);
    let apart = match (script.apart, process::is_any_second()) {
        (false, _) => Apart::No("the script says so"),
        // The check that it is for stands further down in its test.
        (true, true) => Apart::Settled,
        (true, false) => Apart::Yes(&name),
    };
    let asks_in_vain = !script.answers();
    whole(start, &rules, script, apart).map_err(|found| {
        let mut what = found.what;
        if asks_in_vain && found.kind == Kind::PanicUnanswered {
            what.push_str(" (the script answers nothing: see `Script::outcomes`)");
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

/// Whether there is a second process.
enum Apart<'a> {
    /// None, because of this.
    No(&'static str),
    /// This is one: its first process has seen to it.
    Settled,
    /// One that goes by this name.
    Yes(&'a str),
}

/// All ways, tick by tick; then those that need the whole run.
#[expect(
    clippy::disallowed_methods,
    reason = "says how long it took, and waits for clocks to move on; no verdict depends on it"
)]
fn whole<S: Simulation>(
    start: S,
    rules: &S::Rules,
    script: Script<S>,
    apart: Apart<'_>,
) -> Result<Report, Found> {
    let began = Instant::now();
    let (seed, players, ticks) = (script.seed, script.players, script.ticks);
    let first = script.world(start.clone());
    let mut line = Line::new(start, rules, script)?;
    let mut trace = Trace {
        rules: line.rules_digest(),
        ticks: Vec::new(),
    };
    let mut frames = Vec::new();
    let mut largest = (0, first.clone(), FrameData::empty(Tick(0)));
    let keys = thread::scope(|scope| {
        let (give, work) = channel();
        let (done, take) = channel();
        scope.spawn(move || elsewhere(rules, &work, &done));
        let mut ways = Ways::new(&first, seed, give, take);
        for _ in 0..ticks {
            line.tick()?;
            let bytes = ways.look(&mut line)?;
            trace.ticks.push(line.digests());
            frames.push(line.frame.clone());
            if bytes > largest.0 {
                largest = (bytes, line.before.clone(), line.frame.clone());
            }
        }
        Ok(ways.keys.counts())
    })?;
    if let Err(mut found) = once_more(rules, &first, &frames, &trace, Kind::Static, SECOND_MATCH) {
        // A clock may have moved on by a second meanwhile: then it does so again.
        let now = digests(rules, &first, &frames);
        thread::sleep(PAUSE);
        if digests(rules, &first, &frames) != now {
            found.kind = Kind::Clock;
        }
        return Err(found);
    }
    let waited = Instant::now();
    let second = match apart {
        Apart::No(why) => Second {
            skipped: Some(why.to_owned()),
            same_clock: Some(why.to_owned()),
        },
        Apart::Settled => Second {
            skipped: None,
            same_clock: None,
        },
        Apart::Yes(name) => process::first(name, &trace, |tick| {
            fold(rules, &first, frames.get(..=tick.0 as usize)?)
        })?,
    };
    let pause = PAUSE.saturating_sub(waited.elapsed());
    thread::sleep(pause);
    once_more(
        rules,
        &first,
        &frames,
        &trace,
        Kind::Clock,
        "the same a second later",
    )?;
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
    tried.note(line.happened());
    let travelling = line.values.largest().into_iter();
    let mut sizes: Vec<Size> = travelling
        .map(|(what, bytes, bound)| Size { what, bytes, bound })
        .collect();
    sizes.push(Report::world_size(largest.0));
    Ok(Report {
        game: S::NAME,
        seed,
        untried: tried.missing::<S>(),
        tried,
        sizes,
        costs: measure::costs(&mut line.steps, &largest.1, &largest.2),
        skipped: second.skipped,
        same_clock: second.same_clock,
        took,
    })
}

/// The world after these frames; `None` if the step panics.
fn fold<S: Simulation>(
    rules: &S::Rules,
    first: &World<S>,
    frames: &[FrameData<S>],
) -> Option<World<S>> {
    let (mut world, mut steps) = (first.clone(), Steps::new(rules));
    for frame in frames {
        steps.confirmed(&mut world, frame).ok()?;
    }
    Some(world)
}

/// The digest after each of these frames, as far as the step goes.
fn digests<S: Simulation>(rules: &S::Rules, first: &World<S>, frames: &[FrameData<S>]) -> Vec<u64> {
    let (mut world, mut steps) = (first.clone(), Steps::new(rules));
    let digest = |frame| {
        steps.confirmed(&mut world, frame).ok()?;
        world.digest().ok()
    };
    frames.iter().map_while(digest).collect()
}

/// The whole run once more: the digests must be those of the first.
fn once_more<S: Simulation>(
    rules: &S::Rules,
    first: &World<S>,
    frames: &[FrameData<S>],
    trace: &Trace,
    kind: Kind,
    what: &str,
) -> Result<(), Found> {
    let (mut world, mut steps) = (first.clone(), Steps::new(rules));
    for (frame, (_, digest)) in frames.iter().zip(&trace.ticks) {
        let text = || format!("a match != {what}");
        let before = world.clone();
        if let Err(words) = steps.confirmed(&mut world, frame) {
            return Err(Found::new(kind, frame.tick, format!("{}: {words}", text())));
        }
        if world.digest() != Ok(*digest) {
            // What differs from itself here, too, is no matter of time.
            if let Some(found) = cause::if_impure(rules, &before, frame, &world) {
                return Err(found);
            }
            return Err(Found::new(kind, frame.tick, text()));
        }
    }
    Ok(())
}
