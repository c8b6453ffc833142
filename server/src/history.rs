//! The recent past of a match: the frames of the last half minute (and older ones while a client loads a world), their
//! digests, and a few worlds, from which any other world of the last 64 ticks can be computed (`history/worlds.rs`).
//!
//! Frames are stored flat: one queue for each kind of content, and for each tick the lengths of its parts. So a frame
//! without commands needs no list, and once the queues have grown, recording a frame does not allocate.

use std::collections::VecDeque;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::time::Duration;

use twinstep_core::bounds::{
    BACKLOG, COMMANDS_PER_TICK_BYTES, HISTORY, LOAD_FRAMES_BYTES_MAX, LOAD_TICKS, backlog,
    load_ticks,
};
use twinstep_core::frame::{Answer, Fragment, FrameData, Order, Perspective, PlayerSet};
use twinstep_core::turn::Cadence;
use twinstep_core::world::{Stepper, World};
use twinstep_core::{PlayerId, RosterChange, Simulation, Tick};

#[cfg(test)]
mod tests;
mod worlds;

pub use worlds::APART;
use worlds::Worlds;

/// Worlds, frames and digests of the recent past.
pub struct History<S: Simulation> {
    worlds: Worlds<S>,
    kept: u32,
    /// The maximum number of frames kept for a session that loads a world.
    kept_for_loads: u32,
    needed: Option<Tick>,
    first: Tick,
    ticks: VecDeque<Sealed>,
    inputs: Flat<S::Input>,
    roster: Flat<(PlayerId, RosterChange)>,
    outcomes: Flat<Answer<S::Outcome>>,
    claims: Flat<Order<S::Command>>,
    commands: Flat<Order<S::Command>>,
    fragments: Flat<Fragment>,
}

struct Sealed {
    digest: Option<u64>,
    turn_began: Tick,
    cadence: Option<Cadence>,
    present: PlayerSet,
    filled: PlayerSet,
    /// The numbers of roster changes, outcomes, claims, commands and fragments in the tick's frame.
    lists: [u32; 5],
}

/// A queue whose front is dropped with the oldest tick.
struct Flat<T> {
    items: VecDeque<T>,
}

impl<T: Clone> Flat<T> {
    fn with_capacity(items: usize) -> Self {
        Flat {
            items: VecDeque::with_capacity(items),
        }
    }

    fn bytes(&self) -> usize {
        self.items.len() * size_of::<T>()
    }

    fn push(&mut self, items: &[T]) -> u32 {
        self.items.extend(items.iter().cloned());
        items.len() as u32
    }

    fn forget(&mut self, count: u32) {
        self.items.drain(..count as usize);
    }

    fn next(&self, at: &mut usize, count: u32) -> impl Iterator<Item = T> {
        let from = *at;
        *at += count as usize;
        self.items.range(from..*at).cloned()
    }
}

impl Sealed {
    /// The number of items in each queue: inputs, roster changes, outcomes, claims, commands and fragments.
    fn counts(&self) -> [u32; 6] {
        let [roster, outcomes, claims, commands, fragments] = self.lists;
        [
            self.present.len() as u32,
            roster,
            outcomes,
            claims,
            commands,
            fragments,
        ]
    }
}

impl<S: Simulation> History<S> {
    /// Creates a history starting at `first`.
    pub fn new(first: Tick) -> Self {
        History {
            worlds: Worlds::new(),
            kept: BACKLOG,
            kept_for_loads: LOAD_TICKS,
            needed: None,
            first,
            ticks: VecDeque::with_capacity(BACKLOG as usize + 1),
            // Only the game determines how much half a minute holds, so the queues start small and grow. Larger ones
            // would waste memory in each of hundreds of matches.
            inputs: Flat::with_capacity(256),
            roster: Flat::with_capacity(0),
            outcomes: Flat::with_capacity(256),
            claims: Flat::with_capacity(256),
            commands: Flat::with_capacity(0),
            fragments: Flat::with_capacity(0),
        }
    }

    /// Sets the number of kept frames for ticks of length `tick`: see [`backlog`] and [`load_ticks`].
    pub fn keep_for(&mut self, tick: Duration) {
        (self.kept, self.kept_for_loads) = (backlog(tick), load_ticks(tick));
    }

    /// Keeps the frames from `needed` onwards for longer, because sessions that join need them: at most [`load_ticks`]
    /// frames, and within [`LOAD_FRAMES_BYTES_MAX`].
    pub fn keep_from(&mut self, needed: Option<Tick>) {
        self.needed = needed;
    }

    fn overflows(&self) -> bool {
        let ticks = self.ticks.len();
        let is_needed = || self.needed.is_some_and(|needed| needed <= self.first);
        ticks > self.kept as usize
            && !(is_needed()
                && ticks <= self.kept_for_loads as usize
                && self.bytes() <= LOAD_FRAMES_BYTES_MAX)
    }

    /// The memory used by the frames, in bytes, without heap memory of the game's own types.
    fn bytes(&self) -> usize {
        self.ticks.len() * size_of::<Sealed>()
            + self.inputs.bytes()
            + self.roster.bytes()
            + self.outcomes.bytes()
            + self.claims.bytes()
            + self.commands.bytes()
            + self.fragments.bytes()
            + self.fragments.items.len() * COMMANDS_PER_TICK_BYTES
    }

    /// The oldest tick whose frame is kept.
    pub fn first(&self) -> Tick {
        self.first
    }

    /// Returns `true` if all frames from `tick` onwards are kept, and will stay for at least a third of the kept time.
    pub fn reaches(&self, tick: Tick) -> bool {
        tick >= self.first && self.next() - tick <= self.kept - self.kept / 3
    }

    /// The tick after the newest frame.
    pub fn next(&self) -> Tick {
        self.first + self.ticks.len() as u32
    }

    /// Records the world after the last kept frame. If worlds are not `small`, few of them are copied.
    pub fn keep_world(&mut self, world: &World<S>, small: bool) {
        self.worlds.keep(world, small);
    }

    /// The world before `tick`, if it is one of the last [`HISTORY`]. Free if that world is kept; otherwise costs a
    /// copy of a world and fewer than [`APART`] steps.
    pub fn world(&self, tick: Tick, rules: &S::Rules) -> Option<&World<S>> {
        if tick > self.next() || self.next() - tick >= HISTORY {
            return None;
        }
        self.worlds.before(tick, |from| {
            // These steps succeeded before, but an impure step may panic now.
            let folded = catch_unwind(AssertUnwindSafe(|| self.fold(from, tick, rules)));
            folded.ok().flatten()
        })
    }

    /// Steps a copy of `from` by the kept frames to the world before `tick`.
    fn fold(&self, from: &World<S>, tick: Tick, rules: &S::Rules) -> Option<World<S>> {
        if from.tick() < self.first {
            return None;
        }
        let mut world = from.clone();
        let mut stepper = Stepper::default();
        let mut frame = FrameData::preallocated(world.tick());
        let mut walk = self.frames(world.tick());
        while world.tick() < tick && walk.next(&mut frame) {
            let perspective = Perspective::authority(world.tick());
            let nobody = PlayerSet::default();
            stepper
                .step(&mut world, &frame, rules, perspective, nobody)
                .ok()?;
        }
        (world.tick() == tick).then_some(world)
    }

    /// Keeps a sealed frame, the digest of the world before it (if the digest was taken), and the start of its turn.
    ///
    /// # Panics
    /// If the frame is not the next one.
    pub fn keep_frame(&mut self, frame: &FrameData<S>, digest: Option<u64>, turn_began: Tick) {
        assert_eq!(frame.tick, self.next(), "frames are kept in order");
        let lists = [
            self.roster.push(&frame.roster),
            self.outcomes.push(&frame.outcomes),
            self.claims.push(&frame.claims),
            self.commands.push(&frame.commands),
            self.fragments.push(&frame.fragments),
        ];
        let given = frame.inputs.iter();
        self.inputs
            .items
            .extend(given.map(|(_, input)| input.clone()));
        self.ticks.push_back(Sealed {
            digest,
            turn_began,
            cadence: frame.cadence,
            present: frame.inputs.players(),
            filled: frame.filled,
            lists,
        });
        while self.overflows()
            && let Some(oldest) = self.ticks.pop_front()
        {
            self.first += 1;
            self.inputs.forget(oldest.present.len() as u32);
            self.roster.forget(oldest.lists[0]);
            self.outcomes.forget(oldest.lists[1]);
            self.claims.forget(oldest.lists[2]);
            self.commands.forget(oldest.lists[3]);
            self.fragments.forget(oldest.lists[4]);
        }
    }

    fn sealed(&self, tick: Tick) -> Option<&Sealed> {
        if tick < self.first {
            None
        } else {
            self.ticks.get((tick - self.first) as usize)
        }
    }

    /// The digest of the world before `tick`, if it was taken and the frame is kept.
    pub fn digest(&self, tick: Tick) -> Option<u64> {
        self.sealed(tick).and_then(|sealed| sealed.digest)
    }

    /// The newest digest at the start of a turn, if one was taken, and its tick, for a run of frames `from..end`. The
    /// turn is the last one of the run, or an earlier one that starts within it. So a client that gets the frame of a
    /// digested tick also gets that digest or a newer one.
    pub fn newest_digest(&self, from: Tick, end: Tick) -> Option<(Tick, u64)> {
        let mut began = self.turn_began(end.back(1))?;
        loop {
            if let Some(digest) = self.digest(began) {
                return Some((began, digest));
            }
            if began <= from {
                return None;
            }
            began = self.turn_began(began.back(1))?;
            if began < from {
                return None;
            }
        }
    }

    /// The first tick of the turn to which `tick` belongs, if its frame is kept.
    pub fn turn_began(&self, tick: Tick) -> Option<Tick> {
        self.sealed(tick).map(|sealed| sealed.turn_began)
    }

    /// Iterates over the kept frames, starting at `tick`.
    pub fn frames(&self, tick: Tick) -> FrameWalk<'_, S> {
        let skipped = ((tick - self.first) as usize).min(self.ticks.len());
        // Most callers want few frames from the end, so it counts from the nearer end.
        let from_front = skipped < self.ticks.len() / 2;
        // A walk needs its positions in the six queues, which are found only by counting items.
        let counted = match from_front {
            true => self.ticks.range(..skipped),
            false => self.ticks.range(skipped..),
        };
        let mut at = [0; 6];
        for sealed in counted {
            for (at, len) in at.iter_mut().zip(sealed.counts()) {
                *at += len as usize;
            }
        }
        let ends = [
            self.inputs.items.len(),
            self.roster.items.len(),
            self.outcomes.items.len(),
            self.claims.items.len(),
            self.commands.items.len(),
            self.fragments.items.len(),
        ];
        if !from_front {
            for (at, end) in at.iter_mut().zip(ends) {
                *at = end - *at;
            }
        }
        FrameWalk {
            history: self,
            tick: tick.max(self.first),
            at,
        }
    }
}

/// An iterator over kept frames.
pub struct FrameWalk<'a, S: Simulation> {
    history: &'a History<S>,
    tick: Tick,
    /// The next positions in the queues: inputs, roster changes, outcomes, claims, commands and fragments.
    at: [usize; 6],
}

impl<S: Simulation> FrameWalk<'_, S> {
    /// Copies the next frame into `frame`. Returns `true` if there was one.
    pub fn next(&mut self, frame: &mut FrameData<S>) -> bool {
        let Some(sealed) = self.history.sealed(self.tick) else {
            return false;
        };
        let history = self.history;
        frame.reset(self.tick);
        frame.filled = sealed.filled;
        frame.cadence = sealed.cadence;
        let [inputs, roster, outcomes, claims, commands, fragments] = &mut self.at;
        let [given, changes, answers, claimed, commanded, parts] = sealed.counts();
        for (player, input) in sealed
            .present
            .iter()
            .zip(history.inputs.next(inputs, given))
        {
            frame.inputs.set(player, Some(input));
        }
        frame.roster.extend(history.roster.next(roster, changes));
        frame
            .outcomes
            .extend(history.outcomes.next(outcomes, answers));
        frame.claims.extend(history.claims.next(claims, claimed));
        frame
            .commands
            .extend(history.commands.next(commands, commanded));
        frame
            .fragments
            .extend(history.fragments.next(fragments, parts));
        self.tick += 1;
        true
    }
}
