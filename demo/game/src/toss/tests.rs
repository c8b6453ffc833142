//! Flights of barrels and crates with hand-made answers, tick for tick.

use arrayvec::ArrayVec;
use twinstep_core::bounds::OUTCOME_BYTES_MAX;
use twinstep_core::codec;

use super::super::testing::*;
use super::*;
use crate::state::Timer;
use crate::{
    BarrelStage, BlastHit, CRATE_HALF, Command, FlightLeg, Heading, LEG_TICKS, LEGS_MAX, Outcome,
    Pad, Rules, TOSSED_MAX, Victim, bodies_near,
};

const BOMB: u8 = 3;
const BARREL: Prop = Prop::Barrel(6);
const CRATE: Prop = Prop::Crate(0);
/// The position of the bomb. Within ten units there are only the things that the tests put there.
const MIDDLE: Vec2 = Vec2::new(-28.0, -1.0);
const BARREL_AT: Vec2 = Vec2::new(-26.0, 1.0);
const CRATE_AT: Vec2 = Vec2::new(-25.0, -1.0);

/// A game with ONE, a barrel that is about to explode, and a crate and a barrel east of it.
fn field() -> SoloGame {
    let rules = Rules {
        crates: vec![CRATE_AT],
        ..rules()
    };
    let mut game = with_player(solo(rules));
    let now = game.world().tick();
    let sim = game.sim_mut();
    sim.barrels[6].at = BARREL_AT;
    let bomb = &mut sim.barrels[usize::from(BOMB)];
    bomb.at = MIDDLE;
    bomb.stage = BarrelStage::Lit;
    let key = bomb.key(BOMB);
    sim.timers.at(now, key, Timer::Fuse(BOMB));
    game
}

fn at(game: &SoloGame, prop: Prop) -> Vec2 {
    match prop {
        Prop::Barrel(n) => game.sim().barrels[usize::from(n)].at,
        Prop::Crate(n) => game.sim().crates[usize::from(n)].at,
    }
}

fn toss(game: &mut SoloGame, throws: &[(Prop, &[FlightLeg])]) {
    game.step();
    let key = toss_key(game.sim().barrels[usize::from(BOMB)].question(BOMB));
    let throws = throws.iter().map(|(prop, legs)| Throw {
        prop: *prop,
        legs: legs.iter().copied().collect(),
    });
    let throws = throws.collect();
    game.answer(key, Outcome::Toss { throws }).step();
}

#[test]
fn a_blast_asks_for_a_toss_only_if_it_throws_something() {
    let mut game = field();
    let asked = |game: &SoloGame| -> Vec<Query> {
        let asks = game.effects().asks().iter();
        asks.map(|(_, query)| *query).collect()
    };
    game.step();
    let (bomb, place, now) = (Bomb::Barrel(BOMB), Point::of(MIDDLE), Tick(1));
    assert_eq!(
        asked(&game),
        [
            Query::Blast {
                bomb,
                at: place,
                asked: now
            },
            Query::Toss {
                bomb,
                at: place,
                asked: now
            }
        ]
    );
    let mut alone = field();
    alone.sim_mut().crates[0].at = Vec2::ZERO;
    alone.sim_mut().barrels[6].at = Vec2::ZERO;
    alone.step();
    assert_eq!(
        asked(&alone),
        [Query::Blast {
            bomb,
            at: place,
            asked: now
        }]
    );
}

#[test]
fn a_thrown_thing_follows_its_path_tick_for_tick_and_then_lies_still() {
    let mut game = field();
    toss(&mut game, &[(CRATE, &[[48, 0], [32, -32], [0, -8]])]);
    assert!(
        game.effects()
            .cues()
            .iter()
            .any(|(_, cue)| *cue == Cue::Tossed(CRATE))
    );
    let corners = [
        CRATE_AT,
        CRATE_AT + Vec2::new(3.0, 0.0),
        CRATE_AT + Vec2::new(5.0, -2.0),
    ];
    let end = corners[2] - Vec2::Y * 0.5;
    let mut last = CRATE_AT;
    for age in 1..=18_u32 {
        let here = at(&game, CRATE);
        let (leg, part) = ((age / 6) as usize, (age % 6) as f32 / 6.0);
        let next = *corners.get(leg + 1).unwrap_or(&end);
        let due = corners.get(leg).map_or(end, |from| from.lerp(next, part));
        assert!(here.distance(due) < 1e-5, "age {age}: {here}, not {due}");
        assert!(
            here.distance(last) < 0.51,
            "age {age}: a leap from {last} to {here}"
        );
        let flies = age < 18;
        assert_eq!(game.sim().crates[0].stands(), !flies, "age {age}");
        assert_eq!(
            game.sim().aloft(CRATE, game.world().tick()).is_some(),
            flies
        );
        last = here;
        game.step();
    }
    assert_eq!(at(&game, CRATE), end);
    assert!(game.sim().flights.is_empty());
    game.run(100);
    assert_eq!(at(&game, CRATE), end, "and stays");
}

#[test]
fn no_prop_moves_without_an_answer() {
    let mut game = field();
    game.step();
    for key in game
        .world()
        .open_queries()
        .iter()
        .map(|open| open.key)
        .collect::<Vec<_>>()
    {
        game.refuse(key);
    }
    game.run(100);
    assert_eq!((at(&game, CRATE), at(&game, BARREL)), (CRATE_AT, BARREL_AT));
}

#[test]
fn a_thing_aloft_is_not_solid_and_cannot_be_hit() {
    let mut game = field();
    toss(
        &mut game,
        &[(CRATE, &[[1, 0]; 10]), (BARREL, &[[0, 1]; 10])],
    );
    // A walk through the crate.
    player_mut(&mut game).at = at(&game, CRATE) - Vec2::X * 2.0;
    let east = Pad {
        walk: Heading::EAST,
        ..Pad::default()
    };
    let from = player(&game).at;
    game.hold(ONE, east).run(20);
    let walked = player(&game).at - from;
    assert!(
        (walked.x - 20.0 * rules().tuning.walk_speed).abs() < 1e-3,
        "{walked}"
    );
    assert_eq!(walked.y, 0.0);
    // A shot and an order at the barrel; a blast right below both.
    let below = at(&game, BARREL);
    put_shot(&mut game, ONE, below);
    game.hold(ONE, Pad::default())
        .command(ONE, Command::Light { barrel: 6 })
        .step();
    assert_eq!(game.sim().barrels[6].stage, BarrelStage::Whole);
    let near: Vec<Victim> = bodies_near(game.sim(), below, 6.0)
        .map(|(body, ..)| body)
        .collect();
    assert!(
        !near.contains(&BARREL.into()) && !near.contains(&CRATE.into()),
        "{near:?}"
    );
    // On the ground again, it can be lit, and the crate is in the way.
    game.run(60);
    game.command(ONE, Command::Light { barrel: 6 }).step();
    assert_eq!(game.sim().barrels[6].stage, BarrelStage::Lit);
    player_mut(&mut game).at = at(&game, CRATE) - Vec2::X * 2.0;
    game.hold(ONE, east).run(60);
    assert!(
        player(&game).at.x < at(&game, CRATE).x - CRATE_HALF,
        "it is solid again"
    );
}

#[test]
fn a_thrown_lit_barrel_explodes_where_it_is_when_its_fuse_ends() {
    let mut game = field();
    game.step();
    let bomb = game.sim().barrels[usize::from(BOMB)].question(BOMB);
    let hits = [BlastHit::new(BARREL.into(), 140)].into_iter().collect();
    let throw = Throw {
        prop: BARREL,
        legs: [[24, 0]; 10].into_iter().collect(),
    };
    game.answer(bomb, Outcome::Blast { hits });
    game.answer(
        toss_key(bomb),
        Outcome::Toss {
            throws: [throw].into_iter().collect(),
        },
    );
    game.step();
    assert_eq!(game.sim().barrels[6].stage, BarrelStage::Lit);
    let fuse_ticks = rules().tuning.chain_fuse_ticks;
    game.run(fuse_ticks);
    assert_eq!(game.sim().barrels[6].stage, BarrelStage::Blasting);
    let open = game.world().open_queries();
    let blast = open.iter().find_map(|open| match open.query {
        Query::Blast { at, .. } => Some(at.to_vec2()),
        _ => None,
    });
    let flown = fuse_ticks as f32 * 24.0 / 16.0 / LEG_TICKS as f32;
    let blast = blast.expect("it asks");
    assert!(
        (blast - BARREL_AT - Vec2::X * flown).length() < 0.05,
        "{blast}, flown {flown}"
    );
    game.step();
    assert!(
        game.sim().flights.is_empty(),
        "a barrel that is gone does not fly"
    );
}

/// Row 50: the answer is applied once, to the things that were there at the time of the query.
#[test]
fn a_thing_moved_since_the_query_is_not_thrown() {
    let mut game = field();
    game.step();
    let key = toss_key(game.sim().barrels[usize::from(BOMB)].question(BOMB));
    game.run(3);
    let moved = CRATE_AT + Vec2::Y;
    let now = game.world().tick();
    let chest = &mut game.sim_mut().crates[0];
    chest.at = moved;
    chest.rests = Some(now);
    let legs = [[16, 0]; 4]
        .into_iter()
        .collect::<ArrayVec<FlightLeg, LEGS_MAX>>();
    let throw = |prop| Throw {
        prop,
        legs: legs.clone(),
    };
    let throws = [CRATE, BARREL, Prop::Barrel(250), BARREL].map(throw);
    let throws = throws.into_iter().collect();
    game.answer(key, Outcome::Toss { throws }).step();
    assert_eq!(game.sim().flights.len(), 1, "the barrel flies, once");
    game.run(40);
    assert_eq!(at(&game, CRATE), moved);
    assert_eq!(at(&game, BARREL), BARREL_AT + Vec2::X * 4.0);
}

#[test]
fn a_crate_broken_by_the_blast_is_not_thrown() {
    let mut game = field();
    game.sim_mut().crates[0].health = 1;
    game.step();
    let bomb = game.sim().barrels[usize::from(BOMB)].question(BOMB);
    let hits = [BlastHit::new(CRATE.into(), 140)].into_iter().collect();
    let throw = Throw {
        prop: CRATE,
        legs: [[24, 0]; 10].into_iter().collect(),
    };
    game.answer(bomb, Outcome::Blast { hits });
    game.answer(
        toss_key(bomb),
        Outcome::Toss {
            throws: [throw].into_iter().collect(),
        },
    );
    game.step();
    assert!(game.sim().flights.is_empty() && !game.sim().crates[0].is_there());
    assert_eq!(
        at(&game, CRATE),
        CRATE_AT,
        "what is in it falls where it stood"
    );
}

#[test]
fn replacing_a_thing_ends_its_flight() {
    let mut game = field();
    toss(&mut game, &[(CRATE, &[[24, 0]; 10])]);
    game.run(5);
    let key = game.sim().crates[0].key(0);
    let now = game.world().tick();
    game.sim_mut().timers.at(now, key, Timer::Crate(0));
    game.run(20);
    assert!(game.sim().flights.is_empty() && game.sim().crates[0].stands());
    assert_eq!((at(&game, CRATE), game.sim().crates[0].life), (CRATE_AT, 1));
}

#[test]
fn every_path_ends_in_the_arena_and_clear_of_walls() {
    for legs in [[[127, 127]; 10], [[-127, 3]; 10], [[-20, 5]; 10]] {
        let mut game = field();
        toss(&mut game, &[(CRATE, &legs)]);
        game.run(100);
        let end = at(&game, CRATE);
        assert_eq!(rules().place(end, CRATE_HALF), end);
    }
}

#[test]
fn the_largest_toss_fits_its_bound() {
    let throws = (0..TOSSED_MAX).map(|n| Throw {
        prop: Prop::Crate(255 - n as u8),
        legs: [[-128, 127]; LEGS_MAX].into_iter().collect(),
    });
    let outcome = Outcome::Toss {
        throws: throws.collect(),
    };
    let bytes = codec::size(&outcome).unwrap();
    assert!(bytes <= OUTCOME_BYTES_MAX, "{bytes} B");
}

#[test]
fn a_path_is_within_a_32nd_of_its_corners_and_ends_with_the_movement() {
    let from = Vec2::new(3.3, -7.7);
    let mut luck = twinstep_core::Mwc::seed(4);
    let mut corner = from;
    let corners: Vec<Vec2> = (0..LEGS_MAX)
        .map(|_| {
            corner += (Vec2::new(luck.unit_f32(), luck.unit_f32()) * 2.0 - 1.0) * 7.0;
            corner
        })
        .collect();
    let throw = Throw::through(CRATE, from, corners.iter().copied());
    for (told, meant) in throw.corners(from).zip(&corners) {
        assert!((told - *meant).abs().max_element() <= 1.0 / 32.0 + 1e-5);
    }
    let short = [from + Vec2::X, from + Vec2::X, from + Vec2::X];
    assert_eq!(
        Throw::through(CRATE, from, short).legs.as_slice(),
        [[16, 0]]
    );
    assert!(Throw::through(CRATE, from, [from; 10]).legs.is_empty());
    // Too fast for a byte: the first leg is as long as possible, and the next one covers the rest.
    let far = [from + Vec2::X * 10.0; 3];
    let told: Vec<FlightLeg> = Throw::through(CRATE, from, far).legs.to_vec();
    assert_eq!(told, [[127, 0], [33, 0]]);
}
