//! [`Crate`] and [`Pickup`]: the things that can be broken, and the things that they leave. Taking a pick-up is in
//! `pickup`.

use glam::Vec2;
use serde::{Deserialize, Serialize};
use twinstep_core::{Key, Tick};

use super::cause;
use crate::wall::Wall;
use crate::weapon::Weapon;

/// Half of a crate's width and height, in units.
pub const CRATE_HALF: f32 = 0.75;

#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
pub struct Crate {
    /// The number of earlier crates in this slot.
    pub life: u32,
    pub born: Tick,
    pub at: Vec2,
    /// The tick since which it has lain there; `None` while it is in the air.
    pub rests: Option<Tick>,
    /// The health, 0 if broken.
    pub health: i16,
}

impl Crate {
    #[must_use]
    pub fn key(&self, n: u8) -> Key {
        Key::new(cause::CRATE | u64::from(n), self.life)
    }

    /// Returns `true` if there is a crate, on the ground or in the air.
    #[must_use]
    pub fn is_there(&self) -> bool {
        self.health > 0
    }

    /// Returns `true` if there is a crate on the ground, which is solid and gives cover from blasts.
    #[must_use]
    pub fn stands(&self) -> bool {
        self.is_there() && self.rests.is_some()
    }

    #[must_use]
    pub fn solid(&self) -> Wall {
        Wall {
            center: self.at,
            half: Vec2::splat(CRATE_HALF),
        }
    }

    #[must_use]
    pub fn contains(&self, at: Vec2) -> bool {
        (at - self.at).abs().max_element() <= CRATE_HALF && self.stands()
    }
}

/// Returns the position nearest to `at` where a disc of `radius` fits: outside of crates on the ground.
#[must_use]
pub(crate) fn push_out(crates: &[Crate], at: Vec2, radius: f32) -> Vec2 {
    let standing = crates.iter().filter(|chest| chest.stands());
    standing.fold(at, |at, chest| chest.solid().push_out(at, radius))
}

pub const PICKUP_RADIUS: f32 = 0.7;
pub const PICKUPS_MAX: usize = 32;

#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
pub enum Item {
    /// A weapon with full ammunition.
    Weapon(Weapon),
    Health,
    /// Takes one hit instead of its owner.
    Shield,
    Life,
}

#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
pub struct Pickup {
    /// The pickup's key, which is that of the crate or enemy it came from.
    pub key: Key,
    pub item: Item,
    pub at: Vec2,
    pub ends: Tick,
}
