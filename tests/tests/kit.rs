//! Applies the test kit for authors (`twinstep-testing`) to the games of this repository: it must not find a defect in
//! them. `twinstep-bench quick --only world` measures its speed.

use std::time::Duration;

use powderkeg_game::{Arbiter, Game, Judge, Luck, Query, Rules, speculate};
use serde::{Deserialize, Serialize};
use twinstep_core::{Effects, Frame, Key, Mwc, Never, Phase, Simulation};
use twinstep_rig::checked;
use twinstep_rig::realm::Realm;
use twinstep_server::MatchConfig;
use twinstep_testing::{Report, Script, arena, check};

fn powderkeg(rules: Rules, players: usize, ticks: u32) -> Report {
    let report = checked::powderkeg(rules, players, ticks).unwrap();
    println!("{report}");
    assert_eq!(report.skipped, None, "{report}");
    report
}

#[test]
fn check_finds_no_fault_in_powderkegs_largest_wave() {
    let report = powderkeg(checked::largest_wave_rules(), 8, 2_400);
    let tried = report.tried;
    assert!(tried.cues > 1_000 && tried.claims > 10, "{report}");
}

#[test]
fn check_finds_no_fault_in_powderkegs_arena() {
    let report = powderkeg(Rules::arena(60), 4, 2_400);
    let tried = report.tried;
    assert!(tried.asked > 20 && tried.unanswered > 2, "{report}");
    assert!(tried.withheld_ticks > 0, "{report}");
}

#[test]
fn check_finds_no_fault_in_the_strategy_game() {
    let mut luck = Mwc::seed(9).fork(Key::new(9, 0));
    let script = Script::<Realm>::inputs([()])
        .commands(move |seen, _| seen.sim.think(&mut luck, seen.tick))
        .outcomes(|asked, _| Some(asked.sim.struck(*asked.query)))
        .ticks(1_200);
    let report = check(Realm::default(), 50, script).unwrap();
    println!("{report}");
    assert!(report.tried.commands > 50, "{report}");
}

fn orders() -> Script<Realm> {
    let mut luck = Mwc::seed(9).fork(Key::new(9, 0));
    Script::<Realm>::inputs([()])
        .commands(move |seen, _| seen.sim.think(&mut luck, seen.tick))
        .outcomes(|asked, _| Some(asked.sim.struck(*asked.query)))
}

#[test]
fn reports_of_a_lockstep_game_do_not_mention_predictions() {
    let script = orders().lockstep().tick_length(Duration::from_millis(50));
    let checked = check(Realm::default(), 50, script).unwrap();
    let played = arena(Realm::default(), 50, orders())
        .policies(MatchConfig::strategy())
        .link("wan")
        .seconds(10)
        .run()
        .unwrap();
    let ran: u64 = played.clients.values().map(|it| it.commands_executed).sum();
    assert!(
        checked.tried.commands > 20 && ran > 10,
        "{checked}\n{played}"
    );
    for report in [checked.to_string(), played.to_string()] {
        println!("{report}");
        for word in [
            "lead", "predict", "rebuil", "withh", "cancel", "guess", "keys",
        ] {
            assert!(!report.to_lowercase().contains(word), "{word}: {report}");
        }
    }
    let predicted = check(Realm::default(), 50, orders()).unwrap().to_string();
    assert!(predicted.contains("ticks of lead"), "{predicted}");
}

// A game whose step depends on the phase, which is the same in every step in lockstep.
#[derive(Clone, Default, Serialize, Deserialize)]
struct Phased(u32);

impl Simulation for Phased {
    const NAME: &'static str = "phased";
    const VERSION: u32 = 1;
    type Rules = ();
    type Input = ();
    type Command = Never;
    type Query = Never;
    type Outcome = Never;
    type Cue = Never;

    fn step(&mut self, frame: &Frame<'_, Self>, _: &mut Effects<Self>) {
        self.0 += if frame.phase() == Phase::Authority {
            1
        } else {
            2
        };
    }
}

#[test]
fn a_fault_affecting_only_predictions_is_ignored_in_lockstep() {
    let script = || Script::<Phased>::inputs([()]).ticks(60).in_one_process();
    check(Phased::default(), (), script().lockstep()).unwrap();
    let fault = check(Phased::default(), (), script())
        .unwrap_err()
        .to_string();
    assert!(fault.contains("as a prediction"), "{fault}");
}

/// The arena uses Powderkeg's own physics, referee and guesses.
#[test]
fn powderkeg_passes_the_arena_over_a_bad_network() {
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
