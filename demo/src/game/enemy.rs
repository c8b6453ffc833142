//! Enemies: each on its own path, with its own generator, firing its kind's pattern.
//!
//! An enemy is a slot that is filled again and again; a life in it is named by (slot, life), and so is all
//! its luck. Nothing that happens to one enemy changes another one's draws (seed rows 60 and 66).
//!
//! | kind | pattern |
//! |---|---|
//! | gunner | one bullet at the nearest player, nearly |
//! | urchin | a ring, turned by chance |
//! | spinner | a spiral |
//! | sapper | no bullets; lights each barrel that it passes |

use core::f32::consts::TAU;

use glam::Vec2;
use serde::{Deserialize, Serialize};
use twinstep_core::{Effects, Frame, Key, Mwc, PlayerId, Table, Tick};

use super::bullet::Bullet;
use super::player::Player;
use super::units::{angle_of, direction};
use super::{Cue, Game, Path, Rules, Timer};

/// What an enemy is; told by its slot.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub enum Kind {
    /// Aims.
    Gunner,
    /// Bursts.
    Urchin,
    /// Spirals.
    Spinner,
    /// Lights barrels.
    Sapper,
}

/// From one volley to the next while nobody is there to be aimed at.
const IDLE_TICKS: u32 = 30;
/// Gunners see so far, in units.
const SIGHT: f32 = 30.0;

impl Kind {
    /// All kinds, in the order of slots.
    pub const ALL: [Kind; 4] = [Kind::Gunner, Kind::Urchin, Kind::Spinner, Kind::Sapper];

    /// The kind of every life in a slot.
    #[must_use]
    pub fn of(slot: u16) -> Kind {
        Kind::ALL[usize::from(slot) % Kind::ALL.len()]
    }

    /// In units.
    #[must_use]
    pub const fn radius(self) -> f32 {
        match self {
            Kind::Gunner => 0.6,
            Kind::Urchin => 0.8,
            Kind::Spinner => 0.7,
            Kind::Sapper => 0.5,
        }
    }

    /// Health at birth.
    #[must_use]
    pub const fn health(self) -> i16 {
        match self {
            Kind::Gunner => 30,
            Kind::Urchin => 60,
            Kind::Spinner => 50,
            Kind::Sapper => 20,
        }
    }

    /// What its death is worth.
    #[must_use]
    pub const fn points(self) -> u16 {
        match self {
            Kind::Gunner => 10,
            Kind::Urchin => 25,
            Kind::Spinner => 20,
            Kind::Sapper => 15,
        }
    }

    fn paths(self, rules: &Rules) -> &[Path] {
        if self == Kind::Sapper {
            &rules.rounds
        } else {
            &rules.orbits
        }
    }
}

/// A slot for enemies, and who lives in it.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Enemy {
    /// How many lived in this slot, this one included.
    pub life: u32,
    /// Since when.
    pub born: Tick,
    /// Where it is.
    pub at: Vec2,
    /// 0: dead, the slot is empty.
    pub health: i16,
    path: u32,
    /// How far ahead of its birth it is on its path.
    ahead_ticks: u32,
    next_volley: Tick,
    bullets: u32,
    luck: Mwc,
}

impl Enemy {
    fn empty(slot: u16, seed: u64) -> Enemy {
        let key = Enemy::name(slot, 0);
        Enemy {
            life: 0,
            born: Tick(0),
            at: Vec2::ZERO,
            health: 0,
            path: 0,
            ahead_ticks: 0,
            next_volley: Tick(0),
            bullets: 0,
            luck: Mwc::seed(seed).fork(key),
        }
    }

    /// One that stays where it is and keeps quiet.
    #[cfg(test)]
    pub(super) fn posted(slot: u16, health: i16, at: Vec2) -> Enemy {
        Enemy {
            at,
            health,
            path: u32::MAX,
            next_volley: Tick::MAX,
            ..Enemy::empty(slot, 0)
        }
    }

    /// The next life of the slot.
    fn arrive(&mut self, slot: u16, seed: u64, now: Tick, rules: &Rules) {
        let kind = Kind::of(slot);
        let life = self.life.wrapping_add(1);
        let mut luck = Mwc::seed(seed).fork(Enemy::name(slot, life));
        *self = Enemy {
            life,
            born: now,
            at: Vec2::ZERO,
            health: kind.health(),
            path: luck.below(kind.paths(rules).len() as u32),
            ahead_ticks: luck.below(10_000),
            next_volley: now + rules.tuning.enemy_waking_ticks + luck.below(90),
            bullets: 0,
            luck,
        };
        self.follow_path(kind, now, rules);
    }

    /// The name of what lives in a slot.
    fn name(slot: u16, life: u32) -> Key {
        Key::new(super::cause::ENEMY | u64::from(slot), life)
    }

    /// Its name: by slot and life.
    #[must_use]
    pub fn key(&self, slot: u16) -> Key {
        Enemy::name(slot, self.life)
    }

    /// Whether somebody lives here.
    #[must_use]
    pub fn is_alive(&self) -> bool {
        self.health > 0
    }

    /// Whether it hurts already.
    #[must_use]
    pub fn is_awake(&self, now: Tick, rules: &Rules) -> bool {
        self.is_alive() && now - self.born >= rules.tuning.enemy_waking_ticks
    }

    fn follow_path(&mut self, kind: Kind, now: Tick, rules: &Rules) {
        if let Some(path) = kind.paths(rules).get(self.path as usize) {
            self.at = path.at((now - self.born).wrapping_add(self.ahead_ticks));
        }
    }

    /// Fires if it is time to.
    fn fire(
        &mut self,
        slot: u16,
        players: &Table<PlayerId, Player>,
        bullets: &mut Vec<Bullet>,
        frame: &Frame<'_, Game>,
        fx: &mut Effects<Game>,
    ) {
        let (now, rules) = (frame.tick(), frame.rules());
        if now < self.next_volley {
            return;
        }
        let kind = Kind::of(slot);
        let (first, room) = (self.bullets, bullets.len());
        let rest_ticks = match kind {
            Kind::Gunner => match nearest(self.at, players) {
                Some(target) => {
                    let miss = (self.luck.unit_f32() - 0.5) * 0.12;
                    self.shoot(
                        slot,
                        angle_of(target - self.at) + miss,
                        0.2,
                        bullets,
                        now,
                        rules,
                    );
                    self.luck.range(50..80)
                }
                None => IDLE_TICKS as i32,
            },
            Kind::Urchin => {
                let turn = self.luck.unit_f32() * TAU;
                for n in 0..12 {
                    self.shoot(
                        slot,
                        turn + n as f32 * (TAU / 12.0),
                        0.12,
                        bullets,
                        now,
                        rules,
                    );
                }
                self.luck.range(130..170)
            }
            Kind::Spinner => {
                // The golden angle leaves no lane that stays free.
                let turn = (self.bullets % 1_000) as f32 * 2.399_963_2;
                self.shoot(slot, turn, 0.15, bullets, now, rules);
                9
            }
            Kind::Sapper => IDLE_TICKS as i32,
        };
        self.next_volley = now + rest_ticks as u32;
        // A spinner never stops: its stream is no event.
        if kind != Kind::Spinner && bullets.len() > room {
            fx.cue(self.key(slot).child(first), Cue::Volley(slot));
        }
    }

    fn shoot(
        &mut self,
        slot: u16,
        angle: f32,
        speed: f32,
        bullets: &mut Vec<Bullet>,
        now: Tick,
        rules: &Rules,
    ) {
        self.bullets = self.bullets.wrapping_add(1);
        if bullets.len() < rules.tuning.bullets_max as usize {
            let key = self.key(slot).child(self.bullets);
            bullets.push(Bullet::fired(
                key,
                Kind::of(slot),
                self.at,
                direction(angle) * speed,
                now,
                rules,
            ));
        }
    }
}

/// Where the nearest living player in sight is; of equals the first by number.
fn nearest(from: Vec2, players: &Table<PlayerId, Player>) -> Option<Vec2> {
    let mut best = (SIGHT * SIGHT, None);
    for player in players.values().filter(|player| player.is_alive()) {
        let distance_squared = player.at.distance_squared(from);
        if distance_squared < best.0 {
            best = (distance_squared, Some(player.at));
        }
    }
    best.1
}

impl Game {
    /// Empty slots, and the timers that fill them one after the other.
    pub(super) fn expect_enemies(&mut self, rules: &Rules) {
        for slot in 0..rules.enemies {
            let enemy = Enemy::empty(slot, self.seed);
            let arrival =
                u32::from(slot) * rules.tuning.enemy_arrival_ticks / u32::from(rules.enemies);
            self.timers
                .at(Tick(arrival + 1), enemy.key(slot), Timer::Enemy(slot));
            self.enemies.push(enemy);
        }
    }

    /// The next enemy of a slot appears.
    pub(super) fn arrive(&mut self, slot: u16, frame: &Frame<'_, Game>) {
        if let Some(enemy) = self.enemies.get_mut(usize::from(slot)) {
            enemy.arrive(slot, self.seed, frame.tick(), frame.rules());
        }
    }

    /// Enemies go their ways and fire. Cost: one or two sines each, whatever the players do.
    pub(super) fn move_enemies(&mut self, frame: &Frame<'_, Game>, fx: &mut Effects<Game>) {
        let (now, rules) = (frame.tick(), frame.rules());
        for (enemy, slot) in self
            .enemies
            .iter_mut()
            .zip(0..)
            .filter(|(enemy, _)| enemy.is_alive())
        {
            enemy.follow_path(Kind::of(slot), now, rules);
            enemy.fire(slot, &self.players, &mut self.bullets, frame, fx);
        }
    }

    /// Takes health; the last of it is death, and credit to `by`.
    pub(super) fn hurt_enemy(
        &mut self,
        slot: u16,
        damage: i16,
        by: Option<PlayerId>,
        frame: &Frame<'_, Game>,
        fx: &mut Effects<Game>,
    ) {
        let Some(enemy) = self
            .enemies
            .get_mut(usize::from(slot))
            .filter(|enemy| enemy.is_alive())
        else {
            return;
        };
        if enemy.health > damage {
            enemy.health -= damage;
            return;
        }
        enemy.health = 0;
        let key = enemy.key(slot);
        self.timers.at(
            frame.tick() + frame.rules().tuning.enemy_return_ticks,
            key,
            Timer::Enemy(slot),
        );
        fx.cue(key, Cue::EnemyDied(slot));
        if let Some(id) = by {
            self.credit(id, Kind::of(slot).points(), key, fx);
        }
    }

    fn credit(&mut self, id: PlayerId, points: u16, cause: Key, fx: &mut Effects<Game>) {
        self.score = self.score.saturating_add(u32::from(points));
        if let Some(player) = self.players.get_mut(&id) {
            player.score = player.score.saturating_add(u32::from(points));
            player.kills = player.kills.saturating_add(1);
        }
        fx.cue_when_confirmed(cause, Cue::Scored { player: id, points });
    }
}

#[cfg(test)]
mod tests {
    use super::super::testing::*;
    use super::*;

    /// Row 66.
    #[test]
    fn draws_of_one_enemy_change_no_other() {
        let mut game = with_player(arena(12));
        let mut other = with_player(arena(12));
        game.run(300);
        other.run(300);
        let luck = &mut other.sim_mut().enemies[1].luck;
        for _ in 0..50 {
            luck.next_u32();
        }
        for _ in 0..600 {
            game.step();
            other.step();
        }
        let [game, other] = [game.sim(), other.sim()];
        for slot in 0..12 {
            assert_eq!(
                game.enemies[slot] == other.enemies[slot],
                slot != 1,
                "slot {slot}"
            );
        }
    }

    #[test]
    fn each_kind_fires_its_pattern() {
        let mut game = with_player(arena(4));
        game.run(800);
        // In the middle, where every gunner sees it.
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

    #[test]
    fn a_slot_is_filled_again_by_a_new_life_with_its_own_luck() {
        let mut game = with_player(arena(1));
        game.run(5);
        let first = game.sim().enemies[0].clone();
        assert!(first.is_alive());
        game.sim_mut().enemies[0].health = 1;
        put_shot(&mut game, ONE, first.at);
        game.run(3);
        assert!(!game.sim().enemies[0].is_alive());
        game.run(rules().tuning.enemy_return_ticks);
        let second = &game.sim().enemies[0];
        assert!(second.is_alive());
        assert_eq!(second.life, first.life + 1);
        assert_ne!(
            second.luck.fork(Key::default()),
            first.luck.fork(Key::default())
        );
    }

    #[test]
    fn bullets_are_bounded() {
        let mut rules = rules();
        rules.enemies = 200;
        rules.tuning.bullets_max = 100;
        let mut game = with_player(solo(rules));
        for _ in 0..1_000 {
            game.step();
            assert!(game.sim().bullets.len() <= 100);
        }
        assert!(game.sim().bullets.len() > 80);
    }
}
