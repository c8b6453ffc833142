//! [`Snapshots`]: the world as bytes, for whoever needs it: made once a turn, or beside the match, kept for those who watch later
//! and for those whose join was cut off, and weighed from time to time.
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
//!
//! Worlds that grow beyond their bound end nothing, but are reported early:
//!
//! ```text
//!  0 ──────────────── half ─────────────── WORLD_BYTES_MAX ────────────▶
//!                       an incident warns      nobody joins or is healed; no world is written or kept; the match plays on
//! ```
//!
//! That bound is the same wherever a world goes (journals, joiners, spectators, evidence), because whoever reads one makes
//! room for no more.

use std::collections::VecDeque;
use std::time::Duration;

use twinstep_core::bounds::{BACKLOG, SPECTATOR_DELAY_MAX, WORLD_BYTES_MAX};
use twinstep_core::codec::{self, CodecError};
use twinstep_core::world::World;
use twinstep_core::{Simulation, Tick};

use crate::config::Spectators;
use crate::cutoff::CutOff;
use crate::diagnostics::Diagnostics;
use crate::encoding::{Encoding, Snapshot};
use crate::incident::{Incident, Trouble};
use crate::server_world::ServerWorld;

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

/// What is not handed back within this is not waited for.
const PATIENCE: Duration = Duration::from_secs(5);

/// Whether and how worlds are encoded beside the match.
#[derive(Debug, Default)]
pub(super) struct Aside {
    /// Those of more bytes are.
    pub(super) over: Option<usize>,
    /// The one that is, and since when.
    under_way: Option<(Tick, Duration)>,
}

impl Aside {
    /// Whether a world of so many bytes is encoded beside the match now. One that is too large is told of at once.
    pub(super) fn takes(&self, bytes: usize, now: Duration) -> bool {
        let is_late = |(_, since)| now.saturating_sub(since) >= PATIENCE;
        let is_large = |over| bytes > over && bytes <= WORLD_BYTES_MAX;
        self.over.is_some_and(is_large) && !self.under_way.is_some_and(is_late)
    }

    /// Whether one is under way.
    pub(super) fn is_busy(&self) -> bool {
        self.under_way.is_some()
    }

    /// Has a copy of `world` encoded, of about so many bytes.
    pub(super) fn begin<S: Simulation>(
        &mut self,
        world: &World<S>,
        bytes: usize,
        now: Duration,
    ) -> Encoding {
        self.under_way = Some((world.tick(), now));
        Encoding::new(world.clone(), bytes)
    }

    /// This one came back; whether it was waited for.
    pub(super) fn end(&mut self, tick: Tick) -> bool {
        let waits = self.under_way.is_some_and(|(at, _)| at == tick);
        if waits {
            self.under_way = None;
        }
        waits
    }
}

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

/// The world is weighed each time that so much match time has passed.
const WEIGH_EVERY: Duration = Duration::from_secs(10);

/// What was told of the world's size.
#[derive(Default)]
pub(super) struct Weight {
    /// When it is looked at next, in the match's time.
    due: Duration,
    /// Its size became known since, because it was encoded.
    is_known: bool,
    warned: bool,
    overflowed: bool,
}

impl Weight {
    /// Whether the world is to be weighed now, which takes a pass over all of it; if so, the next time is set.
    pub(super) fn is_due(&mut self, now: Duration) -> bool {
        if now < self.due {
            return false;
        }
        self.due = now + WEIGH_EVERY;
        !std::mem::take(&mut self.is_known)
    }

    /// Forgets the last note: it is old by the next look.
    pub(super) fn forget(&mut self) {
        self.is_known = false;
    }

    /// The world has so many bytes: what is to be told of it, once when it is large, and once when it is too large.
    pub(super) fn note(&mut self, bytes: usize) -> Option<Trouble> {
        self.is_known = true;
        match bytes {
            ..=WORLD_BYTES_MAX if bytes <= WORLD_BYTES_MAX / 2 => None,
            ..=WORLD_BYTES_MAX => {
                (!std::mem::replace(&mut self.warned, true)).then_some(Trouble::WorldLarge)
            }
            _ => (!std::mem::replace(&mut self.overflowed, true)).then_some(Trouble::WorldTooLarge),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Finding K3-I: a world that was just encoded was weighed by another pass over all of it.
    #[test]
    fn a_world_whose_size_is_known_is_not_weighed_again() {
        let mut weight = Weight::default();
        let mut weighed = 0;
        for second in 0..100 {
            // A world is written every ten seconds for the first half of the time.
            if second % 10 == 5 && second < 50 {
                weight.note(1_000);
            }
            if weight.is_due(Duration::from_secs(second)) {
                weighed += 1;
                weight.note(1_000);
                weight.forget();
            }
        }
        assert_eq!(weighed, 1 + 4, "at first, and when nothing is written");
    }
}
