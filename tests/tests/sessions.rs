//! Players join and leave at no cost to the others: joins, refusals, takeovers, and confirmations. All in virtual time.
//! For reconnects, see `returns.rs`.

use std::sync::Arc;
use std::time::Duration;

use powderkeg_game::Game;
use twinstep_client::{Progress, Session, SessionConfig, SessionEnd};
use twinstep_core::PlayerId;
use twinstep_core::bounds::PACKET_BYTES_MAX;
use twinstep_protocol::packet::closed::CloseCode;
use twinstep_protocol::simnet::LinkProfile;
use twinstep_rig::rig::{InputPattern, Play, Rig, RigConfig};
use twinstep_server::peer::SessionStage;
use twinstep_server::{Output, SessionId};

const SECOND: Duration = Duration::from_secs(1);
const MS: Duration = Duration::from_millis(1);

#[test]
fn a_session_taken_over_gets_the_reason() {
    let mut rig = Rig::<Game>::new(RigConfig::new(5, LinkProfile::LAN));
    rig.run(6 * SECOND);
    let elsewhere = rig.join("player 0");
    rig.run(SECOND);
    let text = SessionEnd::Server(CloseCode::TakenOver);
    assert_eq!(rig.clients[0].session.closed(), Some(text));
    assert_eq!(rig.clients[elsewhere].session.seats(), [PlayerId(0)]);
    rig.clients.remove(0);
    for client in &mut rig.clients {
        client.restarted = true;
    }
    rig.converge();
}

#[test]
fn an_identity_gets_a_world_once_in_five_seconds() {
    let mut rig = Rig::<Game>::new(RigConfig::new(10, LinkProfile::LAN));
    rig.run(6 * SECOND);
    rig.restart(0);
    assert!(rig.until_it_plays(0) < SECOND);
    rig.restart(0);
    let took = rig.until_it_plays(0);
    assert!((4 * SECOND..6 * SECOND).contains(&took), "{took:?}");
}

fn refused<S: Play>(rig: &mut Rig<S>, client: usize) -> Option<SessionEnd> {
    rig.run(60 * MS);
    rig.clients[client].session.closed()
}

/// Row 26: a client with a different start is refused before its first tick.
#[test]
fn clients_with_another_build_rules_game_or_wire_are_refused_in_one_round_trip() {
    let mut rig = Rig::<Game>::new(RigConfig::new(11, LinkProfile::LAN));
    rig.run(2 * SECOND);
    let other = Arc::new(Game::rules(7));
    let mut session = Session::<Game>::new(SessionConfig::new(other)).unwrap();
    let code = greet(&mut rig, &mut session, |_| {});
    assert_eq!(code, Some(CloseCode::WrongRules));
    assert!(session.authority().is_none());

    type Change = fn(&mut Vec<u8>);
    let changes: [(CloseCode, Change); 3] = [
        (CloseCode::WrongWire, |hello| hello[6] ^= 1),
        (CloseCode::WrongGame, |hello| hello[9] ^= 1),
        (CloseCode::WrongVersion, |hello| {
            let version = 9 + usize::from(hello[8]);
            hello[version] ^= 1;
        }),
    ];
    for (code, change) in changes {
        let rules = Arc::new(Game::rules(0));
        let mut session = Session::<Game>::new(SessionConfig::new(rules)).unwrap();
        assert_eq!(greet(&mut rig, &mut session, change), Some(code));
        let text = session.closed().map(|closed| closed.to_string());
        assert_eq!(text, Some(code.to_string()));
    }
}

fn greet(
    rig: &mut Rig<Game>,
    session: &mut Session<Game>,
    change: impl FnOnce(&mut Vec<u8>),
) -> Option<CloseCode> {
    let peer = SessionId(999);
    rig.connect(peer, "stranger", 1).unwrap();
    let mut buffer = [0; PACKET_BYTES_MAX];
    let len = session.poll_transmit(rig.now, &mut buffer).unwrap();
    let mut hello = buffer[..len].to_vec();
    change(&mut hello);
    rig.deliver(peer, &hello);
    let mut closed = None;
    let now = rig.now;
    while let Some(output) = rig.match_.poll() {
        match output {
            Output::Packet { peer: to, bytes } if to == peer => session.handle(now, bytes),
            Output::Closed { peer: to, code } if to == peer => closed = Some(code),
            _ => {}
        }
    }
    closed
}

#[test]
fn full_and_closed_matches_refuse_newcomers_and_let_their_players_return() {
    let mut rig = Rig::<Game>::new(RigConfig::new(12, LinkProfile::LAN));
    rig.run(6 * SECOND);
    rig.match_.set_open(false);
    assert_eq!(rig.join_with("late", 1), Err(CloseCode::Shut));
    rig.cut(0);
    rig.run(SECOND);
    rig.redial(0);
    rig.run(SECOND);
    assert_eq!(rig.returns(0), (1, 0), "a client with a seat returns");
    rig.match_.set_open(true);
    for n in 4..8 {
        rig.join(&format!("player {n}"));
    }
    assert_eq!(rig.join_with("one too many", 1), Err(CloseCode::Full));
    assert_eq!(refused(&mut rig, 0), None);
    assert!(CloseCode::Full.to_string().contains("full"));
    assert!(CloseCode::Shut.to_string().contains("no new players"));
}

/// Row 30.
#[test]
fn players_join_and_leave_at_any_tick_without_pausing_the_others() {
    let mut rig = Rig::<Game>::new(RigConfig::new(13, "rtt=60".parse().unwrap()));
    rig.run(6 * SECOND);
    let before: Vec<f64> = (0..4).map(|i| rig.stats(i).stall_ms).collect();
    for n in 0..6 {
        let newcomer = rig.join(&format!("guest {n}"));
        let took = rig.until_it_plays(newcomer);
        assert!(took < SECOND, "{took:?}");
        rig.run((700 + 37 * n) * MS);
        rig.leave(newcomer);
        rig.run(211 * MS);
    }
    for (i, before) in before.into_iter().enumerate() {
        assert_eq!(rig.stats(i).stall_ms, before, "client {i} paused");
        assert_eq!(rig.stats(i).heals, 0);
    }
    rig.converge();
}

/// 1,000 entities, 10 Mbit/s, and a round trip of 100 ms.
#[test]
fn joining_a_crowded_match_over_a_home_connection_takes_at_most_two_seconds() {
    let line: LinkProfile = "rtt=100,kbit=10000".parse().unwrap();
    let mut config = RigConfig::new(14, line);
    config.crowd = 1_000;
    config.verify = false;
    config.input_pattern = InputPattern::Sticky;
    let mut rig = Rig::<Game>::new(config);
    rig.run(8 * SECOND);
    let before: Vec<f64> = (0..4).map(|i| rig.stats(i).stall_ms).collect();
    let newcomer = rig.join("late");
    let began = rig.now;
    let (mut bytes, mut ticks) = (None, None);
    while rig.match_.stage(rig.clients[newcomer].peer()) != Some(SessionStage::Playing)
        || rig.clients[newcomer].session.progress().is_some()
        || rig.clients[newcomer].session.prediction().is_none()
    {
        rig.run(5 * MS);
        match rig.clients[newcomer].session.progress() {
            Some(Progress::World {
                received_bytes,
                total_bytes,
                ..
            }) => {
                assert!(bytes <= Some(received_bytes) && received_bytes <= total_bytes);
                bytes = Some(received_bytes);
            }
            Some(Progress::CatchingUp {
                done_ticks,
                total_ticks,
            }) => {
                assert!(ticks <= Some(done_ticks) && done_ticks <= total_ticks);
                ticks = Some(done_ticks);
            }
            _ => {}
        }
        assert!(rig.now - began < 10 * SECOND, "it never plays");
    }
    let took = rig.now - began;
    println!("joined in {took:?}; world of {bytes:?} bytes, {ticks:?} ticks since");
    assert!(took <= 2 * SECOND, "{took:?}");
    assert!(bytes > Some(10_000), "progress in bytes: {bytes:?}");
    assert!(ticks.is_some(), "progress in ticks");
    rig.run(2 * SECOND);
    for (i, before) in before.into_iter().enumerate() {
        assert_eq!(rig.stats(i).stall_ms, before, "client {i} paused");
    }
}

/// Row 14: the network is a star. Actions reach other clients only through the server, over one connection each.
#[test]
fn each_client_holds_exactly_one_connection() {
    let mut rig = Rig::<Game>::new(RigConfig::new(15, LinkProfile::LAN));
    rig.run(6 * SECOND);
    assert_eq!(rig.match_.sessions(), 4, "one session each");
    // Without the server, clients receive nothing about each other, so all confirmed worlds pause at once.
    rig.stall(rig.now + SECOND);
    rig.run(20 * MS);
    let before: Vec<u32> = (0..4).map(|i| rig.stats(i).authority_tick).collect();
    rig.run(900 * MS);
    for (i, before) in before.into_iter().enumerate() {
        assert_eq!(rig.stats(i).authority_tick, before);
    }
    rig.run(2 * SECOND);
    rig.converge();
}

/// Row 78: an input reaches the other clients by its own path: up, then a wait until the tick is sealed and the turn is
/// full, then down. The path does not wait for any client's acknowledgement, however slow that client is.
#[test]
fn other_players_inputs_are_confirmed_only_after_their_own_path() {
    let delay = |slow: &str| {
        let mut rig = Rig::<Game>::new(RigConfig::new(16, "rtt=40".parse().unwrap()));
        rig.relink(3, slow.parse().unwrap());
        rig.run(6 * SECOND);
        // The number of ticks by which client 1's confirmed tick trails client 0's input tick at the same moment.
        let mut trails = Vec::new();
        for _ in 0..200 {
            rig.run(10 * MS);
            let (input, confirmed) = (rig.stats(0).input_tick, rig.stats(1).authority_tick);
            trails.push(f64::from(input) - f64::from(confirmed));
        }
        trails.iter().sum::<f64>() / trails.len() as f64 * 1_000.0 / 60.0
    };
    let quick = delay("rtt=40");
    // 20 ms up, the margin that the pace keeps, a 2-tick turn, 20 ms down.
    assert!((40.0..120.0).contains(&quick), "{quick:.1} ms");
    let with_a_slow_third = delay("rtt=400,jitter=40,loss=5");
    let more = with_a_slow_third - quick;
    assert!(more.abs() < 3.0, "a slow third client costs {more:.1} ms");
}
