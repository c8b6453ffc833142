//! The sending half of the lane: cuts messages into chunks and resends them until they are acknowledged.

use alloc::collections::VecDeque;
use alloc::sync::Arc;
use core::time::Duration;

use arrayvec::ArrayVec;

use super::words::{CHUNK_BYTES_MAX, FRAME_BYTES_MAX, LaneAck, LaneError, WINDOW_CHUNKS};
use crate::varint;
use twinstep_core::bounds::BULK_BYTES_PER_SECOND;

/// Messages that wait at a sender for their acks.
pub const MESSAGES_QUEUED_MAX: usize = 64;

/// What may be sent at once after a pause, in time at the full rate: two and a half frames at 60 Hz.
const BURST: Duration = Duration::from_millis(40);

/// Chunks that may be repeated for each one that arrived. A line that loses half of all chunks needs one.
const REPEATS_PER_ARRIVAL: u32 = 4;

/// Why a message cannot be sent.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum PushError {
    /// It is larger than the other side takes.
    #[error("expected a message of at most {max} bytes, got {bytes}")]
    TooLarge {
        /// The size of the message.
        bytes: usize,
        /// The limit given at construction.
        max: usize,
    },
    /// Too many wait for their acks.
    #[error("expected at most {MESSAGES_QUEUED_MAX} messages to wait; push again after acks")]
    QueueFull,
    /// The sequence numbers have come to their end.
    #[error("the lane's sequence numbers are used up; open a new session")]
    Exhausted,
}

/// Bytes of messages since the lane was opened, without headers and repeats.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Sending {
    /// Sent at least once.
    pub sent_bytes: u64,
    /// Acknowledged in order.
    pub acked_bytes: u64,
    /// Pushed.
    pub total_bytes: u64,
}

/// Sends whole messages in chunks, and again until they are acknowledged.
#[derive(Clone, Debug)]
pub struct LaneSender {
    message_bytes_max: usize,
    rate_bytes_per_s: u32,
    /// Messages with chunks that are not acknowledged in order, oldest first.
    messages: VecDeque<Outgoing>,
    /// All chunks below are acknowledged.
    base: u32,
    /// The first chunk that was never sent; at most `base + WINDOW_CHUNKS`.
    unsent: u32,
    /// The first chunk of the next message to be pushed.
    end: u32,
    /// The chunks `base..unsent`.
    window: VecDeque<Flight>,
    /// When the bytes sent so far have passed at the full rate.
    paid_until: Duration,
    /// When the peer was heard last, or the lane woke from idleness.
    heard_at: Duration,
    /// Chunks that may be repeated, beside the oldest: at most a window.
    repeats: u32,
    progress: Sending,
}

type Head = ArrayVec<u8, { 1 + varint::BYTES_MAX }>;

#[derive(Clone, Debug)]
struct Outgoing {
    kind: u8,
    bytes: Arc<[u8]>,
    /// Where the message begins among these: the receiver has what is before.
    from: usize,
    first_seq: u32,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Flight {
    /// Sent last at this moment.
    SentAt(Duration),
    /// Received, though not yet in order.
    Acked,
}

impl LaneSender {
    /// A sender of messages of at most so many bytes, at [`BULK_BYTES_PER_SECOND`].
    #[must_use]
    pub fn new(message_bytes_max: usize) -> LaneSender {
        LaneSender {
            message_bytes_max,
            rate_bytes_per_s: BULK_BYTES_PER_SECOND,
            messages: VecDeque::with_capacity(MESSAGES_QUEUED_MAX),
            base: 0,
            unsent: 0,
            end: 0,
            window: VecDeque::with_capacity(WINDOW_CHUNKS as usize),
            paid_until: Duration::ZERO,
            heard_at: Duration::ZERO,
            repeats: WINDOW_CHUNKS,
            progress: Sending::default(),
        }
    }

    /// Caps the bytes of frames per second, repeats included; at least 1.
    pub fn set_rate(&mut self, bytes_per_s: u32) {
        self.rate_bytes_per_s = bytes_per_s.max(1);
    }

    /// Queues a message behind the others. The bytes are shared, so that one world serves many sessions.
    ///
    /// # Errors
    /// [`PushError`]; then nothing was queued.
    pub fn push(&mut self, kind: u8, bytes: Arc<[u8]>) -> Result<(), PushError> {
        self.push_rest(kind, bytes, 0)
    }

    /// As [`push`](LaneSender::push), but of the bytes from `from` on alone: for a receiver that [has](super::LaneReceiver::go_on_with)
    /// those before.
    ///
    /// # Errors
    /// [`PushError`]; then nothing was queued.
    ///
    /// # Panics
    /// If there are fewer bytes.
    pub fn push_rest(&mut self, kind: u8, bytes: Arc<[u8]>, from: usize) -> Result<(), PushError> {
        assert!(from <= bytes.len(), "a message begins within its bytes");
        if bytes.len() > self.message_bytes_max {
            return Err(PushError::TooLarge {
                bytes: bytes.len(),
                max: self.message_bytes_max,
            });
        }
        if self.messages.len() == MESSAGES_QUEUED_MAX {
            return Err(PushError::QueueFull);
        }
        let total_bytes = (bytes.len() - from) as u64;
        let message = Outgoing {
            kind,
            bytes,
            from,
            first_seq: self.end,
        };
        self.end = self
            .end
            .checked_add(message.chunks())
            .ok_or(PushError::Exhausted)?;
        self.messages.push_back(message);
        self.progress.total_bytes += total_bytes;
        Ok(())
    }

    /// Writes one chunk frame into `out` and tells its length, if one is due; call until none is.
    ///
    /// A chunk is sent again one and a half `rtt` and 50 ms after it was sent last: the acks ride on packets
    /// that leave in a rhythm of their own. When nothing at all was heard for twice that time, only the
    /// oldest chunk is repeated, so that a dead link is not flooded. The same holds once a window of chunks was repeated, and four for
    /// each that arrived: a peer that acknowledges a byte at a time gets little. Costs O([`WINDOW_CHUNKS`]) while busy.
    ///
    /// # Panics
    /// If `out` is shorter than [`FRAME_BYTES_MAX`].
    #[must_use = "the frame in `out` counts as sent"]
    pub fn poll(&mut self, now: Duration, rtt: Duration, out: &mut [u8]) -> Option<usize> {
        assert!(
            out.len() >= FRAME_BYTES_MAX,
            "a chunk frame needs {FRAME_BYTES_MAX} bytes"
        );
        if self.is_idle() || self.paid_until > now.saturating_add(BURST) {
            return None;
        }
        let seq = self.due(now, resend_after(rtt))?;
        let frame_bytes = self.write(seq, out);
        self.pay(now, frame_bytes);
        Some(frame_bytes)
    }

    /// The earliest moment from `now` on at which [`poll`](LaneSender::poll) has a chunk if no ack comes until then; a moment
    /// before `now` means now. `None`: it waits for an ack, or has nothing to send.
    #[must_use]
    pub fn next_due(&self, now: Duration, rtt: Duration) -> Option<Duration> {
        let resend_after = resend_after(rtt);
        let paid = self.paid_until.saturating_sub(BURST);
        // Without acks for this long nothing but the oldest chunk is sent.
        let silent_after = match self.window.is_empty() {
            true => Duration::MAX,
            false => self.heard_at + resend_after * 2,
        };
        let sent = self.window.iter().enumerate();
        let resends = sent.filter_map(|(distance, flight)| match flight {
            Flight::SentAt(at) => Some((distance, (*at + resend_after).max(paid))),
            Flight::Acked => None,
        });
        let resends = resends.filter(|(distance, at)| {
            *distance == 0 || self.repeats > 0 && now.max(*at) <= silent_after
        });
        let is_full = self.window.len() == WINDOW_CHUNKS as usize;
        let has_new = self.unsent < self.end && !is_full && now.max(paid) <= silent_after;
        resends
            .map(|(_, at)| at)
            .chain(has_new.then_some(paid))
            .min()
    }

    /// Whether [`handle_ack`](LaneSender::handle_ack) would take this ack.
    ///
    /// # Errors
    /// [`LaneError::AckOfUnsent`].
    pub fn check_ack(&self, ack: &LaneAck) -> Result<(), LaneError> {
        let end = u64::from(ack.next) + ack.beyond().last().map_or(0, |last| u64::from(last) + 1);
        if end > u64::from(self.unsent) {
            return Err(LaneError::AckOfUnsent {
                seq: end - 1,
                end: self.unsent,
            });
        }
        Ok(())
    }

    /// Takes what the receiver has.
    ///
    /// # Errors
    /// [`LaneError::AckOfUnsent`]: the peer broke the protocol; close its session.
    pub fn handle_ack(&mut self, now: Duration, ack: &LaneAck) -> Result<(), LaneError> {
        self.check_ack(ack)?;
        self.heard_at = self.heard_at.max(now);
        if ack.next < self.base {
            return Ok(()); // an old one, overtaken on its way
        }
        let mut arrived = 0;
        while self.base < ack.next {
            arrived += u32::from(self.window.front() != Some(&Flight::Acked));
            self.retire();
        }
        for distance in ack.beyond() {
            let flight = &mut self.window[distance as usize];
            arrived += u32::from(*flight != Flight::Acked);
            *flight = Flight::Acked;
        }
        let earned = REPEATS_PER_ARRIVAL * arrived;
        self.repeats = (self.repeats + earned).min(WINDOW_CHUNKS);
        // The oldest stays open whatever was said of it: its resend is what asks for an ack that got lost.
        if let Some(oldest @ Flight::Acked) = self.window.front_mut() {
            *oldest = Flight::SentAt(now);
        }
        Ok(())
    }

    /// Whether every message is acknowledged.
    #[must_use]
    pub fn is_idle(&self) -> bool {
        self.base == self.end
    }

    /// All bytes of the oldest message of this kind that is not acknowledged yet.
    #[must_use]
    pub fn unfinished(&self, kind: u8) -> Option<Arc<[u8]>> {
        let message = self.messages.iter().find(|message| message.kind == kind);
        message.map(|message| message.bytes.clone())
    }

    /// How far the messages have come; all three only grow, and are equal when the lane is idle.
    #[must_use]
    pub fn progress(&self) -> Sending {
        self.progress
    }

    /// Bytes that the receiver has, in order or not. May go back by a chunk. Costs O([`WINDOW_CHUNKS`]) while busy.
    #[must_use]
    pub fn arrived_bytes(&self) -> u64 {
        let acked = self.window.iter().zip(self.base..);
        let acked = acked.filter(|(flight, _)| **flight == Flight::Acked);
        self.progress.acked_bytes + acked.map(|(_, seq)| self.data_bytes(seq)).sum::<u64>()
    }

    /// The chunk to send now: one that is overdue, oldest first, else a new one. Notes it as sent.
    fn due(&mut self, now: Duration, resend_after: Duration) -> Option<u32> {
        if self.window.is_empty() {
            self.heard_at = now;
        }
        let is_silent = now.saturating_sub(self.heard_at) > resend_after * 2;
        let repeats_oldest_alone = is_silent || self.repeats == 0;
        let eligible = match repeats_oldest_alone {
            true => 1,
            false => self.window.len(),
        };
        let is_overdue = |flight: &&mut Flight| match **flight {
            Flight::SentAt(at) => now.saturating_sub(at) >= resend_after,
            Flight::Acked => false,
        };
        let overdue = self
            .window
            .iter_mut()
            .take(eligible)
            .enumerate()
            .find(|(_, f)| is_overdue(f));
        if let Some((distance, flight)) = overdue {
            *flight = Flight::SentAt(now);
            self.repeats -= u32::from(distance > 0);
            return Some(self.base + distance as u32);
        }
        if is_silent || self.unsent == self.end || self.window.len() == WINDOW_CHUNKS as usize {
            return None;
        }
        let seq = self.unsent;
        self.window.push_back(Flight::SentAt(now));
        self.unsent += 1;
        self.progress.sent_bytes += self.data_bytes(seq);
        Some(seq)
    }

    fn pay(&mut self, now: Duration, bytes: usize) {
        let cost_ns = bytes as u64 * 1_000_000_000 / u64::from(self.rate_bytes_per_s);
        self.paid_until = self.paid_until.max(now) + Duration::from_nanos(cost_ns);
    }

    /// Counts the oldest chunk as acknowledged for good, and drops its message with its last one.
    fn retire(&mut self) {
        self.progress.acked_bytes += self.data_bytes(self.base);
        self.window.pop_front();
        self.base += 1;
        let done = |m: &Outgoing| m.first_seq + m.chunks() == self.base;
        if self.messages.front().is_some_and(done) {
            self.messages.pop_front();
        }
    }

    fn message(&self, seq: u32) -> &Outgoing {
        let after = self
            .messages
            .partition_point(|message| message.first_seq <= seq);
        &self.messages[after - 1]
    }

    fn data_bytes(&self, seq: u32) -> u64 {
        self.message(seq).chunk(seq).1.len() as u64
    }

    fn write(&self, seq: u32, out: &mut [u8]) -> usize {
        let (head, data) = self.message(seq).chunk(seq);
        let mut at = 0;
        for part in [&varint::encode(u64::from(seq)), &head[..], data] {
            out[at..at + part.len()].copy_from_slice(part);
            at += part.len();
        }
        at
    }
}

/// How long a chunk waits for its ack before it is sent again.
fn resend_after(rtt: Duration) -> Duration {
    rtt + rtt / 2 + Duration::from_millis(50)
}

impl Outgoing {
    fn data(&self) -> &[u8] {
        &self.bytes[self.from..]
    }

    /// What stands before the data in the first chunk: the kind, and the length of the message.
    fn head(&self) -> Head {
        let mut head = Head::new();
        head.push(self.kind);
        head.extend(varint::encode(self.data().len() as u64));
        head
    }

    /// The data in the first chunk, in bytes.
    fn first_bytes(&self) -> usize {
        self.data().len().min(CHUNK_BYTES_MAX - self.head().len())
    }

    fn chunks(&self) -> u32 {
        let others = (self.data().len() - self.first_bytes()).div_ceil(CHUNK_BYTES_MAX);
        u32::try_from(1 + others).unwrap_or(u32::MAX)
    }

    /// The head and the data of one of this message's chunks.
    fn chunk(&self, seq: u32) -> (Head, &[u8]) {
        let first_bytes = self.first_bytes();
        match (seq - self.first_seq) as usize {
            0 => (self.head(), &self.data()[..first_bytes]),
            n => {
                let rest = &self.data()[first_bytes + (n - 1) * CHUNK_BYTES_MAX..];
                (Head::new(), &rest[..rest.len().min(CHUNK_BYTES_MAX)])
            }
        }
    }
}

#[cfg(test)]
impl LaneSender {
    /// An idle lane that has sent so many chunks.
    pub(super) fn skip_to(&mut self, seq: u32) {
        (self.base, self.unsent, self.end) = (seq, seq, seq);
    }
}
