//! The sessions that tickets open: how many times, from where, until when, and with which others.

use std::ops::Range;
use std::time::Duration;

use super::*;
use crate::claims::Holder;
use crate::{Identity, NextTicket, Role};
use twinstep_protocol::lineage::{Lineages, Ruling};

const SECOND: Duration = Duration::from_secs(1);

/// Dials once from each of these addresses, without getting a response.
fn dial_from(world: &mut World, ticket: &Ticket, places: Range<u16>) {
    for n in places {
        let mut dial = ClientEndpoint::new(ticket, world.now);
        dial.advance(world.now);
        while let Some((_, datagram)) = dial.poll_transmit() {
            world.server.handle(world.now, player_address(n), datagram);
        }
    }
    while world.server.poll_transmit().is_some() {}
}

#[test]
fn a_player_who_left_reconnects_with_any_ticket_from_the_same_address() {
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

/// Findings O1, O2: a ticket was used up by its first dial, even if no session followed.
#[test]
fn a_ticket_opens_sessions_repeatedly_from_any_address_and_after_restarts() {
    let mut world = World::new();
    let ticket = world.ticket();
    for n in 0..20 {
        // The previous client process dies without a goodbye; now and then, so does the server.
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
    assert_eq!(ids.len(), 20, "each is a separate session");
}

/// An incomplete dial does not use the ticket up, and another dial from the same socket works immediately.
#[test]
fn an_abandoned_dial_does_not_block_other_dials() {
    let mut world = World::new();
    let (old, new) = (world.ticket(), world.ticket());
    for ticket in [&old, &new, &old] {
        // Dials, is challenged, and does not respond.
        let mut gone = ClientEndpoint::new(ticket, world.now);
        gone.advance(world.now);
        while let Some((_, datagram)) = gone.poll_transmit() {
            world.server.handle(world.now, player_address(0), datagram);
        }
        assert!(world.server.poll_transmit().is_some(), "a challenge");
    }
    world.join(0, &old);
    world.run(SECOND / 2);
    assert!(world.players[0].connected);
    assert_eq!(world.connected.len(), 1);
}

/// One identity has as many dials as it needs, but too few to lock others out.
#[test]
fn an_identity_that_keeps_dialling_does_not_block_other_identities() {
    let mut world = World::new();
    let ticket = world.ticket();
    dial_from(&mut world, &ticket, 0..3_000);
    assert!(world.server.counters().rate_limited >= 2_900);
    let spec = TicketSpec {
        identity: "bob",
        servers: &[server_address().into()],
        ..spec_at(EPOCH)
    };
    let ticket = Ticket::issue(&world.key, &spec).unwrap();
    world.join(9_999, &ticket);
    world.run(SECOND);
    assert!(world.players[0].connected);
}

/// Each address caused another challenge, until netcode was full and other clients were denied.
#[test]
fn copies_of_one_dial_from_many_addresses_block_no_other_client() {
    let mut world = World::new();
    let ticket = world.ticket();
    let mut one = ClientEndpoint::new(&ticket, world.now);
    one.advance(world.now + STEP);
    let datagram = one.poll_transmit().expect("it dials").1.to_vec();
    for n in 0..5_000 {
        let forged = player_address(n);
        world.server.handle(world.now, forged, &datagram);
    }
    assert!(world.server.counters().rate_limited >= 4_990);
    let spec = TicketSpec {
        identity: "bob",
        servers: &[server_address().into()],
        ..spec_at(EPOCH)
    };
    let ticket = Ticket::issue(&world.key, &spec).unwrap();
    world.join(9_999, &ticket);
    world.run(SECOND);
    assert!(world.players[0].connected);
}

/// Finding O1: anyone with a copy of an old ticket could lock out the holder of the newest one by dialling.
#[test]
fn a_copied_ticket_does_not_block_holders_of_other_or_newer_tickets() {
    let is_next: [fn(&Ticket) -> NextTicket; 2] = [
        |old| NextTicket {
            lineage: Some(old.stamp().lineage),
            generation: 1,
            ..NextTicket::default()
        },
        |_| NextTicket::default(),
    ];
    for next in is_next {
        let mut world = World::new();
        let old = world.ticket();
        dial_from(&mut world, &old, 0..3_000);
        let servers = [server_address().into()];
        let spec = TicketSpec {
            servers: &servers,
            ..spec_at(EPOCH)
        };
        let newer = Ticket::issue_next(&world.key, &spec, &next(&old)).unwrap();
        world.join(9_999, &newer);
        world.run(SECOND);
        assert!(world.players[0].connected);
    }
}

fn anna() -> Holder {
    Holder {
        match_id: MatchId(4),
        identity: Identity::new("anna", Role::Player),
    }
}

/// The host's rulings after sessions with these tickets played, one after the other.
fn rulings(used: &[&Ticket]) -> Vec<Ruling> {
    let mut lineages = Lineages::default();
    let used = used
        .iter()
        .flat_map(|ticket| lineages.make_safe(&ticket.stamp()));
    used.collect()
}

/// Each use of an outdated ticket (an old invite, or a revoked one) occupied a session slot and a pending dial.
#[test]
fn a_ticket_known_to_be_out_of_date_is_refused_with_a_reason_and_takes_no_slot() {
    let mut world = World::new();
    world.server = server_of(&[world.key.clone()], world.now, 1);
    let (old, newer) = (world.ticket(), world.ticket());
    let servers = [server_address().into()];
    let spec = TicketSpec {
        servers: &servers,
        ..spec_at(EPOCH)
    };
    let watcher = Ticket::issue(&world.key, &TicketSpec { seats: 0, ..spec }).unwrap();
    // A late ruling does not lower a later one.
    for ruling in rulings(&[&old, &newer]).into_iter().chain(rulings(&[&old])) {
        world.server.tickets().apply(&anna(), &ruling);
    }
    world.join(0, &old);
    world.run(SECOND);
    assert_eq!(world.players[0].closed, Some(CloseReason::Superseded));
    assert!(world.connected.is_empty());
    dial_from(&mut world, &old, 1..3_000);
    assert!(world.server.counters().denied_superseded >= 3_000);
    assert_eq!(world.server.remembered_peers(), 0);
    world.join(9_999, &newer);
    world.run(SECOND);
    assert!(world.players[1].connected);
    assert_eq!(world.connected.len(), 1);
    world.players[1].endpoint.disconnect();
    world.step();

    // Her spectator tickets belong to another identity.
    world.join(10_000, &watcher);
    world.run(SECOND);
    assert!(world.players[2].connected);
    world.players[2].endpoint.disconnect();
    world.step();
}

/// Finding K3-L5: the server's records of an on-demand match stayed forever.
#[test]
fn rulings_that_affect_no_valid_ticket_are_dropped() {
    let mut world = World::new();
    for day in 0..20 {
        let now_unix = EPOCH + day * Duration::from_secs(86_400);
        world.clock_jump = now_unix - EPOCH;
        for n in 0..3_000_u64 {
            let ruling = Ruling::Below {
                lineage: n,
                generation: 1,
                until_unix_s: now_unix.as_secs() + 600,
            };
            let holder = Holder {
                match_id: MatchId(u64::from(day) * 3_000 + n),
                ..anna()
            };
            world.server.tickets().apply(&holder, &ruling);
        }
        world.run(2 * SECOND);
        let known = world.server.tickets().lineages(|lineages| lineages.len());
        assert!((3_000..=12_000).contains(&known), "{known} on day {day}");
    }
}

/// A revocation applies to all tickets dated before it, according to any maker's clock, with some slack.
#[test]
fn tickets_issued_before_a_revocation_are_refused() {
    let mut world = World::new();
    let ticket = world.ticket();
    let unix_ms = ticket.stamp().issued_unix_ms + 1;
    world
        .server
        .tickets()
        .apply(&anna(), &Ruling::MadeBefore { unix_ms });
    world.join(0, &ticket);
    world.run(SECOND);
    assert_eq!(world.players[0].closed, Some(CloseReason::Superseded));
    let servers = [server_address().into()];
    let spec = TicketSpec {
        servers: &servers,
        ..spec_at(EPOCH)
    };
    let next = NextTicket {
        issued_since_unix_ms: unix_ms,
        ..NextTicket::default()
    };
    let later = Ticket::issue_next(&world.key, &spec, &next).unwrap();
    world.join(1, &later);
    world.run(SECOND);
    assert!(world.players[1].connected);
}

/// A copy of an old ticket became a session if it was used just before the newer one was reported; and so did a ticket
/// that expired, or lost its key, at that moment.
#[test]
fn a_ticket_invalidated_during_the_handshake_starts_no_session() {
    type Change = fn(&mut World, &Ticket);
    let superseded: Change = |world, ticket| {
        let newer = world.ticket();
        for ruling in rulings(&[ticket, &newer]) {
            world.server.tickets().apply(&anna(), &ruling);
        }
    };
    let expired: Change = |world, _| {
        // The clock is adjusted gradually, not set.
        for _ in 0..60 {
            world.clock_jump += SECOND;
            let now_unix = EPOCH + world.now + world.clock_jump;
            world.server.advance(world.now, now_unix);
        }
    };
    let without_its_key: Change = |world, _| {
        world.server.set_keys(&[TicketKey::generate()]).unwrap();
    };
    for (change, said) in [
        (superseded, Some(CloseReason::Superseded)),
        (expired, Some(CloseReason::Expired)),
        // No response, as to a datagram sealed with an unknown key.
        (without_its_key, None),
    ] {
        let mut world = World::new();
        let ticket = world.ticket();
        world.join(0, &ticket);
        while world.server.remembered_peers() == 0 {
            world.run(STEP);
        }
        assert_eq!(world.server.sessions(), 0, "it is only challenged");
        change(&mut world, &ticket);
        world.run(SECOND);
        assert_eq!(world.players[0].closed, said);
        assert!(!world.players[0].connected && world.connected.is_empty());
        let told = world.server.counters();
        assert!(told.denied_superseded + told.denied_expired + told.unknown_key > 0);
    }
}

/// Findings O4, H7: tickets expire by the server's clock, as it is now.
#[test]
fn a_ticket_expires_by_the_servers_current_clock_and_its_holder_gets_the_reason() {
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

    // The clock is set forward: a ticket issued by it is valid immediately, and a ticket whose expiry it skipped
    // expires after twenty minutes.
    let before = world.ticket();
    world.clock_jump = 6_000 * SECOND;
    world.step();
    world.join(9, &before);
    world.run(SECOND);
    assert!(
        world.players[2].connected,
        "setting the clock keeps no client out"
    );
    world.now += 1_200 * SECOND;
    world.run(2 * SECOND);
    let spec = TicketSpec {
        servers: &[server_address().into()],
        ..spec_at(EPOCH + world.now + world.clock_jump)
    };
    let after = Ticket::issue(&world.key, &spec).unwrap();
    world.join(2, &before);
    world.join(3, &after);
    world.run(SECOND);
    assert_eq!(world.players[3].closed, Some(CloseReason::Expired));
    assert!(world.players[4].connected);
}
