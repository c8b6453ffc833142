//! The game's hooks, or none: what both ways to set up a match keep until it starts.

use std::sync::Arc;

use twinstep_core::{Key, Simulation};

use crate::config::MatchConfig;
use crate::game::{Match, MatchStartError};
use crate::hooks::{Decision, Look, Referee, Resolver};

/// The hooks that were chosen so far.
pub(crate) struct Chosen<S: Simulation> {
    resolver: ChosenResolver<S>,
    set_up: Option<SetUp<S>>,
}

type SetUp<S> = Box<dyn FnOnce(&mut Match<S>) + Send>;

impl<S: Simulation> Default for Chosen<S> {
    fn default() -> Self {
        Chosen {
            resolver: ChosenResolver(None),
            set_up: None,
        }
    }
}

impl<S: Simulation> Chosen<S> {
    pub(crate) fn resolver(&mut self, resolver: impl Resolver<S>) {
        self.resolver = ChosenResolver(Some(Box::new(resolver)));
    }

    pub(crate) fn referee(&mut self, referee: impl Referee<S>) {
        self.set_up(move |game| game.set_referee(referee));
    }

    /// Done to the match before it starts.
    pub(crate) fn set_up(&mut self, set: impl FnOnce(&mut Match<S>) + Send + 'static) {
        self.set_up = Some(Box::new(set));
    }

    /// A new match with these hooks.
    pub(crate) fn make(
        self,
        config: MatchConfig,
        sim: S,
        rules: Arc<S::Rules>,
    ) -> Result<Match<S>, MatchStartError> {
        let made = self.give(|resolver| Ok((Match::new(config, sim, rules, resolver)?, ())));
        made.map(|(game, ())| game)
    }

    /// Gives these hooks to a match that is made, or goes on, with the resolver; and what comes with it.
    pub(crate) fn give<T, E>(
        self,
        begin: impl FnOnce(ChosenResolver<S>) -> Result<(Match<S>, T), E>,
    ) -> Result<(Match<S>, T), E> {
        let (mut game, with) = begin(self.resolver)?;
        if let Some(set) = self.set_up {
            set(&mut game);
        }
        Ok((game, with))
    }
}

/// The game's resolver, or none: then every query stays without an answer.
pub(crate) struct ChosenResolver<S: Simulation>(Option<Box<dyn Resolver<S>>>);

impl<S: Simulation> Resolver<S> for ChosenResolver<S> {
    fn resolve(&mut self, look: &Look<'_, S>, key: Key, query: &S::Query) -> Decision<S::Outcome> {
        match &mut self.0 {
            Some(resolver) => resolver.resolve(look, key, query),
            None => Decision::Unanswered,
        }
    }
}
