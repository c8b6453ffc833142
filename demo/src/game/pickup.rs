//! Pick-ups: what lies about until somebody touches it or its time is over.
//!
//! They come out of crates (which of them is the server's secret) and now and then of an enemy (drawn from its
//! own luck at birth). Who touches one first has it; of players who touch it in the same tick the first by
//! number. All this follows from positions, so a prediction takes them for remote players as it moves those,
//! and is corrected with them.

use glam::Vec2;
use serde::{Deserialize, Serialize};
use twinstep_core::{Effects, Frame, Key, Tick};

use super::player::PLAYER_RADIUS;
use super::{Cue, Game, Weapon};

/// A pick-up's radius, in units.
pub const PICKUP_RADIUS: f32 = 0.7;
/// So many lie about at most; beyond it the oldest makes room.
pub const PICKUPS_MAX: usize = 32;

/// What can be picked up.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
pub enum Item {
    /// A weapon with full ammunition.
    Weapon(Weapon),
    /// Some health.
    Health,
    /// It takes one hit in its owner's place.
    Shield,
    /// A life for the team.
    Life,
}

/// Something that lies there.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
pub struct Pickup {
    /// Named by the crate or enemy that it comes from.
    pub key: Key,
    /// What it is.
    pub item: Item,
    /// Where.
    pub at: Vec2,
    /// The tick at which it is gone.
    pub ends: Tick,
}

impl Game {
    /// Something falls down at a place.
    pub(super) fn drop_item(&mut self, key: Key, item: Item, at: Vec2, frame: &Frame<'_, Game>) {
        if self.pickups.len() == PICKUPS_MAX {
            self.pickups.remove(0);
        }
        self.pickups.push(Pickup {
            key,
            item,
            at: frame.rules().place(at, PICKUP_RADIUS),
            ends: frame.tick() + frame.rules().tuning.pickup_ticks,
        });
    }

    /// Whoever touches something has it.
    pub(super) fn pick_up(&mut self, frame: &Frame<'_, Game>, fx: &mut Effects<Game>) {
        let now = frame.tick();
        let Game {
            pickups,
            players,
            lives,
            ..
        } = self;
        pickups.retain(|pickup| {
            let reach = PICKUP_RADIUS + PLAYER_RADIUS;
            let taker = players.iter_mut().find(|(_, player)| {
                player.is_alive() && player.at.distance_squared(pickup.at) <= reach * reach
            });
            if let Some((&player, taker)) = taker {
                match pickup.item {
                    Item::Weapon(weapon) => taker.arm(weapon),
                    Item::Health => taker.heal(&frame.rules().tuning),
                    Item::Shield => taker.has_shield = true,
                    Item::Life => *lives = lives.saturating_add(1),
                }
                let item = pickup.item;
                fx.cue(pickup.key, Cue::Took { player, item });
                return false;
            }
            now < pickup.ends
        });
    }
}
