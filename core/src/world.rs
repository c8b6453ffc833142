//! The world: the simulation with all data that a copy of it needs to continue.
//!
//! Snapshots, digests, journals and joins contain the world, never the simulation alone: a snapshot without the open
//! queries would leave some of them unanswered forever. Only [`Stepper`] steps a world: on the server, in the authority
//! and in the prediction.

mod bots;
mod fragments;
mod roster;
mod state;
mod stepper;

pub use crate::entries::OpenQuery;
pub use fragments::LargeEntries;
pub use roster::Presence;
pub use state::{World, WorldShell};
pub use stepper::{FrameError, Stepper};
