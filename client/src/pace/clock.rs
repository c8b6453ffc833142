//! [`PaceClock`]: the position that inputs are sampled by, moved by own time at a rate near 1.
//!
//! Invariant: it never goes back; what it runs, jumps, or stands still beyond own time is in its *offset*. In integers,
//! so that at rate 1 nothing drifts.

use core::time::Duration;

use twinstep_core::Tick;
use twinstep_core::bounds::nanos;

use super::way::{FREEZE, MarginReport};

/// See the [module](self).
pub(super) struct PaceClock {
    /// Length of a tick; not zero.
    tick: Duration,
    last: Duration,
    /// Position = whole ticks + nanoseconds into the next one.
    whole: Tick,
    nanos: u64,
    /// All that this clock ran faster or slower than nominal, in ticks.
    offset: f64,
    /// For so long it stands still.
    hold: Duration,
}

impl PaceClock {
    /// Begins at a position.
    ///
    /// # Panics
    /// If a tick has no length.
    pub(super) fn new(tick: Duration, now: Duration, at: Tick) -> PaceClock {
        assert!(!tick.is_zero(), "a tick has a length");
        PaceClock {
            tick,
            last: now,
            whole: at,
            nanos: 0,
            offset: 0.0,
            hold: Duration::ZERO,
        }
    }

    /// Length of a tick.
    pub(super) fn tick(&self) -> Duration {
        self.tick
    }

    /// Ticks have another length from here on.
    ///
    /// # Panics
    /// If a tick has no length.
    pub(super) fn set_tick(&mut self, tick: Duration) {
        assert!(!tick.is_zero(), "a tick has a length");
        let fraction = self.nanos as f64 / self.tick_nanos() as f64;
        self.tick = tick;
        self.nanos = ((fraction * self.tick_nanos() as f64) as u64).min(self.tick_nanos() - 1);
    }

    /// The tick that the position is in.
    pub(super) fn whole(&self) -> Tick {
        self.whole
    }

    /// How far the position is into its tick, about 0..=1.
    pub(super) fn fraction(&self) -> f32 {
        self.nanos as f32 / self.tick_nanos() as f32
    }

    /// The position, in ticks.
    pub(super) fn position(&self) -> f64 {
        f64::from(self.whole.0) + self.nanos as f64 / self.tick_nanos() as f64
    }

    /// Position minus nominal time, in ticks.
    pub(super) fn offset(&self) -> f64 {
        self.offset
    }

    /// A time in ticks.
    pub(super) fn ticks(&self, time: Duration) -> f64 {
        nanos(time) as f64 / self.tick_nanos() as f64
    }

    /// Up to when it ran.
    pub(super) fn now(&self) -> Duration {
        self.last
    }

    /// Runs up to `now`, at a rate; not while it is held.
    pub(super) fn run(&mut self, now: Duration, rate: f64) {
        let passed = now.saturating_sub(self.last);
        self.last = self.last.max(now);
        let held = self.hold.min(passed);
        self.hold -= held;
        self.offset -= self.ticks(held);
        let is_frozen = passed - held > FREEZE;
        let passed = nanos(passed - held);
        // After a freeze the server is just as much further: the clock goes on as if it had run.
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

    /// When the position comes to `tick` at this rate, if nothing happens until then; 1 µs later, so that it is surely there.
    pub(super) fn reaches(&self, tick: Tick, rate: f64) -> Duration {
        let ticks = u64::from(tick - self.whole);
        let left = (ticks * self.tick_nanos()).saturating_sub(self.nanos);
        self.last + self.hold + Duration::from_nanos((left as f64 / rate) as u64 + 1_000)
    }

    /// Stands still for so long, in addition.
    pub(super) fn hold(&mut self, time: Duration) {
        self.hold += time;
    }

    /// Whether it stands still.
    pub(super) fn is_held(&self) -> bool {
        !self.hold.is_zero()
    }

    /// Goes ahead by whole ticks.
    pub(super) fn go_ahead(&mut self, ticks: u32) {
        self.offset += f64::from(ticks);
        self.whole += ticks;
    }

    /// Jumps to a later tick, and stands still no longer.
    pub(super) fn jump_to(&mut self, tick: Tick) {
        self.go_ahead(tick - self.whole);
        self.hold = Duration::ZERO;
    }

    /// Waits at the beginning of a tick that it has passed: what it does not run it never makes up for.
    pub(super) fn wait_at(&mut self, tick: Tick) {
        self.offset -= self.position() - f64::from(tick.0);
        (self.whole, self.nanos) = (tick, 0);
    }

    fn tick_nanos(&self) -> u64 {
        nanos(self.tick)
    }
}

/// Errors up to this many ticks are left alone...
const DEAD_BAND_TICKS: f64 = 0.75;
/// ...unless steering has begun: it ends here.
const CALM_TICKS: f64 = 0.25;

/// The rate of the clock, for an error of its margin.
///
/// Invariant: the rate is 0.9 ..= 1.1. Steering begins at a larger error than the one at which it ends, so that it does
/// not flutter.
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

/// An error of more ticks than this is held or jumped over: ±10 % would take more than 2 s.
pub(super) const LEAP_TICKS: f64 = 12.0;
/// Tellings that must agree before the clock is held or jumps.
pub(super) const LEAP_AFTER: usize = 4;

/// The correction of an error of the clock.
///
/// Invariant: several reports must agree before the clock leaps: a server that stumbles is no reason.
pub(super) enum Leap {
    /// The clock stands still for this many ticks.
    Hold(f64),
    /// The clock jumps ahead by this many ticks.
    Ahead(u32),
}

impl Leap {
    /// The leap that the newest tellings ask for, if they do; `error`: by how many ticks the margin is too small.
    pub(super) fn wanted(
        newest: &[MarginReport],
        (offset, target): (f64, f64),
        error: f64,
    ) -> Option<Leap> {
        let excess = || newest.iter().map(|telling| telling.base + offset - target);
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

/// How often the clock was held, and the input tick jumped.
#[derive(Default)]
pub(super) struct Leaps {
    holds: u64,
    jumps: u64,
    jumps_told: u64,
}

impl Leaps {
    /// The clock is held.
    pub(super) fn record_hold(&mut self) {
        self.holds += 1;
    }

    /// The input tick jumps ahead.
    pub(super) fn record_jump(&mut self) {
        self.jumps += 1;
    }

    /// How often the clock was held.
    pub(super) fn holds(&self) -> u64 {
        self.holds
    }

    /// How often the input tick jumped.
    pub(super) fn jumps(&self) -> u64 {
        self.jumps
    }

    /// Whether it jumped since this was asked last.
    pub(super) fn take_jumped(&mut self) -> bool {
        let jumped = self.jumps > self.jumps_told;
        self.jumps_told = self.jumps;
        jumped
    }
}
