//! Everything that flies: players' shots, and enemies' bullets.
//!
//! ```text
//!   blaster, scatter   ──▶ the first enemy, barrel or crate: spent
//!   lance              ──▶ enemies, each once, up to [`PIERCED_MAX`]; a barrel or crate ends it
//!   thumper            ──▶ over everything, and bursts where it lands: `Query::Blast`
//! ```
//!
//! A remote player's shot is a *ghost* in the prediction until the input is known. It flies and ends like any other
//! shot, but the step withholds its effects.
//!
//! Bullets fly straight; `claim` decides which players they touch. Walls never move, so the tick at which a bullet
//! meets a wall is computed when the bullet is fired. Crates move and break, so they are tested every tick.

use glam::Vec2;
use twinstep_core::{Effects, Frame, Tick};

use super::cue::Cue;
use super::hit::{Bomb, Victim};
use super::state::{BARREL_RADIUS, Game, SHOT_RADIUS, Shot, crates};
use super::weapon::Weapon;

/// The minimum distance from walls and crates at which a shell lands, in units.
const SHELL_RADIUS: f32 = 0.3;

impl Game {
    pub(super) fn move_shots(&mut self, frame: &Frame<'_, Game>, fx: &mut Effects<Game>) {
        // Taken out and put back, so that a hit can change the rest of the game. No allocation.
        let mut shots = core::mem::take(&mut self.shots);
        shots.retain_mut(|shot| {
            shot.at += shot.step;
            if shot.weapon.is_lobbed() {
                self.lob_flies_on(shot, frame, fx)
            } else {
                frame.tick() < shot.ends && self.flies_on(shot, frame, fx)
            }
        });
        self.shots = shots;
    }

    /// Returns `true` if a shell is still in the air. A shell that lands asks for its blast.
    fn lob_flies_on(&self, shell: &Shot, frame: &Frame<'_, Game>, fx: &mut Effects<Game>) -> bool {
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
        // The shell bursts next to the thing it hits, because inside a crate it would hurt only the crate.
        let at = crates::push_out(&self.crates, shell.at, SHELL_RADIUS);
        let at = frame.rules().place(at, SHELL_RADIUS);
        self.ask_blast(bomb, at, frame, fx);
        false
    }

    /// Returns `true` if a shot flies on. Applies its hit, if any; a ghost's hit is withheld.
    fn flies_on(
        &mut self,
        shot: &mut Shot,
        frame: &Frame<'_, Game>,
        fx: &mut Effects<Game>,
    ) -> bool {
        let Some(body) = self.struck_by(shot) else {
            return true;
        };
        let is_spent = match body {
            Victim::Enemy(slot) => shot.pierce(slot),
            _ => true,
        };
        // A ghost pierces and ends like the real shot, so that its path does not change when its input becomes known.
        if frame.is_ghost(shot.owner, shot.born) {
            fx.withhold();
            return !is_spent;
        }
        let (by, rules) = (Some(shot.owner), frame.rules());
        match body {
            Victim::Enemy(slot) => {
                let cause = shot.key.child(shot.pierced.into());
                fx.cue(cause, Cue::Hit(slot));
                if shot.weapon == Weapon::Lance {
                    self.ask_crit(cause, slot, shot.owner, frame, fx);
                }
                self.hurt_enemy(slot, shot.weapon.damage(), by, frame, fx);
            }
            Victim::Barrel(n) => self.light(n, rules.tuning.fuse_ticks, by, frame, fx),
            Victim::Crate(n) => self.hurt_crate(n, shot.weapon.damage(), shot.key, frame, fx),
            Victim::Player(_) => unreachable!("shots pass through players"),
        }
        !is_spent
    }

    /// Returns the first body that a shot touches and has not pierced yet: enemies before barrels before crates, each
    /// kind in order of number.
    fn struck_by(&self, shot: &Shot) -> Option<Victim> {
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
            hit.map(|(_, n)| Victim::Barrel(n))
        };
        let chest = || {
            let mut crates = self.crates.iter().zip(0..);
            let hit = crates.find(|(chest, _)| chest.contains(shot.at));
            hit.map(|(_, n)| Victim::Crate(n))
        };
        enemy
            .map(|(_, slot)| Victim::Enemy(slot))
            .or_else(barrel)
            .or_else(chest)
    }
}

impl Game {
    pub(super) fn move_bullets(&mut self, now: Tick) {
        let crates = &self.crates;
        self.bullets.retain_mut(|bullet| {
            bullet.at += bullet.step;
            now < bullet.ends && !crates.iter().any(|chest| chest.contains(bullet.at))
        });
    }
}

#[cfg(test)]
mod tests;
