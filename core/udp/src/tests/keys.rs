//! The number of sessions that a server accepts, and its keys.

use std::slice::from_ref;
use std::time::Duration;

use super::*;
use crate::ServerConfigError;

const SECOND: Duration = Duration::from_secs(1);

#[test]
fn a_full_server_refuses_with_a_reason_and_accepts_again_later() {
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
fn two_keys_are_valid_together_and_share_one_session_limit() {
    let mut world = World::new();
    let (old, other) = (TicketKey::generate(), TicketKey::generate());
    let keys = [world.key.clone(), old.clone()];
    world.server = server_of(&keys, world.now, 2);
    for (n, key) in [&keys[0], &old, &other, &old].into_iter().enumerate() {
        let ticket = world.ticket_of(key, server_address());
        world.join(n as u16, &ticket);
        // A session keeps its slot for a second after it is admitted.
        world.run(SECOND / 5);
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

/// A key is rotated while players are connected: the old key's tickets are valid until the key is dropped, and its
/// sessions continue after that.
#[test]
fn keys_can_change_while_sessions_continue() {
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
    // The session of the dropped key continues.
    let before = world.packets.len();
    world.players[0].endpoint.send(b"hello").unwrap();
    world.run(SECOND);
    assert_eq!(world.packets.len(), before + 1);
    // The key is added again, and is recognised.
    world.server.set_keys(&[new.clone(), old.clone()]).unwrap();
    assert!(join(&mut world, &old));
    assert_eq!(
        world.server.set_keys(&[]),
        Err(ServerConfigError::Keys(0)),
        "no client could connect any more"
    );
    assert!(join(&mut world, &new), "the keys did not change");
}

/// Law Bounded: slots of unused keys are reused; the number of keys in use is bounded.
#[test]
fn keys_can_change_indefinitely_unless_sessions_use_all_of_them() {
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
fn two_concurrent_handshakes_do_not_share_the_last_slot() {
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
