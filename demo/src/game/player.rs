//! Players: walking, dashing, firing, dying by claim, coming back.
//!
//! ```text
//!          Joined                            Died (claim), blast (outcome)      a life is left
//!   (none) ────────────────▶ safe ──acts──▶ alive ───────────────────────▶ dead ──────────────▶ safe
//!      │                      ▲                                              │ no life is left
//!      │ no life is left      └──────────── the wave is over ────────────── out
//!      └──────────────────────────────────────────────────────────────────▶ out
//! ```
//!
//! Nobody cheats death by going: who is cut off (`Dropped`) is out of play and comes back (`Returned`) with the
//! health that it had, and to the death that it died; who leaves and joins again while the team has no life left
//! is out as whoever joins then. And no name is used twice: who joins again counts on where it left off.
//!
//! Whether a bullet or an enemy touches a player is tested nowhere in this file; see `claim`.

use glam::Vec2;
use serde::{Deserialize, Serialize};
use twinstep_core::frame::RosterChange;
use twinstep_core::{Effects, Frame, Key, PlayerId, Tick};

use super::crates::{self, Crate};
use super::{Command, Cue, Game, Heading, Pad, Phase, Rules, Shot, Tuning, Weapon};

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
    /// It is dead, and the team has no life left for it: it waits for the end of the wave.
    pub is_out: bool,
    /// It has said that it is ready.
    pub is_ready: bool,
    /// It has a shield, which takes one hit.
    pub has_shield: bool,
    /// What it fires.
    pub weapon: Weapon,
    /// How often it can; without meaning for a weapon that is never empty.
    pub ammo: u16,
    /// Points for enemies that it killed.
    pub score: u32,
    /// Enemies that it killed.
    pub kills: u32,
    /// How often it has appeared.
    pub life: u32,
    /// How many shots have left its weapons.
    pub shots: u32,
    /// Nothing hurts it before this tick; [`Tick::MAX`] until it acts.
    pub safe_until: Tick,
    /// Since when it is in play, in this life.
    born: Tick,
    /// Cut off: the health with which it comes back. 0 of one that was dead then, and is still.
    kept_health: i16,
    next_shot: Tick,
    dash_heading: Heading,
    dash_until: Tick,
    next_dash: Tick,
}

/// What is remembered of who has left: how far its names are used up.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
pub(super) struct Former {
    life: u32,
    shots: u32,
}

impl Player {
    /// One that has never appeared; its names begin where those of who was here before it end.
    fn unborn(former: Option<Former>) -> Player {
        let Former { life, shots } = former.unwrap_or(Former { life: 0, shots: 0 });
        Player {
            at: Vec2::ZERO,
            facing: Heading::EAST,
            health: 0,
            is_away: false,
            is_out: false,
            is_ready: false,
            has_shield: false,
            weapon: Weapon::default(),
            ammo: 0,
            score: 0,
            kills: 0,
            life,
            shots,
            safe_until: Tick::MAX,
            born: Tick(0),
            kept_health: 0,
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

    /// Until it can sprint again.
    #[must_use]
    pub fn dash_rest(&self, now: Tick) -> u32 {
        self.next_dash.0.saturating_sub(now.0)
    }

    /// Whether it stands there since long ago and has not done anything.
    pub(super) fn is_idle(&self, now: Tick, tuning: &Tuning) -> bool {
        let stands = self.is_alive() && self.safe_until == Tick::MAX;
        stands && now >= self.born + tuning.patience_ticks
    }

    /// Where its next life begins.
    fn spawn(&self, id: PlayerId, rules: &Rules) -> Vec2 {
        // A stride that shares no factor with the number of places visits all of them.
        let place = id.index() + 5 * (self.life as usize % rules.spawns.len());
        rules.spawns[place % rules.spawns.len()]
    }

    fn appear(&mut self, id: PlayerId, now: Tick, rules: &Rules) {
        let at = self.spawn(id, rules);
        *self = Player {
            at,
            facing: Heading::toward(-at).turned(0),
            health: rules.tuning.player_health,
            is_away: false,
            is_out: false,
            has_shield: false,
            weapon: Weapon::default(),
            ammo: 0,
            life: self.life.wrapping_add(1),
            safe_until: Tick::MAX,
            born: now,
            kept_health: 0,
            dash_until: now,
            ..*self
        };
    }

    /// The name of this life: its timer's, and that of cues which it causes.
    pub(super) fn life_key(&self, id: PlayerId) -> Key {
        Key::player(id, 0).child(self.life)
    }

    /// Takes up a weapon, with all its ammunition.
    pub(super) fn arm(&mut self, weapon: Weapon) {
        self.weapon = weapon;
        self.ammo = weapon.ammo().unwrap_or(0);
    }

    pub(super) fn heal(&mut self, tuning: &Tuning) {
        self.health = (self.health + tuning.heal).min(tuning.player_health);
    }

    fn walk(&mut self, pad: &Pad, now: Tick, rules: &Rules, crates: &[Crate]) {
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
        let at = crates::push_out(crates, self.at + step, PLAYER_RADIUS);
        self.at = rules.place(at, PLAYER_RADIUS);
    }

    /// Fires what it has; returns the name of the first shot.
    fn fire(&mut self, id: PlayerId, now: Tick, rules: &Rules, shots: &mut Vec<Shot>) -> Key {
        let weapon = self.weapon;
        self.next_shot = now + weapon.every_ticks();
        let first = self.shots.wrapping_add(1);
        let (count, apart) = weapon.fan();
        for n in 0..count {
            self.shots = self.shots.wrapping_add(1);
            // Twice the angle, so that a fan of an even number has a middle.
            let turned = self.facing.turned((2 * n - (count - 1)) * apart / 2);
            let toward = turned.unit();
            shots.push(Shot::fired(
                id, self.shots, weapon, self.at, toward, now, rules,
            ));
        }
        if weapon.ammo().is_some() {
            self.ammo = self.ammo.saturating_sub(1);
            if self.ammo == 0 {
                self.weapon = Weapon::default();
            }
        }
        Key::player(id, first)
    }
}

impl Game {
    /// Who comes, who goes.
    pub(super) fn follow_roster(&mut self, frame: &Frame<'_, Game>, fx: &mut Effects<Game>) {
        for (id, change) in frame.roster() {
            match change {
                RosterChange::Joined => self.join(id, frame, fx),
                RosterChange::Returned => self.come_back(id, frame, fx),
                RosterChange::Dropped => {
                    if let Some(player) = self.players.get_mut(&id) {
                        // Whoever is dead stays so, and its time of death runs on.
                        if player.is_alive() {
                            player.kept_health = player.health;
                            player.health = 0;
                        }
                        player.is_away = true;
                    }
                }
                RosterChange::Left => {
                    if let Some(player) = self.players.remove(&id) {
                        self.timers.cancel(player.life_key(id));
                        let Player { life, shots, .. } = player;
                        self.former.insert(id, Former { life, shots });
                    }
                }
            }
        }
    }

    /// A player joins; where a round is on and no life is left, it waits for the end of the wave.
    fn join(&mut self, id: PlayerId, frame: &Frame<'_, Game>, fx: &mut Effects<Game>) {
        let costs_a_life = self.phase.is_dangerous() && self.phase != Phase::Endless;
        if costs_a_life && self.lives == 0 {
            let mut player = Player::unborn(self.former.remove(&id));
            player.at = player.spawn(id, frame.rules());
            player.is_out = true;
            self.players.insert(id, player);
        } else {
            self.appear(id, frame, fx);
        }
    }

    /// A player that was cut off plays on with the health that it had; a dead one stays dead as long as it would
    /// have, and one that is out waits for the end of the wave.
    fn come_back(&mut self, id: PlayerId, frame: &Frame<'_, Game>, fx: &mut Effects<Game>) {
        let Some(player) = self.players.get_mut(&id) else {
            return self.join(id, frame, fx);
        };
        player.is_away = false;
        let health = player.kept_health;
        if health > 0 {
            self.appear(id, frame, fx);
            if let Some(player) = self.players.get_mut(&id) {
                player.health = health;
            }
        }
    }

    /// A player's next life; one that is cut off has it when it comes back.
    pub(super) fn appear(&mut self, id: PlayerId, frame: &Frame<'_, Game>, fx: &mut Effects<Game>) {
        let former = &mut self.former;
        let player = self
            .players
            .get_or_insert_with(id, || Player::unborn(former.remove(&id)));
        self.timers.cancel(player.life_key(id));
        if player.is_away {
            player.is_out = false;
            player.kept_health = frame.rules().tuning.player_health;
            return;
        }
        player.appear(id, frame.tick(), frame.rules());
        fx.cue(player.life_key(id), Cue::Appeared(id));
    }

    /// What players ordered. Whoever died meanwhile gets nothing done, and dies only once.
    pub(super) fn obey(&mut self, frame: &Frame<'_, Game>, fx: &mut Effects<Game>) {
        for (id, command) in frame.commands() {
            if *command == Command::Ready {
                self.ready(id, frame, fx);
                continue;
            }
            let Some(player) = self.players.get(&id).filter(|player| player.is_alive()) else {
                continue;
            };
            match *command {
                Command::Light { barrel: n } => {
                    let reach = frame.rules().tuning.light_reach;
                    let barrel = self.barrels.get(usize::from(n));
                    if barrel.is_some_and(|barrel| barrel.at.distance(player.at) <= reach) {
                        self.light(n, frame.rules().tuning.fuse_ticks, Some(id), frame, fx);
                    }
                }
                Command::Dash => self.dash(id, frame, fx),
                Command::Hurt { by } => self.sting(id, by, frame, fx),
                Command::Died { by } => self.die(id, by, frame, fx),
                Command::Ready => {}
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
            player.walk(pad, now, rules, &self.crates);
            if pad.fires() && now >= player.next_shot {
                let weapon = player.weapon;
                let key = player.fire(id, now, rules, &mut self.shots);
                // What somebody else fires is seen once it is known here, and heard with that.
                if frame.is_local(id) || frame.learned(id, now) != Tick::MAX {
                    fx.cue(key, Cue::Shot { player: id, weapon });
                }
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use twinstep_core::frame::{Learned, PlayerSet};

    use super::super::testing::*;
    use super::*;

    fn east() -> Pad {
        Pad {
            walk: Heading::EAST,
            ..Pad::default()
        }
    }

    /// Row 67: the shot of somebody else sounds when this screen knows of it, and not for a guess.
    #[test]
    fn what_others_fire_is_heard_once_it_is_known() {
        let fire = Pad {
            buttons: Pad::FIRE,
            ..Pad::default()
        };
        for (is_known, locals) in [(false, TWO), (true, TWO), (false, ONE)] {
            let mut game = with_player(quiet());
            let now = game.world().tick();
            let mut learned = Learned::new();
            if is_known {
                learned.note(ONE, now, now);
            }
            game.predict(PlayerSet::from_iter([locals]), now, learned);
            game.hold(ONE, fire).step();
            assert_eq!(game.sim().shots.len(), 1);
            let cues = game.effects().cues();
            let heard = cues.iter().any(|(_, cue)| matches!(cue, Cue::Shot { .. }));
            assert_eq!(heard, is_known || locals == ONE);
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
    fn crates_are_in_the_way_until_they_break() {
        let rules = Rules {
            crates: vec![Vec2::new(2.0, 0.0)],
            ..rules()
        };
        let mut game = with_player(solo(rules));
        player_mut(&mut game).at = Vec2::ZERO;
        game.hold(ONE, east()).run(20);
        assert!((player(&game).at.x - (2.0 - 0.75 - PLAYER_RADIUS)).abs() < 1e-3);
        game.sim_mut().crates[0].health = 0;
        game.run(20);
        assert!(player(&game).at.x > 3.0);
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
    fn who_joins_again_takes_up_no_name_of_before() {
        let fire = Pad {
            buttons: Pad::FIRE,
            ..Pad::default()
        };
        let mut game = with_player(quiet());
        let mut before = std::collections::BTreeSet::new();
        for _ in 0..3 {
            let mut names = std::collections::BTreeSet::from([player(&game).life_key(ONE)]);
            game.hold(ONE, fire);
            for _ in 0..20 {
                game.step();
                names.extend(game.sim().shots.iter().map(|shot| shot.key));
            }
            assert!(names.len() > 3, "{names:?}");
            assert!(before.is_disjoint(&names));
            before.append(&mut names);
            game.leave(ONE).run(600);
            game.join(ONE).step();
        }
        game.leave(ONE).step();
        assert_eq!(game.sim().former.len(), 1);
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
