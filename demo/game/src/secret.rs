//! Secrets: what is in a crate, and whether a hit was critical. The server draws them, and clients do not guess them.
//!
//! ```text
//!   crate breaks, lance hits ──▶ Query ──▶ the server's luck, drawn at that moment ──▶ Outcome in a frame
//! ```
//!
//! Invariant: the answer does not exist before the query is asked: not in a world, in a packet, or in a generator that
//! a client could copy. So no client can know it in advance.
//!
//! The odds are public; only the server draws.

use twinstep_core::{Effects, Frame, Key, Mwc, PlayerId};

use super::cue::Cue;
use super::query::{Query, Strike};
use super::rules::Tuning;
use super::state::{Game, Item};
use super::weapon::Weapon;

pub(super) fn loot(luck: &mut Mwc) -> Option<Item> {
    match luck.below(10) {
        0 => Some(Item::Weapon(Weapon::Scatter)),
        1 => Some(Item::Weapon(Weapon::Lance)),
        2 => Some(Item::Weapon(Weapon::Thumper)),
        3 | 4 => Some(Item::Health),
        5 | 6 => Some(Item::Shield),
        7 => Some(Item::Life),
        _ => None,
    }
}

pub(super) fn crit(luck: &mut Mwc, tuning: &Tuning) -> bool {
    luck.below(100) < tuning.crit_percent
}

/// A tick with this many queries asks for no more critical hits, which leaves space for blasts.
const CRITS_PER_TICK: usize = 8;

impl Game {
    pub(super) fn ask_crit(
        &self,
        cause: Key,
        slot: u16,
        by: PlayerId,
        frame: &Frame<'_, Game>,
        fx: &mut Effects<Game>,
    ) {
        if fx.asks().len() < CRITS_PER_TICK {
            let asked = frame.tick();
            fx.ask(cause, Query::Crit(Strike { slot, by, asked }));
        }
    }

    /// Applies a critical hit, unless its victim is gone.
    pub(super) fn crit(
        &mut self,
        key: Key,
        strike: Strike,
        frame: &Frame<'_, Game>,
        fx: &mut Effects<Game>,
    ) {
        let Strike { slot, by, asked } = strike;
        let enemy = self.enemies.get(usize::from(slot));
        if enemy.is_some_and(|enemy| enemy.is_alive() && enemy.born <= asked) {
            fx.cue(key, Cue::Crit(slot));
            self.hurt_enemy(slot, frame.rules().tuning.crit_damage, Some(by), frame, fx);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::super::testing::*;
    use super::*;
    use crate::{Outcome, speculate};

    /// ONE's lance has hit an enemy whose remaining health is the damage of a critical hit.
    fn lanced() -> (SoloGame, Key) {
        let mut game = with_player(quiet());
        let at = glam::Vec2::new(-5.0, -4.0);
        put_enemy(&mut game, 0, at);
        let tuning = rules().tuning;
        game.sim_mut().enemies[0].health = Weapon::Lance.damage() + tuning.crit_damage;
        put_shot(&mut game, ONE, at);
        game.sim_mut().shots[0].weapon = Weapon::Lance;
        game.step();
        let [(key, Query::Crit(strike))] = *game.effects().asks() else {
            panic!("it asks: {:?}", game.effects().asks())
        };
        assert_eq!((strike.slot, strike.by), (0, ONE));
        (game, key)
    }

    #[test]
    fn a_critical_hit_does_extra_damage_and_credits_the_shooter() {
        let (mut game, key) = lanced();
        assert!(game.sim().enemies[0].is_alive());
        game.answer(key, Outcome::Crit(true)).step();
        assert!(game.effects().cues().contains(&(key, Cue::Crit(0))));
        assert!(!game.sim().enemies[0].is_alive());
        assert_eq!(player(&game).kills, 1);
    }

    #[test]
    fn a_hit_without_a_critical_answer_does_no_extra_damage() {
        for answered in [true, false] {
            let (mut game, key) = lanced();
            let health = game.sim().enemies[0].health;
            if answered {
                game.answer(key, Outcome::Crit(false)).step();
            } else {
                game.refuse(key).step();
            }
            assert_eq!(game.sim().enemies[0].health, health);
        }
    }

    #[test]
    fn an_enemy_born_after_the_hit_is_not_hurt_by_it() {
        let (mut game, key) = lanced();
        let health = game.sim().enemies[0].health;
        game.sim_mut().enemies[0].born = game.world().tick();
        game.answer(key, Outcome::Crit(true)).step();
        assert_eq!(game.sim().enemies[0].health, health);
    }

    /// Clients do not guess critical hits, and cannot answer, because the query has no owner.
    #[test]
    fn only_the_server_decides_critical_hits() {
        let (game, key) = lanced();
        assert_eq!(key.owner(), None);
        let query = game.world().open_queries()[0].query;
        assert_eq!(speculate(game.sim(), &rules(), &query), None);
    }

    #[test]
    fn critical_hits_and_loot_have_the_stated_odds() {
        let mut luck = Mwc::seed(6);
        let tuning = rules().tuning;
        let crits = (0..10_000).filter(|_| crit(&mut luck, &tuning)).count() as u32;
        assert!(crits.abs_diff(100 * tuning.crit_percent) < 200, "{crits}");
        let loot: Vec<Option<Item>> = (0..10_000).map(|_| loot(&mut luck)).collect();
        let share = |item: Option<Item>| loot.iter().filter(|other| **other == item).count();
        assert!(share(None).abs_diff(2_000) < 200);
        assert!(share(Some(Item::Health)).abs_diff(2_000) < 200);
        assert!(share(Some(Item::Life)).abs_diff(1_000) < 150);
    }
}
