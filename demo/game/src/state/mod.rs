//! The state: what there is.
//!
//! Invariant: no file of this folder imports one that plays a part of the step. What an enemy *is* stands here, what
//! happens to it stands in `enemy`, beside this folder.

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

/// Everything that changes. Built of lists without heap inside, so that a prediction is rebuilt by
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
    /// Which round it is, from 1; 0 before the first.
    pub round: u32,
    /// How far it is.
    pub phase: RoundPhase,
    /// Since when it is so far.
    pub phase_since: Tick,
    /// Since when at least half of those present wait for the others to be ready.
    pub(crate) half_ready_since: Option<Tick>,
    /// The wave that is on or was last, from 1; 0 before the first.
    pub wave: u8,
    /// Lives that the team has left.
    pub lives: u16,
    /// The team's points.
    pub score: u32,
    /// Who plays.
    pub players: Table<PlayerId, Player>,
    /// Who played, and left, by seat.
    pub(crate) former: Table<PlayerId, Former>,
    /// One slot each, as many as [`Rules::slots`](crate::Rules::slots).
    pub enemies: Vec<Enemy>,
    /// Players' shots, by age.
    pub shots: Vec<Shot>,
    /// Enemies' bullets, by age.
    pub bullets: Vec<Bullet>,
    /// One for each of [`Rules::barrels`](crate::Rules::barrels).
    pub barrels: Vec<Barrel>,
    /// One for each of [`Rules::crates`](crate::Rules::crates).
    pub crates: Vec<Crate>,
    /// Barrels and crates in the air, by the time of their throw.
    pub flights: Vec<Flight>,
    /// What lies about, by age.
    pub pickups: Vec<Pickup>,
    /// What wakes when.
    pub(crate) timers: Schedule<Timer>,
    /// The root of all luck; who needs some forks it by its own name.
    pub(crate) seed: u64,
}

/// How far a round is.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub enum RoundPhase {
    /// An arena without rounds.
    Endless,
    /// Players gather and say when they are ready; nothing hurts.
    Lobby,
    /// All are ready; nothing hurts yet.
    Countdown,
    /// Enemies come.
    Wave,
    /// A rest before the next wave.
    Lull,
    /// The last wave is cleared.
    Won,
    /// Everybody is dead, and no life is left.
    Lost,
}

impl RoundPhase {
    /// Whether players can be hurt.
    #[must_use]
    pub fn is_dangerous(self) -> bool {
        matches!(
            self,
            RoundPhase::Endless | RoundPhase::Wave | RoundPhase::Lull
        )
    }

    /// Whether players are asked if they are ready.
    #[must_use]
    pub fn is_waiting(self) -> bool {
        matches!(self, RoundPhase::Lobby | RoundPhase::Won | RoundPhase::Lost)
    }
}

/// What a timer wakes.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) enum Timer {
    /// A barrel's fuse has burnt down.
    Fuse(u8),
    /// A new barrel stands.
    Barrel(u8),
    /// A new crate stands.
    Crate(u8),
    /// The next enemy of a slot appears.
    Enemy(u16),
    /// A player comes back.
    Player(PlayerId),
}

/// Shots that a state has room for.
const SHOTS_ROOM: usize = 256;
/// Bullets that it has room for without enemies, and for each enemy (measured: 3.3 of each, at the peak 5).
const BULLETS_ROOM: usize = 128;
const BULLETS_PER_ENEMY: usize = 8;
/// Timers that it has room for besides one for each enemy: fuses, returning barrels and players.
const TIMERS_ROOM: usize = 128;

impl Game {
    /// Gives the lists room for what this many enemies bring, once: whatever copy of the state is stepped or
    /// copied into allocates no more after that. About 30 bytes for each bullet.
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

// Each list keeps its buffer, and has room for what its wave may bring.
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

/// Causes that are not players: the upper half of a key's `of`, so that kinds never meet.
pub(crate) mod cause {
    pub(crate) const ENEMY: u64 = 1 << 32;
    pub(crate) const BARREL: u64 = 2 << 32;
    pub(crate) const CRATE: u64 = 3 << 32;
    pub(crate) const ROUND: u64 = 4 << 32;
}
