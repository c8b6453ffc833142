//! [`DegradationSteps`] and [`Gauge`]: thresholds with hysteresis.

use std::time::Duration;

use twinstep_server::Degradation;

/// After this many consecutive samples above the limit, degradation goes up one step.
const SAMPLES_UP: u32 = 3;
/// After this many consecutive samples below half of the limit, degradation goes down one step.
const SAMPLES_DOWN: u32 = 10;
/// Above this multiple of the limit, degradation goes up one step with each sample.
const SEVERE: u32 = 4;

#[derive(Debug)]
pub(super) struct DegradationSteps {
    limit: Duration,
    steps: u8,
    above: u32,
    below: u32,
}

impl DegradationSteps {
    pub(super) fn new(limit: Duration) -> DegradationSteps {
        DegradationSteps {
            limit,
            steps: 0,
            above: 0,
            below: 0,
        }
    }

    pub(super) fn sample(&mut self, lateness: Duration) -> u8 {
        self.above = match lateness > self.limit {
            true => self.above + 1,
            false => 0,
        };
        self.below = match lateness < self.limit / 2 {
            true => self.below + 1,
            false => 0,
        };
        let is_severe = lateness > self.limit * SEVERE;
        if self.above >= SAMPLES_UP || is_severe {
            self.steps = (self.steps + 1).min(Degradation::STEPS_MAX);
            self.above = 0;
        } else if self.below >= SAMPLES_DOWN {
            self.steps = self.steps.saturating_sub(1);
            self.below = 0;
        }
        self.steps
    }
}

// The values at which an exceeded maximum, or a missed minimum, counts as met again.
pub(super) fn fits_again(limit: u64) -> u64 {
    limit - limit / 20
}

pub(super) fn is_free_again(limit: u64) -> u64 {
    limit.saturating_add(limit / 10)
}

#[derive(Debug)]
pub(super) struct Gauge {
    limit: u64,
    is_most: bool,
    is_beyond: bool,
}

impl Gauge {
    /// Creates a gauge for a maximum. Once exceeded, it counts as exceeded until the number falls to 95 % of it.
    pub(super) fn above(limit: u64) -> Gauge {
        Gauge {
            limit,
            is_most: true,
            is_beyond: false,
        }
    }

    /// Creates a gauge for a number that should be at least `limit`. Once the number is below `limit`, the gauge
    /// reports that until the number is at least 110 % of `limit`.
    pub(super) fn below(limit: u64) -> Gauge {
        Gauge {
            limit,
            is_most: false,
            is_beyond: false,
        }
    }

    pub(super) fn sample(&mut self, number: u64) -> bool {
        self.is_beyond = match (self.is_most, self.is_beyond) {
            (true, false) => number > self.limit,
            (true, true) => number > fits_again(self.limit),
            (false, false) => number < self.limit,
            (false, true) => number < is_free_again(self.limit),
        };
        self.is_beyond
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const MS: fn(u64) -> Duration = Duration::from_millis;

    #[test]
    fn load_shedding_goes_up_step_by_step_and_down_more_slowly() {
        let mut steps = DegradationSteps::new(MS(20));
        let mut samples =
            |ms: u64, samples: u32| -> u8 { (0..samples).fold(0, |_, _| steps.sample(MS(ms))) };
        assert_eq!(samples(19, 100), 0);
        assert_eq!((samples(21, 2), samples(19, 1), samples(21, 2)), (0, 0, 0));
        assert_eq!((samples(21, 1), samples(21, 2), samples(21, 1)), (1, 1, 2));
        // Between the thresholds, nothing changes either way.
        assert_eq!(samples(15, 100), 2);
        assert_eq!((samples(9, 9), samples(15, 1), samples(9, 9)), (2, 2, 2));
        assert_eq!((samples(9, 1), samples(9, 10), samples(9, 100)), (1, 0, 0));
        // Severe lateness causes a step with each sample.
        assert_eq!((samples(81, 1), samples(81, 2), samples(81, 9)), (1, 3, 4));
    }

    #[test]
    fn a_shortage_ends_only_with_a_margin() {
        let mut memory = Gauge::above(1_000);
        let beyond = [1_000, 1_001, 999, 951, 950, 1_000].map(|bytes| memory.sample(bytes));
        assert_eq!(beyond, [false, true, true, true, false, false]);
        let mut disk = Gauge::below(1_000);
        let beyond = [1_000, 999, 1_001, 1_099, 1_100, 1_000].map(|bytes| disk.sample(bytes));
        assert_eq!(beyond, [false, true, true, true, false, false]);
    }
}
