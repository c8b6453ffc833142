//! The world as bytes, for whoever needs it: made once a turn, and weighed from time to time (`game/weight.rs`).

use std::sync::Arc;

use twinstep_core::bounds::WORLD_BYTES_MAX;
use twinstep_core::{Simulation, codec};

use super::Match;
use super::watched::Snapshot;
use crate::incident::Incident;

impl<S: Simulation> Match<S> {
    /// Looks at the world's size from time to time.
    pub(super) fn weigh(&mut self) {
        if self.weight.is_due(self.clock.now) {
            self.note_weight(codec::size(&self.truth.world).unwrap_or(usize::MAX));
        }
    }

    /// The world has so many bytes: tells of it if they are many.
    fn note_weight(&mut self, bytes: usize) {
        self.noted.stats.world_bytes = bytes;
        if let Some(trouble) = self.weight.note(bytes) {
            let message = format!("{bytes} bytes of at most {WORLD_BYTES_MAX}");
            let tick = self.truth.world.tick();
            self.noted.note(Incident::new(tick, trouble, &message));
        }
    }

    /// A world did not fit where it was to go.
    pub(super) fn note_too_large(&mut self) {
        self.noted.stats.worlds_too_large += 1;
        self.note_weight(codec::size(&self.truth.world).unwrap_or(usize::MAX));
    }

    /// The world at the beginning of its turn, and its tick, as bytes: made once for all that ask in this turn; `None`:
    /// it is too large. Law **Journal first**: the ticks since are not written yet, so nobody may see them.
    pub(super) fn snapshot(&mut self) -> Option<Snapshot> {
        let began = self.truth.world.turn().began;
        let world = self.truth.history.world(began).unwrap_or(&self.truth.world);
        let tick = world.tick();
        if let Some((at, bytes)) = &self.snapshot
            && *at == tick
        {
            return Some((tick, bytes.clone()));
        }
        let mut bytes = Vec::new();
        if codec::append(world, &mut bytes).is_err() {
            self.note_too_large();
            return None;
        }
        self.note_weight(bytes.len());
        let bytes: Arc<[u8]> = bytes.into();
        self.snapshot = Some((tick, bytes.clone()));
        Some((tick, bytes))
    }
}
