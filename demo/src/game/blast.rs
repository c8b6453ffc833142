//! The blast as question and answer, and how a client guesses it.
//!
//! ```text
//!   simulation ──Query::Blast──▶ server: physics mirror, an area query (resolve.rs) ──▶ Outcome in a frame
//!                       └──────▶ client: the same question by plain geometry (here) ──▶ assumed Outcome
//! ```
//!
//! Walls and standing crates hide what is behind them. The guess draws the same three lines to a body as the
//! mirror does (to its middle and to where it looks widest), so it is right except when rounding decides; then
//! the prediction is rebuilt.

use arrayvec::ArrayVec;
use glam::Vec2;
use serde::{Deserialize, Serialize};
use twinstep_core::PlayerId;

use super::player::PLAYER_RADIUS;
use super::{Bomb, Game, Rules, Tuning};

/// Whom one blast can hit: the nearest so many. Keeps an outcome within 256 B.
pub const HITS_MAX: usize = 48;

/// Who can be hit. Small on the wire, and stable: a slot or number, never an index into a list that shrinks.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
pub enum Body {
    /// A player.
    Player(PlayerId),
    /// An enemy, by slot.
    Enemy(u16),
    /// A barrel, by number.
    Barrel(u8),
    /// A crate, by number.
    Crate(u8),
}

/// A body in a blast.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
pub struct Hit {
    /// From the middle of the blast to the nearest point of the body, in whole 8ths of a unit.
    pub distance_8ths: u8,
    /// Whom.
    pub body: Body,
}

impl Hit {
    /// From a distance in 64ths of a unit, as the physics mirror gives it.
    #[must_use]
    pub fn new(body: Body, distance_64ths: u32) -> Hit {
        Hit {
            distance_8ths: u8::try_from(distance_64ths / 8).unwrap_or(u8::MAX),
            body,
        }
    }

    /// What the blast takes: all of it at its middle, half at its edge. Whole numbers all the way.
    #[must_use]
    pub fn damage(&self, bomb: Bomb, tuning: &Tuning) -> i16 {
        let edge_8ths = ((bomb.radius(tuning) * 8.0) as i32).max(1);
        let distance_8ths = i32::from(self.distance_8ths).min(edge_8ths);
        let full = i32::from(bomb.damage(tuning));
        (full - full * distance_8ths / (2 * edge_8ths)) as i16
    }

    /// The nearest [`HITS_MAX`] of these, nearest first, in whatever order they come.
    #[must_use]
    pub fn nearest(all: impl IntoIterator<Item = Hit>) -> Hits {
        let mut hits = Hits::new();
        for hit in all {
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

/// Whom a blast hits: nearest first, of equals by body.
pub type Hits = ArrayVec<Hit, HITS_MAX>;

/// Whether two answers name the same bodies, at the same distances to within an 8th of a unit.
#[must_use]
pub(super) fn agree(hits: &[Hit], others: &[Hit]) -> bool {
    let known = |hit: &Hit| {
        others.iter().any(|other| {
            hit.body == other.body && hit.distance_8ths.abs_diff(other.distance_8ths) <= 1
        })
    };
    hits.len() == others.len() && hits.iter().all(known)
}

/// How a body looks from above.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Form {
    /// A disc of this radius.
    Disc(f32),
    /// A square along the axes, of which this is half a side.
    Square(f32),
}

impl Form {
    /// From a point to the nearest point of a body at `at`; 0 inside.
    fn distance(self, at: Vec2, point: Vec2) -> f32 {
        match self {
            Form::Disc(radius) => (at.distance(point) - radius).max(0.0),
            Form::Square(half) => ((point - at).abs() - half).max(Vec2::ZERO).length(),
        }
    }

    /// The middle, and the two outermost points as seen from `eye`, which lies outside.
    fn outline(self, at: Vec2, eye: Vec2) -> [Vec2; 3] {
        match self {
            Form::Disc(radius) => {
                // Where two lines from the eye touch the circle.
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

/// Everybody whom a blast at `center` may reach: body, place and form. Walls are not asked; what is in the air
/// is not there.
pub fn bodies_near(
    game: &Game,
    center: Vec2,
    reach: f32,
) -> impl Iterator<Item = (Body, Vec2, Form)> {
    let players = game.players.iter().filter(|(_, player)| player.is_alive());
    let enemies = game.enemies.iter().zip(0..);
    let enemies = enemies.filter(|(enemy, _)| enemy.is_alive());
    let lying = game
        .lying()
        .map(|(prop, at)| (prop.into(), at, prop.form()));
    players
        .map(|(id, player)| (Body::Player(*id), player.at, Form::Disc(PLAYER_RADIUS)))
        .chain(enemies.map(|(enemy, slot)| {
            let form = Form::Disc(enemy.kind.radius());
            (Body::Enemy(slot), enemy.at, form)
        }))
        .chain(lying)
        .filter(move |(_, at, form)| form.distance(*at, center) <= reach)
}

/// Whom a client thinks that a blast hits.
pub(super) fn guess(game: &Game, rules: &Rules, bomb: Bomb, center: Vec2) -> Hits {
    let reach = bomb.radius(&rules.tuning);
    let hits = bodies_near(game, center, reach).filter_map(|(body, at, form)| {
        let distance = form.distance(at, center);
        let sees = |point| rules.sees(center, point) && !is_hidden(game, body, center, point);
        let is_hit = distance == 0.0 || form.outline(at, center).into_iter().any(sees);
        is_hit.then(|| Hit::new(body, libm::roundf(distance * 64.0) as u32))
    });
    Hit::nearest(hits)
}

/// Whether a crate, but for `body` itself, lies between two points.
fn is_hidden(game: &Game, body: Body, from: Vec2, to: Vec2) -> bool {
    let mut crates = game.crates.iter().zip(0..);
    crates.any(|(chest, n)| {
        chest.stands() && body != Body::Crate(n) && chest.solid().meets(from, to - from).is_some()
    })
}

#[cfg(test)]
mod tests {
    use twinstep_core::bounds::OUTCOME_BYTES_MAX;
    use twinstep_core::codec;

    use super::super::testing::*;
    use super::*;
    use crate::game::Outcome;

    fn hits(game: &Solo, at: Vec2) -> Vec<Body> {
        let hits = guess(game.sim(), &rules(), Bomb::Barrel(0), at);
        hits.iter().map(|hit| hit.body).collect()
    }

    #[test]
    fn the_largest_outcome_fits_its_bound() {
        let all = (0..200).map(|n| Hit {
            distance_8ths: 255,
            body: Body::Enemy(u16::MAX - n),
        });
        let hits = Hit::nearest(all);
        let outcome = Outcome::Blast { hits };
        assert!(codec::size(&outcome).unwrap() <= OUTCOME_BYTES_MAX);
    }

    #[test]
    fn the_nearest_are_kept_in_order_however_they_come() {
        let mut luck = twinstep_core::Mwc::seed(8);
        for count in [0, 1, 47, 48, 49, 300] {
            let mut all: Vec<Hit> = (0..count)
                .map(|n| Hit {
                    distance_8ths: luck.below(20) as u8,
                    body: Body::Enemy(n),
                })
                .collect();
            let hits = Hit::nearest(all.iter().copied());
            all.sort();
            all.truncate(HITS_MAX);
            assert_eq!(hits.as_slice(), all);
        }
    }

    #[test]
    fn walls_hide_and_the_dead_are_not_there() {
        let mut game = with_player(quiet());
        let middle = Vec2::new(-12.0, 0.5);
        player_mut(&mut game).at = Vec2::new(-14.0, 0.5);
        put_enemy(&mut game, 0, Vec2::new(-12.0, 4.0));
        // Behind the wall at (−9.5, 0.5).
        put_enemy(&mut game, 1, Vec2::new(-7.5, 0.5));
        put_enemy(&mut game, 2, Vec2::new(-12.0, -20.0));
        // Barrel 2 stands at (−15.75, 4.5), in reach.
        assert_eq!(
            hits(&game, middle),
            [Body::Player(ONE), Body::Enemy(0), Body::Barrel(2)]
        );
        game.sim_mut().enemies[0].health = 0;
        assert_eq!(hits(&game, middle), [Body::Player(ONE), Body::Barrel(2)]);
    }
}
