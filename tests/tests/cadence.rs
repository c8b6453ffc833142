//! Load reports make ticks and turns longer. These tests check which clients' reports count, for how long, and which
//! player is charged.

use std::sync::Arc;
use std::time::Duration;

use twinstep_client::SessionConfig;
use twinstep_protocol::link::LINK_BYTES;
use twinstep_protocol::packet::UpKind;
use twinstep_protocol::simnet::LinkProfile;
use twinstep_rig::direct::{Direct, Heavy};
use twinstep_rig::history::History;
use twinstep_rig::rig::{InitialWorldKnowledge, Rig, RigConfig, Role};
use twinstep_server::MatchConfig;
use twinstep_server::config::{TickLength, TurnLength};

const SECOND: Duration = Duration::from_secs(1);
const MS: fn(u64) -> Duration = Duration::from_millis;
/// The offset of load and late turns in a Play packet: after the first byte, link, wanted tick and shown tick.
const LOAD_AT: usize = 1 + LINK_BYTES + 2 + 1;

/// Finding C3: one client's report gave all players the longest permitted ticks and turns.
#[test]
fn a_clients_load_report_counts_only_if_its_batches_are_late() {
    let normal = MS(50);
    let policies = MatchConfig {
        turn: TurnLength::adaptive(3, 20),
        tick_length: TickLength::Adaptive { max: MS(500) },
        ..MatchConfig::strategy()
    };
    let sim = Heavy::of(64);
    let sessions = (0..3).map(|_| SessionConfig::new(Arc::new(())));
    let mut all = Direct::of(policies, sim, sessions);
    let mut pauses = 0u8;
    for _ in 0..60 * 60 {
        all.frame(|_, _| 1);
        for (_, packet) in all.up.iter_mut().filter(|(client, _)| *client == 2) {
            if matches!(UpKind::read(packet[0]), Ok((UpKind::Play, _))) {
                // Always busy, with three more late turns in each packet.
                pauses = pauses.wrapping_add(3);
                packet[LOAD_AT] = 0xf0 | pauses & 15;
            }
        }
        all.serve();
    }
    let cadence = all.match_.world().turn().cadence;
    assert_eq!((cadence.tick(), cadence.turn_ticks), (normal, 3));
    assert!(all.match_.slowing().is_empty());
    assert_eq!(all.match_.playing().len(), 3);
}

/// Finding C3: the player that slows the match is named, and its effect ends when it leaves.
#[test]
fn a_player_who_slows_the_match_is_named_and_the_match_speeds_up_when_it_leaves() {
    let mut config = RigConfig::strategy(10, LinkProfile::LAN);
    config.policies.tick_length = TickLength::Adaptive { max: MS(200) };
    let mut rig = Rig::<History>::new(config);
    rig.run(SECOND * 5);
    let slow = rig.clients[3].session.seats()[0];
    rig.clients[3].step_cost = MS(70);
    rig.run(SECOND * 20);
    assert!(rig.match_.world().turn().cadence.tick() > MS(60));
    assert_eq!(rig.match_.slowing(), [slow].into_iter().collect());
    rig.leave(3);
    rig.run(SECOND * 2);
    assert_eq!(rig.match_.world().turn().cadence.tick(), MS(50));
    assert!(rig.match_.slowing().is_empty());
    rig.converge();
}

#[test]
fn a_step_simulates_the_same_time_at_any_tick_length() {
    let tick = MS(40);
    let mut config = RigConfig::strategy(12, LinkProfile::LAN);
    config.policies.tick = tick;
    config.policies.tick_length = TickLength::Adaptive { max: MS(200) };
    config.initial_world_knowledge = InitialWorldKnowledge::Known;
    let mut rig = Rig::<History>::new(config);
    rig.run(SECOND * 5);
    rig.clients[3].step_cost = MS(70);
    rig.run(SECOND * 20);
    assert!(rig.match_.world().turn().cadence.tick() > MS(60));
    let check = |rig: &Rig<History>, what: &str| {
        assert_eq!(rig.match_.world().tick_length(), tick, "{what}");
        for client in &rig.clients {
            let world = client.session.authority().expect(what);
            assert_eq!(world.tick_length(), tick, "{what}: {}", client.identity);
        }
    };
    check(&rig, "slowed");
    let late = rig.join("late");
    rig.until_it_plays(late);
    check(&rig, "joined");
    rig.flip(1);
    rig.run(SECOND * 2);
    assert_eq!(rig.stats(1).heals, 1);
    check(&rig, "healed");
    rig.crash(MS(200));
    rig.restart_clients();
    rig.run(SECOND * 5);
    check(&rig, "resumed");
    rig.clients[3].step_cost = Duration::ZERO;
    rig.converge();
}

/// Finding C3: a late client that reported a busy machine gave all players the longest permitted ticks while it stayed.
#[test]
fn one_client_slows_the_match_for_a_bounded_part_of_each_minute() {
    let mut config = RigConfig::strategy(11, LinkProfile::LAN);
    config.policies.tick_length = TickLength::Adaptive { max: MS(500) };
    let mut rig = Rig::<History>::new(config);
    rig.run(SECOND * 5);
    rig.clients[3].step_cost = MS(400);
    let began = rig.match_.world().tick();
    for minute in 1..=3 {
        rig.run(SECOND * 60);
        let played = MS(50) * (rig.match_.world().tick() - began);
        assert!(
            played >= SECOND * 35 * minute,
            "{played:?} in {minute} minutes"
        );
    }
}

/// Finding W6: each of two clients was charged only half of the delay, so both together slowed all players for twice
/// the permitted time.
#[test]
fn several_slow_clients_slow_the_match_for_no_longer_than_one() {
    let mut config = RigConfig::strategy(13, LinkProfile::LAN);
    config.policies.tick_length = TickLength::Adaptive { max: MS(500) };
    let mut rig = Rig::<History>::new(config);
    rig.run(SECOND * 5);
    let began = rig.match_.world().tick();
    for liar in [2, 3] {
        rig.clients[liar].role = Role::Lies;
    }
    for minute in 1..=3 {
        for _ in 0..20 {
            // The machines are repeatedly late for a moment, and report that they are busy.
            let until = rig.now + MS(400);
            (2..4).for_each(|liar| rig.freeze(liar, until));
            rig.run(SECOND * 3);
        }
        let played = MS(50) * (rig.match_.world().tick() - began);
        assert!(
            played >= SECOND * 35 * minute,
            "{played:?} in {minute} minutes"
        );
    }
}
