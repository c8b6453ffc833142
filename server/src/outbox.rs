//! What a match wants done, in the order in which it must be done.
//!
//! Law **Journal first**: a turn's record is queued before the packets that tell of it, and whoever drains
//! the queue keeps its order. The bytes lie in one buffer that is used again.

use std::collections::VecDeque;
use std::ops::Range;
use twinstep_protocol::lineage::Ruling;

use twinstep_core::Tick;
use twinstep_core::bounds::PACKET_BYTES_MAX;
use twinstep_protocol::packet::closed::CloseCode;

use crate::encoding::Encoding;
use twinstep_protocol::identity::SessionId;

/// One thing to do.
pub enum Output<'a, O> {
    /// Append these bytes to the journal, before anything that follows is sent.
    Journal(&'a [u8]),
    /// Send this packet.
    Packet {
        /// To whom.
        peer: SessionId,
        /// What, at most `PACKET_BYTES_MAX` bytes.
        bytes: &'a [u8],
    },
    /// Run this job elsewhere, and give what it returns (`None` if it panics) to `Match::complete`.
    Job {
        /// Which one.
        id: JobId,
        /// The job.
        work: Box<dyn FnOnce() -> O + Send>,
    },
    /// Encode this world elsewhere, and give what becomes of it to `Match::hand_world`. Only asked of whoever called
    /// `Match::encode_aside`.
    Encode(Encoding),
    /// The session plays and is to get a ticket to return with: give it to `Match::hand_ticket`. A host without
    /// tickets passes over this.
    Ticket {
        /// For whom.
        peer: SessionId,
    },
    /// Some tickets of an identity let nobody in from now on. The journal has it; a host may write it down elsewhere too,
    /// or pass over this.
    Outdated {
        /// Whose.
        identity: String,
        /// Whether they are for a spectator.
        watches: bool,
        /// Which ones.
        ruling: Ruling,
    },
    /// The match takes the session in: its hello fits, and its seats are its own. A host keeps fewer places for sessions
    /// before this, and for less time.
    Settled {
        /// Which session.
        peer: SessionId,
    },
    /// An identity has no seat any more. Until then the host keeps a place for its return.
    Unseated {
        /// The identity whose seats are free.
        identity: String,
    },
    /// A client differed at this tick: fold the journal to it elsewhere, by `Folded::of`, and give that to
    /// `Match::hand_evidence`. A host without a journal passes over this.
    Evidence {
        /// Whose client.
        peer: SessionId,
        /// At which tick.
        tick: Tick,
    },
    /// The session is over: its transport may be closed. Packets for it were queued before this.
    Closed {
        /// Whose.
        peer: SessionId,
        /// Why.
        code: CloseCode,
    },
}

/// A job that a resolver handed out.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct JobId(pub u64);

/// The queue. Bytes of the journal and of packets lie in one buffer: an output that waits has none of its own, and where they
/// are stands beside it.
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

    /// Queues an output without bytes.
    pub(crate) fn push(&mut self, output: Output<'static, O>) {
        self.outputs.push_back((output, 0..0));
    }

    /// Queues a world to be encoded elsewhere, if there is one.
    pub(crate) fn encode(&mut self, world: Option<Encoding>) {
        if let Some(world) = world {
            self.push(Output::Encode(world));
        }
    }

    /// Queues what stands in the buffer from `start` on as a piece of the journal.
    pub(crate) fn journal(&mut self, start: usize) {
        let range = start..self.bytes.len();
        self.outputs.push_back((Output::Journal(&[]), range));
    }

    /// Queues a packet of at most `room` bytes that `write` builds; it returns how long it became, or
    /// `None` to send nothing.
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
