//! Safety under chaos, liveness after healing: many seeds, all kinds of misfortune.
//!
//! `TWINSTEP_SEEDS=1000` runs as many; `TWINSTEP_SEED=17` reruns one; `TWINSTEP_SECONDS` sets the virtual
//! length of each (default 30; the full check takes 60).

use std::panic::{AssertUnwindSafe, catch_unwind};

use twinstep_tests::chaos::{self, Run};

fn number(name: &str) -> Option<u64> {
    std::env::var(name).ok().map(|text| {
        text.parse()
            .unwrap_or_else(|_| panic!("{name}: expected a number, got {text:?}"))
    })
}

#[expect(
    clippy::disallowed_methods,
    reason = "says how fast virtual time runs; nothing depends on it"
)]
fn check(name: &str, world: fn(u64, u64) -> Run, seeds: u64) {
    let seconds = number("TWINSTEP_SECONDS").unwrap_or(30);
    let seeds = match number("TWINSTEP_SEED") {
        Some(seed) => seed..seed + 1,
        None => 0..number("TWINSTEP_SEEDS").unwrap_or(seeds),
    };
    let began = std::time::Instant::now();
    let (mut total, mut runs) = (Run::default(), 0);
    for seed in seeds {
        let run = catch_unwind(AssertUnwindSafe(|| world(seed, seconds)));
        let Ok(run) = run else {
            panic!(
                "seed {seed} failed; rerun: TWINSTEP_SEED={seed} TWINSTEP_SECONDS={seconds} cargo test -p twinstep-tests --test chaos {name}"
            );
        };
        total.virtual_time += run.virtual_time;
        total.planted += run.planted;
        total.desyncs += run.desyncs;
        total.rebuilds += run.rebuilds;
        total.cues += run.cues;
        total.queries += run.queries;
        total.commands += run.commands;
        total.crashes += run.crashes;
        total.resumed += run.resumed;
        total.reloaded += run.reloaded;
        runs += 1;
    }
    let speed = total.virtual_time.as_secs_f64() / began.elapsed().as_secs_f64();
    println!("{name}: {runs} worlds, {speed:.0} virtual seconds a second, {total:?}");
    // One world alone may be in lockstep.
    assert!(runs == 1 || total.rebuilds > 0, "nothing was guessed");
    assert!(
        total.cues > 0 && total.queries > 0 && total.commands > 0,
        "nothing happened"
    );
    // One world alone may be one in which nobody came back.
    assert!(runs == 1 || total.resumed > 0, "nobody came back");
}

#[test]
fn the_history_game_survives_chaos() {
    check("the_history_game_survives_chaos", chaos::HISTORY, 14);
}

#[test]
fn powderkeg_survives_chaos() {
    check("powderkeg_survives_chaos", chaos::POWDERKEG, 6);
}
