//! Under construction.

pub mod cues;
pub mod pace;
pub mod picture;
pub mod projectile;
pub mod smooth;
