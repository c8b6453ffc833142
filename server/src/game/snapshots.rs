//! [`Snapshots`]: the world as bytes, for whoever needs it: made once a turn, kept for those who watch later, and weighed
//! from time to time.

use std::sync::Arc;
use std::time::Duration;

use twinstep_core::bounds::WORLD_BYTES_MAX;
use twinstep_core::{Simulation, codec};

use super::noted::Noted;
use super::truth::Truth;
use super::watched::{Snapshot, Watched};
use super::weight::Weight;
use crate::config::Spectators;
use crate::incident::Incident;

/// See the [module](self).
#[derive(Default)]
pub(super) struct Snapshots {
    newest: Option<Snapshot>,
    pub(super) watched: Watched,
    weight: Weight,
}

impl Snapshots {
    /// Looks at the world's size from time to time.
    pub(super) fn weigh<S: Simulation>(
        &mut self,
        now: Duration,
        truth: &Truth<S>,
        noted: &mut Noted,
    ) {
        if self.weight.is_due(now) {
            let bytes = codec::size(&truth.world).unwrap_or(usize::MAX);
            self.note_weight(bytes, truth, noted);
        }
    }

    /// Keeps worlds for those who watch from a distance in time, if there may be any.
    pub(super) fn keep_watched<S: Simulation>(
        &mut self,
        spectators: Spectators,
        truth: &Truth<S>,
        noted: &mut Noted,
    ) {
        let Spectators { max, delay_ticks } = spectators;
        let watches = max > 0 && delay_ticks > 0;
        if watches && self.watched.keep(&truth.world, delay_ticks).is_err() {
            self.note_too_large(truth, noted);
        }
    }

    /// The world at the beginning of its turn, and its tick, as bytes: made once for all that ask in this turn; `None`:
    /// it is too large. Law **Journal first**: the ticks since are not written yet, so nobody may see them.
    pub(super) fn take<S: Simulation>(
        &mut self,
        truth: &Truth<S>,
        noted: &mut Noted,
    ) -> Option<Snapshot> {
        let began = truth.world.turn().began;
        let world = truth.world_at(began).unwrap_or(&truth.world);
        let tick = world.tick();
        if let Some((at, bytes)) = &self.newest
            && *at == tick
        {
            return Some((tick, bytes.clone()));
        }
        let mut bytes = Vec::new();
        if codec::append(world, &mut bytes).is_err() {
            self.note_too_large(truth, noted);
            return None;
        }
        self.note_weight(bytes.len(), truth, noted);
        let bytes: Arc<[u8]> = bytes.into();
        self.newest = Some((tick, bytes.clone()));
        Some((tick, bytes))
    }

    /// A world did not fit where it was to go.
    pub(super) fn note_too_large<S: Simulation>(&mut self, truth: &Truth<S>, noted: &mut Noted) {
        noted.stats.worlds_too_large += 1;
        let bytes = codec::size(&truth.world).unwrap_or(usize::MAX);
        self.note_weight(bytes, truth, noted);
    }

    /// The world has so many bytes: tells of it if they are many.
    fn note_weight<S: Simulation>(&mut self, bytes: usize, truth: &Truth<S>, noted: &mut Noted) {
        noted.stats.world_bytes = bytes;
        if let Some(trouble) = self.weight.note(bytes) {
            let message = format!("{bytes} bytes of at most {WORLD_BYTES_MAX}");
            noted.note(Incident::new(truth.world.tick(), trouble, &message));
        }
    }
}
