//! Tiny games with one planted bug each that only a late joiner, or another machine, would show: caches outside the
//! state, and variables of the environment.

use std::cell::RefCell;
use std::collections::BTreeMap;
use std::sync::Mutex;

use serde::{Deserialize, Serialize};
use twinstep_core::{Effects, Frame, Never, Simulation};
use twinstep_testing::{Kind, check};

use crate::planting::{expect, game, planted, presses, sum};

thread_local! {
    static COSTS: RefCell<BTreeMap<u32, u32>> = const { RefCell::new(BTreeMap::new()) };
}
// The cost of a place depends on the crowd at the tick in which it was first looked up.
planted!(a_cache_in_a_thread_local_is_reported, Cache at "sim.way": Walks { crowd: u32, way: u32 }, frame, me => {
    me.crowd = me.crowd % 97 + sum(frame);
    let place = frame.tick().0 / 7 % 11;
    me.way = COSTS.with_borrow_mut(|costs| *costs.entry(place).or_insert(me.crowd));
});

static PATHS: Mutex<BTreeMap<u32, u32>> = Mutex::new(BTreeMap::new());
planted!(a_cache_in_a_static_is_reported, Cache at "sim.way": Paths { crowd: u32, way: u32 }, frame, me => {
    me.crowd = me.crowd % 97 + sum(frame);
    let place = frame.tick().0 / 7 % 11;
    me.way = *PATHS.lock().unwrap().entry(place).or_insert(me.crowd);
});

/// Rules with a cache that serde skips.
#[derive(Default, Serialize)]
struct Map {
    #[serde(skip)]
    seen: Mutex<BTreeMap<u32, u32>>,
}
#[derive(Clone, Default, Serialize, Deserialize)]
struct Sees {
    crowd: u32,
    way: u32,
}
game!(Sees, Map, u8, Never, Never, Never, Never, frame, _fx, me => {
    me.crowd = me.crowd % 97 + sum(frame);
    let place = frame.tick().0 / 7 % 11;
    me.way = *frame.rules().seen.lock().unwrap().entry(place).or_insert(me.crowd);
});

#[test]
fn a_cache_in_the_rules_is_reported() {
    let found = check(Sees::default(), Map::default(), presses());
    expect(found, Kind::Cache, "sim.way");
}

/// A correct cache: its key contains everything that the value depends on.
#[derive(Clone, Default, Serialize, Deserialize)]
struct Squares {
    sum: u32,
}
thread_local! {
    static SQUARES: RefCell<BTreeMap<u32, u32>> = const { RefCell::new(BTreeMap::new()) };
}
game!(Squares, frame, _fx, me => {
    let held = sum(frame);
    let square = SQUARES.with_borrow_mut(|known| *known.entry(held).or_insert(held * held));
    me.sum = me.sum.wrapping_add(square);
});

#[test]
fn check_finds_no_fault_in_a_cache_of_a_pure_function() {
    let report = check(Squares::default(), (), presses()).unwrap();
    assert_eq!((report.skipped, report.same_environment), (None, None));
}

fn length(variable: &str) -> u32 {
    std::env::var(variable).map_or(0, |text| text.bytes().map(u32::from).sum())
}

planted!(the_home_folder_is_reported, Environment at "sim.luck": Homes { luck: u32 }, frame, me => {
    me.luck = length("HOME") + sum(frame);
});

planted!(the_user_name_is_reported, Environment at "sim.luck": Users { luck: u32 }, frame, me => {
    me.luck = length("USER") + sum(frame);
});

planted!(the_time_zone_is_reported, Environment at "sim.luck": Zones { luck: u32 }, frame, me => {
    me.luck = length("TZ") + sum(frame);
});

planted!(the_working_folder_is_reported, Environment at "sim.depth": Folders { depth: u32 }, frame, me => {
    me.depth = std::env::current_dir().map_or(0, |folder| folder.components().count() as u32) + sum(frame);
});

/// A variable that a developer's shell may set.
const SWITCH: &str = "SHLVL";
#[derive(Clone, Default, Serialize, Deserialize)]
struct Switches {
    on: u32,
}
game!(Switches, frame, _fx, me => {
    me.on = u32::from(std::env::var_os(SWITCH).is_some()) + sum(frame);
});

#[test]
fn an_environment_variable_set_in_only_one_process_is_reported() {
    // The second process must reach the check, so the variable is only read after it.
    let found = check(Switches::default(), (), presses());
    if std::env::var_os(SWITCH).is_some() {
        let fault = expect(found, Kind::Environment, "sim.on");
        assert!(fault.what.contains("`SHLVL` is not set"), "{fault}");
    }
}

/// A test whose set-up needs a variable is checked without another environment, and the report states that.
#[test]
fn a_test_that_needs_a_variable_is_checked_in_its_own_environment() {
    let home = std::env::var("HOME").unwrap_or_default();
    assert_ne!(
        home, "/another/home",
        "this test's files are in its home folder"
    );
    let report = check(Squares::default(), (), presses()).unwrap();
    assert_eq!(report.skipped, None, "{report}");
    let why = report
        .same_environment
        .as_ref()
        .expect("it had no other home");
    assert!(why.contains("this test's files"), "{why}");
    assert!(
        report.to_string().contains("its environment was the same"),
        "{report}"
    );
}
