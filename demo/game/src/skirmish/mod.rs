//! *Skirmish*: villagers gather, soldiers march and fight, bombs fall. A second game, for the `strategy()`
//! preset: it is played by commands alone, nothing of it is predicted, and all its numbers are whole.
//!
//! ```text
//!   frame ─▶ roster ─▶ outcomes ─▶ commands ─▶ timers that are due ─▶ next state
//!                      (blasts)    (orders)    (arrived, trained, fuse)
//! ```
//!
//! Invariant: a tick costs what *happens* in it. Each unit sleeps in the [`Schedule`](twinstep_core::Schedule) until it
//! arrives or may strike again; ten thousand of them cost a tick nothing, and a gathering villager sends no byte,
//! because every copy of the game knows when it will be back.
//!
//! | file | idea |
//! |---|---|
//! | `map`, `rules` | places and trips in whole numbers; what a match is played on |
//! | `unit`, `state`, `messages` | who lives; all that changes; what goes into a step and comes out |
//! | `step`, `deeds` | one tick; gathering, marching, striking |
//! | `resolve` | whom a bomb hits: the server decides |
//! | `bot` | a player made of numbers |

mod bot;
mod deeds;
mod map;
mod messages;
#[cfg(feature = "physics")]
mod resolve;
mod rules;
mod state;
mod step;
#[cfg(all(test, feature = "physics"))]
mod tests;
mod unit;

pub use bot::SkirmishBot;
pub use map::{FieldPoint, STEPS, Trip};
pub use messages::{BLAST_RADIUS, BOMB_COST, Blast, BombHits, Command, Cue, HITS_MAX};
#[cfg(feature = "physics")]
pub use resolve::Bombardier;
pub use rules::Rules;
pub use state::{Skirmish, Town};
pub use unit::{Unit, UnitId, UnitKind};
