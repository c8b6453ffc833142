//! [`Sealer`]: seals the frames of a check from the script, as a match would.
//!
//! Invariant: each frame fits the world for which it is built, even if the step is faulty. Law **Canonical** is kept
//! here, so that a step is never blamed for a frame.

use twinstep_core::bounds::PLAYERS_MAX;
use twinstep_core::frame::{Answer, FrameData, Order, RosterChange};
use twinstep_core::world::{Presence, World};
use twinstep_core::{Key, Mwc, OpenQuery, PlayerId, Simulation, Tick};

use crate::fault::Found;
use crate::script::{Asked, Script, Seen};
use crate::values::Values;

const COME_EVERY_TICKS: u32 = 5;
/// A player drops or leaves in one of this many ticks.
const GOES_IN: u32 = 60;
/// A player that dropped or left comes back about this many ticks later.
const BACK_IN: u32 = 25;
/// Each player's input is late in one of this many ticks.
const LATE_IN: u32 = 24;
/// One in this many answers and claims is refused.
const REFUSED_IN: u32 = 8;
const ANSWERS_PER_FRAME: usize = 8;

#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Happened {
    pub(crate) changes: u32,
    pub(crate) commands: u32,
    pub(crate) refused: u32,
    pub(crate) claims: u32,
    pub(crate) asked: u32,
    pub(crate) unanswered: u32,
}

struct Due<O> {
    at: Tick,
    answer: Answer<O>,
}

pub(crate) struct Sealer<S: Simulation> {
    luck: Mwc,
    due: Vec<Due<S::Outcome>>,
    claims: Vec<(Tick, Order<S::Command>)>,
    pub(crate) happened: Happened,
}

impl<S: Simulation> Sealer<S> {
    pub(crate) fn new(seed: u64) -> Self {
        Sealer {
            luck: Mwc::seed(seed).fork(Key::new(2, 0)),
            due: Vec::new(),
            claims: Vec::new(),
            happened: Happened::default(),
        }
    }

    /// Handles a step's claim for a local player: the referee decides, and the claim is sealed a little later.
    pub(crate) fn claim(
        &mut self,
        tick: Tick,
        player: PlayerId,
        command: &S::Command,
        script: &Script<S>,
        (sim, rules): (&S, &S::Rules),
    ) {
        let seen = Seen {
            sim,
            rules,
            player,
            tick,
        };
        if self.luck.below(REFUSED_IN) == 0 || !script.lets_in(&seen, command) {
            self.happened.refused += 1;
            return;
        }
        let order = Order {
            player,
            seq: tick.0,
            command: command.clone(),
        };
        let at = tick + 1 + self.luck.below(6);
        if self
            .claims
            .iter()
            .all(|(_, c)| (c.player, c.seq) != (player, tick.0))
        {
            self.claims.push((at, order));
        }
    }

    pub(crate) fn seal(
        &mut self,
        world: &World<S>,
        rules: &S::Rules,
        script: &mut Script<S>,
        values: &mut Values<S>,
    ) -> Result<FrameData<S>, Found> {
        let tick = world.tick();
        let mut frame = FrameData::preallocated(tick);
        let roster = self.change_roster(world, script, &mut frame);
        self.answer(world, rules, script, values, &mut frame)?;
        self.admit_claims(&roster, &mut frame);
        for player in (0..PLAYERS_MAX as u8).map(PlayerId) {
            if roster[player.index()] != Presence::Present {
                continue;
            }
            let seen = Seen {
                sim: world.sim(),
                rules,
                player,
                tick,
            };
            let (mut input, order) = script.drive(&seen);
            values.input(tick, &input)?;
            let was_here = world.presence(player) == Presence::Present;
            let is_late = !script.steady && was_here && self.luck.below(LATE_IN) == 0;
            if is_late {
                input = world.repeated(player);
            }
            frame.filled.set(player, is_late);
            frame.inputs.set(player, Some(input));
            let Some(command) = order else { continue };
            values.command(tick, &command)?;
            if script.lets_in(&seen, &command) {
                self.happened.commands += 1;
                let seq = world.next_seq(player);
                frame.commands.push(Order {
                    player,
                    seq,
                    command,
                });
            } else {
                self.happened.refused += 1;
            }
        }
        Ok(frame)
    }

    /// Adds this tick's roster changes to `frame`. Returns each player's presence after them.
    fn change_roster(
        &mut self,
        world: &World<S>,
        script: &Script<S>,
        frame: &mut FrameData<S>,
    ) -> [Presence; PLAYERS_MAX] {
        let tick = world.tick();
        let mut roster = [Presence::Absent; PLAYERS_MAX];
        let every = if script.steady { 0 } else { COME_EVERY_TICKS };
        let chosen = self.luck.below(script.players as u32) as u8;
        let goes = !script.steady && self.luck.below(GOES_IN) == 0;
        let leaves = self.luck.below(3) == 0;
        for player in (0..script.players as u8).map(PlayerId) {
            let was = world.presence(player);
            let comes = tick.0 == u32::from(player.0) * every;
            let is_back = self.luck.below(BACK_IN) == 0 && tick.0 > u32::from(player.0) * every;
            let change = match was {
                Presence::Absent if comes || is_back => Some(RosterChange::Joined),
                Presence::Dropped if is_back => Some(RosterChange::Returned),
                Presence::Absent => None,
                _ if !goes || player.0 != chosen => None,
                _ if leaves => Some(RosterChange::Left),
                Presence::Present => Some(RosterChange::Dropped),
                Presence::Dropped => None,
            };
            roster[player.index()] = match change {
                None => was,
                Some(RosterChange::Joined | RosterChange::Returned) => Presence::Present,
                Some(RosterChange::Dropped) => Presence::Dropped,
                Some(RosterChange::Left) => Presence::Absent,
            };
            if let Some(change) = change {
                self.happened.changes += 1;
                frame.roster.push((player, change));
            }
        }
        roster
    }

    /// Resolves the queries of the last step, and adds the answers due.
    fn answer(
        &mut self,
        world: &World<S>,
        rules: &S::Rules,
        script: &mut Script<S>,
        values: &mut Values<S>,
        frame: &mut FrameData<S>,
    ) -> Result<(), Found> {
        let tick = world.tick();
        // An older asking tick does not mean that a query is known: it may have waited to be opened.
        let known: Vec<(Tick, Key)> = self
            .due
            .iter()
            .map(|due| (due.answer.asked, due.answer.key))
            .collect();
        let is_fresh = |open: &&OpenQuery<S::Query>| !known.contains(&(open.asked, open.key));
        for open in world.open_queries().iter().filter(is_fresh) {
            self.happened.asked += 1;
            let asked = Asked {
                sim: world.sim(),
                rules,
                key: open.key,
                query: &open.query,
                tick,
            };
            let decided = script.resolve(&asked, &mut self.luck);
            let outcome = decided.filter(|_| self.luck.below(REFUSED_IN) > 0);
            match &outcome {
                Some(outcome) => values.outcome(tick, outcome)?,
                None => self.happened.unanswered += 1,
            }
            let late = match self.luck.below(4) {
                0 => self.luck.below(30),
                _ => self.luck.below(4),
            };
            self.due.push(Due {
                at: tick + late,
                answer: Answer {
                    asked: open.asked,
                    key: open.key,
                    outcome,
                },
            });
        }
        let mut at = 0;
        while at < self.due.len() {
            if self.due[at].at <= tick && frame.outcomes.len() < ANSWERS_PER_FRAME {
                frame.outcomes.push(self.due.remove(at).answer);
            } else {
                at += 1;
            }
        }
        frame
            .outcomes
            .sort_by_key(|answer| (answer.asked, answer.key));
        Ok(())
    }

    /// Adds the due claims, at most one per player.
    fn admit_claims(&mut self, roster: &[Presence; PLAYERS_MAX], frame: &mut FrameData<S>) {
        let is_seated = |player: PlayerId| roster[player.index()] != Presence::Absent;
        self.claims.retain(|(_, claim)| is_seated(claim.player));
        let mut at = 0;
        while at < self.claims.len() {
            let (due, claim) = &self.claims[at];
            let has_one = frame.claims.iter().any(|c| c.player == claim.player);
            if *due <= frame.tick && !has_one {
                self.happened.claims += 1;
                frame.claims.push(self.claims.remove(at).1);
            } else {
                at += 1;
            }
        }
        frame.claims.sort_by_key(|claim| (claim.player, claim.seq));
    }
}
