//! The blast as query and outcome, and how a client guesses the outcome.
//!
//! ```text
//!   simulation ──Query::Blast──▶ server: physics mirror, an area query (resolve.rs) ──▶ Outcome in a frame
//!                       └──────▶ client: the same question by plain geometry (here) ──▶ assumed Outcome
//! ```
//!
//! Walls, and crates on the ground, hide the bodies behind them. The guess draws the same three lines to a body as the
//! mirror does (to its middle and to its two outermost points), so in the same state they differ only by rounding. A
//! wrong guess costs a rebuild of the prediction.

use glam::Vec2;

use super::hit::{BlastHit, BlastHits, Bomb, Form, Victim};
use super::rules::Rules;
use super::state::{Game, PLAYER_RADIUS};

#[must_use]
pub(super) fn agree(hits: &[BlastHit], others: &[BlastHit]) -> bool {
    let known = |hit: &BlastHit| {
        others.iter().any(|other| {
            hit.body == other.body && hit.distance_8ths.abs_diff(other.distance_8ths) <= 1
        })
    };
    hits.len() == others.len() && hits.iter().all(known)
}

/// Returns all bodies that a blast at `center` may reach, with their positions and shapes. Ignores walls, and props in
/// the air.
pub fn bodies_near(
    game: &Game,
    center: Vec2,
    reach: f32,
) -> impl Iterator<Item = (Victim, Vec2, Form)> {
    let players = game.players.iter().filter(|(_, player)| player.is_alive());
    let enemies = game.enemies.iter().zip(0..);
    let enemies = enemies.filter(|(enemy, _)| enemy.is_alive());
    let lying = game
        .lying()
        .map(|(prop, at)| (prop.into(), at, prop.form()));
    players
        .map(|(id, player)| (Victim::Player(*id), player.at, Form::Disc(PLAYER_RADIUS)))
        .chain(enemies.map(|(enemy, slot)| {
            let form = Form::Disc(enemy.kind.radius());
            (Victim::Enemy(slot), enemy.at, form)
        }))
        .chain(lying)
        .filter(move |(_, at, form)| form.distance(*at, center) <= reach)
}

pub(super) fn guess(game: &Game, rules: &Rules, bomb: Bomb, center: Vec2) -> BlastHits {
    let reach = bomb.radius(&rules.tuning);
    let hits = bodies_near(game, center, reach).filter_map(|(body, at, form)| {
        let distance = form.distance(at, center);
        let sees = |point| rules.sees(center, point) && !is_hidden(game, body, center, point);
        // From a point inside the shape there is no outline.
        let is_hit = distance == 0.0 || form.outline(at, center).into_iter().any(sees);
        is_hit.then(|| BlastHit::new(body, libm::roundf(distance * 64.0) as u32))
    });
    BlastHit::nearest(hits)
}

fn is_hidden(game: &Game, body: Victim, from: Vec2, to: Vec2) -> bool {
    let mut crates = game.crates.iter().zip(0..);
    crates.any(|(chest, n)| {
        chest.stands() && body != Victim::Crate(n) && chest.solid().meets(from, to - from).is_some()
    })
}

#[cfg(test)]
mod tests {
    use twinstep_core::bounds::OUTCOME_BYTES_MAX;
    use twinstep_core::codec;

    use super::super::testing::*;
    use super::*;
    use crate::{HITS_MAX, Outcome};

    fn hits(game: &SoloGame, at: Vec2) -> Vec<Victim> {
        let hits = guess(game.sim(), &rules(), Bomb::Barrel(0), at);
        hits.iter().map(|hit| hit.body).collect()
    }

    #[test]
    fn the_largest_outcome_fits_its_bound() {
        let all = (0..200).map(|n| BlastHit {
            distance_8ths: 255,
            body: Victim::Enemy(u16::MAX - n),
        });
        let hits = BlastHit::nearest(all);
        let outcome = Outcome::Blast { hits };
        assert!(codec::size(&outcome).unwrap() <= OUTCOME_BYTES_MAX);
    }

    #[test]
    fn the_nearest_hits_are_kept_in_order_for_any_input_order() {
        let mut luck = twinstep_core::Mwc::seed(8);
        for count in [0, 1, 47, 48, 49, 300] {
            let mut all: Vec<BlastHit> = (0..count)
                .map(|n| BlastHit {
                    distance_8ths: luck.below(20) as u8,
                    body: Victim::Enemy(n),
                })
                .collect();
            let hits = BlastHit::nearest(all.iter().copied());
            all.sort();
            all.truncate(HITS_MAX);
            assert_eq!(hits.as_slice(), all);
        }
    }

    #[test]
    fn bodies_behind_walls_and_dead_bodies_are_not_hit() {
        let mut game = with_player(quiet());
        let middle = Vec2::new(-12.0, 0.5);
        player_mut(&mut game).at = Vec2::new(-14.0, 0.5);
        put_enemy(&mut game, 0, Vec2::new(-12.0, 4.0));
        // Behind the wall at (−9.5, 0.5).
        put_enemy(&mut game, 1, Vec2::new(-7.5, 0.5));
        put_enemy(&mut game, 2, Vec2::new(-12.0, -20.0));
        // Barrel 2 is at (−15.75, 4.5), within reach.
        assert_eq!(
            hits(&game, middle),
            [Victim::Player(ONE), Victim::Enemy(0), Victim::Barrel(2)]
        );
        game.sim_mut().enemies[0].health = 0;
        assert_eq!(
            hits(&game, middle),
            [Victim::Player(ONE), Victim::Barrel(2)]
        );
    }
}
