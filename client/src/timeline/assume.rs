//! What the next frame is assumed to be: own orders as they were given, announced ones as they were told, the rest
//! guessed.
//!
//! Invariant: what is known is never guessed, and own commands and claims stand in one frame of a line each.

use twinstep_core::bounds::PLAYERS_MAX;
use twinstep_core::frame::{Answer, FrameData};
use twinstep_core::world::World;
use twinstep_core::{Controls, PlayerId, Simulation, Tick};
use twinstep_protocol::share::{CommandShare, order_bytes};

use super::grounds::{Game, Grounds};

/// How far the own orders stand in a line's assumed frames: per player, the next sequence to assume.
#[derive(Clone, Copy, Default)]
pub(super) struct AssumedOrders {
    pub(super) commands: [u32; PLAYERS_MAX],
    pub(super) claims: [u32; PLAYERS_MAX],
}

/// Builds one assumed frame, right before its step, so that guesses see the state of that very tick.
pub(super) struct Assume<'a, S: Simulation> {
    pub(super) tick: Tick,
    pub(super) base: Tick,
    pub(super) grounds: &'a Grounds<S>,
    pub(super) game: &'a Game<S>,
}

impl<S: Simulation> Assume<'_, S> {
    /// A query of tick t is answered at t + 1, or deferred: then it is not speculated any more.
    pub(super) fn outcomes(&self, world: &World<S>, data: &mut FrameData<S>) {
        if self.grounds.is_bare(self.tick) {
            return;
        }
        for open in world
            .open_queries()
            .iter()
            .filter(|open| open.asked + 1 == self.tick)
        {
            let Game {
                speculate, rules, ..
            } = self.game;
            if let Some(outcome) = speculate.speculate(world.sim(), rules, open.key, &open.query) {
                data.outcomes.push(Answer {
                    asked: open.asked,
                    key: open.key,
                    outcome: Some(outcome),
                });
            }
        }
    }

    /// Own commands and claims: each once, as soon as its tick is reached, within the sealer's caps.
    ///
    /// A command behind one that ran already was refused, though the word of it is still on its way.
    pub(super) fn own(
        &self,
        world: &World<S>,
        assumed: &mut AssumedOrders,
        data: &mut FrameData<S>,
    ) {
        let orders = &self.grounds.orders;
        let none = orders.commands().next().is_none() && orders.claims().next().is_none();
        if none || self.grounds.is_bare(self.tick) {
            return;
        }
        let mut shares = [CommandShare::default(); PLAYERS_MAX];
        for pending in orders.commands().filter(|p| p.stamp <= self.tick) {
            let player = pending.order.player;
            let next = assumed.commands[player.index()].max(world.next_seq(player));
            if pending.order.seq >= next
                && shares[player.index()].take(order_bytes(&pending.order.command))
            {
                assumed.commands[player.index()] = pending.order.seq + 1;
                data.commands.push(pending.order.clone());
            }
        }
        for pending in orders.claims().filter(|p| p.stamp <= self.tick) {
            let player = pending.order.player;
            let taken = data.claims.iter().any(|c| c.player == player);
            if pending.order.seq >= assumed.claims[player.index()] && !taken {
                assumed.claims[player.index()] = pending.order.seq + 1;
                data.claims.push(pending.order.clone());
            }
        }
        let seated = world.seated();
        data.claims.retain(|claim| seated.contains(claim.player));
        data.claims.sort_unstable_by_key(|c| (c.player, c.seq));
    }

    /// Announced commands at their own tick, or in the line's first frame if that is past.
    pub(super) fn remote_commands(&self, world: &World<S>, data: &mut FrameData<S>) {
        let announced = &self.grounds.announced;
        if announced.commands().next().is_none() && data.commands.is_empty() {
            return;
        }
        let seated = world.seated();
        for (due, order) in announced.commands() {
            let now = due == self.tick || (due < self.base && self.tick == self.base);
            let player = order.player;
            if now
                && self.grounds.believes(player, self.tick)
                && seated.contains(player)
                && order.seq >= world.next_seq(player)
            {
                data.commands.push(order.clone());
            }
        }
        data.commands.retain(|order| seated.contains(order.player));
        data.commands.sort_unstable_by_key(|c| (c.player, c.seq));
    }

    pub(super) fn inputs(&self, world: &World<S>, data: &mut FrameData<S>) {
        for player in world.present().iter() {
            let Grounds {
                orders, announced, ..
            } = self.grounds;
            let known = orders.input_of(player, self.tick).or_else(|| {
                let input = announced.input(player, self.tick);
                input.filter(|_| self.grounds.believes(player, self.tick))
            });
            let input = known.cloned().unwrap_or_else(|| {
                data.filled.set(player, true);
                if self.grounds.is_bare(self.tick) {
                    return world.held(player).0.clone();
                }
                let (last, age) = last_known(self.grounds, world, player, self.tick);
                let Game { guess, rules, .. } = self.game;
                guess.guess(world.sim(), rules, player, last, age)
            });
            data.inputs.set(player, Some(input.or_neutral()));
        }
    }
}

/// What a guess of `player`'s input at `tick` begins with, and at which age: in `line`, which is stepped up to there.
///
/// Old news is no sign of silence: over a long line the newest input is always many ticks old, though the server has
/// one for each tick. So a player is taken to hold on, and to let go only where the server is seen to fill: then as
/// far as it will have come by then.
fn last_known<'w, S: Simulation>(
    grounds: &'w Grounds<S>,
    line: &'w World<S>,
    player: PlayerId,
    tick: Tick,
) -> (&'w S::Input, u32) {
    let confirmed = grounds.confirmed();
    // Announcements may know more than the line, which was assumed before they came.
    let told = grounds.announced.last_before(player, tick);
    let told = told.filter(|_| grounds.believes(player, tick) && !grounds.goes_on);
    if let Some((input, _)) = told.filter(|(_, ago)| tick.back(*ago) >= confirmed) {
        return (input, 1);
    }
    let (held, _) = line.held(player);
    match grounds.filled(player) {
        0 => (held, 1),
        filled => (held, filled + (tick - confirmed) + 1),
    }
}
