//! [`Barrel`]: a slot for barrels, and the barrel in it. Its behaviour is in `barrel`.

use glam::Vec2;
use serde::{Deserialize, Serialize};
use twinstep_core::{Key, PlayerId, Tick};

use super::cause;

pub const BARREL_RADIUS: f32 = 0.5;

#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub enum BarrelStage {
    Whole,
    Lit,
    /// The barrel has exploded; the query for its hits is open.
    Blasting,
    Gone,
}

#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
pub struct Barrel {
    /// The number of earlier barrels in this slot.
    pub life: u32,
    pub born: Tick,
    pub stage: BarrelStage,
    pub at: Vec2,
    /// The tick since which it has lain there; `None` while it is in the air.
    pub rests: Option<Tick>,
    /// The player that gets the credit for its blast.
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

    #[must_use]
    pub fn key(&self, n: u8) -> Key {
        Key::new(cause::BARREL | u64::from(n), self.life)
    }

    /// The key of the barrel's query. If a player lit the barrel, the key belongs to that player, so the player's
    /// client can answer in matches where owners answer. Otherwise the key belongs to the barrel.
    #[must_use]
    pub fn question(&self, n: u8) -> Key {
        match self.by {
            // `n` is below 128, so this stays below the bits of tosses (30) and shells (31).
            Some(player) => Key::player(player, u32::from(n) << 22 | self.life & 0x3f_ffff),
            None => self.key(n),
        }
    }

    /// Returns `true` if there is a barrel, on the ground or in the air.
    #[must_use]
    pub fn is_there(&self) -> bool {
        matches!(self.stage, BarrelStage::Whole | BarrelStage::Lit)
    }

    #[must_use]
    pub fn stands(&self) -> bool {
        self.is_there() && self.rests.is_some()
    }

    #[must_use]
    pub fn can_be_lit(&self) -> bool {
        self.stage == BarrelStage::Whole && self.rests.is_some()
    }
}
