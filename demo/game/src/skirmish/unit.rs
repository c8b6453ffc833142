//! [`Unit`]: what it is, and how it is named. What it does stands in `deeds`.

use serde::{Deserialize, Serialize};
use twinstep_core::{Key, PlayerId};

use super::map::{FieldPoint, Trip};

/// What a unit is.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub enum UnitKind {
    /// Gathers.
    Villager,
    /// Fights.
    Soldier,
}

impl UnitKind {
    /// In gold.
    #[must_use]
    pub const fn price(self) -> u32 {
        match self {
            UnitKind::Villager => 20,
            UnitKind::Soldier => 30,
        }
    }

    pub(super) const fn health(self) -> i16 {
        match self {
            UnitKind::Villager => 30,
            UnitKind::Soldier => 60,
        }
    }

    pub(super) const fn steps_per_tick(self) -> u32 {
        match self {
            UnitKind::Villager => 4,
            UnitKind::Soldier => 3,
        }
    }
}

/// A unit's name: its player, and that player's own count.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
pub struct UnitId {
    /// Whose it is.
    pub owner: PlayerId,
    /// Which of its things.
    pub n: u32,
}

impl UnitId {
    pub(super) fn key(self) -> Key {
        Key::player(self.owner, self.n)
    }
}

/// One who lives.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Unit {
    /// What it is.
    pub kind: UnitKind,
    /// What it can still bear.
    pub health: i16,
    /// Where it walks or rests: see [`Trip::at`].
    pub trip: Trip,
    /// Where a soldier was sent.
    pub goal: FieldPoint,
}
