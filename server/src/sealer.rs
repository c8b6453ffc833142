//! Seals one tick: builds its frame from what is held, in canonical order, within its bounds.
//!
//! Law **Canonical**: roster by player, outcomes by (tick asked, key), claims by (player, tick), commands
//! by (player, sequence). What does not fit into a frame's bytes waits for the next tick, in that order.

use std::time::Duration;

use twinstep_core::bounds::{
    COMMANDS_PER_TICK, FRAME_BYTES_MAX, OUTCOME_BYTES_MAX, PLAYERS_MAX, answer_ticks,
    drop_after_ticks, ticks_in,
};
use twinstep_core::codec;
use twinstep_core::frame::{Answer, FrameData, Order};
use twinstep_core::world::Presence;
use twinstep_core::{Key, PlayerId, RosterChange, Simulation, Tick};

use crate::config::{Claims, MatchConfig};
use crate::hooks::{Look, Referee};
use crate::outbox::JobId;
use crate::seat::Seat;

/// A player who was dropped returns at once, but at most once in so long: who falls silent again and again is not put
/// in and out by each gap of its line.
const RETURN_AFTER: Duration = Duration::from_secs(5);
/// Bytes of a frame that are neither an input nor an entry of a list: masks, flags, counts.
const FRAME_HEAD_BYTES: usize = 24;
/// Bytes of an entry beside its value: the player and sequence, or the tick asked.
const ENTRY_HEAD_BYTES: usize = 8;

/// An order that was not admitted.
pub(crate) struct Refused {
    pub(crate) player: PlayerId,
    pub(crate) claim: bool,
    pub(crate) seq: u32,
    /// Whether the step failed with it in its frame.
    pub(crate) poison: bool,
}

/// Builds frames.
pub(crate) struct Sealer<S: Simulation> {
    roster: [Option<RosterChange>; PLAYERS_MAX],
    pub(crate) refused: Vec<Refused>,
    owed: Vec<Order<S::Command>>,
}

impl<S: Simulation> Default for Sealer<S> {
    fn default() -> Self {
        Sealer {
            roster: Default::default(),
            refused: Vec::with_capacity(64),
            owed: Vec::with_capacity(16),
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
            Presence::Present if next - seat.given > drop_after_ticks(tick) => {
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
        look: &Look<'_, S>,
        seats: &mut [Seat<S>],
        queries: &mut Queries<S>,
        referee: &mut dyn Referee<S>,
        config: &MatchConfig,
    ) {
        frame.reset(look.tick());
        self.take_roster(frame, look);
        let turn = look.world.turn().number;
        let due = match config.command_delay {
            0 => frame.tick,
            _ => Tick(turn),
        };
        take_inputs(frame, look, seats, |seat| match config.command_delay {
            0 => seat.input(look.tick()),
            _ => seat.batch(turn),
        });
        let inputs: usize = frame
            .inputs
            .iter()
            .map(|(_, input)| codec::size(input).unwrap_or(0))
            .sum();
        let mut room = (FRAME_BYTES_MAX - FRAME_HEAD_BYTES).saturating_sub(inputs);
        queries.take(frame, look, &mut room);
        self.take_claims(frame, look, seats, referee, config, &mut room);
        self.take_commands(frame, look, seats, referee, due, &mut room);
    }

    fn take_roster(&mut self, frame: &mut FrameData<S>, look: &Look<'_, S>) {
        for (i, pending) in self.roster.iter_mut().enumerate() {
            let player = PlayerId(i as u8);
            let Some(change) = pending.take() else {
                continue;
            };
            let presence = look.world.presence(player);
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

    fn take_claims(
        &mut self,
        frame: &mut FrameData<S>,
        look: &Look<'_, S>,
        seats: &mut [Seat<S>],
        referee: &mut dyn Referee<S>,
        config: &MatchConfig,
        room: &mut usize,
    ) {
        for (i, seat) in seats.iter_mut().enumerate() {
            let player = PlayerId(i as u8);
            while let Some(held) = seat.claims.pop_front_if(|held| held.stamp <= frame.tick) {
                let refused = Refused {
                    player,
                    claim: true,
                    poison: false,
                    seq: held.order.seq,
                };
                if !is_seated(frame, look, player)
                    || !referee.admit(look, player, &held.order.command, true)
                {
                    self.refused.push(refused);
                    continue;
                }
                if !fits(room, &held.order.command) {
                    seat.claims.push_front(held);
                } else {
                    seat.stats.claims += 1;
                    frame.claims.push(held.order);
                }
                break;
            }
        }
        let within = match config.claims {
            Claims::OwnerOnly => return,
            Claims::OwnerWithin(within) => within,
        };
        self.owed.clear();
        for (player, _) in frame
            .inputs
            .iter()
            .filter(|(p, _)| frame.claims.iter().all(|c| c.player != *p))
        {
            if let Some(command) = referee.owed(look, player, within)
                && fits(room, &command)
            {
                self.owed.push(Order {
                    player,
                    seq: frame.tick.0,
                    command,
                });
            }
        }
        for order in &self.owed {
            seats[order.player.index()].stats.claims += 1;
        }
        frame.claims.append(&mut self.owed);
        frame.claims.sort_unstable_by_key(|c| (c.player, c.seq));
    }

    fn take_commands(
        &mut self,
        frame: &mut FrameData<S>,
        look: &Look<'_, S>,
        seats: &mut [Seat<S>],
        referee: &mut dyn Referee<S>,
        due: Tick,
        room: &mut usize,
    ) {
        for (i, seat) in seats.iter_mut().enumerate() {
            let player = PlayerId(i as u8);
            let mut taken = 0;
            while taken < COMMANDS_PER_TICK {
                let Some(held) = seat.commands.pop_front_if(|held| held.stamp <= due) else {
                    break;
                };
                let refused = Refused {
                    player,
                    claim: false,
                    poison: false,
                    seq: held.order.seq,
                };
                if !is_seated(frame, look, player)
                    || !referee.admit(look, player, &held.order.command, false)
                {
                    seat.stats.refused += 1;
                    self.refused.push(refused);
                } else if !fits(room, &held.order.command) {
                    seat.commands.push_front(held);
                    break;
                } else {
                    seat.stats.accepted += 1;
                    frame.commands.push(held.order);
                    taken += 1;
                }
            }
        }
    }

    /// Takes commands and claims out of a frame whose step failed; they are refused.
    pub(crate) fn strip(&mut self, frame: &mut FrameData<S>, seats: &mut [Seat<S>]) {
        for order in frame.claims.drain(..) {
            seats[order.player.index()].stats.claims -= 1;
            self.refused.push(Refused {
                player: order.player,
                claim: true,
                poison: true,
                seq: order.seq,
            });
        }
        for order in frame.commands.drain(..) {
            let stats = &mut seats[order.player.index()].stats;
            stats.accepted -= 1;
            stats.refused += 1;
            self.refused.push(Refused {
                player: order.player,
                claim: false,
                poison: true,
                seq: order.seq,
            });
        }
    }
}

fn presence_after<S: Simulation>(
    frame: &FrameData<S>,
    look: &Look<'_, S>,
    player: PlayerId,
) -> Presence {
    match frame
        .roster
        .iter()
        .find(|(p, _)| *p == player)
        .map(|(_, change)| *change)
    {
        None => look.world.presence(player),
        Some(RosterChange::Joined | RosterChange::Returned) => Presence::Present,
        Some(RosterChange::Dropped) => Presence::Dropped,
        Some(RosterChange::Left) => Presence::Absent,
    }
}

fn is_seated<S: Simulation>(frame: &FrameData<S>, look: &Look<'_, S>, player: PlayerId) -> bool {
    presence_after(frame, look, player) != Presence::Absent
}

/// Each present player's input: its own, or what it is taken to hold.
fn take_inputs<S: Simulation>(
    frame: &mut FrameData<S>,
    look: &Look<'_, S>,
    seats: &mut [Seat<S>],
    given_by: impl Fn(&Seat<S>) -> Option<&S::Input>,
) {
    let tick = frame.tick;
    for (i, seat) in seats.iter_mut().enumerate() {
        let player = PlayerId(i as u8);
        if presence_after(frame, look, player) != Presence::Present {
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
                look.world.repeated(player)
            }
        });
        frame.filled.set(player, given.is_none());
        frame.inputs.set(player, Some(input));
    }
}

/// Takes the bytes of an entry from what is left of the frame, if they fit.
fn fits<T: serde::Serialize>(room: &mut usize, value: &T) -> bool {
    let bytes = codec::size(value).map_or(usize::MAX, |bytes| bytes + ENTRY_HEAD_BYTES);
    let fits = bytes <= *room;
    if fits {
        *room -= bytes;
    }
    fits
}

/// Answers that wait for the next frame, and jobs that will give some.
pub(crate) struct Queries<S: Simulation> {
    ready: Vec<Answer<S::Outcome>>,
    jobs: Vec<(JobId, Tick, Key)>,
    next_job: u64,
}

impl<S: Simulation> Default for Queries<S> {
    fn default() -> Self {
        Queries {
            ready: Vec::with_capacity(64),
            jobs: Vec::with_capacity(64),
            next_job: 0,
        }
    }
}

impl<S: Simulation> Queries<S> {
    /// Notes an answer. An outcome over its bound is none.
    pub(crate) fn answer(&mut self, asked: Tick, key: Key, outcome: Option<S::Outcome>) {
        let outcome = outcome
            .filter(|outcome| codec::size(outcome).is_ok_and(|bytes| bytes <= OUTCOME_BYTES_MAX));
        self.ready.push(Answer {
            asked,
            key,
            outcome,
        });
    }

    /// Notes that a job will answer.
    pub(crate) fn defer(&mut self, asked: Tick, key: Key) -> JobId {
        let id = JobId(self.next_job);
        self.next_job += 1;
        self.jobs.push((id, asked, key));
        id
    }

    /// Notes what a job gave, if its query still waits.
    pub(crate) fn complete(&mut self, id: JobId, outcome: Option<S::Outcome>) {
        if let Some(at) = self.jobs.iter().position(|(job, ..)| *job == id) {
            let (_, asked, key) = self.jobs.swap_remove(at);
            self.answer(asked, key, outcome);
        }
    }

    /// Puts what is answered, and what waited too long, into the frame.
    fn take(&mut self, frame: &mut FrameData<S>, look: &Look<'_, S>, room: &mut usize) {
        let patience = answer_ticks(look.world.turn().cadence.tick());
        for open in look.world.open_queries() {
            let ready = self
                .ready
                .iter()
                .position(|a| (a.asked, a.key) == (open.asked, open.key));
            let late = frame.tick - open.asked >= patience;
            let answer = match ready {
                Some(at) if fits(room, &(self.ready[at].key, &self.ready[at].outcome)) => {
                    self.ready.swap_remove(at)
                }
                None if late && fits(room, &open.key) => {
                    self.jobs
                        .retain(|(_, asked, key)| (*asked, *key) != (open.asked, open.key));
                    Answer {
                        asked: open.asked,
                        key: open.key,
                        outcome: None,
                    }
                }
                // Not even a frame without other answers has room for it: then it stays without one.
                Some(at) if frame.outcomes.is_empty() && fits(room, &open.key) => {
                    let answer = self.ready.swap_remove(at);
                    Answer {
                        outcome: None,
                        ..answer
                    }
                }
                // It does not fit: this one and all behind it wait for the next tick.
                Some(_) => break,
                None => continue,
            };
            frame.outcomes.push(answer);
        }
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
