//! Enemies: each on its own path, with its own generator.
//!
//! Each enemy lives in a slot, and slots are reused. A life is named by (slot, life), and its random numbers are
//! derived from that name. So events of one enemy never change another enemy's draws, and an enemy's path does not
//! depend on players. Its bullets are in `pattern`; the kinds are in `kind`.

use arrayvec::ArrayVec;
use glam::Vec2;
use twinstep_core::bounds::PLAYERS_MAX;
use twinstep_core::memo::{LoopContext, Outputs};
use twinstep_core::{Effects, Frame, Key, PlayerId, Tick};

use super::cue::Cue;
use super::kind::EnemyKind;
use super::rules::Rules;
use super::state::{Bullet, Enemy, Game, Timer};

const STAGES: i32 = 3;

/// The result of an enemy's fire: a bullet, or the cue of a volley with its key and the enemy's slot.
#[derive(Clone)]
pub(super) enum Fired {
    Bullet(Bullet),
    Volley(Key, u16),
}

/// The slot of an enemy; and the positions of the living players if its next volley is due.
type Seen = (u16, Option<ArrayVec<Vec2, PLAYERS_MAX>>);

impl Enemy {
    fn tick(
        &mut self,
        (slot, targets): &Seen,
        given: &LoopContext<'_, Rules>,
        out: &mut Outputs<'_, Fired>,
    ) {
        if self.is_alive() {
            self.follow_path(given.tick, given.rules);
        }
        if let Some(targets) = targets {
            self.fire(*slot, targets, given, out);
        }
    }
}

impl Game {
    pub(super) fn make_slots(&mut self, rules: &Rules) {
        for slot in 0..rules.slots() {
            let kind = EnemyKind::of_arena(slot);
            self.enemies.push(Enemy::empty(slot, kind, self.seed));
            if !rules.is_campaign() {
                let arrival =
                    u32::from(slot) * rules.tuning.enemy_arrival_ticks / u32::from(rules.enemies);
                self.expect_enemy(slot, kind, Tick(arrival + 1));
            }
        }
    }

    pub(super) fn expect_enemy(&mut self, slot: u16, kind: EnemyKind, at: Tick) {
        let Some(enemy) = self.enemies.get_mut(usize::from(slot)) else {
            return;
        };
        enemy.kind = kind;
        enemy.is_coming = true;
        self.timers.at(at, enemy.key(slot), Timer::Enemy(slot));
    }

    pub(super) fn arrive(&mut self, slot: u16, frame: &Frame<'_, Game>) {
        let players = self.present().count();
        if let Some(enemy) = self.enemies.get_mut(usize::from(slot)) {
            let rules = frame.rules();
            let health = match enemy.kind {
                EnemyKind::Boss => boss_health(players, rules),
                kind => kind.health(),
            };
            enemy.arrive(slot, health, self.seed, frame.tick(), rules);
        }
    }

    /// Moves all enemies and lets them fire. Moving costs at most one sine and one cosine per enemy.
    pub(super) fn move_enemies(&mut self, frame: &Frame<'_, Game>, fx: &mut Effects<Game>) {
        let (now, bullets_max) = (frame.tick(), frame.rules().tuning.bullets_max as usize);
        let living = self.players.values().filter(|player| player.is_alive());
        let targets: ArrayVec<Vec2, PLAYERS_MAX> = living.map(|player| player.at).collect();
        let seen = |slot, enemy: &Enemy| {
            let fires = enemy.is_alive() && now >= enemy.next_volley;
            (slot as u16, fires.then(|| targets.clone()))
        };
        let bullets = &mut self.bullets;
        let enemies = &mut self.enemies;
        fx.each(
            "enemies",
            frame,
            enemies,
            seen,
            Enemy::tick,
            |fx, fired| match fired {
                Fired::Bullet(bullet) if bullets.len() < bullets_max => bullets.push(bullet),
                Fired::Bullet(_) => {}
                Fired::Volley(key, slot) => fx.cue(key, Cue::Volley(slot)),
            },
        );
    }

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
        let key = enemy.key(slot);
        if enemy.health > damage {
            enemy.health -= damage;
            if enemy.kind == EnemyKind::Boss {
                self.enrage(slot, key, fx);
            }
            return;
        }
        let (kind, at, carries) = (enemy.kind, enemy.at, enemy.carries);
        enemy.health = 0;
        fx.cue(key, Cue::EnemyDied(slot));
        if let Some(id) = by {
            self.credit(id, kind.points(), key, fx);
        }
        // Drawn at birth, so every client's prediction drops the same item.
        if let Some(item) = carries {
            self.drop_item(key, item, at, frame);
        }
        if !frame.rules().is_campaign() {
            let next = frame.tick() + frame.rules().tuning.enemy_return_ticks;
            self.expect_enemy(slot, kind, next);
        } else if kind == EnemyKind::Boss {
            self.end_wave(fx);
        }
    }

    /// Lets a boss start its next stage when it has lost enough health. Its bullets disappear.
    fn enrage(&mut self, slot: u16, key: Key, fx: &mut Effects<Game>) {
        let enemy = &mut self.enemies[usize::from(slot)];
        let lost = i32::from(enemy.full_health) - i32::from(enemy.health);
        let stage = (lost * STAGES / i32::from(enemy.full_health.max(1))) as u8;
        if stage > enemy.stage {
            enemy.stage = stage;
            self.bullets.retain(|bullet| bullet.kind != EnemyKind::Boss);
            fx.cue(key.child(stage.into()), Cue::Enraged { slot, stage });
        }
    }

    fn end_wave(&mut self, fx: &mut Effects<Game>) {
        self.bullets.clear();
        for (enemy, slot) in self.enemies.iter_mut().zip(0..) {
            if enemy.is_alive() {
                enemy.health = 0;
                fx.cue(enemy.key(slot), Cue::EnemyDied(slot));
            }
        }
        self.cancel_arrivals();
    }

    pub(super) fn cancel_arrivals(&mut self) {
        for (enemy, slot) in self.enemies.iter_mut().zip(0..) {
            if enemy.is_coming {
                enemy.is_coming = false;
                self.timers.cancel(enemy.key(slot));
            }
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

fn boss_health(players: usize, rules: &Rules) -> i16 {
    let more = rules.tuning.boss_percent as usize * (players.max(1) - 1);
    let health = EnemyKind::Boss.health() as usize * (100 + more) / 100;
    i16::try_from(health).unwrap_or(i16::MAX)
}

#[cfg(test)]
mod tests {
    use glam::Vec2;

    use super::super::testing::*;
    use super::*;
    use crate::Item;

    /// Row 66.
    #[test]
    fn random_draws_of_one_enemy_do_not_affect_another() {
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

    /// Row 60: a charger's path does not depend on players.
    #[test]
    fn a_charger_darts_to_its_announced_target_wherever_players_are() {
        let ways = [Vec2::new(-20.0, 10.0), Vec2::new(30.0, -20.0)].map(|at| {
            let mut game = with_player(quiet());
            put_kind(&mut game, 0, EnemyKind::Charger, Vec2::ZERO);
            let enemy = &mut game.sim_mut().enemies[0];
            (enemy.path, enemy.ahead_ticks) = (0, 0);
            let now = game.world().tick();
            game.sim_mut().enemies[0].born = now;
            player_mut(&mut game).at = at;
            let mut way = Vec::new();
            let mut aimed_at = None;
            for _ in 0..160 {
                let now = game.world().tick();
                aimed_at = game.sim().enemies[0].threatens(now, &rules()).or(aimed_at);
                game.step();
                way.push(game.sim().enemies[0].at);
            }
            let end = aimed_at.expect("it rests first");
            assert!(way[0].distance(way[90]) < 1e-3, "it rests");
            assert!(way[159].distance(end) < 2.0, "{} is not {end}", way[159]);
            way
        });
        assert_eq!(ways[0], ways[1]);
    }

    #[test]
    fn some_enemies_carry_an_item_drawn_at_birth() {
        let mut game = with_player(arena(300));
        game.run(700);
        let carrying = |game: &SoloGame| -> Vec<Option<Item>> {
            let enemies = game.sim().enemies.iter();
            enemies.map(|enemy| enemy.carries).collect()
        };
        let items = carrying(&game);
        let some = items.iter().flatten().count();
        let expected = 3 * rules().tuning.carry_percent as usize;
        assert!(
            (expected / 2..expected * 2).contains(&some),
            "{some} of 300"
        );
        game.run(100);
        let lives = game.sim().enemies.iter().map(|enemy| enemy.life);
        let lives: Vec<u32> = lives.collect();
        assert!(lives.iter().all(|life| *life == 1));
        assert_eq!(carrying(&game), items);
    }

    #[test]
    fn a_reused_slot_holds_a_new_life_with_its_own_generator() {
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
}
