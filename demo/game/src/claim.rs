//! "I died": each player's own screen decides whether a bullet or an enemy touches that player.
//!
//! ```text
//!   own prediction, tick t: touched ──claim──▶ server's referee ──frame of some later tick──▶ dead, everywhere
//! ```
//!
//! Invariant: no step on the server or in an authority ever tests whether a player is touched. Only
//! [`Game::claim_harm`] does, in the prediction, for the local players of this screen. So a bullet hits a player only
//! if the player's own screen showed the hit. The exception: where owners are not trusted, the server's referee also
//! tests, later and outside of any step (see `judge`).

use glam::Vec2;
use twinstep_core::{Effects, Frame, Key, PlayerId, Tick};

use super::order::Command;
use super::rules::Rules;
use super::state::{BULLET_RADIUS, Game, PLAYER_RADIUS, Player};

impl Game {
    /// Row 63: each screen decides the hits and deaths of its own players, based on the enemies and bullets that *it*
    /// shows, and claims them. A player stays alive in this tick, and dies in the frame that contains the claim.
    pub(super) fn claim_harm(&self, frame: &Frame<'_, Game>, fx: &mut Effects<Game>) {
        for (&id, player) in &self.players {
            if frame.is_local(id)
                && player.is_vulnerable(frame.tick())
                && let Some(harm) = self.harm_to(player, frame.tick(), frame.rules())
            {
                fx.claim(id, harm);
            }
        }
    }

    /// Returns the claim that the player's own screen should make for the state at the end of `now`, if any.
    pub(super) fn harm_of(&self, player: PlayerId, now: Tick, rules: &Rules) -> Option<Command> {
        let who = self.players.get(&player)?;
        let who = who.is_vulnerable(now).then_some(who)?;
        self.harm_to(who, now, rules)
    }

    fn harm_to(&self, player: &Player, now: Tick, rules: &Rules) -> Option<Command> {
        if !self.phase.is_dangerous() {
            return None;
        }
        let (by, damage) = self.touched_by(player, now, rules)?;
        Some(if player.has_shield || player.health > damage {
            Command::Hurt { by }
        } else {
            Command::Died { by }
        })
    }

    /// Returns the key and the damage of a bullet or an enemy that touches the player.
    fn touched_by(&self, player: &Player, now: Tick, rules: &Rules) -> Option<(Key, i16)> {
        #[cfg(test)]
        tests::HIT_TESTS.with(|count| count.set(count.get() + 1));
        let near = |at: Vec2, radius: f32| {
            let reach = radius + PLAYER_RADIUS;
            at.distance_squared(player.at) <= reach * reach
        };
        let bullet = self
            .bullets
            .iter()
            .find(|bullet| near(bullet.at, BULLET_RADIUS));
        let shot = bullet.map(|bullet| (bullet.key, rules.tuning.bullet_damage));
        shot.or_else(|| {
            let mut enemies = self.enemies.iter().zip(0..);
            enemies
                .find(|(enemy, _)| {
                    enemy.is_awake(now, rules) && near(enemy.at, enemy.kind.radius())
                })
                .map(|(enemy, slot)| (enemy.key(slot), rules.tuning.touch_damage))
        })
    }
}

#[cfg(test)]
mod tests {
    use core::cell::Cell;

    use twinstep_core::frame::{Learned, PlayerSet};

    use super::super::testing::*;
    use super::*;
    use crate::{Cue, Heading, Pad};

    std::thread_local! {
        pub(super) static HIT_TESTS: Cell<u32> = const { Cell::new(0) };
    }

    fn in_danger() -> (SoloGame, Key) {
        let mut game = with_player(quiet());
        game.hold(
            ONE,
            Pad {
                walk: Heading::EAST,
                ..Pad::default()
            },
        )
        .run(rules().tuning.shield_ticks + 1)
        .hold(ONE, Pad::default());
        let at = player(&game).at;
        let key = Key::new(77, 1);
        put_bullet(&mut game, key, at);
        player_mut(&mut game).health = 1;
        (game, key)
    }

    #[test]
    fn only_the_owners_prediction_claims_a_death_and_the_player_lives_until_the_claim_returns() {
        let (mut game, by) = in_danger();
        game.predict(
            PlayerSet::from_iter([ONE]),
            game.world().tick(),
            Learned::new(),
        )
        .step();
        assert_eq!(game.effects().claims(), [(ONE, Command::Died { by })]);
        assert!(player(&game).is_alive());
        game.claim(ONE, Command::Died { by }).step();
        assert!(!player(&game).is_alive());
        assert!(
            game.effects()
                .cues()
                .contains(&(player(&game).cue_key(ONE), Cue::PlayerDied(ONE)))
        );
        assert!(game.sim().bullets.is_empty(), "the bullet is spent");
        assert!(
            game.effects().claims().is_empty(),
            "the dead do not die again"
        );
    }

    /// Row 64.
    #[test]
    fn neither_the_server_nor_another_screen_tests_whether_a_player_is_hit() {
        let (mut game, _) = in_danger();
        HIT_TESTS.set(0);
        game.run(5);
        game.predict(
            PlayerSet::from_iter([TWO]),
            game.world().tick(),
            Learned::new(),
        )
        .run(5);
        assert_eq!(HIT_TESTS.get(), 0);
        assert!(player(&game).is_alive());
        game.predict(
            PlayerSet::from_iter([ONE]),
            game.world().tick(),
            Learned::new(),
        )
        .step();
        assert_eq!(HIT_TESTS.get(), 1);
    }

    #[test]
    fn touching_an_enemy_is_claimed_unless_it_has_just_arrived() {
        let (mut game, _) = in_danger();
        game.sim_mut().bullets.clear();
        let tick = game.world().tick();
        let at = player(&game).at;
        let enemy = put_enemy(&mut game, 0, at);
        game.predict(PlayerSet::from_iter([ONE]), tick, Learned::new())
            .step();
        assert_eq!(
            game.effects().claims(),
            [(ONE, Command::Died { by: enemy })]
        );
        game.sim_mut().enemies[0].born = tick;
        game.step();
        assert!(game.effects().claims().is_empty());
    }
}
