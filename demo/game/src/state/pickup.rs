//! [`Pickup`]: what lies about. Who takes it stands in `pickup`.

use glam::Vec2;
use serde::{Deserialize, Serialize};
use twinstep_core::{Key, Tick};

use crate::weapon::Weapon;

/// A pick-up's radius, in units.
pub const PICKUP_RADIUS: f32 = 0.7;
/// So many lie about at most; beyond it the oldest makes room.
pub const PICKUPS_MAX: usize = 32;

/// What can be picked up.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
pub enum Item {
    /// A weapon with full ammunition.
    Weapon(Weapon),
    /// Some health.
    Health,
    /// It takes one hit in its owner's place.
    Shield,
    /// A life for the team.
    Life,
}

/// Something that lies there.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
pub struct Pickup {
    /// Named by the crate or enemy that it comes from.
    pub key: Key,
    /// What it is.
    pub item: Item,
    /// Where.
    pub at: Vec2,
    /// The tick at which it is gone.
    pub ends: Tick,
}
