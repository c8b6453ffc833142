//! A session that is in its match: what one `advance` does, and in which order.
//!
//! ```text
//!  frames that arrived ─▶ authority (never shed) ─▶ compare
//!  pace ─▶ sample inputs up to I ─▶ P = min(max(A, I − delay), A + allowed lead)
//!  rebuild if stale, extend to P (within the budget) ─▶ settle cues ─▶ the picture
//! ```

use std::sync::Arc;
use std::time::Duration;

use delay::{DelayStep, InputDelay};
use divergence::Divergence;
use twinstep_core::bounds::{INPUT_BYTES_MAX, input_window, lead_max, ticks_in};
use twinstep_core::frame::Order;
use twinstep_core::world::World;
use twinstep_core::{Controls, PlayerSet, Simulation, Tick, codec};
use twinstep_protocol::packet::hello::{Basis, Welcome};

use crate::budget::{AllowedLead, StepAllowance};
use crate::hooks::{Answers, Guess, OwnerResolver, Speculate};
use crate::inbox::Inbox;
use crate::local_actions::LocalActions;
use crate::lockstep::Lockstep;
use crate::pace::{Pace, PaceConfig};
use crate::picture::{Show, Smoothing};
use crate::stats::Meter;
use crate::tape::Tape;
use crate::timeline::{ConfirmError, Reconcile, Timeline};
use crate::view::View;

mod delay;
mod divergence;
mod jump;
mod measured;
mod turns;

/// While a world is caught up with, an advance may take so many times its budget.
const CATCH_UP: u32 = 4;
/// Samples whose time is remembered.
const SAMPLES: usize = 256;
/// A step that panics at a confirmed frame is healed, but not twice within this time.
const BREAKS_AGAIN: Duration = Duration::from_secs(60);
/// What an advance had no room for goes on so much later.
const SOON: Duration = Duration::from_millis(1);
/// A later call of `advance` than this counts as late.
const LATE: Duration = Duration::from_millis(34);

/// An input that is larger than what a packet grants it: an error of the game.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct InputTooLarge;

/// What a session in its match consists of.
pub(crate) struct Playing<S: Simulation, V: Show<S>> {
    pub(crate) timeline: Timeline<S>,
    pub(crate) inbox: Inbox<S>,
    pub(crate) view: View<S, V>,
    pub(crate) pace: Option<Pace>,
    /// Instead of a prediction: the match has a command delay, or this is a spectator.
    pub(crate) lockstep: Option<Lockstep<S>>,
    /// Where owners answer: what own players asked.
    pub(crate) answers: Option<Answers<S>>,
    rules: Arc<S::Rules>,
    pub(crate) meter: Meter,
    allowance: StepAllowance,
    /// When news came last, for who predicts.
    news_at: Option<Duration>,
    delay: InputDelay,
    sampled_at: Box<[(Tick, Duration); SAMPLES]>,
    lead: AllowedLead,
    pub(crate) divergence: Divergence<S>,
    /// The game's step panicked at confirmed frames again, after a heal: the session cannot go on.
    pub(crate) is_beyond_help: bool,
    /// The newest of the server's digests that the authority had when it was there, and its tick.
    agreed: Option<(Tick, u32)>,
    /// All frames before this tick are counted, or ran before this session came (`MAX`: it does not know yet when).
    counted: Tick,
    /// The server's next tick to seal, as last told.
    pub(crate) next_seal: Tick,
    /// What is confirmed is recorded here.
    pub(crate) tape: Option<Tape<S>>,
}

/// What a session brings into its match.
pub(crate) struct Hooks<S: Simulation, V: Show<S>> {
    pub(crate) rules: Arc<S::Rules>,
    pub(crate) guess: Box<dyn Guess<S>>,
    pub(crate) speculate: Box<dyn Speculate<S>>,
    pub(crate) resolve: Box<dyn OwnerResolver<S>>,
    pub(crate) show: V,
    pub(crate) smoothing: Smoothing,
    pub(crate) reconcile: Reconcile,
    pub(crate) verify: bool,
}

impl<S: Simulation, V: Show<S>> Playing<S, V> {
    pub(crate) fn new(welcome: Welcome, world: World<S>, hooks: Hooks<S, V>) -> Self {
        let tick = world.turn().cadence.tick();
        let actions = LocalActions::new(welcome.seats.clone(), &welcome.next_seq);
        let seats = welcome.seats.len();
        let lockstep = (welcome.command_delay > 0 || seats == 0)
            .then(|| Lockstep::new(welcome.command_delay, world.turn(), seats));
        let mut actions = actions;
        actions.open_turn = lockstep.as_ref().map(Lockstep::open_turn);
        // What comes from the authority is drawn between two ticks, own players too.
        let locals = match lockstep {
            Some(_) => PlayerSet::default(),
            None => actions.players(),
        };
        let inbox = Inbox::new(world.tick());
        let replays = matches!(welcome.basis, Basis::Start(..));
        let mut view = View::new(hooks.show, hooks.smoothing, locals, tick);
        view.jump(world.sim(), world.tick());
        let Hooks {
            rules,
            guess,
            speculate,
            resolve,
            reconcile,
            verify,
            ..
        } = hooks;
        let answers = welcome.owners_answer.then(|| Answers::new(resolve));
        let read_only = rules.clone();
        let mut playing = Playing {
            delay: InputDelay::new(world.turn().cadence.delay_ticks.into()),
            timeline: match lockstep {
                None => Timeline::new(rules, world, actions, guess, speculate, verify)
                    .reconciling(reconcile),
                Some(_) => {
                    Timeline::new(rules, world, actions, guess, speculate, verify).in_lockstep()
                }
            },
            lockstep,
            answers,
            rules: read_only,
            inbox,
            view,
            pace: None,
            meter: Meter::default(),
            allowance: StepAllowance::default(),
            news_at: None,
            sampled_at: Box::new([(Tick::MAX, Duration::ZERO); SAMPLES]),
            lead: AllowedLead::new(),
            divergence: Divergence::none(),
            is_beyond_help: false,
            agreed: None,
            counted: Tick(0),
            next_seal: Tick(0),
            tape: None,
        };
        if replays {
            playing.come_at(Tick::MAX);
        }
        playing
    }

    /// What runs before `tick` ran before this session came: it is not told as news, nor counted as this session's.
    pub(crate) fn come_at(&mut self, tick: Tick) {
        self.counted = tick;
        self.view.mute_until = tick;
    }

    /// Whether it is known since when this session is here.
    pub(crate) fn has_come(&self) -> bool {
        self.counted < Tick::MAX
    }

    /// The session's clock, as the authority's turn has it.
    fn config(&self) -> PaceConfig {
        let cadence = self.timeline.authority().turn().cadence;
        PaceConfig {
            tick: cadence.tick(),
            turn_ticks: u32::from(cadence.turn_ticks),
        }
    }

    /// How far the prediction may run ahead now.
    fn lead_max(&self) -> u32 {
        lead_max(self.config().tick)
    }

    /// Takes a fault of the game's step or hooks that was not reported yet.
    pub(crate) fn take_fault(&mut self) -> Option<String> {
        let answers = || self.answers.as_mut().and_then(Answers::take_fault);
        let of_hooks = || self.view.take_fault().or_else(answers);
        self.timeline.take_fault().or_else(of_hooks)
    }

    /// Whether orders are taken.
    pub(crate) fn takes_commands(&self) -> bool {
        match &self.lockstep {
            Some(lockstep) => lockstep.playout.runs(),
            None => self.pace.is_some(),
        }
    }

    /// Does all that is due; whether new inputs were sampled.
    pub(crate) fn advance(
        &mut self,
        now: Duration,
        budget: u32,
        rtt: Duration,
        input: impl FnMut(usize) -> S::Input,
    ) -> Result<bool, InputTooLarge> {
        self.allowance.begin(now);
        let lead = self.timeline.prediction().tick() - self.timeline.authority().tick();
        self.view
            .at(now, lead, self.timeline.authority().turn().cadence.tick());
        if self.lockstep.is_some() {
            let closed = self.play_out(now, rtt, input);
            self.view.cues.settle(self.timeline.authority().tick());
            return closed;
        }
        let budget = budget - self.take_back(now, budget);
        let left = self.confirm(now, budget);
        let sampled = self.sample(now, rtt, input)?;
        let target = self.predict(now, left);
        if !self.timeline.is_stale() {
            self.view.cues.settle(self.timeline.authority().tick());
        }
        if self.pace.is_some() {
            self.measure(target);
        }
        Ok(sampled)
    }

    /// When [`advance`](Playing::advance) has something to do, if nothing comes until then; `None`: it waits for the server.
    pub(crate) fn next_due(&self) -> Option<Duration> {
        let authority = self.timeline.authority();
        let can_step = self.inbox.front().is_some() && !self.divergence.stands();
        if let Some(lockstep) = &self.lockstep {
            let (turn, tick) = (authority.turn(), authority.tick());
            let is_here = tick != turn.began || self.inbox.has_turn(turn, tick);
            return lockstep.playout.next_due().filter(|_| can_step && is_here);
        }
        let sampled = self
            .pace
            .as_ref()
            .and_then(|pace| pace.next_due(authority.tick()));
        // What found no room in one advance goes on in the next.
        let soon = (can_step || self.lead.is_short()).then(|| self.allowance.now() + SOON);
        sampled.into_iter().chain(soon).min()
    }

    /// Shows a rebuild that was done elsewhere; steps that this took.
    fn take_back(&mut self, now: Duration, budget: u32) -> u32 {
        let back = self.timeline.take_back(budget, &mut self.view);
        if !back.overtaken && back.shown {
            // What the authority had passed by then was waiting for it, as it waits for a rebuild inline.
            self.view.cues.settle(self.timeline.authority().tick());
        }
        if back.overtaken {
            self.shed(now);
        }
        back.steps
    }

    /// Shows less of the future, down to the authority, rather than fall behind.
    fn shed(&mut self, now: Duration) {
        let lead = self.timeline.prediction().tick() - self.timeline.authority().tick();
        self.lead.shed(now, lead);
    }

    /// Steps the authority through what arrived; what is left of the budget. While a world is caught up with there is
    /// nothing else to do, and more may be used.
    fn confirm(&mut self, now: Duration, budget: u32) -> u32 {
        let tick = self.timeline.authority().turn().cadence.tick();
        let free = self.allowance.free(tick);
        let more = match self.is_catching_up() || self.is_far_behind() {
            true => budget.saturating_mul(CATCH_UP),
            false => budget,
        };
        let burst = self.allowance.left_of(free.saturating_add(more));
        for stepped in 0..burst {
            let tick = self.timeline.authority().tick();
            if !self.confirm_next() {
                return budget.saturating_sub(stepped.saturating_sub(free));
            }
            self.allowance.record_step();
            let (sampled, at) = self.sampled_at[tick.0 as usize % SAMPLES];
            if sampled == tick {
                self.meter.record_confirmed(now.saturating_sub(at));
            }
        }
        budget.saturating_sub(burst.saturating_sub(free))
    }

    /// Answers what own players asked, where owners do.
    fn answer(&mut self) {
        if let Some(answers) = &mut self.answers
            && !self.divergence.is_there()
        {
            let own = self.timeline.local_actions().players();
            answers.look(self.timeline.authority(), &self.rules, own);
        }
    }

    /// Steps the authority by one tick; whether it could.
    fn confirm_next(&mut self) -> bool {
        if self.divergence.stands() || self.inbox.front().is_none() {
            return false;
        }
        let tick = self.timeline.authority().tick();
        if !self.divergence.is_there()
            && let Some(theirs) = self.inbox.digest(tick)
        {
            if self.timeline.authority().digest().map(|ours| ours as u32) == Ok(theirs) {
                self.agreed = Some((tick, theirs));
            } else {
                self.record_difference(tick);
                if self.divergence.stands() {
                    return false;
                }
            }
        }
        let Some(frame) = self.inbox.pop() else {
            return false;
        };
        let own = self.timeline.local_actions().players();
        // What is stepped once more after a heal was counted.
        let counts = tick >= self.counted;
        // Of what ran by its number, only what this session gave is its own.
        let actions = self.timeline.local_actions();
        let mine = frame.commands.iter().filter(|ran| {
            let is_it =
                |given: &Order<S::Command>| (given.player, given.seq) == (ran.player, ran.seq);
            counts && actions.commands().any(|open| is_it(&open.order))
        });
        let mine = mine.count();
        if counts {
            self.meter.fills += u64::from((frame.filled.0 & own.0).count_ones());
        }
        match self.timeline.confirm(&frame, &mut self.view) {
            Ok(()) => {
                self.meter.commands_executed += mine as u64;
                if let Some(tape) = self.tape.as_mut().filter(|_| !self.divergence.is_there()) {
                    tape.record(&frame, self.timeline.authority());
                }
            }
            // What was stepped there cannot be stepped here: the worlds have parted, or the game's code has.
            Err(ConfirmError::Panicked(_)) => {
                let again = ticks_in(BREAKS_AGAIN, self.config().tick);
                self.is_beyond_help = !self.divergence.record_broken(tick, again);
            }
            Err(ConfirmError::Unfit(_)) => {
                self.record_difference(tick);
                self.divergence.stand();
            }
        }
        if self.divergence.is_there() {
            if !self.inbox.keep(frame) {
                self.divergence.stand();
            }
        } else {
            self.inbox.recycle(frame);
        }
        self.answer();
        !self.divergence.stands()
    }

    /// The authority is not the server's world of `tick`. Who plays turns out waits there for its heal, since it would
    /// close batches for turns of another match.
    fn record_difference(&mut self, tick: Tick) {
        self.divergence.begin(tick, self.timeline.authority());
        if self.lockstep.is_some() {
            self.divergence.stand();
        }
    }

    /// Whether all that is sealed has arrived and is stepped: the moment to begin sampling.
    fn caught_up(&self) -> bool {
        let turn = u32::from(self.timeline.authority().turn().cadence.turn_ticks);
        self.inbox.front().is_none() && self.next_seal - self.inbox.next() <= 2 * turn
    }

    fn sample(
        &mut self,
        now: Duration,
        rtt: Duration,
        mut input: impl FnMut(usize) -> S::Input,
    ) -> Result<bool, InputTooLarge> {
        let (authority, known) = (self.timeline.authority().tick(), self.inbox.next());
        if self.pace.is_none() && self.caught_up() && self.meter.turns > 0 {
            let pace = Pace::start(self.config(), now, known, rtt);
            self.timeline.local_actions_mut().skip_to(pace.input_tick());
            self.pace = Some(pace);
        }
        let config = self.config();
        let cadence = self.timeline.authority().turn().cadence;
        let Some(pace) = &mut self.pace else {
            return Ok(false);
        };
        let window = input_window(config.tick);
        pace.set_config(config);
        let actions = self.timeline.local_actions_mut();
        // Never beyond the window, where the server would not take it.
        let room = authority + window - actions.next();
        let wished = u32::from(cadence.delay_ticks);
        match self.delay.follow(now, wished, config.tick, room) {
            DelayStep::None => {}
            DelayStep::GoAhead(more) => {
                // What is held is repeated, so that nothing on the screen waits.
                pace.go_ahead(now, more);
                (0..more).for_each(|_| actions.repeat());
            }
            DelayStep::Stand => pace.stand(),
        }
        let beat = pace.advance(now, authority, known);
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
        self.meter.capped = beat.capped;
        if fits {
            Ok(beat.end > beat.first)
        } else {
            Err(InputTooLarge)
        }
    }

    /// Brings the prediction as far as the budget allows; the tick that the pace asked for.
    fn predict(&mut self, now: Duration, budget: u32) -> Tick {
        let authority = self.timeline.authority().tick();
        let input = self.timeline.local_actions().next();
        let wished = input.back(self.delay.ticks()).max(authority);
        let lead_max = self.lead_max();
        self.lead.bound(lead_max);
        let target = wished.min(authority + self.lead.ticks());
        // A correction starts from what is shown now: the end of the last tick, if a new one follows.
        let alpha = self.pace.as_ref().map_or(0.0, Pace::alpha);
        self.view.alpha = if target > self.timeline.prediction().tick() {
            1.0
        } else {
            alpha
        };
        let used = self.timeline.predict(target, budget, &mut self.view);
        self.view.alpha = alpha;
        let reached = self.timeline.prediction().tick();
        let is_unfinished = self.timeline.is_stale() && !self.timeline.waits();
        if used == budget && (is_unfinished || reached < target) {
            self.shed(now);
        } else {
            self.lead.grow(now, lead_max);
        }
        wished
    }

    fn measure(&mut self, wished: Tick) {
        let passed = self.allowance.passed();
        let authority = self.timeline.authority().tick();
        let reached = self.timeline.prediction().tick();
        let input = self.timeline.local_actions().next();
        let (lead_max, window) = (self.lead_max(), input_window(self.config().tick));
        let meter = &mut self.meter;
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

    /// Frames arrived: for who predicts, a gap of more than two turns since the last ones is a late turn.
    pub(crate) fn record_arrival(&mut self, now: Duration) {
        let turn = self.timeline.authority().turn().cadence;
        if let Some(at) = self.news_at.replace(now)
            && self.lockstep.is_none()
            && now.saturating_sub(at) > turn.turn() * 2 + turn.tick() + self.allowance.passed()
        {
            self.meter.late_turns += 1;
        }
    }

    /// Whether the frames up to now are still being stepped, after a world came.
    pub(crate) fn is_catching_up(&self) -> bool {
        !self.takes_commands()
    }

    /// Whether inputs are sampled so far ahead of the authority that nothing can be sampled before it has come closer:
    /// a world came that was on its way for long.
    fn is_far_behind(&self) -> bool {
        let authority = self.timeline.authority();
        let reach = self.timeline.local_actions().next() - authority.tick();
        reach > input_window(authority.turn().cadence.tick())
    }
}
