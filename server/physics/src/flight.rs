//! Flights of thrown rigid bodies.
//!
//! A lockstep simulation must not step a physics engine itself. So the game asks a query ("where do these fly?"), the
//! server throws copies of the bodies here, and the *paths* enter the game as one outcome (Law: One door); every
//! machine then only plays back integers.
//!
//! ```text
//!   bodies at tick t ──▶ Flights::run ──▶ tracks: sorted by id, a sample every m ticks, whole 64ths of a unit
//!   (place, velocity)    (a world that lives for one call)          │
//!        ▲                                                          │
//!        └────────── the step moves them along, tick for tick ◀─────┘
//! ```
//!
//! The view is from above: no gravity, a drag that slows moving bodies, bounces off walls and other bodies.
//!
//! Invariants:
//! - A track depends only on the walls, the bodies and the sampling; never on the order of the bodies, nor on earlier
//!   runs: no engine state outlives a call.
//! - A body that begins outside all fixed shapes overlaps none of them at any sample (by more than a 32nd of a unit, in
//!   the narrowest corner), and never passes through them.
//! - Bounded: [`BODIES_MAX`], [`TICKS_MAX`], [`SPEED_MAX`], [`REACH`]. A body is tested only against nearby shapes, so
//!   the cost of a sample does not grow with the number of walls, except for the search for nearby ones.

use std::fmt::Debug;

use glam::Vec2;
use rapier2d::dynamics::{LockedAxes, RigidBodyBuilder, RigidBodyHandle};
use rapier2d::geometry::ColliderBuilder;
use rapier2d::math::Pose;
use rapier2d::pipeline::PhysicsWorld;

use super::answer::{Layers, STEPS_PER_UNIT};
use super::scene::{Scene, Solid};
use super::shape::{Fault, Shape};

mod way_out;

pub use super::bounds::{REACH, SPEED_MAX};
use way_out::free_of;

/// The maximum number of bodies in one run, including fixed ones.
pub const BODIES_MAX: usize = 64;
/// The maximum number of ticks in one run: four seconds at 60 Hz.
pub const TICKS_MAX: u32 = 240;

const TICKS_PER_SECOND: f32 = 60.0;
/// The speed below which a body counts as lying still, in units or radians per second.
const REST_SPEED: f32 = 0.05;
const TURN_STEPS: f32 = 256.0;
/// The distance at which contacts are predicted, in units: about the distance moved in a tick. Otherwise fast bodies
/// would sink in before they bounce.
const FORESIGHT: f32 = 0.5;

/// The reason why a wall or a run was rejected.
#[derive(Clone, Copy, Debug, PartialEq, thiserror::Error)]
#[non_exhaustive]
pub enum FlightError<Id: Debug> {
    /// A wall is invalid. It was not added.
    #[error("wall number {index} of the room: {fault}")]
    Wall {
        /// The number of walls added before it.
        index: usize,
        /// The error.
        fault: Fault,
    },
    /// A body is invalid. No body was moved.
    #[error("body {id:?}: {fault}; look at the step that last changed it")]
    Body {
        /// The body's id.
        id: Id,
        /// The error.
        fault: Fault,
    },
    /// Two bodies have the same id. No body was moved.
    #[error("two bodies have the id {id:?}; give each body its own id")]
    Twice {
        /// The common id.
        id: Id,
    },
    /// A run exceeds the limits. No body was moved.
    #[error("{}", beyond_limits(*bodies, *samples, *every))]
    Course {
        /// The number of bodies.
        bodies: usize,
        /// The number of samples.
        samples: u32,
        /// The ticks between two samples.
        every: u32,
    },
}

fn beyond_limits(bodies: usize, samples: u32, every: u32) -> String {
    let ticks = u64::from(samples) * u64::from(every);
    if bodies > BODIES_MAX {
        format!("expected at most {BODIES_MAX} bodies, got {bodies}")
    } else if every == 0 {
        "expected samples at least 1 tick apart, got 0".to_owned()
    } else {
        format!(
            "expected at most {TICKS_MAX} ticks, got {ticks} ({samples} samples, one every {every} ticks)"
        )
    }
}

/// The material of all walls and bodies.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Material {
    /// The part of the speed that a bounce keeps, in [0, 1].
    pub bounce: f32,
    /// The friction of surfaces, from 0 (ice) to 1.
    pub friction: f32,
    /// The decay of speed, per second: without collisions a body moves `speed / drag` units, plus the distance of one
    /// tick.
    pub drag: f32,
}

impl Default for Material {
    /// Wood on a floor.
    fn default() -> Material {
        Material {
            bounce: 0.4,
            friction: 0.3,
            drag: 3.0,
        }
    }
}

/// The motion of a body.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Motion {
    /// The body stays in place, whatever hits it.
    Fixed,
    /// The body moves without turning. With a velocity of zero it lies still until another body pushes it.
    Slides {
        /// The velocity in units per second.
        velocity: Vec2,
    },
    /// The body moves and turns.
    Tumbles {
        /// The velocity in units per second.
        velocity: Vec2,
        /// The spin in radians per second, counter-clockwise.
        spin: f32,
    },
}

/// A body of one run.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Body<Id> {
    /// The body's stable name, for example the framework's `Key`; it orders the tracks.
    pub id: Id,
    /// The body's shape; the mass is the area. A moving body must not be a [`Shape::Segment`], which has no area.
    pub shape: Shape,
    /// The position of the shape's origin.
    pub at: Vec2,
    /// The body's angle in radians, counter-clockwise.
    pub angle: f32,
    /// The body's motion.
    pub motion: Motion,
}

/// The place of a body at one moment of its flight.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Sample {
    /// The position in 1/64 of a unit, rounded.
    pub at_64ths: [i32; 2],
    /// The angle in 1/256 of a full turn, counter-clockwise, rounded.
    pub turn_256ths: u8,
}

/// The flight of one body.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Track<Id> {
    /// The body's id.
    pub id: Id,
    /// Samples at a fixed interval of ticks, the first one interval after the start. After the last sample the body
    /// lies still; a body that never moved has no samples.
    pub samples: Vec<Sample>,
}

/// A room for flights: walls stay, and bodies are given for one run each.
///
/// ```
/// use glam::Vec2;
/// use twinstep_rapier2d::flight::{Body, Flights, Material, Motion};
/// use twinstep_rapier2d::Shape;
///
/// # fn main() -> Result<(), twinstep_rapier2d::flight::FlightError<u32>> {
/// let mut room = Flights::new(Material::default());
/// room.add_wall(Shape::Box { half: Vec2::new(0.5, 4.0) }, Vec2::new(3.0, 0.0), 0.0)?;
/// let barrel = |id, x, velocity| Body {
///     id,
///     shape: Shape::Ball { radius: 0.5 },
///     at: Vec2::new(x, 0.0),
///     angle: 0.0,
///     motion: Motion::Slides { velocity },
/// };
/// // 7 flies to the right and bounces off the wall; 4 lies far away, and no body reaches it.
/// let tracks = room.run(&[barrel(7, 0.0, Vec2::X * 15.0), barrel(4, -30.0, Vec2::ZERO)], 10, 6)?;
/// assert_eq!(tracks.iter().map(|track| track.id).collect::<Vec<_>>(), [4, 7]);
/// assert!(tracks[0].samples.is_empty());
/// let end = tracks[1].samples.last().expect("it flew").at_64ths[0] as f32 / 64.0;
/// assert!(end < 2.0);
/// # Ok(()) }
/// ```
///
/// Cost: see [`run`](Self::run).
#[derive(Clone, Debug)]
pub struct Flights {
    material: Material,
    walls: Vec<(Shape, Pose)>,
}

impl Flights {
    /// Creates a room without walls.
    ///
    /// # Panics
    /// If a number of the material is not finite, or negative.
    #[must_use]
    pub fn new(material: Material) -> Flights {
        let Material {
            bounce,
            friction,
            drag,
        } = material;
        assert!(
            [bounce, friction, drag]
                .iter()
                .all(|number| number.is_finite() && *number >= 0.0),
            "expected a material of finite numbers, none below 0, got {material:?}"
        );
        Flights {
            material,
            walls: Vec::new(),
        }
    }

    /// Adds a permanent wall. `at` and `angle` (radians, counter-clockwise) place the shape's origin. The edge of an
    /// arena must be made of walls too.
    ///
    /// # Errors
    /// [`FlightError::Wall`] if a number is not finite or out of range.
    pub fn add_wall<Id: Debug>(
        &mut self,
        shape: Shape,
        at: Vec2,
        angle: f32,
    ) -> Result<(), FlightError<Id>> {
        let pose = placed(shape, at, angle).map_err(|fault| FlightError::Wall {
            index: self.walls.len(),
            fault,
        })?;
        self.walls.push((shape, pose));
        Ok(())
    }

    /// Lets the bodies fly for `samples` × `every` ticks of 1/60 s, or until all lie still. Returns the track of every
    /// body that can move, sorted by id, with a sample every `every` ticks.
    ///
    /// Bodies that overlap at the start are pushed apart.
    ///
    /// Cost, measured with seven walls on a busy shared two-core machine: a second of flight (60 steps, 10 samples)
    /// takes 0.4 to 0.8 ms with 8 bodies, 0.8 to 1.3 ms with 24. Each run puts the walls into the engine once. It
    /// allocates.
    ///
    /// # Errors
    /// If a number is not finite or out of range; no body was moved then.
    pub fn run<Id: Ord + Copy + Debug>(
        &self,
        bodies: &[Body<Id>],
        samples: u32,
        every: u32,
    ) -> Result<Vec<Track<Id>>, FlightError<Id>> {
        let ticks = u64::from(samples) * u64::from(every);
        if bodies.len() > BODIES_MAX || ticks > u64::from(TICKS_MAX) || every == 0 {
            return Err(FlightError::Course {
                bodies: bodies.len(),
                samples,
                every,
            });
        }
        let mut room = self.room(bodies)?;
        for _ in 0..samples {
            // `any` ends the steps when all bodies lie still.
            let lie_still = (0..every).any(|_| room.step());
            room.sample();
            if lie_still {
                break;
            }
        }
        tracing::trace!(bodies = bodies.len(), tested = room.tested, "flown");
        Ok(room.tracks())
    }

    fn room<Id: Ord + Copy + Debug>(
        &self,
        bodies: &[Body<Id>],
    ) -> Result<Room<Id>, FlightError<Id>> {
        let mut world = PhysicsWorld::new();
        world.gravity = Vec2::ZERO;
        let engine = &mut world.integration_parameters;
        engine.dt = 1.0 / TICKS_PER_SECOND;
        engine.normalized_prediction_distance = FORESIGHT;
        let mut room = Room {
            world,
            still: Scene::default(),
            movers: Vec::with_capacity(bodies.len()),
            tested: 0,
        };
        let solid = |shape: &Shape| {
            ColliderBuilder::new(shape.shared())
                .restitution(self.material.bounce)
                .friction(self.material.friction)
        };
        let fix = |room: &mut Room<Id>, shape, pose| {
            let collider = solid(&shape).position(pose);
            room.world.insert_collider(collider, None);
            room.still.push(Solid {
                id: Some(room.still.len()),
                shape,
                pose,
                layers: Layers::ALL,
            });
        };
        for (shape, pose) in &self.walls {
            fix(&mut room, *shape, *pose);
        }
        // The order of insertion decides the order of the engine's sums, so it must follow the ids.
        let mut bodies: Vec<&Body<Id>> = bodies.iter().collect();
        bodies.sort_unstable_by_key(|body| body.id);
        if let Some(twins) = bodies.windows(2).find(|pair| pair[0].id == pair[1].id) {
            return Err(FlightError::Twice { id: twins[0].id });
        }
        for body in bodies {
            let pose = body
                .check()
                .map_err(|fault| FlightError::Body { id: body.id, fault })?;
            let shape = body.shape;
            let Some((velocity, spin)) = body.motion.speeds() else {
                fix(&mut room, shape, pose);
                continue;
            };
            let mut rigid = RigidBodyBuilder::dynamic()
                .pose(pose)
                .linvel(velocity)
                .angvel(spin.unwrap_or_default())
                .linear_damping(self.material.drag)
                .angular_damping(self.material.drag)
                .can_sleep(false);
            if spin.is_none() {
                rigid = rigid.locked_axes(LockedAxes::ROTATION_LOCKED);
            }
            let (handle, _) = room.world.insert(rigid, solid(&shape));
            room.movers.push(Mover {
                handle,
                shape,
                start: sample(&pose),
                track: Track {
                    id: body.id,
                    samples: Vec::new(),
                },
            });
        }
        room.still.settle();
        Ok(room)
    }
}

struct Room<Id> {
    world: PhysicsWorld,
    /// Fixed shapes, walls and bodies, each named by its number.
    still: Scene<usize>,
    movers: Vec<Mover<Id>>,
    /// The number of exact tests of a body against a fixed shape.
    tested: u64,
}

struct Mover<Id> {
    handle: RigidBodyHandle,
    shape: Shape,
    start: Sample,
    track: Track<Id>,
}

impl<Id> Room<Id> {
    /// Steps one tick. Returns `true` if all bodies lie still.
    fn step(&mut self) -> bool {
        self.world.step();
        self.movers.iter().all(|mover| {
            let body = &self.world.bodies[mover.handle];
            body.linvel().length() < REST_SPEED && body.angvel().abs() < REST_SPEED
        })
    }

    fn sample(&mut self) {
        for mover in &mut self.movers {
            let pose = self.world.bodies[mover.handle].position();
            let pose = free_of(&self.still, &mover.shape, *pose, &mut self.tested);
            mover.track.samples.push(sample(&pose));
        }
    }

    fn tracks(self) -> Vec<Track<Id>> {
        let trimmed = |mut mover: Mover<Id>| {
            let samples = &mut mover.track.samples;
            // Samples at the end that repeat the one before are dropped: the body lay still.
            while let Some(last) = samples.last() {
                let before = samples.iter().rev().nth(1).unwrap_or(&mover.start);
                if last != before {
                    break;
                }
                samples.pop();
            }
            mover.track
        };
        self.movers.into_iter().map(trimmed).collect()
    }
}

impl Motion {
    /// The velocity, and the spin if the body turns. Returns `None` if the body is fixed.
    fn speeds(self) -> Option<(Vec2, Option<f32>)> {
        match self {
            Motion::Fixed => None,
            Motion::Slides { velocity } => Some((velocity, None)),
            Motion::Tumbles { velocity, spin } => Some((velocity, Some(spin))),
        }
    }
}

impl<Id> Body<Id> {
    fn check(&self) -> Result<Pose, Fault> {
        let pose = placed(self.shape, self.at, self.angle)?;
        if let Some((velocity, spin)) = self.motion.speeds() {
            if matches!(self.shape, Shape::Segment { .. }) {
                return Err(Fault::Massless(self.shape));
            }
            let is_speed = |speed: f32| speed.is_finite() && speed <= SPEED_MAX;
            if !is_speed(velocity.length()) {
                return Err(Fault::Velocity(velocity));
            }
            if let Some(spin) = spin.filter(|spin| !is_speed(spin.abs())) {
                return Err(Fault::Spin(spin));
            }
        }
        Ok(pose)
    }
}

fn placed(shape: Shape, at: Vec2, angle: f32) -> Result<Pose, Fault> {
    let pose = shape.placed(at, angle)?;
    if at.abs().max_element() > REACH {
        return Err(Fault::Far(at));
    }
    Ok(pose)
}

fn sample(pose: &Pose) -> Sample {
    let at = (pose.translation * STEPS_PER_UNIT).round();
    let turns = pose.rotation.angle() / std::f32::consts::TAU;
    Sample {
        at_64ths: [at.x as i32, at.y as i32],
        turn_256ths: ((turns * TURN_STEPS).round() as i32).rem_euclid(TURN_STEPS as i32) as u8,
    }
}

#[cfg(test)]
mod tests;
