//! The same start and the same frames produce the same world: in two processes, at any frame rate, in any order of
//! arrival, on every machine. A diverging world is detected.

use std::fmt::Write;
use std::io::Read;
use std::process::{Command as Process, Stdio};
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use powderkeg_game::Game;
use serde::{Deserialize, Serialize};
use twinstep_client::{Event, SessionConfig};
use twinstep_core::frame::Phase;
use twinstep_core::testing::doc::Counter;
use twinstep_core::{Effects, Frame, Mwc, Simulation, Tick};
use twinstep_protocol::replay::Replay;
use twinstep_protocol::simnet::LinkProfile;
use twinstep_rig::direct::{Direct, no_queries};
use twinstep_rig::game_types;
use twinstep_rig::history::{Command, History, Pad};
use twinstep_rig::rig::{Play, Rig, RigConfig};
use twinstep_server::MatchConfig;
use twinstep_server::config::{SealWhen, TurnLength};

const SECOND: Duration = Duration::from_secs(1);

/// The variable with the path of the journal, for the second process of row 1's test.
const JOURNAL: &str = "TWINSTEP_FOLD_JOURNAL";
const DIGEST: &str = "digest ";

fn digests(journal: &[u8]) -> String {
    let rules = Game::rules(0);
    let mut replay = Replay::<Game>::open(journal, &rules).unwrap();
    let mut reported = String::new();
    while replay.step().unwrap() {
        let digest = replay.world().digest().unwrap();
        writeln!(reported, "{DIGEST}{} {digest:016x}", replay.frame().tick).unwrap();
    }
    reported
}

/// Row 1: the same start and the same frames give the same digests in two processes, for 10,000 ticks. The second
/// process runs this same test.
#[test]
fn two_processes_go_through_the_same_digests() {
    if let Some(path) = std::env::var_os(JOURNAL) {
        print!("{}", digests(&std::fs::read(path).unwrap()));
        return;
    }
    let mut config = RigConfig::new(21, LinkProfile::LAN);
    (config.clients, config.verify) = (2, false);
    let mut rig = Rig::<Game>::new(config);
    rig.observe(false);
    while rig.match_.world().tick() < Tick(10_010) {
        rig.run(SECOND);
    }
    let name = format!("twinstep-row-1-{}.journal", std::process::id());
    let path = std::env::temp_dir().join(name);
    std::fs::write(&path, &rig.journal).unwrap();
    let mut other = Process::new(std::env::current_exe().unwrap())
        .args([
            "--exact",
            "seed_determinism::two_processes_go_through_the_same_digests",
            "--nocapture",
        ])
        .env(JOURNAL, &path)
        .stdout(Stdio::piped())
        .spawn()
        .unwrap();
    let mut reported = String::new();
    other
        .stdout
        .take()
        .unwrap()
        .read_to_string(&mut reported)
        .unwrap();
    assert!(other.wait().unwrap().success());
    std::fs::remove_file(&path).unwrap();
    let ours = digests(&rig.journal);
    let theirs: Vec<&str> = reported
        .lines()
        .filter(|line| line.starts_with(DIGEST))
        .collect();
    assert!(theirs.len() >= 10_000, "{} ticks", theirs.len());
    for (ours, theirs) in ours.lines().zip(&theirs) {
        assert_eq!(&ours, theirs);
    }
    assert_eq!(ours.lines().count(), theirs.len());
}

/// Rows 5 and 23: whether a client draws 7, 60 or 240 frames a second, its simulation advances by whole ticks, as many
/// as every other client's, and has the server's digests (which the rig compares after every frame).
#[test]
fn the_frame_rate_does_not_change_digests() {
    let mut config = RigConfig::new(12, LinkProfile::LAN);
    config.clients = 3;
    let mut rig = Rig::<Game>::new(config);
    for (client, fps) in [7, 60, 240].into_iter().enumerate() {
        rig.draw_at(client, fps);
    }
    rig.run(SECOND * 20);
    let server = rig.match_.world().tick();
    for i in 0..3 {
        let authority = rig.clients[i].session.authority().unwrap();
        assert_eq!(
            Some(authority.digest().unwrap()),
            rig.match_.digest_at(authority.tick())
        );
        assert_eq!(rig.stats(i).heals, 0);
        // Frames at 7 Hz are up to 9 ticks apart.
        assert!(server - authority.tick() < 20, "client {i}");
    }
}

fn shuffled(seed: u64) -> (Vec<u64>, History) {
    let config = || SessionConfig::<History>::new(Arc::new(7));
    let sessions = vec![config(), config(), config()];
    let mut table = Direct::new(
        MatchConfig::action(),
        History::new(5),
        Arc::new(7),
        no_queries(),
        sessions,
        60,
    );
    let mut luck = Mwc::seed(seed);
    let mut digests = Vec::new();
    for n in 0..600_u32 {
        table.frame(|i, session| Pad {
            stick: (session.stats().input_tick as u8).wrapping_mul(i as u8 + 3),
            fire: false,
        });
        if n > 60 {
            for (i, session) in table.sessions.iter_mut().enumerate() {
                let _ = session.command(0, Command::Note(n * 4 + i as u32));
            }
        }
        // Not while they join, because then the order decides in which tick each of them joins.
        if n > 60 {
            let first = luck.below(3) as usize;
            let last = (first + 1 + luck.below(2) as usize) % 3;
            table.up.sort_by_key(|(client, _)| match *client {
                client if client == first => 0,
                client if client == last => 2,
                _ => 1,
            });
        }
        table.serve();
        digests.push(table.match_.digest());
    }
    (digests, table.match_.world().sim().clone())
}

/// Row 6: for every order in which packets arrive, commands run in player order, and the digests are the same.
#[test]
fn the_order_of_arrival_does_not_change_digests() {
    let (digests, history) = shuffled(1);
    assert!(history.log.len() > 300, "{} commands", history.log.len());
    let orders = history.log.iter().filter(|entry| entry.2 != Command::Died);
    let orders: Vec<_> = orders.collect();
    let pairs: Vec<_> = orders.windows(2).filter(|w| w[0].0 == w[1].0).collect();
    assert!(pairs.len() > 100, "many commands share a tick");
    assert!(pairs.iter().all(|w| w[0].1 <= w[1].1), "in player order");
    for seed in 2..6 {
        let (theirs, other) = shuffled(seed);
        assert!(other.log == history.log, "seed {seed}");
        assert!(theirs == digests, "seed {seed}");
    }
}

/// Row 7: one match has turns of 5, 7, 3 and 20 ticks. Every client switches at the same turn as the server and stays
/// equal (the rig checks every tick), with prediction and in lockstep.
#[test]
fn clients_stay_in_step_at_any_turn_length() {
    let deadline = RigConfig::new(7, LinkProfile::WAN);
    for config in [deadline, RigConfig::strategy(7, LinkProfile::WAN)] {
        let mut rig = Rig::<History>::new(config);
        rig.run(SECOND * 4);
        let mut turns = std::collections::BTreeMap::new();
        let mut seen = std::collections::BTreeSet::new();
        for ticks in [5, 7, 3, 20].into_iter().cycle().take(12) {
            let mut policies = rig.match_.config().clone();
            policies.turn = TurnLength::Fixed(ticks);
            rig.match_.reconfigure(policies).unwrap();
            let until = rig.now + SECOND * 3;
            while rig.now < until {
                rig.run(Duration::from_millis(5));
                let world = rig.match_.world();
                turns.insert(world.tick(), world.turn());
                for client in &rig.clients {
                    let world = client.session.authority().unwrap();
                    if let Some(turn) = turns.get(&world.tick()) {
                        assert_eq!(&world.turn(), turn, "at {}", world.tick());
                        seen.insert((client.peer(), turn.cadence.turn_ticks));
                    }
                }
            }
        }
        for ticks in [5, 7, 3, 20] {
            let clients = seen.iter().filter(|(_, of)| *of == ticks).count();
            assert_eq!(clients, 4, "turns of {ticks} ticks");
        }
        rig.converge();
    }
}

/// Row 19: a single value that differs on one client is detected when the next turn arrives, and the server identifies
/// the client.
#[test]
fn a_flipped_value_is_detected_at_the_next_turn() {
    let mut config = RigConfig::new(4, LinkProfile::LAN);
    config.policies.turn = TurnLength::Fixed(3);
    let mut rig = Rig::<History>::new(config);
    rig.run(SECOND * 5);
    rig.flip(2);
    let at = rig.clients[2].session.authority().unwrap().tick();
    while rig.clients[2].session.desynced_since().is_none() {
        rig.run(Duration::from_millis(2));
        let tick = rig.clients[2].session.authority().unwrap().tick();
        assert!(tick - at <= 3, "a whole turn was stepped");
    }
    let found = rig.clients[2].session.desynced_since().unwrap();
    assert!(found - at <= 3, "found at {found}, flipped at {at}");
    rig.run(SECOND * 3);
    assert_eq!(rig.match_.stats().desyncs, 1);
    let reported = rig.match_.take_reports();
    assert_eq!(reported.len(), 1);
    assert_eq!(
        reported[0].peer,
        rig.clients[2].peer(),
        "the client is named"
    );
    let heals = [0, 1, 2, 3].map(|i| rig.stats(i).heals);
    assert_eq!(heals, [0, 0, 1, 0]);
}

/// Finding A4: between two heals a client paused for up to 9.1 s, without an event that explained it.
#[test]
fn a_player_continues_while_its_client_waits_to_be_healed() {
    let mut rig = Rig::<History>::new(RigConfig::new(9, LinkProfile::WAN));
    rig.run(SECOND * 5);
    rig.flip(1);
    rig.run(SECOND * 2);
    assert_eq!(rig.stats(1).heals, 1);
    // A heal is granted once in ten seconds.
    rig.flip(1);
    let mut last = (rig.stats(1).prediction_tick, rig.now);
    let (mut longest, mut waited) = (Duration::ZERO, Duration::ZERO);
    let began = rig.now;
    while rig.stats(1).heals == 1 {
        rig.run(Duration::from_millis(5));
        let tick = rig.stats(1).prediction_tick;
        if tick > last.0 {
            last = (tick, rig.now);
        }
        longest = longest.max(rig.now - last.1);
        waited = rig.now - began;
        assert!(waited < SECOND * 12, "it is healed");
    }
    assert!(waited > SECOND * 5, "it waited for {waited:?}");
    assert!(
        longest < Duration::from_millis(100),
        "it paused for {longest:?}"
    );
    let differs = |event: &&Event| matches!(event, Event::Differs { .. });
    assert_eq!(rig.clients[1].events.iter().filter(differs).count(), 2);
    rig.converge();
}

/// Finding A4, in a match that waits for all: a client with a desync closes no batches, because they would come from a
/// diverged match. So all clients wait until it is healed, and see which player they wait for; then the match
/// continues.
#[test]
fn a_wait_for_all_match_pauses_for_a_heal_and_then_continues() {
    let config = RigConfig::strategy(9, LinkProfile::WAN);
    let mut rig = Rig::<History>::new(RigConfig {
        policies: MatchConfig {
            command_delay: 4,
            sealing: SealWhen::WaitForAll {
                kick_after: SECOND * 20,
            },
            ..config.policies
        },
        ..config
    });
    rig.run(SECOND * 6);
    rig.flip(1);
    rig.run(SECOND * 3);
    assert_eq!(rig.stats(1).heals, 1);
    // A heal is granted once in ten seconds.
    rig.flip(1);
    let player = rig.clients[1].session.seats()[0];
    let (mut differed_at, mut was_seen) = (None, false);
    let began = rig.now;
    while rig.stats(1).heals == 1 {
        rig.run(Duration::from_millis(5));
        differed_at = differed_at.or(rig.clients[1].session.desynced_since());
        was_seen |= rig.clients[0].session.waiting().contains(player);
        if let Some(at) = rig.clients[1].session.desynced_since() {
            assert_eq!(rig.stats(1).authority_tick, at.0, "it is paused");
        }
        assert!(rig.now - began < SECOND * 12, "it is healed");
    }
    let (waited, at) = (rig.now - began, differed_at.expect("it is found"));
    assert!(waited > SECOND * 4, "it waited for {waited:?}");
    assert!(was_seen, "the others see the player that they wait for");
    let sealed = rig.match_.world().tick();
    assert!(
        sealed - at < 120,
        "all waited: {at} differed, {sealed} is next"
    );
    let differs = |event: &&Event| matches!(event, Event::Differs { .. });
    assert_eq!(rig.clients[1].events.iter().filter(differs).count(), 2);
    rig.run(SECOND * 3);
    assert!(rig.all_play() && rig.match_.world().tick() > sealed + 20);
    rig.converge();
}

#[derive(Clone, Debug, Default, Serialize, Deserialize)]
struct TwoFaced {
    total: u32,
}

impl Simulation for TwoFaced {
    game_types!("two-faced");

    fn step(&mut self, frame: &Frame<'_, Self>, _: &mut Effects<Self>) {
        self.total += 1 + u32::from(frame.phase() == Phase::Prediction);
    }
}

#[derive(Clone, Debug, Default, Serialize, Deserialize)]
struct Impure {
    total: u64,
}

static OUTSIDE: AtomicU64 = AtomicU64::new(0);

impl Simulation for Impure {
    game_types!("impure");

    fn step(&mut self, _: &Frame<'_, Self>, _: &mut Effects<Self>) {
        self.total += OUTSIDE.fetch_add(1, Ordering::Relaxed);
    }
}

#[derive(Clone, Debug, Default, Serialize, Deserialize)]
struct Dizzy {
    angle: f32,
}

impl Simulation for Dizzy {
    game_types!("dizzy");

    fn step(&mut self, frame: &Frame<'_, Self>, _: &mut Effects<Self>) {
        self.angle = match frame.phase() {
            Phase::Prediction => f32::NAN,
            Phase::Authority => 1.0,
        };
    }
}

fn step_faults<S: Simulation<Rules = ()> + Default>(verify: bool, frames: u32) -> Vec<String> {
    let mut config = SessionConfig::<S>::new(Arc::new(()));
    config.verify = verify;
    let policies = MatchConfig::action();
    let mut table = Direct::of(policies, S::default(), [config]);
    table.run(frames, |_, _| S::Input::default());
    let session = &mut table.sessions[0];
    let events = std::iter::from_fn(|| session.poll_event());
    events
        .filter_map(|event| match event {
            Event::StepFault(text) => Some(text),
            _ => None,
        })
        .collect()
}

/// Finding A5: in release builds, a step that depends on the phase was not reported, and no report named a field. Now one
/// tick in 64 is stepped twice, and a difference is reported with its cause.
#[test]
fn a_faulty_step_is_reported_in_release_with_its_fields_and_cause() {
    let reported = step_faults::<TwoFaced>(false, 400);
    assert!(!reported.is_empty());
    assert!(
        reported[0].contains("`step` depends on the phase"),
        "{}",
        reported[0]
    );
    assert!(reported[0].contains("sim.total"), "{}", reported[0]);
    let reported = step_faults::<Impure>(false, 400);
    assert!(!reported.is_empty());
    assert!(
        reported[0].contains("`step` is not pure"),
        "{}",
        reported[0]
    );
    assert!(reported[0].contains("sim.total"), "{}", reported[0]);
    assert_eq!(step_faults::<Counter>(false, 400), Vec::<String>::new());
}

/// Finding A5: a NaN in a prediction made the player's process panic.
#[test]
fn a_nan_in_a_prediction_is_reported_without_a_panic() {
    for verify in [false, true] {
        let reported = std::panic::catch_unwind(|| step_faults::<Dizzy>(verify, 400));
        let Ok(reported) = reported else {
            panic!("verify = {verify}: it panicked");
        };
        assert!(!reported.is_empty());
        assert!(reported[0].contains("sim.angle"), "{}", reported[0]);
    }
}

/// Row 27: debug builds check determinism by default: a step that differs between the two sides stops the session at
/// the first tick, even if no frame differed.
#[test]
fn a_phase_dependent_step_is_detected() {
    let config = SessionConfig::<TwoFaced>::new(Arc::new(()));
    assert_eq!(config.verify, cfg!(debug_assertions));
    let play = |verify| {
        let mut config = SessionConfig::<TwoFaced>::new(Arc::new(()));
        config.verify = verify;
        let sim = TwoFaced::default();
        let policies = MatchConfig::action();
        let mut table = Direct::of(policies, sim, [config]);
        table.run(120, |_, _| 0);
    };
    play(false);
    let caught = std::panic::catch_unwind(|| play(true)).unwrap_err();
    let reported = caught.downcast_ref::<String>().unwrap();
    assert!(
        reported.contains("`step` depends on the phase"),
        "{reported}"
    );
    assert!(
        reported.contains("sim.total"),
        "the field is named: {reported}"
    );
}
