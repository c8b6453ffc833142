//! Under construction.

pub mod physics;
