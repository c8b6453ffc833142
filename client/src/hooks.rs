//! The game's client hooks: guesses, speculation, and owners' answers.

use std::any::Any;
use std::panic::{AssertUnwindSafe, catch_unwind};

use twinstep_core::bounds::{OUTCOME_BYTES_MAX, QUERIES_OPEN_MAX};
use twinstep_core::frame::Answer;
use twinstep_core::world::World;
use twinstep_core::{Controls, Key, PlayerId, PlayerSet, Simulation, Tick, codec};

/// Guesses the input of a remote player at a tick whose input has not arrived.
///
/// Guesses are requested one frame at a time, with the simulation at exactly that tick. A guess must depend only on its
/// arguments: with [`Reconcile::Background`](crate::Reconcile) two threads request guesses, and both must get the same
/// guess.
///
/// A guess saves a rebuild only if it equals the player's input exactly. So guessing is worthwhile for inputs with few
/// values. Measure it: rebuilds are counted by cause in
/// [`TimelineStats::by_input`](crate::stats::TimelineStats::by_input).
pub trait Guess<S: Simulation>: Send + Sync + 'static {
    /// Returns the input that `who` is assumed to hold. `last` is the player's newest announced input, or else the
    /// input in the last frame, which may itself be a guess. `age_ticks` is 1, or, while the server fills the player's
    /// missing inputs, the age that the fill has at this tick.
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

/// The default guess: [`Controls::repeat`], the same function by which the server fills missing inputs.
#[derive(Clone, Copy, Debug, Default)]
pub struct Repeat;

impl<S: Simulation> Guess<S> for Repeat {
    fn guess(&self, _: &S, _: &S::Rules, _: PlayerId, last: &S::Input, age_ticks: u32) -> S::Input {
        last.repeat(age_ticks)
    }
}

/// Guesses the outcome of a query for the prediction's next frame. A guess saves a rebuild only if the server's outcome
/// is the same, and is in the same frame. Like a [`Guess`], it must depend only on its arguments.
pub trait Speculate<S: Simulation>: Send + Sync + 'static {
    /// Returns the likely outcome, or `None` to wait for the server's.
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

/// Answers the queries of this client's own players, in matches where owners answer.
///
/// Called once per query, with the confirmed world and outside of any step, so it may use any state. The server's
/// referee may refuse the outcome.
pub trait OwnerResolver<S: Simulation>: Send + Sync + 'static {
    /// Returns the outcome, or `None` to leave the answer to the server, which answers once the owner's time is up.
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

/// This client's answers to the queries of its own players, in matches where owners answer.
///
/// Invariants: only queries of the confirmed world are answered, never predicted ones. Each answer is computed once,
/// outside of any step. Small answers are sent with every packet until the confirmed world has settled their queries.
pub(crate) struct Answers<S: Simulation> {
    hook: Box<dyn OwnerResolver<S>>,
    given: Vec<Answer<S::Outcome>>,
    /// The hook's unreported fault: its first panic, or an answer over the size limit.
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

    pub(crate) fn take_fault(&mut self) -> Option<String> {
        self.fault.take()
    }

    /// Answers the new queries of this session's players in the confirmed world, and drops the settled ones. Call it
    /// after each confirmed tick.
    pub(crate) fn look(&mut self, world: &World<S>, rules: &S::Rules, own: PlayerSet) {
        let open = world.open_queries();
        let is_own = |key: Key| key.owner().is_some_and(|owner| own.contains(owner));
        self.given
            .retain(|a| is_own(a.key) && open.iter().any(|o| (o.asked, o.key) == (a.asked, a.key)));
        for query in open {
            let owner_answers = || S::owner_answers(&query.query);
            let mine = is_own(query.key) && caught(owner_answers) == Ok(true);
            let known = |a: &Answer<S::Outcome>| (a.asked, a.key) == (query.asked, query.key);
            if !mine || self.given.iter().any(known) {
                continue;
            }
            let hook = &mut self.hook;
            let resolved = caught(|| hook.resolve(world.sim(), rules, query.key, &query.query));
            let outcome = resolved.unwrap_or_else(|words| {
                if !self.has_failed {
                    self.has_failed = true;
                    self.fault = Some(format!("this client's resolver panicked: {words}"));
                }
                None
            });
            let outcome = outcome.filter(|outcome| match codec::size(outcome) {
                Ok(bytes) if bytes <= OUTCOME_BYTES_MAX => true,
                size => {
                    let size = size.map_or_else(|error| error.to_string(), |n| format!("{n} bytes"));
                    self.fault = Some(format!(
                        "cannot send the answer to query {} ({size}; at most {OUTCOME_BYTES_MAX} bytes): the server \
                         answers instead",
                        query.key
                    ));
                    false
                }
            });
            self.given.push(Answer {
                asked: query.asked,
                key: query.key,
                outcome,
            });
        }
    }

    /// The answers to send, each with the tick and key of its query. Queries that the hook left to the server are
    /// skipped.
    pub(crate) fn given(&self) -> impl Iterator<Item = (Tick, Key, &S::Outcome)> {
        let given = self.given.iter();
        given.filter_map(|answer| Some((answer.asked, answer.key, answer.outcome.as_ref()?)))
    }
}

/// Returns the result of `work`, or the message of its panic. After a panic the state that `work` was changing may be
/// inconsistent, so the caller must discard it.
///
/// A prediction steps frames that no server has stepped: they may contain announced commands or guesses, and their
/// world may never be confirmed. So a panic in a step, hook or decoder must not unwind into the game's main loop.
/// Without a panic the only cost is that the call is not inlined. Where panics abort (`panic = "abort"`, the only mode
/// on wasm) they are not caught.
pub(crate) fn caught<T>(work: impl FnOnce() -> T) -> Result<T, String> {
    catch_unwind(AssertUnwindSafe(work)).map_err(|panic| panic_message(&*panic).to_owned())
}

fn panic_message(panic: &(dyn Any + Send)) -> &str {
    let text = panic.downcast_ref::<&str>().copied();
    text.or_else(|| panic.downcast_ref::<String>().map(String::as_str))
        .unwrap_or("a panic without a message")
}
