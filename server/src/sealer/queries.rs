//! Answers that wait for the next frame, and jobs that will give some.

use twinstep_core::bounds::{ANSWER_HEAD_BYTES, OUTCOME_BYTES_MAX, QUERIES_OPEN_MAX, answer_ticks};
use twinstep_core::codec::{self, CodecError};
use twinstep_core::frame::{Answer, FrameData};
use twinstep_core::{Key, OpenQuery, Simulation, Tick};

use super::shares::{Kind, Room, dealt};
use crate::hooks::HookContext;
use crate::outbox::JobId;

/// Answers that wait for the next frame, and jobs that will give some.
pub(crate) struct Queries<S: Simulation> {
    ready: Vec<Ready<S::Outcome>>,
    jobs: Vec<(JobId, Tick, Key)>,
    next_job: u64,
    scratch: Vec<u8>,
}

/// An answer, and what it takes of a frame.
struct Ready<O> {
    answer: Answer<O>,
    bytes: usize,
}

impl<S: Simulation> Default for Queries<S> {
    fn default() -> Self {
        Queries {
            ready: Vec::with_capacity(QUERIES_OPEN_MAX),
            jobs: Vec::with_capacity(QUERIES_OPEN_MAX),
            next_job: 0,
            scratch: Vec::with_capacity(OUTCOME_BYTES_MAX),
        }
    }
}

impl<S: Simulation> Queries<S> {
    /// Notes an answer. An outcome that no client could read is none.
    ///
    /// # Errors
    /// Why it is none: it is over [`OUTCOME_BYTES_MAX`], or does not come back from its bytes.
    pub(crate) fn answer(
        &mut self,
        asked: Tick,
        key: Key,
        outcome: Option<S::Outcome>,
    ) -> Result<(), CodecError> {
        let sealable = outcome
            .as_ref()
            .map(|outcome| codec::sealable(outcome, OUTCOME_BYTES_MAX, &mut self.scratch))
            .transpose();
        let (outcome, told) = match sealable {
            Ok(_) => (outcome, Ok(())),
            Err(error) => (None, Err(error)),
        };
        let bytes = ANSWER_HEAD_BYTES + sealable.ok().flatten().unwrap_or(0);
        let answer = Answer {
            asked,
            key,
            outcome,
        };
        self.ready.push(Ready { answer, bytes });
        told
    }

    /// Whether an outcome can stand in a frame: it is within its bound, and every client can read it.
    pub(crate) fn is_sealable(&mut self, outcome: &S::Outcome) -> bool {
        codec::sealable(outcome, OUTCOME_BYTES_MAX, &mut self.scratch).is_ok()
    }

    /// Notes that a job will answer.
    pub(crate) fn defer(&mut self, asked: Tick, key: Key) -> JobId {
        let id = JobId(self.next_job);
        self.next_job += 1;
        self.jobs.push((id, asked, key));
        id
    }

    /// The query that a job answers, if it still waits.
    pub(crate) fn retire(&mut self, id: JobId) -> Option<(Tick, Key)> {
        let at = self.jobs.iter().position(|(job, ..)| *job == id)?;
        let (_, asked, key) = self.jobs.swap_remove(at);
        Some((asked, key))
    }

    /// Whether any answer waits for a frame.
    pub(super) fn waits(&self, context: &HookContext<'_, S>) -> bool {
        let patience = answer_ticks(context.world.turn().cadence.tick());
        let late = |open: &OpenQuery<S::Query>| context.tick() - open.asked >= patience;
        !self.ready.is_empty() || context.world.open_queries().first().is_some_and(late)
    }

    /// Puts what is answered, and what waited too long, into the frame: as much as there is room for.
    pub(super) fn take(
        &mut self,
        frame: &mut FrameData<S>,
        context: &HookContext<'_, S>,
        room: &mut Room,
    ) {
        let patience = answer_ticks(context.world.turn().cadence.tick());
        let open = context.world.open_queries();
        let owners = open.iter().map(|open| open.key.owner());
        for at in dealt::<QUERIES_OPEN_MAX>(frame.tick, owners) {
            let (asked, key) = (open[at].asked, open[at].key);
            if frame
                .outcomes
                .iter()
                .any(|a| (a.asked, a.key) == (asked, key))
            {
                continue;
            }
            let ready = self
                .ready
                .iter()
                .position(|r| (r.answer.asked, r.answer.key) == (asked, key));
            let late = frame.tick - asked >= patience;
            match ready {
                Some(at) if room.take(Kind::Outcomes, self.ready[at].bytes) => {
                    frame.outcomes.push(self.ready.swap_remove(at).answer);
                }
                None if late && room.take(Kind::Outcomes, ANSWER_HEAD_BYTES) => {
                    self.jobs
                        .retain(|(_, when, name)| (*when, *name) != (asked, key));
                    frame.outcomes.push(Answer {
                        asked,
                        key,
                        outcome: None,
                    });
                }
                _ => {}
            }
        }
        frame.outcomes.sort_unstable_by_key(|a| (a.asked, a.key));
    }
}
