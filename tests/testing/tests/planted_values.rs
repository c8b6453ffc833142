//! Tiny games with one planted bug each in their inputs, commands, outcomes or rules; and faulty scripts.

use std::cell::Cell;
use std::collections::HashMap;
use std::hash::{BuildHasher, RandomState};
use std::sync::atomic::{AtomicU32, Ordering};

use serde::{Deserialize, Serialize};
use twinstep_core::simulation::Controls;
use twinstep_core::{Effects, Frame, Key, Never, Simulation};
use twinstep_testing::{Kind, Script, check};

use crate::planting::{expect, game, sum};

#[derive(Clone, Default, Serialize, Deserialize)]
struct Orders {
    bytes: u32,
}
game!(Orders, (), u8, Vec<u8>, u8, Vec<u8>, Never, frame, fx, me => {
    me.bytes += frame.commands().map(|(_, c)| c.len() as u32).sum::<u32>();
    me.bytes += frame.outcomes().filter_map(|(_, _, o)| o).map(|o| o.len() as u32).sum::<u32>();
    if sum(frame) > 0 {
        fx.ask(Key::new(1, frame.tick().0), 1);
    }
});

fn orders(command_bytes: usize, outcome_bytes: usize) -> Script<Orders> {
    Script::inputs([0, 1])
        .ticks(120)
        .commands(move |_, luck| (luck.below(9) == 0).then(|| vec![7; command_bytes]))
        .outcomes(move |_, _| Some(vec![7; outcome_bytes]))
}

#[test]
fn values_within_their_bounds_are_clean() {
    let report = check(Orders::default(), (), orders(4_093, 4_093)).unwrap();
    let sizes: Vec<_> = report
        .sizes
        .iter()
        .map(|s| (s.what, s.bytes, s.bound))
        .collect();
    assert_eq!(
        sizes[..3],
        [
            ("input", 1, 16),
            ("command", 4_096, 4_096),
            ("outcome", 4_096, 4_096)
        ],
        "{report}"
    );
    assert!(report.tried.commands > 10 && report.tried.asked > 10);
    assert_eq!(report.skipped, None);
}

#[test]
fn an_oversized_outcome_is_reported() {
    let fault = expect(
        check(Orders::default(), (), orders(1, 4_094)),
        Kind::TooLarge,
        "",
    );
    assert!(
        fault
            .what
            .contains("an outcome of 4097 bytes; the limit is 4096"),
        "{fault}"
    );
}

#[test]
fn an_oversized_command_is_reported() {
    let fault = expect(
        check(Orders::default(), (), orders(4_094, 1)),
        Kind::TooLarge,
        "",
    );
    assert!(fault.what.contains("a command of 4097 bytes"), "{fault}");
}

/// Aim and buttons; `==` compares the aim only.
#[derive(Clone, Debug, Default, Serialize, Deserialize)]
struct Pad {
    aim: u8,
    fire: bool,
}
impl PartialEq for Pad {
    fn eq(&self, other: &Self) -> bool {
        self.aim == other.aim
    }
}
impl Eq for Pad {}
impl Controls for Pad {}

#[derive(Clone, Default, Serialize, Deserialize)]
struct Fires {
    shots: u32,
}
game!(Fires, (), Pad, Never, Never, Never, Never, frame, _fx, me => {
    me.shots += frame.inputs().filter(|(_, pad)| pad.fire).count() as u32;
});

#[test]
fn an_eq_impl_that_ignores_a_field_is_reported() {
    let script = Script::new(|_, luck| Pad {
        aim: luck.below(4) as u8,
        fire: luck.below(2) == 0,
    });
    let fault = expect(check(Fires::default(), (), script), Kind::Equality, "fire");
    assert!(fault.what.contains("an input"), "{fault}");
}

#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
struct Build {
    what: u8,
    #[serde(skip)]
    why: u8,
}
#[derive(Clone, Default, Serialize, Deserialize)]
struct Builds {
    built: u32,
}
game!(Builds, (), (), Build, Never, Never, Never, frame, _fx, me => {
    me.built += frame.commands().map(|(_, b)| u32::from(b.what) + u32::from(b.why)).sum::<u32>();
});

#[test]
fn a_command_that_changes_in_serde_is_reported() {
    let script = Script::inputs([()]).commands(|_, luck| {
        let what = luck.below(3) as u8;
        (luck.below(20) == 0).then_some(Build { what, why: 1 })
    });
    let fault = expect(check(Builds::default(), (), script), Kind::Altered, "");
    assert!(fault.what.contains("a command"), "{fault}");
}

#[derive(Serialize)]
struct Counted {
    reads: AtomicU32,
}
#[derive(Clone, Default, Serialize, Deserialize)]
struct Reads {
    sum: u32,
}
game!(Reads, Counted, u8, Never, Never, Never, Never, frame, _fx, me => {
    frame.rules().reads.fetch_add(1, Ordering::Relaxed);
    me.sum += sum(frame);
});

#[test]
fn changing_rules_are_reported() {
    let rules = Counted {
        reads: AtomicU32::new(0),
    };
    expect(
        check(Reads::default(), rules, Script::inputs([0, 1])),
        Kind::RulesChanged,
        "",
    );
}

/// Rules that count their reads in a field that serde skips.
#[derive(Serialize)]
struct Hidden {
    #[serde(skip)]
    reads: AtomicU32,
}
#[derive(Clone, Default, Serialize, Deserialize)]
struct Peeks {
    reads: u32,
}
game!(Peeks, Hidden, u8, Never, Never, Never, Never, frame, _fx, me => {
    me.reads = frame.rules().reads.fetch_add(1, Ordering::Relaxed);
});

#[test]
fn a_cell_in_the_rules_is_reported() {
    let rules = Hidden {
        reads: AtomicU32::new(0),
    };
    expect(
        check(Peeks::default(), rules, Script::inputs([0, 1])),
        Kind::Static,
        "sim.reads",
    );
}

#[derive(Clone, Default, Serialize, Deserialize)]
struct Looks {
    total: u64,
}
game!(Looks, HashMap<u8, u64>, u8, Never, Never, Never, Never, frame, _fx, me => {
    me.total += frame.inputs().filter_map(|(_, held)| frame.rules().get(held)).sum::<u64>();
});

#[test]
fn rules_with_a_hash_map_are_reported() {
    let rules = (0..8).map(|n| (n, u64::from(n))).collect();
    expect(
        check(Looks::default(), rules, Script::inputs([0, 1])),
        Kind::RulesDiffer,
        "",
    );
}

#[test]
fn a_script_with_other_randomness_is_reported() {
    let rules = (0..1).map(|n| (n, u64::from(n))).collect();
    let held = Cell::new(0_u8);
    let script = Script::new(move |_, _| {
        held.set(RandomState::new().hash_one(1) as u8 & 1);
        held.get()
    });
    expect(check(Looks::default(), rules, script), Kind::Script, "");
}
