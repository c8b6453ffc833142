//! [`Pace`]: steers the input tick I, so that each input reaches the server shortly before it is sealed.
//!
//! ```text
//!   own time ──▶ × rate (0.9 ..= 1.1) ──▶ position ──▶ sample ticks first..end     at most A + input_window
//!                     ▲                                     │ sent
//!   target − margin ──┘                                     ▼
//!      ▲      └──── expected margin ◀──── the server: "newest held − next to seal"
//!      └──── measured jitter
//! ```
//!
//! A report is old when it arrives: it describes an input sampled a round trip ago, at another rate. So each sampled
//! tick is recorded with its *offset* (own position minus nominal time), and a report is stored as `margin − offset at
//! sampling`. Adding the current offset gives the margin that an input sampled now will have. Steering by this value is
//! not delayed, and so does not oscillate.
//!
//! Two kinds of report do not steer the clock: a report about an input from before a hold, a jump or a freeze; and a
//! report that inputs have stopped arriving for several ticks, as when a radio link pauses, because it shows that the
//! path is silent, not how early inputs arrive. If such reports stay late for longer than one and a half round trips
//! and 250 ms, the clock jumps to its usual distance.
//!
//! Invariants: ticks are sampled in order and once; I never decreases; except for holds, waits and jumps, the rate
//! stays within ±10 %.
//!
//! | what happens | what the pace does |
//! |---|---|
//! | margin off by ≤ 2 ticks; more | rate within ±5 %; up to ±10 % |
//! | margin > target + 12 (the server paused) | *holds*: stops for the excess |
//! | margin < target − 12, or I before a sealed tick (this client paused, or the route got longer) | *jumps* ahead; the server fills the skipped ticks |
//! | I at A + [`input_window`] | waits there; if the next turns show that I is too late by then, *jumps* to its usual distance |

use core::time::Duration;

use clock::{LEAP_AFTER, LEAP_TICKS, Leap, Leaps, PaceClock, Steering};
use twinstep_core::Tick;
use twinstep_core::bounds::input_window;
use way::{Distance, FREEZE, Samples, Silence, Way};

mod clock;
mod way;

/// The match settings on which the pace depends.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct PaceConfig {
    /// The length of a tick; not zero.
    pub tick: Duration,
    /// The number of ticks that the server sends together.
    pub turn_ticks: u32,
}

/// The result of [`advance`](Pace::advance): each tick of `first..end` must be sampled once. Ticks between the previous
/// `end` and `first` are skipped permanently.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[must_use]
pub struct Beat {
    /// The first tick to sample now.
    pub first: Tick,
    /// One past the last tick to sample now: the input tick I.
    pub end: Tick,
    /// Whether the input tick is at its cap and waits for the authority.
    pub capped: bool,
    /// The time for which this advance held the clock.
    pub held: Duration,
    /// The number of ticks skipped by a jump. They have no input.
    pub skipped_ticks: u32,
    /// Whether the input tick jumped ahead in this advance.
    pub jumped: bool,
    /// Whether the jump was a leap, made because inputs arrived much too late.
    pub is_leap: bool,
}

/// Steers the input tick, so that each input reaches the server shortly before it is sealed. All times are durations
/// since one arbitrary start, and never go back.
pub struct Pace {
    turn_ticks: u32,
    clock: PaceClock,
    steering: Steering,
    /// The input tick I: all ticks before it are sampled or skipped.
    input: Tick,
    /// Whether the next sampled tick is at the clock's position, so that the ticks before it are skipped.
    skip: bool,
    is_leap: bool,
    /// Whether to sample the current tick before its end.
    is_urged: bool,
    samples: Samples,
    silence: Silence,
    way: Way,
    rtt: Duration,
    distance: Distance,
    /// The time since which the reports have shown only late inputs.
    late_since: Option<Duration>,
    leaps: Leaps,
}

impl Pace {
    /// Starts without measurements. `known` is the first tick that no received turn covers; the input tick starts ahead
    /// of it by the round trip, the target and a turn, or by the input window if that is shorter.
    ///
    /// # Panics
    /// If the tick length is zero.
    #[must_use]
    pub fn start(config: PaceConfig, now: Duration, known: Tick, rtt: Duration) -> Pace {
        let mut pace = Pace {
            turn_ticks: config.turn_ticks,
            clock: PaceClock::new(config.tick, now, known),
            steering: Steering::new(),
            input: known,
            skip: false,
            is_leap: false,
            is_urged: false,
            samples: Samples::new(now, known),
            silence: Silence::default(),
            way: Way::new(now),
            rtt,
            distance: Distance::new(known),
            late_since: None,
            leaps: Leaps::default(),
        };
        pace.input = known + (pace.reach() as u32).min(pace.window());
        pace.clock = PaceClock::new(config.tick, now, pace.input);
        pace
    }

    /// I, the input tick: the next tick that has no local input yet.
    #[must_use]
    pub fn input_tick(&self) -> Tick {
        self.input
    }

    /// The clock's position after the last sampled tick, in [0, 1), for interpolation; in [−1, 0) while that tick,
    /// which was [sampled early](Pace::sample_now), is not over.
    #[must_use]
    pub fn alpha(&self) -> f32 {
        let part = self.clock.fraction().min(1.0 - f32::EPSILON);
        if self.clock.whole() == self.input {
            part
        } else if self.is_early() {
            part - 1.0
        } else {
            0.0
        }
    }

    fn is_early(&self) -> bool {
        self.input - self.clock.whole() == 1
    }

    /// The clock's rate: 0.9 ..= 1.1, or 0 while it holds.
    #[must_use]
    pub fn rate(&self) -> f64 {
        if self.clock.is_held() {
            0.0
        } else {
            self.steering.rate()
        }
    }

    /// The target margin, in ticks.
    #[must_use]
    pub fn target(&self) -> f64 {
        self.way.target()
    }

    /// The margin that an input sampled now will have at the server, in ticks. Returns `None` if there are too few
    /// reports.
    #[must_use]
    pub fn margin(&self) -> Option<f64> {
        self.way.middle().map(|base| base + self.clock.offset())
    }

    /// Returns `true` if inputs arrive as early as they should, with little variation.
    #[must_use]
    pub fn is_calm(&self) -> bool {
        self.way.middle().is_some()
            && self.way.is_calm()
            && self.error().abs() <= 1.0
            && self.late_since.is_none()
            && !self.clock.is_held()
    }

    /// The usual distance from the known tick to the input tick when a turn arrives, in ticks: measured, or else
    /// estimated.
    #[must_use]
    pub fn reach(&self) -> f64 {
        let measured = self.distance.measured();
        measured.unwrap_or_else(|| self.estimate()).ceil()
    }

    fn estimate(&self) -> f64 {
        self.clock.ticks(self.rtt) + self.target() + f64::from(self.turn_ticks)
    }

    /// The number of holds because inputs arrived much too early, as after a pause of the server.
    #[must_use]
    pub fn holds(&self) -> u64 {
        self.leaps.holds()
    }

    /// The number of jumps of the input tick.
    #[must_use]
    pub fn jumps(&self) -> u64 {
        self.leaps.jumps()
    }

    /// Changes the lengths of ticks and turns (for adaptive policies), at a turn boundary.
    pub fn set_config(&mut self, config: PaceConfig) {
        if (config.tick, config.turn_ticks) != (self.clock.tick(), self.turn_ticks) {
            self.turn_ticks = config.turn_ticks;
            self.clock.set_tick(config.tick);
        }
    }

    /// Moves the input tick ahead by `ticks` ticks, which repeat the last inputs, because the input delay increases.
    /// The clock then slowly gives up the added margin.
    pub fn go_ahead(&mut self, now: Duration, ticks: u32) {
        self.clock.go_ahead(ticks);
        for ahead in 0..ticks {
            self.record_sampled(now, self.input + ahead);
        }
        self.input += ticks;
    }

    /// Stops the input tick for one tick, because the input delay decreases.
    pub fn hold_input_tick(&mut self) {
        self.clock.hold(self.clock.tick());
    }

    /// Samples the next tick in the next [`advance`](Pace::advance), before it has ended, because an input changed. If
    /// that tick has already been sampled, the tick after it is sampled as soon as it starts.
    pub fn sample_now(&mut self) {
        self.is_urged = true;
    }

    /// Moves the clock to `now`. `authority` is A; `known` is the first tick that no received turn covers (≥ A), so
    /// handle arrived packets first.
    pub fn advance(&mut self, now: Duration, authority: Tick, known: Tick) -> Beat {
        // A second call at the same time must not steer: the sampled ticks must not depend on how often a client is
        // advanced.
        if now > self.clock.now() {
            let rate = self.steer(now);
            self.clock.run(now, rate);
        }
        if known > self.distance.known() {
            self.record_known(now, known);
        }
        if self.clock.whole() < known {
            self.jump_to(known + self.reach() as u32);
        }
        let end_of_window = known.max(authority) + self.window();
        if self.clock.whole() >= end_of_window {
            self.clock.wait_at(end_of_window);
            self.distance.record_waiting();
        }
        let cap = authority + self.window();
        let whole = self.clock.whole();
        if !self.skip && whole - self.input > self.freeze_ticks() {
            self.skip = true;
            self.leaps.record_jump();
        }
        let mut skipped_ticks = 0;
        let mut is_leap = false;
        let end = match self.skip {
            false => self.end(whole, cap),
            true if whole > cap => self.input,
            true => {
                skipped_ticks = whole - self.input;
                self.input = whole;
                self.samples.break_at(whole);
                self.skip = false;
                is_leap = core::mem::take(&mut self.is_leap);
                whole
            }
        };
        let first = self.input;
        for tick in first.0..end.0 {
            self.record_sampled(now, Tick(tick));
        }
        self.input = end;
        Beat {
            first,
            end,
            capped: whole >= cap,
            held: self.clock.take_held(),
            skipped_ticks,
            jumped: self.leaps.take_jumped(),
            is_leap,
        }
    }

    /// Returns the end of the ticks to sample: the finished ticks, and one more if it must be sampled now.
    fn end(&mut self, whole: Tick, cap: Tick) -> Tick {
        let end = whole.min(cap).max(self.input);
        if !self.is_urged || self.is_early() {
            return end;
        }
        self.is_urged = false;
        match end == self.input && whole < cap && !self.clock.is_held() {
            true => end + 1,
            false => end,
        }
    }

    /// Moves the clock to `now` while the match is paused. The input tick stays `lead` ticks ahead of `known`, the
    /// first tick that no received turn covers, so it advances only when the match is single-stepped. Ticks that are
    /// already sealed are skipped. Reports about the inputs sampled so far no longer steer the clock.
    pub fn stand_still(&mut self, now: Duration, authority: Tick, known: Tick, lead: u32) -> Beat {
        self.clock.skip(now);
        if known > self.distance.known() {
            self.distance.record_known(now, known);
        }
        let mut first = self.input;
        let end = (known + lead).max(first);
        // The server accepts no inputs beyond the window, so the authority must come closer first.
        if end <= authority + self.window() {
            if first < known {
                first = known;
                self.clock.go_ahead(known - self.input);
                self.input = known;
            }
            self.go_ahead(now, end - first);
        }
        self.samples.break_at(self.input);
        Beat {
            first,
            end: self.input,
            capped: false,
            held: Duration::ZERO,
            skipped_ticks: 0,
            jumped: false,
            is_leap: false,
        }
    }

    /// The time at which [`advance`](Pace::advance) samples the next tick, unless a turn arrives earlier. Returns
    /// `None` while it waits for the authority.
    #[must_use]
    pub fn next_due(&self, authority: Tick) -> Option<Duration> {
        if self.input >= authority + self.window() {
            return None;
        }
        let next = if self.skip {
            self.clock.whole()
        } else {
            self.input
        } + 1;
        Some(self.clock.reaches(next, self.steering.rate()))
    }

    /// Measures how far I is ahead of the turns that arrived, up to `known`. If the clock waited for them, corrects the
    /// resulting lateness.
    fn record_known(&mut self, now: Duration, known: Tick) {
        if self.distance.record_known(now, known) {
            let reach = self.reach() as u32;
            let wanted = known + reach;
            // Close to the end of the window, the clock would only wait there again, and cause no report.
            let has_room = reach + LEAP_TICKS as u32 <= self.window();
            if has_room && self.clock.whole() + 1 < wanted {
                self.jump_to(wanted);
            }
            return;
        }
        let reach = self.clock.position() - f64::from(known.0);
        let well = self.way.middle().is_some() && self.error().abs() < 3.0;
        if well && !self.clock.is_held() {
            self.distance.record(reach);
        }
    }

    /// Handles a report from the server: the newest input that it received from this session, including late ones, was
    /// for `newest_held`, `margin` ticks after the next tick to seal.
    pub fn report(&mut self, now: Duration, margin: i32, newest_held: Tick, rtt: Duration) {
        self.rtt = rtt;
        let is_silent = self.silence.record(newest_held, margin);
        let sampled = self.samples.offset_of(now, newest_held);
        let Some(offset) = sampled.filter(|_| !is_silent) else {
            self.record_late(now, margin);
            return;
        };
        self.late_since = None;
        self.way.record(now, f64::from(margin) - offset);
        self.leap();
    }

    /// Handles the server's report that it holds no input of this session.
    pub fn report_nothing(&mut self, now: Duration, rtt: Duration) {
        self.rtt = rtt;
        self.record_late(now, i32::MIN);
    }

    /// Jumps to the usual distance ahead of the known turns if inputs have been late for too long. After a freeze or at
    /// the start, inputs may be too late for a useful report, or may not even be sent because their ticks are known to
    /// be sealed. In that case the end of the known turns is the best reference.
    fn record_late(&mut self, now: Duration, margin: i32) {
        if margin >= -1 || self.clock.is_held() {
            self.late_since = None;
            return;
        }
        let since = *self.late_since.get_or_insert(now);
        if now.saturating_sub(since) > self.rtt + self.rtt / 2 + FREEZE {
            self.distance.set(self.reach().max(self.estimate().ceil()));
            self.jump_to(self.distance.known() + self.reach() as u32);
            self.late_since = None;
        }
    }

    fn leap(&mut self) {
        if self.clock.is_held() {
            return;
        }
        let Some(newest) = self.way.newest(LEAP_AFTER) else {
            return;
        };
        let now = (self.clock.offset(), self.target());
        match Leap::wanted(newest, now, self.error()) {
            Some(Leap::Hold(ticks)) => {
                self.clock.hold(self.clock.tick().mul_f64(ticks));
                self.leaps.record_hold();
                self.distance.forget_waiting();
                self.samples.break_at(self.input);
            }
            Some(Leap::Ahead(ticks)) => {
                self.jump_to(self.clock.whole() + ticks);
                self.is_leap = true;
            }
            None => return,
        }
        // Earlier reports no longer describe the route.
        self.way.forget_all_but(LEAP_AFTER);
    }

    fn jump_to(&mut self, tick: Tick) {
        if tick > self.clock.whole() {
            self.clock.jump_to(tick);
            self.skip = true;
            self.samples.break_at(self.input);
            self.leaps.record_jump();
        }
    }

    fn steer(&mut self, now: Duration) -> f64 {
        let turn = self.clock.tick() * self.turn_ticks;
        self.way.forget_older(now, turn * 4);
        self.steering.steer(self.error())
    }

    /// The number of ticks by which the margin is too small; 0 before a measurement.
    fn error(&self) -> f64 {
        self.margin().map_or(0.0, |margin| self.target() - margin)
    }

    fn record_sampled(&mut self, now: Duration, tick: Tick) {
        // A tick sampled before its end gains the rest of the tick as margin.
        let early = f64::from(tick.0 + 1) - self.clock.position();
        let offset = self.clock.offset() + early.clamp(0.0, 1.0);
        self.samples.record(now, tick, offset);
    }

    fn window(&self) -> u32 {
        input_window(self.clock.tick())
    }

    fn freeze_ticks(&self) -> u32 {
        (self.clock.ticks(FREEZE) as u32).max(1)
    }
}

#[cfg(test)]
mod tests;
