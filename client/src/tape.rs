//! [`Tape`]: the match as confirmed by this client, as a journal that can be saved at any time.
//!
//! ```text
//!   confirmed frames ─┬─▶ older reel   ├──────────────────────────┤ full: dropped
//!                     └─▶ newer reel             ├────────────────┤ replaces it
//! ```
//!
//! A reel is a complete journal: a world, then turns, digests, and a world every 10 s. The newer reel starts when the
//! older one is half full, so at least half a reel of the past can be saved, minus up to three worlds that the newer
//! reel has already written. When the session continues from a different world (a heal, a reconnect), the tape
//! restarts.
//!
//! Bound: a reel holds [`REEL_BYTES_MAX`], or 8 worlds if these are larger (worlds over 1 MiB), because otherwise the
//! first worlds would fill it. The two reels take at most twice that and two worlds, and at least an eighth of a reel
//! can be saved: the last 10 s with worlds over 1 MiB, the last minutes with smaller ones.

use twinstep_core::Simulation;
use twinstep_core::frame::FrameData;
use twinstep_core::world::World;
use twinstep_protocol::journal::WrittenBy;
use twinstep_protocol::packet::hello::{Hello, Names};
use twinstep_protocol::replay::Recorder;

/// The size of a full reel, if worlds are not large: about 20 minutes with 4 players and a 30 KB world.
pub const REEL_BYTES_MAX: usize = 8 << 20;
/// The number of worlds for which a reel has space, however large they are.
const REEL_WORLDS: usize = 8;

struct Reel<S: Simulation> {
    recorder: Recorder<S>,
    bytes: Vec<u8>,
    /// The end of the last complete turn in `bytes`.
    whole: usize,
}

impl<S: Simulation> Reel<S> {
    /// Starts a journal with `world`. Returns `None` if the world exceeds the size of a journal record.
    fn begin(
        hello: &Hello,
        unix_s: u64,
        command_delay: u8,
        world: &World<S>,
        room_bytes: usize,
    ) -> Option<Self> {
        let mut bytes = Vec::new();
        let recorder = Recorder::start(
            WrittenBy::Client,
            hello,
            unix_s,
            command_delay,
            world,
            &mut bytes,
        )
        .ok()?;
        // The last record of a full reel may be another world, and worlds grow.
        let room_bytes = room_bytes.max(REEL_WORLDS * bytes.len());
        bytes.reserve_exact(room_bytes + bytes.len());
        Some(Reel {
            recorder,
            whole: bytes.len(),
            bytes,
        })
    }

    fn name(&mut self, names: &Names) {
        for (player, name) in names {
            // A name is much shorter than the longest record.
            let _ = self.recorder.seat(*player, name.as_str(), &mut self.bytes);
        }
        self.whole = self.bytes.len();
    }

    fn record(&mut self, frame: &FrameData<S>, world: &World<S>) -> bool {
        self.recorder.frame(frame);
        if world.turn().began != world.tick() {
            return true;
        }
        // A digest visits the whole state, so it is only computed for a digest record, once a second.
        let digest = match self.recorder.wants_digest(world) {
            true => world.digest(),
            false => Ok(0),
        };
        let Ok(digest) = digest else {
            return false;
        };
        let written = self.recorder.turn(world, digest, &mut self.bytes);
        self.whole = self.bytes.len();
        written.is_ok()
    }
}

pub(crate) struct Tape<S: Simulation> {
    pub(crate) hello: Hello,
    unix_s: u64,
    reel_bytes_max: usize,
    /// The maximum number of bytes written at a time: a world, and the turn before it.
    note_bytes_max: usize,
    command_delay: u8,
    names: Names,
    older: Option<Reel<S>>,
    newer: Option<Reel<S>>,
}

impl<S: Simulation> Tape<S> {
    pub(crate) fn new(hello: Hello, unix_s: u64, reel_bytes_max: usize) -> Self {
        Tape {
            hello,
            unix_s,
            reel_bytes_max,
            note_bytes_max: 0,
            command_delay: 0,
            names: Names::new(),
            older: None,
            newer: None,
        }
    }

    pub(crate) fn begin(&mut self, command_delay: u8, world: &World<S>) {
        self.command_delay = command_delay;
        self.note_bytes_max = 0;
        (self.older, self.newer) = (None, None);
        self.older = self.reel(world);
    }

    fn reel(&mut self, world: &World<S>) -> Option<Reel<S>> {
        let mut reel = Reel::begin(
            &self.hello,
            self.unix_s,
            self.command_delay,
            world,
            self.room_bytes(),
        )?;
        reel.name(&self.names);
        self.note_bytes_max = self.note_bytes_max.max(reel.bytes.len());
        Some(reel)
    }

    fn room_bytes(&self) -> usize {
        self.reel_bytes_max
            .max(self.note_bytes_max.saturating_mul(REEL_WORLDS))
    }

    fn used_bytes(&self) -> usize {
        self.older.as_ref().map_or(0, |reel| reel.bytes.len())
    }

    pub(crate) fn rename(&mut self, names: &Names) {
        self.names.clone_from(names);
        let reels = [&mut self.older, &mut self.newer];
        reels
            .into_iter()
            .flatten()
            .for_each(|reel| reel.name(names));
    }

    pub(crate) fn record(&mut self, frame: &FrameData<S>, world: &World<S>) {
        let mut written = true;
        for reel in [&mut self.older, &mut self.newer].into_iter().flatten() {
            let before = reel.bytes.len();
            written &= reel.record(frame, world);
            self.note_bytes_max = self.note_bytes_max.max(reel.bytes.len() - before);
        }
        if !written {
            // A journal must have no gaps: start again.
            return self.begin(self.command_delay, world);
        }
        if self.used_bytes() > self.room_bytes() && self.newer.is_some() {
            self.older = self.newer.take();
        }
        if self.used_bytes() > self.room_bytes() / 2 && self.newer.is_none() {
            self.newer = self.reel(world);
        }
    }

    pub(crate) fn journal(&self) -> Option<&[u8]> {
        let reel = self.older.as_ref()?;
        Some(&reel.bytes[..reel.whole])
    }
}

#[cfg(test)]
mod tests {
    use serde::{Deserialize, Serialize};
    use twinstep_core::frame::{Perspective, PlayerSet};
    use twinstep_core::testing::doc::Counter;
    use twinstep_core::world::Stepper;
    use twinstep_core::{Effects, Frame, Never, PlayerId, RosterChange, Tick};
    use twinstep_protocol::journal::{self, Record};
    use twinstep_protocol::names::Name;
    use twinstep_protocol::replay::Replay;

    use super::*;

    /// A world whose player's input changes every tick, and a tape of it starting at tick `from`.
    fn taped(ticks: u32, reel_bytes_max: usize, from: u32) -> (Tape<Counter>, World<Counter>) {
        taped_of(Counter::default(), ticks, reel_bytes_max, from, |_| {})
    }

    fn taped_of<S: Simulation<Rules = (), Input = u8>>(
        sim: S,
        ticks: u32,
        reel_bytes_max: usize,
        from: u32,
        mut look: impl FnMut(&Tape<S>),
    ) -> (Tape<S>, World<S>) {
        let mut world = World::new(sim, Tick(0));
        let hello = Hello::of::<S>(&(), "test build").unwrap();
        let mut tape = Tape::new(hello, 7, reel_bytes_max);
        tape.rename(&[(PlayerId(0), Name::new("Anna"))].into_iter().collect());
        let mut stepper = Stepper::default();
        for n in 0..ticks {
            if n == from {
                tape.begin(0, &world);
            }
            let mut frame = FrameData::<S>::empty(world.tick());
            if n == 0 {
                frame.roster.push((PlayerId(0), RosterChange::Joined));
            }
            frame.inputs.set(PlayerId(0), Some((n % 100) as _));
            let perspective = Perspective::authority(frame.tick);
            stepper
                .step(&mut world, &frame, &(), perspective, PlayerSet::default())
                .unwrap();
            if n >= from {
                tape.record(&frame, &world);
                look(&tape);
            }
        }
        (tape, world)
    }

    #[test]
    fn a_tape_is_a_journal_playable_to_the_last_complete_turn() {
        // The tape starts in the middle of a turn.
        let (tape, world) = taped(1_001, REEL_BYTES_MAX, 333);
        let mut replay = Replay::<Counter>::open(tape.journal().unwrap(), &()).unwrap();
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
            let mut replay = Replay::<Counter>::open(journal, &()).unwrap();
            let first = replay.world().tick();
            assert!(first == Tick(0) || journal.len() > max / 2 - 500);
            assert_eq!(replay.verify().fault, None);
            assert!(world.tick() - replay.world().tick() <= 1);
        }
    }

    #[derive(Clone, Serialize, Deserialize)]
    struct Heavy(Vec<u8>);

    impl Simulation for Heavy {
        const NAME: &'static str = "heavy";
        const VERSION: u32 = 1;
        type Rules = ();
        type Input = u8;
        type Command = Never;
        type Query = Never;
        type Outcome = Never;
        type Cue = Never;

        fn step(&mut self, frame: &Frame<'_, Self>, _fx: &mut Effects<Self>) {
            self.0[0] = frame.tick().0 as u8;
        }
    }

    #[derive(Clone, Default, Deserialize)]
    struct Walked(u64);

    std::thread_local! {
        static WALKS: std::cell::Cell<u32> = const { std::cell::Cell::new(0) };
    }

    impl Serialize for Walked {
        fn serialize<W: serde::Serializer>(&self, to: W) -> Result<W::Ok, W::Error> {
            WALKS.set(WALKS.get() + 1);
            self.0.serialize(to)
        }
    }

    impl Simulation for Walked {
        const NAME: &'static str = "walked";
        const VERSION: u32 = 1;
        type Rules = ();
        type Input = u8;
        type Command = Never;
        type Query = Never;
        type Outcome = Never;
        type Cue = Never;

        fn step(&mut self, frame: &Frame<'_, Self>, _fx: &mut Effects<Self>) {
            self.0 += u64::from(frame.tick().0);
        }
    }

    /// Finding H10: a digest is written once a second, so the state must be visited once a second, not once per turn
    /// and reel.
    #[test]
    fn a_tape_digests_the_world_only_for_a_digest_record() {
        let (tape, _) = taped_of(Walked::default(), 1_200, 1 << 10, 0, |_| {});
        assert!(tape.newer.is_some(), "two reels are written");
        let walks = WALKS.get();
        // 20 s: 20 digests and 2 worlds for each of two reels, and the worlds with which reels start.
        println!("{walks} walks");
        assert!((20..120).contains(&walks), "{walks} walks in 1,200 turns");
    }

    /// With worlds of any size, an eighth of a reel can be saved, and both reels stay within their bound.
    #[test]
    fn a_large_world_leaves_space_for_frames_and_takes_at_most_two_reels() {
        let max = 8 << 10;
        for world_bytes in [100, 1_000, 3_000, 5_000, 7_000, 9_000, 40_000] {
            let (mut ticks, mut shortest_ticks) = (0, u32::MAX);
            let heavy = Heavy(vec![1; world_bytes]);
            taped_of(heavy, 12_000, max, 0, |tape| {
                ticks += 1;
                let room = tape.room_bytes();
                assert!(room <= max.max(REEL_WORLDS * (world_bytes + 1_000)));
                let reels = tape.older.iter().chain(&tape.newer);
                let used: usize = reels.clone().map(|reel| reel.bytes.len()).sum();
                assert!(used <= 2 * room, "{used} B of worlds of {world_bytes} B");
                let held: usize = reels.map(|reel| reel.bytes.capacity()).sum();
                assert!(held <= 3 * room, "{held} B held");
                let journal = tape.journal().unwrap();
                let mut worlds =
                    journal::records(journal).filter_map(|entry| match entry.unwrap().record {
                        Record::World { tick, .. } => Some(tick),
                        _ => None,
                    });
                let began = worlds.next().unwrap();
                if began > Tick(0) {
                    shortest_ticks = shortest_ticks.min(ticks - began.0);
                    assert!(journal.len() >= room / 8, "{} B kept", journal.len());
                }
            });
            println!("worlds of {world_bytes} B: at least {shortest_ticks} ticks are kept");
            assert!(shortest_ticks < 12_000, "no reel was full");
            // With small worlds, the inputs fill a reel.
            let expected_ticks = if world_bytes < 9_000 { 300 } else { 600 };
            assert!(
                shortest_ticks >= expected_ticks,
                "{shortest_ticks} of worlds of {world_bytes} B"
            );
        }
    }
}
