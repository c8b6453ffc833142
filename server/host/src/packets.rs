//! [`Packets`]: the packets that a match sends at one moment. The thread that owns the socket is woken once for all of
//! them.
//!
//! ```text
//!  Spare ── next ──▶ Packets, filled by the match ──▶ the task that owns the socket ──╮
//!    ▲                                                                               dropped
//!    ╰────────────────────────── its buffers ────────────────────────────────────────╯
//! ```

use crossbeam_channel::{Receiver, Sender, bounded};

use twinstep_server::SessionId;

/// The maximum number of buffers kept per match: enough for packets sent while earlier ones are in progress, with some
/// to spare.
const SPARE_MAX: usize = 4;
/// Larger buffers are not kept. A turn for 32 sessions in packets of the maximum size has 34 KB, and its buffer doubles
/// as it grows. A larger buffer has held worlds.
const SPARE_BYTES_MAX: usize = 96 << 10;

pub(super) struct Packets {
    room: Room,
    /// Returns the buffers to the match.
    home: Sender<Room>,
}

#[derive(Default)]
struct Room {
    ends: Vec<(SessionId, usize)>,
    bytes: Vec<u8>,
}

/// A match's buffers, reused so that sending does not allocate.
pub(super) struct Spare {
    back: Receiver<Room>,
    home: Sender<Room>,
}

impl Default for Spare {
    fn default() -> Spare {
        let (home, back) = bounded(SPARE_MAX);
        Spare { back, home }
    }
}

impl Spare {
    pub(super) fn next(&self) -> Packets {
        Packets {
            room: self.back.try_recv().unwrap_or_default(),
            home: self.home.clone(),
        }
    }

    #[cfg(test)]
    pub(super) fn waiting(&self) -> usize {
        self.back.len()
    }
}

impl Drop for Packets {
    fn drop(&mut self) {
        let mut room = std::mem::take(&mut self.room);
        // A larger buffer is freed, because one large world must not occupy its memory forever.
        if room.bytes.capacity() <= SPARE_BYTES_MAX {
            room.ends.clear();
            room.bytes.clear();
            // There may be enough buffers, or the match may be over.
            let _ = self.home.try_send(room);
        }
    }
}

impl Packets {
    pub(super) fn push(&mut self, peer: SessionId, bytes: &[u8]) {
        let Room { ends, bytes: all } = &mut self.room;
        all.extend_from_slice(bytes);
        ends.push((peer, all.len()));
    }

    pub(super) fn len(&self) -> usize {
        self.room.ends.len()
    }

    pub(super) fn iter(&self) -> impl Iterator<Item = (SessionId, &[u8])> {
        let mut start = 0;
        let Room { ends, bytes } = &self.room;
        ends.iter().map(move |&(peer, end)| {
            let bytes = &bytes[start..end];
            start = end;
            (peer, bytes)
        })
    }
}

#[cfg(test)]
mod tests {
    use twinstep_udp::PACKET_MAX;

    use super::*;

    #[test]
    fn packets_are_read_in_order_and_unchanged() {
        let mut packets = Spare::default().next();
        let sent: [(SessionId, &[u8]); 3] = [
            (SessionId(7), b"one"),
            (SessionId(3), b""),
            (SessionId(7), b"two"),
        ];
        for (peer, bytes) in sent {
            packets.push(peer, bytes);
        }
        assert_eq!(packets.len(), 3);
        assert!(packets.iter().eq(sent));
    }

    #[test]
    fn the_buffers_of_sent_packets_are_reused() {
        let spare = Spare::default();
        let mut packets = spare.next();
        packets.push(SessionId(7), &[9; 1_000]);
        let was_at = packets.room.bytes.as_ptr();
        drop(packets);
        let mut packets = spare.next();
        assert_eq!((packets.len(), packets.iter().count()), (0, 0));
        packets.push(SessionId(8), b"two");
        assert_eq!(packets.room.bytes.as_ptr(), was_at);
        assert!(packets.iter().eq([(SessionId(8), b"two".as_slice())]));
        // While a buffer is under way, others are used; of all of them only `SPARE_MAX` are kept.
        let mut many = Vec::from_iter((0..2 * SPARE_MAX).map(|_| spare.next()));
        many.iter_mut()
            .for_each(|more| more.push(SessionId(1), b"more"));
        drop(many);
        assert_eq!(spare.waiting(), SPARE_MAX);
        // The packets of a full match's turn grow step by step.
        let spare = Spare::default();
        let mut turn = spare.next();
        (0..32).for_each(|n| turn.push(SessionId(n), &[0; PACKET_MAX]));
        drop(turn);
        assert_eq!(spare.waiting(), 1);
        // Large buffers, and buffers of finished matches, are not kept.
        let spare = Spare::default();
        spare.next().push(SessionId(1), &[0; SPARE_BYTES_MAX + 1]);
        assert_eq!(spare.waiting(), 0);
        let mut last = spare.next();
        drop(spare);
        last.push(SessionId(1), b"the end");
        assert_eq!(last.len(), 1);
    }
}
