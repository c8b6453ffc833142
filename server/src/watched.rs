//! [`Watched`]: worlds of long ago, for those who watch from a distance in time. See `match_/spectators.rs`.

use std::collections::VecDeque;

use twinstep_core::bounds::{BACKLOG, SPECTATOR_DELAY_MAX};
use twinstep_core::codec::{self, CodecError};
use twinstep_core::world::World;
use twinstep_core::{Simulation, Tick};

use crate::encoding::Snapshot;

/// A world is kept for delayed spectators each time that so many ticks have passed.
const WORLD_EVERY: u32 = 300;
/// The frames since are kept while its world is on its way: for so many ticks (10 s at 60 Hz).
const LOADING_TICKS: u32 = 600;
const _: () = assert!(SPECTATOR_DELAY_MAX + WORLD_EVERY + LOADING_TICKS <= BACKLOG);

/// Worlds of long ago, as bytes.
#[derive(Default)]
pub(super) struct Watched {
    worlds: VecDeque<Snapshot>,
    /// When one was kept, or was too large.
    tried: Option<Tick>,
}

impl Watched {
    /// Whether the world of `tick` is to be kept, and the last one kept is old enough.
    pub(super) fn is_due(&self, tick: Tick) -> bool {
        self.tried.is_none_or(|at| tick >= at + WORLD_EVERY)
    }

    /// Keeps `world`.
    ///
    /// # Errors
    /// It is too large to be sent; the next one is tried as long after it.
    pub(super) fn keep<S: Simulation>(
        &mut self,
        world: &World<S>,
        delay_ticks: u32,
    ) -> Result<(), CodecError> {
        self.tried = Some(world.tick());
        let mut bytes = Vec::new();
        codec::append(world, &mut bytes)?;
        self.put(Snapshot::new(world.tick(), bytes.into()), delay_ticks);
        Ok(())
    }

    /// Keeps a world that is newer than all others, and forgets those that nobody can begin with any more.
    pub(super) fn put(&mut self, snapshot: Snapshot, delay_ticks: u32) {
        let tick = snapshot.id.tick;
        self.tried = Some(tick);
        self.worlds.push_back(snapshot);
        let shown = tick.back(delay_ticks);
        while self
            .worlds
            .get(1)
            .is_some_and(|world| world.id.tick <= shown)
        {
            self.worlds.pop_front();
        }
    }

    /// The newest of the worlds that are not newer than `shown`.
    pub(super) fn world(&self, shown: Tick) -> Option<Snapshot> {
        let mut newest_first = self.worlds.iter().rev();
        newest_first.find(|world| world.id.tick <= shown).cloned()
    }
}
