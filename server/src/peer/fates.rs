//! [`Fates`]: the results of a client's orders, repeated in every packet until the client has acknowledged one.
//!
//! ```text
//!  refuse, acknowledge ─▶ open ─ sent in packet n ─▶ sent ─ a packet ≥ n with fates is acknowledged ─▶ forgotten
//! ```
//!
//! Invariant: a fate is in every packet with fates from its first one on. So an ack of any newer one is enough, and no
//! timer is needed.

use twinstep_core::bounds::{COMMANDS_OPEN_MAX, REFUSALS_PER_PACKET};
use twinstep_protocol::link::LinkState;
use twinstep_protocol::packet::refusal::OrderRefusal;

/// For this many recent packets it is known whether they held fates.
const TELLINGS: usize = 256;

/// An order that will not run, repeated until the client has acknowledged that.
#[derive(Debug)]
struct OpenRefusal {
    refusal: OrderRefusal,
    /// The first packet with it; 0: none yet.
    told_in: u32,
}

#[derive(Debug)]
pub(crate) struct Fates {
    refusals: Vec<OpenRefusal>,
    /// `Some` while the client may not know the command acks, with the first packet that held them; 0: none yet.
    acks_told_in: Option<u32>,
    /// Which of the last packets held fates, by sequence. Packets of the lane do not.
    tellings: [bool; TELLINGS],
    /// The newest acknowledged packet that held fates.
    heard_telling: u32,
}

impl Fates {
    pub(crate) fn new() -> Fates {
        Fates {
            refusals: Vec::with_capacity(COMMANDS_OPEN_MAX),
            acks_told_in: None,
            tellings: [false; TELLINGS],
            heard_telling: 0,
        }
    }

    pub(crate) fn refuse(&mut self, refusal: OrderRefusal) {
        let order = |r: &OrderRefusal| (r.seat, r.claim, r.seq);
        let same = |open: &OpenRefusal| order(&open.refusal) == order(&refusal);
        if !self.refusals.iter().any(same) && self.refusals.len() < 2 * COMMANDS_OPEN_MAX {
            self.refusals.push(OpenRefusal {
                refusal,
                told_in: 0,
            });
        }
    }

    /// Commands arrived: the next packet repeats which ones are expected next.
    pub(crate) fn acknowledge(&mut self) {
        self.acks_told_in = Some(0);
    }

    /// Returns `true` if the client may not know which commands are expected next.
    pub(crate) fn owes_acks(&self) -> bool {
        self.acks_told_in.is_some()
    }

    /// The refusals of the next packet, oldest first.
    pub(crate) fn refusals(&self) -> impl Iterator<Item = OrderRefusal> {
        self.untold().take(REFUSALS_PER_PACKET)
    }

    /// Packet `seq` holds all fates that are due.
    pub(crate) fn note_telling(&mut self, seq: u32) {
        self.tellings[seq as usize % TELLINGS] = true;
        if self.acks_told_in == Some(0) {
            self.acks_told_in = Some(seq);
        }
        let told = self.refusals.iter_mut().take(REFUSALS_PER_PACKET);
        for refusal in told.filter(|r| r.told_in == 0) {
            refusal.told_in = seq;
        }
    }

    /// Packet `seq` holds no fates.
    pub(crate) fn note_silent(&mut self, seq: u32) {
        self.tellings[seq as usize % TELLINGS] = false;
    }

    /// Forgets the fates that the client has acknowledged.
    pub(crate) fn forget_heard(&mut self, link: &LinkState) {
        let acked = link.acked();
        if link.next_seq() - acked < TELLINGS as u32 && self.tellings[acked as usize % TELLINGS] {
            self.heard_telling = self.heard_telling.max(acked);
        }
        let heard = self.heard_telling;
        self.refusals
            .retain(|refusal| refusal.told_in == 0 || refusal.told_in > heard);
        if self
            .acks_told_in
            .is_some_and(|seq| seq != 0 && seq <= heard)
        {
            self.acks_told_in = None;
        }
    }

    pub(crate) fn untold(&self) -> impl Iterator<Item = OrderRefusal> + '_ {
        self.refusals.iter().map(|open| open.refusal)
    }
}
