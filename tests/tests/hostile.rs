//! Law Hostile wire: a million random and mutated packets at a live match and a live client, some of them
//! from a connected peer, and play goes on. Behind the cipher: the transport has its own test of a million.

use std::time::Duration;

use twinstep_core::Mwc;
use twinstep_core::simnet::LinkProfile;
use twinstep_server::PeerId;
use twinstep_tests::history::History;
use twinstep_tests::rig::{Rig, RigConfig};

const PACKETS: u32 = 1_000_000;

/// Random bytes, or a packet that was real with some of its bytes changed, cut or lengthened.
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

#[test]
fn law_hostile_wire_a_million_packets_at_a_live_match() {
    let mut rig = Rig::<History>::new(RigConfig::new(2, LinkProfile::LAN));
    rig.run(Duration::from_secs(3));
    let real = rig.record(Duration::from_secs(2));
    let mut luck = Mwc::seed(77);
    let mut packet = Vec::new();
    let tick = rig.game.world().tick();
    for n in 0..PACKETS {
        spoil(&mut luck, &real.up, &mut packet);
        // From strangers, and from the first client's own session: that one may be closed for it.
        let peer = if n % 2 == 0 {
            rig.clients[0].peer
        } else {
            PeerId(1_000 + u64::from(n % 64))
        };
        rig.game.handle(rig.now, peer, &packet);
        if n % 1_000 == 0 {
            rig.run(Duration::from_millis(10));
        }
    }
    assert!(
        rig.game.stats().malformed > 8,
        "some were read and found wrong: {:?}",
        rig.game.stats()
    );
    assert!(rig.game.world().tick() - tick > 250, "the match went on");
    assert!(rig.game.sessions() >= 3, "the others are still there");
    rig.clients.remove(0);
    rig.converge();
}

#[test]
fn law_hostile_wire_a_million_packets_at_a_live_client() {
    let mut rig = Rig::<History>::new(RigConfig::new(2, LinkProfile::LAN));
    rig.run(Duration::from_secs(3));
    let real = rig.record(Duration::from_secs(2));
    let mut luck = Mwc::seed(78);
    let mut packet = Vec::new();
    // Spoiled packets can be packets of another truth: what a client takes for real it may believe. So its
    // own authority is excused; that it stands, and that the others play on, is not.
    rig.flip_excuse(0);
    for n in 0..PACKETS {
        spoil(&mut luck, &real.down, &mut packet);
        // Not the one that says goodbye in clear words.
        if packet.first().is_some_and(|first| first & 3 == 2) {
            continue;
        }
        let now = rig.now;
        rig.clients[0].session.handle(now, &packet);
        if n % 1_000 == 0 {
            rig.run(Duration::from_millis(10));
        }
    }
    let stats = rig.stats(0);
    assert!(stats.malformed > 100_000, "{} malformed", stats.malformed);
    rig.clients.remove(0);
    rig.converge();
}
