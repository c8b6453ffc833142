//! The blast as question and answer, and how a client guesses it.
//!
//! ```text
//!   simulation ──Query::Blast──▶ server: physics mirror, walls hide (resolve.rs) ──▶ Outcome in a frame
//!                       └──────▶ client: the same question by plain geometry (here) ──▶ assumed Outcome
//! ```
//!
//! The guess draws the same three lines to a body as the mirror does (to its middle and to where it looks
//! widest), so it is right except when rounding decides; then the prediction is rebuilt.

use arrayvec::ArrayVec;
use glam::Vec2;
use serde::{Deserialize, Serialize};
use twinstep_core::{PlayerId, Tick};

use super::barrel::BARREL_RADIUS;
use super::crates::CRATE_HALF;
use super::player::PLAYER_RADIUS;
use super::{Game, Item, Point, Rules, Tuning};

/// Whom one blast can hit: the nearest so many. Keeps an outcome within 256 B.
pub const HITS_MAX: usize = 48;

/// What the simulation asks.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub enum Query {
    /// Whom does this blast hit?
    Blast {
        /// What went off.
        bomb: Bomb,
        /// Where.
        at: Point,
        /// When it was asked: who comes later is not hurt.
        asked: Tick,
    },
    /// What is in this crate? A secret of the server's: nobody guesses it.
    Loot {
        /// Its number.
        n: u8,
    },
    /// Was this hit critical? A secret as well.
    Crit(Strike),
}

/// What goes off.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub enum Bomb {
    /// A barrel, by number.
    Barrel(u8),
    /// A shell, where it lands.
    Shell {
        /// Who fired it.
        owner: PlayerId,
        /// Which of the player's shots.
        n: u32,
    },
}

impl Bomb {
    /// How far its blast reaches, in units.
    #[must_use]
    pub fn radius(self, tuning: &Tuning) -> f32 {
        match self {
            Bomb::Barrel(_) => tuning.blast_radius,
            Bomb::Shell { .. } => tuning.shell_radius,
        }
    }

    /// What its blast takes at its middle.
    #[must_use]
    pub fn damage(self, tuning: &Tuning) -> i16 {
        match self {
            Bomb::Barrel(_) => tuning.blast_damage,
            Bomb::Shell { .. } => tuning.shell_damage,
        }
    }
}

/// A hit that may be critical.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Strike {
    /// Who was hit.
    pub slot: u16,
    /// By whom.
    pub by: PlayerId,
    /// When it was asked: who comes later is not hurt.
    pub asked: Tick,
}

/// What it is told.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[expect(
    clippy::large_enum_variant,
    reason = "an outcome owns no heap, so that frames are copied without allocating"
)]
pub enum Outcome {
    /// These, nearest first; of equals by body.
    Blast {
        /// Each body once.
        hits: ArrayVec<Hit, HITS_MAX>,
    },
    /// This was in the crate, if anything.
    Loot(Option<Item>),
    /// Whether the hit was critical.
    Crit(bool),
}

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
}

impl Outcome {
    /// A blast that hits the nearest [`HITS_MAX`] of these, in whatever order they come.
    #[must_use]
    pub fn blast(all: impl Iterator<Item = Hit>) -> Outcome {
        let mut hits = ArrayVec::<Hit, HITS_MAX>::new();
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
        Outcome::Blast { hits }
    }

    /// Whether another answer names the same bodies, at the same distances to within an 8th of a unit.
    #[must_use]
    pub fn agrees_with(&self, other: &Outcome) -> bool {
        let (Outcome::Blast { hits }, Outcome::Blast { hits: others }) = (self, other) else {
            return self == other;
        };
        let known = |hit: &Hit| {
            others.iter().any(|other| {
                hit.body == other.body && hit.distance_8ths.abs_diff(other.distance_8ths) <= 1
            })
        };
        hits.len() == others.len() && hits.iter().all(known)
    }
}

/// Everybody whom a blast at `center` may reach: body, place and radius. Walls are not asked.
pub fn bodies_near(
    game: &Game,
    center: Vec2,
    reach: f32,
) -> impl Iterator<Item = (Body, Vec2, f32)> {
    let players = game.players.iter().filter(|(_, player)| player.is_alive());
    let enemies = game
        .enemies
        .iter()
        .zip(0..)
        .filter(|(enemy, _)| enemy.is_alive());
    let barrels = game
        .barrels
        .iter()
        .zip(0..)
        .filter(|(barrel, _)| barrel.stands());
    let crates = game
        .crates
        .iter()
        .zip(0..)
        .filter(|(chest, _)| chest.stands());
    players
        .map(|(id, player)| (Body::Player(*id), player.at, PLAYER_RADIUS))
        .chain(enemies.map(|(enemy, slot)| (Body::Enemy(slot), enemy.at, enemy.kind.radius())))
        .chain(barrels.map(|(barrel, n)| (Body::Barrel(n), barrel.at, BARREL_RADIUS)))
        .chain(crates.map(|(chest, n)| (Body::Crate(n), chest.at, CRATE_HALF)))
        .filter(move |(_, at, radius)| at.distance(center) - radius <= reach)
}

/// What a client assumes until the server's answer is there: of a blast the exact one, nearly always; of secrets
/// nothing. It is told the state at the end of the tick that asked.
///
/// Cost: three lines past all walls for each body within reach.
#[must_use]
pub fn speculate(game: &Game, rules: &Rules, query: &Query) -> Option<Outcome> {
    let Query::Blast { bomb, at, .. } = *query else {
        return None;
    };
    let center = at.to_vec2();
    let reach = bomb.radius(&rules.tuning);
    let hits = bodies_near(game, center, reach).filter_map(|(body, at, radius)| {
        let distance = (at.distance(center) - radius).max(0.0);
        let is_hit = distance == 0.0
            || outline(center, at, radius)
                .into_iter()
                .any(|p| rules.sees(center, p));
        is_hit.then(|| Hit::new(body, libm::roundf(distance * 64.0) as u32))
    });
    Some(Outcome::blast(hits))
}

/// The middle of a disc, and the two points where lines from `eye` (outside) touch it.
fn outline(eye: Vec2, center: Vec2, radius: f32) -> [Vec2; 3] {
    let toward = eye - center;
    let distance = toward.length();
    let cos = (radius / distance).min(1.0);
    let sin = (1.0 - cos * cos).sqrt();
    let rim = toward / distance * radius;
    [
        center,
        center + rim * cos + rim.perp() * sin,
        center + rim * cos - rim.perp() * sin,
    ]
}

#[cfg(test)]
mod tests {
    use twinstep_core::bounds::OUTCOME_BYTES_MAX;
    use twinstep_core::codec;

    use super::super::testing::*;
    use super::*;

    fn hits(outcome: Option<Outcome>) -> Vec<Body> {
        let Some(Outcome::Blast { hits }) = outcome else {
            panic!("no guess")
        };
        hits.iter().map(|hit| hit.body).collect()
    }

    #[test]
    fn the_largest_outcome_fits_its_bound() {
        let all = (0..200).map(|n| Hit {
            distance_8ths: 255,
            body: Body::Enemy(u16::MAX - n),
        });
        let outcome = Outcome::blast(all);
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
            let Outcome::Blast { hits } = Outcome::blast(all.iter().copied()) else {
                panic!("a blast")
            };
            all.sort();
            all.truncate(HITS_MAX);
            assert_eq!(hits.as_slice(), all);
        }
    }

    #[test]
    fn walls_hide_and_the_dead_are_not_there() {
        let mut game = with_player(quiet());
        let query = Query::Blast {
            bomb: Bomb::Barrel(0),
            at: Point::of(Vec2::new(-12.0, 0.5)),
            asked: Tick(0),
        };
        player_mut(&mut game).at = Vec2::new(-14.0, 0.5);
        put_enemy(&mut game, 0, Vec2::new(-12.0, 4.0));
        // Behind the wall at (−9.5, 0.5).
        put_enemy(&mut game, 1, Vec2::new(-7.5, 0.5));
        put_enemy(&mut game, 2, Vec2::new(-12.0, -20.0));
        let guess = |game: &Solo| hits(speculate(game.sim(), &rules(), &query));
        // Barrel 2 stands at (−15.75, 4.5), in reach.
        assert_eq!(
            guess(&game),
            [Body::Player(ONE), Body::Enemy(0), Body::Barrel(2)]
        );
        game.sim_mut().enemies[0].health = 0;
        assert_eq!(guess(&game), [Body::Player(ONE), Body::Barrel(2)]);
    }
}
