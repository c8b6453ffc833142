//! [`StepBudget`]: measures the number of steps that fit into the time that a frame may take.
//!
//! ```text
//!   time of an advance = its cost without steps + new steps × their cost + repeated steps × their cost
//! ```
//!
//! The costs come from a least-squares fit to the last advances, weighted towards the newest, so that a frame's fixed
//! cost is not attributed to its steps. A repeated step (in a tick that was predicted before) costs less if the game's
//! loops reuse results ([`Effects::each`](twinstep_core::Effects::each)). Invariant: no clock is read here; the client
//! measures.

use std::ops::Sub;
use std::time::Duration;

use twinstep_core::bounds::{LEAD_MAX, nanos};

/// The default maximum number of steps per advance. At 60 Hz it allows a burst of confirmed ticks and a rebuild of the
/// whole lead.
pub const BUDGET_TICKS: u32 = 160;
/// The default time for an advance.
pub(crate) const FRAME_TIME: Duration = Duration::from_millis(4);
/// The smallest budget of a frame, however expensive its steps are. Without a step, no cost would be measured and no
/// tick would be shown.
const TICKS_MIN: u32 = 2;
/// The largest budget of a frame, and the budget before the first measurement.
const TICKS_MAX: u32 = BUDGET_TICKS;
const NEWEST: f64 = 1.0 / 64.0;
/// An advance that takes more than this many times its budget was interrupted, and counts as exactly this long.
const INTERRUPTED: f64 = 8.0;
/// The variance of the number of steps below which the whole time is attributed to the steps.
const VARIANCE_MIN: f64 = 0.25;
const STEP_MIN_S: f64 = 1e-7;

pub(crate) const NEW_STEP: u32 = 256;
/// The smallest cost of a repeated step. A new step costs [`NEW_STEP`].
pub(crate) const REPEATED_MIN: u32 = 4;

#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct StepCounts {
    /// Steps of confirmed ticks, and of ticks that had not been predicted before.
    pub(crate) new: u64,
    /// Steps of rebuilds in ticks that had been predicted before, if the game has loops that reuse results. Otherwise
    /// they count as new steps.
    pub(crate) repeated: u64,
}

impl Sub for StepCounts {
    type Output = StepCounts;

    /// Saturates, because a session that ends has no steps.
    fn sub(self, before: StepCounts) -> StepCounts {
        StepCounts {
            new: self.new.saturating_sub(before.new),
            repeated: self.repeated.saturating_sub(before.repeated),
        }
    }
}

/// Exponentially weighted means over advances: new steps, repeated steps, seconds, and the products for the regression.
#[derive(Clone, Copy, Default)]
struct Means {
    new: f64,
    repeated: f64,
    time: f64,
    new_new: f64,
    new_repeated: f64,
    repeated_repeated: f64,
    new_time: f64,
    repeated_time: f64,
}

pub(crate) struct StepBudget {
    frame_s: f64,
    measured: bool,
    means: Means,
}

struct StepCosts {
    new: f64,
    repeated: f64,
}

impl StepBudget {
    pub(crate) fn new(frame: Duration) -> Self {
        StepBudget {
            frame_s: frame.as_secs_f64(),
            measured: false,
            means: Means::default(),
        }
    }

    pub(crate) fn record(&mut self, steps: StepCounts, took: Duration) {
        let (new, repeated) = (steps.new as f64, steps.repeated as f64);
        let time = took.as_secs_f64().min(self.frame_s * INTERRUPTED);
        let weight = if self.measured { NEWEST } else { 1.0 };
        self.measured = true;
        let means = &mut self.means;
        for (mean, value) in [
            (&mut means.new, new),
            (&mut means.repeated, repeated),
            (&mut means.time, time),
            (&mut means.new_new, new * new),
            (&mut means.new_repeated, new * repeated),
            (&mut means.repeated_repeated, repeated * repeated),
            (&mut means.new_time, new * time),
            (&mut means.repeated_time, repeated * time),
        ] {
            *mean += (value - *mean) * weight;
        }
    }

    pub(crate) fn ticks(&self) -> u32 {
        let Some(costs) = self.costs() else {
            return TICKS_MAX;
        };
        let Means {
            new,
            repeated,
            time,
            ..
        } = self.means;
        let idle = (time - costs.new * new - costs.repeated * repeated).max(0.0);
        (((self.frame_s - idle) / costs.new) as u32).clamp(TICKS_MIN, TICKS_MAX)
    }

    pub(crate) fn repeated_cost(&self) -> u32 {
        let share = self.costs().map_or(1.0, |costs| costs.repeated / costs.new);
        ((share * f64::from(NEW_STEP)).round() as u32).clamp(REPEATED_MIN, NEW_STEP)
    }

    fn costs(&self) -> Option<StepCosts> {
        let of = self.means;
        let steps = of.new + of.repeated;
        if steps == 0.0 {
            return None;
        }
        let new_new = of.new_new - of.new * of.new;
        let new_repeated = of.new_repeated - of.new * of.repeated;
        let repeated_repeated = of.repeated_repeated - of.repeated * of.repeated;
        let new_time = of.new_time - of.new * of.time;
        let repeated_time = of.repeated_time - of.repeated * of.time;
        // Assume one cost for both kinds, unless the measurements separate them. With too little variation, assume that
        // the steps took all the time. Noise can make the slope steeper than that.
        let at_most = of.time / steps;
        let variance = new_new + 2.0 * new_repeated + repeated_repeated;
        let any = match variance > VARIANCE_MIN {
            true => ((new_time + repeated_time) / variance).min(at_most),
            false => at_most,
        };
        let any = any.max(STEP_MIN_S);
        let same = StepCosts {
            new: any,
            repeated: any,
        };
        if repeated_repeated <= VARIANCE_MIN {
            return Some(same);
        }
        // At a steady frame rate each frame has the same number of new steps, so their cost cannot be separated from
        // the frame's own. In that case the frame's own cost counts as theirs.
        let determinant = new_new * repeated_repeated - new_repeated * new_repeated;
        let is_steady = determinant <= VARIANCE_MIN * repeated_repeated;
        let repeated = match is_steady {
            true => repeated_time / repeated_repeated,
            false => (repeated_time * new_new - new_time * new_repeated) / determinant,
        };
        let repeated = repeated.max(STEP_MIN_S);
        let new = match is_steady {
            true => (of.time - repeated * of.repeated) / of.new.max(1.0),
            false => (new_time * repeated_repeated - repeated_time * new_repeated) / determinant,
        };
        // A repeated step never costs more than a new one.
        Some(match new > repeated {
            true => StepCosts { new, repeated },
            false => same,
        })
    }
}

/// The maximum number of authority steps at one instant: a client catches up in bursts.
pub(crate) const BURST_TICKS: u32 = 64;

/// The number of ticks that the authority may step in one `advance`.
///
/// Invariant: as many ticks as time has passed, plus one, do not count against the budget, so that the authority never
/// falls behind permanently. At one instant there are at most [`BURST_TICKS`] steps, however often the session is
/// advanced at that instant.
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

/// After this long without shedding, the lead grows again, by one tick per advance.
const CALM: Duration = Duration::from_millis(500);

/// The next stage starts once the budget has been too small for this long, which is longer than a burst of late frames.
const PATIENCE: Duration = Duration::from_millis(200);

/// Rebuilds stay rare for at least this time, so that the two stages do not alternate every second.
const RARE_FOR: Duration = Duration::from_secs(5);

/// The lead that the budget allows. If the steps do not fit, work is shed in two stages: rebuilds for other players'
/// actions become rare, then the prediction runs fewer ticks ahead of the authority.
///
/// Invariant: after [`PATIENCE`] over budget, the next stage starts. The lead grows back by one tick per `advance`
/// after [`CALM`] without shedding. Rebuilds are frequent again after [`RARE_FOR`] without shedding, once the lead is
/// whole.
pub(crate) struct AllowedLead {
    ticks: u32,
    shed_at: Duration,
    rare_since: Option<Duration>,
    /// The recent time with too small a budget. It falls half as fast as it grows.
    short: Duration,
    judged_at: Duration,
    /// Whether the last advance had more to predict than its budget allowed.
    is_short: bool,
}

impl AllowedLead {
    pub(crate) fn new() -> AllowedLead {
        AllowedLead {
            ticks: LEAD_MAX,
            shed_at: Duration::ZERO,
            rare_since: None,
            short: Duration::ZERO,
            judged_at: Duration::ZERO,
            is_short: false,
        }
    }

    pub(crate) fn ticks(&self) -> u32 {
        self.ticks
    }

    pub(crate) fn bound(&mut self, max: u32) {
        self.ticks = self.ticks.min(max);
    }

    /// Records too small a budget; after [`PATIENCE`] the next stage starts. `lead` is the lead shown now, in ticks.
    pub(crate) fn shed(&mut self, now: Duration, lead: u32) {
        self.is_short = true;
        let passed = self.passed(now);
        self.short += passed;
        if self.short < PATIENCE {
            return;
        }
        if self.rare_since.is_none() {
            (self.rare_since, self.short) = (Some(now), Duration::ZERO);
            return;
        }
        self.ticks = self.ticks.min(lead).saturating_sub(1 + lead / 8);
        self.shed_at = now;
    }

    fn passed(&mut self, now: Duration) -> Duration {
        let before = std::mem::replace(&mut self.judged_at, now);
        now.saturating_sub(before).min(PATIENCE / 4)
    }

    pub(crate) fn is_short(&self) -> bool {
        self.is_short
    }

    pub(crate) fn grow(&mut self, now: Duration, max: u32) {
        self.is_short = false;
        let passed = self.passed(now);
        self.short = self.short.saturating_sub(passed / 2);
        if now.saturating_sub(self.shed_at) > CALM {
            self.ticks = (self.ticks + 1).min(max);
        }
        let last = self.rare_since.max(Some(self.shed_at));
        if last.is_some_and(|last| now.saturating_sub(last) > RARE_FOR) && self.ticks == max {
            self.rare_since = None;
        }
    }

    pub(crate) fn is_rare(&self) -> bool {
        self.rare_since.is_some()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn all_new(new: u64) -> StepCounts {
        StepCounts { new, repeated: 0 }
    }

    /// A budget measured over idle frames of two steps with occasional rebuilds of 30 steps.
    fn measured(idle_us: u64, step_us: u64) -> StepBudget {
        let mut budget = StepBudget::new(FRAME_TIME);
        assert_eq!(budget.ticks(), TICKS_MAX, "before the first measurement");
        for n in 0..600 {
            let steps = if n % 20 == 19 { 32 } else { 2 };
            budget.record(
                all_new(steps),
                Duration::from_micros(idle_us + steps * step_us),
            );
        }
        budget
    }

    /// Finding K7: the budget was 128 steps, however long a step took.
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
    fn the_budget_ignores_one_interruption_and_learns_a_higher_step_cost_within_seconds() {
        let mut budget = measured(0, 100);
        budget.record(all_new(2), Duration::from_secs(1));
        let after = budget.ticks();
        assert!((20..=60).contains(&after), "{after}");
        for n in 0..300 {
            let steps = if n % 20 == 19 { 16 } else { 2 };
            budget.record(all_new(steps), Duration::from_micros(steps * 400));
        }
        let learned = budget.ticks();
        assert!((9..=11).contains(&learned), "{learned}");
    }

    #[test]
    fn repeated_steps_have_their_own_cost() {
        for (uneven, repeated_us) in [(false, 100), (true, 100), (false, 1_000), (true, 1_000)] {
            let mut budget = StepBudget::new(FRAME_TIME);
            for n in 0..600_u64 {
                let new = if uneven { 1 + n % 3 } else { 2 };
                let repeated = if n % 4 == 0 { 10 } else { 0 };
                let took = Duration::from_micros(new * 1_000 + repeated * repeated_us);
                budget.record(StepCounts { new, repeated }, took);
            }
            let expected = (repeated_us * 256 / 1_000) as u32;
            let cost = budget.repeated_cost();
            assert!(
                cost.abs_diff(expected) <= 26,
                "{uneven}, {repeated_us}: {cost}"
            );
            let ticks = budget.ticks();
            assert!((3..=4).contains(&ticks), "{uneven}, {repeated_us}: {ticks}");
        }
    }

    #[test]
    fn rebuilds_become_rare_before_the_lead_is_shortened() {
        let frame = Duration::from_millis(16);
        let mut now = Duration::ZERO;
        let mut lead = AllowedLead::new();
        lead.bound(12);
        let mut play = |lead: &mut AllowedLead,
                        seconds: u64,
                        is_short: bool,
                        until: &dyn Fn(&AllowedLead) -> bool| {
            let began = now;
            while now - began < Duration::from_secs(seconds) && !until(lead) {
                now += frame;
                match is_short {
                    true => lead.shed(now, 12),
                    false => lead.grow(now, 12),
                }
            }
            now - began
        };
        let rare = play(&mut lead, 9, true, &AllowedLead::is_rare);
        assert!((PATIENCE..PATIENCE * 2).contains(&rare), "{rare:?}");
        let shorter = play(&mut lead, 9, true, &|lead| lead.ticks() < 12);
        assert!((PATIENCE..PATIENCE * 2).contains(&shorter), "{shorter:?}");
        play(&mut lead, 9, false, &|lead| lead.ticks() == 12);
        assert!(lead.is_rare(), "the lead comes back first");
        let frequent = play(&mut lead, 9, false, &|lead| !lead.is_rare());
        assert!(
            (RARE_FOR / 2..RARE_FOR * 2).contains(&frequent),
            "{frequent:?}"
        );
    }
}
