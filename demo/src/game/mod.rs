//! *Powderkeg*, the game: a state, and one step.
//!
//! Nothing in here knows of networks, clocks or screens. Read [`Game::step`] first; each line of it is a file:
//!
//! ```text
//!   frame ─▶ roster ─▶ outcomes ─▶ orders ─▶ timers ─▶ round ─▶ players ─▶ enemies ─▶ flight ─▶ claims ─▶ next state
//!            player    barrel      order     barrel    round    player     enemy      bullet    claim
//!                      crates      player    enemy     wave     pad        path       shot
//!                      secret                crates             pickup     pattern    weapon
//! ```
//!
//! | file | idea |
//! |---|---|
//! | `rules`, `level`, `wave` | what never changes: tuning, the level, what comes |
//! | `wall`, `path`, `units` | geometry, curves, numbers that travel |
//! | `pad`, `order` | what players hold, what they order; the referee |
//! | `round` | lobby, waves, won or lost, and again |
//! | `player`, `weapon`, `shot`, `pickup` | who plays, what they fire, what they find |
//! | `kind`, `enemy`, `pattern`, `bullet` | who comes, and what it fires |
//! | `barrel`, `crates` | what stands about |
//! | `claim`, `harm` | "I was hit", "I died": said by the screen that saw it, and what comes of it |
//! | `query`, `resolve` | the questions that a step may not answer itself; how the server does |
//! | `blast` | whom a blast hits, and how a client guesses that |
//! | `toss`, `throw` | how things fly that a blast throws, and how a client guesses that |
//! | `secret` | what only the server knows: loot, critical hits |
//! | `judge` | the server's referee, and the deaths that owners owe |
//! | `cue`, `show` | what a view plays once, what it draws |
//! | `bot` | a player made of numbers |

mod barrel;
mod blast;
mod bot;
mod bullet;
mod claim;
mod crates;
mod cue;
mod enemy;
mod harm;
mod judge;
mod kind;
mod level;
mod order;
mod pad;
mod path;
mod pattern;
mod pickup;
mod player;
mod query;
mod resolve;
mod round;
mod rules;
mod secret;
mod shot;
mod show;
#[cfg(test)]
mod testing;
#[cfg(test)]
mod tests;
mod throw;
mod toss;
mod units;
mod wall;
mod wave;
mod weapon;

use serde::{Deserialize, Serialize};
use twinstep_core::bounds::PLAYERS_MAX;
use twinstep_core::{Effects, Frame, PlayerId, Schedule, Simulation, Table, Tick};

pub use barrel::{BARREL_RADIUS, Barrel, Stage};
pub use blast::{Body, Form, HITS_MAX, Hit, Hits, bodies_near};
pub use bot::{Bot, Sticks};
pub use bullet::{BULLET_RADIUS, Bullet};
pub use crates::{CRATE_HALF, Crate};
pub use cue::Cue;
pub use enemy::Enemy;
pub use judge::Judge;
pub use kind::Kind;
pub use order::{Command, Refusal, admit};
pub use pad::Pad;
pub use path::Path;
pub use pickup::{Item, PICKUP_RADIUS, PICKUPS_MAX, Pickup};
use player::Former;
pub use player::{PLAYER_RADIUS, Player};
pub use query::{Bomb, Outcome, Query, Strike, speculate};
pub use resolve::{Arbiter, ArbiterError, Luck};
pub use round::Phase;
pub use rules::{Rules, Tuning};
pub use shot::{PIERCED_MAX, SHOT_RADIUS, Shot};
pub use show::{Pose, ShowKey, poses};
pub use toss::{Flight, LEG_TICKS, LEGS_MAX, Leg, Prop, TOSSED_MAX, Throw};
pub use units::{Heading, Point, angle_of, direction};
pub use wall::Wall;
pub use wave::{Group, Wave};
pub use weapon::Weapon;

/// Everything that changes. Built of lists without heap inside, so that a prediction is rebuilt by
/// [`clone_from`](Clone::clone_from) without allocating.
///
/// ```
/// use powderkeg::game::{Game, Rules};
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
    pub phase: Phase,
    /// Since when it is so far.
    pub phase_since: Tick,
    /// Since when at least half of those present wait for the others to be ready.
    half_ready_since: Option<Tick>,
    /// The wave that is on or was last, from 1; 0 before the first.
    pub wave: u8,
    /// Lives that the team has left.
    pub lives: u16,
    /// The team's points.
    pub score: u32,
    /// Who plays.
    pub players: Table<PlayerId, Player>,
    /// Who played, and left, by seat.
    former: Table<PlayerId, Former>,
    /// One slot each, as many as [`Rules::slots`].
    pub enemies: Vec<Enemy>,
    /// Players' shots, by age.
    pub shots: Vec<Shot>,
    /// Enemies' bullets, by age.
    pub bullets: Vec<Bullet>,
    /// One for each of [`Rules::barrels`].
    pub barrels: Vec<Barrel>,
    /// One for each of [`Rules::crates`].
    pub crates: Vec<Crate>,
    /// Barrels and crates in the air, by the time of their throw.
    pub flights: Vec<Flight>,
    /// What lies about, by age.
    pub pickups: Vec<Pickup>,
    /// What wakes when.
    timers: Schedule<Timer>,
    /// The root of all luck; who needs some forks it by its own name.
    seed: u64,
}

/// What a timer wakes.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
enum Timer {
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

/// Causes that are not players: the upper half of a key's `of`, so that kinds never meet.
mod cause {
    pub(super) const ENEMY: u64 = 1 << 32;
    pub(super) const BARREL: u64 = 2 << 32;
    pub(super) const CRATE: u64 = 3 << 32;
    pub(super) const ROUND: u64 = 4 << 32;
}

impl Game {
    /// The start of a match. Equal rules and seeds make equal matches, on every machine.
    #[must_use]
    pub fn new(rules: &Rules, seed: u64) -> Game {
        let mut game = Game {
            round: 0,
            phase: if rules.is_campaign() {
                Phase::Lobby
            } else {
                Phase::Endless
            },
            phase_since: Tick(0),
            half_ready_since: None,
            wave: 0,
            lives: 0,
            score: 0,
            players: Table::new(),
            former: Table::with_capacity(PLAYERS_MAX),
            enemies: Vec::new(),
            shots: Vec::new(),
            bullets: Vec::new(),
            barrels: Vec::new(),
            crates: Vec::new(),
            flights: Vec::new(),
            pickups: Vec::new(),
            timers: Schedule::new(),
            seed,
        };
        game.place_barrels(rules);
        game.place_crates(rules);
        game.make_slots(rules);
        game
    }

    /// Gives the lists room for what this many enemies bring, once: whatever copy of the state is stepped or
    /// copied into allocates no more after that. About 30 bytes for each bullet.
    fn make_room(&mut self, enemies: usize) {
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

    fn wake(&mut self, frame: &Frame<'_, Game>, fx: &mut Effects<Game>) {
        while let Some((_, timer)) = self.timers.pop_due(frame.tick()) {
            match timer {
                Timer::Fuse(n) => self.burst(n, frame, fx),
                Timer::Barrel(n) => self.return_barrel(n, frame),
                Timer::Crate(n) => self.return_crate(n, frame),
                Timer::Enemy(slot) => self.arrive(slot, frame),
                Timer::Player(id) => self.return_player(id, frame, fx),
            }
        }
    }
}

impl Simulation for Game {
    const NAME: &'static str = "powderkeg";
    const VERSION: u32 = 3;

    type Rules = Rules;
    type Input = Pad;
    type Command = Command;
    type Query = Query;
    type Outcome = Outcome;
    type Cue = Cue;

    /// One tick. Cost, in a release build on one core of a 2-core cloud machine, medians with 8 players: 4 µs in
    /// the campaign, 10 µs with 300 enemies as they play (1,040 bullets), 14 µs when the players fight them and
    /// one is local, 35 µs with 1,000 enemies (3,400 bullets). Linear in enemies and in bullets, but for shots ×
    /// enemies and, where crates stand, bullets × crates. Allocates only while a list grows beyond its largest
    /// size so far.
    fn step(&mut self, frame: &Frame<'_, Game>, fx: &mut Effects<Game>) {
        self.make_room(self.enemies.len());
        self.follow_roster(frame, fx);
        self.hear_outcomes(frame, fx);
        self.obey(frame, fx);
        self.wake(frame, fx);
        self.direct(frame, fx);
        self.move_flights(frame);
        self.move_players(frame, fx);
        self.pick_up(frame, fx);
        self.move_enemies(frame, fx);
        self.sap(frame, fx);
        self.move_bullets(frame.tick());
        self.move_shots(frame, fx);
        self.claim_harm(frame, fx);
    }
}

/// `Clone` whose `clone_from` goes field by field, so that each list keeps its buffer; a derived one would
/// allocate them all anew.
macro_rules! clone_fields {
    ($type:ident { $($field:ident),* $(,)? }) => {
        impl Clone for $type {
            fn clone(&self) -> Self {
                $type { $($field: self.$field.clone()),* }
            }

            fn clone_from(&mut self, other: &Self) {
                self.make_room(other.enemies.len());
                $(self.$field.clone_from(&other.$field);)*
            }
        }
    };
}

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
});
