//! How the server decides a blast: by its physics mirror, with walls that hide.
//!
//! With `judge`, the only file of the game that looks at the server crate. Nothing of the mirror is state: it is filled
//! from lockstep positions for each question.

use glam::Vec2;
use twinstep_core::{Key, Mwc};
use twinstep_server::physics::{Layers, Mirror, MirrorError, Shape};
use twinstep_server::{Look, Resolution, Resolver};

use super::{Body, Bomb, Game, Hit, Item, Outcome, Query, Rules, Weapon, bodies_near};

const WALLS: Layers = Layers::bit(0);
const BODIES: Layers = Layers::bit(1);

/// Answers blasts. One for each match: it keeps its buffers.
pub struct Blaster {
    mirror: Mirror<Body>,
    luck: Mwc,
}

impl Blaster {
    /// Takes the walls from the rules. All secrets are rolled with `entropy`: nobody else may know it.
    ///
    /// # Errors
    /// [`MirrorError::Wall`] if the level has a wall without size.
    pub fn new(rules: &Rules, entropy: u64) -> Result<Blaster, MirrorError<Body>> {
        let mut mirror = Mirror::new();
        for wall in &rules.walls {
            mirror.add_wall(Shape::Box { half: wall.half }, wall.center, 0.0, WALLS)?;
        }
        Ok(Blaster {
            mirror,
            luck: Mwc::seed(entropy),
        })
    }

    /// Whom a blast hits, in the world at the end of the tick that asked.
    ///
    /// # Errors
    /// A position that is no number: a bug of the step, which the digest names as well.
    pub fn decide(
        &mut self,
        game: &Game,
        rules: &Rules,
        query: &Query,
    ) -> Result<Outcome, MirrorError<Body>> {
        let (bomb, center): (Bomb, Vec2) = match *query {
            Query::Blast { bomb, at, .. } => (bomb, at.to_vec2()),
            Query::Loot { .. } => return Ok(Outcome::Loot(self.loot())),
            Query::Crit(_) => {
                let is_crit = self.luck.below(100) < rules.tuning.crit_percent;
                return Ok(Outcome::Crit(is_crit));
            }
        };
        let reach = bomb.radius(&rules.tuning);
        let mut fill = self.mirror.refill();
        for (body, at, radius) in bodies_near(game, center, reach) {
            fill.put(body, Shape::Ball { radius }, at, 0.0, BODIES)?;
        }
        let hits = self.mirror.area_visible(center, reach, BODIES, WALLS)?;
        Ok(Outcome::blast(
            hits.iter().map(|hit| Hit::new(hit.id, hit.distance_64ths)),
        ))
    }

    fn loot(&mut self) -> Option<Item> {
        match self.luck.below(10) {
            0 => Some(Item::Weapon(Weapon::Scatter)),
            1 => Some(Item::Weapon(Weapon::Lance)),
            2 => Some(Item::Weapon(Weapon::Thumper)),
            3 | 4 => Some(Item::Health),
            5 | 6 => Some(Item::Shield),
            7 => Some(Item::Life),
            _ => None,
        }
    }
}

impl Resolver<Game> for Blaster {
    /// The mirror is quick enough to answer within the tick. One that refuses its bodies has met a bug of the
    /// step; the panic becomes "no answer", and the barrel fizzles.
    fn resolve(&mut self, look: &Look<'_, Game>, _: Key, query: &Query) -> Resolution<Outcome> {
        match self.decide(look.sim(), look.rules(), query) {
            Ok(outcome) => Resolution::Now(outcome),
            Err(error) => panic!("{error}"),
        }
    }
}

#[cfg(test)]
mod tests {
    use twinstep_core::Tick;

    use super::super::testing::*;
    use super::super::{Point, speculate};
    use super::*;

    #[test]
    fn clients_guess_what_the_server_decides() {
        let rules = Rules::arena(300);
        let mut game = with_player(solo(rules.clone()));
        game.join(TWO).run(700);
        let mut blaster = Blaster::new(&rules, 1).unwrap();
        let mut luck = Mwc::seed(11);
        let (mut hits, mut wrong) = (0, 0);
        for n in 0..2_000 {
            game.step();
            // Barrels of the level, and places from everywhere.
            let at = if n % 2 == 0 {
                rules.barrels[n / 2 % rules.barrels.len()]
            } else {
                (Vec2::new(luck.unit_f32(), luck.unit_f32()) * 2.0 - 1.0) * rules.half
            };
            let query = Query::Blast {
                bomb: Bomb::Barrel(0),
                at: Point::of(at),
                asked: Tick(0),
            };
            let truth = blaster.decide(game.sim(), &rules, &query).unwrap();
            let Outcome::Blast { hits: list } = &truth else {
                panic!("a blast");
            };
            hits += list.len();
            wrong += usize::from(speculate(game.sim(), &rules, &query) != Some(truth));
        }
        assert!(hits > 5_000, "{hits}");
        assert_eq!(wrong, 0, "wrong guesses of 2,000");
    }

    #[test]
    fn a_wall_hides_from_the_server_too() {
        let mut game = with_player(quiet());
        put_enemy(&mut game, 0, Vec2::new(-12.0, 4.0));
        put_enemy(&mut game, 1, Vec2::new(-7.5, 0.5));
        let query = Query::Blast {
            bomb: Bomb::Barrel(0),
            at: Point::of(Vec2::new(-12.0, 0.5)),
            asked: Tick(0),
        };
        let mut blaster = Blaster::new(&rules(), 1).unwrap();
        let Outcome::Blast { hits } = blaster.decide(game.sim(), &rules(), &query).unwrap() else {
            panic!("a blast");
        };
        let bodies: Vec<Body> = hits.iter().map(|hit| hit.body).collect();
        assert_eq!(bodies, [Body::Enemy(0), Body::Barrel(2)]);
    }
}
