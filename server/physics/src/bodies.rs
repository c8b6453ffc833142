//! Rigid bodies in the state of a game, stepped by the engine inside the game's own step.
//!
//! So a kick shows in the frame in which the player presses the key, like everything that a prediction computes.
//!
//! ```text
//!   bodies at tick t ──▶ a new world of the engine, one tick ──▶ bodies at tick t + 1, contacts
//!   (places, speeds)     with the walls near them                (places, speeds)
//! ```
//!
//! Invariants:
//! - A step depends only on the bodies, the room and the length of the tick. No engine state outlives the step, so the
//!   game sends, saves and compares a list of positions and speeds. Unlike the engine's own memory, this list can be
//!   checked.
//! - All numbers are finite and in range. Changes and bytes that would break this are refused.
//! - Bounded: [`BODIES_MAX`], [`SPEED_MAX`], [`REACH`].

use std::fmt::Debug;
use std::time::Duration;

use glam::Vec2;
use rapier2d::geometry::ColliderHandle;
use serde::{Deserialize, Serialize};

pub use super::bounds::BODIES_MAX;
use super::bounds::{REACH, SPEED_MAX};
use super::flight::{Body, FlightError, Flights, Motion, slow_down, steps_of};

// The maximum number of contacts accepted from bytes. A step never yields more.
const CONTACTS_MAX: usize = 16 * BODIES_MAX;
// The distance in units at which a wall counts as near, in addition to what a body can move in a tick.
const MARGIN: f32 = 1.0;
// The speed below which a body stops if nothing pushes it, in units or radians per second.
const STOP_SPEED: f32 = 0.002;
const WALL: u128 = u128::MAX;

/// Bodies that collide with each other and with the walls of a room.
///
/// A simulation has them as a field of its state, and the room in its rules. The tick's length is
/// [`Frame::tick_length`](twinstep_core::Frame::tick_length).
///
/// ```
/// use std::time::Duration;
///
/// use glam::Vec2;
/// use twinstep_rapier2d::Shape;
/// use twinstep_rapier2d::bodies::Bodies;
/// use twinstep_rapier2d::flight::{Body, FlightError, Flights, Material, Motion};
///
/// # fn main() -> Result<(), FlightError<u32>> {
/// let mut room = Flights::new(Material::default());
/// room.add_wall::<u32>(Shape::Box { half: Vec2::new(0.5, 4.0) }, Vec2::new(3.0, 0.0), 0.0)?;
///
/// let mut bodies = Bodies::default();
/// bodies.put(Body {
///     id: 7,
///     shape: Shape::Ball { radius: 0.5 },
///     at: Vec2::ZERO,
///     angle: 0.0,
///     motion: Motion::Slides { velocity: Vec2::ZERO },
///     push: Vec2::ZERO,
///     twist: 0.0,
/// })?;
/// bodies.change(7, |ball| ball.kick(Vec2::X * 15.0))?;
/// for _ in 0..60 {
///     bodies.step(&room, Duration::from_secs(1) / 60);
/// }
/// assert!(bodies.get(7).expect("it is there").at.x < 2.0, "it came back from the wall");
/// # Ok(()) }
/// ```
///
/// Cost: see [`step`](Self::step). A copy costs as much as a copy of the list; `clone_from` does not allocate.
#[derive(Debug, PartialEq, Serialize, Deserialize)]
#[serde(
    try_from = "Unchecked<Id>",
    bound(deserialize = "Id: Ord + Copy + Debug + Deserialize<'de>")
)]
pub struct Bodies<Id> {
    // In id order.
    bodies: Vec<Body<Id>>,
    // In order of (first, second).
    contacts: Vec<Contact<Id>>,
    // Whether the last step changed no body, so that the next one would not either.
    is_settled: bool,
}

/// Two bodies that pushed each other during the last step, or a body and a wall.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
pub struct Contact<Id> {
    /// The body with the lower id.
    pub first: Id,
    /// The other body; `None` for a wall.
    pub second: Option<Id>,
    /// The impulse that drove them apart: mass (the area of a shape) times the change of speed.
    pub impulse: f32,
    /// Whether the contact is new, because the two did not push each other during the previous step.
    pub is_new: bool,
}

impl<Id> Default for Bodies<Id> {
    fn default() -> Bodies<Id> {
        Bodies {
            bodies: Vec::new(),
            contacts: Vec::new(),
            is_settled: false,
        }
    }
}

impl<Id: Copy> Clone for Bodies<Id> {
    fn clone(&self) -> Bodies<Id> {
        Bodies {
            bodies: self.bodies.clone(),
            contacts: self.contacts.clone(),
            is_settled: self.is_settled,
        }
    }

    fn clone_from(&mut self, other: &Bodies<Id>) {
        self.bodies.clone_from(&other.bodies);
        self.contacts.clone_from(&other.contacts);
        self.is_settled = other.is_settled;
    }
}

impl<Id: Ord + Copy + Debug> Bodies<Id> {
    /// Adds a body, or replaces the one with its id.
    ///
    /// # Errors
    /// If a number is not finite or out of range, or if there would be more than [`BODIES_MAX`] bodies.
    pub fn put(&mut self, body: Body<Id>) -> Result<(), FlightError<Id>> {
        let id = body.id;
        body.check()
            .map_err(|fault| FlightError::Body { id, fault })?;
        match self.find(id) {
            Ok(index) => self.bodies[index] = body,
            Err(_) if self.bodies.len() >= BODIES_MAX => return Err(FlightError::Full { id }),
            Err(index) => self.bodies.insert(index, body),
        }
        self.is_settled = false;
        Ok(())
    }

    /// Removes a body. Returns `None` if there is none with this id.
    pub fn remove(&mut self, id: Id) -> Option<Body<Id>> {
        let index = self.find(id).ok()?;
        self.is_settled = false;
        self.contacts
            .retain(|contact| contact.first != id && contact.second != Some(id));
        Some(self.bodies.remove(index))
    }

    /// Changes a body, such as its motion, push or position. A changed id is ignored.
    ///
    /// # Errors
    /// If there is no such body, or if the change makes a number not finite or out of range. In that case, the body
    /// does not change.
    pub fn change(
        &mut self,
        id: Id,
        change: impl FnOnce(&mut Body<Id>),
    ) -> Result<(), FlightError<Id>> {
        let index = self.find(id).map_err(|_| FlightError::Unknown { id })?;
        let mut body = self.bodies[index];
        change(&mut body);
        body.id = id;
        body.check()
            .map_err(|fault| FlightError::Body { id, fault })?;
        self.is_settled &= body == self.bodies[index];
        self.bodies[index] = body;
        Ok(())
    }

    /// Returns the body with this id, if there is one.
    #[must_use]
    pub fn get(&self, id: Id) -> Option<&Body<Id>> {
        Some(&self.bodies[self.find(id).ok()?])
    }

    /// Returns all bodies, in id order.
    pub fn iter(&self) -> impl ExactSizeIterator<Item = &Body<Id>> {
        self.bodies.iter()
    }

    /// Returns the contacts of the last step, in order of (first, second).
    #[must_use]
    pub fn contacts(&self) -> &[Contact<Id>] {
        &self.contacts
    }

    /// Moves all bodies by one tick. A position beyond [`REACH`] is clamped to it.
    ///
    /// Cost: the guide's chapter 22 has a table. After a step that changed no body, a step is free. Only walls near a
    /// body that can move are tested. A step allocates.
    pub fn step(&mut self, room: &Flights, tick: Duration) {
        if self.is_settled {
            for contact in &mut self.contacts {
                contact.is_new = false;
            }
            return;
        }
        let (steps, dt) = steps_of(tick);
        let mut world = room.engine(dt);
        for wall in self.walls_near(room, steps as f32 * dt) {
            let (shape, pose) = room.surroundings().0.get(wall);
            let collider = room.solid(shape).position(*pose).user_data(WALL);
            world.insert_collider(collider, None);
        }
        // The order of insertion decides the order of the engine's sums, so it follows the ids.
        let mut handles = Vec::with_capacity(self.bodies.len());
        for (body, name) in self.bodies.iter().zip(0..) {
            let pose = body.check().expect("bodies are checked when they change");
            handles.push(room.enter(&mut world, body, pose, name));
        }
        let mut touching = Vec::new();
        for _ in 0..steps {
            world.step();
            for handle in &handles {
                slow_down(&mut world.bodies[*handle]);
            }
            for pair in world.narrow_phase.contact_pairs() {
                let impulse = pair.total_impulse_magnitude();
                if impulse > 0.0 && impulse.is_finite() {
                    let name = |collider: ColliderHandle| world.colliders[collider].user_data;
                    let (a, b) = (name(pair.collider1), name(pair.collider2));
                    touching.push((a.min(b), a.max(b), impulse));
                }
            }
        }
        let before = std::mem::take(&mut self.contacts);
        self.note(touching, &before);
        self.is_settled = true;
        let has_gravity = room.surroundings().1 != Vec2::ZERO;
        for (body, handle) in self.bodies.iter_mut().zip(handles) {
            let engine = &world.bodies[handle];
            let (at, angle) = (
                engine.position().translation,
                engine.position().rotation.angle(),
            );
            let moved = body.moved(at, angle, engine.linvel(), engine.angvel(), !has_gravity);
            self.is_settled &= moved == *body;
            *body = moved;
        }
    }

    fn find(&self, id: Id) -> Result<usize, usize> {
        self.bodies.binary_search_by_key(&id, |body| body.id)
    }

    // The walls that a body can touch within the tick, in their order.
    fn walls_near(&self, room: &Flights, seconds: f32) -> Vec<u32> {
        let (walls, gravity) = room.surroundings();
        let gain = |body: &Body<Id>| (body.push.length() + gravity.length()) * seconds;
        let speed = |body: &Body<Id>| body.motion.speeds().unwrap_or_default().0.length();
        let fastest = self.bodies.iter().map(|body| speed(body) + gain(body));
        // A light body that a heavy one hits gets at most twice its speed.
        let fastest = fastest.fold(
            0.0,
            |most: f32, speed| if speed > most { speed } else { most },
        );
        let distance = (fastest * 2.0).clamp(0.0, SPEED_MAX) * seconds + MARGIN;
        let mut near = Vec::new();
        for body in &self.bodies {
            if !matches!(body.motion, Motion::Fixed | Motion::Driven { .. }) {
                walls.near(body.at, body.shape.bound() + distance, &mut near);
            }
        }
        near.sort_unstable();
        near.dedup();
        near
    }

    // Keeps one contact for each pair of bodies, with the sum of its impulses.
    fn note(&mut self, mut touching: Vec<(u128, u128, f32)>, before: &[Contact<Id>]) {
        // A stable sort: the impulses of a pair stay in the order of the steps, which fixes their sum.
        touching.sort_by_key(|(a, b, _)| (*a, *b));
        for (a, b, impulse) in touching {
            let first = self.bodies[a as usize].id;
            let second = self.bodies.get(b as usize).map(|body| body.id);
            match self.contacts.last_mut() {
                Some(last) if (last.first, last.second) == (first, second) => {
                    let sum = last.impulse + impulse;
                    last.impulse = if sum < f32::MAX { sum } else { f32::MAX };
                }
                _ => self.contacts.push(Contact {
                    first,
                    second,
                    impulse,
                    is_new: before
                        .binary_search_by_key(&(first, second), |old| (old.first, old.second))
                        .is_err(),
                }),
            }
        }
        // Walls are last by name, and first by id: `None` is less than `Some`.
        self.contacts
            .sort_by_key(|contact| (contact.first, contact.second));
    }
}

impl<Id: Copy> Body<Id> {
    /// The velocity in units per second.
    #[must_use]
    pub fn velocity(&self) -> Vec2 {
        self.motion.speeds().unwrap_or_default().0
    }

    /// Adds `by` to the velocity, up to [`SPEED_MAX`]. Ignored if `by` is not finite or the body is fixed.
    pub fn kick(&mut self, by: Vec2) {
        let kicked = within(self.velocity() + by, SPEED_MAX);
        match &mut self.motion {
            Motion::Driven { velocity }
            | Motion::Slides { velocity }
            | Motion::Tumbles { velocity, .. }
                if kicked.is_finite() =>
            {
                *velocity = kicked;
            }
            _ => {}
        }
    }

    // The body after a tick. If the engine's numbers are not finite, they are not used and the body stops.
    fn moved(self, at: Vec2, angle: f32, velocity: Vec2, spin: f32, stops: bool) -> Body<Id> {
        let mut body = self;
        let is_sound = at.is_finite() && angle.is_finite();
        if is_sound && !matches!(self.motion, Motion::Fixed) {
            // Adding 0 turns -0.0 into 0.0.
            (body.at, body.angle) = (
                at.clamp(Vec2::splat(-REACH), Vec2::splat(REACH)) + 0.0,
                angle + 0.0,
            );
        }
        let stops = stops && self.push == Vec2::ZERO && self.twist == 0.0;
        let is_slow = velocity.length() < STOP_SPEED && spin.abs() < STOP_SPEED;
        let (new_velocity, new_spin) = match velocity.is_finite() && spin.is_finite() {
            true if is_sound && !(stops && is_slow) => {
                (within(velocity, SPEED_MAX) + 0.0, spin + 0.0)
            }
            _ => (Vec2::ZERO, 0.0),
        };
        match &mut body.motion {
            Motion::Fixed | Motion::Driven { .. } => {}
            Motion::Slides { velocity } => *velocity = new_velocity,
            Motion::Tumbles { velocity, spin } => {
                *velocity = new_velocity;
                *spin = new_spin.clamp(-SPEED_MAX, SPEED_MAX);
            }
        }
        body
    }
}

// Shortens a vector that is longer than `most`, to a little less, so that rounding does not make it longer again.
fn within(vector: Vec2, most: f32) -> Vec2 {
    if vector.length() <= most {
        return vector;
    }
    vector * (most * 0.999 / vector.length())
}

// Bodies as read from a file or a server, not checked yet.
#[derive(Deserialize)]
struct Unchecked<Id> {
    bodies: Vec<Body<Id>>,
    contacts: Vec<Contact<Id>>,
    is_settled: bool,
}

impl<Id: Ord + Copy + Debug> TryFrom<Unchecked<Id>> for Bodies<Id> {
    type Error = String;

    fn try_from(read: Unchecked<Id>) -> Result<Bodies<Id>, String> {
        let Unchecked {
            bodies,
            contacts,
            is_settled,
        } = read;
        if bodies.len() > BODIES_MAX || contacts.len() > CONTACTS_MAX {
            let (bodies, contacts) = (bodies.len(), contacts.len());
            return Err(format!(
                "expected at most {BODIES_MAX} bodies and {CONTACTS_MAX} contacts, got {bodies} and {contacts}"
            ));
        }
        for body in &bodies {
            let id = body.id;
            body.check()
                .map_err(|fault| FlightError::Body { id, fault }.to_string())?;
        }
        if let Some(pair) = bodies.windows(2).find(|pair| pair[0].id >= pair[1].id) {
            let (id, before) = (pair[1].id, pair[0].id);
            return Err(format!(
                "expected each body once, by id, got {id:?} after {before:?}"
            ));
        }
        let name = |contact: &Contact<Id>| (contact.first, contact.second);
        if !contacts.is_sorted_by(|a, b| name(a) < name(b)) {
            return Err("expected each contact once, in order".to_owned());
        }
        if let Some(contact) = contacts.iter().find(|contact| !contact.impulse.is_finite()) {
            return Err(format!(
                "expected contacts of finite impulses, got {contact:?}"
            ));
        }
        Ok(Bodies {
            bodies,
            contacts,
            is_settled,
        })
    }
}

#[cfg(test)]
mod tests;
