//! What frames are assumed from: all that a client knows at a moment, apart from the worlds themselves.
//!
//! Invariant: assuming a frame and stepping it need these values, a line, and nothing else. So a copy of them lets a
//! rebuild go on elsewhere, with the very same result.

use std::sync::Arc;

use twinstep_core::bounds::PLAYERS_MAX;
use twinstep_core::frame::Learned;
use twinstep_core::world::World;
use twinstep_core::{PlayerId, Simulation, Tick};

use crate::announced::Announced;
use crate::hooks::{Guess, Speculate};
use crate::orders::LocalActions;

/// What never changes: the game's own part.
pub(super) struct Game<S: Simulation> {
    pub(super) rules: Arc<S::Rules>,
    pub(super) guess: Arc<dyn Guess<S>>,
    pub(super) speculate: Arc<dyn Speculate<S>>,
    /// Whether the digest before each assumed tick is kept.
    pub(super) verify: bool,
}

/// What is known by now.
pub(super) struct Grounds<S: Simulation> {
    pub(super) orders: LocalActions<S>,
    pub(super) announced: Announced<S>,
    pub(super) learned: Learned,
    /// The authority's next tick.
    confirmed: Tick,
    /// For how many ticks what each player held there has been a repetition.
    filled: [u32; PLAYERS_MAX],
}

impl<S: Simulation> Grounds<S> {
    pub(super) fn new(orders: LocalActions<S>) -> Self {
        Grounds {
            orders,
            announced: Announced::default(),
            learned: Learned::new(),
            confirmed: Tick(0),
            filled: [0; PLAYERS_MAX],
        }
    }

    /// The authority is now this. Before anything is assumed.
    pub(super) fn look(&mut self, authority: &World<S>) {
        self.confirmed = authority.tick();
        for (i, filled) in self.filled.iter_mut().enumerate() {
            *filled = authority.held(PlayerId(i as u8)).1;
        }
    }

    /// The authority's next tick.
    pub(super) fn confirmed(&self) -> Tick {
        self.confirmed
    }

    /// For how many ticks what the authority holds of a player has been a repetition.
    pub(super) fn filled(&self, player: PlayerId) -> u32 {
        self.filled[player.index()]
    }
}

impl<S: Simulation> Clone for Grounds<S> {
    fn clone(&self) -> Self {
        Grounds {
            orders: self.orders.clone(),
            announced: self.announced.clone(),
            learned: self.learned.clone(),
            confirmed: self.confirmed,
            filled: self.filled,
        }
    }

    /// Keeps the buffers.
    fn clone_from(&mut self, other: &Self) {
        self.orders.clone_from(&other.orders);
        self.announced.clone_from(&other.announced);
        self.learned.clone_from(&other.learned);
        self.confirmed = other.confirmed;
        self.filled = other.filled;
    }
}
