//! [`Snapshots`]: encoded worlds for journals and sessions. Sessions share one encoding of a turn's world. Large worlds
//! are encoded on the host's threads. Some are kept for delayed spectators and interrupted joins. Sizes are measured.
//!
//! ```text
//!  the journal wants a world, a session joins, delayed spectators will need one
//!    └▶ a copy of the world at the beginning of its turn ─▶ Output::Encode ─▶ the host encodes it, on a thread
//!        ┌───────────────────────────── Match::hand_world ◀──────────────────────────────┘
//!        ├▶ the journal, if the next tick has not been stepped: a world comes before the frames that follow it
//!        ├▶ sessions that join within a second: the frames since continue from there
//!        └▶ delayed spectators
//! ```
//!
//! Small worlds are encoded directly, and so are all worlds if the host did not offer to encode them
//! ([`Match::encode_aside`]). Worlds for evidence and heals are also encoded directly, because they are rare: only
//! clients whose world differs need them.
//!
//! Invariant: a world that the host never returns has no lasting effect: after a few turns, or seconds, the match
//! encodes a world itself.
//!
//! A world that exceeds its bound does not end the match, but is reported early:
//!
//! ```text
//!  0 ──────────────── half ─────────────── WORLD_BYTES_MAX ────────────▶
//!                       an incident warns      no joins, heals, written or kept worlds; the match continues
//! ```
//!
//! The bound is the same for journals, joiners, spectators and evidence, because every reader reserves space for it.

use std::collections::VecDeque;
use std::time::Duration;

use twinstep_core::bounds::{BACKLOG, SPECTATOR_DELAY_MAX, WORLD_BYTES_MAX};
use twinstep_core::codec::{self, CodecError};
use twinstep_core::world::World;
use twinstep_core::{Simulation, Tick};

use crate::config::Spectators;
use crate::cutoff::CutOff;
use crate::diagnostics::Diagnostics;
use crate::encoding::{Snapshot, WorldEncoding};
use crate::incident::{Incident, Trouble};
use crate::server_world::ServerWorld;

/// The maximum age of an encoded world with which a session may join. The later frames are also sent; they are smaller
/// than a newer world.
const FRESH: Duration = Duration::from_secs(1);

#[derive(Default)]
pub(super) struct Snapshots {
    pub(super) aside: Aside,
    newest: Option<(Snapshot, Duration)>,
    pub(super) watched: Watched,
    pub(super) cut_off: CutOff,
    weight: Weight,
}

impl Snapshots {
    /// Measures the world's size at intervals, unless an encoding has already shown it.
    pub(super) fn weigh<S: Simulation>(
        &mut self,
        now: Duration,
        world: &ServerWorld<S>,
        diagnostics: &mut Diagnostics,
    ) {
        if self.weight.is_due(now) {
            let bytes = codec::size(&world.current).unwrap_or(usize::MAX);
            self.record_size(bytes, world, diagnostics);
            self.weight.forget();
        }
    }

    pub(super) fn record_written<S: Simulation>(
        &mut self,
        bytes: usize,
        world: &ServerWorld<S>,
        diagnostics: &mut Diagnostics,
    ) {
        self.record_size(bytes, world, diagnostics);
    }

    /// Keeps worlds for delayed spectators, if any are allowed. Returns the world that the host must encode for that.
    pub(super) fn keep_watched<S: Simulation>(
        &mut self,
        now: Duration,
        spectators: Spectators,
        world: &ServerWorld<S>,
        diagnostics: &mut Diagnostics,
    ) -> Option<WorldEncoding> {
        let Spectators { max, delay_ticks } = spectators;
        let watches = max > 0 && delay_ticks > 0;
        if !watches || !self.watched.is_due(world.current.turn().began) {
            return None;
        }
        if self.is_aside(now, diagnostics) {
            return self.encode(now, world, diagnostics);
        }
        if self.watched.keep(&world.current, delay_ticks).is_err() {
            self.report_too_large(world, diagnostics);
        }
        None
    }

    /// Returns `true` if worlds are now encoded by the host.
    pub(super) fn is_aside(&self, now: Duration, diagnostics: &Diagnostics) -> bool {
        self.aside.takes(diagnostics.stats.world_bytes, now)
    }

    /// Lets the host encode the world at the start of the turn. Returns `None` if the host is still encoding another.
    pub(super) fn encode<S: Simulation>(
        &mut self,
        now: Duration,
        world: &ServerWorld<S>,
        diagnostics: &Diagnostics,
    ) -> Option<WorldEncoding> {
        // Checked first, because finding the world may copy it.
        if self.aside.is_busy() {
            return None;
        }
        let world = world.of_turn();
        Some(self.aside.begin(world, diagnostics.stats.world_bytes, now))
    }

    pub(super) fn put<S: Simulation>(
        &mut self,
        snapshot: Snapshot,
        now: Duration,
        spectators: Spectators,
        world: &ServerWorld<S>,
        diagnostics: &mut Diagnostics,
    ) {
        self.record_size(snapshot.bytes.len(), world, diagnostics);
        let Spectators { max, delay_ticks } = spectators;
        if max > 0 && delay_ticks > 0 && self.watched.is_due(snapshot.id.tick) {
            self.watched.put(snapshot.clone(), delay_ticks);
        }
        self.newest = Some((snapshot, now));
    }

    pub(super) fn forget<S: Simulation>(&mut self, now: Duration, world: &ServerWorld<S>) {
        let began = world.current.turn().began;
        let is_old = |(world, made): &(Snapshot, Duration)| {
            world.id.tick != began && now.saturating_sub(*made) >= FRESH
        };
        self.newest.take_if(|newest| is_old(newest));
        self.cut_off.forget(now, world.history.first());
    }

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

    pub(super) fn is_at_hand<S: Simulation>(
        &self,
        now: Duration,
        world: &ServerWorld<S>,
        oldest: Tick,
    ) -> bool {
        self.fresh(now, world, oldest).is_some()
    }

    /// A world for a joining session, no older than `oldest`. Returns `None` if the world is too large.
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

    /// The world at the start of its turn, encoded once for all requests in this turn. Returns `None` if the world is
    /// too large.
    pub(super) fn take<S: Simulation>(
        &mut self,
        now: Duration,
        world: &ServerWorld<S>,
        diagnostics: &mut Diagnostics,
    ) -> Option<Snapshot> {
        let current = world.of_turn();
        let tick = current.tick();
        if let Some((newest, _)) = &self.newest
            && newest.id.tick == tick
        {
            return Some(newest.clone());
        }
        let mut bytes = Vec::new();
        if codec::append(current, &mut bytes).is_err() {
            self.report_too_large(world, diagnostics);
            return None;
        }
        self.record_size(bytes.len(), world, diagnostics);
        let snapshot = Snapshot::new(tick, bytes.into());
        self.newest = Some((snapshot.clone(), now));
        Some(snapshot)
    }

    pub(super) fn report_too_large<S: Simulation>(
        &mut self,
        world: &ServerWorld<S>,
        diagnostics: &mut Diagnostics,
    ) {
        diagnostics.stats.worlds_too_large += 1;
        let bytes = codec::size(&world.current).unwrap_or(usize::MAX);
        self.record_size(bytes, world, diagnostics);
    }

    fn record_size<S: Simulation>(
        &mut self,
        bytes: usize,
        world: &ServerWorld<S>,
        diagnostics: &mut Diagnostics,
    ) {
        diagnostics.stats.world_bytes = bytes;
        if let Some(trouble) = self.weight.record(bytes) {
            let message = format!("{bytes} bytes of at most {WORLD_BYTES_MAX}");
            diagnostics.report(Incident::new(world.current.tick(), trouble, &message));
        }
    }
}

/// If the host does not return a world within this time, the match stops waiting for it.
const PATIENCE: Duration = Duration::from_secs(5);

#[derive(Debug, Default)]
pub(super) struct Aside {
    /// Worlds of more bytes than this are encoded by the host.
    pub(super) over: Option<usize>,
    /// The tick of the world that the host is encoding, and when the encoding started.
    under_way: Option<(Tick, Duration)>,
}

impl Aside {
    /// Returns `true` if a world of this many bytes goes to the host for encoding. The match itself encodes small
    /// worlds, and all worlds while the host is late. It also encodes worlds above the limit itself, so that the error
    /// is reported immediately.
    pub(super) fn takes(&self, bytes: usize, now: Duration) -> bool {
        let is_late = |(_, since)| now.saturating_sub(since) >= PATIENCE;
        let is_large = |over| bytes > over && bytes <= WORLD_BYTES_MAX;
        self.over.is_some_and(is_large) && !self.under_way.is_some_and(is_late)
    }

    pub(super) fn is_busy(&self) -> bool {
        self.under_way.is_some()
    }

    pub(super) fn begin<S: Simulation>(
        &mut self,
        world: &World<S>,
        bytes: usize,
        now: Duration,
    ) -> WorldEncoding {
        self.under_way = Some((world.tick(), now));
        WorldEncoding::new(world.clone(), bytes)
    }

    pub(super) fn end(&mut self, tick: Tick) -> bool {
        let waits = self.under_way.is_some_and(|(at, _)| at == tick);
        if waits {
            self.under_way = None;
        }
        waits
    }
}

/// A world is kept for delayed spectators every this many ticks.
const WORLD_EVERY: u32 = 300;
/// The number of ticks reserved in the backlog for sending a kept world to a spectator (10 s at 60 Hz).
const LOADING_TICKS: u32 = 600;
const _: () = assert!(SPECTATOR_DELAY_MAX + WORLD_EVERY + LOADING_TICKS <= BACKLOG);

#[derive(Default)]
pub(super) struct Watched {
    worlds: VecDeque<Snapshot>,
    /// The tick of the last world that was kept or was too large.
    tried: Option<Tick>,
}

impl Watched {
    pub(super) fn is_due(&self, tick: Tick) -> bool {
        self.tried.is_none_or(|at| tick >= at + WORLD_EVERY)
    }

    /// Keeps `world`. Fails if it is too large to be sent; the next attempt follows after the usual interval.
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

    /// Keeps a world that is newer than all others, and drops those with which spectators can no longer start.
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

    pub(super) fn world(&self, shown: Tick) -> Option<Snapshot> {
        let mut newest_first = self.worlds.iter().rev();
        newest_first.find(|world| world.id.tick <= shown).cloned()
    }
}

/// The world's size is measured at this interval of match time.
const WEIGH_EVERY: Duration = Duration::from_secs(10);

#[derive(Default)]
pub(super) struct Weight {
    due: Duration,
    /// Whether an encoding has shown the size since the last measurement.
    is_known: bool,
    warned: bool,
    overflowed: bool,
}

impl Weight {
    /// Returns `true` if the world must be measured now (one pass over it), and then schedules the next measurement.
    pub(super) fn is_due(&mut self, now: Duration) -> bool {
        if now < self.due {
            return false;
        }
        self.due = now + WEIGH_EVERY;
        !std::mem::take(&mut self.is_known)
    }

    /// Records that the known size will be old at the next measurement.
    pub(super) fn forget(&mut self) {
        self.is_known = false;
    }

    /// Records the world's size. Returns the trouble to report: once when the world becomes large, and once when it
    /// becomes too large.
    pub(super) fn record(&mut self, bytes: usize) -> Option<Trouble> {
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

    /// Finding K3-I: a world that had just been encoded was measured by another pass over it.
    #[test]
    fn a_world_of_known_size_is_not_measured_again() {
        let mut weight = Weight::default();
        let mut taken = 0;
        for second in 0..100 {
            // A world is written every ten seconds for the first half of the time.
            if second % 10 == 5 && second < 50 {
                weight.record(1_000);
            }
            if weight.is_due(Duration::from_secs(second)) {
                taken += 1;
                weight.record(1_000);
                weight.forget();
            }
        }
        assert_eq!(taken, 1 + 4, "at first, and while no world is written");
    }
}
