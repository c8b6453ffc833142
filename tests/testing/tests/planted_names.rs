//! Tiny games with bugs that look similar but must be reported as different kinds: orders and numbers that come from
//! hashes, addresses, threads, clocks and generators.

use std::cell::Cell;
use std::collections::{HashMap, HashSet};
use std::io::Read;
use std::sync::atomic::{AtomicU32, Ordering};
use std::sync::{LazyLock, Mutex, mpsc};
use std::thread;
use std::time::{Instant, SystemTime, UNIX_EPOCH};

use serde::{Deserialize, Serialize};
use twinstep_core::{Effects, Frame, Never, Simulation};
use twinstep_testing::{Kind, check};

use crate::planting::{expect, game, planted, presses, sum};

fn address<T>(of: &T) -> usize {
    (&raw const *of) as usize
}

planted!(sorting_by_addresses_is_reported, Address at "sim.order": Sorted { order: Vec<u32> }, frame, me => {
    let mut held: Vec<Box<u32>> = frame.inputs().map(|(p, held)| Box::new(u32::from(p.0 + held))).collect();
    held.sort_by_key(|it| address(&**it));
    me.order = held.iter().map(|it| **it).collect();
});

planted!(sorting_by_addresses_in_the_state_is_reported, Address at "sim.order": Crates { crates: Vec<Box<u32>>, order: Vec<u32> }, frame, me => {
    if me.crates.len() < 8 {
        me.crates.push(Box::new(frame.tick().0));
    }
    let mut crates: Vec<&Box<u32>> = me.crates.iter().collect();
    crates.sort_by_key(|it| address(&***it));
    me.order = crates.iter().map(|it| ***it).collect();
});

planted!(digits_of_a_heap_address_are_reported, Address at "sim.digits": Digits { list: Vec<u32>, digits: u64 }, frame, me => {
    me.list.push(sum(frame));
    me.digits = (address(&me.list[0]) / 16 % 7) as u64;
});

planted!(digits_of_a_stack_address_are_reported, Address at "sim.digits": Stacks { digits: u64 }, frame, me => {
    let held = sum(frame);
    me.digits = (address(std::hint::black_box(&held)) / 16 % 7) as u64;
});

static PLACE: AtomicU32 = AtomicU32::new(0);
planted!(digits_of_a_static_address_are_reported, Address at "sim.digits": Places { digits: u64 }, _frame, me => {
    me.digits = (address(&PLACE) >> 12) as u64 % 1_009;
});

planted!(the_order_of_threads_is_reported, ThreadOrder at "sim.order": Finishes { order: Vec<u8> }, frame, me => {
    let (done, take) = mpsc::channel();
    thread::scope(|scope| {
        for (player, held) in frame.inputs() {
            let (done, held) = (done.clone(), *held);
            scope.spawn(move || {
                thread::yield_now();
                let _ = done.send(player.0 * 3 + held);
            });
        }
    });
    drop(done);
    me.order = take.iter().collect();
});

planted!(a_sum_over_threads_is_reported, ThreadOrder at "sim.sum": Sums { sum: f32 }, frame, me => {
    let total = Mutex::new(0.1_f32);
    thread::scope(|scope| {
        for (player, held) in frame.inputs() {
            let (total, part) = (&total, f32::from(*held + 1) * 10_f32.powi(i32::from(player.0) * 3 - 4));
            scope.spawn(move || {
                thread::yield_now();
                let mut total = total.lock().unwrap();
                *total = (*total + part) * 1.1;
            });
        }
    });
    me.sum = total.into_inner().unwrap();
});

planted!(the_last_digits_of_a_clock_are_reported, Clock without libfaketime Random at "sim.digits": Nanos { digits: u32 }, frame, me => {
    if sum(frame) > 3 {
        let now = SystemTime::now().duration_since(UNIX_EPOCH);
        me.digits = now.expect("after 1970").subsec_nanos() / 10 % 97;
    }
});

static SINCE: LazyLock<Instant> = LazyLock::new(Instant::now);
planted!(a_clock_as_a_float_is_reported, Clock at "sim.at": Floats { at: f32 }, frame, me => {
    me.at = SINCE.elapsed().as_secs_f32() + sum(frame) as f32;
});

planted!(a_swing_driven_by_a_clock_is_reported, Clock without libfaketime Random at "sim.angle": Swings { angle: f64 }, frame, me => {
    if sum(frame) > 3 {
        me.angle = (SINCE.elapsed().as_secs_f64() * 50_000.0).sin();
    }
});

planted!(a_millisecond_clock_is_reported, Clock at "sim.beat": Beats { beat: u64 }, frame, me => {
    if sum(frame) > 3 {
        me.beat = SINCE.elapsed().as_millis() as u64 % 7;
    }
});

#[derive(Clone, Default, Serialize, Deserialize)]
struct Dates {
    at_s: u64,
}
game!(Dates, _frame, _fx, me => {
    let now = SystemTime::now().duration_since(UNIX_EPOCH);
    me.at_s = now.expect("after 1970").as_secs() % 1_000;
});

/// The second process differs too, because it runs later. The fault must still be reported as a clock.
#[test]
fn a_clock_in_whole_seconds_modulo_a_number_is_reported() {
    expect(check(Dates::default(), (), presses()), Kind::Clock, "");
}

static SEED: AtomicU32 = AtomicU32::new(42);
planted!(a_generator_in_a_static_is_reported, Static at "sim.face": Throws { face: u32 }, frame, me => {
    if sum(frame) > 3 {
        let next = SEED.load(Ordering::Relaxed).wrapping_mul(1_664_525).wrapping_add(1_013_904_223);
        SEED.store(next, Ordering::Relaxed);
        me.face = next >> 29;
    }
});

planted!(a_generator_in_a_thread_local_is_reported, Thread at "sim.face": Own { face: u32 }, frame, me => {
    thread_local! {
        static SEED: Cell<u32> = const { Cell::new(42) };
    }
    if sum(frame) > 3 {
        SEED.set(SEED.get().wrapping_mul(1_664_525).wrapping_add(1_013_904_223));
        me.face = SEED.get() >> 29;
    }
});

static TURN: AtomicU32 = AtomicU32::new(0);
planted!(a_static_counter_modulo_a_number_is_reported, Static at "sim.turn": Turns { turn: u32 }, frame, me => {
    if sum(frame) > 3 {
        me.turn = TURN.fetch_add(1, Ordering::Relaxed) % 3;
    }
});

#[cfg(unix)]
planted!(a_system_generator_is_reported, Random at "sim.face": Dice { face: u32 }, frame, me => {
    if sum(frame) > 3 {
        let mut byte = [0];
        std::fs::File::open("/dev/urandom").unwrap().read_exact(&mut byte).unwrap();
        me.face = u32::from(byte[0]) % 6;
    }
});

planted!(a_hash_set_in_the_state_is_reported, HashOrder at "sim.seen": Sets { seen: HashSet<u32> }, frame, me => {
    if sum(frame) > 3 {
        me.seen.insert(frame.tick().0);
    }
});

planted!(a_hash_map_is_reported_although_a_harmless_thread_runs, HashOrder at "sim.order": Both { order: Vec<u8> }, frame, me => {
    let by_player: HashMap<u8, u8> = frame.inputs().map(|(p, held)| (p.0, *held)).collect();
    me.order = by_player.into_keys().collect();
});

planted!(the_process_id_is_reported, Process at "sim.id": Ids { id: u32 }, frame, me => {
    me.id = std::process::id() % 997 + sum(frame);
});

static FIRST: AtomicU32 = AtomicU32::new(0);
planted!(a_static_set_once_is_reported, Static at "sim.begun": Once { begun: u32 }, frame, me => {
    if sum(frame) > 3 {
        me.begun = FIRST.swap(1, Ordering::Relaxed);
    }
});
