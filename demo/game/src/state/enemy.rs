//! [`Enemy`]: a slot for enemies, and the enemy in it. Its behaviour is in `enemy`.

use glam::Vec2;
use serde::{Deserialize, Serialize};
use twinstep_core::{Key, Mwc, Tick};

use super::cause;
use super::crates::Item;
use crate::kind::EnemyKind;
use crate::rules::Rules;
use crate::weapon::Weapon;

#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Enemy {
    /// The kind of the enemy here, or of the last one.
    pub kind: EnemyKind,
    /// The number of lives of this slot, including this one.
    pub life: u32,
    pub born: Tick,
    pub at: Vec2,
    /// The health, 0 if the slot is empty.
    pub health: i16,
    pub full_health: i16,
    /// A boss's stage: 0 at first, and one more for each third of its health that it has lost.
    pub stage: u8,
    pub carries: Option<Item>,
    pub is_coming: bool,
    pub(crate) path: u32,
    /// The age on the path at birth.
    pub(crate) ahead_ticks: u32,
    pub(crate) next_volley: Tick,
    pub(crate) volleys: u32,
    pub(crate) bullets: u32,
    pub(crate) luck: Mwc,
}

impl Enemy {
    pub(crate) fn empty(slot: u16, kind: EnemyKind, seed: u64) -> Enemy {
        let key = Enemy::name(slot, 0);
        Enemy {
            kind,
            life: 0,
            born: Tick(0),
            at: Vec2::ZERO,
            health: 0,
            full_health: 0,
            stage: 0,
            carries: None,
            is_coming: false,
            path: 0,
            ahead_ticks: 0,
            next_volley: Tick(0),
            volleys: 0,
            bullets: 0,
            luck: Mwc::seed(seed).fork(key),
        }
    }

    /// Returns an enemy that stays where it is and does not fire.
    #[cfg(test)]
    pub(crate) fn posted(slot: u16, kind: EnemyKind, at: Vec2) -> Enemy {
        Enemy {
            at,
            health: kind.health(),
            full_health: kind.health(),
            path: u32::MAX,
            next_volley: Tick::MAX,
            ..Enemy::empty(slot, kind, 0)
        }
    }

    pub(crate) fn arrive(&mut self, slot: u16, health: i16, seed: u64, now: Tick, rules: &Rules) {
        let life = self.life.wrapping_add(1);
        let mut luck = Mwc::seed(seed).fork(Enemy::name(slot, life));
        *self = Enemy {
            life,
            born: now,
            at: Vec2::ZERO,
            health,
            full_health: health,
            // The order of these draws decides all enemies of a seed: new draws go last.
            path: luck.below(rules.paths(self.kind).len() as u32),
            ahead_ticks: luck.below(10_000),
            next_volley: now + rules.tuning.enemy_waking_ticks + luck.below(90),
            carries: carried_item(&mut luck, rules),
            luck,
            ..Enemy::empty(slot, self.kind, seed)
        };
        self.follow_path(now, rules);
    }

    /// Returns `true` if a key names an enemy, whatever its slot and life. Returns `false` for a bullet's key, which is
    /// a child of its enemy's key.
    #[must_use]
    pub(crate) fn is_name(key: Key) -> bool {
        (cause::ENEMY..=cause::ENEMY | u64::from(u16::MAX)).contains(&key.of)
    }

    fn name(slot: u16, life: u32) -> Key {
        Key::new(cause::ENEMY | u64::from(slot), life)
    }

    #[must_use]
    pub fn key(&self, slot: u16) -> Key {
        Enemy::name(slot, self.life)
    }

    #[must_use]
    pub fn is_alive(&self) -> bool {
        self.health > 0
    }

    #[must_use]
    pub fn is_awake(&self, now: Tick, rules: &Rules) -> bool {
        self.is_alive() && now - self.born >= rules.tuning.enemy_waking_ticks
    }

    /// Returns the end of a charger's next dart, while it rests.
    #[must_use]
    pub fn threatens(&self, now: Tick, rules: &Rules) -> Option<Vec2> {
        let path = rules.paths(self.kind).get(self.path as usize)?;
        path.threatens(self.age_ticks(now))
            .filter(|_| self.is_alive())
    }

    pub(crate) fn age_ticks(&self, now: Tick) -> u32 {
        (now - self.born).wrapping_add(self.ahead_ticks)
    }

    pub(crate) fn follow_path(&mut self, now: Tick, rules: &Rules) {
        if let Some(path) = rules.paths(self.kind).get(self.path as usize) {
            self.at = path.at(self.age_ticks(now));
        }
    }
}

fn carried_item(luck: &mut Mwc, rules: &Rules) -> Option<Item> {
    let carries = luck.below(100) < rules.tuning.carry_percent;
    let item = match luck.below(20) {
        0..=3 => Item::Weapon(Weapon::Scatter),
        4..=7 => Item::Weapon(Weapon::Lance),
        8..=11 => Item::Weapon(Weapon::Thumper),
        12..=15 => Item::Health,
        16..=18 => Item::Shield,
        _ => Item::Life,
    };
    carries.then_some(item)
}
