//! The kit for authors (`twinstep-testing`) on the games of this repository: it finds nothing in them, and is fast enough
//! to be part of every test run.

use powderkeg_game::skirmish::{self, Skirmish};
use powderkeg_game::{
    Arbiter, Bot, Game, Judge, Luck, Outcome, Query, Rules, Sticks, admit, speculate,
};
use twinstep_core::{Key, Mwc};
use twinstep_testing::{Report, Script, arena, check};

/// Everything on, at least so many ticks in a second, in a debug build on two busy cores too.
const TICKS_PER_SECOND_MIN: f64 = 60.0;

fn bots() -> Script<Game> {
    let mut bots: Vec<Bot> = (0..16)
        .map(|n| Bot::new(Sticks::Keys, Mwc::seed(9).fork(Key::new(n, 0))))
        .collect();
    Script::driven(move |seen, _| {
        let bot = &mut bots[seen.player.index()];
        bot.think(seen.sim, seen.rules, seen.player, seen.tick)
    })
}

/// Powderkeg as its bots play it.
fn powderkeg(rules: Rules, players: usize, ticks: u32) -> Report {
    let start = Game::new(&rules, 5);
    let script = bots()
        .outcomes(|asked, luck| match asked.query {
            Query::Blast { .. } | Query::Toss { .. } => {
                speculate(asked.sim, asked.rules, asked.query)
            }
            Query::Loot { .. } => Some(Outcome::Loot(None)),
            Query::Crit(_) => Some(Outcome::Crit(luck.below(4) == 0)),
        })
        .admits(|seen, command| admit(seen.sim, seen.rules, seen.player, command).is_ok())
        .players(players)
        .ticks(ticks);
    let report = check(start, rules, script).unwrap();
    println!(
        "{report}\n  {:.0} ticks a second",
        report.ticks_per_second()
    );
    assert_eq!(report.skipped, None, "{report}");
    assert!(
        report.ticks_per_second() >= TICKS_PER_SECOND_MIN,
        "{:.0} ticks a second",
        report.ticks_per_second()
    );
    report
}

/// The wave with the most enemies, for eight players, from its first enemy to far beyond its last one.
#[test]
fn powderkegs_largest_wave_is_clean() {
    let campaign = Rules::campaign();
    let crowd = campaign.tuning.crowd_percent;
    let largest = campaign
        .waves
        .iter()
        .max_by_key(|wave| wave.total(8, crowd))
        .expect("waves");
    let rules = Rules {
        waves: vec![largest.clone()],
        ..campaign.clone()
    };
    let report = powderkeg(rules, 8, 2_400);
    let tried = report.tried;
    assert!(tried.cues > 1_000 && tried.claims > 10, "{report}");
}

/// Nothing ends: shots, barrels, crates and pick-ups all occur.
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
        .map(|n| skirmish::SkirmishBot::new(Mwc::seed(9).fork(Key::new(n, 0))))
        .collect();
    let mut bombardier = skirmish::Bombardier::default();
    let script = Script::inputs([()])
        .commands(move |seen, _| {
            let bot = &mut bots[seen.player.index()];
            bot.think(seen.sim, seen.player, seen.tick)
        })
        .outcomes(move |asked, _| bombardier.decide(asked.sim, asked.query, asked.tick).ok())
        .admits(|seen, command| seen.sim.admits(seen.rules, seen.player, command))
        .ticks(1_200);
    let report = check(Skirmish::new(), skirmish::Rules::default(), script).unwrap();
    println!("{report}");
    assert!(report.tried.commands > 50, "{report}");
}

/// With its own physics, referee and guesses.
#[test]
fn powderkeg_holds_over_a_bad_network() {
    let rules = Rules::arena(40);
    let start = Game::new(&rules, 5);
    let arbiter = Arbiter::new(&rules, Luck::Seeded(7)).expect("walls that a mirror can hold");
    let played = arena(start, rules, bots())
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
