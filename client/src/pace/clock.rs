//! [`PaceClock`]: the position at which inputs are sampled. It moves with this machine's time, at a rate near 1.
//!
//! Invariant: the clock goes back only to wait for turns. Its *offset* is its total deviation from this machine's time,
//! caused by its rate, jumps and holds. The clock counts in integers, so that it does not drift at rate 1.

use core::time::Duration;

use twinstep_core::Tick;
use twinstep_core::bounds::nanos;

use super::way::{FREEZE, MarginReport};

pub(super) struct PaceClock {
    /// The length of a tick; not zero.
    tick: Duration,
    last: Duration,
    /// The position is `whole` ticks and `nanos` into the next one.
    whole: Tick,
    nanos: u64,
    /// The sum of all deviations from this machine's time, in ticks.
    offset: f64,
    hold: Duration,
    /// The time for which the clock was held since the last [`take_held`](PaceClock::take_held).
    was_held: Duration,
}

impl PaceClock {
    pub(super) fn new(tick: Duration, now: Duration, at: Tick) -> PaceClock {
        assert!(!tick.is_zero(), "a tick has a length");
        PaceClock {
            tick,
            last: now,
            whole: at,
            nanos: 0,
            offset: 0.0,
            hold: Duration::ZERO,
            was_held: Duration::ZERO,
        }
    }

    pub(super) fn tick(&self) -> Duration {
        self.tick
    }

    /// Keeps the fraction of the current tick.
    pub(super) fn set_tick(&mut self, tick: Duration) {
        assert!(!tick.is_zero(), "a tick has a length");
        let fraction = self.nanos as f64 / self.tick_nanos() as f64;
        self.tick = tick;
        self.nanos = ((fraction * self.tick_nanos() as f64) as u64).min(self.tick_nanos() - 1);
    }

    pub(super) fn whole(&self) -> Tick {
        self.whole
    }

    /// The position within its tick, about 0..=1.
    pub(super) fn fraction(&self) -> f32 {
        self.nanos as f32 / self.tick_nanos() as f32
    }

    pub(super) fn position(&self) -> f64 {
        f64::from(self.whole.0) + self.nanos as f64 / self.tick_nanos() as f64
    }

    pub(super) fn offset(&self) -> f64 {
        self.offset
    }

    pub(super) fn ticks(&self, time: Duration) -> f64 {
        nanos(time) as f64 / self.tick_nanos() as f64
    }

    pub(super) fn now(&self) -> Duration {
        self.last
    }

    pub(super) fn run(&mut self, now: Duration, rate: f64) {
        let passed = now.saturating_sub(self.last);
        self.last = self.last.max(now);
        let held = self.hold.min(passed);
        self.hold -= held;
        self.was_held += held;
        self.offset -= self.ticks(held);
        let is_frozen = passed - held > FREEZE;
        let passed = nanos(passed - held);
        // During a freeze the server kept running, so the clock continues as if it had run too.
        let run = if rate == 1.0 || is_frozen {
            passed
        } else {
            (passed as f64 * rate) as u64
        };
        self.offset += (run as f64 - passed as f64) / self.tick_nanos() as f64;
        let reached = self.nanos.saturating_add(run);
        self.whole += u32::try_from(reached / self.tick_nanos()).unwrap_or(u32::MAX);
        self.nanos = reached % self.tick_nanos();
    }

    pub(super) fn skip(&mut self, now: Duration) {
        self.last = self.last.max(now);
    }

    /// The time at which the position reaches `tick` at this rate, plus 1 µs against rounding.
    pub(super) fn reaches(&self, tick: Tick, rate: f64) -> Duration {
        let ticks = u64::from(tick - self.whole);
        let left = (ticks * self.tick_nanos()).saturating_sub(self.nanos);
        self.last + self.hold + Duration::from_nanos((left as f64 / rate) as u64 + 1_000)
    }

    pub(super) fn hold(&mut self, time: Duration) {
        self.hold += time;
    }

    pub(super) fn is_held(&self) -> bool {
        !self.hold.is_zero()
    }

    pub(super) fn take_held(&mut self) -> Duration {
        core::mem::take(&mut self.was_held)
    }

    pub(super) fn go_ahead(&mut self, ticks: u32) {
        self.offset += f64::from(ticks);
        self.whole += ticks;
    }

    pub(super) fn jump_to(&mut self, tick: Tick) {
        self.go_ahead(tick - self.whole);
        self.hold = Duration::ZERO;
    }

    /// Moves the clock back to the start of `tick`, to wait there. It does not catch up with the skipped time.
    pub(super) fn wait_at(&mut self, tick: Tick) {
        self.offset -= self.position() - f64::from(tick.0);
        (self.whole, self.nanos) = (tick, 0);
    }

    fn tick_nanos(&self) -> u64 {
        nanos(self.tick)
    }
}

/// The largest error that does not start steering.
const DEAD_BAND_TICKS: f64 = 0.75;
/// Steering ends at this error.
const CALM_TICKS: f64 = 0.25;

/// The clock's rate, from the error of its margin.
///
/// Invariant: the rate is 0.9 ..= 1.1. Steering starts at a larger error than the one at which it ends, so that it does
/// not switch on and off repeatedly.
pub(super) struct Steering {
    rate: f64,
    is_on: bool,
}

impl Steering {
    pub(super) fn new() -> Steering {
        Steering {
            rate: 1.0,
            is_on: false,
        }
    }

    /// Updates the rate for `error`, the ticks by which the margin is too small.
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

    pub(super) fn rate(&self) -> f64 {
        self.rate
    }
}

/// An error of more than this many ticks is corrected by a hold or a jump, because ±10 % would take 120 ticks or more.
pub(super) const LEAP_TICKS: f64 = 12.0;
/// The number of reports that must agree before a hold or a jump.
pub(super) const LEAP_AFTER: usize = 4;

/// The correction of a large error.
///
/// Invariant: several reports must agree before the clock leaps, so a short interruption of the server does not cause a
/// leap.
pub(super) enum Leap {
    Hold(f64),
    Ahead(u32),
}

impl Leap {
    /// The leap on which the newest reports agree. Returns `None` if there is none. `error` is the number of ticks by
    /// which the margin is too small.
    pub(super) fn wanted(
        newest: &[MarginReport],
        (offset, target): (f64, f64),
        error: f64,
    ) -> Option<Leap> {
        let excess = || newest.iter().map(|report| report.base + offset - target);
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

#[derive(Default)]
pub(super) struct Leaps {
    holds: u64,
    jumps: u64,
    jumps_told: u64,
}

impl Leaps {
    pub(super) fn record_hold(&mut self) {
        self.holds += 1;
    }

    pub(super) fn record_jump(&mut self) {
        self.jumps += 1;
    }

    pub(super) fn holds(&self) -> u64 {
        self.holds
    }

    pub(super) fn jumps(&self) -> u64 {
        self.jumps
    }

    pub(super) fn take_jumped(&mut self) -> bool {
        let jumped = self.jumps > self.jumps_told;
        self.jumps_told = self.jumps;
        jumped
    }
}
