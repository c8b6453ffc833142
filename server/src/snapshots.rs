//! [`Snapshots`]: the world as bytes, for whoever needs it: made once a turn, or beside the match (`match_/encoding.rs`), kept for
//! those who watch later and for those whose join was cut off, and weighed from time to time.

use std::time::Duration;

use twinstep_core::bounds::WORLD_BYTES_MAX;
use twinstep_core::world::World;
use twinstep_core::{Simulation, Tick, codec};

use crate::aside::Aside;
use crate::config::Spectators;
use crate::cutoff::CutOff;
use crate::diagnostics::Diagnostics;
use crate::encoding::{Encoding, Snapshot};
use crate::incident::Incident;
use crate::server_world::ServerWorld;
use crate::watched::Watched;
use crate::weight::Weight;

/// Who joins may begin with a world that was handed back so long ago: the frames since are sent, which are fewer than its
/// bytes.
const FRESH: Duration = Duration::from_secs(1);

/// See the [module](self).
#[derive(Default)]
pub(super) struct Snapshots {
    pub(super) aside: Aside,
    /// And when it was made.
    newest: Option<(Snapshot, Duration)>,
    pub(super) watched: Watched,
    pub(super) cut_off: CutOff,
    weight: Weight,
}

impl Snapshots {
    /// Looks at the world's size from time to time, if nothing has shown it.
    pub(super) fn weigh<S: Simulation>(
        &mut self,
        now: Duration,
        world: &ServerWorld<S>,
        diagnostics: &mut Diagnostics,
    ) {
        if self.weight.is_due(now) {
            let bytes = codec::size(&world.current).unwrap_or(usize::MAX);
            self.note_weight(bytes, world, diagnostics);
            self.weight.forget();
        }
    }

    /// The world was written with this many bytes.
    pub(super) fn note_written<S: Simulation>(
        &mut self,
        bytes: usize,
        world: &ServerWorld<S>,
        diagnostics: &mut Diagnostics,
    ) {
        self.note_weight(bytes, world, diagnostics);
    }

    /// Keeps worlds for those who watch from a distance in time, if there may be any; what is to be encoded elsewhere for it.
    pub(super) fn keep_watched<S: Simulation>(
        &mut self,
        now: Duration,
        spectators: Spectators,
        world: &ServerWorld<S>,
        diagnostics: &mut Diagnostics,
    ) -> Option<Encoding> {
        let Spectators { max, delay_ticks } = spectators;
        let watches = max > 0 && delay_ticks > 0;
        if !watches || !self.watched.is_due(world.current.turn().began) {
            return None;
        }
        if self.is_aside(now, diagnostics) {
            return self.encode(now, world, diagnostics);
        }
        if self.watched.keep(&world.current, delay_ticks).is_err() {
            self.note_too_large(world, diagnostics);
        }
        None
    }

    /// Whether the world is encoded beside the match.
    pub(super) fn is_aside(&self, now: Duration, diagnostics: &Diagnostics) -> bool {
        self.aside.takes(diagnostics.stats.world_bytes, now)
    }

    /// Has the world of the turn's beginning encoded beside the match; `None`: another one is.
    pub(super) fn encode<S: Simulation>(
        &mut self,
        now: Duration,
        world: &ServerWorld<S>,
        diagnostics: &Diagnostics,
    ) -> Option<Encoding> {
        // To find the world may take a copy of it.
        if self.aside.is_busy() {
            return None;
        }
        let world = world_of_turn(world);
        Some(self.aside.begin(world, diagnostics.stats.world_bytes, now))
    }

    /// A world that was encoded beside the match.
    pub(super) fn put<S: Simulation>(
        &mut self,
        snapshot: Snapshot,
        now: Duration,
        spectators: Spectators,
        world: &ServerWorld<S>,
        diagnostics: &mut Diagnostics,
    ) {
        self.note_weight(snapshot.bytes.len(), world, diagnostics);
        let Spectators { max, delay_ticks } = spectators;
        if max > 0 && delay_ticks > 0 && self.watched.is_due(snapshot.id.tick) {
            self.watched.put(snapshot.clone(), delay_ticks);
        }
        self.newest = Some((snapshot, now));
    }

    /// Lets go of worlds that nobody can begin with any more.
    pub(super) fn forget<S: Simulation>(&mut self, now: Duration, world: &ServerWorld<S>) {
        let began = world.current.turn().began;
        let is_old = |(world, made): &(Snapshot, Duration)| {
            world.id.tick != began && now.saturating_sub(*made) >= FRESH
        };
        self.newest.take_if(|newest| is_old(newest));
        self.cut_off.forget(now, world.history.first());
    }

    /// A world that is no older than this tick, for who joins: one that is there without a pass over all of it.
    fn fresh<S: Simulation>(
        &self,
        now: Duration,
        world: &ServerWorld<S>,
        oldest: Tick,
    ) -> Option<&Snapshot> {
        let (newest, made) = self.newest.as_ref()?;
        let tick = newest.id.tick;
        let is_fresh = now.saturating_sub(*made) < FRESH && tick >= oldest;
        (is_fresh && world.history.reaches(tick)).then_some(newest)
    }

    /// Whether there is such a world.
    pub(super) fn is_at_hand<S: Simulation>(
        &self,
        now: Duration,
        world: &ServerWorld<S>,
        oldest: Tick,
    ) -> bool {
        self.fresh(now, world, oldest).is_some()
    }

    /// A world for who joins that is no older than this tick, and its tick, as bytes.
    pub(super) fn take_for_join<S: Simulation>(
        &mut self,
        now: Duration,
        world: &ServerWorld<S>,
        oldest: Tick,
        diagnostics: &mut Diagnostics,
    ) -> Option<Snapshot> {
        if self.is_aside(now, diagnostics)
            && let Some(fresh) = self.fresh(now, world, oldest)
        {
            return Some(fresh.clone());
        }
        self.take(now, world, diagnostics)
    }

    /// The world at the beginning of its turn, and its tick, as bytes: made once for all that ask in this turn; `None`:
    /// it is too large.
    pub(super) fn take<S: Simulation>(
        &mut self,
        now: Duration,
        world: &ServerWorld<S>,
        diagnostics: &mut Diagnostics,
    ) -> Option<Snapshot> {
        let current = world_of_turn(world);
        let tick = current.tick();
        if let Some((newest, _)) = &self.newest
            && newest.id.tick == tick
        {
            return Some(newest.clone());
        }
        let mut bytes = Vec::new();
        if codec::append(current, &mut bytes).is_err() {
            self.note_too_large(world, diagnostics);
            return None;
        }
        self.note_weight(bytes.len(), world, diagnostics);
        let snapshot = Snapshot::new(tick, bytes.into());
        self.newest = Some((snapshot.clone(), now));
        Some(snapshot)
    }

    /// A world did not fit where it was to go.
    pub(super) fn note_too_large<S: Simulation>(
        &mut self,
        world: &ServerWorld<S>,
        diagnostics: &mut Diagnostics,
    ) {
        diagnostics.stats.worlds_too_large += 1;
        let bytes = codec::size(&world.current).unwrap_or(usize::MAX);
        self.note_weight(bytes, world, diagnostics);
    }

    /// The world has so many bytes: tells of it if they are many.
    fn note_weight<S: Simulation>(
        &mut self,
        bytes: usize,
        world: &ServerWorld<S>,
        diagnostics: &mut Diagnostics,
    ) {
        diagnostics.stats.world_bytes = bytes;
        if let Some(trouble) = self.weight.note(bytes) {
            let message = format!("{bytes} bytes of at most {WORLD_BYTES_MAX}");
            diagnostics.note(Incident::new(world.current.tick(), trouble, &message));
        }
    }
}

/// The world at the beginning of its turn. Law **Journal first**: the ticks since are not written yet, so nobody may see them.
fn world_of_turn<S: Simulation>(world: &ServerWorld<S>) -> &World<S> {
    world
        .world_at(world.current.turn().began)
        .unwrap_or(&world.current)
}
