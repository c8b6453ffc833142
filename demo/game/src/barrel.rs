//! Barrels: a fuse, a query, a blast.
//!
//! ```text
//!   Whole ──lit──▶ Lit ──fuse ends──▶ Blasting ──outcome──▶ Gone ──timer──▶ Whole (the next life)
//!           │                            │ ask                │
//!   shot, order, blast, sapper     Query::Blast       harm, and other barrels lit: a chain
//!                                  Query::Toss        barrels and crates fly: see `toss`
//! ```
//!
//! A flying barrel keeps burning, and explodes where it is when the fuse ends. A barrel in the air cannot be lit.
//!
//! Invariant: each life of a barrel asks about its blast at most once, under its own key. The answer is applied in the
//! frame that contains it, and never to an enemy, barrel or crate that has appeared or moved since the query.

use glam::Vec2;
use twinstep_core::{Effects, Frame, Key, PlayerId, Tick};

use super::cue::Cue;
use super::hit::{BlastHit, Bomb, Victim};
use super::kind::EnemyKind;
use super::query::{Outcome, Query};
use super::rules::Rules;
use super::state::{BARREL_RADIUS, Barrel, BarrelStage, Crate, Game, Timer};
use super::units::Point;

impl Game {
    pub(super) fn place_barrels(&mut self, rules: &Rules) {
        let homes = rules.barrels.iter();
        self.barrels
            .extend(homes.map(|at| Barrel::new(0, Tick(0), *at)));
    }

    /// Lights the barrel if it is whole and at rest. Kills by its blast are credited to `by`.
    pub(super) fn light(
        &mut self,
        n: u8,
        fuse_ticks: u32,
        by: Option<PlayerId>,
        frame: &Frame<'_, Game>,
        fx: &mut Effects<Game>,
    ) {
        let barrel = self.barrels.get_mut(usize::from(n));
        let Some(barrel) = barrel.filter(|barrel| barrel.can_be_lit()) else {
            return;
        };
        barrel.stage = BarrelStage::Lit;
        barrel.by = by;
        let key = barrel.key(n);
        self.timers
            .at(frame.tick() + fuse_ticks, key, Timer::Fuse(n));
        fx.cue(key, Cue::Lit(n));
    }

    pub(super) fn light_by_sappers(&mut self, frame: &Frame<'_, Game>, fx: &mut Effects<Game>) {
        for n in 0..self.barrels.len() as u8 {
            let barrel = self.barrels[usize::from(n)];
            if barrel.can_be_lit() && self.sapper_at(barrel.at, frame) {
                self.light(n, frame.rules().tuning.fuse_ticks, None, frame, fx);
            }
        }
    }

    fn sapper_at(&self, at: Vec2, frame: &Frame<'_, Game>) -> bool {
        self.enemies.iter().any(|enemy| {
            let reach = EnemyKind::Sapper.radius() + BARREL_RADIUS;
            enemy.kind == EnemyKind::Sapper
                && at.distance_squared(enemy.at) <= reach * reach
                && enemy.is_awake(frame.tick(), frame.rules())
        })
    }

    /// Asks which bodies the blast hits, because a step does not compute physics (Law: One door).
    pub(super) fn burst(&mut self, n: u8, frame: &Frame<'_, Game>, fx: &mut Effects<Game>) {
        let Some(barrel) = self.barrels.get_mut(usize::from(n)) else {
            return;
        };
        barrel.stage = BarrelStage::Blasting;
        let at = barrel.at;
        self.ask_blast(Bomb::Barrel(n), at, frame, fx);
    }

    pub(super) fn ask_blast(
        &self,
        bomb: Bomb,
        at: Vec2,
        frame: &Frame<'_, Game>,
        fx: &mut Effects<Game>,
    ) {
        let key = match bomb {
            Bomb::Barrel(n) => self.barrels[usize::from(n)].question(n),
            // The high bit keeps this apart from the key of the shot itself.
            Bomb::Shell { owner, n } => Key::player(owner, 1 << 31 | n),
        };
        let asked = frame.tick();
        let at_64ths = Point::of(at);
        fx.ask(
            key,
            Query::Blast {
                bomb,
                at: at_64ths,
                asked,
            },
        );
        self.ask_toss(key, bomb, at, frame, fx);
    }

    pub(super) fn apply_outcomes(&mut self, frame: &Frame<'_, Game>, fx: &mut Effects<Game>) {
        for (key, query, outcome) in frame.outcomes() {
            match (*query, outcome) {
                (Query::Blast { bomb, asked, .. }, outcome) => {
                    let hits = outcome.and_then(|outcome| match outcome {
                        Outcome::Blast { hits } => Some(hits.as_slice()),
                        _ => None,
                    });
                    self.apply_blast(key, bomb, asked, hits, frame, fx);
                }
                (Query::Loot { n }, Some(Outcome::Loot(item))) => {
                    self.apply_loot(n, key, *item, frame);
                }
                (Query::Crit(strike), Some(Outcome::Crit(true))) => {
                    self.crit(key, strike, frame, fx);
                }
                _ => {}
            }
        }
        // Tosses come after all blasts of this frame, because a blast must hit a barrel before a toss lifts it.
        for (key, query, outcome) in frame.outcomes() {
            if let (Query::Toss { asked, .. }, Some(Outcome::Toss { throws })) = (query, outcome) {
                self.apply_toss(key, *asked, throws, frame, fx);
            }
        }
    }

    fn apply_blast(
        &mut self,
        key: Key,
        bomb: Bomb,
        asked: Tick,
        hits: Option<&[BlastHit]>,
        frame: &Frame<'_, Game>,
        fx: &mut Effects<Game>,
    ) {
        let (cause, by, cues) = match bomb {
            Bomb::Barrel(n) => {
                let Some(barrel) = self.barrels.get_mut(usize::from(n)) else {
                    return;
                };
                // The barrel may have been replaced since the query. The new one has another key, and has not exploded.
                if barrel.stage != BarrelStage::Blasting || barrel.question(n) != key {
                    return;
                }
                barrel.stage = BarrelStage::Gone;
                let (cause, by) = (barrel.key(n), barrel.by);
                let next = frame.tick() + frame.rules().tuning.barrel_return_ticks;
                self.timers.at(next, cause, Timer::Barrel(n));
                (cause, by, [Cue::Blast(n), Cue::Fizzle(n)])
            }
            // A shell bursts even without an answer, but then does no damage.
            Bomb::Shell { owner, n } => (key, Some(owner), [Cue::Burst { owner, n }; 2]),
        };
        let [blast, fizzle] = cues;
        match hits {
            Some(hits) => {
                fx.cue(cause, blast);
                for hit in hits {
                    self.blast(hit, bomb, asked, by, frame, fx);
                }
            }
            None => fx.cue(cause, fizzle),
        }
    }

    /// Applies one hit of a blast, unless an enemy has appeared, or a barrel or crate has moved, since the query.
    fn blast(
        &mut self,
        hit: &BlastHit,
        bomb: Bomb,
        asked: Tick,
        by: Option<PlayerId>,
        frame: &Frame<'_, Game>,
        fx: &mut Effects<Game>,
    ) {
        let tuning = &frame.rules().tuning;
        let damage = hit.damage(bomb, tuning);
        match hit.body {
            Victim::Player(id) => self.hurt_player(id, damage, frame, fx),
            Victim::Enemy(slot) => {
                let enemy = self.enemies.get(usize::from(slot));
                // Slots are reused, so an enemy born after the query may have the slot that the answer names.
                if enemy.is_some_and(|enemy| enemy.born <= asked) {
                    self.hurt_enemy(slot, damage, by, frame, fx);
                }
            }
            Victim::Barrel(n) => {
                let barrel = self.barrels.get(usize::from(n));
                if barrel.is_some_and(|barrel| barrel.rests.is_some_and(|since| since <= asked)) {
                    self.light(n, tuning.chain_fuse_ticks, by, frame, fx);
                }
            }
            Victim::Crate(n) => {
                let chest = self.crates.get(usize::from(n)).copied();
                let lay = |chest: &Crate| chest.rests.is_some_and(|since| since <= asked);
                if let Some(chest) = chest.filter(lay) {
                    self.hurt_crate(n, damage, chest.key(n).child(asked.0), frame, fx);
                }
            }
        }
    }

    pub(super) fn return_barrel(&mut self, n: u8, frame: &Frame<'_, Game>) {
        let home = frame.rules().barrels.get(usize::from(n));
        if let Some((barrel, home)) = self.barrels.get_mut(usize::from(n)).zip(home) {
            // A new life gives the barrel new keys, so that no late answer for the old life matches it.
            *barrel = Barrel::new(barrel.life.wrapping_add(1), frame.tick(), *home);
        }
    }

    pub(super) fn reset_barrels(&mut self, frame: &Frame<'_, Game>) {
        for n in 0..self.barrels.len() as u8 {
            self.timers.cancel(self.barrels[usize::from(n)].key(n));
            self.return_barrel(n, frame);
        }
    }
}

#[cfg(test)]
mod tests {
    use arrayvec::ArrayVec;

    use super::super::testing::*;
    use super::*;
    use crate::Command;

    const N: u8 = 6;

    fn burst() -> SoloGame {
        let mut game = with_player(quiet());
        player_mut(&mut game).at = rules().barrels[usize::from(N)];
        game.command(ONE, Command::Light { barrel: N }).step();
        assert_eq!(game.effects().cues().len(), 1);
        game.run(rules().tuning.fuse_ticks);
        game
    }

    fn outcome(hits: &[(Victim, u8)]) -> Outcome {
        let hits: ArrayVec<BlastHit, _> = hits
            .iter()
            .map(|&(body, distance_8ths)| BlastHit {
                distance_8ths,
                body,
            })
            .collect();
        Outcome::Blast { hits }
    }

    #[test]
    fn a_lit_barrel_asks_exactly_once_under_its_own_key() {
        let mut game = with_player(quiet());
        player_mut(&mut game).at = rules().barrels[usize::from(N)];
        let mut asks = Vec::new();
        for tick in 0..500 {
            // A burning barrel ignores further orders.
            if tick < 300 {
                game.command(ONE, Command::Light { barrel: N });
            }
            asks.extend(game.step().asks().iter().map(|(key, _)| *key));
        }
        assert_eq!(asks, [game.sim().barrels[usize::from(N)].question(N)]);
    }

    #[test]
    fn an_answer_is_applied_in_the_frame_that_contains_it() {
        let mut game = burst();
        let key = game.world().open_queries()[0].key;
        put_enemy(&mut game, 1, rules().barrels[0]);
        game.run(50);
        assert_eq!(
            game.sim().barrels[usize::from(N)].stage,
            BarrelStage::Blasting
        );
        assert_eq!(game.sim().enemies[1].health, EnemyKind::Urchin.health());
        game.answer(key, outcome(&[(Victim::Enemy(1), 0)])).step();
        let barrel = game.sim().barrels[usize::from(N)].key(N);
        assert!(game.effects().cues().contains(&(barrel, Cue::Blast(N))));
        assert!(!game.sim().enemies[1].is_alive());
        assert_eq!(
            player(&game).kills,
            1,
            "the player who lit it gets the credit"
        );
        assert_eq!(game.sim().barrels[usize::from(N)].stage, BarrelStage::Gone);
    }

    #[test]
    fn damage_falls_with_distance_to_half() {
        let tuning = rules().tuning;
        let damage = |distance_8ths| {
            BlastHit {
                distance_8ths,
                body: Victim::Barrel(0),
            }
            .damage(Bomb::Barrel(0), &tuning)
        };
        let edge = (tuning.blast_radius * 8.0) as u8;
        assert_eq!(
            [damage(0), damage(edge)],
            [tuning.blast_damage, tuning.blast_damage / 2]
        );
        assert!((0..edge).all(|d| damage(d) >= damage(d + 1)));
    }

    #[test]
    fn a_blast_lights_other_barrels_and_credits_the_same_player() {
        let mut game = burst();
        let key = game.world().open_queries()[0].key;
        game.answer(
            key,
            outcome(&[(Victim::Barrel(2), 9), (Victim::Barrel(3), 9)]),
        )
        .step();
        assert_eq!(game.sim().barrels[2].by, Some(ONE));
        game.run(rules().tuning.chain_fuse_ticks);
        let open: Vec<Key> = game
            .world()
            .open_queries()
            .iter()
            .map(|open| open.key)
            .collect();
        assert_eq!(
            open,
            [2, 3].map(|n: u8| game.sim().barrels[usize::from(n)].question(n))
        );
    }

    #[test]
    fn an_unanswered_query_fizzles_and_the_barrel_returns() {
        let mut game = burst();
        let key = game.world().open_queries()[0].key;
        game.refuse(key).step();
        let barrel = game.sim().barrels[usize::from(N)].key(N);
        assert_eq!(game.effects().cues(), [(barrel, Cue::Fizzle(N))]);
        game.run(rules().tuning.barrel_return_ticks);
        let barrel = game.sim().barrels[usize::from(N)];
        assert_eq!((barrel.stage, barrel.life), (BarrelStage::Whole, 1));
    }

    #[test]
    fn an_enemy_born_after_the_query_is_not_hurt() {
        let mut game = burst();
        let key = game.world().open_queries()[0].key;
        put_enemy(&mut game, 1, rules().barrels[0]);
        game.sim_mut().enemies[1].born = game.world().tick() + 1;
        game.answer(key, outcome(&[(Victim::Enemy(1), 0)])).step();
        assert!(game.sim().enemies[1].is_alive());
    }

    #[test]
    fn a_blast_kills_players_but_not_shielded_ones() {
        for (safe_until, survives) in [(Tick(0), false), (Tick::MAX, true)] {
            let mut game = burst();
            let key = game.world().open_queries()[0].key;
            player_mut(&mut game).safe_until = safe_until;
            player_mut(&mut game).health = 50;
            game.answer(key, outcome(&[(Victim::Player(ONE), 0)]))
                .step();
            assert_eq!(player(&game).is_alive(), survives);
        }
    }

    #[test]
    fn sappers_light_barrels_while_players_stand_still() {
        let mut game = with_player(arena(8));
        let mut asks = 0;
        for _ in 0..1_200 {
            asks += game.step().asks().len();
        }
        assert!(asks >= 3, "{asks}");
    }
}
