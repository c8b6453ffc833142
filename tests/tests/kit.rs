//! The test kit for authors (`twinstep-testing`) on the games of this repository: it finds no defect in them.
//! `twinstep-bench quick --only world` measures its speed.

use powderkeg_game::{Arbiter, Game, Judge, Luck, Query, Rules, speculate};
use twinstep_core::{Key, Mwc};
use twinstep_rig::checked;
use twinstep_rig::skirmish::{Rules as Field, Skirmish, SkirmishBot};
use twinstep_testing::{Report, Script, arena, check};

fn powderkeg(rules: Rules, players: usize, ticks: u32) -> Report {
    let report = checked::powderkeg(rules, players, ticks).unwrap();
    println!("{report}");
    assert_eq!(report.skipped, None, "{report}");
    report
}

/// The wave with the most enemies, for eight players, from its first enemy to far beyond its last one.
#[test]
fn powderkegs_largest_wave_is_clean() {
    let report = powderkeg(checked::largest_wave(), 8, 2_400);
    let tried = report.tried;
    assert!(tried.cues > 1_000 && tried.claims > 10, "{report}");
}

/// An endless arena, in which shots, barrels, crates and pick-ups all occur.
#[test]
fn powderkegs_arena_is_clean() {
    let report = powderkeg(Rules::arena(60), 4, 2_400);
    let tried = report.tried;
    assert!(tried.asked > 20 && tried.unanswered > 2, "{report}");
    assert!(tried.withheld_ticks > 0, "{report}");
}

#[test]
fn the_skirmish_is_clean() {
    let mut bots: Vec<_> = (0..16)
        .map(|n| SkirmishBot::new(Mwc::seed(9).fork(Key::new(n, 0))))
        .collect();
    let script = Script::inputs([()])
        .commands(move |seen, _| {
            let bot = &mut bots[seen.player.index()];
            bot.think(seen.sim, seen.player, seen.tick)
        })
        .outcomes(move |asked, _| Some(asked.sim.struck(asked.query, asked.tick)))
        .admits(|seen, command| seen.sim.admits(seen.rules, seen.player, command))
        .ticks(1_200);
    let report = check(Skirmish::new(), Field::default(), script).unwrap();
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
