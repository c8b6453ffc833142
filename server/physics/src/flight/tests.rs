//! Random rooms full of thrown bodies; one rule per test.

use super::way_out::{WAY_OUT_TRIES, contact};
use super::*;

pub(super) const TICKS_PER_SECOND: f32 = 60.0;

/// A generator for rooms: xorshift64*, seeded from the test's case number.
struct Dice(u64);

impl Dice {
    fn new(seed: u64) -> Dice {
        Dice(seed.wrapping_mul(0x9E37_79B9_7F4A_7C15) | 1)
    }
    fn unit(&mut self) -> f32 {
        self.0 ^= self.0 >> 12;
        self.0 ^= self.0 << 25;
        self.0 ^= self.0 >> 27;
        (self.0.wrapping_mul(0x2545_F491_4F6C_DD1D) >> 40) as f32 / (1 << 24) as f32
    }
    fn vector(&mut self, reach: f32) -> Vec2 {
        (Vec2::new(self.unit(), self.unit()) * 2.0 - 1.0) * reach
    }
}

const HALF: f32 = 20.0;
pub(super) const BALL: Shape = Shape::Ball { radius: 0.5 };
pub(super) const CRATE: Shape = Shape::Box {
    half: Vec2::splat(0.75),
};

/// The middles and half extents of all fixed boxes: three walls and four edges.
fn walls() -> Vec<(Vec2, Vec2)> {
    let mut walls = vec![
        (Vec2::new(-4.0, 3.0), Vec2::new(1.0, 6.0)),
        (Vec2::new(6.0, -5.0), Vec2::new(6.0, 1.25)),
        (Vec2::new(-9.0, -9.0), Vec2::new(3.0, 0.5)),
    ];
    for side in [Vec2::X, Vec2::Y, -Vec2::X, -Vec2::Y] {
        walls.push((
            side * (HALF + 5.0),
            Vec2::splat(5.0) + side.perp().abs() * HALF,
        ));
    }
    walls
}

fn room(material: Material) -> Flights {
    let mut room = Flights::new(material);
    for (at, half) in walls() {
        room.add_wall::<u32>(Shape::Box { half }, at, 0.0).unwrap();
    }
    room
}

/// The distance of a body from a fixed box; if they overlap, the depth of the overlap as a negative number.
fn gap(shape: Shape, at: Vec2, (middle, half): (Vec2, Vec2)) -> f32 {
    let (extra, radius) = match shape {
        Shape::Ball { radius } => (Vec2::ZERO, radius),
        Shape::Box { half } => (half, 0.0),
        _ => unreachable!("these rooms have balls and boxes"),
    };
    let beyond = (at - middle).abs() - half - extra;
    let outside = beyond.max(Vec2::ZERO).length();
    outside + beyond.max_element().min(0.0) - radius
}

pub(super) fn slides(id: u32, shape: Shape, at: Vec2, velocity: Vec2) -> Body<u32> {
    Body {
        id,
        shape,
        at,
        angle: 0.0,
        motion: Motion::Slides { velocity },
        push: Vec2::ZERO,
        twist: 0.0,
    }
}

/// `count` balls and boxes, clear of the walls and of each other, thrown in any direction.
fn crowd(dice: &mut Dice, count: u32, speed: f32) -> Vec<Body<u32>> {
    let mut bodies: Vec<Body<u32>> = Vec::new();
    while (bodies.len() as u32) < count {
        let shape = if dice.unit() < 0.5 { BALL } else { CRATE };
        let at = dice.vector(HALF);
        let is_free = walls().iter().all(|wall| gap(shape, at, *wall) > 0.0)
            && bodies.iter().all(|other| other.at.distance(at) > 2.2);
        if is_free {
            let id = bodies.len() as u32 * 7 % 64;
            bodies.push(slides(id, shape, at, dice.vector(speed)));
        }
    }
    bodies
}

pub(super) fn to_units(sample: &Sample) -> Vec2 {
    Vec2::new(sample.at_64ths[0] as f32, sample.at_64ths[1] as f32) / STEPS_PER_UNIT
}

#[test]
fn no_body_is_ever_inside_a_wall_or_outside_the_room() {
    let room = room(Material::default());
    let mut flown = 0;
    for seed in 0..200 {
        let bodies = crowd(&mut Dice::new(seed), 24, 40.0);
        for track in room.run(&bodies, 120, 1).unwrap() {
            let body = bodies.iter().find(|body| body.id == track.id).unwrap();
            flown += track.samples.len();
            for sample in &track.samples {
                let at = to_units(sample);
                assert!(
                    at.abs().max_element() < HALF,
                    "seed {seed}: {body:?} is at {at}"
                );
                for wall in walls() {
                    let gap = gap(body.shape, at, wall);
                    assert!(
                        gap > -1.0 / 32.0,
                        "seed {seed}: {body:?} at {at} is {gap} from {wall:?}"
                    );
                }
            }
        }
    }
    assert!(flown > 200_000, "{flown} samples");
}

/// Finding H9: the cost of a run must not grow with the number of walls in the level, except for the few near a body.
/// Distant walls must not change a flight.
#[test]
fn a_thousand_distant_walls_are_not_tested_one_by_one() {
    let bodies = crowd(&mut Dice::new(3), 20, 40.0);
    let near = room(Material::default());
    let mut large = room(Material::default());
    for n in 0..1_000 {
        let at = Vec2::new((n % 40) as f32 * 8.0 + 60.0, (n / 40) as f32 * 8.0);
        large.add_wall::<u32>(CRATE, at, 0.3).unwrap();
    }
    let fly = |flights: &Flights| {
        let mut room = flights.room(&bodies, 1.0 / TICKS_PER_SECOND).unwrap();
        let mut samples = 0;
        for _ in 0..240 {
            room.step();
            room.sample();
            samples += bodies.len() as u64;
        }
        (room.tested, samples, room.tracks())
    };
    let (tested, samples, tracks) = fly(&near);
    assert!(
        tested > 0 && tested < samples,
        "{tested} tests of {samples} samples"
    );
    let (tested_in_large, _, in_large) = fly(&large);
    assert_eq!(tested_in_large, tested);
    assert_eq!(in_large, tracks);
}

/// Compares with the earlier algorithm, which tests every solid and takes the first of the deepest overlaps.
#[test]
fn the_tree_finds_the_same_overlaps_as_a_test_of_all_shapes() {
    let room = room(Material::default())
        .room::<u32>(&[], 1.0 / TICKS_PER_SECOND)
        .unwrap();
    let solids: Vec<Solid<usize>> = {
        let walls = walls().into_iter().enumerate();
        let solid = |(n, (at, half))| Solid {
            id: Some(n),
            shape: Shape::Box { half },
            pose: placed(Shape::Box { half }, at, 0.0).unwrap(),
            layers: Layers::ALL,
        };
        walls.map(solid).collect()
    };
    let mut pushed = 0;
    for seed in 0..20_000 {
        let mut dice = Dice::new(seed);
        let shape = if dice.unit() < 0.5 { BALL } else { CRATE };
        let from = placed(shape, dice.vector(HALF + 1.0), dice.unit() * 6.0).unwrap();
        let mut expected = from;
        for _ in 0..WAY_OUT_TRIES {
            let deepest = solids
                .iter()
                .filter_map(|solid| contact(solid, &shape, &expected))
                .min_by(|a, b| a.0.total_cmp(&b.0));
            match deepest {
                Some((depth, out)) if depth < 0.0 => expected.translation -= out * depth,
                _ => break,
            }
        }
        assert_eq!(free_of(&room.still, &shape, from, &mut 0), expected);
        pushed += u32::from(expected != from);
    }
    assert!(pushed > 1_000, "{pushed} overlapped a shape");
}

#[test]
fn the_fastest_body_does_not_pass_through_a_thin_wall() {
    let mut room = Flights::new(Material {
        drag: 0.1,
        ..Material::default()
    });
    let line = Shape::Segment {
        a: Vec2::new(0.0, -99.0),
        b: Vec2::new(0.0, 99.0),
    };
    room.add_wall::<u32>(line, Vec2::ZERO, 0.0).unwrap();
    for n in 0..40_u32 {
        let at = Vec2::new(-1.0 - n as f32 * 0.37, 0.0);
        let shape = if n % 2 == 0 { BALL } else { CRATE };
        let tracks = room
            .run(&[slides(n, shape, at, Vec2::X * SPEED_MAX)], 60, 1)
            .unwrap();
        assert!(
            tracks[0]
                .samples
                .iter()
                .all(|sample| sample.at_64ths[0] < 0),
            "from {at}"
        );
    }
}

#[test]
fn energy_never_rises_from_tick_to_tick() {
    let bouncy = Material {
        bounce: 0.9,
        ..Material::default()
    };
    for (seed, material) in (0..40).zip([bouncy, Material::default()].into_iter().cycle()) {
        let bodies = crowd(&mut Dice::new(seed), 24, 40.0);
        let mut run = room(material)
            .room(&bodies, 1.0 / TICKS_PER_SECOND)
            .unwrap();
        let energy = |run: &Room<u32>| -> f32 {
            let all = run.movers.iter();
            all.map(|mover| run.world.bodies[mover.handle].kinetic_energy())
                .sum()
        };
        let (first, mut last) = (energy(&run), energy(&run));
        for tick in 0..120 {
            run.step();
            let now = energy(&run);
            assert!(now <= last, "seed {seed}, tick {tick}: {last} became {now}");
            last = now;
        }
        assert!(last < first / 100.0, "seed {seed}: {first} became {last}");
    }
}

#[test]
fn a_track_depends_neither_on_the_order_of_bodies_nor_on_earlier_runs() {
    let room = room(Material::default());
    for seed in 0..40 {
        let mut bodies = crowd(&mut Dice::new(seed), 20, 50.0);
        let first = room.run(&bodies, 12, 5).unwrap();
        assert!(first.is_sorted_by(|a, b| a.id < b.id));
        room.run(&crowd(&mut Dice::new(seed + 999), 30, 50.0), 12, 5)
            .unwrap();
        bodies.reverse();
        bodies.rotate_left(seed as usize % 20);
        assert_eq!(room.run(&bodies, 12, 5).unwrap(), first, "seed {seed}");
    }
}

#[test]
fn a_body_slides_as_far_as_its_drag_allows() {
    for (speed, drag) in [(6.0, 3.0), (12.0, 3.0), (12.0, 6.0), (30.0, 5.0)] {
        let room = Flights::new(Material {
            drag,
            ..Material::default()
        });
        let tracks = room
            .run(&[slides(1, BALL, Vec2::ZERO, Vec2::Y * speed)], 40, 6)
            .unwrap();
        let end = to_units(tracks[0].samples.last().unwrap());
        let expected = speed / drag + speed / TICKS_PER_SECOND;
        assert!(
            (end.y - expected).abs() < expected * 0.05,
            "{speed} at {drag}: {end}"
        );
    }
}

#[test]
fn a_resting_body_is_pushed_and_a_fixed_body_is_not() {
    let room = Flights::new(Material::default());
    let pushed = |motion| {
        let mut target = slides(2, CRATE, Vec2::new(4.0, 0.0), Vec2::ZERO);
        target.motion = motion;
        let tracks = room
            .run(
                &[slides(1, BALL, Vec2::ZERO, Vec2::X * 24.0), target],
                10,
                6,
            )
            .unwrap();
        let ends = tracks
            .iter()
            .map(|track| (track.id, to_units(track.samples.last().unwrap()).x));
        ends.collect::<Vec<_>>()
    };
    let both = pushed(Motion::Slides {
        velocity: Vec2::ZERO,
    });
    assert!(both.len() == 2 && both[1].1 > 4.5, "{both:?}");
    let alone = pushed(Motion::Fixed);
    assert!(alone.len() == 1 && alone[0].1 < 2.76, "{alone:?}");
}

#[test]
fn an_off_centre_hit_turns_only_tumbling_bodies() {
    let room = Flights::new(Material::default());
    let turn = |motion| {
        let mut target = slides(2, CRATE, Vec2::new(4.0, 0.6), Vec2::ZERO);
        target.motion = motion;
        let tracks = room
            .run(
                &[slides(1, BALL, Vec2::ZERO, Vec2::X * 24.0), target],
                10,
                6,
            )
            .unwrap();
        tracks[1].samples.last().unwrap().turn_65536ths
    };
    assert_eq!(
        turn(Motion::Slides {
            velocity: Vec2::ZERO
        }),
        0
    );
    assert_ne!(
        turn(Motion::Tumbles {
            velocity: Vec2::ZERO,
            spin: 0.0
        }),
        0
    );
    let spun = Motion::Tumbles {
        velocity: Vec2::new(0.0, 3.0),
        spin: 3.0,
    };
    let alone = Body {
        motion: spun,
        ..slides(2, CRATE, Vec2::ZERO, Vec2::ZERO)
    };
    let tracks = room.run(&[alone], 20, 6).unwrap();
    // 3 rad/s over a drag of 3/s: one radian.
    let turned = f32::from(tracks[0].samples.last().unwrap().turn_65536ths) / TURN_STEPS;
    assert!((0.153..0.165).contains(&turned), "{turned} turns");
}

#[test]
fn a_track_ends_when_its_body_stops_moving() {
    let room = Flights::new(Material::default());
    let bodies = [
        slides(1, BALL, Vec2::ZERO, Vec2::ZERO),
        slides(2, BALL, Vec2::Y * 9.0, Vec2::X * 3.0),
    ];
    let tracks = room.run(&bodies, 40, 6).unwrap();
    assert!(tracks[0].samples.is_empty(), "a body that never moved");
    let moved = &tracks[1].samples;
    assert!((10..30).contains(&moved.len()), "{} samples", moved.len());
    assert_ne!(moved[moved.len() - 1], moved[moved.len() - 2]);
}

#[test]
fn an_out_of_range_number_is_refused_and_named() {
    let room = Flights::new(Material::default());
    let sound = slides(5, BALL, Vec2::ZERO, Vec2::ZERO);
    type Spoil = fn(&mut Body<u32>);
    let fast = |velocity| Motion::Slides { velocity };
    let motions = [
        (fast(Vec2::X * 241.0), "velocity"),
        (fast(Vec2::new(f32::NAN, 0.0)), "velocity"),
        (
            Motion::Tumbles {
                velocity: Vec2::ZERO,
                spin: f32::NAN,
            },
            "spin",
        ),
    ];
    let motions = motions.map(|(motion, words)| (Body { motion, ..sound }, words));
    let spoils: [(Spoil, &str); 4] = [
        (|body| body.at = Vec2::splat(f32::INFINITY), "position"),
        (|body| body.at = Vec2::splat(5_000.0), "can fly"),
        (
            |body| {
                let (a, b) = (Vec2::ZERO, Vec2::X);
                body.shape = Shape::Segment { a, b };
            },
            "no area",
        ),
        (|body| body.shape = Shape::Ball { radius: 0.0 }, "size"),
    ];
    let spoilt = spoils.map(|(spoil, words)| {
        let mut body = sound;
        spoil(&mut body);
        (body, words)
    });
    for (body, words) in motions.into_iter().chain(spoilt) {
        let message = room.run(&[body], 1, 1).unwrap_err().to_string();
        assert!(
            message.starts_with("body 5") && message.contains(words),
            "{message}"
        );
    }
    assert_eq!(
        room.run(&[sound, sound], 1, 1),
        Err(FlightError::Twice { id: 5 })
    );
    for (bodies, samples, every) in [
        (61_441, 0, 1),
        (1, 1, 0),
        (2, 30_721, 1),
        (1, u32::MAX, u32::MAX),
    ] {
        let many: Vec<_> = (0..bodies).map(|id| Body { id, ..sound }).collect();
        let refused = FlightError::Course {
            bodies: many.len(),
            samples,
            every,
        };
        assert_eq!(room.run(&many, samples, every), Err(refused));
    }
    let mut room = room;
    let wall = room.add_wall::<u32>(BALL, Vec2::NAN, 0.0).unwrap_err();
    assert!(wall.to_string().starts_with("wall number 0"), "{wall}");
}
