//! The filter of a query, and the contents of an answer. An answer holds only integers and ids, so that outcomes are
//! `Eq` and equal on every machine.

use std::ops::BitOr;

use glam::Vec2;

/// Steps per unit of length. Distances are whole steps of 1/64 of a unit: finer than a pixel at any reasonable zoom,
/// exact in `f32` up to [`COORDINATE_MAX`](super::COORDINATE_MAX), and short on the wire.
pub const STEPS_PER_UNIT: f32 = 64.0;

/// A set of up to 32 layers. A shape is in some layers, and a query selects some.
///
/// ```
/// use twinstep_rapier2d::Layers;
/// const WALLS: Layers = Layers::bit(0);
/// const ENEMIES: Layers = Layers::bit(1);
/// assert!((WALLS | ENEMIES).meets(WALLS) && !WALLS.meets(ENEMIES));
/// ```
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Layers(pub u32);

impl Layers {
    /// The empty set, which does not meet any layer.
    pub const NONE: Layers = Layers(0);
    /// Every layer.
    pub const ALL: Layers = Layers(u32::MAX);

    /// The layer with this number, 0..=31. A larger number does not compile in a `const`, and panics elsewhere.
    #[must_use]
    pub const fn bit(number: u32) -> Layers {
        assert!(number < 32, "a layer's number is 0 to 31");
        Layers(1 << number)
    }

    /// Returns `true` if the two sets share a layer.
    #[must_use]
    pub const fn meets(self, other: Layers) -> bool {
        self.0 & other.0 != 0
    }

    /// Returns a filter for these layers that ignores one body, for example the shooter itself.
    #[must_use]
    pub const fn except<Id>(self, id: Id) -> Filter<Id> {
        Filter {
            layers: self,
            except: Some(id),
        }
    }
}

impl BitOr for Layers {
    type Output = Layers;
    fn bitor(self, other: Layers) -> Layers {
        Layers(self.0 | other.0)
    }
}

/// The shapes that may be in an answer. Created from [`Layers`], or by [`Layers::except`].
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Filter<Id> {
    /// Accepts shapes that are in at least one of these layers.
    pub layers: Layers,
    /// The body that the query ignores, both as a hit and as a blocker.
    pub except: Option<Id>,
}

impl<Id: PartialEq> Filter<Id> {
    /// Returns `true` if a shape in these layers may be in the answer. `id` is `None` for a wall.
    pub(super) fn admits(&self, id: Option<Id>, layers: Layers) -> bool {
        self.layers.meets(layers) && (self.except.is_none() || self.except != id)
    }
}

impl<Id> From<Layers> for Filter<Id> {
    fn from(layers: Layers) -> Filter<Id> {
        Filter {
            layers,
            except: None,
        }
    }
}

/// A body in an area. Ordered by id.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Hit<Id> {
    /// The body's id.
    pub id: Id,
    /// The distance from the area's center to the nearest point of the body, in 1/64 of a unit, rounded; 0 if the
    /// center is inside.
    pub distance_64ths: u32,
}

/// An impact of a ray or a moving shape. Ordered by distance, then walls first, then by id.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Impact<Id> {
    /// The distance that the ray or shape moved, in 1/64 of a unit, rounded; 0 if it touched at its start.
    pub distance_64ths: u32,
    /// The body's id. `None` for a wall.
    pub id: Option<Id>,
    /// The outward normal of the surface, in 1/127; `[0, 0]` if there was contact at the start.
    pub normal_127ths: [i8; 2],
}

impl<Id> Impact<Id> {
    pub(super) fn new(id: Option<Id>, distance: f32, normal: Vec2) -> Impact<Id> {
        let normal = if distance > 0.0 {
            (normal * 127.0).round()
        } else {
            Vec2::ZERO
        };
        Impact {
            distance_64ths: quantise(distance),
            id,
            normal_127ths: [normal.x as i8, normal.y as i8],
        }
    }
}

/// Converts units to the nearest 64th; `as` saturates at both ends.
pub(super) fn quantise(distance: f32) -> u32 {
    (distance * STEPS_PER_UNIT).round() as u32
}
