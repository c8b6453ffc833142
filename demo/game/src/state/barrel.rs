//! [`Barrel`]: a place for barrels, and the one that stands there. What happens to it stands in `barrel`.

use glam::Vec2;
use serde::{Deserialize, Serialize};
use twinstep_core::{Key, PlayerId, Tick};

use super::cause;

/// A barrel's radius, in units.
pub const BARREL_RADIUS: f32 = 0.5;

/// How far a barrel is.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub enum BarrelStage {
    /// It stands and can be lit.
    Whole,
    /// Its fuse burns.
    Lit,
    /// It went off; whom it hits is being asked.
    Blasting,
    /// Nothing stands here for a while.
    Gone,
}

/// A place for barrels, and the one that stands there.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
pub struct Barrel {
    /// How many stood here before.
    pub life: u32,
    /// Since when.
    pub born: Tick,
    /// How far it is.
    pub stage: BarrelStage,
    /// Where it is.
    pub at: Vec2,
    /// Since when it lies there; `None`: a blast has thrown it, and it is in the air.
    pub rests: Option<Tick>,
    /// Who gets the credit.
    pub by: Option<PlayerId>,
}

impl Barrel {
    pub(crate) fn new(life: u32, born: Tick, at: Vec2) -> Barrel {
        Barrel {
            life,
            born,
            at,
            rests: Some(born),
            stage: BarrelStage::Whole,
            by: None,
        }
    }

    /// Its name: by place and life.
    #[must_use]
    pub fn key(&self, n: u8) -> Key {
        Key::new(cause::BARREL | u64::from(n), self.life)
    }

    /// The name under which it asks whom its blast hits: that of who lit it, so that its own client may answer
    /// where owners do, else its own.
    #[must_use]
    pub fn question(&self, n: u8) -> Key {
        match self.by {
            Some(player) => Key::player(player, u32::from(n) << 22 | self.life & 0x3f_ffff),
            None => self.key(n),
        }
    }

    /// Whether there is a barrel, on the ground or in the air.
    #[must_use]
    pub fn is_there(&self) -> bool {
        matches!(self.stage, BarrelStage::Whole | BarrelStage::Lit)
    }

    /// Whether one stands on the ground.
    #[must_use]
    pub fn stands(&self) -> bool {
        self.is_there() && self.rests.is_some()
    }

    /// Whether one stands here that does not burn yet.
    #[must_use]
    pub fn can_be_lit(&self) -> bool {
        self.stage == BarrelStage::Whole && self.rests.is_some()
    }
}
