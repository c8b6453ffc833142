//! [`Fates`]: the results of a client's orders, repeated in every packet until the client has acknowledged a packet
//! with them.
//!
//! ```text
//!  refuse, acknowledge ─▶ open ─ sent in packet n ─▶ sent ─ a packet ≥ n with fates is acknowledged ─▶ forgotten
//! ```
//!
//! Invariant: after its first packet, a fate is in every packet with fates. So an ack of any newer packet with fates is
//! enough, without a timer.

use twinstep_core::bounds::{COMMANDS_OPEN_MAX, REFUSALS_PER_PACKET};
use twinstep_protocol::link::LinkState;
use twinstep_protocol::packet::refusal::OrderRefusal;

/// The number of recent packets for which it is recorded whether they held fates.
const PACKETS_KEPT: usize = 256;

#[derive(Debug)]
struct OpenRefusal {
    refusal: OrderRefusal,
    /// The first packet that held the refusal; 0 if no packet has held it yet.
    sent_in: u32,
}

#[derive(Debug)]
pub(crate) struct Fates {
    refusals: Vec<OpenRefusal>,
    /// `Some` while the client may not know the command acks: the first packet that held them; 0 if no packet has held
    /// them yet.
    acks_sent_in: Option<u32>,
    /// Whether each of the last packets held fates, by sequence number modulo `PACKETS_KEPT`. Lane packets hold none.
    held_fates: [bool; PACKETS_KEPT],
    /// The newest acknowledged packet that held fates.
    acked_packet: u32,
}

impl Fates {
    pub(crate) fn new() -> Fates {
        Fates {
            refusals: Vec::with_capacity(COMMANDS_OPEN_MAX),
            acks_sent_in: None,
            held_fates: [false; PACKETS_KEPT],
            acked_packet: 0,
        }
    }

    pub(crate) fn refuse(&mut self, refusal: OrderRefusal) {
        let order = |r: &OrderRefusal| (r.seat, r.claim, r.seq);
        let same = |open: &OpenRefusal| order(&open.refusal) == order(&refusal);
        if !self.refusals.iter().any(same) && self.refusals.len() < 2 * COMMANDS_OPEN_MAX {
            self.refusals.push(OpenRefusal {
                refusal,
                sent_in: 0,
            });
        }
    }

    /// Records that commands arrived, so that the next packet acknowledges them.
    pub(crate) fn acknowledge(&mut self) {
        self.acks_sent_in = Some(0);
    }

    pub(crate) fn owes_acks(&self) -> bool {
        self.acks_sent_in.is_some()
    }

    pub(crate) fn refusals(&self) -> impl Iterator<Item = OrderRefusal> {
        self.unacknowledged().take(REFUSALS_PER_PACKET)
    }

    pub(crate) fn record_sent(&mut self, seq: u32) {
        self.held_fates[seq as usize % PACKETS_KEPT] = true;
        if self.acks_sent_in == Some(0) {
            self.acks_sent_in = Some(seq);
        }
        let sent = self.refusals.iter_mut().take(REFUSALS_PER_PACKET);
        for refusal in sent.filter(|r| r.sent_in == 0) {
            refusal.sent_in = seq;
        }
    }

    pub(crate) fn record_without_fates(&mut self, seq: u32) {
        self.held_fates[seq as usize % PACKETS_KEPT] = false;
    }

    pub(crate) fn forget_acknowledged(&mut self, link: &LinkState) {
        let acked = link.acked();
        // The flags of older packets have been overwritten.
        if link.next_seq() - acked < PACKETS_KEPT as u32
            && self.held_fates[acked as usize % PACKETS_KEPT]
        {
            self.acked_packet = self.acked_packet.max(acked);
        }
        let acknowledged = self.acked_packet;
        self.refusals
            .retain(|refusal| refusal.sent_in == 0 || refusal.sent_in > acknowledged);
        if self
            .acks_sent_in
            .is_some_and(|seq| seq != 0 && seq <= acknowledged)
        {
            self.acks_sent_in = None;
        }
    }

    pub(crate) fn unacknowledged(&self) -> impl Iterator<Item = OrderRefusal> + '_ {
        self.refusals.iter().map(|open| open.refusal)
    }
}
