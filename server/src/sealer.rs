//! Seals one tick: builds its frame from what is held, in canonical order, within its bounds.
//!
//! Law **Canonical**: roster by player, outcomes by (tick asked, key), claims by (player, tick), commands
//! by (player, sequence). That is the order in which they stand, and no rank: what does not fit into a frame's bytes
//! waits for a later tick, and who is served first changes from tick to tick ([`shares`]).

use std::marker::PhantomData;
use std::time::Duration;

use twinstep_core::bounds::{
    FRAME_HEAD_BYTES, PLAYERS_MAX, ROSTER_CHANGE_BYTES, drop_after_ticks, ticks_in,
};
use twinstep_core::codec;
use twinstep_core::frame::{FrameData, PlayerSet};
use twinstep_core::world::Presence;
use twinstep_core::{PlayerId, RosterChange, Simulation, Tick};
use twinstep_protocol::packet::refusal::RefusalReason;

use crate::caught::Caught;
use crate::config::MatchConfig;
use crate::hooks::HookContext;
use crate::seat::{NotAdmitted, Seat};

mod orders;
mod queries;
mod shares;

pub(crate) use queries::Queries;
use shares::{Kind, Room, Served};

/// A player who was dropped returns at once, but at most once in so long: who falls silent again and again is not put
/// in and out by each gap of its line.
const RETURN_AFTER: Duration = Duration::from_secs(5);

/// Builds frames.
pub(crate) struct Sealer<S: Simulation> {
    roster: [Option<RosterChange>; PLAYERS_MAX],
    pub(crate) refused: Vec<NotAdmitted>,
    /// Players whose claim in the sealed frame is the referee's word, not their own.
    pub(crate) owed: PlayerSet,
    of: PhantomData<fn() -> S>,
}

impl<S: Simulation> Default for Sealer<S> {
    fn default() -> Self {
        Sealer {
            roster: Default::default(),
            refused: Vec::with_capacity(64),
            owed: PlayerSet::default(),
            of: PhantomData,
        }
    }
}

impl<S: Simulation> Sealer<S> {
    /// A change of the roster, to be sealed with the next tick.
    pub(crate) fn change(&mut self, player: PlayerId, change: RosterChange) {
        let pending = &mut self.roster[player.index()];
        *pending = match (*pending, change) {
            // Came and went between two ticks: nobody needs to hear of it.
            (Some(RosterChange::Joined), RosterChange::Left) => None,
            // Whoever leaves is gone, whatever else was to be said.
            (Some(RosterChange::Left), _) => Some(RosterChange::Left),
            _ => Some(change),
        };
    }

    /// Whether a player is about to leave.
    pub(crate) fn leaves(&self, player: PlayerId) -> bool {
        self.roster[player.index()] == Some(RosterChange::Left)
    }

    /// Whether a change of a player waits to be sealed.
    pub(crate) fn changes(&self, player: PlayerId) -> bool {
        self.roster[player.index()].is_some()
    }

    /// What silence, or its end, does to a player.
    pub(crate) fn silence(
        &self,
        presence: Presence,
        seat: &Seat<S>,
        next: Tick,
        tick: Duration,
        speaks: bool,
    ) -> Option<RosterChange> {
        let settled = seat
            .returned
            .is_none_or(|at| next - at >= ticks_in(RETURN_AFTER, tick));
        match presence {
            Presence::Present if next - seat.heard() > drop_after_ticks(tick) => {
                Some(RosterChange::Dropped)
            }
            Presence::Dropped if speaks && settled => Some(RosterChange::Returned),
            _ => None,
        }
    }

    /// Builds the frame of the world's next tick from what is held.
    pub(crate) fn seal(
        &mut self,
        frame: &mut FrameData<S>,
        context: &HookContext<'_, S>,
        seats: &mut [Seat<S>],
        queries: &mut Queries<S>,
        referee: &mut Caught<'_, S>,
        config: &MatchConfig,
    ) {
        frame.reset(context.tick());
        self.take_roster(frame, context);
        let turn = context.world.turn().number;
        let due = match config.command_delay {
            0 => frame.tick,
            _ => Tick(turn),
        };
        take_inputs(frame, context, seats, referee, |seat| {
            match config.command_delay {
                0 => seat.input(context.tick()),
                _ => seat.batch(turn),
            }
        });
        self.take_owed(frame, context, seats, referee, config);
        let inputs: usize = frame
            .inputs
            .iter()
            .map(|(_, input)| codec::size(input).unwrap_or(0))
            .sum();
        let taken = FRAME_HEAD_BYTES + ROSTER_CHANGE_BYTES * frame.roster.len() + inputs;
        let waits = |kind| match kind {
            Kind::Outcomes => queries.waits(context),
            Kind::Claims => seats.iter().any(|seat| seat.claims_by(frame.tick)),
            Kind::Commands => seats.iter().any(|seat| seat.commands_by(due)),
        };
        let mut room = Room::new(taken, waits);
        let mut served = Served::default();
        for kind in shares::turns(frame.tick) {
            let limits = (&mut room, &mut served);
            match kind {
                Kind::Outcomes => queries.take(frame, context, limits.0),
                Kind::Claims => self.take_claims(frame, context, seats, referee, limits),
                Kind::Commands => self.take_commands(frame, context, seats, referee, due, limits),
            }
            room.release(kind);
        }
        self.forget_owed(frame, seats);
        self.shed(seats, due);
    }

    fn take_roster(&mut self, frame: &mut FrameData<S>, context: &HookContext<'_, S>) {
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
                frame.roster.push((player, change));
            }
        }
    }

    /// Refuses the orders of a sealed frame that do not stand in the one that was stepped.
    pub(crate) fn refuse_missing(
        &mut self,
        sealed: &FrameData<S>,
        stepped: &FrameData<S>,
        seats: &mut [Seat<S>],
    ) {
        for order in &sealed.claims {
            if stepped
                .claims
                .iter()
                .all(|left| left.player != order.player)
            {
                seats[order.player.index()].stats.claims -= 1;
                self.refused.push(NotAdmitted {
                    player: order.player,
                    claim: true,
                    seq: order.seq,
                    why: RefusalReason::Fault,
                });
            }
        }
        for order in &sealed.commands {
            if stepped
                .commands
                .iter()
                .all(|left| left.player != order.player)
            {
                let stats = &mut seats[order.player.index()].stats;
                stats.accepted -= 1;
                stats.refused += 1;
                self.refused.push(NotAdmitted {
                    player: order.player,
                    claim: false,
                    seq: order.seq,
                    why: RefusalReason::Fault,
                });
            }
        }
    }
}

fn presence_after<S: Simulation>(
    frame: &FrameData<S>,
    context: &HookContext<'_, S>,
    player: PlayerId,
) -> Presence {
    match frame
        .roster
        .iter()
        .find(|(p, _)| *p == player)
        .map(|(_, change)| *change)
    {
        None => context.world.presence(player),
        Some(RosterChange::Joined | RosterChange::Returned) => Presence::Present,
        Some(RosterChange::Dropped) => Presence::Dropped,
        Some(RosterChange::Left) => Presence::Absent,
    }
}

fn is_seated<S: Simulation>(
    frame: &FrameData<S>,
    context: &HookContext<'_, S>,
    player: PlayerId,
) -> bool {
    presence_after(frame, context, player) != Presence::Absent
}

/// Each present player's input: its own, or what it is taken to hold.
fn take_inputs<S: Simulation>(
    frame: &mut FrameData<S>,
    context: &HookContext<'_, S>,
    seats: &mut [Seat<S>],
    hooks: &mut Caught<'_, S>,
    given_by: impl Fn(&Seat<S>) -> Option<&S::Input>,
) {
    let tick = frame.tick;
    for (i, seat) in seats.iter_mut().enumerate() {
        let player = PlayerId(i as u8);
        if presence_after(frame, context, player) != Presence::Present {
            continue;
        }
        let given = given_by(seat).cloned();
        if given.is_some() {
            seat.given = seat.given.max(tick);
        }
        let fresh = frame.roster.iter().any(|(p, _)| *p == player);
        let input = given.clone().unwrap_or_else(|| {
            if fresh {
                S::Input::default()
            } else {
                hooks.repeated(context, player)
            }
        });
        frame.filled.set(player, given.is_none());
        frame.inputs.set(player, Some(input));
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use twinstep_core::testing::doc::Counter;

    /// Finding A2: a first return was kept waiting for five seconds too.
    #[test]
    fn who_was_dropped_returns_at_once_and_then_every_five_seconds_whatever_a_tick_lasts() {
        let mut seat = Seat::<Counter>::new();
        for (tick_us, ticks) in [(5_000, 1_000), (16_667, 300), (100_000, 50)] {
            let tick = Duration::from_micros(tick_us);
            let back = |seat: &Seat<Counter>, next: Tick| {
                Sealer::default().silence(Presence::Dropped, seat, next, tick, true)
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
