//! What a picture is made of: who is where, by name.
//!
//! Poses, not copies of the state: a view interpolates and smooths them by key, and looks at the state itself
//! for colours, bars and numbers.

use glam::Vec2;
use twinstep_core::{Key, PlayerId};

use super::units::angle_of;
use super::{Game, Kind, Rules, Shot};

/// The name of something that is drawn. Ordered, so that pictures can be compared entry by entry.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum ShowKey {
    /// A player, in one of its lives: a return is no movement.
    Player {
        /// Who.
        id: PlayerId,
        /// Which life.
        life: u32,
    },
    /// An enemy, in one of its lives.
    Enemy {
        /// Its slot, which tells its [`Kind`].
        slot: u16,
        /// Which life.
        life: u32,
    },
    /// A barrel.
    Barrel {
        /// Its number.
        n: u8,
        /// Which one there.
        life: u32,
    },
    /// A player's shot.
    Shot {
        /// Who fired it.
        owner: PlayerId,
        /// Which of the player's.
        n: u32,
    },
    /// An enemy's bullet.
    Bullet {
        /// Its name.
        key: Key,
    },
}

/// Where something is drawn.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct Pose {
    /// In units.
    pub at: Vec2,
    /// Radians, counter-clockwise from +x.
    pub angle: f32,
}

/// Hands everything that is to be drawn to `put`: barrels, enemies, players, then what flies. Draw in this
/// order. Each key comes once. Of the players' shots only those that `is_known` says: a screen guesses what others
/// fire before it knows, see `game_show`.
pub fn poses(
    game: &Game,
    rules: &Rules,
    is_known: impl Fn(&Shot) -> bool,
    mut put: impl FnMut(ShowKey, Pose),
) {
    for ((barrel, at), n) in game.barrels.iter().zip(&rules.barrels).zip(0..) {
        if barrel.stands() {
            put(
                ShowKey::Barrel {
                    n,
                    life: barrel.life,
                },
                Pose {
                    at: *at,
                    angle: 0.0,
                },
            );
        }
    }
    for (enemy, slot) in game
        .enemies
        .iter()
        .zip(0..)
        .filter(|(enemy, _)| enemy.is_alive())
    {
        put(
            ShowKey::Enemy {
                slot,
                life: enemy.life,
            },
            Pose {
                at: enemy.at,
                angle: 0.0,
            },
        );
    }
    for (id, player) in game.players.iter().filter(|(_, player)| player.is_alive()) {
        let pose = Pose {
            at: player.at,
            angle: player.facing.angle(),
        };
        put(
            ShowKey::Player {
                id: *id,
                life: player.lives,
            },
            pose,
        );
    }
    for shot in game.shots.iter().filter(|shot| is_known(shot)) {
        put(
            ShowKey::Shot {
                owner: shot.owner,
                n: shot.key.n,
            },
            Pose {
                at: shot.at,
                angle: angle_of(shot.step),
            },
        );
    }
    for bullet in &game.bullets {
        put(
            ShowKey::Bullet { key: bullet.key },
            Pose {
                at: bullet.at,
                angle: angle_of(bullet.step),
            },
        );
    }
}

impl ShowKey {
    /// The kind of an enemy; nobody else has one.
    #[must_use]
    pub fn kind(&self) -> Option<Kind> {
        match self {
            ShowKey::Enemy { slot, .. } => Some(Kind::of(*slot)),
            _ => None,
        }
    }
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeMap;

    use super::super::testing::*;
    use super::*;
    use crate::game::Pad;

    #[test]
    fn everything_is_shown_once_and_the_dead_are_not() {
        let mut game = with_player(arena(40));
        game.hold(
            ONE,
            Pad {
                buttons: Pad::FIRE,
                ..Pad::default()
            },
        )
        .run(700);
        game.sim_mut().enemies[3].health = 0;
        let mut picture = BTreeMap::new();
        poses(
            game.sim(),
            &rules(),
            |_| true,
            |key, pose| {
                assert_eq!(picture.insert(key, pose), None, "{key:?} twice");
            },
        );
        let sim = game.sim();
        let barrels = sim.barrels.iter().filter(|barrel| barrel.stands()).count();
        let alive = sim.enemies.iter().filter(|enemy| enemy.is_alive()).count();
        assert!(alive < 40);
        assert_eq!(
            picture.len(),
            1 + alive + barrels + sim.shots.len() + sim.bullets.len()
        );
        assert_eq!(
            picture[&ShowKey::Player { id: ONE, life: 1 }].at,
            player(&game).at
        );
    }
}
