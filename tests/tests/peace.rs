//! Guarantees for players: predictions are free on a perfect link, and a typical link causes no stall.

use std::time::Duration;

use powderkeg_game::Game;
use twinstep_protocol::simnet::LinkProfile;
use twinstep_rig::rig::{InputPattern, Rig, RigConfig};

const SECOND: Duration = Duration::from_secs(1);

#[test]
fn idle_players_are_predicted_correctly_on_a_perfect_link() {
    let mut config = RigConfig::new(3, LinkProfile::PERFECT);
    config.input_pattern = InputPattern::Still;
    let mut rig = Rig::<Game>::new(config);
    rig.run(SECOND * 3);
    // Tosses are predicted with simple geometry and may be wrong; every other prediction is correct.
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
    assert!(rig.match_.stats().outcomes > 0, "fuses are lit by enemies");
}

#[test]
fn a_typical_link_causes_no_stall_and_all_clients_converge() {
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
