//! Crates are solid, give cover from blasts, and hold loot. Blasts throw them: see `toss`.
//!
//! The server draws the content of a crate when it breaks (`Query::Loot`). Until then it is unknown, and no client
//! guesses it.

use twinstep_core::{Effects, Frame, Key, Tick};

use super::cue::Cue;
use super::query::Query;
use super::rules::Rules;
use super::state::{Crate, Game, Item, Timer};

impl Game {
    pub(super) fn place_crates(&mut self, rules: &Rules) {
        self.crates.extend(rules.crates.iter().map(|at| Crate {
            life: 0,
            born: Tick(0),
            at: *at,
            rests: Some(Tick(0)),
            health: rules.tuning.crate_health,
        }));
    }

    pub(super) fn hurt_crate(
        &mut self,
        n: u8,
        damage: i16,
        cause: Key,
        frame: &Frame<'_, Game>,
        fx: &mut Effects<Game>,
    ) {
        let chest = self.crates.get_mut(usize::from(n));
        let Some(chest) = chest.filter(|chest| chest.stands()) else {
            return;
        };
        if chest.health > damage {
            chest.health -= damage;
            fx.cue(cause.child(u32::from(n)), Cue::CrateHit(n));
            return;
        }
        chest.health = 0;
        let key = chest.key(n);
        let next = frame.tick() + frame.rules().tuning.crate_return_ticks;
        self.timers.at(next, key, Timer::Crate(n));
        fx.cue(key, Cue::CrateBroke(n));
        fx.ask(key, Query::Loot { n });
    }

    pub(super) fn apply_loot(
        &mut self,
        n: u8,
        key: Key,
        item: Option<Item>,
        frame: &Frame<'_, Game>,
    ) {
        let chest = self.crates.get(usize::from(n)).copied();
        if let Some((chest, item)) = chest.zip(item)
            && chest.key(n) == key
        {
            self.drop_item(key, item, chest.at, frame);
        }
    }

    pub(super) fn return_crate(&mut self, n: u8, frame: &Frame<'_, Game>) {
        let home = frame.rules().crates.get(usize::from(n));
        if let Some((chest, home)) = self.crates.get_mut(usize::from(n)).zip(home) {
            *chest = Crate {
                life: chest.life.wrapping_add(1),
                born: frame.tick(),
                at: *home,
                rests: Some(frame.tick()),
                health: frame.rules().tuning.crate_health,
            };
        }
    }

    pub(super) fn reset_crates(&mut self, frame: &Frame<'_, Game>) {
        for n in 0..self.crates.len() as u8 {
            self.timers.cancel(self.crates[usize::from(n)].key(n));
            self.return_crate(n, frame);
        }
    }
}

#[cfg(test)]
mod tests {
    use glam::Vec2;

    use super::super::testing::*;
    use super::*;
    use crate::{CRATE_HALF, Heading, Outcome, Pad, Rules, Weapon, speculate};

    const AT: Vec2 = Vec2::new(-28.0, -1.0);

    fn yard() -> SoloGame {
        let rules = Rules {
            crates: vec![AT],
            ..rules()
        };
        let mut game = with_player(solo(rules));
        player_mut(&mut game).at = AT - Vec2::X * 3.0;
        player_mut(&mut game).facing = Heading::EAST;
        game
    }

    fn fire() -> Pad {
        Pad {
            aim: Heading::EAST,
            buttons: Pad::FIRE,
            ..Pad::default()
        }
    }

    /// Returns a game whose crate has just been broken, and the key of the open query for its content.
    fn broken() -> (SoloGame, Key) {
        let mut game = yard();
        game.hold(ONE, fire());
        for _ in 0..120 {
            if !game.step().asks().is_empty() {
                game.hold(ONE, Pad::default());
                let [(key, query)] = game.effects().asks() else {
                    panic!("one query")
                };
                assert_eq!(*query, Query::Loot { n: 0 });
                let key = *key;
                return (game, key);
            }
        }
        panic!("the crate is still whole: {:?}", game.sim().crates[0]);
    }

    #[test]
    fn a_crate_stops_players_shots_and_bullets_until_it_breaks() {
        let mut game = yard();
        let walk = Pad {
            walk: Heading::EAST,
            ..Pad::default()
        };
        put_bullet(&mut game, Key::new(1, 1), AT);
        game.hold(ONE, walk).run(60);
        let edge = AT.x - CRATE_HALF - super::super::PLAYER_RADIUS;
        assert!((player(&game).at.x - edge).abs() < 1e-3);
        assert!(game.sim().bullets.is_empty(), "a bullet ends in it");
        game.hold(ONE, fire()).run(3);
        game.hold(ONE, Pad::default()).run(3);
        let hit = rules().tuning.crate_health - Weapon::Blaster.damage();
        assert_eq!(game.sim().crates[0].health, hit);
        assert!(game.sim().shots.is_empty(), "a shot ends in it");
        game.sim_mut().crates[0].health = 0;
        game.hold(ONE, walk).run(20);
        assert!(player(&game).at.x > edge + 1.0);
    }

    #[test]
    fn loot_appears_where_the_crate_broke_once_the_server_answers() {
        let (mut game, key) = broken();
        assert!(game.effects().cues().contains(&(key, Cue::CrateBroke(0))));
        game.run(30);
        assert!(
            game.sim().pickups.is_empty(),
            "the content is not known yet"
        );
        game.answer(key, Outcome::Loot(Some(Item::Shield))).step();
        let pickups = &game.sim().pickups;
        assert_eq!((pickups.len(), pickups[0].item), (1, Item::Shield));
        assert_eq!(pickups[0].at, AT);
    }

    #[test]
    fn a_crate_without_loot_or_answer_leaves_no_pickup_and_is_replaced() {
        for empty in [true, false] {
            let (mut game, key) = broken();
            if empty {
                game.answer(key, Outcome::Loot(None)).step();
            } else {
                game.refuse(key).step();
            }
            assert!(game.sim().pickups.is_empty());
            game.run(rules().tuning.crate_return_ticks);
            let chest = game.sim().crates[0];
            assert!(chest.stands() && chest.life == 1 && chest.at == AT);
        }
    }

    /// Clients do not guess the loot, and cannot answer, because the query has no owner.
    #[test]
    fn only_the_server_decides_the_loot() {
        let (game, key) = broken();
        assert_eq!(key.owner(), None);
        let query = game.world().open_queries()[0].query;
        assert_eq!(speculate(game.sim(), &rules(), &query), None);
    }

    #[test]
    fn a_shell_landing_on_a_crate_bursts_next_to_it() {
        let mut game = yard();
        put_shot(&mut game, ONE, AT + Vec2::X * 0.2);
        let now = game.world().tick();
        let shell = &mut game.sim_mut().shots[0];
        (shell.weapon, shell.ends) = (Weapon::Thumper, now);
        let asks = game.step().asks();
        let (_, Query::Blast { at, .. }) = asks[0] else {
            panic!("{asks:?}")
        };
        let off = (at.to_vec2() - AT).abs().max_element();
        assert!((CRATE_HALF..CRATE_HALF + 0.4).contains(&off), "{off}");
    }

    #[test]
    fn an_answer_for_a_replaced_crate_is_ignored() {
        let (mut game, key) = broken();
        game.sim_mut().crates[0].life += 1;
        game.answer(key, Outcome::Loot(Some(Item::Life))).step();
        assert!(game.sim().pickups.is_empty());
    }
}
