//! [`Sweep`]: a point or a shape that moves along a line, for rays and shape casts.

use glam::Vec2;
use rapier2d::math::Pose;
use rapier2d::parry::bounding_volume::Aabb;
use rapier2d::parry::query::{
    DefaultQueryDispatcher, QueryDispatcher, Ray, RayCast, ShapeCastOptions,
};

use super::answer::STEPS_PER_UNIT;
use super::scene::Solid;
use super::shape::{Fault, Shape, check_length, check_position};

/// A point or shape that moves from `from` along the unit vector `direction`.
pub(super) struct Sweep {
    /// The shape. `None` for a point.
    shape: Option<Shape>,
    from: Pose,
    /// The bounding box of the turned shape, around its origin.
    extent: Aabb,
    direction: Vec2,
    length: f32,
}

impl Sweep {
    pub(super) fn ray(origin: Vec2, direction: Vec2, length: f32) -> Result<Sweep, Fault> {
        check_position(origin)?;
        check_length(length)?;
        Ok(Sweep {
            shape: None,
            from: Pose::from_translation(origin),
            extent: Aabb::new(Vec2::ZERO, Vec2::ZERO),
            direction: direction
                .try_normalize()
                .ok_or(Fault::Direction(direction))?,
            length,
        })
    }

    pub(super) fn shape(
        shape: Shape,
        from: Vec2,
        angle: f32,
        motion: Vec2,
    ) -> Result<Sweep, Fault> {
        let from = shape.placed(from, angle)?;
        let length = motion.length();
        let direction = match motion.try_normalize() {
            _ if length == 0.0 => Vec2::X, // any: a length of 0 reaches only what is touched already
            Some(direction) if length.is_finite() => direction,
            _ => return Err(Fault::Direction(motion)),
        };
        let turned = Pose::from_rotation(from.rotation);
        let extent = shape.with(|shape| shape.compute_aabb(&turned));
        Ok(Sweep {
            shape: Some(shape),
            from,
            extent,
            direction,
            length,
        })
    }

    pub(super) fn length(&self) -> f32 {
        self.length
    }

    /// Returns `true` if the moving bounding box meets this box within `limit`.
    pub(super) fn reaches(&self, low: Vec2, high: Vec2, limit: f32) -> bool {
        // Two boxes meet if the moving origin meets the sum of both boxes.
        let sum = Aabb::new(low - self.extent.maxs, high - self.extent.mins);
        let ray = Ray::new(self.from.translation, self.direction);
        sum.intersects_local_ray(&ray, limit)
    }

    /// Returns the distance after which the sweep meets the solid, if it does within `limit`, and the solid's outward
    /// normal there.
    pub(super) fn strike<Id>(&self, solid: &Solid<Id>, limit: f32) -> Option<(f32, Vec2)> {
        // Start just outside the circles around both shapes: the squares inside the exact tests lose the significant
        // digits if the start is hundreds of units away.
        let gap = solid.pose.translation - self.from.translation;
        let near = solid.shape.bound()
            + self.shape.map_or(0.0, |shape| shape.bound())
            + 1.0 / STEPS_PER_UNIT;
        let skip = (gap.dot(self.direction) - near).max(0.0);
        let rest = limit - skip;
        if rest < 0.0 {
            return None;
        }
        let mut start = self.from;
        start.translation += self.direction * skip;

        let (distance, normal) = match &self.shape {
            None => cast_ray(solid, start.translation, self.direction, rest)?,
            Some(moving) if skip == 0.0 && touch(solid, moving, &start) => (0.0, Vec2::ZERO),
            Some(moving) => cast_shape(solid, moving, &start, self.direction, rest)?,
        };
        Some((skip + distance, normal))
    }
}

fn cast_ray<Id>(
    solid: &Solid<Id>,
    origin: Vec2,
    direction: Vec2,
    length: f32,
) -> Option<(f32, Vec2)> {
    let ray = Ray::new(origin, direction);
    let hit = solid
        .shape
        .with(|shape| shape.cast_ray_and_get_normal(&solid.pose, &ray, length, true))?;
    Some((hit.time_of_impact, hit.normal))
}

fn cast_shape<Id>(
    solid: &Solid<Id>,
    moving: &Shape,
    start: &Pose,
    direction: Vec2,
    length: f32,
) -> Option<(f32, Vec2)> {
    let options = ShapeCastOptions {
        compute_impact_geometry_on_penetration: false,
        ..ShapeCastOptions::with_max_time_of_impact(length)
    };
    let relative = solid.pose.inv_mul(start);
    let direction = solid.pose.rotation.inverse() * direction;
    let cast = |still: &_, moving: &_| {
        DefaultQueryDispatcher.cast_shapes(&relative, direction, still, moving, options)
    };
    let hit = solid
        .shape
        .with(|still| moving.with(|moving| cast(still, moving)))
        .expect("the engine casts every pair of convex shapes")?;
    Some((hit.time_of_impact, solid.pose.rotation * hit.normal1))
}

/// Tests for contact before a cast, because the engine's casts from contact are slow and allocate.
fn touch<Id>(solid: &Solid<Id>, moving: &Shape, pose: &Pose) -> bool {
    let relative = solid.pose.inv_mul(pose);
    let test =
        |still: &_, moving: &_| DefaultQueryDispatcher.intersection_test(&relative, still, moving);
    solid
        .shape
        .with(|still| moving.with(|moving| test(still, moving)))
        .expect("the engine intersects every pair of convex shapes")
        .intersecting
}
