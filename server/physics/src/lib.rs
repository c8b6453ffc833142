//! The physics mirror: area queries, rays and shape casts over positions that the lockstep simulation owns.
//!
//! A simulation must not ask a physics engine that keeps its own state, because copies of the world would not contain
//! that state. So the simulation asks a *query*. The server's resolver copies the relevant positions into a [`Mirror`]
//! and queries it, and the answer enters the game as an outcome (Law: One door).
//!
//! ```text
//!   world at tick t ──put──▶ Mirror ──area, ray, cast──▶ hits: sorted by stable id, in whole 64ths of a unit
//!        ▲                (its contents are not saved)                         │
//!        └──────────── outcome in the frame of t + 1 ◀─────────────────────────┘
//! ```
//!
//! Invariants:
//! - An answer depends only on the walls, the last fill and the query; never on the order of `put`, nor on earlier
//!   contents of the mirror. A server that resumes from its journal can fill a new mirror and continue.
//! - The answers are `Eq` and `Ord`: integers and ids, no floats.
//! - A NaN never enters the mirror: [`MirrorError`] names its source.
//!
//! This folder is the only code that uses rapier2d. The mirror uses the engine's shapes, casts and bounding volume
//! tree, but no bodies. [`flight`] is for bodies that fly, and [`bodies`] for bodies that a game steps in its own
//! state.
//!
//! ```
//! use glam::Vec2;
//! use twinstep_rapier2d::{Layers, Mirror, Shape};
//!
//! const WALLS: Layers = Layers::bit(0);
//! const ENEMIES: Layers = Layers::bit(1);
//!
//! # fn main() -> Result<(), twinstep_rapier2d::MirrorError<u32>> {
//! // Once, from the level:
//! let mut mirror = Mirror::new();
//! mirror.add_wall(Shape::Box { half: Vec2::new(0.5, 4.0) }, Vec2::new(3.0, 0.0), 0.0, WALLS)?;
//!
//! // For each query: all bodies that can be hit, from the world.
//! let enemies = [(7, Vec2::new(6.0, 0.0)), (4, Vec2::new(-2.0, 1.0)), (9, Vec2::new(40.0, 0.0))];
//! let mut fill = mirror.refill();
//! for (id, at) in enemies {
//!     fill.put(id, Shape::Ball { radius: 0.5 }, at, 0.0, ENEMIES)?;
//! }
//!
//! // A blast at the origin: 7 is behind the wall, 9 is too far away.
//! let ids: Vec<u32> = mirror.area_visible(Vec2::ZERO, 8.0, ENEMIES, WALLS)?.iter().map(|hit| hit.id).collect();
//! assert_eq!(ids, [4]);
//! // A shot to the right ends at the wall, 2.5 units away.
//! let shot = mirror.ray(Vec2::ZERO, Vec2::X, 20.0, ENEMIES | WALLS)?.expect("the wall is in the way");
//! assert_eq!((shot.id, shot.distance_64ths), (None, 160));
//! # Ok(()) }
//! ```
//!
//! Cost: see [`Mirror`].

mod answer;
pub mod bodies;
mod bounds;
pub mod flight;
mod scene;
mod shape;
mod sweep;
#[cfg(test)]
mod tests;

use std::cell::Cell;
use std::fmt::Debug;
use std::ops::ControlFlow;

use glam::Vec2;

pub use answer::{Filter, Hit, Impact, Layers, STEPS_PER_UNIT};
pub use bounds::COORDINATE_MAX;
pub use shape::{Fault, Shape};

use answer::quantise;
use scene::{Scene, Solid};
use sweep::Sweep;

/// The reason why a mirror rejected a wall, a body or a query.
#[derive(Clone, Copy, Debug, PartialEq, thiserror::Error)]
#[non_exhaustive]
#[expect(missing_docs, reason = "the messages name the fields")]
pub enum MirrorError<Id: Debug> {
    /// A body of the fill is invalid. It was not added.
    #[error("body {id:?}: {fault}; look at the step that last changed it")]
    Body { id: Id, fault: Fault },
    /// A wall is invalid. It was not added.
    #[error("wall number {index} of the level: {fault}")]
    Wall {
        /// The number of walls added before it.
        index: usize,
        fault: Fault,
    },
    #[error("physics query: {fault}; look at where the query was asked")]
    Query { fault: Fault },
}

/// Permanent walls, and bodies that are filled in again for each query.
///
/// `Id` is the stable name of an entity, for example the framework's `Key`; answers are ordered by it. An id may be put
/// several times: its shapes then form one body, which is hit once, at its nearest point.
///
/// Cost, measured in a release build on one core of a shared two-core machine, with 300 balls and 40 walls on 100 × 100
/// units, all balls moved between fills: 39 µs a refill (most of it the first query after it, which builds the tree;
/// 330 µs for 2,000), 0.6 µs an area with 7 hits, 3.2 µs the same with occlusion, 1.1 µs a ray of 60 units, 1.1 µs a
/// cast over 40. Buffers are kept: once they have seen their largest size, neither refills nor queries allocate.
pub struct Mirror<Id> {
    walls: Scene<Id>,
    bodies: Scene<Id>,
    hits: Vec<Hit<Id>>,
    impacts: Vec<Impact<Id>>,
}

impl<Id> Default for Mirror<Id> {
    fn default() -> Mirror<Id> {
        Mirror {
            walls: Scene::default(),
            bodies: Scene::default(),
            hits: Vec::new(),
            impacts: Vec::new(),
        }
    }
}

impl<Id: Ord + Copy + Debug> Mirror<Id> {
    /// Creates an empty mirror.
    #[must_use]
    pub fn new() -> Mirror<Id> {
        Mirror::default()
    }

    /// Adds a wall, which has no id and stays across [`refill`](Self::refill)s. `at` and `angle` (radians,
    /// counter-clockwise) place the shape's origin.
    ///
    /// An obstacle that can move or be destroyed must be a body, not a wall.
    ///
    /// # Errors
    /// [`MirrorError::Wall`] if a number is not finite or out of range.
    pub fn add_wall(
        &mut self,
        shape: Shape,
        at: Vec2,
        angle: f32,
        layers: Layers,
    ) -> Result<(), MirrorError<Id>> {
        let pose = shape.placed(at, angle).map_err(|fault| MirrorError::Wall {
            index: self.walls.len(),
            fault,
        })?;
        self.walls.push(Solid {
            id: None,
            shape,
            pose,
            layers,
        });
        Ok(())
    }

    /// Removes all bodies, and accepts new ones. Walls stay.
    pub fn refill(&mut self) -> Fill<'_, Id> {
        self.bodies.clear();
        Fill {
            bodies: &mut self.bodies,
        }
    }

    /// Returns all bodies that overlap the circle, sorted by id, with distances from `center`. Walls are left out.
    ///
    /// # Errors
    /// [`MirrorError::Query`] if `center` or `radius` is not finite or out of range.
    pub fn area(
        &mut self,
        center: Vec2,
        radius: f32,
        filter: impl Into<Filter<Id>>,
    ) -> Result<&[Hit<Id>], MirrorError<Id>> {
        self.area_visible(center, radius, filter, Layers::NONE)
    }

    /// Returns the bodies of [`area`](Self::area) that are visible. Three rays from `center` are tested for each body:
    /// to its middle, and to its two outermost points as seen from `center`. The body is visible if at least one of the
    /// rays meets no wall or body in the layers `blockers`.
    ///
    /// A body never hides itself, a body that contains `center` is always visible, and the body excepted by the filter
    /// does not hide others. If `center` is inside another blocker, no other body is visible.
    ///
    /// # Errors
    /// The errors of [`area`](Self::area).
    pub fn area_visible(
        &mut self,
        center: Vec2,
        radius: f32,
        filter: impl Into<Filter<Id>>,
        blockers: Layers,
    ) -> Result<&[Hit<Id>], MirrorError<Id>> {
        shape::check_position(center)
            .and_then(|()| shape::check_length(radius))
            .map_err(query)?;
        let filter = filter.into();
        self.settle();
        self.hits.clear();
        let (hits, walls, bodies) = (&mut self.hits, &self.walls, &self.bodies);
        let reaches =
            |low: Vec2, high: Vec2| (low - center).max(center - high).max_element() <= radius;
        bodies.visit(reaches, |solid| {
            if let Some(id) = solid.id
                && filter.admits(solid.id, solid.layers)
                && let distance = solid.distance(center)
                && distance <= radius
                && (distance == 0.0
                    || blockers == Layers::NONE
                    || solid.outline(center).into_iter().any(|point| {
                        let hidden = Filter {
                            layers: blockers,
                            ..filter
                        };
                        [walls, bodies]
                            .into_iter()
                            .all(|scene| is_clear(scene, center, point, hidden, id))
                    }))
            {
                hits.push(Hit {
                    id,
                    distance_64ths: quantise(distance),
                });
            }
            ControlFlow::Continue(())
        });
        self.hits.sort_unstable();
        // Sorted by id and then distance, so that the nearest shape of each body is kept.
        self.hits.dedup_by_key(|hit| hit.id);
        Ok(&self.hits)
    }

    /// Returns the first wall or body that a ray meets within `length`; `direction` need not be of length 1.
    ///
    /// Impacts at the same number of 64ths are ordered walls first, then by id. A ray from inside a shape hits at
    /// distance 0.
    ///
    /// # Errors
    /// [`MirrorError::Query`] if a number is not finite or out of range, or if `direction` is zero.
    pub fn ray(
        &mut self,
        origin: Vec2,
        direction: Vec2,
        length: f32,
        filter: impl Into<Filter<Id>>,
    ) -> Result<Option<Impact<Id>>, MirrorError<Id>> {
        let sweep = Sweep::ray(origin, direction, length).map_err(query)?;
        Ok(self.first(&sweep, filter.into()))
    }

    /// Returns all walls and bodies that a ray meets within `length`, nearest first; ties are ordered as in
    /// [`ray`](Self::ray), which returns the first of these. A body appears once; each wall appears on its own.
    ///
    /// # Errors
    /// The errors of [`ray`](Self::ray).
    pub fn ray_all(
        &mut self,
        origin: Vec2,
        direction: Vec2,
        length: f32,
        filter: impl Into<Filter<Id>>,
    ) -> Result<&[Impact<Id>], MirrorError<Id>> {
        let sweep = Sweep::ray(origin, direction, length).map_err(query)?;
        let filter = filter.into();
        self.settle();
        self.impacts.clear();
        let impacts = &mut self.impacts;
        for scene in [&self.walls, &self.bodies] {
            let reaches = |low, high| sweep.reaches(low, high, length);
            scene.visit(reaches, |solid| {
                if filter.admits(solid.id, solid.layers)
                    && let Some((distance, normal)) = sweep.strike(solid, length)
                {
                    impacts.push(Impact::new(solid.id, distance, normal));
                }
                ControlFlow::Continue(())
            });
        }
        impacts.sort_unstable_by_key(|impact| (impact.id, *impact));
        // Keeps the nearest impact of each body, and all impacts of walls, which have no id.
        impacts.dedup_by(|later, kept| later.id.is_some() && later.id == kept.id);
        impacts.sort_unstable();
        Ok(&self.impacts)
    }

    /// Returns the first wall or body that `shape` touches when it slides from `from` by `motion` without turning; the
    /// distance is the length of the slide. Ties are ordered as in [`ray`](Self::ray).
    ///
    /// A shape that touches at its start hits at distance 0; with a zero motion only contacts at the start are found.
    ///
    /// # Errors
    /// [`MirrorError::Query`] if a number is not finite or out of range.
    pub fn cast(
        &mut self,
        shape: Shape,
        from: Vec2,
        angle: f32,
        motion: Vec2,
        filter: impl Into<Filter<Id>>,
    ) -> Result<Option<Impact<Id>>, MirrorError<Id>> {
        let sweep = Sweep::shape(shape, from, angle, motion).map_err(query)?;
        Ok(self.first(&sweep, filter.into()))
    }

    /// Returns the first impact of the sweep. Keeps candidates up to two 64ths farther than the nearest one so far,
    /// because rounding may make them equal, and then their ids decide.
    fn first(&mut self, sweep: &Sweep, filter: Filter<Id>) -> Option<Impact<Id>> {
        self.settle();
        let mut first: Option<Impact<Id>> = None;
        let limit = Cell::new(sweep.length());
        for scene in [&self.walls, &self.bodies] {
            let reaches = |low, high| sweep.reaches(low, high, limit.get());
            scene.visit(reaches, |solid| {
                if filter.admits(solid.id, solid.layers)
                    && let Some((distance, normal)) = sweep.strike(solid, limit.get())
                {
                    let impact = Impact::new(solid.id, distance, normal);
                    first = Some(first.map_or(impact, |other| other.min(impact)));
                    limit.set(limit.get().min(distance + 2.0 / STEPS_PER_UNIT));
                }
                ControlFlow::Continue(())
            });
        }
        first
    }

    fn settle(&mut self) {
        self.walls.settle();
        self.bodies.settle();
    }
}

/// Accepts the bodies of one fill; returned by [`Mirror::refill`].
pub struct Fill<'a, Id> {
    bodies: &'a mut Scene<Id>,
}

impl<Id: Ord + Copy + Debug> Fill<'_, Id> {
    /// Adds a body, or another shape of a body. `at` and `angle` (radians, counter-clockwise) place the shape's origin.
    /// The order of the calls never affects an answer.
    ///
    /// # Errors
    /// [`MirrorError::Body`] if a number is not finite or out of range. The bodies that were put before stay.
    pub fn put(
        &mut self,
        id: Id,
        shape: Shape,
        at: Vec2,
        angle: f32,
        layers: Layers,
    ) -> Result<(), MirrorError<Id>> {
        let pose = shape
            .placed(at, angle)
            .map_err(|fault| MirrorError::Body { id, fault })?;
        self.bodies.push(Solid {
            id: Some(id),
            shape,
            pose,
            layers,
        });
        Ok(())
    }
}

/// Returns `true` if no blocker except `target` is between the two points.
fn is_clear<Id: Ord + Copy>(
    scene: &Scene<Id>,
    from: Vec2,
    to: Vec2,
    blockers: Filter<Id>,
    target: Id,
) -> bool {
    let length = from.distance(to);
    let Ok(sweep) = Sweep::ray(from, to - from, length) else {
        return true; // the points are the same
    };
    let mut clear = true;
    let reaches = |low, high| sweep.reaches(low, high, length);
    scene.visit(reaches, |solid| {
        if solid.id != Some(target)
            && blockers.admits(solid.id, solid.layers)
            && sweep
                .strike(solid, length)
                .is_some_and(|(distance, _)| distance < length)
        {
            clear = false;
            return ControlFlow::Break(());
        }
        ControlFlow::Continue(())
    });
    clear
}

fn query<Id: Debug>(fault: Fault) -> MirrorError<Id> {
    MirrorError::Query { fault }
}
