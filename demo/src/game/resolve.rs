//! How the server decides what the simulation may not: blasts, tosses, and secrets.
//!
//! ```text
//!   Query::Blast ──▶ physics mirror: area query, walls and crates hide ──▶ whom it hits, and how near
//!   Query::Toss  ──▶ physics flights: rigid bodies, pushed with luck   ──▶ paths
//!   Query::Loot, Query::Crit ──▶ luck alone                            ──▶ what nobody could know before
//! ```
//!
//! With `judge`, the only file of the game that looks at the server crate. Nothing in here is state: the
//! physics is filled from lockstep positions for each question, and luck is drawn for each question anew.

use glam::Vec2;
use twinstep_core::{Key, Mwc};
use twinstep_server::physics::flight::{
    self, BODIES_MAX, FlightError, Flights, Material, Motion, Track,
};
use twinstep_server::physics::{Layers, Mirror, MirrorError, STEPS_PER_UNIT, Shape};
use twinstep_server::{Look, Resolution, Resolver};

use super::throw::{self, BOUNCE, DRAG, FRICTION, LUCK, LUCK_ANGLE, TICKS_PER_SECOND};
use super::toss::{LEG_TICKS, LEGS_MAX, Prop, TOSSED_MAX, Throw};
use super::{
    Body, Bomb, Form, Game, Hit, Hits, Outcome, Query, Rules, bodies_near, direction, secret,
};

const WALLS: Layers = Layers::bit(0);
const BODIES: Layers = Layers::bit(1);
const CRATES: Layers = Layers::bit(2);

/// What lies farther from a blast than this is not moved by what it throws, in units.
const TOSS_REACH: f32 = 16.0;
/// How thick the edge of the arena is for what flies against it, in units.
const EDGE: f32 = 4.0;

/// Where the server's luck comes from: one number for each question, asked under its key.
pub enum Luck {
    /// From a seed: the same questions have the same answers in each run. For tests, and nobody who is told the
    /// seed can be surprised.
    Seeded(u64),
    /// From outside, such as the operating system's generator: nobody can read ahead.
    Drawn(fn() -> u64),
}

impl Luck {
    fn of(&self, key: Key) -> Mwc {
        match *self {
            Luck::Seeded(seed) => Mwc::seed(seed).fork(key),
            Luck::Drawn(draw) => Mwc::seed(draw()),
        }
    }
}

/// Why a question has no answer: a bug of the step, which the digest names as well.
#[derive(Clone, Copy, Debug, PartialEq, thiserror::Error)]
#[non_exhaustive]
pub enum ArbiterError {
    /// A position or the level is not what an area query can take.
    #[error("a blast cannot be decided: {0}")]
    Blast(#[from] MirrorError<Body>),
    /// A position or the level is not what bodies can fly in.
    #[error("a toss cannot be decided: {0}")]
    Toss(#[from] FlightError<Prop>),
}

/// Answers all questions of a match. One for each: it keeps its buffers.
pub struct Arbiter {
    mirror: Mirror<Body>,
    flights: Flights,
    luck: Luck,
}

impl Arbiter {
    /// Takes the walls from the rules.
    ///
    /// # Errors
    /// If the level has a wall without size.
    pub fn new(rules: &Rules, luck: Luck) -> Result<Arbiter, ArbiterError> {
        let mut mirror = Mirror::new();
        let mut flights = Flights::new(Material {
            bounce: BOUNCE,
            friction: FRICTION,
            drag: DRAG,
        });
        for wall in &rules.walls {
            let shape = Shape::Box { half: wall.half };
            mirror.add_wall(shape, wall.center, 0.0, WALLS)?;
            flights.add_wall::<Prop>(shape, wall.center, 0.0)?;
        }
        for side in [Vec2::X, Vec2::Y, -Vec2::X, -Vec2::Y] {
            let shape = Shape::Box {
                half: side.abs() * EDGE + side.perp().abs() * (rules.half + 2.0 * EDGE),
            };
            flights.add_wall::<Prop>(shape, side * (rules.half + EDGE), 0.0)?;
        }
        Ok(Arbiter {
            mirror,
            flights,
            luck,
        })
    }

    /// The answer to a query that was asked under `key`, in the world at the end of the tick that asked.
    ///
    /// # Errors
    /// A position that is no number.
    pub fn decide(
        &mut self,
        game: &Game,
        rules: &Rules,
        key: Key,
        query: &Query,
    ) -> Result<Outcome, ArbiterError> {
        match *query {
            Query::Blast { bomb, at, .. } => {
                let hits = self.blast(game, rules, bomb, at.to_vec2())?;
                Ok(Outcome::Blast { hits })
            }
            Query::Toss { bomb, at, .. } => self.toss(game, rules, key, bomb, at.to_vec2()),
            Query::Loot { .. } => Ok(Outcome::Loot(secret::loot(&mut self.luck.of(key)))),
            Query::Crit(_) => {
                let is_crit = secret::crit(&mut self.luck.of(key), &rules.tuning);
                Ok(Outcome::Crit(is_crit))
            }
        }
    }

    /// Whom a blast hits, nearest first.
    fn blast(
        &mut self,
        game: &Game,
        rules: &Rules,
        bomb: Bomb,
        center: Vec2,
    ) -> Result<Hits, ArbiterError> {
        let reach = bomb.radius(&rules.tuning);
        let mut fill = self.mirror.refill();
        for (body, at, form) in bodies_near(game, center, reach) {
            let layers = match body {
                Body::Crate(_) => BODIES | CRATES,
                _ => BODIES,
            };
            fill.put(body, shape(form), at, 0.0, layers)?;
        }
        let hits = self
            .mirror
            .area_visible(center, reach, BODIES, WALLS | CRATES)?;
        Ok(Hit::nearest(
            hits.iter().map(|hit| Hit::new(hit.id, hit.distance_64ths)),
        ))
    }

    /// Where a blast throws what it hits, and what that pushes.
    fn toss(
        &mut self,
        game: &Game,
        rules: &Rules,
        key: Key,
        bomb: Bomb,
        center: Vec2,
    ) -> Result<Outcome, ArbiterError> {
        let hits = self.blast(game, rules, bomb, center)?;
        let mut luck = self.luck.of(key);
        let mut spread = || luck.unit_f32() * 2.0 - 1.0;
        let mut pushed: Vec<(Prop, Vec2)> = throw::thrown(game, &hits)
            .map(|(prop, from, hit)| {
                let push = throw::push(bomb, center, from, hit, &rules.tuning);
                let push = push * (1.0 + LUCK * spread());
                (prop, push.rotate(direction(LUCK_ANGLE * spread())))
            })
            .collect();
        pushed.truncate(TOSSED_MAX);

        let mut bodies: Vec<flight::Body<Prop>> = game
            .lying()
            .filter(|(_, at)| at.distance(center) <= TOSS_REACH)
            .map(|(prop, at)| {
                let step = pushed.iter().find(|(other, _)| *other == prop);
                let velocity = step.map_or(Vec2::ZERO, |(_, step)| *step * TICKS_PER_SECOND);
                flight::Body {
                    id: prop,
                    shape: shape(prop.form()),
                    at,
                    angle: 0.0,
                    motion: Motion::Slides { velocity },
                }
            })
            .collect();
        bodies.sort_by(|a, b| a.at.distance(center).total_cmp(&b.at.distance(center)));
        bodies.truncate(BODIES_MAX);

        let tracks = self.flights.run(&bodies, LEGS_MAX as u32, LEG_TICKS)?;
        // The nearest first, as they are in `bodies`; who only was pushed comes behind.
        let place = |track: &Track<Prop>| {
            let by_blast = pushed.iter().position(|(prop, _)| *prop == track.id);
            let by_place = bodies.iter().position(|body| body.id == track.id);
            (by_blast.is_none(), by_place)
        };
        let mut tracks: Vec<Track<Prop>> = tracks;
        tracks.sort_by_key(place);
        let throws = tracks.iter().filter_map(|track| {
            let from = bodies.iter().find(|body| body.id == track.id)?.at;
            let corners = track.samples.iter().map(|sample| {
                let [x, y] = sample.at_64ths;
                Vec2::new(x as f32, y as f32) / STEPS_PER_UNIT
            });
            let throw = Throw::through(track.id, from, corners);
            (!throw.legs.is_empty()).then_some(throw)
        });
        Ok(Outcome::Toss {
            throws: throws.take(TOSSED_MAX).collect(),
        })
    }
}

fn shape(form: Form) -> Shape {
    match form {
        Form::Disc(radius) => Shape::Ball { radius },
        Form::Square(half) => Shape::Box {
            half: Vec2::splat(half),
        },
    }
}

impl Resolver<Game> for Arbiter {
    /// Quick enough to answer within the tick. Who cannot answer has met a bug of the step; the panic becomes
    /// "no answer": a barrel fizzles, nothing is thrown, a crate was empty.
    fn resolve(&mut self, look: &Look<'_, Game>, key: Key, query: &Query) -> Resolution<Outcome> {
        match self.decide(look.sim(), look.rules(), key, query) {
            Ok(outcome) => Resolution::Now(outcome),
            Err(error) => panic!("{error}"),
        }
    }
}
