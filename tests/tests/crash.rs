//! A server may be killed at any moment: all sent frames stay valid, and all clients continue.

use std::collections::BTreeSet;
use std::time::Duration;

use twinstep_core::{Mwc, PlayerId, Presence, Tick};
use twinstep_protocol::replay::Replay;
use twinstep_protocol::simnet::LinkProfile;
use twinstep_rig::direct::Direct;
use twinstep_rig::history::History;
use twinstep_rig::rig::{Crash, Play, Rig, RigConfig};
use twinstep_server::config::{ConfigError, SealWhen, TurnLength};
use twinstep_server::peer::SessionStage;

const SECOND: Duration = Duration::from_secs(1);

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Back {
    Anew,
    GoingOn,
}

fn action(seed: u64) -> RigConfig {
    let mut config = RigConfig::new(seed, LinkProfile::WAN);
    config.policies.turn = TurnLength::Fixed(1 + Mwc::seed(seed).below(4) as u8);
    config
}

/// Finding K22: a joiner gets the world at the start of the turn, because a crash loses later ticks, which are not
/// written yet. (It used to get the current world, so after a crash it had seen ticks that no longer existed.)
#[test]
fn a_mid_turn_joiner_sees_only_journalled_frames() {
    for step in 0..24 {
        let mut config = RigConfig::new(step, LinkProfile::LAN);
        config.clients = 1;
        config.policies.turn = TurnLength::Fixed(20);
        let mut rig = Rig::<History>::new(config);
        rig.run(Duration::from_millis(1_000 + 15 * step));
        let late = rig.join("late");
        while rig.clients[late].session.authority().is_none() {
            rig.run(Duration::from_millis(5));
            assert!(rig.now < SECOND * 3, "its world arrives");
        }
        // The rig checks that no client has seen ticks that the next process does not have.
        rig.crash(Duration::ZERO);
    }
}

fn crashes<S: Play>(config: RigConfig, back: Back, times: u32) -> Vec<Crash> {
    let seed = config.seed;
    let mut luck = Mwc::seed(seed);
    let mut rig = Rig::<S>::new(config);
    rig.run(SECOND * 3);
    let mut crashes = Vec::new();
    for _ in 0..times {
        rig.run(Duration::from_millis(500 + u64::from(luck.below(4_000))));
        let down = Duration::from_millis(50 + u64::from(luck.below(1_500)));
        let crash = rig.crash(down);
        rig.run(down);
        for client in 0..rig.clients.len() {
            match back {
                Back::Anew => rig.restart(client),
                Back::GoingOn => rig.redial(client),
            }
        }
        rig.run(SECOND * 2);
        assert!(
            rig.all_play(),
            "seed {seed}: a client is locked out after {crash:?}"
        );
        crashes.push(crash);
    }
    // An unanswered query stays open for 120 ticks, which take longer in lockstep.
    rig.command(false);
    rig.run(rig.match_.world().turn().cadence.tick() * 120);
    rig.converge();
    assert_eq!(rig.resolved_again(), [], "seed {seed}");
    if back == Back::GoingOn {
        let by_frames = (0..4).all(|client| rig.returns(client) == (times as usize, 0));
        assert!(by_frames, "seed {seed}: no session needs a world");
    }
    assert_eq!(rig.match_.world().present().iter().count(), 4);
    assert_eq!(rig.match_.stats().desyncs, 0, "seed {seed}");
    let rules = S::rules(0);
    let mut replay = Replay::<S>::open(&rig.journal, &rules).unwrap();
    assert_eq!(replay.index().resumes, times);
    assert_eq!(
        replay.verify().fault,
        None,
        "seed {seed}: one file has all of it"
    );
    crashes
}

#[test]
#[cfg_attr(debug_assertions, ignore = "long: the check plays it in release")]
fn a_killed_server_resumes_where_it_was_and_resolves_no_query_twice() {
    let mut all = Vec::new();
    for seed in 0..8 {
        let back = [Back::Anew, Back::GoingOn][seed as usize % 2];
        all.extend(crashes::<History>(action(seed), back, 3));
    }
    // The crashes covered torn records, open queries, and unsent ticks.
    assert!(all.iter().any(|crash| crash.torn_bytes > 0));
    assert!(all.iter().any(|crash| crash.open > 0));
    assert!(all.iter().any(|crash| crash.killed_at > crash.resumed_at));
}

/// If the server crashes just after sealing a claim, the owner does not know that the claim was sealed and sends it
/// again. It must not count twice.
#[test]
#[cfg_attr(debug_assertions, ignore = "long: the check plays it in release")]
fn claims_are_not_admitted_twice_after_a_crash() {
    let mut all = 0;
    for seed in 20..26 {
        let mut rig = Rig::<History>::new(RigConfig::new(seed, LinkProfile::WAN));
        rig.run(SECOND * 3);
        for _ in 0..8 {
            rig.run(Duration::from_millis(700));
            let down = Duration::from_millis(200);
            rig.crash(down);
            rig.run(down);
            (0..4).for_each(|client| rig.redial(client));
            rig.run(SECOND * 2);
        }
        rig.converge();
        let mut replay = Replay::<History>::open(&rig.journal, &7).unwrap();
        let mut claimed = BTreeSet::new();
        while replay.step().unwrap() {
            for claim in &replay.frame().claims {
                assert!(
                    claimed.insert((claim.player, claim.seq)),
                    "seed {seed}: {} claimed twice what it did at {}",
                    claim.player,
                    claim.seq
                );
            }
        }
        all += claimed.len();
    }
    assert!(all > 50, "{all} claims: too few to tell");
}

/// A match that waits for all players is also resumed: clients do not send sealed batches again, and the match does not
/// wait for batches that they never sent.
#[test]
fn a_lockstep_match_survives_repeated_kills() {
    for seed in 0..4 {
        let back = [Back::GoingOn, Back::Anew][seed as usize % 2];
        let config = RigConfig::strategy(seed, LinkProfile::LAN);
        crashes::<History>(config, back, 2);
    }
}

/// The clock pauses until all players are back, for at most 5 s. A client that stays away is dropped after 30 s.
#[test]
fn after_a_restart_the_clock_waits_a_bounded_time_for_the_players() {
    let mut rig = Rig::<History>::new(RigConfig::new(5, LinkProfile::LAN));
    rig.run(SECOND * 5);
    let crash = rig.crash(SECOND / 10);
    for i in 1..4 {
        rig.restart(i);
    }
    rig.run(SECOND * 4);
    let playing = |rig: &Rig<History>| {
        let stages = rig.clients.iter().map(|c| rig.match_.stage(c.peer()));
        stages
            .filter(|stage| *stage == Some(SessionStage::Playing))
            .count()
    };
    assert_eq!(playing(&rig), 3, "they are in, though the clock is paused");
    assert_eq!(rig.match_.world().tick(), crash.resumed_at);
    rig.run(SECOND * 2);
    let ticks = rig.match_.world().tick() - crash.resumed_at;
    assert!(
        (40..=61).contains(&ticks),
        "{ticks} ticks in the second since"
    );
    rig.run(SECOND * 25);
    let silent = PlayerId(0);
    assert_eq!(rig.match_.world().presence(silent), Presence::Present);
    rig.run(SECOND * 6);
    assert_eq!(rig.match_.world().presence(silent), Presence::Dropped);
    // The identity gets the same player number again.
    rig.restart(0);
    rig.run(SECOND * 8);
    assert_eq!(rig.match_.world().presence(silent), Presence::Present);
    rig.converge();
}

/// If the match waits for all players, a player that is not back yet is excused for 30 s, before its patience budget is
/// used.
#[test]
fn after_a_restart_no_player_is_kicked_during_the_grace_period() {
    let mut config = RigConfig::strategy(9, LinkProfile::LAN);
    config.policies.sealing = SealWhen::WaitForAll {
        kick_after: SECOND * 2,
    };
    let mut rig = Rig::<History>::new(config);
    rig.run(SECOND * 10);
    let away = PlayerId(0);
    assert_eq!(rig.match_.world().presence(away), Presence::Present);
    rig.crash(SECOND / 10);
    (1..4).for_each(|client| rig.restart(client));
    rig.run(SECOND * 29);
    assert_eq!(rig.match_.world().presence(away), Presence::Present);
    assert!(rig.match_.waiting().contains(away), "it is waited for");
    rig.run(SECOND * 5);
    assert_eq!(rig.match_.world().presence(away), Presence::Absent);
    let before = rig.match_.world().tick();
    rig.run(SECOND);
    assert!(
        rig.match_.world().tick() - before >= 15,
        "the others play on"
    );
}

#[test]
fn the_clock_continues_as_soon_as_all_players_are_back() {
    let mut rig = Rig::<History>::new(RigConfig::new(6, LinkProfile::LAN));
    rig.run(SECOND * 5);
    let crash = rig.crash(Duration::ZERO);
    rig.restart_clients();
    rig.run(SECOND);
    let ticks = rig.match_.world().tick() - crash.resumed_at;
    assert!(ticks >= 30, "{ticks} ticks in the first second");
}

/// Row 20: a match starts from a saved state at a tick far above 0, is journalled from there, and is killed.
#[test]
fn a_match_started_from_a_saved_world_can_be_resumed() {
    use std::sync::Arc;
    use twinstep_server::{Match, MatchConfig};
    let config = MatchConfig {
        start: Tick(12_345),
        ..MatchConfig::action()
    };
    let rules = Arc::new(7);
    let (sim, resolver) = (History::new(9), History::resolver(&7, 1));
    let mut table: Direct<History> =
        Direct::new(config.clone(), sim, rules.clone(), resolver, Vec::new(), 60);
    table.match_.keep_journal().unwrap();
    table.rest(SECOND);
    let (match_, journal) = (&table.match_, &table.journal);
    let resumed = Match::resume(config, journal, rules, History::resolver(&7, 1)).unwrap();
    let tick = resumed.match_.world().tick();
    assert!((Tick(12_390)..=Tick(12_406)).contains(&tick), "{tick}");
    assert_eq!(Some(resumed.match_.digest()), match_.digest_at(tick));
    assert_eq!(
        resumed.match_.digest_at(Tick(12_345)),
        match_.digest_at(Tick(12_345))
    );
}

/// Row 12: the command delay comes from the journal, not from the next process's configuration.
#[test]
fn the_command_delay_stays_fixed_across_restarts() {
    let mut rig = Rig::<History>::new(RigConfig::strategy(8, LinkProfile::LAN));
    rig.run(SECOND * 3);
    let delay = rig.match_.config().command_delay;
    assert!(delay > 0);
    let mut other = rig.config.policies.clone();
    other.command_delay = delay + 1;
    let rules = std::sync::Arc::new(7);
    let resolver = History::resolver(&rules, 1);
    let resumed = twinstep_server::Match::resume(other, &rig.journal, rules, resolver).unwrap();
    assert_eq!(resumed.match_.config().command_delay, delay);
}

// Finding R2.
#[test]
fn a_resumed_match_keeps_its_fixed_settings() {
    let mut rig = Rig::<History>::new(RigConfig::strategy(10, LinkProfile::LAN));
    rig.run(SECOND * 3);
    let mut own = rig.config.policies.clone();
    own.command_delay += 1;
    own.unix_time = 99;
    let rules = std::sync::Arc::new(7);
    let resolver = History::resolver(&rules, 1);
    let resumed = twinstep_server::Match::resume(own.clone(), &rig.journal, rules, resolver);
    let mut match_ = resumed.unwrap().match_;
    own.unix_time = 0;
    own.start = Tick(5);
    own.open = false;
    let before = match_.config().clone();
    assert_eq!(before.unix_time, rig.config.policies.unix_time);
    assert_eq!(match_.reconfigure(own.clone()), Ok(()));
    assert!(!match_.config().open);
    assert_eq!(match_.config().start, before.start);
    assert_eq!(match_.config().unix_time, before.unix_time);
    assert_eq!(match_.config().command_delay, before.command_delay);
    own.command_delay += 1;
    let refused = ConfigError::Fixed("the command delay");
    assert_eq!(match_.reconfigure(own), Err(refused));
}
