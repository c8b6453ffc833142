//! The world: the simulation with all that a copy of it needs to go on.
//!
//! ```text
//! world = simulation + roster + last inputs + open queries + next command sequence per player + turn
//! ```
//!
//! Snapshot, digest, journal and join are of the world, never of the simulation alone: a snapshot that
//! forgets the open queries leaves some unanswered for ever. [`Stepper`] is the one place that steps a
//! world, on the server, in the authority and in the prediction alike (seed row 33).

use alloc::vec::Vec;

use serde::{Deserialize, Serialize};

use crate::bounds::{ASKS_PER_TICK, COUNT_MAX, PLAYERS_MAX, QUERIES_OPEN_MAX, QUERIES_REFUSED_MAX};
use crate::digest::{self, NanError};
use crate::frame::{Frame, FrameData, Perspective, PlayerSet, RosterChange};
use crate::turn::{Cadence, Turn};
use crate::{Controls, Effects, Key, PlayerId, Simulation, Tick};

/// Whether a player's seat is taken.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub enum Presence {
    /// Nobody.
    #[default]
    Absent,
    /// A player whose inputs are in each frame.
    Present,
    /// A player whose inputs stopped coming; the seat is kept.
    Dropped,
}

/// A question that waits for its answer.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct OpenQuery<Q> {
    /// The tick whose step asked.
    pub asked: Tick,
    /// The name it was asked under.
    pub key: Key,
    /// The question.
    pub query: Q,
}

/// Why a frame cannot be stepped. From a peer or a file this is damage; from a sealer it is a bug.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum FrameError {
    /// The frame is for another tick.
    #[error("expected the frame of {expected}, got that of {got}")]
    OutOfTurn {
        /// The world's next tick.
        expected: Tick,
        /// The frame's tick.
        got: Tick,
    },
    /// An entry stands in the wrong place or twice.
    #[error("the frame of {0} is not in canonical order")]
    NotCanonical(Tick),
    /// A roster change that does not follow from the roster, or an input of one who is not there.
    #[error("the frame of {tick} does not fit the roster at {player}")]
    Roster {
        /// The frame's tick.
        tick: Tick,
        /// The player concerned.
        player: PlayerId,
    },
    /// An outcome for a query that is not open.
    #[error("the frame of {tick} answers a query that is not open (asked at {asked} as {key})")]
    UnknownQuery {
        /// The frame's tick.
        tick: Tick,
        /// The tick that the answer names.
        asked: Tick,
        /// The key that the answer names.
        key: Key,
    },
    /// A cadence out of its range, or not at a turn's first tick.
    #[error("the frame of {0} changes the cadence where that cannot be")]
    Cadence(Tick),
    /// A command out of its sequence.
    #[error(
        "the frame of {tick} repeats a command of {player}: expected at least #{expected}, got #{got}"
    )]
    Sequence {
        /// The frame's tick.
        tick: Tick,
        /// Whose command.
        player: PlayerId,
        /// The next sequence.
        expected: u32,
        /// The frame's.
        got: u32,
    },
}

/// The simulation, with all that a copy of it needs to go on.
#[derive(Serialize, Deserialize)]
#[serde(bound(serialize = "", deserialize = ""))]
pub struct World<S: Simulation> {
    tick: Tick,
    sim: S,
    roster: [Presence; PLAYERS_MAX],
    held: [S::Input; PLAYERS_MAX],
    open: Vec<OpenQuery<S::Query>>,
    refused: Vec<OpenQuery<S::Query>>,
    next_seq: [u32; PLAYERS_MAX],
    /// For how many ticks each held input has been a repetition: telemetry, outside the digest.
    ages: [u32; PLAYERS_MAX],
    /// The turn of the next tick: how the match is clocked, outside the digest.
    turn: Turn,
}

impl<S: Simulation> World<S> {
    /// A world that begins at `tick` with nobody in it.
    #[must_use]
    pub fn new(sim: S, tick: Tick) -> Self {
        World {
            tick,
            sim,
            roster: Default::default(),
            held: Default::default(),
            open: Vec::new(),
            refused: Vec::new(),
            next_seq: [0; PLAYERS_MAX],
            ages: [0; PLAYERS_MAX],
            turn: Turn {
                began: tick,
                ..Turn::default()
            },
        }
    }

    /// The same world, clocked by `cadence` from its next tick on.
    ///
    /// # Panics
    /// If the cadence is out of its range.
    #[must_use]
    pub fn clocked(mut self, cadence: Cadence) -> Self {
        assert!(cadence.is_sound(), "{cadence:?} is out of its range");
        self.turn.cadence = cadence;
        self
    }

    /// The turn that the next tick belongs to.
    #[must_use]
    pub fn turn(&self) -> Turn {
        self.turn
    }

    /// The next tick to be stepped.
    #[must_use]
    pub fn tick(&self) -> Tick {
        self.tick
    }

    /// The game's state.
    #[must_use]
    pub fn sim(&self) -> &S {
        &self.sim
    }

    /// The game's state, to be changed behind the protocol's back: for tests that plant a desync.
    pub fn corrupt(&mut self) -> &mut S {
        &mut self.sim
    }

    /// Whether the player is here.
    #[must_use]
    pub fn presence(&self, player: PlayerId) -> Presence {
        self.roster.get(player.index()).copied().unwrap_or_default()
    }

    /// The players whose inputs are in each frame.
    #[must_use]
    pub fn present(&self) -> PlayerSet {
        self.with(|p| p == Presence::Present)
    }

    /// All players with a seat, dropped ones included.
    #[must_use]
    pub fn seated(&self) -> PlayerSet {
        self.with(|p| p != Presence::Absent)
    }

    fn with(&self, is: impl Fn(Presence) -> bool) -> PlayerSet {
        (0..PLAYERS_MAX as u8)
            .map(PlayerId)
            .filter(|p| is(self.roster[p.index()]))
            .collect()
    }

    /// Questions without an answer yet, by (tick asked, key).
    #[must_use]
    pub fn open_queries(&self) -> &[OpenQuery<S::Query>] {
        &self.open
    }

    /// The sequence that the player's next command must have at least.
    #[must_use]
    pub fn next_seq(&self, player: PlayerId) -> u32 {
        self.next_seq[player.index()]
    }

    /// What a player is taken to hold at this tick if no news of it came. The server fills with it and
    /// clients guess with it: one function, so that a filled tick is guessed right.
    #[must_use]
    pub fn repeated(&self, player: PlayerId) -> S::Input {
        self.held[player.index()].repeat(self.ages[player.index()] + 1)
    }

    /// The last input of a player, and for how many ticks it has been a repetition.
    #[must_use]
    pub fn held(&self, player: PlayerId) -> (&S::Input, u32) {
        (&self.held[player.index()], self.ages[player.index()])
    }

    /// The digest of the world: 64 bits over everything but telemetry. Cost: one pass over the state,
    /// no allocation.
    ///
    /// # Errors
    /// A NaN anywhere in the state, with the path of its field.
    pub fn digest(&self) -> Result<u64, NanError> {
        digest::digest(&self.digested())
    }

    /// The part of the world that is compared, for digests and field-by-field reports.
    #[must_use]
    pub fn digested(&self) -> impl Serialize + '_ {
        Digested {
            tick: self.tick,
            sim: &self.sim,
            roster: &self.roster,
            held: &self.held,
            open: &self.open,
            refused: &self.refused,
            next_seq: &self.next_seq,
        }
    }

    /// Whether a decoded world keeps the invariants that [`Stepper`] relies on.
    #[must_use]
    pub fn is_sound(&self) -> bool {
        let ascending = |q: &[OpenQuery<S::Query>]| {
            q.windows(2)
                .all(|w| (w[0].asked, w[0].key) < (w[1].asked, w[1].key))
        };
        self.open.len() <= QUERIES_OPEN_MAX
            && self.refused.len() <= QUERIES_REFUSED_MAX
            && ascending(&self.open)
            && ascending(&self.refused)
            && self.turn.number <= COUNT_MAX
            && self.ages.iter().all(|age| *age <= COUNT_MAX)
            && self.next_seq.iter().all(|seq| *seq <= COUNT_MAX)
            && self.turn.cadence.is_sound()
            && self.turn.began <= self.tick
            && self.tick < self.turn.end()
    }
}

#[derive(Serialize)]
#[serde(bound(serialize = ""))]
struct Digested<'a, S: Simulation> {
    tick: Tick,
    sim: &'a S,
    roster: &'a [Presence; PLAYERS_MAX],
    held: &'a [S::Input; PLAYERS_MAX],
    open: &'a [OpenQuery<S::Query>],
    refused: &'a [OpenQuery<S::Query>],
    next_seq: &'a [u32; PLAYERS_MAX],
}

impl<S: Simulation> World<S> {
    /// Room for as many queries as may be open, so that copies allocate nothing later.
    fn make_room(&mut self) {
        self.open
            .reserve(QUERIES_OPEN_MAX.saturating_sub(self.open.len()));
        self.refused
            .reserve(ASKS_PER_TICK.saturating_sub(self.refused.len()));
    }
}

impl<S: Simulation> Clone for World<S> {
    fn clone(&self) -> Self {
        let mut copy = World {
            tick: self.tick,
            sim: self.sim.clone(),
            roster: self.roster,
            held: self.held.clone(),
            open: self.open.clone(),
            refused: self.refused.clone(),
            next_seq: self.next_seq,
            ages: self.ages,
            turn: self.turn,
        };
        copy.make_room();
        copy
    }

    fn clone_from(&mut self, other: &Self) {
        self.make_room();
        self.tick = other.tick;
        self.sim.clone_from(&other.sim);
        self.roster = other.roster;
        self.held.clone_from(&other.held);
        self.open.clone_from(&other.open);
        self.refused.clone_from(&other.refused);
        self.next_seq = other.next_seq;
        self.ages = other.ages;
        self.turn = other.turn;
    }
}

/// Steps worlds, with buffers that are used again: no allocation in the steady state.
pub struct Stepper<S: Simulation> {
    fx: Effects<S>,
    answered: Vec<OpenQuery<S::Query>>,
    refused: Vec<OpenQuery<S::Query>>,
    dropped_asks: u64,
}

impl<S: Simulation> Default for Stepper<S> {
    fn default() -> Self {
        Stepper {
            fx: Effects::new(),
            answered: Vec::new(),
            refused: Vec::new(),
            dropped_asks: 0,
        }
    }
}

impl<S: Simulation> Stepper<S> {
    /// One tick of `world` by `frame`. `claimants` may claim: the local players, in the first step of a
    /// new predicted tick, and nobody else.
    ///
    /// # Errors
    /// The frame does not fit the world. The world is then as before.
    pub fn step(
        &mut self,
        world: &mut World<S>,
        frame: &FrameData<S>,
        rules: &S::Rules,
        perspective: Perspective<'_>,
        claimants: PlayerSet,
    ) -> Result<&Effects<S>, FrameError> {
        check(world, frame)?;
        self.take_answered(world, frame);
        for &(player, change) in &frame.roster {
            world.change_roster(player, change);
        }
        self.fx.reset(perspective.phase(), claimants);
        world.sim.step(
            &Frame::new(frame, &self.answered, &self.refused, rules, perspective),
            &mut self.fx,
        );
        world.note_inputs(frame);
        for order in &frame.commands {
            world.next_seq[order.player.index()] = order.seq + 1;
        }
        self.keep_asked(world);
        if let Some(cadence) = frame.cadence {
            world.turn.cadence = cadence;
        }
        world.tick += 1;
        world.turn.reach(world.tick);
        Ok(&self.fx)
    }

    /// What the last step asked, showed and claimed.
    #[must_use]
    pub fn effects(&self) -> &Effects<S> {
        &self.fx
    }

    /// Asks dropped because even the list of refused ones was full.
    #[must_use]
    pub fn dropped_asks(&self) -> u64 {
        self.dropped_asks
    }

    /// Moves what the frame answers, and what was refused at the last tick, out of the world.
    fn take_answered(&mut self, world: &mut World<S>, frame: &FrameData<S>) {
        self.answered.clear();
        for answer in &frame.outcomes {
            if let Some(at) = world.find(answer.asked, answer.key) {
                self.answered.push(world.open.remove(at));
            }
        }
        self.refused.clear();
        self.refused.append(&mut world.refused);
    }

    /// Opens the queries of this step in order of their keys, within the caps.
    fn keep_asked(&mut self, world: &mut World<S>) {
        let asked = world.tick;
        let start = world.open.len();
        for (i, (key, query)) in self.fx.asks().iter().enumerate() {
            let (list, room) = if i < ASKS_PER_TICK && world.open.len() < QUERIES_OPEN_MAX {
                (&mut world.open, true)
            } else {
                let room = world.refused.len() < QUERIES_REFUSED_MAX;
                (&mut world.refused, room)
            };
            if room {
                list.push(OpenQuery {
                    asked,
                    key: *key,
                    query: query.clone(),
                });
            } else {
                self.dropped_asks += 1;
            }
        }
        world.open[start..].sort_unstable_by_key(|open| open.key);
        world.refused.sort_unstable_by_key(|open| open.key);
    }
}

impl<S: Simulation> World<S> {
    fn find(&self, asked: Tick, key: Key) -> Option<usize> {
        self.open
            .binary_search_by_key(&(asked, key), |open| (open.asked, open.key))
            .ok()
    }

    fn change_roster(&mut self, player: PlayerId, change: RosterChange) {
        let i = player.index();
        self.roster[i] = presence_after(change);
        if change != RosterChange::Dropped {
            self.held[i] = S::Input::default();
            self.ages[i] = 0;
        }
    }

    fn note_inputs(&mut self, frame: &FrameData<S>) {
        for (player, input) in frame.inputs.iter() {
            let i = player.index();
            self.held[i].clone_from(input);
            self.ages[i] = if frame.filled.contains(player) {
                self.ages[i].saturating_add(1)
            } else {
                0
            };
        }
    }
}

fn presence_after(change: RosterChange) -> Presence {
    match change {
        RosterChange::Joined | RosterChange::Returned => Presence::Present,
        RosterChange::Dropped => Presence::Dropped,
        RosterChange::Left => Presence::Absent,
    }
}

/// Law Canonical, at the stepping end: nothing is stepped that does not fit, and nothing is half stepped.
fn check<S: Simulation>(world: &World<S>, frame: &FrameData<S>) -> Result<(), FrameError> {
    let tick = frame.tick;
    if tick != world.tick {
        return Err(FrameError::OutOfTurn {
            expected: world.tick,
            got: tick,
        });
    }
    if !frame.is_canonical() {
        return Err(FrameError::NotCanonical(tick));
    }
    if let Some(cadence) = frame.cadence
        && (tick != world.turn.began || !cadence.is_sound())
    {
        return Err(FrameError::Cadence(tick));
    }
    let mut roster = world.roster;
    for &(player, change) in &frame.roster {
        let seat = roster
            .get_mut(player.index())
            .ok_or(FrameError::Roster { tick, player })?;
        let fits = match change {
            RosterChange::Joined => *seat == Presence::Absent,
            RosterChange::Dropped => *seat == Presence::Present,
            RosterChange::Returned => *seat == Presence::Dropped,
            RosterChange::Left => *seat != Presence::Absent,
        };
        if !fits {
            return Err(FrameError::Roster { tick, player });
        }
        *seat = presence_after(change);
    }
    for (i, presence) in roster.iter().enumerate() {
        let player = PlayerId(i as u8);
        if frame.inputs.get(player).is_some() != (*presence == Presence::Present) {
            return Err(FrameError::Roster { tick, player });
        }
    }
    let seated = |player: PlayerId| {
        roster
            .get(player.index())
            .is_some_and(|p| *p != Presence::Absent)
    };
    for order in frame.claims.iter().chain(&frame.commands) {
        if !seated(order.player) {
            return Err(FrameError::Roster {
                tick,
                player: order.player,
            });
        }
    }
    for order in &frame.commands {
        let expected = world.next_seq[order.player.index()];
        if order.seq < expected || order.seq >= COUNT_MAX {
            return Err(FrameError::Sequence {
                tick,
                player: order.player,
                expected,
                got: order.seq,
            });
        }
    }
    for answer in &frame.outcomes {
        if world.find(answer.asked, answer.key).is_none() {
            return Err(FrameError::UnknownQuery {
                tick,
                asked: answer.asked,
                key: answer.key,
            });
        }
    }
    Ok(())
}
