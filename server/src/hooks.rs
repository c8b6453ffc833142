//! A game's decisions on the server: it resolves queries and admits orders.
//!
//! Law **One door**: a hook's decision enters the simulation as an entry of a frame, on the server too.

use twinstep_core::bounds::HISTORY;
use twinstep_core::world::World;
use twinstep_core::{Key, PlayerId, Simulation, Tick};
use twinstep_protocol::packet::refusal::CommandRefusal;
use twinstep_protocol::packet::request::MatchRequest;

use crate::history::History;

/// A hook's view of the match: its rules, its worlds of the last 64 ticks, and its players' views.
pub struct HookContext<'a, S: Simulation> {
    pub(crate) world: &'a World<S>,
    pub(crate) rules: &'a S::Rules,
    pub(crate) history: &'a History<S>,
    pub(crate) views: &'a [Tick],
}

impl<'a, S: Simulation> HookContext<'a, S> {
    /// The current state.
    #[must_use]
    pub fn sim(&self) -> &'a S {
        self.world.sim()
    }

    /// The next tick to be sealed.
    #[must_use]
    pub fn tick(&self) -> Tick {
        self.world.tick()
    }

    /// The game's read-only content.
    #[must_use]
    pub fn rules(&self) -> &'a S::Rules {
        self.rules
    }

    /// The state before `tick`. Returns `None` if `tick` is in the future, or [`HISTORY`] ticks back or more.
    ///
    /// Free while worlds are small (64 KB), because one is kept every tick. Larger worlds are kept every 16th tick, so
    /// the first access to another tick costs a clone of the world and up to 15 steps. The result is also kept.
    #[must_use]
    pub fn at(&self, tick: Tick) -> Option<&'a S> {
        if tick == self.world.tick() {
            Some(self.world.sim())
        } else {
            self.history.world(tick, self.rules).map(World::sim)
        }
    }

    /// The newest confirmed tick on which `player`'s picture was based, as reported by the player's client. It never
    /// decreases, and is less than [`HISTORY`] ticks back (1.05 s at 60 Hz), so that [`at`](HookContext::at) has its
    /// world. Use it for lag compensation. From this tick on, the client predicts other players from announced or
    /// repeated inputs.
    ///
    /// A modified client can report a view that is too old, but its view cannot go back, so it gains no more than a
    /// player with that latency. For fairness to the players that are hit, limit how far back an outcome looks, for
    /// example to half a second.
    #[must_use]
    pub fn view_tick(&self, player: PlayerId) -> Tick {
        let view = self.views.get(player.index()).copied().unwrap_or_default();
        view.clamp(self.world.tick().back(HISTORY - 1), self.world.tick())
    }
}

/// An outcome, or a job that computes one.
pub enum Decision<O> {
    /// The outcome. It enters the next frame that has room for it.
    Now(O),
    /// A job that runs on another thread. If it does not return within
    /// [`answer_ticks`](twinstep_core::bounds::answer_ticks), the query gets `None`.
    Later(Box<dyn FnOnce() -> O + Send>),
    /// The query stays unanswered.
    Unanswered,
}

/// Answers queries. The server's nondeterministic decisions belong here.
///
/// A resolver that panics yields `None`. It must not depend on state that cannot be rebuilt after a crash: a resumed
/// match takes outcomes from its journal, and asks only open queries again, under the same keys.
pub trait Resolver<S: Simulation>: Send + 'static {
    /// Answers `query`, which a step asked under `key`.
    fn resolve(
        &mut self,
        context: &HookContext<'_, S>,
        key: Key,
        query: &S::Query,
    ) -> Decision<S::Outcome>;
}

impl<S: Simulation, F> Resolver<S> for F
where
    F: FnMut(&HookContext<'_, S>, Key, &S::Query) -> Decision<S::Outcome> + Send + 'static,
{
    fn resolve(
        &mut self,
        context: &HookContext<'_, S>,
        key: Key,
        query: &S::Query,
    ) -> Decision<S::Outcome> {
        self(context, key, query)
    }
}

/// A [`Referee`]'s decision on an order or a request. A `bool` converts to it; `false` refuses without a reason.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Admission {
    /// The order may enter the next frame, or the request is granted.
    Admitted,
    /// The order or request is refused. The player's client gets this number in `Event::CommandRefused` or
    /// `Event::RequestRefused`: an index into a list of reasons in the game's shared code, or 0 for no reason.
    Refused(u16),
}

impl Admission {
    pub(crate) fn decided(self) -> Result<(), CommandRefusal> {
        match self {
            Admission::Admitted => Ok(()),
            Admission::Refused(number) => Err(CommandRefusal::Referee(number)),
        }
    }
}

impl From<bool> for Admission {
    fn from(admits: bool) -> Admission {
        match admits {
            true => Admission::Admitted,
            false => Admission::Refused(0),
        }
    }
}

/// Admits players' commands, claims, answers and requests. A panic counts as a refusal, and the match continues.
pub trait Referee<S: Simulation>: Send + 'static {
    /// Decides whether this command (or claim) from `by` may enter the next frame. If not, the player gets the reason.
    ///
    /// May be called several times for one command: while it waits for its tick (to decide whether it is announced to
    /// the other clients), and when it is sealed. So do not count the calls; keep a rate limit in the state, updated by
    /// the step.
    fn admit(
        &mut self,
        context: &HookContext<'_, S>,
        by: PlayerId,
        command: &S::Command,
        claimed: bool,
    ) -> Admission;

    /// Decides whether a client's answer to its player's own `query` is accepted, under
    /// [`AnsweredBy::Owner`](crate::config::AnsweredBy::Owner). If it is not, the server's resolver answers.
    ///
    /// A modified client can send any answer, so a game must accept answers explicitly. The default accepts none.
    fn admit_answer(
        &mut self,
        context: &HookContext<'_, S>,
        by: PlayerId,
        key: Key,
        query: &S::Query,
        outcome: &S::Outcome,
    ) -> bool {
        let _ = (context, by, key, query, outcome);
        false
    }

    /// Decides on a player's request to the match itself, such as a pause or a save. Called once for each request. The
    /// default refuses all requests: a game decides which players may change its speed. In a lobby, only a start can be
    /// requested. A player can make at most 20 requests in 10 s. Any more are refused without a call, and so are
    /// requests that the match cannot fulfil.
    fn admit_request(
        &mut self,
        context: &HookContext<'_, S>,
        by: PlayerId,
        request: MatchRequest,
    ) -> Admission {
        let _ = (context, by, request);
        Admission::Refused(0)
    }

    /// The claim that a player should have made `within` ticks ago and did not, under
    /// [`Claims::OwnerWithin`](crate::config::Claims::OwnerWithin). Called at most once per tick and player.
    fn owed(
        &mut self,
        context: &HookContext<'_, S>,
        player: PlayerId,
        within: u32,
    ) -> Option<S::Command> {
        let _ = (context, player, within);
        None
    }
}

impl<S: Simulation, F, A> Referee<S> for F
where
    F: FnMut(&HookContext<'_, S>, PlayerId, &S::Command, bool) -> A + Send + 'static,
    A: Into<Admission>,
{
    fn admit(
        &mut self,
        context: &HookContext<'_, S>,
        by: PlayerId,
        command: &S::Command,
        claimed: bool,
    ) -> Admission {
        self(context, by, command, claimed).into()
    }
}

/// The default referee: it admits every order within the bounds, but no request and no owner's answer.
#[derive(Clone, Copy, Debug, Default)]
pub struct AdmitAll;

impl<S: Simulation> Referee<S> for AdmitAll {
    fn admit(&mut self, _: &HookContext<'_, S>, _: PlayerId, _: &S::Command, _: bool) -> Admission {
        Admission::Admitted
    }
}
