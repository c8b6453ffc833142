//! Tiny games, each with one planted bug: its step takes what differs by machine, process, thread or run.

use std::cell::Cell;
use std::collections::HashMap;
use std::hash::{BuildHasher, RandomState};
use std::sync::OnceLock;
use std::sync::atomic::{AtomicU32, Ordering};
use std::time::{Instant, SystemTime};

use serde::{Deserialize, Serialize};
use twinstep_core::{Effects, Frame, Never, Simulation};
use twinstep_testing::{Kind, check};

use crate::planting::{expect, game, presses, sum};

#[derive(Clone, Default, Serialize, Deserialize)]
struct Hashes {
    pawns: HashMap<u8, u32>,
}
game!(Hashes, frame, _fx, me => {
    for (player, held) in frame.inputs() {
        *me.pawns.entry(player.0).or_default() += u32::from(*held);
    }
});

#[test]
fn a_hash_map_in_the_state() {
    expect(
        check(Hashes::default(), (), presses()),
        Kind::HashOrder,
        "sim.pawns.keys()",
    );
}

#[derive(Clone, Default, Serialize, Deserialize)]
struct Sorts {
    order: Vec<u8>,
}
game!(Sorts, frame, _fx, me => {
    let by_player: HashMap<u8, u8> = frame.inputs().map(|(p, held)| (p.0, *held)).collect();
    me.order = by_player.into_keys().collect();
});

#[test]
fn a_hash_map_in_the_step() {
    expect(
        check(Sorts::default(), (), presses()),
        Kind::HashOrder,
        "sim.order",
    );
}

#[derive(Clone, Default, Serialize, Deserialize)]
struct Leads {
    leader: Option<u8>,
}
game!(Leads, frame, _fx, me => {
    let held: HashMap<u8, u8> = frame.inputs().map(|(p, held)| (p.0, *held)).collect();
    // Of equals the last one: which that is, the map decides.
    me.leader = held.iter().max_by_key(|(_, held)| **held).map(|(player, _)| *player);
});

#[test]
fn the_first_of_equals_in_a_hash_map() {
    let found = expect(
        check(Leads::default(), (), presses()),
        Kind::Chance,
        "sim.leader",
    );
    assert!(found.kind.advice().contains("`HashMap`"), "{found}");
}

#[derive(Clone, Default, Serialize, Deserialize)]
struct Pushes {
    at: [i32; 4],
}
game!(Pushes, frame, _fx, me => {
    let karts: HashMap<usize, i32> = frame.inputs().map(|(p, held)| (p.index(), i32::from(*held))).collect();
    for (kart, push) in karts {
        // Whoever was pushed before pushes harder.
        me.at[(kart + 1) % 4] += push + me.at[kart % 4] % 7;
    }
});

#[test]
fn pushes_in_the_order_of_a_hash_map() {
    expect(
        check(Pushes::default(), (), presses()),
        Kind::Chance,
        "sim.at",
    );
}

#[derive(Clone, Default, Serialize, Deserialize)]
struct Counts {
    next: u32,
}
static NEXT: AtomicU32 = AtomicU32::new(0);
game!(Counts, _frame, _fx, me => {
    me.next = NEXT.fetch_add(1, Ordering::Relaxed);
});

#[test]
fn a_static_counter() {
    expect(
        check(Counts::default(), (), presses()),
        Kind::Static,
        "sim.next",
    );
}

#[derive(Clone, Default, Serialize, Deserialize)]
struct Times {
    at_us: u64,
}
static BEGAN: OnceLock<Instant> = OnceLock::new();
game!(Times, frame, _fx, me => {
    if sum(frame) > 3 {
        me.at_us = BEGAN.get_or_init(Instant::now).elapsed().as_micros() as u64;
    }
});

#[test]
fn a_clock() {
    expect(
        check(Times::default(), (), presses()),
        Kind::Clock,
        "sim.at_us",
    );
}

#[derive(Clone, Default, Serialize, Deserialize)]
struct Seconds {
    at_s: u64,
}
game!(Seconds, _frame, _fx, me => {
    let now = SystemTime::now().duration_since(SystemTime::UNIX_EPOCH);
    me.at_s = now.expect("after 1970").as_secs();
});

/// A second passes within a tick now and then; then it is found at once.
#[test]
fn a_clock_of_whole_seconds() {
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

/// Found where the second process can have another clock; elsewhere the report says that it had none.
#[test]
fn a_day_of_the_week() {
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

#[derive(Clone, Default, Serialize, Deserialize)]
struct Rolls {
    face: u32,
}
game!(Rolls, frame, _fx, me => {
    if sum(frame) > 0 {
        me.face = RandomState::new().hash_one("die") as u32 % 6;
    }
});

#[test]
fn chance_of_the_system() {
    expect(
        check(Rolls::default(), (), presses()),
        Kind::Chance,
        "sim.face",
    );
}

#[derive(Clone, Default, Serialize, Deserialize)]
struct Locals {
    ids: u32,
}
game!(Locals, frame, _fx, me => {
    thread_local! {
        static IDS: Cell<u32> = const { Cell::new(0) };
    }
    if sum(frame) > 0 {
        IDS.set(IDS.get() + 1);
        me.ids = IDS.get();
    }
});

#[test]
fn a_thread_local_counter() {
    expect(
        check(Locals::default(), (), presses()),
        Kind::Thread,
        "sim.ids",
    );
}

#[derive(Clone, Default, Serialize, Deserialize)]
struct Threads {
    is_main: bool,
}
game!(Threads, _frame, _fx, me => {
    me.is_main = std::thread::current().name().is_some();
});

#[test]
fn the_name_of_the_thread() {
    expect(
        check(Threads::default(), (), presses()),
        Kind::Thread,
        "sim.is_main",
    );
}

#[derive(Clone, Default, Serialize, Deserialize)]
struct Points {
    list: Vec<u32>,
    at: u64,
}
game!(Points, frame, _fx, me => {
    me.list.push(sum(frame));
    me.at = me.list.as_ptr() as u64;
});

#[test]
fn an_address_as_a_value() {
    expect(
        check(Points::default(), (), presses()),
        Kind::Address,
        "sim.at",
    );
}

#[derive(Clone, Default, Serialize, Deserialize)]
struct Statics {
    at: u64,
}
game!(Statics, _frame, _fx, me => {
    me.at = &raw const NEXT as u64;
});

#[test]
fn the_address_of_a_static() {
    expect(
        check(Statics::default(), (), presses()),
        Kind::Address,
        "sim.at",
    );
}

#[derive(Clone, Default, Serialize, Deserialize)]
struct Once {
    salt: u64,
}
static SALT: OnceLock<u64> = OnceLock::new();
game!(Once, _frame, _fx, me => {
    me.salt = SALT.get_or_init(|| RandomState::new().hash_one(1) >> 32) % 1_000;
});

#[test]
fn chance_that_is_drawn_once_in_each_process() {
    expect(
        check(Once::default(), (), presses()),
        Kind::Process,
        "sim.salt",
    );
}

#[derive(Clone, Default, Serialize, Deserialize)]
struct Second {
    matches: u32,
}
static BEGUN: AtomicU32 = AtomicU32::new(0);
game!(Second, frame, _fx, me => {
    if frame.tick().0 == 250 {
        // A level loaded for the first match of a process, and never again.
        BEGUN.store(1, Ordering::Relaxed);
    }
    if frame.tick().0 < 100 {
        me.matches = BEGUN.load(Ordering::Relaxed);
    }
});

#[test]
fn a_static_that_tells_the_first_match_from_the_next() {
    expect(check(Second::default(), (), presses()), Kind::Static, "");
}
