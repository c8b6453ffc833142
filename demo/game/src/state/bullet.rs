//! [`Bullet`]: what an enemy has fired. How it flies stands in `bullet`.

use glam::Vec2;
use serde::{Deserialize, Serialize};
use twinstep_core::{Key, Tick};

use crate::kind::EnemyKind;
use crate::rules::Rules;

/// A bullet's radius, in units.
pub const BULLET_RADIUS: f32 = 0.2;

/// An enemy's bullet.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
pub struct Bullet {
    /// Named by the enemy and its own count.
    pub key: Key,
    /// What fired.
    pub kind: EnemyKind,
    /// Where it is.
    pub at: Vec2,
    /// How far it moves in a tick.
    pub step: Vec2,
    /// The tick at which it is gone.
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
