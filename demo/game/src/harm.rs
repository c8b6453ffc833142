//! Harm to a player: it costs a shield, some health, or one of the team's lives.
//!
//! ```text
//!   Hurt (claim) ──▶ shield or health; it never kills ──┐
//!   Died (claim) ──▶ ───────────────────────────────────┼─▶ dead ──▶ a life is left: back after a while
//!   blast (outcome) ──▶ shield, health, or death ───────┘        └─▶ none is left: out until the wave is over
//! ```
//!
//! This file never tests whether a player is hit. `claim` does that on the player's own screen; for blasts, the
//! server's physics does it.

use twinstep_core::{Effects, Frame, Key, PlayerId, Tick};

use super::cue::Cue;
use super::rules::Tuning;
use super::state::{Enemy, Game, Player, RoundPhase, Timer};

impl Player {
    /// Applies a non-lethal hit. The player's shield takes it, or `left` health remains.
    fn hit(&mut self, id: PlayerId, left: i16, now: Tick, tuning: &Tuning, fx: &mut Effects<Game>) {
        let key = self.cue_key(id);
        if self.has_shield {
            self.has_shield = false;
            fx.cue(key, Cue::ShieldBroke(id));
        } else {
            self.health = left;
            fx.cue(key, Cue::Hurt(id));
        }
        // Without this pause a single bullet could hit again in the next tick.
        self.safe_until = now + tuning.mercy_ticks;
    }
}

impl Game {
    /// Applies a player's claim that it was hit and survived. The cause `by`, a bullet or an enemy's touch, determines
    /// the damage. The claim has no effect if the player cannot be hurt now, or would not have survived; otherwise a
    /// client could remove bullets from the air and stay safe at no cost. The referee can still claim the harm owed.
    pub(super) fn apply_hit_claim(
        &mut self,
        id: PlayerId,
        by: Key,
        frame: &Frame<'_, Game>,
        fx: &mut Effects<Game>,
    ) {
        let (now, tuning) = (frame.tick(), &frame.rules().tuning);
        let is_dangerous = self.phase.is_dangerous();
        let player = self.players.get_mut(&id);
        if let Some(player) = player.filter(|player| player.is_vulnerable(now) && is_dangerous) {
            let damage = if Enemy::is_name(by) {
                tuning.touch_damage
            } else {
                tuning.bullet_damage
            };
            let left = player.health - damage;
            if player.has_shield || left > 0 {
                player.hit(id, left, now, tuning, fx);
                self.bullets.retain(|bullet| bullet.key != by);
            }
        }
    }

    pub(super) fn die(
        &mut self,
        id: PlayerId,
        by: Key,
        frame: &Frame<'_, Game>,
        fx: &mut Effects<Game>,
    ) {
        self.bullets.retain(|bullet| bullet.key != by);
        if self.phase.is_dangerous() {
            self.kill_player(id, frame, fx);
        }
    }

    /// Takes the shield or some health; a player without enough health dies.
    pub(super) fn hurt_player(
        &mut self,
        id: PlayerId,
        damage: i16,
        frame: &Frame<'_, Game>,
        fx: &mut Effects<Game>,
    ) {
        let (now, tuning) = (frame.tick(), &frame.rules().tuning);
        if !self.phase.is_dangerous() {
            return;
        }
        let player = self.players.get_mut(&id);
        let Some(player) = player.filter(|player| player.is_vulnerable(now)) else {
            return;
        };
        if player.has_shield || player.health > damage {
            let left = player.health - damage;
            player.hit(id, left, now, tuning, fx);
        } else {
            self.kill_player(id, frame, fx);
        }
    }

    fn kill_player(&mut self, id: PlayerId, frame: &Frame<'_, Game>, fx: &mut Effects<Game>) {
        let Some(player) = self.players.get_mut(&id) else {
            return;
        };
        player.health = 0;
        let key = player.life_key(id);
        fx.cue(player.cue_key(id), Cue::PlayerDied(id));
        if self.phase != RoundPhase::Endless {
            // Decided by the lives before this death: this death may spend the team's last life, and only the next one
            // eliminates a player.
            player.is_out = self.lives == 0;
            self.lives = self.lives.saturating_sub(1);
        }
        if !player.is_out {
            let back = frame.tick() + frame.rules().tuning.player_return_ticks;
            self.timers.at(back, key, Timer::Player(id));
        }
    }

    pub(super) fn return_player(
        &mut self,
        id: PlayerId,
        frame: &Frame<'_, Game>,
        fx: &mut Effects<Game>,
    ) {
        if self.players.contains_key(&id) {
            self.appear(id, frame, fx);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::super::testing::*;
    use super::*;
    use crate::{Command, Pad, Weapon};

    fn vulnerable() -> SoloGame {
        let mut game = with_player(quiet());
        player_mut(&mut game).safe_until = Tick(0);
        game
    }

    fn hurt(game: &mut SoloGame) -> Vec<Cue> {
        let by = Key::new(3, 3);
        let effects = game.claim(ONE, Command::Hurt { by }).step();
        effects.cues().iter().map(|(_, cue)| *cue).collect()
    }

    #[test]
    fn a_hit_takes_health_and_protects_from_hits_for_mercy_ticks() {
        let mut game = vulnerable();
        let at = player(&game).at;
        put_bullet(&mut game, Key::new(3, 3), at);
        assert_eq!(hurt(&mut game), [Cue::Hurt(ONE)]);
        let tuning = rules().tuning;
        let left = tuning.player_health - tuning.bullet_damage;
        assert_eq!(player(&game).health, left);
        assert!(game.sim().bullets.is_empty(), "the bullet is spent");
        assert_eq!(hurt(&mut game), []);
        assert_eq!(player(&game).health, left);
        game.run(tuning.mercy_ticks);
        assert_eq!(hurt(&mut game), [Cue::Hurt(ONE)]);
    }

    #[test]
    fn a_shield_takes_one_hit_of_any_kind() {
        let mut game = vulnerable();
        player_mut(&mut game).has_shield = true;
        assert_eq!(hurt(&mut game), [Cue::ShieldBroke(ONE)]);
        assert_eq!(player(&game).health, rules().tuning.player_health);
        assert!(!player(&game).has_shield);
    }

    #[test]
    fn a_hit_larger_than_the_health_left_has_no_effect() {
        let mut game = vulnerable();
        player_mut(&mut game).health = 5;
        let at = player(&game).at;
        put_bullet(&mut game, Key::new(3, 3), at);
        assert_eq!(hurt(&mut game), []);
        assert_eq!(player(&game).health, 5);
        assert_eq!(
            game.sim().bullets.len(),
            1,
            "nor does it take the bullet away"
        );
        assert!(player(&game).is_vulnerable(game.world().tick()));
    }

    /// A player that would not survive an enemy's touch cannot claim a cheaper bullet instead.
    #[test]
    fn a_hit_costs_the_damage_of_its_cause() {
        let mut game = vulnerable();
        let at = player(&game).at;
        let by = put_enemy(&mut game, 2, at);
        game.claim(ONE, Command::Hurt { by }).step();
        assert_eq!(player(&game).health, rules().tuning.player_health);
        assert!(player(&game).is_vulnerable(game.world().tick()));
        let by = by.child(5);
        game.claim(ONE, Command::Hurt { by }).step();
        let left = rules().tuning.player_health - rules().tuning.bullet_damage;
        assert_eq!(player(&game).health, left, "one of its bullets");
    }

    #[test]
    fn a_death_costs_the_weapon() {
        let mut game = vulnerable();
        player_mut(&mut game).arm(Weapon::Lance);
        player_mut(&mut game).has_shield = true;
        game.claim(ONE, Command::Died { by: Key::default() }).step();
        game.hold(ONE, Pad::default())
            .run(rules().tuning.player_return_ticks);
        assert_eq!(player(&game).life, 2);
        assert_eq!(player(&game).weapon, Weapon::Blaster);
        assert!(!player(&game).has_shield);
    }

    #[test]
    fn a_second_death_while_dead_is_ignored_and_does_not_delay_the_respawn() {
        let mut game = with_player(quiet());
        let died = Command::Died { by: Key::default() };
        game.claim(ONE, died).step();
        game.claim(ONE, died).step();
        assert!(game.effects().cues().is_empty());
        game.run(rules().tuning.player_return_ticks - 2);
        assert!(!player(&game).is_alive());
        game.step();
        assert!(player(&game).is_alive());
        assert_eq!(player(&game).life, 2);
    }
}
