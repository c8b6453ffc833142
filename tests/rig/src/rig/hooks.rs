//! The hooks of the rig's matches: the game's own referee and resolver, instrumented.

use std::cell::Cell;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use twinstep_core::{Key, PlayerId};
use twinstep_server::Admission;
use twinstep_server::{HookContext, MatchRequest, Referee, Resolver};

use super::asked_queries::Asked;
use super::play::Play;

thread_local! {
    pub(super) static COUNTER: Cell<fn() -> u64> = const { Cell::new(|| 0) };
}

pub(super) struct Judge;

impl<S: Play> Referee<S> for Judge {
    fn admit(
        &mut self,
        look: &HookContext<'_, S>,
        by: PlayerId,
        command: &S::Command,
        _: bool,
    ) -> Admission {
        look.sim().admit(look.rules(), by, command).into()
    }

    fn admit_answer(
        &mut self,
        look: &HookContext<'_, S>,
        _: PlayerId,
        _: Key,
        query: &S::Query,
        outcome: &S::Outcome,
    ) -> bool {
        look.sim().admit_answer(look.rules(), query, outcome)
    }

    fn admit_request(
        &mut self,
        _: &HookContext<'_, S>,
        by: PlayerId,
        _: MatchRequest,
    ) -> Admission {
        match by {
            PlayerId(1) => Admission::Refused(7),
            _ => Admission::Admitted,
        }
    }

    fn owed(&mut self, look: &HookContext<'_, S>, player: PlayerId, _: u32) -> Option<S::Command> {
        look.sim().owed(look.rules(), player, look.tick())
    }
}

/// The game's resolver, instrumented: reads the counter around each call, and records the queries.
pub(super) fn watched<S: Play>(
    rules: &S::Rules,
    seed: u64,
    count: &Arc<AtomicU64>,
    asked: &Arc<Asked>,
) -> impl Resolver<S> {
    let (count, asked) = (count.clone(), asked.clone());
    let mut inner = S::resolver(rules, seed);
    move |look: &HookContext<'_, S>, key: Key, query: &S::Query| {
        let counter = COUNTER.get();
        let before = counter();
        asked.record(key, look.tick());
        let resolution = inner.resolve(look, key, query);
        count.fetch_add(counter() - before, Ordering::Relaxed);
        resolution
    }
}
