//! [`Snapshots`]: the world as bytes, for whoever needs it: made once a turn, or beside the match (`game/encoding.rs`), kept for
//! those who watch later, and weighed from time to time.

use std::sync::Arc;
use std::time::Duration;

use twinstep_core::bounds::WORLD_BYTES_MAX;
use twinstep_core::world::World;
use twinstep_core::{Simulation, Tick, codec};

use super::encoding::Aside;
use super::noted::Noted;
use super::truth::Truth;
use super::watched::{Snapshot, Watched};
use super::weight::Weight;
use crate::config::Spectators;
use crate::encoding::Encoding;
use crate::incident::Incident;

/// Who joins may begin with a world that is so old: the frames since are sent, which are fewer than the world's bytes.
const FRESH: Duration = Duration::from_secs(1);

/// See the [module](self).
#[derive(Default)]
pub(super) struct Snapshots {
    pub(super) aside: Aside,
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

    /// Keeps worlds for those who watch from a distance in time, if there may be any; what is to be encoded elsewhere for it.
    pub(super) fn keep_watched<S: Simulation>(
        &mut self,
        now: Duration,
        spectators: Spectators,
        truth: &Truth<S>,
        noted: &mut Noted,
    ) -> Option<Encoding> {
        let Spectators { max, delay_ticks } = spectators;
        let watches = max > 0 && delay_ticks > 0;
        if !watches || !self.watched.is_due(truth.world.tick()) {
            return None;
        }
        if self.is_aside(now, noted) {
            return self.encode(now, truth, noted);
        }
        if self.watched.keep(&truth.world, delay_ticks).is_err() {
            self.note_too_large(truth, noted);
        }
        None
    }

    /// Whether the world is encoded beside the match.
    pub(super) fn is_aside(&self, now: Duration, noted: &Noted) -> bool {
        self.aside.takes(noted.stats.world_bytes, now)
    }

    /// Has the world of the turn's beginning encoded beside the match; `None`: another one is.
    pub(super) fn encode<S: Simulation>(
        &mut self,
        now: Duration,
        truth: &Truth<S>,
        noted: &Noted,
    ) -> Option<Encoding> {
        let world = world_of_turn(truth);
        self.aside.begin(world, noted.stats.world_bytes, now)
    }

    /// A world that was encoded beside the match.
    pub(super) fn put<S: Simulation>(
        &mut self,
        snapshot: Snapshot,
        delay_ticks: u32,
        truth: &Truth<S>,
        noted: &mut Noted,
    ) {
        self.note_weight(snapshot.1.len(), truth, noted);
        if delay_ticks > 0 && self.watched.is_due(snapshot.0) {
            self.watched.put(snapshot.clone(), delay_ticks);
        }
        if self.newest.as_ref().is_none_or(|(at, _)| *at < snapshot.0) {
            self.newest = Some(snapshot);
        }
    }

    /// The tick from which on a world is fresh enough for who joins, of a world that is encoded beside the match.
    fn fresh_from<S: Simulation>(truth: &Truth<S>) -> Tick {
        let turn = truth.world.turn();
        let ticks = FRESH.as_nanos() / turn.cadence.tick().as_nanos().max(1);
        let oldest = truth.world.tick().back(ticks as u32);
        oldest.min(turn.began)
    }

    /// Whether there is a world for who joins, without a pass over all of it.
    pub(super) fn is_at_hand<S: Simulation>(&self, truth: &Truth<S>) -> bool {
        let from = Self::fresh_from(truth);
        let newest = self.newest.as_ref();
        newest.is_some_and(|(at, _)| *at >= from && truth.history.reaches(*at))
    }

    /// A world for who joins, and its tick, as bytes.
    pub(super) fn take_for_join<S: Simulation>(
        &mut self,
        now: Duration,
        truth: &Truth<S>,
        noted: &mut Noted,
    ) -> Option<Snapshot> {
        match self.is_aside(now, noted) && self.is_at_hand(truth) {
            true => self.newest.clone(),
            false => self.take(truth, noted),
        }
    }

    /// The world at the beginning of its turn, and its tick, as bytes: made once for all that ask in this turn; `None`:
    /// it is too large.
    pub(super) fn take<S: Simulation>(
        &mut self,
        truth: &Truth<S>,
        noted: &mut Noted,
    ) -> Option<Snapshot> {
        let world = world_of_turn(truth);
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

/// The world at the beginning of its turn. Law **Journal first**: the ticks since are not written yet, so nobody may see them.
fn world_of_turn<S: Simulation>(truth: &Truth<S>) -> &World<S> {
    truth
        .world_at(truth.world.turn().began)
        .unwrap_or(&truth.world)
}
