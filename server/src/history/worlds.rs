//! [`Worlds`]: the worlds of the match's last ticks, without a copy for each tick.
//!
//! ```text
//!  kept         ├───────────────┼───────────────┼───────────────┼─────── now     one every APART ticks
//!  requested        ·     ·                                                     folded from the one before, then kept too
//! ```
//!
//! A small world is kept every tick, since a fold would cost more than the copy. A larger world is kept rarely, and a
//! request for another tick costs a copy and at most [`APART`] − 1 steps. A requested world stays as long as the
//! others. So if a game's hooks read an earlier world every tick, this costs one copy and one step a tick, and the
//! memory of the requested worlds. For any other game, five worlds are kept.

use std::collections::VecDeque;
use std::sync::OnceLock;

use twinstep_core::bounds::HISTORY;
use twinstep_core::world::World;
use twinstep_core::{Simulation, Tick};

/// The distance between kept worlds in ticks if not every world is kept. A fold takes fewer steps than this.
pub const APART: u32 = 16;

pub(super) struct Worlds<S: Simulation> {
    /// In tick order. The first world is at or before the oldest tick that can be requested. If all worlds are kept,
    /// the memory of the first one is reused for the newest one every tick. Worlds are boxed so that the queue moves
    /// pointers only.
    kept: VecDeque<Box<World<S>>>,
    /// Requested worlds, indexed by tick modulo [`HISTORY`].
    looked_at: Vec<OnceLock<Box<World<S>>>>,
}

impl<S: Simulation> Worlds<S> {
    pub(super) fn new() -> Self {
        Worlds {
            kept: VecDeque::with_capacity(HISTORY as usize + 1),
            looked_at: (0..HISTORY).map(|_| OnceLock::new()).collect(),
        }
    }

    /// Continues with `world`, which is the world before the next tick. The world is kept if it is `small`, or if the
    /// last kept world is too old.
    pub(super) fn keep(&mut self, world: &World<S>, small: bool) {
        let next = world.tick();
        self.looked_at[Self::slot(next)].take();
        let apart = if small { 1 } else { APART };
        if self
            .kept
            .back()
            .is_some_and(|last| next - last.tick() < apart)
        {
            return;
        }
        // If the second world is no newer than the oldest tick that can be requested, the memory of the first is
        // reused.
        let oldest = next.back(HISTORY - 1);
        let mut spare = None;
        while self.kept.get(1).is_some_and(|kept| kept.tick() <= oldest) {
            spare = self.kept.pop_front();
        }
        let kept = match spare {
            Some(mut spare) => {
                (*spare).clone_from(world);
                spare
            }
            None => Box::new(world.clone()),
        };
        self.kept.push_back(kept);
    }

    /// The world before `tick`. If it is not kept, `fold` computes it from the newest world before it.
    pub(super) fn before(
        &self,
        tick: Tick,
        fold: impl FnOnce(&World<S>) -> Option<World<S>>,
    ) -> Option<&World<S>> {
        let after = self.kept.partition_point(|kept| kept.tick() <= tick);
        let kept: &World<S> = self.kept.get(after.checked_sub(1)?)?;
        if kept.tick() == tick {
            return Some(kept);
        }
        let looked_at = |tick: Tick| {
            let world = self.looked_at[Self::slot(tick)].get()?;
            (world.tick() == tick).then_some(&**world)
        };
        let from = (1..=tick - kept.tick())
            .map(|back| kept.tick() + back)
            .rev()
            .find_map(looked_at)
            .unwrap_or(kept);
        if from.tick() == tick {
            return Some(from);
        }
        let folded = Box::new(fold(from)?);
        Some(self.looked_at[Self::slot(tick)].get_or_init(|| folded))
    }

    #[cfg(test)]
    pub(super) fn len(&self) -> usize {
        let looked_at = self.looked_at.iter().filter(|world| world.get().is_some());
        self.kept.len() + looked_at.count()
    }

    fn slot(tick: Tick) -> usize {
        (tick.0 % HISTORY) as usize
    }
}
