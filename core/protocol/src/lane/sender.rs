//! The sending half of the lane: splits messages into chunks and resends these until they are acknowledged.

use alloc::collections::VecDeque;
use alloc::sync::Arc;
use core::time::Duration;

use arrayvec::ArrayVec;

use super::format::{CHUNK_BYTES_MAX, FRAME_BYTES_MAX, LaneAck, LaneError, WINDOW_CHUNKS};
use crate::varint;
use twinstep_core::bounds::BULK_BYTES_PER_SECOND;

/// The number of messages that can wait for their acks.
pub const MESSAGES_QUEUED_MAX: usize = 64;

/// The allowed burst after a pause, as the time that it takes at the full rate: about two and a half ticks at 60 Hz.
const BURST: Duration = Duration::from_millis(40);

/// The maximum number of chunks resent per chunk that arrives. A connection that loses half of all chunks needs one.
const REPEATS_PER_ARRIVAL: u32 = 4;

#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum PushError {
    #[error("expected a message of at most {max} bytes, got {bytes}")]
    TooLarge { bytes: usize, max: usize },
    #[error("expected at most {MESSAGES_QUEUED_MAX} messages to wait; push again after acks")]
    QueueFull,
    #[error("the lane's sequence numbers are used up; open a new session")]
    Exhausted,
}

/// Counts message bytes since the lane was opened, without headers and resends.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Sending {
    pub sent_bytes: u64,
    /// Bytes acknowledged in order.
    pub acked_bytes: u64,
    pub total_bytes: u64,
}

#[derive(Clone, Debug)]
pub struct LaneSender {
    message_bytes_max: usize,
    rate_bytes_per_s: u32,
    /// Messages with chunks not yet acknowledged in order, oldest first.
    messages: VecDeque<Outgoing>,
    base: u32,
    /// The first chunk that has not been sent; at most `base + WINDOW_CHUNKS`.
    unsent: u32,
    end: u32,
    /// The chunks `base..unsent`.
    window: VecDeque<ChunkState>,
    /// The time by which the bytes sent so far would have passed at the full rate.
    paid_until: Duration,
    /// The time when the last ack arrived, or the lane last stopped being idle.
    last_ack_at: Duration,
    /// The number of chunks that may be resent, not counting the oldest; at most a window.
    repeats: u32,
    progress: Sending,
}

type Head = ArrayVec<u8, { 1 + varint::BYTES_MAX }>;

#[derive(Clone, Debug)]
struct Outgoing {
    kind: u8,
    bytes: Arc<[u8]>,
    /// The message's start offset. The receiver has the bytes before it.
    from: usize,
    first_seq: u32,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum ChunkState {
    SentAt(Duration),
    Acked,
}

impl LaneSender {
    /// A sender of messages of at most `message_bytes_max` bytes, at [`BULK_BYTES_PER_SECOND`].
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
            last_ack_at: Duration::ZERO,
            repeats: WINDOW_CHUNKS,
            progress: Sending::default(),
        }
    }

    /// Sets the limit of bytes per second, including resends; at least 1.
    pub fn set_rate(&mut self, bytes_per_s: u32) {
        self.rate_bytes_per_s = bytes_per_s.max(1);
    }

    /// Appends a message to the queue. The bytes are shared, so one world can serve many sessions.
    ///
    /// # Errors
    /// [`PushError`] if the message is too large, the queue is full, or the lane is exhausted. In that case the message
    /// is not queued.
    pub fn push(&mut self, kind: u8, bytes: Arc<[u8]>) -> Result<(), PushError> {
        self.push_rest(kind, bytes, 0)
    }

    /// Like [`push`](LaneSender::push), but sends only the bytes starting at `from`, for a receiver that already
    /// [has](super::LaneReceiver::go_on_with) the bytes before.
    ///
    /// # Errors
    /// The errors of [`push`](LaneSender::push).
    ///
    /// # Panics
    /// If `from` is beyond the end.
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

    /// Writes one chunk frame into `out` if a chunk is due, and returns the frame's length. Call this until it returns
    /// `None`.
    ///
    /// A chunk is resent one and a half `rtt` plus 50 ms after it was last sent, because acks wait for the peer's next
    /// packet. After twice that time without an ack, only the oldest chunk is resent, so that a dead link is not
    /// flooded. The number of resends is limited to one window plus four for each chunk that arrives, so a peer that
    /// acknowledges one chunk at a time receives little. Costs O([`WINDOW_CHUNKS`]) while busy.
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

    /// The earliest time when [`poll`](LaneSender::poll) returns a chunk if no ack arrives before. A time before `now`
    /// means now. Returns `None` if the lane waits for an ack or is idle.
    #[must_use]
    pub fn next_due(&self, now: Duration, rtt: Duration) -> Option<Duration> {
        let resend_after = resend_after(rtt);
        let paid = self.paid_until.saturating_sub(BURST);
        // After this long without acks only the oldest chunk is resent.
        let silent_after = match self.window.is_empty() {
            // An empty window has no ack to wait for.
            true => Duration::MAX,
            false => self.last_ack_at + resend_after * 2,
        };
        let sent = self.window.iter().enumerate();
        let resends = sent.filter_map(|(distance, flight)| match flight {
            ChunkState::SentAt(at) => Some((distance, (*at + resend_after).max(paid))),
            ChunkState::Acked => None,
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

    /// Checks whether [`handle_ack`](LaneSender::handle_ack) would accept this ack.
    ///
    /// # Errors
    /// [`LaneError::AckOfUnsent`] if `ack` covers chunks never sent.
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

    /// Handles an ack from the receiver.
    ///
    /// # Errors
    /// [`LaneError::AckOfUnsent`] if `ack` covers chunks never sent. The peer broke the protocol: close its session.
    pub fn handle_ack(&mut self, now: Duration, ack: &LaneAck) -> Result<(), LaneError> {
        self.check_ack(ack)?;
        self.last_ack_at = self.last_ack_at.max(now);
        if ack.next < self.base {
            return Ok(()); // an old one, overtaken on its way
        }
        let mut arrived = 0;
        while self.base < ack.next {
            // Chunks acknowledged out of order were counted before.
            arrived += u32::from(self.window.front() != Some(&ChunkState::Acked));
            self.retire();
        }
        for distance in ack.beyond() {
            let flight = &mut self.window[distance as usize];
            arrived += u32::from(*flight != ChunkState::Acked);
            *flight = ChunkState::Acked;
        }
        let earned = REPEATS_PER_ARRIVAL * arrived;
        self.repeats = (self.repeats + earned).min(WINDOW_CHUNKS);
        // The oldest chunk stays open even if acknowledged: its resend requests a lost ack again.
        if let Some(oldest @ ChunkState::Acked) = self.window.front_mut() {
            *oldest = ChunkState::SentAt(now);
        }
        Ok(())
    }

    /// Returns `true` if every message has been acknowledged.
    #[must_use]
    pub fn is_idle(&self) -> bool {
        self.base == self.end
    }

    /// The oldest unfinished message of this kind, in full; `None` if there is none.
    #[must_use]
    pub fn unfinished(&self, kind: u8) -> Option<Arc<[u8]>> {
        let message = self.messages.iter().find(|message| message.kind == kind);
        message.map(|message| message.bytes.clone())
    }

    /// The progress of all messages. The three numbers only grow, and are equal when the lane is idle.
    #[must_use]
    pub fn progress(&self) -> Sending {
        self.progress
    }

    /// The number of bytes that the receiver has, in order or not. It can shrink by a chunk. Costs
    /// O([`WINDOW_CHUNKS`]) while busy.
    #[must_use]
    pub fn arrived_bytes(&self) -> u64 {
        let acked = self.window.iter().zip(self.base..);
        let acked = acked.filter(|(flight, _)| **flight == ChunkState::Acked);
        self.progress.acked_bytes + acked.map(|(_, seq)| self.data_bytes(seq)).sum::<u64>()
    }

    /// Returns the chunk to send now and marks it as sent: the oldest overdue one, otherwise a new one.
    fn due(&mut self, now: Duration, resend_after: Duration) -> Option<u32> {
        if self.window.is_empty() {
            // After idleness, silence is counted from now.
            self.last_ack_at = now;
        }
        let is_silent = now.saturating_sub(self.last_ack_at) > resend_after * 2;
        let repeats_oldest_alone = is_silent || self.repeats == 0;
        let eligible = match repeats_oldest_alone {
            true => 1,
            false => self.window.len(),
        };
        let is_overdue = |flight: &&mut ChunkState| match **flight {
            ChunkState::SentAt(at) => now.saturating_sub(at) >= resend_after,
            ChunkState::Acked => false,
        };
        let overdue = self
            .window
            .iter_mut()
            .take(eligible)
            .enumerate()
            .find(|(_, f)| is_overdue(f));
        if let Some((distance, flight)) = overdue {
            *flight = ChunkState::SentAt(now);
            self.repeats -= u32::from(distance > 0);
            return Some(self.base + distance as u32);
        }
        if is_silent || self.unsent == self.end || self.window.len() == WINDOW_CHUNKS as usize {
            return None;
        }
        let seq = self.unsent;
        self.window.push_back(ChunkState::SentAt(now));
        self.unsent += 1;
        self.progress.sent_bytes += self.data_bytes(seq);
        Some(seq)
    }

    fn pay(&mut self, now: Duration, bytes: usize) {
        let cost_ns = bytes as u64 * 1_000_000_000 / u64::from(self.rate_bytes_per_s);
        self.paid_until = self.paid_until.max(now) + Duration::from_nanos(cost_ns);
    }

    /// Counts the oldest chunk as acknowledged, and drops its message after the last chunk.
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

fn resend_after(rtt: Duration) -> Duration {
    rtt + rtt / 2 + Duration::from_millis(50)
}

impl Outgoing {
    fn data(&self) -> &[u8] {
        &self.bytes[self.from..]
    }

    /// The bytes before the data in the first chunk: the kind and the length of the message.
    fn head(&self) -> Head {
        let mut head = Head::new();
        head.push(self.kind);
        head.extend(varint::encode(self.data().len() as u64));
        head
    }

    fn first_bytes(&self) -> usize {
        self.data().len().min(CHUNK_BYTES_MAX - self.head().len())
    }

    fn chunks(&self) -> u32 {
        let others = (self.data().len() - self.first_bytes()).div_ceil(CHUNK_BYTES_MAX);
        u32::try_from(1 + others).unwrap_or(u32::MAX)
    }

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
    /// Makes this an idle lane that has sent all chunks before `seq`.
    pub(super) fn skip_to(&mut self, seq: u32) {
        (self.base, self.unsent, self.end) = (seq, seq, seq);
    }
}
