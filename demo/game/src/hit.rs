//! [`Bomb`] and [`BlastHit`]: what explodes, what it can hit, and how hard.

use arrayvec::ArrayVec;
use glam::Vec2;
use serde::{Deserialize, Serialize};
use twinstep_core::PlayerId;

use super::rules::Tuning;

#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub enum Bomb {
    Barrel(u8),
    Shell {
        owner: PlayerId,
        /// The shell's number among its owner's shots.
        n: u32,
    },
}

impl Bomb {
    #[must_use]
    pub fn radius(self, tuning: &Tuning) -> f32 {
        match self {
            Bomb::Barrel(_) => tuning.blast_radius,
            Bomb::Shell { .. } => tuning.shell_radius,
        }
    }

    #[must_use]
    pub fn damage(self, tuning: &Tuning) -> i16 {
        match self {
            Bomb::Barrel(_) => tuning.blast_damage,
            Bomb::Shell { .. } => tuning.shell_damage,
        }
    }
}

/// The maximum number of bodies that a blast hits, nearest first. This keeps an outcome within 256 B.
pub const HITS_MAX: usize = 48;

/// A body that a blast can hit. Small on the wire, and stable: a slot or number, never an index into a list that
/// shrinks.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
pub enum Victim {
    Player(PlayerId),
    Enemy(u16),
    Barrel(u8),
    Crate(u8),
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
pub struct BlastHit {
    /// The distance from the middle of the blast to the nearest point of the body, in whole 8ths of a unit.
    pub distance_8ths: u8,
    pub body: Victim,
}

impl BlastHit {
    /// Creates a hit from a distance in 64ths of a unit, as returned by the physics mirror.
    #[must_use]
    pub fn new(body: Victim, distance_64ths: u32) -> BlastHit {
        BlastHit {
            distance_8ths: u8::try_from(distance_64ths / 8).unwrap_or(u8::MAX),
            body,
        }
    }

    /// Returns the damage: full in the middle of the blast, half at its edge. Uses integers only.
    #[must_use]
    pub fn damage(&self, bomb: Bomb, tuning: &Tuning) -> i16 {
        let edge_8ths = ((bomb.radius(tuning) * 8.0) as i32).max(1);
        let distance_8ths = i32::from(self.distance_8ths).min(edge_8ths);
        let full = i32::from(bomb.damage(tuning));
        (full - full * distance_8ths / (2 * edge_8ths)) as i16
    }

    /// Returns the nearest [`HITS_MAX`] of `all`, nearest first. Their order in `all` has no effect.
    #[must_use]
    pub fn nearest(all: impl IntoIterator<Item = BlastHit>) -> BlastHits {
        let mut hits = BlastHits::new();
        for hit in all {
            // Sorted insertion into a bounded list: no allocation, however many bodies there are.
            let place = hits.partition_point(|other| *other < hit);
            if place == HITS_MAX {
                continue;
            }
            if hits.is_full() {
                hits.pop();
            }
            hits.insert(place, hit);
        }
        hits
    }
}

/// The hits of a blast: nearest first; at equal distances, in the order of `Victim`.
pub type BlastHits = ArrayVec<BlastHit, HITS_MAX>;

#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Form {
    Disc(f32),
    Square(f32),
}

impl Form {
    /// Returns the distance from a point to the nearest point of a body at `at`; 0 inside.
    pub(crate) fn distance(self, at: Vec2, point: Vec2) -> f32 {
        match self {
            Form::Disc(radius) => (at.distance(point) - radius).max(0.0),
            Form::Square(half) => ((point - at).abs() - half).max(Vec2::ZERO).length(),
        }
    }

    /// Returns the middle, and the two outermost points as seen from `eye`, which lies outside.
    pub(crate) fn outline(self, at: Vec2, eye: Vec2) -> [Vec2; 3] {
        match self {
            Form::Disc(radius) => {
                // Where the two tangents from the eye touch the circle.
                let toward = eye - at;
                let distance = toward.length();
                let cos = (radius / distance).min(1.0);
                let sin = (1.0 - cos * cos).sqrt();
                let rim = toward / distance * radius;
                let along = at + rim * cos;
                [at, along + rim.perp() * sin, along - rim.perp() * sin]
            }
            Form::Square(half) => {
                let corner = |x: f32, y: f32| at + Vec2::new(x, y) * half;
                let first = corner(1.0, 1.0);
                let others = [corner(-1.0, 1.0), corner(-1.0, -1.0), corner(1.0, -1.0)];
                let is_left = |of: Vec2, point: Vec2| (of - eye).perp_dot(point - eye) > 0.0;
                let (mut left, mut right) = (first, first);
                for next in others {
                    left = if is_left(left, next) { next } else { left };
                    right = if is_left(next, right) { next } else { right };
                }
                [at, left, right]
            }
        }
    }
}
