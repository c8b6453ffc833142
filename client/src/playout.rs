//! [`Playout`]: the clock of a client without prediction, which plays turns as they arrive.
//!
//! ```text
//!   turn n+m arrives ──┤ slack ├── it runs: batch for n+2m is closed ── up ──▶ server ──┤ slack ├── it is due
//!                         ▲                                                                ▲
//!                   measured here                                        reported by the server
//! ```
//!
//! A turn that has not arrived when it is due causes a *pause* of exactly its lateness: the turn runs when it arrives,
//! and the clock continues from there. So a client that was late once is slightly behind, and pauses less afterwards.
//!
//! A later playout gives turns more slack on their way down, and gives batches less slack on their way up. The clock is
//! steered slowly (±5 %) to the point where the smallest slacks of both directions are equal, which is best for the
//! turn length. After a long absence, or when batches are too late although turns wait here, ±5 % would take too long,
//! so the clock leaps, and all turns that have arrived are played.
//!
//! A pause of the machine does not measure the path, because the turns found afterwards may have arrived long before.
//! They do not count as a pause, and run immediately.

use std::time::Duration;

/// The smallest slack is taken over this many turns.
const TURNS: usize = 16;
/// The largest deviation of the clock's rate from 1.
const RATE_MAX: f64 = 0.05;
/// A difference between the slacks of up to this size is not corrected.
const DEAD_BAND_MS: f64 = 12.0;
/// A difference between the slacks that exceeds the dead band by this much is corrected at the full rate.
const FULL_RATE_MS: f64 = 100.0;
/// The maximum time by which a tick runs early, if the next frame would be too late for it. A turn late by less does
/// not cause a pause.
const EARLY: Duration = Duration::from_millis(1);
/// A turn that has waited here for this much longer than needed causes a leap.
const LEAP_MS: f64 = 600.0;
/// The slack that remains after such a leap.
const LEAP_TO_MS: f64 = 100.0;
/// If batches are too late, the clock leaps if it can make the turns run at least this much earlier.
const LEAP_LATE_MS: f64 = 100.0;
/// After a leap for late batches, slack reports are ignored for this many turns. They still describe earlier batches,
/// because the server reports on the last 16 batches and its report takes time to arrive.
const STALE_TURNS: u32 = 24;
/// A longer time between two calls means that the machine paused.
const STOOD: Duration = Duration::from_millis(100);
/// A client starts far behind if its arrived turns, without the newest one, take longer than this.
const FEW: Duration = Duration::from_millis(500);
/// The maximum number of turns whose arrival is recorded.
const ARRIVALS: usize = 512;
/// The slack assumed for a spectator, which sends no batches.
const SPECTATOR_SLACK_MS: f64 = 60.0;

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Pause {
    pub(crate) late: Duration,
}

pub(crate) struct Playout {
    /// The due time of the authority's next tick; `None` before the first turn and in a pause of the match.
    due: Option<Duration>,
    /// Whether the match is paused, or the first turn after a pause is not due yet. Meanwhile the picture stays at the
    /// end of the last tick.
    pub(crate) rests: bool,
    rate: f64,
    /// Turns that arrived and have not started: number and arrival time.
    arrived: Vec<(u32, Duration)>,
    /// The slacks of the last turns in ms, newest last. A turn's slack is the time from its arrival to its due time.
    slacks: Vec<f64>,
    /// The slack of the batches, reported by the server, in ms.
    slack_up: Option<f64>,
    /// Reports about earlier turns are ignored.
    stale_until: u32,
    /// The time of the last call of `look`.
    looked_at: Option<Duration>,
    /// The start and end of the machine's last pause.
    stood: Option<(Duration, Duration)>,
    spectates: bool,
}

impl Playout {
    pub(crate) fn new(spectates: bool) -> Self {
        Playout {
            due: None,
            rests: false,
            rate: 1.0,
            arrived: Vec::with_capacity(2 * TURNS),
            slacks: Vec::with_capacity(TURNS),
            slack_up: None,
            stale_until: 0,
            looked_at: None,
            stood: None,
            spectates,
        }
    }

    pub(crate) fn runs(&self) -> bool {
        self.due.is_some()
    }

    /// Starts or restarts the clock: the first turn runs at `at`, and a turn lasts for `turn`. Earlier arrival times
    /// are ignored, unless the clock stood still and many turns wait: then it may leap.
    pub(crate) fn start(&mut self, at: Duration, turn: Duration) {
        let behind = turn * self.arrived.len().saturating_sub(1) as u32;
        let begins_far_behind = self.due.is_none() && behind > FEW;
        self.due = Some(at);
        self.rate = 1.0;
        if !begins_far_behind {
            self.arrived.clear();
        }
        self.slacks.clear();
        self.slack_up = None;
        self.stale_until = 0;
    }

    /// Stops the clock, because the match is paused after the last turn. [`start`](Playout::start) restarts it.
    pub(crate) fn rest(&mut self) {
        (self.due, self.rests) = (None, true);
    }

    pub(crate) fn look(&mut self, now: Duration) {
        if let Some(before) = self.looked_at.replace(now)
            && now.saturating_sub(before) > STOOD
        {
            self.stood = Some((before, now));
        }
    }

    pub(crate) fn record_arrival(&mut self, now: Duration, turn: u32) {
        let known = self.arrived.last().is_some_and(|(last, _)| *last >= turn);
        if !known && self.arrived.len() < ARRIVALS {
            self.arrived.push((turn, now));
        }
    }

    /// Records a report of the server at turn `turn`: the latest of the last batches arrived `slack_ms` early.
    pub(crate) fn report(&mut self, turn: u32, slack_ms: f64) {
        if turn >= self.stale_until {
            self.slack_up = Some(slack_ms);
        }
    }

    /// The earliest time at which the next tick may run. Returns `None` if the clock does not run.
    pub(crate) fn next_due(&self) -> Option<Duration> {
        self.due.map(|due| due.saturating_sub(EARLY))
    }

    pub(crate) fn is_due(&self, now: Duration) -> bool {
        self.next_due().is_some_and(|due| now >= due)
    }

    /// Starts a turn. If the turn was late, returns the pause that ends with it.
    pub(crate) fn begin_turn(&mut self, now: Duration, turn: u32) -> Option<Pause> {
        let due = self.due?;
        let at = self.arrived.iter().position(|(number, _)| *number == turn);
        let arrived = at.map(|at| self.arrived[at].1);
        self.arrived.retain(|(number, _)| *number > turn);
        let (arrived, runs) = match self.stood {
            // The turn may have arrived at any time since the last call; assume that it was in time, if possible.
            Some((from, to)) if (from..=to).contains(&arrived?) => {
                let arrived = arrived?.min(due.max(from));
                (arrived, arrived)
            }
            _ => (arrived?, now),
        };
        if self.slacks.len() == TURNS {
            self.slacks.remove(0);
        }
        let slack = ms(due) - ms(arrived);
        if slack > self.slack_up.unwrap_or_default().max(0.0) + LEAP_MS {
            self.due = Some(arrived + Duration::from_secs_f64(LEAP_TO_MS / 1e3));
            self.slacks.push(LEAP_TO_MS);
        } else if arrived > due {
            // From now on the clock is this much later, so the earlier turns would have had this much more slack.
            let late = ms(runs) - ms(due);
            self.slacks.iter_mut().for_each(|slack| *slack += late);
            self.slacks.push(0.0);
            self.due = Some(runs);
        } else {
            self.slacks.push(slack);
        }
        self.hurry(turn);
        self.steer();
        let late = runs.saturating_sub(due);
        (arrived > due + EARLY).then_some(Pause { late })
    }

    fn hurry(&mut self, turn: u32) {
        let (Some(up), Some(down), Some(due)) = (self.slack_up, self.slack_ms(), self.due) else {
            return;
        };
        let off = ((down - up) / 2.0).min(down);
        if self.spectates || up >= 0.0 || off < LEAP_LATE_MS {
            return;
        }
        self.due = Some(due.saturating_sub(Duration::from_secs_f64(off / 1e3)));
        self.slacks.iter_mut().for_each(|slack| *slack -= off);
        self.slack_up = Some(up + off);
        self.stale_until = turn + STALE_TURNS;
    }

    pub(crate) fn step(&mut self, tick: Duration) {
        let length = tick.div_f64(self.rate);
        self.due = self.due.map(|due| due + length);
        self.rests = false;
    }

    fn steer(&mut self) {
        let Some(down) = self.slack_ms() else {
            return;
        };
        let up = self.up_ms().unwrap_or(down);
        // The clock cannot run ahead of the turns that have arrived, even if the batches would then be less late.
        let off = ((down - up) / 2.0).min(down.max(0.0));
        let beyond = (off.abs() - DEAD_BAND_MS).max(0.0).copysign(off);
        self.rate = 1.0 + (beyond / FULL_RATE_MS).clamp(-1.0, 1.0) * RATE_MAX;
    }

    pub(crate) fn rate(&self) -> f64 {
        self.rate
    }

    pub(crate) fn slack_ms(&self) -> Option<f64> {
        self.slacks.iter().copied().reduce(f64::min)
    }

    // The slack to which the clock is steered, up to [`DEAD_BAND_MS`] on each side. Returns `None` before the server
    // has reported how early batches arrive.
    pub(crate) fn target_ms(&self) -> Option<f64> {
        match self.spectates {
            true => self.up_ms(),
            false => Some((self.slack_ms()? + self.up_ms()?) / 2.0),
        }
    }

    // The slack on the way up. A spectator sends no batches, and keeps this slack on the way down.
    fn up_ms(&self) -> Option<f64> {
        match self.spectates {
            true => Some(SPECTATOR_SLACK_MS),
            false => self.slack_up,
        }
    }

    /// The picture's position between the last two ticks, in [0, 1).
    pub(crate) fn alpha(&self, now: Duration, tick: Duration) -> f32 {
        if self.rests {
            return 1.0 - f32::EPSILON;
        }
        let Some(due) = self.due else { return 0.0 };
        let left = due.saturating_sub(now).as_secs_f32() * self.rate as f32 / tick.as_secs_f32();
        (1.0 - left).clamp(0.0, 1.0 - f32::EPSILON)
    }
}

fn ms(time: Duration) -> f64 {
    time.as_secs_f64() * 1e3
}

#[cfg(test)]
mod tests {
    use super::*;

    const TICK: Duration = Duration::from_millis(50);
    const TURN: Duration = Duration::from_millis(150);
    const MS: fn(u64) -> Duration = Duration::from_millis;

    #[test]
    fn a_late_turn_pauses_for_its_lateness_and_runs_at_once() {
        // Seed row 43.
        let mut playout = Playout::new(false);
        playout.start(MS(100), TURN);
        playout.record_arrival(MS(90), 0);
        assert!(!playout.is_due(MS(98)) && playout.is_due(MS(100)));
        assert_eq!(playout.begin_turn(MS(100), 0), None);
        (0..3).for_each(|_| playout.step(TICK));
        assert!(playout.is_due(MS(250)));
        playout.record_arrival(MS(262), 1);
        let pause = playout.begin_turn(MS(262), 1);
        assert_eq!(pause, Some(Pause { late: MS(12) }));
        playout.step(TICK);
        assert!(!playout.is_due(MS(310)) && playout.is_due(MS(312)));
    }

    /// Finding K14: after a 0.3 s standstill a client paused for just as long, and its batches were too late for 8 s.
    #[test]
    fn waiting_turns_run_at_once_after_a_standstill() {
        let mut playout = Playout::new(false);
        playout.start(MS(100), TURN);
        for at in [90, 110, 130] {
            playout.look(MS(at));
        }
        for turn in 0..5 {
            playout.record_arrival(MS(530), turn);
        }
        playout.look(MS(530));
        for turn in 0..5u64 {
            assert_eq!(
                playout.begin_turn(MS(530), turn as u32),
                match turn {
                    // This turn had not arrived at the last call.
                    0 => Some(Pause { late: MS(30) }),
                    _ => None,
                }
            );
            assert_eq!(playout.due, Some(MS(130 + turn * 100)));
            (0..2).for_each(|_| playout.step(TICK));
        }
        assert!(!playout.is_due(MS(530)), "it is where it would be");
    }

    /// Finding K14: after half a second without packets a client fell behind, and its batches were too late until it
    /// had caught up at ±5 %.
    #[test]
    fn late_batches_make_the_clock_leap_to_the_waiting_turns() {
        let (way, turn) = (50.0, 80.0);
        let (lead, mut runs, mut late) = (3.0 * turn, way, 0);
        let mut playout = Playout::new(false);
        playout.start(MS(50), TURN);
        let mut slacks = std::collections::VecDeque::new();
        for n in 0..400u32 {
            let due = f64::from(n) * turn;
            // No packets arrive for half a second, starting at turn 100.
            let arrives = (due + way).max(if (100..107).contains(&n) {
                100.0 * turn + 500.0
            } else {
                0.0
            });
            let looked = runs.max(arrives);
            playout.record_arrival(Duration::from_secs_f64(arrives / 1e3), n);
            let _ = playout.begin_turn(Duration::from_secs_f64(looked / 1e3), n);
            slacks.push_back(due + lead - (looked + way));
            if slacks.len() > 16 + 2 {
                slacks.pop_front();
                let slack_ms = slacks.iter().copied().take(16).fold(f64::MAX, f64::min);
                playout.report(n, slack_ms);
            }
            late += u32::from(n > 106 && slacks.back() < Some(&0.0));
            playout.step(Duration::from_secs_f64(turn / 1e3));
            runs = ms(playout.due.unwrap());
        }
        assert!(late > 0 && late <= 20, "{late} batches were late");
        let slack = playout.slack_ms().unwrap();
        assert!((30.0..120.0).contains(&slack), "{slack} ms");
    }

    /// Finding K11: a client that started with many turns played them one by one, and the match waited for it.
    #[test]
    fn a_client_starting_far_behind_skips_ahead() {
        let mut playout = Playout::new(false);
        (0..40).for_each(|turn| playout.record_arrival(MS(0), turn));
        playout.start(MS(100), TURN);
        let (mut turn, mut now) = (0, MS(0));
        while turn < 40 {
            now += MS(10);
            while turn < 40 && playout.is_due(now) {
                assert_eq!(playout.begin_turn(now, turn), None, "no turn was late");
                (0..3).for_each(|_| playout.step(TICK));
                turn += 1;
            }
        }
        assert!(now <= MS(1_000), "{now:?}");
    }

    /// Regression: the number of waiting turns was considered, but not their length. With one-second turns, a
    /// newcomer's batches were late for four turns.
    #[test]
    fn a_client_starting_a_few_long_turns_behind_skips_ahead() {
        let second = MS(1_000);
        let mut playout = Playout::new(false);
        (0..4).for_each(|turn| playout.record_arrival(MS(0), turn));
        playout.start(MS(900), second);
        let mut ran = Vec::new();
        for now in (0..8_000).step_by(10).map(MS) {
            let next = ran.len() as u32;
            // A turn arrives every second.
            if now.as_millis() % 1_000 == 0 && !now.is_zero() {
                playout.record_arrival(now, 3 + now.as_secs() as u32);
            }
            let is_here = u64::from(next) < 4 + now.as_secs();
            if is_here && playout.is_due(now) {
                let _ = playout.begin_turn(now, next);
                playout.step(second);
                ran.push(now);
            }
        }
        let late = ran
            .iter()
            .skip(4)
            .zip(1..)
            .map(|(ran, n)| *ran - second * n);
        let latest = late.max().expect("turns ran");
        assert!(latest <= MS(300), "{latest:?} behind: {ran:?}");
    }

    #[test]
    fn alpha_grows_within_a_tick() {
        // Seed row 24: a 50 ms tick drawn at 60 frames a second gives 3 frames.
        let mut playout = Playout::new(false);
        playout.start(MS(0), TURN);
        playout.record_arrival(MS(0), 0);
        assert_eq!(playout.begin_turn(MS(0), 0), None);
        playout.step(TICK);
        let frames: Vec<f32> = (0..50)
            .step_by(17)
            .map(|at| playout.alpha(MS(at), TICK))
            .collect();
        assert_eq!(frames.len(), 3);
        assert!(frames.windows(2).all(|w| w[0] < w[1]));
        assert!(frames.iter().all(|alpha| (0.0..1.0).contains(alpha)));
        assert_eq!(playout.alpha(MS(49), TICK), 0.98);
        assert!(playout.alpha(MS(80), TICK) < 1.0, "while it pauses");
    }

    #[test]
    fn slack_is_shared_between_both_directions() {
        // Down 20 ms, up 120 ms, two 150 ms turns: both slacks should become 80 ms.
        let (up, down, turn) = (120.0, 20.0, 150.0);
        let mut playout = Playout::new(false);
        playout.start(MS(20), TURN);
        let mut runs = 20.0;
        for n in 0..400u32 {
            // Turn n is sealed when turn n - 2 is due, or when its batch arrives, which was closed when n - 2 ran.
            let due_before = f64::from(n) * turn - 2.0 * turn;
            let batch = runs - 2.0 * turn + up;
            let arrived = due_before.max(batch).max(0.0) + down;
            playout.record_arrival(Duration::from_secs_f64(arrived / 1e3), n);
            playout.report(n, due_before + 2.0 * turn - (runs + up));
            let now = Duration::from_secs_f64(runs.max(arrived) / 1e3);
            let _ = playout.begin_turn(now, n);
            (0..3).for_each(|_| playout.step(TICK));
            runs = ms(playout.due.unwrap());
        }
        let slack = playout.slack_ms().unwrap();
        assert!((60.0..100.0).contains(&slack), "{slack} ms");
    }
}
