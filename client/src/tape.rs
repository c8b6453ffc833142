//! [`Tape`]: the match as this client saw it confirmed, as a journal that can be saved at any moment.
//!
//! ```text
//!   confirmed frames ─┬─▶ older reel   ├──────────────────────────┤ full: thrown away
//!                     └─▶ newer reel             ├────────────────┤ takes its place
//! ```
//!
//! A reel is a journal of its own: a world, then turns, digests, and a world now and then. The newer one begins when the
//! older one is half full, so at least half a reel of the past can always be saved, and memory is bounded whatever
//! happens (law *Bounded*). A world that is not the next one (a heal, a return) begins the tape anew.

use twinstep_core::Simulation;
use twinstep_core::frame::FrameData;
use twinstep_core::packet::hello::{Hello, Names};
use twinstep_core::replay::Recorder;
use twinstep_core::world::World;

/// A reel of so many bytes is full: about 20 minutes of 4 players and a world of 30 KB.
pub const REEL_BYTES_MAX: usize = 8 << 20;

/// A journal in memory.
struct Reel<S: Simulation> {
    recorder: Recorder<S>,
    bytes: Vec<u8>,
    /// Up to here it ends with a whole turn.
    whole: usize,
}

impl<S: Simulation> Reel<S> {
    /// `None`: the world is larger than a journal's record.
    fn begin(hello: &Hello, unix_s: u64, command_delay: u8, world: &World<S>) -> Option<Self> {
        let mut bytes = Vec::new();
        let recorder = Recorder::start(hello, unix_s, command_delay, world, &mut bytes).ok()?;
        Some(Reel {
            recorder,
            whole: bytes.len(),
            bytes,
        })
    }

    fn name(&mut self, names: &Names) {
        for (player, name) in names {
            // A name is much shorter than a record.
            let _ = self.recorder.seat(*player, name.as_str(), &mut self.bytes);
        }
        self.whole = self.bytes.len();
    }

    /// Adds a frame; whether that could be written.
    fn note(&mut self, frame: &FrameData<S>, world: &World<S>) -> bool {
        self.recorder.frame(frame);
        if world.turn().began != world.tick() {
            return true;
        }
        let Ok(digest) = world.digest() else {
            return false;
        };
        let written = self.recorder.turn(world, digest, &mut self.bytes);
        self.whole = self.bytes.len();
        written.is_ok()
    }
}

/// See the [module](self).
pub(crate) struct Tape<S: Simulation> {
    hello: Hello,
    unix_s: u64,
    reel_bytes_max: usize,
    command_delay: u8,
    /// What the players are called: a journal tells it to whoever watches.
    names: Names,
    older: Option<Reel<S>>,
    newer: Option<Reel<S>>,
}

impl<S: Simulation> Tape<S> {
    /// An empty tape. `unix_s`: when it begins, since 1970.
    pub(crate) fn new(hello: Hello, unix_s: u64, reel_bytes_max: usize) -> Self {
        Tape {
            hello,
            unix_s,
            reel_bytes_max,
            command_delay: 0,
            names: Names::new(),
            older: None,
            newer: None,
        }
    }

    /// Begins with a world; what was on the tape is thrown away.
    pub(crate) fn begin(&mut self, command_delay: u8, world: &World<S>) {
        self.command_delay = command_delay;
        self.newer = None;
        self.older = self.reel(world);
    }

    fn reel(&self, world: &World<S>) -> Option<Reel<S>> {
        let mut reel = Reel::begin(&self.hello, self.unix_s, self.command_delay, world)?;
        reel.name(&self.names);
        Some(reel)
    }

    /// What the players are called from now on.
    pub(crate) fn rename(&mut self, names: &Names) {
        self.names.clone_from(names);
        let reels = [&mut self.older, &mut self.newer];
        reels
            .into_iter()
            .flatten()
            .for_each(|reel| reel.name(names));
    }

    /// The world went on to `world` by this frame.
    pub(crate) fn note(&mut self, frame: &FrameData<S>, world: &World<S>) {
        let reels = [&mut self.older, &mut self.newer];
        let written = reels
            .into_iter()
            .flatten()
            .all(|reel| reel.note(frame, world));
        if !written {
            // What has a gap is no journal.
            return self.begin(self.command_delay, world);
        }
        let used = self.older.as_ref().map_or(0, |reel| reel.bytes.len());
        if used > self.reel_bytes_max && self.newer.is_some() {
            self.older = self.newer.take();
        }
        let used = self.older.as_ref().map_or(0, |reel| reel.bytes.len());
        if used > self.reel_bytes_max / 2 && self.newer.is_none() {
            self.newer = self.reel(world);
        }
    }

    /// The longest journal that there is, up to the last whole turn.
    pub(crate) fn journal(&self) -> Option<&[u8]> {
        let reel = self.older.as_ref()?;
        Some(&reel.bytes[..reel.whole])
    }
}

#[cfg(test)]
mod tests {
    use twinstep_core::PlayerId;
    use twinstep_core::company::Name;
    use twinstep_core::frame::{Perspective, PlayerSet};
    use twinstep_core::replay::Replay;
    use twinstep_core::testing::doc::Counter;
    use twinstep_core::world::Stepper;
    use twinstep_core::{RosterChange, Tick};

    use super::*;

    fn hello() -> Hello {
        Hello::of::<Counter>(&(), "test build").unwrap()
    }

    /// A world whose player holds another number at each tick, and a tape of it from tick `from` on.
    fn taped(ticks: u32, reel_bytes_max: usize, from: u32) -> (Tape<Counter>, World<Counter>) {
        let mut world = World::new(Counter::default(), Tick(0));
        let mut tape = Tape::new(hello(), 7, reel_bytes_max);
        tape.rename(&[(PlayerId(0), Name::new("Anna"))].into_iter().collect());
        let mut stepper = Stepper::default();
        for n in 0..ticks {
            if n == from {
                tape.begin(0, &world);
            }
            let mut frame = FrameData::<Counter>::empty(world.tick());
            if n == 0 {
                frame.roster.push((PlayerId(0), RosterChange::Joined));
            }
            frame.inputs.set(PlayerId(0), Some((n % 100) as _));
            let perspective = Perspective::authority(frame.tick);
            stepper
                .step(&mut world, &frame, &(), perspective, PlayerSet::default())
                .unwrap();
            if n >= from {
                tape.note(&frame, &world);
            }
        }
        (tape, world)
    }

    #[test]
    fn a_tape_is_a_journal_that_plays_to_the_last_whole_turn() {
        // It begins in the middle of a turn.
        let (tape, world) = taped(1_001, REEL_BYTES_MAX, 333);
        let hello = hello();
        let mut replay = Replay::<Counter>::open(tape.journal().unwrap(), &(), &hello).unwrap();
        assert_eq!(replay.world().tick(), Tick(333));
        let (player, name) = replay.index().seats[0].clone();
        assert_eq!((player, name.as_str()), (PlayerId(0), "Anna"));
        let verified = replay.verify();
        assert_eq!(verified.fault, None);
        assert!(
            verified.digests >= 10 && verified.worlds >= 1,
            "{verified:?}"
        );
        assert!(world.tick() - replay.world().tick() <= 1);
    }

    #[test]
    fn a_long_match_keeps_at_least_half_a_reel_and_never_more_than_one_and_a_half() {
        let max = 4 << 10;
        for ticks in (500..12_000).step_by(777) {
            let (tape, world) = taped(ticks, max, 0);
            let journal = tape.journal().unwrap();
            assert!(journal.len() < max + 1_000, "{} B", journal.len());
            let all = tape.older.iter().chain(&tape.newer);
            assert!(all.map(|reel| reel.bytes.len()).sum::<usize>() < max * 3 / 2 + 1_000);
            let hello = hello();
            let mut replay = Replay::<Counter>::open(journal, &(), &hello).unwrap();
            let first = replay.world().tick();
            assert!(first == Tick(0) || journal.len() > max / 2 - 500);
            assert_eq!(replay.verify().fault, None);
            assert!(world.tick() - replay.world().tick() <= 1);
        }
    }
}
