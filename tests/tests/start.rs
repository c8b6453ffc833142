//! A client that has the match's initial world joins by digest and frames: no world is sent, and no slot is needed. A
//! client with a different world gets the match's world as usual. All in virtual time.

use std::sync::Arc;
use std::time::Duration;

use powderkeg_game::Game;
use twinstep_client::{Event, Session, SessionConfig};
use twinstep_core::bounds::{PACKET_BYTES_MAX, WORLD_BYTES_MAX};
use twinstep_core::{Effects, Frame, Simulation, Tick};
use twinstep_protocol::simnet::{LegProfile, LinkProfile, SimLink};
use twinstep_rig::direct::{Direct, no_queries};
use twinstep_rig::edges::{EdgeCases, Load};
use twinstep_rig::game_types;
use twinstep_rig::rig::{InitialWorldKnowledge, Rig, RigConfig};
use twinstep_server::config::{Laggards, SealWhen, Spectators, TurnLength};
use twinstep_server::peer::SessionStage;
use twinstep_server::{Match, MatchConfig, Output, SessionId};

const SECOND: Duration = Duration::from_secs(1);
const MS: Duration = Duration::from_millis(1);

#[derive(Clone, serde::Serialize, serde::Deserialize)]
struct Level {
    terrain: String,
    moved: [u32; 16],
}

impl Level {
    fn new(bytes: usize) -> Level {
        Level {
            terrain: "~".repeat(bytes),
            moved: [0; 16],
        }
    }
}

impl Simulation for Level {
    game_types!("level");

    fn step(&mut self, frame: &Frame<'_, Self>, _: &mut Effects<Self>) {
        for (player, input) in frame.inputs() {
            self.moved[player.index()] += u32::from(*input);
        }
    }
}

/// Finding K11: worlds are sent to two clients at a time, at 512 KiB a second each, so sixteen players could not join.
#[test]
fn sixteen_players_with_an_8_mib_start_join_within_seconds_over_ordinary_lines() {
    let start = Level::new(WORLD_BYTES_MAX - 1_024);
    let policies = MatchConfig {
        tick: 250 * MS,
        players_max: 16,
        ..MatchConfig::action()
    };
    let mut match_ = Match::new(policies, start.clone(), Arc::new(()), no_queries()).unwrap();
    let mut clients: Vec<(Session<Level>, SimLink)> = Vec::new();
    for n in 0..16 {
        let identity = format!("player {n}");
        match_
            .connect(Duration::ZERO, SessionId(n), &identity, 1)
            .unwrap();
        let mut config = SessionConfig::new(Arc::new(())).start(start.clone());
        config.verify = false;
        let line: LinkProfile = "rtt=60,jitter=10,loss=1".parse().unwrap();
        clients.push((Session::new(config).unwrap(), SimLink::new(line, n)));
    }
    let mut buffer = [0; PACKET_BYTES_MAX];
    for frame in 1..=240 {
        let now = SECOND * frame / 60;
        for (n, (session, line)) in clients.iter_mut().enumerate() {
            while let Some(bytes) = line.down.poll(now) {
                session.handle(now, bytes);
            }
            session.advance(now, 8, |_| 1).unwrap();
            while let Some(len) = session.poll_transmit(now, &mut buffer) {
                line.up.send(now, &buffer[..len]);
            }
            while let Some(bytes) = line.up.poll(now) {
                match_.handle(now, SessionId(n as u64), bytes);
            }
        }
        match_.advance(now);
        while let Some(output) = match_.poll() {
            if let Output::Packet { peer, bytes } = output {
                clients[peer.0 as usize].1.down.send(now, bytes);
            }
        }
    }
    assert_eq!(match_.playing().len(), 16, "after four seconds");
    assert_eq!(match_.stats().joined_by_frames, 16);
    assert_eq!(match_.world().present().iter().count(), 16);
    for (n, (session, _)) in clients.iter().enumerate() {
        let bytes = match_.bytes_down(SessionId(n as u64)).unwrap();
        assert!(bytes.bulk < 2_000, "no world: {} B", bytes.bulk);
        let authority = session.authority().unwrap();
        let theirs = match_.digest_at(authority.tick());
        assert_eq!(authority.digest().ok(), theirs, "player {n}");
        assert_eq!(session.stats().heals, 0);
    }
}

fn ways() -> Vec<(&'static str, RigConfig)> {
    let wan = LinkProfile::WAN;
    let mut waiting = RigConfig::strategy(5, wan);
    waiting.policies.command_delay = 4;
    waiting.policies.sealing = SealWhen::WaitForAll {
        kick_after: SECOND * 20,
    };
    let mut all = vec![
        ("action", RigConfig::new(1, wan)),
        ("strategy", RigConfig::strategy(2, wan)),
        ("waiting for all", waiting),
    ];
    for (_, config) in &mut all {
        config.initial_world_knowledge = InitialWorldKnowledge::Known;
        config.clients = 2;
        config.policies.players_max = 8;
        config.policies.tick = config.policies.tick.max(33 * MS);
        (config.fps, config.verify) = (30, false);
        // Large enough that frames are cheaper than the world for a while.
        config.load = Load {
            hertz: 30,
            world_bytes: 40_000,
            ..Load::default()
        };
    }
    all
}

fn fast() -> RigConfig {
    let mut config = ways().remove(0).1;
    config.policies.tick = SECOND / 60;
    config.clients = 1;
    config.load.hertz = 60;
    config.load.world_bytes = 90_000;
    config
}

fn by_frames<S: twinstep_rig::rig::Play>(rig: &Rig<S>) -> u64 {
    rig.match_.stats().joined_by_frames
}

/// A newcomer replays the history, including the roster. The rig compares its confirmed state every tick.
#[test]
fn newcomers_replay_the_match_from_its_start_under_any_policy() {
    for (way, config) in ways() {
        let mut rig = Rig::<EdgeCases>::new(config);
        rig.run(5 * SECOND);
        assert_eq!(by_frames(&rig), 2, "{way}");
        let late = rig.join("late");
        let took = rig.until_it_plays(late);
        assert_eq!(by_frames(&rig), 3, "{way}");
        assert!(took < 2 * SECOND, "{way}: {took:?}");
        assert!(rig.bytes_down(late).bulk < 4_000, "{way}");
        // Past cues are neither reported as events nor played.
        let received = |client| rig.stats(client).cues_confirmed;
        assert!(received(0) > 3 * received(late), "{way}");
        rig.run(2 * SECOND);
        // The client's process is killed, and the next one starts over.
        rig.restart(late);
        rig.until_it_plays(late);
        let back = by_frames(&rig);
        assert_eq!(back, 4, "{way}");
        // In lockstep, too, the newcomer jumps to the present.
        rig.run(2 * SECOND);
        let turn = rig.match_.world().turn().number;
        rig.run(2 * SECOND);
        assert!(rig.match_.world().turn().number >= turn + 10, "{way}");
        assert_eq!(rig.match_.stats().heals, 0, "{way}");
        // The previous process's commands are not counted here.
        let stats = rig.stats(late);
        assert!(stats.commands_executed <= stats.commands_sent, "{way}");
        rig.converge();
    }
}

/// Row 20: the server sends the match's first tick and its cadence, so a client need not know them beforehand.
#[test]
fn a_match_may_start_at_any_tick_and_pace() {
    let slow = MatchConfig {
        start: Tick(70_000),
        turn: TurnLength::Fixed(5),
        tick: 40 * MS,
        delay_ticks: 3,
        ..MatchConfig::action()
    };
    let strategy = MatchConfig {
        start: Tick(9),
        ..MatchConfig::strategy()
    };
    for policies in [slow, strategy] {
        let session = || SessionConfig::new(Arc::new(())).start(Level::new(50_000));
        let level = Level::new(50_000);
        let mut all = Direct::of(policies.clone(), level, [session()]);
        all.run(180, |_, _| 1);
        all.match_
            .connect(all.now, SessionId(1), "late", 1)
            .unwrap();
        all.sessions.push(Session::new(session()).unwrap());
        all.deaf_until.push(Duration::ZERO);
        all.run(180, |_, _| 1);
        assert_eq!(all.match_.stats().joined_by_frames, 2);
        assert_eq!(all.match_.world().present().iter().count(), 2);
        for session in &all.sessions {
            let authority = session.authority().unwrap();
            let theirs = all.match_.digest_at(authority.tick());
            assert_eq!(authority.digest().ok(), theirs);
            assert_eq!(authority.turn().cadence, all.match_.world().turn().cadence);
            assert_eq!(session.stats().heals, 0);
        }
    }
}

#[test]
fn a_client_with_a_different_start_gets_the_world() {
    let level = || Level::new(50_000);
    let session = || SessionConfig::new(Arc::new(()));
    let sessions = vec![
        session().start(level()),
        session().start(Level::new(49_999)),
        session(),
    ];
    let mut all = Direct::of(MatchConfig::action(), level(), sessions);
    all.run(180, |_, _| 1);
    assert_eq!(all.match_.stats().joined_by_frames, 1);
    assert_eq!(all.match_.playing().len(), 3);
    for (n, session) in all.sessions.iter_mut().enumerate() {
        let authority = session.authority().unwrap();
        let theirs = all.match_.digest_at(authority.tick());
        assert_eq!(authority.digest().ok(), theirs, "player {n}");
        assert!(matches!(session.poll_event(), Some(Event::Joined(_))));
        assert_eq!(session.poll_event(), None);
        assert_eq!(session.stats().heals, 0);
        let loaded = all.match_.bytes_down(SessionId(n as u64)).unwrap().bulk > 40_000;
        assert_eq!(loaded, n > 0, "player {n}");
    }
}

/// Half a minute of frames costs more than a small world.
#[test]
fn a_newcomer_gets_the_world_if_it_is_cheaper_than_the_frames() {
    let mut config = RigConfig::new(7, LinkProfile::WAN);
    config.initial_world_knowledge = InitialWorldKnowledge::Known;
    let mut rig = Rig::<Game>::new(config);
    rig.run(8 * SECOND);
    let before = by_frames(&rig);
    let late = rig.join("late");
    rig.until_it_plays(late);
    assert_eq!(by_frames(&rig), before);
}

/// The frames are kept for 30 s; a client that starts with the oldest ones would have ten seconds left to catch up.
#[test]
fn a_newcomer_gets_the_world_if_its_frames_would_be_dropped_meanwhile() {
    let mut rig = Rig::<EdgeCases>::new(fast());
    rig.run(19 * SECOND);
    let late = rig.join("late");
    assert!(rig.until_it_plays(late) < 5 * SECOND);
    assert_eq!(by_frames(&rig), 2);
    rig.run(SECOND);
    let later = rig.join("later");
    rig.until_it_plays(later);
    assert_eq!(by_frames(&rig), 2);
    rig.converge();
}

#[test]
fn newcomers_join_by_frames_even_after_a_crash() {
    for (way, config) in ways() {
        let mut rig = Rig::<EdgeCases>::new(config);
        rig.run(3 * SECOND);
        rig.crash(500 * MS);
        rig.run(SECOND);
        rig.restart_clients();
        for client in 0..2 {
            rig.until_it_plays(client);
        }
        assert_eq!(by_frames(&rig), 2, "{way}");
        let late = rig.join("late");
        rig.until_it_plays(late);
        assert_eq!(by_frames(&rig), 3, "{way}");
        rig.converge();
    }
}

#[test]
fn a_delayed_spectator_starts_at_the_first_tick_and_sees_no_frame_too_soon() {
    let delay_ticks = 180;
    let mut config = ways().remove(0).1;
    config.policies.spectators = Spectators {
        max: 4,
        delay_ticks,
    };
    let mut rig = Rig::<EdgeCases>::new(config);
    rig.run(MS * 500);
    let early = rig.join_with("early", 0).unwrap();
    rig.run(8 * SECOND);
    let late = rig.join_with("late", 0).unwrap();
    let before = by_frames(&rig);
    rig.watch(4 * SECOND, |rig| {
        for watcher in [early, late] {
            if let Some(authority) = rig.clients[watcher].session.authority() {
                let seen = authority.tick();
                let ahead = rig.match_.world().tick() - seen;
                assert!(seen == Tick(0) || ahead >= delay_ticks, "{ahead} ticks old");
            }
        }
    });
    assert_eq!((before, by_frames(&rig)), (3, 4));
    for watcher in [early, late] {
        let seen = rig.clients[watcher].session.authority().unwrap().tick();
        let behind = rig.match_.world().tick() - seen;
        assert!(behind < delay_ticks + 60, "{behind} ticks behind");
    }
}

/// Regression: a newcomer whose link died before it was admitted had to load a world again, because it had no presence
/// yet.
#[test]
fn a_client_not_admitted_yet_continues_by_frames() {
    let mut rig = Rig::<Game>::new(RigConfig::new(8, "rtt=400".parse().unwrap()));
    rig.run(6 * SECOND);
    let late = rig.join("late");
    while rig.clients[late].session.authority().is_none() {
        rig.run(MS);
    }
    assert_eq!(
        rig.match_.stage(rig.clients[late].peer()),
        Some(SessionStage::Loading),
        "no ack was received"
    );
    rig.cut(late);
    rig.run(6 * SECOND);
    rig.redial(late);
    rig.until_it_plays(late);
    assert_eq!(rig.returns(late), (1, 0));
    rig.converge();
}

/// Regression: frames kept at the client's hello were dropped before it received them, and it paused for 30 s.
#[test]
fn a_client_reconnecting_as_its_frames_expire_plays_immediately() {
    for away_ms in [20_500, 29_500] {
        let mut config = RigConfig::new(9, "rtt=300".parse().unwrap());
        (config.clients, config.fps, config.verify) = (2, 30, false);
        let mut rig = Rig::<Game>::new(config);
        rig.run(6 * SECOND);
        rig.cut(0);
        rig.run(away_ms * MS);
        rig.redial(0);
        let took = rig.until_it_plays(0);
        assert!(took < 3 * SECOND, "{away_ms}: {took:?}");
        rig.converge();
    }
}

/// Finding P3-B1: frames were dropped after 30 s although a client still needed them, and an outage then cost a world.
#[test]
fn a_ten_second_outage_during_the_catch_up_continues_by_frames() {
    let mut rig = Rig::<EdgeCases>::new(fast());
    rig.run(18 * SECOND);
    let late = rig.join("late");
    while rig.match_.stage(rig.clients[late].peer()) != Some(SessionStage::CatchingUp) {
        rig.run(MS);
    }
    rig.relink(late, LinkProfile::both(LegProfile::BLACKOUT));
    rig.run(12 * SECOND);
    rig.relink(late, LinkProfile::WAN);
    let took = rig.until_it_plays(late);
    assert!(took < 4 * SECOND, "{took:?}");
    assert_eq!(rig.stats(late).heals, 0);
    rig.converge();
}

/// Between two bursts of frames no step is due. A clock started at that time was seconds late, and jumped.
#[test]
fn a_newcomers_clock_starts_when_it_has_caught_up() {
    let mut rig = Rig::<EdgeCases>::new(fast());
    rig.run(15 * SECOND);
    let late = rig.join("late");
    rig.relink(late, "rtt=200".parse().unwrap());
    let (mut steps_behind, mut starts_behind) = (0, None);
    rig.watch(6 * SECOND, |rig| {
        let session = &rig.clients[late].session;
        let Some(authority) = session.authority() else {
            return;
        };
        let behind = rig.match_.world().tick() - authority.tick();
        match session.progress() {
            Some(_) => steps_behind = steps_behind.max(behind),
            None => starts_behind = starts_behind.max(Some(behind)),
        }
    });
    assert!(steps_behind > 800, "{steps_behind}");
    let starts_behind = starts_behind.expect("it plays");
    assert!(starts_behind < 30, "{starts_behind}");
    rig.converge();
}

/// Regression: a newcomer that had received its frames but not stepped them was admitted, and the others waited for its
/// slow machine.
#[test]
fn a_newcomer_is_admitted_when_it_has_stepped_its_frames() {
    let mut config = fast();
    config.policies.laggards = Laggards::hold();
    let mut rig = Rig::<EdgeCases>::new(config);
    rig.run(15 * SECOND);
    let held = rig.match_.stats().held;
    let late = rig.join("late");
    rig.clients[late].step_cost = 4 * MS;
    assert!(rig.until_it_plays(late) > 3 * SECOND);
    // If all players waited for its steps, the match would be held for a quarter of that time.
    assert!(rig.match_.stats().held - held < 150 * MS);
    rig.clients[late].step_cost = Duration::ZERO;
    rig.converge();
}
