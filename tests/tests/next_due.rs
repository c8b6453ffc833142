//! `Session::next_due`: a program that does not draw can sleep until that time, and plays as well as one that draws.

use std::time::Duration;

use twinstep_client::SessionStats;
use twinstep_protocol::simnet::LinkProfile;
use twinstep_rig::history::History;
use twinstep_rig::rig::{Rig, RigConfig};
use twinstep_server::MatchConfig;

const SECOND: Duration = Duration::from_secs(1);

/// Plays for 40 s over a bad link, with sessions that are called every frame, or only when due. Returns the clients'
/// statistics, and the number of calls per second of each.
fn called(sleeps: bool, policies: MatchConfig, link: LinkProfile) -> Vec<(SessionStats, u64)> {
    let mut config = RigConfig::new(9, link);
    config.policies = policies;
    let mut rig = Rig::<History>::new(config);
    rig.clients
        .iter_mut()
        .for_each(|client| client.sleeps = sleeps);
    rig.run(SECOND * 40);
    let stats = (0..4)
        .map(|i| (rig.stats(i), rig.clients[i].calls / 40))
        .collect();
    rig.converge();
    stats
}

#[test]
fn a_session_called_only_when_due_plays_as_well_as_one_called_every_frame() {
    let link: LinkProfile = "rtt=100,jitter=30,loss=5".parse().expect("a link");
    for policies in [MatchConfig::action(), MatchConfig::strategy()] {
        let lockstep = policies.command_delay > 0;
        let frames = called(false, policies.clone(), link);
        let due = called(true, policies, link);
        for (i, ((frames, _), (due, calls))) in frames.into_iter().zip(due).enumerate() {
            let case = format!("client {i}, lockstep: {lockstep}");
            // Ticks, turns' frames and repeats need calls, but far fewer than a busy loop makes.
            assert!(
                (15..=240).contains(&calls),
                "{case}: {calls} calls a second"
            );
            assert_eq!((due.heals, due.returns, due.silences), (0, 0, 0), "{case}");
            assert!(
                due.fills <= frames.fills + 30,
                "{case}: {} and {} fills",
                due.fills,
                frames.fills
            );
            assert!(
                due.stall_ms <= frames.stall_ms + 50.0,
                "{case}: stalled {} ms",
                due.stall_ms
            );
            assert!(
                due.paused_ms <= frames.paused_ms * 1.2 + 200.0,
                "{case}: paused {} ms",
                due.paused_ms
            );
            let ticks = due.authority_tick.abs_diff(frames.authority_tick);
            assert!(ticks <= 30, "{case}: {ticks} ticks apart");
            let rebuilds = due.timeline.rebuilds.abs_diff(frames.timeline.rebuilds);
            assert!(
                rebuilds <= frames.timeline.rebuilds / 4 + 10,
                "{case}: {rebuilds} rebuilds apart"
            );
            let confirmed = due.confirmed_ms_p50 - frames.confirmed_ms_p50;
            assert!(confirmed <= 10, "{case}: confirmed {confirmed} ms later");
        }
    }
}
