//! What a step tells the outside: questions, cues, claims, and that it held something back.
//!
//! [`Effects`] stand beside the trait that they are part of, in [`simulation`](crate::simulation).

pub use crate::simulation::Effects;
