//! Background rebuilds compared with a twin that rebuilds inline (Finding K7): both receive the same packets and hold
//! the same controls, and show the same, at most one frame later. On slow machines only the lead is shortened.
//!
//! ```text
//!  match ── lossy link ──┬──▶ inline      ──▶ up (one of the two speaks for both)
//!                        └──▶ background ──╳
//!            wrong guess:   inline shows it rebuilt in frame n, background in frame n + 1
//! ```

use std::collections::BTreeMap;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread;
use std::time::Duration;

use serde::{Deserialize, Serialize};
use twinstep_client::{
    Client, CueKind, Poses, Reconcile, Scene, Session, SessionConfig, Show, Smoothing, show_with,
};
use twinstep_core::bounds::PACKET_BYTES_MAX;
use twinstep_core::{Effects, Frame, Key, Mwc, Never, PlayerId, Simulation, Tick};
use twinstep_protocol::simnet::{LinkProfile, SimLink};
use twinstep_rig::direct::no_queries;
use twinstep_rig::game_types;
use twinstep_rig::history::History;
use twinstep_rig::rig::{InputPattern, Rig, RigConfig};
use twinstep_server::config::Announce;
use twinstep_server::{Match, MatchConfig, Output, SessionId};
use twinstep_udp::{SimulatedTransport, Transport};

const FRAME: Duration = Duration::from_nanos(16_666_667);
const SECOND: u32 = 60;
const PLAYERS: usize = 3;
const BUDGET: u32 = 128;

/// Players walk by their inputs, drag each other along, and sometimes ring a bell.
#[derive(Clone, Debug, Default, Serialize, Deserialize)]
struct Walk {
    at: [i32; PLAYERS],
    gifts: u32,
}

impl Simulation for Walk {
    game_types!("walk", (), u8, u8, Never, Never, u32);

    fn step(&mut self, frame: &Frame<'_, Self>, fx: &mut Effects<Self>) {
        for (player, held) in frame.inputs() {
            self.at[player.index()] += i32::from(*held);
        }
        for i in 0..PLAYERS {
            let next = self.at[(i + 1) % PLAYERS];
            self.at[i] += (next - self.at[i]) / 64;
            if self.at[i] % 16 == 0 {
                fx.cue(
                    Key::player(PlayerId(i as u8), frame.tick().0),
                    self.at[i] as u32,
                );
            }
        }
        for (_, gift) in frame.commands() {
            self.gifts = self.gifts.wrapping_mul(31).wrapping_add((*gift).into());
        }
    }
}

fn pictures() -> impl Show<Walk, Key = u8, Pose = f32> {
    show_with(|scene: &Scene<'_, Walk>, out: &mut Poses<u8, f32>| {
        for (n, at) in scene.at.iter().enumerate() {
            out.put(n as u8, *at as f32);
        }
    })
}

/// A session that draws the prediction without smoothing, so that corrections jump.
fn session(how: Reconcile) -> Session<Walk, impl Show<Walk, Key = u8, Pose = f32>> {
    let smoothing = Smoothing::new(0.0, Duration::from_millis(100));
    let config = SessionConfig::<Walk>::new(Arc::new(())).reconcile(how);
    let mut config = config.show(pictures(), smoothing);
    config.verify = true;
    Session::new(config).expect("rules without a NaN")
}

/// A match of three players, one of which exists twice: rebuilding inline and in the background.
struct Twins<V: Show<Walk, Key = u8, Pose = f32>> {
    match_: Match<Walk>,
    twins: [Session<Walk, V>; 2],
    cues: [CuesOfTwin; 2],
    others: Vec<Session<Walk, V>>,
    lines: Vec<SimLink>,
    luck: Mwc,
    now: Duration,
    held: [u8; PLAYERS],
    quiet: bool,
}

fn twins(
    seed: u32,
    link: LinkProfile,
    announce: Announce,
) -> Twins<impl Show<Walk, Key = u8, Pose = f32>> {
    let policies = MatchConfig {
        announce,
        ..MatchConfig::action()
    };
    let mut match_ = Match::new(policies, Walk::default(), Arc::new(()), no_queries())
        .expect("a sound configuration");
    for n in 0..PLAYERS {
        let peer = SessionId(n as u64);
        match_
            .connect(Duration::ZERO, peer, &format!("player {n}"), 1)
            .expect("a free seat");
    }
    Twins {
        match_,
        twins: [Reconcile::Inline, Reconcile::Background].map(session),
        cues: Default::default(),
        others: (1..PLAYERS).map(|_| session(Reconcile::Inline)).collect(),
        lines: (0..PLAYERS)
            .map(|n| SimLink::new(link, u64::from(seed) * 7 + n as u64))
            .collect(),
        luck: Mwc::seed(seed.into()),
        now: Duration::ZERO,
        held: [0; PLAYERS],
        quiet: false,
    }
}

impl<V: Show<Walk, Key = u8, Pose = f32>> Twins<V> {
    /// Runs one frame of all clients. The server receives only the packets of the twin `speaks`.
    fn frame(&mut self, speaks: usize) {
        self.now += FRAME;
        let now = self.now;
        for held in &mut self.held {
            // Inputs are held for a while, as humans hold them.
            if self.quiet {
                *held = 0;
            } else if self.luck.below(4) == 0 {
                *held = self.luck.below(5) as u8;
            }
        }
        let mut buffer = [0; PACKET_BYTES_MAX];
        let order = (!self.quiet && self.luck.below(20) == 0).then(|| self.luck.below(200) as u8);
        while let Some(packet) = self.lines[0].down.poll(now) {
            self.twins
                .iter_mut()
                .for_each(|twin| twin.handle(now, packet));
        }
        for (n, twin) in self.twins.iter_mut().enumerate() {
            let held = self.held[0];
            twin.advance(now, BUDGET, |_| held).expect("it plays");
            if let Some(order) = order {
                let _ = twin.command(0, order);
            }
            if let Some(mut rebuild) = twin.poll_rebuild() {
                assert_eq!(n, 1, "the inline twin has no background rebuild");
                rebuild.run();
                twin.hand_back(rebuild);
            }
            self.cues[n].read(twin);
            while let Some(len) = twin.poll_transmit(now, &mut buffer) {
                if n == speaks {
                    self.lines[0].up.send(now, &buffer[..len]);
                }
            }
        }
        for (n, session) in self.others.iter_mut().enumerate() {
            let line = &mut self.lines[n + 1];
            while let Some(packet) = line.down.poll(now) {
                session.handle(now, packet);
            }
            let held = self.held[n + 1];
            session.advance(now, BUDGET, |_| held).expect("it plays");
            while let Some(len) = session.poll_transmit(now, &mut buffer) {
                line.up.send(now, &buffer[..len]);
            }
        }
        for (n, line) in self.lines.iter_mut().enumerate() {
            while let Some(packet) = line.up.poll(now) {
                self.match_.handle(now, SessionId(n as u64), packet);
            }
        }
        self.match_.advance(now);
        while let Some(output) = self.match_.poll() {
            if let Output::Packet { peer, bytes } = output {
                self.lines[peer.0 as usize].down.send(now, bytes);
            }
        }
    }

    fn rebuilds(&self) -> u64 {
        self.twins[0].stats().timeline.rebuilds
    }

    /// The picture of a twin: the tick, the whole world, and each pose on the screen by its bits.
    fn shows(&self, twin: usize) -> (Tick, u64, Vec<(u8, u32)>) {
        let twin = &self.twins[twin];
        let world = twin.prediction().expect("it plays");
        let poses = twin.shown().map(|(key, pose)| (key, pose.to_bits()));
        (
            world.tick(),
            world.digest().expect("no NaN"),
            poses.collect(),
        )
    }

    fn confirmed(&self, twin: usize) -> (Tick, u64) {
        let world = self.twins[twin].authority().expect("it plays");
        (world.tick(), world.digest().expect("no NaN"))
    }
}

#[derive(Debug, Default)]
struct Comparison {
    /// The number of frames without a rebuild at the inline twin that showed the same at both twins (`same`), and the
    /// number that did not (`other`).
    same: u32,
    other: u32,
    rebuilt: u32,
    /// The number of differing frames that the other twin showed one frame later (`a_frame_late`), and the number that
    /// it did not (`later`).
    a_frame_late: u32,
    later: u32,
}

fn play(seed: u32, link: LinkProfile, announce: Announce, speaks: usize) -> Comparison {
    let mut twins = twins(seed, link, announce);
    for _ in 0..4 * SECOND {
        twins.frame(speaks);
    }
    let (mut seen, mut rebuilt_last) = (Comparison::default(), false);
    for frame in 0..20 * SECOND {
        let before = twins.rebuilds();
        twins.frame(speaks);
        assert_eq!(
            twins.confirmed(0),
            twins.confirmed(1),
            "seed {seed}, frame {frame}"
        );
        let rebuilt = twins.rebuilds() > before;
        let same = twins.shows(0) == twins.shows(1);
        match (rebuilt, rebuilt_last) {
            (true, _) => seen.rebuilt += 1,
            // The correction of the previous frame's wrong guess is in the picture now, wherever it was rebuilt.
            (false, true) if same => seen.a_frame_late += 1,
            (false, true) => seen.later += 1,
            (false, false) if same => seen.same += 1,
            (false, false) => seen.other += 1,
        }
        rebuilt_last = rebuilt;
    }
    for twin in &twins.twins {
        let stats = twin.stats();
        assert_eq!(
            (stats.heals, stats.timeline.step_faults),
            (0, 0),
            "seed {seed}"
        );
    }
    assert!(twins.twins[1].stats().timeline.away_steps > 100);
    // Both twins started the same sounds, each once.
    twins.quiet = true;
    for _ in 0..3 * SECOND {
        twins.frame(speaks);
    }
    assert_eq!(
        twins.shows(0),
        twins.shows(1),
        "seed {seed}: once all is quiet"
    );
    let [inline, away] = twins.cues.each_mut().map(|cues| {
        cues.confirmed.sort_unstable();
        &cues.confirmed
    });
    assert_eq!(inline, away, "seed {seed}: cues that did happen");
    assert!(inline.len() > 20, "seed {seed}: {} cues", inline.len());
    seen
}

#[derive(Debug, Default)]
struct CuesOfTwin {
    open: BTreeMap<u64, (Key, u32)>,
    confirmed: Vec<(Tick, Key, u32)>,
}

impl CuesOfTwin {
    fn read(&mut self, twin: &mut Session<Walk, impl Show<Walk>>) {
        while let Some(event) = twin.poll_cue() {
            match event.kind {
                CueKind::Started { key, cue, .. } => {
                    self.open.insert(event.id.0, (key, cue));
                }
                CueKind::Confirmed { at } => {
                    let (key, cue) = self.open.remove(&event.id.0).expect("it was started");
                    self.confirmed.push((at, key, cue));
                }
                CueKind::Cancelled => {
                    self.open.remove(&event.id.0).expect("it was started");
                }
            }
        }
    }
}

/// Finding K7: without announcements, both pictures are bit for bit the same in every frame in which the inline twin
/// does not rebuild. Each of its rebuilds appears in the other picture exactly one frame later.
#[test]
fn a_background_rebuild_shows_the_same_picture_at_most_one_frame_later() {
    for (seed, link) in [
        (1, LinkProfile::WAN),
        (2, LinkProfile::BAD),
        (3, LinkProfile::AWFUL),
        (4, "rtt=200,jitter=0,loss=0".parse().expect("a link")),
    ] {
        // It does not matter which twin sends, because the server cannot distinguish them.
        for speaks in 0..2 {
            let seen = play(seed, link, Announce::Never, speaks);
            assert_eq!((seen.other, seen.later), (0, 0), "seed {seed}: {seen:?}");
            assert!(
                seen.rebuilt > 100 && seen.a_frame_late > 50,
                "seed {seed}: {seen:?}"
            );
        }
    }
}

/// The background twin shows a rebuild a frame later, and may have received announcements in that frame, so its picture
/// is sometimes closer to the truth.
#[test]
fn with_announcements_the_background_twin_differs_in_at_most_a_tenth_of_the_frames() {
    let seen = play(5, LinkProfile::WAN, MatchConfig::action().announce, 0);
    let all = seen.same + seen.other + seen.a_frame_late + seen.later;
    assert!(seen.rebuilt > 20, "{seen:?}");
    assert!((seen.other + seen.later) * 10 <= all, "{seen:?}");
}

#[derive(Clone, Debug, Default, Serialize, Deserialize)]
struct Gated(i64);

static SHUT: AtomicBool = AtomicBool::new(false);
static STUCK: AtomicBool = AtomicBool::new(false);

impl Simulation for Gated {
    game_types!("gated");

    fn step(&mut self, frame: &Frame<'_, Self>, _: &mut Effects<Self>) {
        self.0 += frame
            .inputs()
            .map(|(_, held)| i64::from(*held))
            .sum::<i64>();
        if thread::current().name() == Some("twinstep rebuild") {
            while SHUT.load(Ordering::Acquire) {
                STUCK.store(true, Ordering::Release);
                thread::yield_now();
            }
        }
    }
}

/// While the worker hangs in a step, the game's thread continues: it confirms and predicts as usual, and shows the
/// rebuild once it is complete. If it waited, this test would never end.
#[test]
fn the_games_thread_continues_while_its_worker_hangs() {
    let policies = MatchConfig {
        announce: Announce::Never,
        ..MatchConfig::action()
    };
    let mut match_ = Match::new(policies, Gated::default(), Arc::new(()), no_queries())
        .expect("a sound configuration");
    let link = "rtt=60,jitter=0,loss=0".parse().expect("a link");
    let config = || SessionConfig::<Gated>::new(Arc::new(()));
    let mut clients: Vec<_> = [Reconcile::Background, Reconcile::Inline]
        .into_iter()
        .enumerate()
        .map(|(n, how)| {
            match_
                .connect(
                    Duration::ZERO,
                    SessionId(n as u64),
                    &format!("player {n}"),
                    1,
                )
                .expect("a free seat");
            let (client, server) = SimulatedTransport::pair(link, n as u64);
            let session = Session::new(config().reconcile(how)).expect("rules without a NaN");
            (Client::with_transport(client, session), server)
        })
        .collect();
    let mut now = Duration::ZERO;
    let mut frames =
        |clients: &mut Vec<(Client<Gated, _, SimulatedTransport>, SimulatedTransport)>,
         count: u32,
         theirs: &dyn Fn(u32) -> u8| {
            for frame in 0..count {
                now += FRAME;
                for (n, (client, _)) in clients.iter_mut().enumerate() {
                    let held = if n == 1 { theirs(frame) } else { 1 };
                    client
                        .advance_at(now, || Duration::ZERO, |_| held)
                        .expect("it plays");
                }
                let mut buffer = [0; PACKET_BYTES_MAX];
                for (n, (_, server)) in clients.iter_mut().enumerate() {
                    server.advance(now);
                    while let Some(len) = server.poll(&mut buffer) {
                        match_.handle(now, SessionId(n as u64), &buffer[..len]);
                    }
                }
                match_.advance(now);
                while let Some(output) = match_.poll() {
                    if let Output::Packet { peer, bytes } = output {
                        let _ = clients[peer.0 as usize].1.send(bytes);
                    }
                }
            }
        };
    frames(&mut clients, 3 * SECOND, &|_| 0);
    SHUT.store(true, Ordering::Release);
    let before = clients[0].0.session().stats();
    // Each of these is a wrong guess; the first one's rebuild hangs.
    frames(&mut clients, SECOND, &|frame| (frame / 4 % 2) as u8);
    while !STUCK.load(Ordering::Acquire) {
        thread::yield_now();
    }
    frames(&mut clients, 4 * SECOND, &|frame| (frame / 4 % 2) as u8);
    let after = clients[0].0.session().stats();
    let passed = after.authority_tick - before.authority_tick;
    assert!(passed >= 5 * SECOND - 4, "{passed} ticks were confirmed");
    assert!(
        after.input_tick - before.input_tick >= 5 * SECOND - 4,
        "inputs were sampled"
    );
    assert!(after.fills == before.fills, "and every input was in time");
    assert_eq!(
        after.timeline.away_steps, before.timeline.away_steps,
        "no rebuild came back"
    );
    SHUT.store(false, Ordering::Release);
    // Until the rebuild is back, because the thread takes real time.
    let mut tries = 0;
    while clients[0].0.session().stats().timeline.away_steps == before.timeline.away_steps {
        thread::sleep(Duration::from_millis(1));
        frames(&mut clients, 1, &|frame| (frame / 4 % 2) as u8);
        tries += 1;
        assert!(tries < 60_000, "the rebuild never comes back");
    }
    assert_eq!(clients[0].0.session().stats().heals, 0);
}

/// Steps take 2 ms or 5 ms. Two 2 ms steps fit into a 4 ms frame, and a rebuild over a 16-tick lead takes two frames,
/// or five with 5 ms steps.
#[test]
fn expensive_steps_cost_only_lead_and_never_inputs_or_confirmed_frames() {
    let played = |late: Option<u32>, budget: u32| {
        let mut config = RigConfig::new(9, "rtt=200,jitter=0,loss=0".parse().expect("a link"));
        config.policies.announce = Announce::Never;
        config.input_pattern = InputPattern::Analog;
        config.fps = 60;
        config.budget = budget;
        config.rebuilds_late = late;
        let mut rig = Rig::<History>::new(config);
        rig.run(Duration::from_secs(5));
        let fills: Vec<u64> = (0..4).map(|i| rig.stats(i).fills).collect();
        rig.run(Duration::from_secs(20));
        for (i, fills) in fills.into_iter().enumerate() {
            let stats = rig.stats(i);
            let what =
                format!("client {i}, {late:?} frames late, {budget} steps a frame: {stats:?}");
            assert_eq!(stats.fills, fills, "inputs: {what}");
            let behind = rig.match_.world().tick().0 - stats.authority_tick;
            assert!(behind <= 12, "confirmed: {behind} ticks behind, {what}");
            assert_eq!((stats.heals, stats.timeline.step_faults), (0, 0), "{what}");
            assert!(
                stats.input_tick > stats.authority_tick + 10,
                "inputs continue: {what}"
            );
        }
        let shed_ms = (0..4)
            .map(|i| rig.stats(i).shed_ms)
            .fold(f64::MAX, f64::min);
        let lead = rig.stats(0).lead_ticks_mean;
        // Commands run, and all worlds converge.
        rig.converge();
        (lead, shed_ms)
    };
    let (full, unshed_ms) = played(Some(1), BUDGET);
    assert_eq!(unshed_ms, 0.0, "no lead is shed where steps fit");
    assert!(
        full > 14.0,
        "a rebuild within a frame costs no lead: {full}"
    );
    for late in [2, 5] {
        let (lead, shed_ms) = played(Some(late), 2);
        println!("{late} frames late: {lead} of {full} ticks, {shed_ms} ms shed");
        assert!(
            lead < full - 2.0,
            "{late} frames late: a lead of {lead} of {full} ticks"
        );
        assert!(
            shed_ms > 1_000.0,
            "{late} frames late: shed for {shed_ms} ms"
        );
    }
    // Inline, the same machine shows even less, because the whole rebuild is in the game's frame.
    let (inline, shed_ms) = played(None, 2);
    println!("inline: {inline} of {full} ticks, {shed_ms} ms shed");
    assert!(
        inline < full - 2.0 && shed_ms > 1_000.0,
        "inline: {inline} of {full}, {shed_ms} ms"
    );
}
