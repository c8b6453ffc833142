//! [`Replica`]: a client's copies of its match, in either [mode](crate::session): both worlds, the received frames, and
//! the picture of the worlds.
//!
//! Invariant: the authority steps only confirmed frames, in order. A digest that the server sent for a tick is compared
//! before the authority steps that tick.

use std::sync::Arc;
use std::time::Duration;

use twinstep_core::bounds::{lead_max, ticks_in};
use twinstep_core::frame::Order;
use twinstep_core::turn::Cadence;
use twinstep_core::world::World;
use twinstep_core::{Simulation, Tick};

use crate::budget::StepAllowance;
use crate::hooks::{Answers, caught};
use crate::inbox::Inbox;
use crate::picture::Show;
use crate::stats::Meter;
use crate::tape::Tape;
use crate::timeline::{ConfirmError, Timeline};
use crate::view::View;

/// A panic at a confirmed frame is healed at most once within this time.
const BREAKS_AGAIN: Duration = Duration::from_secs(60);

/// An input exceeds its size limit, which is a bug in the game.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct InputTooLarge;

pub(crate) struct Replica<S: Simulation, V: Show<S>> {
    pub(crate) timeline: Timeline<S>,
    pub(crate) inbox: Inbox<S>,
    pub(crate) view: View<S, V>,
    pub(crate) answers: Option<Answers<S>>,
    pub(crate) rules: Arc<S::Rules>,
    pub(crate) meter: Meter,
    pub(crate) allowance: StepAllowance,
    pub(crate) divergence: Divergence<S>,
    /// Whether the game's step panicked at a confirmed frame again after a heal, so that the session cannot continue.
    pub(crate) is_unrecoverable: bool,
    /// The newest digest of the server that equalled the authority's, with its tick.
    pub(crate) agreed: Option<(Tick, u32)>,
    /// All frames before this tick are counted, or ran before this session joined. `MAX` while the tick of the join is
    /// not known.
    pub(crate) counted: Tick,
    pub(crate) next_seal: Tick,
    pub(crate) tape: Option<Tape<S>>,
}

impl<S: Simulation, V: Show<S>> Replica<S, V> {
    /// Marks the frames before `tick` as older than this session: their cues are not played, and their fills not
    /// counted.
    pub(crate) fn record_join(&mut self, tick: Tick) {
        self.counted = tick;
        self.view.mute_until = tick;
    }

    pub(crate) fn has_joined(&self) -> bool {
        self.counted < Tick::MAX
    }

    pub(crate) fn cadence(&self) -> Cadence {
        self.timeline.authority().turn().cadence
    }

    pub(crate) fn lead_max(&self) -> u32 {
        lead_max(self.cadence().tick())
    }

    pub(crate) fn take_fault(&mut self) -> Option<String> {
        let answers = || self.answers.as_mut().and_then(Answers::take_fault);
        let of_hooks = || self.view.take_fault().or_else(answers);
        self.timeline.take_fault().or_else(of_hooks)
    }

    pub(crate) fn begin(&mut self, now: Duration) {
        self.allowance.begin(now);
        let lead = self.timeline.prediction().tick() - self.timeline.authority().tick();
        self.view.at(now, lead, self.cadence());
    }

    pub(crate) fn can_step(&self) -> bool {
        self.inbox.front().is_some() && !self.divergence.is_halted()
    }

    /// Steps the authority by one tick. Returns `false` if there is no frame, the step failed, or the authority must
    /// not be stepped further.
    pub(crate) fn confirm_next(&mut self) -> bool {
        if self.divergence.is_halted() || self.inbox.front().is_none() {
            return false;
        }
        let tick = self.timeline.authority().tick();
        // The digest is of the world before this tick, so it is compared before the step.
        if !self.divergence.differs()
            && let Some(theirs) = self.inbox.digest(tick)
        {
            if self.timeline.authority().digest().map(|ours| ours as u32) == Ok(theirs) {
                self.agreed = Some((tick, theirs));
            } else {
                self.record_difference(tick);
                if self.divergence.is_halted() {
                    return false;
                }
            }
        }
        let Some(mut frame) = self.inbox.pop() else {
            return false;
        };
        // A frame that stays incomplete does not fit, and is not stepped.
        let unfinished = self.timeline.authority().unfinished();
        let _ = caught(|| unfinished.complete(&mut frame));
        let own = self.timeline.local_actions().players();
        // Frames stepped again after a heal are already counted.
        let counts = tick >= self.counted;
        // A command of a local player may come from an earlier session. Only commands open here are counted.
        let actions = self.timeline.local_actions();
        let mine = frame.commands.iter().filter(|ran| {
            let is_it =
                |given: &Order<S::Command>| (given.player, given.seq) == (ran.player, ran.seq);
            counts && actions.commands().any(|open| is_it(&open.order))
        });
        let mine = mine.count();
        if counts {
            self.meter
                .record_fills((frame.filled.0 & own.0).count_ones());
        }
        match self.timeline.confirm(&frame, &mut self.view) {
            Ok(()) => {
                self.meter.commands_executed += mine as u64;
                if let Some(tape) = self.tape.as_mut().filter(|_| !self.divergence.differs()) {
                    tape.record(&frame, self.timeline.authority());
                }
            }
            // The server stepped this frame without a panic, so the worlds differ, or the code of the two builds does.
            Err(ConfirmError::Panicked(_)) => {
                let again = ticks_in(BREAKS_AGAIN, self.cadence().tick());
                self.is_unrecoverable = !self.divergence.record_broken(tick, again);
            }
            Err(ConfirmError::Unfit(_)) => {
                self.record_difference(tick);
                self.divergence.halt();
            }
        }
        if self.divergence.differs() {
            if !self.inbox.keep(frame) {
                self.divergence.halt();
            }
        } else {
            self.inbox.recycle(frame);
        }
        self.answer();
        !self.divergence.is_halted()
    }

    fn answer(&mut self) {
        if let Some(answers) = &mut self.answers
            && !self.divergence.differs()
        {
            let own = self.timeline.local_actions().players();
            answers.look(self.timeline.authority(), &self.rules, own);
        }
    }

    /// Records that the authority differs from the server's world of `tick`. A lockstep session then waits for its
    /// heal, because otherwise it would close batches for turns of a diverged match.
    fn record_difference(&mut self, tick: Tick) {
        self.divergence.begin(tick, self.timeline.authority());
        if self.timeline.is_in_lockstep() {
            self.divergence.halt();
        }
    }
}

/// The first tick at which the authority differed from the server's world, and the evidence for the desync report.
///
/// Invariant: the first tick that differed counts until a heal. Until then the authority continues if it can, so that
/// the player can keep playing: the picture is nearly right, and a heal follows.
pub(crate) struct Divergence<S: Simulation> {
    since: Option<Tick>,
    /// Whether the authority must wait for its heal: in lockstep, after a frame that it could not step, or if it has
    /// continued for too long.
    is_halted: bool,
    /// This client's world of the first tick that differed, kept until the server's world arrives for comparison.
    evidence: Option<World<S>>,
    /// The newest tick whose frame made the step panic although no difference was known. A heal does not clear it.
    broke: Option<Tick>,
}

impl<S: Simulation> Divergence<S> {
    pub(crate) fn none() -> Self {
        Divergence {
            since: None,
            is_halted: false,
            evidence: None,
            broke: None,
        }
    }

    pub(crate) fn since(&self) -> Option<Tick> {
        self.since
    }

    pub(crate) fn differs(&self) -> bool {
        self.since.is_some()
    }

    pub(crate) fn is_halted(&self) -> bool {
        self.is_halted
    }

    /// Records that the world of `tick` is not the server's, and keeps it as evidence. Earlier evidence stays, because
    /// the server's world of that tick has already been requested.
    pub(crate) fn begin(&mut self, tick: Tick, ours: &World<S>) {
        if self.since.is_none() {
            self.since = Some(tick);
            self.evidence.get_or_insert_with(|| ours.clone());
        }
    }

    /// Records that the step panicked at the server's frame of `tick`, so there is no world to compare. Returns `true`
    /// if a heal can help: the step did not panic like this within the last `again` ticks.
    pub(crate) fn record_broken(&mut self, tick: Tick, again: u32) -> bool {
        self.is_halted = true;
        if self.since.is_some() {
            // A world that already differs may panic where the server's does not.
            return true;
        }
        self.since = Some(tick);
        let before = self.broke.replace(tick);
        before.is_none_or(|before| tick - before > again && before <= tick)
    }

    pub(crate) fn halt(&mut self) {
        self.is_halted = true;
    }

    /// Records a heal. The evidence stays until the server's world of that tick arrives.
    pub(crate) fn heal(&mut self) {
        (self.since, self.is_halted) = (None, false);
    }

    pub(crate) fn evidence(&self) -> Option<&World<S>> {
        self.evidence.as_ref()
    }

    pub(crate) fn take_evidence(&mut self) -> Option<World<S>> {
        self.evidence.take()
    }

    pub(crate) fn forget_evidence(&mut self) {
        self.evidence = None;
    }
}
