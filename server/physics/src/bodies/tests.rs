//! Rooms full of bodies; one rule per test.

use twinstep_core::codec;

use super::*;
use crate::flight::Material;
use crate::{Shape, flight};

const TICK: Duration = Duration::from_nanos(16_666_667);
const CRATE: Shape = Shape::Box {
    half: Vec2::splat(0.5),
};
const BALL: Shape = Shape::Ball { radius: 0.5 };

// A closed room; its edges are 2 units thick.
fn room(half: f32, gravity: f32) -> Flights {
    let material = Material {
        bounce: 0.6,
        friction: 0.3,
        drag: if gravity == 0.0 { 0.2 } else { 0.0 },
    };
    let mut room = Flights::new(material).gravity(Vec2::new(0.0, gravity));
    for side in [Vec2::X, Vec2::Y, -Vec2::X, -Vec2::Y] {
        let edge = Shape::Box {
            half: Vec2::splat(1.0) + side.perp().abs() * (half + 1.0),
        };
        room.add_wall::<u32>(edge, side * (half + 1.0), 0.0)
            .expect("a sound wall");
    }
    room
}

fn body(id: u32, shape: Shape, at: Vec2, velocity: Vec2) -> Body<u32> {
    Body {
        id,
        shape,
        at,
        angle: 0.3 * (id % 7) as f32,
        motion: Motion::Tumbles {
            velocity,
            spin: 0.0,
        },
        push: Vec2::ZERO,
        twist: 0.0,
    }
}

// `count` balls and crates side by side, all moving.
fn crowd(count: u32) -> Bodies<u32> {
    let side = f64::from(count).sqrt().ceil() as u32;
    let mut bodies = Bodies::default();
    for id in 0..count {
        let (column, row) = ((id % side) as f32, (id / side) as f32);
        let at = (Vec2::new(column, row) - (side - 1) as f32 / 2.0) * 1.5;
        let velocity = Vec2::new((id * 7 % 11) as f32 - 5.0, (id * 5 % 13) as f32 - 6.0);
        let shape = if id % 3 == 0 { BALL } else { CRATE };
        bodies.put(body(id, shape, at, velocity)).expect("sound");
    }
    bodies
}

fn bytes(bodies: &Bodies<u32>) -> Vec<u8> {
    let mut bytes = Vec::new();
    codec::append(bodies, &mut bytes).expect("it fits");
    bytes
}

fn read(bytes: &[u8]) -> Result<Bodies<u32>, codec::CodecError> {
    codec::decode_whole(bytes)
}

fn refusal(bodies: &Bodies<u32>) -> String {
    read(&bytes(bodies)).expect_err("bytes from elsewhere");
    let bodies = Unchecked {
        bodies: bodies.bodies.clone(),
        contacts: bodies.contacts.clone(),
        is_settled: false,
    };
    Bodies::try_from(bodies).expect_err("the same values")
}

#[test]
fn restored_or_copied_bodies_continue_bit_for_bit() {
    for gravity in [0.0, -9.81] {
        let room = room(8.0, gravity);
        let (mut bodies, mut copy) = (crowd(24), Bodies::default());
        let mut hits = 0;
        for tick in 0..300 {
            if tick % 20 == 0 {
                let id = tick / 20;
                let kick = |ball: &mut Body<u32>| ball.kick(Vec2::new(3.0, 9.0));
                bodies.change(id, kick).expect("there are 24");
            }
            copy.clone_from(&bodies);
            let mut again = read(&bytes(&bodies)).expect("its own bytes");
            bodies.step(&room, TICK);
            copy.step(&room, TICK);
            again.step(&room.clone(), TICK);
            let now = bytes(&bodies);
            assert!(now == bytes(&copy) && now == bytes(&again), "tick {tick}");
            hits += bodies.contacts().iter().filter(|hit| hit.is_new).count();
        }
        assert!(hits > 50, "{hits}");
    }
}

#[test]
fn neither_insertion_order_nor_distant_walls_change_a_step() {
    let mut near = room(8.0, 0.0);
    let mut bodies = crowd(20);
    let mut other = Bodies::default();
    for body in bodies.iter().collect::<Vec<_>>().into_iter().rev() {
        other.put(*body).expect("sound");
    }
    let mut far = near.clone();
    let tile = Vec2::splat(1.0);
    far.add_tiles::<u32>(Vec2::splat(100.0), tile, [100, 100], |x, y| {
        (x + y) % 3 == 0
    })
    .expect("sound tiles");
    near.add_wall::<u32>(CRATE, Vec2::splat(-300.0), 0.0)
        .expect("sound");
    for _ in 0..200 {
        bodies.step(&near, TICK);
        other.step(&far, TICK);
    }
    assert_eq!(bytes(&bodies), bytes(&other));
}

#[test]
fn no_body_leaves_a_closed_room_at_any_tick_length() {
    for hz in [10, 20, 30, 60, 144] {
        let room = room(10.0, -9.81);
        let mut bodies = crowd(12);
        for id in 0..12 {
            let away = Vec2::from_angle(id as f32) * SPEED_MAX;
            bodies
                .change(id, |body| body.kick(away))
                .expect("it is there");
        }
        for tick in 0..hz * 4 {
            if tick % 5 == 0 {
                let kick = Vec2::from_angle(tick as f32) * 200.0;
                bodies
                    .change(tick % 12, |body| body.kick(kick))
                    .expect("it is there");
            }
            bodies.step(&room, Duration::from_secs(1) / hz);
            for body in bodies.iter() {
                let out = body.at.abs().max_element();
                assert!(out < 10.5, "{hz} Hz, tick {tick}: {body:?}");
            }
        }
    }
}

#[test]
fn a_pile_comes_to_rest_and_contacts_are_new_once() {
    let room = room(6.0, -9.81);
    let mut bodies = Bodies::default();
    for id in 0..10 {
        let at = Vec2::new((id % 2) as f32 * 1.2 - 0.6, -5.0 + (id / 2) as f32 * 1.3);
        let mut crate_ = body(id, CRATE, at, Vec2::ZERO);
        crate_.angle = 0.0;
        bodies.put(crate_).expect("sound");
    }
    let mut begun = 0;
    for tick in 0..400 {
        bodies.step(&room, TICK);
        let touching = bodies.contacts();
        assert!(touching.is_sorted_by_key(|contact| (contact.first, contact.second)));
        if tick >= 300 {
            begun += touching.iter().filter(|contact| contact.is_new).count();
            assert!(touching.len() >= 10, "{touching:?}");
            for body in bodies.iter() {
                assert!(body.velocity().length() < 0.1, "tick {tick}: {body:?}");
            }
        }
    }
    assert!(begun < 20, "{begun} contacts began in a pile at rest");
}

#[test]
fn a_driven_body_pushes_others_and_is_not_stopped() {
    let room = room(20.0, 0.0);
    let mut bodies = Bodies::default();
    let mut lift = body(1, CRATE, Vec2::ZERO, Vec2::ZERO);
    let velocity = Vec2::X * 4.0;
    (lift.motion, lift.angle) = (Motion::Driven { velocity }, 0.0);
    bodies.put(lift).expect("sound");
    bodies
        .put(body(2, BALL, Vec2::X * 3.0, Vec2::ZERO))
        .expect("sound");
    for _ in 0..120 {
        bodies.step(&room, TICK);
    }
    let [lift, ball] = [1, 2].map(|id| bodies.get(id).expect("it is there"));
    assert!(
        (lift.at.x - 8.0).abs() < 0.01 && ball.at.x > 8.9,
        "{lift:?} {ball:?}"
    );
}

#[test]
fn resting_bodies_settle_until_one_changes() {
    let room = room(10.0, 0.0);
    let mut bodies = crowd(4);
    for _ in 0..3_000 {
        bodies.step(&room, TICK);
    }
    assert!(bodies.is_settled && bodies.iter().all(|body| body.velocity() == Vec2::ZERO));
    bodies
        .change(2, |ball| ball.kick(Vec2::X))
        .expect("it is there");
    let before = bodies.get(2).expect("it is there").at;
    bodies.step(&room, TICK);
    assert_ne!(bodies.get(2).expect("it is there").at, before);
}

#[test]
fn bad_numbers_are_refused_and_leave_all_bodies_unchanged() {
    let mut bodies = crowd(3);
    let before = bytes(&bodies);
    for bad in [f32::NAN, f32::INFINITY, 1e30] {
        let bad = Vec2::new(1.0, bad);
        bodies
            .change(1, |ball| ball.at = bad)
            .expect_err("no place");
        bodies
            .change(1, |ball| ball.push = bad)
            .expect_err("no push");
        let error = bodies
            .put(body(9, BALL, Vec2::ZERO, bad))
            .expect_err("no speed");
        assert!(error.to_string().starts_with("body 9: velocity"), "{error}");
    }
    bodies
        .change(1, |ball| ball.kick(Vec2::NAN))
        .expect("a kick that does nothing");
    let nobody = bodies.change(77, |_| ()).expect_err("nobody");
    assert_eq!(nobody.to_string(), "no body has the id 77");
    assert_eq!(bytes(&bodies), before);

    bodies
        .change(1, |ball| ball.kick(Vec2::splat(1e9)))
        .expect("it is shortened");
    read(&bytes(&bodies)).expect("a speed within the limit");
    let mut full = crowd(BODIES_MAX as u32);
    let error = full.put(body(5_000, BALL, Vec2::ZERO, Vec2::ZERO));
    assert_eq!(error, Err(flight::FlightError::Full { id: 5_000 }));
}

#[test]
fn untrusted_bytes_are_refused_or_step_without_a_panic() {
    let mut bodies = crowd(6);
    let room = room(5.0, -9.81);
    for _ in 0..600 {
        if bodies.contacts().len() < 2 {
            bodies.step(&room, TICK);
        }
    }
    let sound = bytes(&bodies);
    let mut forged = bodies.clone();
    forged.bodies[3].at.x = f32::NAN;
    let error = refusal(&forged);
    assert!(error.starts_with("body 3: position"), "{error}");
    forged.bodies[3] = forged.bodies[2];
    let error = refusal(&forged);
    assert_eq!(error, "expected each body once, by id, got 2 after 2");
    let mut crowded = crowd(BODIES_MAX as u32);
    crowded
        .bodies
        .push(body(9_999, BALL, Vec2::ZERO, Vec2::ZERO));
    let error = refusal(&crowded);
    assert!(error.starts_with("expected at most 1024 bodies"), "{error}");
    forged = bodies.clone();
    forged.contacts.reverse();
    assert!(forged.contacts.len() > 1, "{:?}", forged.contacts);
    assert_eq!(refusal(&forged), "expected each contact once, in order");

    let (mut stepped, mut refused) = (0, 0);
    for at in 0..sound.len() {
        for flip in [0x01, 0x80, 0xff] {
            let mut hostile = sound.clone();
            hostile[at] ^= flip;
            match read(&hostile) {
                Ok(mut bodies) => {
                    for _ in 0..3 {
                        bodies.step(&room, TICK);
                    }
                    read(&bytes(&bodies)).expect("what was stepped is sound");
                    stepped += 1;
                }
                Err(_) => refused += 1,
            }
        }
    }
    assert!(stepped > 50 && refused > 50, "{stepped} {refused}");
}
