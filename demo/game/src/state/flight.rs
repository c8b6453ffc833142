//! [`Flight`]: a barrel or crate in the air, and its path. See `toss`.

use arrayvec::ArrayVec;
use glam::Vec2;
use serde::{Deserialize, Serialize};
use twinstep_core::Tick;

use super::barrel::BARREL_RADIUS;
use super::crates::CRATE_HALF;
use crate::hit::{Form, Victim};

/// The maximum number of things thrown by a blast, nearest first. This keeps an outcome within 256 B.
pub const TOSSED_MAX: usize = 10;
pub const LEGS_MAX: usize = 10;
pub const LEG_TICKS: u32 = 6;
/// Paths are in whole 16ths of a unit, which are exact in `f32`. A leg's coordinate takes one byte, up to 79 units/s.
const STEPS_PER_UNIT: f32 = 16.0;

#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
pub enum Prop {
    Barrel(u8),
    Crate(u8),
}

impl Prop {
    #[must_use]
    pub const fn of(body: Victim) -> Option<Prop> {
        match body {
            Victim::Barrel(n) => Some(Prop::Barrel(n)),
            Victim::Crate(n) => Some(Prop::Crate(n)),
            Victim::Player(_) | Victim::Enemy(_) => None,
        }
    }

    #[must_use]
    pub const fn form(self) -> Form {
        match self {
            Prop::Barrel(_) => Form::Disc(BARREL_RADIUS),
            Prop::Crate(_) => Form::Square(CRATE_HALF),
        }
    }

    /// The radius of the inscribed circle, in units.
    #[must_use]
    pub const fn radius(self) -> f32 {
        match self.form() {
            Form::Disc(radius) | Form::Square(radius) => radius,
        }
    }

    /// The radius of the circumscribed circle, in units.
    #[must_use]
    pub const fn outer_radius(self) -> f32 {
        match self.form() {
            Form::Disc(radius) => radius,
            Form::Square(half) => half * core::f32::consts::SQRT_2,
        }
    }
}

impl From<Prop> for Victim {
    fn from(prop: Prop) -> Victim {
        match prop {
            Prop::Barrel(n) => Victim::Barrel(n),
            Prop::Crate(n) => Victim::Crate(n),
        }
    }
}

/// The offset from one corner of a path to the next, in 16ths of a unit.
pub type FlightLeg = [i8; 2];

#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Throw {
    pub prop: Prop,
    /// The path from where the thing lay; each leg takes [`LEG_TICKS`].
    pub legs: ArrayVec<FlightLeg, LEGS_MAX>,
}

impl Throw {
    /// Creates the nearest path from `from` through the first [`LEGS_MAX`] of `corners`, where the thing then lies
    /// still.
    #[must_use]
    pub fn through(prop: Prop, from: Vec2, corners: impl IntoIterator<Item = Vec2>) -> Throw {
        let mut legs = ArrayVec::<FlightLeg, LEGS_MAX>::new();
        let mut at = [0_i32; 2];
        for corner in corners.into_iter().take(LEGS_MAX) {
            let way = (corner - from) * STEPS_PER_UNIT;
            let to = [libm::roundf(way.x) as i32, libm::roundf(way.y) as i32];
            // Measured from the position reached so far, not from the last corner, so that the next leg makes up for a
            // leg that was too short.
            let leg = [0, 1].map(|axis| to[axis].saturating_sub(at[axis]).clamp(-127, 127) as i8);
            at = [0, 1].map(|axis| at[axis] + i32::from(leg[axis]));
            legs.push(leg);
        }
        // The path ends with the movement, so that the thing is on the ground again immediately.
        while legs.last() == Some(&[0, 0]) {
            legs.pop();
        }
        Throw { prop, legs }
    }

    pub fn corners(&self, from: Vec2) -> impl Iterator<Item = Vec2> {
        self.legs.iter().scan([0_i32; 2], move |at, leg| {
            *at = [0, 1].map(|axis| at[axis] + i32::from(leg[axis]));
            Some(from + Vec2::new(at[0] as f32, at[1] as f32) / STEPS_PER_UNIT)
        })
    }
}

#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Flight {
    pub(crate) prop: Prop,
    pub(crate) life: u32,
    pub(crate) since: Tick,
    pub(crate) from: Vec2,
    pub(crate) legs: ArrayVec<FlightLeg, LEGS_MAX>,
}

impl Flight {
    /// Returns the position at the end of a tick, and `true` if the flight goes on.
    pub(crate) fn at(&self, now: Tick) -> (Vec2, bool) {
        // A flight already moves in the tick in which it starts.
        let age = (now - self.since) + 1;
        let (full, rest) = ((age / LEG_TICKS) as usize, age % LEG_TICKS);
        let way = |legs: &[FlightLeg]| {
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

    pub(crate) fn ticks(&self) -> u32 {
        self.legs.len() as u32 * LEG_TICKS
    }
}
