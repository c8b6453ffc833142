//! [`Timeline`]: the two simulations of one client, and the comparison that keeps them consistent.
//!
//! ```text
//!            A                          P            I
//!  ──────────┼──────────────────────────┼────────────┼──▶ ticks
//!  confirmed │ assumed frames A..P      │ own inputs │
//!            │                          │ not shown  │
//!  authority ┘        prediction ───────┘ yet        └ next to be sampled
//!
//!  confirm: step the authority; confirmed frame == assumed frame ? keep : the prediction is stale
//!  rebuild: draft = clone of the authority; step re-assumed frames to P; swap it with the shown line
//! ```
//!
//! Law **One way**: the prediction never writes the authority. Law **Only on difference**: equal frames do not cost a
//! re-simulated tick. A rebuild is never shown before it is complete: the last complete prediction stays until the
//! draft has reached it, over several advances if the budget requires it, or in the background
//! ([`Reconcile::Background`]).
//!
//! A panic of a predicted step is caught. Its world is dropped, and the prediction restarts from the authority with
//! fewer entries in that tick's frame (see `Doubt` in `grounds`); if that also fails, it stops before that tick. An
//! authority whose step panicked waits for a new world ([`Timeline::jump`]).

use std::sync::Arc;

use check::{Fault, StepCheck};
use grounds::{Game, Grounds};
use line::{Line, StepFailed};
use notes::TimelineNotes;
use rebuild::{Away, RebuildCredit};
use twinstep_core::bounds::{LEAD_MAX, PLAYERS_MAX, lead_max};
use twinstep_core::frame::{FrameData, Perspective, PlayerSet};
use twinstep_core::memo::{LoopStats, Memos};
use twinstep_core::turn::Turn;
use twinstep_core::world::{FrameError, Stepper, World};
use twinstep_core::{Effects, Key, PlayerId, Simulation, Tick};

use crate::budget::NEW_STEP;
#[cfg(feature = "udp")]
use crate::budget::StepCounts;
use crate::hooks::{Guess, Speculate, caught};
use crate::local_actions::LocalActions;
use crate::stats::{Misprediction, TimelineStats};

mod check;
mod grounds;
mod line;
mod notes;
mod rebuild;
mod reconcile;

pub use rebuild::{Rebuild, Reconcile, TakenBack};

/// The maximum number of failed rebuilds in one call. After these, no tick is predicted until the authority has passed
/// the failed one.
const FAILURES_MAX: u32 = 6;

/// The reason why the authority could not step a frame.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum ConfirmError {
    /// The frame does not match the authority, which is unchanged.
    #[error(transparent)]
    Unfit(#[from] FrameError),
    /// The game's step panicked. The authority is half stepped: it and the prediction wait for [`Timeline::jump`].
    #[error("the step of {0} panicked")]
    Panicked(Tick),
}

/// Receives the timeline's events, for cues and pictures.
pub trait Watch<S: Simulation> {
    /// The authority advanced by a step, to `world`. `is_as_shown` is `true` if the shown prediction contains the same
    /// step.
    fn confirmed(&mut self, world: &World<S>, fx: &Effects<S>, is_as_shown: bool);
    /// The shown prediction (in lockstep, the authority) advanced by a new step, to `world`.
    fn predicted(&mut self, world: &World<S>, fx: &Effects<S>);
    /// A rebuild has reached `world`. `is_last` is `true` for the last two worlds, between which the picture is drawn.
    fn resimulated(&mut self, world: &World<S>, is_last: bool);
    /// A rebuild is complete and shown. `ticks` are its ticks with their cues.
    fn rebuilt(
        &mut self,
        from: Tick,
        world: &World<S>,
        ticks: &mut dyn Iterator<Item = (Tick, &[(Key, S::Cue)])>,
    );
}

/// The tick up to which each player's actions in a prediction are known, rather than guessed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Known {
    until: [Tick; PLAYERS_MAX],
}

impl Known {
    /// All actions are known.
    pub const ALL: Known = Known {
        until: [Tick::MAX; PLAYERS_MAX],
    };

    /// Returns a copy in which `player` is guessed from `tick` onwards.
    #[must_use]
    pub fn guessed_from(mut self, player: PlayerId, tick: Tick) -> Known {
        self.until[player.index()] = tick;
        self
    }

    /// The first tick in which an action of `player` is not known.
    pub(crate) fn until(&self, player: PlayerId) -> Tick {
        self.until[player.index()]
    }

    /// Returns `true` if all actions of `player` up to and including `tick` are known.
    #[must_use]
    pub fn covers(&self, player: PlayerId, tick: Tick) -> bool {
        tick < self.until[player.index()]
    }
}

/// The authority and the prediction of one client.
pub struct Timeline<S: Simulation> {
    game: Arc<Game<S>>,
    authority: World<S>,
    shown: Line<S>,
    draft: Line<S>,
    stale: bool,
    drafting: bool,
    /// The limit on how often other players may make the prediction stale, and whether a rebuild waits.
    credit: RebuildCredit,
    /// The first tick that no prediction has stepped yet; claims are accepted only from there onwards.
    frontier: Tick,
    grounds: Grounds<S>,
    stepper: Stepper<S>,
    memos: Memos,
    loops: Vec<LoopStats>,
    /// The number of repeated steps (in ticks predicted before), without those of background rebuilds.
    repeated: u64,
    repeated_cost: u32,
    how: Reconcile,
    /// Whether the session's program runs rebuilds.
    is_polled: bool,
    away: Option<Away<S>>,
    check: StepCheck<S>,
    fault: Option<String>,
    /// Whether the authority's step panicked, so that both worlds wait.
    is_broken: bool,
    lockstep: bool,
    stats: TimelineStats,
    notes: Option<TimelineNotes>,
}

impl<S: Simulation> Timeline<S> {
    /// Starts both simulations at `world`. With `verify` (the session's default in debug builds), every kept prediction
    /// is compared with the authority when the authority reaches it.
    pub fn new(
        rules: Arc<S::Rules>,
        world: World<S>,
        actions: LocalActions<S>,
        guess: Box<dyn Guess<S>>,
        speculate: Box<dyn Speculate<S>>,
        verify: bool,
    ) -> Self {
        Timeline {
            shown: Line::new(&world),
            draft: Line::new(&world),
            frontier: world.tick(),
            check: StepCheck::new(&world),
            fault: None,
            is_broken: false,
            authority: world,
            game: Arc::new(Game {
                rules,
                guess: guess.into(),
                speculate: speculate.into(),
                verify,
            }),
            stale: false,
            drafting: false,
            credit: RebuildCredit::full(),
            grounds: Grounds::new(actions),
            stepper: Stepper::default(),
            memos: Memos::default(),
            loops: Vec::new(),
            repeated: 0,
            repeated_cost: NEW_STEP,
            how: Reconcile::Inline,
            is_polled: false,
            away: None,
            lockstep: false,
            stats: TimelineStats::default(),
            notes: None,
        }
    }

    /// Turns the prediction off: the authority is shown, each tick as it is confirmed.
    #[must_use]
    pub fn in_lockstep(mut self) -> Self {
        self.lockstep = true;
        self
    }

    /// Returns `true` if the prediction is off.
    pub fn is_in_lockstep(&self) -> bool {
        self.lockstep
    }

    /// The confirmed world.
    pub fn authority(&self) -> &World<S> {
        &self.authority
    }

    /// The last complete prediction; in lockstep, the authority.
    pub fn prediction(&self) -> &World<S> {
        if self.lockstep {
            &self.authority
        } else {
            &self.shown.world
        }
    }

    /// The local players' inputs, commands and claims.
    pub fn local_actions(&self) -> &LocalActions<S> {
        &self.grounds.local_actions
    }

    /// The local players' inputs, commands and claims.
    pub fn local_actions_mut(&mut self) -> &mut LocalActions<S> {
        &mut self.grounds.local_actions
    }

    /// Counters.
    pub fn stats(&self) -> &TimelineStats {
        &self.stats
    }

    /// The authority's state, for tests that plant a desync outside the protocol.
    pub fn corrupt(&mut self) -> &mut S {
        self.rebuild_now();
        self.abandon();
        self.authority.corrupt()
    }

    /// Records an announced input of another player.
    pub fn announce(&mut self, player: PlayerId, tick: Tick, input: &S::Input) {
        let grounds = &mut self.grounds;
        if tick >= self.authority.tick() && grounds.announced.record_input(player, tick, input) {
            grounds.learned.note(player, tick, self.shown.tick());
        }
    }

    /// Records an announced command of another player.
    pub fn announce_command(&mut self, tick: Tick, order: twinstep_core::frame::Order<S::Command>) {
        if order.seq >= self.authority.next_seq(order.player) {
            self.grounds.announced.record_command(tick, order);
        }
    }

    /// Confirms one tick: steps the authority, and compares the frame with the assumed one.
    ///
    /// # Errors
    /// If the frame does not match the authority, which is left unchanged, or if the step panicked.
    ///
    /// # Panics
    /// In a verifying timeline, if a kept prediction was wrong: the game's `step` depends on the phase without calling
    /// `withhold`, or is not pure. In other timelines, except in lockstep, one tick in 64 (one in up to 1,024 for a
    /// large world) is stepped twice, and a fault is reported by [`take_fault`](Timeline::take_fault).
    pub fn confirm(
        &mut self,
        frame: &FrameData<S>,
        watch: &mut impl Watch<S>,
    ) -> Result<(), ConfirmError> {
        let (tick, turn) = (self.authority.tick(), self.authority.turn());
        if self.is_broken {
            return Err(ConfirmError::Panicked(tick));
        }
        let line = if self.drafting {
            &self.draft
        } else {
            &self.shown
        };
        let assumed = line.tick() > tick;
        // A line known to be wrong is not verified; a draft is, because it will be shown.
        if assumed && (self.drafting || !self.stale) && !self.credit.waits() {
            self.verify_kept(tick);
        }
        let is_due = !self.lockstep && self.check.is_due(tick);
        let checked = !self.lockstep && (self.game.verify || is_due);
        if checked {
            self.check.remember(&self.authority, frame);
        }
        let listens = self.away.as_ref().is_some_and(Away::listens);
        // Kept to verify the background rebuild when it comes back.
        let before = match listens && self.game.verify {
            true => self.authority.digest().ok(),
            false => None,
        };
        let perspective = Perspective::authority(tick);
        let (stepper, authority) = (&mut self.stepper, &mut self.authority);
        let stepped = caught(|| {
            let no_claimants = PlayerSet::default();
            let stepped = stepper.step(
                authority,
                frame,
                &self.game.rules,
                perspective,
                no_claimants,
            );
            stepped.map(drop)
        });
        match stepped {
            Ok(fits) => fits?,
            Err(words) => {
                self.abandon();
                self.is_broken = true;
                self.stats.step_faults += 1;
                let words = self.stepper.explain_panic(&words);
                self.fault = Some(format!("the step of {tick} panicked: {words}"));
                return Err(ConfirmError::Panicked(tick));
            }
        }
        self.stats.steps += 1;
        if self.lockstep {
            let fx = self.stepper.effects();
            watch.predicted(&self.authority, fx);
            watch.confirmed(&self.authority, fx, true);
            self.grounds.local_actions.executed(frame);
            return Ok(());
        }
        self.memos.forget(tick);
        // A confirmed input is also known. If it was announced before, the earlier record stays.
        for (player, _) in frame.inputs.iter() {
            let learned = &mut self.grounds.learned;
            learned.note(player, tick, self.shown.tick());
        }
        if let Some(away) = self.away.as_mut().filter(|_| listens) {
            away.record(frame, before, self.authority.tick());
        }
        if let Some(notes) = &mut self.notes
            && self.shown.tick() > tick
        {
            let slot = self.shown.slot(tick);
            let own = self.grounds.local_actions.players();
            notes.compare(&slot.data, slot.withheld, frame, own);
        }
        if assumed {
            self.compare(frame, turn);
        } else {
            // The authority has reached the end of the line: there is no assumed frame to compare.
            self.rebuild_now();
        }
        let is_as_shown = self.shown.tick() > tick && !self.stale;
        let fx = self.stepper.effects();
        watch.confirmed(&self.authority, fx, is_as_shown);
        if is_due {
            self.record_fault();
        }
        self.grounds.local_actions.executed(frame);
        let authority = &self.authority;
        let announced = &mut self.grounds.announced;
        announced.forget(authority.tick(), |player| authority.next_seq(player));
        Ok(())
    }

    fn compare(&mut self, frame: &FrameData<S>, turn: Turn) {
        let waits = self.credit.waits();
        let own = self.grounds.local_actions.players();
        if waits && self.drafting {
            // The draft is shown before the waiting rebuild starts, or rebuilds would never end on a slow machine.
            let slot = self.draft.slot(frame.tick);
            if !Misprediction::concerns(&slot.data, frame, own) {
                return;
            }
        }
        // A rebuild is due anyway, and it will use this frame, so a second difference adds no cost.
        if self.stale && !self.drafting && !waits {
            return;
        }
        let line = match self.drafting {
            true => &self.draft,
            false => &self.shown,
        };
        let slot = line.slot(frame.tick);
        let is_own = || Misprediction::concerns(&slot.data, frame, own);
        let found = if waits {
            self.credit.continue_wait(turn, is_own())
        } else {
            let between = Misprediction::between(&slot.data, slot.withheld, frame, own);
            let Some(difference) = between else { return };
            let is_own = is_own();
            self.stale = true;
            self.credit.record_difference(turn, difference, is_own)
        };
        match found {
            Some(difference) => {
                self.drafting = false;
                self.stats.record(difference);
            }
            None => self.stats.put_off += u64::from(!waits),
        }
    }

    fn rebuild_now(&mut self) {
        (self.stale, self.drafting) = (true, false);
        self.credit.forget();
    }

    /// Takes the newest fault of the game's step or hooks, as text with the tick and the fields: the step produced a
    /// NaN, panicked, gave different results in prediction and confirmation without `withhold`, or is not pure.
    pub fn take_fault(&mut self) -> Option<String> {
        self.fault.take()
    }

    // After the first call, notes are taken for the next one.
    pub(crate) fn take_notes(&mut self) -> TimelineNotes {
        self.notes
            .replace(TimelineNotes::default())
            .unwrap_or_default()
    }

    /// The counts of each loop of [`Effects::each`] in repeated ticks: the items run, and the results reused.
    pub fn loops(&self) -> &[LoopStats] {
        &self.loops
    }

    /// The number of steps so far, without background rebuilds.
    #[cfg(feature = "udp")]
    pub(crate) fn steps(&self) -> StepCounts {
        let all = self.stats.steps - self.stats.away_steps;
        let repeated = if self.loops.is_empty() {
            0
        } else {
            self.repeated
        };
        StepCounts {
            new: all - repeated,
            repeated,
        }
    }

    /// Sets whether rebuilds for other players' actions are rare, because they cost too much.
    pub(crate) fn set_rare(&mut self, is_rare: bool) {
        self.credit.is_rare = is_rare;
    }

    /// Sets the cost of a repeated step. A new step costs [`NEW_STEP`].
    pub(crate) fn set_repeated_step_cost(&mut self, cost: u32) {
        self.repeated_cost = cost;
    }

    fn record_memos(&mut self) {
        self.memos.take_stats(&mut self.loops);
        self.stats.without_memo += self.memos.take_without();
        self.stats.items_taken = self.loops.iter().map(|of| of.taken).sum();
        self.stats.items_run = self.loops.iter().map(|of| of.run).sum();
        let Some(name) = self.memos.take_impure() else {
            return;
        };
        let tick = self.authority.tick();
        let text = format!(
            "the loop {name:?} of the step gave two results for equal items and reads, in a prediction after {tick}: its \
             function reads other data, such as a static variable, or returns data that its bytes do not contain, such as \
             a skipped field"
        );
        assert!(!self.game.verify, "{text}");
        self.stats.step_faults += 1;
        self.fault = Some(text);
    }

    fn record_fault(&mut self) {
        let Some(fault) = self.step_fault() else {
            return;
        };
        let text = match fault {
            Fault::Differs(text) if self.game.verify => panic!("{text}"),
            Fault::Differs(text) | Fault::Nan(text) | Fault::Panicked(text) => text,
        };
        self.stats.step_faults += 1;
        self.fault = Some(text);
    }

    fn step_fault(&mut self) -> Option<Fault> {
        let lead = self.shown.tick() - self.authority.tick();
        let locals = self.grounds.local_actions.players();
        let found = caught(|| {
            self.check.fault(
                &self.authority,
                &self.game.rules,
                lead.clamp(1, LEAD_MAX),
                locals,
                &self.grounds.learned,
            )
        });
        let at = self.authority.tick().back(1);
        found.unwrap_or_else(|words| {
            let text = format!(
                "the step of {at} panicked as a prediction, but not when confirmed: {words}"
            );
            Some(Fault::Panicked(text))
        })
    }

    fn verify_kept(&mut self, tick: Tick) {
        let line = if self.drafting {
            &self.draft
        } else {
            &self.shown
        };
        // Only verifying timelines keep these digests: a digest of the whole world per tick is expensive.
        let Some(before) = line.slot(tick).before else {
            return;
        };
        // A world with a NaN has no digest; the sampled check reports it.
        let Ok(truth) = self.authority.digest() else {
            return;
        };
        if before != truth {
            let found = match self.step_fault() {
                Some(Fault::Differs(text) | Fault::Nan(text) | Fault::Panicked(text)) => text,
                None => String::new(),
            };
            panic!("{}", kept_wrongly(tick, &found));
        }
    }

    /// Brings the prediction to `target` within `budget` steps. Returns the number of steps taken.
    ///
    /// A stale prediction is rebuilt first, and stays shown until the draft has reached it. It continues unchanged
    /// during a background rebuild.
    pub fn predict(&mut self, target: Tick, budget: u32, watch: &mut impl Watch<S>) -> u32 {
        if self.lockstep || self.is_broken {
            return 0;
        }
        self.grounds.look(&self.authority);
        let target = target.max(self.shown.tick()).min(self.grounds.horizon());
        let target = target.max(self.authority.tick());
        let tick = self.authority.turn().cadence.tick();
        let target = target.min(self.authority.tick() + lead_max(tick));
        let mut left = budget;
        let mut waits = false;
        if self.stale {
            // Rebuild up to the shown tick; new ticks follow one by one after it.
            let shown = self.shown.tick().max(self.authority.tick());
            waits =
                !self.drafting && (self.credit.waits() || self.send_out(shown.max(target), left));
            if !waits {
                // If the rebuild does not fit into this frame, the shown line goes on, so that the local player does
                // not stand still.
                let new = match self.fits(shown.max(target), left) {
                    true => 0,
                    false => (target - shown).min(left / 2),
                };
                left -= self.rebuild(shown, left - new, watch);
                waits = new > 0;
            }
        }
        while (waits || !self.stale) && self.shown.tick() < target && left > 0 {
            let tick = self.shown.tick();
            if self.step_line(Which::Shown).is_err() {
                // The shown line is half stepped: rebuild it even beyond the budget, and continue in the next call.
                self.abandon();
                self.rebuild_now();
                let again = self.rebuild(tick, u32::MAX, watch);
                left = left.saturating_sub(1 + again);
                break;
            }
            let fx = self.stepper.effects();
            watch.predicted(&self.shown.world, fx);
            left -= 1;
        }
        self.record_memos();
        budget - left
    }

    /// Returns `true` if the shown prediction is known to be wrong, because its rebuild waits, did not fit into the
    /// budget yet, or was not handed back yet.
    pub fn is_stale(&self) -> bool {
        self.stale
    }

    /// Returns `true` if the prediction stays wrong only for a short time: until the next turn, until a background
    /// rebuild is handed back, or, if rebuilds are rare, until the next one may start.
    pub fn waits(&self) -> bool {
        let is_out = self.away.as_ref().is_some_and(Away::is_out);
        let waits = match self.drafting {
            true => self.credit.has_time(self.authority.turn()),
            false => self.credit.waits() || is_out,
        };
        self.stale && waits
    }

    /// Rebuilds up to `target`, or to the last tick that may be predicted, within the cost of `budget` new steps.
    /// Returns the cost, in new steps.
    fn rebuild(&mut self, target: Tick, budget: u32, watch: &mut impl Watch<S>) -> u32 {
        let (mut cost, mut failures) = (0_u64, 0);
        let budget = u64::from(budget) * u64::from(NEW_STEP);
        let target = loop {
            let target = target.min(self.grounds.horizon());
            let target = target.max(self.authority.tick());
            if !self.drafting {
                self.draft.restart(&self.authority);
                self.drafting = true;
                self.report_resimulated(target, watch);
            }
            let again = self.draft.tick() < self.frontier.max(self.credit.continued_to);
            let price = u64::from(if again { self.repeated_cost } else { NEW_STEP });
            if self.draft.tick() >= target || cost + price > budget {
                break target;
            }
            cost += price;
            self.repeated += u64::from(again);
            self.stats.resim_ticks += u64::from(again);
            if self.step_line(Which::Draft).is_ok() {
                self.report_resimulated(target, watch);
                continue;
            }
            self.drafting = false;
            failures += 1;
            if failures == FAILURES_MAX {
                self.grounds.stop_at(self.authority.tick());
            }
        };
        if self.draft.tick() >= target {
            std::mem::swap(&mut self.shown, &mut self.draft);
            if let Some(notes) = &mut self.notes {
                notes.correct(&self.draft.world, &self.shown.world);
            }
            self.stale = self.credit.waits();
            self.drafting = false;
            let from = self.authority.tick();
            let line = &self.shown;
            let mut cues =
                (from.0..line.tick().0).map(|t| (Tick(t), line.slot(Tick(t)).cues.as_slice()));
            watch.rebuilt(from, &line.world, &mut cues);
        }
        cost.div_ceil(u64::from(NEW_STEP)) as u32
    }

    fn report_resimulated(&self, target: Tick, watch: &mut impl Watch<S>) {
        let tick = self.draft.tick();
        watch.resimulated(&self.draft.world, tick + 1 >= target);
    }

    /// Returns the ticks up to which the assumed inputs of the shown prediction are known now. A guess that a later
    /// announcement confirmed counts as known. Costs a comparison per player and tick of lead.
    pub fn known(&self) -> Known {
        let line = &self.shown;
        let mut known = Known::ALL;
        let own = self.grounds.local_actions.players();
        for player in line.world.present().without(own).iter() {
            let is_guess = |tick: &u32| {
                let assumed = line.slot(Tick(*tick)).data.inputs.get(player);
                assumed.is_some() && assumed != self.grounds.announced.input(player, Tick(*tick))
            };
            let mut ticks = self.authority.tick().0..line.tick().0;
            if let Some(tick) = ticks.find(is_guess) {
                known = known.guessed_from(player, Tick(tick));
            }
        }
        known
    }

    /// Assumes the next frame of a line and steps it. Claims are accepted in new ticks, but not from a line known to be
    /// wrong: the rebuild will reach these ticks. After an error the line is half stepped.
    fn step_line(&mut self, which: Which) -> Result<(), ()> {
        let (line, is_right) = match which {
            Which::Shown => (&mut self.shown, !self.stale),
            Which::Draft => (&mut self.draft, true),
        };
        self.grounds.continues_wrong = !is_right && self.credit.waits();
        let tick = line.tick();
        let is_new = is_right && tick >= self.frontier;
        let claimants = match is_new {
            true => line
                .world
                .seated()
                .common(self.grounds.local_actions.players()),
            false => PlayerSet::default(),
        };
        self.stats.steps += 1;
        let (stepper, memos) = (&mut self.stepper, &mut self.memos);
        let stepped = line.step(&self.grounds, &self.game, stepper, claimants, memos);
        if let Err(failed) = stepped {
            self.distrust(failed);
            return Err(());
        }
        for (player, command) in self.stepper.effects().claims() {
            self.grounds
                .local_actions
                .claim(*player, tick, command.clone());
        }
        if is_new {
            self.frontier = tick + 1;
        } else if self.grounds.continues_wrong {
            self.credit.continued_to = tick + 1;
        }
        Ok(())
    }

    /// Handles a failed predicted step: from its tick onwards, assumed frames leave out more entries. Only the first
    /// failure of a series is reported.
    fn distrust(&mut self, failed: StepFailed) {
        if self.grounds.doubt(failed.tick) {
            self.stats.step_faults += 1;
            self.fault = Some(failed.why);
        }
    }

    fn abandon(&mut self) {
        if let Some(away) = &mut self.away {
            away.abandon();
        }
    }

    /// Continues from a new world, after a heal or a reconnect. The session's inputs are kept; announcements of other
    /// players are dropped. Returns the number of this session's commands that count as executed in skipped frames.
    pub fn jump(&mut self, world: World<S>) -> usize {
        self.abandon();
        let ran = self.grounds.local_actions.jumped(&world);
        if world.tick() < self.authority.tick() {
            // These ticks did not happen, so they will be new again, and their claims are dropped.
            self.grounds.local_actions.forget_claims();
            self.frontier = world.tick();
        }
        self.grounds.announced.clear();
        self.grounds.learned.clear();
        self.grounds.clear_doubt();
        self.is_broken = false;
        self.frontier = self.frontier.max(world.tick());
        self.authority = world;
        self.shown.restart(&self.authority);
        self.stale = false;
        self.drafting = false;
        self.credit.forget();
        ran
    }
}

fn kept_wrongly(tick: Tick, found: &str) -> String {
    format!(
        "the prediction of {tick} differs from the confirmed tick: `step` depends on the phase without `withhold`, or \
         reads more than state, rules and frame\n{found}"
    )
}

#[derive(Clone, Copy)]
enum Which {
    Shown,
    Draft,
}

#[cfg(test)]
mod tests;
