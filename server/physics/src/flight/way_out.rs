//! Moves the samples of a flight out of fixed shapes, into which the engine lets bodies sink.

use std::ops::ControlFlow;

use glam::Vec2;
use rapier2d::math::Pose;
use rapier2d::parry::query::{DefaultQueryDispatcher, QueryDispatcher};

use super::super::scene::{Scene, Solid};
use super::super::shape::Shape;

/// A body is moved out of its deepest overlap at most this many times, and then left in place.
pub(super) const WAY_OUT_TRIES: usize = 4;

/// Returns a pose close to `pose` that overlaps no fixed shape, if [`WAY_OUT_TRIES`] moves lead to one. In the engine,
/// a body squeezed by others sinks into a wall for a tick or two.
pub(super) fn free_of(
    still: &Scene<usize>,
    shape: &Shape,
    mut pose: Pose,
    tested: &mut u64,
) -> Pose {
    for _ in 0..WAY_OUT_TRIES {
        let body = shape.with(|shape| shape.compute_aabb(&pose));
        let reaches =
            |low: Vec2, high: Vec2| body.mins.cmple(high).all() && low.cmple(body.maxs).all();
        // Of two equally deep overlaps, the shape added first wins, because the tree visits shapes in its own order.
        let mut deepest: Option<(f32, usize, Vec2)> = None;
        still.visit(reaches, |solid| {
            *tested += 1;
            if let Some((depth, out)) = contact(solid, shape, &pose) {
                let stood_before = solid.id.unwrap_or_default();
                let is_deeper = |(other, order, _): (f32, usize, Vec2)| {
                    depth
                        .total_cmp(&other)
                        .then(stood_before.cmp(&order))
                        .is_lt()
                };
                if deepest.is_none_or(is_deeper) {
                    deepest = Some((depth, stood_before, out));
                }
            }
            ControlFlow::Continue(())
        });
        match deepest {
            Some((depth, _, out)) if depth < 0.0 => pose.translation -= out * depth,
            _ => break,
        }
    }
    pose
}

/// The distance of a body from a solid that it touches, below 0 if they overlap, and the solid's outward normal there.
pub(super) fn contact(solid: &Solid<usize>, shape: &Shape, pose: &Pose) -> Option<(f32, Vec2)> {
    let relative = solid.pose.inv_mul(pose);
    let contact = solid.shape.with(|still| {
        shape.with(|moving| DefaultQueryDispatcher.contact(&relative, still, moving, 0.0))
    });
    let contact = contact.expect("the engine knows contacts of all convex shapes")?;
    Some((contact.dist, solid.pose.rotation * contact.normal1))
}
