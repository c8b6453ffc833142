//! [`Shot`] and [`Bullet`]: the shots of players, and the bullets of enemies. Their flight is in `shot`.

use glam::Vec2;
use serde::de::Error;
use serde::{Deserialize, Deserializer, Serialize};
use twinstep_core::{Key, PlayerId, Tick};

use crate::kind::EnemyKind;
use crate::rules::Rules;
use crate::weapon::{PIERCED_MAX, Weapon};

pub const SHOT_RADIUS: f32 = 0.2;

#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
pub struct Shot {
    pub key: Key,
    pub owner: PlayerId,
    pub weapon: Weapon,
    pub born: Tick,
    pub at: Vec2,
    pub step: Vec2,
    /// The tick at which the shot disappears or, if it is a shell, lands.
    pub ends: Tick,
    /// The number of enemies that the shot has hit, below [`PIERCED_MAX`]. Their slots are in `slots`.
    #[serde(deserialize_with = "not_spent")]
    pub(crate) pierced: u8,
    pub(crate) slots: [u16; PIERCED_MAX],
}

/// Rejects a shot that has hit [`PIERCED_MAX`] enemies: a step removes it immediately, and its count would index
/// `slots` out of range.
fn not_spent<'de, D: Deserializer<'de>>(from: D) -> Result<u8, D::Error> {
    let pierced = u8::deserialize(from)?;
    match usize::from(pierced) < PIERCED_MAX {
        true => Ok(pierced),
        false => Err(D::Error::custom("a shot with more hits than it can have")),
    }
}

impl Shot {
    pub(crate) fn fired(
        owner: PlayerId,
        n: u32,
        weapon: Weapon,
        at: Vec2,
        toward: Vec2,
        now: Tick,
        rules: &Rules,
    ) -> Shot {
        let step = toward * weapon.speed();
        let flight_ticks = if weapon.is_lobbed() {
            rules.ticks_inside(at, step, weapon.flight_ticks())
        } else {
            rules.flight_ticks(at, step, weapon.flight_ticks())
        };
        Shot {
            key: Key::player(owner, n),
            owner,
            weapon,
            born: now,
            at,
            step,
            ends: now + flight_ticks,
            pierced: 0,
            slots: [0; PIERCED_MAX],
        }
    }

    pub(crate) fn has_pierced(&self, slot: u16) -> bool {
        self.slots[..usize::from(self.pierced)].contains(&slot)
    }

    /// Records a hit. Returns `true` if this was the shot's last hit.
    pub(crate) fn pierce(&mut self, slot: u16) -> bool {
        self.slots[usize::from(self.pierced)] = slot;
        self.pierced += 1;
        usize::from(self.pierced) >= self.weapon.hits_max()
    }
}

pub const BULLET_RADIUS: f32 = 0.2;

#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
pub struct Bullet {
    /// The key, derived from the enemy's key and count of bullets.
    pub key: Key,
    pub kind: EnemyKind,
    pub at: Vec2,
    pub step: Vec2,
    pub ends: Tick,
}

impl Bullet {
    pub(crate) fn fired(
        key: Key,
        kind: EnemyKind,
        at: Vec2,
        step: Vec2,
        now: Tick,
        rules: &Rules,
    ) -> Bullet {
        let ends = now + rules.flight_ticks(at, step, rules.tuning.bullet_ticks);
        Bullet {
            key,
            kind,
            at,
            step,
            ends,
        }
    }
}
