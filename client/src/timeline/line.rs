//! [`Line`]: a predicted world, and the assumed frames that led to it from the authority.
//!
//! Invariant: a line starts at the authority and reaches at most [`LEAD_MAX`] ticks beyond it, so one slot per tick of
//! lead is enough for all frames still to be compared. After its creation, a line allocates only if the game's data
//! grows.

use twinstep_core::bounds::{LEAD_MAX, PLAYERS_MAX};
use twinstep_core::frame::{Answer, FrameData, LargeEntry, Order, Perspective, PlayerSet};
use twinstep_core::memo::Memos;
use twinstep_core::world::{FrameError, Stepper, World};
use twinstep_core::{Controls, Key, PlayerId, Simulation, Tick};
use twinstep_protocol::share::{CommandShare, order_bytes};

use super::grounds::{Game, Grounds};
use crate::hooks::caught;

/// The number of cues per tick that fit into a slot without allocating.
const CUES_PER_TICK: usize = 64;

pub(super) struct Assumed<S: Simulation> {
    pub(super) data: FrameData<S>,
    pub(super) withheld: bool,
    pub(super) cues: Vec<(Key, S::Cue)>,
    /// The digest before the tick, in verifying timelines.
    pub(super) before: Option<u64>,
}

pub(super) struct StepFailed {
    pub(super) tick: Tick,
    pub(super) why: String,
}

pub(super) struct Line<S: Simulation> {
    pub(super) world: World<S>,
    pub(super) base: Tick,
    pub(super) slots: Vec<Assumed<S>>,
    pub(super) assumed: AssumedOrders,
}

impl<S: Simulation> Line<S> {
    pub(super) fn new(world: &World<S>) -> Self {
        let slot = |_| Assumed {
            data: FrameData::preallocated(Tick(0)),
            withheld: false,
            cues: Vec::with_capacity(CUES_PER_TICK),
            before: None,
        };
        Line {
            world: world.clone(),
            base: world.tick(),
            slots: (0..LEAD_MAX).map(slot).collect(),
            assumed: AssumedOrders::default(),
        }
    }

    pub(super) fn restart(&mut self, authority: &World<S>) {
        self.world.clone_from(authority);
        self.base = authority.tick();
        self.assumed = AssumedOrders::default();
    }

    /// Assumes the next frame and steps it. Players in `claimants` may claim; see [`Stepper::step`].
    ///
    /// # Errors
    /// If the game's step or one of its hooks panicked, or the assumed frame does not fit. In that case the world is
    /// half stepped, and must be restarted from the authority ([`restart`](Line::restart)).
    pub(super) fn step(
        &mut self,
        grounds: &Grounds<S>,
        game: &Game<S>,
        stepper: &mut Stepper<S>,
        claimants: PlayerSet,
        memos: &mut Memos,
    ) -> Result<(), StepFailed> {
        let tick = self.tick();
        let stepped = caught(|| self.assume_and_step(grounds, game, stepper, claimants, memos));
        match stepped {
            Ok(Ok(())) => Ok(()),
            Ok(Err(error)) => {
                let why = format!("an assumed frame does not fit the world: {error}");
                Err(StepFailed { tick, why })
            }
            Err(words) => {
                let words = stepper.explain_panic(&words);
                let why = format!("a prediction of {tick} panicked: {words}");
                Err(StepFailed { tick, why })
            }
        }
    }

    fn assume_and_step(
        &mut self,
        grounds: &Grounds<S>,
        game: &Game<S>,
        stepper: &mut Stepper<S>,
        claimants: PlayerSet,
        memos: &mut Memos,
    ) -> Result<(), FrameError> {
        let tick = self.tick();
        let index = tick.0 as usize % self.slots.len();
        let slot = &mut self.slots[index];
        let assume = Assume {
            tick,
            base: self.base,
            grounds,
            game,
        };
        slot.data.reset(tick);
        assume.outcomes(&self.world, &mut slot.data);
        assume.own(&self.world, &mut self.assumed, &mut slot.data);
        assume.remote_commands(&self.world, &mut slot.data);
        assume.inputs(&self.world, &mut slot.data);
        slot.before = match game.verify {
            true => self.world.digest().ok(),
            false => None,
        };
        let locals = grounds.local_actions.players();
        let perspective = Perspective::prediction(grounds.confirmed(), locals, &grounds.learned);
        let fx = stepper.step_with(
            &mut self.world,
            &slot.data,
            &game.rules,
            perspective,
            claimants,
            memos,
        )?;
        slot.withheld = fx.withheld();
        slot.cues.clear();
        slot.cues.extend_from_slice(fx.cues());
        Ok(())
    }

    pub(super) fn tick(&self) -> Tick {
        self.world.tick()
    }

    pub(super) fn slot(&self, tick: Tick) -> &Assumed<S> {
        &self.slots[tick.0 as usize % self.slots.len()]
    }
}

/// The session's orders assumed in a line so far: the next sequence number to assume, for each player.
#[derive(Clone, Copy, Default)]
pub(super) struct AssumedOrders {
    pub(super) commands: [u32; PLAYERS_MAX],
    pub(super) claims: [u32; PLAYERS_MAX],
}

/// Builds one assumed frame, right before its step, so that guesses see the state of that tick.
///
/// Invariant: a known and believed action is never guessed; each of the session's orders is in at most one frame.
pub(super) struct Assume<'a, S: Simulation> {
    pub(super) tick: Tick,
    pub(super) base: Tick,
    pub(super) grounds: &'a Grounds<S>,
    pub(super) game: &'a Game<S>,
}

impl<S: Simulation> Assume<'_, S> {
    /// Adds speculated outcomes of the queries that the last tick opened. An older query was left to the server, and is
    /// not speculated again.
    pub(super) fn outcomes(&self, world: &World<S>, data: &mut FrameData<S>) {
        if self.grounds.is_bare(self.tick) {
            return;
        }
        for open in world.just_opened() {
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

    /// Adds the session's own commands and claims: each once, when its tick is reached, within the sealer's limits.
    ///
    /// If a later command has already run, an earlier one counts as refused, even if the refusal has not arrived yet.
    pub(super) fn own(
        &self,
        world: &World<S>,
        assumed: &mut AssumedOrders,
        data: &mut FrameData<S>,
    ) {
        let actions = &self.grounds.local_actions;
        let none = actions.commands().next().is_none() && actions.claims().next().is_none();
        if none || self.grounds.is_bare(self.tick) {
            return;
        }
        let mut shares = [CommandShare::default(); PLAYERS_MAX];
        for pending in actions.commands().filter(|p| p.stamp <= self.tick) {
            let player = pending.order.player;
            let next = assumed.commands[player.index()].max(world.next_seq(player));
            let share = &mut shares[player.index()];
            if pending.order.seq < next {
                continue;
            }
            let ends = match &pending.large {
                Some(whole) => assume_fragment(world, &pending.order, whole, share, data),
                None => share.take(order_bytes(&pending.order.command)),
            };
            if ends {
                assumed.commands[player.index()] = pending.order.seq + 1;
                data.commands.push(pending.order.clone());
            }
        }
        for pending in actions.claims().filter(|p| p.stamp <= self.tick) {
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

    /// Adds announced commands at their tick, or in the line's first frame if their tick has passed. Then removes the
    /// commands and fragments of players without a seat, and sorts the commands.
    pub(super) fn remote_commands(&self, world: &World<S>, data: &mut FrameData<S>) {
        let announced = &self.grounds.announced;
        let none_own = data.commands.is_empty() && data.fragments.is_empty();
        if announced.commands().next().is_none() && none_own {
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
        data.fragments
            .retain(|f| f.entry.player().is_none_or(|p| seated.contains(p)));
        data.commands.sort_unstable_by_key(|c| (c.player, c.seq));
    }

    pub(super) fn inputs(&self, world: &World<S>, data: &mut FrameData<S>) {
        for player in world.present().iter() {
            let Grounds {
                local_actions,
                announced,
                ..
            } = self.grounds;
            let known = local_actions.input_of(player, self.tick).or_else(|| {
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

/// Adds the bytes of this session's large command that the sealer will take at this tick. Returns `true` if they
/// complete the command.
fn assume_fragment<S: Simulation>(
    world: &World<S>,
    order: &Order<S::Command>,
    whole: &[u8],
    share: &mut CommandShare,
    data: &mut FrameData<S>,
) -> bool {
    let (player, seq) = (order.player, order.seq);
    let entry = LargeEntry::Command { player, seq };
    let from = world.unfinished().collected(entry, whole);
    let bytes = share.fragment_room(true).min(whole.len() - from);
    let ends = bytes > 0 && from + bytes == whole.len();
    if bytes > 0 {
        data.add_fragment(entry, whole, from, bytes);
        share.take_fragment(true, bytes, ends);
    }
    if !ends {
        share.close();
    }
    ends
}

/// Returns the input on which a guess for `player` at `tick` is based, and its age. `line` is stepped up to `tick`.
///
/// An old input does not mean that the player is silent: over a long path the newest input is always many ticks old,
/// although the server has one for each tick. So the player is assumed to keep holding it. The age grows only if the
/// server is known to fill; it is then the age that the fill will have at that tick.
fn last_known<'w, S: Simulation>(
    grounds: &'w Grounds<S>,
    line: &'w World<S>,
    player: PlayerId,
    tick: Tick,
) -> (&'w S::Input, u32) {
    let confirmed = grounds.confirmed();
    // Announcements may be newer than the line, which was assumed before they arrived.
    let announced = grounds.announced.last_before(player, tick);
    let announced =
        announced.filter(|_| grounds.believes(player, tick) && !grounds.continues_wrong);
    if let Some((input, _)) = announced.filter(|(_, ago)| tick.back(*ago) >= confirmed) {
        return (input, 1);
    }
    let (held, _) = line.held(player);
    match grounds.filled(player) {
        0 => (held, 1),
        filled => (held, filled + (tick - confirmed) + 1),
    }
}
