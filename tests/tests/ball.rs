//! Physical bodies in the state, moved by the engine, and players that kick a ball (`tests/rig/src/ball.rs`).

use std::sync::Arc;
use std::time::{Duration, Instant};

use glam::Vec2;
use twinstep_client::SessionConfig;
use twinstep_core::{Mwc, codec};
use twinstep_protocol::replay::Replay;
use twinstep_protocol::simnet::LinkProfile;
use twinstep_rapier2d::Shape;
use twinstep_rapier2d::bodies::Bodies;
use twinstep_rapier2d::flight::{Body, Flights, Material, Motion};
use twinstep_rig::ball::{BALL, DOWN, KICK, LEFT, Pitch, RIGHT, UP, room};
use twinstep_rig::direct::{Direct, no_queries};
use twinstep_rig::rig::{Play, Rig, RigConfig};
use twinstep_server::{Match, MatchConfig};
use twinstep_testing::{Script, arena, check};

const SECOND: Duration = Duration::from_secs(1);

// Four players on a bad link: one joins late, one is healed, and the server is killed and resumes. The rig checks at
// each drawn frame that every client's authority equals the server's world.
#[test]
fn a_ball_is_the_same_on_all_sides_after_a_late_join_a_heal_and_a_crash() {
    let mut config = RigConfig::new(93, LinkProfile::BAD);
    config.clients = 3;
    let mut rig = Rig::<Pitch>::new(config);
    rig.run(SECOND * 8);
    assert!(rig.all_play());
    let late = rig.join("late");
    rig.run(SECOND * 4);
    rig.flip(2);
    rig.run(SECOND * 6);
    assert_eq!(rig.stats(2).heals, 1);
    let report = rig.clients[2].desync.clone().expect("a report");
    assert!(report.contains("bodies"), "{report}");
    assert_eq!(rig.stats(late).heals, 0);
    rig.crash(SECOND / 2);
    rig.run(SECOND / 2);
    (0..=late).for_each(|client| rig.redial(client));
    rig.run(SECOND * 6);
    rig.converge();
    let pitch = rig.match_.world().sim();
    println!(
        "{} kicks, {} hits; {:?}",
        pitch.kicks,
        pitch.hits,
        rig.stats(0).timeline
    );
    assert!(pitch.kicks > 20 && pitch.hits > 20, "{pitch:?}");

    let rules = room();
    let mut replay = Replay::<Pitch>::open(&rig.journal, &rules).unwrap();
    let verified = replay.verify();
    assert_eq!(verified.fault, None);
    assert!(verified.digests > 10);
}

#[test]
fn a_ball_keeps_rolling_after_its_save_is_loaded() {
    let rules = || Arc::new(room());
    let begun = Match::new(
        MatchConfig::action(),
        Pitch::new(),
        rules(),
        no_queries::<Pitch>(),
    )
    .unwrap();
    let mut first = Direct::around(begun, 60);
    let peer = first
        .connect("anna", 1, SessionConfig::new(rules()))
        .unwrap();
    first.gather();
    let kicks = |seen: usize| [RIGHT, RIGHT | UP, RIGHT | DOWN | KICK, LEFT][seen / 20 % 4];
    let mut frames = 0;
    while frames < 240 {
        first.frame(|_, _| kicks(frames));
        frames += 1;
    }
    assert_eq!(peer.0, 0);
    let save = first.match_.save().unwrap();
    let pitch = first.match_.world().sim().clone();
    let again = Match::load(
        MatchConfig::action(),
        &save,
        rules(),
        no_queries::<Pitch>(),
        None,
    )
    .unwrap();
    let loaded = again.world().sim().clone();
    let ticks = first.match_.world().tick() - again.world().tick();
    assert!(ticks <= 2);
    // The saved world is the current one, or the one at the start of the current turn.
    assert!(ticks > 0 || loaded == pitch);
    let mut bytes = Vec::new();
    codec::append(&loaded, &mut bytes).unwrap();
    println!(
        "{} bytes for {} bodies",
        bytes.len(),
        loaded.bodies.iter().len()
    );
    assert!(bytes.len() < 80 * loaded.bodies.iter().len());
    let mut second = Direct::around(again, 60);
    second
        .connect("anna", 1, SessionConfig::new(rules()))
        .unwrap();
    second.gather();
    second.rest(SECOND * 2);
    let authority = second.sessions[0].authority().unwrap();
    assert!(authority.sim().bodies.get(BALL).is_some());
    assert_eq!(second.sessions[0].stats().heals, 0);
}

#[test]
fn the_ball_game_passes_a_check_and_an_arena() {
    let script = || {
        let mut mind = Some(Mwc::seed(3));
        Script::<Pitch>::new(move |seen, _| {
            let (sim, rules) = (seen.sim, seen.rules);
            sim.drive(&mut mind, rules, seen.player, seen.tick).0
        })
        .players(4)
        .ticks(300)
    };
    let report = check(Pitch::new(), room(), script()).unwrap();
    println!("{report}");
    assert!(report.untried.is_empty(), "{report}");
    let played = arena(Pitch::new(), room(), script())
        .players(4)
        .link("bad")
        .seed(7)
        .seconds(8)
        .run()
        .unwrap();
    println!("{played}");
}

// Moving bodies, 1.5 units apart; every third one is a ball.
fn crowd(count: u32) -> Bodies<u32> {
    let side = f64::from(count).sqrt().ceil() as u32;
    let mut bodies = Bodies::default();
    for id in 0..count {
        let at = Vec2::new((id % side) as f32, (id / side) as f32);
        let velocity = Vec2::new((id * 7 % 11) as f32 - 5.0, (id * 5 % 13) as f32 - 6.0);
        let (radius, half, spin) = (0.5, Vec2::splat(0.5), 0.0);
        let shape = match id % 3 {
            0 => Shape::Ball { radius },
            _ => Shape::Box { half },
        };
        let body = Body {
            id,
            shape,
            at: (at - (side - 1) as f32 / 2.0) * 1.5,
            angle: 0.3 * (id % 7) as f32,
            motion: Motion::Tumbles { velocity, spin },
            push: Vec2::ZERO,
            twist: 0.0,
        };
        bodies.put(body).unwrap();
    }
    bodies
}

// Prints the table of the guide's chapter 22:
// cargo test --release --workspace --test worlds the_costs_by_number_of_bodies_are_printed -- --ignored --nocapture
#[test]
#[ignore = "measures; needs a release build"]
#[expect(clippy::disallowed_methods, reason = "it measures")]
fn the_costs_by_number_of_bodies_are_printed() {
    let tick = SECOND / 60;
    for (gravity, drag) in [(0.0, 0.2), (-9.81, 0.0)] {
        for count in [1, 10, 30, 100, 300, 1_000] {
            let (bounce, friction) = (0.6, 0.3);
            let mut room = Flights::new(Material {
                bounce,
                friction,
                drag,
            })
            .gravity(Vec2::new(0.0, gravity));
            let size = 2 * (count as f32).sqrt() as u32 + 10;
            let edge = |at| at == 0 || at == size - 1;
            let corner = -Vec2::splat(size as f32 / 2.0);
            room.add_tiles::<u32>(corner, Vec2::ONE, [size, size], |x, y| edge(x) || edge(y))
                .unwrap();
            let mut bodies = crowd(count);
            let mut steps = Vec::from_iter((0..200).map(|_| {
                let began = Instant::now();
                bodies.step(&room, tick);
                began.elapsed()
            }));
            steps[100..].sort_unstable();
            let mut copy = bodies.clone();
            let began = Instant::now();
            (0..1_000).for_each(|_| std::hint::black_box(&mut copy).clone_from(&bodies));
            let (copying, step) = (began.elapsed() / 1_000, steps[150]);
            let bytes = codec::size(&bodies).unwrap();
            println!(
                "gravity {gravity}: {count} bodies: step {step:?}, copy {copying:?}, {bytes} bytes"
            );
        }
    }
}
