//! [`Packets`]: what a match sends at one moment. The thread that owns the socket is woken once for all of it.

use crate::peer::PeerId;

/// Packets and whom they go to, in order.
#[derive(Default)]
pub(super) struct Packets {
    /// To whom, and where its bytes end.
    ends: Vec<(PeerId, usize)>,
    bytes: Vec<u8>,
}

impl Packets {
    pub(super) fn push(&mut self, peer: PeerId, bytes: &[u8]) {
        self.bytes.extend_from_slice(bytes);
        self.ends.push((peer, self.bytes.len()));
    }

    pub(super) fn len(&self) -> usize {
        self.ends.len()
    }

    pub(super) fn iter(&self) -> impl Iterator<Item = (PeerId, &[u8])> {
        let mut start = 0;
        self.ends.iter().map(move |&(peer, end)| {
            let bytes = &self.bytes[start..end];
            start = end;
            (peer, bytes)
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn packets_come_out_as_they_went_in() {
        let mut packets = Packets::default();
        let told: [(PeerId, &[u8]); 3] =
            [(PeerId(7), b"one"), (PeerId(3), b""), (PeerId(7), b"two")];
        for (peer, bytes) in told {
            packets.push(peer, bytes);
        }
        assert_eq!(packets.len(), 3);
        assert!(packets.iter().eq(told));
    }
}
