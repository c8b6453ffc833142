//! Whole numbers for the wire, where values are compared by `Eq`, which floats do not implement.
//!
//! The simulation computes in `f32` units; one unit is a player's width. Pads, the directions of players, and queries
//! use the numbers of this file.

use core::f32::consts::TAU;

use glam::Vec2;
use serde::{Deserialize, Serialize};

const HEADINGS: f32 = 255.0;
const STEPS_PER_UNIT: f32 = 64.0;

/// A direction in 255 steps, counter-clockwise from +x; 0 means no direction. One byte on the wire.
///
/// ```
/// use glam::Vec2;
/// use powderkeg_game::Heading;
/// assert_eq!(Heading::toward(Vec2::ZERO), Heading::NONE);
/// assert!(Heading::toward(Vec2::Y).unit().distance(Vec2::Y) < 0.02);
/// ```
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
pub struct Heading(pub u8);

impl Heading {
    /// No direction: a stick at rest.
    pub const NONE: Heading = Heading(0);
    pub const EAST: Heading = Heading(1);

    /// Returns the nearest heading to a vector of any length; [`Heading::NONE`] for zero.
    #[must_use]
    pub fn toward(vector: Vec2) -> Heading {
        if vector == Vec2::ZERO {
            return Heading::NONE;
        }
        let turn = angle_of(vector) / TAU;
        Heading::NONE.turned_to(libm::roundf(turn * HEADINGS) as i32)
    }

    /// Returns this heading turned by `steps` of 1/255 of a circle; [`Heading::NONE`] counts as east.
    #[must_use]
    pub fn turned(self, steps: i32) -> Heading {
        self.turned_to(i32::from(self.0.max(1)) - 1 + steps)
    }

    /// Returns the number of steps from this heading to `other`, along the shorter arc.
    #[must_use]
    pub fn turn_to(self, other: Heading) -> i32 {
        let circle = HEADINGS as i32;
        let steps = i32::from(other.0.max(1)) - i32::from(self.0.max(1));
        (steps + circle / 2).rem_euclid(circle) - circle / 2
    }

    /// Returns the nearest of `ways` headings that divide the circle, starting in the east; [`Heading::NONE`] stays.
    #[must_use]
    pub fn nearest_of(self, ways: i32) -> Heading {
        if self == Heading::NONE {
            return self;
        }
        let circle = HEADINGS as i32;
        let way = ((i32::from(self.0) - 1) * ways + circle / 2) / circle;
        Heading::EAST.turned(way * circle / ways)
    }

    #[must_use]
    pub fn unit(self) -> Vec2 {
        if self == Heading::NONE {
            Vec2::ZERO
        } else {
            direction(self.angle())
        }
    }

    /// Returns radians from +x; 0 for [`Heading::NONE`].
    #[must_use]
    pub fn angle(self) -> f32 {
        f32::from(self.0.saturating_sub(1)) * (TAU / HEADINGS)
    }

    fn turned_to(self, steps: i32) -> Heading {
        // 0 is no direction, so headings are 1 to 255.
        Heading(steps.rem_euclid(HEADINGS as i32) as u8 + 1)
    }
}

/// A position in 64ths of a unit, within ±511 units.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
pub struct Point {
    pub x_64ths: i16,
    pub y_64ths: i16,
}

impl Point {
    #[must_use]
    pub fn of(at: Vec2) -> Point {
        let at = at * STEPS_PER_UNIT;
        Point {
            x_64ths: libm::roundf(at.x) as i16,
            y_64ths: libm::roundf(at.y) as i16,
        }
    }

    #[must_use]
    pub fn to_vec2(self) -> Vec2 {
        Vec2::new(f32::from(self.x_64ths), f32::from(self.y_64ths)) / STEPS_PER_UNIT
    }
}

/// Returns the unit vector of an angle in radians, equal on every machine.
#[must_use]
pub fn direction(angle: f32) -> Vec2 {
    let (sin, cos) = libm::sincosf(angle);
    Vec2::new(cos, sin)
}

/// Returns the angle of a vector in radians, equal on every machine.
#[must_use]
pub fn angle_of(vector: Vec2) -> f32 {
    libm::atan2f(vector.y, vector.x)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_heading_survives_conversion_to_a_unit_vector_and_back() {
        for n in 1..=255 {
            assert_eq!(Heading::toward(Heading(n).unit()), Heading(n));
        }
    }

    #[test]
    fn turning_wraps_around_and_never_yields_heading_none() {
        assert_eq!(Heading(255).turned(1), Heading(1));
        assert_eq!(Heading(1).turned(-1), Heading(255));
        assert_eq!(Heading::NONE.turned(0), Heading::EAST);
    }

    #[test]
    fn a_point_is_exact_on_64ths() {
        let at = Vec2::new(-28.5, 16.015_625);
        assert_eq!(Point::of(at).to_vec2(), at);
    }
}
