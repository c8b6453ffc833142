//! The walls of a room, and the search for walls near a body.

use std::fmt::{Debug, Formatter, Result};
use std::ops::ControlFlow;
use std::sync::{Arc, OnceLock};

use glam::Vec2;
use rapier2d::math::Pose;
use serde::Serialize;

use super::super::answer::Layers;
use super::super::scene::{Scene, Solid};
use super::super::shape::Shape;

#[derive(Clone, Default, Serialize)]
pub(crate) struct Walls {
    placed: Vec<(Shape, Vec2, f32)>,
    #[serde(skip)]
    poses: Vec<Pose>,
    // Derived from the walls; built at the first search.
    #[serde(skip)]
    scene: OnceLock<Arc<Scene<u32>>>,
}

impl Debug for Walls {
    fn fmt(&self, f: &mut Formatter<'_>) -> Result {
        self.placed.fmt(f)
    }
}

impl Walls {
    pub(super) fn len(&self) -> usize {
        self.placed.len()
    }

    pub(super) fn push(&mut self, shape: Shape, at: Vec2, angle: f32, pose: Pose) {
        self.placed.push((shape, at, angle));
        self.poses.push(pose);
        self.scene = OnceLock::new();
    }

    pub(super) fn all(&self) -> impl Iterator<Item = (&Shape, &Pose)> {
        let shapes = self.placed.iter().map(|(shape, ..)| shape);
        shapes.zip(&self.poses)
    }

    pub(crate) fn get(&self, wall: u32) -> (&Shape, &Pose) {
        (&self.placed[wall as usize].0, &self.poses[wall as usize])
    }

    // Adds the numbers of all walls that may be within `reach` of `at`.
    pub(crate) fn near(&self, at: Vec2, reach: f32, into: &mut Vec<u32>) {
        let scene = self.scene.get_or_init(|| {
            let mut scene = Scene::default();
            for (wall, (shape, pose)) in (0..).zip(self.all()) {
                scene.push(Solid {
                    id: Some(wall),
                    shape: *shape,
                    pose: *pose,
                    layers: Layers::ALL,
                });
            }
            scene.settle();
            Arc::new(scene)
        });
        let reaches = |low: Vec2, high: Vec2| (low - at).max(at - high).max_element() <= reach;
        scene.visit(reaches, |solid| {
            into.extend(solid.id);
            ControlFlow::Continue(())
        });
    }
}
