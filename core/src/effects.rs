//! [`Effects`]: the output of a step.
//!
//! The type is defined next to its trait, in [`simulation`](crate::simulation).

pub use crate::simulation::Effects;
