//! [`Packets`]: what a match sends at one moment. The thread that owns the socket is woken once for all of it.
//!
//! ```text
//!  Spare ── next ──▶ Packets, filled by the match ──▶ the task that owns the socket ──╮
//!    ▲                                                                               dropped
//!    ╰────────────────────────── its room, empty ────────────────────────────────────╯
//! ```

use crossbeam_channel::{Receiver, Sender, bounded};

use twinstep_server::SessionId;

/// Room that a match keeps: for what it sends while the last of it is sent, and a few more.
const SPARE_MAX: usize = 4;
/// Room for more bytes than that is not kept. A turn for 32 sessions in the largest packets there are has 34 KB, and its room
/// was doubled as it grew; so it was worlds.
const SPARE_BYTES_MAX: usize = 96 << 10;

/// Packets and whom they go to, in order.
pub(super) struct Packets {
    room: Room,
    /// Where the room is used again.
    home: Sender<Room>,
}

#[derive(Default)]
struct Room {
    /// To whom, and where its bytes end.
    ends: Vec<(SessionId, usize)>,
    bytes: Vec<u8>,
}

/// A match's room for what it sends: used again, so that sending allocates nothing.
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
    /// No packets yet.
    pub(super) fn next(&self) -> Packets {
        Packets {
            room: self.back.try_recv().unwrap_or_default(),
            home: self.home.clone(),
        }
    }

    /// How much room waits.
    #[cfg(test)]
    pub(super) fn waiting(&self) -> usize {
        self.back.len()
    }
}

impl Drop for Packets {
    fn drop(&mut self) {
        let mut room = std::mem::take(&mut self.room);
        if room.bytes.capacity() <= SPARE_BYTES_MAX {
            room.ends.clear();
            room.bytes.clear();
            // There may be enough of it, or no match any more.
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
    fn packets_come_out_as_they_went_in() {
        let mut packets = Spare::default().next();
        let told: [(SessionId, &[u8]); 3] = [
            (SessionId(7), b"one"),
            (SessionId(3), b""),
            (SessionId(7), b"two"),
        ];
        for (peer, bytes) in told {
            packets.push(peer, bytes);
        }
        assert_eq!(packets.len(), 3);
        assert!(packets.iter().eq(told));
    }

    #[test]
    fn what_was_sent_leaves_its_room_to_what_comes_next() {
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
        // While that is on its way there is other room, and of all of it no more than is bounded is kept.
        let mut many = Vec::from_iter((0..2 * SPARE_MAX).map(|_| spare.next()));
        many.iter_mut()
            .for_each(|more| more.push(SessionId(1), b"more"));
        drop(many);
        assert_eq!(spare.waiting(), SPARE_MAX);
        // A turn of a full match grows bit by bit.
        let spare = Spare::default();
        let mut turn = spare.next();
        (0..32).for_each(|n| turn.push(SessionId(n), &[0; PACKET_MAX]));
        drop(turn);
        assert_eq!(spare.waiting(), 1);
        // Nor much room at once, nor any for a match that is over.
        let spare = Spare::default();
        spare.next().push(SessionId(1), &[0; SPARE_BYTES_MAX + 1]);
        assert_eq!(spare.waiting(), 0);
        let mut last = spare.next();
        drop(spare);
        last.push(SessionId(1), b"the end");
        assert_eq!(last.len(), 1);
    }
}
