//! [`LocalClock`]: how much of the caller's time becomes the time of a local match.

use std::ops::RangeInclusive;
use std::time::Duration;

/// How fast a local match may be played: 1 is as fast as online.
pub const TIME_SCALES: RangeInclusive<f64> = 0.25..=4.0;

/// Of a longer frame, only so much is played: nobody waits for the rest.
const FRAME_MAX: Duration = Duration::from_millis(250);

/// A time scale that no match can be played at.
#[derive(Clone, Copy, Debug, PartialEq, thiserror::Error)]
#[error(
    "expected a time scale of {} to {}, got {got}: to stand still, pause; to go on tick by tick, step",
    TIME_SCALES.start(),
    TIME_SCALES.end()
)]
pub struct TimeScaleError {
    /// What came.
    pub got: f64,
}

/// The caller's clock, and what is made of it.
pub(super) struct LocalClock {
    /// When the caller came last, by its clock.
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

    /// The caller's clock says `now`: the match is to go on by so much.
    pub(super) fn pass(&mut self, now: Duration) -> Duration {
        let before = self.at.unwrap_or(now);
        self.at = Some(now.max(before));
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
    fn a_clock_that_goes_back_or_stood_still_hurries_nobody() {
        let mut clock = LocalClock::new();
        clock.pass(1_000 * MS);
        assert_eq!(clock.pass(500 * MS), Duration::ZERO);
        assert_eq!(clock.pass(1_005 * MS), 5 * MS, "since the latest time");
        assert_eq!(clock.pass(60_000 * MS), FRAME_MAX);
    }

    #[test]
    fn a_scale_out_of_range_is_an_error_that_says_what_to_do() {
        let mut clock = LocalClock::new();
        for got in [0.0, -1.0, 0.249, 4.1, f64::INFINITY, f64::NAN] {
            let error = clock.set_scale(got).unwrap_err();
            let told = error.to_string();
            assert!(
                told.contains("expected a time scale of 0.25 to 4"),
                "{told}"
            );
            assert!(told.contains(&format!("got {got}")), "{told}");
        }
        assert_eq!(clock.scale(), 1.0, "nothing changed");
    }
}
