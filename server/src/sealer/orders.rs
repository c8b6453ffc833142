//! The commands and claims of a frame. Players take turns while there is space.

use serde::Serialize;
use twinstep_core::bounds::{
    COMMAND_INLINE_MAX, COMMANDS_PER_TICK, FRAGMENT_BYTES, FRAGMENT_HEAD_BYTES, ORDER_BYTES_MAX,
    PLAYERS_MAX, WAITING_BYTES_MAX,
};
use twinstep_core::codec;
use twinstep_core::frame::{LargeEntry, Order};
use twinstep_core::{PlayerId, Simulation};
use twinstep_protocol::packet::refusal::CommandRefusal;
use twinstep_protocol::share::order_bytes;

use super::Sealing;
use super::shares::{Kind, Room, in_turn};
use crate::config::Claims;
use crate::seat::{NotAdmitted, PendingOrder};

enum Next {
    Sealed,
    Refused,
    Waits,
}

impl<S: Simulation> Sealing<'_, S> {
    /// Queues the claims that the referee finds missing. They compete for space like other claims, in this frame only.
    pub(super) fn take_owed(&mut self, claims: Claims) {
        *self.owed = Default::default();
        let Claims::OwnerWithin(within) = claims else {
            return;
        };
        let tick = self.frame.tick;
        for (player, _) in self.frame.inputs.iter() {
            let seat = &mut self.seats[player.index()];
            if seat.claims_by(tick) {
                continue;
            }
            if let Some(command) = self.referee.owed(self.context, player, within)
                && seat.is_sealable(&command, COMMAND_INLINE_MAX)
            {
                self.owed.set(player, true);
                let order = Order {
                    player,
                    seq: tick.0,
                    command,
                };
                seat.claims.push_front(PendingOrder::new(tick, order));
            }
        }
    }

    /// Removes owed claims that did not fit into the frame. The referee is asked again at the next tick.
    pub(super) fn forget_owed(&mut self) {
        for player in self.owed.iter() {
            if self.frame.claims.iter().all(|c| c.player != player) {
                self.seats[player.index()].claims.pop_front();
                self.owed.set(player, false);
            }
        }
    }

    pub(super) fn take_claims(&mut self, room: &mut Room) {
        for player in in_turn(self.frame.tick, self.seats.len()) {
            if !self.seats[player.index()].claims_by(self.frame.tick) {
                continue;
            }
            let seated = self.is_seated(player);
            let seat = &mut self.seats[player.index()];
            while !self.served.claimed[player.index()]
                && let Some(held) = seat.claims.front()
                && held.stamp <= self.frame.tick
            {
                let bytes = order_bytes(&held.order.command);
                if seated && !room.has(Kind::Claims, bytes) {
                    break;
                }
                // The referee itself made the owed claim.
                let admitted = match seated {
                    _ if self.owed.contains(player) => Ok(()),
                    true => self
                        .referee
                        .admit(self.context, player, &held.order.command, true),
                    false => Err(CommandRefusal::TooLate),
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
                    self.served.claimed[player.index()] = true;
                    seat.stats.claims += 1;
                    self.frame.claims.push(held.order);
                }
            }
        }
        self.frame
            .claims
            .sort_unstable_by_key(|c| (c.player, c.seq));
    }

    pub(super) fn take_commands(&mut self, room: &mut Room) {
        for _ in 0..COMMANDS_PER_TICK {
            for player in in_turn(self.frame.tick, self.seats.len()) {
                while let Next::Refused = self.take_command(player, room) {}
            }
        }
        self.frame
            .commands
            .sort_unstable_by_key(|c| (c.player, c.seq));
    }

    fn take_command(&mut self, player: PlayerId, room: &mut Room) -> Next {
        if !self.seats[player.index()].commands_by(self.due) {
            return Next::Waits;
        }
        let seated = self.is_seated(player);
        let seat = &mut self.seats[player.index()];
        let share = &mut self.served.commands[player.index()];
        let Some(held) = seat.commands.front() else {
            return Next::Waits;
        };
        let bytes = order_bytes(&held.order.command);
        if bytes > ORDER_BYTES_MAX {
            return self.take_fragment(player, room);
        }
        if seated && !(share.has_room(bytes) && room.has(Kind::Commands, bytes)) {
            return Next::Waits;
        }
        let admitted = match seated {
            true => self
                .referee
                .admit(self.context, player, &held.order.command, false),
            false => Err(CommandRefusal::TooLate),
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
        self.frame.commands.push(held.order);
        Next::Sealed
    }

    /// Seals a fragment of the player's next command, which is large; with the last fragment, seals the command itself.
    /// The referee decides before the first fragment and before the last one.
    fn take_fragment(&mut self, player: PlayerId, room: &mut Room) -> Next {
        let seated = self.is_seated(player);
        let seat = &mut self.seats[player.index()];
        let share = &mut self.served.commands[player.index()];
        let Some(held) = seat.commands.front() else {
            return Next::Waits;
        };
        let (seq, command) = (held.order.seq, &held.order.command);
        let entry = LargeEntry::Command { player, seq };
        seat.scratch.clear();
        // The order was sealable when it arrived.
        if codec::append(command, &mut seat.scratch).is_err() {
            return Next::Waits;
        }
        let whole = &seat.scratch[..];
        let from = self.context.world.unfinished().collected(entry, whole);
        let here = self.frame.fragments.iter().find(|f| f.entry == entry);
        let (begins, left) = (here.is_none(), here.map(|f| f.left as usize));
        let left = left.unwrap_or(whole.len() - from);
        let head = if begins { FRAGMENT_HEAD_BYTES } else { 0 };
        let free = room.free(Kind::Commands).saturating_sub(head);
        let bytes = FRAGMENT_BYTES
            .min(left)
            .min(free)
            .min(share.fragment_room(begins));
        let ends = bytes == left;
        let admitted = match seated {
            true if bytes == 0 => return Next::Waits,
            true if ends || left == whole.len() => {
                self.referee.admit(self.context, player, command, false)
            }
            true => Ok(()),
            false => Err(CommandRefusal::TooLate),
        };
        if admitted.is_ok() {
            self.frame.add_fragment(entry, whole, from, bytes);
            share.take_fragment(begins, bytes, ends);
            room.take(Kind::Commands, head + bytes);
            if !ends {
                return Next::Sealed;
            }
        }
        let Some(held) = seat.commands.pop_front() else {
            return Next::Waits;
        };
        if let Err(why) = admitted {
            self.frame.fragments.retain(|f| f.entry != entry);
            seat.stats.refused += 1;
            self.refused.push(NotAdmitted {
                player,
                claim: false,
                seq,
                why,
            });
            return Next::Refused;
        }
        seat.stats.accepted += 1;
        self.frame.commands.push(held.order);
        Next::Sealed
    }

    /// Refuses waiting commands beyond the byte limit: each time the newest command of the player with the most waiting
    /// bytes.
    pub(super) fn shed(&mut self) {
        let (due, seats) = (self.due, &mut *self.seats);
        let mut waiting = [0usize; PLAYERS_MAX];
        for (waits, seat) in waiting.iter_mut().zip(seats.iter()) {
            let due = seat.commands.iter().take_while(|held| held.stamp <= due);
            *waits = due.map(waiting_bytes).sum();
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
            waiting[i] -= waiting_bytes(&held).min(waiting[i]);
            seat.stats.refused += 1;
            self.refused.push(NotAdmitted {
                player: held.order.player,
                claim: false,
                seq: held.order.seq,
                why: CommandRefusal::Bounds,
            });
        }
    }
}

/// The bytes of a waiting command that count towards the limit. The number of large commands is bounded separately.
fn waiting_bytes<C: Serialize>(held: &PendingOrder<C>) -> usize {
    order_bytes(&held.order.command).min(ORDER_BYTES_MAX)
}
