//! Players: walking, dashing, firing, dying by claim, coming back.
//!
//! ```text
//!          Joined, Returned                       Died (claim), blast (outcome)
//!   (none) ────────────────▶ shielded ──acts──▶ alive ───────────────▶ dead ──timer──▶ shielded
//!                               ▲                                                          │
//!                               └──────────────────────────────────────────────────────────┘
//! ```
//!
//! Whether a bullet or an enemy touches a player is tested nowhere in this file; see `claim`.

use glam::Vec2;
use serde::{Deserialize, Serialize};
use twinstep_core::frame::RosterChange;
use twinstep_core::{Effects, Frame, Key, PlayerId, Tick};

use super::bullet::Shot;
use super::{Command, Cue, Game, Heading, Pad, Rules, Timer};

/// A player's radius, in units.
pub const PLAYER_RADIUS: f32 = 0.5;

/// One player: its body and its record.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
pub struct Player {
    /// Where it stands.
    pub at: Vec2,
    /// Where it looks; never none.
    pub facing: Heading,
    /// 0: dead.
    pub health: i16,
    /// Its controls are cut off: out of play until it returns.
    pub is_away: bool,
    /// Points for enemies that it killed.
    pub score: u32,
    /// Enemies that it killed.
    pub kills: u32,
    /// How often it has appeared.
    pub lives: u32,
    /// How often it has fired.
    pub shots: u32,
    /// Nothing hurts it before this tick; [`Tick::MAX`] until it acts.
    pub safe_until: Tick,
    next_shot: Tick,
    dash_heading: Heading,
    dash_until: Tick,
    next_dash: Tick,
}

impl Player {
    fn unborn() -> Player {
        Player {
            at: Vec2::ZERO,
            facing: Heading::EAST,
            health: 0,
            is_away: false,
            score: 0,
            kills: 0,
            lives: 0,
            shots: 0,
            safe_until: Tick::MAX,
            next_shot: Tick(0),
            dash_heading: Heading::NONE,
            dash_until: Tick(0),
            next_dash: Tick(0),
        }
    }

    /// Whether it is in play.
    #[must_use]
    pub fn is_alive(&self) -> bool {
        self.health > 0
    }

    /// Whether something could hurt it at this tick.
    #[must_use]
    pub fn is_vulnerable(&self, now: Tick) -> bool {
        self.is_alive() && now >= self.safe_until
    }

    /// Whether it is sprinting.
    #[must_use]
    pub fn is_dashing(&self, now: Tick) -> bool {
        now < self.dash_until
    }

    fn appear(&mut self, id: PlayerId, now: Tick, rules: &Rules) {
        // A stride that shares no factor with the number of places visits all of them.
        let place = id.index() + 5 * (self.lives as usize % rules.spawns.len());
        let at = rules.spawns[place % rules.spawns.len()];
        *self = Player {
            at,
            facing: Heading::toward(-at).turned(0),
            health: rules.tuning.player_health,
            is_away: false,
            lives: self.lives.wrapping_add(1),
            safe_until: Tick::MAX,
            dash_until: now,
            ..*self
        };
    }

    /// The name of this life: its timer's, and that of cues which it causes.
    pub(super) fn life_key(&self, id: PlayerId) -> Key {
        Key::player(id, 0).child(self.lives)
    }

    fn walk(&mut self, pad: &Pad, now: Tick, rules: &Rules) {
        let tuning = &rules.tuning;
        if !pad.is_neutral() {
            self.safe_until = self.safe_until.min(now + tuning.shield_ticks);
        }
        if pad.aim != Heading::NONE {
            self.facing = pad.aim;
        }
        let step = if self.is_dashing(now) {
            self.dash_heading.unit() * tuning.dash_speed
        } else {
            pad.walk.unit() * tuning.walk_speed
        };
        self.at = rules.place(self.at + step, PLAYER_RADIUS);
    }

    fn fire(&mut self, id: PlayerId, now: Tick, rules: &Rules) -> Shot {
        self.shots = self.shots.wrapping_add(1);
        self.next_shot = now + rules.tuning.fire_every_ticks;
        Shot::fired(id, self.shots, self.at, self.facing.unit(), now, rules)
    }
}

impl Game {
    /// Who comes, who goes.
    pub(super) fn follow_roster(&mut self, frame: &Frame<'_, Game>, fx: &mut Effects<Game>) {
        for (id, change) in frame.roster() {
            match change {
                RosterChange::Joined | RosterChange::Returned => self.appear(id, frame, fx),
                RosterChange::Dropped => {
                    if let Some(player) = self.players.get_mut(&id) {
                        player.health = 0;
                        player.is_away = true;
                        self.timers.cancel(player.life_key(id));
                    }
                }
                RosterChange::Left => {
                    if let Some(player) = self.players.remove(&id) {
                        self.timers.cancel(player.life_key(id));
                    }
                }
            }
        }
    }

    /// A player's time of death is over.
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

    fn appear(&mut self, id: PlayerId, frame: &Frame<'_, Game>, fx: &mut Effects<Game>) {
        let player = self.players.get_or_insert_with(id, Player::unborn);
        player.appear(id, frame.tick(), frame.rules());
        fx.cue(player.life_key(id), Cue::Appeared(id));
    }

    /// What players ordered. Whoever died meanwhile gets nothing done, and dies only once.
    pub(super) fn obey(&mut self, frame: &Frame<'_, Game>, fx: &mut Effects<Game>) {
        for (id, command) in frame.commands() {
            let Some(player) = self.players.get_mut(&id).filter(|player| player.is_alive()) else {
                continue;
            };
            match *command {
                Command::Light { barrel } => {
                    let at = frame.rules().barrels.get(usize::from(barrel));
                    if at.is_some_and(|at| {
                        at.distance(player.at) <= frame.rules().tuning.light_reach
                    }) {
                        self.light(barrel, frame.rules().tuning.fuse_ticks, Some(id), frame, fx);
                    }
                }
                Command::Dash => self.dash(id, frame, fx),
                Command::Died { by } => {
                    self.bullets.retain(|bullet| bullet.key != by);
                    self.kill_player(id, frame, fx);
                }
            }
        }
    }

    fn dash(&mut self, id: PlayerId, frame: &Frame<'_, Game>, fx: &mut Effects<Game>) {
        let (now, tuning) = (frame.tick(), &frame.rules().tuning);
        let Some(player) = self
            .players
            .get_mut(&id)
            .filter(|player| now >= player.next_dash)
        else {
            return;
        };
        let walk = frame.input(id).map_or(Heading::NONE, |pad| pad.walk);
        player.dash_heading = if walk == Heading::NONE {
            player.facing
        } else {
            walk
        };
        player.dash_until = now + tuning.dash_ticks;
        player.next_dash = now + tuning.dash_rest_ticks;
        player.safe_until = player.safe_until.min(now + tuning.shield_ticks);
        fx.cue(player.life_key(id).child(now.0), Cue::Dashed(id));
    }

    /// Walks and fires by what is held.
    pub(super) fn move_players(&mut self, frame: &Frame<'_, Game>, fx: &mut Effects<Game>) {
        let (now, rules) = (frame.tick(), frame.rules());
        for (&id, player) in &mut self.players {
            let Some(pad) = frame.input(id).filter(|_| player.is_alive()) else {
                continue;
            };
            player.walk(pad, now, rules);
            if pad.fires() && now >= player.next_shot {
                let shot = player.fire(id, now, rules);
                fx.cue(shot.key, Cue::Shot(id));
                self.shots.push(shot);
            }
        }
    }

    /// Takes health; the last of it is death.
    pub(super) fn hurt_player(
        &mut self,
        id: PlayerId,
        damage: i16,
        frame: &Frame<'_, Game>,
        fx: &mut Effects<Game>,
    ) {
        let Some(player) = self
            .players
            .get_mut(&id)
            .filter(|p| p.is_vulnerable(frame.tick()))
        else {
            return;
        };
        if player.health > damage {
            player.health -= damage;
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
        self.timers.at(
            frame.tick() + frame.rules().tuning.player_return_ticks,
            key,
            Timer::Player(id),
        );
        fx.cue(key, Cue::PlayerDied(id));
    }
}

#[cfg(test)]
mod tests {
    use super::super::testing::*;
    use super::*;

    fn east() -> Pad {
        Pad {
            walk: Heading::EAST,
            ..Pad::default()
        }
    }

    #[test]
    fn a_walk_goes_where_the_stick_points_and_ends_at_walls() {
        let mut game = with_player(quiet());
        let from = player(&game).at;
        game.hold(ONE, east()).run(10);
        let speed = rules().tuning.walk_speed;
        assert!((player(&game).at.x - from.x - 10.0 * speed).abs() < 1e-4);
        // The wall at (−9.5, 0.5) reaches from −10.5 on.
        player_mut(&mut game).at = Vec2::new(-14.0, 0.5);
        game.run(60);
        assert!(
            (player(&game).at - Vec2::new(-11.0, 0.5)).length() < 1e-3,
            "{}",
            player(&game).at
        );
    }

    #[test]
    fn nobody_leaves_the_arena_or_stands_in_a_wall_wherever_it_walks_or_dashes() {
        let mut game = with_player(quiet());
        let mut luck = twinstep_core::Mwc::seed(3);
        for _ in 0..4_000 {
            if luck.below(20) == 0 {
                game.hold(
                    ONE,
                    Pad {
                        walk: Heading(luck.below(256) as u8),
                        ..Pad::default()
                    },
                );
                game.command(ONE, Command::Dash);
            }
            game.step();
            let at = player(&game).at;
            let inside = rules().half - PLAYER_RADIUS;
            assert!(at.abs().cmple(inside).all(), "{at}");
            for wall in &rules().walls {
                let gap = ((at - wall.center).abs() - wall.half)
                    .max(Vec2::ZERO)
                    .length();
                assert!(gap > PLAYER_RADIUS - 1e-3, "{at} is {gap} from {wall:?}");
            }
        }
    }

    #[test]
    fn fire_is_as_fast_as_the_weapon_and_shots_are_named_by_player_and_number() {
        let mut game = with_player(quiet());
        game.hold(
            ONE,
            Pad {
                buttons: Pad::FIRE,
                ..Pad::default()
            },
        )
        .run(15);
        let keys: Vec<Key> = game.sim().shots.iter().map(|shot| shot.key).collect();
        assert_eq!(keys, [1, 2, 3].map(|n| Key::player(ONE, n)));
    }

    #[test]
    fn a_dash_is_faster_than_walking_and_needs_rest() {
        let mut game = with_player(quiet());
        game.hold(ONE, east()).command(ONE, Command::Dash).step();
        assert_eq!(game.effects().cues().len(), 1);
        let from = player(&game).at.x;
        game.step();
        assert!((player(&game).at.x - from - rules().tuning.dash_speed).abs() < 1e-4);
        game.command(ONE, Command::Dash).step();
        assert!(
            game.effects().cues().is_empty(),
            "too early: nothing happens"
        );
        game.run(rules().tuning.dash_ticks);
        assert!(!player(&game).is_dashing(game.world().tick()));
    }

    #[test]
    fn a_second_death_while_dead_is_ignored_and_the_return_comes_in_time() {
        let mut game = with_player(quiet());
        let died = Command::Died { by: Key::default() };
        game.claim(ONE, died).step();
        game.claim(ONE, died).step();
        assert!(game.effects().cues().is_empty());
        game.run(rules().tuning.player_return_ticks - 2);
        assert!(!player(&game).is_alive());
        game.step();
        assert!(player(&game).is_alive());
        assert_eq!(player(&game).lives, 2);
    }

    #[test]
    fn a_new_player_is_safe_until_it_acts_and_a_little_longer() {
        let mut game = with_player(quiet());
        game.run(1_000);
        assert!(!player(&game).is_vulnerable(game.world().tick()));
        game.hold(ONE, east()).step();
        assert!(!player(&game).is_vulnerable(game.world().tick()));
        game.run(rules().tuning.shield_ticks);
        assert!(player(&game).is_vulnerable(game.world().tick()));
    }

    #[test]
    fn sixteen_players_come_and_go() {
        let mut game = quiet();
        for n in 0..16 {
            game.join(PlayerId(n));
        }
        game.step();
        assert_eq!(game.sim().players.len(), 16);
        let places: std::collections::BTreeSet<_> = game
            .sim()
            .players
            .values()
            .map(|p| super::super::Point::of(p.at))
            .collect();
        assert_eq!(places.len(), 16, "nobody appears on top of another one");
        game.claim(PlayerId(7), Command::Died { by: Key::default() })
            .step();
        for n in 0..16 {
            game.leave(PlayerId(n));
        }
        game.run(500);
        assert!(game.sim().players.is_empty() && game.sim().timers.is_empty());
    }
}
