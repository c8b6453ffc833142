//! Answers of a client to what its own players asked, where the owner's client resolves.
//!
//! Invariants: only a query that stands in the confirmed world is answered, never a predicted one; each is
//! computed once, outside of any step, and said in every packet until the confirmed world has an outcome.

use twinstep_core::bounds::{OUTCOME_BYTES_MAX, QUERIES_OPEN_MAX};
use twinstep_core::frame::Answer;
use twinstep_core::world::World;
use twinstep_core::{Key, PlayerSet, Simulation, Tick, codec};

use crate::caught::caught;
use crate::hooks::OwnerResolver;

/// What was computed, and is not in the confirmed world yet.
pub(crate) struct Answers<S: Simulation> {
    hook: Box<dyn OwnerResolver<S>>,
    given: Vec<Answer<S::Outcome>>,
    /// The words of the hook's first panic, until they are reported.
    fault: Option<String>,
    pub(crate) has_failed: bool,
}

impl<S: Simulation> Answers<S> {
    pub(crate) fn new(hook: Box<dyn OwnerResolver<S>>) -> Self {
        let given = Vec::with_capacity(QUERIES_OPEN_MAX);
        Answers {
            hook,
            given,
            fault: None,
            has_failed: false,
        }
    }

    /// Takes the words of the hook's first panic, once.
    pub(crate) fn take_fault(&mut self) -> Option<String> {
        self.fault.take()
    }

    /// Looks at the confirmed world after each of its ticks: answers what own players asked, forgets what is settled.
    pub(crate) fn look(&mut self, world: &World<S>, rules: &S::Rules, own: PlayerSet) {
        let open = world.open_queries();
        let is_own = |key: Key| key.owner().is_some_and(|owner| own.contains(owner));
        self.given
            .retain(|a| is_own(a.key) && open.iter().any(|o| (o.asked, o.key) == (a.asked, a.key)));
        for query in open {
            let mine = is_own(query.key);
            let known = |a: &Answer<S::Outcome>| (a.asked, a.key) == (query.asked, query.key);
            if !mine || self.given.iter().any(known) {
                continue;
            }
            let hook = &mut self.hook;
            let resolved = caught(|| hook.resolve(world.sim(), rules, query.key, &query.query));
            let outcome = resolved.unwrap_or_else(|words| {
                if !self.has_failed {
                    self.has_failed = true;
                    self.fault = Some(format!("an owner's resolver panicked: {words}"));
                }
                None
            });
            let fits =
                |o: &S::Outcome| codec::size(o).is_ok_and(|bytes| bytes <= OUTCOME_BYTES_MAX);
            let outcome = outcome.filter(fits);
            self.given.push(Answer {
                asked: query.asked,
                key: query.key,
                outcome,
            });
        }
    }

    /// The answers to send: when it was asked, the key and the outcome. What the hook does not know is the server's to
    /// answer.
    pub(crate) fn given(&self) -> impl Iterator<Item = (Tick, Key, &S::Outcome)> {
        let given = self.given.iter();
        given.filter_map(|answer| Some((answer.asked, answer.key, answer.outcome.as_ref()?)))
    }
}
