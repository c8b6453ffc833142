//! [`OpenQueries`]: the state of each query of the simulation, from the step that asked to the frame that answers.
//!
//! ```text
//!  asked ─▶ owner's to answer? ─ yes ─▶ WithOwner ── admitted ─────────────────▶ Ready ─▶ the next frame with room for it
//!                │ no                       │ refused; silent for owner_ticks;    ▲
//!                ▼                          ▼ or its client is gone               │
//!            the resolver ◀─────────────────╯                                    │
//!                ├─ Now, Unanswered, a panic ────────────────────────────────────┤
//!                └─ Later ─▶ AtJob ── complete ──────────────────────────────────╯
//! ```
//!
//! In every state, a query that has no answer after [`answer_ticks`] gets `None` from the next frame.
//!
//! Law **One door**: an outcome enters the simulation once, as an entry of a frame, no matter which side answers.

use twinstep_core::bounds::{
    ANSWER_BYTES_MAX, ANSWER_HEAD_BYTES, FRAGMENT_BYTES, FRAGMENT_HEAD_BYTES, OUTCOME_BYTES_MAX,
    QUERIES_OPEN_MAX, answer_ticks, owner_ticks,
};
use twinstep_core::codec;
use twinstep_core::frame::{Answer, FrameData, LargeEntry};
use twinstep_core::{Key, OpenQuery, Simulation, Tick};

use crate::diagnostics::Diagnostics;
use crate::hooks::{Decision, HookContext, Resolver};
use crate::incident::{Incident, Trouble};
use crate::outbox::{JobId, Outbox, Output};
use crate::sealer::shares::{Kind, Room, dealt};
use crate::stopwatch::Timed;

/// The name of a query: the tick at which it was asked, and its key.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct QueryId {
    pub(crate) asked: Tick,
    pub(crate) key: Key,
}

impl QueryId {
    fn of<Q>(open: &OpenQuery<Q>) -> QueryId {
        let (asked, key) = (open.asked, open.key);
        QueryId { asked, key }
    }

    pub(crate) fn answered_by<O>(answer: &Answer<O>) -> QueryId {
        let (asked, key) = (answer.asked, answer.key);
        QueryId { asked, key }
    }

    pub(crate) fn find<'a, S: Simulation>(
        self,
        context: &HookContext<'a, S>,
    ) -> Option<&'a OpenQuery<S::Query>> {
        let mut open = context.world.open_queries().iter();
        open.find(|open| QueryId::of(open) == self)
    }
}

enum QueryState<O> {
    WithOwner,
    AtJob(JobId),
    /// The query is answered, and waits for a frame with this much space.
    Ready {
        outcome: Option<O>,
        bytes: usize,
    },
}

struct QueryEntry<O> {
    id: QueryId,
    /// The tick whose step opened the query. Its time limit starts here, after any wait to be opened.
    opened: Tick,
    state: QueryState<O>,
}

pub(crate) struct OpenQueries<S: Simulation> {
    resolver: Box<dyn Resolver<S>>,
    queries: Vec<QueryEntry<S::Outcome>>,
    next_job: u64,
    scratch: Vec<u8>,
}

impl<S: Simulation> OpenQueries<S> {
    pub(crate) fn new(resolver: impl Resolver<S>) -> Self {
        OpenQueries {
            resolver: Box::new(resolver),
            queries: Vec::with_capacity(QUERIES_OPEN_MAX),
            next_job: 0,
            scratch: Vec::with_capacity(OUTCOME_BYTES_MAX),
        }
    }

    /// Records queries that the world opened. The resolver answers the queries that `is_owners` rejects, and those that
    /// the game leaves to the server.
    pub(crate) fn open(
        &mut self,
        context: &HookContext<'_, S>,
        opened: &[OpenQuery<S::Query>],
        is_owners: impl Fn(Key) -> bool,
        diagnostics: &mut Diagnostics,
        out: &mut Outbox<S::Outcome>,
    ) {
        for open in opened {
            diagnostics.stats.queries += 1;
            let id = QueryId::of(open);
            self.set(id, QueryState::WithOwner);
            if let Ok(at) = self.find(id) {
                // A query from an earlier burst was asked before it was opened.
                self.queries[at].opened = id.asked.max(context.tick().back(1));
            }
            let owner_answers = || S::owner_answers(&open.query);
            let panics = &mut diagnostics.panics;
            let is_owners = is_owners(open.key)
                && panics.catch(open.asked, Trouble::Resolver, owner_answers) == Some(true);
            if !is_owners {
                self.resolve_open(open, context, diagnostics, out);
            }
        }
    }

    /// Moves queries to the resolver if their owners do not answer in time or do not play, according to `owner_plays`.
    pub(crate) fn answer_for_owners(
        &mut self,
        context: &HookContext<'_, S>,
        owner_plays: impl Fn(Key) -> bool,
        diagnostics: &mut Diagnostics,
        out: &mut Outbox<S::Outcome>,
    ) {
        let patience = owner_ticks(context.world.turn().cadence.tick());
        // By index: an entry changes its state in place, so no entry moves.
        for at in 0..self.queries.len() {
            let QueryEntry {
                id,
                opened,
                state: QueryState::WithOwner,
            } = self.queries[at]
            else {
                continue;
            };
            let is_over = context.tick() - opened >= patience || !owner_plays(id.key);
            if is_over && let Some(open) = id.find(context) {
                self.resolve_open(open, context, diagnostics, out);
            }
        }
    }

    pub(crate) fn resolve(
        &mut self,
        id: QueryId,
        context: &HookContext<'_, S>,
        diagnostics: &mut Diagnostics,
        out: &mut Outbox<S::Outcome>,
    ) {
        if let Some(open) = id.find(context) {
            self.resolve_open(open, context, diagnostics, out);
        }
    }

    /// Asks the resolver, which answers directly or with a job. If it panics, the answer is `None`.
    fn resolve_open(
        &mut self,
        open: &OpenQuery<S::Query>,
        context: &HookContext<'_, S>,
        diagnostics: &mut Diagnostics,
        out: &mut Outbox<S::Outcome>,
    ) {
        let id = QueryId::of(open);
        let resolver = &mut self.resolver;
        let began = diagnostics.timing.begin();
        let resolved = diagnostics.panics.catch(open.asked, Trouble::Resolver, || {
            resolver.resolve(context, open.key, &open.query)
        });
        // A job on another thread is measured there.
        if !matches!(resolved, Some(Decision::Later(_))) {
            diagnostics.timing.end(Timed::Resolver, began);
        }
        match resolved {
            Some(Decision::Now(outcome)) => self.answer(id, Some(outcome), diagnostics),
            Some(Decision::Later(work)) => {
                let job = JobId(self.next_job);
                self.next_job += 1;
                self.set(id, QueryState::AtJob(job));
                out.push(Output::Job { id: job, work });
            }
            Some(Decision::Unanswered) | None => self.answer(id, None, diagnostics),
        }
        diagnostics.report_panics();
    }

    /// Takes the result of a job; `None` means that the job failed. The result is used only if a query still waits for
    /// this job.
    pub(crate) fn complete(
        &mut self,
        job: JobId,
        outcome: Option<S::Outcome>,
        diagnostics: &mut Diagnostics,
    ) {
        let waits = |entry: &&QueryEntry<S::Outcome>| matches!(entry.state, QueryState::AtJob(id) if id == job);
        if let Some(entry) = self.queries.iter().find(waits) {
            self.answer(entry.id, outcome, diagnostics);
        }
    }

    pub(crate) fn is_with_owner(&self, id: QueryId) -> bool {
        self.find(id)
            .is_ok_and(|at| matches!(self.queries[at].state, QueryState::WithOwner))
    }

    /// Returns `true` if an outcome can be part of a frame: it is within its bound, and every client can decode it.
    pub(crate) fn is_sealable(&mut self, outcome: &S::Outcome) -> bool {
        codec::sealable(outcome, OUTCOME_BYTES_MAX, &mut self.scratch).is_ok()
    }

    /// Records the answer to a query. An outcome that cannot be sent is the author's mistake: it becomes `None`, and is
    /// reported as an incident.
    ///
    /// # Panics
    /// In a debug build, if the outcome exceeds its bound or does not survive its encoding, so that the author notices
    /// it before players do.
    pub(crate) fn answer(
        &mut self,
        id: QueryId,
        outcome: Option<S::Outcome>,
        diagnostics: &mut Diagnostics,
    ) {
        let sealable = outcome
            .as_ref()
            .map(|outcome| codec::sealable(outcome, OUTCOME_BYTES_MAX, &mut self.scratch))
            .transpose();
        let bytes = ANSWER_HEAD_BYTES + sealable.as_ref().ok().copied().flatten().unwrap_or(0);
        let outcome_bytes = outcome.as_ref().filter(|_| sealable.is_err());
        let outcome_bytes = outcome_bytes.and_then(|outcome| codec::size(outcome).ok());
        let outcome = outcome.filter(|_| sealable.is_ok());
        self.set(id, QueryState::Ready { outcome, bytes });
        if let Err(error) = sealable {
            let QueryId { asked, key } = id;
            diagnostics.stats.outcomes_unsent += 1;
            let size = outcome_bytes.map_or(String::new(), |bytes| format!(" takes {bytes} bytes"));
            let message = format!("the outcome of the query {key} of {asked}{size}: {error}");
            diagnostics.report(Incident::new(asked, Trouble::Outcome, &message));
            debug_assert!(false, "{message}");
        }
    }

    pub(crate) fn has_due_answer(&self, context: &HookContext<'_, S>) -> bool {
        let patience = answer_ticks(context.world.turn().cadence.tick());
        let waits = |entry: &QueryEntry<S::Outcome>| {
            matches!(entry.state, QueryState::Ready { .. })
                || context.tick() - entry.opened >= patience
        };
        self.queries.iter().any(waits)
    }

    /// Moves answers, and `None` for queries that waited too long, into the frame as far as they fit.
    pub(crate) fn take(
        &mut self,
        frame: &mut FrameData<S>,
        context: &HookContext<'_, S>,
        room: &mut Room,
    ) {
        let patience = answer_ticks(context.world.turn().cadence.tick());
        let open = context.world.open_queries();
        let owners = open.iter().map(|open| open.key.owner());
        for at in dealt::<QUERIES_OPEN_MAX>(frame.tick, owners) {
            let id = QueryId::of(&open[at]);
            let stands = |answer: &Answer<_>| QueryId::answered_by(answer) == id;
            // Each kind has two turns, and this one may have been served in the first.
            if frame.outcomes.iter().any(stands) {
                continue;
            }
            let known = self.find(id).ok();
            let entry = known.map(|at| &self.queries[at]);
            let opened = entry.map_or(id.asked, |entry| entry.opened);
            let bytes = match entry.map(|entry| &entry.state) {
                Some(QueryState::Ready { bytes, .. }) => *bytes,
                _ if frame.tick - opened >= patience => ANSWER_HEAD_BYTES,
                _ => continue,
            };
            if bytes > ANSWER_BYTES_MAX && !self.take_fragment(frame, context, room, id) {
                continue;
            }
            if bytes <= ANSWER_BYTES_MAX && !room.take(Kind::Outcomes, bytes) {
                continue;
            }
            let outcome = match known.map(|at| self.queries.remove(at).state) {
                Some(QueryState::Ready { outcome, .. }) => outcome,
                _ => None,
            };
            let QueryId { asked, key } = id;
            frame.outcomes.push(Answer {
                asked,
                key,
                outcome,
            });
        }
        frame
            .outcomes
            .sort_unstable_by_key(|answer| (answer.asked, answer.key));
    }

    /// Adds a fragment of a large outcome to the frame, once the previous large outcome is complete. Returns `true` if
    /// the fragment completes this outcome.
    fn take_fragment(
        &mut self,
        frame: &mut FrameData<S>,
        context: &HookContext<'_, S>,
        room: &mut Room,
        id: QueryId,
    ) -> bool {
        let QueryId { asked, key } = id;
        let entry = LargeEntry::Outcome { asked, key };
        let is_outcome = |entry: &LargeEntry| matches!(entry, LargeEntry::Outcome { .. });
        let here = frame
            .fragments
            .iter()
            .find(|f| f.left > 0 && is_outcome(&f.entry));
        // A query opened before a crash counts only once it is answered again.
        let earlier = context.world.unfinished().outcome();
        let earlier = earlier.filter(|e| !frame.ends(*e) && self.is_ready(*e));
        let current = here.map(|f| f.entry).or(earlier);
        let state = self.find(id).ok().map(|at| &self.queries[at].state);
        let Some(QueryState::Ready {
            outcome: Some(outcome),
            ..
        }) = state
        else {
            return false;
        };
        if current.is_some_and(|current| current != entry) {
            return false;
        }
        self.scratch.clear();
        if codec::append(outcome, &mut self.scratch).is_err() {
            return false;
        }
        let from = context.world.unfinished().collected(entry, &self.scratch);
        let begins = here.is_none();
        // At its first turn in a tick, it leaves space for other outcomes.
        let most = if begins {
            FRAGMENT_BYTES
        } else {
            OUTCOME_BYTES_MAX
        };
        let head = if begins { FRAGMENT_HEAD_BYTES } else { 0 };
        let most = most.min(room.free(Kind::Outcomes).saturating_sub(head));
        if most == 0 {
            return false;
        }
        let added = frame.add_fragment(entry, &self.scratch, from, most);
        room.take(Kind::Outcomes, head + added);
        frame
            .fragments
            .iter()
            .any(|f| f.left == 0 && f.entry == entry)
    }

    fn is_ready(&self, entry: LargeEntry) -> bool {
        let LargeEntry::Outcome { asked, key } = entry else {
            return false;
        };
        self.find(QueryId { asked, key })
            .is_ok_and(|at| matches!(self.queries[at].state, QueryState::Ready { .. }))
    }

    fn set(&mut self, id: QueryId, state: QueryState<S::Outcome>) {
        match self.find(id) {
            Ok(at) => self.queries[at].state = state,
            Err(at) => {
                let opened = id.asked;
                self.queries.insert(at, QueryEntry { id, opened, state });
            }
        }
    }

    fn find(&self, id: QueryId) -> Result<usize, usize> {
        self.queries.binary_search_by_key(&id, |entry| entry.id)
    }
}
