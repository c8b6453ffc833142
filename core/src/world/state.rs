//! [`World`]: what it holds, what is compared of it, and whether one that was read can be gone on from.
//!
//! Invariant: once it began, only the [`Stepper`](super::Stepper) beside it changes it (but for a planted desync).

use alloc::vec::Vec;
use core::time::Duration;

use serde::{Deserialize, Serialize};

use crate::bounds::{
    ASKS_PER_TICK, COUNT_MAX, PLAYERS_MAX, QUERIES_OPEN_MAX, QUERIES_REFUSED_MAX, TICK_MAX,
    TICK_MIN,
};
use crate::digest::{self, NanError, Weighed};
use crate::entries::OpenQuery;
use crate::players::PlayerSet;
use crate::turn::{Cadence, Turn};
use crate::{Controls, PlayerId, Simulation, Tick};

use super::roster::{Presence, Roster};

/// The simulation, with all that a copy of it needs to go on.
#[derive(Serialize, Deserialize)]
#[serde(bound(serialize = "", deserialize = ""))]
pub struct World<S: Simulation> {
    pub(super) tick: Tick,
    pub(super) sim: S,
    pub(super) roster: Roster,
    pub(super) held: [S::Input; PLAYERS_MAX],
    pub(super) open: Vec<OpenQuery<S::Query>>,
    pub(super) refused: Vec<OpenQuery<S::Query>>,
    pub(super) next_seq: [u32; PLAYERS_MAX],
    /// For how many ticks each held input has been a repetition: telemetry, outside the digest.
    pub(super) ages: [u32; PLAYERS_MAX],
    /// The turn of the next tick: how the match is clocked, outside the digest.
    pub(super) turn: Turn,
    /// What a step stands for, in nanoseconds: the tick's length when the match began. The same for as long as it is played, so
    /// outside the digest: what a step makes of it is in there.
    pub(super) tick_ns: u32,
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
            tick_ns: Cadence::DEFAULT.tick_ns,
        }
    }

    /// The same world, as a match begins with it that is clocked by `cadence`.
    ///
    /// # Panics
    /// If the cadence is out of its range.
    #[must_use]
    pub fn clocked(mut self, cadence: Cadence) -> Self {
        assert!(cadence.is_sound(), "{cadence:?} is out of its range");
        self.turn.cadence = cadence;
        self.tick_ns = cadence.tick_ns;
        self
    }

    /// What a step stands for: see [`Frame::tick_length`](crate::Frame::tick_length).
    #[must_use]
    pub fn tick_length(&self) -> Duration {
        Duration::from_nanos(self.tick_ns.into())
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
        self.roster.presence(player)
    }

    /// The players whose inputs are in each frame.
    #[must_use]
    pub fn present(&self) -> PlayerSet {
        self.roster.present()
    }

    /// All players with a seat, dropped ones included.
    #[must_use]
    pub fn seated(&self) -> PlayerSet {
        self.roster.seated()
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

    /// What a player is taken to hold at this tick if no input of it came: what the server fills with. Clients guess by
    /// the same rule (`Controls::repeat`), so a filled tick is guessed right.
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

    /// As [`digest`](World::digest), and tells how many bytes were hashed.
    ///
    /// # Errors
    /// As [`digest`](World::digest).
    pub fn weighed(&self) -> Result<Weighed, NanError> {
        digest::weighed(&self.digested())
    }

    /// Whether the world has a digest, without taking it.
    ///
    /// # Errors
    /// As [`digest`](World::digest).
    pub fn scan(&self) -> Result<(), NanError> {
        digest::scan(&self.digested())
    }

    /// The part of the world that is compared, for digests and field-by-field reports.
    #[must_use]
    pub fn digested(&self) -> impl Serialize + '_ {
        Digested {
            tick: self.tick,
            sim: &self.sim,
            roster: self.roster,
            held: &self.held,
            open: &self.open,
            refused: &self.refused,
            next_seq: &self.next_seq,
        }
    }

    /// Whether a decoded world keeps the invariants that [`Stepper`](super::Stepper) relies on.
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
            && self.held.iter().all(Controls::is_valid)
            && self.turn.cadence.is_sound()
            && (TICK_MIN..=TICK_MAX).contains(&self.tick_length())
            && self.turn.began <= self.tick
            && self.tick < self.turn.end()
    }
}

#[derive(Serialize)]
#[serde(bound(serialize = ""))]
struct Digested<'a, S: Simulation> {
    tick: Tick,
    sim: &'a S,
    roster: Roster,
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
            tick_ns: self.tick_ns,
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
        self.tick_ns = other.tick_ns;
    }
}
