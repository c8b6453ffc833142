//! Tiny games with one planted bug each: the step depends on the machine, process, thread or run.

use std::cell::Cell;
use std::collections::HashMap;
use std::hash::{BuildHasher, RandomState};
use std::sync::OnceLock;
use std::sync::atomic::{AtomicU32, Ordering};
use std::time::{Instant, SystemTime};

use serde::{Deserialize, Serialize};
use twinstep_core::memo::{LoopContext, Outputs};
use twinstep_core::{Effects, Frame, Never, Simulation};
use twinstep_testing::{Kind, check};

use crate::planting::{expect, game, planted, presses, sum};

planted!(a_hash_map_in_the_state_is_reported, HashOrder at "sim.pawns.keys()": Hashes { pawns: HashMap<u8, u32> }, frame, me => {
    for (player, held) in frame.inputs() {
        *me.pawns.entry(player.0).or_default() += u32::from(*held);
    }
});

planted!(a_hash_map_in_the_step_is_reported, HashOrder at "sim.order": Sorts { order: Vec<u8> }, frame, me => {
    let by_player: HashMap<u8, u8> = frame.inputs().map(|(p, held)| (p.0, *held)).collect();
    me.order = by_player.into_keys().collect();
});

#[derive(Clone, Default, Serialize, Deserialize)]
struct Leads {
    leader: Option<u8>,
}
game!(Leads, frame, _fx, me => {
    let held: HashMap<u8, u8> = frame.inputs().map(|(p, held)| (p.0, *held)).collect();
    // The last of equal values wins, and the order of the map decides which value is last.
    me.leader = held.iter().max_by_key(|(_, held)| **held).map(|(player, _)| *player);
});

#[test]
fn the_first_of_equals_in_a_hash_map_is_reported() {
    let found = expect(
        check(Leads::default(), (), presses()),
        Kind::Chance,
        "sim.leader",
    );
    assert!(found.kind.advice().contains("`HashMap`"), "{found}");
}

planted!(pushes_in_hash_map_order_are_reported, Chance at "sim.at": Pushes { at: [i32; 4] }, frame, me => {
    let karts: HashMap<usize, i32> = frame.inputs().map(|(p, held)| (p.index(), i32::from(*held))).collect();
    for (kart, push) in karts {
        // A kart that was pushed earlier pushes harder.
        me.at[(kart + 1) % 4] += push + me.at[kart % 4] % 7;
    }
});

static NEXT: AtomicU32 = AtomicU32::new(0);
planted!(a_static_counter_is_reported, Static at "sim.next": Counts { next: u32 }, _frame, me => {
    me.next = NEXT.fetch_add(1, Ordering::Relaxed);
});

static BEGAN: OnceLock<Instant> = OnceLock::new();
planted!(a_clock_is_reported, Clock at "sim.at_us": Times { at_us: u64 }, frame, me => {
    if sum(frame) > 3 {
        me.at_us = BEGAN.get_or_init(Instant::now).elapsed().as_micros() as u64;
    }
});

#[derive(Clone, Default, Serialize, Deserialize)]
struct Seconds {
    at_s: u64,
}
game!(Seconds, _frame, _fx, me => {
    let now = SystemTime::now().duration_since(SystemTime::UNIX_EPOCH);
    me.at_s = now.expect("after 1970").as_secs();
});

/// If a second passes within a tick, the clock is found at once.
#[test]
fn a_clock_with_whole_seconds_is_reported() {
    let script = presses().in_one_process();
    expect(check(Seconds::default(), (), script), Kind::Clock, "");
}

#[derive(Clone, Default, Serialize, Deserialize)]
struct Weekdays {
    weekday: u8,
}
game!(Weekdays, frame, _fx, me => {
    if sum(frame) > 3 {
        let now = SystemTime::now().duration_since(SystemTime::UNIX_EPOCH);
        me.weekday = (now.expect("after 1970").as_secs() / 86_400 % 7) as u8;
    }
});

/// Found if the second process can have another clock; otherwise the report states that it had none.
#[test]
fn a_weekday_is_reported() {
    match check(Weekdays::default(), (), presses()) {
        Ok(report) => {
            let why = report.same_clock.as_ref().expect("another clock finds it");
            println!("dates were not tried here: {why}");
            assert!(report.to_string().contains("dates were not tried"));
        }
        found => {
            expect(found, Kind::Clock, "sim.weekday");
        }
    }
}

planted!(system_randomness_is_reported, Chance at "sim.face": Rolls { face: u32 }, frame, me => {
    if sum(frame) > 0 {
        me.face = RandomState::new().hash_one("die") as u32 % 6;
    }
});

planted!(a_thread_local_counter_is_reported, Thread at "sim.ids": Locals { ids: u32 }, frame, me => {
    thread_local! {
        static IDS: Cell<u32> = const { Cell::new(0) };
    }
    if sum(frame) > 0 {
        IDS.set(IDS.get() + 1);
        me.ids = IDS.get();
    }
});

planted!(the_thread_name_is_reported, Thread at "sim.is_main": Threads { is_main: bool }, _frame, me => {
    me.is_main = std::thread::current().name().is_some();
});

planted!(an_address_as_a_value_is_reported, Address at "sim.at": Points { list: Vec<u32>, at: u64 }, frame, me => {
    me.list.push(sum(frame));
    me.at = me.list.as_ptr() as u64;
});

planted!(the_address_of_a_static_is_reported, Address at "sim.at": Statics { at: u64 }, _frame, me => {
    me.at = &raw const NEXT as u64;
});

static SALT: OnceLock<u64> = OnceLock::new();
planted!(a_random_salt_drawn_once_per_process_is_reported, Process at "sim.salt": Once { salt: u64 }, _frame, me => {
    me.salt = SALT.get_or_init(|| RandomState::new().hash_one(1) >> 32) % 1_000;
});

static BEGUN: AtomicU32 = AtomicU32::new(0);
planted!(a_static_set_by_the_first_match_is_reported, Static at "": Second { matches: u32 }, frame, me => {
    if frame.tick().0 == 250 {
        // A level loaded for the first match of a process only.
        BEGUN.store(1, Ordering::Relaxed);
    }
    if frame.tick().0 < 100 {
        me.matches = BEGUN.load(Ordering::Relaxed);
    }
});

thread_local! {
    static WIND: Cell<u32> = const { Cell::new(0) };
}

fn drift(at: &mut u32, _: &(), _: &LoopContext<'_, ()>, _: &mut Outputs<'_, ()>) {
    *at += WIND.get();
}

#[derive(Clone, Default, Serialize, Deserialize)]
struct Drifts {
    at: Vec<u32>,
}
game!(Drifts, frame, fx, me => {
    me.at.resize(4, 0);
    WIND.set(sum(frame));
    fx.each("drift", frame, &mut me.at, |_, _| (), drift, |_, ()| {});
});

#[test]
fn a_loop_that_reads_more_than_its_reads_is_reported() {
    let found = expect(
        check(Drifts::default(), (), presses()),
        Kind::Reads,
        "sim.at",
    );
    assert!(found.to_string().contains("Effects::each"), "{found}");
}
