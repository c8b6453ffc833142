//! Games with expensive steps keep their prediction if their loops take over results ([`Effects::each`]): a rebuild runs
//! again what a wrong guess touched, and the lead is not shed.
//!
//! [`Effects::each`]: twinstep_core::Effects::each

use std::time::Duration;

use powderkeg_game::Game;
use twinstep_protocol::simnet::LinkProfile;
use twinstep_rig::rig::{Rig, RigConfig, Sticks};

struct Played {
    /// The mean lead, in ticks.
    lead: f64,
    /// Of the items in repeated ticks, the share that was run.
    run: f64,
    rebuilds: u64,
}

/// Plays six seconds. A frame has time for `budget` steps; a repeated one costs `cost` / 256 steps.
fn played(link: LinkProfile, crowd: u16, late: Option<u32>, [budget, cost]: [u32; 2]) -> Played {
    let mut config = RigConfig::new(7, link);
    config.sticks = Sticks::Keys;
    config.crowd = crowd;
    config.fps = 60;
    config.verify = false;
    config.journal = false;
    config.rebuilds_late = late;
    (config.budget, config.repeated_cost) = (budget, cost);
    let mut rig = Rig::<Game>::new(config);
    rig.run(Duration::from_secs(6));
    let (mut taken, mut run, mut lead, mut rebuilds) = (0, 0, 0.0, 0);
    for client in 0..4 {
        let stats = rig.stats(client);
        lead += stats.lead_ticks_mean / 4.0;
        rebuilds += stats.timeline.rebuilds;
        assert_eq!(stats.timeline.without_memo, 0);
        for of in rig.clients[client].session.loops() {
            (taken, run) = (taken + of.taken, run + of.run);
        }
    }
    rig.converge();
    Played {
        lead,
        run: run as f64 / (taken + run) as f64,
        rebuilds,
    }
}

#[test]
fn a_rebuild_runs_only_the_items_that_a_wrong_guess_touched() {
    for (name, link, late, most) in [
        ("wan", LinkProfile::WAN, None, 0.02),
        ("bad", LinkProfile::BAD, Some(1), 0.03),
        ("awful", LinkProfile::AWFUL, None, 0.05),
    ] {
        let played = played(link, 300, late, [160, 256]);
        let share = played.run * 100.0;
        println!(
            "{name}: {share:.2} % run again in {} rebuilds",
            played.rebuilds
        );
        assert!(played.rebuilds > 200, "{name}: {}", played.rebuilds);
        assert!(played.run <= most, "{name}: {share:.2} %");
    }
}

/// With a step of 1 ms, a frame of 4 ms has time for four steps. With an eighth of its cost, a repeated step fits.
#[test]
fn a_step_of_a_millisecond_keeps_its_lead() {
    for (name, link, least) in [
        ("wan", LinkProfile::WAN, 0.95),
        ("bad", LinkProfile::BAD, 0.9),
    ] {
        let free = played(link, 0, None, [160, 256]).lead;
        let same = played(link, 0, None, [4, 256]).lead;
        let cheap = played(link, 0, None, [4, 32]).lead;
        println!(
            "{name}: a lead of {free:.1} ticks, {same:.1} at four steps a frame, {cheap:.1} with memos"
        );
        assert!(same < free * 0.6, "{name}: the budget costs no lead");
        assert!(cheap >= free * least, "{name}: {cheap} of {free} ticks");
    }
}
