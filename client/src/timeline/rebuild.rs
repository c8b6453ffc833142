//! Rebuilds of a prediction: the rebuild as a value that can run on any thread ([`Rebuild`]), the state of a timeline's
//! one background rebuild ([`Away`]), and the limit on rebuilds that other players may cause ([`RebuildCredit`]).
//!
//! Invariants: a rebuild holds everything that the fold needs, so later events do not change its result, which equals
//! the timeline's result bit for bit. Its buffers are reused: no allocation in the steady state.

use std::mem;
use std::sync::Arc;
use std::time::Duration;

use twinstep_core::bounds::{LEAD_MAX, nanos};
use twinstep_core::frame::{FrameData, PlayerSet};
use twinstep_core::memo::Memos;
use twinstep_core::turn::Turn;
use twinstep_core::world::{Stepper, World};
use twinstep_core::{Simulation, Tick};

use super::grounds::{Game, Grounds};
use super::line::{Line, StepFailed};
use crate::stats::Misprediction;

/// A rebuild of a prediction: [`run`](Rebuild::run) it, then hand it back.
///
/// Memory: a world, space for all assumed frames of a lead (about 2 KiB each), and a copy of this client's actions and
/// of other players' announcements, about 150 KiB.
pub struct Rebuild<S: Simulation> {
    pub(super) line: Line<S>,
    grounds: Grounds<S>,
    pub(super) game: Arc<Game<S>>,
    stepper: Stepper<S>,
    /// The timeline's memos, while the rebuild runs.
    pub(super) memos: Memos,
    pub(super) until: Tick,
    pub(super) failed: Option<StepFailed>,
}

impl<S: Simulation> Rebuild<S> {
    pub(super) fn new(world: &World<S>, grounds: &Grounds<S>, game: Arc<Game<S>>) -> Self {
        Rebuild {
            line: Line::new(world),
            grounds: grounds.clone(),
            game,
            stepper: Stepper::default(),
            memos: Memos::default(),
            until: world.tick(),
            failed: None,
        }
    }

    /// Prepares a rebuild from the authority up to `until`. Costs a copy of the world and of `grounds`.
    pub(super) fn begin(&mut self, authority: &World<S>, grounds: &Grounds<S>, until: Tick) {
        self.line.restart(authority);
        self.grounds.clone_from(grounds);
        self.until = until;
        self.failed = None;
    }

    /// Runs the rebuild, one step per tick. A panic of the game's step or hooks is caught, and reported by the session
    /// to which the rebuild is handed back. Running a finished rebuild again has no effect.
    pub fn run(&mut self) {
        // A half-stepped line is never read: the next rebuild restarts it from the authority.
        while self.failed.is_none() && self.line.tick() < self.until {
            let no_claimants = PlayerSet::default();
            let Rebuild {
                line,
                grounds,
                game,
                stepper,
                memos,
                ..
            } = self;
            let stepped = line.step(grounds, game, stepper, no_claimants, memos);
            self.failed = stepped.err();
        }
    }

    pub(super) fn steps(&self) -> u64 {
        u64::from(self.line.tick() - self.line.base)
    }
}

/// Space for the ticks confirmed during a background rebuild, without allocating: half a second at 60 Hz.
const PASSED_ROOM: usize = 32;

/// The thread that rebuilds predictions after a wrong guess.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub enum Reconcile {
    /// The caller's thread if the rebuild fits into the frame's [budget](crate::Client::frame_time), otherwise the
    /// background. A cheap game is corrected in the frame that detects the wrong guess; an expensive game keeps its
    /// lead. Where no thread runs rebuilds, such as in a browser, this is [`Inline`](Reconcile::Inline): a
    /// [`Session`](crate::Session) without a client has no such thread until its program calls
    /// [`poll_rebuild`](crate::Session::poll_rebuild).
    #[default]
    Auto,
    /// The caller's thread. If a rebuild does not fit into the budget, it takes several frames, and the lead is
    /// shortened.
    Inline,
    /// A separate thread, for which the game's thread never waits. [`Client`](crate::Client) starts one; a program that
    /// drives a [`Session`](crate::Session) itself runs the rebuilds of [`poll_rebuild`](crate::Session::poll_rebuild)
    /// on a thread of its choice.
    ///
    /// The game's thread still does the steps of confirmed ticks, one step per new tick, a copy of the world per
    /// rebuild, and one or two steps when a rebuild is handed back. Inputs of this session still show in the frame in
    /// which they happen. A correction shows one frame later than inline if the rebuild (a step for each tick of lead)
    /// takes at most a frame, and otherwise when the rebuild is done. If wrong guesses are often confirmed before a
    /// rebuild is done, rebuilds become rare, then the lead is shortened; inputs and confirmed ticks are never shed. On
    /// Linux the thread that [`Client`](crate::Client) starts has a nice value 5 above the thread that wakes it, so the
    /// game's thread keeps the processor if both run on the same one.
    ///
    /// Both threads call the guess and speculation hooks. A panic of the game's step or hooks in a rebuild is reported
    /// and handled as inline; see [`Event::StepFault`](crate::Event::StepFault).
    Background,
}

pub(super) enum Place<S: Simulation> {
    /// The rebuild is in the timeline, ready for reuse.
    Home(Box<Rebuild<S>>),
    /// The rebuild is prepared, and waits for [`Timeline::poll_rebuild`](super::Timeline::poll_rebuild).
    Outbox(Box<Rebuild<S>>),
    Out,
    Back(Box<Rebuild<S>>),
}

/// Whether the current rebuild will be useful.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) enum Worth {
    Counts,
    /// The authority has already reached the rebuild's end.
    Overtaken,
    /// The rebuild is for a prediction that is no longer shown.
    Void,
}

pub(super) struct Passed<S: Simulation> {
    pub(super) frame: FrameData<S>,
    pub(super) before: Option<u64>,
}

impl<S: Simulation> Passed<S> {
    fn room() -> Self {
        Passed {
            frame: FrameData::preallocated(Tick(0)),
            before: None,
        }
    }
}

/// The one background rebuild, and the frames to compare with its result when it is handed back.
///
/// Invariant: a timeline has one rebuild, in one [`Place`]. All frames with which it will be compared are kept here,
/// within a bound.
pub(super) struct Away<S: Simulation> {
    pub(super) place: Place<S>,
    pub(super) worth: Worth,
    pub(super) until: Tick,
    /// Ticks confirmed since the rebuild started; the first `used` entries are valid.
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

    /// Returns `true` if confirmed ticks must be kept for a later comparison.
    pub(super) fn listens(&self) -> bool {
        self.worth == Worth::Counts
    }

    pub(super) fn is_out(&self) -> bool {
        !matches!(self.place, Place::Home(_))
    }

    pub(super) fn abandon(&mut self) {
        if self.worth == Worth::Counts {
            self.worth = Worth::Void;
        }
        self.place = match mem::replace(&mut self.place, Place::Out) {
            Place::Outbox(rebuild) => Place::Home(rebuild),
            place => place,
        };
    }

    /// Records a confirmed tick; `authority` is the tick after it.
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

/// The result of [`Timeline::take_back`](super::Timeline::take_back).
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct TakenBack {
    /// The number of steps taken by this call.
    pub steps: u32,
    /// Whether a rebuilt prediction is shown now.
    pub shown: bool,
    /// Whether the rebuild was handed back too late: its frames had already been contradicted or confirmed.
    pub overtaken: bool,
}

/// The credit earned per turn. Honest play needs a rebuild every second turn, so this is a little more than half of
/// [`REBUILD_COST`].
const TURN_CREDIT: u32 = 5;
const REBUILD_COST: u32 = 9;
/// The largest credit, which takes 30 turns to earn: a second at 60 Hz with two-tick turns.
const CREDIT_MAX: u32 = 30 * TURN_CREDIT;
/// The longest turn in which a rebuild may wait for credit.
const SHORT_TURN: Duration = Duration::from_millis(40);
/// The time between two rebuilds for other players' actions, while rebuilds cost too much. It reduces the rebuilds to a
/// third, and delays corrections of other players by up to this much.
const RARE: Duration = Duration::from_millis(200);

/// The limit on how often the actions of other players may cause a rebuild.
///
/// ```text
///  turn                1  2  3  …  40 41 42 43 44      every turn brings an unforeseeable action
///  honest play         ■  ·  ■  ·  ■  ·  ■  ·  ■       the rebuild of turn 1 includes what was announced for turn 2
///  a flood             ■  ■  ■  ■  ·  ■  ·  ■  ·       no credit is left: the rebuild waits for the next turn
/// ```
///
/// Invariant (law **Bounded**): other players cause at most five rebuilds in nine turns, plus 16 from a full credit
/// ([`CREDIT_MAX`]); in turns longer than [`SHORT_TURN`], at most one per turn. A rebuild waits for one turn at most,
/// or, if rebuilds are rare because they cost too much, for [`RARE`]. A difference in an action of this session never
/// waits.
pub(super) struct RebuildCredit {
    credit: u32,
    turn: u32,
    waiting: Option<Misprediction>,
    /// The turn in which the waiting rebuild is due.
    due: u32,
    /// The first turn in which the next rebuild may start while rebuilds are rare.
    next_rare: u32,
    pub(super) is_rare: bool,
    pub(super) continued_to: Tick,
}

impl RebuildCredit {
    pub(super) fn full() -> Self {
        RebuildCredit {
            credit: CREDIT_MAX,
            turn: 0,
            waiting: None,
            due: 0,
            next_rare: 0,
            is_rare: false,
            continued_to: Tick(0),
        }
    }

    /// Records that a frame of `turn` differs from the assumed one. Returns the difference if its rebuild is due now,
    /// or `None` if it waits.
    pub(super) fn record_difference(
        &mut self,
        turn: Turn,
        difference: Misprediction,
        is_own: bool,
    ) -> Option<Misprediction> {
        self.earn(turn);
        if !is_own && self.is_rare && turn.number < self.next_rare {
            return self.wait(self.next_rare, difference);
        }
        self.begin(turn);
        if is_own || turn.cadence.turn() > SHORT_TURN {
            return Some(difference);
        }
        if self.credit < REBUILD_COST {
            return self.wait(turn.number + 1, difference);
        }
        self.credit -= REBUILD_COST;
        Some(difference)
    }

    fn begin(&mut self, turn: Turn) {
        let turns = nanos(RARE).div_ceil(nanos(turn.cadence.turn()));
        self.next_rare = turn.number.saturating_add(turns as u32);
    }

    fn wait(&mut self, due: u32, difference: Misprediction) -> Option<Misprediction> {
        (self.waiting, self.due) = (Some(difference), due);
        None
    }

    /// Continues a wait with a confirmed frame of `turn`. Returns the waiting difference if its rebuild is due now.
    pub(super) fn continue_wait(&mut self, turn: Turn, is_own: bool) -> Option<Misprediction> {
        self.earn(turn);
        if turn.number < self.due && !is_own {
            return None;
        }
        self.begin(turn);
        self.credit = self.credit.saturating_sub(REBUILD_COST);
        self.waiting.take()
    }

    pub(super) fn waits(&self) -> bool {
        self.waiting.is_some()
    }

    /// Returns `true` if a rebuild has time until the next one may start.
    pub(super) fn has_time(&self, turn: Turn) -> bool {
        self.is_rare && turn.number < self.next_rare
    }

    /// Ends the wait, because the prediction restarts from the authority anyway.
    pub(super) fn forget(&mut self) {
        (self.waiting, self.next_rare) = (None, 0);
    }

    fn earn(&mut self, turn: Turn) {
        let turns = turn.number.saturating_sub(self.turn);
        self.turn = turn.number;
        let earned = turns.saturating_mul(TURN_CREDIT);
        self.credit = self.credit.saturating_add(earned).min(CREDIT_MAX);
    }
}
