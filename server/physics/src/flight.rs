//! Flights of thrown, falling or steered rigid bodies.
//!
//! The game asks a query ("where do these fly?"), the server throws copies of the bodies here, and their *paths* enter
//! the game as one outcome (Law: One door). Every machine then only plays back integers. Bodies that must react to a
//! player immediately are stepped in the state instead: see [`bodies`](super::bodies).
//!
//! ```text
//!   bodies at tick t ──▶ Flights::run ──▶ tracks: sorted by id, a sample every m ticks, whole 64ths of a unit
//!   (place, velocity)    (a world that lives for one call)          │
//!        ▲                                                          │
//!        └────────── the step moves them along, tick for tick ◀─────┘
//! ```
//!
//! Bodies bounce off walls and each other, with friction, and are slowed by drag. A view from above has no gravity; for
//! a side view set [`Flights::gravity`].
//!
//! For a body that players steer, the game asks again every few ticks (a window). Each run starts at the position,
//! velocity and spin of a [`Sample`] of the previous run, with a new [`push`](Body::push). So the paths join without a
//! jump, and each path replaces the rest of the previous one. The guide's chapter 3 has such a game.
//!
//! Invariants:
//! - A track depends only on the room, the bodies and the sampling; never on the order of the bodies, nor on earlier
//!   runs. No engine state outlives a call.
//! - A body that starts outside all fixed shapes overlaps none of them at any sample (by more than a 32nd of a unit, in
//!   the narrowest corner), and never passes through them, unless it is driven.
//! - Bounded: [`BODY_TICKS_MAX`], [`SPEED_MAX`], [`REACH`]. A body is tested only against nearby shapes, so the cost of
//!   a sample does not grow with the number of walls, except for the search for nearby shapes.

use std::fmt::Debug;
use std::time::Duration;

use glam::Vec2;
use rapier2d::dynamics::{LockedAxes, RigidBody, RigidBodyBuilder, RigidBodyHandle};
use rapier2d::geometry::ColliderBuilder;
use rapier2d::math::Pose;
use rapier2d::pipeline::PhysicsWorld;
use serde::{Deserialize, Serialize};

use super::answer::{Layers, STEPS_PER_UNIT};
use super::scene::{Scene, Solid};
use super::shape::{Fault, Shape};

mod near;
mod way_out;

use super::bounds::BODIES_MAX;
pub use super::bounds::{PUSH_MAX, REACH, SPEED_MAX};
use near::Walls;
use way_out::free_of;

/// The maximum work of one run: the number of bodies, including fixed ones, times the number of ticks of 1/60 s. It
/// allows 256 bodies for four seconds. A longer tick counts several times. Such a run takes about 60 ms, so use
/// [`Decision::Later`] long before this limit.
///
/// [`Decision::Later`]: https://docs.rs/twinstep-server/latest/twinstep_server/enum.Decision.html
pub const BODY_TICKS_MAX: u64 = 61_440;

// The engine's longest step, plus 1 % for rounding. A longer tick takes several steps.
const STEP_NANOS_MAX: u64 = 1_010_000_000 / 60;
const TICK: Duration = Duration::from_nanos(16_666_667);
/// The speed below which a body counts as resting, in units or radians per second.
const REST_SPEED: f32 = 0.05;
const TURN_STEPS: f32 = 65_536.0;
/// The distance at which contacts are predicted, in units: about the distance moved in a tick. With a smaller one, fast
/// bodies would sink in before they bounce.
const FORESIGHT: f32 = 0.5;

/// The reason why a wall, a body or a run was rejected.
#[derive(Clone, Copy, Debug, PartialEq, thiserror::Error)]
#[non_exhaustive]
#[expect(missing_docs, reason = "the messages explain the fields")]
pub enum FlightError<Id: Debug> {
    /// A wall is invalid. It was not added.
    #[error("wall number {index} of the room: {fault}")]
    Wall { index: usize, fault: Fault },
    /// A body is invalid. No body was moved.
    #[error("body {id:?}: {fault}; look at the step that last changed it")]
    Body { id: Id, fault: Fault },
    /// No body has this id, so none was changed.
    #[error("no body has the id {id:?}")]
    Unknown { id: Id },
    /// There are [`BODIES_MAX`] bodies. The body was not added.
    #[error("body {id:?}: the limit of {BODIES_MAX} bodies is reached")]
    Full { id: Id },
    /// Two bodies have the same id. No body was moved.
    #[error("two bodies have the id {id:?}; give each body its own id")]
    Twice { id: Id },
    /// A run exceeds the limits. No body was moved.
    #[error("{}", beyond_limits(*bodies, *samples, *every))]
    Course {
        bodies: usize,
        samples: u32,
        every: u32,
    },
}

fn beyond_limits(bodies: usize, samples: u32, every: u32) -> String {
    if every == 0 {
        return "expected samples at least 1 tick apart, got 0".to_owned();
    }
    format!(
        "expected at most {BODY_TICKS_MAX} ticks of 1/60 s of all bodies together, got {bodies} bodies with {samples} \
         samples each, one every {every} ticks"
    )
}

/// The material of all walls and bodies.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
pub struct Material {
    /// The fraction of the speed that a bounce keeps, in [0, 1].
    pub bounce: f32,
    /// The friction of surfaces, from 0 (ice) to 1.
    pub friction: f32,
    /// The decay of speed, per second: without collisions a body moves `speed / drag` units, plus one tick's distance.
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
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
pub enum Motion {
    /// The body stays in place, even if other bodies hit it.
    Fixed,
    /// The body moves at its velocity, even through walls, and pushes others. For lifts and scripted characters.
    Driven {
        /// The velocity in units per second.
        velocity: Vec2,
    },
    /// The body moves without turning. With a velocity of zero it lies still until a force or another body moves it.
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

/// A rigid body, for one run or for [`Bodies`](super::bodies::Bodies).
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
pub struct Body<Id> {
    /// The body's stable id, such as the framework's `Key`. Tracks are sorted by it.
    pub id: Id,
    /// The body's shape; the mass is the area. A moving body must not be a [`Shape::Segment`], which has no area.
    pub shape: Shape,
    /// The position of the shape's origin.
    pub at: Vec2,
    /// The body's angle in radians, counter-clockwise.
    pub angle: f32,
    /// The body's motion.
    pub motion: Motion,
    /// The acceleration of the body's center during the whole run, in units per second squared, in addition to gravity,
    /// such as from a motor, a jet or the wind. Ignored for a fixed or driven body.
    pub push: Vec2,
    /// The angular acceleration during the whole run, in radians per second squared, such as from a wheel's motor.
    /// Ignored unless the body tumbles.
    pub twist: f32,
}

/// The position and speed of a body at one moment of its flight. A run can start at a sample of another run.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Sample {
    /// The position in 1/64 of a unit, rounded.
    pub at_64ths: [i32; 2],
    /// The angle in 1/65,536 of a full turn, counter-clockwise, rounded.
    pub turn_65536ths: u16,
    /// The velocity in 1/64 of a unit per second, rounded.
    pub velocity_64ths: [i16; 2],
    /// The spin in 1/64 of a radian per second, counter-clockwise, rounded.
    pub spin_64ths: i16,
}

/// The flight of one body.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Track<Id> {
    /// The body's id.
    pub id: Id,
    /// Samples at a fixed interval of ticks, the first one interval after the start. A body has no samples after it has
    /// come to rest for the remainder of the run.
    pub samples: Vec<Sample>,
}

/// A room with fixed walls, in which bodies fly. The bodies are passed to each [`run`](Self::run).
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
///     push: Vec2::ZERO,
///     twist: 0.0,
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
#[derive(Clone, Debug, Serialize)]
pub struct Flights {
    material: Material,
    gravity: Vec2,
    tick: Duration,
    walls: Walls,
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
            gravity: Vec2::ZERO,
            tick: TICK,
            walls: Walls::default(),
        }
    }

    /// Sets the gravity in units per second squared, for side views: `Vec2::new(0.0, -9.81)` if a unit is a metre and y
    /// points up. The default is no gravity. Drag also slows falls, so use a [`Material`] with little drag.
    ///
    /// # Panics
    /// If `gravity` is not finite, or longer than [`PUSH_MAX`].
    #[must_use]
    pub fn gravity(mut self, gravity: Vec2) -> Flights {
        assert!(
            gravity.length() <= PUSH_MAX,
            "expected a gravity of at most {PUSH_MAX} units per second squared, got {gravity}"
        );
        self.gravity = gravity;
        self
    }

    /// Sets the length of a tick. The default is 1/60 s. A tick of more than 1/60 s takes several steps of the engine.
    ///
    /// # Panics
    /// If `tick` is zero or longer than a second.
    #[must_use]
    pub fn tick_length(mut self, tick: Duration) -> Flights {
        assert!(
            !tick.is_zero() && tick <= Duration::from_secs(1),
            "expected ticks of at most a second, got {tick:?}"
        );
        self.tick = tick;
        self
    }

    /// Adds a permanent wall. `at` and `angle` (radians, counter-clockwise) place the shape's origin. The edge of an
    /// arena must also consist of walls.
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
        self.walls.push(shape, at, angle, pose);
        Ok(())
    }

    /// Adds a wall of tiles: one wall for each run of tiles in a row, so bodies do not catch on the edges between
    /// tiles. `is_solid(column, row)` returns `true` for a solid tile; `corner` is the corner of tile (0, 0) with the
    /// lowest coordinates; further tiles follow in positive x and y.
    ///
    /// # Errors
    /// [`FlightError::Wall`] if a tile is out of range.
    pub fn add_tiles<Id: Debug>(
        &mut self,
        corner: Vec2,
        tile: Vec2,
        [columns, rows]: [u32; 2],
        is_solid: impl Fn(u32, u32) -> bool,
    ) -> Result<(), FlightError<Id>> {
        for row in 0..rows {
            let mut column = 0;
            while column < columns {
                let run = (column..columns).take_while(|x| is_solid(*x, row)).count() as u32;
                if run > 0 {
                    let size = tile * Vec2::new(run as f32, 1.0);
                    let from = corner + tile * Vec2::new(column as f32, row as f32);
                    let half = size / 2.0;
                    self.add_wall(Shape::Box { half }, from + half, 0.0)?;
                }
                column += run + 1;
            }
        }
        Ok(())
    }

    /// Lets the bodies fly for `samples` × `every` ticks, or until all lie still. Returns the track of every
    /// body that can move, sorted by id, with a sample every `every` ticks.
    ///
    /// Bodies that overlap at the start are pushed apart. Neither gravity nor a push brings a body above [`SPEED_MAX`].
    ///
    /// Cost, measured with seven walls on a busy shared two-core machine: a second of flight (60 steps, 10 samples)
    /// takes 0.4 to 0.8 ms with 8 bodies, 0.8 to 1.3 ms with 24; with gravity, half a second of crates on the ground
    /// takes 0.5 ms with 2, 0.7 ms with 8, 2.2 ms with 32. Each run puts the walls into the engine once, and allocates.
    ///
    /// # Errors
    /// If a number is not finite or out of range, two bodies share an id, or the run exceeds [`BODY_TICKS_MAX`]. In
    /// that case, no body was moved.
    pub fn run<Id: Ord + Copy + Debug>(
        &self,
        bodies: &[Body<Id>],
        samples: u32,
        every: u32,
    ) -> Result<Vec<Track<Id>>, FlightError<Id>> {
        let (steps, dt) = steps_of(self.tick);
        let ticks = (u64::from(samples) * u64::from(every)).saturating_mul(steps.into());
        let work = (bodies.len() as u64).saturating_mul(ticks.max(1));
        if work > BODY_TICKS_MAX || every == 0 {
            return Err(FlightError::Course {
                bodies: bodies.len(),
                samples,
                every,
            });
        }
        let mut room = self.room(bodies, dt)?;
        for _ in 0..samples {
            // `any` ends the steps when all bodies lie still.
            let lie_still = (0..every * steps).any(|_| room.step());
            room.sample();
            if lie_still {
                break;
            }
        }
        tracing::trace!(
            bodies = bodies.len(),
            tested = room.tested,
            "flights computed"
        );
        Ok(room.tracks())
    }

    fn room<Id: Ord + Copy + Debug>(
        &self,
        bodies: &[Body<Id>],
        dt: f32,
    ) -> Result<Room<Id>, FlightError<Id>> {
        let mut room = Room {
            world: self.engine(dt),
            still: Scene::default(),
            movers: Vec::with_capacity(bodies.len()),
            is_forced: self.gravity != Vec2::ZERO,
            tested: 0,
        };
        let fix = |room: &mut Room<Id>, shape, pose| {
            let collider = self.solid(&shape).position(pose);
            room.world.insert_collider(collider, None);
            room.still.push(Solid {
                id: Some(room.still.len()),
                shape,
                pose,
                layers: Layers::ALL,
            });
        };
        for (shape, pose) in self.walls.all() {
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
            let handle = self.enter(&mut room.world, body, pose, 0);
            room.is_forced |= body.push != Vec2::ZERO || body.twist != 0.0;
            room.movers.push(Mover {
                handle,
                shape,
                start: sample(&pose, velocity, spin.unwrap_or_default()),
                track: Track {
                    id: body.id,
                    samples: Vec::new(),
                },
            });
        }
        room.still.settle();
        Ok(room)
    }

    pub(crate) fn engine(&self, dt: f32) -> PhysicsWorld {
        let mut world = PhysicsWorld::new();
        world.gravity = self.gravity;
        world.integration_parameters.dt = dt;
        world.integration_parameters.normalized_prediction_distance = FORESIGHT;
        world
    }

    pub(crate) fn solid(&self, shape: &Shape) -> ColliderBuilder {
        ColliderBuilder::new(shape.shared())
            .restitution(self.material.bounce)
            .friction(self.material.friction)
    }

    // Puts a body that can move into the engine; `name` is the user data of its collider.
    pub(crate) fn enter<Id>(
        &self,
        world: &mut PhysicsWorld,
        body: &Body<Id>,
        pose: Pose,
        name: u128,
    ) -> RigidBodyHandle {
        let (velocity, spin) = body.motion.speeds().unwrap_or_default();
        let rigid = match body.motion {
            Motion::Fixed => RigidBodyBuilder::fixed(),
            Motion::Driven { .. } => RigidBodyBuilder::kinematic_velocity_based(),
            Motion::Slides { .. } => {
                RigidBodyBuilder::dynamic().locked_axes(LockedAxes::ROTATION_LOCKED)
            }
            Motion::Tumbles { .. } => RigidBodyBuilder::dynamic(),
        };
        let rigid = rigid
            .pose(pose)
            .linvel(velocity)
            .angvel(spin.unwrap_or_default())
            .linear_damping(self.material.drag)
            .angular_damping(self.material.drag)
            .can_sleep(false);
        let collider = self.solid(&body.shape).user_data(name);
        let (handle, _) = world.insert(rigid, collider);
        let mover = &mut world.bodies[handle];
        mover.recompute_mass_properties_from_colliders(&world.colliders);
        let inertia = mover.mass_properties().local_mprops.principal_inertia();
        mover.add_force(body.push * mover.mass(), false);
        mover.add_torque(body.twist * inertia, false);
        handle
    }

    pub(crate) fn surroundings(&self) -> (&Walls, Vec2) {
        (&self.walls, self.gravity)
    }
}

// The number of engine steps in a tick of this length, and the length of each step in seconds.
pub(crate) fn steps_of(tick: Duration) -> (u32, f32) {
    let nanos = tick.as_nanos() as u64;
    let steps = nanos.div_ceil(STEP_NANOS_MAX).max(1);
    (steps as u32, (nanos as f64 / 1e9 / steps as f64) as f32)
}

struct Room<Id> {
    world: PhysicsWorld,
    /// Fixed shapes (walls and bodies), each named by its number.
    still: Scene<usize>,
    movers: Vec<Mover<Id>>,
    /// Whether gravity or a push can move a body that is slow now because it is at the top of its flight, or about to
    /// slide down.
    is_forced: bool,
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
    /// Runs one engine step. Returns `true` if all bodies have come to rest permanently.
    fn step(&mut self) -> bool {
        self.world.step();
        let mut are_slow = true;
        for mover in &self.movers {
            let (velocity, spin) = slow_down(&mut self.world.bodies[mover.handle]);
            are_slow &= velocity.length() < REST_SPEED && spin.abs() < REST_SPEED;
        }
        are_slow && !self.is_forced
    }

    fn sample(&mut self) {
        for mover in &mut self.movers {
            let body = &self.world.bodies[mover.handle];
            let pose = free_of(
                &self.still,
                &mover.shape,
                *body.position(),
                &mut self.tested,
            );
            let now = sample(&pose, body.linvel(), body.angvel());
            mover.track.samples.push(now);
        }
    }

    fn tracks(self) -> Vec<Track<Id>> {
        let trimmed = |mut mover: Mover<Id>| {
            let samples = &mut mover.track.samples;
            while let Some(last) = samples.last() {
                let before = samples.iter().rev().nth(1).unwrap_or(&mover.start);
                if !last.rests_at(before) {
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
    pub(crate) fn speeds(self) -> Option<(Vec2, Option<f32>)> {
        match self {
            Motion::Fixed => None,
            Motion::Driven { velocity } | Motion::Slides { velocity } => Some((velocity, None)),
            Motion::Tumbles { velocity, spin } => Some((velocity, Some(spin))),
        }
    }
}

impl<Id> Body<Id> {
    pub(crate) fn check(&self) -> Result<Pose, Fault> {
        let pose = placed(self.shape, self.at, self.angle)?;
        if let Some((velocity, spin)) = self.motion.speeds() {
            let is_push = |push: f32| push.is_finite() && push <= PUSH_MAX;
            if !is_push(self.push.length()) || !is_push(self.twist.abs()) {
                return Err(Fault::Push(self.push, self.twist));
            }
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

// Limits a body's speeds to [`SPEED_MAX`]. Returns the speeds before that.
pub(crate) fn slow_down(body: &mut RigidBody) -> (Vec2, f32) {
    let (velocity, spin) = (body.linvel(), body.angvel());
    body.set_linvel(velocity.clamp_length_max(SPEED_MAX), false);
    body.set_angvel(spin.clamp(-SPEED_MAX, SPEED_MAX), false);
    (velocity, spin)
}

fn placed(shape: Shape, at: Vec2, angle: f32) -> Result<Pose, Fault> {
    let pose = shape.placed(at, angle)?;
    if at.abs().max_element() > REACH {
        return Err(Fault::Far(at));
    }
    Ok(pose)
}

fn sample(pose: &Pose, velocity: Vec2, spin: f32) -> Sample {
    let at = (pose.translation * STEPS_PER_UNIT).round();
    let turns = pose.rotation.angle() / std::f32::consts::TAU;
    let [x, y, spin] =
        [velocity.x, velocity.y, spin].map(|speed| (speed * STEPS_PER_UNIT).round() as i16);
    Sample {
        at_64ths: [at.x as i32, at.y as i32],
        turn_65536ths: (turns * TURN_STEPS).round() as i32 as u16, // wraps: a full turn is 0
        velocity_64ths: [x, y],
        spin_64ths: spin,
    }
}

impl Sample {
    fn rests_at(&self, before: &Sample) -> bool {
        let is_slow = |speed: i16| f32::from(speed).abs() < REST_SPEED * STEPS_PER_UNIT;
        let [x, y] = self.velocity_64ths;
        (self.at_64ths, self.turn_65536ths) == (before.at_64ths, before.turn_65536ths)
            && [x, y, self.spin_64ths].into_iter().all(is_slow)
    }
}

#[cfg(test)]
mod side_view;
#[cfg(test)]
mod tests;
