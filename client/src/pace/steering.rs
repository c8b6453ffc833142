//! [`Steering`]: the rate of the clock, for an error of its margin.
//!
//! Invariant: the rate is 0.9 ..= 1.1. Steering begins at a larger error than the one at which it ends, so that it does
//! not flutter.

/// Errors up to this many ticks are left alone...
const DEAD_BAND_TICKS: f64 = 0.75;
/// ...unless steering has begun: it ends here.
const CALM_TICKS: f64 = 0.25;

/// See the [module](self).
pub(super) struct Steering {
    rate: f64,
    is_on: bool,
}

impl Steering {
    /// There is nothing to correct.
    pub(super) fn new() -> Steering {
        Steering {
            rate: 1.0,
            is_on: false,
        }
    }

    /// The rate for the error that is left: ticks by which the margin is too small.
    pub(super) fn steer(&mut self, error: f64) -> f64 {
        let ends_at = if self.is_on {
            CALM_TICKS
        } else {
            DEAD_BAND_TICKS
        };
        self.is_on = error.abs() > ends_at;
        // 5 % from one tick to two, then up to 10 % at three.
        let strength = error.abs().min(1.0) * 0.05 + (error.abs() - 2.0).clamp(0.0, 1.0) * 0.05;
        self.rate = match self.is_on {
            true => 1.0 + strength.copysign(error),
            false => 1.0,
        };
        self.rate
    }

    /// The rate, as it was set last.
    pub(super) fn rate(&self) -> f64 {
        self.rate
    }
}
