//! What a game may tell its client: how to guess, what to speculate, what to show.

use std::any::Any;
use std::panic::{AssertUnwindSafe, catch_unwind};

use twinstep_core::bounds::{OUTCOME_BYTES_MAX, QUERIES_OPEN_MAX};
use twinstep_core::frame::Answer;
use twinstep_core::world::World;
use twinstep_core::{Controls, Key, PlayerId, PlayerSet, Simulation, Tick, codec};

/// Guesses what a remote player holds at a tick of which no news has come.
///
/// Guesses are asked for lazily, one frame at a time, and see the simulation at that very tick. They depend on nothing
/// else: with [`Reconcile::Background`](crate::Reconcile) two threads ask, and both must be told the same.
///
/// Only a guess that is equal to what the player gave saves a rebuild: one that is nearly right costs one. So it pays where inputs
/// have few values, and whether it does is measured: by cause in
/// [`TimelineStats::by_input`](crate::stats::TimelineStats::by_input).
pub trait Guess<S: Simulation>: Send + Sync + 'static {
    /// What `who` holds, `age_ticks` after its last known input `last`.
    fn guess(
        &self,
        sim: &S,
        rules: &S::Rules,
        who: PlayerId,
        last: &S::Input,
        age_ticks: u32,
    ) -> S::Input;
}

impl<S: Simulation, F> Guess<S> for F
where
    F: Fn(&S, &S::Rules, PlayerId, &S::Input, u32) -> S::Input + Send + Sync + 'static,
{
    fn guess(
        &self,
        sim: &S,
        rules: &S::Rules,
        who: PlayerId,
        last: &S::Input,
        age_ticks: u32,
    ) -> S::Input {
        self(sim, rules, who, last, age_ticks)
    }
}

/// The default guess: [`Controls::repeat`], the very function with which the server fills.
#[derive(Clone, Copy, Debug, Default)]
pub struct Repeat;

impl<S: Simulation> Guess<S> for Repeat {
    fn guess(&self, _: &S, _: &S::Rules, _: PlayerId, last: &S::Input, age_ticks: u32) -> S::Input {
        last.repeat(age_ticks)
    }
}

/// Guesses the outcome of a query for the prediction's next frame. A right guess costs nothing. It depends on nothing but
/// what it is given, as a [`Guess`] does.
pub trait Speculate<S: Simulation>: Send + Sync + 'static {
    /// The likely outcome, or `None` to wait for the server's.
    fn speculate(
        &self,
        sim: &S,
        rules: &S::Rules,
        key: Key,
        query: &S::Query,
    ) -> Option<S::Outcome>;
}

impl<S: Simulation, F> Speculate<S> for F
where
    F: Fn(&S, &S::Rules, Key, &S::Query) -> Option<S::Outcome> + Send + Sync + 'static,
{
    fn speculate(
        &self,
        sim: &S,
        rules: &S::Rules,
        key: Key,
        query: &S::Query,
    ) -> Option<S::Outcome> {
        self(sim, rules, key, query)
    }
}

/// Answers queries of this client's own players, where the owner's client resolves.
///
/// It is asked once for each query, of the confirmed world, outside of any step; so it may look at whatever
/// it likes. The server's referee may refuse what it says.
pub trait OwnerResolver<S: Simulation>: Send + Sync + 'static {
    /// The outcome, or `None`: then the server answers after a while.
    fn resolve(
        &mut self,
        sim: &S,
        rules: &S::Rules,
        key: Key,
        query: &S::Query,
    ) -> Option<S::Outcome>;
}

impl<S: Simulation, F> OwnerResolver<S> for F
where
    F: FnMut(&S, &S::Rules, Key, &S::Query) -> Option<S::Outcome> + Send + Sync + 'static,
{
    fn resolve(
        &mut self,
        sim: &S,
        rules: &S::Rules,
        key: Key,
        query: &S::Query,
    ) -> Option<S::Outcome> {
        self(sim, rules, key, query)
    }
}

/// The default: leave every answer to the server.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct LeaveToServer;

impl<S: Simulation> OwnerResolver<S> for LeaveToServer {
    fn resolve(&mut self, _: &S, _: &S::Rules, _: Key, _: &S::Query) -> Option<S::Outcome> {
        None
    }
}

/// The default speculation: wait for the server.
#[derive(Clone, Copy, Debug, Default)]
pub struct Wait;

impl<S: Simulation> Speculate<S> for Wait {
    fn speculate(&self, _: &S, _: &S::Rules, _: Key, _: &S::Query) -> Option<S::Outcome> {
        None
    }
}

/// Answers of a client to what its own players asked, where the owner's client resolves.
///
/// Invariants: only a query that stands in the confirmed world is answered, never a predicted one; each is
/// computed once, outside of any step, and sent in every packet until the confirmed world has an outcome.
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

/// Returns what `work` returns, or the words that it panicked with. What `work` was changing is then half changed: the
/// caller throws it away.
///
/// A prediction steps what no server has stepped yet: another player's announced order, a guess, a world that will never
/// be. So no step, hook or decoder of the game may unwind into the game's main loop. On the good way this costs nothing
/// but that the call is not inlined. Where panics abort (`panic = "abort"`, which is all that wasm has) nothing is caught.
pub(crate) fn caught<T>(work: impl FnOnce() -> T) -> Result<T, String> {
    catch_unwind(AssertUnwindSafe(work)).map_err(|panic| words(&*panic).to_owned())
}

fn words(panic: &(dyn Any + Send)) -> &str {
    let text = panic.downcast_ref::<&str>().copied();
    text.or_else(|| panic.downcast_ref::<String>().map(String::as_str))
        .unwrap_or("without words")
}
