//! What a picture is made of: who is where, by name.
//!
//! These are poses, not copies of the state. A view interpolates and smooths them by key, and reads colours, bars and
//! numbers from the state itself.

use glam::Vec2;
use twinstep_core::{Key, PlayerId, PlayerSet};

use super::cue::Cue;
use super::kind::EnemyKind;
use super::state::{Game, Item, Prop, Shot};
use super::units::angle_of;
use super::weapon::Weapon;

/// The name of something that is drawn. In the order of drawing, so that pictures can be compared entry by entry and are
/// put in order nearly always.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum ShowKey {
    /// A crate.
    Crate {
        /// Its number.
        n: u8,
        /// Which one there.
        life: u32,
    },
    /// A barrel.
    Barrel {
        /// Its number.
        n: u8,
        /// Which one there.
        life: u32,
    },
    /// A pick-up.
    Pickup {
        /// Its name.
        key: Key,
        /// What it is.
        item: Item,
    },
    /// An enemy, in one of its lives.
    Enemy {
        /// Its slot.
        slot: u16,
        /// Which life.
        life: u32,
        /// What it is.
        kind: EnemyKind,
    },
    /// A player, in one of its lives: a return is no movement.
    Player {
        /// Who.
        id: PlayerId,
        /// Which life.
        life: u32,
    },
    /// A player's shot.
    Shot {
        /// Who fired it.
        owner: PlayerId,
        /// Which of the player's.
        n: u32,
        /// With what.
        weapon: Weapon,
    },
    /// An enemy's bullet.
    Bullet {
        /// Its name.
        key: Key,
        /// What fired it.
        kind: EnemyKind,
    },
}

impl ShowKey {
    /// Whether a cue is about this.
    #[must_use]
    pub fn is_subject_of(self, cue: &Cue) -> bool {
        match (self, *cue) {
            (
                ShowKey::Player { id, .. },
                Cue::Appeared(who)
                | Cue::Shot { player: who, .. }
                | Cue::Dashed(who)
                | Cue::Hurt(who)
                | Cue::ShieldBroke(who)
                | Cue::PlayerDied(who)
                | Cue::Ready(who)
                | Cue::Took { player: who, .. }
                | Cue::Scored { player: who, .. },
            ) => id == who,
            (
                ShowKey::Enemy { slot, .. },
                Cue::Hit(which)
                | Cue::Crit(which)
                | Cue::Volley(which)
                | Cue::EnemyDied(which)
                | Cue::Enraged { slot: which, .. },
            ) => slot == which,
            (
                ShowKey::Barrel { n, .. },
                Cue::Lit(which)
                | Cue::Blast(which)
                | Cue::Fizzle(which)
                | Cue::Tossed(Prop::Barrel(which)),
            )
            | (
                ShowKey::Crate { n, .. },
                Cue::CrateHit(which) | Cue::CrateBroke(which) | Cue::Tossed(Prop::Crate(which)),
            ) => n == which,
            (
                ShowKey::Shot { owner, n, .. },
                Cue::Burst {
                    owner: who,
                    n: which,
                },
            ) => (owner, n) == (who, which),
            _ => false,
        }
    }
}

/// Where something is drawn.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct Pose {
    /// In units.
    pub at: Vec2,
    /// Radians, counter-clockwise from +x.
    pub angle: f32,
}

/// Hands everything that is to be drawn to `put`: crates, barrels, pick-ups, enemies, players, then what flies.
/// Draw in this order. Each key comes once. Of the players' shots only those that `is_known` says: a screen
/// guesses what others fire before it knows, see `game_show`.
pub fn poses(game: &Game, is_known: impl Fn(&Shot) -> bool, mut put: impl FnMut(ShowKey, Pose)) {
    let still = |at: Vec2| Pose { at, angle: 0.0 };
    for (chest, n) in game.crates.iter().zip(0..) {
        if chest.is_there() {
            let life = chest.life;
            put(ShowKey::Crate { n, life }, still(chest.at));
        }
    }
    for (barrel, n) in game.barrels.iter().zip(0..) {
        if barrel.is_there() {
            let life = barrel.life;
            put(ShowKey::Barrel { n, life }, still(barrel.at));
        }
    }
    for pickup in &game.pickups {
        let (key, item) = (pickup.key, pickup.item);
        put(ShowKey::Pickup { key, item }, still(pickup.at));
    }
    for (enemy, slot) in game.enemies.iter().zip(0..) {
        if enemy.is_alive() {
            let (life, kind) = (enemy.life, enemy.kind);
            put(ShowKey::Enemy { slot, life, kind }, still(enemy.at));
        }
    }
    for (id, player) in game.players.iter().filter(|(_, player)| player.is_alive()) {
        let pose = Pose {
            at: player.at,
            angle: player.facing.angle(),
        };
        put(
            ShowKey::Player {
                id: *id,
                life: player.life,
            },
            pose,
        );
    }
    // By owner: so they come in the order of their keys, and need no sorting.
    let owners: PlayerSet = game.shots.iter().map(|shot| shot.owner).collect();
    for owner in owners.iter() {
        let own = game.shots.iter().filter(|shot| shot.owner == owner);
        for shot in own.filter(|shot| is_known(shot)) {
            put(
                ShowKey::Shot {
                    owner,
                    n: shot.key.n,
                    weapon: shot.weapon,
                },
                Pose {
                    at: shot.at,
                    angle: angle_of(shot.step),
                },
            );
        }
    }
    for bullet in &game.bullets {
        put(
            ShowKey::Bullet {
                key: bullet.key,
                kind: bullet.kind,
            },
            // It is round.
            still(bullet.at),
        );
    }
}

impl ShowKey {
    /// The kind of an enemy; nobody else has one.
    #[must_use]
    pub fn kind(&self) -> Option<EnemyKind> {
        match self {
            ShowKey::Enemy { kind, .. } => Some(*kind),
            _ => None,
        }
    }
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeMap;

    use super::super::testing::*;
    use super::*;
    use crate::Pad;

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
            1 + alive + barrels + sim.pickups.len() + sim.shots.len() + sim.bullets.len()
        );
        assert_eq!(
            picture[&ShowKey::Player { id: ONE, life: 1 }].at,
            player(&game).at
        );
    }
}
