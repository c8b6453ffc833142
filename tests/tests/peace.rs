//! Without misfortune: what must be free, is free.

use std::time::Duration;

use powderkeg::game::Game;
use twinstep_core::simnet::LinkProfile;
use twinstep_tests::history::History;
use twinstep_tests::rig::{Play, Rig, RigConfig, Sticks};

fn play<S: Play>(link: LinkProfile, sticks: Sticks, seconds: u64) -> Rig<S> {
    let mut config = RigConfig::new(3, link);
    config.sticks = sticks;
    let mut rig = Rig::new(config);
    rig.run(Duration::from_secs(seconds));
    rig
}

fn report<S: Play>(rig: &Rig<S>) {
    println!("{:?}", rig.game.stats());
    for i in 0..rig.clients.len() {
        let s = rig.stats(i);
        println!(
            "client {i}: rebuilds {} resim {} fills {} stall {:.0} late {:.0} lead {:.1} reach {:.1} margin p50 {} now {:.1}/{:.1} rate {:.3} rtt {:.0} {:?}",
            s.timeline.rebuilds,
            s.timeline.resim_ticks,
            s.fills,
            s.stall_ms,
            s.late_ms,
            s.lead_ticks_mean,
            s.reach_ticks_mean,
            s.margin_ticks_p50,
            s.margin_ticks_now,
            s.margin_ticks_target,
            s.rate,
            s.rtt_ms,
            s.timeline
        );
    }
}

#[test]
fn on_a_perfect_link_still_players_cost_no_resimulated_tick() {
    let mut rig = play::<Game>(LinkProfile::PERFECT, Sticks::Still, 3);
    let before: Vec<u64> = (0..4).map(|i| rig.stats(i).timeline.resim_ticks).collect();
    rig.run(Duration::from_secs(20));
    report(&rig);
    for (i, before) in before.into_iter().enumerate() {
        let stats = rig.stats(i);
        assert_eq!(stats.timeline.resim_ticks, before, "client {i}");
        assert_eq!(stats.stall_ms, 0.0);
    }
    assert!(rig.game.stats().outcomes > 0, "fuses are lit by enemies");
}

#[test]
fn commands_cues_and_queries_settle_on_a_common_line() {
    let mut rig = play::<History>(LinkProfile::WAN, Sticks::Sticky, 20);
    report(&rig);
    rig.converge();
}
