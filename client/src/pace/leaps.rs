//! [`Leap`]: what is done about an error that is too large for the rate; [`Leaps`] counts them.
//!
//! Invariant: several tellings must agree before the clock leaps: a server that stumbles is no reason.

use super::way::Telling;

/// An error of more ticks than this is held or jumped over: ±10 % would take more than 2 s.
pub(super) const LEAP_TICKS: f64 = 12.0;
/// Tellings that must agree before the clock is held or jumps.
pub(super) const LEAP_AFTER: usize = 4;

/// What is done about an error.
pub(super) enum Leap {
    /// The clock stands still for so many ticks.
    Hold(f64),
    /// The clock jumps ahead by so many ticks.
    Ahead(u32),
}

impl Leap {
    /// The leap that the newest tellings ask for, if they do; `error`: by how many ticks the margin is too small.
    pub(super) fn wanted(
        newest: &[Telling],
        (offset, target): (f64, f64),
        error: f64,
    ) -> Option<Leap> {
        let excess = || newest.iter().map(|telling| telling.base + offset - target);
        let mean = excess().sum::<f64>() / LEAP_AFTER as f64;
        if excess().all(|excess| excess > LEAP_TICKS) {
            Some(Leap::Hold(mean.round()))
        } else if excess().all(|excess| excess < -LEAP_TICKS) && error > LEAP_TICKS {
            Some(Leap::Ahead((-mean).round() as u32))
        } else {
            None
        }
    }
}

/// How often the clock was held, and the input tick jumped.
#[derive(Default)]
pub(super) struct Leaps {
    holds: u64,
    jumps: u64,
    jumps_told: u64,
}

impl Leaps {
    /// The clock is held.
    pub(super) fn note_hold(&mut self) {
        self.holds += 1;
    }

    /// The input tick jumps ahead.
    pub(super) fn note_jump(&mut self) {
        self.jumps += 1;
    }

    /// How often the clock was held.
    pub(super) fn holds(&self) -> u64 {
        self.holds
    }

    /// How often the input tick jumped.
    pub(super) fn jumps(&self) -> u64 {
        self.jumps
    }

    /// Whether it jumped since this was asked last.
    pub(super) fn take_jumped(&mut self) -> bool {
        let jumped = self.jumps > self.jumps_told;
        self.jumps_told = self.jumps;
        jumped
    }
}
