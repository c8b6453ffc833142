//! The rig: a complete world (match, clients, network, and a truly nondeterministic resolver) in virtual time, from one
//! seed. It drives the same sessions as production.
//!
//! ```text
//!  Rig ── match ◀──▶ legs of simnet ◀──▶ sessions (one per client)
//!   │        └─ jobs, finished after a random while
//!   └─ a plan: joins, leaves, freezes, stalls, link changes, one flipped state
//! ```
//!
//! Chaos first: while it lasts, [`Rig::run`] asserts safety conditions. Then the network heals, and [`Rig::converge`]
//! requires that all clients are live again. A failure prints the seed; one command reruns it.

#![allow(missing_docs, reason = "no author of a game imports it")]

/// Declares the name, the version and the types of a test's game in its `impl Simulation`. With only a name, inputs are
/// bytes, and the game has no rules, commands, queries or cues.
#[macro_export]
macro_rules! game_types {
    ($name:literal) => {
        $crate::game_types!(
            $name,
            (),
            u8,
            ::twinstep_core::Never,
            ::twinstep_core::Never,
            ::twinstep_core::Never,
            ::twinstep_core::Never
        );
    };
    ($name:literal, $rules:ty, $input:ty, $command:ty, $query:ty, $outcome:ty, $cue:ty) => {
        const NAME: &'static str = $name;
        const VERSION: u32 = 1;
        type Rules = $rules;
        type Input = $input;
        type Command = $command;
        type Query = $query;
        type Outcome = $outcome;
        type Cue = $cue;
    };
}

pub mod ball;
pub mod chaos;
pub mod checked;
pub mod direct;
pub mod edges;
pub mod history;
#[cfg(feature = "whole")]
pub mod lines;
pub mod machines;
pub mod powderkeg;
pub mod realm;
pub mod recorded;
pub mod rig;

pub use rig::{Play, Rig, RigConfig};
