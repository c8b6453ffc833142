//! The receiving half of the lane: takes chunks in any order and returns messages in the order in which they were sent.

use alloc::vec::Vec;
use core::mem;

use super::format::{CHUNK_BYTES_MAX, LaneAck, LaneError, MASK_BYTES, WINDOW_CHUNKS};
use crate::varint;

#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Message {
    /// The kind, defined by the layer above.
    pub kind: u8,
    pub bytes: Vec<u8>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct TransferProgress {
    pub kind: u8,
    /// The number of the message's bytes that have arrived, in order or not.
    pub received_bytes: usize,
    pub total_bytes: usize,
}

#[derive(Clone, Debug)]
pub struct LaneReceiver {
    message_bytes_max: usize,
    next: u32,
    /// The chunk bodies starting at `next`, indexed by sequence modulo the length. A body is empty if its chunk has not
    /// arrived.
    stash: Vec<Vec<u8>>,
    stashed_bytes: usize,
    spare: Vec<Vec<u8>>,
    arriving: Option<Arriving>,
    /// The kind and the first bytes of a message, if the rest of it comes next.
    begun: Option<(u8, Vec<u8>)>,
    complete: Option<Message>,
    owes_ack: bool,
    broken: Option<LaneError>,
}

#[derive(Clone, Debug)]
struct Arriving {
    kind: u8,
    total_bytes: usize,
    bytes: Vec<u8>,
}

impl LaneReceiver {
    /// A receiver of messages of at most `message_bytes_max` bytes.
    ///
    /// In addition to the message itself, the receiver holds out-of-order chunks: at most 8 KB more than the largest
    /// message, and never more than the 512 KB window. The memory grows only with the data that arrives.
    #[must_use]
    pub fn new(message_bytes_max: usize) -> LaneReceiver {
        // Chunks farther ahead than this are treated as lost: the sender resends them.
        let ahead = (message_bytes_max / CHUNK_BYTES_MAX + 8).min(WINDOW_CHUNKS as usize);
        let mut stash = Vec::new();
        stash.resize_with(ahead, Vec::new);
        LaneReceiver {
            message_bytes_max,
            next: 0,
            stash,
            stashed_bytes: 0,
            spare: Vec::new(),
            arriving: None,
            begun: None,
            complete: None,
            owes_ack: false,
            broken: None,
        }
    }

    /// Takes one whole chunk frame. Then call [`poll_message`](Self::poll_message) until it returns `None`.
    ///
    /// # Errors
    /// [`LaneError`] if the peer broke the protocol; close its session.
    pub fn handle(&mut self, frame: &[u8]) -> Result<(), LaneError> {
        let mut body = frame;
        let seq = varint::take_u32(&mut body)?;
        if body.is_empty() || body.len() > CHUNK_BYTES_MAX {
            return Err(LaneError::ChunkSize { bytes: body.len() });
        }
        let end = self.next.saturating_add(WINDOW_CHUNKS);
        if seq >= end {
            return Err(LaneError::BeyondWindow { seq, end });
        }
        // Acknowledge repeated chunks as well, because the first copy's ack may have been lost.
        self.owes_ack = true;
        // Beyond the stash, a chunk is dropped as if it were lost.
        if seq < self.next || (seq - self.next) as usize >= self.stash.len() {
            return Ok(());
        }
        let slot = self.slot(seq - self.next);
        if self.stash[slot].is_empty() {
            let mut copy = self.spare.pop().unwrap_or_default();
            copy.extend_from_slice(body);
            self.stash[slot] = copy;
            self.stashed_bytes += body.len();
        }
        self.join()
    }

    /// The next whole message, if it has arrived. Chunks after it are not processed before the next call.
    ///
    /// # Errors
    /// [`LaneError`] if a chunk that arrived early turns out to break the protocol; close the session.
    pub fn poll_message(&mut self) -> Result<Option<Message>, LaneError> {
        self.join()?;
        Ok(self.complete.take())
    }

    /// Supplies the first bytes of a message, received over an earlier lane. If the next message is of this kind, it is
    /// the rest of that message.
    pub fn go_on_with(&mut self, kind: u8, bytes: Vec<u8>) {
        self.begun = Some((kind, bytes));
    }

    /// The first contiguous bytes of an unfinished message of this kind. Returns `None` if there are none.
    #[must_use]
    pub fn into_part(self, kind: u8) -> Option<Vec<u8>> {
        let arriving = self
            .arriving
            .map(|arriving| (arriving.kind, arriving.bytes));
        let part = arriving.or(self.begun);
        part.filter(|(of, _)| *of == kind).map(|(_, bytes)| bytes)
    }

    #[must_use]
    pub fn ack(&self) -> LaneAck {
        let mut ack = LaneAck {
            next: self.next,
            mask: [0; MASK_BYTES],
        };
        for distance in 1..self.stash.len() as u32 {
            if !self.stash[self.slot(distance)].is_empty() {
                ack.set(distance);
            }
        }
        ack
    }

    /// The ack of all chunks received so far. Returns `None` if none arrived since the last ack, so that an idle lane
    /// sends no acks.
    #[must_use = "an unsent ack is requested again only by a resend"]
    pub fn poll_ack(&mut self) -> Option<LaneAck> {
        mem::take(&mut self.owes_ack).then(|| self.ack())
    }

    /// The progress of the incoming message. Returns `None` if there is none.
    #[must_use]
    pub fn progress(&self) -> Option<TransferProgress> {
        self.arriving.as_ref().map(|arriving| TransferProgress {
            kind: arriving.kind,
            // Stashed chunks may also belong to the next message.
            received_bytes: (arriving.bytes.len() + self.stashed_bytes).min(arriving.total_bytes),
            total_bytes: arriving.total_bytes,
        })
    }

    fn slot(&self, distance: u32) -> usize {
        let seq = u64::from(self.next) + u64::from(distance);
        (seq % self.stash.len() as u64) as usize
    }

    fn join(&mut self) -> Result<(), LaneError> {
        while self.complete.is_none() {
            if let Some(error) = self.broken {
                return Err(error);
            }
            let slot = self.slot(0);
            if self.stash[slot].is_empty() {
                break;
            }
            let mut body = mem::take(&mut self.stash[slot]);
            self.stashed_bytes -= body.len();
            if let Err(error) = self.append(&body) {
                self.broken = Some(error);
                return Err(error);
            }
            body.clear();
            self.spare.push(body);
            self.next += 1;
            self.owes_ack = true;
        }
        Ok(())
    }

    fn append(&mut self, mut body: &[u8]) -> Result<(), LaneError> {
        let arriving = match &mut self.arriving {
            Some(arriving) => arriving,
            None => {
                // Only the very next message can continue `begun`: one of another kind discards it.
                let opened = Arriving::open(&mut body, self.message_bytes_max, self.begun.take())?;
                self.arriving.insert(opened)
            }
        };
        arriving.append(body)?;
        if arriving.bytes.len() == arriving.total_bytes
            && let Some(Arriving { kind, bytes, .. }) = self.arriving.take()
        {
            self.complete = Some(Message { kind, bytes });
        }
        Ok(())
    }
}

impl Arriving {
    fn open(
        body: &mut &[u8],
        message_bytes_max: usize,
        begun: Option<(u8, Vec<u8>)>,
    ) -> Result<Arriving, LaneError> {
        let (&kind, mut rest) = body
            .split_first()
            .ok_or(LaneError::ChunkSize { bytes: 0 })?;
        let begun = begun.filter(|(of, _)| *of == kind);
        let had = begun.map(|(_, bytes)| bytes).unwrap_or_default();
        let bytes = varint::take(&mut rest)?.saturating_add(had.len() as u64);
        let total_bytes = usize::try_from(bytes)
            .ok()
            .filter(|&total| total <= message_bytes_max)
            .ok_or(LaneError::MessageTooLarge {
                bytes,
                max: message_bytes_max,
            })?;
        *body = rest;
        Ok(Arriving {
            kind,
            total_bytes,
            bytes: had,
        })
    }

    fn append(&mut self, data: &[u8]) -> Result<(), LaneError> {
        let (had, expected) = (self.bytes.len(), self.total_bytes - self.bytes.len());
        if data.len() > expected {
            return Err(LaneError::MessageOverrun {
                expected,
                got: data.len(),
            });
        }
        if data.len() > self.bytes.capacity() - had {
            // The claimed size is not trusted: grow with the bytes that arrived, by doubling.
            self.bytes
                .reserve_exact(expected.min(had.max(16 * CHUNK_BYTES_MAX)));
        }
        self.bytes.extend_from_slice(data);
        Ok(())
    }
}

#[cfg(test)]
impl LaneReceiver {
    /// Makes this an idle lane that has received all chunks before `seq`.
    pub(super) fn skip_to(&mut self, seq: u32) {
        self.next = seq;
    }

    pub(super) fn held_bytes(&self) -> usize {
        let chunks = self
            .stash
            .iter()
            .chain(&self.spare)
            .map(Vec::capacity)
            .sum::<usize>();
        chunks
            + self
                .arriving
                .as_ref()
                .map_or(0, |arriving| arriving.bytes.capacity())
            + self.begun.as_ref().map_or(0, |(_, bytes)| bytes.capacity())
    }
}
