//! Twinstep's core: ids, the step contract, and the building blocks of deterministic games. Packets and journals are
//! in `twinstep-protocol`.
//!
//! A game is a [`Simulation`]: a state with one required method. Twinstep runs it twice in each client (an *authority*
//! that steps only on frames confirmed by the server, and a *prediction* that runs ahead on assumed ones) and once on
//! the server, which seals the frames.
//!
//! ```text
//! authority  = fold(step, start, confirmed frames)
//! prediction = fold(step, clone of authority, assumed frames)
//! reconcile  = confirmed frame == assumed frame ?  keep  :  rebuild prediction from authority
//! ```
//!
//! | module | contents |
//! |---|---|
//! | [`prelude`] | everything that a game's rules import |
//! | [`ids`], [`players`] | tick, player and key; a set of players |
//! | [`simulation`] | the trait that a game implements, with the input and the output of a step |
//! | [`frame`], [`effects`] | the input and the output of a step, with the entries of a frame |
//! | [`perspective`] | the phase of a step, and the client's screen for which it runs |
//! | [`turn`] | turns: their ticks and their timing |
//! | [`world`] | the simulation with everything that a copy needs to continue; the only code that steps |
//! | [`schedule`], [`rng`], [`table`], [`chunked`], [`clone_fields!`] | building blocks of deterministic games |
//! | [`memo`] | loops whose results rebuilds reuse |
//! | [`digest`], [`diff`] | one number for a world, and where two worlds differ |
//! | [`codec`] | values as bytes |
//! | [`bounds`] | the limits of law *Bounded* |
//! | [`testing`] | helpers for authors' tests |
//!
//! This crate owns no clock, socket, thread or file; `no_std` + alloc enforces that.
#![no_std]

extern crate alloc;

pub mod bounds;
pub mod chunked;
mod cloning;
pub mod codec;
pub mod diff;
pub mod digest;
mod each;
pub mod effects;
mod entries;
pub mod frame;
pub mod ids;
pub mod memo;
pub mod perspective;
pub mod players;
pub mod prelude;
mod refused;
pub mod rng;
pub mod schedule;
pub mod simulation;
pub mod table;
pub mod testing;
mod tree;
pub mod turn;
mod values;
pub mod world;

pub use chunked::Chunked;
pub use effects::Effects;
pub use frame::{Frame, FrameData, Phase, PlayerSet, RosterChange};
pub use ids::{Key, PlayerId, Tick};
pub use rng::Mwc;
pub use schedule::Schedule;
pub use simulation::{BotMove, Controls, Never, Simulation, Wire};
pub use table::Table;
pub use world::{OpenQuery, Presence, World};
