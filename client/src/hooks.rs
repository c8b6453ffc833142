//! What a game may tell its client: how to guess, what to speculate, what to show.

use twinstep_core::{Controls, Key, PlayerId, Simulation};

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
pub struct LeaveToServer;

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
