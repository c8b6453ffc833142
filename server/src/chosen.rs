//! The game's resolver, or none: what both ways to set up a match keep until it starts.

use twinstep_core::{Key, Simulation};

use crate::hooks::{Decision, Look, Resolver};

/// The game's resolver, or none: then every query stays without an answer.
pub(crate) struct Chosen<S: Simulation>(Option<Box<dyn Resolver<S>>>);

impl<S: Simulation> Chosen<S> {
    pub(crate) fn of(resolver: impl Resolver<S>) -> Self {
        Chosen(Some(Box::new(resolver)))
    }
}

impl<S: Simulation> Default for Chosen<S> {
    fn default() -> Self {
        Chosen(None)
    }
}

impl<S: Simulation> Resolver<S> for Chosen<S> {
    fn resolve(&mut self, look: &Look<'_, S>, key: Key, query: &S::Query) -> Decision<S::Outcome> {
        match &mut self.0 {
            Some(resolver) => resolver.resolve(look, key, query),
            None => Decision::Unanswered,
        }
    }
}
