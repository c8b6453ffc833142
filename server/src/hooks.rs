//! What a game tells its server: how to resolve queries, and what to admit.
//!
//! Law **One door**: whatever a hook decides enters the simulation as an action of a frame, on the
//! server's own simulation too.

use twinstep_core::world::World;
use twinstep_core::{Key, PlayerId, Simulation, Tick};

use crate::history::History;

/// What a hook sees: the world at the tick just stepped, and 64 ticks back.
pub struct HookContext<'a, S: Simulation> {
    pub(crate) world: &'a World<S>,
    pub(crate) rules: &'a S::Rules,
    pub(crate) history: &'a History<S>,
    pub(crate) views: &'a [Tick],
}

impl<'a, S: Simulation> HookContext<'a, S> {
    /// The state now.
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

    /// The state before `tick` was stepped, fewer than [`HISTORY`](twinstep_core::bounds::HISTORY) ticks back.
    ///
    /// Costs nothing while worlds are small (64 KB): one is kept at each tick. Of larger ones one in 16 is kept, and the
    /// first look at another tick costs a clone of the world and up to 15 steps; what was looked at is kept too.
    #[must_use]
    pub fn at(&self, tick: Tick) -> Option<&'a S> {
        if tick == self.world.tick() {
            Some(self.world.sim())
        } else {
            self.history.world(tick, self.rules).map(World::sim)
        }
    }

    /// The newest confirmed tick that `player`'s screen was built on, as its client told: monotone, at
    /// most 15 ticks back. For outcomes that compensate for what the player saw.
    #[must_use]
    pub fn view(&self, player: PlayerId) -> Tick {
        let told = self.views.get(player.index()).copied().unwrap_or_default();
        told.clamp(self.world.tick().back(15), self.world.tick())
    }
}

/// An outcome, or work that leads to one.
pub enum Decision<O> {
    /// The outcome; it rides with the next tick.
    Now(O),
    /// A job that runs elsewhere and takes its time; unanswered after
    /// [`answer_ticks`](twinstep_core::bounds::answer_ticks), the query gets `None`.
    Later(Box<dyn FnOnce() -> O + Send>),
    /// None: the query stays unanswered.
    Unanswered,
}

/// Answers queries: the one place where anything nondeterministic is decided.
///
/// A resolver that panics yields `None`. It must not keep memory that a repair after a crash cannot derive
/// again: outcomes come from the journal then, and only open queries are asked anew, under the same key.
pub trait Resolver<S: Simulation>: Send + 'static {
    /// The answer to `query`, asked under `key` by the step just done.
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

/// What a [`Referee`] says of an order. A `bool` is one too, `false` for a refusal without a reason.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Admission {
    /// It may enter the coming frame.
    Admitted,
    /// It may not. The player's client is told of this number, in `Event::CommandRefused`: an index into reasons that
    /// the game's two sides know. 0: no reason.
    Refused(u16),
}

impl From<bool> for Admission {
    fn from(admits: bool) -> Admission {
        match admits {
            true => Admission::Admitted,
            false => Admission::Refused(0),
        }
    }
}

/// Admits what players order and claim. If one of these panics, the order is refused, and the match plays on.
pub trait Referee<S: Simulation>: Send + 'static {
    /// Whether this command (or claim) of `by` may enter the coming frame; if not, its player hears why.
    ///
    /// It may be asked more than once of the same command: at each turn while the command waits for its tick, because what
    /// it refuses is not announced to the other clients, and when the command is sealed. So it must not count its calls; a
    /// rate belongs into the state, which the step keeps.
    fn admit(
        &mut self,
        context: &HookContext<'_, S>,
        by: PlayerId,
        command: &S::Command,
        claimed: bool,
    ) -> Admission;

    /// Under [`AnsweredBy::Owner`](crate::config::AnsweredBy::Owner): whether this answer of a player's own client
    /// to its own `query` may stand. If not, the server's resolver answers.
    ///
    /// A client can be made to say anything. So none stands unless a game says which do: a referee that does not write
    /// this leaves all queries to the server.
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

    /// Under [`Claims::OwnerWithin`](crate::config::Claims::OwnerWithin): what a player should have
    /// claimed `within` ticks ago and did not; asked once per tick and player.
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

/// The default referee: everything within the bounds.
#[derive(Clone, Copy, Debug, Default)]
pub struct AdmitAll;

impl<S: Simulation> Referee<S> for AdmitAll {
    fn admit(&mut self, _: &HookContext<'_, S>, _: PlayerId, _: &S::Command, _: bool) -> Admission {
        Admission::Admitted
    }
}
