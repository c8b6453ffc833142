//! [`Predicting`]: a session with a prediction, and the order of steps in one `advance`.
//!
//! ```text
//!  frames that arrived ─▶ authority (never shed) ─▶ compare
//!  pace ─▶ sample inputs up to I ─▶ P = min(max(A, I − delay), A + allowed lead)
//!  rebuild if stale, extend to P (within the budget) ─▶ settle cues ─▶ the picture
//! ```

use std::time::Duration;

use twinstep_core::bounds::{INPUT_BYTES_MAX, input_window};
use twinstep_core::turn::Cadence;
use twinstep_core::{Controls, Simulation, Tick, codec};

use crate::budget::AllowedLead;
use crate::pace::{Pace, PaceConfig};
use crate::picture::Show;
use crate::replica::{InputTooLarge, Replica};
use crate::stats::SessionStats;

/// During a catch-up, an advance may take this many times its budget.
const CATCH_UP: u32 = 4;
const SAMPLES: usize = 256;
const SOON: Duration = Duration::from_millis(1);
/// A call of `advance` after a longer pause counts as late.
const LATE: Duration = Duration::from_millis(34);
// A clock whose rate differs from 1 by more than this is off.
const CLOCK_OFF: f64 = 0.02;

pub(crate) struct Predicting {
    pub(crate) pace: Option<Pace>,
    arrived_at: Option<Duration>,
    delay: InputDelay,
    sampled_at: Box<[(Tick, Duration); SAMPLES]>,
    lead: AllowedLead,
    /// The number of ticks by which the input tick is ahead of the received turns, while the match is paused.
    pub(crate) paused_at: Option<u32>,
}

impl Predicting {
    pub(crate) fn new(cadence: Cadence) -> Predicting {
        Predicting {
            pace: None,
            arrived_at: None,
            delay: InputDelay::new(cadence.delay_ticks.into()),
            sampled_at: Box::new([(Tick::MAX, Duration::ZERO); SAMPLES]),
            lead: AllowedLead::new(),
            paused_at: None,
        }
    }

    pub(crate) fn advance<S: Simulation, V: Show<S>>(
        &mut self,
        replica: &mut Replica<S, V>,
        now: Duration,
        budget: u32,
        rtt: Duration,
        input: impl FnMut(usize) -> S::Input,
    ) -> Result<bool, InputTooLarge> {
        replica.timeline.set_rare(self.lead.is_rare());
        // Before confirming, because the frames confirmed next must be compared with the rebuilt prediction.
        let budget = budget - self.take_back(replica, now, budget);
        let left = self.confirm(replica, now, budget);
        let sampled = self.sample(replica, now, rtt, input)?;
        let target = self.predict(replica, now, left);
        replica.view.move_others(&replica.timeline);
        if !replica.timeline.is_stale() {
            replica
                .view
                .cues
                .settle(replica.timeline.authority().tick());
        }
        if self.pace.is_some() && self.paused_at.is_none() {
            self.measure(replica, target);
        }
        Ok(sampled)
    }

    pub(crate) fn next_due<S: Simulation, V: Show<S>>(
        &self,
        replica: &Replica<S, V>,
    ) -> Option<Duration> {
        let authority = replica.timeline.authority().tick();
        let runs = self.pace.as_ref().filter(|_| self.paused_at.is_none());
        let sampled = runs.and_then(|pace| pace.next_due(authority));
        // Postponed work continues in the next advance.
        let goes_on = replica.can_step() || self.lead.is_short();
        let soon = goes_on.then(|| replica.allowance.now() + SOON);
        sampled.into_iter().chain(soon).min()
    }

    /// Shows a rebuild done in the background. Returns the number of steps taken.
    fn take_back<S: Simulation, V: Show<S>>(
        &mut self,
        replica: &mut Replica<S, V>,
        now: Duration,
        budget: u32,
    ) -> u32 {
        let back = replica.timeline.take_back(budget, &mut replica.view);
        if !back.overtaken && back.shown {
            // Cues of the ticks that the authority has passed since the rebuild started were waiting for it.
            replica
                .view
                .cues
                .settle(replica.timeline.authority().tick());
        }
        if back.overtaken {
            self.shed(replica, now);
        }
        back.steps
    }

    /// Makes rebuilds rare, then shortens the lead, down to zero if necessary, so that the client does not fall behind.
    fn shed<S: Simulation, V: Show<S>>(&mut self, replica: &Replica<S, V>, now: Duration) {
        let lead = replica.timeline.prediction().tick() - replica.timeline.authority().tick();
        self.lead.shed(now, lead);
    }

    /// Steps the authority through the arrived frames, and returns the rest of the budget. During a catch-up there is
    /// no other work, so it may exceed the budget.
    fn confirm<S: Simulation, V: Show<S>>(
        &self,
        replica: &mut Replica<S, V>,
        now: Duration,
        budget: u32,
    ) -> u32 {
        let tick = replica.cadence().tick();
        let free = replica.allowance.free(tick);
        let more = match self.pace.is_none() || is_far_behind(replica) {
            true => budget.saturating_mul(CATCH_UP),
            false => budget,
        };
        let burst = replica.allowance.left_of(free.saturating_add(more));
        for stepped in 0..burst {
            let tick = replica.timeline.authority().tick();
            if !replica.confirm_next() {
                return budget.saturating_sub(stepped.saturating_sub(free));
            }
            replica.allowance.record_step();
            let (sampled, at) = self.sampled_at[tick.0 as usize % SAMPLES];
            if sampled == tick {
                replica.meter.record_confirmed(now.saturating_sub(at));
            }
        }
        budget.saturating_sub(burst.saturating_sub(free))
    }

    fn sample<S: Simulation, V: Show<S>>(
        &mut self,
        replica: &mut Replica<S, V>,
        now: Duration,
        rtt: Duration,
        mut input: impl FnMut(usize) -> S::Input,
    ) -> Result<bool, InputTooLarge> {
        let (authority, known) = (replica.timeline.authority().tick(), replica.inbox.next());
        // Before the first turn the server's position is unknown, and every session seems to have caught up.
        let is_known =
            replica.meter.turns > 0 || replica.cadence().paused && replica.next_seal > Tick(0);
        if self.pace.is_none() && has_caught_up(replica) && is_known {
            let pace = Pace::start(config(replica), now, known, rtt);
            replica
                .timeline
                .local_actions_mut()
                .skip_to(pace.input_tick());
            self.pace = Some(pace);
        }
        let config = config(replica);
        let cadence = replica.cadence();
        let Some(pace) = &mut self.pace else {
            return Ok(false);
        };
        let window = input_window(config.tick);
        pace.set_config(config);
        let actions = replica.timeline.local_actions_mut();
        // Beyond the window the server would not accept inputs.
        let room = authority + window - actions.next();
        let wished = match cadence.paused {
            true => self.delay.ticks(),
            false => u32::from(cadence.delay_ticks),
        };
        match self.delay.follow(now, wished, config.tick, room) {
            DelayStep::None => {}
            DelayStep::GoAhead(more) => {
                // The current inputs are repeated, so that the picture does not wait.
                pace.go_ahead(now, more);
                (0..more).for_each(|_| actions.repeat());
            }
            DelayStep::Stand => pace.hold_input_tick(),
        }
        let beat = match self.paused_at {
            Some(lead) if cadence.paused => pace.stand_still(now, authority, known, lead),
            // The first turn after a pause is sealed ahead of its time, so the input tick does not move with it.
            Some(_) if pace.input_tick() >= known => {
                self.paused_at = None;
                pace.stand_still(now, authority, known, pace.input_tick() - known)
            }
            _ => {
                // The clock first advances to the time at which the pause was seen.
                let beat = pace.advance(now, authority, known);
                let lead = pace.input_tick() - known;
                self.paused_at = cadence.paused.then_some(lead);
                beat
            }
        };
        if beat.first != actions.next() {
            actions.skip_to(beat.first);
        }
        let mut fits = true;
        for tick in beat.first.0..beat.end.0 {
            self.sampled_at[tick as usize % SAMPLES] = (Tick(tick), now);
            actions.sample(|seat| {
                let input = input(seat).or_neutral();
                fits &= codec::size(&input).is_ok_and(|bytes| bytes <= INPUT_BYTES_MAX);
                input
            });
        }
        replica.meter.capped = beat.capped;
        replica.meter.held += beat.held;
        replica.meter.skipped_ticks += u64::from(beat.skipped_ticks);
        if beat.is_leap {
            replica.meter.leapt_ticks += u64::from(beat.skipped_ticks);
        }
        if fits {
            Ok(beat.end > beat.first)
        } else {
            Err(InputTooLarge)
        }
    }

    /// Extends the prediction as far as budget and lead allow. Returns the tick requested by the pace.
    fn predict<S: Simulation, V: Show<S>>(
        &mut self,
        replica: &mut Replica<S, V>,
        now: Duration,
        budget: u32,
    ) -> Tick {
        let authority = replica.timeline.authority().tick();
        let input = replica.timeline.local_actions().next();
        let wished = input.back(self.delay.ticks()).max(authority);
        let lead_max = replica.lead_max();
        self.lead.bound(lead_max);
        let target = wished.min(authority + self.lead.ticks());
        // A correction starts from what is shown now: the end of the last tick, if a new tick follows.
        let alpha = self.pace.as_ref().map_or(0.0, Pace::alpha);
        let new_ticks = target - replica.timeline.prediction().tick();
        replica.view.drawn = replica.view.alpha;
        replica.view.alpha = (alpha + new_ticks as f32).min(1.0);
        let used = replica.timeline.predict(target, budget, &mut replica.view);
        let reached = replica.timeline.prediction().tick();
        // Where the prediction must not or cannot go on, the picture waits at the end of its tick.
        replica.view.alpha = match reached < wished {
            true => 1.0 - f32::EPSILON,
            false => alpha,
        };
        let is_unfinished = replica.timeline.is_stale() && !replica.timeline.waits();
        if used == budget && (is_unfinished || reached < target) {
            self.shed(replica, now);
        } else {
            self.lead.grow(now, lead_max);
        }
        wished
    }

    fn measure<S: Simulation, V: Show<S>>(&self, replica: &mut Replica<S, V>, wished: Tick) {
        let passed = replica.allowance.passed();
        let authority = replica.timeline.authority().tick();
        let reached = replica.timeline.prediction().tick();
        let input = replica.timeline.local_actions().next();
        let (lead_max, window) = (replica.lead_max(), input_window(replica.cadence().tick()));
        let meter = &mut replica.meter;
        let rate = self.pace.as_ref().map_or(1.0, Pace::rate);
        if rate > 0.0 && (rate - 1.0).abs() > CLOCK_OFF {
            meter.clock_off += passed;
        }
        meter.lead.add(f64::from(reached - authority));
        meter.reach.add(f64::from(input - authority));
        if passed > LATE {
            meter.late += passed - LATE;
        } else if wished > authority + lead_max && reached >= authority + lead_max
            || meter.capped && input >= authority + window
        {
            meter.stall += passed;
        } else if wished > reached && self.lead.ticks() < lead_max {
            meter.shed += passed;
        }
    }

    /// Frames are late if more than two turns, a tick and a drawn frame have passed since the last ones.
    pub(crate) fn record_arrival<S: Simulation, V: Show<S>>(
        &mut self,
        replica: &mut Replica<S, V>,
        now: Duration,
    ) {
        let turn = replica.cadence();
        if let Some(at) = self.arrived_at.replace(now)
            && self.paused_at.is_none()
            && now.saturating_sub(at) > turn.turn() * 2 + turn.tick() + replica.allowance.passed()
        {
            replica.meter.late_turns += 1;
        }
    }

    /// Stops sampling; a new clock starts when the session has caught up again.
    pub(crate) fn restart(&mut self) {
        (self.pace, self.paused_at) = (None, None);
    }

    pub(crate) fn fill_stats(&self, stats: &mut SessionStats) {
        if let Some(pace) = &self.pace {
            stats.margin_ticks_target = pace.target();
            stats.margin_ticks_now = pace.margin().unwrap_or_default();
            stats.rate = pace.rate();
            stats.delay_ticks = self.delay.ticks();
        }
    }
}

fn config<S: Simulation, V: Show<S>>(replica: &Replica<S, V>) -> PaceConfig {
    let cadence = replica.cadence();
    PaceConfig {
        tick: cadence.tick(),
        turn_ticks: u32::from(cadence.turn_ticks),
    }
}

/// Returns `true` if sampling can start: all arrived frames were stepped, and at most two turns have not arrived.
fn has_caught_up<S: Simulation, V: Show<S>>(replica: &Replica<S, V>) -> bool {
    let turn = u32::from(replica.cadence().turn_ticks);
    replica.inbox.front().is_none() && replica.next_seal - replica.inbox.next() <= 2 * turn
}

/// Returns `true` if inputs are so far ahead that none can be sampled until the authority has come closer. This happens
/// after a slow world download.
fn is_far_behind<S: Simulation, V: Show<S>>(replica: &Replica<S, V>) -> bool {
    let authority = replica.timeline.authority();
    let reach = replica.timeline.local_actions().next() - authority.tick();
    reach > input_window(authority.turn().cadence.tick())
}

/// The largest increase of the input delay in one change. A decrease is always one tick.
const DELAY_STEP_TICKS: u32 = 4;
const DELAY_STEP: Duration = Duration::from_millis(500);
/// The shortest interval, in ticks, at which the input delay shrinks. The clock stops for a tick each time, and must
/// first catch up at 5 %. Otherwise, with long ticks, inputs would be too late while the delay shrinks.
const DELAY_STEP_EVERY: u32 = 30;

/// The input delay in use, which approaches the match's setting.
///
/// Invariant: the delay grows and shrinks in steps that a player does not notice.
struct InputDelay {
    ticks: u32,
    changed_at: Duration,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum DelayStep {
    None,
    GoAhead(u32),
    Stand,
}

impl InputDelay {
    fn new(ticks: u32) -> InputDelay {
        InputDelay {
            ticks,
            changed_at: Duration::ZERO,
        }
    }

    fn ticks(&self) -> u32 {
        self.ticks
    }

    /// Moves the delay towards `wished`, if a change is due. `room_ticks` is the number of ticks by which the input
    /// tick may move ahead.
    fn follow(&mut self, now: Duration, wished: u32, tick: Duration, room_ticks: u32) -> DelayStep {
        let every = match wished < self.ticks {
            true => DELAY_STEP.max(tick * DELAY_STEP_EVERY),
            false => DELAY_STEP,
        };
        if wished == self.ticks || now.saturating_sub(self.changed_at) < every {
            return DelayStep::None;
        }
        if wished < self.ticks {
            self.changed_at = now;
            self.ticks -= 1;
            return DelayStep::Stand;
        }
        let more = (wished - self.ticks).min(DELAY_STEP_TICKS).min(room_ticks);
        if more == 0 {
            return DelayStep::None;
        }
        self.changed_at = now;
        self.ticks += more;
        DelayStep::GoAhead(more)
    }
}
