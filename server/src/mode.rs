//! [`MatchMode`]: the two modes of play, and how the server differs between them.
//!
//! ```text
//!  Prediction   a tick is sealed at its own deadline; inputs come tick by tick; orders are stamped with ticks
//!  Lockstep     a turn is sealed as a whole, `delay` turns before clients run it; inputs come in batches, one a turn;
//!               orders are stamped with turns
//! ```
//!
//! Invariant: a match keeps its mode from its first tick to its last, since the command delay is fixed.

use std::time::Duration;

use twinstep_core::{Simulation, Tick};

use crate::config::MatchConfig;
use crate::seat::Seat;

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum MatchMode {
    Prediction,
    Lockstep(Lockstep),
}

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

    /// The number of turns sealed ahead of the one that clients run.
    pub(crate) fn turns_ahead(self) -> u8 {
        match self {
            MatchMode::Prediction => 0,
            MatchMode::Lockstep(Lockstep { delay }) => delay,
        }
    }

    pub(crate) fn is_lockstep(self) -> bool {
        matches!(self, MatchMode::Lockstep(_))
    }

    /// The seal time of the first tick, or turn, of a match that starts now.
    pub(crate) fn first_due(self, now: Duration, tick: Duration) -> Duration {
        match self {
            MatchMode::Prediction => now + tick,
            MatchMode::Lockstep(_) => now,
        }
    }

    /// The stamp of orders that may run in this tick of this turn: the tick, or in lockstep the turn. Orders with lower
    /// stamps may also run.
    pub(crate) fn stamp(self, tick: Tick, turn: u32) -> Tick {
        match self {
            MatchMode::Prediction => tick,
            MatchMode::Lockstep(_) => Tick(turn),
        }
    }

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

    /// Returns `true` if a player sent an input for the next tick, or in lockstep for the next turn. In lockstep, late
    /// batches also count, because a connection's latency may exceed the command delay.
    pub(crate) fn has_input<S: Simulation>(self, seat: &Seat<S>, next: Tick, turn: u32) -> bool {
        self.input(seat, next, turn).is_some()
            || self.is_lockstep() && seat.batch_at.is_some_and(|at| next - at <= 1)
    }
}
