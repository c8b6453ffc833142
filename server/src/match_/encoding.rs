//! Whole worlds become bytes beside the match: all of a large world takes longer than a tick should wait.
//!
//! ```text
//!  the journal wants a world, somebody joins, delayed spectators will want one
//!    └▶ a copy of the world at the beginning of its turn ─▶ Output::Encode ─▶ the host encodes it, on a thread
//!        ┌───────────────────────────── Match::hand_world ◀──────────────────────────────┘
//!        ├▶ the journal, if the next tick was not stepped meanwhile: a world stands before the frames that follow it
//!        ├▶ who joins within a second: the frames since lead on from there
//!        └▶ delayed spectators
//! ```
//!
//! Small worlds are encoded here and now, and so are all of them by a host that did not say that it does this
//! ([`Match::encode_aside`]). A world of evidence or of a heal is, too: these are for who is wrong, and rare.
//!
//! Invariant: what is not handed back is missed by nobody for long: after a few turns, or seconds, the match does it itself.

use twinstep_core::Simulation;

use super::Match;
use crate::encoding::Encoded;

impl<S: Simulation> Match<S> {
    /// From now on worlds of more than so many bytes are encoded by the host ([`Output::Encode`](crate::Output::Encode)),
    /// which hands back what became of each.
    pub fn encode_aside(&mut self, over_bytes: usize) {
        self.snapshots.aside.over = Some(over_bytes);
    }

    /// What became of an [`Output::Encode`](crate::Output::Encode), before the next [`advance`](Match::advance) if possible:
    /// the journal has room for it between turns only.
    ///
    /// # Panics
    /// If the world's `Serialize` did: with what it said.
    pub fn hand_world(&mut self, encoded: Encoded) {
        let Encoded { tick, world } = encoded;
        if !self.snapshots.aside.end(tick) {
            return;
        }
        match world {
            Err(panic) => panic!("{panic}"),
            Ok(None) => self
                .snapshots
                .note_too_large(&self.world, &mut self.diagnostics),
            Ok(Some(world)) => {
                self.journal
                    .late_world(tick, &world.bytes, &mut self.outbox);
                let (now, spectators) = (self.clock.now, self.config.spectators);
                let diagnostics = &mut self.diagnostics;
                self.snapshots
                    .put(world, now, spectators, &self.world, diagnostics);
            }
        }
    }
}
