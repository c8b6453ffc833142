//! Where a rebuild is that is done elsewhere, and what was confirmed meanwhile.
//!
//! Invariant: a timeline has one rebuild, and it is in one [`Place`]. All that it is compared with when it comes back is
//! kept here, within its bounds.

use std::mem;

use twinstep_core::bounds::LEAD_MAX;
use twinstep_core::frame::FrameData;
use twinstep_core::{Simulation, Tick};

use super::rebuild::Rebuild;

/// Ticks that may be confirmed while a rebuild is out without allocating: half a second at 60 Hz.
const PASSED_ROOM: usize = 32;

/// Where predictions are rebuilt after a wrong guess.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
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
    pub(super) fn note(&mut self, frame: &FrameData<S>, before: Option<u64>, authority: Tick) {
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
