//! Safety under chaos, liveness after healing: many seeds, all kinds of faults, and all edge cases.
//!
//! `TWINSTEP_SEEDS=1000` runs this many seeds, starting at `TWINSTEP_FROM`; `TWINSTEP_SEED=17` reruns one;
//! `TWINSTEP_SECONDS` sets the virtual length of each (default 30). `TWINSTEP_LONG=6` makes every sixth run 5 minutes
//! long, and every sixth of these 30 minutes, so that per-minute budgets are spent and renewed (`bash ci/night.sh` runs
//! such worlds all night). With `TWINSTEP_PLAN=1` plans are only shown. With `TWINSTEP_GO_ON=1` the other seeds run
//! even if one failed, and all failed seeds are listed. `TWINSTEP_TIMES=1` prints the time that each takes.
//!
//! This program also contains tests that are too long for debug builds, and tests on the same subjects.

mod budget;
mod campaign;
mod command_results;
mod crash;
mod crowds;
mod cut_loads;
mod hostile;
mod inspect;
mod large_worlds;
mod lines;
mod poison;
mod policy_table;
mod rates;
mod server_decisions;
mod tickets;

use std::panic::{AssertUnwindSafe, catch_unwind};

use twinstep_rig::chaos::plan::{Game, Plan};
use twinstep_rig::chaos::reached::{Edge, Shares};
use twinstep_rig::chaos::{self, Run};
use twinstep_rig::edges::silence_intended_panics;
use twinstep_server::internal::panic_message;

const MANY: u64 = 500;
/// The length of a long world in seconds. The longest worlds are six times as long.
const LONG: u64 = 5 * 60;
const LONGEST: u64 = 30 * 60;

/// The length of a seed's world, if one in `long` worlds is long.
fn length(seed: u64, usual: u64, long: Option<u64>) -> u64 {
    match long {
        Some(long) if seed % long == long - 1 => match seed / long % 6 {
            5 => LONGEST,
            _ => LONG,
        },
        _ => usual,
    }
}

fn number(name: &str) -> Option<u64> {
    std::env::var(name).ok().map(|text| {
        text.parse()
            .unwrap_or_else(|_| panic!("{name}: expected a number, got {text:?}"))
    })
}

fn check(name: &str, game: Game, seeds: u64) {
    check_plans(name, game, seeds, |plan| plan);
}

#[expect(
    clippy::disallowed_methods,
    reason = "measures the speed of virtual time; no result depends on it"
)]
fn check_plans(name: &str, game: Game, seeds: u64, change: fn(Plan) -> Plan) {
    silence_intended_panics();
    let usual = number("TWINSTEP_SECONDS").unwrap_or(30);
    let long = number("TWINSTEP_LONG");
    let from = number("TWINSTEP_FROM").unwrap_or(0);
    let seeds = match number("TWINSTEP_SEED") {
        Some(seed) => seed..seed + 1,
        None => from..from + number("TWINSTEP_SEEDS").unwrap_or(seeds),
    };
    let began = std::time::Instant::now();
    let (mut total, mut runs, mut longs, mut failed) = (Run::default(), 0, 0, Vec::new());
    for seed in seeds {
        let seconds = length(seed, usual, long);
        let plan = change(Plan::draw(game, seed, seconds));
        if number("TWINSTEP_PLAN").is_some() {
            println!("{plan:#?}");
            continue;
        }
        let world_began = std::time::Instant::now();
        match catch_unwind(AssertUnwindSafe(|| chaos::play(game, &plan))) {
            Ok(run) => total.add(&run),
            Err(panic) => {
                let text = panic_message(&*panic);
                println!(
                    "{plan:?}\nseed {seed} failed: {text}\nrerun: TWINSTEP_SEED={seed} TWINSTEP_SECONDS={seconds} cargo test --release -p twinstep-tests --test chaos {name}"
                );
                failed.push(format!("{seed}: {text}"));
                assert!(
                    number("TWINSTEP_GO_ON").is_some(),
                    "seed {seed} failed: {text}"
                );
            }
        }
        if number("TWINSTEP_TIMES").is_some() {
            println!("seed {seed}: {:?}", world_began.elapsed());
        }
        runs += 1;
        longs += u64::from(seconds > usual);
    }
    if number("TWINSTEP_PLAN").is_some() {
        return;
    }
    let speed = total.virtual_time.as_secs_f64() / began.elapsed().as_secs_f64();
    let (reached, worlds) = (&total.reached, runs);
    println!(
        "{name}: {runs} worlds, {speed:.0} virtual seconds a second, {:.0} seconds virtual\nworlds that reached each edge:\n{}",
        total.virtual_time.as_secs_f64(),
        Shares {
            reached,
            game,
            worlds
        }
    );
    assert!(
        failed.is_empty(),
        "{} failed:\n{}",
        failed.len(),
        failed.join("\n")
    );
    if runs < 5 {
        // With few seeds, all worlds may be in lockstep, or have no reconnect or no command.
        return;
    }
    assert!(total.rebuilds > 0, "no prediction was wrong");
    assert!(total.resumed > 0, "no client returned");
    assert!(
        total.cues > 0 && total.queries > 0 && total.commands > 0,
        "the worlds were empty"
    );
    // The seeds of a complete check reach these edges; a smaller selection may not.
    let takes_minutes = |edge: &Edge| edge.takes_minutes();
    let mut of_minutes = Edge::ALL.iter().copied().filter(takes_minutes);
    assert!(
        longs == 0 || from > 0 || of_minutes.any(|edge| reached.worlds(edge) > 0),
        "no long world spends a minute's budget in four minutes"
    );
    for edge in Edge::ALL.iter().copied().filter(|edge| edge.is_of(game)) {
        let is_due = runs >= MANY && (longs > 0 || !edge.takes_minutes());
        let worlds = reached.worlds(edge);
        assert!(!is_due || worlds > 0, "no world reaches {edge:?}");
    }
}

#[test]
fn the_history_game_survives_chaos() {
    check("the_history_game_survives_chaos", Game::History, 6);
}

#[test]
fn powderkeg_survives_chaos() {
    check("powderkeg_survives_chaos", Game::Powderkeg, 3);
}

#[test]
fn the_game_of_edges_survives_chaos() {
    check("the_game_of_edges_survives_chaos", Game::Edges, 6);
}

/// Findings K3-P and HW6: one player sends poison in commands, inputs, claims and answers, over a bad link.
#[test]
fn a_poisoner_ends_no_other_client() {
    check_plans(
        "a_poisoner_ends_no_other_client",
        Game::Edges,
        6,
        Plan::poisoned,
    );
}

/// Findings HW1, HW2, HW3, HW4, HW5 and HW7: seeds of 90 s worlds that failed once. A change in how plans are drawn
/// gives these seeds other worlds.
#[test]
#[cfg_attr(debug_assertions, ignore = "long: the check plays it in release")]
fn worlds_that_failed_once_pass() {
    silence_intended_panics();
    let worlds = [
        (
            Game::Edges,
            [810_331, 750_262, 720_086, 900_382, 990_051].as_slice(),
        ),
        (Game::Powderkeg, &[700_220, 760_409, 790_201]),
        (Game::History, &[710_444, 830_537, 710_134]),
    ];
    for (game, seeds) in worlds {
        for seed in seeds {
            println!("{game:?} {seed}");
            let _ = chaos::play(game, &Plan::draw(game, *seed, 90));
        }
    }
}
