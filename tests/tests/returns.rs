//! Clients that lost their server, and restarted clients, reconnect: from frames, from a world, as a new process, or to
//! a restarted server. In every case they get their seats back, and the match waits for them for a bounded time.

use std::time::Duration;
use twinstep_protocol::lineage::Stamp;

use powderkeg_game::Game;
use twinstep_client::{Event, SessionEnd};
use twinstep_core::Tick;
use twinstep_core::world::Presence;
use twinstep_protocol::packet::closed::CloseCode;
use twinstep_protocol::simnet::{Bandwidth, LinkProfile};
use twinstep_rig::edges::EdgeCases;
use twinstep_rig::history::History;
use twinstep_rig::rig::{MUTE, Rig, RigConfig};
use twinstep_server::config::SealWhen;
use twinstep_server::peer::SessionStage;
use twinstep_server::{Identity, MatchConfig, Role, SessionId};

const SECOND: Duration = Duration::from_secs(1);
const MS: Duration = Duration::from_millis(1);

#[test]
fn a_client_that_lost_its_transport_resumes_from_frames_without_affecting_others() {
    let mut rig = Rig::<Game>::new(RigConfig::new(1, "rtt=60".parse().unwrap()));
    rig.run(8 * SECOND);
    let player = rig.clients[0].session.seats()[0];
    let before: Vec<f64> = (1..4).map(|i| rig.stats(i).stall_ms).collect();
    rig.cut(0);
    rig.run(1_200 * MS);
    let had = rig.stats(0).authority_tick;
    rig.redial(0);
    assert!(rig.clients[0].session.is_returning());
    rig.run(SECOND);
    assert_eq!(rig.returns(0), (1, 0));
    assert_eq!(rig.clients[0].session.seats(), [player]);
    assert_eq!(rig.match_.world().presence(player), Presence::Present);
    assert!(rig.stats(0).authority_tick > had + 100);
    for (i, before) in (1..4).zip(before) {
        assert_eq!(rig.stats(i).stall_ms, before, "client {i} paused");
    }
    rig.converge();
}

#[test]
fn a_client_away_for_longer_than_frames_are_kept_continues_from_a_world() {
    let mut rig = Rig::<Game>::new(RigConfig::new(3, LinkProfile::LAN));
    rig.run(6 * SECOND);
    let player = rig.clients[0].session.seats()[0];
    rig.cut(0);
    rig.run(5 * SECOND);
    rig.hang_up(0);
    rig.run(28 * SECOND);
    assert_eq!(rig.match_.world().presence(player), Presence::Dropped);
    rig.redial(0);
    rig.run(SECOND);
    assert_eq!(rig.returns(0), (0, 1));
    assert_eq!(rig.clients[0].session.seats(), [player]);
    assert_eq!(rig.match_.world().presence(player), Presence::Present);
    rig.converge();
}

/// Row 30, for a process that ended without a goodbye.
#[test]
fn a_restarted_client_takes_over_its_seat_from_a_seemingly_live_session() {
    let mut rig = Rig::<Game>::new(RigConfig::new(4, "rtt=60".parse().unwrap()));
    rig.run(8 * SECOND);
    let player = rig.clients[0].session.seats()[0];
    let others: Vec<f64> = (1..4).map(|i| rig.stats(i).stall_ms).collect();
    rig.restart(0);
    let took = rig.until_it_plays(0);
    assert!(took < SECOND, "{took:?}");
    assert_eq!(rig.clients[0].session.seats(), [player]);
    assert_eq!(rig.match_.world().presence(player), Presence::Present);
    assert_eq!(rig.match_.sessions(), 4);
    rig.run(SECOND);
    for (i, before) in (1..4).zip(others) {
        assert_eq!(rig.stats(i).stall_ms, before, "client {i} paused");
    }
    rig.converge();
}

/// Finding F1: a new transport was completed only after its client had gone back to the old one, and took away the
/// client's seat.
#[test]
fn a_dial_alone_does_not_disturb_the_identitys_live_session() {
    let mut rig = Rig::<Game>::new(RigConfig::new(5, LinkProfile::LAN));
    rig.run(6 * SECOND);
    let (peer, before) = (rig.clients[0].peer(), rig.clients[0].events.len());
    let callers: Vec<SessionId> = (900..904).map(SessionId).collect();
    for caller in &callers {
        let called = rig.connect(*caller, "player 0", 1);
        assert_eq!(called, Ok(()));
    }
    assert_eq!(
        rig.match_.stage(callers[0]),
        None,
        "three at once are enough"
    );
    assert_eq!(rig.match_.stage(callers[3]), Some(SessionStage::Greeting));
    rig.run(4 * SECOND);
    assert_eq!(rig.match_.stage(peer), Some(SessionStage::Playing));
    assert_eq!(rig.match_.stage(callers[3]), Some(SessionStage::Greeting));
    rig.run(2 * SECOND);
    assert_eq!(rig.match_.stage(callers[3]), None, "it had its time");
    assert_eq!(
        (rig.match_.sessions(), rig.clients[0].events.len()),
        (4, before)
    );
    rig.converge();
}

/// Finding H5: after a hand-over, clients between their dial and their hello were sent back to a server that no longer
/// had the match.
#[test]
fn a_moved_match_waits_for_returning_players() {
    let mut rig = Rig::<Game>::new(RigConfig::new(50, LinkProfile::LAN));
    rig.run(6 * SECOND);
    assert!(rig.match_.is_all_acknowledged());
    let caller = SessionId(900);
    assert_eq!(rig.connect(caller, "player 0", 1), Ok(()));
    assert!(!rig.match_.is_all_acknowledged());
    rig.match_.disconnect(caller);
    assert!(rig.match_.is_all_acknowledged());
}

/// Finding O1: a copy of an outdated ticket could still end its identity's session, or have that identity barred.
#[test]
fn an_outdated_ticket_cannot_end_a_session_or_bar_its_identity() {
    let mut rig = Rig::<Game>::new(RigConfig::new(51, LinkProfile::LAN));
    rig.run(6 * SECOND);
    let (peer, caller) = (rig.clients[0].peer(), SessionId(900));
    let now = rig.now;
    let stamp = Stamp::default();
    let called = rig
        .match_
        .connect_by_ticket(now, caller, "player 0", 1, stamp);
    assert_eq!(called, Ok(()));
    assert_eq!(rig.match_.stage(caller), Some(SessionStage::Greeting));
    let player = Identity::new("player 0", Role::Player);
    rig.match_.revoke(&player, stamp.issued_unix_ms + 1);
    assert_eq!(rig.match_.stage(caller), None);
    for _ in 0..20 {
        rig.deliver(caller, &[0xff; 40]);
    }
    rig.run(SECOND);
    assert_eq!(rig.match_.stage(peer), Some(SessionStage::Playing));
    rig.converge();
}

/// Finding O1: a client could report every ticket number below its newest one as stored, and each of them was written
/// to the journal.
#[test]
fn only_issued_tickets_count_as_stored() {
    let mut rig = Rig::<Game>::new(RigConfig::new(52, LinkProfile::LAN));
    rig.run(6 * SECOND);
    let peer = rig.clients[0].peer();
    let [lineage, other] = [7, 8];
    let stamp = |lineage, generation| Stamp {
        lineage,
        generation,
        ..Stamp::default()
    };
    let safe = |rig: &Rig<Game>| {
        let holder = Identity::new("player 0", Role::Player);
        let known = rig.match_.lineages().get(&holder)?;
        assert!(!known.has_seen(other));
        known.safe(lineage)
    };
    for generation in [10, 20] {
        rig.match_
            .hand_ticket(peer, stamp(lineage, generation), vec![0; 100]);
    }
    for generation in [9, 11, 15, 19, 21] {
        rig.clients[0].session.stored(&stamp(lineage, generation));
        rig.clients[0].session.stored(&stamp(other, generation));
    }
    rig.run(2 * SECOND);
    assert_eq!(safe(&rig), None);
    assert!(rig.match_.stats().malformed >= 10);
    for generation in [10, 20] {
        rig.clients[0].session.stored(&stamp(lineage, generation));
        rig.run(SECOND);
        assert_eq!(safe(&rig), Some(generation));
    }
}

/// Row 21, over two transports: the match waits for the batches of a reconnected client, which has not closed any yet.
#[test]
fn a_new_process_losing_its_server_immediately_does_not_hold_a_lockstep_match() {
    for seed in 60..64 {
        let config = RigConfig::strategy(seed, LinkProfile::LAN);
        let mut rig = Rig::<History>::new(RigConfig {
            policies: MatchConfig {
                command_delay: 4,
                sealing: SealWhen::WaitForAll {
                    kick_after: 20 * SECOND,
                },
                ..config.policies
            },
            ..config
        });
        rig.run(6 * SECOND);
        rig.restart(0);
        while rig.match_.stage(rig.clients[0].peer()) != Some(SessionStage::Playing) {
            rig.run(5 * MS);
            assert!(rig.now < 8 * SECOND, "seed {seed}: it never plays");
        }
        rig.cut(0);
        rig.redial(0);
        rig.run(SECOND);
        assert_eq!(rig.returns(0), (1, 0), "it went on by frames");
        let turn = rig.match_.world().turn();
        rig.run(2 * SECOND);
        let later = rig.match_.world().turn().number;
        assert!(
            later >= turn.number + 6,
            "seed {seed}: turn {} became {later}",
            turn.number
        );
        rig.converge();
    }
}

#[test]
fn a_client_cut_off_again_while_reconnecting_retries() {
    let mut rig = Rig::<Game>::new(RigConfig::new(6, LinkProfile::LAN));
    rig.run(6 * SECOND);
    rig.cut(0);
    rig.run(SECOND);
    rig.redial(0);
    rig.cut(0);
    rig.run(SECOND);
    rig.redial(0);
    rig.run(SECOND);
    assert_eq!(rig.returns(0), (1, 0));
    let reported = |event: &&Event| matches!(event, Event::Reconnecting);
    assert_eq!(rig.clients[0].events.iter().filter(reported).count(), 1);
    rig.converge();
}

#[test]
fn a_diverged_client_reconnects_with_a_world() {
    let mut rig = Rig::<Game>::new(RigConfig::new(7, LinkProfile::LAN));
    rig.run(6 * SECOND);
    rig.flip(0);
    rig.cut(0);
    rig.run(SECOND);
    rig.redial(0);
    rig.run(SECOND);
    assert_eq!(rig.returns(0), (0, 1));
    rig.clients[0].flipped = false;
    rig.converge();
}

/// A client gets a ticket as soon as its session plays, and then every ten seconds.
#[test]
fn reconnect_tickets_are_renewed_while_a_session_plays() {
    let mut rig = Rig::<Game>::new(RigConfig::new(8, LinkProfile::LAN));
    rig.run(SECOND);
    assert_eq!(rig.clients[0].tickets, 1);
    rig.run(30 * SECOND);
    assert_eq!(rig.clients[0].tickets, 4);
}

#[test]
fn reconnecting_does_not_reset_limits() {
    let mut rig = Rig::<Game>::new(RigConfig::new(9, LinkProfile::LAN));
    rig.run(6 * SECOND);
    for heal in 0..4 {
        rig.flip(0);
        rig.run(11 * SECOND);
        assert_eq!(rig.match_.stats().heals, heal + 1);
        rig.redial(0);
        rig.run(SECOND);
    }
    rig.flip(0);
    rig.run(11 * SECOND);
    let text = SessionEnd::Server(CloseCode::Desync);
    assert_eq!(rig.clients[0].session.closed(), Some(text));
    assert_eq!(rig.match_.stats().heals, 4);

    for strike in 0..9 {
        assert!(rig.clients[1].session.closed().is_none(), "{strike}");
        let peer = rig.clients[1].peer();
        rig.deliver(peer, &[1; 3]);
        if strike == 5 {
            rig.redial(1);
        }
    }
    assert_eq!(rig.match_.stage(rig.clients[1].peer()), None);
}

/// A reconnecting client gets only its welcome until its first packet: frames before that would be lost.
#[test]
fn a_reconnecting_client_gets_turns_only_after_its_first_packet() {
    let mut rig = Rig::<Game>::new(RigConfig::new(17, LinkProfile::LAN));
    rig.run(6 * SECOND);
    rig.cut(0);
    rig.run(2 * SECOND);
    rig.redial(0);
    rig.freeze(0, rig.now + SECOND);
    let peer = rig.clients[0].peer();
    rig.run(900 * MS);
    assert_eq!(rig.match_.stage(peer), Some(SessionStage::Greeting));
    assert_eq!(rig.match_.bytes_down(peer).unwrap().packets, 0);
    rig.run(SECOND);
    assert_eq!(rig.match_.stage(peer), Some(SessionStage::Playing));
    assert!(rig.match_.world().tick() > Tick(400));
}

/// A power loss without fsync undoes turns that clients have seen. The clients roll back as well, and get an event with
/// the number of ticks.
#[test]
fn a_client_ahead_of_a_restarted_server_rolls_back_and_gets_an_event() {
    let mut rig = Rig::<Game>::new(RigConfig::new(30, LinkProfile::LAN));
    rig.run(7 * SECOND);
    let kept = rig.journal.len();
    rig.run(2 * SECOND);
    for client in 0..4 {
        // Until the client is back, the server does not know its confirmed state.
        rig.flip_excuse(client);
    }
    let seen = rig.stats(0).authority_tick;
    rig.lose_power(kept);
    let next = rig.match_.world().tick().0;
    assert!(
        (115..=125).contains(&(seen - next)),
        "{seen} was seen, {next} is next"
    );
    for client in 0..4 {
        rig.redial(client);
    }
    rig.run(2 * SECOND);
    for client in 0..4 {
        let lost = rig.clients[client]
            .events
            .iter()
            .find_map(|event| match event {
                Event::Reconnected {
                    resumed: false,
                    lost_ticks,
                } => Some(*lost_ticks),
                _ => None,
            });
        let lost = lost.expect("a return by a world");
        assert!(lost > 0 && lost <= seen + 2 - next, "{lost} ticks");
        rig.clients[client].flipped = false;
    }
    rig.run(4 * SECOND);
    assert!(rig.all_play());
    rig.converge();
}

/// The server still has the world of a recent join, which is older than the player's own world. Reconnecting to that
/// world would look like a loss of ticks.
#[test]
fn a_reconnecting_client_gets_no_world_older_than_its_own() {
    let mut config = RigConfig::new(43, LinkProfile::LAN);
    config.clients = 2;
    config.load.world_bytes = 20_000;
    config.encodes_within = Some(10 * MS);
    let mut rig = Rig::<EdgeCases>::new(config);
    rig.run(6 * SECOND);
    let late = rig.join("late");
    rig.until_it_plays(late);
    rig.run(200 * MS);
    // The client's own world differs from the match's, so the client needs a world.
    rig.spoil(0, |sim| sim.ballast.spoil(7));
    while rig.clients[0].session.desynced_since().is_none() {
        rig.run(MS);
    }
    rig.cut(0);
    rig.redial(0);
    rig.run(2 * SECOND);
    let events = rig.clients[0].events.iter();
    let lost = events.filter_map(|event| match event {
        Event::Reconnected { lost_ticks, .. } => Some(*lost_ticks),
        _ => None,
    });
    assert_eq!(lost.collect::<Vec<_>>(), [0]);
    assert_eq!(rig.returns(0), (0, 1), "by a world");
    rig.clients[0].flipped = false;
    rig.converge();
}

#[test]
fn a_client_that_reconnects_too_late_may_retry() {
    let mut rig = Rig::<Game>::new(RigConfig::new(40, LinkProfile::LAN));
    rig.run(6 * SECOND);
    rig.cut(0);
    rig.run(SECOND);
    rig.redial(0);
    rig.relink(0, MUTE);
    rig.run(31 * SECOND);
    let session = &rig.clients[0].session;
    assert_eq!(session.close_code(), Some(CloseCode::JoinTooSlow));
    assert_eq!(session.closed(), None);
    rig.redial(0);
    rig.until_it_plays(0);
    rig.converge();
}

/// The client's half of the evidence is reported, although the server with the other half is gone.
#[test]
fn a_desync_is_reported_even_if_its_evidence_is_lost() {
    let mut rig = Rig::<Game>::new(RigConfig::new(41, "rtt=200".parse().unwrap()));
    rig.run(6 * SECOND);
    rig.flip(0);
    while rig.stats(0).heals == 0 {
        rig.run(5 * MS);
    }
    rig.cut(0);
    rig.redial(0);
    rig.run(SECOND);
    assert_eq!(rig.returns(0), (1, 0));
    let reported = rig.clients[0].desync.as_deref().expect("it is reported");
    assert!(reported.contains("did not arrive"), "{reported}");
    rig.converge();
}

/// A server that lost its journal starts another match under the same tickets. A reconnecting client continues with
/// that match, and new commands run there, though the server does not know the earlier commands.
#[test]
fn a_client_reconnecting_to_a_restarted_match_plays_and_sends_commands() {
    for delay in [0, 2] {
        let policies = kind(delay);
        let mut rig = Rig::<History>::new(RigConfig {
            policies: policies.clone(),
            ..RigConfig::new(42, LinkProfile::LAN)
        });
        rig.run(8 * SECOND);
        rig.observe(false);
        rig.start_over(policies);
        (0..4).for_each(|client| rig.redial(client));
        rig.run(4 * SECOND);
        let before: Vec<u64> = (0..4).map(|i| rig.stats(i).commands_executed).collect();
        rig.run(8 * SECOND);
        assert!(rig.all_play());
        for (client, before) in before.into_iter().enumerate() {
            let player = rig.clients[client].session.seats()[0];
            let log = &rig.match_.world().sim().log;
            assert!(log.iter().any(|(_, by, _)| *by == player), "delay {delay}");
            assert!(
                rig.stats(client).commands_executed > before,
                "delay {delay}"
            );
        }
    }
}

#[test]
fn a_client_reconnecting_to_another_command_delay_gets_an_event() {
    for (was, is) in [(0, 2), (2, 0), (2, 3)] {
        let mut rig = Rig::<History>::new(RigConfig {
            policies: kind(was),
            ..RigConfig::new(43, LinkProfile::LAN)
        });
        rig.run(3 * SECOND);
        rig.observe(false);
        rig.start_over(kind(is));
        rig.redial(0);
        rig.run(SECOND);
        let closed = rig.clients[0].session.closed();
        assert_eq!(closed, Some(SessionEnd::OtherMatch), "{was} became {is}");
    }
}

fn kind(delay: u8) -> MatchConfig {
    match delay {
        0 => MatchConfig::action(),
        command_delay => MatchConfig {
            command_delay,
            ..MatchConfig::strategy()
        },
    }
}

/// Regression: if a heal's world took longer than the input window, the client sampled ticks a second time although the
/// server already had their inputs. Each of these led to another difference.
#[test]
fn a_long_heal_samples_no_tick_twice() {
    let mut config = RigConfig::new(13, "rtt=50".parse().unwrap());
    config.clients = 2;
    config.load.world_bytes = 220 << 10;
    let mut rig = Rig::<EdgeCases>::new(config);
    rig.observe(false);
    rig.run(6 * SECOND);
    assert!(rig.all_play());
    let mut narrow: LinkProfile = "rtt=50".parse().unwrap();
    narrow.down.bandwidth = Some(Bandwidth::new(40_000));
    rig.relink(1, narrow);
    rig.flip(1);
    rig.run(2 * SECOND);
    assert!(rig.clients[1].session.desynced_since().is_some());
    let mut healing = 0;
    while rig.stats(1).heals == 0 {
        // When the world is about to arrive, the server freezes, so that inputs run far ahead of it.
        healing += 1;
        if healing == 40 {
            rig.stall(rig.now + 600 * MS);
        }
        assert!(healing < 200, "no heal");
        rig.run(100 * MS);
    }
    rig.run(5 * SECOND);
    assert_eq!(rig.stats(1).heals, 1);
    assert_eq!(rig.clients[1].session.desynced_since(), None);
}
