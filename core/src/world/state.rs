//! [`World`]: its contents, its compared part, and the check of a decoded world.
//!
//! Invariant: once a world has started, only the [`Stepper`](super::Stepper) changes it (except for a planted desync).

use alloc::vec::Vec;
use core::time::Duration;

use serde::{Deserialize, Serialize};

use crate::bounds::{
    ASKS_PER_TICK, COUNT_MAX, PLAYERS_MAX, QUERIES_OPEN_MAX, QUERIES_WAITING_MAX, TICK_MAX,
    TICK_MIN,
};
use crate::digest::{self, DigestError, SizedDigest};
use crate::entries::OpenQuery;
use crate::players::PlayerSet;
use crate::turn::{Cadence, Turn};
use crate::{Controls, Key, PlayerId, Simulation, Tick};

use super::fragments::LargeEntries;
use super::roster::{Presence, Roster};

/// The simulation with all data that a copy of it needs to continue.
#[derive(Serialize, Deserialize)]
#[serde(bound(serialize = "", deserialize = ""))]
pub struct World<S: Simulation> {
    pub(super) tick: Tick,
    pub(super) sim: S,
    pub(super) roster: Roster,
    pub(super) held: [S::Input; PLAYERS_MAX],
    pub(super) open: Vec<OpenQuery<S::Query>>,
    // Queries not open yet, in the order in which they will be opened. All were asked after the open ones.
    pub(super) waiting: Vec<OpenQuery<S::Query>>,
    pub(super) next_seq: [u32; PLAYERS_MAX],
    pub(super) unfinished: LargeEntries,
    /// The number of ticks for which each held input has been repeated. Telemetry, outside the digest.
    pub(super) ages: [u32; PLAYERS_MAX],
    /// The turn of the next tick, with the match's current cadence: outside the digest.
    pub(super) turn: Turn,
    /// The time that one step simulates, in nanoseconds: the tick length at the match's start. Outside the digest,
    /// because it is constant and the digest covers its effect on the state.
    pub(super) tick_ns: u32,
    // The number of queries that the last step opened, at the end of `open`; 0 in a world that was just read.
    #[serde(skip)]
    pub(super) opened: usize,
}

impl<S: Simulation> World<S> {
    /// A world without players whose first tick is `tick`.
    #[must_use]
    pub fn new(sim: S, tick: Tick) -> Self {
        World {
            tick,
            sim,
            roster: Default::default(),
            held: Default::default(),
            open: Vec::new(),
            waiting: Vec::new(),
            next_seq: [0; PLAYERS_MAX],
            unfinished: LargeEntries::default(),
            ages: [0; PLAYERS_MAX],
            turn: Turn {
                began: tick,
                ..Turn::default()
            },
            tick_ns: Cadence::DEFAULT.tick_ns,
            opened: 0,
        }
    }

    /// Sets the cadence with which the match starts. Its tick length becomes the time that one step simulates.
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

    /// Sets the cadence of the turn that starts with the next tick, for a match that starts from this world.
    ///
    /// # Panics
    /// If the cadence is out of its range.
    #[must_use]
    pub fn paced(mut self, cadence: Cadence) -> Self {
        assert!(cadence.is_sound(), "{cadence:?} is out of its range");
        self.turn.cadence = cadence;
        self
    }

    /// The time that one step simulates: see [`Frame::tick_length`](crate::Frame::tick_length).
    #[must_use]
    pub fn tick_length(&self) -> Duration {
        Duration::from_nanos(self.tick_ns.into())
    }

    /// The turn of the next tick.
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

    /// The game's state, mutable, for tests that plant a desync.
    pub fn corrupt(&mut self) -> &mut S {
        &mut self.sim
    }

    /// The state of a player's seat.
    #[must_use]
    pub fn presence(&self, player: PlayerId) -> Presence {
        self.roster.presence(player)
    }

    /// The present players: every frame contains their inputs.
    #[must_use]
    pub fn present(&self) -> PlayerSet {
        self.roster.present()
    }

    /// All players with a seat, dropped ones included.
    #[must_use]
    pub fn seated(&self) -> PlayerSet {
        self.roster.seated()
    }

    /// Opened queries without an answer yet, in (tick asked, key) order.
    #[must_use]
    pub fn open_queries(&self) -> &[OpenQuery<S::Query>] {
        &self.open
    }

    /// The queries that the last step opened. Most were asked in that step; some have waited since an earlier burst.
    /// Empty in a world that was just decoded.
    #[must_use]
    pub fn just_opened(&self) -> &[OpenQuery<S::Query>] {
        &self.open[self.open.len() - self.opened..]
    }

    /// The lowest sequence number that the player's next command may have.
    #[must_use]
    pub fn next_seq(&self, player: PlayerId) -> u32 {
        self.next_seq[player.index()]
    }

    /// The unfinished large entries. Outside the digest, because no step sees them.
    #[must_use]
    pub fn unfinished(&self) -> &LargeEntries {
        &self.unfinished
    }

    /// The input assumed for a player at this tick if none arrived. The server fills missing inputs with it, and
    /// clients guess by the same rule ([`Controls::repeat`]), so they guess filled ticks correctly.
    #[must_use]
    pub fn repeated(&self, player: PlayerId) -> S::Input {
        self.held[player.index()].repeat(self.ages[player.index()] + 1)
    }

    /// The last input of a player, and the number of ticks for which it has been repeated.
    #[must_use]
    pub fn held(&self, player: PlayerId) -> (&S::Input, u32) {
        (&self.held[player.index()], self.ages[player.index()])
    }

    /// The digest of the world's [compared part](World::digested): 64 bits. Cost: one pass over it, no allocation.
    ///
    /// # Errors
    /// If the state contains a NaN (the error contains the field's path), or cannot be serialised.
    pub fn digest(&self) -> Result<u64, DigestError> {
        digest::digest(&self.digested())
    }

    /// The digest of the world, together with the number of bytes hashed.
    ///
    /// # Errors
    /// The errors of [`digest`](World::digest).
    pub fn sized_digest(&self) -> Result<SizedDigest, DigestError> {
        digest::sized_digest(&self.digested())
    }

    /// Checks for NaN as [`digest`](World::digest) does, without computing a digest.
    ///
    /// # Errors
    /// The errors of [`digest`](World::digest).
    pub fn scan(&self) -> Result<(), DigestError> {
        digest::scan(&self.digested())
    }

    /// The compared part of the world, for digests and field-by-field reports.
    #[must_use]
    pub fn digested(&self) -> impl Serialize + '_ {
        Digested {
            tick: self.tick,
            sim: &self.sim,
            roster: self.roster,
            held: &self.held,
            open: &self.open,
            waiting: &self.waiting,
            next_seq: &self.next_seq,
        }
    }

    /// Returns `true` if a decoded world keeps the invariants on which [`Stepper`](super::Stepper) relies.
    #[must_use]
    pub fn is_sound(&self) -> bool {
        let ascending = |q: &[OpenQuery<S::Query>]| {
            q.windows(2)
                .all(|w| (w[0].asked, w[0].key) < (w[1].asked, w[1].key))
        };
        let is_after = |open: &[OpenQuery<S::Query>], waiting: &[OpenQuery<S::Query>]| match (
            open.last(),
            waiting.first(),
        ) {
            (Some(last), Some(first)) => (last.asked, last.key) < (first.asked, first.key),
            _ => true,
        };
        self.open.len() <= QUERIES_OPEN_MAX
            && self.waiting.len() <= QUERIES_WAITING_MAX
            && ascending(&self.open)
            && ascending(&self.waiting)
            && is_after(&self.open, &self.waiting)
            && self.unfinished.is_sound()
            && self.turn.number <= COUNT_MAX
            && self.ages.iter().all(|age| *age <= COUNT_MAX)
            && self.next_seq.iter().all(|seq| *seq <= COUNT_MAX)
            && self.held.iter().all(Controls::is_valid)
            && self.turn.cadence.is_sound()
            && (TICK_MIN..=TICK_MAX).contains(&self.tick_length())
            && self.turn.began <= self.tick
            // `Stepper::step` advances to the next turn immediately, so a world is always inside its turn.
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
    waiting: &'a [OpenQuery<S::Query>],
    next_seq: &'a [u32; PLAYERS_MAX],
}

/// The part of a world that does not depend on the game's types. A state that an author upgrades from an older version
/// continues with this part.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct WorldShell {
    tick: Tick,
    roster: Roster,
    next_seq: [u32; PLAYERS_MAX],
    turn: Turn,
    tick_ns: u32,
    /// The queries without an answer. Each is named by the tick whose step asked it, and its key.
    pub unanswered: Vec<(Tick, Key)>,
}

impl WorldShell {
    /// The next tick of the world.
    #[must_use]
    pub fn tick(&self) -> Tick {
        self.tick
    }

    /// The players with a seat, dropped ones included.
    #[must_use]
    pub fn seated(&self) -> PlayerSet {
        self.roster.seated()
    }
}

impl<S: Simulation> World<S> {
    /// The world without its state, inputs and queries.
    #[must_use]
    pub fn shell(&self) -> WorldShell {
        let unanswered = self.open.iter().chain(&self.waiting);
        WorldShell {
            tick: self.tick,
            roster: self.roster,
            next_seq: self.next_seq,
            turn: self.turn,
            tick_ns: self.tick_ns,
            unanswered: unanswered.map(|open| (open.asked, open.key)).collect(),
        }
    }

    /// A world of `sim` that continues from another world's shell. Inputs are neutral, and no query is open. Check that
    /// it [is sound](World::is_sound) if the shell was read from a file.
    #[must_use]
    pub fn in_shell(sim: S, shell: &WorldShell) -> Self {
        World {
            roster: shell.roster,
            next_seq: shell.next_seq,
            turn: shell.turn,
            tick_ns: shell.tick_ns,
            ..World::new(sim, shell.tick)
        }
    }

    /// Reserves space for the maximum number of open queries, so that copies do not allocate later.
    fn make_room(&mut self) {
        self.open
            .reserve(QUERIES_OPEN_MAX.saturating_sub(self.open.len()));
        // A burst beyond this allocates.
        self.waiting
            .reserve(ASKS_PER_TICK.saturating_sub(self.waiting.len()));
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
            waiting: self.waiting.clone(),
            next_seq: self.next_seq,
            unfinished: self.unfinished.clone(),
            ages: self.ages,
            turn: self.turn,
            tick_ns: self.tick_ns,
            opened: self.opened,
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
        self.waiting.clone_from(&other.waiting);
        self.next_seq = other.next_seq;
        self.unfinished.held.clone_from(&other.unfinished.held);
        self.ages = other.ages;
        self.turn = other.turn;
        self.tick_ns = other.tick_ns;
        self.opened = other.opened;
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::testing::doc::Echo;

    #[test]
    fn a_world_with_waiting_queries_older_than_its_open_ones_is_not_sound() {
        let asked = |tick, key| OpenQuery {
            asked: Tick(tick),
            key: Key::new(1, key),
            query: 0,
        };
        let mut world = World::new(Echo::default(), Tick(9));
        world.open = [asked(3, 0), asked(5, 1)].into();
        world.waiting = [asked(5, 2), asked(6, 0)].into();
        assert!(world.is_sound());
        world.waiting[0].key = Key::new(1, 0);
        assert!(!world.is_sound(), "asked at the same tick by a smaller key");
        world.waiting.clear();
        assert!(world.is_sound());
    }
}
