//! Law Hostile wire: a live match and a live client receive a million random and mutated packets, some of them from a
//! connected peer, and play continues. The packets bypass encryption, which has its own such test.

use std::time::Duration;

use twinstep_core::bounds::{COUNT_MAX, PLAYERS_MAX};
use twinstep_core::codec;
use twinstep_core::frame::{FrameData, Order, Perspective, PlayerSet, RosterChange};
use twinstep_core::testing::doc::Counter;
use twinstep_core::turn::{Cadence, Turn};
use twinstep_core::world::{FrameError, Stepper};
use twinstep_core::{Mwc, PlayerId, Presence, Tick, World};
use twinstep_protocol::packet::DownKind;
use twinstep_protocol::packet::head::KIND_FREE;
use twinstep_protocol::simnet::LinkProfile;
use twinstep_rig::history::{Command, History};
use twinstep_rig::rig::{Rig, RigConfig};
use twinstep_server::SessionId;
use twinstep_server::config::{AnsweredBy, SealWhen};

/// A fifth in debug builds, because the release build sends all of them.
const PACKETS: u32 = if cfg!(debug_assertions) {
    200_000
} else {
    1_000_000
};

fn spoil(luck: &mut Mwc, real: &[Vec<u8>], out: &mut Vec<u8>) {
    out.clear();
    if luck.below(3) == 0 || real.is_empty() {
        out.extend((0..luck.below(1_100)).map(|_| luck.next_u32() as u8));
        return;
    }
    out.extend_from_slice(&real[luck.below(real.len() as u32) as usize]);
    for _ in 0..1 + luck.below(6) {
        let at = luck.below(out.len().max(1) as u32) as usize;
        match luck.below(4) {
            0 => out.truncate(at),
            1 => out.push(luck.next_u32() as u8),
            _ => {
                if let Some(byte) = out.get_mut(at) {
                    *byte = luck.next_u32() as u8;
                }
            }
        }
    }
    out.truncate(1_100);
}

fn strategy() -> RigConfig {
    let mut config = RigConfig::strategy(2, LinkProfile::LAN);
    config.policies.sealing = SealWhen::WaitForAll {
        kick_after: Duration::from_secs(2),
    };
    config.policies.answered_by = AnsweredBy::Owner;
    config
}

#[test]
fn hostile_packets_do_not_harm_a_live_match() {
    packets_at_a_live_match(RigConfig::new(2, LinkProfile::LAN), PACKETS);
}

#[test]
fn hostile_packets_do_not_harm_a_wait_for_all_match() {
    packets_at_a_live_match(strategy(), PACKETS / 5);
}

fn packets_at_a_live_match(config: RigConfig, packets: u32) {
    let mut rig = Rig::<History>::new(config);
    rig.run(Duration::from_secs(5));
    let real = rig.record(Duration::from_secs(2));
    let mut luck = Mwc::seed(77);
    let mut packet = Vec::new();
    let tick = rig.match_.world().tick();
    for n in 0..packets {
        spoil(&mut luck, &real.up, &mut packet);
        // From strangers, and from the first client's own session, which may be closed for that.
        let peer = if n % 2 == 0 {
            rig.clients[0].peer()
        } else {
            SessionId(1_000 + u64::from(n % 64))
        };
        rig.deliver(peer, &packet);
        if n % 1_000 == 0 {
            rig.run(Duration::from_millis(10));
        }
    }
    assert!(
        rig.match_.stats().malformed > 8,
        "some were read and found wrong: {:?}",
        rig.match_.stats()
    );
    rig.clients.remove(0);
    rig.run(Duration::from_secs(5));
    let passed = Duration::from_millis(10) * (packets / 1_000) + Duration::from_secs(5);
    let ticks = passed.as_nanos() / rig.match_.world().turn().cadence.tick().as_nanos();
    let went = u128::from(rig.match_.world().tick() - tick);
    assert!(
        went * 3 > ticks,
        "{went} of {ticks} ticks: the match paused"
    );
    assert!(rig.match_.sessions() >= 3, "the others are still there");
    rig.converge();
}

#[test]
fn hostile_packets_do_not_harm_a_live_client() {
    packets_at_a_live_client(RigConfig::new(2, LinkProfile::LAN), PACKETS);
}

#[test]
fn hostile_packets_do_not_harm_a_client_in_lockstep() {
    packets_at_a_live_client(strategy(), PACKETS / 5);
}

fn packets_at_a_live_client(config: RigConfig, packets: u32) {
    let mut rig = Rig::<History>::new(config);
    rig.run(Duration::from_secs(5));
    let real = rig.record(Duration::from_secs(2));
    let mut luck = Mwc::seed(78);
    let mut packet = Vec::new();
    // A corrupted packet may be a valid packet with other values, which a client must accept. So its own confirmed
    // state is excused; the test checks that it survives and that the others continue.
    rig.flip_excuse(0);
    for n in 0..packets {
        spoil(&mut luck, &real.down, &mut packet);
        // Except plaintext close packets, which end the session.
        if packet
            .first()
            .is_some_and(|first| first & KIND_FREE == DownKind::Closed.alone())
        {
            continue;
        }
        let now = rig.now;
        rig.clients[0].session.handle(now, &packet);
        if n % 1_000 == 0 {
            rig.run(Duration::from_millis(10));
        }
    }
    let stats = rig.stats(0);
    assert!(
        stats.malformed > u64::from(packets / 10),
        "{} malformed",
        stats.malformed
    );
    rig.clients.remove(0);
    rig.run(Duration::from_secs(5));
    rig.converge();
}

/// Decodes a world with these counts. Returns `true` if the world is sound.
fn is_believed(next_seq: u32, age: u32, turn: u32) -> bool {
    let mut counts = ([0_u32; PLAYERS_MAX], [0_u32; PLAYERS_MAX]);
    (counts.0[3], counts.1[4]) = (next_seq, age);
    let turn = Turn {
        number: turn,
        ..Turn::default()
    };
    let (nothing, unfinished): ([Vec<u8>; 2], Vec<u8>) = Default::default();
    let roster = [Presence::Absent; PLAYERS_MAX];
    let held = [0_u8; PLAYERS_MAX];
    let mut bytes = Vec::new();
    let parts = (
        Tick(0),
        Counter::default(),
        roster,
        held,
        nothing,
        (counts.0, unfinished, counts.1),
        turn,
        Cadence::DEFAULT.tick_ns,
    );
    codec::append(&parts, &mut bytes).unwrap();
    let world = codec::decode_whole::<World<Counter>>(&bytes).expect("all parts of a world");
    assert_eq!(world.next_seq(PlayerId(3)), next_seq);
    world.is_sound()
}

/// Counts near the largest integer would wrap in a sum. A world from a file or a peer that contains them is refused.
#[test]
fn a_world_whose_counts_would_wrap_is_refused() {
    assert!(is_believed(1, 2, 3));
    assert!(is_believed(COUNT_MAX, COUNT_MAX, COUNT_MAX));
    for wrong in [COUNT_MAX + 1, u32::MAX] {
        assert!(!is_believed(wrong, 0, 0));
        assert!(!is_believed(0, wrong, 0));
        assert!(!is_believed(0, 0, wrong));
    }
}

#[test]
fn no_frame_raises_a_count_above_the_limit() {
    let mut world = World::new(History::new(1), Tick(0));
    let mut frame = FrameData::<History>::empty(Tick(0));
    let player = PlayerId(0);
    frame.roster.push((player, RosterChange::Joined));
    frame.inputs.set(player, Some(Default::default()));
    let mut step = |seq| {
        frame.commands = vec![Order {
            player,
            seq,
            command: Command::Note(7),
        }];
        let (perspective, no_players) = (Perspective::authority(Tick(0)), PlayerSet::default());
        let mut stepper = Stepper::default();
        stepper.step(&mut world, &frame, &7, perspective, no_players)?;
        Ok(world.is_sound())
    };
    let far = step(COUNT_MAX);
    assert!(matches!(far, Err(FrameError::Sequence { .. })), "{far:?}");
    assert_eq!(step(COUNT_MAX - 1), Ok(true));
}
