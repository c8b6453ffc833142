//! `Leave`, up: the client leaves, and its seat is freed immediately.
//!
//! ```text
//! first · link
//! ```

use core::time::Duration;

use super::head::PacketWriter;
use super::{ByteCounts, PacketBody, UpKind, UpPart};
use crate::link::LinkState;
use crate::wire::{WireError, Writer};

pub fn write(
    now: Duration,
    link: &mut LinkState,
    out: &mut Writer<'_>,
) -> Result<ByteCounts, WireError> {
    PacketWriter::<UpPart>::begin(UpKind::Leave.alone(), now, link, out).map(PacketWriter::end)
}

pub fn read(body: PacketBody<'_, UpPart>) -> Result<(), WireError> {
    body.packet.end()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::packet::UpPacket;

    #[test]
    fn only_the_exact_bytes_are_a_leave_packet() {
        let mut bytes = [0; 16];
        let mut out = Writer::new(&mut bytes);
        write(Duration::ZERO, &mut LinkState::default(), &mut out).unwrap();
        let len = out.len();
        let link = LinkState::default();
        let packet = UpPacket::open(&bytes[..len], &link).unwrap();
        assert_eq!(packet.kind, UpKind::Leave);
        assert_eq!(read(packet.body), Ok(()));
        for short in 0..len {
            assert!(UpPacket::open(&bytes[..short], &link).is_err());
        }
        let longer = UpPacket::open(&bytes[..len + 1], &link).unwrap();
        assert!(read(longer.body).is_err());
    }
}
