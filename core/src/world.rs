//! The world: the simulation with all that a copy of it needs to go on.
//!
//! ```text
//! world = simulation + roster + last inputs + open queries + next command sequence per player + turn
//! ```
//!
//! Snapshot, digest, journal and join are of the world, never of the simulation alone: a snapshot that
//! forgets the open queries leaves some unanswered for ever. [`Stepper`] is the one place that steps a
//! world, on the server, in the authority and in the prediction alike.

mod roster;
mod state;
mod stepper;

pub use crate::entries::OpenQuery;
pub use roster::Presence;
pub use state::World;
pub use stepper::{FrameError, Stepper};
