//! Lockstep with a command delay: turns, batches, waiting, as the strategy preset plays them.

use std::time::Duration;

use twinstep_core::simnet::LinkProfile;
use twinstep_server::config::Sealing;
use twinstep_tests::history::History;
use twinstep_tests::rig::{Rig, RigConfig};

const SECOND: Duration = Duration::from_secs(1);

fn rig(seed: u64, link: &str) -> Rig<History> {
    Rig::new(RigConfig::strategy(seed, link.parse().expect("a link")))
}

#[test]
fn four_players_stay_equal_over_a_common_line() {
    let mut rig = rig(1, "wan");
    rig.run(SECOND * 30);
    assert!(rig.all_play());
    for client in 0..4 {
        let stats = rig.stats(client);
        println!(
            "{client}: A {} late {} paused {:.0} ms confirmed {} ms, slack {:.2}, sent {} executed {}",
            stats.authority_tick,
            stats.late_turns,
            stats.paused_ms,
            stats.confirmed_ms_p50,
            stats.margin_ticks_now,
            stats.commands_sent,
            stats.commands_executed,
        );
    }
    println!("server at {}", rig.game.world().tick());
    rig.converge();
}

#[test]
fn deadlines_work_in_lockstep_too() {
    let mut config = RigConfig::strategy(2, LinkProfile::BAD);
    config.policies.sealing = Sealing::Deadline;
    let mut rig = Rig::<History>::new(config);
    rig.run(SECOND * 30);
    rig.converge();
}
