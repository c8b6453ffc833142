//! Outsiders and cheaters: their datagrams only increment counters.

use std::time::Duration;

use super::*;
use crate::netcode::{CipherClient, DATAGRAM_MAX};
use crate::send_queue::SendQueue;
use crate::server::{DATAGRAMS_BURST, DATAGRAMS_PER_SECOND};
use twinstep_core::rng::Mwc;

const SECOND: Duration = Duration::from_secs(1);

#[track_caller]
fn assert_alive(world: &mut World, session: SessionId) {
    world.packets.clear();
    world.players[0].packets.clear();
    world.players[0].endpoint.send(b"still").unwrap();
    world.server.send(session, b"here").unwrap();
    world.run(STEP);
    assert_eq!(world.packets, [(session, b"still".to_vec())]);
    assert_eq!(world.players[0].packets, [b"here"]);
    assert_eq!((world.connected.len(), world.left.len()), (1, 0));
}

#[test]
fn a_ticket_from_a_forged_key_never_connects() {
    let mut world = World::new();
    let forged = world.key.forged();
    for key in [&forged, &TicketKey::generate()] {
        let ticket = world.ticket_of(key, server_address());
        world.join(0, &ticket);
    }
    world.run(6 * SECOND);
    assert!(
        world
            .players
            .iter()
            .all(|p| p.closed == Some(CloseReason::NoAnswer))
    );
    assert_eq!(world.connected, []);
    let counters = world.server.counters();
    assert!(
        counters.rejected > 0 && counters.unknown_key > 0,
        "{counters:?}"
    );
}

#[test]
fn a_ticket_for_another_servers_address_is_rejected() {
    let mut world = World::new();
    let elsewhere = "192.0.2.99:7777".parse().unwrap();
    let ticket = world.ticket_of(&world.key, elsewhere);
    let mut client = ClientEndpoint::new(&ticket, world.now);
    client.advance(STEP);
    // The test delivers the request to this server instead.
    let (to, request) = client.poll_transmit().unwrap();
    assert_eq!(to, elsewhere);
    world.server.handle(STEP, player_address(0), request);
    assert_eq!(world.server.counters().rejected, 1);
    assert!(world.server.poll_transmit().is_none(), "no answer");
}

#[test]
fn replayed_datagrams_are_dropped_at_both_ends() {
    let (mut world, session) = World::with_a_player();
    world.sent = Some(Vec::new());
    for n in 0..100_u8 {
        world.players[0].endpoint.send(&[n]).unwrap();
        world.server.send(session, &[n]).unwrap();
        world.run(STEP);
    }
    let sent = world.sent.take().unwrap();
    assert_eq!(
        (world.packets.len(), world.players[0].packets.len()),
        (100, 100)
    );
    for (from, to, bytes) in sent {
        if to == server_address() {
            world.server.handle(world.now, from, &bytes);
        } else {
            world.players[0].endpoint.handle(world.now, from, &bytes);
        }
    }
    world.take_server_events();
    world.step();
    assert_eq!(
        (world.packets.len(), world.players[0].packets.len()),
        (100, 100)
    );
    assert!(world.server.counters().late >= 100);
    assert_alive(&mut world, session);
}

#[test]
fn a_client_accepts_datagrams_only_from_its_servers_address() {
    let (mut world, session) = World::with_a_player();
    world.server.send(session, b"true").unwrap();
    let (_, sealed) = world.server.poll_transmit().unwrap();
    let client = &mut world.players[0].endpoint;
    let junk = client.counters().junk;
    client.handle(world.now, player_address(5), sealed);
    assert_eq!(client.counters().junk, junk + 1);
    assert_eq!(client.poll_event(), None);
    client.handle(world.now, server_address(), sealed);
    assert_eq!(client.poll_event(), Some(ClientEvent::Packet(b"true")));
}

/// All datagrams that a player sends while connecting.
fn overheard(world: &mut World, n: u16, ticket: &Ticket) -> Vec<Sent> {
    world.sent = Some(Vec::new());
    world.join(n, ticket);
    world.run(SECOND / 2);
    let player = world.players.last_mut().unwrap();
    assert!(player.connected);
    player.endpoint.send(b"hello").unwrap();
    world.step();
    let mut sent = world.sent.take().unwrap();
    sent.retain(|(from, to, _)| *from == player_address(n) && *to == server_address());
    sent
}

/// A stranger replays overheard datagrams from this address, in the same order.
fn play_back(world: &mut World, from: SocketAddr, sent: &[Sent]) {
    for (_, _, bytes) in sent {
        world.server.handle(world.now, from, bytes);
    }
    while world.server.poll_transmit().is_some() {}
    world.take_server_events();
}

/// Networks and eavesdroppers duplicate datagrams: a copy does not count as junk, which an operator would investigate
/// (finding P3-L1).
#[test]
fn copies_of_a_players_datagrams_count_as_late_not_as_junk() {
    let mut world = World::new();
    let ticket = world.ticket();
    let sent = overheard(&mut world, 0, &ticket);
    for _ in 0..5 {
        world.run(SECOND);
        play_back(&mut world, player_address(0), &sent);
    }
    let counters = world.server.counters();
    assert_eq!((counters.junk, counters.rejected), (0, 0), "{counters:?}");
    assert!(counters.late >= 5, "{counters:?}");
    // A made-up datagram is not a copy.
    let mut forged = sent.last().unwrap().2.clone();
    forged[1..].fill(0x7f);
    world.server.handle(world.now, player_address(0), &forged);
    assert_eq!(world.server.counters().rejected, 1);
}

#[test]
fn a_captured_handshake_is_useless_while_its_session_lives() {
    let mut world = World::new();
    let ticket = world.ticket();
    let sent = overheard(&mut world, 0, &ticket);
    let session = world.connected[0].0;
    world.packets.clear();
    for round in 0..40 {
        for address in [player_address(0), player_address(1), player_address(2)] {
            play_back(&mut world, address, &sent);
        }
        world.run(SECOND / 2);
        assert_eq!(world.connected.len(), 1, "round {round}");
        assert_eq!((world.left.len(), world.packets.len()), (0, 0));
    }
    assert_alive(&mut world, session);
}

/// The owner reconnects with the same ticket from elsewhere, and datagrams of the earlier session do not move it.
#[test]
fn a_captured_handshake_does_not_move_the_owners_session() {
    let mut world = World::new();
    let ticket = world.ticket();
    let first = overheard(&mut world, 0, &ticket);
    world.players.clear();
    let second = overheard(&mut world, 1, &ticket);
    let session = world.connected[1].0;
    // The host ends the old session.
    let old = world.connected[0].0;
    world.server.disconnect(old);
    world.connected.remove(0);
    world.packets.clear();
    for round in 0..40 {
        for sent in [&first, &second] {
            for n in 0..4 {
                play_back(&mut world, player_address(n), sent);
            }
        }
        world.run(SECOND / 2);
        assert_eq!(world.connected.len(), 1, "round {round}");
        assert_eq!((world.left.len(), world.packets.len()), (0, 0));
    }
    assert_alive(&mut world, session);
}

#[test]
fn a_captured_handshake_is_useless_after_its_session_or_a_restart() {
    for restarts in [false, true] {
        for goodbye in [false, true] {
            let mut world = World::new();
            let ticket = world.ticket();
            let sent = overheard(&mut world, 0, &ticket);
            if goodbye {
                world.players[0].endpoint.disconnect();
                world.step();
            }
            world.players.clear();
            if restarts {
                world.restart();
            } else if !goodbye {
                world.run(6 * SECOND);
            }
            world.packets.clear();
            for round in 0..60 {
                for n in 0..3 {
                    play_back(&mut world, player_address(n), &sent);
                }
                world.run(SECOND / 2);
                assert_eq!(world.connected.len(), 1, "round {round}");
                assert_eq!(world.server.sessions(), 0);
            }
            assert_eq!(world.packets, []);

            // The owner can connect with the same ticket, even from its earlier address.
            world.join(0, &ticket);
            world.run(SECOND);
            assert!(world.players[0].connected);
            assert_eq!(world.connected.len(), 2);
        }
    }
}

/// An attacker on the path may delay the owner's response; from another address, or later, it is not accepted.
#[test]
fn a_delayed_response_is_rejected_from_another_address_or_later() {
    for (from, wait) in [(player_address(7), 0), (player_address(0), 15)] {
        let mut world = World::new();
        let ticket = world.ticket();
        let mut owner = ClientEndpoint::new(&ticket, world.now);
        let mut kept = Vec::new();
        for _ in 0..30 {
            world.now += STEP;
            owner.advance(world.now);
            while let Some((to, bytes)) = owner.poll_transmit() {
                // Only the dial passes.
                if bytes[0] == crate::dial::DIAL {
                    world.server.handle(world.now, player_address(0), bytes);
                }
                kept.push((player_address(0), to, bytes.to_vec()));
            }
            while let Some((_, bytes)) = world.server.poll_transmit() {
                owner.handle(world.now, server_address(), bytes);
            }
        }
        let answers = kept.iter().filter(|(_, _, b)| b[0] != crate::dial::DIAL);
        assert!(answers.count() > 0, "it answered");
        world.run(wait * SECOND);
        for _ in 0..40 {
            play_back(&mut world, from, &kept);
            world.run(SECOND / 2);
        }
        assert_eq!((world.connected.len(), world.server.sessions()), (0, 0));
    }
}

/// A spoofed address must not get more bytes from this server than the spoofer sends.
#[test]
fn the_response_to_a_copied_dial_is_shorter_than_the_dial() {
    let mut world = World::new();
    let alive = world.ticket();
    let mut copies = Vec::new();
    for ticket in [&alive, &world.ticket()] {
        let mut dial = ClientEndpoint::new(ticket, world.now);
        dial.advance(world.now);
        let (_, datagram) = dial.poll_transmit().unwrap();
        copies.push(datagram.to_vec());
    }
    for (copy, jump) in copies.into_iter().zip([0, 600]) {
        world.clock_jump = jump * SECOND;
        world.step();
        world.server.handle(world.now, player_address(3), &copy);
        let mut answered = 0;
        while let Some((_, bytes)) = world.server.poll_transmit() {
            answered += bytes.len();
        }
        assert!((1..copy.len()).contains(&answered), "{answered} bytes");
    }
}

#[test]
fn strangers_do_not_cost_memory() {
    let mut world = World::new();
    let mut rng = Mwc::seed(11);
    for _ in 0..100_000 {
        let from = SocketAddr::from((rng.next_u32().to_le_bytes(), 1 + rng.below(60_000) as u16));
        let mut bytes = [0; 64];
        bytes.fill_with(|| rng.next_u32() as u8);
        world.server.handle(world.now, from, &bytes);
    }
    assert!(world.server.poll_transmit().is_none());
    assert!(world.server.poll_event().is_none());
    assert_eq!(world.server.remembered_peers(), 0);
    assert_eq!(world.server.counters().junk, 100_000);
}

/// A random datagram, or a previous one, repeated, changed, cut or lengthened.
fn hostile_datagram(rng: &mut Mwc, seen: &[Sent], bytes: &mut Vec<u8>) {
    bytes.clear();
    let random_len = rng.below(1 + DATAGRAM_MAX as u32 / 8) as usize;
    match rng.below(4) {
        0 => bytes.resize_with(random_len, || rng.next_u32() as u8),
        1 => {
            // The shape of a sealed datagram, with every possible prefix.
            bytes.resize_with(random_len + 1, || rng.next_u32() as u8);
            bytes[0] = (rng.below(10) << 4 | rng.below(8)) as u8;
        }
        _ => {
            bytes.extend_from_slice(&seen[rng.below(seen.len() as u32) as usize].2);
            for _ in 0..rng.below(4) {
                let at = rng.below(bytes.len() as u32) as usize;
                bytes[at] = rng.next_u32() as u8;
            }
            match rng.below(4) {
                0 => bytes.truncate(rng.below(bytes.len() as u32) as usize),
                1 => bytes.resize(bytes.len() + random_len, 0xff),
                _ => {}
            }
        }
    }
}

#[test]
fn a_flood_of_random_and_changed_datagrams_breaks_neither_end() {
    let (mut world, session) = World::with_a_player();
    world.sent = Some(Vec::new());
    let ticket = world.ticket();
    let pending = world.join(1, &ticket);
    for n in 0..50_u8 {
        world.players[0].endpoint.send(&[n; 100]).unwrap();
        world.server.send(session, &[n; 100]).unwrap();
        world.run(STEP);
    }
    let mut seen = world.sent.take().unwrap();
    // A request without a response: its resends make the server send challenges.
    let ticket = world.ticket();
    let mut third = ClientEndpoint::new(&ticket, world.now);
    third.advance(world.now);
    let (to, request) = third.poll_transmit().unwrap();
    for _ in 0..10 {
        seen.push((player_address(2), to, request.to_vec()));
    }
    // The second player said goodbye, so its address counts as a stranger's again.
    world.players[pending].endpoint.disconnect();
    world.run(STEP);
    world.players.truncate(1);
    let (goodbyes, connected) = (world.left.len(), world.connected.len());
    world.left.clear();
    world.connected.truncate(1);
    assert_eq!((goodbyes, connected), (1, 2));

    let mut rng = Mwc::seed(12);
    let mut bytes = Vec::new();
    for n in 0..200_000_u32 {
        hostile_datagram(&mut rng, &seen, &mut bytes);
        let from = player_address(rng.below(3) as u16);
        world.server.handle(world.now, from, &bytes);
        hostile_datagram(&mut rng, &seen, &mut bytes);
        let from = [server_address(), player_address(1)][rng.below(2) as usize];
        world.players[0].endpoint.handle(world.now, from, &bytes);
        if n % 100 == 0 {
            world.run(STEP);
        }
        if n % 10_000 == 0 {
            assert_alive(&mut world, session);
        }
    }
    world.run(SECOND);
    assert_alive(&mut world, session);
    // The player, and any other sender of a copied authentic datagram.
    assert!(world.server.remembered_peers() <= 3);
}

/// A cheater's client: its cipher is real, and its packets are arbitrary.
struct Cheater {
    client: CipherClient,
    out: SendQueue,
}

impl Cheater {
    fn connect(world: &mut World) -> Cheater {
        let mut cheater = Cheater {
            client: CipherClient::new(&world.ticket()),
            out: SendQueue::new(1_024),
        };
        for _ in 0..3 {
            cheater.client.advance(SECOND / 3, &mut cheater.out);
            cheater.flush(world);
            world.take_server_events();
            while let Some((_, bytes)) = world.server.poll_transmit() {
                cheater.client.handle(&mut bytes.to_vec());
            }
        }
        assert_eq!(world.connected.len(), 1);
        cheater
    }

    fn send(&mut self, world: &mut World, laminar: &[u8]) {
        assert!(self.client.seal(laminar, &mut self.out));
        self.flush(world);
    }

    fn flush(&mut self, world: &mut World) {
        while let Some((_, bytes)) = self.out.pop() {
            world.server.handle(world.now, player_address(0), bytes);
        }
    }
}

#[test]
fn a_cheaters_reliable_and_fragment_packets_are_discarded() {
    let mut world = World::new();
    let mut cheater = Cheater::connect(&mut world);
    let header = crate::link::LaminarLink::new().wrap(SECOND, b"")[..2].to_vec();
    let mut fenced = 0;
    for kind in 0..4 {
        for delivery in 0..3 {
            for ordering in 0..4 {
                let mut packet = [&header[..], &[kind, delivery, ordering]].concat();
                packet.resize(60, 1);
                cheater.send(&mut world, &packet);
                fenced += u64::from((kind, delivery, ordering) != (0, 0, 0));
            }
        }
        world.now += SECOND;
    }
    for size in 0..5 {
        cheater.send(&mut world, &header.repeat(3)[..size]);
        fenced += 1;
    }
    world.take_server_events();
    assert_eq!(world.server.counters().fenced, fenced);
    assert_eq!(world.packets.len(), 1);
}

#[test]
fn datagrams_above_a_sessions_rate_are_dropped() {
    let (mut world, session) = World::with_a_player();
    for _ in 0..100 {
        for _ in 0..20 {
            world.players[0].endpoint.send(b"flood").unwrap();
        }
        world.run(STEP);
    }
    let passed = world.packets.len() as u64;
    let allowed = DATAGRAMS_BURST + DATAGRAMS_PER_SECOND;
    assert!((allowed - 2..=allowed).contains(&passed), "{passed} passed");
    assert_eq!(world.server.counters().rate_limited, 2_000 - passed);
    world.run(SECOND);
    assert_alive(&mut world, session);
}

#[test]
fn a_forged_request_from_a_players_address_does_not_keep_it_alive() {
    let (mut world, session) = World::with_a_player();
    let spec = TicketSpec {
        identity: "another",
        servers: &[server_address().into()],
        ..spec_at(EPOCH + world.now)
    };
    let ticket = Ticket::issue(&world.key, &spec).unwrap();
    let mut other = ClientEndpoint::new(&ticket, world.now);
    world.players.clear();
    for _ in 0..60 {
        other.advance(world.now);
        while let Some((_, request)) = other.poll_transmit() {
            world.server.handle(world.now, player_address(0), request);
        }
        world.run(SECOND / 10);
    }
    assert_eq!(world.left, [(session, LeaveReason::TimedOut)]);
}
