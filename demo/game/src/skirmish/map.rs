//! The map: places in whole numbers, and trips between them.
//!
//! Nothing that walks is moved tick by tick. A [`Trip`] says when it began and when it ends, and where its
//! walker is follows from the tick; so whoever walks can sleep until it arrives.

use serde::{Deserialize, Serialize};
use twinstep_core::Tick;

/// Steps in a field: the resolution of places.
pub const STEPS: i16 = 16;

/// A place, in 16ths of a field.
#[derive(
    Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize,
)]
pub struct FieldPoint {
    /// From the left.
    pub x: i16,
    /// From the top.
    pub y: i16,
}

impl FieldPoint {
    /// The middle of a field.
    #[must_use]
    pub const fn field(x: i16, y: i16) -> FieldPoint {
        FieldPoint {
            x: x * STEPS + STEPS / 2,
            y: y * STEPS + STEPS / 2,
        }
    }

    /// How far another place is, rounded down.
    #[must_use]
    pub fn distance(self, other: FieldPoint) -> u32 {
        let square = |a: i16, b: i16| u32::from(a.abs_diff(b)).pow(2);
        (square(self.x, other.x) + square(self.y, other.y)).isqrt()
    }

    /// The place `part` of `whole` on the way to another one.
    fn between(self, to: FieldPoint, part: u32, whole: u32) -> FieldPoint {
        let part = part.min(whole);
        let mix = |a: i16, b: i16| {
            let way = i64::from(b) - i64::from(a);
            (i64::from(a) + way * i64::from(part) / i64::from(whole.max(1))) as i16
        };
        FieldPoint {
            x: mix(self.x, to.x),
            y: mix(self.y, to.y),
        }
    }

    /// The place so many steps nearer to another one; that one, if it is no farther.
    #[must_use]
    pub fn toward(self, to: FieldPoint, steps: u32) -> FieldPoint {
        self.between(to, steps, self.distance(to))
    }
}

/// A straight way from here to there, at a steady speed. One that ends where it began is a rest.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Trip {
    /// Where it begins.
    pub from: FieldPoint,
    /// Where it ends.
    pub to: FieldPoint,
    /// When it begins.
    pub left: Tick,
    /// When it ends.
    pub arrives: Tick,
}

impl Trip {
    /// A way that begins at `left`, with so many steps a tick.
    #[must_use]
    pub fn walk(from: FieldPoint, to: FieldPoint, left: Tick, steps_per_tick: u32) -> Trip {
        let arrives = left + from.distance(to).div_ceil(steps_per_tick);
        Trip {
            from,
            to,
            left,
            arrives,
        }
    }

    /// Where its walker is.
    #[must_use]
    pub fn at(&self, now: Tick) -> FieldPoint {
        if now >= self.arrives {
            return self.to;
        }
        self.from
            .between(self.to, now - self.left, self.arrives - self.left)
    }
}
