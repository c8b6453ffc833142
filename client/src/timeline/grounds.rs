//! What frames are assumed from: all that a client knows at a moment, apart from the worlds themselves.
//!
//! Invariant: assuming a frame and stepping it need these values, a line, and nothing else. So a copy of them lets a
//! rebuild go on elsewhere, with the very same result.

use std::sync::Arc;

use twinstep_core::bounds::{ANNOUNCE_TICKS, PLAYERS_MAX};
use twinstep_core::frame::{Learned, PlayerSet};
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
    doubt: Option<Doubt>,
    /// The line is known to be wrong, and goes on for a turn as it is. An announcement that it does not hold would make
    /// players in it do now what they did ticks ago.
    pub(super) goes_on: bool,
}

/// The parts left out of assumed frames after a step failed, until the authority has passed that tick.
///
/// ```text
///  a step of T fails ─▶ from T on without what was announced of those whose orders are due by then
///       │ again      ─▶ bare: own inputs, and what others held last; no order, no hook of the game
///       │ again      ─▶ nothing is predicted from T on
/// ```
#[derive(Clone, Copy)]
struct Doubt {
    /// All of this is left out from this tick on.
    from: Tick,
    /// The newest tick that failed. What is announced is believed again some ticks after it.
    failed: Tick,
    /// Nothing that was announced of these players is assumed.
    suspects: PlayerSet,
    /// No order is assumed, and no hook is asked.
    is_bare: bool,
    /// Nothing is predicted from this tick on.
    until: Tick,
}

impl<S: Simulation> Grounds<S> {
    pub(super) fn new(orders: LocalActions<S>) -> Self {
        Grounds {
            orders,
            announced: Announced::default(),
            learned: Learned::new(),
            confirmed: Tick(0),
            filled: [0; PLAYERS_MAX],
            doubt: None,
            goes_on: false,
        }
    }

    /// The authority is now this. Before anything is assumed.
    pub(super) fn look(&mut self, authority: &World<S>) {
        self.confirmed = authority.tick();
        for (i, filled) in self.filled.iter_mut().enumerate() {
            *filled = authority.held(PlayerId(i as u8)).1;
        }
        let Some(doubt) = &mut self.doubt else {
            return;
        };
        if self.confirmed > doubt.failed {
            (doubt.is_bare, doubt.until) = (false, Tick::MAX);
        }
        if self.confirmed > doubt.failed + ANNOUNCE_TICKS {
            self.doubt = None;
        }
    }

    /// The step of `tick` failed: from there on less is assumed. Returns `true` if nothing was in doubt before.
    pub(super) fn doubt(&mut self, tick: Tick) -> bool {
        let is_new = self.doubt.is_none();
        let doubt = self.doubt.get_or_insert(Doubt {
            from: tick,
            failed: tick,
            suspects: PlayerSet::default(),
            is_bare: false,
            until: Tick::MAX,
        });
        let due = self.announced.commands().filter(|(due, _)| *due <= tick);
        let authors: PlayerSet = due.map(|(_, order)| order.player).collect();
        if doubt.is_bare && tick < doubt.from {
            // There nothing was left out yet.
        } else if doubt.is_bare {
            doubt.until = doubt.until.min(tick);
        } else if !authors.without(doubt.suspects).is_empty() {
            doubt.suspects = doubt.suspects.or(authors);
        } else {
            doubt.suspects = PlayerSet(u16::MAX);
            doubt.is_bare = true;
        }
        doubt.from = doubt.from.min(tick);
        doubt.failed = doubt.failed.max(tick);
        is_new
    }

    /// Nothing is predicted from `tick` on until the authority has passed what failed.
    pub(super) fn stop_at(&mut self, tick: Tick) {
        if let Some(doubt) = &mut self.doubt {
            doubt.until = doubt.until.min(tick);
        }
    }

    /// The first tick that must not be predicted.
    pub(super) fn horizon(&self) -> Tick {
        self.doubt.map_or(Tick::MAX, |doubt| doubt.until)
    }

    /// Whether what was announced of `player` is assumed in the frame of `tick`.
    pub(super) fn believes(&self, player: PlayerId, tick: Tick) -> bool {
        !self
            .doubt
            .is_some_and(|doubt| tick >= doubt.from && doubt.suspects.contains(player))
    }

    /// Whether the frame of `tick` is assumed without any order, and without the game's hooks.
    pub(super) fn is_bare(&self, tick: Tick) -> bool {
        self.doubt
            .is_some_and(|doubt| doubt.is_bare && tick >= doubt.from)
    }

    /// Another world: what failed was not in it.
    pub(super) fn clear_doubt(&mut self) {
        self.doubt = None;
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
            doubt: self.doubt,
            goes_on: self.goes_on,
        }
    }

    /// Keeps the buffers.
    fn clone_from(&mut self, other: &Self) {
        self.orders.clone_from(&other.orders);
        self.announced.clone_from(&other.announced);
        self.learned.clone_from(&other.learned);
        self.confirmed = other.confirmed;
        self.filled = other.filled;
        self.doubt = other.doubt;
        self.goes_on = other.goes_on;
    }
}
