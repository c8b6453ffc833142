//! The lane for control messages and bulk (worlds): whole messages, reliable and in order, over packets
//! that get lost, doubled and reordered.
//!
//! Turns and inputs do not pass here: they repeat themselves until acknowledged. The lane is for what is
//! rare or large. It is two state machines without I/O or clock; another module carries their frames.
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
//!  ack           varint next · u8 length of mask · mask (bit i: chunk next + 1 + i has come)
//! ```
//!
//! Invariants: a chunk's body never changes, so any copy of it will do. Sequence numbers are `u32` and end
//! rather than wrap (4 TB). The oldest chunk stays open until an ack is past it, so any loss, of acks too, ends
//! in a resend. A message that is not fetched holds up the window, so a receiver's memory is bounded by its
//! limits, whoever sends. A lane with nothing to say says nothing.

mod receiver;
mod sender;
mod words;

pub use receiver::{LaneReceiver, Message, Receiving};
pub use sender::{LaneSender, MESSAGES_QUEUED_MAX, PushError, Sending};
pub use words::{CHUNK_BYTES_MAX, FRAME_BYTES_MAX, LaneAck, LaneError, WINDOW_CHUNKS};

#[cfg(test)]
mod tests;
