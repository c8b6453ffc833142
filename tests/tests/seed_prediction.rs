//! Prediction: the local simulation is complete in itself, responds immediately, and waits for no packet.

use std::sync::{Arc, Mutex};
use std::time::Duration;

use glam::Vec2;
use powderkeg_game::{Game, Heading, Pad, Rules, Wall};
use serde::{Deserialize, Serialize};
use twinstep_client::{Poses, Scene, SessionConfig, Smoothing, show_with};
use twinstep_core::bounds::{LEAD_TIME, lead_max};
use twinstep_core::testing::doc::Counter;
use twinstep_core::{Effects, Frame, Key, Mwc, PlayerId, Simulation, Table, Tick, World};
use twinstep_protocol::simnet::LinkProfile;
use twinstep_rig::direct::{Direct, no_queries};
use twinstep_rig::history::{self, History};
use twinstep_rig::rig::{Play, Rig, RigConfig};
use twinstep_server::{Decision, HookContext, MatchConfig};

const SECOND: Duration = Duration::from_secs(1);

fn counters(clients: usize) -> Direct<Counter> {
    let sessions = (0..clients).map(|_| SessionConfig::<Counter>::new(Arc::new(())));
    let policies = MatchConfig::action();
    let counter = Counter::default();
    let mut table = Direct::of(policies, counter, sessions);
    table.run(180, |_, _| 0);
    table
}

/// Row 28: although one player is 400 ms away, a near player sees each input in its own frame, and never waits.
#[test]
fn a_far_player_does_not_delay_the_inputs_of_a_near_one() {
    let mut config = RigConfig::new(6, LinkProfile::LAN);
    config.clients = 2;
    let mut rig = Rig::<Game>::new(config);
    rig.relink(1, "rtt=400,jitter=20".parse().unwrap());
    rig.run(SECOND * 5);
    let (before, sampled) = (rig.stats(0).stall_ms, rig.stats(0).input_tick);
    for _ in 0..2_000 {
        rig.run(Duration::from_millis(4));
        let stats = rig.stats(0);
        assert_eq!(stats.prediction_tick, stats.input_tick, "0 ticks of delay");
        assert!(stats.prediction_tick - stats.authority_tick < 12);
    }
    assert_eq!(rig.stats(0).stall_ms, before);
    assert!(rig.stats(0).input_tick - sampled > 470, "8 s of ticks");
    assert!(rig.stats(1).rtt_ms > 350.0);
}

/// Row 31: under the deadline policy a bad link affects only its own player. While one player's link jitters, the other
/// players' turns are never late.
#[test]
fn a_bad_link_makes_turns_late_only_for_its_owner() {
    let mut rig = Rig::<Game>::new(RigConfig::new(31, LinkProfile::LAN));
    rig.run(SECOND * 3);
    let before = [0, 1, 2, 3].map(|i| rig.stats(i));
    rig.relink(2, "rtt=80,jitter=250,loss=10".parse().unwrap());
    rig.run(SECOND * 20);
    for (i, before) in before.iter().enumerate() {
        let stats = rig.stats(i);
        let late = stats.late_turns - before.late_turns;
        println!(
            "client {i}: {late} late turns, {} fills",
            stats.fills - before.fills
        );
        assert_eq!(late > 0, i == 2, "client {i}: {late} late turns");
        assert!(i == 2 || stats.stall_ms == 0.0);
    }
}

/// Rows 32 and 77: an input read in a frame is used in the predicted step of its tick, and sent in a datagram in the
/// same frame. That datagram is enough for the server to seal the tick with this input.
#[test]
fn an_input_is_used_and_sent_in_the_frame_in_which_it_is_read() {
    let mut table = counters(1);
    let seen = |table: &Direct<Counter>| {
        let world = table.sessions[0].prediction().unwrap();
        (world.tick(), world.sim().total)
    };
    let mut tick = Tick(0);
    for held in [1, 7, 0, 200, 9] {
        let before = seen(&table);
        tick = before.0;
        table.frame(|_, _| held);
        assert_eq!(seen(&table), (tick + 1, before.1 + u64::from(held)));
        assert_eq!(table.up.len(), 1, "one datagram, in the same frame");
        table.serve();
    }
    // From here on, no packet from the client arrives.
    while table.match_.world().tick() <= tick {
        table.now += Duration::from_millis(1);
        table.serve();
    }
    assert_eq!(
        table.match_.world().held(PlayerId(0)),
        (&9, 0),
        "not filled"
    );
}

/// Row 34: without any packet, a predicted player still stops at a wall, at its own radius, and stops when the stick is
/// released.
#[test]
fn a_predicted_player_stops_at_walls_without_the_network() {
    let rules = Arc::new(Rules {
        walls: vec![Wall {
            center: Vec2::new(-33.0, -17.5),
            half: Vec2::new(1.0, 2.0),
        }],
        ..Rules::arena(0)
    });
    let config = SessionConfig::<Game>::new(rules.clone());
    let game = Game::new(&rules, 1);
    let resolver = Game::resolver(&rules, 1);
    let policies = MatchConfig::action();
    let mut table = Direct::new(policies, game, rules, resolver, vec![config], 60);
    table.run(180, |_, _| Pad::default());
    let x = |table: &Direct<Game>| {
        let world = table.sessions[0].prediction().unwrap();
        world.sim().players.get(&PlayerId(0)).unwrap().at.x
    };
    assert_eq!(x(&table), -37.0);
    table.mute_until = table.now + SECOND;
    table.deaf_until[0] = table.now + SECOND;
    let east = |_: usize, _: &_| Pad {
        walk: Heading::EAST,
        ..Pad::default()
    };
    table.run(6, east);
    let authority = table.sessions[0].authority().unwrap().tick();
    let on_the_way = x(&table);
    assert!((-36.5..-35.9).contains(&on_the_way), "{on_the_way}");
    table.run(4, |_, _| Pad::default());
    assert_eq!(x(&table), on_the_way, "no player slides");
    table.run(30, east);
    assert!((x(&table) - -34.5).abs() < 1e-4, "{}", x(&table));
    assert_eq!(table.sessions[0].authority().unwrap().tick(), authority);
}

// A figure seen from the side. Only the step knows gravity, the ground, and friction.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize, Deserialize)]
struct Figure {
    at: Vec2,
    velocity: Vec2,
}

#[derive(Clone, Debug, Default, Serialize, Deserialize)]
struct Figures {
    of: Table<PlayerId, Figure>,
}

const GRAVITY: f32 = 9.81;
const FRICTION: f32 = 0.6;
const RISE: f32 = 3.0;

// The sideways speed of a jump with this input.
fn leap(input: u8) -> f32 {
    f32::from(input) / 10.0
}

impl Simulation for Figures {
    twinstep_rig::game_types!("figures");

    // An input above 0 is a jump to the right, from the ground only.
    fn step(&mut self, frame: &Frame<'_, Self>, _: &mut Effects<Self>) {
        for (player, &input) in frame.inputs() {
            let figure = self.of.get_or_insert_with(player, Figure::default);
            let stands = figure.at.y == 0.0;
            if stands && input > 0 {
                figure.velocity = Vec2::new(leap(input), RISE);
            } else if stands {
                figure.velocity.x = (figure.velocity.x - FRICTION * GRAVITY / 60.0).max(0.0);
            } else {
                figure.velocity.y -= GRAVITY / 60.0;
            }
            figure.at += figure.velocity / 60.0;
            if figure.at.y <= 0.0 {
                (figure.at.y, figure.velocity.y) = (0.0, 0.0);
            }
        }
    }
}

#[test]
fn a_predicted_figure_falls_and_slides_to_rest_without_the_network() {
    // Row 34: without any packet from the server, a predicted figure jumps, falls, lands and slides to rest by
    // friction. The server's figure does exactly the same, so no tick is simulated again.
    let sessions = (0..2).map(|_| SessionConfig::<Figures>::new(Arc::new(())));
    let mut table = Direct::of(MatchConfig::action(), Figures::default(), sessions);
    table.run(180, |_, _| 0);
    let own = |world: &World<Figures>| *world.sim().of.get(&PlayerId(0)).unwrap();
    let mut luck = Mwc::seed(34);
    for _ in 0..8 {
        let input = 8 + luck.below(13) as u8;
        let before = table.sessions[0].stats();
        let start = own(table.sessions[0].prediction().unwrap());
        table.deaf_until[0] = table.now + SECOND;
        let mut path = Vec::new();
        for frame in 0..59 {
            table.run(
                1,
                |client, _| if (client, frame) == (0, 0) { input } else { 0 },
            );
            path.push(own(table.sessions[0].prediction().unwrap()));
        }
        let silent = table.sessions[0].stats();
        assert!(
            silent.authority_tick - before.authority_tick < 3,
            "no packet"
        );
        assert!(silent.prediction_tick - silent.authority_tick > 50);

        let top = path.iter().map(|figure| figure.at.y).fold(0.0, f32::max);
        let rise = RISE * RISE / (2.0 * GRAVITY);
        assert!((top - rise).abs() < RISE / 60.0, "rose {top} of {rise}");
        let rest = *path.last().unwrap();
        assert_eq!((rest.velocity, rest.at.y), (Vec2::ZERO, 0.0), "at rest");
        let (in_air, speed) = (2.0 * RISE / GRAVITY, leap(input));
        let way = speed * in_air + speed * speed / (2.0 * FRICTION * GRAVITY);
        let moved = rest.at.x - start.at.x;
        assert!((moved - way).abs() < speed / 20.0, "{moved} of {way}");

        table.run(60, |_, _| 0);
        let after = table.sessions[0].stats();
        assert_eq!(after.timeline.rebuilds, before.timeline.rebuilds);
        let ends = [0, 1].map(|client| own(table.sessions[client].authority().unwrap()));
        assert_eq!([ends[0], ends[1], own(table.match_.world())], [rest; 3]);
    }
}

/// Row 35: assumptions are kept over the whole unconfirmed window. After a silence in which the lead grows nearly to
/// its bound, each tick is compared and kept, and none is simulated again. Confirmed ticks are dropped, so the lead is
/// short again.
#[test]
fn assumed_frames_are_kept_until_they_are_confirmed() {
    let mut table = counters(1);
    let before = table.sessions[0].stats();
    table.deaf_until[0] = table.now + LEAD_TIME;
    let most = lead_max(SECOND / 60);
    table.run(most - 1, |_, _| 3);
    let stats = table.sessions[0].stats();
    let lead = stats.prediction_tick - stats.authority_tick;
    assert!((most - 6..=most).contains(&lead), "lead {lead}");
    table.run(60, |_, _| 3);
    let stats = table.sessions[0].stats();
    assert!(stats.authority_tick > before.authority_tick + 100);
    assert!(stats.prediction_tick - stats.authority_tick < 8);
    assert_eq!(stats.timeline.resim_ticks, before.timeline.resim_ticks);
    assert_eq!(stats.timeline.rebuilds, before.timeline.rebuilds);
    let world = table.sessions[0].authority().unwrap();
    assert_eq!(world.digest().ok(), table.match_.digest_at(world.tick()));
}

/// Row 39: the picture lies between the last two ticks, and showing it changes neither simulation. (The borrow checker
/// forbids writing; this also tests that the state has no interior mutability.)
#[test]
fn showing_a_picture_changes_neither_simulation() {
    let show = show_with(|scene: &Scene<'_, Counter>, out: &mut Poses<u8, f32>| {
        out.put(0, scene.total as f32)
    });
    let smoothing = Smoothing::new(f32::INFINITY, Duration::ZERO);
    let config = SessionConfig::<Counter>::new(Arc::new(())).show(show, smoothing);
    let policies = MatchConfig::action();
    let counter = Counter::default();
    let mut table = Direct::new(
        policies,
        counter,
        Arc::new(()),
        no_queries(),
        vec![config],
        144,
    );
    table.run(300, |_, _| 1);
    for _ in 0..300 {
        table.run(1, |_, _| 1);
        let session = &table.sessions[0];
        let digests = || {
            let worlds = [session.authority().unwrap(), session.prediction().unwrap()];
            worlds.map(|world| world.digest().unwrap())
        };
        let before = digests();
        let newest = session.prediction().unwrap().sim().total as f32;
        for (_, pose) in session.shown() {
            assert!(
                (newest - 1.0..=newest).contains(&pose),
                "{pose} of {newest}"
            );
        }
        assert_eq!(digests(), before);
    }
}

/// Row 55: both simulations are in one process, and their distance is the reported lead.
#[test]
fn the_reported_lead_is_the_actual_lead() {
    let mut rig = Rig::<Game>::new(RigConfig::new(5, LinkProfile::WAN));
    rig.run(SECOND * 5);
    let mut sum = 0.0;
    for n in 1..=2_000 {
        rig.run(Duration::from_millis(5));
        let stats = rig.stats(0);
        let session = &rig.clients[0].session;
        let (authority, prediction) = (session.authority().unwrap(), session.prediction().unwrap());
        let lead = prediction.tick() - authority.tick();
        assert_eq!(lead, stats.prediction_tick - stats.authority_tick);
        assert!(lead > 0 && lead <= lead_max(SECOND / 60));
        sum += f64::from(lead);
        if n == 2_000 {
            let (mean, told) = (sum / 2_000.0, stats.lead_ticks_mean);
            assert!((mean - told).abs() < 0.5, "{mean} ticks, reported {told}");
        }
    }
}

/// Row 58: while the network is silent for 500 ms, 30 ticks are predicted, one every sixtieth of a second.
#[test]
fn the_prediction_ticks_on_while_the_network_is_silent() {
    let mut table = counters(2);
    for _ in 0..3 {
        table.run(120, |_, _| 1);
        let gap = Duration::from_millis(500);
        table.mute_until = table.now + gap;
        table.deaf_until = vec![table.now + gap; 2];
        let tick = |table: &Direct<Counter>| table.sessions[0].prediction().unwrap().tick();
        let began = tick(&table);
        for n in 1..=30_u32 {
            let before = tick(&table);
            table.run(1, |_, _| 1);
            assert!(tick(&table) - before <= 2, "no leap");
            let passed = tick(&table) - began;
            assert!(passed.abs_diff(n) <= 1, "{passed} ticks in {n} sixtieths");
        }
    }
    assert_eq!(table.sessions[0].stats().stall_ms, 0.0);
}

/// Row 38: a correction fades over as many ticks as the client's lead, but at least 6.
#[test]
fn a_correction_lasts_as_long_as_its_clients_lead() {
    for leg_ms in [10, 100, 200] {
        let show = || {
            show_with(|scene: &Scene<'_, Counter>, out: &mut Poses<u8, f32>| {
                out.put(0, scene.total as f32)
            })
        };
        let config = || {
            let smoothing = Smoothing::new(f32::INFINITY, Duration::ZERO);
            SessionConfig::<Counter>::new(Arc::new(())).show(show(), smoothing)
        };
        let policies = MatchConfig::action();
        let mut table = Direct::of(policies, Counter::default(), [config(), config()]);
        let legs = [Duration::from_millis(leg_ms), Duration::ZERO];
        let mut corrected = None;
        for n in 0..500 {
            // The other player releases its input once; this client receives the change one lead later.
            table.frame_over(&legs, |i, _| u8::from(i == 1 && n < 300));
            let session = &table.sessions[0];
            let (Some(ahead), Some(truth)) = (session.prediction(), session.authority()) else {
                continue;
            };
            let error = session.error(0).unwrap();
            if n > 300 && error > 0.0 {
                let (began, lead) = *corrected.get_or_insert((n, ahead.tick() - truth.tick()));
                assert!(n - began <= lead.max(6) + 1, "{leg_ms} ms: {error} is left");
            }
            if let Some((began, lead)) = corrected
                && n + 2 < began + lead.max(6)
            {
                assert!(error > 0.0, "{leg_ms} ms: gone after {} ticks", n - began);
            }
        }
        let (_, lead) = corrected.expect("a correction");
        println!("{leg_ms} ms each way: a lead of {lead} ticks");
        assert!(leg_ms < 100 || lead > 10);
    }
}

/// Row 79: each packet from a client contains the confirmed tick on which its screen is based, and resolvers can read
/// it. Here this is tested for a client that has received no packet for up to 190 ms.
#[test]
fn a_resolver_knows_what_the_asking_player_saw() {
    let seen: Arc<Mutex<Vec<(Tick, Tick, bool)>>> = Arc::default();
    let notes = seen.clone();
    let resolver = move |look: &HookContext<'_, History>, _: Key, _: &u32| {
        let view = look.view_tick(PlayerId(0));
        let there = look.at(view).is_some();
        notes.lock().unwrap().push((look.tick(), view, there));
        Decision::Now(1)
    };
    let rules = Arc::new(7);
    let config = SessionConfig::<History>::new(rules.clone());
    let policies = MatchConfig::action();
    let history = History::new(2);
    let mut table = Direct::new(policies, history, rules, resolver, vec![config], 60);
    let still = |_: usize, _: &_| history::Pad::default();
    table.run(180, still);
    for n in 0..20_u32 {
        table.deaf_until[0] = table.now + Duration::from_millis(u64::from(n) * 10);
        table.run(n * 60 / 100, still);
        table.sessions[0]
            .command(0, history::Command::Ask(n))
            .unwrap();
        table.run(1, still);
        let shown = table.sessions[0].authority().unwrap().tick();
        table.deaf_until[0] = Duration::ZERO;
        let before = seen.lock().unwrap().len();
        while seen.lock().unwrap().len() == before {
            // The packet with the command is in flight; later ones would be of newer screens.
            table.mute_until = Duration::MAX;
            table.deaf_until[0] = Duration::MAX;
            table.run(1, still);
        }
        (table.mute_until, table.deaf_until[0]) = (Duration::ZERO, Duration::ZERO);
        let &(now, view, there) = seen.lock().unwrap().last().unwrap();
        println!("asked at {now}, seen {view}, shown {shown}");
        assert!(there, "the world of that tick can be looked at");
        assert_eq!(view, shown);
        assert!(now - view <= 15);
        table.run(60, still);
    }
}
