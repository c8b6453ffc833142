//! Tiny games with one planted bug each in the step's effects or assumptions: a missing `withhold`, keys without a
//! cause, and expectations that other players break.

use serde::{Deserialize, Serialize};
use twinstep_core::{Effects, Frame, Key, Never, PlayerId, RosterChange, Simulation, Table};
use twinstep_testing::{Kind, check};

use crate::planting::{expect, game, planted, presses};

#[derive(Clone, Default, Serialize, Deserialize)]
struct Ghosts {
    bullets: Vec<(PlayerId, u32)>,
    hits: u32,
    withholds: bool,
}
game!(Ghosts, frame, fx, me => {
    for (player, held) in frame.inputs() {
        if *held == 1 {
            me.bullets.push((player, frame.tick().0));
        }
    }
    let mut bullets = std::mem::take(&mut me.bullets);
    bullets.retain(|(player, born)| {
        if frame.tick().0 < born + 3 {
            return true;
        }
        // A ghost is harmless while its shot is only guessed.
        if frame.is_ghost(*player, twinstep_core::Tick(*born)) {
            if me.withholds {
                fx.withhold();
            }
        } else {
            me.hits += 1;
        }
        false
    });
    me.bullets = bullets;
});

#[test]
fn a_missing_withhold_is_reported() {
    expect(
        check(Ghosts::default(), (), presses()),
        Kind::Phase,
        "sim.hits",
    );
}

#[test]
fn a_step_that_calls_withhold_passes() {
    let start = Ghosts {
        withholds: true,
        ..Ghosts::default()
    };
    let report = check(start, (), presses()).unwrap();
    assert!(report.tried.withheld_ticks > 0);
}

planted!(state_that_depends_on_the_screen_is_reported, Phase at "sim.own": Screens { own: u32 }, frame, me => {
    me.own += frame.inputs().filter(|(player, _)| frame.is_local(*player)).count() as u32;
});

#[derive(Clone, Default, Serialize, Deserialize)]
struct Names {
    next: u32,
    by_cause: bool,
    own: Table<PlayerId, u32>,
}
game!(Names, (), u8, Never, Never, Never, PlayerId, frame, fx, me => {
    for (player, held) in frame.inputs() {
        if *held == 1 {
            me.next += 1;
            let own = me.own.get_or_insert_with(player, || 0);
            *own += 1;
            let key = match me.by_cause {
                true => Key::player(player, *own),
                false => Key::new(1, me.next),
            };
            fx.cue(key, player);
        }
    }
});

#[test]
fn cues_named_by_a_shared_counter_are_reported() {
    let fault = expect(check(Names::default(), (), presses()), Kind::SharedKeys, "");
    assert!(
        fault.what.contains("the key of the cue PlayerId("),
        "{fault}"
    );
}

#[test]
fn cues_named_by_their_cause_are_clean() {
    let start = Names {
        by_cause: true,
        ..Names::default()
    };
    let report = check(start, (), presses()).unwrap();
    let (kept, renamed) = report.tried.keys;
    assert!(kept > 100 && renamed == 0, "{report}");
}

#[derive(Clone, Default, Serialize, Deserialize)]
struct Questions {
    next: u32,
    sum: u32,
}
game!(Questions, (), u8, Never, PlayerId, u8, Never, frame, fx, me => {
    for (_, _, outcome) in frame.outcomes() {
        me.sum += u32::from(outcome.copied().unwrap_or(0));
    }
    for (player, held) in frame.inputs() {
        if *held == 1 && frame.tick().0.is_multiple_of(4) {
            me.next += 1;
            fx.ask(Key::new(7, me.next), player);
        }
    }
});

#[test]
fn queries_named_by_a_shared_counter_are_reported() {
    let script = presses().outcomes(|_, luck| Some(luck.below(6) as u8));
    let fault = expect(
        check(Questions::default(), (), script),
        Kind::SharedKeys,
        "",
    );
    assert!(
        fault.what.contains("the key of the query PlayerId("),
        "{fault}"
    );
}

#[derive(Clone, Default, Serialize, Deserialize)]
struct Doubles {
    answers: u32,
}
game!(Doubles, (), u8, Never, u8, u8, Never, frame, fx, me => {
    me.answers += frame.outcomes().count() as u32;
    for (_, held) in frame.inputs() {
        if *held == 2 {
            fx.ask(Key::new(3, frame.tick().0), *held);
        }
    }
});

#[test]
fn two_queries_under_one_key_are_reported() {
    expect(
        check(Doubles::default(), (), presses()),
        Kind::AskedTwice,
        "",
    );
}

#[derive(Clone, Default, Serialize, Deserialize)]
struct Insists {
    square: u32,
}
game!(Insists, (), u8, Never, PlayerId, u32, Never, frame, fx, me => {
    for (_, _, outcome) in frame.outcomes() {
        me.square += outcome.expect("the server answers");
    }
    for (player, held) in frame.inputs() {
        if *held == 1 {
            fx.ask(Key::player(player, frame.tick().0), player);
        }
    }
});

#[test]
fn a_panic_if_an_outcome_is_none_is_reported() {
    let script = presses().outcomes(|_, luck| Some(luck.below(6)));
    let fault = expect(
        check(Insists::default(), (), script),
        Kind::PanicUnanswered,
        "",
    );
    assert!(fault.what.contains("the server answers"), "{fault}");
}

#[derive(Clone, Default, Serialize, Deserialize)]
struct Expects {
    here: Table<PlayerId, u32>,
}
game!(Expects, frame, _fx, me => {
    for (player, change) in frame.roster() {
        match change {
            RosterChange::Joined => me.here.insert(player, 0),
            _ => me.here.remove(&player),
        };
    }
    for (player, _) in frame.inputs() {
        // A player that reconnects has not joined again.
        *me.here.get_mut(&player).expect("its player joined") += 1;
    }
});

#[test]
fn a_panic_when_a_player_reconnects_is_reported() {
    let fault = expect(check(Expects::default(), (), presses()), Kind::Panic, "");
    assert!(fault.what.contains("its player joined"), "{fault}");
}

#[derive(Clone, Default, Serialize, Deserialize)]
struct Sounds {
    shots: Table<PlayerId, u32>,
    how: u8,
}
game!(Sounds, (), u8, Never, u8, Never, u8, frame, fx, me => {
    for (player, held) in frame.inputs() {
        if *held != 1 {
            continue;
        }
        let shots = me.shots.get_or_insert_with(player, || 0);
        *shots += 1;
        let (key, is_own) = (Key::player(player, *shots), frame.is_local(player));
        match me.how {
            // A sound for the player's own screen only.
            0 if is_own => fx.cue(key, 7),
            // A louder sound on that screen.
            1 => fx.cue(key, if is_own { 9 } else { 7 }),
            2 if is_own => fx.ask(key, 7),
            // These two are correct: a cue for every screen, and a cue that waits for confirmation.
            3 => fx.cue(key, 7),
            4 => fx.cue_when_confirmed(key, 7),
            5 if is_own => {
                fx.cue(key, 7);
                fx.withhold();
            }
            _ => {}
        }
    }
});

fn sounds(how: u8) -> Result<twinstep_testing::Report, twinstep_testing::Fault> {
    let start = Sounds {
        how,
        ..Sounds::default()
    };
    check(start, (), presses())
}

#[test]
fn a_cue_emitted_only_on_the_local_screen_is_reported() {
    let fault = expect(sounds(0), Kind::Effects, "");
    assert!(fault.what.contains("the cue 7 under the key"), "{fault}");
}

#[test]
fn a_cue_whose_value_depends_on_the_screen_is_reported() {
    let fault = expect(sounds(1), Kind::Effects, "");
    assert!(fault.what.contains("the cue 9 under the key"), "{fault}");
}

#[test]
fn a_query_asked_only_on_the_local_screen_is_reported() {
    let fault = expect(sounds(2), Kind::Effects, "");
    assert!(fault.what.contains("the query 7 under the key"), "{fault}");
}

#[test]
fn cues_on_all_screens_confirmed_or_withheld_are_clean() {
    for how in 3..=5 {
        let report = sounds(how).unwrap();
        assert!(how == 5 || report.tried.cues > 50, "{report}");
    }
}
