//! Whom a ticket lets in: how often, from where, until when, and beside whom.

use std::ops::Range;
use std::time::Duration;

use super::*;
use crate::SERIAL_END;
use crate::claims::SerialOf;

const SECOND: Duration = Duration::from_secs(1);

/// Knocks once from each of these places, and hears no answer.
fn dial_from(world: &mut World, ticket: &Ticket, places: Range<u16>) {
    for n in places {
        let mut dial = ClientEndpoint::new(ticket, world.now);
        dial.advance(world.now);
        while let Some((_, knock)) = dial.poll_transmit() {
            world.server.handle(world.now, player_address(n), knock);
        }
    }
    while world.server.poll_transmit().is_some() {}
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
    dial_from(&mut world, &ticket, 0..3_000);
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

/// Each address made another challenge, until netcode had room for no more, and others were told that the server is full.
#[test]
fn copies_of_one_dial_from_everywhere_keep_nobody_else_out() {
    let mut world = World::new();
    let ticket = world.ticket();
    let mut one = ClientEndpoint::new(&ticket, world.now);
    one.advance(world.now + STEP);
    let knock = one.poll_transmit().expect("it dials").1.to_vec();
    for n in 0..5_000 {
        let forged = player_address(n);
        world.server.handle(world.now, forged, &knock);
    }
    assert!(world.server.counters().rate_limited >= 4_990);
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
    dial_from(&mut world, &old, 0..3_000);
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
    dial_from(&mut world, &old, 1..3_000);
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
