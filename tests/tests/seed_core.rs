//! Rules for every policy: sleeping entities are free, only random decisions are sent as actions, and events are
//! emitted immediately.

use std::sync::Arc;
use std::time::{Duration, Instant};

use powderkeg_game::{Game, Query};
use serde::{Deserialize, Serialize};
use twinstep_client::{CueKind, Poses, Scene, SessionConfig, Smoothing, show_with};
use twinstep_core::testing::doc::Counter;
use twinstep_core::{
    Controls, Effects, Frame, Key, Mwc, Never, PlayerId, Schedule, Simulation, Tick,
};
use twinstep_protocol::replay::Replay;
use twinstep_protocol::simnet::LinkProfile;
use twinstep_rig::direct::Direct;
use twinstep_rig::game_types;
use twinstep_rig::realm::Realm;
use twinstep_rig::rig::{InputPattern, Play, Rig, RigConfig};
use twinstep_server::{Decision, HookContext, MatchConfig, SessionId, Trouble};

const SECOND: Duration = Duration::from_secs(1);

/// Row 4: ten thousand sleepers cause no wake-ups in a tick. A sleeper wakes exactly in its tick, a cancelled one does
/// not wake, and a save keeps all of them.
#[test]
fn ten_thousand_sleepers_wake_exactly_at_their_tick() {
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

// Each call lets sleepers wake and register again in 20-tick rounds, and returns the time per wake-up.
#[expect(
    clippy::disallowed_methods,
    reason = "measures; only the ratio of two measurements is compared"
)]
fn rounds_of(sleepers: u32) -> impl FnMut() -> Duration {
    let mut timers = Schedule::new();
    for n in 0..sleepers {
        timers.at(Tick(n % 20), Key::new(1, n), n);
    }
    let mut now = Tick(0);
    move || {
        let (began, mut woken) = (Instant::now(), 0);
        while woken < 100_000 {
            while let Some((key, n)) = timers.pop_due(now) {
                timers.at(now + 20, key, n);
                woken += 1;
            }
            now += 1;
        }
        began.elapsed() / woken
    }
}

/// Row 80: waking and registering again does not cost more with many sleepers. A schedule that moved all sleepers on
/// each event would take a hundred times as long.
#[test]
fn waking_costs_no_more_with_a_hundred_thousand_sleepers() {
    let mut rounds = [1_000, 60_000, 100_000].map(rounds_of);
    let mut least = [Duration::MAX; 3];
    // The sizes take turns, so that other load on the machine affects all of them.
    for _ in 0..7 {
        for (least, round) in least.iter_mut().zip(&mut rounds) {
            *least = (*least).min(round());
        }
    }
    let [few, army, many] = least;
    println!(
        "an event of 1,000 sleepers {few:?}, of 60,000 {army:?} ({:?} a step in which 3,000 wake), of 100,000 {many:?}",
        army * 3_000
    );
    assert!(many < few * 10, "{few:?} and {many:?}");
}

/// Row 24: between two ticks the picture advances with time, never back or into the next tick, with prediction and in
/// lockstep. At 60 frames a second, each 50 ms tick has three pictures. The pose is the number of ticks with input.
#[test]
fn pictures_between_ticks_advance_with_time() {
    for policies in [
        MatchConfig {
            tick: Duration::from_millis(50),
            ..MatchConfig::action()
        },
        MatchConfig::strategy(),
    ] {
        let show = show_with(|scene: &Scene<'_, Counter>, out: &mut Poses<u8, f32>| {
            out.put(0, scene.total as f32);
            out.put(1, scene.tick.0 as f32);
        });
        let smoothing = Smoothing::new(f32::INFINITY, Duration::ZERO);
        let config = SessionConfig::<Counter>::new(Arc::new(())).show(show, smoothing);
        let counter = Counter::default();
        let mut table = Direct::of(policies, counter, [config]);
        table.run(300, |_, _| 1);
        let (mut last, mut newest) = (0.0, 0);
        let mut frames = Vec::new();
        for _ in 0..600 {
            table.run(1, |_, _| 1);
            let world = table.sessions[0].prediction().unwrap();
            let (total, tick) = (world.sim().total, world.tick());
            // `shown` asserts that alpha is in [0, 1); this adds the rounding of the pose.
            let mut all = table.sessions[0].shown().map(|(_, shown)| shown);
            let (shown, clock) = (all.next().unwrap(), all.next().unwrap());
            let alpha = shown - (total as f32 - 1.0);
            let off = clock - (tick.0 as f32 - 1.0) - alpha;
            assert!(off.abs() < 0.001, "{clock} is drawn before {tick}, {alpha}");
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
}

#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
struct Hands {
    keys: u16,
    mouse: (i16, i16),
    pressed: Option<char>,
}

impl Controls for Hands {}

#[derive(Clone, Debug, Default, Serialize, Deserialize)]
struct LastInput {
    hands: Vec<Hands>,
}

impl Simulation for LastInput {
    game_types!("told", (), Hands, Never, Never, Never, Never);

    fn step(&mut self, frame: &Frame<'_, Self>, _: &mut Effects<Self>) {
        for (_, hands) in frame.inputs() {
            if self.hands.last() != Some(hands) {
                self.hands.push(hands.clone());
            }
        }
    }
}

/// Row 29: keys, mouse and presses, in the game's own type, reach the server's frames unchanged, each for its tick.
#[test]
fn any_type_of_controls_reaches_the_servers_frames() {
    let config = SessionConfig::<LastInput>::new(Arc::new(()));
    let policies = MatchConfig::action();
    let reported = LastInput::default();
    let mut table = Direct::of(policies, reported, [config]);
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
    let reached = &table.match_.world().sim().hands;
    let new = reached.iter().filter(|hands| hands.keys != 0);
    assert!(new.eq(&held), "{reached:?}");
}

/// Row 50: a random decision is asked once, decided once by the server, and sent to all clients as an action in the
/// turn stream. Every answer in the journal names its list, and each client applies it at the same tick (the rig
/// compares their worlds with the server's every tick).
#[test]
fn a_blast_is_decided_once_and_travels_as_an_action() {
    let mut rig = Rig::<Game>::new(RigConfig::new(31, LinkProfile::WAN));
    rig.run(SECOND * 20);
    let rules = Game::rules(0);
    let mut replay = Replay::<Game>::open(&rig.journal, &rules).unwrap();
    let (mut keys, mut hits) = (Vec::new(), 0);
    while replay.step().unwrap() {
        for answer in &replay.frame().outcomes {
            keys.push((answer.asked, answer.key));
            if let Some(powderkeg_game::Outcome::Blast { hits: list }) = &answer.outcome {
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
    assert_eq!(rig.match_.digest_at(world.tick()), world.digest().ok());
}

/// Row 53: only random decisions cost additional bytes; a thousand gathering villagers cost none.
#[test]
fn a_thousand_gathering_villagers_cost_no_bytes() {
    let bytes = |crowd| {
        let mut config = RigConfig::strategy(2, LinkProfile::LAN);
        (config.input_pattern, config.crowd, config.verify) = (InputPattern::Still, crowd, false);
        let mut rig = Rig::<Realm>::new(config);
        rig.observe(false);
        rig.run(SECOND * 5);
        let before = [0, 1, 2, 3].map(|i| rig.bytes_down(i));
        let woken = rig.match_.world().sim().woken;
        rig.run(SECOND * 20);
        let world = rig.match_.world().sim();
        assert_eq!(world.villagers.len(), 4 * usize::from(crowd));
        assert!(world.woken > woken + 60 * u64::from(crowd), "they gather");
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

/// The second game, in lockstep: bots at war over a bad link, with equal worlds every tick (as the rig checks) and a
/// result for every command.
#[test]
fn all_worlds_of_a_strategy_game_stay_equal_in_lockstep() {
    let mut rig = Rig::<Realm>::new(RigConfig::strategy(3, LinkProfile::BAD));
    rig.run(SECOND * 60);
    assert!(rig.match_.stats().outcomes > 3, "{:?}", rig.match_.stats());
    let realm = rig.match_.world().sim();
    assert!(realm.hits > 100, "{} hits", realm.hits);
    rig.converge();
}

#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
struct Raid {
    bombs: u32,
    hits: Vec<(u32, Option<u32>)>,
}

impl Simulation for Raid {
    game_types!("raid", (), u8, u32, u32, u32, Never);

    fn step(&mut self, frame: &Frame<'_, Self>, fx: &mut Effects<Self>) {
        for (_, bomb, hit) in frame.outcomes() {
            self.hits.push((*bomb, hit.copied()));
        }
        for (_, count) in frame.commands() {
            for _ in 0..*count {
                fx.ask(Key::new(1, self.bombs), self.bombs);
                self.bombs += 1;
            }
        }
    }
}

#[test]
fn a_query_opened_late_has_as_much_time_as_others() {
    // No job is ever completed, so each query ends 2 s after it was opened.
    let resolver = |_: &HookContext<'_, Raid>, _: Key, _: &u32| Decision::Later(Box::new(|| 0));
    let config = SessionConfig::<Raid>::new(Arc::new(()));
    let policies = MatchConfig::action();
    let mut table = Direct::answered(policies, Raid::default(), resolver, [config]);
    table.gather();
    table.sessions[0].command(0, 100).unwrap();
    let answered = |table: &Direct<Raid>| table.match_.world().sim().hits.len();
    table.rest(SECOND * 3);
    assert_eq!(answered(&table), 64, "as many as may be open");
    table.rest(SECOND * 2);
    assert_eq!(answered(&table), 100);
}

/// Row 87: forty bombs of one tick are all decided, in order, over the next ticks, with prediction and in lockstep.
#[test]
fn a_burst_of_forty_queries_is_answered_completely_and_in_order() {
    for policies in [MatchConfig::action(), MatchConfig::strategy()] {
        let config = || SessionConfig::<Raid>::new(Arc::new(()));
        let resolver = |_: &HookContext<'_, Raid>, _: Key, bomb: &u32| Decision::Now(bomb * bomb);
        let sessions = [config(), config()];
        let mut table = Direct::answered(policies, Raid::default(), resolver, sessions);
        table.gather();
        table.sessions[0].command(0, 40).unwrap();
        table.rest(SECOND * 2);
        let expected: Vec<_> = (0..40).map(|bomb| (bomb, Some(bomb * bomb))).collect();
        assert_eq!(table.match_.world().sim().hits, expected, "on the server");
        for session in &table.sessions {
            assert_eq!(
                session.authority().unwrap().sim().hits,
                expected,
                "on a client"
            );
        }
        let stats = table.match_.stats();
        assert_eq!((stats.outcomes, stats.unanswered), (40, 0));
    }
}

#[test]
fn queries_beyond_their_bound_are_reported_to_the_operator() {
    let resolver = |_: &HookContext<'_, Raid>, _: Key, _: &u32| Decision::Unanswered;
    let config = SessionConfig::<Raid>::new(Arc::new(()));
    let policies = MatchConfig::action();
    let mut table = Direct::answered(policies, Raid::default(), resolver, [config]);
    table.gather();
    for _ in 0..12 {
        table.sessions[0].command(0, 60).unwrap();
    }
    table.rest(SECOND * 2);
    let asked = 720 - table.match_.stats().asks_dropped;
    assert!((256..400).contains(&asked), "{asked}");
    assert_eq!(table.match_.world().sim().hits.len() as u64, asked);
    let incidents = table.match_.take_incidents();
    let kinds: Vec<_> = incidents.iter().map(|incident| incident.trouble).collect();
    assert!(kinds.contains(&Trouble::Asks), "{incidents:?}");
}

#[derive(Clone, Debug, Serialize, Deserialize)]
struct Dice {
    luck: Mwc,
}

impl Simulation for Dice {
    game_types!("dice", (), u8, Never, Never, Never, u32);

    fn step(&mut self, frame: &Frame<'_, Self>, fx: &mut Effects<Self>) {
        fx.cue(Key::new(1, frame.tick().0), self.luck.next_u32());
    }
}

/// Row 65: with one seed, both simulations on all machines draw the same numbers at the same ticks. On every client,
/// the prediction's draws equal the later draws of the confirmed world.
#[test]
fn both_simulations_on_all_machines_draw_the_same_random_numbers() {
    let config = || SessionConfig::<Dice>::new(Arc::new(()));
    let dice = Dice {
        luck: Mwc::seed(77),
    };
    let mut expected = dice.luck.clone();
    let expected: Vec<u32> = (0..400).map(|_| expected.next_u32()).collect();
    let sessions = vec![config(), config()];
    let policies = MatchConfig::action();
    let mut table = Direct::of(policies, dice, sessions);
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

/// Row 56: the confirmed world's events reach the view in the same process and the same call, with the tick in which
/// they happened. No message is needed, and they are not a tick late.
#[test]
fn confirmed_events_arrive_in_the_same_call() {
    let config = SessionConfig::<Dice>::new(Arc::new(()));
    let dice = Dice { luck: Mwc::seed(3) };
    let policies = MatchConfig::action();
    let mut table = Direct::of(policies, dice, [config]);
    table.run(120, |_, _| 0);
    while table.sessions[0].poll_cue().is_some() {}
    let mut reported = 0;
    for _ in 0..200 {
        let before = table.sessions[0].authority().unwrap().tick();
        table.frame(|_, _| 0);
        let after = table.sessions[0].authority().unwrap().tick();
        let mut at = before;
        while let Some(event) = table.sessions[0].poll_cue() {
            if let CueKind::Confirmed { at: tick, .. } = event.kind {
                assert_eq!(tick, at, "in order, none late");
                at += 1;
                reported += 1;
            }
        }
        assert_eq!(at, after, "all that was stepped in this call");
        table.serve();
    }
    assert!(reported > 190, "{reported}");
}

/// Row 72: kills and scores are the same on all sides at the same tick.
#[test]
fn all_sides_agree_on_kills_and_scores_at_the_same_tick() {
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
        let world = rig.match_.world();
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
    let (score, players) = scores(rig.match_.world().sim());
    let sum: u32 = players.iter().map(|player| player.1).sum();
    assert!(score > 50 && sum == score, "{score} points, {players:?}");
    assert_eq!(
        rig.match_.stage(SessionId(1)),
        Some(twinstep_server::peer::SessionStage::Playing)
    );
}
