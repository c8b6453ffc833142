//! The golden table of policies: their effect on one player's link that gets bad at 20 s and heals at 40 s.
//!
//! `UPDATE_GOLDEN=1` rewrites the table, in release only, because a debug build takes too long.

use std::fmt::Write;
use std::time::Duration;

use twinstep_client::SessionStats;
use twinstep_protocol::simnet::LinkProfile;
use twinstep_rig::history::History;
use twinstep_rig::rig::{Rig, RigConfig};
use twinstep_server::MatchConfig;
use twinstep_server::config::{Laggards, SealWhen, TickLength, TurnLength};
use twinstep_tests::golden;

const SECOND: Duration = Duration::from_secs(1);
const MS: fn(u64) -> Duration = Duration::from_millis;
const WINDOWS: [u64; 7] = [10, 20, 30, 40, 50, 60, 90];

fn policies() -> Vec<(&'static str, MatchConfig)> {
    let action = MatchConfig::action;
    let strategy = MatchConfig::strategy;
    let hold = Laggards::hold();
    vec![
        ("action: deadline, k = 2", action()),
        (
            "action, input delay of 6 ticks",
            MatchConfig {
                delay_ticks: 6,
                ..action()
            },
        ),
        (
            "action, turns of 1 to 6 ticks",
            MatchConfig {
                turn: TurnLength::adaptive(1, 6),
                ..action()
            },
        ),
        (
            "action, holding for laggards",
            MatchConfig {
                laggards: hold,
                ..action()
            },
        ),
        (
            "lockstep by deadline, m = 2",
            MatchConfig {
                sealing: SealWhen::Deadline,
                ..strategy()
            },
        ),
        (
            "lockstep by deadline, m = 2, holding for laggards",
            MatchConfig {
                sealing: SealWhen::Deadline,
                laggards: hold,
                ..strategy()
            },
        ),
        (
            "waiting for all, m = 1",
            MatchConfig {
                command_delay: 1,
                ..strategy()
            },
        ),
        ("strategy: waiting for all, m = 2", strategy()),
        (
            "waiting for all, m = 4",
            MatchConfig {
                command_delay: 4,
                ..strategy()
            },
        ),
        (
            "waiting for all, m = 2, turns of 2 to 12 ticks",
            MatchConfig {
                turn: TurnLength::adaptive(2, 12),
                ..strategy()
            },
        ),
        (
            "waiting for all, m = 2, ticks of 50 to 100 ms",
            MatchConfig {
                tick_length: TickLength::Adaptive { max: MS(100) },
                ..strategy()
            },
        ),
    ]
}

fn row_of(was: &SessionStats, is: &SessionStats) -> String {
    let inputs = is.confirmed_inputs - was.confirmed_inputs;
    let confirmed = (is.confirmed_ms_sum - was.confirmed_ms_sum) / inputs.max(1) as f64;
    format!(
        "{:>5} {:>7.0} {:>9.0}",
        is.late_turns - was.late_turns,
        (is.paused_ms - was.paused_ms) + (is.stall_ms - was.stall_ms),
        confirmed
    )
}

fn play(table: &mut String, name: &str, policies: MatchConfig) {
    let mut config = if policies.command_delay == 0 {
        RigConfig::new(1, LinkProfile::LAN)
    } else {
        RigConfig::strategy(1, LinkProfile::LAN)
    };
    config.policies = policies;
    config.verify = false;
    let mut rig = Rig::<History>::new(config);
    rig.run(SECOND * 5);
    writeln!(table, "\n{name}").expect("text");
    let mut was = [rig.stats(0), rig.stats(1)];
    let mut from = 5;
    for end in WINDOWS {
        match from {
            20 => rig.relink(0, LinkProfile::BAD),
            40 => rig.relink(0, LinkProfile::LAN),
            _ => {}
        }
        rig.run(SECOND * (end - from) as u32);
        let is = [rig.stats(0), rig.stats(1)];
        let cadence = rig.match_.world().turn().cadence;
        writeln!(
            table,
            "{from:>3} to {end:>2} s │ {} │ {} │ {:>4} {:>4}",
            row_of(&was[0], &is[0]),
            row_of(&was[1], &is[1]),
            cadence.turn().as_millis(),
            cadence.tick().as_millis(),
        )
        .expect("text");
        was = is;
        from = end;
    }
    rig.converge();
}

#[test]
#[cfg_attr(debug_assertions, ignore = "long: the check plays it in release")]
fn the_policy_table_is_unchanged() {
    let mut table = String::from(
        "History, 4 clients on a LAN (2 ms each way). From 20 s to 40 s the first one is on the preset `bad`: 200 ms of\n\
         round trip, 50 ms of jitter and 5 % of loss each way. Columns: turns that came late; ms in which the picture paused\n\
         (lockstep) or the prediction was at its limit; mean ms from an own input to its step in the authority; the length\n\
         of turns and ticks at the window's end, in ms.\n\n\
         \x20            │ the player on that link  │ a player on the LAN     │ turn tick\n\
         \x20            │  late   stood confirmed │  late   stood confirmed │\n",
    );
    for (name, config) in policies() {
        play(&mut table, name, config);
    }
    println!("{table}");
    golden::check("policies.txt", &table, "");
}
