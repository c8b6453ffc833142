//! Golden bytes: the first packets of each kind in one short match. A change here changes the wire: raise
//! `WIRE_VERSION` with it. `UPDATE_GOLDEN=1` rewrites the file.

use std::collections::BTreeMap;
use std::fmt::Write;
use std::time::Duration;

use twinstep_protocol::simnet::LinkProfile;
use twinstep_rig::history::History;
use twinstep_rig::rig::{Rig, RigConfig};
use twinstep_tests::golden;

#[test]
fn packet_bytes_are_unchanged() {
    let mut config = RigConfig::new(12, LinkProfile::LAN);
    config.clients = 2;
    // The bytes of tickets are not part of this test.
    config.tickets = false;
    let mut rig = Rig::<History>::new(config);
    let mut recorded = rig.record(Duration::from_secs(3));
    rig.flip(0);
    let healing = rig.record(Duration::from_secs(2));
    recorded.up.extend(healing.up);
    recorded.down.extend(healing.down);
    let mut table = String::new();
    for (way, packets) in [("up", recorded.up), ("down", recorded.down)] {
        let mut first_of_kind = BTreeMap::new();
        for packet in packets {
            first_of_kind.entry(packet[0]).or_insert(packet);
        }
        for (first, packet) in first_of_kind {
            write!(table, "{way:<4} {first:#04x} ").expect("text");
            packet
                .iter()
                .take(64)
                .for_each(|byte| write!(table, "{byte:02x}").expect("text"));
            writeln!(
                table,
                "{} {} bytes",
                if packet.len() > 64 { ".." } else { "" },
                packet.len()
            )
            .expect("text");
        }
    }
    golden::check("packets.txt", &table, "raise WIRE_VERSION and ");
}
