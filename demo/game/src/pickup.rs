//! Pick-ups: they lie on the ground until a player touches them or they expire.
//!
//! Pick-ups come out of crates (only the server knows which crate holds what), and sometimes from an enemy (drawn at
//! random when the enemy is born). The first player to touch one takes it; in the same tick, the lowest player number
//! wins. All this depends only on positions. So a prediction also lets remote players take them, and is corrected if it
//! moved those players wrongly.

use glam::Vec2;
use twinstep_core::{Effects, Frame, Key, Tick};

use super::cue::Cue;
use super::rules::Rules;
use super::state::{Game, Item, PICKUP_RADIUS, PICKUPS_MAX, PLAYER_RADIUS, Pickup};

impl Game {
    pub(super) fn drop_item(&mut self, key: Key, item: Item, at: Vec2, frame: &Frame<'_, Game>) {
        self.add_pickup(key, item, at, frame.tick(), frame.rules());
    }

    pub(super) fn add_pickup(&mut self, key: Key, item: Item, at: Vec2, now: Tick, rules: &Rules) {
        if self.pickups.len() == PICKUPS_MAX {
            self.pickups.remove(0);
        }
        self.pickups.push(Pickup {
            key,
            item,
            at: rules.place(at, PICKUP_RADIUS),
            ends: now + rules.tuning.pickup_ticks,
        });
    }

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
                fx.cue(taker.cue_key(player), Cue::Took { player, item });
                return false;
            }
            now < pickup.ends
        });
    }
}

#[cfg(test)]
mod tests {
    use twinstep_core::frame::{Learned, PlayerSet};

    use super::super::testing::*;
    use super::*;
    use crate::{EnemyKind, Weapon};

    #[test]
    fn the_first_player_to_touch_a_pickup_takes_it_once() {
        let mut game = with_player(quiet());
        game.join(TWO).step();
        let at = player(&game).at;
        player_mut(&mut game).health = 30;
        put_item(&mut game, Item::Health, at);
        game.step();
        let key = player(&game).cue_key(ONE);
        let took = Cue::Took {
            player: ONE,
            item: Item::Health,
        };
        assert_eq!(game.effects().cues(), [(key, took)]);
        assert_eq!(player(&game).health, 30 + rules().tuning.heal);
        assert!(game.sim().pickups.is_empty());
        // TWO touches it as well, but ONE has the lower number.
        game.sim_mut().players.get_mut(&TWO).unwrap().at = at;
        put_item(&mut game, Item::Shield, at);
        game.step();
        assert!(player(&game).has_shield);
        assert!(!game.sim().players.get(&TWO).unwrap().has_shield);
    }

    #[test]
    fn health_never_exceeds_its_maximum() {
        let mut game = with_player(quiet());
        let at = player(&game).at;
        put_item(&mut game, Item::Health, at);
        game.step();
        assert_eq!(player(&game).health, rules().tuning.player_health);
        // Even where the sum would overflow.
        let mut rules = rules().clone();
        rules.tuning.player_health = i16::MAX;
        let mut game = with_player(solo(rules));
        let at = player(&game).at;
        put_item(&mut game, Item::Health, at);
        game.step();
        assert_eq!(player(&game).health, i16::MAX);
    }

    #[test]
    fn a_picked_up_weapon_has_full_ammunition() {
        for weapon in [Weapon::Scatter, Weapon::Lance, Weapon::Thumper] {
            let mut game = with_player(quiet());
            let at = player(&game).at;
            put_item(&mut game, Item::Weapon(weapon), at);
            game.step();
            assert_eq!(player(&game).weapon, weapon);
            assert_eq!(Some(player(&game).ammo), weapon.ammo());
        }
    }

    #[test]
    fn dead_players_take_no_pickups_and_untaken_pickups_disappear() {
        let mut game = with_player(quiet());
        player_mut(&mut game).health = 0;
        let at = player(&game).at;
        put_item(&mut game, Item::Shield, at);
        game.run(rules().tuning.pickup_ticks);
        assert_eq!(game.sim().pickups.len(), 1);
        game.step();
        assert!(game.sim().pickups.is_empty());
    }

    #[test]
    fn a_new_pickup_replaces_the_oldest() {
        let mut game = with_player(quiet());
        let names: Vec<Key> = (0..PICKUPS_MAX + 3)
            .map(|n| put_item(&mut game, Item::Shield, Vec2::new(n as f32 * 0.3, 20.0)))
            .collect();
        let left: Vec<Key> = game.sim().pickups.iter().map(|pickup| pickup.key).collect();
        assert_eq!(left, names[3..]);
    }

    #[test]
    fn an_enemy_drops_its_item_where_it_dies() {
        let mut game = with_player(quiet());
        let at = Vec2::new(5.0, 1.0);
        let key = put_kind(&mut game, 0, EnemyKind::Sapper, at);
        let enemy = &mut game.sim_mut().enemies[0];
        (enemy.health, enemy.carries) = (1, Some(Item::Shield));
        put_shot(&mut game, ONE, at);
        game.step();
        let pickup = game.sim().pickups[0];
        assert_eq!(
            (pickup.key, pickup.item, pickup.at),
            (key, Item::Shield, at)
        );
    }

    #[test]
    fn a_prediction_takes_pickups_for_remote_players_where_it_moves_them() {
        let mut game = with_player(quiet());
        game.join(TWO).step();
        // TWO is local; ONE's input is guessed.
        let now = game.world().tick();
        game.predict(PlayerSet::from_iter([TWO]), now, Learned::new());
        let at = player(&game).at;
        put_item(&mut game, Item::Shield, at);
        assert!(
            !game.step().withheld(),
            "it follows from where ONE is guessed to be"
        );
        assert!(player(&game).has_shield);
    }
}
