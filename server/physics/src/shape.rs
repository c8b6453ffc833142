//! The shapes of walls and bodies, and the check that keeps NaN, infinity and invalid numbers out of the engine.

use glam::Vec2;
use rapier2d::math::Pose;
use rapier2d::parry::shape::{Ball, Capsule, Cuboid, Segment, Shape as Engine, SharedShape};
use serde::{Deserialize, Serialize};

use super::bounds::{COORDINATE_MAX, PUSH_MAX, REACH as FLIGHT_REACH, SPEED_MAX};

/// A solid shape around its own origin. A position and an angle place it.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
pub enum Shape {
    /// A disc.
    Ball {
        /// The radius in units, above 0.
        radius: f32,
    },
    /// A rectangle around its origin.
    Box {
        /// Half of the width and the height in units, both above 0.
        half: Vec2,
    },
    /// All points within `radius` of the line segment from `a` to `b`.
    Capsule {
        /// One end, relative to the origin.
        a: Vec2,
        /// The other end.
        b: Vec2,
        /// The radius in units, above 0.
        radius: f32,
    },
    /// A line without thickness.
    Segment {
        /// One end, relative to the origin.
        a: Vec2,
        /// The other end, which must be a different point.
        b: Vec2,
    },
}

/// The reason why a number was rejected.
#[derive(Clone, Copy, Debug, PartialEq, thiserror::Error)]
#[non_exhaustive]
#[expect(missing_docs, reason = "the messages explain the variants")]
pub enum Fault {
    #[error("position {0} is not within ±{COORDINATE_MAX} units")]
    Position(Vec2),
    #[error("angle {0} is not a finite number of radians")]
    Angle(f32),
    #[error("{0:?} has a size that is not above 0 and within {COORDINATE_MAX} units")]
    Size(Shape),
    #[error("direction {0} has no usable length; expected a finite vector that is not zero")]
    Direction(Vec2),
    #[error("length {0} is not a finite number of units, 0 or more")]
    Length(f32),
    #[error("position {0} is not within ±{FLIGHT_REACH} units, where bodies can fly")]
    Far(Vec2),
    #[error("velocity {0} is not within {SPEED_MAX} units a second")]
    Velocity(Vec2),
    #[error("spin {0} is not within ±{SPEED_MAX} radians a second")]
    Spin(f32),
    #[error("push {0} or twist {1} is not within {PUSH_MAX} units or radians a second squared")]
    Push(Vec2, f32),
    #[error("{0:?} has no area and cannot fly; expected a ball, a box or a capsule")]
    Massless(Shape),
}

impl Shape {
    pub(super) fn placed(&self, at: Vec2, angle: f32) -> Result<Pose, Fault> {
        let is_size = |size: f32| size > 0.0 && size <= COORDINATE_MAX;
        let is_sound = match *self {
            Shape::Ball { radius } => is_size(radius),
            Shape::Box { half } => is_size(half.x) && is_size(half.y),
            Shape::Capsule { a, b, radius } => is_position(a) && is_position(b) && is_size(radius),
            Shape::Segment { a, b } => is_position(a) && is_position(b) && a != b,
        };
        if !is_sound {
            return Err(Fault::Size(*self));
        }
        if !angle.is_finite() {
            return Err(Fault::Angle(angle));
        }
        check_position(at)?;
        Ok(Pose::new(at, angle))
    }

    /// Calls `f` with the engine's form of this shape, without an allocation.
    pub(super) fn with<R>(&self, f: impl FnOnce(&dyn Engine) -> R) -> R {
        match *self {
            Shape::Ball { radius } => f(&Ball::new(radius)),
            Shape::Box { half } => f(&Cuboid::new(half)),
            Shape::Capsule { a, b, radius } => f(&Capsule::new(a, b, radius)),
            Shape::Segment { a, b } => f(&Segment::new(a, b)),
        }
    }

    /// Returns the engine's form of this shape, for shapes that the engine stores.
    pub(super) fn shared(&self) -> SharedShape {
        match *self {
            Shape::Ball { radius } => SharedShape::ball(radius),
            Shape::Box { half } => SharedShape::cuboid(half.x, half.y),
            Shape::Capsule { a, b, radius } => SharedShape::capsule(a, b, radius),
            Shape::Segment { a, b } => SharedShape::segment(a, b),
        }
    }

    /// The radius of a circle around the origin that contains the shape.
    pub(super) fn bound(&self) -> f32 {
        match *self {
            Shape::Ball { radius } => radius,
            Shape::Box { half } => half.length(),
            Shape::Capsule { a, b, radius } => a.length().max(b.length()) + radius,
            Shape::Segment { a, b } => a.length().max(b.length()),
        }
    }

    /// The middle, and the two outermost points as seen from `eye`, which must be outside.
    pub(super) fn outline(&self, pose: &Pose, eye: Vec2) -> [Vec2; 3] {
        let place = |point: Vec2| pose.transform_point(point);
        let (middle, [left, right]) = match *self {
            Shape::Ball { radius } => (Vec2::ZERO, tangents(eye, pose.translation, radius)),
            Shape::Box { half } => {
                let corners = [
                    half,
                    Vec2::new(-half.x, half.y),
                    -half,
                    Vec2::new(half.x, -half.y),
                ];
                (Vec2::ZERO, outermost(eye, corners.map(place)))
            }
            Shape::Capsule { a, b, radius } => {
                let ([p, q], [r, s]) = (
                    tangents(eye, place(a), radius),
                    tangents(eye, place(b), radius),
                );
                ((a + b) / 2.0, outermost(eye, [p, q, r, s]))
            }
            Shape::Segment { a, b } => ((a + b) / 2.0, [place(a), place(b)]),
        };
        [place(middle), left, right]
    }
}

/// The points where the two tangents from `eye` touch a circle: at the angle acos(radius / distance) from its center.
fn tangents(eye: Vec2, center: Vec2, radius: f32) -> [Vec2; 2] {
    let distance = center.distance(eye);
    let cos = (radius / distance).min(1.0);
    let sin = (1.0 - cos * cos).sqrt();
    let toward = (eye - center) / distance * radius;
    [
        center + toward * cos + toward.perp() * sin,
        center + toward * cos - toward.perp() * sin,
    ]
}

/// The leftmost and the rightmost of the points, as seen from an eye outside their hull.
fn outermost(eye: Vec2, points: [Vec2; 4]) -> [Vec2; 2] {
    let is_left = |of: Vec2, point: Vec2| (of - eye).perp_dot(point - eye) > 0.0;
    let [first, ..] = points;
    [
        points.into_iter().fold(
            first,
            |best, point| if is_left(best, point) { point } else { best },
        ),
        points.into_iter().fold(
            first,
            |best, point| if is_left(point, best) { point } else { best },
        ),
    ]
}

pub(super) fn check_position(at: Vec2) -> Result<(), Fault> {
    if is_position(at) {
        Ok(())
    } else {
        Err(Fault::Position(at))
    }
}

pub(super) fn check_length(length: f32) -> Result<(), Fault> {
    if length.is_finite() && length >= 0.0 {
        Ok(())
    } else {
        Err(Fault::Length(length))
    }
}

fn is_position(at: Vec2) -> bool {
    at.x.abs() <= COORDINATE_MAX && at.y.abs() <= COORDINATE_MAX // false for NaN
}
