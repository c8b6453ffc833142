//! Who only watches: sessions without a seat.
//!
//! ```text
//!  live      the world as it is, and every turn, like a player
//!  delayed   a world of long ago, and the frames since, up to `delay` ticks ago; ten times a second
//!
//!            worlds kept: one each WORLD_EVERY         sealed
//!     ──┬────────┬────────┬────────┬───────────────────┤
//!       │        │        └ joins with this one        │
//!       └ forgotten      shown up to here ──┤◀─ delay ─▶│
//! ```
//!
//! Invariants: nothing that is younger than the delay goes to a delayed spectator, whatever it asks for. A spectator
//! is in no policy: nobody waits for it, and it can say nothing that reaches a frame. Only while delayed ones may come
//! are worlds kept for them.

use std::collections::VecDeque;

use twinstep_core::bounds::{BACKLOG, SPECTATOR_DELAY_MAX};

use super::*;
use twinstep_core::codec::CodecError;

/// A world is kept for delayed spectators each time that so many ticks have passed.
const WORLD_EVERY: u32 = 300;
/// The frames since are kept while its world is on its way: for so many ticks (10 s at 60 Hz).
const LOADING_TICKS: u32 = 600;
const _: () = assert!(SPECTATOR_DELAY_MAX + WORLD_EVERY + LOADING_TICKS <= BACKLOG);

/// Worlds on their way to spectators at once, beside those to players.
pub(super) const VIEWS_AT_ONCE: usize = 8;

/// Worlds of long ago, as bytes.
#[derive(Default)]
pub(super) struct Watched {
    worlds: VecDeque<Snapshot>,
    /// When one was kept, or was too large.
    tried: Option<Tick>,
}

impl Watched {
    /// Keeps `world` if the last one kept is old enough, and forgets those that nobody can begin with any more.
    ///
    /// # Errors
    /// It is too large to be sent; the next one is tried as long after it.
    pub(super) fn keep<S: Simulation>(
        &mut self,
        world: &World<S>,
        delay_ticks: u32,
    ) -> Result<(), CodecError> {
        let tick = world.tick();
        if self.tried.is_some_and(|at| tick - at < WORLD_EVERY) {
            return Ok(());
        }
        self.tried = Some(tick);
        let mut bytes = Vec::new();
        codec::append(world, &mut bytes)?;
        self.worlds.push_back((tick, bytes.into()));
        let shown = tick.back(delay_ticks);
        while self.worlds.get(1).is_some_and(|(at, _)| *at <= shown) {
            self.worlds.pop_front();
        }
        Ok(())
    }

    /// The newest of the worlds that are not newer than `shown`.
    pub(super) fn world(&self, shown: Tick) -> Option<Snapshot> {
        let old = self.worlds.iter().rev().find(|(at, _)| *at <= shown);
        old.cloned()
    }
}

impl<S: Simulation> Match<S> {
    /// Room for another spectator: it has no players.
    pub(super) fn assign_view(
        &self,
        identity: &str,
    ) -> Result<ArrayVec<PlayerId, SEATS_MAX>, CloseCode> {
        let others = |p: &&Peer| p.is_spectator() && p.identity != identity;
        if self.peers.iter().filter(others).count() < self.config.spectators.max {
            Ok(ArrayVec::new())
        } else {
            Err(CloseCode::Full)
        }
    }

    /// Spectators now, whatever their stage.
    #[must_use]
    pub fn spectators(&self) -> usize {
        self.peers.iter().filter(|p| p.is_spectator()).count()
    }

    /// Whether a session watches from a distance in time.
    pub(super) fn is_delayed(&self, at: usize) -> bool {
        self.config.spectators.delay_ticks > 0 && self.peers[at].is_spectator()
    }

    /// The tick before which all frames may be shown to a session.
    pub(super) fn shown_to(&self, at: usize) -> Tick {
        let delay = if self.is_delayed(at) {
            self.config.spectators.delay_ticks
        } else {
            0
        };
        self.world.tick().back(delay).max(self.config.start)
    }

    /// Keeps worlds for those who watch from a distance in time, if there may be any.
    pub(super) fn keep_watched(&mut self) {
        let Spectators { max, delay_ticks } = self.config.spectators;
        let watches = max > 0 && delay_ticks > 0;
        if watches && self.watched.keep(&self.world, delay_ticks).is_err() {
            self.note_too_large();
        }
    }
}
