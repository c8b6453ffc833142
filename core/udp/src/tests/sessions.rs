//! What a session does among honest peers.

use std::slice::from_ref;
use std::time::Duration;

use super::*;
use crate::claims::SerialOf;
use crate::words::SendError;
use crate::{PACKET_MAX, SERIAL_END, ServerConfigError};
use twinstep_core::simnet::{LinkProfile, SimLink};

const SECOND: Duration = Duration::from_secs(1);

#[test]
fn a_ticket_connects_and_packets_pass_both_ways() {
    let (mut world, session) = World::with_a_player();
    let ticket = &world.connected[0].1;
    assert_eq!(ticket.identity, "anna");
    assert_eq!((ticket.match_id, ticket.seats), (4, 2));
    assert_eq!(ticket.serial, EPOCH.as_millis() as u64);

    world.server.send(session, b"down").unwrap();
    world.players[0].endpoint.send(b"up").unwrap();
    world.step();
    assert_eq!(world.packets, [(session, b"up".to_vec())]);
    assert_eq!(world.players[0].packets, [b"down"]);
}

#[test]
fn nothing_passes_either_way_until_the_session_is_admitted() {
    let mut world = World::new();
    world.admits = false;
    let ticket = world.ticket();
    world.join(0, &ticket);
    world.run(SECOND);
    let session = world.connected[0].0;
    assert_eq!(
        world.server.send(session, b"x"),
        Err(SendError::NotConnected)
    );
    world.players[0].endpoint.send(b"early").unwrap();
    world.step();
    assert_eq!(world.packets, []);
    assert_eq!(world.server.counters().unadmitted, 1);

    world.server.admit(session);
    world.players[0].endpoint.send(b"now").unwrap();
    world.step();
    assert_eq!(world.packets, [(session, b"now".to_vec())]);
}

/// All share one link, and still each hears only what is sent to it.
#[test]
fn sessions_share_a_link_and_nothing_else() {
    let mut world = World::new();
    for n in 0..3 {
        let spec = TicketSpec {
            servers: &[server_address()],
            seats: if n == 0 { 1 } else { 0 },
            ..spec_at(EPOCH)
        };
        let ticket = Ticket::issue(&world.key, &spec).unwrap();
        world.join(n, &ticket);
    }
    world.run(SECOND);
    assert_eq!(world.connected.len(), 3);
    for (n, (session, _)) in world.connected.clone().into_iter().enumerate() {
        world.players[n].endpoint.send(&[n as u8]).unwrap();
        world.server.send(session, &[10 + n as u8]).unwrap();
    }
    world.step();
    let heard: Vec<u8> = world.packets.iter().map(|(_, bytes)| bytes[0]).collect();
    assert_eq!(heard, [0, 1, 2]);
    for (n, player) in world.players.iter().enumerate() {
        assert_eq!(player.packets, [[10 + n as u8]]);
    }
}

/// Finding K12: a session that was refused had burnt its ticket.
#[test]
fn a_refused_session_ends_at_both_sides_and_its_ticket_can_be_tried_again() {
    let mut world = World::new();
    world.admits = false;
    let ticket = world.ticket();
    world.join(0, &ticket);
    world.run(SECOND);
    let session = world.connected[0].0;
    world.server.disconnect(session);
    world.run(SECOND);
    assert_eq!(world.players[0].closed, Some(CloseReason::ByServer));
    assert_eq!(world.server.sessions(), 0);

    world.admits = true;
    world.join(0, &ticket);
    world.run(SECOND);
    assert!(world.players[1].connected);
    assert_eq!(world.connected.len(), 2);
}

#[test]
fn the_largest_packet_passes_and_a_larger_one_is_an_error_at_send() {
    let (mut world, session) = World::with_a_player();
    let (largest, larger) = (vec![7; PACKET_MAX], vec![7; PACKET_MAX + 1]);
    let oversize = Err(SendError::Oversize {
        bytes: PACKET_MAX + 1,
    });
    assert_eq!(world.server.send(session, &larger), oversize);
    assert_eq!(world.players[0].endpoint.send(&larger), oversize);
    world.server.send(session, &largest).unwrap();
    world.players[0].endpoint.send(&largest).unwrap();
    world.step();
    assert_eq!(world.packets, [(session, largest.clone())]);
    assert_eq!(world.players[0].packets, [largest]);
}

#[test]
fn a_session_of_keep_alives_alone_lives_and_its_datagrams_stay_small() {
    let (mut world, _) = World::with_a_player();
    world.sent = Some(Vec::new());
    world.run(20 * SECOND);
    assert_eq!((world.left.len(), world.players[0].closed), (0, None));
    let sent = world.sent.unwrap();
    assert!(sent.len() <= 2 * 20 * 4 + 4, "{} datagrams", sent.len());
    assert!(sent.iter().all(|(_, _, bytes)| bytes.len() < 50));
}

#[test]
fn the_largest_datagram_stays_below_1200_bytes() {
    let (mut world, session) = World::with_a_player();
    world.sent = Some(Vec::new());
    world.server.send(session, &[7; PACKET_MAX]).unwrap();
    world.step();
    let largest = world
        .sent
        .unwrap()
        .iter()
        .map(|(_, _, bytes)| bytes.len())
        .max();
    assert!(
        largest.unwrap() + 28 < 1_200,
        "{largest:?} bytes and headers"
    );
}

#[test]
fn silence_ends_a_session_at_both_sides() {
    let (mut world, session) = World::with_a_player();
    let mut player = world.players.remove(0);
    world.run(6 * SECOND);
    assert_eq!(world.left, [(session, LeaveReason::TimedOut)]);
    player.endpoint.advance(world.now);
    let mut last = None;
    while let Some(event) = player.endpoint.poll_event() {
        if let ClientEvent::Closed { reason } = event {
            last = Some(reason);
        }
    }
    assert_eq!(last, Some(CloseReason::TimedOut));
}

#[test]
fn a_goodbye_of_either_side_ends_the_session_at_once() {
    let (mut world, session) = World::with_a_player();
    world.players[0].endpoint.disconnect();
    world.run(STEP);
    assert_eq!(world.left, [(session, LeaveReason::Left)]);
    assert_eq!(world.players[0].closed, Some(CloseReason::ByClient));

    let (mut world, session) = World::with_a_player();
    world.server.disconnect(session);
    world.run(STEP);
    assert_eq!(world.players[0].closed, Some(CloseReason::ByServer));
    assert_eq!((world.left.len(), world.server.sessions()), (0, 0));
    assert_eq!(
        world.server.send(session, b"x"),
        Err(SendError::NotConnected)
    );
}

#[test]
fn a_player_who_left_returns_with_any_ticket_from_the_same_address() {
    let mut world = World::new();
    let ticket = world.ticket();
    world.join(0, &ticket);
    world.run(SECOND);
    for ticket in [world.ticket(), ticket] {
        let last = world.players.len() - 1;
        world.players[last].endpoint.disconnect();
        world.step();
        world.players.clear();
        world.join(0, &ticket);
        world.run(SECOND);
        assert!(world.players[0].connected);
    }
    assert_eq!(world.connected.len(), 3);
}

/// Findings O1, O2: a ticket that was shown once was burnt, whatever became of its session.
#[test]
fn a_ticket_opens_a_session_as_often_as_it_is_shown_from_wherever_and_after_restarts() {
    let mut world = World::new();
    let ticket = world.ticket();
    for n in 0..20 {
        // The process before is gone without a word; now and then the server is too.
        world.players.clear();
        if n % 5 == 4 {
            world.restart();
        }
        world.join(n, &ticket);
        world.run(SECOND);
        assert!(world.players[0].connected, "dial {n}");
        let (session, _) = world.connected[usize::from(n)];
        world.server.send(session, b"down").unwrap();
        world.players[0].endpoint.send(b"up").unwrap();
        world.step();
        assert_eq!(world.packets.pop(), Some((session, b"up".to_vec())));
        assert_eq!(world.players[0].packets, [b"down"]);
    }
    let mut ids: Vec<_> = world.connected.iter().map(|(id, _)| *id).collect();
    ids.sort();
    ids.dedup();
    assert_eq!(ids.len(), 20, "each is a session of its own");
}

/// Dialling without completing spends nothing, and another dial from the very same socket works at once.
#[test]
fn a_dial_that_was_given_up_is_in_nobodys_way() {
    let mut world = World::new();
    let (old, new) = (world.ticket(), world.ticket());
    for ticket in [&old, &new, &old] {
        // Knocks, is challenged, and does not answer.
        let mut gone = ClientEndpoint::new(ticket, world.now);
        gone.advance(world.now);
        while let Some((_, knock)) = gone.poll_transmit() {
            world.server.handle(world.now, player_address(0), knock);
        }
        assert!(world.server.poll_transmit().is_some(), "a challenge");
    }
    world.join(0, &old);
    world.run(SECOND / 2);
    assert!(world.players[0].connected);
    assert_eq!(world.connected.len(), 1);
}

/// One identity has as many dials as it needs, and not as many as it takes to keep others out.
#[test]
fn who_dials_without_end_keeps_nobody_else_out() {
    let mut world = World::new();
    let ticket = world.ticket();
    for n in 0..3_000 {
        let mut dial = ClientEndpoint::new(&ticket, world.now);
        dial.advance(world.now);
        while let Some((_, knock)) = dial.poll_transmit() {
            world.server.handle(world.now, player_address(n), knock);
        }
    }
    while world.server.poll_transmit().is_some() {}
    assert!(world.server.counters().rate_limited >= 2_900);
    let spec = TicketSpec {
        identity: "bob",
        servers: &[server_address()],
        ..spec_at(EPOCH)
    };
    let ticket = Ticket::issue(&world.key, &spec).unwrap();
    world.join(9_999, &ticket);
    world.run(SECOND);
    assert!(world.players[0].connected);
}

/// Finding O1: whoever had a copy of any old ticket of an identity could keep out who had its newest one, by dialling.
#[test]
fn copies_of_an_old_ticket_do_not_keep_out_who_has_a_newer_one() {
    let mut world = World::new();
    let old = world.ticket();
    for n in 0..3_000 {
        let mut dial = ClientEndpoint::new(&old, world.now);
        dial.advance(world.now);
        while let Some((_, knock)) = dial.poll_transmit() {
            world.server.handle(world.now, player_address(n), knock);
        }
    }
    while world.server.poll_transmit().is_some() {}
    let servers = [server_address()];
    let spec = TicketSpec {
        servers: &servers,
        ..spec_at(EPOCH)
    };
    let newer = Ticket::issue_after(&world.key, &spec, Some(old.serial())).unwrap();
    assert!(newer.serial() > old.serial());
    world.join(9_999, &newer);
    world.run(SECOND);
    assert!(world.players[0].connected);
}

/// A ticket that is out of date, an old invite or one that was revoked, took a session and a dial each time it was shown.
#[test]
fn a_ticket_that_is_known_to_be_out_of_date_is_refused_in_words_and_takes_no_place() {
    let mut world = World::new();
    world.server = server_of(&[world.key.clone()], world.now, 1);
    let old = world.ticket();
    let servers = [server_address()];
    let spec = TicketSpec {
        servers: &servers,
        ..spec_at(EPOCH)
    };
    let issue =
        |spec: &TicketSpec<'_>| Ticket::issue_after(&world.key, spec, Some(old.serial())).unwrap();
    let newer = issue(&spec);
    let watcher = Ticket::issue(&world.key, &TicketSpec { seats: 0, ..spec }).unwrap();
    let anna = SerialOf {
        match_id: 4,
        watches: false,
        identity: "anna".to_owned(),
    };
    world.server.note_safe(anna.clone(), newer.serial());
    // What only rises does not fall by what is told late.
    world.server.note_safe(anna.clone(), old.serial());
    world.join(0, &old);
    world.run(SECOND);
    assert_eq!(world.players[0].closed, Some(CloseReason::Superseded));
    assert!(world.connected.is_empty());
    for n in 1..3_000 {
        let mut dial = ClientEndpoint::new(&old, world.now);
        dial.advance(world.now);
        while let Some((_, knock)) = dial.poll_transmit() {
            world.server.handle(world.now, player_address(n), knock);
        }
    }
    while world.server.poll_transmit().is_some() {}
    assert!(world.server.counters().denied_superseded >= 3_000);
    assert_eq!(world.server.remembered_peers(), 0);
    world.join(9_999, &newer);
    world.run(SECOND);
    assert!(world.players[1].connected);
    assert_eq!(world.connected.len(), 1);
    world.players[1].endpoint.disconnect();
    world.step();

    // Another place of hers, and what is forgotten, is not touched by it.
    world.join(10_000, &watcher);
    world.run(SECOND);
    assert!(world.players[2].connected);
    world.players[2].endpoint.disconnect();
    world.step();
    world.server.forget_match(4);
    world.join(10_001, &old);
    world.run(SECOND);
    assert!(world.players[3].connected);
}

/// Whoever is revoked for good is refused by whatever it shows.
#[test]
fn who_is_revoked_for_good_is_refused_at_the_door() {
    let mut world = World::new();
    let ticket = world.ticket();
    let anna = SerialOf {
        match_id: 4,
        watches: false,
        identity: "anna".to_owned(),
    };
    world.server.note_safe(anna, SERIAL_END);
    world.join(0, &ticket);
    world.run(SECOND);
    assert_eq!(world.players[0].closed, Some(CloseReason::Superseded));
}

#[test]
fn a_full_server_denies_in_words_and_has_room_again_later() {
    let mut world = World::new();
    world.server = server_of(&[world.key.clone()], world.now, 1);
    for n in 0..2 {
        let ticket = world.ticket();
        world.join(n, &ticket);
        world.run(SECOND);
    }
    assert_eq!(world.players[1].closed, Some(CloseReason::Denied));
    assert!(world.server.counters().denied_full >= 1);

    world.players[0].endpoint.disconnect();
    world.step();
    let ticket = world.ticket();
    world.join(2, &ticket);
    world.run(SECOND);
    assert!(world.players[2].connected);
}

#[test]
fn two_keys_are_alive_at_once_and_the_bound_holds_over_both() {
    let mut world = World::new();
    let (old, other) = (TicketKey::generate(), TicketKey::generate());
    let keys = [world.key.clone(), old.clone()];
    world.server = server_of(&keys, world.now, 2);
    for (n, key) in [&keys[0], &old, &other, &old].into_iter().enumerate() {
        let ticket = world.ticket_of(key, server_address());
        world.join(n as u16, &ticket);
        world.run(SECOND);
    }
    let connected: Vec<bool> = world.players.iter().map(|p| p.connected).collect();
    assert_eq!(connected, [true, true, false, false]);
    assert_eq!(world.players[3].closed, Some(CloseReason::Denied));
    assert!(world.server.counters().unknown_key > 0);
    for n in 0..2 {
        world.players[n].endpoint.send(b"hello").unwrap();
        world.server.send(world.connected[n].0, b"hello").unwrap();
    }
    world.step();
    assert_eq!(world.packets.len(), 2);
    assert!((0..2).all(|n| world.players[n].packets == [b"hello"]));
}

/// A key is rotated while players are inside: the old one's tickets are good until it is dropped, and its sessions after that.
#[test]
fn keys_change_while_sessions_play_on() {
    let mut world = World::new();
    let (old, new) = (world.key.clone(), TicketKey::generate());
    let join = |world: &mut World, key: &TicketKey| {
        let ticket = world.ticket_of(key, server_address());
        let n = world.players.len();
        world.join(n as u16, &ticket);
        world.run(SECOND);
        world.players[n].connected
    };
    assert!(join(&mut world, &old) && !join(&mut world, &new));
    world.server.set_keys(&[new.clone(), old.clone()]).unwrap();
    assert!(join(&mut world, &old) && join(&mut world, &new));
    world.server.set_keys(from_ref(&new)).unwrap();
    assert!(!join(&mut world, &old) && join(&mut world, &new));
    // Who came by the key that is gone plays on.
    let before = world.packets.len();
    world.players[0].endpoint.send(b"hello").unwrap();
    world.run(SECOND);
    assert_eq!(world.packets.len(), before + 1);
    // It comes back, and finds its gate.
    world.server.set_keys(&[new.clone(), old.clone()]).unwrap();
    assert!(join(&mut world, &old));
    assert_eq!(
        world.server.set_keys(&[]),
        Err(ServerConfigError::Keys(0)),
        "nobody could come in any more"
    );
    assert!(join(&mut world, &new), "and nothing changed");
}

/// Law Bounded: gates of keys that nobody plays by are used again; those in use have a number.
#[test]
fn keys_come_and_go_without_end_unless_somebody_plays_by_each() {
    let mut world = World::new();
    for _ in 0..40 {
        world.server.set_keys(&[TicketKey::generate()]).unwrap();
    }
    let mut refused = 0;
    for n in 0..10 {
        let key = TicketKey::generate();
        if let Err(error) = world.server.set_keys(from_ref(&key)) {
            assert_eq!(error, ServerConfigError::KeysInUse(8));
            refused += 1;
            continue;
        }
        let ticket = world.ticket_of(&key, server_address());
        world.join(n, &ticket);
        world.run(SECOND);
        assert!(world.players[usize::from(n)].connected);
    }
    assert_eq!(refused, 2);
}

#[test]
fn two_handshakes_at_once_do_not_share_the_last_place() {
    let mut world = World::new();
    let keys = [world.key.clone(), TicketKey::generate()];
    world.server = server_of(&keys, world.now, 1);
    for (n, key) in keys.iter().enumerate() {
        let ticket = world.ticket_of(key, server_address());
        world.join(n as u16, &ticket);
    }
    world.run(SECOND);
    assert_eq!((world.connected.len(), world.server.sessions()), (1, 1));
    let closed = |p: &&Player| p.closed == Some(CloseReason::Denied);
    assert_eq!(world.players.iter().filter(closed).count(), 1);
}

/// A copy of an old ticket became a session if it was shown just before the newer one was told of; and so did what expired,
/// or lost its key, within that moment.
#[test]
fn what_stops_being_good_while_its_holder_connects_begins_no_session() {
    type Change = fn(&mut World, &Ticket);
    let superseded: Change = |world, ticket| {
        let anna = SerialOf {
            match_id: 4,
            watches: false,
            identity: "anna".to_owned(),
        };
        world.server.note_safe(anna, ticket.serial() + 1);
    };
    let expired: Change = |world, _| {
        world.clock_jump = 60 * SECOND;
        world.server.advance(world.now, EPOCH + 61 * SECOND);
    };
    let without_its_key: Change = |world, _| {
        world.server.set_keys(&[TicketKey::generate()]).unwrap();
    };
    for (change, said) in [
        (superseded, Some(CloseReason::Superseded)),
        (expired, Some(CloseReason::Expired)),
        // As to a knock by an unknown key: nothing.
        (without_its_key, None),
    ] {
        let mut world = World::new();
        let ticket = world.ticket();
        world.join(0, &ticket);
        while world.server.remembered_peers() == 0 {
            world.run(STEP);
        }
        assert_eq!(world.server.sessions(), 0, "it is challenged, no more");
        change(&mut world, &ticket);
        world.run(SECOND);
        assert_eq!(world.players[0].closed, said);
        assert!(!world.players[0].connected && world.connected.is_empty());
        let told = world.server.counters();
        assert!(told.denied_superseded + told.denied_expired + told.unknown_key > 0);
    }
}

/// Findings O4, H7: lives are judged by the server's clock, as it is now.
#[test]
fn a_ticket_expires_by_the_servers_clock_as_it_is_now_and_its_holder_is_told() {
    let mut world = World::new();
    let ticket = world.ticket();
    world.run(59 * SECOND);
    world.join(0, &ticket);
    world.run(SECOND / 2);
    assert!(world.players[0].connected);
    world.run(SECOND);
    world.join(1, &ticket);
    world.run(SECOND);
    assert_eq!(world.players[1].closed, Some(CloseReason::Expired));
    assert!(world.server.counters().denied_expired > 0);

    // The clock is set: what is issued by it is good at once, and what it ran over is not.
    let before = world.ticket();
    world.clock_jump = 600 * SECOND;
    world.step();
    let spec = TicketSpec {
        servers: &[server_address()],
        ..spec_at(EPOCH + world.now + world.clock_jump)
    };
    let after = Ticket::issue(&world.key, &spec).unwrap();
    world.join(2, &before);
    world.join(3, &after);
    world.run(SECOND);
    assert_eq!(world.players[2].closed, Some(CloseReason::Expired));
    assert!(world.players[3].connected);
}

#[test]
fn the_second_address_is_tried_when_the_first_is_silent() {
    let mut world = World::new();
    let spec = TicketSpec {
        servers: &["192.0.2.55:1".parse().unwrap(), server_address()],
        ..spec_at(EPOCH)
    };
    let ticket = Ticket::issue(&world.key, &spec).unwrap();
    world.join(0, &ticket);
    world.run(5 * SECOND);
    assert!(!world.players[0].connected);
    world.run(SECOND);
    assert!(world.players[0].connected);
}

#[test]
fn endpoints_can_be_moved_between_threads_and_kept_as_an_engines_resource() {
    fn check<T: Send + Sync>() {}
    check::<ServerEndpoint>();
    check::<ClientEndpoint>();
    check::<crate::UdpClient>();
    check::<crate::SimulatedTransport>();
}

/// Plays for 10 s over a bad network, both sides sending from the first moment on: what came up, and down.
fn play_over(profile: LinkProfile, seed: u64) -> (usize, usize) {
    let mut world = World::new();
    let ticket = world.ticket();
    let mut client = ClientEndpoint::new(&ticket, world.now);
    let mut link = SimLink::new(profile, seed);
    let mut down = 0;
    for tick in 0..1_000 {
        let now = STEP * tick;
        client.advance(now);
        if let Some(&(session, _)) = world.connected.first() {
            let _ = world.server.send(session, b"down");
        }
        let _ = client.send(b"up");
        while let Some((_, bytes)) = client.poll_transmit() {
            link.up.send(now, bytes);
        }
        while let Some(bytes) = link.up.poll(now) {
            world.server.handle(now, player_address(0), bytes);
        }
        world.server.advance(now, EPOCH + now);
        world.take_server_events();
        while let Some((_, bytes)) = world.server.poll_transmit() {
            link.down.send(now, bytes);
        }
        while let Some(bytes) = link.down.poll(now) {
            client.handle(now, server_address(), bytes);
        }
        while let Some(event) = client.poll_event() {
            down += usize::from(matches!(event, ClientEvent::Packet(_)));
        }
    }
    (world.packets.len(), down)
}

#[test]
fn a_bad_network_delays_the_handshake_but_does_not_prevent_it() {
    // 100 packets a second, a tenth lost, in bursts: one seed loses eleven requests in a row.
    for seed in 0..50 {
        let (up, down) = play_over(LinkProfile::AWFUL, seed);
        assert!(up > 400 && down > 400, "seed {seed}: {up} up, {down} down");
    }
}

#[test]
fn a_server_that_speaks_at_once_does_not_drown_the_word_that_lets_the_client_in() {
    // Half of all is lost, so the first keep-alive often is.
    let profile = "rtt=50,loss=50".parse().unwrap();
    for seed in 0..50 {
        let (up, down) = play_over(profile, seed);
        assert!(up > 200 && down > 200, "seed {seed}: {up} up, {down} down");
    }
}

/// Finding O13: each client that left in order was logged as a sender of junk.
#[test]
fn a_goodbye_is_no_junk_and_neither_is_what_comes_late() {
    // The server sees the goodbye; or it has ended the session already, and a packet of it was under way.
    for server_ends in [false, true] {
        let (mut world, session) = World::with_a_player();
        if server_ends {
            world.server.disconnect(session);
            world.players[0].endpoint.send(b"late").unwrap();
        }
        world.players[0].endpoint.disconnect();
        world.run(SECOND);
        assert_eq!(world.server.sessions(), 0);
        let counters = world.server.counters();
        assert_eq!((counters.junk, counters.rejected), (0, 0), "{counters:?}");
        assert!(counters.late > 0, "{counters:?}");
        // Much later nobody knows it any more.
        world.run(5 * SECOND);
        world.server.handle(world.now, player_address(0), &[5; 100]);
        assert_eq!(world.server.counters().junk, 1);
    }
}

/// Finding K10: who dialled a server that was about to end burnt a ticket for nothing.
#[test]
fn a_server_that_is_shut_answers_nobody_and_spends_no_ticket() {
    let (mut world, session) = World::with_a_player();
    world.server.shut();
    let ticket = world.ticket();
    let late = world.join(1, &ticket);
    world.run(SECOND);
    assert!(!world.players[late].connected);
    assert_eq!(world.players[late].closed, None, "it goes on asking");
    assert_eq!(world.server.address(session), Some(player_address(0)));
    world.restart();
    world.run(SECOND);
    assert!(world.players[late].connected);
}

/// Finding O6: a server whose process had stood still took its own silence for that of others, though what they had said
/// lay in its socket.
#[test]
fn a_server_that_stood_still_hears_what_came_before_it_times_anybody_out() {
    let (mut world, session) = World::with_a_player();
    world.now += 12 * SECOND;
    let now = world.now;
    // What the player said just now; its own clock is none of the server's business.
    world.players[0].endpoint.send(b"still here").unwrap();
    while let Some((_, datagram)) = world.players[0].endpoint.poll_transmit() {
        world.server.handle(now, player_address(0), datagram);
    }
    world.server.advance(now, EPOCH + now);
    world.take_server_events();
    assert_eq!(world.left, []);
    assert_eq!(world.packets, [(session, b"still here".to_vec())]);
}
