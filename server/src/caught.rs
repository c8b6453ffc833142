//! Calls an author's hooks and catches their panics, so that a panic ends neither the match nor its sessions.
//!
//! Law **Hostile wire**, for the author's code: a player's packet may make a hook panic, but then only this order is
//! refused, or this query stays unanswered.

use std::panic::{AssertUnwindSafe, catch_unwind};

use twinstep_core::bounds::INPUT_BYTES_MAX;
use twinstep_core::{Controls, Key, PlayerId, Simulation, Tick, codec};
use twinstep_protocol::packet::refusal::CommandRefusal;
use twinstep_protocol::packet::request::MatchRequest;
use twinstep_protocol::wire::WireError;

use crate::hooks::{Admission, HookContext, Referee};
use crate::incident::{INCIDENTS_MAX, Incident, Trouble, panic_message};

/// Caught panics of hooks that are not reported yet.
#[derive(Default)]
pub(crate) struct Panics {
    /// The number of panics, including those without an incident.
    pub(crate) count: u64,
    pub(crate) incidents: Vec<Incident>,
}

impl Panics {
    pub(crate) fn catch<T>(
        &mut self,
        tick: Tick,
        trouble: Trouble,
        hook: impl FnOnce() -> T,
    ) -> Option<T> {
        let caught = catch_unwind(AssertUnwindSafe(hook));
        caught
            .inspect_err(|panic| {
                self.count += 1;
                if self.incidents.len() < INCIDENTS_MAX {
                    let incident = Incident::new(tick, trouble, panic_message(&**panic));
                    self.incidents.push(incident);
                }
            })
            .ok()
    }
}

/// Reads a packet. The author's decoders and checks read its values; a panic in one of them makes the packet malformed.
pub(crate) fn decoded<T>(read: impl FnOnce() -> Result<T, WireError>) -> Result<T, WireError> {
    let panicked = Err(WireError::Malformed("a value whose decoder panics"));
    catch_unwind(AssertUnwindSafe(read)).unwrap_or(panicked)
}

pub(crate) struct Caught<'a, S: Simulation> {
    pub(crate) referee: &'a mut dyn Referee<S>,
    pub(crate) panics: &'a mut Panics,
}

impl<S: Simulation> Caught<'_, S> {
    pub(crate) fn admit(
        &mut self,
        context: &HookContext<'_, S>,
        by: PlayerId,
        command: &S::Command,
        claimed: bool,
    ) -> Result<(), CommandRefusal> {
        let referee = &mut *self.referee;
        let admission = self.panics.catch(context.tick(), Trouble::Referee, || {
            referee.admit(context, by, command, claimed)
        });
        admission.map_or(Err(CommandRefusal::Fault), Admission::decided)
    }

    pub(crate) fn admit_request(
        &mut self,
        context: &HookContext<'_, S>,
        by: PlayerId,
        request: MatchRequest,
    ) -> Result<(), CommandRefusal> {
        let referee = &mut *self.referee;
        self.panics
            .catch(context.tick(), Trouble::Referee, || {
                referee.admit_request(context, by, request)
            })
            .map_or(Err(CommandRefusal::Fault), Admission::decided)
    }

    pub(crate) fn admit_answer(
        &mut self,
        context: &HookContext<'_, S>,
        by: PlayerId,
        key: Key,
        query: &S::Query,
        outcome: &S::Outcome,
    ) -> bool {
        let referee = &mut *self.referee;
        self.panics
            .catch(context.tick(), Trouble::Referee, || {
                referee.admit_answer(context, by, key, query, outcome)
            })
            .unwrap_or(false)
    }

    pub(crate) fn owed(
        &mut self,
        context: &HookContext<'_, S>,
        player: PlayerId,
        within: u32,
    ) -> Option<S::Command> {
        let referee = &mut *self.referee;
        self.panics
            .catch(context.tick(), Trouble::Referee, || {
                referee.owed(context, player, within)
            })
            .flatten()
    }

    /// The input assumed for a player, see [`World::repeated`](twinstep_core::World::repeated). It is neutral if the
    /// author's code panics or the input exceeds its bound.
    pub(crate) fn repeated(&mut self, context: &HookContext<'_, S>, player: PlayerId) -> S::Input {
        self.panics
            .catch(context.tick(), Trouble::Repeat, || {
                context.world.repeated(player)
            })
            .filter(|input| codec::size(input).is_ok_and(|bytes| bytes <= INPUT_BYTES_MAX))
            .map(Controls::or_neutral)
            .unwrap_or_default()
    }
}
