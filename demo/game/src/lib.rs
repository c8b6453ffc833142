//! *Powderkeg*, the game: a state, and one step.
//!
//! Nothing in here knows of networks, clocks or screens. Read `Game::step` in `step` first; each line of it is a file:
//!
//! ```text
//!   frame ─▶ roster ─▶ outcomes ─▶ orders ─▶ timers ─▶ round ─▶ players ─▶ enemies ─▶ flight ─▶ claims ─▶ next state
//!            player    barrel      order     barrel    round    player     enemy      shot      claim
//!                      crates      player    enemy     wave     pad        path       weapon
//!                      secret                crates             pickup     pattern
//! ```
//!
//! | file | idea |
//! |---|---|
//! | `rules`, `level`, `wave` | what never changes: tuning, the level, what comes |
//! | `wall`, `path`, `units` | geometry, curves, numbers that travel |
//! | `state` | what there is: players, enemies, shots, barrels and the rest, without what happens to them |
//! | `step` | the first state; one tick, and what wakes in it |
//! | `pad`, `order` | what players hold, what they order; the referee |
//! | `round` | lobby, waves, won or lost, and again |
//! | `player`, `weapon`, `shot`, `pickup` | who plays, what they fire, what they find |
//! | `kind`, `enemy`, `pattern` | who comes, and what it fires |
//! | `barrel`, `crates` | what stands about |
//! | `claim`, `harm` | "I was hit", "I died": said by the screen that saw it, and what comes of it |
//! | `query`, `resolve` | the questions that a step may not answer itself; how the server does |
//! | `hit`, `blast` | what goes off, whom it hits, and how a client guesses that |
//! | `toss`, `throw` | how things fly that a blast throws; how a client guesses that, and what else it guesses |
//! | `secret` | what only the server knows: loot, critical hits |
//! | `judge` | the server's referee, and the deaths that owners owe |
//! | `cue`, `show` | what a view plays once; what it draws, and how a client's picture wants that |
//! | `bot` | a player made of numbers |
//! | [`terms`] | rules, policies and sessions: how it is played on Twinstep |

#![cfg_attr(
    not(feature = "physics"),
    allow(dead_code, reason = "what the server decides by physics is not here")
)]

mod barrel;
mod blast;
mod bot;
mod claim;
mod crates;
mod cue;
mod enemy;
mod harm;
mod hit;
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
#[cfg(feature = "physics")]
mod resolve;
mod round;
mod rules;
mod secret;
mod shot;
mod show;
mod state;
mod step;
pub mod terms;
#[cfg(test)]
mod testing;
#[cfg(all(test, feature = "physics"))]
mod tests;
mod throw;
mod toss;
mod units;
mod wall;
mod wave;
mod weapon;

pub use blast::bodies_near;
pub use bot::{Bot, Sticks};
pub use cue::Cue;
pub use hit::{BlastHit, BlastHits, Bomb, Form, HITS_MAX, Victim};
pub use judge::Judge;
pub use kind::EnemyKind;
pub use order::{Command, Refusal, admit};
pub use pad::Pad;
pub use path::Path;
pub use query::{Outcome, Query, Strike};

#[cfg(feature = "physics")]
pub use resolve::{Arbiter, ArbiterError, Luck};
pub use rules::{Rules, Tuning};
pub use show::{GameShow, Pose, ShowKey, poses};
pub use state::{
    BARREL_RADIUS, BULLET_RADIUS, Barrel, BarrelStage, Bullet, CRATE_HALF, Crate, Enemy, Flight,
    FlightLeg, Game, Item, LEG_TICKS, LEGS_MAX, PICKUP_RADIUS, PICKUPS_MAX, PLAYER_RADIUS, Pickup,
    Player, Prop, RoundPhase, SHOT_RADIUS, Shot, TOSSED_MAX, Throw,
};
pub use throw::speculate;
pub use units::{Heading, Point, angle_of, direction};
pub use wall::Wall;
pub use wave::{Group, Wave};
pub use weapon::{PIERCED_MAX, Weapon};
