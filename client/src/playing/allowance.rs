//! [`StepAllowance`]: how many ticks the authority may step in one `advance`.
//!
//! Invariant: as many ticks as time has passed are free, and one more, so that the authority never falls behind for
//! good; and at one instant there are never more than [`BURST_TICKS`], however often the session is advanced then.

use std::time::Duration;

use twinstep_core::bounds::nanos;

/// Authority steps at one instant at most: catching up goes in bursts.
pub(super) const BURST_TICKS: u32 = 64;

/// See the [module](self).
#[derive(Default)]
pub(super) struct StepAllowance {
    advanced_at: Option<Duration>,
    /// How long the caller was away before this `advance`.
    passed: Duration,
    /// Steps of the authority since time last passed.
    burst: u32,
}

impl StepAllowance {
    /// An `advance` begins.
    pub(super) fn begin(&mut self, now: Duration) {
        let before = self.advanced_at.replace(now);
        self.passed = before.map_or(Duration::ZERO, |at| now.saturating_sub(at));
        if !self.passed.is_zero() {
            self.burst = 0;
        }
    }

    /// The moment of the last `advance`.
    pub(super) fn now(&self) -> Duration {
        self.advanced_at.unwrap_or_default()
    }

    /// How long the caller was away before that.
    pub(super) fn passed(&self) -> Duration {
        self.passed
    }

    /// Steps that cost nothing of a budget, for ticks of this length.
    pub(super) fn free(&self, tick: Duration) -> u32 {
        let passed = (nanos(self.passed) / nanos(tick)).min(u64::from(BURST_TICKS));
        passed as u32 + 1
    }

    /// Of so many wished steps, those that are left at this instant.
    pub(super) fn left_of(&self, wished: u32) -> u32 {
        wished.min(BURST_TICKS.saturating_sub(self.burst))
    }

    /// The authority stepped.
    pub(super) fn note_step(&mut self) {
        self.burst += 1;
    }
}
