//! [`Worlds`]: the match's worlds of its last ticks, without a copy for each of them.
//!
//! ```text
//!  kept         ├───────────────┼───────────────┼───────────────┼─────── now     one every APART ticks
//!  looked at        ·     ·                                                     folded from the one before, then kept too
//! ```
//!
//! A world that is small is kept at each tick, since a fold would cost more than the copy. Of a larger one few are kept,
//! and who looks at another tick pays for it: a copy, and at most [`APART`] − 1 steps. What was looked at stays for as
//! long as others do. So a game whose hooks look back at every tick has one copy and one step a tick, and memory for as
//! many worlds as it looks at; one whose hooks do not has five worlds.

use std::collections::VecDeque;
use std::sync::OnceLock;

use twinstep_core::bounds::HISTORY;
use twinstep_core::world::World;
use twinstep_core::{Simulation, Tick};

/// Ticks from one kept world to the next, where worlds are not kept at each tick: what a fold steps at most.
pub const APART: u32 = 16;

/// See the [module](self).
pub(super) struct Worlds<S: Simulation> {
    /// In order; the first is the oldest tick that can be told of, or older. That one becomes the newest at each tick where all
    /// are kept: as boxes they change places without being moved.
    kept: VecDeque<Box<World<S>>>,
    /// By tick, of the last [`HISTORY`].
    looked_at: Vec<OnceLock<Box<World<S>>>>,
}

impl<S: Simulation> Worlds<S> {
    pub(super) fn new() -> Self {
        Worlds {
            kept: VecDeque::with_capacity(HISTORY as usize + 1),
            looked_at: (0..HISTORY).map(|_| OnceLock::new()).collect(),
        }
    }

    /// Goes on to `world`, the one before the next tick. It is kept if it is `small`, or if the last one is too long ago.
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
        // The second one is as old as anything that can be asked for: the first one is of no use, but for its room.
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

    /// The world before `tick`. If it is none that is at hand, `fold` leads there from the newest one before it.
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

    /// Worlds in memory.
    #[cfg(test)]
    pub(super) fn len(&self) -> usize {
        let looked_at = self.looked_at.iter().filter(|world| world.get().is_some());
        self.kept.len() + looked_at.count()
    }

    fn slot(tick: Tick) -> usize {
        (tick.0 % HISTORY) as usize
    }
}
