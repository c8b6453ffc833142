//! Things in the arena: where a picture shows them, and how they look.

use std::time::Duration;

use glam::Vec2;
use powderkeg_game::{BarrelStage, Enemy, EnemyKind, Game, Prop, Rules, ShowKey, angle_of};
use twinstep_core::Tick;

#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) struct ViewThing {
    pub(crate) key: ShowKey,
    pub(crate) at: Vec2,
    pub(crate) angle: f32,
    pub(crate) look: ThingLook,
}

#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) enum ThingLook {
    Plain,
    Player {
        is_safe: bool,
        has_shield: bool,
        /// From 0 to 1.
        health: f32,
    },
    Enemy {
        woken: f32,
        carries: bool,
    },
    Prop {
        is_lit: bool,
        /// For a thrown thing, the completed fraction of its flight, from 0 to 1.
        aloft: Option<f32>,
    },
    /// A shot that flies over everything: the completed fraction of its flight, from 0 to 1.
    Lobbed(f32),
    Fading,
}

/// The direction an enemy faces. The simulation does not have one, so the view invents it.
pub(super) fn facing(
    kind: EnemyKind,
    at: Vec2,
    last: Option<&ViewThing>,
    game: &Game,
    now: Duration,
) -> f32 {
    // Small enough for an `f32` to turn smoothly after hours.
    let seconds = now.as_secs_f32() % 1_000.0;
    match kind {
        EnemyKind::Gunner => {
            let alive = game.players.values().filter(|player| player.is_alive());
            let nearest = alive
                .map(|player| player.at - at)
                .min_by(|a, b| a.length().total_cmp(&b.length()));
            nearest
                .filter(|way| *way != Vec2::ZERO)
                .map_or(0.0, angle_of)
        }
        EnemyKind::Urchin => seconds * 0.6,
        EnemyKind::Spinner => seconds * 4.0,
        EnemyKind::Boss => seconds * 0.35,
        EnemyKind::Sapper => 0.0,
        EnemyKind::Charger => {
            let moved = last.map_or(Vec2::ZERO, |last| at - last.at);
            if moved.length() > 0.01 {
                angle_of(moved)
            } else {
                last.map_or(0.0, |last| last.angle)
            }
        }
    }
}

pub(super) fn look(key: ShowKey, game: &Game, tick: Tick, rules: &Rules) -> ThingLook {
    let found = match key {
        ShowKey::Player { id, .. } => game.players.get(&id).map(|player| ThingLook::Player {
            is_safe: !player.is_vulnerable(tick),
            has_shield: player.has_shield,
            health: f32::from(player.health.max(0)) / f32::from(rules.tuning.player_health.max(1)),
        }),
        ShowKey::Enemy { slot, .. } => game.enemies.get(usize::from(slot)).map(|enemy: &Enemy| {
            let age = tick.0.saturating_sub(enemy.born.0) as f32;
            ThingLook::Enemy {
                woken: (age / rules.tuning.enemy_waking_ticks.max(1) as f32).min(1.0),
                carries: enemy.carries.is_some(),
            }
        }),
        ShowKey::Barrel { n, .. } => {
            let barrel = game.barrels.get(usize::from(n));
            barrel.map(|barrel| ThingLook::Prop {
                is_lit: barrel.stage == BarrelStage::Lit,
                aloft: game.aloft(Prop::Barrel(n), tick),
            })
        }
        ShowKey::Crate { n, .. } => Some(ThingLook::Prop {
            is_lit: false,
            aloft: game.aloft(Prop::Crate(n), tick),
        }),
        ShowKey::Shot { owner, n, weapon } if weapon.is_lobbed() => {
            let shot = game
                .shots
                .iter()
                .find(|shot| shot.owner == owner && shot.key.n == n);
            shot.map(|shot| {
                let age = tick.0.saturating_sub(shot.born.0) as f32;
                ThingLook::Lobbed((age / (shot.ends.0 - shot.born.0).max(1) as f32).min(1.0))
            })
        }
        ShowKey::Pickup { key, .. } => {
            let pickup = game.pickups.iter().find(|pickup| pickup.key == key);
            pickup
                .filter(|pickup| pickup.ends.0.saturating_sub(tick.0) < 180)
                .map(|_| ThingLook::Fading)
        }
        _ => None,
    };
    found.unwrap_or(ThingLook::Plain)
}
