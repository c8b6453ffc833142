//! [`Hooks`]: a game's resolver, referee and further set-up, collected until its match starts.

use std::sync::Arc;

use twinstep_core::{Key, Simulation};

use crate::config::MatchConfig;
use crate::errors::MatchStartError;
use crate::hooks::{Decision, HookContext, Referee, Resolver};
use crate::match_::Match;

/// The hooks that were set so far. Without a resolver, a match leaves every query unanswered.
pub struct Hooks<S: Simulation> {
    resolver: MaybeResolver<S>,
    set_up: Vec<SetUp<S>>,
}

type SetUp<S> = Box<dyn FnOnce(&mut Match<S>) + Send>;

impl<S: Simulation> Default for Hooks<S> {
    fn default() -> Self {
        Hooks {
            resolver: MaybeResolver(None),
            set_up: Vec::new(),
        }
    }
}

impl<S: Simulation> Hooks<S> {
    /// Sets the resolver, which answers the match's queries.
    pub fn resolver(&mut self, resolver: impl Resolver<S>) {
        self.resolver = MaybeResolver(Some(Box::new(resolver)));
    }

    /// Sets the referee, which admits the match's commands and claims.
    pub fn referee(&mut self, referee: impl Referee<S>) {
        self.set_up(move |match_| match_.set_referee(referee));
    }

    /// Adds a function to apply to the match before the match starts. The functions run in the order in which they were
    /// added.
    pub fn set_up(&mut self, set: impl FnOnce(&mut Match<S>) + Send + 'static) {
        self.set_up.push(Box::new(set));
    }

    /// Creates a match with these hooks.
    pub fn make(
        self,
        config: MatchConfig,
        sim: S,
        rules: Arc<S::Rules>,
    ) -> Result<Match<S>, MatchStartError> {
        let made = self.give(|resolver| Ok((Match::new(config, sim, rules, resolver)?, ())));
        made.map(|(match_, ())| match_)
    }

    /// Creates or resumes a match with `begin`, which gets the resolver, and applies the other hooks to the match.
    /// Returns the match and the second result of `begin`.
    pub fn give<T, E>(
        self,
        begin: impl FnOnce(MaybeResolver<S>) -> Result<(Match<S>, T), E>,
    ) -> Result<(Match<S>, T), E> {
        let (mut match_, with) = begin(self.resolver)?;
        for set in self.set_up {
            set(&mut match_);
        }
        Ok((match_, with))
    }
}

/// The game's resolver. If there is none, every query stays unanswered.
pub struct MaybeResolver<S: Simulation>(Option<Box<dyn Resolver<S>>>);

impl<S: Simulation> Resolver<S> for MaybeResolver<S> {
    fn resolve(
        &mut self,
        context: &HookContext<'_, S>,
        key: Key,
        query: &S::Query,
    ) -> Decision<S::Outcome> {
        match &mut self.0 {
            Some(resolver) => resolver.resolve(context, key, query),
            None => Decision::Unanswered,
        }
    }
}
