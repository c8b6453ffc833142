//! The server's answers to queries: blasts, tosses, and secrets.
//!
//! ```text
//!   Query::Blast             ──▶ an area query; walls and crates hide bodies  ──▶ the bodies hit, and how near each is
//!                                  (for a shell, other players stand where its owner's screen showed them: `seen_by`)
//!   Query::Toss              ──▶ flights of rigid bodies, pushed with luck    ──▶ paths
//!   Query::Loot, Query::Crit ──▶ a random number                              ──▶ an outcome that no client can predict
//! ```
//!
//! Besides `judge` and `terms`, this is the only file in the game that uses the server crate. It keeps no state between
//! queries: each time, the physics mirror is filled from the server's world, and random numbers are drawn anew.

use glam::Vec2;
use twinstep_core::{Key, Mwc, PlayerId};
use twinstep_rapier2d::flight::{self, FlightError, Flights, Material, Motion, Track};
use twinstep_rapier2d::{Layers, Mirror, MirrorError, STEPS_PER_UNIT, Shape};
use twinstep_server::{Decision, HookContext, Resolver};

use super::blast::bodies_near;
use super::hit::{BlastHit, BlastHits, Bomb, Form, Victim};
use super::query::{Outcome, Query};
use super::rules::Rules;
use super::secret;
use super::state::{Game, LEG_TICKS, LEGS_MAX, Prop, TOSSED_MAX, Throw};
use super::throw::{self, BOUNCE, DRAG, FRICTION, LUCK, LUCK_ANGLE, TICKS_PER_SECOND};
use super::units::direction;

const WALLS: Layers = Layers::bit(0);
const BODIES: Layers = Layers::bit(1);
const CRATES: Layers = Layers::bit(2);

/// A shell hits other players where its owner's screen showed them at most this long ago: 300 ms of round trip, and
/// some jitter. So a player that has turned away or taken cover is safe after 0.5 s, even if the owner's client claims
/// an older view.
const SEEN_TICKS_MAX: u32 = 30;

// The maximum number of bodies per toss, which limits the decision to a millisecond or two.
const BODIES_MAX: usize = 64;
/// The thickness of the arena's solid edge, in units.
const EDGE: f32 = 4.0;

/// The source of the server's random numbers. Each query gets its own generator.
pub enum Luck {
    /// Random numbers from a seed, for tests: the same queries get the same answers in each run. A player that knows
    /// the seed could predict them.
    Seeded(u64),
    /// Random numbers from outside, such as the operating system's generator: players cannot predict them.
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

/// The reason why a query has no answer. It is always a bug in the step.
#[derive(Clone, Copy, Debug, PartialEq, thiserror::Error)]
#[non_exhaustive]
pub enum ArbiterError {
    #[error("a blast cannot be decided: {0}")]
    Blast(#[from] MirrorError<Victim>),
    #[error("a toss cannot be decided: {0}")]
    Toss(#[from] FlightError<Prop>),
}

/// Answers all queries of a match. It holds the level's walls and reuses its buffers.
pub struct Arbiter {
    mirror: Mirror<Victim>,
    flights: Flights,
    luck: Luck,
}

impl Arbiter {
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
                // Longer than the side, so that the corners are closed.
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

    /// Returns the answer to a query asked under `key`. `game` is the state at the end of the asking tick; for a shell,
    /// as its owner's screen shows it.
    ///
    /// # Errors
    /// If a position is not a number.
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

    fn blast(
        &mut self,
        game: &Game,
        rules: &Rules,
        bomb: Bomb,
        center: Vec2,
    ) -> Result<BlastHits, ArbiterError> {
        let reach = bomb.radius(&rules.tuning);
        let mut fill = self.mirror.refill();
        for (body, at, form) in bodies_near(game, center, reach) {
            let layers = match body {
                Victim::Crate(_) => BODIES | CRATES,
                _ => BODIES,
            };
            fill.put(body, shape(form), at, 0.0, layers)?;
        }
        let hits = self
            .mirror
            .area_visible(center, reach, BODIES, WALLS | CRATES)?;
        Ok(BlastHit::nearest(
            hits.iter()
                .map(|hit| BlastHit::new(hit.id, hit.distance_64ths)),
        ))
    }

    /// Returns the flights of the things that a blast throws, and of the things that these push.
    fn toss(
        &mut self,
        game: &Game,
        rules: &Rules,
        key: Key,
        bomb: Bomb,
        center: Vec2,
    ) -> Result<Outcome, ArbiterError> {
        let hits = self.blast(game, rules, bomb, center)?;
        let reach = throw::reach(bomb, &rules.tuning);
        let mut luck = self.luck.of(key);
        let mut spread = || luck.unit_f32() * 2.0 - 1.0;
        let mut pushed: Vec<(Prop, Vec2)> = throw::thrown(game, &hits)
            .map(|(prop, from, hit)| {
                let push = throw::push(bomb, center, from, hit, &rules.tuning);
                let push = push * (1.0 + LUCK * spread());
                (prop, push.rotate(direction(LUCK_ANGLE * spread())))
            })
            .collect();
        // Hits are sorted by distance, so this drops the farthest.
        pushed.truncate(TOSSED_MAX);

        let mut bodies: Vec<flight::Body<Prop>> = game
            .lying()
            .filter(|(_, at)| at.distance(center) <= reach)
            .map(|(prop, at)| {
                let step = pushed.iter().find(|(other, _)| *other == prop);
                let velocity = step.map_or(Vec2::ZERO, |(_, step)| *step * TICKS_PER_SECOND);
                flight::Body {
                    id: prop,
                    shape: shape(prop.form()),
                    at,
                    angle: 0.0,
                    motion: Motion::Slides { velocity },
                    push: Vec2::ZERO,
                    twist: 0.0,
                }
            })
            .collect();
        // Nearest first, so that the limit drops the farthest.
        bodies.sort_by(|a, b| a.at.distance(center).total_cmp(&b.at.distance(center)));
        bodies.truncate(BODIES_MAX);

        let tracks = self.flights.run(&bodies, LEGS_MAX as u32, LEG_TICKS)?;
        // Thrown things first, nearest first as in `bodies`; then the things that were only pushed.
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

/// Returns the game as `owner`'s screen shows it now. The screen knows the other players up to the tick of its view,
/// and assumes that they keep walking. This function moves them in the same way, by their last step. Everything else on
/// the screen is exact. Returns `None` if the match no longer has worlds of that time.
///
/// Cost: one copy of the state, and up to 30 steps of each player.
fn seen_by(look: &HookContext<'_, Game>, owner: PlayerId) -> Option<Game> {
    let ticks = (look.tick() - look.view_tick(owner)).min(SEEN_TICKS_MAX);
    let view = look.tick().back(ticks);
    let (then, before) = (look.at(view)?, look.at(view.back(1))?);
    let mut seen = look.sim().clone();
    let Game {
        players, crates, ..
    } = &mut seen;
    for (id, player) in players.iter_mut().filter(|(id, _)| **id != owner) {
        let (Some(then), Some(before)) = (then.players.get(id), before.players.get(id)) else {
            continue;
        };
        // The player has died, or respawned. The screen may not know that, but a dead or respawned player is not hit.
        if !then.is_alive() || !before.is_alive() || then.life != player.life {
            continue;
        }
        let step = then.at - before.at;
        let walk = step.clamp_length_max(look.rules().tuning.walk_speed);
        player.at = then.at;
        for n in 0..ticks {
            let step = if then.is_dashing(view + n) {
                step
            } else {
                walk
            };
            player.step_by(step, look.rules(), crates);
        }
    }
    Some(seen)
}

impl Resolver<Game> for Arbiter {
    /// Answers within the tick, because it is fast enough. A shell hits the players that it hit on its owner's screen.
    /// An error is a bug in the step. Its panic becomes "no answer": a barrel fizzles, and a toss or a crate is empty.
    fn resolve(
        &mut self,
        look: &HookContext<'_, Game>,
        key: Key,
        query: &Query,
    ) -> Decision<Outcome> {
        let seen = match *query {
            Query::Blast {
                bomb: Bomb::Shell { owner, .. },
                ..
            } => seen_by(look, owner),
            _ => None,
        };
        let game = seen.as_ref().unwrap_or(look.sim());
        match self.decide(game, look.rules(), key, query) {
            Ok(outcome) => Decision::Now(outcome),
            Err(error) => panic!("{error}"),
        }
    }
}

#[cfg(test)]
mod tests {
    use arrayvec::ArrayVec;
    use twinstep_core::Tick;

    use super::super::testing::{SoloGame, TWO, put_enemy, solo, with_player};
    use super::super::{Point, speculate};
    use super::*;

    fn rules() -> Rules {
        Rules {
            waves: Vec::new(),
            enemies: 60,
            ..Rules::campaign()
        }
    }

    fn scene(seed: u64) -> SoloGame {
        let rules = rules();
        let mut game = with_player(solo(rules.clone()));
        game.join(TWO).run(650);
        let mut luck = Mwc::seed(seed);
        let sim = game.sim_mut();
        let mut anywhere = || {
            let at = (Vec2::new(luck.unit_f32(), luck.unit_f32()) * 2.0 - 1.0) * rules.half;
            Point::of(rules.place(at, 1.1)).to_vec2()
        };
        sim.crates
            .iter_mut()
            .for_each(|chest| chest.at = anywhere());
        sim.barrels
            .iter_mut()
            .for_each(|barrel| barrel.at = anywhere());
        game
    }

    fn arbiter(rules: &Rules) -> Arbiter {
        Arbiter::new(rules, Luck::Seeded(1)).unwrap()
    }

    fn centers(game: &Game, rules: &Rules, luck: &mut Mwc) -> Vec<Point> {
        let mut near = |at: Vec2, reach: f32| {
            let off = (Vec2::new(luck.unit_f32(), luck.unit_f32()) * 2.0 - 1.0) * reach;
            Point::of(rules.place(at + off, 0.3))
        };
        let barrels = game.barrels.iter().map(|barrel| Point::of(barrel.at));
        let mut all: Vec<Point> = barrels.collect();
        all.extend(game.crates.iter().map(|chest| near(chest.at, 2.5)));
        all.extend((0..20).map(|_| near(Vec2::ZERO, rules.half.x)));
        all
    }

    #[test]
    fn clients_guess_the_same_hits_as_the_server_behind_walls_and_crates() {
        let (mut asked, mut hits, mut hidden, mut wrong) = (0, 0, 0, 0);
        for seed in 0..60 {
            let game = scene(seed);
            let rules = &rules();
            let mut arbiter = arbiter(rules);
            for at in centers(game.sim(), rules, &mut Mwc::seed(seed)) {
                let query = Query::Blast {
                    bomb: Bomb::Barrel(0),
                    at,
                    asked: Tick(0),
                };
                let truth = arbiter.decide(game.sim(), rules, Key::default(), &query);
                let truth = truth.unwrap();
                let Outcome::Blast { hits: list } = &truth else {
                    panic!("a blast")
                };
                asked += 1;
                hits += list.len();
                let reach = rules.tuning.blast_radius;
                hidden += bodies_near(game.sim(), at.to_vec2(), reach).count() - list.len();
                wrong += usize::from(speculate(game.sim(), rules, &query) != Some(truth));
            }
        }
        assert!(
            asked > 2_500 && hits > 5_000 && hidden > 1_000,
            "{asked} {hits} {hidden}"
        );
        assert!(wrong * 500 <= asked, "{wrong} wrong guesses of {asked}");
    }

    #[test]
    fn a_crate_hides_bodies_behind_it() {
        let mut game = with_player(solo(rules()));
        let middle = Vec2::new(-28.0, -4.0);
        game.sim_mut().crates[0].at = middle + Vec2::X * 2.0;
        put_enemy(&mut game, 0, middle + Vec2::X * 4.5);
        let hits = |game: &SoloGame| {
            let (rules, bomb) = (&rules(), Bomb::Barrel(200));
            let hits = arbiter(rules)
                .blast(game.sim(), rules, bomb, middle)
                .unwrap();
            hits.iter().map(|hit| hit.body).collect::<Vec<_>>()
        };
        let behind = Victim::Enemy(0);
        assert!(!hits(&game).contains(&behind) && hits(&game).contains(&Victim::Crate(0)));
        game.sim_mut().crates[0].rests = None;
        assert!(
            hits(&game).contains(&behind),
            "a flying crate hides nothing"
        );
        assert!(!hits(&game).contains(&Victim::Crate(0)), "and is not hit");
        game.sim_mut().crates[0].rests = Some(Tick(0));
        game.sim_mut().crates[0].health = 0;
        assert!(hits(&game).contains(&behind), "nor does a broken one");
    }

    fn toss(
        game: &SoloGame,
        arbiter: &mut Arbiter,
        key: Key,
        at: Vec2,
    ) -> ArrayVec<Throw, TOSSED_MAX> {
        let query = Query::Toss {
            bomb: Bomb::Barrel(200),
            at: Point::of(at),
            asked: game.world().tick(),
        };
        match arbiter.decide(game.sim(), &rules(), key, &query).unwrap() {
            Outcome::Toss { throws } => throws,
            other => panic!("{other:?}"),
        }
    }

    fn lies_at(game: &SoloGame, prop: Prop) -> Vec2 {
        let mut lying = game.sim().lying();
        lying.find(|(other, _)| *other == prop).unwrap().1
    }

    #[test]
    fn thrown_things_stay_in_the_arena_and_out_of_walls() {
        let (mut flown, mut far) = (0, 0.0_f32);
        for seed in 0..40 {
            let game = scene(seed);
            let mut arbiter = arbiter(&rules());
            for at in centers(game.sim(), &rules(), &mut Mwc::seed(seed)) {
                let throws = toss(&game, &mut arbiter, Key::new(seed, 0), at.to_vec2());
                let (rules, bomb, center) = (rules(), Bomb::Barrel(200), at.to_vec2());
                let is_possible = throw::is_possible(game.sim(), &rules, bomb, center, &throws);
                assert!(
                    is_possible,
                    "seed {seed}: the referee would refuse {throws:?}"
                );
                for throw in throws {
                    let from = lies_at(&game, throw.prop);
                    for at in throw.corners(from) {
                        let radius = throw.prop.radius();
                        let free = rules.place(at, radius).distance(at);
                        assert!(free < 0.07, "seed {seed}: {throw:?} is {free} deep at {at}");
                        far = far.max(at.distance(from));
                    }
                    flown += 1;
                }
            }
        }
        assert!(
            flown > 1_000 && (4.0..12.0).contains(&far),
            "{flown} flew, at most {far}"
        );
    }

    #[test]
    fn tosses_differ_but_the_same_query_has_the_same_answer() {
        let mut game = scene(3);
        let at = Vec2::new(-28.0, -4.0);
        game.sim_mut().crates[0].at = at + Vec2::X * 2.0;
        let mut arbiter = arbiter(&rules());
        let first = toss(&game, &mut arbiter, Key::new(7, 1), at);
        assert!(!first.is_empty());
        assert_ne!(toss(&game, &mut arbiter, Key::new(7, 2), at), first);
        assert_eq!(toss(&game, &mut arbiter, Key::new(7, 1), at), first);
    }

    /// A client's guess is near the outcome. They differ mainly by collisions and luck.
    #[test]
    fn a_client_guesses_roughly_where_things_land() {
        let mut errors = Vec::new();
        let (mut both, mut missed) = (0, 0);
        for seed in 0..40 {
            let game = scene(seed);
            let mut arbiter = arbiter(&rules());
            for at in centers(game.sim(), &rules(), &mut Mwc::seed(seed)) {
                let truth = toss(&game, &mut arbiter, Key::new(seed, 0), at.to_vec2());
                let query = Query::Toss {
                    bomb: Bomb::Barrel(200),
                    at,
                    asked: Tick(0),
                };
                let Some(Outcome::Toss { throws: guess }) = speculate(game.sim(), &rules(), &query)
                else {
                    panic!("no guess")
                };
                for throw in &truth {
                    let from = lies_at(&game, throw.prop);
                    let end = |throw: &Throw| throw.corners(from).last().unwrap();
                    match guess.iter().find(|other| other.prop == throw.prop) {
                        Some(other) => errors.push(end(throw).distance(end(other))),
                        None => missed += 1,
                    }
                    both += 1;
                }
            }
        }
        errors.sort_by(f32::total_cmp);
        let (half, most) = (errors[errors.len() / 2], errors[errors.len() * 9 / 10]);
        println!("{both} thrown, {missed} not foreseen; errors: median {half}, p90 {most}");
        assert!(half < 0.8 && most < 2.5, "median {half}, p90 {most}");
        assert!(missed * 5 < both, "{missed} of {both}");
    }

    #[test]
    fn a_nan_position_is_refused_with_the_name_of_its_body() {
        let mut game = scene(1);
        game.sim_mut().crates[0].at = Vec2::NAN;
        let query = Query::Toss {
            bomb: Bomb::Barrel(0),
            at: Point::of(Vec2::ZERO),
            asked: Tick(0),
        };
        let rules = rules();
        let refused = arbiter(&rules).decide(game.sim(), &rules, Key::default(), &query);
        let words = refused.unwrap_err().to_string();
        assert!(
            words.contains("Crate(0)") && words.contains("position"),
            "{words}"
        );
    }
}
