//! Limits on the costs of one identity for others: the time that a match waits for it, and how early a delayed
//! spectator sees players. Reconnecting must not reset a limit.

use std::time::Duration;

use powderkeg_game::Game;
use twinstep_client::SessionEnd;
use twinstep_core::bounds::PACKET_BYTES_MAX;

use twinstep_core::{PlayerId, Presence};
use twinstep_protocol::packet::closed::CloseCode;
use twinstep_protocol::simnet::{LegProfile, LinkProfile};
use twinstep_rig::history::History;
use twinstep_rig::rig::{DEAF, Rig, RigConfig};
use twinstep_server::SessionId;
use twinstep_server::config::{Laggards, SealWhen, Spectators, TurnLength};
use twinstep_server::peer::SessionStage;

const SECOND: Duration = Duration::from_secs(1);
const MS: fn(u64) -> Duration = Duration::from_millis;

fn late(delay: Duration) -> LinkProfile {
    LinkProfile {
        up: LegProfile {
            delay,
            ..LegProfile::PERFECT
        },
        down: LegProfile::PERFECT,
    }
}

fn turn(rig: &Rig<History>) -> u32 {
    rig.match_.world().turn().number
}

/// Finding C1: each batch was late by less than `kick_after`, so its player was never removed.
#[test]
fn a_player_who_repeatedly_makes_the_others_wait_is_removed() {
    let mut rig = Rig::<History>::new(RigConfig::strategy(1, LinkProfile::LAN));
    rig.run(SECOND * 5);
    let slow = rig.clients[2].session.seats()[0];
    rig.relink(2, late(SECOND * 4));
    let mut removed = Duration::ZERO;
    while rig.match_.world().present().contains(slow) && removed < SECOND * 120 {
        rig.run(SECOND);
        removed += SECOND;
    }
    assert!(
        removed <= SECOND * 40,
        "it is still there after {removed:?}"
    );
    let waited = rig.match_.seat_stats(slow).waited;
    assert!(waited >= SECOND * 19 && waited <= SECOND * 30, "{waited:?}");
    for other in [0, 1, 3] {
        let other = rig.clients[other].session.seats()[0];
        let waited = rig.match_.seat_stats(other).waited;
        assert!(waited < SECOND * 2, "{other} was waited for {waited:?}");
    }
    let identity = rig.clients[2].identity.clone();
    assert_eq!(rig.join_with(&identity, 1), Err(CloseCode::TooSlow));
    let before = turn(&rig);
    rig.run(SECOND * 10);
    assert!(turn(&rig) - before >= 60, "the others do not play on");
    assert_eq!(
        rig.clients[2].session.closed(),
        Some(SessionEnd::Server(CloseCode::TooSlow))
    );
}

/// Finding C1: a new session started with a full budget.
#[test]
fn reconnecting_does_not_refill_the_patience_budget() {
    let mut rig = Rig::<History>::new(RigConfig::strategy(2, LinkProfile::LAN));
    rig.run(SECOND * 5);
    let began = turn(&rig);
    let mut dialled = 0;
    // The player is silent for seven seconds, then reconnects.
    for _ in 0..12 {
        rig.cut(1);
        rig.run(SECOND * 7);
        let identity = rig.clients[1].identity.clone();
        let peer = SessionId(1_000 + dialled);
        match rig.connect(peer, &identity, 1) {
            Ok(()) => rig.match_.disconnect(peer),
            Err(code) => {
                assert_eq!(code, CloseCode::TooSlow);
                break;
            }
        }
        rig.redial(1);
        rig.run(SECOND);
        dialled += 1;
    }
    assert!(dialled <= 4, "it returned {dialled} times");
    let before = turn(&rig);
    assert!(before > began);
    rig.run(SECOND * 10);
    assert!(turn(&rig) - before >= 60, "the others do not play on");
}

/// Finding C1: a turn may be due before the previous one is sealed, and the overlap was charged twice.
#[test]
fn a_player_is_charged_only_for_the_others_waiting_time() {
    let mut config = RigConfig::strategy(4, LinkProfile::LAN);
    config.policies.command_delay = 4;
    config.policies.tick = MS(16);
    config.policies.turn = TurnLength::Fixed(1);
    let mut rig = Rig::<History>::new(config);
    rig.run(SECOND * 2);
    let slow = rig.clients[2].session.seats()[0];
    rig.relink(2, late(MS(150)));
    rig.run(SECOND);
    let (began, at) = (rig.now, rig.match_.world().tick());
    let before = rig.match_.seat_stats(slow).waited;
    rig.run(SECOND * 10);
    let waited = rig.match_.seat_stats(slow).waited - before;
    let played = rig.match_.config().tick * (rig.match_.world().tick() - at);
    let stood = (rig.now - began).saturating_sub(played);
    assert!(stood >= SECOND, "the match did not wait: {stood:?}");
    assert!(
        waited >= stood / 2 && waited <= stood + MS(200),
        "{waited:?} of {stood:?}"
    );
}

#[test]
fn equally_slow_players_are_not_removed() {
    let mut config = RigConfig::strategy(3, LinkProfile::LAN);
    config.policies.command_delay = 1;
    config.clients = 2;
    let mut rig = Rig::<History>::new(config);
    rig.run(SECOND * 3);
    for client in 0..2 {
        rig.relink(client, late(MS(400)));
    }
    rig.run(SECOND * 90);
    assert!(rig.all_play(), "{:?}", rig.clients[0].session.closed());
    rig.converge();
}

#[test]
fn a_longer_kick_after_lets_a_slow_client_play_longer() {
    let mut config = RigConfig::strategy(6, LinkProfile::LAN);
    config.policies.sealing = SealWhen::WaitForAll {
        kick_after: SECOND * 60,
    };
    let mut rig = Rig::<History>::new(config);
    rig.run(SECOND * 5);
    rig.relink(1, late(SECOND * 4));
    rig.run(SECOND * 45);
    assert!(rig.all_play(), "{:?}", rig.clients[1].session.closed());
    rig.run(SECOND * 45);
    let closed = rig.clients[1].session.closed();
    assert_eq!(closed, Some(SessionEnd::Server(CloseCode::TooSlow)));
}

/// Finding HW2: when the match's patience with one player ended, another missing player was removed with it.
#[test]
fn a_player_missed_later_gets_the_same_patience() {
    let mut config = RigConfig::strategy(12, LinkProfile::LAN);
    config.policies.sealing = SealWhen::WaitForAll {
        kick_after: SECOND * 30,
    };
    let mut rig = Rig::<History>::new(config);
    rig.run(SECOND * 5);
    let silent = rig.clients[1].session.seats()[0];
    let anew = rig.clients[2].session.seats()[0];
    rig.cut(1);
    rig.cut(2);
    rig.run(SECOND);
    assert!(rig.match_.waiting().contains(anew));
    // The client's process restarts; turns are sealed without it until it has its world.
    rig.restart(2);
    rig.relink(2, LinkProfile::LAN);
    rig.run(SECOND * 27);
    let waiting = rig.match_.waiting();
    assert!(waiting.contains(silent) && !waiting.contains(anew));
    // The client redials: it could send its batch now, but does not receive packets.
    rig.redial(2);
    rig.relink(2, DEAF);
    rig.run(SECOND / 2);
    assert!(rig.match_.waiting().contains(anew), "it is missed late");
    rig.run(SECOND * 5);
    let waiting = rig.match_.waiting();
    assert!(!waiting.contains(silent), "patience is over");
    assert!(waiting.contains(anew), "after 5 s of 30");
    rig.relink(2, LinkProfile::LAN);
    rig.run(SECOND * 5);
    let world = rig.match_.world();
    assert_eq!(world.presence(silent), Presence::Absent);
    assert_eq!(world.presence(anew), Presence::Present);
    let before = turn(&rig);
    rig.run(SECOND * 5);
    assert!(turn(&rig) - before >= 30, "it does not play on");
}

/// Finding HW5: a client that reconnected with an empty budget was removed as soon as a batch was not early.
#[test]
fn a_player_with_a_spent_budget_stays_while_no_player_waits_for_it() {
    let mut config = RigConfig::strategy(13, LinkProfile::LAN);
    config.policies.command_delay = 3;
    config.policies.turn = TurnLength::Fixed(3);
    config.policies.sealing = SealWhen::WaitForAll {
        kick_after: SECOND * 60,
    };
    let mut rig = Rig::<History>::new(config);
    rig.run(SECOND * 5);
    rig.relink(1, late(SECOND * 4));
    let ended = |rig: &Rig<History>| rig.match_.stage(rig.clients[1].peer()).is_none();
    while !ended(&rig) {
        rig.run(SECOND);
        assert!(rig.now < SECOND * 120, "it is never removed");
    }
    rig.run(SECOND * 31);
    // Each of its batches arrives after its turn is due, but before clients have run the turns in between.
    rig.relink(1, late(MS(250)));
    rig.restart(1);
    rig.relink(1, late(MS(250)));
    rig.run(SECOND * 3);
    let player = rig.clients[1].session.seats()[0];
    let before = (turn(&rig), rig.match_.seat_stats(player));
    rig.run(SECOND * 20);
    assert!(rig.all_play(), "{:?}", rig.clients[1].session.closed());
    let after = (turn(&rig), rig.match_.seat_stats(player));
    assert!(after.0 - before.0 >= 130, "the match waits");
    println!("{before:?} {after:?}");
}

/// Finding C4: spectators with a delay of five seconds received names within 20 ms and link data within a second.
#[test]
fn a_delayed_spectator_sees_players_only_after_its_delay() {
    let mut config = RigConfig::new(7, LinkProfile::LAN);
    config.policies.spectators = Spectators {
        max: 8,
        delay_ticks: 300,
    };
    config.clients = 2;
    let mut rig = Rig::<Game>::new(config);
    rig.run(SECOND * 12);
    let watcher = rig.join_with("watcher", 0).unwrap();
    rig.run(SECOND * 8);
    let named = |rig: &Rig<Game>, player: PlayerId| {
        let presence = rig.clients[watcher].session.presence();
        (
            presence.name(player).is_some(),
            presence.here().contains(player),
        )
    };
    let known = rig.clients[0].session.seats()[0];
    assert_eq!(named(&rig, known), (true, true));
    let newcomer = rig.join("newcomer");
    let came = rig.now;
    rig.until_it_plays(newcomer);
    let player = rig.clients[newcomer].session.seats()[0];
    let mut received = [None; 2];
    while rig.now - came < SECOND * 9 {
        rig.run(MS(20));
        let (named, here) = named(&rig, player);
        for (received, is) in received.iter_mut().zip([named, here]) {
            if is && received.is_none() {
                *received = Some(rig.now - came);
            }
        }
    }
    for received in received {
        let received = received.expect("it arrives in the end");
        assert!(received >= MS(4_950), "after {received:?}");
    }
}

/// Finding K15: when the host's clock went back, the process ended.
#[test]
fn time_stands_still_while_the_clock_goes_back() {
    let config = RigConfig::strategy(8, LinkProfile::LAN);
    for config in [config, RigConfig::new(9, LinkProfile::LAN)] {
        let mut rig = Rig::<History>::new(config);
        rig.run(SECOND * 3);
        rig.relink(0, late(SECOND * 60));
        rig.run(SECOND);
        let mut buffer = [0; PACKET_BYTES_MAX];
        for back in [MS(1), SECOND, SECOND * 100] {
            let before = rig.now.saturating_sub(back);
            let peer = rig.clients[1].peer();
            rig.match_.handle(before, peer, &[0xff]);
            rig.match_.advance(before);
            assert!(rig.match_.connect(before, SessionId(77), "late", 1).is_ok());
            rig.match_.disconnect(SessionId(77));
            let session = &mut rig.clients[1].session;
            session.handle(before, &[0xff]);
            let _ = session.advance(before, 8, |_| Default::default());
            while session.poll_transmit(before, &mut buffer).is_some() {}
        }
        rig.relink(0, LinkProfile::LAN);
        rig.clients[0].session.reconnect(SECOND);
        rig.redial(0);
        rig.run(SECOND * 5);
        rig.converge();
    }
}

/// Regression: a client that trailed while the server's process was frozen was also removed for that time.
#[test]
fn a_server_stall_is_not_charged_to_clients() {
    let mut config = RigConfig::new(11, LinkProfile::LAN);
    config.policies.laggards = Laggards::Kick { after: SECOND * 5 };
    let mut rig = Rig::<History>::new(config);
    rig.run(SECOND * 5);
    let until = rig.now + SECOND * 8;
    rig.freeze(1, until);
    rig.run(SECOND);
    rig.stall(until);
    rig.run(SECOND * 9);
    assert!(rig.all_play(), "{:?}", rig.clients[1].session.closed());
    // The client's own stall is charged.
    let until = rig.now + SECOND * 7;
    rig.freeze(1, until);
    rig.run(SECOND * 8);
    let closed = rig.clients[1].session.closed();
    assert_eq!(closed, Some(SessionEnd::Server(CloseCode::TooSlow)));
}

/// Regression: an identity with two seats that reconnected with one seat had two accounts, and was barred for the empty
/// seat while it played in the other one.
#[test]
fn a_client_reconnecting_with_fewer_seats_is_not_barred_for_an_empty_seat() {
    let mut config = RigConfig::strategy(12, LinkProfile::LAN);
    config.clients = 2;
    config.policies.players_max = 4;
    config.policies.sealing = SealWhen::WaitForAll {
        kick_after: SECOND * 3,
    };
    let mut rig = Rig::<History>::new(config);
    rig.run(SECOND * 2);
    let pair = rig.join_with("a pair", 2).unwrap();
    rig.run(SECOND * 4);
    let [stays, goes] = rig.clients[pair].session.seats()[..] else {
        panic!("two seats");
    };
    rig.clients.remove(pair);
    let single = rig.join_with("a pair", 1).unwrap();
    rig.run(SECOND * 12);
    let client = &rig.clients[single];
    assert_eq!(client.session.seats(), [stays]);
    assert_eq!(rig.match_.stage(client.peer()), Some(SessionStage::Playing));
    assert_eq!(rig.match_.world().presence(goes), Presence::Absent);
    // The client is cut off, and reconnects immediately. It must be admitted.
    rig.cut(single);
    rig.run(MS(500));
    rig.redial(single);
    rig.run(SECOND * 3);
    let peer = rig.clients[single].peer();
    assert_eq!(rig.match_.stage(peer), Some(SessionStage::Playing));
}
