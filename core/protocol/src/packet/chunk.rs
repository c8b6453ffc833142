//! `Lane`, up and down: a chunk of a reliable message. The [lane](crate::lane) interprets and checks its content.
//!
//! ```text
//! first · link · chunk
//! ```

use core::time::Duration;

use super::head::PacketWriter;
use super::{ByteCounts, DownKind, DownPart, UpKind, UpPart};
use crate::link::LinkState;
use crate::wire::{WireError, Writer};

pub fn write_up(
    now: Duration,
    link: &mut LinkState,
    chunk: &[u8],
    out: &mut Writer<'_>,
) -> Result<ByteCounts, WireError> {
    let packet = PacketWriter::<UpPart>::begin(UpKind::Lane.alone(), now, link, out)?;
    end(packet, chunk)
}

pub fn write_down(
    now: Duration,
    link: &mut LinkState,
    chunk: &[u8],
    out: &mut Writer<'_>,
) -> Result<ByteCounts, WireError> {
    let packet = PacketWriter::<DownPart>::begin(DownKind::Lane.alone(), now, link, out)?;
    end(packet, chunk)
}

fn end<P: super::head::Part>(
    mut packet: PacketWriter<'_, '_, P>,
    chunk: &[u8],
) -> Result<ByteCounts, WireError> {
    packet.out().bytes(chunk)?;
    packet.count(|counts| &mut counts.bulk);
    Ok(packet.end())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::packet::{DownPacket, OUTER_BYTES, UpPacket};
    use proptest::prelude::*;

    proptest! {
        #[test]
        fn a_chunk_survives_a_round_trip_up_and_down(chunk in proptest::collection::vec(any::<u8>(), 0..900)) {
            let (mut bytes, link) = ([0; 1_000], LinkState::default());
            let mut out = Writer::new(&mut bytes);
            let counts = write_up(Duration::ZERO, &mut link.clone(), &chunk, &mut out).unwrap();
            let len = out.len();
            prop_assert_eq!((counts.total(), counts.bulk), (OUTER_BYTES + len as u64, chunk.len() as u64));
            let packet = UpPacket::open(&bytes[..len], &link).unwrap();
            prop_assert_eq!((packet.kind, packet.body.packet.rest()), (UpKind::Lane, &chunk[..]));
            let mut out = Writer::new(&mut bytes);
            write_down(Duration::ZERO, &mut link.clone(), &chunk, &mut out).unwrap();
            let len = out.len();
            match DownPacket::open(&bytes[..len], &link) {
                Ok(DownPacket::Lane(_, read)) => prop_assert_eq!(read, &chunk[..]),
                _ => prop_assert!(false, "another packet"),
            }
            for short in 0..len - chunk.len() {
                prop_assert!(DownPacket::open(&bytes[..short], &link).is_err());
            }
        }
    }
}
