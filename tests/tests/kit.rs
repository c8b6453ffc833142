//! The test kit for authors (`twinstep-testing`) on the games of this repository: it finds no defect in them.
//! `twinstep-bench quick --only world` measures its speed.

use powderkeg_game::{Arbiter, Game, Judge, Luck, Query, Rules, speculate};
use twinstep_core::{Key, Mwc};
use twinstep_rig::checked;
use twinstep_rig::realm::Realm;
use twinstep_testing::{Report, Script, arena, check};

fn powderkeg(rules: Rules, players: usize, ticks: u32) -> Report {
    let report = checked::powderkeg(rules, players, ticks).unwrap();
    println!("{report}");
    assert_eq!(report.skipped, None, "{report}");
    report
}

#[test]
fn powderkegs_largest_wave_is_clean() {
    let report = powderkeg(checked::largest_wave_rules(), 8, 2_400);
    let tried = report.tried;
    assert!(tried.cues > 1_000 && tried.claims > 10, "{report}");
}

#[test]
fn powderkegs_arena_is_clean() {
    let report = powderkeg(Rules::arena(60), 4, 2_400);
    let tried = report.tried;
    assert!(tried.asked > 20 && tried.unanswered > 2, "{report}");
    assert!(tried.withheld_ticks > 0, "{report}");
}

#[test]
fn the_strategy_game_is_clean() {
    let mut luck = Mwc::seed(9).fork(Key::new(9, 0));
    let script = Script::<Realm>::inputs([()])
        .commands(move |seen, _| seen.sim.think(&mut luck, seen.tick))
        .outcomes(|asked, _| Some(asked.sim.struck(*asked.query)))
        .ticks(1_200);
    let report = check(Realm::default(), 50, script).unwrap();
    println!("{report}");
    assert!(report.tried.commands > 50, "{report}");
}

/// The arena uses Powderkeg's own physics, referee and guesses.
#[test]
fn powderkeg_holds_over_a_bad_network() {
    let rules = Rules::arena(40);
    let start = Game::new(&rules, 5);
    let arbiter = Arbiter::new(&rules, Luck::Seeded(7)).expect("walls that a mirror can hold");
    let played = arena(start, rules, checked::bots())
        .resolver(arbiter)
        .referee(Judge)
        .session(|config| {
            config.speculate(|sim: &Game, rules: &Rules, _: Key, query: &Query| {
                speculate(sim, rules, query)
            })
        })
        .seconds(20)
        .run()
        .unwrap();
    println!("{played}");
    assert!(played.server.outcomes > 5, "{played}");
}
