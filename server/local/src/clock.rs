//! [`LocalClock`]: converts the caller's time into the time of a local match.

use std::ops::RangeInclusive;
use std::time::Duration;

/// The range of speeds of a local match; 1 is the speed of the online game.
pub const TIME_SCALES: RangeInclusive<f64> = 0.25..=4.0;

/// The maximum time played per frame, so that a slow frame is not followed by a long catch-up.
const FRAME_MAX: Duration = Duration::from_millis(250);

/// A time scale that is out of range.
#[derive(Clone, Copy, Debug, PartialEq, thiserror::Error)]
#[error(
    "expected a time scale of {} to {}, got {got}: to stop, use `pause`; to advance tick by tick, use `step`",
    TIME_SCALES.start(),
    TIME_SCALES.end()
)]
pub struct TimeScaleError {
    /// The rejected scale.
    pub got: f64,
}

pub(super) struct LocalClock {
    /// The caller's time at the last call.
    at: Option<Duration>,
    pub(super) paused: bool,
    scale: f64,
}

impl LocalClock {
    pub(super) fn new() -> Self {
        LocalClock {
            at: None,
            paused: false,
            scale: 1.0,
        }
    }

    /// Advances the caller's clock to `now`. Returns the time by which the match must advance.
    pub(super) fn pass(&mut self, now: Duration) -> Duration {
        let before = self.at.unwrap_or(now);
        self.at = Some(now.max(before));
        // `at` has advanced, so the time of the pause is never made up for.
        if self.paused {
            return Duration::ZERO;
        }
        now.saturating_sub(before)
            .min(FRAME_MAX)
            .mul_f64(self.scale)
    }

    pub(super) fn scale(&self) -> f64 {
        self.scale
    }

    pub(super) fn set_scale(&mut self, scale: f64) -> Result<(), TimeScaleError> {
        if !TIME_SCALES.contains(&scale) {
            return Err(TimeScaleError { got: scale });
        }
        self.scale = scale;
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const MS: Duration = Duration::from_millis(1);

    #[test]
    fn time_is_scaled_and_a_pause_is_not_made_up_for() {
        let mut clock = LocalClock::new();
        assert_eq!(clock.pass(1_000 * MS), Duration::ZERO, "it begins here");
        assert_eq!(clock.pass(1_010 * MS), 10 * MS);
        clock.paused = true;
        assert_eq!(clock.pass(1_110 * MS), Duration::ZERO);
        clock.paused = false;
        assert_eq!(clock.pass(1_120 * MS), 10 * MS);
        clock.set_scale(0.25).unwrap();
        assert_eq!(clock.pass(1_160 * MS), 10 * MS);
        clock.set_scale(4.0).unwrap();
        assert_eq!(clock.pass(1_170 * MS), 40 * MS);
    }

    #[test]
    fn a_clock_going_back_or_stopping_causes_no_catch_up() {
        let mut clock = LocalClock::new();
        clock.pass(1_000 * MS);
        assert_eq!(clock.pass(500 * MS), Duration::ZERO);
        assert_eq!(clock.pass(1_005 * MS), 5 * MS, "since the latest time");
        assert_eq!(clock.pass(60_000 * MS), FRAME_MAX);
    }

    #[test]
    fn an_out_of_range_scale_is_rejected_with_advice() {
        let mut clock = LocalClock::new();
        for got in [0.0, -1.0, 0.249, 4.1, f64::INFINITY, f64::NAN] {
            let error = clock.set_scale(got).unwrap_err();
            let message = error.to_string();
            assert!(
                message.contains("expected a time scale of 0.25 to 4"),
                "{message}"
            );
            assert!(message.contains(&format!("got {got}")), "{message}");
        }
        assert_eq!(clock.scale(), 1.0, "nothing changed");
    }
}
