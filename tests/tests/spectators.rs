//! Spectators, live or delayed: no policy waits for them, they do not influence the match, and they do not burden the
//! players.

use std::time::Duration;

use powderkeg_game::Game;
use twinstep_client::{CommandError, Progress, SessionEnd};
use twinstep_protocol::packet::closed::CloseCode;
use twinstep_protocol::packet::{Parts, UpKind, UpPart};
use twinstep_protocol::simnet::LinkProfile;
use twinstep_rig::history::{Command, History};
use twinstep_rig::rig::{Play, Rig, RigConfig};
use twinstep_server::config::Spectators;
use twinstep_server::peer::SessionStage;

const SECOND: Duration = Duration::from_secs(1);
const MS: Duration = Duration::from_millis(1);
const DELAY: u32 = 300;

fn with_room(mut config: RigConfig, max: usize, delay_ticks: u32) -> RigConfig {
    config.policies.spectators = Spectators { max, delay_ticks };
    config
}

fn both(config: RigConfig) -> [RigConfig; 2] {
    let aside = RigConfig {
        encodes_within: Some(40 * MS),
        ..config.clone()
    };
    [config, aside]
}

fn watched<S: Play>(config: RigConfig) -> Rig<S> {
    let mut rig = Rig::<S>::new(config);
    rig.run(10 * SECOND);
    assert_eq!(rig.join_with("watcher", 0), Ok(4));
    rig
}

fn tick<S: Play>(rig: &Rig<S>, client: usize) -> u32 {
    let world = rig.clients[client].session.authority();
    world.map_or(0, |world| world.tick().0)
}

#[test]
fn a_live_spectator_sees_every_turn_and_has_no_seat() {
    let wan = "rtt=60,jitter=10,loss=2".parse().unwrap();
    let mut rig = watched::<Game>(with_room(RigConfig::new(1, wan), 16, 0));
    rig.run(10 * SECOND);
    let watcher = &rig.clients[4];
    assert_eq!(
        rig.match_.stage(watcher.peer()),
        Some(SessionStage::Playing)
    );
    assert!(watcher.session.seats().is_empty());
    assert_eq!(
        rig.match_.world().present().len(),
        4,
        "no player of its own"
    );
    assert_eq!(rig.match_.spectators(), 1);
    // The spectator plays a moment after a frame arrives. The rig compares each of its worlds with the server's.
    let behind = rig.match_.world().tick().0 - tick(&rig, 4);
    assert!(behind <= 18, "{behind} ticks behind");
    let before = tick(&rig, 4);
    rig.run(SECOND);
    assert!((58..=62).contains(&(tick(&rig, 4) - before)));
    let down = rig.bytes_down(4);
    assert_eq!(down.announcements, 0, "no input is announced");
    assert_eq!(rig.stats(4).up.inputs, 0, "and it sends no inputs");
}

#[test]
fn a_wait_for_all_match_does_not_wait_for_spectators() {
    for (max, delay_ticks) in [(16, 0), (512, 180)] {
        let config = with_room(RigConfig::strategy(5, LinkProfile::LAN), max, delay_ticks);
        let mut rig = watched::<History>(config);
        rig.run(20 * SECOND);
        assert_eq!(
            rig.match_.stage(rig.clients[4].peer()),
            Some(SessionStage::Playing)
        );
        let behind = rig.match_.world().tick().0 - tick(&rig, 4);
        assert!(behind <= delay_ticks + 24, "{behind} ticks behind");
        rig.freeze(4, rig.now + 5 * SECOND);
        let before = rig.match_.world().tick();
        rig.watch(5 * SECOND, |rig| {
            assert!(rig.match_.waiting().is_empty(), "it is waited for");
        });
        let ticks = rig.match_.world().tick() - before;
        assert!((98..=102).contains(&ticks), "{ticks} ticks in 5 s");
        assert!((0..4).all(|client| rig.stats(client).paused_ms == 0.0));
        rig.run(3 * SECOND);
        let behind = rig.match_.world().tick().0 - tick(&rig, 4);
        assert!(behind <= delay_ticks + 24, "it catches up: {behind} behind");
        rig.clients.pop();
        rig.converge();
    }
}

/// Two players on one screen, in lockstep: one session with two inputs in each batch.
#[test]
fn a_session_of_two_seats_closes_batches_for_both() {
    let mut rig = Rig::<History>::new(RigConfig::strategy(6, LinkProfile::WAN));
    assert_eq!(rig.join_with("a pair", 2), Ok(4));
    rig.run(20 * SECOND);
    assert!(rig.all_play());
    assert_eq!(rig.clients[4].session.seats().len(), 2);
    assert_eq!(rig.match_.world().present().len(), 6);
    rig.converge();
}

#[test]
fn sixteen_live_spectators_can_join() {
    let mut rig = Rig::<Game>::new(with_room(RigConfig::new(2, LinkProfile::LAN), 16, 0));
    rig.run(SECOND);
    for n in 0..16 {
        assert!(rig.join_with(&format!("watcher {n}"), 0).is_ok());
    }
    assert_eq!(rig.join_with("one more", 0), Err(CloseCode::Full));
    rig.run(12 * SECOND);
    assert!(rig.all_play());
    let mut closed = Rig::<Game>::new(RigConfig::new(2, LinkProfile::LAN));
    assert_eq!(closed.join_with("watcher", 0), Err(CloseCode::Full));
}

#[test]
fn a_delayed_spectator_sees_no_frame_younger_than_its_delay() {
    let wan: LinkProfile = "rtt=60,jitter=10,loss=2".parse().unwrap();
    for config in both(with_room(RigConfig::new(3, wan), 512, DELAY)) {
        sees_no_frame_younger_than_the_delay(config);
    }
}

fn sees_no_frame_younger_than_the_delay(config: RigConfig) {
    let mut rig = watched::<Game>(config);
    let mut seen = 0;
    for _ in 0..3_000 {
        rig.run(5 * MS);
        let server = rig.match_.world().tick().0;
        assert!(
            tick(&rig, 4) + DELAY <= server,
            "{} of {server}",
            tick(&rig, 4)
        );
        seen = seen.max(tick(&rig, 4));
    }
    let server = rig.match_.world().tick().0;
    assert!(
        seen + DELAY + 30 >= server,
        "it keeps up: {seen} of {server}"
    );
    // Ten packets a second, and occasionally a ticket.
    let before = rig.bytes_down(4);
    rig.run(10 * SECOND);
    let packets = rig.bytes_down(4).packets - before.packets;
    assert!((80..=106).contains(&packets), "{packets} packets in 10 s");
    assert_eq!(rig.bytes_down(4).announcements, 0);
}

#[test]
fn a_spectator_joining_within_the_delay_starts_with_the_first_world() {
    for config in both(with_room(RigConfig::new(4, LinkProfile::LAN), 8, DELAY)) {
        begins_with_the_first_world(config);
    }
}

fn begins_with_the_first_world(config: RigConfig) {
    let mut rig = Rig::<Game>::new(config);
    rig.run(SECOND);
    rig.join_with("watcher", 0).unwrap();
    rig.run(3 * SECOND);
    assert_eq!(tick(&rig, 4), 0);
    assert!(rig.clients[4].session.authority().is_some());
    rig.run(6 * SECOND);
    let server = rig.match_.world().tick().0;
    assert!(tick(&rig, 4) + DELAY <= server && tick(&rig, 4) + DELAY + 30 >= server);
}

/// A crash never shortens the delay, whether spectators joined before or after it, even in a match that is younger than
/// the delay.
#[test]
fn a_crash_shows_delayed_spectators_no_frame_too_early() {
    for age in [3, 20] {
        let mut rig = Rig::<Game>::new(with_room(RigConfig::new(12, LinkProfile::LAN), 8, DELAY));
        rig.run(age * SECOND);
        rig.join_with("watcher", 0).unwrap();
        rig.run(2 * SECOND);
        rig.crash(SECOND / 10);
        rig.run(SECOND / 10);
        (0..5).for_each(|client| rig.redial(client));
        rig.join_with("another", 0).unwrap();
        for _ in 0..2_000 {
            rig.run(5 * MS);
            let server = rig.match_.world().tick().0;
            for watcher in [4, 5] {
                let shown = tick(&rig, watcher);
                assert!(shown == 0 || shown + DELAY <= server, "{shown} of {server}");
            }
        }
        let server = rig.match_.world().tick().0;
        for watcher in [4, 5] {
            let shown = tick(&rig, watcher);
            assert!(shown + DELAY + 30 >= server, "{shown} of {server}");
        }
    }
}

#[test]
fn a_delayed_spectator_with_a_desync_gets_no_current_world() {
    let mut rig = watched::<Game>(with_room(RigConfig::new(5, LinkProfile::LAN), 8, DELAY));
    rig.run(5 * SECOND);
    rig.flip(4);
    rig.run(2 * SECOND);
    let text = SessionEnd::Server(CloseCode::Desync);
    assert_eq!(rig.clients[4].session.closed(), Some(text));
    assert_eq!(rig.match_.stats().heals, 0);
}

#[test]
fn a_spectator_reconnects_as_a_spectator() {
    for delay in [0, DELAY] {
        let mut rig = watched::<Game>(with_room(RigConfig::new(6, LinkProfile::LAN), 8, delay));
        rig.run(8 * SECOND);
        assert!(rig.clients[4].tickets > 0);
        rig.cut(4);
        rig.run(2 * SECOND);
        rig.redial(4);
        rig.run(2 * SECOND);
        assert_eq!(rig.returns(4), (1, 0));
        assert_eq!(rig.match_.spectators(), 1, "the old session is taken over");
        let behind = rig.match_.world().tick().0 - delay - tick(&rig, 4);
        assert!(behind <= 40, "{behind} ticks behind");
    }
}

#[test]
fn a_player_may_also_be_a_spectator() {
    let mut rig = watched::<Game>(with_room(RigConfig::new(7, LinkProfile::LAN), 8, 0));
    rig.join_with("player 0", 0).unwrap();
    rig.run(3 * SECOND);
    assert!(rig.all_play());
    assert!(rig.clients.iter().all(|c| c.session.closed().is_none()));
}

/// Law Hostile wire: no packet of a spectator changes a frame.
#[test]
fn a_spectators_packets_change_no_frame() {
    let mut rig = watched::<History>(with_room(RigConfig::new(8, LinkProfile::LAN), 8, 0));
    rig.run(5 * SECOND);
    let refused = rig.clients[4].session.command(0, Command::Note(7));
    assert_eq!(refused, Err(CommandError::NoSeat));
    let strikes = rig.match_.stats().malformed;
    let peer = rig.clients[4].peer();
    // A packet as a player would send it: link, acks, one command of seat 0.
    let commands = Parts::default().with(UpPart::Commands);
    let mut forged = vec![UpKind::Play.head(commands)];
    forged.extend(30_000u16.to_le_bytes());
    forged.extend([0, 0, 255]);
    forged.extend((rig.match_.world().tick().0 as u16).to_le_bytes());
    forged.extend([0, 1, 0, 0, 0, 0, 0, 7]);
    rig.deliver(peer, &forged);
    assert_eq!(rig.match_.stats().malformed, strikes + 1, "a strike");
    let given = rig.match_.world().sim().ran().unwrap().len();
    rig.command(false);
    rig.run(3 * SECOND);
    let ran = rig.match_.world().sim().ran().unwrap();
    assert!(
        ran.iter().all(|(_, command)| *command != Command::Note(7)),
        "{given}"
    );
    rig.command(true);
}

#[test]
fn a_spectators_join_also_reports_progress() {
    let slow = "rtt=60,kbit=400".parse().unwrap();
    let mut config = with_room(RigConfig::new(10, "rtt=60".parse().unwrap()), 8, DELAY);
    config.crowd = 200;
    let mut rig = Rig::<Game>::new(config);
    rig.run(10 * SECOND);
    let watcher = rig.join_with("watcher", 0).unwrap();
    rig.relink(watcher, slow);
    let mut bytes = 0;
    for _ in 0..600 {
        rig.run(5 * MS);
        if let Some(Progress::World { received_bytes, .. }) =
            rig.clients[watcher].session.progress()
        {
            assert!(received_bytes >= bytes);
            bytes = received_bytes;
        }
    }
    assert!(bytes > 5_000, "{bytes} bytes");
    assert!(tick(&rig, watcher) > 0);
}
