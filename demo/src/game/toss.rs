//! The toss: barrels and crates that a blast throws about.
//!
//! Where they fly is a matter of bodies that bounce, and a little of luck: not ours to compute. So a blast with
//! something to throw asks twice, and the answer to `Query::Toss` is a path for each that moved:
//!
//! ```text
//!   tick t       Query::Toss ──▶ server: rigid bodies (resolve.rs) ──▶ Outcome::Toss in a frame
//!                      └───────▶ client: a cheap guess (throw.rs)  ──▶ assumed, and smoothly corrected
//!   tick t + 1   ● lies at `from`        ┐
//!        + 6     └─▶ ● + legs[0]         │ played back: from corner to corner, tick for tick
//!        + 12        └─▶ ● + legs[1] ... ┘ then it lies there
//! ```
//!
//! Invariants:
//! - While it is in the air, a thing is *aloft*: nobody walks into it, shots pass below it, it hides nobody,
//!   and no blast, spark or order reaches it. A fuse that burns goes on burning, and it bursts where it is then.
//! - A path begins where the thing lay when it was asked: who has moved since then stays where it is. So the
//!   legs need no beginning, and an answer that comes late or twice does no harm.
//! - No answer: nothing moves.

use arrayvec::ArrayVec;
use glam::Vec2;
use serde::{Deserialize, Serialize};
use twinstep_core::{Effects, Frame, Key, Tick};

use super::barrel::BARREL_RADIUS;
use super::crates::CRATE_HALF;
use super::{Body, Bomb, Cue, Form, Game, Point, Query};

/// Things that one blast throws: the nearest so many. Keeps an outcome within 256 B.
pub const TOSSED_MAX: usize = 10;
/// Legs of a path.
pub const LEGS_MAX: usize = 10;
/// How long one leg takes.
pub const LEG_TICKS: u32 = 6;
/// A path goes from one 16th of a unit to the next: exact in `f32`, and one byte a coordinate up to 79 units a
/// second.
const STEPS_PER_UNIT: f32 = 16.0;
/// Questions of a tick after which tosses are left out, so that every blast finds room.
const ASKS_FIRST: usize = 8;

/// What can be thrown.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
pub enum Prop {
    /// A barrel, by number.
    Barrel(u8),
    /// A crate, by number.
    Crate(u8),
}

impl Prop {
    /// What of a blast's victims can be thrown.
    #[must_use]
    pub const fn of(body: Body) -> Option<Prop> {
        match body {
            Body::Barrel(n) => Some(Prop::Barrel(n)),
            Body::Crate(n) => Some(Prop::Crate(n)),
            Body::Player(_) | Body::Enemy(_) => None,
        }
    }

    /// How it looks from above.
    #[must_use]
    pub const fn form(self) -> Form {
        match self {
            Prop::Barrel(_) => Form::Disc(BARREL_RADIUS),
            Prop::Crate(_) => Form::Square(CRATE_HALF),
        }
    }

    /// Of the circle inside it, in units.
    #[must_use]
    pub const fn radius(self) -> f32 {
        match self.form() {
            Form::Disc(radius) | Form::Square(radius) => radius,
        }
    }

    /// Of the circle around it, in units.
    #[must_use]
    pub const fn outer_radius(self) -> f32 {
        match self.form() {
            Form::Disc(radius) => radius,
            Form::Square(half) => half * core::f32::consts::SQRT_2,
        }
    }
}

impl From<Prop> for Body {
    fn from(prop: Prop) -> Body {
        match prop {
            Prop::Barrel(n) => Body::Barrel(n),
            Prop::Crate(n) => Body::Crate(n),
        }
    }
}

/// From one corner of a path to the next, in 16ths of a unit.
pub type Leg = [i8; 2];

/// One thing that is thrown, and how.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Throw {
    /// What.
    pub prop: Prop,
    /// Its path from where it lies; each leg takes [`LEG_TICKS`].
    pub legs: ArrayVec<Leg, LEGS_MAX>,
}

impl Throw {
    /// The path through these corners, as near as legs come to them; after the last it lies still.
    #[must_use]
    pub fn through(prop: Prop, from: Vec2, corners: impl IntoIterator<Item = Vec2>) -> Throw {
        let mut legs = ArrayVec::<Leg, LEGS_MAX>::new();
        let mut at = [0_i32; 2];
        for corner in corners.into_iter().take(LEGS_MAX) {
            let way = (corner - from) * STEPS_PER_UNIT;
            let to = [libm::roundf(way.x) as i32, libm::roundf(way.y) as i32];
            let leg = [0, 1].map(|axis| to[axis].saturating_sub(at[axis]).clamp(-127, 127) as i8);
            at = [0, 1].map(|axis| at[axis] + i32::from(leg[axis]));
            legs.push(leg);
        }
        while legs.last() == Some(&[0, 0]) {
            legs.pop();
        }
        Throw { prop, legs }
    }

    /// The corners of its path, if it begins at `from`.
    pub fn corners(&self, from: Vec2) -> impl Iterator<Item = Vec2> {
        self.legs.iter().scan([0_i32; 2], move |at, leg| {
            *at = [0, 1].map(|axis| at[axis] + i32::from(leg[axis]));
            Some(from + Vec2::new(at[0] as f32, at[1] as f32) / STEPS_PER_UNIT)
        })
    }
}

/// Something in the air.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Flight {
    /// What, and which life of it.
    prop: Prop,
    life: u32,
    /// Since when, and from where.
    since: Tick,
    from: Vec2,
    legs: ArrayVec<Leg, LEGS_MAX>,
}

impl Flight {
    /// Where it is at the end of a tick, and whether it goes on from there.
    fn at(&self, now: Tick) -> (Vec2, bool) {
        let age = (now - self.since) + 1;
        let (full, rest) = ((age / LEG_TICKS) as usize, age % LEG_TICKS);
        let way = |legs: &[Leg]| {
            let sum = |axis: usize| legs.iter().map(|leg| i32::from(leg[axis])).sum::<i32>();
            Vec2::new(sum(0) as f32, sum(1) as f32) / STEPS_PER_UNIT
        };
        let corner = self.from + way(&self.legs[..full.min(self.legs.len())]);
        match self.legs.get(full) {
            Some(leg) => {
                let part = rest as f32 / LEG_TICKS as f32;
                (corner + way(&[*leg]) * part, true)
            }
            None => (corner, false),
        }
    }

    fn ticks(&self) -> u32 {
        self.legs.len() as u32 * LEG_TICKS
    }
}

impl Game {
    /// Asks where a blast throws things, if it throws any.
    pub(super) fn ask_toss(
        &self,
        cause: Key,
        bomb: Bomb,
        at: Vec2,
        frame: &Frame<'_, Game>,
        fx: &mut Effects<Game>,
    ) {
        let reach = bomb.radius(&frame.rules().tuning);
        let mut near = self
            .lying()
            .filter(|(prop, place)| place.distance(at) - prop.radius() <= reach);
        if near.next().is_some() && fx.asks().len() <= ASKS_FIRST {
            let (at, asked) = (Point::of(at), frame.tick());
            fx.ask(toss_key(cause), Query::Toss { bomb, at, asked });
        }
    }

    /// Everything that could be thrown, and where it lies: barrels, then crates.
    pub fn lying(&self) -> impl Iterator<Item = (Prop, Vec2)> {
        let barrels = self.barrels.iter().zip(0..);
        let crates = self.crates.iter().zip(0..);
        let barrels = barrels.filter(|(barrel, _)| barrel.stands());
        let crates = crates.filter(|(chest, _)| chest.stands());
        barrels
            .map(|(barrel, n)| (Prop::Barrel(n), barrel.at))
            .chain(crates.map(|(chest, n)| (Prop::Crate(n), chest.at)))
    }

    /// How far a thing's flight is, in [0, 1]; nothing if it lies. For views, which may draw it higher.
    #[must_use]
    pub fn aloft(&self, prop: Prop, now: Tick) -> Option<f32> {
        let flight = self.flights.iter().find(|flight| flight.prop == prop)?;
        let age = (now - flight.since) as f32;
        Some((age / flight.ticks().max(1) as f32).min(1.0))
    }

    /// The answer: off they go.
    pub(super) fn hear_toss(
        &mut self,
        key: Key,
        asked: Tick,
        throws: &[Throw],
        frame: &Frame<'_, Game>,
        fx: &mut Effects<Game>,
    ) {
        for throw in throws {
            let prop = throw.prop;
            let Some(place) = self.place_of(prop) else {
                continue;
            };
            let lay_there = place.rests.is_some_and(|rests| rests <= asked);
            if throw.legs.is_empty() || !lay_there {
                continue;
            }
            *place.rests = None;
            let flight = Flight {
                prop,
                life: place.life,
                since: frame.tick(),
                from: *place.at,
                legs: throw.legs.clone(),
            };
            self.flights.push(flight);
            fx.cue(key, Cue::Tossed(prop));
        }
    }

    /// Moves what is in the air; what has come down lies there, clear of walls.
    pub(super) fn move_flights(&mut self, frame: &Frame<'_, Game>) {
        let now = frame.tick();
        let mut flights = core::mem::take(&mut self.flights);
        flights.retain(|flight| {
            let Some(place) = self.place_of(flight.prop) else {
                return false;
            };
            if place.life != flight.life || place.rests.is_some() {
                return false;
            }
            let (at, goes_on) = flight.at(now);
            *place.at = at;
            if !goes_on {
                *place.at = frame.rules().place(at, flight.prop.radius());
                *place.rests = Some(now + 1);
            }
            goes_on
        });
        self.flights = flights;
    }

    fn place_of(&mut self, prop: Prop) -> Option<Place<'_>> {
        match prop {
            Prop::Barrel(n) => {
                let barrel = self.barrels.get_mut(usize::from(n))?;
                barrel.is_there().then_some(Place {
                    life: barrel.life,
                    at: &mut barrel.at,
                    rests: &mut barrel.rests,
                })
            }
            Prop::Crate(n) => {
                let chest = self.crates.get_mut(usize::from(n))?;
                chest.is_there().then_some(Place {
                    life: chest.life,
                    at: &mut chest.at,
                    rests: &mut chest.rests,
                })
            }
        }
    }
}

/// Where a thing is.
struct Place<'a> {
    life: u32,
    at: &'a mut Vec2,
    /// Since when it lies there; `None`: it is aloft.
    rests: &'a mut Option<Tick>,
}

/// The name under which a blast that asks under `cause` asks for its toss as well; of the same owner.
fn toss_key(cause: Key) -> Key {
    match cause.owner() {
        Some(player) => Key::player(player, TOSS | cause.n),
        None => cause.child(TOSS),
    }
}

/// No barrel's and no shell's question has this bit.
const TOSS: u32 = 1 << 30;

#[cfg(test)]
mod tests;
