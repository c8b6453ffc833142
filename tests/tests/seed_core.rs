//! The core of every policy: fixed steps, one order, the same luck and the same digests everywhere.

use std::fmt::Write;
use std::io::Read;
use std::process::{Command as Process, Stdio};
use std::sync::Arc;
use std::time::Duration;

use powderkeg::game::{Game, Query};
use powderkeg::skirmish::Skirmish;
use serde::{Deserialize, Serialize};
use twinstep_client::SessionConfig;
use twinstep_client::cues::CueKind;
use twinstep_client::picture::{Poses, Smoothing, show_with};
use twinstep_core::frame::Phase;
use twinstep_core::packet::hello::Hello;
use twinstep_core::replay::Replay;
use twinstep_core::simnet::LinkProfile;
use twinstep_core::testing::doc::Counter;
use twinstep_core::{
    Controls, Effects, Frame, Key, Mwc, Never, PlayerId, Schedule, Simulation, Tick,
};
use twinstep_server::config::TurnLength;
use twinstep_server::{MatchConfig, PeerId};
use twinstep_tests::direct::{Direct, unasked};
use twinstep_tests::history::{Command, History, Pad};
use twinstep_tests::rig::{Play, Rig, RigConfig, Sticks};

const SECOND: Duration = Duration::from_secs(1);

/// Where the second process of the test of row 1 finds the journal.
const JOURNAL: &str = "TWINSTEP_FOLD_JOURNAL";
/// How it marks what it prints.
const DIGEST: &str = "digest ";

fn digests(journal: &[u8]) -> String {
    let rules = Game::rules(0);
    let hello = Hello::of::<Game>(&rules, "").unwrap();
    let mut replay = Replay::<Game>::open(journal, &rules, &hello).unwrap();
    let mut told = String::new();
    while replay.step().unwrap() {
        let digest = replay.world().digest().unwrap();
        writeln!(told, "{DIGEST}{} {digest:016x}", replay.frame().tick).unwrap();
    }
    told
}

/// Row 1: the same start and the same frames lead two processes through the same digests, for 10,000 ticks.
/// The second process is this very test, started again.
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
    while rig.game.world().tick() < Tick(10_010) {
        rig.run(SECOND);
    }
    let name = format!("twinstep-row-1-{}.journal", std::process::id());
    let path = std::env::temp_dir().join(name);
    std::fs::write(&path, &rig.journal).unwrap();
    let mut other = Process::new(std::env::current_exe().unwrap())
        .args([
            "--exact",
            "two_processes_go_through_the_same_digests",
            "--nocapture",
        ])
        .env(JOURNAL, &path)
        .stdout(Stdio::piped())
        .spawn()
        .unwrap();
    let mut told = String::new();
    other
        .stdout
        .take()
        .unwrap()
        .read_to_string(&mut told)
        .unwrap();
    assert!(other.wait().unwrap().success());
    std::fs::remove_file(&path).unwrap();
    let ours = digests(&rig.journal);
    let theirs: Vec<&str> = told
        .lines()
        .filter(|line| line.starts_with(DIGEST))
        .collect();
    assert!(theirs.len() >= 10_000, "{} ticks", theirs.len());
    for (ours, theirs) in ours.lines().zip(&theirs) {
        assert_eq!(&ours, theirs);
    }
    assert_eq!(ours.lines().count(), theirs.len());
}

/// Row 4: ten thousand sleepers cost a tick no wake-up; the one that is due wakes exactly in its tick; what is
/// cancelled does not; a save keeps all of it.
#[test]
fn ten_thousand_sleepers_wake_in_their_own_tick_and_not_before() {
    let mut timers = Schedule::new();
    for n in 0..10_000 {
        timers.at(Tick(20_000 + n), Key::new(1, n), n);
    }
    let now = Tick(500);
    timers.at(now + 7, Key::new(2, 0), 10_000);
    timers.at(now + 7, Key::new(2, 1), 10_001);
    timers.at(now + 7, Key::new(2, 2), 10_002);
    timers.cancel(Key::new(2, 1));
    let mut bytes = Vec::new();
    twinstep_core::codec::append(&timers, &mut bytes).unwrap();
    let mut timers: Schedule<u32> = twinstep_core::codec::decode_whole(&bytes).unwrap();
    let mut woken = Vec::new();
    for tick in 0..1_000 {
        while let Some((_, event)) = timers.pop_due(Tick(tick)) {
            woken.push((tick, event));
        }
    }
    assert_eq!(woken, [(507, 10_000), (507, 10_002)]);
    assert_eq!(timers.len(), 10_000);
}

/// Rows 5 and 23: whether a client draws 7, 60 or 240 frames a second, its simulation moves by whole ticks,
/// as many as everybody's, through the server's digests (which the rig compares after every frame).
#[test]
fn the_frame_rate_changes_no_digest() {
    let mut config = RigConfig::new(12, LinkProfile::LAN);
    config.clients = 3;
    let mut rig = Rig::<Game>::new(config);
    for (client, fps) in [7, 60, 240].into_iter().enumerate() {
        rig.draw_at(client, fps);
    }
    rig.run(SECOND * 20);
    let server = rig.game.world().tick();
    for i in 0..3 {
        let authority = rig.clients[i].session.authority().unwrap();
        assert_eq!(
            Some(authority.digest().unwrap()),
            rig.game.digest_at(authority.tick())
        );
        assert_eq!(rig.stats(i).heals, 0);
        // 7 frames a second come up to 9 ticks apart.
        assert!(server - authority.tick() < 20, "client {i}");
    }
}

/// What one run of three players with scripted hands comes to; whose packets of a frame arrive first is drawn
/// from `seed`.
fn shuffled(seed: u64) -> (Vec<u64>, History) {
    let config = || SessionConfig::<History>::new(Arc::new(7));
    let sessions = vec![config(), config(), config()];
    let mut table = Direct::new(
        MatchConfig::action(),
        History::new(5),
        Arc::new(7),
        unasked(),
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
        // Not while they join: then it decides in which tick they do.
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
        digests.push(table.game.digest());
    }
    (digests, table.game.world().sim().clone())
}

/// Row 6: in whatever order packets arrive, commands run in the order of players, and the digests are the same.
#[test]
fn the_order_of_arrival_changes_nothing() {
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

/// Row 7: turns of 5, 7, 3 and 20 ticks in one match: every client switches where the server does, and stays
/// equal (as the rig checks at every tick), with prediction and in lockstep.
#[test]
fn turns_of_any_spacing_stay_in_step() {
    let deadline = RigConfig::new(7, LinkProfile::WAN);
    for config in [deadline, RigConfig::strategy(7, LinkProfile::WAN)] {
        let mut rig = Rig::<History>::new(config);
        rig.run(SECOND * 4);
        let mut turns = std::collections::BTreeMap::new();
        let mut seen = std::collections::BTreeSet::new();
        for ticks in [5, 7, 3, 20].into_iter().cycle().take(12) {
            let mut policies = rig.game.config().clone();
            policies.turn = TurnLength::Fixed(ticks);
            rig.game.reconfigure(policies).unwrap();
            let until = rig.now + SECOND * 3;
            while rig.now < until {
                rig.run(Duration::from_millis(5));
                let world = rig.game.world();
                turns.insert(world.tick(), world.turn());
                for client in &rig.clients {
                    let world = client.session.authority().unwrap();
                    if let Some(turn) = turns.get(&world.tick()) {
                        assert_eq!(&world.turn(), turn, "at {}", world.tick());
                        seen.insert((client.peer, turn.cadence.turn_ticks));
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

/// Row 19: one value of one client differs: it is found when the next turn arrives, and the server knows whose.
#[test]
fn a_flipped_value_is_found_at_the_next_turn() {
    let mut config = RigConfig::new(4, LinkProfile::LAN);
    config.policies.turn = TurnLength::Fixed(3);
    let mut rig = Rig::<History>::new(config);
    rig.run(SECOND * 5);
    rig.flip(2);
    let at = rig.clients[2].session.authority().unwrap().tick();
    while rig.clients[2].session.differs().is_none() {
        rig.run(Duration::from_millis(2));
        let tick = rig.clients[2].session.authority().unwrap().tick();
        assert!(tick - at <= 3, "a whole turn was stepped");
    }
    let found = rig.clients[2].session.differs().unwrap();
    assert!(found - at <= 3, "found at {found}, flipped at {at}");
    rig.run(SECOND * 3);
    assert_eq!(rig.game.stats().desyncs, 1);
    let told = rig.game.take_reports();
    assert_eq!(told.len(), 1);
    assert_eq!(told[0].peer, rig.clients[2].peer, "the client is named");
    let heals = [0, 1, 2, 3].map(|i| rig.stats(i).heals);
    assert_eq!(heals, [0, 0, 1, 0]);
}

/// Row 24: between two ticks the picture moves on with time, never back and never into the next tick; ticks of
/// 50 ms at 60 frames a second make three pictures each. The pose is the number of ticks that were held.
#[test]
fn pictures_between_ticks_grow_with_time() {
    let show = show_with(|sim: &Counter, out: &mut Poses<u8, f32>| out.put(0, sim.total as f32));
    let smoothing = Smoothing {
        teleport: f32::INFINITY,
        muzzle: Duration::ZERO,
    };
    let policies = MatchConfig {
        tick: Duration::from_millis(50),
        ..MatchConfig::action()
    };
    let config = SessionConfig::<Counter>::new(Arc::new(())).show(show, smoothing);
    let counter = Counter::default();
    let mut table = Direct::new(policies, counter, Arc::new(()), unasked(), vec![config], 60);
    table.run(200, |_, _| 1);
    let (mut last, mut newest) = (0.0, 0);
    let mut frames = Vec::new();
    for _ in 0..600 {
        table.run(1, |_, _| 1);
        let total = table.sessions[0].prediction().unwrap().sim().total;
        // `shown` asserts that alpha is in [0, 1); this adds the rounding of the pose.
        let (_, shown) = table.sessions[0].shown().next().unwrap();
        let alpha = shown - (total as f32 - 1.0);
        assert!((0.0..1.000_1).contains(&alpha), "alpha {alpha}");
        if total == newest {
            assert!(shown > last, "{shown} after {last} in the same tick");
            *frames.last_mut().unwrap() += 1;
        } else {
            frames.push(1);
        }
        (last, newest) = (shown, total);
    }
    let whole = &frames[1..frames.len() - 1];
    let three = whole.iter().filter(|n| **n == 3).count();
    assert!(
        three * 10 >= whole.len() * 9,
        "frames in each tick: {whole:?}"
    );
}

/// A game that behaves differently when it is predicted, and does not say so.
#[derive(Clone, Debug, Default, Serialize, Deserialize)]
struct TwoFaced {
    total: u32,
}

impl Simulation for TwoFaced {
    const NAME: &'static str = "two-faced";
    const VERSION: u32 = 1;
    type Rules = ();
    type Input = u8;
    type Command = Never;
    type Query = Never;
    type Outcome = Never;
    type Cue = Never;

    fn step(&mut self, frame: &Frame<'_, Self>, _: &mut Effects<Self>) {
        self.total += 1 + u32::from(frame.phase() == Phase::Prediction);
    }
}

/// Row 27: determinism is checked by default in debug builds: a step that is not the same on both sides stops
/// the session at the first tick, even though no frame differed.
#[test]
fn a_step_that_differs_by_phase_is_caught() {
    let config = SessionConfig::<TwoFaced>::new(Arc::new(()));
    assert_eq!(config.verify, cfg!(debug_assertions));
    let play = |verify| {
        let mut config = SessionConfig::<TwoFaced>::new(Arc::new(()));
        config.verify = verify;
        let sim = TwoFaced::default();
        let policies = MatchConfig::action();
        let mut table = Direct::new(policies, sim, Arc::new(()), unasked(), vec![config], 60);
        table.run(120, |_, _| 0);
    };
    play(false);
    let caught = std::panic::catch_unwind(|| play(true)).unwrap_err();
    let told = caught.downcast_ref::<String>().unwrap();
    assert!(told.contains("`step` differs by phase"), "{told}");
}

/// Whatever a game calls its controls.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
struct Hands {
    keys: u16,
    mouse: (i16, i16),
    pressed: Option<char>,
}

impl Controls for Hands {}

/// Keeps what it was told last.
#[derive(Clone, Debug, Default, Serialize, Deserialize)]
struct Told {
    hands: Vec<Hands>,
}

impl Simulation for Told {
    const NAME: &'static str = "told";
    const VERSION: u32 = 1;
    type Rules = ();
    type Input = Hands;
    type Command = Never;
    type Query = Never;
    type Outcome = Never;
    type Cue = Never;

    fn step(&mut self, frame: &Frame<'_, Self>, _: &mut Effects<Self>) {
        for (_, hands) in frame.inputs() {
            if self.hands.last() != Some(hands) {
                self.hands.push(hands.clone());
            }
        }
    }
}

/// Row 29: keys, mouse and presses, in a type of the game's own, reach the server's frames as they were held,
/// each for its tick.
#[test]
fn any_type_of_controls_reaches_the_sequencer() {
    let config = SessionConfig::<Told>::new(Arc::new(()));
    let policies = MatchConfig::action();
    let told = Told::default();
    let mut table = Direct::new(policies, told, Arc::new(()), unasked(), vec![config], 60);
    table.run(120, |_, _| Hands::default());
    let mut held = Vec::new();
    for n in 0..60_i16 {
        let hands = Hands {
            keys: 1 << (n % 16),
            mouse: (n * 100, -n),
            pressed: char::from_u32('a' as u32 + n as u32 % 26),
        };
        held.push(hands.clone());
        table.run(3, |_, _| hands.clone());
    }
    table.run(30, |_, _| held[59].clone());
    let reached = &table.game.world().sim().hands;
    let new = reached.iter().filter(|hands| hands.keys != 0);
    assert!(new.eq(&held), "{reached:?}");
}

/// Row 50: what chance decides is asked once, decided once by the server, and comes to all as an action of the
/// turn stream: every answer in the journal names its list, and each client applies it at the same tick (the
/// rig compares their worlds with the server's at every tick).
#[test]
fn a_blast_is_decided_once_and_travels_as_an_action() {
    let mut rig = Rig::<Game>::new(RigConfig::new(31, LinkProfile::WAN));
    rig.run(SECOND * 20);
    let rules = Game::rules(0);
    let hello = Hello::of::<Game>(&rules, "").unwrap();
    let mut replay = Replay::<Game>::open(&rig.journal, &rules, &hello).unwrap();
    let (mut keys, mut hits) = (Vec::new(), 0);
    while replay.step().unwrap() {
        for answer in &replay.frame().outcomes {
            keys.push((answer.asked, answer.key));
            if let Some(powderkeg::game::Outcome::Blast { hits: list }) = &answer.outcome {
                hits += list.len();
            }
        }
    }
    let world = replay.world();
    let open = world.open_queries().iter();
    let asked = open
        .filter(|open| matches!(open.query, Query::Blast { .. }))
        .count();
    assert!(asked <= 1, "answered at once");
    let answers = keys.len();
    assert!(answers > 5 && hits > 5, "{answers} answers, {hits} hits");
    keys.sort_unstable();
    keys.dedup();
    assert_eq!(keys.len(), answers, "each once");
    assert_eq!(rig.game.digest_at(world.tick()), world.digest().ok());
}

/// Row 53: only what chance decides costs extra bytes: a thousand villagers gather, and no byte tells of it.
#[test]
fn a_thousand_gathering_villagers_send_no_byte() {
    let bytes = |crowd| {
        let mut config = RigConfig::strategy(2, LinkProfile::LAN);
        (config.sticks, config.crowd, config.verify) = (Sticks::Still, crowd, false);
        let mut rig = Rig::<Skirmish>::new(config);
        rig.observe(false);
        rig.run(SECOND * 5);
        let before = [0, 1, 2, 3].map(|i| rig.bytes_down(i));
        let woken = rig.game.world().sim().woken;
        rig.run(SECOND * 20);
        let world = rig.game.world().sim();
        assert_eq!(world.units.len(), 4 * usize::from(crowd));
        assert!(world.woken > woken + 4 * u64::from(crowd), "they gather");
        let mut total = 0;
        for (i, before) in before.into_iter().enumerate() {
            let down = rig.bytes_down(i) - before;
            assert_eq!((down.outcomes, down.commands), (0, 0), "client {i}");
            total += down.total();
        }
        total
    };
    let (few, many) = (bytes(2), bytes(250));
    println!("{few} bytes with 8 villagers, {many} with 1,000");
    assert_eq!(few, many);
}

/// The second game, in lockstep: bots at war over a bad line, equal at every tick (as the rig checks), every
/// order with its fate.
#[test]
fn a_skirmish_in_lockstep_stays_equal() {
    let mut rig = Rig::<Skirmish>::new(RigConfig::strategy(3, LinkProfile::BAD));
    rig.run(SECOND * 60);
    assert!(rig.game.stats().outcomes > 3, "{:?}", rig.game.stats());
    let towns = &rig.game.world().sim().towns;
    assert!(towns.values().any(|town| town.kills > 0), "{towns:?}");
    rig.converge();
}

/// Draws at every tick, and shows what it drew.
#[derive(Clone, Debug, Serialize, Deserialize)]
struct Dice {
    luck: Mwc,
}

impl Simulation for Dice {
    const NAME: &'static str = "dice";
    const VERSION: u32 = 1;
    type Rules = ();
    type Input = u8;
    type Command = Never;
    type Query = Never;
    type Outcome = Never;
    type Cue = u32;

    fn step(&mut self, frame: &Frame<'_, Self>, fx: &mut Effects<Self>) {
        fx.cue(Key::new(1, frame.tick().0), self.luck.next_u32());
    }
}

/// Row 65: one seed, and both simulations of all machines draw the same numbers, each at its tick: what a
/// prediction drew is what the authority draws later, on every client.
#[test]
fn both_simulations_of_all_machines_draw_the_same_luck() {
    let config = || SessionConfig::<Dice>::new(Arc::new(()));
    let dice = Dice {
        luck: Mwc::seed(77),
    };
    let mut expected = dice.luck.clone();
    let expected: Vec<u32> = (0..400).map(|_| expected.next_u32()).collect();
    let sessions = vec![config(), config()];
    let policies = MatchConfig::action();
    let mut table = Direct::new(policies, dice, Arc::new(()), unasked(), sessions, 60);
    let mut drawn = [0, 0];
    let mut confirmed = [0, 0];
    for _ in 0..300 {
        table.run(1, |_, _| 0);
        for (i, session) in table.sessions.iter_mut().enumerate() {
            while let Some(event) = session.poll_cue() {
                match event.kind {
                    CueKind::Started { tick, cue, .. } => {
                        assert_eq!(cue, expected[tick.0 as usize], "client {i} at {tick}");
                        drawn[i] += 1;
                    }
                    CueKind::Confirmed { .. } => confirmed[i] += 1,
                    CueKind::Cancelled => panic!("client {i} drew something else"),
                }
            }
        }
    }
    assert!(confirmed.iter().all(|n| *n > 250), "{confirmed:?}");
    assert!(drawn.iter().zip(&confirmed).all(|(all, sure)| all >= sure));
}

/// Row 56: what the authority does is told to the view in the same process and the same call, with the tick in
/// which it happened: no message, no tick later.
#[test]
fn what_the_authority_does_is_told_in_the_same_call() {
    let config = SessionConfig::<Dice>::new(Arc::new(()));
    let dice = Dice { luck: Mwc::seed(3) };
    let policies = MatchConfig::action();
    let mut table = Direct::new(policies, dice, Arc::new(()), unasked(), vec![config], 60);
    table.run(120, |_, _| 0);
    while table.sessions[0].poll_cue().is_some() {}
    let mut told = 0;
    for _ in 0..200 {
        let before = table.sessions[0].authority().unwrap().tick();
        table.frame(|_, _| 0);
        let after = table.sessions[0].authority().unwrap().tick();
        let mut at = before;
        while let Some(event) = table.sessions[0].poll_cue() {
            if let CueKind::Confirmed { at: tick, .. } = event.kind {
                assert_eq!(tick, at, "in order, none late");
                at += 1;
                told += 1;
            }
        }
        assert_eq!(at, after, "all that was stepped in this call");
        table.serve();
    }
    assert!(told > 190, "{told}");
}

/// Row 72: kills and scores are the same for everybody at the same tick.
#[test]
fn everybody_agrees_on_kills_and_scores_at_the_same_tick() {
    type Scores = (u32, Vec<(PlayerId, u32, u32)>);
    let scores = |game: &Game| -> Scores {
        let players = game.players.iter();
        let of_each = players.map(|(id, player)| (*id, player.score, player.kills));
        (game.score, of_each.collect())
    };
    let mut rig = Rig::<Game>::new(RigConfig::new(17, LinkProfile::BAD));
    let mut truth = std::collections::BTreeMap::new();
    let mut compared = 0;
    while rig.now < SECOND * 30 {
        rig.run(Duration::from_millis(4));
        let world = rig.game.world();
        truth
            .entry(world.tick())
            .or_insert_with(|| scores(world.sim()));
        for client in &rig.clients {
            if let Some(world) = client.session.authority()
                && let Some(truth) = truth.get(&world.tick())
            {
                assert_eq!(
                    &scores(world.sim()),
                    truth,
                    "{} at {}",
                    client.identity,
                    world.tick()
                );
                compared += 1;
            }
        }
    }
    assert!(compared > 10_000, "{compared}");
    let (score, players) = scores(rig.game.world().sim());
    let sum: u32 = players.iter().map(|player| player.1).sum();
    assert!(score > 50 && sum == score, "{score} points, {players:?}");
    assert_eq!(
        rig.game.stage(PeerId(1)),
        Some(twinstep_server::peer::Stage::Playing)
    );
}
