//! Under construction.

pub mod cues;
pub mod pace;
