use std::cell::Cell;

use serde::{Deserialize, Serialize};
use twinstep_core::bounds::{
    BACKLOG_TIME, LOAD_FRAMES_BYTES_MAX, LOAD_TICKS, LOAD_TIME, PLAYERS_MAX, ticks_in,
};
use twinstep_core::testing::doc::Counter;
use twinstep_core::{Effects, Frame, Never};

use super::*;

/// Finding K14: at 240 Hz, frames were kept for 7.5 s, which is too short for a large world to arrive.
#[test]
fn frames_are_kept_for_half_a_minute_at_any_rate() {
    for hz in [10, 60, 144, 240] {
        let tick = Duration::from_secs(1) / hz;
        let mut history = History::<Counter>::new(Tick(0));
        history.keep_for(tick);
        for n in 0..8_000 {
            history.keep_frame(&FrameData::empty(Tick(n)), None, Tick(n));
        }
        let kept = tick * (history.next() - history.first());
        assert!(kept + tick >= BACKLOG_TIME, "{hz} Hz: {kept:?}");
    }
    // With longer ticks, frames that are too old are dropped immediately.
    let mut history = History::<Counter>::new(Tick(0));
    history.keep_for(Duration::from_secs(1) / 240);
    (0..8_000).for_each(|n| history.keep_frame(&FrameData::empty(Tick(n)), None, Tick(n)));
    history.keep_for(Duration::from_secs(1) / 60);
    history.keep_frame(&FrameData::empty(Tick(8_000)), None, Tick(8_000));
    assert_eq!(history.next() - history.first(), BACKLOG);
}

/// Finding P3-B1: a session that needs longer than the backlog to load a world still needs all later frames.
#[test]
fn frames_are_kept_longer_for_loading_sessions_up_to_a_limit() {
    let mut history = History::<Counter>::new(Tick(0));
    let keep = |history: &mut History<Counter>, from: u32, to: u32| {
        for n in from..to {
            history.keep_frame(&FrameData::empty(Tick(n)), None, Tick(n));
        }
    };
    keep(&mut history, 0, 1_000);
    history.keep_from(Some(Tick(500)));
    keep(&mut history, 1_000, 20_000);
    assert_eq!(history.first(), Tick(500));
    let mut frame = FrameData::empty(Tick(0));
    for from in [500, 700, 11_000, 19_999] {
        let mut walk = history.frames(Tick(from));
        assert!(walk.next(&mut frame) && frame.tick == Tick(from));
    }
    keep(&mut history, 20_000, 30_000);
    assert_eq!(history.next() - history.first(), LOAD_TICKS, "no more");
    history.keep_from(None);
    keep(&mut history, 30_000, 30_001);
    assert_eq!(history.next() - history.first(), BACKLOG);
}

#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
struct Wide;

impl Simulation for Wide {
    const NAME: &'static str = "wide";
    const VERSION: u32 = 1;
    type Rules = ();
    type Input = u8;
    type Command = [u64; 16];
    type Query = Never;
    type Outcome = Never;
    type Cue = Never;

    fn step(&mut self, _: &Frame<'_, Self>, _: &mut Effects<Self>) {}
}

/// Finding P3-B1: large frames are also kept for loading sessions, within a byte limit.
#[test]
fn large_frames_are_kept_for_loading_sessions_within_a_byte_limit() {
    let mut history = History::<Wide>::new(Tick(0));
    history.keep_from(Some(Tick(0)));
    for n in 0..LOAD_TICKS {
        let mut frame = FrameData::empty(Tick(n));
        frame.commands = (0..16)
            .map(|seq| Order {
                player: PlayerId(0),
                seq,
                command: [7; 16],
            })
            .collect();
        history.keep_frame(&frame, None, Tick(n));
        assert!(history.bytes() <= LOAD_FRAMES_BYTES_MAX, "at tick {n}");
    }
    let kept = history.next() - history.first();
    assert!((BACKLOG + 1..LOAD_TICKS / 2).contains(&kept), "{kept}");
}

/// Finding P3-B1: at 240 Hz, frames were kept for only 100 s while a client downloaded the world before them.
#[test]
fn frames_are_kept_for_the_load_time_at_high_tick_rates_within_a_byte_limit() {
    let tick = Duration::from_secs(1) / 240;
    let ticks = ticks_in(LOAD_TIME, tick);
    let keep = |history: &mut History<Counter>, present: &[PlayerId]| {
        history.keep_for(tick);
        history.keep_from(Some(Tick(0)));
        for n in 0..=ticks {
            let mut frame = FrameData::empty(Tick(n));
            for player in present {
                frame.inputs.set(*player, Some(0));
            }
            history.keep_frame(&frame, None, Tick(n));
        }
    };
    let mut history = History::<Counter>::new(Tick(0));
    keep(&mut history, &[]);
    assert_eq!(history.first(), Tick(1));
    assert!(history.bytes() < LOAD_FRAMES_BYTES_MAX / 2);
    let mut history = History::<Counter>::new(Tick(0));
    let all: Vec<PlayerId> = (0..PLAYERS_MAX as u8).map(PlayerId).collect();
    keep(&mut history, &all);
    assert!(history.bytes() <= LOAD_FRAMES_BYTES_MAX);
}

thread_local! {
    static STEPS: Cell<u32> = const { Cell::new(0) };
}

#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
struct Stepped(u64);

impl Simulation for Stepped {
    const NAME: &'static str = "stepped";
    const VERSION: u32 = 1;
    type Rules = ();
    type Input = u8;
    type Command = Never;
    type Query = Never;
    type Outcome = Never;
    type Cue = Never;

    fn step(&mut self, frame: &Frame<'_, Self>, _: &mut Effects<Self>) {
        STEPS.set(STEPS.get() + 1);
        let held: u64 = frame.inputs().map(|(_, held)| u64::from(*held)).sum();
        self.0 = self.0.wrapping_mul(31) + held + 1;
    }
}

/// A match of `ticks` ticks with one player, which changes its input every tick; and the world before each tick.
fn played(ticks: u32, small: bool) -> (History<Stepped>, Vec<Stepped>) {
    let mut world = World::new(Stepped::default(), Tick(7));
    let mut history = History::new(world.tick());
    history.keep_world(&world, small);
    let mut stepper = Stepper::default();
    let mut truth = vec![world.sim().clone()];
    for n in 0..ticks {
        let mut frame = FrameData::empty(world.tick());
        if n == 0 {
            frame.roster.push((PlayerId(0), RosterChange::Joined));
        }
        frame.inputs.set(PlayerId(0), Some((n % 251) as u8));
        let perspective = Perspective::authority(frame.tick);
        stepper
            .step(&mut world, &frame, &(), perspective, PlayerSet::default())
            .unwrap();
        history.keep_frame(&frame, None, frame.tick);
        history.keep_world(&world, small);
        truth.push(world.sim().clone());
    }
    STEPS.set(0);
    (history, truth)
}

#[test]
fn a_large_match_keeps_few_worlds_and_can_rebuild_any_world_of_the_last_second() {
    for ticks in [0, 1, 15, 16, 17, 40, 63, 64, 65, 500, 501, 511] {
        let (history, truth) = played(ticks, false);
        assert!(history.worlds.len() <= (HISTORY / APART) as usize + 1);
        let oldest = ticks.saturating_sub(HISTORY - 1);
        for at in (oldest..=ticks).rev() {
            STEPS.set(0);
            let world = history.world(Tick(7 + at), &()).unwrap();
            assert_eq!(world.sim(), &truth[at as usize], "{at} of {ticks}");
            assert!(STEPS.get() < APART, "{} steps", STEPS.get());
        }
        // Requested worlds are kept.
        STEPS.set(0);
        for at in oldest..=ticks {
            let world = history.world(Tick(7 + at), &()).unwrap();
            assert_eq!(world.sim(), &truth[at as usize]);
        }
        assert_eq!(STEPS.get(), 0);
        assert!(history.world(Tick(7 + ticks + 1), &()).is_none());
        let older = (7 + ticks).checked_sub(HISTORY).map(Tick);
        assert!(older.is_none_or(|tick| history.world(tick, &()).is_none()));
    }
}

#[test]
fn a_walk_yields_all_frames_from_any_starting_tick() {
    let (history, _) = played(500, true);
    let mut all = history.frames(history.first());
    let (mut frame, mut first) = (
        FrameData::preallocated(Tick(0)),
        FrameData::preallocated(Tick(0)),
    );
    while all.next(&mut frame) {
        assert!(history.frames(frame.tick).next(&mut first));
        assert!(
            first.inputs.iter().eq(frame.inputs.iter()),
            "{}",
            frame.tick
        );
    }
    assert_eq!(frame.tick + 1, history.next());
}

#[test]
fn a_small_match_keeps_all_worlds_and_repeats_no_step() {
    let (history, truth) = played(500, true);
    for at in 500 - (HISTORY - 1)..=500 {
        let world = history.world(Tick(7 + at), &()).unwrap();
        assert_eq!(world.sim(), &truth[at as usize]);
    }
    assert_eq!((STEPS.get(), history.worlds.len()), (0, HISTORY as usize));
}

#[test]
fn a_requested_world_is_dropped_when_it_is_old() {
    let (mut history, _) = played(70, false);
    assert!(history.world(Tick(7 + 60), &()).is_some());
    let before = history.worlds.len();
    let mut world = World::new(Stepped::default(), Tick(7 + 71));
    for n in 71..71 + HISTORY {
        world = World::new(Stepped::default(), Tick(7 + n));
        history.keep_world(&world, false);
    }
    assert_eq!(history.worlds.len(), before - 1);
    assert_eq!(world.tick(), Tick(7 + 70 + HISTORY));
}

/// A client that gets the frame of a tick also gets the digest of that tick, or a newer one.
#[test]
fn a_run_of_frames_carries_its_newest_digest() {
    let mut history = History::<Counter>::new(Tick(0));
    // Turns of four ticks; a digest before ticks 8 and 20.
    for n in 0..32 {
        let digest = [8, 20].contains(&n).then_some(u64::from(n));
        history.keep_frame(&FrameData::empty(Tick(n)), digest, Tick(n / 4 * 4));
    }
    let newest = |from, end| {
        let found = history.newest_digest(Tick(from), Tick(end));
        found.map(|(tick, digest)| (tick.0, digest))
    };
    assert_eq!(newest(0, 32), Some((20, 20)));
    assert_eq!(newest(20, 32), Some((20, 20)));
    assert_eq!(newest(21, 32), None);
    assert_eq!(newest(0, 20), Some((8, 8)));
    assert_eq!(newest(0, 8), None);
    // If a turn is sent in parts, each part carries its digest, because the turn starts before all of them.
    assert_eq!(newest(22, 24), Some((20, 20)));
    for end in 21..32 {
        assert_eq!(
            newest(20, end),
            Some((20, 20)),
            "the frame of 20, up to {end}"
        );
    }
}
