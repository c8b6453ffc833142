//! The state that a seat keeps of its former player: leaving and joining again must not heal, dodge a bullet or win a
//! life.
//!
//! ```text
//!   Left in a fight ──▶ a vulnerable player takes a hit ──▶ Former ──Joined──▶ as hurt, or as dead
//!   Left elsewhere  ──▶ only keys and the rest after a dash   ──Joined──▶ as new
//! ```
//!
//! A step does not know the joining identity, only its seat; the server gives an identity its former seat. So a new
//! player in a seat inherits the former player's wounds, but only until the round ends, or for a minute in an arena
//! without rounds.

use twinstep_core::{Effects, Frame, PlayerId, Tick};

use crate::rules::Tuning;
use crate::state::{Fate, Former, Game, Player, RoundPhase, Timer};

/// An arena has no rounds, so a seat drops wounds after this time.
const FORGOTTEN_TICKS: u32 = 3_600;

impl Player {
    /// Creates a player that has not appeared yet. It continues the key counters and the dash cooldown of the seat's
    /// former player.
    fn after(former: Option<Former>) -> Player {
        let unborn = Player::unborn();
        former.map_or(unborn, |former| Player {
            life: former.life,
            shots: former.shots,
            next_dash: former.next_dash,
            ..unborn
        })
    }

    /// Returns the health that the player keeps when it leaves a fight. A vulnerable player without a shield loses a
    /// bullet's damage; otherwise it could dodge each bullet by leaving.
    fn kept_health_on_leaving(&self, now: Tick, tuning: &Tuning) -> i16 {
        if self.is_away {
            return self.kept_health;
        }
        let is_hit = self.is_vulnerable(now) && !self.has_shield;
        self.health - if is_hit { tuning.bullet_damage } else { 0 }
    }
}

impl Game {
    pub(super) fn leave(&mut self, id: PlayerId, frame: &Frame<'_, Game>) {
        let (now, tuning) = (frame.tick(), &frame.rules().tuning);
        let Some(player) = self.players.remove(&id) else {
            return;
        };
        let key = player.life_key(id);
        let back = self.timers.get(key).map(|(back, _)| back);
        self.timers.cancel(key);
        let fate = match (back, player.kept_health_on_leaving(now, tuning)) {
            _ if !self.phase.is_dangerous() => Fate::Well,
            _ if player.is_out => Fate::Out(self.wave),
            (Some(back), _) => Fate::Dead(back),
            (None, health) if health > 0 => Fate::Hurt(health),
            // The hit dodged by leaving would have killed the player.
            (None, _) => Fate::Fell(now + tuning.player_return_ticks),
        };
        let former = Former {
            life: player.life,
            shots: player.shots,
            next_dash: player.next_dash,
            round: self.round,
            left: now,
            fate,
        };
        self.former.insert(id, former);
    }

    /// Adds a player in the state in which the seat's former player left this round. If no life is left, the player
    /// waits for the end of the wave.
    pub(super) fn join(&mut self, id: PlayerId, frame: &Frame<'_, Game>, fx: &mut Effects<Game>) {
        let now = frame.tick();
        let former = self.former.remove(&id);
        let fate = former.map_or(Fate::Well, |former| self.remaining_fate(&former, now));
        let mut player = Player::after(former);
        player.at = player.spawn(id, frame.rules());
        let costs_lives = self.phase.is_dangerous() && self.phase != RoundPhase::Endless;
        player.is_out = costs_lives && (self.lives == 0 || matches!(fate, Fate::Out(_)));
        let (is_out, key) = (player.is_out, player.life_key(id));
        self.players.insert(id, player);
        if is_out {
            return;
        }
        if costs_lives && matches!(fate, Fate::Fell(_)) {
            // At least one is left: without a life the player would be out.
            self.lives -= 1;
        }
        match fate {
            Fate::Dead(back) | Fate::Fell(back) if back > now => {
                self.timers.at(back, key, Timer::Player(id));
            }
            _ => self.appear(id, frame, fx),
        }
        if let (Fate::Hurt(health), Some(player)) = (fate, self.players.get_mut(&id)) {
            player.health = player.health.min(health);
        }
    }

    fn remaining_fate(&self, former: &Former, now: Tick) -> Fate {
        let is_long_ago = self.phase == RoundPhase::Endless && now >= former.left + FORGOTTEN_TICKS;
        match former.fate {
            _ if former.round != self.round || !self.phase.is_dangerous() || is_long_ago => {
                Fate::Well
            }
            Fate::Out(wave) if wave != self.wave || self.phase != RoundPhase::Wave => Fate::Well,
            fate => fate,
        }
    }
}

#[cfg(test)]
mod tests {
    use twinstep_core::Key;

    use super::super::super::testing::*;
    use super::super::super::{Command, Cue, Pad};
    use super::*;

    fn hurt_to(health: i16) -> SoloGame {
        let mut game = with_player(quiet());
        player_mut(&mut game).safe_until = Tick(0);
        player_mut(&mut game).health = health;
        game
    }

    fn rejoin(game: &mut SoloGame, after_ticks: u32) {
        game.leave(ONE).run(after_ticks);
        game.join(ONE).step();
    }

    /// Returns the deaths of ONE and TWO in 300 s. Both are hit every two seconds, and ONE runs `trick` before and
    /// after each hit.
    fn deaths(trick: impl Fn(&mut SoloGame, bool)) -> [u32; 2] {
        let mut game = quiet();
        game.join(ONE).join(TWO).step();
        let mut deaths = [0; 2];
        let mut run = |game: &mut SoloGame, ticks| {
            for _ in 0..ticks {
                for (_, cue) in game.step().cues() {
                    for (n, id) in [ONE, TWO].into_iter().enumerate() {
                        deaths[n] += u32::from(*cue == Cue::PlayerDied(id));
                    }
                }
            }
        };
        let by = Key::new(3, 3);
        for _ in 0..300 * 60 / 120 {
            trick(&mut game, true);
            run(&mut game, 60);
            for id in [ONE, TWO] {
                let sim = game.sim_mut();
                let Some(player) = sim.players.get_mut(&id).filter(|player| player.is_alive())
                else {
                    continue;
                };
                player.safe_until = Tick(0);
                let lives = player.health > rules().tuning.bullet_damage;
                game.claim(
                    id,
                    if lives {
                        Command::Hurt { by }
                    } else {
                        Command::Died { by }
                    },
                );
            }
            run(&mut game, 1);
            trick(&mut game, false);
            run(&mut game, 59);
        }
        deaths
    }

    /// Finding C5: leaving and joining again restored health.
    #[test]
    fn leaving_after_each_hit_does_not_avoid_deaths() {
        let fair = deaths(|_, _| {});
        assert!(fair[0] > 20 && fair[0] == fair[1], "{fair:?}");
        let healed = deaths(|game, before| {
            let is_hurt = game.sim().players.get(&ONE).is_some_and(|p| p.health < 100);
            match before {
                false if is_hurt => {
                    game.leave(ONE);
                }
                true if game.sim().players.get(&ONE).is_none() => {
                    game.join(ONE);
                }
                _ => {}
            }
        });
        assert!(healed[0] * 10 >= healed[1] * 8, "{healed:?}");
    }

    #[test]
    fn a_leaving_player_keeps_its_health_and_takes_the_dodged_hit() {
        let tuning = rules().tuning;
        let mut game = hurt_to(90);
        rejoin(&mut game, 200);
        assert_eq!(player(&game).health, 90 - tuning.bullet_damage);
        // ONE has just appeared, so it is safe: leaving now costs nothing.
        rejoin(&mut game, 200);
        assert_eq!(player(&game).health, 90 - tuning.bullet_damage);
        let mut game = hurt_to(90);
        player_mut(&mut game).has_shield = true;
        rejoin(&mut game, 200);
        assert_eq!(player(&game).health, 90, "the shield took it");
        assert!(!player(&game).has_shield, "and is gone");
    }

    #[test]
    fn a_player_leaving_dead_or_dying_stays_dead_for_the_full_time() {
        let tuning = rules().tuning;
        let died = Command::Died { by: Key::default() };
        let mut game = hurt_to(100);
        game.claim(ONE, died).step();
        game.run(20);
        rejoin(&mut game, 20);
        assert!(!player(&game).is_alive());
        game.run(tuning.player_return_ticks - 42);
        assert!(!player(&game).is_alive());
        game.run(2);
        assert_eq!(player(&game).health, tuning.player_health);
        let mut game = hurt_to(10);
        rejoin(&mut game, 20);
        assert!(!player(&game).is_alive());
        game.run(tuning.player_return_ticks - 20);
        assert_eq!(player(&game).health, tuning.player_health);
        assert_eq!(player(&game).life, 2);
    }

    #[test]
    fn leaving_does_not_shorten_the_rest_after_a_dash() {
        let mut game = with_player(quiet());
        game.command(ONE, Command::Dash).step();
        let rest = player(&game).dash_rest(game.world().tick());
        rejoin(&mut game, 5);
        let now = game.world().tick();
        assert_eq!(player(&game).dash_rest(now), rest - 6);
    }

    #[test]
    fn wounds_from_an_earlier_round_or_long_ago_are_dropped() {
        let mut game = hurt_to(50);
        rejoin(&mut game, FORGOTTEN_TICKS + 1);
        assert_eq!(player(&game).health, rules().tuning.player_health);
        let mut game = hurt_to(90);
        game.leave(ONE).step();
        game.sim_mut().round += 1;
        game.join(ONE).step();
        assert_eq!(player(&game).health, rules().tuning.player_health);
    }

    /// A death that a player dodged by leaving during a round costs the team a life when a player joins in that seat.
    #[test]
    fn in_a_round_a_dodged_death_costs_a_life_and_eliminated_players_stay_out() {
        let mut game = solo(short());
        game.join(ONE).join(TWO).step();
        game.command(ONE, Command::Ready)
            .command(TWO, Command::Ready);
        run_until(&mut game, RoundPhase::Wave);
        let lives = game.sim().lives;
        game.hold(ONE, Pad::default());
        player_mut(&mut game).safe_until = Tick(0);
        player_mut(&mut game).health = 10;
        rejoin(&mut game, 20);
        assert_eq!(game.sim().lives, lives - 1);
        assert!(!player(&game).is_alive() && !player(&game).is_out);
        game.sim_mut().lives = 0;
        player_mut(&mut game).is_out = true;
        game.leave(ONE).step();
        game.sim_mut().lives = 5;
        game.join(ONE).step();
        assert!(player(&game).is_out);
        assert_eq!(game.sim().lives, 5);
    }
}
