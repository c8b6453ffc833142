//! Golden bytes: the first packets of each kind, of one short match. What changes here changes the wire:
//! raise `WIRE_VERSION` with it. `UPDATE_GOLDEN=1` writes them anew.

use std::collections::BTreeMap;
use std::fmt::Write;
use std::time::Duration;

use twinstep_core::simnet::LinkProfile;
use twinstep_tests::history::History;
use twinstep_tests::rig::{Rig, RigConfig};

const GOLDEN: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/golden/packets.txt");

#[test]
fn packets_are_the_bytes_that_they_were() {
    let mut config = RigConfig::new(12, LinkProfile::LAN);
    config.clients = 2;
    // Opaque here.
    config.tickets = false;
    let mut rig = Rig::<History>::new(config);
    let mut recorded = rig.record(Duration::from_secs(3));
    rig.flip(0);
    let healing = rig.record(Duration::from_secs(2));
    recorded.up.extend(healing.up);
    recorded.down.extend(healing.down);
    let mut golden = String::new();
    for (way, packets) in [("up", recorded.up), ("down", recorded.down)] {
        let mut first_of_kind = BTreeMap::new();
        for packet in packets {
            first_of_kind.entry(packet[0]).or_insert(packet);
        }
        for (first, packet) in first_of_kind {
            write!(golden, "{way:<4} {first:#04x} ").expect("text");
            packet
                .iter()
                .take(64)
                .for_each(|byte| write!(golden, "{byte:02x}").expect("text"));
            writeln!(
                golden,
                "{} {} bytes",
                if packet.len() > 64 { ".." } else { "" },
                packet.len()
            )
            .expect("text");
        }
    }
    if std::env::var_os("UPDATE_GOLDEN").is_some() {
        std::fs::write(GOLDEN, &golden).expect("the golden file can be written");
        return;
    }
    let kept = std::fs::read_to_string(GOLDEN)
        .unwrap_or_default()
        .replace('\r', "");
    assert!(
        kept == golden,
        "packets changed; if that is meant, raise WIRE_VERSION and run with UPDATE_GOLDEN=1\nwas:\n{kept}\nis:\n{golden}"
    );
}
