//! Rebuilds of a prediction: as a value that is done wherever there is time for it ([`Rebuild`]), where the one rebuild of a
//! timeline is ([`Away`]), and how many rebuilds other players may cost ([`RebuildCredit`]).
//!
//! Invariants: a rebuild holds all that the fold needs, so its result depends on nothing that happens meanwhile, and is bit
//! for bit what the timeline would have come to by itself. Its buffers are used again: no allocation in the steady state.

use std::mem;
use std::sync::Arc;
use std::time::Duration;

use twinstep_core::bounds::LEAD_MAX;
use twinstep_core::frame::{FrameData, PlayerSet};
use twinstep_core::turn::Turn;
use twinstep_core::world::{Stepper, World};
use twinstep_core::{Simulation, Tick};

use super::grounds::{Game, Grounds};
use super::line::{Line, StepFailed};
use crate::stats::Misprediction;

/// A rebuild of a prediction, to be [`run`](Rebuild::run) and handed back.
///
/// Memory: a world, room for all assumed frames of a lead (some 2 KiB each), and a copy of what the client knows, about
/// 150 KiB.
pub struct Rebuild<S: Simulation> {
    pub(super) line: Line<S>,
    grounds: Grounds<S>,
    pub(super) game: Arc<Game<S>>,
    stepper: Stepper<S>,
    /// The tick that it goes up to.
    pub(super) until: Tick,
    /// The step that led to no world.
    pub(super) failed: Option<StepFailed>,
}

impl<S: Simulation> Rebuild<S> {
    /// One that is not begun.
    pub(super) fn new(world: &World<S>, grounds: &Grounds<S>, game: Arc<Game<S>>) -> Self {
        Rebuild {
            line: Line::new(world),
            grounds: grounds.clone(),
            game,
            stepper: Stepper::default(),
            until: world.tick(),
            failed: None,
        }
    }

    /// From the authority up to `until`. Costs a copy of the world and of what is known.
    pub(super) fn begin(&mut self, authority: &World<S>, grounds: &Grounds<S>, until: Tick) {
        self.line.restart(authority);
        self.grounds.clone_from(grounds);
        self.until = until;
        self.failed = None;
    }

    /// Does it: a step for each tick. A panic of the game's step or hooks is caught, and told by the session that this
    /// is handed back to. Done already: nothing.
    pub fn run(&mut self) {
        // What a failed step leaves half done is never looked at: it is begun anew from the authority.
        while self.failed.is_none() && self.line.tick() < self.until {
            let nobody = PlayerSet::default();
            let (grounds, stepper) = (&self.grounds, &mut self.stepper);
            let stepped = self.line.step(grounds, &self.game, stepper, nobody);
            self.failed = stepped.err();
        }
    }

    /// Ticks that it has stepped.
    pub(super) fn steps(&self) -> u64 {
        u64::from(self.line.tick() - self.line.base)
    }
}

/// Ticks that may be confirmed while a rebuild is out without allocating: half a second at 60 Hz.
const PASSED_ROOM: usize = 32;

/// Where predictions are rebuilt after a wrong guess.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub enum Reconcile {
    /// In the caller's thread, within the very frame that learns of it.
    #[default]
    Inline,
    /// In a thread of its own, which the game's never waits for: [`Client`](crate::Client) starts one. Who drives a
    /// [`Session`](crate::Session) itself does what [`poll_rebuild`](crate::Session::poll_rebuild) gives, wherever it
    /// likes.
    ///
    /// The game's thread is left with the steps of confirmed ticks, one step for each new tick, a copy of the world for
    /// each rebuild, and one or two steps when that comes back; own inputs are in the picture of their own frame as
    /// ever. A correction is in the picture one frame later than inline, if the rebuild takes no longer than a frame
    /// (steps × lead), else when it is done. One that takes so long that another wrong guess is confirmed meanwhile
    /// costs lead, until rebuilds are short enough; inputs and confirmed ticks are never shed. On Linux the thread that
    /// [`Client`](crate::Client) starts is nicer by 5 than the one that wakes it: where both are put on one processor, the
    /// game's thread keeps it.
    ///
    /// Guesses and speculations are asked in both threads. A panic of the game's step or hooks in a rebuild is reported and
    /// mended as inline: see [`Event::StepFault`](crate::Event::StepFault).
    Background,
}

/// Where the one rebuild is that a timeline has.
pub(super) enum Place<S: Simulation> {
    /// Here, to be used again.
    Home(Box<Rebuild<S>>),
    /// Begun, to be fetched.
    Outbox(Box<Rebuild<S>>),
    /// Wherever it is done.
    Out,
    /// Handed back.
    Back(Box<Rebuild<S>>),
}

/// Whether what is out will be of use.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) enum Worth {
    /// It will.
    Counts,
    /// The authority has reached its end meanwhile.
    Overtaken,
    /// It rebuilds what is not shown any more.
    Void,
}

/// A tick that was confirmed while a rebuild was out.
pub(super) struct Passed<S: Simulation> {
    pub(super) frame: FrameData<S>,
    /// The authority's digest before it, in verifying timelines.
    pub(super) before: Option<u64>,
}

impl<S: Simulation> Passed<S> {
    fn room() -> Self {
        Passed {
            frame: FrameData::roomy(Tick(0)),
            before: None,
        }
    }
}

/// The one rebuild, and what is to be known when it comes back.
///
/// Invariant: a timeline has one rebuild, and it is in one [`Place`]. All that it is compared with when it comes back is
/// kept here, within its bounds.
pub(super) struct Away<S: Simulation> {
    pub(super) place: Place<S>,
    pub(super) worth: Worth,
    /// Where what is out ends.
    pub(super) until: Tick,
    /// What was confirmed since it began: the first so many are used.
    pub(super) passed: Vec<Passed<S>>,
    pub(super) used: usize,
}

impl<S: Simulation> Away<S> {
    pub(super) fn new(rebuild: Box<Rebuild<S>>) -> Self {
        Away {
            place: Place::Home(rebuild),
            worth: Worth::Void,
            until: Tick(0),
            passed: (0..PASSED_ROOM).map(|_| Passed::room()).collect(),
            used: 0,
        }
    }

    /// Whether confirmed ticks must be kept, to be compared later.
    pub(super) fn listens(&self) -> bool {
        self.worth == Worth::Counts
    }

    /// Whether the rebuild is on its way.
    pub(super) fn is_out(&self) -> bool {
        !matches!(self.place, Place::Home(_))
    }

    /// What is out is not wanted any more.
    pub(super) fn abandon(&mut self) {
        if self.worth == Worth::Counts {
            self.worth = Worth::Void;
        }
        self.place = match mem::replace(&mut self.place, Place::Out) {
            Place::Outbox(rebuild) => Place::Home(rebuild),
            place => place,
        };
    }

    /// A tick was confirmed; `authority` is the next one.
    pub(super) fn record(&mut self, frame: &FrameData<S>, before: Option<u64>, authority: Tick) {
        if authority >= self.until || self.used >= LEAD_MAX as usize {
            self.worth = Worth::Overtaken;
            return;
        }
        if self.used == self.passed.len() {
            self.passed.push(Passed::room());
        }
        let passed = &mut self.passed[self.used];
        passed.frame.clone_from(frame);
        passed.before = before;
        self.used += 1;
    }
}

/// What came of taking back.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct TakenBack {
    /// Steps that it took here.
    pub steps: u32,
    /// A rebuilt prediction is shown now.
    pub shown: bool,
    /// It took so long that it was wrong, or past, when it came back.
    pub overtaken: bool,
}

/// The credit that a turn earns: a little more than half of [`REBUILD_COST`], since honest play needs a rebuild in every second
/// turn.
const TURN_CREDIT: u32 = 5;
const REBUILD_COST: u32 = 9;
/// The most credit that is kept: that of 30 turns, a second at 60 Hz in turns of two ticks.
const CREDIT_MAX: u32 = 30 * TURN_CREDIT;
/// No rebuild waits for a turn that is longer than this.
const SHORT_TURN: Duration = Duration::from_millis(40);

/// How often the other players' actions may cost a rebuild.
///
/// ```text
///  turn                1  2  3  …  40 41 42 43 44      every turn brings an action that nobody could foresee
///  honest play         ■  ·  ■  ·  ■  ·  ■  ·  ■       the rebuild of turn 1 holds what was announced for turn 2
///  a flood             ■  ■  ■  ■  ·  ■  ·  ■  ·       the credit is spent: the rebuild waits for the next turn
/// ```
///
/// Invariant (law **Bounded**): others cost a rebuild in five of nine turns, and for [`CREDIT_MAX`] beside that; in turns
/// that are longer than [`SHORT_TURN`] at most one each. A rebuild waits for one turn at most. What differs in an own
/// action never waits.
pub(super) struct RebuildCredit {
    credit: u32,
    /// The newest turn that was credited.
    turn: u32,
    /// The difference whose rebuild waits for the turn after that one.
    waiting: Option<Misprediction>,
    /// The tick up to which the prediction went on while a rebuild waited.
    pub(super) went_on: Tick,
}

impl RebuildCredit {
    pub(super) fn full() -> Self {
        RebuildCredit {
            credit: CREDIT_MAX,
            turn: 0,
            waiting: None,
            went_on: Tick(0),
        }
    }

    /// A frame of `turn` differs from the assumed one. Returns the difference if its rebuild is due now; `None`: it waits.
    pub(super) fn differs(
        &mut self,
        turn: Turn,
        difference: Misprediction,
        is_own: bool,
    ) -> Option<Misprediction> {
        self.earn(turn);
        if is_own || turn.cadence.turn() > SHORT_TURN {
            return Some(difference);
        }
        if self.credit < REBUILD_COST {
            self.waiting = Some(difference);
            return None;
        }
        self.credit -= REBUILD_COST;
        Some(difference)
    }

    /// A rebuild waits, and a frame of `turn` was confirmed. Returns the difference that waited if its rebuild is due now.
    pub(super) fn go_on(&mut self, turn: Turn, is_own: bool) -> Option<Misprediction> {
        let is_next = turn.number != self.turn;
        self.earn(turn);
        if !is_next && !is_own {
            return None;
        }
        self.credit = self.credit.saturating_sub(REBUILD_COST);
        self.waiting.take()
    }

    /// Whether a rebuild waits for the next turn.
    pub(super) fn waits(&self) -> bool {
        self.waiting.is_some()
    }

    /// Nothing waits any more: the prediction begins again from the authority anyway.
    pub(super) fn forget(&mut self) {
        self.waiting = None;
    }

    fn earn(&mut self, turn: Turn) {
        let turns = turn.number.saturating_sub(self.turn);
        self.turn = turn.number;
        let earned = turns.saturating_mul(TURN_CREDIT);
        self.credit = self.credit.saturating_add(earned).min(CREDIT_MAX);
    }
}
