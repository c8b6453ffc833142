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

use arrayvec::ArrayVec;
use twinstep_core::bounds::SEATS_MAX;
use twinstep_core::{PlayerId, Simulation, Tick};
use twinstep_protocol::packet::closed::CloseCode;

use super::Match;
use crate::peer::Peer;

/// Worlds on their way to spectators at once, beside those to players.
pub(super) const VIEWS_AT_ONCE: usize = 8;

impl<S: Simulation> Match<S> {
    /// Room for another spectator: it has no players.
    pub(super) fn assign_view(
        &self,
        identity: &str,
    ) -> Result<ArrayVec<PlayerId, SEATS_MAX>, CloseCode> {
        if let Some(code) = self.degradation.refuses_spectators() {
            return Err(code);
        }
        let others = |p: &&Peer| p.is_spectator() && p.identity != identity;
        if self.people.peers.iter().filter(others).count() < self.config.spectators.max {
            Ok(ArrayVec::new())
        } else {
            Err(CloseCode::Full)
        }
    }

    /// Spectators now, whatever their stage.
    #[must_use]
    pub fn spectators(&self) -> usize {
        self.people
            .peers
            .iter()
            .filter(|p| p.is_spectator())
            .count()
    }

    /// Whether a session watches from a distance in time.
    pub(super) fn is_delayed(&self, at: usize) -> bool {
        self.config.spectators.delay_ticks > 0 && self.people.peers[at].is_spectator()
    }

    /// The tick before which all frames may be shown to a session.
    pub(super) fn shown_to(&self, at: usize) -> Tick {
        let delay = if self.is_delayed(at) {
            self.config.spectators.delay_ticks
        } else {
            0
        };
        self.world.current.tick().back(delay).max(self.config.start)
    }
}
