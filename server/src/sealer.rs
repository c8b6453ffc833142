//! Seals one tick: builds its frame from waiting inputs, orders and outcomes, in canonical order, within bounds.
//!
//! Law **Canonical**: roster by player, outcomes by (tick asked, key), claims by (player, tick), commands by (player,
//! sequence). This is the order within the frame, not a priority: entries that do not fit into a frame's bytes wait for
//! a later tick, and a different player is served first every three ticks ([`shares`]).
//!
//! [`Sealer`] keeps the state between ticks; [`Sealing`] is the frame under construction.

use std::time::Duration;

use twinstep_core::bounds::{
    ANNOUNCE_TICKS, FRAME_HEAD_BYTES, ORDER_BYTES_MAX, PLAYERS_MAX, ROSTER_CHANGE_BYTES,
    drop_after_ticks, ticks_in,
};
use twinstep_core::codec;
use twinstep_core::frame::{Answer, FrameData, Order, PlayerSet};
use twinstep_core::turn::Cadence;
use twinstep_core::world::Presence;
use twinstep_core::{PlayerId, RosterChange, Simulation, Tick};
use twinstep_protocol::packet::refusal::CommandRefusal;
use twinstep_protocol::packet::request::MatchRequest;
use twinstep_protocol::share::{CommandShare, order_bytes};

use crate::caught::{Caught, Panics};
use crate::config::MatchConfig;
use crate::hooks::{AdmitAll, HookContext, Referee};
use crate::mode::MatchMode;
use crate::queries::{OpenQueries, QueryId};
use crate::seat::{NotAdmitted, Outlook, Seat};

mod orders;
pub(crate) mod shares;

use shares::{Kind, Room, Served};

/// The minimum time between two returns of a dropped player. It limits the roster changes that a connection with
/// frequent gaps causes.
const RETURN_AFTER: Duration = Duration::from_secs(5);

pub(crate) struct Sealer<S: Simulation> {
    roster: [Option<RosterChange>; PLAYERS_MAX],
    referee: Box<dyn Referee<S>>,
    pub(crate) frame: FrameData<S>,
    /// Refused orders that were not reported to their owners yet.
    pub(crate) refused: Vec<NotAdmitted>,
    /// Players whose claim in the sealed frame came from the referee.
    pub(crate) owed: PlayerSet,
}

/// A frame under construction, with everything on which its contents depend.
struct Sealing<'a, S: Simulation> {
    frame: &'a mut FrameData<S>,
    context: &'a HookContext<'a, S>,
    seats: &'a mut [Seat<S>],
    referee: Caught<'a, S>,
    refused: &'a mut Vec<NotAdmitted>,
    owed: &'a mut PlayerSet,
    /// Orders up to this stamp may run: a tick, or a turn in lockstep.
    due: Tick,
    served: Served,
}

impl<S: Simulation> Sealer<S> {
    pub(crate) fn new(start: Tick) -> Self {
        Sealer {
            roster: Default::default(),
            referee: Box::new(AdmitAll),
            frame: FrameData::preallocated(start),
            refused: Vec::with_capacity(64),
            owed: PlayerSet::default(),
        }
    }

    pub(crate) fn set_referee(&mut self, referee: impl Referee<S>) {
        self.referee = Box::new(referee);
    }

    pub(crate) fn change(&mut self, player: PlayerId, change: RosterChange) {
        let pending = &mut self.roster[player.index()];
        *pending = match (*pending, change) {
            // The player joined and left between two ticks, so frames need neither change.
            (Some(RosterChange::Joined), RosterChange::Left) => None,
            // A leave overrides any other change.
            (Some(RosterChange::Left), _) => Some(RosterChange::Left),
            _ => Some(change),
        };
    }

    pub(crate) fn forget_changes(&mut self, is_theirs: impl Fn(PlayerId) -> bool) {
        for (n, pending) in (0..).zip(&mut self.roster) {
            pending.take_if(|_| is_theirs(PlayerId(n)));
        }
    }

    pub(crate) fn leaves(&self, player: PlayerId) -> bool {
        self.roster[player.index()] == Some(RosterChange::Left)
    }

    pub(crate) fn changes(&self, player: PlayerId) -> bool {
        self.roster[player.index()].is_some()
    }

    /// Builds the frame of the world's next tick. `cadence` is the new cadence, if it changes with this tick.
    pub(crate) fn seal(
        &mut self,
        cadence: Option<Cadence>,
        context: &HookContext<'_, S>,
        seats: &mut [Seat<S>],
        queries: &mut OpenQueries<S>,
        panics: &mut Panics,
        config: &MatchConfig,
    ) {
        self.frame.reset(context.tick());
        self.frame.cadence = cadence;
        self.take_roster(context);
        let (mode, turn) = (MatchMode::of(config), context.world.turn().number);
        let mut sealing = Sealing {
            frame: &mut self.frame,
            context,
            seats,
            referee: Caught {
                referee: &mut *self.referee,
                panics,
            },
            refused: &mut self.refused,
            owed: &mut self.owed,
            due: mode.stamp(context.tick(), turn),
            served: Served::default(),
        };
        sealing.take_inputs(|seat| mode.input(seat, context.tick(), turn));
        sealing.take_owed(config.claims);
        let mut room = sealing.room(queries);
        for kind in shares::turns(sealing.frame.tick) {
            match kind {
                Kind::Outcomes => queries.take(sealing.frame, context, &mut room),
                Kind::Claims => sealing.take_claims(&mut room),
                Kind::Commands => sealing.take_commands(&mut room),
            }
            room.release(kind);
        }
        sealing.forget_owed();
        sealing.shed();
    }

    fn take_roster(&mut self, context: &HookContext<'_, S>) {
        for (i, pending) in self.roster.iter_mut().enumerate() {
            let player = PlayerId(i as u8);
            let Some(change) = pending.take() else {
                continue;
            };
            let presence = context.world.presence(player);
            let fits = match change {
                RosterChange::Joined => presence == Presence::Absent,
                RosterChange::Dropped => presence == Presence::Present,
                RosterChange::Returned => presence == Presence::Dropped,
                RosterChange::Left => presence != Presence::Absent,
            };
            if fits {
                self.frame.roster.push((player, change));
            }
        }
    }

    /// Decides which commands may be announced, and at which tick each of them will run, given the space in frames.
    /// Commands that the referee refuses now are not announced. The referee is asked again when a command is sealed,
    /// and a panic is reported only then.
    pub(crate) fn review(&mut self, context: &HookContext<'_, S>, seats: &mut [Seat<S>]) {
        let mut referee = Caught {
            referee: &mut *self.referee,
            panics: &mut Panics::default(),
        };
        let end = context.tick() + ANNOUNCE_TICKS;
        for seat in seats {
            let (mut due, mut share) = (context.tick(), CommandShare::default());
            for held in &mut seat.commands {
                // Commands run in sequence, so a command stamped far ahead delays those after it.
                if held.stamp > due {
                    (due, share) = (held.stamp, CommandShare::default());
                }
                // Not asked again until the command is sealed.
                if held.outlook == Outlook::Refused {
                    continue;
                }
                held.outlook = Outlook::Unasked;
                if due >= end {
                    continue;
                }
                let Order {
                    player, command, ..
                } = &held.order;
                if referee.admit(context, *player, command, false).is_err() {
                    held.outlook = Outlook::Refused;
                    continue;
                }
                let bytes = order_bytes(command);
                if bytes > ORDER_BYTES_MAX {
                    // Large commands are not announced, and neither are the later ones, whose ticks depend on them.
                    due = end;
                    continue;
                }
                if !share.take(bytes) {
                    (due, share) = (due + 1, CommandShare::default());
                    share.take(bytes);
                }
                if due < end {
                    held.outlook = Outlook::Admitted(due);
                }
            }
        }
    }

    pub(crate) fn admits_request(
        &mut self,
        context: &HookContext<'_, S>,
        by: PlayerId,
        request: MatchRequest,
        panics: &mut Panics,
    ) -> Result<(), CommandRefusal> {
        let mut referee = Caught {
            referee: &mut *self.referee,
            panics,
        };
        referee.admit_request(context, by, request)
    }

    pub(crate) fn admits_answer(
        &mut self,
        context: &HookContext<'_, S>,
        by: PlayerId,
        answer: &Answer<S::Outcome>,
        panics: &mut Panics,
    ) -> bool {
        let query = QueryId::answered_by(answer).find(context);
        let (Some(open), Some(outcome)) = (query, &answer.outcome) else {
            return false;
        };
        let mut referee = Caught {
            referee: &mut *self.referee,
            panics,
        };
        referee.admit_answer(context, by, answer.key, &open.query, outcome)
    }

    /// Refuses the orders of a sealed frame that were left out of the stepped frame.
    pub(crate) fn refuse_missing(&mut self, sealed: &FrameData<S>, seats: &mut [Seat<S>]) {
        let is_out = |stepped: &[Order<S::Command>], order: &Order<S::Command>| {
            stepped.iter().all(|left| left.player != order.player)
        };
        let refused = |order: &Order<S::Command>, claim| NotAdmitted {
            player: order.player,
            claim,
            seq: order.seq,
            why: CommandRefusal::Fault,
        };
        for order in &sealed.claims {
            if is_out(&self.frame.claims, order) {
                seats[order.player.index()].stats.claims -= 1;
                self.refused.push(refused(order, true));
            }
        }
        for order in &sealed.commands {
            if is_out(&self.frame.commands, order) {
                let stats = &mut seats[order.player.index()].stats;
                stats.accepted -= 1;
                stats.refused += 1;
                self.refused.push(refused(order, false));
            }
        }
    }
}

impl<S: Simulation> Sealing<'_, S> {
    fn room(&self, queries: &OpenQueries<S>) -> Room {
        let inputs = self.frame.inputs.iter();
        let inputs: usize = inputs
            .map(|(_, input)| codec::size(input).unwrap_or(0))
            .sum();
        let taken = FRAME_HEAD_BYTES + ROSTER_CHANGE_BYTES * self.frame.roster.len() + inputs;
        Room::new(taken, |kind| match kind {
            Kind::Outcomes => queries.has_due_answer(self.context),
            Kind::Claims => self.seats.iter().any(|s| s.claims_by(self.frame.tick)),
            Kind::Commands => self.seats.iter().any(|s| s.commands_by(self.due)),
        })
    }

    fn presence(&self, player: PlayerId) -> Presence {
        let mut changes = self.frame.roster.iter();
        match changes
            .find(|(p, _)| *p == player)
            .map(|(_, change)| *change)
        {
            None => self.context.world.presence(player),
            Some(RosterChange::Joined | RosterChange::Returned) => Presence::Present,
            Some(RosterChange::Dropped) => Presence::Dropped,
            Some(RosterChange::Left) => Presence::Absent,
        }
    }

    fn is_seated(&self, player: PlayerId) -> bool {
        self.presence(player) != Presence::Absent
    }

    /// Sets each present player's input: its own, or the fill.
    fn take_inputs(&mut self, given_by: impl Fn(&Seat<S>) -> Option<&S::Input>) {
        let tick = self.frame.tick;
        for i in 0..self.seats.len() {
            let player = PlayerId(i as u8);
            if self.presence(player) != Presence::Present {
                continue;
            }
            let seat = &mut self.seats[i];
            let given = given_by(seat).cloned();
            if given.is_some() {
                seat.given = seat.given.max(tick);
            }
            self.frame.filled.set(player, given.is_none());
            // A player that has just joined or returned has no input to repeat.
            let fresh = self.frame.roster.iter().any(|(p, _)| *p == player);
            let input = given.unwrap_or_else(|| match fresh {
                true => S::Input::default(),
                false => self.referee.repeated(self.context, player),
            });
            self.frame.inputs.set(player, Some(input));
        }
    }
}

/// The roster change if a player has fallen silent, or sends inputs again. `next` is the next tick to be sealed;
/// `is_active` is `true` if the player sends inputs.
pub(crate) fn silence<S: Simulation>(
    presence: Presence,
    seat: &Seat<S>,
    next: Tick,
    tick: Duration,
    is_active: bool,
) -> Option<RosterChange> {
    let settled = seat
        .returned
        .is_none_or(|at| next - at >= ticks_in(RETURN_AFTER, tick));
    match presence {
        Presence::Present if next - seat.last_active() > drop_after_ticks(tick) => {
            Some(RosterChange::Dropped)
        }
        Presence::Dropped if is_active && settled => Some(RosterChange::Returned),
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use twinstep_core::testing::doc::Counter;

    /// Finding A2: even a first return was delayed by five seconds.
    #[test]
    fn a_dropped_player_returns_immediately_and_then_every_five_seconds_at_any_tick_length() {
        let mut seat = Seat::<Counter>::new();
        for (tick_us, ticks) in [(5_000, 1_000), (16_667, 300), (100_000, 50)] {
            let tick = Duration::from_micros(tick_us);
            let back = |seat: &Seat<Counter>, next: Tick| {
                silence(Presence::Dropped, seat, next, tick, true)
            };
            seat.returned = None;
            let returned = Some(RosterChange::Returned);
            assert_eq!(back(&seat, Tick(1)), returned, "{tick:?}");
            seat.returned = Some(Tick(1_000));
            assert_eq!(back(&seat, Tick(1_000) + (ticks - 1)), None, "{tick:?}");
            assert_eq!(back(&seat, Tick(1_000) + ticks), returned, "{tick:?}");
        }
    }
}
