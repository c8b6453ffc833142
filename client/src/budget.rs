//! [`StepBudget`]: the number of steps that fit into the time that a frame may take, by measurement.
//!
//! ```text
//!   time of an advance = its cost without steps + steps × the cost of a step
//! ```
//!
//! Both costs come from a least-squares line through the last advances, weighted towards the newest, so that the fixed
//! cost of a frame is not attributed to its steps. Invariant: no clock is read here; the client measures.

use std::time::Duration;

use twinstep_core::bounds::{LEAD_MAX, nanos};

/// The steps that one advance may take by default: at 60 Hz a burst of confirmed ticks and a rebuild of the whole lead.
pub const BUDGET_TICKS: u32 = 160;
/// The part of a frame's time that the session may take by default.
pub(crate) const FRAME_TIME: Duration = Duration::from_millis(4);
/// The smallest budget of a frame, however expensive its steps are: without any step, no cost would be measured and no
/// tick shown.
const TICKS_MIN: u32 = 2;
/// The largest budget of a frame, and the budget before the first measurement.
const TICKS_MAX: u32 = BUDGET_TICKS;
const NEWEST: f64 = 1.0 / 64.0;
/// An advance of more than this many frame times was interrupted, and counts as this long.
const INTERRUPTED: f64 = 8.0;
/// The variance of steps below which the whole time is attributed to the steps.
const VARIANCE_MIN: f64 = 0.25;
const STEP_MIN_S: f64 = 1e-7;

pub(crate) struct StepBudget {
    frame_s: f64,
    measured: bool,
    // Means over advances: the number of steps, the seconds, and their products.
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

    pub(crate) fn record(&mut self, steps: u64, took: Duration) {
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

    pub(crate) fn ticks(&self) -> u32 {
        if self.steps == 0.0 {
            return TICKS_MAX;
        }
        let variance = self.steps_squared - self.steps * self.steps;
        // Too little variation to separate the two costs: assume that the steps took all the time.
        let at_most = self.time / self.steps;
        let step = if variance > VARIANCE_MIN {
            // Noise can make the slope steeper than if the steps had taken all the time.
            ((self.steps_time - self.steps * self.time) / variance).min(at_most)
        } else {
            at_most
        };
        let step = step.max(STEP_MIN_S);
        let idle = (self.time - step * self.steps).max(0.0);
        (((self.frame_s - idle) / step) as u32).clamp(TICKS_MIN, TICKS_MAX)
    }
}

/// The maximum number of authority steps at one instant: a client catches up in bursts.
pub(crate) const BURST_TICKS: u32 = 64;

/// The number of ticks that the authority may step in one `advance`.
///
/// Invariant: the ticks for which time has passed are free, plus one, so that the authority never falls behind
/// permanently. At one instant there are at most [`BURST_TICKS`] steps, however often the session is advanced then.
#[derive(Default)]
pub(crate) struct StepAllowance {
    advanced_at: Option<Duration>,
    passed: Duration,
    /// Authority steps since time last advanced.
    burst: u32,
}

impl StepAllowance {
    pub(crate) fn begin(&mut self, now: Duration) {
        let before = self.advanced_at.replace(now);
        self.passed = before.map_or(Duration::ZERO, |at| now.saturating_sub(at));
        if !self.passed.is_zero() {
            self.burst = 0;
        }
    }

    pub(crate) fn now(&self) -> Duration {
        self.advanced_at.unwrap_or_default()
    }

    pub(crate) fn passed(&self) -> Duration {
        self.passed
    }

    /// The number of ticks of length `tick` that may be stepped outside the budget.
    pub(crate) fn free(&self, tick: Duration) -> u32 {
        let passed = (nanos(self.passed) / nanos(tick)).min(u64::from(BURST_TICKS));
        passed as u32 + 1
    }

    /// The number of steps that may still run at this instant, at most `wished`.
    pub(crate) fn left_of(&self, wished: u32) -> u32 {
        wished.min(BURST_TICKS.saturating_sub(self.burst))
    }

    pub(crate) fn record_step(&mut self) {
        self.burst += 1;
    }
}

/// The time without shedding after which the lead grows again, by one tick per advance.
const CALM: Duration = Duration::from_millis(500);

/// The number of ticks by which the prediction may run ahead of the authority, so that its steps fit into the budget.
///
/// Invariant: over budget, the lead shrinks immediately. It grows back by one tick per `advance` once the budget has
/// sufficed for [`CALM`].
pub(crate) struct AllowedLead {
    ticks: u32,
    shed_at: Duration,
    /// Whether the last advance had more to predict than its budget.
    is_short: bool,
}

impl AllowedLead {
    pub(crate) fn new() -> AllowedLead {
        AllowedLead {
            ticks: LEAD_MAX,
            shed_at: Duration::ZERO,
            is_short: false,
        }
    }

    pub(crate) fn ticks(&self) -> u32 {
        self.ticks
    }

    /// Limits the lead to `max`, because the tick length changed.
    pub(crate) fn bound(&mut self, max: u32) {
        self.ticks = self.ticks.min(max);
    }

    /// Shortens the shown lead, now `lead` ticks, so that the client does not fall behind.
    pub(crate) fn shed(&mut self, now: Duration, lead: u32) {
        self.ticks = self.ticks.min(lead).saturating_sub(1 + lead / 8);
        self.shed_at = now;
        self.is_short = true;
    }

    pub(crate) fn is_short(&self) -> bool {
        self.is_short
    }

    /// Lets the lead grow, because the budget sufficed.
    pub(crate) fn grow(&mut self, now: Duration, max: u32) {
        self.is_short = false;
        if now.saturating_sub(self.shed_at) > CALM {
            self.ticks = (self.ticks + 1).min(max);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A budget measured over idle frames of two steps with occasional rebuilds of 30.
    fn measured(idle_us: u64, step_us: u64) -> StepBudget {
        let mut budget = StepBudget::new(FRAME_TIME);
        assert_eq!(budget.ticks(), TICKS_MAX, "before the first measurement");
        for n in 0..600 {
            let steps = if n % 20 == 19 { 32 } else { 2 };
            budget.record(steps, Duration::from_micros(idle_us + steps * step_us));
        }
        budget
    }

    /// Finding K7: the budget was 128 steps, whatever a step cost.
    #[test]
    fn the_budget_follows_from_the_cost_of_steps() {
        assert_eq!(measured(0, 10).ticks(), TICKS_MAX, "as many fit");
        for (idle_us, step_us, expected) in [(0, 100, 40), (1_000, 100, 30), (500, 500, 7)] {
            let ticks = measured(idle_us, step_us).ticks();
            assert!(
                ticks.abs_diff(expected) <= 1,
                "{idle_us} + {step_us} us a step: {ticks}"
            );
        }
        assert_eq!(measured(100, 5_000).ticks(), TICKS_MIN);
        assert_eq!(
            measured(9_000, 10).ticks(),
            TICKS_MIN,
            "idle frames alone exceed the budget"
        );
    }

    #[test]
    fn one_interruption_changes_little_and_a_costlier_step_is_learned_within_seconds() {
        let mut budget = measured(0, 100);
        budget.record(2, Duration::from_secs(1));
        let after = budget.ticks();
        assert!((20..=60).contains(&after), "{after}");
        for n in 0..300 {
            let steps = if n % 20 == 19 { 16 } else { 2 };
            budget.record(steps, Duration::from_micros(steps * 400));
        }
        let learned = budget.ticks();
        assert!((9..=11).contains(&learned), "{learned}");
    }
}
