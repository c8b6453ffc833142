//! Crates: solid, they hide from blasts, and something is in them.
//!
//! What it is nobody can know before the crate breaks: the server rolls it then (`Query::Loot`), and no client
//! guesses.

use glam::Vec2;
use serde::{Deserialize, Serialize};
use twinstep_core::{Effects, Frame, Key, Tick};

use super::{Cue, Game, Item, Query, Timer, Wall};

/// Half of a crate's width and height, in units.
pub const CRATE_HALF: f32 = 0.75;

/// A place for crates, and the one that stands there.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
pub struct Crate {
    /// How many stood here before.
    pub life: u32,
    /// Since when.
    pub born: Tick,
    /// Its middle.
    pub at: Vec2,
    /// Since when it lies there; `None`: a blast has thrown it, and it is in the air.
    pub rests: Option<Tick>,
    /// 0: broken.
    pub health: i16,
}

impl Crate {
    /// Its name: by place and life.
    #[must_use]
    pub fn key(&self, n: u8) -> Key {
        Key::new(super::cause::CRATE | u64::from(n), self.life)
    }

    /// Whether there is a crate, on the ground or in the air.
    #[must_use]
    pub fn is_there(&self) -> bool {
        self.health > 0
    }

    /// Whether one stands on the ground: it is solid, and hides what is behind it from blasts.
    #[must_use]
    pub fn stands(&self) -> bool {
        self.is_there() && self.rests.is_some()
    }

    /// The box that it is.
    #[must_use]
    pub fn solid(&self) -> Wall {
        Wall {
            center: self.at,
            half: Vec2::splat(CRATE_HALF),
        }
    }

    /// Whether a point is inside of it.
    #[must_use]
    pub fn holds(&self, at: Vec2) -> bool {
        (at - self.at).abs().max_element() <= CRATE_HALF && self.stands()
    }
}

impl Game {
    pub(super) fn place_crates(&mut self, rules: &super::Rules) {
        self.crates.extend(rules.crates.iter().map(|at| Crate {
            life: 0,
            born: Tick(0),
            at: *at,
            rests: Some(Tick(0)),
            health: rules.tuning.crate_health,
        }));
    }

    /// Takes from a crate; what is in it is asked when it breaks.
    pub(super) fn hurt_crate(
        &mut self,
        n: u8,
        damage: i16,
        cause: Key,
        frame: &Frame<'_, Game>,
        fx: &mut Effects<Game>,
    ) {
        let chest = self.crates.get_mut(usize::from(n));
        let Some(chest) = chest.filter(|chest| chest.stands()) else {
            return;
        };
        if chest.health > damage {
            chest.health -= damage;
            fx.cue(cause.child(u32::from(n)), Cue::CrateHit(n));
            return;
        }
        chest.health = 0;
        let key = chest.key(n);
        let next = frame.tick() + frame.rules().tuning.crate_return_ticks;
        self.timers.at(next, key, Timer::Crate(n));
        fx.cue(key, Cue::CrateBroke(n));
        fx.ask(key, Query::Loot { n });
    }

    /// What was in a crate.
    pub(super) fn hear_loot(
        &mut self,
        n: u8,
        key: Key,
        item: Option<Item>,
        frame: &Frame<'_, Game>,
    ) {
        let chest = self.crates.get(usize::from(n)).copied();
        if let Some((chest, item)) = chest.zip(item)
            && chest.key(n) == key
        {
            self.drop_item(key, item, chest.at, frame);
        }
    }

    /// The next crate of a place.
    pub(super) fn return_crate(&mut self, n: u8, frame: &Frame<'_, Game>) {
        let home = frame.rules().crates.get(usize::from(n));
        if let Some((chest, home)) = self.crates.get_mut(usize::from(n)).zip(home) {
            *chest = Crate {
                life: chest.life.wrapping_add(1),
                born: frame.tick(),
                at: *home,
                rests: Some(frame.tick()),
                health: frame.rules().tuning.crate_health,
            };
        }
    }

    /// All crates are whole and at home.
    pub(super) fn reset_crates(&mut self, frame: &Frame<'_, Game>) {
        for n in 0..self.crates.len() as u8 {
            self.timers.cancel(self.crates[usize::from(n)].key(n));
            self.return_crate(n, frame);
        }
    }
}
