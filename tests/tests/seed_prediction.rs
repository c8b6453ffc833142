//! Prediction: the local simulation answers at once, stands on its own, and is corrected without a trace.

use std::sync::{Arc, Mutex};
use std::time::Duration;

use glam::Vec2;
use powderkeg::game::{Game, Heading, Pad, Rules, Wall};
use serde::{Deserialize, Serialize};
use twinstep_client::hooks::{Repeat, Wait};
use twinstep_client::orders::Orders;
use twinstep_client::picture::{Poses, Smoothing, show_with};
use twinstep_client::timeline::{Known, Timeline, Watch};
use twinstep_client::{Hidden, SessionConfig};
use twinstep_core::bounds::LEAD_MAX;
use twinstep_core::frame::{FrameData, Perspective, RosterChange};
use twinstep_core::simnet::LinkProfile;
use twinstep_core::testing::doc::Counter;
use twinstep_core::world::{Stepper, World};
use twinstep_core::{Effects, Frame, Key, Mwc, Never, PlayerId, PlayerSet, Simulation, Tick};
use twinstep_server::config::Announce;
use twinstep_server::{Look, MatchConfig, Resolution, Resolver};
use twinstep_tests::direct::{Direct, unasked};
use twinstep_tests::history::{self, History};
use twinstep_tests::rig::{Play, Rig, RigConfig, Sticks};

const SECOND: Duration = Duration::from_secs(1);

/// Counters on one table, 60 frames a second, everybody in the match.
fn counters(clients: usize) -> Direct<Counter> {
    let sessions = (0..clients).map(|_| SessionConfig::<Counter>::new(Arc::new(())));
    let policies = MatchConfig::action();
    let counter = Counter::default();
    let sessions = sessions.collect();
    let mut table = Direct::new(policies, counter, Arc::new(()), unasked(), sessions, 60);
    table.run(180, |_, _| 0);
    table
}

/// Row 28: somebody plays from 400 ms away; whoever is near still has each input in the picture of its own
/// frame, and waits for nothing.
#[test]
fn a_far_player_does_not_slow_the_hands_of_a_near_one() {
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

/// Row 31: under the deadline policy a bad line costs nobody but its owner: while one player's line jitters, the
/// turns of the others are never late.
#[test]
fn a_bad_line_makes_turns_late_for_its_owner_alone() {
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

/// Row 32: an input changes the predicted state in the very tick for which it is sampled.
#[test]
fn a_local_input_acts_in_its_own_tick() {
    let mut table = counters(1);
    let seen = |table: &Direct<Counter>| {
        let world = table.sessions[0].prediction().unwrap();
        (world.tick(), world.sim().total)
    };
    for held in [1, 7, 0, 200] {
        let (tick, total) = seen(&table);
        table.frame(|_, _| held);
        let (now, after) = seen(&table);
        let ticks = u64::from(now - tick);
        assert!(ticks > 0, "a tick was due");
        assert_eq!(after - total, ticks * u64::from(held), "held {held}");
        table.serve();
    }
}

/// Row 77: an input that is read in a frame is in the predicted step of its tick, and in a datagram of that
/// same frame: what leaves in it suffices for the server to seal the tick with that input.
#[test]
fn an_input_is_used_and_sent_in_the_frame_in_which_it_is_read() {
    let mut table = counters(1);
    let tick = table.sessions[0].prediction().unwrap().tick();
    let total = table.sessions[0].prediction().unwrap().sim().total;
    table.frame(|_, _| 9);
    let world = table.sessions[0].prediction().unwrap();
    assert_eq!((world.tick(), world.sim().total), (tick + 1, total + 9));
    assert_eq!(table.up.len(), 1, "one datagram, in the same frame");
    table.serve();
    // From here on the client is not heard.
    while table.game.world().tick() <= tick {
        table.now += Duration::from_millis(1);
        table.serve();
    }
    assert_eq!(table.game.world().held(PlayerId(0)), (&9, 0), "not filled");
}

/// Row 34: with no packet from the network, a predicted player still stops at a wall, as far from it as its
/// size says, and stops dead when the stick is released.
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
    assert_eq!(x(&table), on_the_way, "nobody slides");
    table.run(30, east);
    assert!((x(&table) - -34.5).abs() < 1e-4, "{}", x(&table));
    assert_eq!(table.sessions[0].authority().unwrap().tick(), authority);
}

/// Row 35: what was assumed is kept over the whole unconfirmed window: after a silence in which the lead grows
/// to nearly its bound, each tick of it is compared and kept, and none is simulated again. What is confirmed is
/// let go of: the lead is short again.
#[test]
fn assumed_frames_are_kept_until_they_are_confirmed() {
    let mut table = counters(1);
    let before = table.sessions[0].stats();
    table.deaf_until[0] = table.now + SECOND;
    table.run(59, |_, _| 3);
    let stats = table.sessions[0].stats();
    let lead = stats.prediction_tick - stats.authority_tick;
    assert!((LEAD_MAX - 6..=LEAD_MAX).contains(&lead), "lead {lead}");
    table.run(60, |_, _| 3);
    let stats = table.sessions[0].stats();
    assert!(stats.authority_tick > before.authority_tick + 100);
    assert!(stats.prediction_tick - stats.authority_tick < 8);
    assert_eq!(stats.timeline.resim_ticks, before.timeline.resim_ticks);
    assert_eq!(stats.timeline.rebuilds, before.timeline.rebuilds);
    let world = table.sessions[0].authority().unwrap();
    assert_eq!(world.digest().ok(), table.game.digest_at(world.tick()));
}

/// Remembers everything that anybody held, in order.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
struct Trace {
    held: [u64; 3],
}

impl Simulation for Trace {
    const NAME: &'static str = "trace";
    const VERSION: u32 = 1;
    type Rules = ();
    type Input = u8;
    type Command = Never;
    type Query = Never;
    type Outcome = Never;
    type Cue = Never;

    fn step(&mut self, frame: &Frame<'_, Self>, _: &mut Effects<Self>) {
        for (player, held) in frame.inputs() {
            let trace = &mut self.held[player.index()];
            *trace = trace.wrapping_mul(0x9e37_79b9_7f4a_7c15) ^ u64::from(*held);
        }
    }
}

/// Looks away.
struct Blind;

impl<S: Simulation> Watch<S> for Blind {
    fn confirmed(&mut self, _: Tick, _: &Effects<S>) {}
    fn predicted(&mut self, _: Tick, _: &S, _: &Effects<S>, _: &Known) {}
    fn resimulated(&mut self, _: &S, _: &Known) {}
    fn rebuilt(&mut self, _: Tick, _: &S, _: &mut dyn Iterator<Item = (Tick, &[(Key, S::Cue)])>) {}
}

/// Row 36: a corrected prediction is what a run from the start gives with the true actions of all. Two remote
/// players change what they hold now and then, and the client hears of it up to 9 ticks late.
#[test]
fn a_correction_equals_a_run_from_the_start() {
    const TICKS: u32 = 3_000;
    let mut luck = Mwc::seed(36);
    let mut held = [0_u8; 3];
    let mut changed = vec![Tick(0)];
    let frames: Vec<FrameData<Trace>> = (0..TICKS)
        .map(|tick| {
            let mut frame = FrameData::empty(Tick(tick));
            let remote_changes = tick.is_multiple_of(25);
            for (i, held) in held.iter_mut().enumerate() {
                if i == 0 || remote_changes {
                    *held = luck.next_u32() as u8;
                }
                let player = PlayerId(i as u8);
                if tick == 0 {
                    frame.roster.push((player, RosterChange::Joined));
                }
                frame.inputs.set(player, Some(*held));
            }
            changed.push(if remote_changes {
                Tick(tick)
            } else {
                changed[tick as usize]
            });
            frame
        })
        .collect();
    // The run from the start.
    let mut world = World::new(Trace::default(), Tick(0));
    let mut stepper = Stepper::default();
    let mut truth = vec![world.digest().unwrap()];
    for frame in &frames {
        let perspective = Perspective::authority(frame.tick);
        let stepped = stepper.step(&mut world, frame, &(), perspective, PlayerSet::default());
        stepped.unwrap();
        truth.push(world.digest().unwrap());
    }
    let seats = [PlayerId(0)].into_iter().collect();
    let start = World::new(Trace::default(), Tick(0));
    let (guess, speculate) = (Box::new(Repeat), Box::new(Wait));
    let mut timeline = Timeline::new(
        Arc::new(()),
        start,
        Orders::new(seats, &[0]),
        guess,
        speculate,
        true,
    );
    let (mut lag, mut compared, mut corrected) = (3, 0, 0);
    for now in 0..TICKS {
        let own = *frames[now as usize].inputs.get(PlayerId(0)).unwrap();
        timeline.orders_mut().sample(|_| own);
        if luck.below(8) == 0 {
            lag = luck.below(10);
        }
        let rebuilds = timeline.stats().rebuilds;
        while timeline.authority().tick() + lag <= Tick(now) {
            let next = timeline.authority().tick();
            timeline
                .confirm(&frames[next.0 as usize], &mut Blind)
                .unwrap();
        }
        timeline.predict(Tick(now + 1), 200, &mut Blind);
        let (authority, prediction) = (timeline.authority(), timeline.prediction());
        assert_eq!(
            authority.digest().unwrap(),
            truth[authority.tick().0 as usize]
        );
        // Nothing was changed that this client could not know of.
        if authority.tick() > changed[prediction.tick().0 as usize] {
            assert_eq!(
                prediction.digest().unwrap(),
                truth[prediction.tick().0 as usize],
                "{now}"
            );
            compared += 1;
            corrected += u32::from(timeline.stats().rebuilds > rebuilds);
        }
    }
    println!("{compared} predictions compared, {corrected} of them just corrected");
    assert!(
        compared > 1_500 && corrected > 80,
        "{compared}, {corrected}"
    );
}

/// What a picture may draw of another player's doings: nothing that is only guessed. A guess that an announcement
/// meets counts as known at once, one that it does not meet only after the next rebuild.
#[derive(Default)]
struct Knowing(Option<Known>);

impl<S: Simulation> Watch<S> for Knowing {
    fn confirmed(&mut self, _: Tick, _: &Effects<S>) {}
    fn predicted(&mut self, _: Tick, _: &S, _: &Effects<S>, known: &Known) {
        self.0 = Some(*known);
    }
    fn resimulated(&mut self, _: &S, known: &Known) {
        self.0 = Some(*known);
    }
    fn rebuilt(&mut self, _: Tick, _: &S, _: &mut dyn Iterator<Item = (Tick, &[(Key, S::Cue)])>) {}
}

#[test]
fn what_another_player_gave_is_known_once_it_is_announced_and_the_prediction_holds_it() {
    let start = World::new(Trace::default(), Tick(0));
    let mut timeline = Timeline::new(
        Arc::new(()),
        start,
        Orders::new([PlayerId(0)].into_iter().collect(), &[0]),
        Box::new(Repeat),
        Box::new(Wait),
        true,
    );
    let mut watch = Knowing::default();
    let (own, other) = (PlayerId(0), PlayerId(1));
    let frame = |tick: u32, held: u8| {
        let mut frame = FrameData::<Trace>::empty(Tick(tick));
        if tick == 0 {
            frame.roster.push((own, RosterChange::Joined));
            frame.roster.push((other, RosterChange::Joined));
        }
        frame.inputs.set(own, Some(1));
        frame.inputs.set(other, Some(held));
        frame
    };
    for _ in 0..20 {
        timeline.orders_mut().sample(|_| 1);
    }
    timeline.confirm(&frame(0, 7), &mut watch).unwrap();
    timeline.predict(Tick(6), 99, &mut watch);
    let known = watch.0.unwrap();
    assert!(known.covers(other, Tick(0)) && !known.covers(other, Tick(1)));
    assert!(known.covers(own, Tick(5)));
    // Announced as guessed for two ticks, then otherwise.
    for (tick, held) in [(1, 7), (2, 7), (3, 9), (4, 9)] {
        timeline.announce(other, Tick(tick), &held);
    }
    timeline.predict(Tick(7), 99, &mut watch);
    let known = watch.0.unwrap();
    assert!(known.covers(other, Tick(2)) && !known.covers(other, Tick(3)));
    // A rebuild assumes what was announced.
    timeline.confirm(&frame(1, 8), &mut watch).unwrap();
    timeline.predict(Tick(7), 99, &mut watch);
    let known = watch.0.unwrap();
    assert!(known.covers(other, Tick(4)) && !known.covers(other, Tick(5)));
}

/// Row 39: what is shown lies between the last two ticks, and showing it changes neither simulation. (A view
/// gets `&S`, so that it cannot compile otherwise; here that nothing gets past that.)
#[test]
fn a_picture_is_read_and_never_written_back() {
    let show = show_with(|sim: &Counter, out: &mut Poses<u8, f32>| out.put(0, sim.total as f32));
    let smoothing = Smoothing {
        teleport: f32::INFINITY,
        muzzle: Duration::ZERO,
    };
    let config = SessionConfig::<Counter>::new(Arc::new(())).show(show, smoothing);
    let policies = MatchConfig::action();
    let counter = Counter::default();
    let mut table = Direct::new(
        policies,
        counter,
        Arc::new(()),
        unasked(),
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

/// Row 55: both simulations live in one process; what lies between them is the lead that is told.
#[test]
fn the_lead_that_is_told_is_the_lead_that_is() {
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
        assert!(lead > 0 && lead <= LEAD_MAX);
        sum += f64::from(lead);
        if n == 2_000 {
            let (mean, told) = (sum / 2_000.0, stats.lead_ticks_mean);
            assert!((mean - told).abs() < 0.5, "{mean} ticks, told {told}");
        }
    }
}

/// Row 58: the network is silent for 500 ms: 30 ticks are predicted, one for each sixtieth of a second.
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

/// A game in which everybody walks on for ever.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
struct March {
    steps: u64,
}

impl Simulation for March {
    const NAME: &'static str = "march";
    const VERSION: u32 = 1;
    type Rules = ();
    type Input = u8;
    type Command = Never;
    type Query = Never;
    type Outcome = Never;
    type Cue = Never;

    fn step(&mut self, frame: &Frame<'_, Self>, _: &mut Effects<Self>) {
        self.steps += frame
            .inputs()
            .map(|(_, held)| u64::from(*held))
            .sum::<u64>();
    }
}

impl Play for March {
    type Show = Hidden;
    type Driver = u8;
    fn rules(_: u16) {}
    fn start((): &(), _: u64) -> Self {
        March::default()
    }
    fn show(_: &Arc<()>) -> Hidden {
        Hidden
    }
    fn resolver((): &(), _: u64) -> impl Resolver<Self> {
        unasked()
    }
    fn speculate(_: &Self, (): &(), _: &Never) -> Option<Never> {
        None
    }
    fn admit(&self, (): &(), _: PlayerId, _: &Never) -> bool {
        true
    }
    fn driver(_: Sticks, mut luck: Mwc) -> u8 {
        1 + luck.below(200) as u8
    }
    fn drive(&self, held: &mut u8, (): &(), _: PlayerId, _: Tick) -> (u8, Option<Never>) {
        (*held, None)
    }
    fn flip(&mut self) {
        self.steps ^= 1;
    }
}

/// Row 59: remote players who hold on are guessed right from what they held last: not one misprediction, for
/// however long the way: old news is no sign that somebody has let go.
#[test]
fn a_remote_player_who_holds_on_costs_no_misprediction() {
    let ways = [
        ("rtt=100", Announce::Ahead),
        ("rtt=400", Announce::Ahead),
        ("rtt=40", Announce::Never),
        ("rtt=400", Announce::Never),
    ];
    for (link, announce) in ways {
        let mut config = RigConfig::new(3, link.parse().unwrap());
        config.policies.announce = announce;
        let mut rig = Rig::<March>::new(config);
        rig.run(SECOND * 5);
        let before: Vec<u64> = (0..4).map(|i| rig.stats(i).timeline.rebuilds).collect();
        rig.run(SECOND * 20);
        for (i, before) in before.into_iter().enumerate() {
            assert_eq!(rig.stats(i).timeline.rebuilds, before, "client {i}, {link}");
        }
        assert!(rig.game.world().sim().steps > 10_000);
    }
}

/// Row 79: each packet of a client says which confirmed tick its screen was built on, and whoever decides an
/// outcome can look at that: here for a client that has heard nothing for a while.
#[test]
fn a_resolver_knows_what_the_asking_player_saw() {
    let seen: Arc<Mutex<Vec<(Tick, Tick, bool)>>> = Arc::default();
    let notes = seen.clone();
    let resolver = move |look: &Look<'_, History>, _: Key, _: &u32| {
        let view = look.view(PlayerId(0));
        let there = look.at(view).is_some();
        notes.lock().unwrap().push((look.tick(), view, there));
        Resolution::Now(1)
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
            // The packet with the order is on its way; later ones would tell of newer screens.
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
