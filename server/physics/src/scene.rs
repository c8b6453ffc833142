//! Placed shapes, and the tree that finds those near a query.
//!
//! The tree is the engine's own. The engine's broad phase and collider set are not used, because they record every
//! change for a step that never runs. The tree is rebuilt at the first query after a change, so filling is cheap and
//! the tree stays balanced. The answer does not depend on the tree: a box is a little larger than its shape, and the
//! exact test decides.

use std::ops::ControlFlow;

use glam::Vec2;
use rapier2d::math::Pose;
use rapier2d::parry::bounding_volume::BoundingVolume;
use rapier2d::parry::partitioning::{Bvh, BvhBuildStrategy, BvhWorkspace, TraversalAction};

use super::answer::{Layers, STEPS_PER_UNIT};
use super::shape::Shape;

pub(super) struct Solid<Id> {
    /// The body's id. `None` for a wall.
    pub(super) id: Option<Id>,
    pub(super) shape: Shape,
    pub(super) pose: Pose,
    pub(super) layers: Layers,
}

impl<Id> Solid<Id> {
    /// The distance from `point` to the nearest point of the shape; 0 inside.
    pub(super) fn distance(&self, point: Vec2) -> f32 {
        self.shape
            .with(|shape| shape.distance_to_point(&self.pose, point, true))
    }

    pub(super) fn outline(&self, eye: Vec2) -> [Vec2; 3] {
        self.shape.outline(&self.pose, eye)
    }
}

/// Solids, and a tree over them; its leaf `i` is solid `i`.
pub(super) struct Scene<Id> {
    solids: Vec<Solid<Id>>,
    tree: Bvh,
    workspace: BvhWorkspace,
    is_stale: bool,
}

impl<Id> Default for Scene<Id> {
    fn default() -> Scene<Id> {
        Scene {
            solids: Vec::new(),
            tree: Bvh::new(),
            workspace: BvhWorkspace::default(),
            is_stale: false,
        }
    }
}

impl<Id> Scene<Id> {
    pub(super) fn len(&self) -> usize {
        self.solids.len()
    }

    pub(super) fn clear(&mut self) {
        self.solids.clear();
        self.is_stale = true;
    }

    pub(super) fn push(&mut self, solid: Solid<Id>) {
        self.solids.push(solid);
        self.is_stale = true;
    }

    pub(super) fn settle(&mut self) {
        if !std::mem::take(&mut self.is_stale) {
            return;
        }
        for leaf in self.solids.len() as u32..self.tree.leaf_count() {
            self.tree.remove(leaf);
        }
        for (leaf, solid) in (0..).zip(&self.solids) {
            let tight = solid.shape.with(|shape| shape.compute_aabb(&solid.pose));
            self.tree
                .insert_or_update_partially(tight.loosened(1.0 / STEPS_PER_UNIT), leaf, 0.0);
        }
        self.tree
            .rebuild(&mut self.workspace, BvhBuildStrategy::Binned);
    }

    /// Calls `see` for each solid whose bounding box (lowest corner, highest corner) `reaches` accepts, until `see`
    /// breaks. The order is arbitrary.
    pub(super) fn visit(
        &self,
        reaches: impl Fn(Vec2, Vec2) -> bool,
        mut see: impl FnMut(&Solid<Id>) -> ControlFlow<()>,
    ) {
        assert!(!self.is_stale, "a scene is settled before it is asked");
        self.tree.traverse(|node| {
            if !reaches(node.mins(), node.maxs()) {
                return TraversalAction::Prune;
            }
            match node
                .leaf_data()
                .map(|leaf| see(&self.solids[leaf as usize]))
            {
                Some(ControlFlow::Break(())) => TraversalAction::EarlyExit,
                _ => TraversalAction::Continue,
            }
        });
    }
}
