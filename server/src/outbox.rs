//! The outputs of a match, in the order in which they must be executed.
//!
//! Law **Journal first**: a turn's record is queued before the packets that depend on it, and the host keeps that
//! order. All bytes are in one reused buffer.

use std::collections::VecDeque;
use std::ops::Range;
use twinstep_protocol::lineage::Ruling;

use twinstep_core::Tick;
use twinstep_core::bounds::PACKET_BYTES_MAX;
use twinstep_protocol::packet::closed::CloseCode;

use crate::encoding::{Saving, WorldEncoding};
use twinstep_protocol::identity::{Identity, SessionId};

/// An action that the match requests from its host.
#[expect(missing_docs, reason = "the names are self-explanatory")]
pub enum Output<'a, O> {
    /// Append these bytes to the journal, before anything after this output is sent.
    Journal(&'a [u8]),
    /// Send this packet to a session.
    Packet {
        peer: SessionId,
        /// The packet, at most `PACKET_BYTES_MAX` bytes.
        bytes: &'a [u8],
    },
    /// Run this job on another thread, and give its result (`None` if it panics) to `Match::complete`.
    Job {
        /// The id for `Match::complete`.
        id: JobId,
        work: Box<dyn FnOnce() -> O + Send>,
    },
    /// Encode this world on another thread, and give the result to `Match::hand_world`. Only for hosts that called
    /// `Match::encode_aside`.
    Encode(WorldEncoding),
    /// Run this save on another thread, write its bytes where saved games belong, and report the result to
    /// `Match::hand_saved`. Only for hosts that called `Match::offer_saves`.
    Save(Saving),
    /// The session needs a reconnect ticket: pass one to `Match::hand_ticket`. Hosts without tickets ignore this.
    Ticket { peer: SessionId },
    /// Some tickets of an identity are no longer accepted. The journal records this; a host may also record it
    /// elsewhere, or ignore it.
    Outdated { identity: Identity, ruling: Ruling },
    /// The match accepted the session: its hello is compatible, and it has its seats. A host limits the number of
    /// sessions that are not accepted yet, and the time that each may take.
    Settled { peer: SessionId },
    /// An identity no longer has a seat. Until then, the host reserves a connection for the identity's return.
    Unseated { identity: String },
    /// A client's world differed at this tick: fold the journal to this tick on another thread with `Folded::compute`,
    /// and pass the result to `Match::hand_evidence`. Hosts without a journal ignore this.
    Evidence { peer: SessionId, tick: Tick },
    /// The session is over: its transport may be closed. The session's last packets were queued before this.
    Closed { peer: SessionId, code: CloseCode },
}

/// The id of a resolver's job.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct JobId(pub u64);

/// The queue of outputs. Journal and packet bytes share one buffer; the queue holds each output's range in it.
pub(crate) struct Outbox<O> {
    pub(crate) bytes: Vec<u8>,
    outputs: VecDeque<(Output<'static, O>, Range<usize>)>,
}

impl<O> Outbox<O> {
    pub(crate) fn new() -> Self {
        Outbox {
            bytes: Vec::new(),
            outputs: VecDeque::new(),
        }
    }

    pub(crate) fn push(&mut self, output: Output<'static, O>) {
        self.outputs.push_back((output, 0..0));
    }

    pub(crate) fn encode(&mut self, world: Option<WorldEncoding>) {
        if let Some(world) = world {
            self.push(Output::Encode(world));
        }
    }

    /// Queues the buffer's bytes from `start` onwards as a piece of the journal.
    pub(crate) fn journal(&mut self, start: usize) {
        let range = start..self.bytes.len();
        self.outputs.push_back((Output::Journal(&[]), range));
    }

    /// Queues a packet of at most `room` bytes that `write` builds. `write` returns the packet's length, or `None` to
    /// send no packet. Returns `true` if a packet was queued.
    pub(crate) fn packet(
        &mut self,
        peer: SessionId,
        room: usize,
        write: impl FnOnce(&mut [u8]) -> Option<usize>,
    ) -> bool {
        let start = self.bytes.len();
        self.bytes.extend_from_slice(&[0; PACKET_BYTES_MAX][..room]);
        let len = write(&mut self.bytes[start..]);
        self.bytes.truncate(start + len.unwrap_or(0));
        if let Some(len) = len {
            let packet = Output::Packet { peer, bytes: &[] };
            self.outputs.push_back((packet, start..start + len));
        }
        len.is_some()
    }

    pub(crate) fn poll(&mut self) -> Option<Output<'_, O>> {
        let Some((output, range)) = self.outputs.pop_front() else {
            // Only when the queue is empty: until then ranges point into the buffer.
            self.bytes.clear();
            return None;
        };
        Some(match output {
            Output::Journal(_) => Output::Journal(&self.bytes[range]),
            Output::Packet { peer, .. } => Output::Packet {
                peer,
                bytes: &self.bytes[range],
            },
            whole => whole,
        })
    }
}
