//! Players' shots.
//!
//! ```text
//!   blaster, scatter   ──▶ the first enemy, barrel or crate: spent
//!   lance              ──▶ enemies, each once, up to [`PIERCED_MAX`]; a barrel or crate ends it
//!   thumper            ──▶ over everything, and bursts where it lands: `Query::Blast`
//! ```
//!
//! In the prediction, a remote player's shot is a *ghost* until its input is known (seed rows 67 to 70): it
//! flies, hits and ends as any other one does, but hurts nobody, asks nothing, and the step withholds.

use glam::Vec2;
use serde::{Deserialize, Serialize};
use twinstep_core::{Effects, Frame, Key, PlayerId, Tick};

use super::barrel::BARREL_RADIUS;
use super::{Body, Bomb, Cue, Game, Rules, Weapon};

/// A shot's radius, in units.
pub const SHOT_RADIUS: f32 = 0.2;
/// Whom one lance can hit.
pub const PIERCED_MAX: usize = 6;
/// How far a shell stays off walls where it lands, in units.
const SHELL_RADIUS: f32 = 0.3;

/// A player's shot.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
pub struct Shot {
    /// Named by the player and its own count.
    pub key: Key,
    /// Who fired.
    pub owner: PlayerId,
    /// With what.
    pub weapon: Weapon,
    /// When.
    pub born: Tick,
    /// Where it is.
    pub at: Vec2,
    /// How far it moves in a tick.
    pub step: Vec2,
    /// The tick at which it is gone; a shell lands then.
    pub ends: Tick,
    /// How many it has hit, and whom, by slot.
    pierced: u8,
    slots: [u16; PIERCED_MAX],
}

impl Shot {
    /// The `n`th shot of a player.
    pub(super) fn fired(
        owner: PlayerId,
        n: u32,
        weapon: Weapon,
        at: Vec2,
        toward: Vec2,
        now: Tick,
        rules: &Rules,
    ) -> Shot {
        let step = toward * weapon.speed();
        let flight_ticks = if weapon.is_lobbed() {
            rules.ticks_inside(at, step, weapon.flight_ticks())
        } else {
            rules.flight_ticks(at, step, weapon.flight_ticks())
        };
        Shot {
            key: Key::player(owner, n),
            owner,
            weapon,
            born: now,
            at,
            step,
            ends: now + flight_ticks,
            pierced: 0,
            slots: [0; PIERCED_MAX],
        }
    }

    fn has_pierced(&self, slot: u16) -> bool {
        self.slots[..usize::from(self.pierced)].contains(&slot)
    }

    /// Notes a hit; returns whether the shot is spent with it.
    fn pierce(&mut self, slot: u16) -> bool {
        self.slots[usize::from(self.pierced)] = slot;
        self.pierced += 1;
        usize::from(self.pierced) >= self.weapon.hits_max()
    }
}

impl Game {
    /// Moves all shots; those that hit do their work.
    pub(super) fn move_shots(&mut self, frame: &Frame<'_, Game>, fx: &mut Effects<Game>) {
        // Taken out and put back, so that a hit can change the rest of the game. No allocation.
        let mut shots = core::mem::take(&mut self.shots);
        shots.retain_mut(|shot| {
            shot.at += shot.step;
            if shot.weapon.is_lobbed() {
                self.lobs(shot, frame, fx)
            } else {
                frame.tick() < shot.ends && self.goes_on(shot, frame, fx)
            }
        });
        self.shots = shots;
    }

    /// Whether a shell is still in the air; if not, it asks for its blast.
    fn lobs(&self, shell: &Shot, frame: &Frame<'_, Game>, fx: &mut Effects<Game>) -> bool {
        if frame.tick() < shell.ends {
            return true;
        }
        if frame.is_ghost(shell.owner, shell.born) {
            fx.withhold();
            return false;
        }
        let bomb = Bomb::Shell {
            owner: shell.owner,
            n: shell.key.n,
        };
        let at = frame.rules().place(shell.at, SHELL_RADIUS);
        self.ask_blast(bomb, at, frame, fx);
        false
    }

    /// Whether a shot flies on; hurts whom it hits.
    fn goes_on(
        &mut self,
        shot: &mut Shot,
        frame: &Frame<'_, Game>,
        fx: &mut Effects<Game>,
    ) -> bool {
        let Some(body) = self.struck_by(shot) else {
            return true;
        };
        let is_spent = match body {
            Body::Enemy(slot) => shot.pierce(slot),
            _ => true,
        };
        if frame.is_ghost(shot.owner, shot.born) {
            fx.withhold();
            return !is_spent;
        }
        let (by, rules) = (Some(shot.owner), frame.rules());
        match body {
            Body::Enemy(slot) => {
                let cause = shot.key.child(shot.pierced.into());
                fx.cue(cause, Cue::Hit(slot));
                if shot.weapon == Weapon::Lance {
                    self.ask_crit(cause, slot, shot.owner, frame, fx);
                }
                self.hurt_enemy(slot, shot.weapon.damage(), by, frame, fx);
            }
            Body::Barrel(n) => self.light(n, rules.tuning.fuse_ticks, by, frame, fx),
            Body::Crate(n) => self.hurt_crate(n, shot.weapon.damage(), shot.key, frame, fx),
            Body::Player(_) => unreachable!("shots pass through players"),
        }
        !is_spent
    }

    /// What a shot is in and has not pierced yet: enemies before barrels before crates, each by number.
    fn struck_by(&self, shot: &Shot) -> Option<Body> {
        let near = |at: Vec2, radius: f32| {
            let reach = radius + SHOT_RADIUS;
            at.distance_squared(shot.at) <= reach * reach
        };
        let enemy = self.enemies.iter().zip(0..).find(|(enemy, slot)| {
            near(enemy.at, enemy.kind.radius()) && enemy.is_alive() && !shot.has_pierced(*slot)
        });
        let barrel = || {
            let mut barrels = self.barrels.iter().zip(0..);
            let hit =
                barrels.find(|(barrel, _)| barrel.can_be_lit() && near(barrel.at, BARREL_RADIUS));
            hit.map(|(_, n)| Body::Barrel(n))
        };
        let chest = || {
            let mut crates = self.crates.iter().zip(0..);
            let hit = crates.find(|(chest, _)| chest.holds(shot.at));
            hit.map(|(_, n)| Body::Crate(n))
        };
        enemy
            .map(|(_, slot)| Body::Enemy(slot))
            .or_else(barrel)
            .or_else(chest)
    }
}

#[cfg(test)]
mod tests {
    use twinstep_core::frame::{Learned, PlayerSet};

    use super::super::testing::*;
    use super::*;
    use crate::game::{Heading, Kind, Pad, Stage};

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
        let points = Kind::Gunner.points();
        for _ in 0..12 {
            game.step();
            if game.effects().cues().contains(&(key, Cue::EnemyDied(0))) {
                assert!(
                    game.effects()
                        .cues()
                        .contains(&(Key::player(ONE, 1).child(1), Cue::Hit(0)))
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
        assert_eq!(game.sim().enemies[0].health, 30 - Weapon::Blaster.damage());
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
