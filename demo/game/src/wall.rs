//! Walls: the effect of a solid box on a moving disc, a bullet and a line of sight.
//!
//! A crate on the ground is also a solid box, so this file handles all solid things.

use glam::Vec2;
use serde::Serialize;

#[derive(Clone, Copy, Debug, PartialEq, Serialize)]
pub struct Wall {
    pub center: Vec2,
    /// Half of the width and height.
    pub half: Vec2,
}

impl Wall {
    /// Returns the position of a disc after moving it out of the wall along the shortest path.
    #[must_use]
    pub fn push_out(&self, at: Vec2, radius: f32) -> Vec2 {
        let offset = at - self.center;
        let nearest = offset.clamp(-self.half, self.half);
        let gap = offset - nearest;
        let distance = gap.length();
        if distance >= radius {
            at
        } else if distance > 0.0 {
            at + gap * (radius / distance - 1.0)
        } else {
            // The middle of the disc is inside: out through the nearest side.
            let room = self.half - offset.abs();
            let side = Vec2::new(sign(offset.x), sign(offset.y));
            if room.x < room.y {
                at + Vec2::new(side.x * (room.x + radius), 0.0)
            } else {
                at + Vec2::new(0.0, side.y * (room.y + radius))
            }
        }
    }

    /// Returns the part of `motion`, in [0, 1], after which a point from `from` meets the wall. Returns `None` if it
    /// misses the wall.
    #[must_use]
    pub fn meets(&self, from: Vec2, motion: Vec2) -> Option<f32> {
        let (enter, leave) = crossing(from - self.center, motion, self.half)?;
        // Not `max`: of +0 and −0 it may return either, depending on the machine.
        let enter = if enter > 0.0 { enter } else { 0.0 };
        (leave >= 0.0 && enter <= 1.0).then_some(enter)
    }
}

/// Returns the parts of `motion` after which a point from `from` enters and leaves a box around the origin, possibly
/// outside [0, 1] (the slab method: T. Kay and J. Kajiya, "Ray tracing complex scenes", 1986). `None` if it misses.
pub(super) fn crossing(from: Vec2, motion: Vec2, half: Vec2) -> Option<(f32, f32)> {
    let (mut enter, mut leave) = (f32::NEG_INFINITY, f32::INFINITY);
    for (from, motion, half) in [(from.x, motion.x, half.x), (from.y, motion.y, half.y)] {
        if motion == 0.0 {
            // 0 / 0 would be NaN. Without motion along this axis, the point is inside the slab all the time or never.
            if from.abs() > half {
                return None;
            }
            continue;
        }
        let (a, b) = ((-half - from) / motion, (half - from) / motion);
        enter = enter.max(a.min(b));
        leave = leave.min(a.max(b));
    }
    (enter <= leave).then_some((enter, leave))
}

fn sign(x: f32) -> f32 {
    if x < 0.0 { -1.0 } else { 1.0 }
}

#[cfg(test)]
mod tests {
    use super::*;

    const WALL: Wall = Wall {
        center: Vec2::new(2.0, 0.0),
        half: Vec2::new(1.0, 3.0),
    };

    #[test]
    fn a_disc_is_pushed_out_along_the_shortest_path() {
        assert_eq!(
            WALL.push_out(Vec2::new(0.75, 1.0), 0.5),
            Vec2::new(0.5, 1.0)
        );
        assert_eq!(
            WALL.push_out(Vec2::new(1.25, 1.0), 0.5),
            Vec2::new(0.5, 1.0)
        );
        assert_eq!(WALL.push_out(Vec2::new(2.0, 2.5), 0.5), Vec2::new(2.0, 3.5));
        assert_eq!(WALL.push_out(Vec2::new(0.5, 1.0), 0.5), Vec2::new(0.5, 1.0));
        let corner = WALL.push_out(Vec2::new(0.9, 3.1), 0.5);
        assert!((corner.distance(Vec2::new(1.0, 3.0)) - 0.5).abs() < 1e-6);
    }

    #[test]
    fn a_motion_meets_a_wall_only_where_it_enters() {
        assert_eq!(WALL.meets(Vec2::ZERO, Vec2::new(4.0, 0.0)), Some(0.25));
        assert_eq!(
            WALL.meets(Vec2::new(2.0, 0.0), Vec2::X),
            Some(0.0),
            "from the inside"
        );
        assert_eq!(
            WALL.meets(Vec2::ZERO, Vec2::new(0.5, 0.0)),
            None,
            "too short"
        );
        assert_eq!(
            WALL.meets(Vec2::ZERO, Vec2::new(-4.0, 0.0)),
            None,
            "away from it"
        );
        assert_eq!(
            WALL.meets(Vec2::new(0.0, 4.0), Vec2::new(4.0, 0.0)),
            None,
            "past it"
        );
        assert_eq!(WALL.meets(Vec2::ZERO, Vec2::ZERO), None, "no motion at all");
    }
}
