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
//! health that it had, and to the death that it died; what who leaves finds when it joins again is in `former`. And no
//! name is used twice: who joins again counts on where it left off.
//!
//! Whether a bullet or an enemy touches a player is tested nowhere in this file; see `claim`.

use glam::Vec2;
use serde::{Deserialize, Serialize};
use twinstep_core::frame::RosterChange;
use twinstep_core::{Effects, Frame, Key, PlayerId, Tick};

use super::crates::{self, Crate};
use super::{Command, Cue, Game, Heading, Pad, Rules, Shot, Tuning, Weapon};

mod former;

pub(super) use former::Former;

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

impl Player {
    /// One that has never appeared.
    fn unborn() -> Player {
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
            life: 0,
            shots: 0,
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
        self.health = self
            .health
            .saturating_add(tuning.heal)
            .min(tuning.player_health);
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
                RosterChange::Left => self.leave(id, frame),
            }
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
        let Some(player) = self.players.get_mut(&id) else {
            return;
        };
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
mod tests;
