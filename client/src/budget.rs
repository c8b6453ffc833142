//! [`StepBudget`]: how many steps fit into the time that a frame may take, as measured.
//!
//! ```text
//!   time of an advance = what it costs with no step at all + steps × what a step costs
//! ```
//!
//! Both are the line of least squares through the last advances (older ones count less and less), so that what every
//! frame costs anyhow is not taken for the cost of steps. Invariant: no clock is read here; the client measures.

use std::time::Duration;

/// A frame of a game gives the session so much of its time, unless the game says otherwise.
pub(crate) const FRAME_TIME: Duration = Duration::from_millis(4);
/// Steps that a frame gets however dear they are: without any, nothing would ever be measured or shown.
const TICKS_MIN: u32 = 2;
/// Steps of a frame at most, and the budget as long as nothing is measured.
const TICKS_MAX: u32 = crate::session::BUDGET_TICKS;
/// The weight of the newest advance.
const NEWEST: f64 = 1.0 / 64.0;
/// An advance that took longer than so many frame times was interrupted: it counts as one that took so long.
const INTERRUPTED: f64 = 8.0;
/// Steps vary by less than this (squared): then all of the time is taken for theirs.
const VARIANCE_MIN: f64 = 0.25;
/// No step costs less.
const STEP_MIN_S: f64 = 1e-7;

/// See the [module](self).
pub(crate) struct StepBudget {
    frame_s: f64,
    measured: bool,
    // Means of the steps of an advance, its seconds, and their products.
    steps: f64,
    time: f64,
    steps_squared: f64,
    steps_time: f64,
}

impl StepBudget {
    pub(crate) fn new(frame: Duration) -> Self {
        StepBudget {
            frame_s: frame.as_secs_f64(),
            measured: false,
            steps: 0.0,
            time: 0.0,
            steps_squared: 0.0,
            steps_time: 0.0,
        }
    }

    /// An advance of so many steps took so long.
    pub(crate) fn note(&mut self, steps: u64, took: Duration) {
        let steps = steps as f64;
        let time = took.as_secs_f64().min(self.frame_s * INTERRUPTED);
        let weight = if self.measured { NEWEST } else { 1.0 };
        self.measured = true;
        for (mean, value) in [
            (&mut self.steps, steps),
            (&mut self.time, time),
            (&mut self.steps_squared, steps * steps),
            (&mut self.steps_time, steps * time),
        ] {
            *mean += (value - *mean) * weight;
        }
    }

    /// Steps that the next frame may take.
    pub(crate) fn ticks(&self) -> u32 {
        if self.steps == 0.0 {
            return TICKS_MAX;
        }
        let variance = self.steps_squared - self.steps * self.steps;
        let at_most = self.time / self.steps;
        let step = if variance > VARIANCE_MIN {
            ((self.steps_time - self.steps * self.time) / variance).min(at_most)
        } else {
            at_most
        };
        let step = step.max(STEP_MIN_S);
        let idle = (self.time - step * self.steps).max(0.0);
        (((self.frame_s - idle) / step) as u32).clamp(TICKS_MIN, TICKS_MAX)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A budget that has seen quiet frames of two steps and now and then a rebuild of 30.
    fn measured(idle_us: u64, step_us: u64) -> StepBudget {
        let mut budget = StepBudget::new(FRAME_TIME);
        assert_eq!(budget.ticks(), TICKS_MAX, "nothing is measured");
        for n in 0..600 {
            let steps = if n % 20 == 19 { 32 } else { 2 };
            budget.note(steps, Duration::from_micros(idle_us + steps * step_us));
        }
        budget
    }

    /// Finding K7: the budget was 128 steps, whatever they cost.
    #[test]
    fn what_steps_cost_becomes_the_budget() {
        assert_eq!(measured(0, 10).ticks(), TICKS_MAX, "as many fit");
        for (idle_us, step_us, expected) in [(0, 100, 40), (1_000, 100, 30), (500, 500, 7)] {
            let ticks = measured(idle_us, step_us).ticks();
            assert!(
                ticks.abs_diff(expected) <= 1,
                "{idle_us} + {step_us} us a step: {ticks}"
            );
        }
        assert_eq!(measured(100, 5_000).ticks(), TICKS_MIN);
        assert_eq!(measured(9_000, 10).ticks(), TICKS_MIN, "idle alone is dear");
    }

    #[test]
    fn a_single_interruption_changes_little_and_a_dearer_step_is_learned_within_seconds() {
        let mut budget = measured(0, 100);
        budget.note(2, Duration::from_secs(1));
        let after = budget.ticks();
        assert!((20..=60).contains(&after), "{after}");
        for n in 0..300 {
            let steps = if n % 20 == 19 { 16 } else { 2 };
            budget.note(steps, Duration::from_micros(steps * 400));
        }
        let learned = budget.ticks();
        assert!((9..=11).contains(&learned), "{learned}");
    }
}
