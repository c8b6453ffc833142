//! Enemy fire: each kind fires volleys in its own pattern.
//!
//! Each enemy has its own random numbers, and its own count of bullets, from which their keys are derived.

use core::f32::consts::TAU;

use glam::Vec2;
use twinstep_core::Tick;
use twinstep_core::memo::{LoopContext, Outputs};

use super::enemy::Fired;
use super::kind::EnemyKind;
use super::rules::Rules;
use super::state::{Bullet, Enemy};
use super::units::{angle_of, direction};

/// The time to the next volley while no player is in sight.
const IDLE_TICKS: u32 = 30;
/// The range of a gunner's sight, in units.
const SIGHT: f32 = 30.0;
/// The golden angle, with which a spiral's bullets leave no free lane.
const GOLDEN: f32 = 2.399_963_2;

struct Muzzle<'a, 'o> {
    slot: u16,
    players: &'a [Vec2],
    fired: &'a mut Outputs<'o, Fired>,
    now: Tick,
    rules: &'a Rules,
}

impl Enemy {
    /// Fires a volley at living players at these positions. The volley must be due.
    pub(super) fn fire(
        &mut self,
        slot: u16,
        players: &[Vec2],
        given: &LoopContext<'_, Rules>,
        fired: &mut Outputs<'_, Fired>,
    ) {
        let first = self.bullets;
        let mut muzzle = Muzzle {
            slot,
            players,
            fired,
            now: given.tick,
            rules: given.rules,
        };
        let rest_ticks = match self.kind {
            EnemyKind::Gunner => self.fire_aimed(&mut muzzle),
            EnemyKind::Urchin => {
                let turn = self.luck.unit_f32() * TAU;
                self.ring(12, turn, 0.12, &mut muzzle);
                self.luck.range(130..170) as u32
            }
            EnemyKind::Spinner => {
                let turn = (self.bullets % 1_000) as f32 * GOLDEN;
                self.shoot(turn, 0.15, &mut muzzle);
                9
            }
            EnemyKind::Sapper | EnemyKind::Charger => IDLE_TICKS,
            EnemyKind::Boss => self.barrage(&mut muzzle),
        };
        self.volleys = self.volleys.wrapping_add(1);
        self.next_volley = given.tick + rest_ticks;
        // A stream of single bullets would flood the cues, so only real volleys cause one.
        let count = self.bullets.wrapping_sub(first);
        if count > 0
            && self.kind != EnemyKind::Spinner
            && (self.kind != EnemyKind::Boss || count > 4)
        {
            fired.push(Fired::Volley(self.key(slot).child(first), slot));
        }
    }

    fn fire_aimed(&mut self, muzzle: &mut Muzzle<'_, '_>) -> u32 {
        let Some(target) = nearest(self.at, muzzle.players) else {
            return IDLE_TICKS;
        };
        let miss = (self.luck.unit_f32() - 0.5) * 0.12;
        self.shoot(angle_of(target - self.at) + miss, 0.2, muzzle);
        self.luck.range(50..80) as u32
    }

    fn barrage(&mut self, muzzle: &mut Muzzle<'_, '_>) -> u32 {
        // Below 10,000 the angles stay small enough to be exact in an `f32`.
        let n = self.volleys % 10_000;
        let turn = n as f32 * 0.31;
        match self.stage {
            0 if n.is_multiple_of(2) => {
                self.fan(9, 0.15, 0.2, muzzle);
                40
            }
            0 => {
                let turn = self.luck.unit_f32() * TAU;
                self.ring(24, turn, 0.14, muzzle);
                45
            }
            1 => {
                self.ring(3, turn, 0.16, muzzle);
                if n.is_multiple_of(12) {
                    self.fan(7, 0.12, 0.24, muzzle);
                }
                7
            }
            _ => {
                self.ring(4, -turn, 0.17, muzzle);
                if n.is_multiple_of(14) {
                    self.ring(28, turn, 0.11, muzzle);
                }
                6
            }
        }
    }

    fn fan(&mut self, count: u8, spread: f32, speed: f32, muzzle: &mut Muzzle<'_, '_>) {
        let Some(target) = nearest(self.at, muzzle.players) else {
            return;
        };
        let first = angle_of(target - self.at) - spread * f32::from(count - 1) / 2.0;
        for n in 0..count {
            self.shoot(first + spread * f32::from(n), speed, muzzle);
        }
    }

    fn ring(&mut self, count: u8, turn: f32, speed: f32, muzzle: &mut Muzzle<'_, '_>) {
        for n in 0..count {
            let angle = turn + f32::from(n) * (TAU / f32::from(count));
            self.shoot(angle, speed, muzzle);
        }
    }

    fn shoot(&mut self, angle: f32, speed: f32, muzzle: &mut Muzzle<'_, '_>) {
        // The count rises even when the arena is full, so that a bullet's key does not depend on the other bullets.
        self.bullets = self.bullets.wrapping_add(1);
        let key = self.key(muzzle.slot).child(self.bullets);
        let step = direction(angle) * speed;
        let bullet = Bullet::fired(key, self.kind, self.at, step, muzzle.now, muzzle.rules);
        muzzle.fired.push(Fired::Bullet(bullet));
    }
}

fn nearest(from: Vec2, players: &[Vec2]) -> Option<Vec2> {
    let mut best = (SIGHT * SIGHT, None);
    for player in players {
        let distance_squared = player.distance_squared(from);
        if distance_squared < best.0 {
            best = (distance_squared, Some(*player));
        }
    }
    best.1
}

#[cfg(test)]
mod tests {
    use twinstep_core::Key;

    use super::super::cue::Cue;
    use super::super::testing::*;
    use super::*;

    #[test]
    fn each_kind_fires_its_pattern() {
        let mut game = with_player(arena(4));
        game.run(800);
        // The middle is in sight of every gunner.
        player_mut(&mut game).at = Vec2::ZERO;
        let mut count = [0; 4];
        let bullets = game.sim().bullets.iter();
        let mut seen: std::collections::BTreeSet<Key> = bullets.map(|bullet| bullet.key).collect();
        for _ in 0..600 {
            game.step();
            for bullet in &game.sim().bullets {
                if seen.insert(bullet.key) {
                    count[bullet.kind as usize] += 1;
                }
            }
        }
        let [gunner, urchin, spinner, sapper] = count;
        assert!((1..=13).contains(&gunner), "{count:?}");
        assert!(urchin > 0, "{count:?}");
        assert!((40..=70).contains(&spinner), "{count:?}");
        assert_eq!(sapper, 0);
    }

    #[test]
    fn gunners_fire_at_the_nearest_player() {
        let mut game = with_player(quiet());
        player_mut(&mut game).at = Vec2::new(-5.0, -4.0);
        put_enemy(&mut game, 0, Vec2::new(3.0, -4.0));
        let now = game.world().tick();
        game.sim_mut().enemies[0].next_volley = now;
        game.step();
        let bullet = game.sim().bullets[0];
        assert!(
            bullet.step.x < -0.19 && bullet.step.y.abs() < 0.02,
            "{bullet:?}"
        );
    }

    /// Returns the steps of the bullets that a boss with `health` fires in ten seconds, with ONE nearby.
    fn barrage(health: i16) -> Vec<Vec2> {
        let mut game = with_player(quiet());
        player_mut(&mut game).at = Vec2::new(12.0, 0.0);
        put_kind(&mut game, 0, EnemyKind::Boss, Vec2::new(5.0, 4.0));
        let now = game.world().tick();
        let boss = &mut game.sim_mut().enemies[0];
        boss.next_volley = now;
        boss.health = health + 1;
        put_shot(&mut game, ONE, Vec2::new(5.0, 4.0));
        let mut seen = std::collections::BTreeMap::new();
        for _ in 0..600 {
            game.step();
            let bullets = game.sim().bullets.iter();
            seen.extend(bullets.map(|bullet| (bullet.key, bullet.step)));
        }
        seen.into_values().collect()
    }

    #[test]
    fn a_boss_changes_its_attacks_as_it_loses_health() {
        let full = EnemyKind::Boss.health();
        let [fresh, hurt, dying] = [full - 20, full / 2, full / 4].map(barrage);
        let at = |bullets: &[Vec2], speed: f32| {
            let near = bullets
                .iter()
                .filter(|step| (step.length() - speed).abs() < 1e-3);
            near.count()
        };
        // Fans and rings; spirals and fans; spirals and rings.
        assert!(at(&fresh, 0.2) > 50 && at(&fresh, 0.14) > 100);
        assert!(at(&hurt, 0.16) > 200 && at(&hurt, 0.24) > 40);
        assert!(at(&dying, 0.17) > 300 && at(&dying, 0.11) > 100);
        for bullets in [fresh, hurt, dying] {
            assert!((200..900).contains(&bullets.len()), "{}", bullets.len());
        }
    }

    #[test]
    fn a_volley_causes_one_cue_and_a_stream_causes_none() {
        for (kind, cues) in [
            (EnemyKind::Urchin, 4..=5),
            (EnemyKind::Spinner, 0..=0),
            (EnemyKind::Boss, 10..=20),
        ] {
            let mut game = with_player(quiet());
            player_mut(&mut game).at = Vec2::X * 20.0;
            put_kind(&mut game, 0, kind, Vec2::ZERO);
            let now = game.world().tick();
            game.sim_mut().enemies[0].next_volley = now;
            let mut heard = 0;
            for _ in 0..600 {
                let volleys = game.step().cues().iter();
                heard += volleys.filter(|(_, cue)| *cue == Cue::Volley(0)).count();
            }
            assert!(cues.contains(&heard), "{kind:?}: {heard}");
            assert!(!game.sim().bullets.is_empty());
        }
    }

    #[test]
    fn bullets_are_bounded() {
        let mut rules = Rules::arena(200);
        rules.tuning.bullets_max = 100;
        let mut game = with_player(solo(rules));
        for _ in 0..1_000 {
            game.step();
            assert!(game.sim().bullets.len() <= 100);
        }
        assert!(game.sim().bullets.len() > 80);
    }
}
