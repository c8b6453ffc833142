//! The push that a blast gives to things around it, and how a client guesses their flight.
//!
//! ```text
//!   server: push × luck ──▶ rigid bodies, which hit each other          ──▶ path     (resolve.rs)
//!   client: push        ──▶ slide, slow down, bounce off walls          ──▶ path     (here)
//! ```
//!
//! Both start with the same push, which the server varies by luck. So the guess is nearly right at first and then
//! drifts away, and the view smooths the difference. The referee accepts an owner's answer if it is possible; it need
//! not equal the guess.

use arrayvec::ArrayVec;
use glam::Vec2;

use super::blast;
use super::hit::{BlastHit, Bomb};
use super::query::{Outcome, Query};
use super::rules::{Rules, Tuning};
use super::state::{Game, LEG_TICKS, LEGS_MAX, Prop, TOSSED_MAX, Throw};

/// The part of its speed that a thing keeps when it bounces.
pub(super) const BOUNCE: f32 = 0.35;
/// The friction coefficient of the rigid bodies.
pub(super) const FRICTION: f32 = 0.3;
pub(super) const DRAG: f32 = 3.5;
/// The largest random change of a speed, as a fraction of the speed.
pub(super) const LUCK: f32 = 0.15;
/// The largest random change of a direction, in radians.
pub(super) const LUCK_ANGLE: f32 = 0.25;

pub(super) const TICKS_PER_SECOND: f32 = 60.0;
/// Below this speed a thing lies still, in units per tick.
const REST_SPEED: f32 = 0.004;
/// The tolerance for a position, in units: a little more than the resolution of a path.
const GRAIN: f32 = 0.1;

/// Returns the velocity that a blast gives to a thing that it hits, in units per tick, away from the blast's middle. At
/// the edge it is a quarter of the full speed.
pub(super) fn push(bomb: Bomb, center: Vec2, at: Vec2, hit: &BlastHit, tuning: &Tuning) -> Vec2 {
    let away = (at - center).normalize_or(Vec2::X);
    let part = f32::from(hit.distance_8ths) / (8.0 * bomb.radius(tuning));
    away * tuning.toss_speed * (1.0 - 0.75 * part.clamp(0.0, 1.0))
}

fn speed_max(tuning: &Tuning) -> f32 {
    tuning.toss_speed * (1.0 + LUCK)
}

fn way_max(tuning: &Tuning) -> f32 {
    speed_max(tuning) * (TICKS_PER_SECOND / DRAG + 1.0) + GRAIN
}

/// The distance from a blast, in units, beyond which the blast and the things that it throws do not move anything.
pub(super) fn reach(bomb: Bomb, tuning: &Tuning) -> f32 {
    bomb.radius(tuning) + way_max(tuning)
}

/// Returns a client's guess of a toss, which takes only walls into account. `game` is the state at the end of the tick
/// that asked, and `hits` the guessed hits of the blast.
///
/// Costs 60 tests of all walls per thrown thing.
pub(super) fn guess(
    game: &Game,
    rules: &Rules,
    bomb: Bomb,
    at: Vec2,
    hits: &[BlastHit],
) -> Outcome {
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

/// The hits that throw a barrel or crate, nearest first: the thing, its position, and the hit.
pub(super) fn thrown<'a>(
    game: &'a Game,
    hits: &'a [BlastHit],
) -> impl Iterator<Item = (Prop, Vec2, &'a BlastHit)> {
    hits.iter().filter_map(|hit| {
        let prop = Prop::of(hit.body)?;
        Some((prop, place_of(game, prop)?, hit))
    })
}

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
            let into = self.step.dot(out);
            if into < 0.0 {
                // Reverses the part of the speed that points into the wall, damped.
                self.step -= out * into * (1.0 + BOUNCE);
            }
        }
        self.step /= 1.0 + DRAG / TICKS_PER_SECOND;
    }
}

/// Returns `true` if things could fly like this from a blast at `at`: each thing once, from where it lay, hit by the
/// blast or by a flying thing, no faster than a blast can throw, not through walls and never outside. `game` is the
/// state at the end of the tick that asked.
///
/// Costs a guess of the blast, and per flying thing a test against the paths of all others.
pub(super) fn is_possible(
    game: &Game,
    rules: &Rules,
    bomb: Bomb,
    at: Vec2,
    throws: &ArrayVec<Throw, TOSSED_MAX>,
) -> bool {
    let (speed, way) = (speed_max(&rules.tuning), way_max(&rules.tuning));
    let could_fly = throws.iter().enumerate().all(|(n, throw)| {
        let again = throws[..n].iter().any(|other| other.prop == throw.prop);
        let Some(from) = place_of(game, throw.prop).filter(|_| !again) else {
            return false;
        };
        let radius = throw.prop.radius();
        let is_near = from.distance(at) <= reach(bomb, &rules.tuning) + GRAIN;
        let mut corner = from;
        is_near
            && throw.corners(from).all(|next| {
                let is_slow = next.distance(corner) <= speed * LEG_TICKS as f32 + GRAIN;
                let is_free = rules.place(next, radius).distance(next) <= GRAIN;
                let is_seen = rules.sees(corner, next);
                corner = next;
                is_slow && is_free && is_seen && next.distance(from) <= way
            })
    });
    could_fly && are_caused(game, rules, bomb, at, throws)
}

/// Returns `true` if each flying thing has a cause: the blast hits it, another flying thing meets it before it moves,
/// or it only leaves a thing that it overlapped.
fn are_caused(game: &Game, rules: &Rules, bomb: Bomb, at: Vec2, throws: &[Throw]) -> bool {
    let hits = blast::guess(game, rules, bomb, at);
    let is_hit = |prop: Prop| hits.iter().any(|hit| Prop::of(hit.body) == Some(prop));
    let mut caused: ArrayVec<bool, TOSSED_MAX> = throws
        .iter()
        .map(|throw| is_hit(throw.prop) || comes_out(game, throw))
        .collect();
    // Each round finds the things hit by the things of the round before; no chain is longer than the list.
    for _ in throws {
        for n in 0..throws.len() {
            caused[n] = caused[n]
                || (throws.iter().zip(&caused))
                    .any(|(other, is_caused)| *is_caused && meets(game, rules, other, &throws[n]));
        }
    }
    caused.iter().all(|is_caused| *is_caused)
}

/// Returns `true` if `other` gets near enough to push `throw` before `throw` moves. `other` may bounce between two
/// corners of its path, so it may have been anywhere within half a leg.
fn meets(game: &Game, rules: &Rules, other: &Throw, throw: &Throw) -> bool {
    let (Some(from), Some(lay)) = (place_of(game, other.prop), place_of(game, throw.prop)) else {
        return false;
    };
    let still = throw.legs.iter().take_while(|leg| **leg == [0, 0]).count();
    let touch = other.prop.outer_radius() + throw.prop.outer_radius() + GRAIN;
    let reach = touch + speed_max(&rules.tuning) * LEG_TICKS as f32 / 2.0;
    let corners = core::iter::once(from).chain(other.corners(from));
    corners
        .take(still + 2)
        .any(|corner| corner.distance(lay) <= reach)
}

/// Returns `true` if the thing only moves out of another thing that it overlapped. Things that land at the same
/// position overlap.
fn comes_out(game: &Game, throw: &Throw) -> bool {
    let Some(from) = place_of(game, throw.prop) else {
        return false;
    };
    game.lying().any(|(other, place)| {
        let touch = throw.prop.outer_radius() + other.outer_radius();
        let mut corners = throw.corners(from);
        other != throw.prop
            && place.distance(from) < touch
            && corners.all(|corner| corner.distance(from) <= touch)
    })
}

fn place_of(game: &Game, prop: Prop) -> Option<Vec2> {
    let mut lying = game.lying();
    lying
        .find(|(other, _)| *other == prop)
        .map(|(_, place)| place)
}

/// Returns what a client assumes until the server's answer arrives: nearly always the exact hits for a blast, nearly
/// the right flights for a toss, and `None` for secrets. `game` is the state at the end of the tick that asked.
///
/// Cost: three lines past all walls and crates for each body within reach; see `guess` for a toss.
#[must_use]
pub fn speculate(game: &Game, rules: &Rules, query: &Query) -> Option<Outcome> {
    match *query {
        Query::Blast { bomb, at, .. } => {
            let hits = blast::guess(game, rules, bomb, at.to_vec2());
            Some(Outcome::Blast { hits })
        }
        Query::Toss { bomb, at, .. } => {
            let hits = blast::guess(game, rules, bomb, at.to_vec2());
            Some(guess(game, rules, bomb, at.to_vec2(), &hits))
        }
        Query::Loot { .. } | Query::Crit(_) => None,
    }
}

#[cfg(test)]
mod tests {
    use super::super::testing::*;
    use super::*;
    use crate::blast;

    const BARREL: Prop = Prop::Barrel(6);
    const MIDDLE: Vec2 = Vec2::new(-28.0, -1.0);
    const BOMB: Bomb = Bomb::Barrel(3);

    fn field(offset: Vec2) -> SoloGame {
        let mut game = with_player(quiet());
        game.sim_mut().barrels[6].at = MIDDLE + offset;
        game
    }

    fn guessed(game: &SoloGame) -> ArrayVec<Throw, TOSSED_MAX> {
        let (sim, rules) = (game.sim(), rules());
        let hits = blast::guess(sim, &rules, BOMB, MIDDLE);
        match guess(sim, &rules, BOMB, MIDDLE, &hits) {
            Outcome::Toss { throws } => throws,
            other => panic!("{other:?}"),
        }
    }

    fn path(legs: &[[i8; 2]]) -> ArrayVec<Throw, TOSSED_MAX> {
        let legs = legs.iter().copied().collect();
        [Throw { prop: BARREL, legs }].into_iter().collect()
    }

    #[test]
    fn a_nearer_thing_is_thrown_farther_and_always_away_from_the_middle() {
        let mut last = f32::INFINITY;
        for distance in [1.0, 2.0, 3.0, 4.5, 6.0] {
            let way = Vec2::new(0.6, -0.8);
            let game = field(way * distance);
            let throws = guessed(&game);
            let from = MIDDLE + way * distance;
            let flown = throws[0].corners(from).last().unwrap() - from;
            assert!(flown.normalize().dot(way) > 0.999, "{flown}");
            assert!(
                flown.length() < last && flown.length() > 1.0,
                "{flown} at {distance}"
            );
            last = flown.length();
        }
    }

    #[test]
    fn a_guess_bounces_off_a_wall() {
        // The wall at (−33, 0.25) reaches to −31.75.
        let game = field(Vec2::new(-2.0, 0.0));
        let from = MIDDLE - Vec2::X * 2.0;
        let throws = guessed(&game);
        let corners: Vec<Vec2> = throws[0].corners(from).collect();
        let nearest = corners.iter().map(|at| at.x).fold(f32::INFINITY, f32::min);
        assert!((-31.3..-30.5).contains(&nearest), "{nearest}");
        assert!(corners.last().unwrap().x > nearest + 0.2, "{corners:?}");
    }

    /// Row 52: the referee accepts only possible answers from an owner's client.
    #[test]
    fn the_referee_accepts_only_possible_tosses() {
        let game = field(Vec2::X * 2.0);
        let judge = |throws: &ArrayVec<Throw, TOSSED_MAX>| {
            is_possible(game.sim(), &rules(), BOMB, MIDDLE, throws)
        };
        assert!(judge(&guessed(&game)), "an honest answer");
        assert!(judge(&ArrayVec::new()), "nothing moved");
        assert!(judge(&path(&[[30, 10], [10, 3]])));
        assert!(!judge(&path(&[[127, 0]])), "too fast");
        assert!(!judge(&path(&[[36, 0]; 10])), "too far");
        assert!(
            !judge(&path(&[[-30, 0], [-30, 0], [-30, 0], [-30, 0]])),
            "through a wall"
        );
        let mut twice = path(&[[4, 0]]);
        twice.extend(path(&[[4, 0]]));
        assert!(!judge(&twice), "two at once");
        let mut unknown = path(&[[4, 0]]);
        unknown[0].prop = Prop::Crate(9);
        assert!(!judge(&unknown), "a thing that is not there");
        let mut distant = path(&[[4, 0]]);
        distant[0].prop = Prop::Barrel(13);
        assert!(!judge(&distant), "a thing that is far away");
        // A path from beside the wall at (−9.5, 0.5) to above it: both ends are free, but the wall's corner is in
        // between.
        let mut game = field(Vec2::ZERO);
        let from = Vec2::new(-11.0625, 2.0);
        game.sim_mut().barrels[6].at = from;
        let judge = |legs| {
            let center = from - Vec2::new(1.0, 1.5);
            is_possible(game.sim(), &rules(), BOMB, center, &path(legs))
        };
        assert!(judge(&[[0, 33]]) && !judge(&[[18, 33]]), "through a corner");
    }

    /// Row 52: a thing outside the blast flies only after a thrown thing has hit it.
    #[test]
    fn a_throw_without_a_blast_hit_needs_a_push() {
        const WAY: Vec2 = Vec2::new(0.6, -0.8);
        let mut game = field(WAY * 2.0);
        game.sim_mut().barrels[7].at = MIDDLE + WAY * 8.6;
        game.sim_mut().barrels[8].at = MIDDLE + WAY * 10.0;
        let hits = blast::guess(game.sim(), &rules(), BOMB, MIDDLE);
        let is_hit = |n| hits.iter().any(|hit| hit.body == Prop::Barrel(n).into());
        assert!(is_hit(6) && !is_hit(7) && !is_hit(8));
        let judge = |paths: &[(u8, &[[i8; 2]])]| {
            let throws = paths.iter().map(|(n, legs)| Throw {
                prop: Prop::Barrel(*n),
                legs: legs.iter().copied().collect(),
            });
            is_possible(game.sim(), &rules(), BOMB, MIDDLE, &throws.collect())
        };
        let far: (u8, &[[i8; 2]]) = (6, &[[21, -28], [21, -28]]);
        let pushed: (u8, &[[i8; 2]]) = (7, &[[0, 0], [3, -4]]);
        let pushed_on: (u8, &[[i8; 2]]) = (8, &[[0, 0], [0, 0], [3, -4]]);
        assert!(judge(&[far]) && judge(&[far, pushed]), "met by what flies");
        assert!(judge(&[pushed_on, far, pushed]), "and that meets the next");
        assert!(
            !judge(&[pushed]) && !judge(&[pushed, pushed_on]),
            "without a cause"
        );
        assert!(
            !judge(&[(6, &[[4, -5]]), pushed]),
            "it does not come so far"
        );
        assert!(!judge(&[far, (7, &[[3, -4]])]), "before it is met");
        game.sim_mut().barrels[8].at = MIDDLE + WAY * 8.8;
        let judge = |legs: &[[i8; 2]]| {
            let throw = Throw {
                prop: Prop::Barrel(7),
                legs: legs.iter().copied().collect(),
            };
            let throws = [throw].into_iter().collect();
            is_possible(game.sim(), &rules(), BOMB, MIDDLE, &throws)
        };
        assert!(judge(&[[-2, 3]]), "it lay in another thing");
        assert!(!judge(&[[-20, 28]]), "and only comes out of it");
    }
}
