//! Bevy apps that play: over UDP with a real server, and alone in virtual time.

#![expect(
    clippy::disallowed_methods,
    clippy::too_many_arguments,
    reason = "real servers take real time; a system's arguments are what it uses"
)]

use std::collections::BTreeMap;
use std::sync::atomic::{AtomicU32, Ordering};
use std::sync::{Arc, Mutex};
use std::thread::sleep;
use std::time::{Duration, Instant};

use bevy_app::prelude::*;
use bevy_ecs::error::{BevyError, ErrorContext};
use bevy_ecs::prelude::*;
use bevy_time::{TimePlugin, TimeUpdateStrategy, prelude::*};
use bevy_transform::prelude::*;
use rules::{Boxes, Cubes, DOWN, LEFT, RIGHT, UP};
use serde::{Deserialize, Serialize};
use twinstep_bevy::prelude::*;
use twinstep_client::{Client, CueKind};
use twinstep_core::prelude::*;
use twinstep_host::{Running, Server};
use twinstep_testing::Counting;

#[path = "../examples/boxes/rules.rs"]
mod rules;

#[global_allocator]
static ALLOCATOR: Counting = Counting;

type Cube = Drawn<Boxes, Cubes>;

const FRAME: Duration = Duration::from_millis(8);

#[derive(Resource, Default)]
struct Seen {
    started: u64,
    confirmed: u64,
    cancelled: u64,
    spawned: usize,
    gone: usize,
    events: Vec<SessionEvent>,
    over: Vec<PlayEnd>,
    digests: BTreeMap<Tick, u64>,
}

fn watch(
    mut seen: ResMut<Seen>,
    mut cues: MessageReader<CueMessage<Boxes>>,
    mut events: MessageReader<SessionMessage>,
    mut overs: MessageReader<PlayOver>,
    new: Query<(), Added<Cube>>,
    mut gone: RemovedComponents<Cube>,
    cubes: Query<&Cube>,
    play: Option<Res<Play<Boxes, Cubes>>>,
) {
    for cue in cues.read() {
        match cue.0.kind {
            CueKind::Started { .. } => seen.started += 1,
            CueKind::Confirmed { .. } => seen.confirmed += 1,
            CueKind::Cancelled => seen.cancelled += 1,
        }
    }
    seen.events
        .extend(events.read().map(|event| event.0.clone()));
    seen.over.extend(overs.read().map(|over| over.0.clone()));
    seen.spawned += new.iter().count();
    seen.gone += gone.read().count();
    // Every frame has exactly one entity for each cube of the picture.
    let mut drawn: Vec<_> = cubes.iter().map(|cube| (cube.key, cube.pose)).collect();
    drawn.sort_by_key(|(key, _)| *key);
    let shown: Vec<_> = play
        .iter()
        .flat_map(|play| play.session().shown())
        .collect();
    assert_eq!(drawn, shown);
    assert_eq!(seen.spawned - seen.gone, drawn.len());
    if let Some(world) = play.as_ref().and_then(|play| play.session().authority()) {
        seen.digests
            .insert(world.tick(), world.digest().expect("no NaN"));
    }
}

/// Drives from corner to corner, so that the box hits walls, and the others guess wrong at each change of direction.
fn drive(time: Res<Time<Real>>, mut pads: ResMut<Pads<Boxes>>) {
    let turns = time.elapsed().as_secs() / 3;
    *pads.seat(0) |= [LEFT | UP, RIGHT | DOWN][turns as usize % 2];
}

fn config() -> SessionConfig<Boxes, Cubes> {
    SessionConfig::new(Arc::new(()))
        .start(Boxes::default())
        .show(Cubes, Smoothing::new(2.0, Duration::ZERO))
}

fn app() -> App {
    let mut app = App::new();
    let plugin = TwinstepPlugin::<Boxes, Cubes>::default().moving_transforms();
    app.add_plugins((TimePlugin, plugin))
        .init_resource::<Seen>()
        .add_systems(ReadInputs, drive)
        .add_systems(Update, watch);
    app
}

/// An app whose real time advances by `frame` with each update.
fn app_in_virtual_time(frame: Duration) -> App {
    let mut app = app();
    app.insert_resource(TimeUpdateStrategy::ManualDuration(frame));
    app
}

fn serve() -> Running<Boxes> {
    let server = Server::action(Boxes::default(), ()).players(4);
    server.listen("127.0.0.1:0").expect("a free port")
}

/// Joins over a link with a 200 ms round trip, 50 ms of jitter and 5 % loss.
fn join(app: &mut App, ticket: &Ticket, seed: u64) {
    let link = "bad".parse().expect("a link");
    let client = Client::connect_through(ticket, config(), move |transport| {
        transport.with_conditioner(link, seed)
    });
    app.insert_resource(Play::from(client.expect("a socket")));
}

fn run(apps: &mut [&mut App], time: Duration) {
    let began = Instant::now();
    while began.elapsed() < time {
        apps.iter_mut().for_each(|app| app.update());
        sleep(FRAME);
    }
}

fn play(app: &App) -> &Play<Boxes, Cubes> {
    app.world().resource()
}

fn seen(app: &App) -> &Seen {
    app.world().resource()
}

fn tick(app: &App) -> u32 {
    play(app).session().stats().authority_tick
}

#[test]
fn two_apps_play_over_a_bad_link_and_a_killed_one_reconnects() {
    let server = serve();
    let [anna, bert] = ["anna", "bert"].map(|name| server.ticket(name).expect("a ticket"));
    let (mut a, mut b) = (app(), app());
    join(&mut a, &anna, 1);
    join(&mut b, &bert, 2);
    run(&mut [&mut a, &mut b], Duration::from_secs(6));
    let me = play(&b).session().seats().to_vec();
    assert_eq!(me.len(), 1);

    // The process is killed: it does not send a goodbye.
    let killed = std::mem::take(&mut b);
    let before = seen(&killed).started;
    std::mem::forget(killed);
    assert!(before > 0, "b heard its bumps");
    run(&mut [&mut a], Duration::from_millis(1_500));
    let mut b = app();
    join(&mut b, &bert, 3);
    run(&mut [&mut a, &mut b], Duration::from_millis(4_500));
    assert_eq!(play(&b).session().seats(), me, "the same player again");

    // Pausing Bevy's time does not pause the match.
    a.world_mut().resource_mut::<Time<Virtual>>().pause();
    let (paused_at, before) = (a.world().resource::<Time<Virtual>>().elapsed(), tick(&a));
    run(&mut [&mut a, &mut b], Duration::from_secs(3));
    let passed = tick(&a) - before;
    assert!((150..=210).contains(&passed), "{passed} ticks in 3 s");
    let at = a.world().resource::<Time<Virtual>>().elapsed();
    assert!(at - paused_at < Duration::from_millis(100), "{at:?}");
    a.world_mut().resource_mut::<Time<Virtual>>().unpause();
    run(&mut [&mut a, &mut b], Duration::from_secs(5));

    for app in [&a, &b] {
        let (seen, stats) = (seen(app), play(app).session().stats());
        println!(
            "{}; {} started, {} confirmed, {} cancelled; {:?}",
            app.world().resource::<NetGraph>(),
            seen.started,
            seen.confirmed,
            seen.cancelled,
            seen.events
        );
        assert_eq!(*app.world().resource::<PlayState>(), PlayState::Playing);
        let settled = seen.confirmed + seen.cancelled;
        assert_eq!(seen.started, settled + stats.cues_open);
        assert!(seen.confirmed > 2, "{}", seen.confirmed);
        assert_eq!(stats.heals, 0);
        let differ = |event: &SessionEvent| {
            matches!(
                event,
                SessionEvent::Differs { .. } | SessionEvent::ControlsLost { .. }
            )
        };
        assert!(!seen.events.iter().any(differ), "{:?}", seen.events);
        assert!(seen.over.is_empty());
    }
    let (ours, theirs) = (&seen(&a).digests, &seen(&b).digests);
    let common: Vec<_> = ours
        .iter()
        .filter(|(tick, _)| theirs.contains_key(tick))
        .collect();
    assert!(common.len() > 100, "{} common ticks", common.len());
    for (tick, digest) in common {
        assert_eq!(theirs[tick], *digest, "at {tick}");
    }
    assert_eq!(
        server.take_reports().expect("it runs").len(),
        0,
        "no desync"
    );

    // A third client joins, and leaves by removing its match. All cubes vanish from its picture, and its cube from the
    // others' pictures.
    let mut c = app();
    let ticket = server.ticket("cleo").expect("a ticket");
    c.insert_resource(Play::join(&ticket, config()).expect("a socket"));
    for (step, expected) in [(0, [3, 3]), (1, [2, 0])] {
        if step == 1 {
            c.world_mut().remove_resource::<Play<Boxes, Cubes>>();
        }
        let mut cubes = [0, 0];
        for _ in 0..50 {
            run(&mut [&mut a, &mut b, &mut c], Duration::from_millis(100));
            cubes = [&mut a, &mut c].map(|app| {
                let world = app.world_mut();
                world.query::<&Cube>().iter(world).count()
            });
            if cubes == expected {
                break;
            }
        }
        assert_eq!(cubes, expected);
    }
    assert_eq!(*c.world().resource::<PlayState>(), PlayState::Absent);
    server.shutdown();
}

static ERRORS: Mutex<Vec<String>> = Mutex::new(Vec::new());

fn collect(error: BevyError, _: ErrorContext) {
    ERRORS.lock().expect("no panic").push(error.to_string());
}

#[derive(Clone, Default, Serialize, Deserialize)]
struct NewerBoxes(Boxes);

impl Simulation for NewerBoxes {
    const NAME: &'static str = "boxes";
    const VERSION: u32 = 2;
    type Rules = ();
    type Input = u8;
    type Command = Never;
    type Query = Never;
    type Outcome = Never;
    type Cue = Never;

    fn step(&mut self, _: &Frame<'_, Self>, _: &mut Effects<Self>) {}
}

#[derive(Clone, Default, Serialize, Deserialize)]
struct OtherGame;

impl Simulation for OtherGame {
    const NAME: &'static str = "other";
    const VERSION: u32 = 1;
    type Rules = ();
    type Input = u8;
    type Command = Never;
    type Query = Never;
    type Outcome = Never;
    type Cue = Never;

    fn step(&mut self, _: &Frame<'_, Self>, _: &mut Effects<Self>) {}
}

#[test]
fn a_failed_join_is_a_bevy_error_or_a_readable_message() {
    // With another game's ticket, or no ticket at all, the joining system returns the error.
    let other = Server::action(OtherGame, ()).listen("127.0.0.1:0");
    let other = other.expect("a free port");
    let ticket = other.ticket("anna").expect("a ticket");
    let mut app = app();
    app.set_error_handler(collect).add_systems(
        Startup,
        (
            move |mut commands: Commands| -> Result {
                commands.insert_resource(Play::join(&ticket, config())?);
                Ok(())
            },
            || -> Result {
                let text = "not a ticket".parse::<Ticket>()?;
                unreachable!("{text:?}")
            },
            || -> Result {
                Ticket::load("there/is/no.ticket")?;
                Ok(())
            },
        ),
    );
    app.update();
    app.update();
    let errors = ERRORS.lock().expect("no panic").clone();
    println!("{errors:#?}");
    assert_eq!(errors.len(), 3, "{errors:?}");
    assert!(
        errors.iter().any(|error| error.contains("other")),
        "{errors:?}"
    );
    assert_eq!(*app.world().resource::<PlayState>(), PlayState::Absent);
    other.shutdown();

    // A stopped server and a newer build lead to messages.
    let gone = serve();
    let to_nobody = gone.ticket("anna").expect("a ticket");
    gone.shutdown();
    let newer = Server::action(NewerBoxes::default(), ()).listen("127.0.0.1:0");
    let newer = newer.expect("a free port");
    let to_newer = newer.ticket("anna").expect("a ticket");
    let over = [to_nobody, to_newer].map(|ticket| {
        let mut app = self::app();
        app.insert_resource(Play::join(&ticket, config()).expect("a socket"));
        let began = Instant::now();
        while seen(&app).over.is_empty() && began.elapsed() < Duration::from_secs(15) {
            app.update();
            sleep(FRAME);
        }
        app.update();
        assert_eq!(*app.world().resource::<PlayState>(), PlayState::Over);
        assert_eq!(seen(&app).over.len(), 1, "once");
        seen(&app).over[0].to_string()
    });
    println!("{over:#?}");
    assert!(over[0].starts_with("no answer: "), "{}", over[0]);
    assert!(over[1].contains("version"), "{}", over[1]);
    newer.shutdown();
}

#[derive(Clone, Default, Serialize, Deserialize)]
struct Taps(Table<PlayerId, u32>);

impl Simulation for Taps {
    const NAME: &'static str = "taps";
    const VERSION: u32 = 1;
    type Rules = ();
    type Input = bool;
    type Command = u32;
    type Query = Never;
    type Outcome = Never;
    type Cue = Never;

    fn step(&mut self, frame: &Frame<'_, Self>, _: &mut Effects<Self>) {
        for (player, fires) in frame.inputs() {
            let had = self.0.get(&player).copied().unwrap_or(0);
            self.0.insert(player, had + u32::from(*fires));
        }
        for (player, more) in frame.commands() {
            let had = self.0.get(&player).copied().unwrap_or(0);
            self.0.insert(player, had + more);
        }
    }
}

#[test]
fn a_one_frame_tap_reaches_a_tick_at_any_frame_rate() {
    for frame_ms in [1, 5, 16, 30] {
        let mut app = App::new();
        let frame = Duration::from_millis(frame_ms);
        let game = LocalMatch::action(Taps::default(), ()).seats(2);
        let play = Play::<Taps>::alone(game, SessionConfig::new(Arc::new(())));
        let taps = Arc::new(AtomicU32::new(0));
        let made = Arc::clone(&taps);
        app.add_plugins((TimePlugin, TwinstepPlugin::<Taps>::default()))
            .insert_resource(TimeUpdateStrategy::ManualDuration(frame))
            .insert_resource(play.expect("it starts"))
            .add_systems(
                ReadInputs,
                move |mut frames: Local<u64>, mut pads: ResMut<Pads<Taps>>| {
                    *frames += 1;
                    // A tap of one frame every 90 ms; seat 1 never fires.
                    if *frames * frame_ms % 90 < frame_ms {
                        *pads.seat(0) |= true;
                        made.fetch_add(1, Ordering::Relaxed);
                    }
                },
            );
        for _ in 0..2_000 / frame_ms {
            app.update();
        }
        app.world_mut()
            .resource_mut::<Play<Taps>>()
            .command(1, 7)
            .expect("it plays");
        for _ in 0..88 / frame_ms {
            app.update();
        }
        let play = app.world().resource::<Play<Taps>>();
        let world = play.session().prediction().expect("it plays");
        let counts: Vec<u32> = world.sim().0.values().copied().collect();
        let taps = taps.load(Ordering::Relaxed);
        // A 30 ms frame may contain two ticks, and the tap is in both of them.
        let expected = if frame_ms <= 16 {
            taps..=taps
        } else {
            taps..=2 * taps
        };
        assert!(
            taps > 20 && expected.contains(&counts[0]),
            "{counts:?} of {taps}"
        );
        assert_eq!(counts[1], 7, "the command of seat 1");
    }
}

#[test]
fn entities_follow_the_picture_and_a_new_match_gets_new_entities() {
    let mut app = app_in_virtual_time(FRAME);
    let alone = || Play::alone(LocalMatch::action(Boxes::default(), ()), config());
    app.insert_resource(alone().expect("it starts"));
    for _ in 0..50 {
        app.update();
    }
    let me = PlayerId(0);
    let entity = |app: &App| {
        let entities = app.world().resource::<DrawnEntities<Boxes, Cubes>>();
        entities.get(me).expect("it is drawn")
    };
    let first = entity(&app);
    app.world_mut()
        .get_mut::<Transform>(first)
        .expect("a place")
        .translation
        .z = 5.0;
    app.update();
    let (cube, place) = (
        app.world().get::<Cube>(first).expect("a cube"),
        app.world()
            .get::<Transform>(first)
            .expect("a place")
            .translation,
    );
    assert!(cube.is_local && cube.pose[0] < -0.1, "{:?}", cube.pose);
    assert_eq!(
        [place.x, place.y, place.z],
        [cube.pose[0], cube.pose[1], 5.0]
    );

    app.insert_resource(alone().expect("it starts"));
    app.update();
    let second = entity(&app);
    assert_ne!(first, second);
    assert!(app.world().get_entity(first).is_err());
    assert_eq!((seen(&app).spawned, seen(&app).gone), (2, 1));

    // Entities that the game despawns do not come back, and no system panics.
    let mut app = app_in_virtual_time(FRAME);
    app.init_schedule(Update);
    app.insert_resource(alone().expect("it starts"));
    app.add_systems(
        Last,
        |cubes: Query<Entity, With<Cube>>, mut commands: Commands| {
            cubes
                .iter()
                .for_each(|cube| commands.entity(cube).despawn());
        },
    );
    app.update();
    let world = app.world_mut();
    world.run_schedule(AdvanceMatch);
    world.remove_resource::<Play<Boxes, Cubes>>();
    world.run_schedule(AdvanceMatch);
    assert_eq!(world.query::<&Cube>().iter(world).count(), 0);
}

#[derive(Clone, Default, Serialize, Deserialize)]
struct Crowd(u32);

impl Simulation for Crowd {
    const NAME: &'static str = "crowd";
    const VERSION: u32 = 1;
    type Rules = ();
    type Input = u8;
    type Command = Never;
    type Query = Never;
    type Outcome = Never;
    type Cue = Never;

    fn step(&mut self, _: &Frame<'_, Self>, _: &mut Effects<Self>) {
        self.0 += 1;
    }
}

struct Heads;

impl Show<Crowd> for Heads {
    type Key = u32;
    type Pose = [f32; 3];

    fn poses(&self, scene: &Scene<'_, Crowd>, out: &mut Poses<u32, [f32; 3]>) {
        for head in 0..1_000 {
            out.put(head, [head as f32, scene.0 as f32 * 0.1, 0.0]);
        }
    }
}

/// Measures the plugin's own work against the same match without Bevy.
#[test]
fn a_frame_with_a_thousand_moving_entities_is_cheap_and_does_not_allocate() {
    const FRAMES: u32 = 3_000;
    let frame = Duration::from_millis(7);
    let crowd = || {
        let config = SessionConfig::new(Arc::new(())).verify(false);
        let config = config.show(Heads, Smoothing::new(9.0, Duration::ZERO));
        twinstep_local::Local::action(Crowd::default(), ()).play(config)
    };
    let mut app = App::new();
    let plugin = TwinstepPlugin::<Crowd, Heads>::default().moving_transforms();
    app.add_plugins((TimePlugin, plugin))
        .insert_resource(TimeUpdateStrategy::ManualDuration(frame))
        .insert_resource(Play::from(crowd().expect("it starts")));
    let mut bare = crowd().expect("it starts");
    let (mut with, mut without) = (Vec::new(), Vec::new());
    let (mut now, mut allocated, mut sum) = (Duration::ZERO, 0, 0.0);
    for n in 0..2 * FRAMES {
        // As `App::update`, but only the plugin's part is measured.
        app.world_mut().run_schedule(First);
        let before = (Instant::now(), Counting::allocations());
        app.world_mut().run_schedule(ReadInputs);
        app.world_mut().run_schedule(AdvanceMatch);
        let took = before.0.elapsed();
        let counted = Counting::allocations() - before.1;
        app.world_mut().clear_trackers();
        let began = Instant::now();
        now += frame;
        bare.advance_at(now, |_, _| 0).expect("it plays");
        sum += bare.session(0).shown().map(|(_, at)| at[1]).sum::<f32>();
        let took_bare = began.elapsed();
        // Measure only once every list has its final size.
        if n >= FRAMES {
            with.push(took);
            without.push(took_bare);
            allocated += counted;
        }
    }
    assert!(sum > 0.0);
    let mut places = app.world_mut().query::<&Transform>();
    let places = places.iter(app.world());
    assert_eq!(places.filter(|at| at.translation.y > 1.0).count(), 1_000);
    assert_eq!(allocated, 0, "allocations in {FRAMES} frames");
    // Other programs interrupt some frames.
    let [with, without] = [with, without].map(|mut took| {
        took.sort();
        took[took.len() / 2].as_secs_f64() * 1e6
    });
    println!("{with:.1} us a frame, {without:.1} of them without Bevy");
    if !cfg!(debug_assertions) {
        assert!(with - without <= 60.0, "{:.1} us of 60", with - without);
    }
}

#[test]
fn the_example_has_at_most_40_lines_besides_the_rules() {
    let lines = include_str!("../examples/boxes/main.rs").lines().count();
    assert!(lines <= 40, "{lines}");
}
