//! *Powderkeg*, the game: a state, and one step.
//!
//! This crate has no network, clock or screen. Read `Game::step` in `step` first; each line calls into one file:
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
//! | `rules`, `level`, `wave` | a match's constants: tuning, the level, the waves |
//! | `wall`, `path`, `units` | geometry, curves, numbers on the wire |
//! | `state` | the data: players, enemies, shots, barrels and the rest, without their behaviour |
//! | `step` | the first state; one tick, and its timers |
//! | `pad`, `order` | inputs and orders of players; which orders are admitted |
//! | `round` | lobby, waves, won or lost, then the next round |
//! | `player`, `weapon`, `shot`, `pickup` | players, what they fire, what they find |
//! | `kind`, `enemy`, `pattern` | enemies, and what they fire |
//! | `barrel`, `crates` | barrels and crates |
//! | `claim`, `harm` | "I was hit", "I died": claims by the screen that showed it, and their effects |
//! | `query`, `resolve` | the questions that a step must not answer itself; how the server answers them |
//! | `hit`, `blast` | what explodes, what it hits, and how a client guesses that |
//! | `toss`, `throw` | how a blast throws things; how a client guesses that, and its other guesses |
//! | `secret` | secrets of the server: loot, critical hits |
//! | `judge` | the server's referee, and harm that owners have not claimed |
//! | `cue`, `show` | what a view plays once; what it draws, and how it interpolates |
//! | `bot` | an automatic player |
//! | [`terms`] | rules, policies and sessions: the game on Twinstep |

#![allow(missing_docs, reason = "no author of a game imports it")]
#![cfg_attr(
    not(feature = "physics"),
    allow(
        dead_code,
        reason = "without physics, the server's decisions are missing"
    )
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
