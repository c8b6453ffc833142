//! What flies: players' shots, and enemies' bullets.
//!
//! ```text
//!   shot    player ──▶ enemies, barrels     in the prediction, a remote player's shot is a *ghost*
//!   bullet  enemy ──▶ players               until its input is known: it hits, vanishes, and hurts nobody
//! ```
//!
//! Both fly straight, and walls never move; so the tick of their end is computed at birth.

use glam::Vec2;
use serde::{Deserialize, Serialize};
use twinstep_core::{Effects, Frame, Key, PlayerId, Tick};

use super::barrel::{BARREL_RADIUS, Stage};
use super::blast::Body;
use super::enemy::Kind;
use super::{Cue, Game, Rules};

/// A shot's radius, in units.
pub const SHOT_RADIUS: f32 = 0.2;
/// A bullet's radius, in units.
pub const BULLET_RADIUS: f32 = 0.2;

/// A player's shot.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
pub struct Shot {
    /// Named by the player and its own count.
    pub key: Key,
    /// Who fired.
    pub owner: PlayerId,
    /// When.
    pub born: Tick,
    /// Where it is.
    pub at: Vec2,
    /// How far it moves in a tick.
    pub step: Vec2,
    /// The tick at which it is gone.
    pub ends: Tick,
}

impl Shot {
    pub(super) fn fired(
        owner: PlayerId,
        n: u32,
        at: Vec2,
        toward: Vec2,
        now: Tick,
        rules: &Rules,
    ) -> Shot {
        let step = toward * rules.tuning.shot_speed;
        let ends = now + rules.flight_ticks(at, step, rules.tuning.shot_ticks);
        Shot {
            key: Key::player(owner, n),
            owner,
            born: now,
            at,
            step,
            ends,
        }
    }
}

/// An enemy's bullet.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
pub struct Bullet {
    /// Named by the enemy and its own count.
    pub key: Key,
    /// What fired.
    pub kind: Kind,
    /// Where it is.
    pub at: Vec2,
    /// How far it moves in a tick.
    pub step: Vec2,
    /// The tick at which it is gone.
    pub ends: Tick,
}

impl Bullet {
    pub(super) fn fired(
        key: Key,
        kind: Kind,
        at: Vec2,
        step: Vec2,
        now: Tick,
        rules: &Rules,
    ) -> Bullet {
        let ends = now + rules.flight_ticks(at, step, rules.tuning.bullet_ticks);
        Bullet {
            key,
            kind,
            at,
            step,
            ends,
        }
    }
}

impl Game {
    /// Moves everything in the air; shots that hit do their work and are gone.
    pub(super) fn fly(&mut self, frame: &Frame<'_, Game>, fx: &mut Effects<Game>) {
        let now = frame.tick();
        self.bullets.retain_mut(|bullet| {
            bullet.at += bullet.step;
            now < bullet.ends
        });
        // Taken out and put back, so that a hit can change the rest of the game. No allocation.
        let mut shots = core::mem::take(&mut self.shots);
        shots.retain_mut(|shot| {
            shot.at += shot.step;
            now < shot.ends && !self.hits(shot, frame, fx)
        });
        self.shots = shots;
    }

    /// Whether a shot hits something; if so, hurts it, unless the shot is a ghost (rows 67 to 70).
    fn hits(&mut self, shot: &Shot, frame: &Frame<'_, Game>, fx: &mut Effects<Game>) -> bool {
        let Some(body) = self.struck_by(shot, frame.rules()) else {
            return false;
        };
        if frame.is_ghost(shot.owner, shot.born) {
            fx.withhold();
            return true;
        }
        match body {
            Body::Enemy(slot) => {
                fx.cue(shot.key, Cue::Hit(slot));
                self.hurt_enemy(
                    slot,
                    frame.rules().tuning.shot_damage,
                    Some(shot.owner),
                    frame,
                    fx,
                );
            }
            Body::Barrel(n) => self.light(
                n,
                frame.rules().tuning.fuse_ticks,
                Some(shot.owner),
                frame,
                fx,
            ),
            Body::Player(_) => unreachable!("shots pass through players"),
        }
        true
    }

    /// What a shot is in: enemies before barrels, each by number.
    fn struck_by(&self, shot: &Shot, rules: &Rules) -> Option<Body> {
        let near = |at: Vec2, radius: f32| {
            let reach = radius + SHOT_RADIUS;
            at.distance_squared(shot.at) <= reach * reach
        };
        let enemy = self
            .enemies
            .iter()
            .zip(0..)
            .find(|(enemy, slot)| near(enemy.at, Kind::of(*slot).radius()) && enemy.is_alive());
        let barrel = || {
            let mut barrels = self.barrels.iter().zip(&rules.barrels).zip(0..);
            barrels
                .find(|((barrel, at), _)| barrel.stage == Stage::Whole && near(**at, BARREL_RADIUS))
        };
        enemy
            .map(|(_, slot)| Body::Enemy(slot))
            .or_else(|| barrel().map(|(_, n)| Body::Barrel(n)))
    }
}

#[cfg(test)]
mod tests {
    use twinstep_core::frame::{Learned, PlayerSet};

    use super::super::testing::*;
    use super::*;
    use crate::game::{Heading, Pad};

    /// ONE faces an enemy that stands 5 units to the east and has `health` left; and fires once.
    fn duel(health: i16) -> Solo {
        let mut game = with_player(quiet());
        player_mut(&mut game).at = Vec2::new(-5.0, -4.0);
        put_enemy(&mut game, 0, Vec2::new(0.0, -4.0));
        game.sim_mut().enemies[0].health = health;
        game.hold(
            ONE,
            Pad {
                aim: Heading::EAST,
                buttons: Pad::FIRE,
                ..Pad::default()
            },
        )
        .step();
        game.hold(ONE, Pad::default());
        game
    }

    #[test]
    fn a_shot_that_kills_is_credited_to_who_fired_it() {
        let mut game = duel(1);
        let key = game.sim().enemies[0].key(0);
        let points = Kind::of(0).points();
        for _ in 0..12 {
            game.step();
            if game.effects().cues().contains(&(key, Cue::EnemyDied(0))) {
                assert!(
                    game.effects()
                        .cues()
                        .contains(&(Key::player(ONE, 1), Cue::Hit(0)))
                );
                assert!(game.effects().cues().contains(&(
                    key,
                    Cue::Scored {
                        player: ONE,
                        points
                    }
                )));
                assert_eq!(
                    (player(&game).score, player(&game).kills),
                    (u32::from(points), 1)
                );
                assert_eq!(game.sim().score, u32::from(points));
                assert!(game.sim().shots.is_empty(), "the shot is spent");
                return;
            }
        }
        panic!("the enemy lives: {:?}", game.sim().enemies[0]);
    }

    #[test]
    fn a_shot_that_does_not_kill_takes_health() {
        let mut game = duel(30);
        game.run(12);
        assert_eq!(
            game.sim().enemies[0].health,
            30 - rules().tuning.shot_damage
        );
        assert_eq!(player(&game).score, 0);
    }

    /// Row 68.
    #[test]
    fn a_ghost_vanishes_where_it_hits_does_no_damage_and_withholds() {
        let mut game = duel(1);
        game.predict(
            PlayerSet::from_iter([TWO]),
            game.world().tick(),
            Learned::new(),
        );
        // Nobody here knows yet what ONE held: its shot is a guess.
        let born = game.sim().shots[0].born;
        game.sim_mut().shots[0].born = born + 1_000;
        let mut withheld = 0;
        for _ in 0..12 {
            withheld += u32::from(game.step().withheld());
        }
        assert_eq!(withheld, 1);
        assert_eq!(game.sim().enemies[0].health, 1);
        assert!(game.sim().shots.is_empty());
    }

    /// Row 70.
    #[test]
    fn a_promoted_shot_of_a_remote_player_hits_like_an_own_one() {
        let mut game = duel(1);
        let born = game.sim().shots[0].born;
        let mut learned = Learned::new();
        learned.note(ONE, born, born + 2);
        game.predict(PlayerSet::from_iter([TWO]), born + 2, learned);
        for _ in 0..12 {
            assert!(!game.step().withheld());
        }
        assert!(!game.sim().enemies[0].is_alive());
    }

    #[test]
    fn walls_stop_shots() {
        let mut game = with_player(quiet());
        player_mut(&mut game).at = Vec2::new(-14.0, 0.5);
        // Behind the wall at (−9.5, 0.5).
        put_enemy(&mut game, 0, Vec2::new(-7.0, 0.5));
        let health = game.sim().enemies[0].health;
        game.hold(
            ONE,
            Pad {
                aim: Heading::EAST,
                buttons: Pad::FIRE,
                ..Pad::default()
            },
        )
        .run(60);
        assert_eq!(game.sim().enemies[0].health, health);
        assert!(game.sim().shots.iter().all(|shot| shot.at.x < -10.0));
    }

    #[test]
    fn a_shot_lights_a_barrel() {
        let mut game = with_player(quiet());
        player_mut(&mut game).at = rules().barrels[6] - Vec2::new(4.0, 0.0);
        game.hold(
            ONE,
            Pad {
                aim: Heading::EAST,
                buttons: Pad::FIRE,
                ..Pad::default()
            },
        )
        .run(12);
        assert_eq!(game.sim().barrels[6].stage, Stage::Lit);
        assert_eq!(game.sim().barrels[6].by, Some(ONE));
    }
}
