//! What a blast gives to the things around it, and how a client guesses where they fly.
//!
//! ```text
//!   server: push × luck ──▶ rigid bodies, each of which hits the others ──▶ path     (resolve.rs)
//!   client: push        ──▶ slide, slow down, bounce off walls          ──▶ path     (here)
//! ```
//!
//! Both begin with the same push, so the guess starts right and drifts by the luck that nobody can know; the
//! view's smoother carries what was shown over to what is true. Referees judge an owner's answer by what is
//! possible, not by the guess.

use arrayvec::ArrayVec;
use glam::Vec2;

use super::toss::{LEG_TICKS, LEGS_MAX, Prop, TOSSED_MAX, Throw};
use super::{Bomb, Game, Hit, Outcome, Rules, Tuning};

/// How much speed a bounce keeps.
pub(super) const BOUNCE: f32 = 0.35;
/// How much of a push along a wall is taken on.
pub(super) const FRICTION: f32 = 0.3;
/// How fast speed decays, per second.
pub(super) const DRAG: f32 = 3.5;
/// By how much luck changes a speed, at most.
pub(super) const LUCK: f32 = 0.15;
/// By how much luck turns a direction, at most, in radians.
pub(super) const LUCK_ANGLE: f32 = 0.25;

pub(super) const TICKS_PER_SECOND: f32 = 60.0;
/// What moves by less lies still, in units per tick.
const REST_SPEED: f32 = 0.004;
/// How far off a place of its own a thing may be said to be, in units: the grain of a path.
const GRAIN: f32 = 0.1;

/// What a blast gives to a thing that it hits, in units per tick: away from its middle, at its edge a quarter of
/// what it gives there.
pub(super) fn push(bomb: Bomb, center: Vec2, at: Vec2, hit: &Hit, tuning: &Tuning) -> Vec2 {
    let away = (at - center).normalize_or(Vec2::X);
    let part = f32::from(hit.distance_8ths) / (8.0 * bomb.radius(tuning));
    away * tuning.toss_speed * (1.0 - 0.75 * part.clamp(0.0, 1.0))
}

/// What a client assumes of a toss: as if nothing but walls stood in anybody's way. It is told the state at the
/// end of the tick that asked, and whom it thinks the blast hits.
///
/// Cost: for each thing that is thrown, 60 times a look at all walls.
pub(super) fn guess(game: &Game, rules: &Rules, bomb: Bomb, at: Vec2, hits: &[Hit]) -> Outcome {
    let mut throws = ArrayVec::new();
    for (prop, from, hit) in thrown(game, hits) {
        if throws.is_full() {
            break;
        }
        let mut slide = Slide {
            at: from,
            step: push(bomb, at, from, hit, &rules.tuning),
        };
        let corners = (0..LEGS_MAX).map(|_| {
            (0..LEG_TICKS).for_each(|_| slide.tick(rules, prop.radius()));
            slide.at
        });
        let throw = Throw::through(prop, from, corners);
        if !throw.legs.is_empty() {
            throws.push(throw);
        }
    }
    Outcome::Toss { throws }
}

/// Whom of those that a blast hits it throws, nearest first: what it is, where it lies, how it was hit.
pub(super) fn thrown<'a>(
    game: &'a Game,
    hits: &'a [Hit],
) -> impl Iterator<Item = (Prop, Vec2, &'a Hit)> {
    hits.iter().filter_map(|hit| {
        let prop = Prop::of(hit.body)?;
        let (_, from) = game.lying().find(|(other, _)| *other == prop)?;
        Some((prop, from, hit))
    })
}

/// A thing that slides.
struct Slide {
    at: Vec2,
    step: Vec2,
}

impl Slide {
    fn tick(&mut self, rules: &Rules, radius: f32) {
        if self.step.length_squared() < REST_SPEED * REST_SPEED {
            return;
        }
        let free = self.at + self.step;
        self.at = rules.place(free, radius);
        if let Some(out) = (self.at - free).try_normalize() {
            let into = self.step.dot(out).min(0.0);
            self.step -= out * into * (1.0 + BOUNCE);
        }
        self.step /= 1.0 + DRAG / TICKS_PER_SECOND;
    }
}

/// Whether things could fly so from a blast at `at`: each once, from where it lay, no faster than a blast can
/// throw, through no wall and never outside. `game` is the state at the end of the tick that asked.
pub(super) fn is_possible(
    game: &Game,
    rules: &Rules,
    bomb: Bomb,
    at: Vec2,
    throws: &ArrayVec<Throw, TOSSED_MAX>,
) -> bool {
    let speed = rules.tuning.toss_speed * (1.0 + LUCK);
    let way_max = speed * TICKS_PER_SECOND / DRAG + speed + GRAIN;
    throws.iter().enumerate().all(|(n, throw)| {
        let again = throws[..n].iter().any(|other| other.prop == throw.prop);
        let lies = game.lying().find(|(prop, _)| *prop == throw.prop);
        let Some((_, from)) = lies.filter(|_| !again) else {
            return false;
        };
        let radius = throw.prop.radius();
        let is_near = from.distance(at) <= bomb.radius(&rules.tuning) + radius + way_max;
        let mut corner = from;
        is_near
            && throw.corners(from).all(|next| {
                let is_slow = next.distance(corner) <= speed * LEG_TICKS as f32 + GRAIN;
                let is_free = rules.place(next, radius).distance(next) <= GRAIN;
                let is_seen = rules.sees(corner, next);
                corner = next;
                is_slow && is_free && is_seen && next.distance(from) <= way_max
            })
    })
}
