//! Runs that start in the middle from the bytes of a world, like the run of a late joiner, each on a new thread and
//! with different addresses in memory.
//!
//! ```text
//!   the match       ──▶ t0 ─────────── t75 ───────── t150 ───────── t225 ─── …
//!   from its worlds                     └─ a new thread ─────────────▶│
//!                                                      └─ a new thread ──────────────▶│
//! ```
//!
//! Invariant: each tick after the second moment is stepped by at least two of these runs, and one run goes from the
//! middle to the end. In the second process the latest run comes first, so that caches are filled differently from
//! those here.

use std::thread;

use twinstep_core::codec;
use twinstep_core::frame::FrameData;
use twinstep_core::world::World;
use twinstep_core::{Simulation, Tick};

use crate::cause;
use crate::fault::{FIELDS_MAX, Found, Kind};
use crate::steps::{Steps, differences, fold};
use crate::traces::stir;

/// A run has this many equal parts. A moment lies between two of them.
const PARTS: u32 = 8;
/// A run from a moment takes this many parts, except that the run from the middle goes to the end.
const LASTS: u32 = 2;
/// The number of runs from one moment, on new threads, that must agree before a cache is blamed.
const TRIES: usize = 3;

/// A whole run: the digests of the rules, of all frames and of the worlds after them; and the data that a run from the
/// middle needs.
pub(crate) struct Trace<S: Simulation> {
    pub(crate) rules: u64,
    pub(crate) ticks: Vec<(u64, u64)>,
    pub(crate) frames: Vec<FrameData<S>>,
    pub(crate) moments: Vec<Moment>,
}

/// The bytes of a world, and the end of the run that starts with it.
pub(crate) struct Moment {
    pub(crate) tick: Tick,
    pub(crate) until: Tick,
    pub(crate) bytes: Vec<u8>,
}

impl Moment {
    /// Returns the end of the run that starts at `tick`, in a match of this many ticks; `None` if no run starts there.
    pub(crate) fn until(tick: Tick, ticks: u32) -> Option<Tick> {
        let part = (1..PARTS).find(|part| tick.0 == ticks / PARTS * part && tick.0 > 0)?;
        Some(Tick(match part == PARTS / 2 {
            true => ticks,
            false => ticks.min(ticks / PARTS * (part + LASTS)),
        }))
    }

    /// Steps from this moment to the end of its run. Returns the first tick with a failed step or a different world,
    /// with the error or the world. Returns `None` if all worlds agree, if this moment's world cannot be decoded, or if
    /// frames or digests are missing.
    pub(crate) fn run<S: Simulation>(
        &self,
        rules: &S::Rules,
        frames: &[FrameData<S>],
        digests: &[(u64, u64)],
    ) -> Option<(Tick, Differs<S>)> {
        let mut world = codec::decode_whole::<World<S>>(&self.bytes).ok()?;
        let mut steps = Steps::new(rules);
        let part = self.tick.0 as usize..self.until.0 as usize;
        let frames = frames.get(part.clone())?.iter().zip(digests.get(part)?);
        for (frame, (_, digest)) in frames {
            if let Err(words) = steps.confirmed(&mut world, frame) {
                return Some((frame.tick, Err(words)));
            }
            if world.digest() != Ok(*digest) {
                return Some((frame.tick, Ok(world)));
            }
        }
        None
    }
}

/// The world that differs, or the message of a panic.
pub(crate) type Differs<S> = Result<World<S>, String>;

/// Runs `work` on a new thread, where allocations have other addresses.
pub(crate) fn on_a_new_thread<T: Send>(seed: u64, work: impl FnOnce() -> T + Send) -> Option<T> {
    let elsewhere = || {
        let held = stir(seed);
        let done = work();
        drop(held);
        done
    };
    thread::scope(|scope| scope.spawn(elsewhere).join().ok())
}

/// Replays the run from every moment, each on a new thread, and reports the first difference.
pub(crate) fn compare<S: Simulation>(
    rules: &S::Rules,
    first: &World<S>,
    moments: &[Moment],
    frames: &[FrameData<S>],
    digests: &[(u64, u64)],
) -> Result<(), Found> {
    for moment in moments {
        let run = |seed| {
            on_a_new_thread(seed, || moment.run(rules, frames, digests)).unwrap_or_else(|| {
                // Panics of the step are caught, so another method of the author's types has panicked.
                Some((moment.tick, Err("the thread ended".to_owned())))
            })
        };
        let Some((tick, differs)) = run(1) else {
            continue;
        };
        let frame = &frames[tick.0 as usize];
        let up_to = &frames[..=tick.0 as usize];
        let is_again = |seed| same(run(seed).as_ref(), tick, &differs);
        if !(2..2 + TRIES as u64).all(is_again) {
            // The result is not the same each time, because of chance, an address or a clock.
            let before = fold(rules, first, &frames[..tick.0 as usize]);
            let truth = fold(rules, first, up_to);
            let Some((before, truth)) = before.zip(truth) else {
                return Err(named(Kind::Impure, moment, tick, Vec::new(), &differs));
            };
            if let Some(found) = cause::if_impure(rules, &before, frame, &truth) {
                return Err(found);
            }
            let fields = fields(Some(&truth), &differs);
            return Err(cause::of_a_rare_one(rules, &before, frame, fields));
        }
        let from_the_start = fold(rules, first, up_to);
        let fields = fields(from_the_start.as_ref(), &differs);
        let truth = Ok(digests[tick.0 as usize].1);
        let is_true = from_the_start.is_some_and(|world| world.digest() == truth);
        let kind = if !is_true {
            // A second match agreed a moment ago.
            Kind::Clock
        } else if same(moment.run(rules, frames, digests).as_ref(), tick, &differs) {
            // On this thread the caches have been filled since the start, so only the bytes can cause the difference.
            Kind::LostField
        } else {
            let from_the_start = on_a_new_thread(1, || fold(rules, first, up_to)).flatten();
            let digest = from_the_start.and_then(|world| world.digest().ok());
            match digest == Some(digests[tick.0 as usize].1) {
                true => Kind::Cache,
                false => Kind::Thread,
            }
        };
        return Err(named(kind, moment, tick, fields, &differs));
    }
    Ok(())
}

fn same<S: Simulation>(
    again: Option<&(Tick, Differs<S>)>,
    tick: Tick,
    differs: &Differs<S>,
) -> bool {
    match (again, differs) {
        (Some((at, Ok(again))), Ok(world)) => *at == tick && again.digest() == world.digest(),
        (Some((at, Err(_))), Err(_)) => *at == tick,
        _ => false,
    }
}

fn fields<S: Simulation>(
    truth: Option<&World<S>>,
    differs: &Differs<S>,
) -> Vec<twinstep_core::diff::Difference> {
    let (Some(truth), Ok(world)) = (truth, differs) else {
        return Vec::new();
    };
    differences(truth, world, FIELDS_MAX).unwrap_or_default()
}

fn named<S: Simulation>(
    kind: Kind,
    moment: &Moment,
    tick: Tick,
    fields: Vec<twinstep_core::diff::Difference>,
    differs: &Differs<S>,
) -> Found {
    let mut text = format!(
        "a match from its start != the same match from the bytes of its world of {}, on a new thread",
        moment.tick
    );
    if let Err(words) = differs {
        text = format!("{text}, which panics: {words}");
    }
    Found::new(kind, tick, text).at(fields)
}
