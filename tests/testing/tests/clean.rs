//! Games without a bug: no fault must be reported, and the report must be right.

use std::time::Duration;

use serde::{Deserialize, Serialize};
use twinstep_core::testing::doc::Counter;
use twinstep_core::{Effects, Frame, Key, Mwc, Never, PlayerId, Simulation, Table, Tick};
use twinstep_testing::{Script, check};

use crate::planting::game;

/// A race that uses every feature: its own generator, queries, claims, cues, a table.
#[derive(Clone, Serialize, Deserialize)]
struct Race {
    pawns: Table<PlayerId, Pawn>,
    luck: Mwc,
    weather: u32,
}

#[derive(Clone, Default, Serialize, Deserialize)]
struct Pawn {
    square: u32,
    throws: u32,
    falls: u32,
    pressed: bool,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
enum Order {
    Jump,
    Fell,
}

game!(Race, u32, u8, Order, PlayerId, u32, PlayerId, frame, fx, me => {
    me.weather = me.luck.below(*frame.rules());
    for (player, _) in frame.roster() {
        me.pawns.get_or_insert_with(player, Pawn::default);
    }
    for (_, player, face) in frame.outcomes() {
        if let Some(pawn) = me.pawns.get_mut(player) {
            pawn.square += face.unwrap_or(&0);
        }
    }
    for (player, order) in frame.commands() {
        let Some(pawn) = me.pawns.get_mut(&player) else { continue };
        match order {
            Order::Jump => pawn.square += 1,
            Order::Fell => pawn.falls += 1,
        }
        fx.cue(Key::player(player, frame.tick().0), player);
    }
    for (player, button) in frame.inputs() {
        let Some(pawn) = me.pawns.get_mut(&player) else { continue };
        if *button == 1 && !pawn.pressed {
            fx.ask(Key::player(player, pawn.throws), player);
            pawn.throws += 1;
        }
        if *button == 2 && me.weather == 0 {
            fx.claim(player, Order::Fell);
        }
        pawn.pressed = *button == 1;
    }
});

fn race() -> Race {
    Race {
        pawns: Table::new(),
        luck: Mwc::seed(5),
        weather: 0,
    }
}

#[test]
fn check_finds_no_fault_in_a_game_that_uses_every_feature() {
    let script = Script::inputs([0, 1, 2])
        .commands(|_, luck| (luck.below(30) == 0).then_some(Order::Jump))
        .outcomes(|_, luck| Some(luck.below(6) + 1));
    let report = check(race(), 4, script).unwrap();
    assert!(
        report.untried.is_empty() && report.unused_variants.is_empty(),
        "{report}"
    );
    println!("{report}");
    let tried = report.tried;
    assert_eq!((tried.ticks, tried.players), (600, 4));
    assert!(tried.changes > 6, "{report}");
    assert!(
        tried.commands > 20 && tried.claims > 5 && tried.refused > 2,
        "{report}"
    );
    assert!(
        tried.asked > 50 && tried.unanswered > 5 && tried.cues > 20,
        "{report}"
    );
    assert_eq!(report.skipped, None, "{report}");
    assert!(report.costs.step.time.as_nanos() > 0);
    assert!(
        report
            .costs
            .ticks_within(std::time::Duration::from_millis(4))
            > 100
    );
}

#[derive(Clone, Default, Serialize, Deserialize)]
struct Raid {
    bombs: u32,
    hits: u32,
}
game!(Raid, (), u8, Never, u32, u32, Never, frame, fx, me => {
    me.hits += frame.outcomes().count() as u32;
    if frame.tick().0 % 60 == 30 {
        for _ in 0..40 {
            fx.ask(Key::new(1, me.bombs), me.bombs);
            me.bombs += 1;
        }
    }
});

#[test]
fn a_game_that_asks_in_bursts_gets_all_answers() {
    let script = Script::inputs([0]).outcomes(|_, luck| Some(luck.below(6)));
    let report = check(Raid::default(), (), script).unwrap();
    assert_eq!((report.tried.asked, report.tried.dropped_asks), (400, 0));
}

#[test]
fn a_test_may_contain_several_checks() {
    for seed in [3, 4] {
        let script = Script::inputs([0, 5]).seed(seed).ticks(100);
        let report = check(Counter::default(), (), script).unwrap();
        assert_eq!((report.seed, report.skipped), (seed, None));
    }
}

#[derive(Clone, Default, Serialize, Deserialize)]
struct Lists {
    heard: Vec<u32>,
}
game!(Lists, frame, _fx, me => {
    me.heard.push(frame.tick().0);
});

/// A steady script changes the roster only when its three players join.
#[test]
fn a_steady_script_is_constant_after_its_first_tick() {
    let script = Script::inputs([0_u8, 1]).ticks(200).steady().players(3);
    let report = check(Lists::default(), (), script).unwrap();
    assert_eq!(report.tried.changes, 3);
    assert_eq!(Tick(report.tried.ticks), Tick(200));
    let world = report
        .sizes
        .iter()
        .find(|size| size.what == "world")
        .unwrap();
    assert!(world.bytes > 200 && world.bytes < 1_000, "{report}");
}

#[derive(Clone, Default, Serialize, Deserialize)]
struct Lasted {
    ms: u32,
    overrun: bool,
}
game!(Lasted, frame, _fx, me => {
    me.ms += frame.tick_length().as_millis() as u32;
    // Correct at 20 Hz only, so a check at another rate would fail.
    me.overrun |= me.ms % 50 != 0;
    assert!(!me.overrun, "{} ms", me.ms);
});

/// A game played at 20 Hz is checked at 20 Hz, even in the second process.
#[test]
fn a_check_steps_at_its_scripts_rate() {
    let script = || Script::inputs([0_u8, 1]).ticks(100);
    let at = script().tick_length(Duration::from_millis(50));
    let report = check(Lasted::default(), (), at).unwrap();
    assert_eq!((report.tried.ticks, report.skipped), (100, None));
    let fault = check(Lasted::default(), (), script()).unwrap_err();
    assert!(fault.what.contains("16 ms"), "{fault}");
}

#[test]
#[should_panic(expected = "expected a tick of 1 ms to 1 s, got 2s")]
fn an_invalid_tick_rate_is_refused() {
    let _ = Script::<Lasted>::inputs([0_u8]).tick_length(Duration::from_secs(2));
}

#[derive(Clone, Default, Serialize, Deserialize)]
struct Boxes {
    last: Option<Box<u32>>,
}
game!(Boxes, frame, _fx, me => {
    me.last = Some(Box::new(frame.tick().0));
});

#[test]
fn allocations_are_counted() {
    let costs = |report: twinstep_testing::Report| {
        let costs = report.costs;
        [costs.step, costs.clone_from, costs.digest].map(|cost| cost.allocations)
    };
    let none = check(Counter::default(), (), Script::inputs([0, 1])).unwrap();
    assert_eq!(costs(none), [Some(0); 3]);
    let one = check(Boxes::default(), (), Script::inputs([0, 1])).unwrap();
    assert_eq!(costs(one), [Some(1), Some(1), Some(0)]);
}

/// Finding A3-10: a 120 Hz game was compared with the lead of a 60 Hz game.
#[test]
fn a_report_measures_the_lead_in_the_games_own_ticks() {
    let script = Script::inputs([0, 1]).tick_length(Duration::from_secs(1) / 120);
    let report = check(Counter::default(), (), script.ticks(60)).unwrap();
    assert!(report.to_string().contains("of 144 at 120 Hz"), "{report}");
}

/// A report without a fault does not prove much about untried features, so it lists them.
#[test]
fn features_that_the_script_never_uses_are_listed() {
    let idle = check(race(), 6, Script::inputs([0]).ticks(60)).unwrap();
    assert_eq!(
        idle.untried,
        ["a command", "a query", "a query without an answer", "a cue"]
    );
    assert!(
        idle.to_string()
            .contains("NEVER TRIED: a command, a query,")
    );
    assert!(
        idle.unused_variants.contains(&"command Jump".to_owned()),
        "{idle}"
    );
    let [ticks, commands, list, rules] = &idle.lacks[..] else {
        panic!("{idle}");
    };
    assert!(ticks.starts_with("ticks (60 of 300)"), "{idle}");
    assert!(commands.starts_with("commands (0 of 100)"), "{idle}");
    assert!(list.contains("sim.pawns"), "{idle}");
    assert!(rules.contains("`Script::also_on`"), "{idle}");
    assert!(idle.to_string().contains("A SMALL RUN"), "{idle}");
    let counter = check(Counter::default(), (), Script::inputs([0]).ticks(60)).unwrap();
    assert!(
        counter.untried.is_empty(),
        "it has none of these: {counter}"
    );
}
