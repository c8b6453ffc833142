//! Sessions among honest peers.

use std::time::Duration;

use super::*;
use crate::transport::SendError;
use crate::{PACKET_MAX, SharedLink};
use twinstep_protocol::simnet::{LinkProfile, SimLink};

const SECOND: Duration = Duration::from_secs(1);
const MS: Duration = Duration::from_millis(1);

#[test]
fn a_ticket_connects_and_packets_pass_both_ways() {
    let (mut world, session) = World::with_a_player();
    let ticket = &world.connected[0].1;
    assert!(ticket.identity.plays_as("anna"));
    assert_eq!((ticket.match_id, ticket.seats), (MatchId(4), 2));
    assert_eq!(ticket.stamp.issued_unix_ms, EPOCH.as_millis() as u64);

    world.server.send(session, b"down").unwrap();
    world.players[0].endpoint.send(b"up").unwrap();
    world.step();
    assert_eq!(world.packets, [(session, b"up".to_vec())]);
    assert_eq!(world.players[0].packets, [b"down"]);
}

#[test]
fn no_packet_passes_in_either_direction_until_the_session_is_admitted() {
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

/// A packet of one client, of any size, does not affect the others.
#[test]
fn clients_that_share_a_laminar_instance_have_separate_sessions() {
    const PLAYERS: usize = 3;
    let mut world = World::new();
    let link = SharedLink::new();
    for n in 0..PLAYERS {
        let ticket = world.ticket();
        let endpoint = ClientEndpoint::new(&ticket, world.now).sharing(&link);
        world.join_as(n as u16, endpoint);
        world.run(STEP * 2);
    }
    world.run(SECOND);
    assert_eq!(world.connected.len(), PLAYERS);
    let said = |n: usize, round: usize| vec![n as u8; (round * 97 + n * 301) % PACKET_MAX];
    // The last one is not polled for a while: its packets wait while the others send and receive.
    let mut looks_away = world.players.pop().expect("three");
    for round in 0..20 {
        world.packets.clear();
        for (n, player) in world.players.iter_mut().enumerate() {
            player.packets.clear();
            player.endpoint.send(&said(n, round)).unwrap();
        }
        for n in 0..PLAYERS {
            let (session, _) = world.connected[n];
            world.server.send(session, &said(n, round + 7)).unwrap();
        }
        let now = world.now;
        while let Some((to, bytes)) = world.server.poll_transmit() {
            let mut players = world.players.iter_mut().chain([&mut looks_away]);
            let player = players.find(|player| player.address == to).expect("one");
            player.endpoint.handle(now, server_address(), bytes);
        }
        world.step();
        for (n, player) in world.players.iter().enumerate() {
            let session = world.connected[n].0;
            assert!(world.packets.contains(&(session, said(n, round))));
            assert_eq!(player.packets, [said(n, round + 7)]);
        }
        assert_eq!(world.packets.len(), PLAYERS - 1);
    }
    world.players.push(looks_away);
    world.step();
    let waited: Vec<_> = (0..20).map(|round| said(PLAYERS - 1, round + 7)).collect();
    assert_eq!(world.players[PLAYERS - 1].packets, waited);
}

/// There are more sessions than slots in one netcode instance: each can be found, ended and timed out.
#[test]
fn each_of_many_sessions_is_found_again() {
    const PLAYERS: u16 = 150;
    let mut world = World::new();
    world.server = server_of(std::slice::from_ref(&world.key), Duration::ZERO, 256);
    for n in 0..PLAYERS {
        let ticket = world.ticket();
        world.join(n, &ticket);
        world.run(STEP * 2);
    }
    world.run(SECOND);
    assert_eq!(world.connected.len(), usize::from(PLAYERS));
    let address = |world: &World, session| world.server.address(session);
    for (session, _) in world.connected.clone() {
        let to = address(&world, session).expect("a session");
        world
            .server
            .send(session, to.to_string().as_bytes())
            .unwrap();
    }
    for player in &mut world.players {
        let from = player.address.to_string();
        player.endpoint.send(from.as_bytes()).unwrap();
    }
    world.step();
    assert_eq!(world.packets.len(), usize::from(PLAYERS));
    for (session, bytes) in &world.packets {
        let from = address(&world, *session).expect("a session").to_string();
        assert_eq!(*bytes, from.as_bytes());
    }
    for player in &world.players {
        assert_eq!(player.packets, [player.address.to_string().as_bytes()]);
    }
    // A third is disconnected, a third leaves, a third falls silent.
    for (n, (session, _)) in world.connected.clone().into_iter().enumerate() {
        match n % 3 {
            0 => world.server.disconnect(session),
            1 => world.players[n].endpoint.disconnect(),
            _ => {}
        }
    }
    world.step();
    world.step();
    assert_eq!(world.server.sessions(), usize::from(PLAYERS) / 3);
    world.players.clear();
    world.run(SECOND * 6);
    assert_eq!(world.server.sessions(), 0);
    let timed_out = |left: &&(SessionId, LeaveReason)| left.1 == LeaveReason::TimedOut;
    assert_eq!(world.left.iter().filter(timed_out).count(), 50);
}

/// All share one link, but each receives only its own packets.
#[test]
fn sessions_share_only_a_link() {
    let mut world = World::new();
    for n in 0..3 {
        let spec = TicketSpec {
            servers: &[server_address().into()],
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

/// Finding K12: a refused session had used up its ticket.
#[test]
fn a_refused_session_ends_at_both_sides_and_its_ticket_can_be_used_again() {
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
fn a_session_with_only_keep_alives_stays_alive_and_its_datagrams_stay_small() {
    let (mut world, _) = World::with_a_player();
    world.sent = Some(Vec::new());
    world.run(20 * SECOND);
    assert_eq!((world.left.len(), world.players[0].closed), (0, None));
    let sent = world.sent.unwrap();
    assert!(sent.len() <= 2 * 20 * 4 + 4, "{} datagrams", sent.len());
    assert!(sent.iter().all(|(_, _, bytes)| bytes.len() < 50));
}

/// A match sends to its clients at least twice a second.
#[test]
fn a_client_with_two_packets_a_second_gets_no_keep_alives() {
    let (mut world, session) = World::with_a_player();
    world.sent = Some(Vec::new());
    for _ in 0..40 {
        world.server.send(session, b"something").unwrap();
        world.run(SECOND / 2);
    }
    assert_eq!((world.left.len(), world.players[0].closed), (0, None));
    let sent = world.sent.unwrap();
    let down = sent.iter().filter(|(from, _, _)| *from == server_address());
    assert_eq!(down.count(), 40);
}

/// A silent client does not get keep-alives either, while its session exists.
#[test]
fn a_silent_client_with_two_packets_a_second_gets_no_keep_alives() {
    let (mut world, session) = World::with_a_player();
    world.players.clear();
    world.sent = Some(Vec::new());
    for _ in 0..8 {
        world.server.send(session, b"something").unwrap();
        world.run(SECOND / 2);
    }
    assert!(world.left.is_empty());
    assert_eq!(world.sent.unwrap().len(), 8);
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
    let began = world.now;
    let mut left_after = None;
    for _ in 0..60 {
        world.run(SECOND / 10);
        player.endpoint.advance(world.now);
        if !world.left.is_empty() {
            left_after.get_or_insert(world.now - began);
        }
        // Even if packets are sent to it.
        let _ = world.server.send(session, b"something");
    }
    assert_eq!(world.left, [(session, LeaveReason::TimedOut)]);
    let after = left_after.unwrap();
    assert!(after < 5 * SECOND + SECOND / 2, "a ticket's 5 s: {after:?}");
    let mut last = None;
    while let Some(event) = player.endpoint.poll_event() {
        if let ClientEvent::Closed { reason } = event {
            last = Some(reason);
        }
    }
    assert_eq!(last, Some(CloseReason::TimedOut));
}

#[test]
fn a_goodbye_from_either_side_ends_the_session_immediately() {
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
fn the_second_address_is_tried_when_the_first_is_silent() {
    let mut world = World::new();
    let spec = TicketSpec {
        servers: &["192.0.2.55:1".parse().unwrap(), server_address().into()],
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
fn endpoints_are_send_and_sync() {
    fn check<T: Send + Sync>() {}
    check::<ServerEndpoint>();
    check::<ClientEndpoint>();
    check::<crate::UdpClient>();
    check::<crate::SimulatedTransport>();
}

/// Plays for 10 s over a bad network, both sides sending from the start. Returns the packets received at the server and
/// at the client.
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
fn a_server_that_sends_immediately_does_not_delay_the_handshake() {
    // Half of all datagrams are lost, so the first keep-alive often is.
    let profile = "rtt=50,loss=50".parse().unwrap();
    for seed in 0..50 {
        let (up, down) = play_over(profile, seed);
        assert!(up > 200 && down > 200, "seed {seed}: {up} up, {down} down");
    }
}

/// Finding O13: each client leaving with a goodbye was logged as a sender of junk.
#[test]
fn goodbyes_and_late_datagrams_do_not_count_as_junk() {
    // The server gets the goodbye, or it has already ended the session while one of its packets was in flight.
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
        // Much later the address is dropped.
        world.run(5 * SECOND);
        world.server.handle(world.now, player_address(0), &[5; 100]);
        assert_eq!(world.server.counters().junk, 1);
    }
}

/// Finding K10: dialling a server about to shut down used up the client's ticket.
#[test]
fn a_server_that_refuses_dials_does_not_respond_or_use_up_a_ticket() {
    let (mut world, session) = World::with_a_player();
    world.server.refuse_dials();
    let ticket = world.ticket();
    let late = world.join(1, &ticket);
    world.run(SECOND);
    assert!(!world.players[late].connected);
    assert_eq!(world.players[late].closed, None, "it keeps dialling");
    assert_eq!(world.server.address(session), Some(player_address(0)));
    world.restart();
    world.run(SECOND);
    assert!(world.players[late].connected);
}

/// Finding O6: a server whose process had been stopped counted its own pause as the clients' silence, though their
/// datagrams were waiting in its socket.
#[test]
fn a_stopped_server_reads_its_socket_before_it_times_sessions_out() {
    let (mut world, session) = World::with_a_player();
    world.now += 12 * SECOND;
    let now = world.now;
    // The player has just sent a packet; its own clock does not matter to the server.
    world.players[0].endpoint.send(b"still here").unwrap();
    while let Some((_, datagram)) = world.players[0].endpoint.poll_transmit() {
        world.server.handle(now, player_address(0), datagram);
    }
    world.server.advance(now, EPOCH + now);
    world.take_server_events();
    assert_eq!(world.left, []);
    assert_eq!(world.packets, [(session, b"still here".to_vec())]);
}

/// A client whose process had been stopped for longer than its ticket's timeout gave up, though the response was
/// waiting in its socket.
#[test]
fn a_stopped_client_reads_its_socket_before_it_gives_up() {
    for connects_first in [false, true] {
        let mut world = World::new();
        let ticket = world.ticket();
        world.join(0, &ticket);
        world.run(match connects_first {
            false => STEP,
            true => SECOND,
        });
        let mut player = world.players.remove(0);
        assert_eq!(player.connected, connects_first);
        world.now += 4 * SECOND;
        world.step();
        // Until then it does not receive datagrams.
        world.now += 4 * SECOND;
        player.endpoint.advance(world.now);
        assert_eq!(player.closed, None);
        world.players.push(player);
        world.run(SECOND);
        assert_eq!(world.players[0].closed, None, "{connects_first}");
        assert!(connects_first || world.players[0].connected);
    }
}

/// Finding O3-1: if all slots are taken, a client that reconnects to a seat gets one of the separate slots. A new
/// client takes the slot of a stranger that has been silent for a second.
#[test]
fn seat_holders_have_separate_slots_and_silent_strangers_keep_theirs_for_a_second() {
    let mut world = World::new();
    // `address` is the source address of the dial.
    let dial = |world: &mut World, name: u16, address: u16| {
        let spec = TicketSpec {
            identity: &format!("player {name}"),
            servers: &[server_address().into()],
            ..spec_at(EPOCH + world.now)
        };
        let ticket = Ticket::issue(&world.key, &spec).unwrap();
        let dialled = world.join(address, &ticket);
        world.run(MS * 100);
        dialled
    };
    // Eight slots: four sessions are in their match, four are strangers.
    for n in 0..8 {
        let came = dial(&mut world, n, n);
        assert!(world.players[came].connected);
    }
    let first = Vec::from_iter(world.connected.iter().map(|(session, _)| *session));
    for session in &first[..4] {
        world.server.settle(*session);
    }
    // Seat holders find slots in addition to their old sessions; a stranger displaces one that has been silent for a
    // second.
    for n in 0..4 {
        let back = dial(&mut world, n, 100 + n);
        assert!(world.players[back].connected, "player {n} is back");
    }
    assert!(world.left.is_empty(), "and took nobody's place");
    world.run(MS * 500);
    let ninth = dial(&mut world, 8, 8);
    assert!(world.players[ninth].connected);
    assert_eq!(world.left, [(first[4], LeaveReason::Displaced)]);
    for n in 9..12 {
        let next = dial(&mut world, n, n);
        assert!(world.players[next].connected);
    }
    // None of the remaining strangers was silent for that long.
    let refused = dial(&mut world, 12, 12);
    assert_eq!(world.players[refused].closed, Some(CloseReason::Denied));
    // Without a seat it needs a stranger's slot.
    let of = world.connected[0].1.holder();
    world.server.tickets().set_seat(of, false);
    let refused = dial(&mut world, 0, 200);
    assert_eq!(world.players[refused].closed, Some(CloseReason::Denied));
    let left = Vec::from_iter(world.left.iter().map(|(session, _)| *session));
    assert_eq!(left, first[4..], "in their order of arrival");
}

/// Finding A3-11: a server knew a session that its client did not, and mistook the client's next dial from the same
/// address for junk until that session timed out.
#[test]
fn a_client_redialling_from_its_silent_sessions_address_is_accepted() {
    let (mut world, first) = World::with_a_player();
    world.players.clear();
    let ticket = world.ticket();
    // A session with recent datagrams is not ended: this dial may be a copy.
    let again = world.join(0, &ticket);
    world.run(MS * 500);
    assert!(!world.players[again].connected && world.left.is_empty());
    world.run(MS * 1_500);
    assert!(world.players[again].connected);
    assert_eq!(world.left, [(first, LeaveReason::Displaced)]);
    // Another identity at that address does not end a session.
    world.players.clear();
    let spec = TicketSpec {
        identity: "another",
        servers: &[server_address().into()],
        ..spec_at(EPOCH + world.now)
    };
    let other = Ticket::issue(&world.key, &spec).unwrap();
    let other = world.join(0, &other);
    world.run(MS * 2_500);
    assert!(!world.players[other].connected && world.left.len() == 1);
}

/// Finding A3-11: each datagram on an old path from an address that had just been challenged was logged as an error.
#[test]
fn datagrams_on_an_old_path_never_reach_the_cipher_during_a_challenge() {
    let (mut world, _) = World::with_a_player();
    world.sent = Some(Vec::new());
    world.players[0].endpoint.send(b"hello").unwrap();
    world.step();
    let of_old = world.sent.take().unwrap().remove(0).2;
    world.restart();
    let ticket = world.ticket();
    let mut dial = ClientEndpoint::new(&ticket, world.now);
    dial.advance(world.now + MS);
    let (_, datagram) = dial.poll_transmit().unwrap();
    world.server.handle(world.now, player_address(0), datagram);
    let before = world.server.counters();
    world.server.handle(world.now, player_address(0), &of_old);
    let after = world.server.counters();
    assert_eq!(
        (after.late - before.late, after.rejected),
        (1, before.rejected)
    );
}
