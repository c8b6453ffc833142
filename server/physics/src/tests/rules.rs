//! One rule of the mirror per test, in the smallest scene that shows it.

use rapier2d::math::Pose;

use super::*;

fn ball(mirror: &mut Mirror<u32>, id: u32, x: f32, y: f32) {
    let at = Vec2::new(x, y);
    mirror.bodies.push(Solid {
        id: Some(id),
        shape: Shape::Ball { radius: 0.5 },
        pose: Pose::from_translation(at),
        layers: BODIES,
    });
}

fn ids(hits: &[Hit<u32>]) -> Vec<u32> {
    hits.iter().map(|hit| hit.id).collect()
}

fn area(mirror: &mut Mirror<u32>, radius: f32, filter: impl Into<Filter<u32>>) -> Vec<u32> {
    ids(mirror.area(Vec2::ZERO, radius, filter).unwrap())
}

fn seen(
    mirror: &mut Mirror<u32>,
    from: Vec2,
    filter: impl Into<Filter<u32>>,
    by: Layers,
) -> Vec<u32> {
    ids(mirror.area_visible(from, 9.0, filter, by).unwrap())
}

fn first(mirror: &mut Mirror<u32>, length: f32) -> Option<Impact<u32>> {
    mirror
        .ray(Vec2::ZERO, Vec2::X, length, Layers::ALL)
        .unwrap()
}

fn met(mirror: &mut Mirror<u32>) -> Vec<(Option<u32>, u32)> {
    let all = mirror
        .ray_all(Vec2::ZERO, Vec2::X, 20.0, Layers::ALL)
        .unwrap();
    all.iter().map(|hit| (hit.id, hit.distance_64ths)).collect()
}

fn wall(mirror: &mut Mirror<u32>, shape: Shape, x: f32) {
    mirror
        .add_wall(shape, Vec2::new(x, 0.0), 0.0, WALLS)
        .unwrap();
}

const BALL: Shape = Shape::Ball { radius: 0.5 };

#[test]
fn a_refill_moves_keeps_adds_and_removes_bodies() {
    let mut mirror = Mirror::new();
    for (put, found) in [
        (&[(3, 0.0), (1, 1.0), (2, 50.0)][..], &[1, 3][..]),
        (&[(1, 1.0), (2, 2.0), (4, 3.0)], &[1, 2, 4]),
        (&[(4, 3.0)], &[4]),
        (&[], &[]),
    ] {
        let mut fill = mirror.refill();
        for (id, x) in put {
            fill.put(*id, BALL, Vec2::new(*x, 0.0), 0.0, BODIES)
                .unwrap();
        }
        assert_eq!(area(&mut mirror, 5.0, BODIES), found);
    }
    assert_eq!(first(&mut mirror, 9.0), None);
}

#[test]
fn every_body_of_a_crowd_on_one_spot_is_found() {
    for count in 1..200 {
        let mut mirror = Mirror::new();
        let ids = (0..count).rev();
        ids.for_each(|id| ball(&mut mirror, id, 1.0, 0.0));
        assert_eq!(area(&mut mirror, 1.0, BODIES), Vec::from_iter(0..count));
        assert_eq!(first(&mut mirror, 9.0).unwrap().id, Some(0));
    }
}

#[test]
fn walls_persist_across_refills_block_rays_and_are_in_no_area() {
    let mut mirror = Mirror::new();
    let line = Shape::Segment {
        a: Vec2::new(0.0, -3.0),
        b: Vec2::new(0.0, 3.0),
    };
    wall(&mut mirror, line, 2.0);
    for _ in 0..3 {
        let mut fill = mirror.refill();
        fill.put(8, BALL, Vec2::new(4.0, 0.0), 0.0, BODIES).unwrap();
        fill.put(5, BALL, Vec2::new(0.0, 2.0), 0.0, BODIES).unwrap();
        assert_eq!(area(&mut mirror, 9.0, Layers::ALL), [5, 8]);
        assert_eq!(seen(&mut mirror, Vec2::ZERO, Layers::ALL, WALLS), [5]);
        assert_eq!(met(&mut mirror), [(None, 128), (Some(8), 224)]);
        assert_eq!(first(&mut mirror, 9.0).unwrap().normal_127ths, [-127, 0]);
        let motion = Vec2::new(9.0, 0.0);
        let slid = mirror.cast(BALL, Vec2::ZERO, 0.0, motion, Layers::ALL);
        let wall = Impact {
            id: None,
            distance_64ths: 96,
            normal_127ths: [-127, 0],
        };
        assert_eq!(slid.unwrap(), Some(wall));
    }
}

#[test]
fn a_body_partly_behind_a_wall_is_visible() {
    let mut mirror = Mirror::new();
    ball(&mut mirror, 1, 4.0, 0.0);
    for (height, x, found) in [(0.3, 3.0, &[1][..]), (0.5, 2.0, &[])] {
        let half = Vec2::new(0.1, height);
        wall(&mut mirror, Shape::Box { half }, x);
        assert_eq!(seen(&mut mirror, Vec2::ZERO, BODIES, WALLS), found);
    }
}

#[test]
fn bodies_hide_others_unless_excepted_and_never_themselves() {
    let mut mirror = Mirror::new();
    ball(&mut mirror, 1, 2.0, 0.0);
    ball(&mut mirror, 2, 4.0, 0.0);
    assert_eq!(seen(&mut mirror, Vec2::ZERO, BODIES, BODIES), [1]);
    assert_eq!(seen(&mut mirror, Vec2::ZERO, BODIES.except(1), BODIES), [2]);
    for step in (0..100).map(|step| step as f32) {
        let mut alone = Mirror::new();
        ball(&mut alone, 3, 1.0 + 0.07 * step, 4.0 - 0.09 * step);
        assert_eq!(seen(&mut alone, Vec2::ZERO, BODIES, BODIES), [3]);
    }
    // From inside a body: only that body is visible.
    assert_eq!(seen(&mut mirror, Vec2::new(2.1, 0.0), BODIES, BODIES), [1]);
}

#[test]
fn shapes_with_one_id_form_one_body() {
    let mut mirror = Mirror::new();
    for x in [5.0, 3.0, 4.0] {
        ball(&mut mirror, 7, x, 0.0);
    }
    ball(&mut mirror, 6, 8.0, 0.0);
    let nearest = Hit {
        id: 7,
        distance_64ths: 160,
    };
    assert_eq!(mirror.area(Vec2::ZERO, 6.0, BODIES).unwrap(), [nearest]);
    assert_eq!(met(&mut mirror), [(Some(7), 160), (Some(6), 480)]);
}

#[test]
fn impacts_at_equal_distances_are_ordered_walls_first_and_then_by_id() {
    let mut mirror = Mirror::new();
    // Body 9 is nearer, but by less than the rounding.
    ball(&mut mirror, 4, 5.0, 0.0);
    ball(&mut mirror, 9, 4.999, 0.0);
    ball(&mut mirror, 6, 5.0, 0.0);
    let all = [(None, 288), (Some(4), 288), (Some(6), 288), (Some(9), 288)];
    assert_eq!(met(&mut mirror), all[1..]);
    assert_eq!(first(&mut mirror, 20.0).unwrap().id, Some(4));
    wall(&mut mirror, BALL, 5.0);
    assert_eq!(met(&mut mirror), all);
    assert_eq!(first(&mut mirror, 20.0).unwrap().id, None);
}

#[test]
fn distances_are_rounded_to_64ths() {
    let steps = [
        (0.0, 0),
        (1.0 / 64.0, 1),
        (0.49 / 64.0, 0),
        (0.51 / 64.0, 1),
        (1.0, 64),
        (741_455.2, 47_453_132),
    ];
    for (units, expected) in steps {
        assert_eq!(quantise(units), expected, "{units} units");
    }
    assert_eq!((quantise(f32::MAX), quantise(-1.0)), (u32::MAX, 0));
}

#[test]
fn contact_at_the_start_is_at_distance_0_without_a_normal() {
    let mut mirror = Mirror::new();
    ball(&mut mirror, 1, 0.0, 0.0);
    let touch = Some(Impact {
        distance_64ths: 0,
        id: Some(1),
        normal_127ths: [0, 0],
    });
    let ray = mirror.ray(Vec2::new(0.1, 0.0), Vec2::Y, 5.0, BODIES);
    assert_eq!(ray.unwrap(), touch);
    let half = Vec2::splat(0.5);
    for shape in [BALL, Shape::Box { half }] {
        let mut cast = |x, motion| {
            let from = Vec2::new(x, 0.6);
            mirror.cast(shape, from, 0.3, motion, BODIES).unwrap()
        };
        assert_eq!(cast(0.2, Vec2::ZERO), touch);
        assert_eq!(cast(0.2, Vec2::new(3.0, 1.0)), touch);
        assert_eq!(cast(2.0, Vec2::ZERO), None);
    }
}

#[test]
fn distant_shots_are_as_exact_as_near_ones() {
    let mut mirror = Mirror::new();
    ball(&mut mirror, 1, 2_000.0, 0.0);
    let mut shot = |y| {
        let from = Vec2::new(0.0, y);
        mirror.ray(from, Vec2::X, 5_000.0, BODIES).unwrap()
    };
    let expected = 2_000.0 - (0.25 - 0.49f64 * 0.49).sqrt();
    let grazing = shot(0.49).unwrap().distance_64ths;
    reference::assert_steps_match(grazing, expected, "grazing");
    assert_eq!(shot(0.51), None);
}

#[test]
fn a_non_finite_number_is_refused_and_named_and_leaves_no_trace() {
    let mut mirror: Mirror<u32> = Mirror::new();
    let shape = Shape::Ball { radius: 0.5 };
    let nan = Vec2::new(f32::NAN, 0.0);
    let mut fill = mirror.refill();
    let error = fill.put(77, shape, nan, 0.0, BODIES).unwrap_err();
    assert_eq!(
        error.to_string(),
        "body 77: position [NaN, 0] is not within ±262144 units; look at the step that last changed it"
    );
    for at in [
        Vec2::INFINITY,
        Vec2::new(0.0, COORDINATE_MAX * 1.01),
        Vec2::NEG_INFINITY,
    ] {
        assert!(matches!(
            fill.put(1, shape, at, 0.0, BODIES),
            Err(MirrorError::Body {
                id: 1,
                fault: Fault::Position(_)
            })
        ));
    }
    for angle in [f32::NAN, f32::INFINITY] {
        assert!(matches!(
            fill.put(1, shape, Vec2::ZERO, angle, BODIES),
            Err(MirrorError::Body {
                fault: Fault::Angle(_),
                ..
            })
        ));
    }
    let bad_shapes = [
        Shape::Ball { radius: 0.0 },
        Shape::Ball { radius: f32::NAN },
        Shape::Box {
            half: Vec2::new(1.0, -1.0),
        },
        Shape::Capsule {
            a: Vec2::ZERO,
            b: nan,
            radius: 1.0,
        },
        Shape::Segment {
            a: Vec2::ONE,
            b: Vec2::ONE,
        },
    ];
    for shape in bad_shapes {
        assert!(matches!(
            fill.put(1, shape, Vec2::ZERO, 0.0, BODIES),
            Err(MirrorError::Body {
                fault: Fault::Size(_),
                ..
            })
        ));
        assert!(matches!(
            mirror.add_wall(shape, Vec2::ZERO, 0.0, WALLS),
            Err(MirrorError::Wall { index: 0, .. })
        ));
        assert!(matches!(
            mirror.cast(shape, Vec2::ZERO, 0.0, Vec2::X, WALLS),
            Err(MirrorError::Query { .. })
        ));
        fill = mirror.refill();
    }
    assert_eq!((mirror.bodies.len(), mirror.walls.len()), (0, 0));

    assert!(mirror.area(nan, 1.0, BODIES).is_err());
    assert!(mirror.area(Vec2::ZERO, -1.0, BODIES).is_err());
    assert!(mirror.ray(Vec2::ZERO, Vec2::ZERO, 1.0, BODIES).is_err());
    assert!(mirror.ray(Vec2::ZERO, nan, 1.0, BODIES).is_err());
    assert!(
        mirror
            .ray_all(Vec2::ZERO, Vec2::X, f32::INFINITY, BODIES)
            .is_err()
    );
    assert!(mirror.cast(shape, Vec2::ZERO, 0.0, nan, BODIES).is_err());
}

#[test]
fn huge_but_finite_queries_are_answered() {
    let mut mirror = Mirror::new();
    ball(&mut mirror, 1, COORDINATE_MAX - 1.0, 1.0 - COORDINATE_MAX);
    assert_eq!(ids(mirror.area(Vec2::ZERO, f32::MAX, BODIES).unwrap()), [1]);
    let hit = mirror
        .ray(Vec2::ZERO, Vec2::new(1.0, -1.0), f32::MAX, BODIES)
        .unwrap()
        .unwrap();
    assert_eq!(hit.id, Some(1));
}

#[test]
fn a_mirror_can_move_to_a_worker_thread() {
    fn is_send<T: Send>() {}
    is_send::<Mirror<u32>>();
}
