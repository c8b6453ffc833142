//! Twinstep's core: the words, the step contract, and what deterministic games are built of. Packets and journals are in
//! `twinstep-protocol`.
//!
//! A game is a [`Simulation`]: a state with one method. Twinstep runs it twice in each client (an
//! *authority* that steps only on frames confirmed by the server, and a *prediction* that runs ahead on
//! assumed ones) and once on the server, which seals the frames.
//!
//! ```text
//! authority  = fold(step, start, confirmed frames)
//! prediction = fold(step, clone of authority, assumed frames)
//! reconcile  = confirmed frame == assumed frame ?  keep  :  rebuild prediction from authority
//! ```
//!
//! | module | what is in it |
//! |---|---|
//! | [`prelude`] | all that the rules of a game import |
//! | [`words`], [`players`] | tick, player, key; a set of players |
//! | [`simulation`] | the trait that a game implements, what its step is told, and what it tells |
//! | [`frame`], [`effects`] | the same by their names, and what a frame is made of |
//! | [`perspective`] | whose screen a step is for |
//! | [`turn`] | turns, and how they are clocked |
//! | [`world`] | the simulation with all that a copy needs to go on; the one place that steps |
//! | [`schedule`], [`rng`], [`table`], [`chunked`], [`clone_fields!`] | what deterministic games are built of |
//! | [`digest`], [`diff`] | one number for a world, and where two differ |
//! | [`codec`] | values as bytes |
//! | [`bounds`] | every number of law *Bounded* |
//! | [`testing`] | for authors' tests |
//!
//! Nothing here owns a clock, a socket, a thread or a file; `no_std` + alloc keeps it so.
#![no_std]

extern crate alloc;

pub mod bounds;
pub mod chunked;
mod cloning;
pub mod codec;
pub mod diff;
pub mod digest;
pub mod effects;
mod entries;
pub mod frame;
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
pub mod words;
pub mod world;

pub use chunked::Chunked;
pub use effects::Effects;
pub use frame::{Frame, FrameData, Phase, PlayerSet, RosterChange};
pub use rng::Mwc;
pub use schedule::Schedule;
pub use simulation::{Controls, Never, Simulation, Wire};
pub use table::Table;
pub use words::{Key, PlayerId, Tick};
pub use world::{OpenQuery, Presence, World};
