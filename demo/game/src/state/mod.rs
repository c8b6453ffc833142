//! The state: the data without its behaviour.
//!
//! Invariant: no file of this folder imports a file that takes part in the step. What an enemy *is* is defined here;
//! what happens to it is in `enemy`, outside this folder.

mod barrel;
pub(crate) mod crates;
mod enemy;
mod flight;
mod player;
mod shot;

use serde::{Deserialize, Serialize};
use twinstep_core::{PlayerId, Schedule, Table, Tick, clone_fields};

pub use barrel::{BARREL_RADIUS, Barrel, BarrelStage};
pub use crates::{CRATE_HALF, Crate, Item, PICKUP_RADIUS, PICKUPS_MAX, Pickup};
pub use enemy::Enemy;
pub use flight::{Flight, FlightLeg, LEG_TICKS, LEGS_MAX, Prop, TOSSED_MAX, Throw};
pub(crate) use player::{Fate, Former};
pub use player::{PLAYER_RADIUS, Player};
pub use shot::{BULLET_RADIUS, Bullet, SHOT_RADIUS, Shot};

/// All of the game's mutable state, in lists of plain values, so that a prediction is rebuilt by
/// [`clone_from`](Clone::clone_from) without allocating.
///
/// ```
/// use powderkeg_game::{Game, Rules};
/// use twinstep_core::PlayerId;
/// use twinstep_core::testing::Solo;
///
/// let rules = Rules::arena(24);
/// let mut solo = Solo::new(Game::new(&rules, 7), rules);
/// solo.join(PlayerId(0)).run(600);
/// assert!(solo.sim().enemies.iter().all(|enemy| enemy.is_alive()));
/// ```
#[derive(Debug, PartialEq, Serialize, Deserialize)]
pub struct Game {
    /// The number of the round, from 1; 0 before the first.
    pub round: u32,
    pub phase: RoundPhase,
    pub phase_since: Tick,
    /// The tick since which at least half of the present players have been ready.
    pub(crate) half_ready_since: Option<Tick>,
    /// The number of the current or last wave, from 1; 0 before the first.
    pub wave: u8,
    pub lives: u16,
    pub score: u32,
    pub players: Table<PlayerId, Player>,
    pub(crate) former: Table<PlayerId, Former>,
    /// The slots for enemies, [`Rules::slots`](crate::Rules::slots) of them.
    pub enemies: Vec<Enemy>,
    /// Players' shots, oldest first.
    pub shots: Vec<Shot>,
    pub bullets: Vec<Bullet>,
    /// One for each of [`Rules::barrels`](crate::Rules::barrels).
    pub barrels: Vec<Barrel>,
    /// One for each of [`Rules::crates`](crate::Rules::crates).
    pub crates: Vec<Crate>,
    /// Barrels and crates in the air, in the order in which they were thrown.
    pub flights: Vec<Flight>,
    /// Pick-ups, oldest first.
    pub pickups: Vec<Pickup>,
    pub(crate) timers: Schedule<Timer>,
    /// The seed of all generators; each is forked from it by its key.
    pub(crate) seed: u64,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub enum RoundPhase {
    Endless,
    /// Players gather and get ready; they cannot be hurt.
    Lobby,
    /// The round is about to start; players cannot be hurt yet.
    Countdown,
    Wave,
    Lull,
    Won,
    /// All players except idle ones are out.
    Lost,
}

impl RoundPhase {
    #[must_use]
    pub fn is_dangerous(self) -> bool {
        matches!(
            self,
            RoundPhase::Endless | RoundPhase::Wave | RoundPhase::Lull
        )
    }

    #[must_use]
    pub fn is_waiting(self) -> bool {
        matches!(self, RoundPhase::Lobby | RoundPhase::Won | RoundPhase::Lost)
    }
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) enum Timer {
    Fuse(u8),
    Barrel(u8),
    Crate(u8),
    Enemy(u16),
    Player(PlayerId),
}

const SHOTS_ROOM: usize = 256;
/// Space for bullets, besides `BULLETS_PER_ENEMY`.
const BULLETS_ROOM: usize = 128;
/// Measured: 3.3 bullets per enemy, 5 at the peak.
const BULLETS_PER_ENEMY: usize = 8;
/// Space for timers besides one per enemy: fuses, returning barrels and players.
const TIMERS_ROOM: usize = 128;

impl Game {
    /// Reserves space in the lists for this many enemies and their bullets, once. After that, stepping or copying this
    /// state or a copy of it does not allocate. Takes 40 bytes per bullet.
    pub(crate) fn make_room(&mut self, enemies: usize) {
        fn room<T>(list: &mut Vec<T>, items: usize) {
            if list.capacity() < items {
                list.reserve_exact(items - list.len());
            }
        }
        room(&mut self.shots, SHOTS_ROOM);
        room(
            &mut self.bullets,
            BULLETS_ROOM + BULLETS_PER_ENEMY * enemies,
        );
        room(&mut self.enemies, enemies);
        room(&mut self.flights, self.barrels.len() + self.crates.len());
        room(&mut self.pickups, PICKUPS_MAX);
        self.timers.make_room(TIMERS_ROOM + enemies);
    }
}

// Each list keeps its buffer, and gets space for the bullets of its wave.
clone_fields!(Game {
    round,
    phase,
    phase_since,
    half_ready_since,
    wave,
    lives,
    score,
    players,
    former,
    enemies,
    shots,
    bullets,
    barrels,
    crates,
    flights,
    pickups,
    timers,
    seed
} first |to, from| to.make_room(from.enemies.len()));

/// The causes other than players, used as the upper half of a key's `of`, so that keys of different kinds never
/// collide.
pub(crate) mod cause {
    pub(crate) const ENEMY: u64 = 1 << 32;
    pub(crate) const BARREL: u64 = 2 << 32;
    pub(crate) const CRATE: u64 = 3 << 32;
    pub(crate) const ROUND: u64 = 4 << 32;
}
