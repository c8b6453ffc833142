//! [`Crate`] and [`Pickup`]: what can be broken, and what lies there then. Who takes it stands in `pickup`.

use glam::Vec2;
use serde::{Deserialize, Serialize};
use twinstep_core::{Key, Tick};

use super::cause;
use crate::wall::Wall;
use crate::weapon::Weapon;

/// Half of a crate's width and height, in units.
pub const CRATE_HALF: f32 = 0.75;

/// A place for crates, and the one that stands there.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
pub struct Crate {
    /// How many stood here before.
    pub life: u32,
    /// Since when.
    pub born: Tick,
    /// Its middle.
    pub at: Vec2,
    /// Since when it lies there; `None`: a blast has thrown it, and it is in the air.
    pub rests: Option<Tick>,
    /// 0: broken.
    pub health: i16,
}

impl Crate {
    /// Its name: by place and life.
    #[must_use]
    pub fn key(&self, n: u8) -> Key {
        Key::new(cause::CRATE | u64::from(n), self.life)
    }

    /// Whether there is a crate, on the ground or in the air.
    #[must_use]
    pub fn is_there(&self) -> bool {
        self.health > 0
    }

    /// Whether one stands on the ground: it is solid, and hides what is behind it from blasts.
    #[must_use]
    pub fn stands(&self) -> bool {
        self.is_there() && self.rests.is_some()
    }

    /// The box that it is.
    #[must_use]
    pub fn solid(&self) -> Wall {
        Wall {
            center: self.at,
            half: Vec2::splat(CRATE_HALF),
        }
    }

    /// Whether a point is inside of it.
    #[must_use]
    pub fn holds(&self, at: Vec2) -> bool {
        (at - self.at).abs().max_element() <= CRATE_HALF && self.stands()
    }
}

/// Where a disc that wants to be at `at` can be: outside of standing crates.
#[must_use]
pub(crate) fn push_out(crates: &[Crate], at: Vec2, radius: f32) -> Vec2 {
    let standing = crates.iter().filter(|chest| chest.stands());
    standing.fold(at, |at, chest| chest.solid().push_out(at, radius))
}

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
