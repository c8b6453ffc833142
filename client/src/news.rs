//! [`MatchNews`]: what the server tells of the match beside its frames: how far it is, whom it waits for, who is there.
//!
//! Invariant: only the newest packet is heeded, so nothing here goes back by a packet that was overtaken.

use twinstep_core::{PlayerSet, Tick};
use twinstep_protocol::packet::company::CompanyTold;
use twinstep_protocol::packet::hello::Names;

use crate::company::Company;

/// See the [module](self).
#[derive(Default)]
pub(crate) struct MatchNews {
    /// The server's next tick to seal.
    next_seal: Tick,
    /// The players that the match waits for.
    waiting: PlayerSet,
    company: Company,
    /// The tick of the first world.
    began_at: Tick,
}

impl MatchNews {
    /// The session begins to play, from the world of this tick.
    pub(crate) fn begin(&mut self, at: Tick) {
        (self.next_seal, self.began_at) = (at, at);
    }

    /// It goes on from another world, or over another path: what the server seals next is told anew.
    pub(crate) fn go_on_from(&mut self, at: Tick) {
        self.next_seal = at;
    }

    /// The newest packet tells this.
    pub(crate) fn note(
        &mut self,
        next_seal: Tick,
        waiting: PlayerSet,
        company: Option<&CompanyTold>,
    ) {
        (self.next_seal, self.waiting) = (next_seal, waiting);
        if let Some(company) = company {
            self.company.note(company);
        }
    }

    /// Players are called so; all names that are known.
    pub(crate) fn rename(&mut self, names: Names) -> &Names {
        self.company.rename(names);
        self.company.names()
    }

    /// The server's next tick to seal, as last told.
    pub(crate) fn next_seal(&self) -> Tick {
        self.next_seal
    }

    /// The players that the match waits for.
    pub(crate) fn waiting(&self) -> PlayerSet {
        self.waiting
    }

    /// Who else is there.
    pub(crate) fn company(&self) -> &Company {
        &self.company
    }

    /// Ticks that a session has stepped whose authority is at `tick`, and all that it steps until it is in the match.
    pub(crate) fn caught_up(&self, tick: Tick) -> (u32, u32) {
        (
            tick - self.began_at,
            tick.max(self.next_seal) - self.began_at,
        )
    }
}
