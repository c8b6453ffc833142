//! [`TransformPose`]: poses that can move a `Transform`.

use bevy_ecs::prelude::*;
use bevy_transform::components::Transform;
use twinstep_client::{Angle, Placed, Pose, Show};
use twinstep_core::Simulation;

use crate::drawn::Drawn;

/// A pose that sets the position of a `Transform`, and the rotation if it has an angle. Other values, such as the depth
/// of a sprite, stay as the game set them.
pub trait TransformPose: Pose {
    /// Moves `transform` to this pose.
    fn place(self, transform: &mut Transform);
}

/// A position in the plane of sprites.
impl TransformPose for [f32; 2] {
    fn place(self, transform: &mut Transform) {
        [transform.translation.x, transform.translation.y] = self;
    }
}

impl TransformPose for [f32; 3] {
    fn place(self, transform: &mut Transform) {
        transform.translation = self.into();
    }
}

/// A sprite that turns.
impl TransformPose for ([f32; 2], Angle) {
    fn place(self, transform: &mut Transform) {
        self.0.place(transform);
        turn(transform, |transform| transform.rotate_z(self.1.0));
    }
}

/// A body that turns about the vertical axis, which is Bevy's y.
impl TransformPose for ([f32; 3], Angle) {
    fn place(self, transform: &mut Transform) {
        self.0.place(transform);
        turn(transform, |transform| transform.rotate_y(self.1.0));
    }
}

impl TransformPose for Placed {
    fn place(self, transform: &mut Transform) {
        (self.at.to_array(), self.angle).place(transform);
    }
}

fn turn(transform: &mut Transform, turn: impl FnOnce(&mut Transform)) {
    transform.rotation = Transform::IDENTITY.rotation;
    turn(transform);
}

#[expect(
    clippy::type_complexity,
    reason = "a query names what it reads and writes"
)]
pub(crate) fn move_transforms<S: Simulation, V: Show<S, Pose: TransformPose>>(
    mut moved: Query<(&Drawn<S, V>, &mut Transform), Changed<Drawn<S, V>>>,
) {
    for (drawn, mut transform) in &mut moved {
        drawn.pose.place(&mut transform);
    }
}
