//! What players rely on: what must be free is free, a desync is named and healed, a slow machine keeps up.

use std::time::Duration;

use powderkeg_game::Game;
use twinstep_protocol::simnet::LinkProfile;
use twinstep_rig::history::History;
use twinstep_rig::rig::{Rig, RigConfig, Sticks};

const SECOND: Duration = Duration::from_secs(1);

#[test]
fn on_a_perfect_link_still_players_are_guessed_right() {
    let mut config = RigConfig::new(3, LinkProfile::PERFECT);
    config.sticks = Sticks::Still;
    let mut rig = Rig::<Game>::new(config);
    rig.run(SECOND * 3);
    // What is thrown is guessed by cheap geometry and may be off; nothing else is.
    let stats = |rig: &Rig<Game>, i| rig.stats(i).timeline;
    let before: Vec<_> = (0..4).map(|i| stats(&rig, i)).collect();
    rig.run(SECOND * 20);
    for (i, before) in before.into_iter().enumerate() {
        let after = stats(&rig, i);
        let thrown = after.by_outcome - before.by_outcome;
        assert_eq!(after.rebuilds - before.rebuilds, thrown, "client {i}");
        let again = after.resim_ticks - before.resim_ticks;
        assert!(again <= 16 * thrown, "client {i}: {again} ticks again");
        assert_eq!(rig.stats(i).stall_ms, 0.0);
    }
    assert!(rig.game.stats().outcomes > 0, "fuses are lit by enemies");
}

#[test]
fn a_common_line_costs_no_stall_and_everything_settles() {
    let mut rig = Rig::<Game>::new(RigConfig::new(3, LinkProfile::WAN));
    rig.run(SECOND * 20);
    for i in 0..4 {
        let stats = rig.stats(i);
        assert_eq!(stats.stall_ms, 0.0);
        assert!(stats.fills < 20, "{} fills", stats.fills);
        assert!(
            (10.0..13.0).contains(&stats.lead_ticks_mean),
            "lead {}",
            stats.lead_ticks_mean
        );
    }
    rig.converge();
}

#[test]
fn no_stall_at_ten_percent_loss_with_jitter() {
    let link = "rtt=100,jitter=50,loss=10".parse().expect("a link");
    let mut rig = Rig::<Game>::new(RigConfig::new(9, link));
    rig.run(SECOND * 40);
    for i in 0..4 {
        assert_eq!(rig.stats(i).stall_ms, 0.0, "client {i}");
    }
}

#[test]
fn a_desync_is_healed_in_place_and_named_by_tick_and_field() {
    let mut rig = Rig::<History>::new(RigConfig::new(4, LinkProfile::WAN));
    rig.run(SECOND * 5);
    rig.flip(1);
    rig.run(SECOND * 5);
    let report = rig.clients[1].desync.clone().expect("a report");
    println!("{report}");
    assert!(report.starts_with("tick "), "{report}");
    assert!(
        report.contains("sim.asked: "),
        "names the field with both values: {report}"
    );
    let told = rig.game.take_reports();
    assert_eq!(told.len(), 1, "the server keeps the client's word");
    assert_eq!(told[0].text, report);
    assert_eq!(rig.stats(1).heals, 1);
    assert_eq!(rig.stats(0).heals, 0, "others play on");
    rig.converge();
}

#[test]
fn a_slow_machine_shows_less_of_the_future_but_keeps_lockstep_and_inputs() {
    let mut config = RigConfig::new(4, LinkProfile::WAN);
    config.budget = 3;
    config.fps = 60;
    let mut rig = Rig::<History>::new(config);
    rig.run(SECOND * 5);
    let fills: Vec<u64> = (0..4).map(|i| rig.stats(i).fills).collect();
    rig.run(SECOND * 20);
    for (i, fills) in fills.into_iter().enumerate() {
        let stats = rig.stats(i);
        assert!(
            stats.fills < fills + 12,
            "inputs are never shed: {} fills",
            stats.fills - fills
        );
        assert!(stats.shed_ms > 1_000.0, "it was shed: {} ms", stats.shed_ms);
        let server = rig.game.world().tick().0;
        assert!(server - stats.authority_tick < 12, "lockstep is never shed");
    }
    rig.converge();
}

#[test]
fn a_local_input_is_in_the_predicted_step_of_its_own_frame() {
    let mut rig = Rig::<Game>::new(RigConfig::new(4, LinkProfile::AWFUL));
    rig.run(SECOND * 5);
    // The lead is the reach: every sampled tick is predicted in the same advance.
    for i in 0..4 {
        let stats = rig.stats(i);
        assert_eq!(stats.prediction_tick, stats.input_tick, "client {i}");
    }
}
