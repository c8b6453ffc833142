//! Tiny games with one planted bug each that one process with one map on one machine does not show: months, cores,
//! switches, matches played before, and memory that a copy of the state does not have.

use std::sync::OnceLock;
use std::thread;
use std::time::SystemTime;

use serde::{Deserialize, Serialize};
use twinstep_core::{Effects, Frame, Never, Simulation, Table};
use twinstep_testing::{Kind, Script, check};

use crate::planting::{expect, game, planted, presses, sum};

#[derive(Clone, Default, Serialize, Deserialize)]
struct Christmas {
    coins: u32,
}
game!(Christmas, frame, _fx, me => {
    let days = SystemTime::UNIX_EPOCH.elapsed().map_or(0, |time| time.as_secs() / 86_400) as f64;
    let is_december = days % 365.2425 >= 334.0;
    me.coins += sum(frame) * if is_december { 2 } else { 1 };
});

// Finding A4-1.
#[test]
fn a_bonus_in_one_month_of_the_year_is_reported() {
    match check(Christmas::default(), (), presses()) {
        Ok(report) => println!(
            "no month was tried: {}",
            report.same_clock.expect("a moving clock finds it")
        ),
        found => {
            let fault = expect(found, Kind::Clock, "sim.coins");
            assert!(fault.what.contains("at each reading"), "{fault}");
        }
    }
}

#[derive(Clone, Default, Serialize, Deserialize)]
struct Shares {
    parts: u32,
}
game!(Shares, frame, _fx, me => {
    let cores = thread::available_parallelism().map_or(1, |cores| cores.get() as u32);
    me.parts += sum(frame).div_ceil(cores);
});

// Finding A4-1.
#[test]
fn the_number_of_cores_is_reported() {
    match check(Shares::default(), (), presses()) {
        Ok(report) => {
            let why = report.same_cores.as_ref().expect("one core finds it");
            println!("one core was not tried: {why}");
            assert!(report.to_string().contains("its cores were the same"));
        }
        found => drop(expect(found, Kind::Cores, "sim.parts")),
    }
}

planted!(a_switch_that_is_not_set_here_is_reported, Environment at "sim.on": Debugs { on: u32 }, frame, me => {
    me.on = u32::from(std::env::var_os("VERBOSE").is_some()) + sum(frame);
});

// Finding A4-1. No list of common variables has this one, but a source of this workspace names it.
planted!(a_variable_that_only_the_sources_name_is_reported, Environment at "sim.on": Hard { on: u32 }, frame, me => {
    me.on = u32::from(std::env::var_os("STATE_DIRECTORY").is_some()) + sum(frame);
});

/// A game with a number as its rules. Its step uses the rules of the first match of its process.
macro_rules! keeps_the_first {
    ($name:ident, $kept:ident) => {
        static $kept: OnceLock<u32> = OnceLock::new();
        #[derive(Clone, Default, Serialize, Deserialize)]
        struct $name {
            sum: u32,
        }
        game!($name, u32, u8, Never, Never, Never, Never, frame, _fx, me => {
            me.sum += $kept.get_or_init(|| *frame.rules()) * sum(frame);
        });
    };
}

keeps_the_first!(Maps, MAP);
#[test]
fn a_static_of_another_map_is_reported() {
    let script = presses().also_on(Maps::default(), 5);
    let fault = expect(check(Maps::default(), 3, script), Kind::Earlier, "sim.sum");
    assert!(fault.what.contains("`Script::also_on`"), "{fault}");
}

keeps_the_first!(Levels, LEVEL);
// Finding A4-2.
#[test]
fn a_static_of_an_earlier_check_is_reported() {
    check(Levels::default(), 3, presses()).unwrap();
    let found = check(Levels::default(), 5, presses());
    let fault = expect(found, Kind::Earlier, "sim.sum");
    assert!(fault.what.contains("earlier checks"), "{fault}");
}

keeps_the_first!(Scenes, SCENE);
#[test]
fn a_static_of_another_test_is_reported() {
    // Only the first process runs other tests.
    if std::env::var_os("TWINSTEP_TESTING_SECOND_PROCESS").is_none() {
        SCENE.get_or_init(|| 5);
    }
    let fault = expect(
        check(Scenes::default(), 3, presses()),
        Kind::Earlier,
        "sim.sum",
    );
    assert!(fault.what.contains("ran this test alone"), "{fault}");
}

planted!(the_arguments_of_the_program_are_reported, Environment at "sim.count": Arguments { count: u32 }, frame, me => {
    me.count = std::env::args().count() as u32 + sum(frame);
});

// Finding A4-2.
planted!(a_capacity_is_reported, Hidden at "sim.feasts": Births { born: Vec<u32>, feasts: u32 }, frame, me => {
    if sum(frame) > 3 {
        if me.born.len() == me.born.capacity() {
            me.born.clear();
            me.feasts += 1;
        }
        me.born.push(frame.tick().0);
    }
});

// Finding A4-2. The entries of a page have ascending addresses, but the pages do not.
planted!(an_order_of_addresses_in_a_large_table_is_reported, Address at "sim.place": Crowd { people: Table<u32, u32>, place: Vec<u32> }, frame, me => {
    for n in 0..8 {
        let id = (frame.tick().0 * 8 + n) * 7_919 % 2_048;
        me.people.insert(id, sum(frame));
    }
    let mut people: Vec<(&u32, &u32)> = me.people.iter().collect();
    people.sort_by_key(|(_, held)| (**held, &raw const **held as usize));
    me.place = people.iter().step_by(97).map(|(id, _)| **id).collect();
});

// People that walk and, if the rules are `true`, are sorted by their distance and their address.
#[derive(Clone, Default, Serialize, Deserialize)]
struct March {
    people: Table<u32, [u16; 12]>,
    place: Vec<u32>,
}
game!(March, bool, u8, Never, Never, Never, Never, frame, _fx, me => {
    for n in 0..8 {
        let id = (frame.tick().0 * 8 + n) * 7_919 % 512;
        me.people.insert(id, [id as u16; 12]);
    }
    if *frame.rules() && frame.tick().0 > 60 {
        let mut people: Vec<_> = me.people.iter().collect();
        people.sort_by_key(|(_, at)| (at[0] % 8, &raw const **at as usize));
        me.place = people.iter().step_by(29).map(|(id, _)| **id).collect();
    }
});

// Finding A4-2. Maps checked before leave holes in the heap, and each copy of a world takes other ones.
#[test]
fn an_order_of_addresses_is_reported_in_a_heap_with_many_holes() {
    for _ in 0..2 {
        check(
            March::default(),
            false,
            Script::inputs([0, 1, 2]).ticks(100),
        )
        .expect("no order");
    }
    let found = check(March::default(), true, Script::inputs([0, 1, 2]).ticks(100));
    expect(found, Kind::Address, "sim.place");
}

/// A sum that is kept up to date, and computed again if it is missing; its last digits then differ.
#[derive(Clone, Default, Serialize, Deserialize)]
struct Lazy {
    parts: Vec<f32>,
    #[serde(skip)]
    kept: Option<f32>,
    total: f32,
}
game!(Lazy, frame, _fx, me => {
    let part = sum(frame) as f32 / 3.0 + 0.1 / (frame.tick().0 + 1) as f32;
    if let Some(kept) = &mut me.kept {
        *kept += part;
    }
    me.parts.insert(0, part);
    me.total = *me.kept.get_or_insert_with(|| me.parts.iter().sum());
});

// Finding A4-2.
#[test]
fn a_skipped_field_is_named_even_if_only_the_last_digits_differ() {
    let found = check(Lazy::default(), (), presses());
    let fault = expect(found, Kind::LostField, "sim.total");
    assert!(
        fault.what.ends_with("serde skips `kept` of `Lazy`"),
        "{fault}"
    );
}
