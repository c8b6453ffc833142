//! [`Pace`]: steers the input tick I, so that each input reaches the server shortly before it is sealed.
//!
//! ```text
//!   own time ──▶ × rate (0.9 ..= 1.1) ──▶ position ──▶ sample ticks first..end     at most A + input_window
//!                     ▲                                     │ sent
//!   target − margin ──┘                                     ▼
//!      ▲      └──── margin as it will be ◀── the server: "newest held − next to seal"
//!      └──── jitter measured
//! ```
//!
//! A telling is old when it comes: it speaks of an input sampled a round trip ago, at another rate. So each
//! sampled tick remembers the *offset* (own position minus nominal time) with which it was sampled, and a
//! telling is kept as `margin − offset then`. Adding the offset of *now* gives the margin that an input
//! sampled now will have; steering on it has no dead time, hence no oscillation. What cannot be told from a
//! telling, because nothing was sampled after its input (a hold, a freeze), is ignored.
//!
//! Invariants: ticks are sampled in order and once; I never decreases; the clock stays within ±10 %; it
//! makes up for no time that it waited.
//!
//! | what happens | what the pace does |
//! |---|---|
//! | margin off by ≤ 2 ticks; more | rate within ±5 %; up to ±10 % |
//! | margin > target + 12 (the server stood still) | *holds*: stands still for exactly the excess |
//! | 12 too few, or I behind a sealed tick (this client stood still, or the way got longer) | *jumps* ahead; the server fills what is skipped |
//! | I at A + [`input_window`] | waits there; if turns come again for which I is too late by then, *jumps* to where it was when all was well |

use core::time::Duration;

use twinstep_core::Tick;
use twinstep_core::bounds::{INPUT_WINDOW, input_window};

mod way;

use way::Way;

/// Frames that take longer than this are not sampled after the fact: the input tick skips them.
const FREEZE: Duration = Duration::from_millis(250);
/// Errors up to this many ticks are left alone...
const DEAD_BAND_TICKS: f64 = 0.75;
/// ...unless steering has begun: it ends here.
const CALM_TICKS: f64 = 0.25;
/// An error of more ticks than this is held or jumped over: ±10 % would take more than 2 s.
const LEAP_TICKS: f64 = 12.0;
/// Tellings that must agree before the clock is held or jumps: a server that stumbles is no reason.
const LEAP_AFTER: usize = 4;

/// What the pace must know of the match.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct PaceConfig {
    /// Length of a tick; not zero.
    pub tick: Duration,
    /// Ticks that the server sends at once.
    pub turn_ticks: u32,
}

/// What an [`advance`](Pace::advance) asks for: sample the ticks `first..end`, each once. Ticks between the
/// last `end` and `first` are skipped for ever.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[must_use]
pub struct Beat {
    /// The first tick to sample now.
    pub first: Tick,
    /// One past the last tick to sample now: the input tick I.
    pub end: Tick,
    /// Whether the input tick stands at its cap and waits for the authority.
    pub capped: bool,
    /// Whether the input tick jumped ahead in this advance.
    pub jumped: bool,
}

/// How a tick was sampled.
#[derive(Clone, Copy)]
struct Sampled {
    tick: Tick,
    /// Position minus nominal time, in ticks.
    offset: f64,
}

/// See the [module](self). All times are durations since one arbitrary start, and never go back.
pub struct Pace {
    config: PaceConfig,
    last: Duration,
    /// Position = whole ticks + nanoseconds into the next one. Integers, so that at rate 1 nothing drifts.
    whole: Tick,
    nanos: u64,
    /// I: all before it is sampled or skipped.
    input: Tick,
    /// Whether the next sampled tick is that of the position, whatever lies between.
    skip: bool,
    /// All that this clock ran faster or slower than nominal, in ticks.
    offset: f64,
    rate: f64,
    steering: bool,
    hold: Duration,
    sampled: [Option<Sampled>; INPUT_WINDOW as usize],
    sampled_at: Duration,
    /// The first tick since when ticks were sampled in time. A telling about an earlier one may have found it
    /// held for long, so it says nothing of the way.
    unbroken_from: Tick,
    way: Way,
    /// Until when turns that come show how late the clock has become by waiting for them; `MAX` while it waits.
    waited_until: Option<Duration>,
    /// Mean of I − known when a turn arrives, while all is well.
    reach: Option<f64>,
    known: Tick,
    rtt: Duration,
    /// Since when tellings tell nothing but that the input is late.
    late_since: Option<Duration>,
    holds: u64,
    jumps: u64,
    jumps_told: u64,
}

impl Pace {
    /// Starts with nothing measured: `known` is the first tick that no received turn covers, and the input
    /// tick starts ahead of it by the round trip, the target and a turn.
    ///
    /// # Panics
    /// If a tick has no length.
    #[must_use]
    pub fn start(config: PaceConfig, now: Duration, known: Tick, rtt: Duration) -> Pace {
        assert!(!config.tick.is_zero(), "a tick has a length");
        let mut pace = Pace {
            config,
            last: now,
            whole: known,
            nanos: 0,
            input: known,
            skip: false,
            offset: 0.0,
            rate: 1.0,
            steering: false,
            hold: Duration::ZERO,
            sampled: [None; INPUT_WINDOW as usize],
            sampled_at: now,
            unbroken_from: known,
            way: Way::new(now),
            waited_until: None,
            reach: None,
            known,
            rtt,
            late_since: None,
            holds: 0,
            jumps: 0,
            jumps_told: 0,
        };
        pace.whole = known + (pace.reach() as u32).min(pace.window());
        pace.input = pace.whole;
        pace
    }

    /// I, the input tick: the next tick that has no local input yet.
    #[must_use]
    pub fn input_tick(&self) -> Tick {
        self.input
    }

    /// How far the clock is into the tick after the last sampled one: for interpolation, in [0, 1).
    #[must_use]
    pub fn alpha(&self) -> f32 {
        let alpha = self.nanos as f32 / self.tick_nanos() as f32;
        if self.whole == self.input {
            alpha.min(1.0 - f32::EPSILON)
        } else {
            0.0
        }
    }

    /// The rate of the clock: 0.9 ..= 1.1; 0 while it holds.
    #[must_use]
    pub fn rate(&self) -> f64 {
        if self.hold.is_zero() { self.rate } else { 0.0 }
    }

    /// The margin aimed at, in ticks.
    #[must_use]
    pub fn target(&self) -> f64 {
        self.way.target()
    }

    /// The margin that an input sampled now is expected to have at the server, in ticks.
    #[must_use]
    pub fn margin(&self) -> Option<f64> {
        self.way.middle().map(|base| base + self.offset)
    }

    /// I − known at the arrival of a turn while all is well, in ticks: measured, else estimated.
    #[must_use]
    pub fn reach(&self) -> f64 {
        let estimate = self.ticks(self.rtt) + self.target() + f64::from(self.config.turn_ticks);
        self.reach.unwrap_or(estimate).ceil()
    }

    /// How often the clock was held because the server had stood still.
    #[must_use]
    pub fn holds(&self) -> u64 {
        self.holds
    }

    /// How often the input tick jumped ahead.
    #[must_use]
    pub fn jumps(&self) -> u64 {
        self.jumps
    }

    /// Changes the length of ticks and turns (adaptive policies), at a turn's boundary.
    pub fn set_config(&mut self, config: PaceConfig) {
        if config == self.config {
            return;
        }
        assert!(!config.tick.is_zero(), "a tick has a length");
        let fraction = self.nanos as f64 / self.tick_nanos() as f64;
        self.config = config;
        self.nanos = ((fraction * self.tick_nanos() as f64) as u64).min(self.tick_nanos() - 1);
    }

    /// The input delay grows: the input tick goes ahead at once, by ticks that repeat what is held. The
    /// margin that this adds is then given up slowly.
    pub fn go_ahead(&mut self, now: Duration, ticks: u32) {
        self.whole += ticks;
        self.offset += f64::from(ticks);
        for ahead in 0..ticks {
            self.note_sampled(self.input + ahead, now);
        }
        self.input += ticks;
    }

    /// The input delay shrinks: the input tick stands still for a tick.
    pub fn stand(&mut self) {
        self.hold += self.config.tick;
    }

    /// Moves the clock to `now`. `authority` is A; `known` is the first tick that no received turn covers
    /// (≥ A), so handle what arrived before.
    pub fn advance(&mut self, now: Duration, authority: Tick, known: Tick) -> Beat {
        let passed = now.saturating_sub(self.last);
        self.last = self.last.max(now);
        self.rate = self.steer(now);

        let held = self.hold.min(passed);
        self.hold -= held;
        self.offset -= self.ticks(held);
        let run = passed - held;
        // After a freeze the server is just as much further: the clock goes on as if it had run.
        let rate = if run > FREEZE { 1.0 } else { self.rate };
        self.run(run, rate);

        if known > self.known {
            self.hear_of(now, known);
        }
        if self.whole < known {
            self.jump_to(known + self.reach() as u32);
        }

        let end_of_window = known.max(authority) + self.window();
        if self.whole >= end_of_window {
            // The clock waits: what it does not run it never makes up for.
            self.offset -= self.position() - f64::from(end_of_window.0);
            (self.whole, self.nanos) = (end_of_window, 0);
            self.waited_until = Some(Duration::MAX);
        }
        let cap = authority + self.window();
        if !self.skip && self.whole - self.input > self.freeze_ticks() {
            self.skip = true;
            self.jumps += 1;
        }
        let end = match self.skip {
            false => self.whole.min(cap).max(self.input),
            true if self.whole > cap => self.input,
            true => {
                self.input = self.whole;
                self.unbroken_from = self.input;
                self.skip = false;
                self.whole
            }
        };
        let first = self.input;
        for tick in first.0..end.0 {
            self.note_sampled(Tick(tick), now);
        }
        self.input = end;
        let jumped = self.jumps > self.jumps_told;
        self.jumps_told = self.jumps;
        Beat {
            first,
            end,
            capped: self.whole >= cap,
            jumped,
        }
    }

    /// Turns came, up to `known`: measures how far I is ahead of them, or makes up for having waited for them.
    fn hear_of(&mut self, now: Duration, known: Tick) {
        self.known = known;
        if self.waited_until == Some(Duration::MAX) {
            self.waited_until = Some(now + FREEZE);
        }
        self.waited_until = self.waited_until.filter(|until| now <= *until);
        if self.waited_until.is_some() {
            let reach = self.reach() as u32;
            let wanted = known + reach;
            // Where the window's end is near, the clock would wait there again, and nothing would be told of it.
            let has_room = reach + LEAP_TICKS as u32 <= self.window();
            if has_room && self.whole + 1 < wanted {
                self.jump_to(wanted);
            }
            return;
        }
        let reach = self.position() - f64::from(known.0);
        let well = self.way.middle().is_some() && self.error().abs() < 3.0;
        if well && self.hold.is_zero() {
            let mean = self
                .reach
                .map_or(reach, |mean| mean + (reach - mean) / 16.0);
            self.reach = Some(mean);
        }
    }

    /// The server told at some moment: its newest input of this session was for `newest_held` (late ones
    /// count too), which was `margin` ticks above the next tick that it would seal.
    pub fn report(&mut self, now: Duration, margin: i32, newest_held: Tick, rtt: Duration) {
        self.rtt = rtt;
        let Some(base) = self.base(now, margin, newest_held) else {
            self.note_late(now, margin);
            return;
        };
        self.late_since = None;
        self.way.note(now, base);
        self.leap();
    }

    /// The server told at some moment that it holds no input of this session.
    pub fn report_nothing(&mut self, now: Duration, rtt: Duration) {
        self.rtt = rtt;
        self.note_late(now, i32::MIN);
    }

    /// The margin told, less the offset with which its input was sampled; `None` if that says nothing.
    fn base(&self, now: Duration, margin: i32, newest_held: Tick) -> Option<f64> {
        let sampled =
            self.sampled[slot(newest_held)].filter(|sampled| sampled.tick == newest_held)?;
        let frozen = now.saturating_sub(self.sampled_at) > FREEZE;
        (newest_held >= self.unbroken_from && !frozen).then(|| f64::from(margin) - sampled.offset)
    }

    /// After a freeze or at a start, the inputs may be too late for the server to tell more, or not even be sent, because
    /// their ticks are known to be sealed: then the known end of the turns is the best that there is to go by.
    fn note_late(&mut self, now: Duration, margin: i32) {
        if margin >= -1 || !self.hold.is_zero() {
            self.late_since = None;
            return;
        }
        let since = *self.late_since.get_or_insert(now);
        if now.saturating_sub(since) > self.rtt + self.rtt / 2 + FREEZE {
            let estimate = self.ticks(self.rtt) + self.target() + f64::from(self.config.turn_ticks);
            self.reach = Some(self.reach().max(estimate.ceil()));
            self.jump_to(self.known + self.reach() as u32);
            self.late_since = None;
        }
    }

    /// Holds or jumps if the error is too large for the rate.
    fn leap(&mut self) {
        if !self.hold.is_zero() {
            return;
        }
        let Some(newest) = self.way.newest(LEAP_AFTER) else {
            return;
        };
        let (offset, target) = (self.offset, self.target());
        let excess = || newest.iter().map(|telling| telling.base + offset - target);
        let mean = excess().sum::<f64>() / LEAP_AFTER as f64;
        if excess().all(|excess| excess > LEAP_TICKS) {
            self.hold = self.config.tick.mul_f64(mean.round());
            self.holds += 1;
            self.waited_until = None;
            self.unbroken_from = self.input;
        } else if excess().all(|excess| excess < -LEAP_TICKS) && self.error() > LEAP_TICKS {
            self.jump_to(self.whole + (-mean).round() as u32);
        } else {
            return;
        }
        // What was told before is not true of the way any more.
        self.way.forget_all_but(LEAP_AFTER);
    }

    fn jump_to(&mut self, tick: Tick) {
        if tick > self.whole {
            self.offset += f64::from(tick - self.whole);
            self.whole = tick;
            self.hold = Duration::ZERO;
            self.skip = true;
            self.unbroken_from = self.input;
            self.jumps += 1;
        }
    }

    /// The rate for the error that is left.
    fn steer(&mut self, now: Duration) -> f64 {
        let turn = self.config.tick * self.config.turn_ticks;
        self.way.forget_older(now, turn * 4);
        let error = self.error();
        self.steering = error.abs()
            > if self.steering {
                CALM_TICKS
            } else {
                DEAD_BAND_TICKS
            };
        if !self.steering {
            return 1.0;
        }
        // 5 % from one tick to two, then up to 10 % at three.
        let strength = error.abs().min(1.0) * 0.05 + (error.abs() - 2.0).clamp(0.0, 1.0) * 0.05;
        1.0 + strength.copysign(error)
    }

    /// Ticks by which the margin is too small; 0 while nothing is known.
    fn error(&self) -> f64 {
        self.margin().map_or(0.0, |margin| self.target() - margin)
    }

    fn run(&mut self, passed: Duration, rate: f64) {
        let nanos = if rate == 1.0 {
            passed.as_nanos() as u64
        } else {
            (passed.as_nanos() as f64 * rate) as u64
        };
        self.offset += (nanos as f64 - passed.as_nanos() as f64) / self.tick_nanos() as f64;
        let nanos = self.nanos.saturating_add(nanos);
        self.whole += u32::try_from(nanos / self.tick_nanos()).unwrap_or(u32::MAX);
        self.nanos = nanos % self.tick_nanos();
    }

    fn note_sampled(&mut self, tick: Tick, now: Duration) {
        if now.saturating_sub(self.sampled_at) > FREEZE {
            self.unbroken_from = tick;
        }
        self.sampled_at = now;
        self.sampled[slot(tick)] = Some(Sampled {
            tick,
            offset: self.offset,
        });
    }

    fn position(&self) -> f64 {
        f64::from(self.whole.0) + self.nanos as f64 / self.tick_nanos() as f64
    }

    fn ticks(&self, time: Duration) -> f64 {
        time.as_nanos() as f64 / self.tick_nanos() as f64
    }

    /// How far the inputs may be ahead of the authority.
    fn window(&self) -> u32 {
        input_window(self.config.tick)
    }

    fn freeze_ticks(&self) -> u32 {
        (self.ticks(FREEZE) as u32).max(1)
    }

    fn tick_nanos(&self) -> u64 {
        self.config.tick.as_nanos() as u64
    }
}

fn slot(tick: Tick) -> usize {
    (tick.0 % INPUT_WINDOW) as usize
}

#[cfg(test)]
mod tests;
