//! Side views: bodies that fall, rest, slide and are steered.

use super::tests::{BALL, CRATE, TICKS_PER_SECOND, slides, to_units};
use super::{Body, Flights, Material, Motion, PUSH_MAX, Shape, TURN_STEPS, Track};
use glam::Vec2;

const GRAVITY: Vec2 = Vec2::new(0.0, -9.81);

fn material(friction: f32) -> Material {
    Material {
        bounce: 0.0,
        friction,
        drag: 0.0,
    }
}

// A slope through the origin, `angle` radians steep, and a crate on it.
fn slope(angle: f32, friction: f32) -> (Flights, Body<u32>) {
    let mut room = Flights::new(material(friction)).gravity(GRAVITY);
    let up = Vec2::from_angle(angle).perp();
    let half = Vec2::new(100.0, 1.0);
    room.add_wall::<u32>(Shape::Box { half }, -up, angle)
        .unwrap();
    let motion = Motion::Tumbles {
        velocity: Vec2::ZERO,
        spin: 0.0,
    };
    let crate_on_it = Body {
        angle,
        motion,
        ..slides(1, CRATE, up * 0.75, Vec2::ZERO)
    };
    (room, crate_on_it)
}

// The body as it is after a window: at the track's last sample, or at rest where it was.
fn continued(body: Body<u32>, track: &Track<u32>, every: u32, ticks: u32) -> Body<u32> {
    let whole = track.samples.len() as u32 == ticks / every;
    let Some(last) = track.samples.last() else {
        let motion = Motion::Tumbles {
            velocity: Vec2::ZERO,
            spin: 0.0,
        };
        return Body { motion, ..body };
    };
    let speed = |speed: i16| if whole { f32::from(speed) / 64.0 } else { 0.0 };
    let [x, y] = last.velocity_64ths.map(speed);
    Body {
        at: to_units(last),
        angle: f32::from(last.turn_65536ths) / TURN_STEPS * std::f32::consts::TAU,
        motion: Motion::Tumbles {
            velocity: Vec2::new(x, y),
            spin: speed(last.spin_64ths),
        },
        ..body
    }
}

// Row 92: in `t` seconds a body falls g t² / 2, within a sixth of the distance of a tick, plus a 32nd of a unit.
#[test]
fn a_body_falls_by_half_of_g_t_squared() {
    for g in [1.62, 9.81, 30.0] {
        let room = Flights::new(material(0.5)).gravity(Vec2::new(0.0, -g));
        // The body stands still in the air after 48 ticks.
        let rise = g * 0.8;
        let thrown = slides(1, BALL, Vec2::ZERO, Vec2::Y * rise);
        let tracks = room.run(&[thrown], 120, 1).unwrap();
        let samples = &tracks[0].samples;
        assert_eq!(samples.len(), 120, "it does not rest at its highest point");
        for (tick, sample) in (1..).zip(samples) {
            let t = tick as f32 / TICKS_PER_SECOND;
            let expected = Vec2::Y * (rise * t - g * t * t / 2.0);
            let error = to_units(sample).distance(expected);
            let most = 1.0 / 32.0 + g * t / TICKS_PER_SECOND / 6.0;
            assert!(error < most, "g {g}, after {t} s: {error} of {most}");
            let speed = f32::from(sample.velocity_64ths[1]) / 64.0;
            assert!(
                (speed - (rise - g * t)).abs() < 1.0 / 32.0,
                "{speed} at {t}"
            );
        }
    }
}

// Row 92: a crate rests on a slope that is less steep than its friction, for any number of windows, and slides down a
// steeper one with the acceleration g (sin - friction × cos).
#[test]
fn friction_holds_a_crate_on_a_gentle_slope() {
    for degrees in [5.0_f32, 12.0, 18.0, 24.0, 35.0] {
        let angle = degrees.to_radians();
        let friction = 0.4; // 21.8 degrees
        let (room, start) = slope(angle, friction);
        let mut body = start;
        for _ in 0..200 {
            let tracks = room.run(&[body], 1, 6).unwrap();
            body = continued(body, &tracks[0], 6, 6);
            if body.at.length() > 60.0 {
                break;
            }
        }
        let slid = body.at.distance(start.at);
        let Vec2 { x: cos, y: sin } = Vec2::from_angle(angle);
        if sin < friction * cos {
            assert!(slid < 1.0 / 16.0, "{degrees}°: {slid} in 20 s");
            continue;
        }
        let tracks = room.run(&[start], 20, 6).unwrap();
        let slid = to_units(tracks[0].samples.last().unwrap()).distance(start.at);
        let expected = 9.81 * (sin - friction * cos) * 2.0;
        assert!(
            (slid - expected).abs() < expected * 0.05,
            "{degrees}°: slid {slid}, expected {expected}"
        );
    }
}

// Row 92: windows of six ticks, each starting at the last sample of the previous one, give the same path as one long
// run.
#[test]
fn a_path_in_windows_matches_the_path_of_one_run() {
    let mut room = Flights::new(Material {
        bounce: 0.5,
        friction: 0.4,
        drag: 0.05,
    })
    .gravity(GRAVITY);
    let half = Vec2::new(100.0, 1.0);
    room.add_wall::<u32>(Shape::Box { half }, -Vec2::Y, 0.0)
        .unwrap();
    for n in 0..12 {
        let thrown = Body {
            motion: Motion::Tumbles {
                velocity: Vec2::new(n as f32, 2.0),
                spin: 0.0,
            },
            ..slides(1, BALL, Vec2::new(0.0, 2.0 + n as f32 / 4.0), Vec2::ZERO)
        };
        let whole = room.run(&[thrown], 20, 6).unwrap();
        let mut body = thrown;
        for (window, sample) in whole[0].samples.iter().enumerate() {
            let tracks = room.run(&[body], 1, 6).unwrap();
            body = continued(body, &tracks[0], 6, 6);
            let apart = body.at.distance(to_units(sample));
            assert!(apart < 0.25, "{n}, window {window}: {apart} apart");
        }
    }
}

// A push moves a body as gravity does; a twist rolls a ball by its friction, and spins it on ice.
#[test]
fn a_push_and_a_twist_accelerate_a_body() {
    let pushed = Body {
        push: Vec2::new(4.0, 9.81),
        ..slides(1, CRATE, Vec2::ZERO, Vec2::ZERO)
    };
    let air = Flights::new(material(0.5)).gravity(GRAVITY);
    let tracks = air.run(&[pushed], 10, 6).unwrap();
    let end = to_units(tracks[0].samples.last().unwrap());
    assert!(end.distance(Vec2::X * 2.0) < 0.05, "{end}");
    let rolled = |friction| {
        let (room, _) = slope(0.0, friction);
        let motion = Motion::Tumbles {
            velocity: Vec2::ZERO,
            spin: 0.0,
        };
        let wheel = Body {
            motion,
            twist: -6.0,
            ..slides(1, BALL, Vec2::Y * 0.5, Vec2::ZERO)
        };
        let tracks = room.run(&[wheel], 10, 6).unwrap();
        let last = *tracks[0].samples.last().unwrap();
        (to_units(&last).x, f32::from(last.spin_64ths) / 64.0)
    };
    // A wheel is a disc: two thirds of the motor's work go into its motion, a third into its spin.
    let (way, spin) = rolled(0.8);
    assert!(
        (way - 0.5).abs() < 0.05 && (spin + 2.0).abs() < 0.1,
        "{way}, {spin}"
    );
    let (way, spin) = rolled(0.0);
    assert!(
        way.abs() < 0.05 && (spin + 6.0).abs() < 0.1,
        "{way}, {spin}"
    );
}

#[test]
fn no_falling_body_exceeds_the_speed_limit_or_passes_through_the_ground() {
    let mut room = Flights::new(material(0.5)).gravity(Vec2::Y * -PUSH_MAX);
    let (a, b) = (Vec2::new(-99.0, 0.0), Vec2::new(99.0, 0.0));
    room.add_wall::<u32>(Shape::Segment { a, b }, Vec2::ZERO, 0.0)
        .unwrap();
    for n in 0..20 {
        let fallen = Body {
            push: Vec2::Y * -PUSH_MAX,
            ..slides(1, BALL, Vec2::Y * (40.0 + n as f32 * 0.37), Vec2::ZERO)
        };
        for sample in &room.run(&[fallen], 60, 1).unwrap()[0].samples {
            assert!(sample.at_64ths[1] > 0, "{n}: {sample:?}");
            assert!(sample.velocity_64ths[1] >= -240 * 64, "{n}: {sample:?}");
        }
    }
}

#[test]
fn a_stack_of_crates_stays_up_across_windows() {
    let (room, bottom) = slope(0.0, 0.5);
    let mut stack: Vec<Body<u32>> = (0..4)
        .map(|id| Body {
            id,
            at: bottom.at + Vec2::Y * 1.5 * id as f32,
            ..bottom
        })
        .collect();
    let start = stack.clone();
    for _ in 0..100 {
        let tracks = room.run(&stack, 1, 6).unwrap();
        for (body, track) in stack.iter_mut().zip(&tracks) {
            *body = continued(*body, track, 6, 6);
        }
    }
    for (body, start) in stack.iter().zip(&start) {
        let moved = body.at.distance(start.at);
        assert!(moved < 0.1, "crate {} moved by {moved} in 10 s", body.id);
    }
}
