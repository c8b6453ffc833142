//! [`Asking`]: what the simulation asked and nobody has answered yet, and the server's own answer to it.

use twinstep_core::bounds::QUERIES_OPEN_MAX;
use twinstep_core::{Key, Simulation, Tick};

use crate::diagnostics::Diagnostics;
use crate::hooks::{Decision, HookContext, Resolver};
use crate::incident::{Incident, Trouble};
use crate::outbox::{Outbox, Output};
use crate::sealer::Queries;
use crate::stopwatch::Timed;

/// See the [module](self).
pub(super) struct Asking<S: Simulation> {
    pub(super) queries: Queries<S>,
    /// Queries that their owners' clients are to answer: when each was asked, and its key.
    pub(super) owed: Vec<(Tick, Key)>,
    resolver: Box<dyn Resolver<S>>,
}

impl<S: Simulation> Asking<S> {
    pub(super) fn new(resolver: impl Resolver<S>) -> Self {
        Asking {
            queries: Queries::default(),
            owed: Vec::with_capacity(QUERIES_OPEN_MAX),
            resolver: Box::new(resolver),
        }
    }

    /// Whether a query was its owner's to answer; from now on it is not.
    pub(super) fn take_owed(&mut self, query: (Tick, Key)) -> bool {
        let at = self.owed.iter().position(|owed| *owed == query);
        at.map(|at| self.owed.swap_remove(at)).is_some()
    }

    /// The server's own resolver answers, at once or by a job. If it panics, nobody does.
    pub(super) fn resolve(
        &mut self,
        (asked, key): (Tick, Key),
        context: &HookContext<'_, S>,
        diagnostics: &mut Diagnostics,
        out: &mut Outbox<S::Outcome>,
    ) {
        let open = context.world.open_queries();
        let Some(open) = open.iter().find(|o| (o.asked, o.key) == (asked, key)) else {
            return;
        };
        let resolver = &mut self.resolver;
        let began = diagnostics.timing.begin();
        let resolved = diagnostics.panics.catch(asked, Trouble::Resolver, || {
            resolver.resolve(context, key, &open.query)
        });
        // What goes on elsewhere is measured there.
        if !matches!(resolved, Some(Decision::Later(_))) {
            diagnostics.timing.end(Timed::Resolver, began);
        }
        match resolved {
            Some(Decision::Now(outcome)) => self.answer((asked, key), Some(outcome), diagnostics),
            Some(Decision::Later(work)) => {
                let id = self.queries.defer(asked, key);
                out.push(Output::Job { id, work });
            }
            Some(Decision::Unanswered) | None => self.answer((asked, key), None, diagnostics),
        }
        diagnostics.note_panics();
    }

    /// Notes an answer. That it cannot be sent is an author's mistake, and is told as one.
    ///
    /// # Panics
    /// In a debug build, if the outcome is over its bound or does not come back from its bytes: an author is to hear of
    /// it before players do.
    pub(super) fn answer(
        &mut self,
        (asked, key): (Tick, Key),
        outcome: Option<S::Outcome>,
        diagnostics: &mut Diagnostics,
    ) {
        if let Err(error) = self.queries.answer(asked, key, outcome) {
            diagnostics.stats.outcomes_unsent += 1;
            let message = format!("the outcome of the query {key} of {asked}: {error}");
            diagnostics.note(Incident::new(asked, Trouble::Outcome, &message));
            debug_assert!(false, "{message}");
        }
    }
}
