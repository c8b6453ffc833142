//! [`Replica`]: a client's own copies of its match, whichever [mode](crate::session) it plays in: both worlds, the frames that
//! arrived, and what is drawn of them.
//!
//! Invariant: the authority steps by confirmed frames alone, one after the other; what differs from the server's world is
//! noticed before it is stepped further.

use std::sync::Arc;
use std::time::Duration;

use twinstep_core::bounds::{lead_max, ticks_in};
use twinstep_core::frame::Order;
use twinstep_core::turn::Cadence;
use twinstep_core::world::World;
use twinstep_core::{Simulation, Tick};

use crate::budget::StepAllowance;
use crate::hooks::Answers;
use crate::inbox::Inbox;
use crate::picture::Show;
use crate::stats::Meter;
use crate::tape::Tape;
use crate::timeline::{ConfirmError, Timeline};
use crate::view::View;

/// A step that panics at a confirmed frame is healed, but not twice within this time.
const BREAKS_AGAIN: Duration = Duration::from_secs(60);

/// An input that is larger than what a packet grants it: an error of the game.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct InputTooLarge;

/// See the [module](self).
pub(crate) struct Replica<S: Simulation, V: Show<S>> {
    pub(crate) timeline: Timeline<S>,
    pub(crate) inbox: Inbox<S>,
    pub(crate) view: View<S, V>,
    /// Where owners answer: what own players asked.
    pub(crate) answers: Option<Answers<S>>,
    pub(crate) rules: Arc<S::Rules>,
    pub(crate) meter: Meter,
    pub(crate) allowance: StepAllowance,
    pub(crate) divergence: Divergence<S>,
    /// The game's step panicked at confirmed frames again, after a heal: the session cannot go on.
    pub(crate) is_beyond_help: bool,
    /// The newest of the server's digests that the authority had when it was there, and its tick.
    pub(crate) agreed: Option<(Tick, u32)>,
    /// All frames before this tick are counted, or ran before this session came (`MAX`: it does not know yet when).
    pub(crate) counted: Tick,
    /// The server's next tick to seal, as last told.
    pub(crate) next_seal: Tick,
    /// What is confirmed is recorded here.
    pub(crate) tape: Option<Tape<S>>,
}

impl<S: Simulation, V: Show<S>> Replica<S, V> {
    /// What runs before `tick` ran before this session came: it is not reported to the game, nor counted as this session's.
    pub(crate) fn come_at(&mut self, tick: Tick) {
        self.counted = tick;
        self.view.mute_until = tick;
    }

    /// Whether it is known since when this session is here.
    pub(crate) fn has_come(&self) -> bool {
        self.counted < Tick::MAX
    }

    /// The lengths of ticks and turns at the authority.
    pub(crate) fn cadence(&self) -> Cadence {
        self.timeline.authority().turn().cadence
    }

    /// How far the prediction may run ahead now.
    pub(crate) fn lead_max(&self) -> u32 {
        lead_max(self.cadence().tick())
    }

    /// Takes a fault of the game's step or hooks that was not reported yet.
    pub(crate) fn take_fault(&mut self) -> Option<String> {
        let answers = || self.answers.as_mut().and_then(Answers::take_fault);
        let of_hooks = || self.view.take_fault().or_else(answers);
        self.timeline.take_fault().or_else(of_hooks)
    }

    /// An advance begins.
    pub(crate) fn begin(&mut self, now: Duration) {
        self.allowance.begin(now);
        let lead = self.timeline.prediction().tick() - self.timeline.authority().tick();
        self.view.at(now, lead, self.cadence().tick());
    }

    /// Whether a frame waits that the authority may step by.
    pub(crate) fn can_step(&self) -> bool {
        self.inbox.front().is_some() && !self.divergence.stands()
    }

    /// Steps the authority by one tick; whether it could.
    pub(crate) fn confirm_next(&mut self) -> bool {
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
                let again = ticks_in(BREAKS_AGAIN, self.cadence().tick());
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

    /// Answers what own players asked, where owners do.
    fn answer(&mut self) {
        if let Some(answers) = &mut self.answers
            && !self.divergence.is_there()
        {
            let own = self.timeline.local_actions().players();
            answers.look(self.timeline.authority(), &self.rules, own);
        }
    }

    /// The authority is not the server's world of `tick`. Who plays turns out waits there for its heal, since it would
    /// close batches for turns of another match.
    fn record_difference(&mut self, tick: Tick) {
        self.divergence.begin(tick, self.timeline.authority());
        if self.timeline.is_in_lockstep() {
            self.divergence.stand();
        }
    }
}

/// Since when the authority is not the server's world, and what is kept to say where they differ.
///
/// Invariant: the first tick that differed counts until a heal. The authority goes on all the same, so that the player
/// can: what it shows is nearly right, and a heal comes.
pub(crate) struct Divergence<S: Simulation> {
    since: Option<Tick>,
    /// It differs so much that it cannot go on, or has gone on for too long.
    stands: bool,
    /// Our world of the tick that differed first, until the server's is here to compare.
    evidence: Option<World<S>>,
    /// The newest tick whose frame our step panicked at though nothing differed; a heal does not clear it.
    broke: Option<Tick>,
}

impl<S: Simulation> Divergence<S> {
    /// Nothing differs.
    pub(crate) fn none() -> Self {
        Divergence {
            since: None,
            stands: false,
            evidence: None,
            broke: None,
        }
    }

    /// The first tick that differs, until the authority is healed.
    pub(crate) fn since(&self) -> Option<Tick> {
        self.since
    }

    /// Whether the authority differs.
    pub(crate) fn is_there(&self) -> bool {
        self.since.is_some()
    }

    /// Whether the authority waits where it is for its heal.
    pub(crate) fn stands(&self) -> bool {
        self.stands
    }

    /// Our world of `tick` is not the server's: what it is now is kept as evidence. What is kept already stays: the
    /// server's world of that tick is on its way.
    pub(crate) fn begin(&mut self, tick: Tick, ours: &World<S>) {
        if self.since.is_none() {
            self.since = Some(tick);
            self.evidence.get_or_insert_with(|| ours.clone());
        }
    }

    /// Our step panicked at the server's frame of `tick`, and there is no world to compare. Returns `true` if a heal can
    /// help: nothing of the kind happened within `again` ticks.
    pub(crate) fn record_broken(&mut self, tick: Tick, again: u32) -> bool {
        self.stands = true;
        if self.since.is_some() {
            // A world that differs may panic where the server's does not.
            return true;
        }
        self.since = Some(tick);
        let before = self.broke.replace(tick);
        before.is_none_or(|before| tick - before > again && before <= tick)
    }

    /// The authority goes on no farther.
    pub(crate) fn stand(&mut self) {
        self.stands = true;
    }

    /// The authority is the server's world again. The evidence stays: the server's is asked for.
    pub(crate) fn heal(&mut self) {
        (self.since, self.stands) = (None, false);
    }

    /// Our world of the tick that differed.
    pub(crate) fn evidence(&self) -> Option<&World<S>> {
        self.evidence.as_ref()
    }

    /// The same, to be compared; it is not kept any more.
    pub(crate) fn take_evidence(&mut self) -> Option<World<S>> {
        self.evidence.take()
    }

    /// There is nothing to compare it with.
    pub(crate) fn forget_evidence(&mut self) {
        self.evidence = None;
    }
}
