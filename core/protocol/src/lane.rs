//! The lane for control messages and bulk data (worlds): it delivers whole messages, reliably and in order, over
//! packets that may be lost, duplicated or reordered.
//!
//! Turns and inputs do not use the lane: they are repeated until acknowledged. The lane is for rare or large
//! messages. It consists of two state machines without I/O or clock; another module carries their frames.
//!
//! ```text
//!  push(kind, bytes)                                              poll_message() -> Message
//!        │  cut into chunks, each with a sequence number               ▲  joined in order
//!        ▼                                                             │
//!  LaneSender ── poll(now, rtt, out) ──► chunk frame ── handle(frame) ─► LaneReceiver
//!        ▲                                                             │
//!        └──── handle_ack(now, ack) ◄── LaneAck ◄──── poll_ack() ──────┘
//!
//!  chunk frame   varint sequence · body of 1..=1,000 bytes, to the end of the frame
//!  body          the first of a message: kind u8 · varint length · data      the others: data
//!  ack           varint next · u8 length of mask · mask (bit i: chunk next + 1 + i has arrived)
//! ```
//!
//! Invariants: a chunk's body never changes, so all copies of it are equal. Sequence numbers are `u32`; after the last
//! one (4 TB) the lane ends rather than wraps. The oldest chunk stays open until an ack is past it, so any loss, even
//! of acks, is followed by a resend. An unfetched message stalls the window, so a receiver's memory is bounded by its
//! limits, even if the peer is hostile. An idle lane is silent.

mod format;
mod receiver;
mod sender;

pub use format::{CHUNK_BYTES_MAX, FRAME_BYTES_MAX, LaneAck, LaneError, WINDOW_CHUNKS};
pub use receiver::{LaneReceiver, Message, TransferProgress};
pub use sender::{LaneSender, MESSAGES_QUEUED_MAX, PushError, Sending};

#[cfg(test)]
mod tests;
