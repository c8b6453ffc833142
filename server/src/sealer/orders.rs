//! Commands and claims of a frame: everybody's in turns, as far as there is room.

use twinstep_core::bounds::{COMMANDS_PER_TICK, PLAYERS_MAX, WAITING_BYTES_MAX};
use twinstep_core::frame::{FrameData, Order};
use twinstep_core::{PlayerId, Simulation, Tick};
use twinstep_protocol::packet::refusal::RefusalReason;
use twinstep_protocol::share::{CommandShare, order_bytes};

use super::shares::{Kind, Room, Served, in_turn};
use super::{Sealer, is_seated};
use crate::caught::Caught;
use crate::config::{Claims, MatchConfig};
use crate::hooks::HookContext;
use crate::seat::{Held, NotAdmitted, Seat};

/// What a player's next order came to.
enum Next {
    /// It stands in the frame.
    Sealed,
    /// It was refused: the one behind it is the next.
    Refused,
    /// None is due, or it waits for room.
    Waits,
}

impl<S: Simulation> Sealer<S> {
    /// What a player's client should have claimed by now, as the referee says: from now on it waits as a claim does.
    pub(super) fn take_owed(
        &mut self,
        frame: &FrameData<S>,
        context: &HookContext<'_, S>,
        seats: &mut [Seat<S>],
        referee: &mut Caught<'_, S>,
        config: &MatchConfig,
    ) {
        self.owed = Default::default();
        let Claims::OwnerWithin(within) = config.claims else {
            return;
        };
        for (player, _) in frame.inputs.iter() {
            let seat = &mut seats[player.index()];
            let claims = seat.claims.front();
            if claims.is_some_and(|held| held.stamp <= frame.tick) {
                continue;
            }
            if let Some(command) = referee.owed(context, player, within)
                && seat.is_sealable(&command)
            {
                self.owed.set(player, true);
                let order = Order {
                    player,
                    seq: frame.tick.0,
                    command,
                };
                seat.claims.push_front(Held::new(frame.tick, order));
            }
        }
    }

    /// What the referee found owed and no frame had room for is asked again at the next tick.
    pub(super) fn forget_owed(&mut self, frame: &FrameData<S>, seats: &mut [Seat<S>]) {
        let waiting: Vec<PlayerId> = self
            .owed
            .iter()
            .filter(|player| frame.claims.iter().all(|c| c.player != *player))
            .collect();
        for player in waiting {
            seats[player.index()].claims.pop_front();
            self.owed.set(player, false);
        }
    }

    pub(super) fn take_claims(
        &mut self,
        frame: &mut FrameData<S>,
        context: &HookContext<'_, S>,
        seats: &mut [Seat<S>],
        referee: &mut Caught<'_, S>,
        (room, served): (&mut Room, &mut Served),
    ) {
        for player in in_turn(frame.tick, seats.len()) {
            let seat = &mut seats[player.index()];
            while !served.claimed[player.index()]
                && let Some(held) = seat.claims.front()
                && held.stamp <= frame.tick
            {
                let bytes = order_bytes(&held.order.command);
                let seated = is_seated(frame, context, player);
                if seated && !room.has(Kind::Claims, bytes) {
                    break;
                }
                // The referee said itself what is owed.
                let admitted = match seated {
                    _ if self.owed.contains(player) => Ok(()),
                    true => referee.admit(context, player, &held.order.command, true),
                    false => Err(RefusalReason::TooLate),
                };
                let Some(held) = seat.claims.pop_front() else {
                    break;
                };
                if let Err(why) = admitted {
                    self.refused.push(NotAdmitted {
                        player,
                        claim: true,
                        seq: held.order.seq,
                        why,
                    });
                } else {
                    room.take(Kind::Claims, bytes);
                    served.claimed[player.index()] = true;
                    seat.stats.claims += 1;
                    frame.claims.push(held.order);
                }
            }
        }
        frame.claims.sort_unstable_by_key(|c| (c.player, c.seq));
    }

    pub(super) fn take_commands(
        &mut self,
        frame: &mut FrameData<S>,
        context: &HookContext<'_, S>,
        seats: &mut [Seat<S>],
        referee: &mut Caught<'_, S>,
        due: Tick,
        (room, served): (&mut Room, &mut Served),
    ) {
        for _ in 0..COMMANDS_PER_TICK {
            for player in in_turn(frame.tick, seats.len()) {
                let seat = &mut seats[player.index()];
                let share = &mut served.commands[player.index()];
                while let Next::Refused =
                    self.take_command(frame, context, seat, player, referee, due, (room, share))
                {
                }
            }
        }
        frame.commands.sort_unstable_by_key(|c| (c.player, c.seq));
    }

    #[expect(
        clippy::too_many_arguments,
        reason = "all that decides about one command"
    )]
    fn take_command(
        &mut self,
        frame: &mut FrameData<S>,
        context: &HookContext<'_, S>,
        seat: &mut Seat<S>,
        player: PlayerId,
        referee: &mut Caught<'_, S>,
        due: Tick,
        (room, share): (&mut Room, &mut CommandShare),
    ) -> Next {
        let Some(held) = seat.commands.front().filter(|held| held.stamp <= due) else {
            return Next::Waits;
        };
        let bytes = order_bytes(&held.order.command);
        let seated = is_seated(frame, context, player);
        if seated && !(share.has_room(bytes) && room.has(Kind::Commands, bytes)) {
            return Next::Waits;
        }
        let admitted = match seated {
            true => referee.admit(context, player, &held.order.command, false),
            false => Err(RefusalReason::TooLate),
        };
        let Some(held) = seat.commands.pop_front() else {
            return Next::Waits;
        };
        if let Err(why) = admitted {
            seat.stats.refused += 1;
            self.refused.push(NotAdmitted {
                player,
                claim: false,
                seq: held.order.seq,
                why,
            });
            return Next::Refused;
        }
        share.take(bytes);
        room.take(Kind::Commands, bytes);
        seat.stats.accepted += 1;
        frame.commands.push(held.order);
        Next::Sealed
    }

    /// Refuses what waits for room beyond all bounds: the newest of whoever has most of it.
    pub(super) fn shed(&mut self, seats: &mut [Seat<S>], due: Tick) {
        let mut waiting = [0usize; PLAYERS_MAX];
        for (waits, seat) in waiting.iter_mut().zip(seats.iter()) {
            let due = seat.commands.iter().take_while(|held| held.stamp <= due);
            *waits = due.map(|held| order_bytes(&held.order.command)).sum();
        }
        while waiting.iter().sum::<usize>() > WAITING_BYTES_MAX {
            let most = (0..seats.len()).max_by_key(|&i| waiting[i]);
            let Some((i, seat)) = most.and_then(|i| Some((i, seats.get_mut(i)?))) else {
                return;
            };
            let at = seat
                .commands
                .iter()
                .take_while(|held| held.stamp <= due)
                .count();
            let Some(held) = at.checked_sub(1).and_then(|at| seat.commands.remove(at)) else {
                return;
            };
            waiting[i] -= order_bytes(&held.order.command).min(waiting[i]);
            seat.stats.refused += 1;
            self.refused.push(NotAdmitted {
                player: held.order.player,
                claim: false,
                seq: held.order.seq,
                why: RefusalReason::Bounds,
            });
        }
    }
}
