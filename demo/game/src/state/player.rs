//! [`Player`]: a player's body and record. Its behaviour is in `player`, `harm` and `claim`.

use glam::Vec2;
use serde::{Deserialize, Serialize};
use twinstep_core::{Key, PlayerId, Tick};

use super::crates::{self, Crate};
use super::shot::Shot;
use crate::pad::Pad;
use crate::rules::{Rules, Tuning};
use crate::units::Heading;
use crate::weapon::Weapon;

/// A player's radius, in units.
pub const PLAYER_RADIUS: f32 = 0.5;

#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
pub struct Player {
    pub at: Vec2,
    /// The direction it faces; never [`Heading::NONE`].
    pub facing: Heading,
    /// The health, 0 if dead.
    pub health: i16,
    pub is_away: bool,
    /// Whether the player is dead and waits for the end of the wave, because the team has no lives left.
    pub is_out: bool,
    pub is_ready: bool,
    pub has_shield: bool,
    pub weapon: Weapon,
    pub ammo: u16,
    pub score: u32,
    pub kills: u32,
    pub life: u32,
    pub shots: u32,
    /// The tick before which the player cannot be hurt; [`Tick::MAX`] until the player acts.
    pub safe_until: Tick,
    pub(crate) born: Tick,
    /// The health with which a disconnected player returns; 0 if it was dead.
    pub(crate) kept_health: i16,
    pub(crate) next_shot: Tick,
    pub(crate) dash_heading: Heading,
    pub(crate) dash_until: Tick,
    pub(crate) next_dash: Tick,
}

impl Player {
    pub(crate) fn unborn() -> Player {
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

    #[must_use]
    pub fn is_alive(&self) -> bool {
        self.health > 0
    }

    #[must_use]
    pub fn is_vulnerable(&self, now: Tick) -> bool {
        self.is_alive() && now >= self.safe_until
    }

    #[must_use]
    pub fn is_dashing(&self, now: Tick) -> bool {
        now < self.dash_until
    }

    #[must_use]
    pub fn dash_rest(&self, now: Tick) -> u32 {
        self.next_dash.0.saturating_sub(now.0)
    }

    /// Returns `true` if the player has stood where it spawned for a long time without acting.
    pub(crate) fn is_idle(&self, now: Tick, tuning: &Tuning) -> bool {
        let stands = self.is_alive() && self.safe_until == Tick::MAX;
        stands && now >= self.born + tuning.patience_ticks
    }

    pub(crate) fn spawn(&self, id: PlayerId, rules: &Rules) -> Vec2 {
        // A stride that shares no factor with the number of places visits all of them.
        let place = id.index() + 5 * (self.life as usize % rules.spawns.len());
        rules.spawns[place % rules.spawns.len()]
    }

    pub(crate) fn appear(&mut self, id: PlayerId, now: Tick, rules: &Rules) {
        let at = self.spawn(id, rules);
        *self = Player {
            at,
            // At the origin there is no direction; `turned` makes it east.
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

    /// The key of this life's cues. Its owner is the player, so a cue is shown at the time at which this player is
    /// drawn.
    pub(crate) fn cue_key(&self, id: PlayerId) -> Key {
        Key::player(id, self.life)
    }

    /// The key of this life, for its timer.
    pub(crate) fn life_key(&self, id: PlayerId) -> Key {
        Key::player(id, 0).child(self.life)
    }

    pub(crate) fn arm(&mut self, weapon: Weapon) {
        self.weapon = weapon;
        self.ammo = weapon.ammo().unwrap_or(0);
    }

    pub(crate) fn heal(&mut self, tuning: &Tuning) {
        self.health = self
            .health
            .saturating_add(tuning.heal)
            .min(tuning.player_health);
    }

    pub(crate) fn walk(&mut self, pad: &Pad, now: Tick, rules: &Rules, crates: &[Crate]) {
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
        self.step_by(step, rules, crates);
    }

    pub(crate) fn step_by(&mut self, step: Vec2, rules: &Rules, crates: &[Crate]) {
        // Walls last, because a crate must not push a player into a wall.
        let at = crates::push_out(crates, self.at + step, PLAYER_RADIUS);
        self.at = rules.place(at, PLAYER_RADIUS);
    }

    /// Fires the weapon. Returns the key of the first shot.
    pub(crate) fn fire(
        &mut self,
        id: PlayerId,
        now: Tick,
        rules: &Rules,
        shots: &mut Vec<Shot>,
    ) -> Key {
        let weapon = self.weapon;
        self.next_shot = now + weapon.every_ticks();
        let first = self.shots.wrapping_add(1);
        let (count, apart) = weapon.fan();
        for n in 0..count {
            self.shots = self.shots.wrapping_add(1);
            // In half angles, so that a fan with an even number of shots is centred.
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

#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
pub(crate) struct Former {
    pub(crate) life: u32,
    pub(crate) shots: u32,
    pub(crate) next_dash: Tick,
    pub(crate) round: u32,
    pub(crate) left: Tick,
    pub(crate) fate: Fate,
}

#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
pub(crate) enum Fate {
    Well,
    /// The player left in a fight, with this health.
    Hurt(i16),
    /// The player was dead, and due to respawn at this tick.
    Dead(Tick),
    /// The player left when a hit would have killed it. The next player in this seat costs the team a life, and appears
    /// at this tick.
    Fell(Tick),
    /// The player was out in this wave, because the team had no lives left.
    Out(u8),
}
