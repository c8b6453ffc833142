//! [`StepBudget`]: how many steps fit into the time that a frame may take, as measured.
//!
//! ```text
//!   time of an advance = what it costs with no step at all + steps × what a step costs
//! ```
//!
//! Both are the line of least squares through the last advances (older ones count less and less), so that what every
//! frame costs anyhow is not taken for the cost of steps. Invariant: no clock is read here; the client measures.

use std::time::Duration;

use twinstep_core::bounds::{LEAD_MAX, nanos};

/// Steps that one advance may take, unless the caller says otherwise: at 60 Hz a burst of confirmed ticks and a rebuild
/// of the whole lead.
pub const BUDGET_TICKS: u32 = 160;
/// A frame of a game gives the session so much of its time, unless the game says otherwise.
pub(crate) const FRAME_TIME: Duration = Duration::from_millis(4);
/// Steps that a frame gets however dear they are: without any, nothing would ever be measured or shown.
const TICKS_MIN: u32 = 2;
/// Steps of a frame at most, and the budget as long as nothing is measured.
const TICKS_MAX: u32 = BUDGET_TICKS;
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

/// Authority steps at one instant at most: catching up goes in bursts.
pub(crate) const BURST_TICKS: u32 = 64;

/// How many ticks the authority may step in one `advance`.
///
/// Invariant: as many ticks as time has passed are free, and one more, so that the authority never falls behind for
/// good; and at one instant there are never more than [`BURST_TICKS`], however often the session is advanced then.
#[derive(Default)]
pub(crate) struct StepAllowance {
    advanced_at: Option<Duration>,
    /// How long the caller was away before this `advance`.
    passed: Duration,
    /// Steps of the authority since time last passed.
    burst: u32,
}

impl StepAllowance {
    /// An `advance` begins.
    pub(crate) fn begin(&mut self, now: Duration) {
        let before = self.advanced_at.replace(now);
        self.passed = before.map_or(Duration::ZERO, |at| now.saturating_sub(at));
        if !self.passed.is_zero() {
            self.burst = 0;
        }
    }

    /// The moment of the last `advance`.
    pub(crate) fn now(&self) -> Duration {
        self.advanced_at.unwrap_or_default()
    }

    /// How long the caller was away before that.
    pub(crate) fn passed(&self) -> Duration {
        self.passed
    }

    /// Steps that cost nothing of a budget, for ticks of this length.
    pub(crate) fn free(&self, tick: Duration) -> u32 {
        let passed = (nanos(self.passed) / nanos(tick)).min(u64::from(BURST_TICKS));
        passed as u32 + 1
    }

    /// The steps that may still run at this instant, `wished` at most.
    pub(crate) fn left_of(&self, wished: u32) -> u32 {
        wished.min(BURST_TICKS.saturating_sub(self.burst))
    }

    /// The authority stepped.
    pub(crate) fn record_step(&mut self) {
        self.burst += 1;
    }
}

/// Once nothing was shed for this time, the lead grows again, by one tick an advance.
const CALM: Duration = Duration::from_millis(500);

/// How far the prediction may run ahead of the authority, so that its steps fit into the budget.
///
/// Invariant: over budget, less of the future is shown at once; it comes back by a tick an `advance`, after a while in
/// which the budget sufficed.
pub(crate) struct AllowedLead {
    ticks: u32,
    shed_at: Duration,
    /// The last advance had more to predict than its budget.
    is_short: bool,
}

impl AllowedLead {
    /// As far as there is any use in it.
    pub(crate) fn new() -> AllowedLead {
        AllowedLead {
            ticks: LEAD_MAX,
            shed_at: Duration::ZERO,
            is_short: false,
        }
    }

    /// The lead that is allowed.
    pub(crate) fn ticks(&self) -> u32 {
        self.ticks
    }

    /// Ticks have another length: it is no more than this.
    pub(crate) fn bound(&mut self, max: u32) {
        self.ticks = self.ticks.min(max);
    }

    /// Shortens the lead that is shown, now `lead` ticks, so that the client does not fall behind.
    pub(crate) fn shed(&mut self, now: Duration, lead: u32) {
        self.ticks = self.ticks.min(lead).saturating_sub(1 + lead / 8);
        self.shed_at = now;
        self.is_short = true;
    }

    /// Whether the last advance had more to predict than its budget.
    pub(crate) fn is_short(&self) -> bool {
        self.is_short
    }

    /// The budget sufficed.
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

    /// A budget that has seen quiet frames of two steps and now and then a rebuild of 30.
    fn measured(idle_us: u64, step_us: u64) -> StepBudget {
        let mut budget = StepBudget::new(FRAME_TIME);
        assert_eq!(budget.ticks(), TICKS_MAX, "nothing is measured");
        for n in 0..600 {
            let steps = if n % 20 == 19 { 32 } else { 2 };
            budget.record(steps, Duration::from_micros(idle_us + steps * step_us));
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
