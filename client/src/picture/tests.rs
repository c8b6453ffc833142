use glam::Vec2;
use proptest::prelude::*;
use twinstep_core::testing::doc::Counter;
use twinstep_core::{PlayerId, PlayerSet, Tick, World};

use super::*;
use crate::smooth::{Angle, Placed};

const TICK: Duration = Duration::from_millis(16);
const OVER: Duration = Duration::from_millis(96);

const OTHER: PlayerId = PlayerId(1);

fn muzzle(shooter: u32, at: Vec2) -> Muzzle<u32, Vec2> {
    Muzzle {
        shooter,
        at,
        born: twinstep_core::Tick(0),
    }
}

fn picture() -> Picture<u32, Vec2> {
    Picture::new(Smoothing {
        teleport: 5.0,
        muzzle: TICK * 12,
    })
}

fn poses(all: &[(u32, f32)]) -> Poses<u32, Vec2> {
    let mut poses = Poses::new();
    for (key, x) in all {
        poses.put(*key, Vec2::new(*x, 0.0));
    }
    poses
}

fn x(picture: &Picture<u32, Vec2>, key: u32, alpha: f32, now: Duration) -> f32 {
    picture.pose(key, alpha, now).unwrap().x
}

#[test]
fn remote_entities_are_drawn_between_the_last_two_ticks_and_local_ones_a_tick_later() {
    let mut picture = picture();
    for tick in 0..2 {
        let mut poses = Poses::new();
        poses.begin([PlayerId(3)].into_iter().collect());
        poses.put_player(PlayerId(3), 7, Vec2::new(tick as f32, 0.0));
        poses.put_player(PlayerId(2), 4, Vec2::new(tick as f32, 0.0));
        picture.ticked(&mut poses, TICK * tick);
    }
    let shown: Vec<_> = picture
        .shown(0.25, TICK)
        .map(|(key, pose)| (key, pose.x))
        .collect();
    assert_eq!(shown, [(4, 0.25), (7, 1.25)]);
}

#[test]
fn entities_appear_and_vanish_at_once() {
    let mut picture = picture();
    picture.ticked(&mut poses(&[(1, 0.0), (2, 0.0)]), TICK);
    picture.ticked(&mut poses(&[(2, 1.0), (3, 9.0)]), TICK * 2);
    let shown: Vec<_> = picture
        .shown(0.5, TICK * 2)
        .map(|(key, pose)| (key, pose.x))
        .collect();
    assert_eq!(shown, [(2, 0.5), (3, 9.0)]);
}

/// Row 89: an entity that a rebuild removed fades where it was drawn, unless it appears again. An entity that ended
/// does not fade.
#[test]
fn only_entities_removed_by_a_rebuild_fade() {
    let mut picture = picture();
    picture.ticked(&mut poses(&[(1, 0.0), (2, 2.0), (3, 3.0)]), TICK);
    picture.ticked(&mut poses(&[(2, 2.0), (3, 3.0)]), TICK * 2);
    assert_eq!(picture.fading(TICK * 2).count(), 0, "1 has ended");
    let left = || poses(&[(3, 3.0)]);
    picture.rebuilt(&mut left(), &mut left(), 0.5, TICK * 2, OVER);
    let fading = |picture: &Picture<u32, Vec2>, now| {
        Vec::from_iter(picture.fading(now).map(|(key, at, left)| (key, at.x, left)))
    };
    assert_eq!(fading(&picture, TICK * 2), [(2, 2.0, 1.0)]);
    assert_eq!(fading(&picture, TICK * 2 + OVER / 4), [(2, 2.0, 0.75)]);
    assert_eq!(fading(&picture, TICK * 2 + OVER), []);
    picture.ticked(&mut poses(&[(2, 5.0), (3, 3.0)]), TICK * 3);
    assert_eq!(fading(&picture, TICK * 3), [], "2 is there again");
}

#[test]
fn the_last_pose_put_for_a_key_wins() {
    let mut picture = picture();
    picture.ticked(&mut poses(&[(5, 1.0), (2, 2.0), (9, 3.0), (2, 4.0)]), TICK);
    let shown: Vec<_> = picture
        .shown(0.0, TICK)
        .map(|(key, pose)| (key, pose.x))
        .collect();
    assert_eq!(shown, [(2, 4.0), (5, 1.0), (9, 3.0)]);
}

#[test]
fn poses_match_a_sorted_map_for_any_put_order() {
    let mut luck = twinstep_core::Mwc::seed(7);
    for _ in 0..2_000 {
        let mut put: Vec<(u32, f32)> = (0..luck.below(12))
            .map(|n| (luck.below(8), n as f32))
            .collect();
        let sorted = luck.below(put.len() as u32 + 1) as usize;
        put[..sorted].sort_by_key(|put| put.0);
        let wanted: std::collections::BTreeMap<u32, f32> = put.iter().copied().collect();
        let (mut picture, mut poses) = (picture(), poses(&put));
        picture.ticked(&mut poses, TICK);
        for key in 0..8 {
            let found = poses.get(key).map(|put| put.pose.x);
            assert_eq!(found, wanted.get(&key).copied(), "{put:?}");
        }
        let shown: Vec<_> = picture
            .shown(0.0, TICK)
            .map(|(key, pose)| (key, pose.x))
            .collect();
        assert_eq!(shown, wanted.into_iter().collect::<Vec<_>>(), "{put:?}");
    }
}

/// Row 37: the distance of each correction is counted.
#[test]
fn a_rebuild_moves_entities_gradually() {
    let mut picture = picture();
    picture.ticked(&mut poses(&[(1, 0.0)]), TICK);
    picture.ticked(&mut poses(&[(1, 1.0)]), TICK * 2);
    let now = TICK * 2 + TICK / 4;
    let before = x(&picture, 1, 0.25, now);
    picture.rebuilt(
        &mut poses(&[(1, 2.0)]),
        &mut poses(&[(1, 3.0)]),
        0.25,
        now,
        OVER,
    );
    assert!((x(&picture, 1, 0.25, now) - before).abs() < 1e-6);
    assert_eq!(x(&picture, 1, 0.25, now + OVER), 2.25);
    // This entity was drawn at 0.25, and is at 2.25.
    assert_eq!(picture.error(1, now), Some(2.0));
    assert_eq!(picture.error(1, now + OVER), Some(0.0));
    assert_eq!(picture.error(2, now), None);
    assert_eq!(picture.corrections().count(), 1);
    assert!(
        (2.0..=2.5).contains(&picture.corrections().quantile(0.95)),
        "{}",
        picture.corrections().quantile(0.95)
    );
}

/// Row 37, for each entity separately.
#[test]
fn a_rebuild_that_does_not_move_an_entity_neither_counts_nor_delays_its_correction() {
    let mut picture = picture();
    picture.ticked(&mut poses(&[(1, 0.0)]), TICK);
    picture.rebuilt(
        &mut poses(&[(1, 1.0)]),
        &mut poses(&[(1, 1.0)]),
        0.0,
        TICK,
        OVER,
    );
    for n in 0..50 {
        let now = TICK + OVER * n / 50;
        picture.rebuilt(
            &mut poses(&[(1, 1.0)]),
            &mut poses(&[(1, 1.0)]),
            0.0,
            now,
            OVER,
        );
    }
    assert_eq!(picture.corrections().count(), 1);
    assert_eq!(x(&picture, 1, 0.0, TICK + OVER), 1.0);
}

#[test]
fn a_wrong_heading_is_corrected_smoothly_even_at_the_right_place() {
    let mut picture = Picture::new(Smoothing {
        teleport: 5.0,
        muzzle: TICK,
    });
    let facing = |radians| {
        let mut poses = Poses::new();
        poses.put(
            1,
            Placed {
                at: Vec2::ONE,
                angle: Angle(radians),
            },
        );
        poses
    };
    picture.ticked(&mut facing(0.0), TICK);
    picture.rebuilt(&mut facing(1.0), &mut facing(1.0), 0.0, TICK, OVER);
    assert_eq!(picture.pose(1, 0.0, TICK).unwrap().angle, Angle(0.0));
    assert_eq!(picture.pose(1, 0.0, TICK + OVER).unwrap().angle, Angle(1.0));
}

#[test]
fn a_closure_lists_poses_and_the_hidden_show_lists_none() {
    let show = show_with(|scene: &Scene<'_, Counter>, out: &mut Poses<u32, f32>| {
        out.put(scene.tick.0, scene.total as f32);
        out.put(scene.tick.0 + 1, scene.tick_length.as_secs_f32());
    });
    let world = World::new(Counter::default(), Tick(5));
    let mut poses = Poses::new();
    show.poses(&Scene::new(&world, &()), &mut poses);
    assert_eq!((poses.len(), poses.is_empty()), (2, false));
    let mut nothing = Poses::new();
    NoPicture.poses(&Scene::new(&world, &()), &mut nothing);
    assert!(nothing.is_empty());
}

#[test]
fn a_large_error_teleports_and_a_long_move_is_not_interpolated() {
    let mut picture = picture();
    picture.ticked(&mut poses(&[(1, 0.0)]), TICK);
    picture.rebuilt(
        &mut poses(&[(1, 6.0)]),
        &mut poses(&[(1, 6.0)]),
        0.0,
        TICK,
        OVER,
    );
    assert_eq!(x(&picture, 1, 0.0, TICK), 6.0);
    assert_eq!(picture.corrections().teleports(), 1);
    picture.ticked(&mut poses(&[(1, 60.0)]), TICK * 2);
    assert_eq!(x(&picture, 1, 0.5, TICK * 2), 60.0);
    picture.rebuilt(
        &mut poses(&[(1, 60.0)]),
        &mut poses(&[(1, f32::NAN)]),
        0.5,
        TICK * 2,
        OVER,
    );
    picture.rebuilt(
        &mut poses(&[(1, 60.0)]),
        &mut poses(&[(1, 61.0)]),
        0.5,
        TICK * 2,
        OVER,
    );
    assert_eq!(
        x(&picture, 1, 0.5, TICK * 2),
        60.5,
        "a NaN pose leaves no trace"
    );
}

#[test]
fn quantiles_are_rounded_up_by_at_most_an_eighth() {
    let mut errors = Errors::default();
    assert_eq!(errors.quantile(0.95), 0.0);
    for n in 1..=1_000u16 {
        errors.record(f32::from(n) / 100.0, 100.0);
    }
    for (part, exact) in [(0.5, 5.0), (0.95, 9.5), (1.0, 10.0)] {
        let found = errors.quantile(part);
        assert!(found >= exact && found <= exact * 1.13, "{part}: {found}");
    }
    errors.record(f32::INFINITY, 100.0);
    errors.record(f32::NAN, 100.0);
    errors.record(0.0, 100.0);
    assert_eq!((errors.count(), errors.teleports()), (1_003, 2));
}

proptest! {
    /// Rebuilds at random moments: the picture is continuous, each error shrinks without overshooting, and is zero
    /// after `OVER`. Row 38.
    #[test]
    fn errors_shrink_to_zero_between_rebuilds(
        shifts in prop::collection::vec((-4.0f32..4.0, 1u32..120), 1..20),
        speed in -0.5f32..0.5,
    ) {
        let mut picture = picture();
        let (mut shift, mut now) = (0.0, TICK);
        picture.ticked(&mut poses(&[(1, 0.0)]), now);
        for (n, (step, wait_ms)) in shifts.into_iter().enumerate() {
            let alpha = (n % 4) as f32 / 4.0;
            let before = x(&picture, 1, alpha, now);
            shift = (shift + step).clamp(-2.0, 2.0);
            let [mut previous, mut newest] = [poses(&[(1, shift)]), poses(&[(1, shift + speed)])];
            picture.rebuilt(&mut previous, &mut newest, alpha, now, OVER);
            prop_assert!((x(&picture, 1, alpha, now) - before).abs() < 1e-4, "continuous");
            let error = |picture: &Picture<u32, Vec2>, now| x(picture, 1, alpha, now) - (shift + speed * alpha);
            let first = error(&picture, now);
            let mut last = first;
            for _ in 0..wait_ms {
                now += Duration::from_millis(1);
                let error = error(&picture, now);
                prop_assert!(error.abs() <= last.abs() + 1e-5, "monotone");
                prop_assert!(error * first >= -1e-5, "no overshoot");
                last = error;
            }
            if Duration::from_millis(u64::from(wait_ms)) >= OVER {
                prop_assert!(last.abs() < 1e-5, "gone");
            }
        }
    }
}

/// Row 67.
#[test]
fn a_ghost_starts_at_the_shown_muzzle_and_converges_exactly() {
    let mut picture = picture();
    let mut poses = Poses::new();
    let shooter = |tick: u32| Vec2::new(0.0, tick as f32 * 0.1);
    // Known at tick 10, fired 8 ticks ago at 2 units a tick: farther than a teleport, and still smoothed.
    let path = |tick: u32| Vec2::new(2.0 * (tick as f32 - 2.0), 0.3);
    let offset = Vec2::new(0.5, 0.0);
    let mut last = f32::MAX;
    for tick in 8..30 {
        let now = TICK * tick;
        let shown_shooter = picture.pose(0, 1.0, now);
        poses.begin(Default::default());
        poses.put(0, shooter(tick));
        if tick >= 10 {
            poses.put_from(OTHER, 1, path(tick), muzzle(0, shooter(tick) + offset));
        }
        picture.ticked(&mut poses, now);
        if tick == 10 {
            let muzzle = shown_shooter.unwrap() + offset;
            assert!((picture.pose(1, 0.0, now).unwrap() - muzzle).length() < 1e-5);
        }
        if tick >= 10 {
            for alpha in [0.0, 0.5, 0.99] {
                let true_pose = if tick == 10 {
                    path(10)
                } else {
                    Vec2::lerp(path(tick - 1), path(tick), alpha)
                };
                let error = (picture.pose(1, alpha, now + TICK.mul_f32(alpha)).unwrap()
                    - true_pose)
                    .length();
                assert!(error <= last + 1e-4, "tick {tick}: {error} after {last}");
                last = error;
            }
        }
    }
    assert!(last < 1e-5, "{last}");
}

#[test]
fn each_projectile_starts_at_the_muzzle_of_its_shooter() {
    let at = |key: u32| Vec2::new(key as f32 * 10.0, 0.0);
    for order in [[0, 1, 2, 3], [3, 2, 1, 0], [1, 3, 0, 2], [2, 3, 0, 1]] {
        let (mut picture, mut poses) = (picture(), Poses::new());
        for tick in 0..2 {
            poses.begin(Default::default());
            for key in order.into_iter().filter(|key| tick == 1 || *key < 2) {
                match key {
                    0 | 1 => poses.put(key, at(key)),
                    _ => poses.put_from(OTHER, key, at(key), muzzle(key - 2, at(key - 2))),
                }
            }
            picture.ticked(&mut poses, TICK * tick);
        }
        for shot in [2, 3] {
            let shown = picture.pose(shot, 0.0, TICK).unwrap();
            assert_eq!(shown, at(shot - 2), "{shot} of {order:?}");
        }
    }
}

/// A local entity keeps moving between two ticks. When it stops, it glides back instead of leaping; when it starts or
/// turns, it does so at once.
#[test]
fn a_stopping_local_entity_glides_back_from_where_it_was_drawn() {
    let mut picture = Picture::<u8, f32>::new(Smoothing::new(5.0, TICK));
    let tick = |picture: &mut Picture<u8, f32>, at: f32, drawn: f32, now: Duration| {
        let mut poses = Poses::new();
        poses.begin(PlayerSet::default());
        poses.put_local(1, at);
        poses.order();
        picture.ticked_to(&poses, drawn, now, TICK * 6);
    };
    tick(&mut picture, 0.0, 0.0, TICK);
    tick(&mut picture, 1.0, 0.0, TICK * 2);
    assert_eq!(picture.pose(1, 0.75, TICK * 2), Some(1.75), "it goes on");
    tick(&mut picture, 1.0, 0.75, TICK * 3);
    assert_eq!(picture.pose(1, 0.0, TICK * 3), Some(1.75), "it stops");
    let later = picture.pose(1, 0.5, TICK * 4).unwrap();
    assert!((1.0..1.75).contains(&later), "{later}");
    assert_eq!(picture.pose(1, 0.5, TICK * 9), Some(1.0));
    assert_eq!(picture.error(1, TICK * 4), Some(0.0), "it is no error");
    tick(&mut picture, 0.0, 0.5, TICK * 9);
    assert_eq!(
        picture.pose(1, 0.25, TICK * 9),
        Some(-0.25),
        "it starts at once"
    );
    assert_eq!(
        picture.pose(1, -0.5, TICK * 9),
        Some(0.5),
        "it was sampled early"
    );
}
