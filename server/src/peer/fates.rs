//! [`Fates`]: what became of a client's orders, told in every packet until the client has heard it.
//!
//! ```text
//!  refuse, acknowledge ─▶ open ─ told in packet n ─▶ told ─ a telling packet ≥ n is acknowledged ─▶ forgotten
//! ```
//!
//! Invariant: a fate is told in every telling packet from the first one to carry it on. So any newer one that was heard
//! is enough, and nothing needs a timer.

use twinstep_core::bounds::{COMMANDS_OPEN_MAX, REFUSALS_PER_PACKET};
use twinstep_protocol::link::LinkState;
use twinstep_protocol::packet::refusal::OrderRefusal;

/// Packets of which it is remembered whether they told fates.
const TELLINGS: usize = 256;

/// An order that will not be executed, to be told until the client has heard it.
#[derive(Debug)]
struct OpenRefusal {
    refusal: OrderRefusal,
    /// The first packet that told it; 0: none yet.
    told_in: u32,
}

/// See the [module](self).
#[derive(Debug)]
pub(crate) struct Fates {
    refusals: Vec<OpenRefusal>,
    /// Command acks are told while the client may not know them: the first packet that did; 0: none yet.
    acks_told_in: Option<u32>,
    /// Which of the last packets told fates (those of the lane do not), by sequence.
    tellings: [bool; TELLINGS],
    /// The newest packet that told fates and was heard.
    heard_telling: u32,
}

impl Fates {
    /// There is nothing to tell.
    pub(crate) fn new() -> Fates {
        Fates {
            refusals: Vec::with_capacity(COMMANDS_OPEN_MAX),
            acks_told_in: None,
            tellings: [false; TELLINGS],
            heard_telling: 0,
        }
    }

    /// An order of a seat is refused.
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

    /// Commands came: it is told which ones are expected next, again if it was before.
    pub(crate) fn acknowledge(&mut self) {
        self.acks_told_in = Some(0);
    }

    /// Whether the client may not know which commands are expected next.
    pub(crate) fn owes_acks(&self) -> bool {
        self.acks_told_in.is_some()
    }

    /// The refusals of the next packet, oldest first.
    pub(crate) fn refusals(&self) -> impl Iterator<Item = OrderRefusal> {
        self.untold().take(REFUSALS_PER_PACKET)
    }

    /// Packet `seq` tells all that is due.
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

    /// Packet `seq` tells no fates.
    pub(crate) fn note_silent(&mut self, seq: u32) {
        self.tellings[seq as usize % TELLINGS] = false;
    }

    /// Forgets what the client has heard.
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

    /// The refusals that the client may not have heard of.
    pub(crate) fn untold(&self) -> impl Iterator<Item = OrderRefusal> + '_ {
        self.refusals.iter().map(|open| open.refusal)
    }
}
