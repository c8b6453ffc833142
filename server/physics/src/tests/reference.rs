//! The mirror compared with plain formulas in `f64`, over random scenes; a failure prints the seed.
//!
//! Cases within rounding of an edge are skipped, because the formulas cannot decide them. Each test requires that
//! enough other cases remain.

use super::*;

/// Differences below this, in units, may be due to rounding.
const DOUBT: f64 = 2e-3;

type Point = [f64; 2];

fn wide(p: Vec2) -> Point {
    [p.x.into(), p.y.into()]
}
fn sub(a: Point, b: Point) -> Point {
    [a[0] - b[0], a[1] - b[1]]
}
fn dot(a: Point, b: Point) -> f64 {
    a[0] * b[0] + a[1] * b[1]
}
fn turn(p: Point, angle: f64) -> Point {
    let (sin, cos) = series(angle);
    [p[0] * cos - p[1] * sin, p[0] * sin + p[1] * cos]
}

/// The sine and cosine of `angle`: Taylor series at 1/64 of the angle, then six doublings. The reference must not share
/// a function with the engine.
fn series(angle: f64) -> (f64, f64) {
    let x = angle / 64.0;
    let (mut sin, mut cos) = (
        x - x * x * x / 6.0 + x.powi(5) / 120.0,
        1.0 - x * x / 2.0 + x.powi(4) / 24.0 - x.powi(6) / 720.0,
    );
    for _ in 0..6 {
        (sin, cos) = (2.0 * sin * cos, cos * cos - sin * sin);
    }
    (sin, cos)
}

/// The distance from a point to the line segment from `a` to `b`.
fn to_line(p: Point, a: Point, b: Point) -> f64 {
    let (ab, ap) = (sub(b, a), sub(p, a));
    let t = if dot(ab, ab) == 0.0 {
        0.0
    } else {
        (dot(ap, ab) / dot(ab, ab)).clamp(0.0, 1.0)
    };
    let off = sub(ap, [ab[0] * t, ab[1] * t]);
    dot(off, off).sqrt()
}

fn distance(placed: &PlacedShape, point: Point) -> f64 {
    let local = turn(sub(point, wide(placed.at)), -f64::from(placed.angle));
    match placed.shape {
        Shape::Ball { radius } => (dot(local, local).sqrt() - f64::from(radius)).max(0.0),
        Shape::Box { half } => {
            let out = [
                (local[0].abs() - f64::from(half.x)).max(0.0),
                (local[1].abs() - f64::from(half.y)).max(0.0),
            ];
            dot(out, out).sqrt()
        }
        Shape::Capsule { a, b, radius } => {
            (to_line(local, wide(a), wide(b)) - f64::from(radius)).max(0.0)
        }
        Shape::Segment { a, b } => to_line(local, wide(a), wide(b)),
    }
}

/// The distance that a ball of this radius (0 for a point) moves before it touches the shape. Each iteration advances
/// by the free distance, which works for every shape with a distance function.
fn march(
    placed: &PlacedShape,
    origin: Point,
    direction: Point,
    length: f64,
    radius: f64,
) -> Option<f64> {
    let mut along = 0.0;
    for _ in 0..20_000 {
        let free = distance(
            placed,
            [
                origin[0] + direction[0] * along,
                origin[1] + direction[1] * along,
            ],
        ) - radius;
        if free <= 1e-7 {
            return Some(along);
        }
        along += free;
        if along > length {
            return None;
        }
    }
    Some(along)
}

/// The shape, enlarged by `by`; a segment becomes longer.
fn resized(placed: &PlacedShape, by: f64) -> PlacedShape {
    let by = by as f32;
    let shape = match placed.shape {
        Shape::Ball { radius } => Shape::Ball {
            radius: radius + by,
        },
        Shape::Box { half } => Shape::Box { half: half + by },
        Shape::Capsule { a, b, radius } => Shape::Capsule {
            a,
            b,
            radius: radius + by,
        },
        Shape::Segment { a, b } => {
            let longer = (b - a).normalize() * by;
            Shape::Segment {
                a: a - longer,
                b: b + longer,
            }
        }
    };
    PlacedShape { shape, ..*placed }
}

fn unit(v: Vec2) -> Point {
    let v = wide(v);
    let length = dot(v, v).sqrt();
    [v[0] / length, v[1] / length]
}

pub(super) fn assert_steps_match(got: u32, units: f64, context: &str) {
    assert!(
        (f64::from(got) - units * 64.0).abs() <= 0.75,
        "{context}: got {got} 64ths, expected {}",
        units * 64.0
    );
}

#[test]
fn area_queries_agree_with_plain_formulas() {
    let (mut hits, mut outside) = (0, 0);
    for seed in 0..200 {
        let mut dice = Dice::new(seed);
        let model = dice.scene(5, 50);
        let (center, radius) = (dice.point(30.0), dice.range(0.5, 20.0));
        let mut mirror = model.mirror();
        let area = mirror.area(center, radius, BODIES).unwrap();
        for (id, body) in &model.bodies {
            let away = distance(body, wide(center));
            let context = format!("seed {seed}, id {id}, {body:?} from {center} within {radius}");
            let hit = area.iter().find(|hit| hit.id == *id);
            if body.layers != BODIES {
                assert!(hit.is_none(), "{context}: not in the filter");
            } else if (away - f64::from(radius)).abs() > DOUBT {
                assert_eq!(
                    hit.is_some(),
                    away < f64::from(radius),
                    "{context}: {away} away"
                );
            }
            match hit {
                Some(hit) => {
                    assert_steps_match(hit.distance_64ths, away, &context);
                    hits += 1;
                }
                None => outside += 1,
            }
        }
    }
    assert!(
        hits > 500 && outside > 500,
        "{hits} hits, {outside} outside: the scenes are too easy"
    );
}

#[test]
fn rays_and_ball_casts_agree_with_marching() {
    let (mut hits, mut misses, mut doubtful) = (0, 0, 0);
    for seed in 0..1000 {
        let mut dice = Dice::new(seed);
        let model = dice.scene(8, 16);
        let (origin, motion) = (dice.point(30.0), dice.point(40.0));
        let radius = if seed % 2 == 0 {
            0.0
        } else {
            dice.range(0.1, 1.5)
        };
        let length = motion.length();
        let mut mirror = model.mirror();
        let got = if radius == 0.0 {
            mirror.ray(origin, motion, length, BODIES | WALLS)
        } else {
            mirror.cast(Shape::Ball { radius }, origin, 0.0, motion, BODIES | WALLS)
        }
        .unwrap();

        // The scene shrunk and grown by the rounding: if both give the same answer, it must be the mirror's.
        let first = |grown: f64| {
            model
                .solids()
                .filter(|(_, solid)| solid.layers.meets(BODIES | WALLS))
                .filter_map(|(id, solid)| {
                    let solid = resized(solid, grown);
                    let radius = if radius == 0.0 {
                        0.0
                    } else {
                        f64::from(radius) + grown
                    };
                    Some((
                        march(&solid, wide(origin), unit(motion), length.into(), radius)?,
                        id,
                    ))
                })
                .min_by(|a, b| a.0.total_cmp(&b.0))
        };
        let context = format!("seed {seed}: {origin} + {motion}, radius {radius}");
        match (first(-DOUBT), first(DOUBT)) {
            (Some((late, id)), Some((early, same)))
                if id == same && late - early < 10.0 * DOUBT =>
            {
                let got = got.unwrap_or_else(|| panic!("{context}: {id:?} at {late} was missed"));
                assert_eq!(got.id, id, "{context}");
                assert_steps_match(got.distance_64ths, (early + late) / 2.0, &context);
                hits += 1;
            }
            (None, None) => {
                assert_eq!(got, None, "{context}");
                misses += 1;
            }
            _ => doubtful += 1,
        }
    }
    assert!(
        hits > 200 && misses > 200 && doubtful < 50,
        "{hits} hits, {misses} misses, {doubtful} doubtful"
    );
}

#[test]
fn occlusion_agrees_with_plain_formulas() {
    let (mut seen, mut hidden, mut doubtful) = (0, 0, 0);
    for seed in 0..400 {
        let mut dice = Dice::new(seed);
        let mut model = dice.scene(12, 25);
        for body in model.bodies.values_mut() {
            body.shape = Shape::Ball {
                radius: dice.range(0.2, 2.0),
            };
            body.layers = if dice.below(3) == 0 { GHOSTS } else { BODIES };
        }
        let (center, radius) = (dice.point(20.0), dice.range(10.0, 30.0));
        let mut mirror = model.mirror();
        let visible: Vec<u32> = mirror
            .area_visible(center, radius, BODIES, WALLS | GHOSTS)
            .unwrap()
            .iter()
            .map(|hit| hit.id)
            .collect();
        for (id, body) in model
            .bodies
            .iter()
            .filter(|(_, body)| body.layers == BODIES)
        {
            let away = distance(body, wide(center));
            let Shape::Ball { radius: own } = body.shape else {
                unreachable!()
            };
            let to = sub(wide(body.at), wide(center));
            let range = dot(to, to).sqrt();
            if (away - f64::from(radius)).abs() < DOUBT || away < DOUBT {
                continue;
            }
            // The tangents leave the line to the middle at asin(own / range) and have this length.
            let tangent = (range * range - f64::from(own).powi(2)).sqrt();
            let (sin, cos) = (f64::from(own) / range, tangent / range);
            let toward = [to[0] / range, to[1] / range];
            let left = [
                toward[0] * cos - toward[1] * sin,
                toward[0] * sin + toward[1] * cos,
            ];
            let right = [
                toward[0] * cos + toward[1] * sin,
                -toward[0] * sin + toward[1] * cos,
            ];
            let sees = |grown: f64| {
                [(toward, range), (left, tangent), (right, tangent)]
                    .into_iter()
                    .any(|(direction, length)| {
                        model
                            .solids()
                            .filter(|(other, solid)| *other != Some(*id) && solid.layers != BODIES)
                            .all(|(_, solid)| {
                                march(
                                    &resized(solid, grown),
                                    wide(center),
                                    direction,
                                    length + grown,
                                    0.0,
                                )
                                .is_none()
                            })
                    })
            };
            match (away < f64::from(radius), sees(-DOUBT), sees(DOUBT)) {
                (true, true, true) => {
                    assert!(visible.contains(id), "seed {seed}: {id} is in sight");
                    seen += 1;
                }
                (true, true, false) => doubtful += 1,
                (in_range, _, _) => {
                    assert!(
                        !visible.contains(id),
                        "seed {seed}: {id} is hidden, or out of range"
                    );
                    hidden += usize::from(in_range);
                }
            }
        }
    }
    assert!(
        seen > 300 && hidden > 300 && doubtful < 30,
        "{seen} seen, {hidden} hidden, {doubtful} doubtful"
    );
}

#[test]
fn casts_are_symmetric_in_the_two_shapes() {
    let (mut hits, mut misses) = (0, 0);
    for seed in 0..2000 {
        let mut dice = Dice::new(seed);
        let (a, b) = (dice.placed(BODIES), dice.placed(BODIES));
        let (a, b) = (
            PlacedShape {
                at: a.at / 4.0,
                ..a
            },
            PlacedShape {
                at: b.at / 4.0,
                ..b
            },
        );
        let motion = (b.at - a.at) * 2.0 + dice.point(3.0);
        let cast = |still: PlacedShape, moving: PlacedShape, motion: Vec2| {
            let mut mirror = Mirror::new();
            mirror
                .refill()
                .put(1, still.shape, still.at, still.angle, still.layers)
                .unwrap();
            mirror
                .cast(moving.shape, moving.at, moving.angle, motion, BODIES)
                .unwrap()
        };
        match (cast(b, a, motion), cast(a, b, -motion)) {
            (Some(one), Some(other)) => {
                let away = one.distance_64ths.abs_diff(other.distance_64ths);
                assert!(
                    away <= 1,
                    "seed {seed}: {a:?} to {b:?} by {motion}: {one:?}, but {other:?}"
                );
                hits += 1;
            }
            (None, None) => misses += 1,
            other => panic!("seed {seed}: {a:?} to {b:?} by {motion}: {other:?}"),
        }
    }
    assert!(hits > 1000 && misses > 50, "{hits} hits, {misses} misses");
}
