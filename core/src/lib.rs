//! Twinstep's core: under construction.
#![no_std]
extern crate alloc;

pub mod words;
pub use words::{Key, PlayerId, Tick};
/// Bounds.
pub mod bounds {
    /// Players of one match.
    pub const PLAYERS_MAX: usize = 16;
}
