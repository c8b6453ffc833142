//! [`MatchMode`]: the two ways to play, and what the server does differently in each.
//!
//! ```text
//!  Prediction   a tick is sealed at its own deadline; inputs come tick by tick; orders are stamped with ticks
//!  Lockstep     a turn is sealed as a whole, `delay` turns before clients run it; inputs come in batches, one a turn;
//!               orders are stamped with turns
//! ```
//!
//! Invariant: a match has one mode from its first tick to its last, since its command delay is fixed.

use std::time::Duration;

use twinstep_core::{Simulation, Tick};

use crate::config::MatchConfig;
use crate::seat::Seat;

/// See the [module](self).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum MatchMode {
    Prediction,
    Lockstep(Lockstep),
}

/// Turns are sealed ahead.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Lockstep {
    /// The command delay m, above 0.
    pub(crate) delay: u8,
}

impl MatchMode {
    pub(crate) fn of(config: &MatchConfig) -> MatchMode {
        match config.command_delay {
            0 => MatchMode::Prediction,
            delay => MatchMode::Lockstep(Lockstep { delay }),
        }
    }

    /// The turns that are sealed ahead of the one that clients run.
    pub(crate) fn turns_ahead(self) -> u8 {
        match self {
            MatchMode::Prediction => 0,
            MatchMode::Lockstep(Lockstep { delay }) => delay,
        }
    }

    pub(crate) fn is_lockstep(self) -> bool {
        matches!(self, MatchMode::Lockstep(_))
    }

    /// When the first tick, or turn, of a match that begins now is sealed.
    pub(crate) fn first_due(self, now: Duration, tick: Duration) -> Duration {
        match self {
            MatchMode::Prediction => now + tick,
            MatchMode::Lockstep(_) => now,
        }
    }

    /// What orders carry that may run in this tick of this turn, or that came before these.
    pub(crate) fn stamp(self, tick: Tick, turn: u32) -> Tick {
        match self {
            MatchMode::Prediction => tick,
            MatchMode::Lockstep(_) => Tick(turn),
        }
    }

    /// The input that a player gave for this tick of this turn.
    pub(crate) fn input<S: Simulation>(
        self,
        seat: &Seat<S>,
        tick: Tick,
        turn: u32,
    ) -> Option<&S::Input> {
        match self {
            MatchMode::Prediction => seat.input(tick),
            MatchMode::Lockstep(_) => seat.batch(turn),
        }
    }

    /// Whether a player gave an input for the next tick, or the turn that it begins. Batches that come late count too: a line
    /// may be longer than the delay.
    pub(crate) fn speaks<S: Simulation>(self, seat: &Seat<S>, next: Tick, turn: u32) -> bool {
        self.input(seat, next, turn).is_some()
            || self.is_lockstep() && seat.spoke.is_some_and(|at| next - at <= 1)
    }
}
