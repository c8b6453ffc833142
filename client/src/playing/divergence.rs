//! [`Divergence`]: since when the authority is not the server's world, and what is kept to say where they differ.
//!
//! Invariant: the first tick that differed counts until a heal. The authority goes on all the same, so that the player
//! can: what it shows is nearly right, and a heal comes.

use twinstep_core::world::World;
use twinstep_core::{Simulation, Tick};

/// See the [module](self).
pub(crate) struct Divergence<S: Simulation> {
    since: Option<Tick>,
    /// It differs so much that it cannot go on, or has gone on for too long.
    stands: bool,
    /// Our world of the tick that differed first, until the server's is here to compare.
    evidence: Option<World<S>>,
    /// The newest tick whose frame our step panicked at though nothing differed; a heal does not clear it.
    broke: Option<Tick>,
}

impl<S: Simulation> Divergence<S> {
    /// Nothing differs.
    pub(super) fn none() -> Self {
        Divergence {
            since: None,
            stands: false,
            evidence: None,
            broke: None,
        }
    }

    /// The first tick that differs, until the authority is healed.
    pub(crate) fn since(&self) -> Option<Tick> {
        self.since
    }

    /// Whether the authority differs.
    pub(super) fn is_there(&self) -> bool {
        self.since.is_some()
    }

    /// Whether the authority waits where it is for its heal.
    pub(super) fn stands(&self) -> bool {
        self.stands
    }

    /// Our world of `tick` is not the server's: what it is now is kept as evidence. What is kept already stays: the
    /// server's world of that tick is on its way.
    pub(super) fn begin(&mut self, tick: Tick, ours: &World<S>) {
        if self.since.is_none() {
            self.since = Some(tick);
            self.evidence.get_or_insert_with(|| ours.clone());
        }
    }

    /// Our step panicked at the server's frame of `tick`, and there is no world to compare. Returns `true` if a heal can
    /// help: nothing of the kind happened within `again` ticks.
    pub(super) fn record_broken(&mut self, tick: Tick, again: u32) -> bool {
        self.stands = true;
        if self.since.is_some() {
            // A world that differs may panic where the server's does not.
            return true;
        }
        self.since = Some(tick);
        let before = self.broke.replace(tick);
        before.is_none_or(|before| tick - before > again && before <= tick)
    }

    /// The authority goes on no farther.
    pub(super) fn stand(&mut self) {
        self.stands = true;
    }

    /// The authority is the server's world again. The evidence stays: the server's is asked for.
    pub(super) fn heal(&mut self) {
        (self.since, self.stands) = (None, false);
    }

    /// Our world of the tick that differed.
    pub(crate) fn evidence(&self) -> Option<&World<S>> {
        self.evidence.as_ref()
    }

    /// The same, to be compared; it is not kept any more.
    pub(crate) fn take_evidence(&mut self) -> Option<World<S>> {
        self.evidence.take()
    }

    /// There is nothing to compare it with.
    pub(crate) fn forget_evidence(&mut self) {
        self.evidence = None;
    }
}
