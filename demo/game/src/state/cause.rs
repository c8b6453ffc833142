//! Causes that are not players: the upper half of a key's `of`, so that kinds never meet.

pub(crate) const ENEMY: u64 = 1 << 32;
pub(crate) const BARREL: u64 = 2 << 32;
pub(crate) const CRATE: u64 = 3 << 32;
pub(crate) const ROUND: u64 = 4 << 32;
