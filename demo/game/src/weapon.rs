//! Weapons: four ways to use one button.
//!
//! | weapon | feel |
//! |---|---|
//! | blaster | rapid, straight, never empty |
//! | scatter | a fan of pellets, short range |
//! | lance | slow and heavy; pierces; the server draws whether a hit was critical |
//! | thumper | lobs a shell over walls; the server decides the blast where it lands |

use serde::{Deserialize, Serialize};

pub const PIERCED_MAX: usize = 6;

#[derive(
    Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize,
)]
pub enum Weapon {
    /// Rapid; every player's first weapon.
    #[default]
    Blaster,
    Scatter,
    Lance,
    Thumper,
}

impl Weapon {
    pub const ALL: [Weapon; 4] = [
        Weapon::Blaster,
        Weapon::Scatter,
        Weapon::Lance,
        Weapon::Thumper,
    ];

    /// The number of ticks from one shot to the next, at least 1.
    #[must_use]
    pub const fn every_ticks(self) -> u32 {
        match self {
            Weapon::Blaster => 7,
            Weapon::Scatter => 20,
            Weapon::Lance => 34,
            Weapon::Thumper => 60,
        }
    }

    /// The speed of a shot in units per tick. It must be below an enemy's diameter, because otherwise shots would jump
    /// over enemies.
    #[must_use]
    pub const fn speed(self) -> f32 {
        match self {
            Weapon::Blaster => 0.6,
            Weapon::Scatter => 0.55,
            Weapon::Lance => 0.9,
            Weapon::Thumper => 0.3,
        }
    }

    #[must_use]
    pub const fn flight_ticks(self) -> u32 {
        match self {
            Weapon::Blaster => 70,
            Weapon::Scatter => 24,
            Weapon::Lance => 55,
            Weapon::Thumper => 36,
        }
    }

    /// Returns the damage of one hit on an enemy; 0 for a shell, because its blast does the damage.
    #[must_use]
    pub const fn damage(self) -> i16 {
        match self {
            Weapon::Blaster => 10,
            Weapon::Scatter => 9,
            Weapon::Lance => 40,
            Weapon::Thumper => 0,
        }
    }

    /// Returns the number of shots fired together, and the angle between two of them in 255ths of a circle.
    #[must_use]
    pub const fn fan(self) -> (i32, i32) {
        match self {
            Weapon::Scatter => (5, 5),
            _ => (1, 0),
        }
    }

    /// Returns the number of shots in a new weapon; `None` if it is never empty.
    #[must_use]
    pub const fn ammo(self) -> Option<u16> {
        match self {
            Weapon::Blaster => None,
            Weapon::Scatter => Some(40),
            Weapon::Lance => Some(24),
            Weapon::Thumper => Some(12),
        }
    }

    #[must_use]
    pub const fn hits_max(self) -> usize {
        match self {
            Weapon::Lance => PIERCED_MAX,
            _ => 1,
        }
    }

    /// Returns `true` if the weapon's shots fly over everything and explode where they land.
    #[must_use]
    pub const fn is_lobbed(self) -> bool {
        matches!(self, Weapon::Thumper)
    }
}

#[cfg(test)]
mod tests {
    use super::super::{EnemyKind, SHOT_RADIUS};
    use super::*;

    #[test]
    fn no_shot_jumps_over_an_enemy() {
        for weapon in Weapon::ALL {
            for kind in EnemyKind::ALL {
                assert!(weapon.speed() < 2.0 * (kind.radius() + SHOT_RADIUS));
            }
        }
    }

    #[test]
    fn only_the_first_weapon_is_never_empty() {
        for weapon in Weapon::ALL {
            assert_eq!(weapon.ammo().is_none(), weapon == Weapon::default());
        }
    }
}
