//! [`Effects`]: the output of a step.
//!
//! The type is defined next to the trait that it belongs to, in [`simulation`](crate::simulation).

pub use crate::simulation::Effects;
