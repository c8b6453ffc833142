//! A simulated world in virtual time: one match, its clients, and a bad network between them.

use std::collections::VecDeque;
use std::ops::{Deref, DerefMut};
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use asked_queries::Asked;
use background::Elsewhere;
use hooks::{COUNTER, Judge, watched};
use twinstep_client::{Reconcile, Session, SessionStats, Smoothing};
use twinstep_core::bounds::PACKET_BYTES_MAX;
use twinstep_core::{Key, Mwc, PlayerId, PlayerSet, Tick};
use twinstep_protocol::packet::ByteCounts;
use twinstep_protocol::packet::closed::CloseCode;
use twinstep_protocol::simnet::{LegProfile, LinkProfile, SimLink};
use twinstep_server::config::StartWhen;
use twinstep_server::peer::SessionStage;
use twinstep_server::{Match, SessionId};
use twinstep_testing::scene::{Place, Scene};

mod asked_queries;
mod background;
mod checks;
mod client;
mod crash;
mod fairness;
mod hooks;
mod hostile;
mod play;
mod reconnect;
mod time;
mod waits;

pub use client::RigClient;
pub use crash::Crash;
pub use play::{InitialWorldKnowledge, InputPattern, Play, RigConfig, Role};
pub use twinstep_testing::scene::Recorded;

/// A link that loses every packet to the server.
pub const MUTE: LinkProfile = LinkProfile {
    up: LegProfile::BLACKOUT,
    down: LegProfile::PERFECT,
};
pub const DEAF: LinkProfile = LinkProfile {
    up: LegProfile::PERFECT,
    down: LegProfile::BLACKOUT,
};

const TICKET_BYTES: usize = 1_190;

#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Counts {
    /// How much the [counter](Rig::count_with) rose in all clients' `handle`, `advance` and drain.
    pub client: u64,
    /// How much the counter rose in the match's `handle`, `advance` and drain, without its resolver.
    pub server: u64,
    pub resolver: u64,
}

/// A scene with its match and clients, the faults injected into it, and the checks.
pub struct Rig<S: Play> {
    scene: Scene<S, RigClient<S>>,
    pub journal: Vec<u8>,
    // Each save and the player that requested it; `None` for the host.
    pub saves: Vec<(Option<PlayerId>, Vec<u8>)>,
    pub config: RigConfig,
    rules: Arc<S::Rules>,
    given: Vec<S::Command>,
    digests: Vec<u64>,
    luck: Mwc,
    next_peer: u64,
    players_so_far: u32,
    buffer: Box<[u8; PACKET_BYTES_MAX]>,
    observed: bool,
    counter: fn() -> u64,
    counts: Counts,
    resolver_count: Arc<AtomicU64>,
    asked: Arc<Asked>,
    worked: Duration,
    /// The end of the server's last outage.
    served_since: Duration,
    excuse: Duration,
    /// When the match was resumed. `None` unless it still waits for its players.
    returning_since: Option<Duration>,
    /// The players for which the match waited at the last check.
    waited_for: PlayerSet,
    removals: u64,
    hostile: hostile::Hostile,
    elsewhere: Elsewhere,
    /// Whether a client corrupts its packets, or did earlier.
    spoiled: bool,
    /// The total time by which lying or lagging clients have slowed the match.
    slowed: Duration,
    /// The identities of clients that left, with their numbers of seats.
    left: Vec<(String, usize)>,
    looked_at: Duration,
    moved: (Tick, Duration),
    /// The match's first incidents, for the message of a failed check.
    incidents: Vec<String>,
}

impl<S: Play> Deref for Rig<S> {
    type Target = Scene<S, RigClient<S>>;

    fn deref(&self) -> &Self::Target {
        &self.scene
    }
}

impl<S: Play> DerefMut for Rig<S> {
    fn deref_mut(&mut self) -> &mut Self::Target {
        &mut self.scene
    }
}

impl<S: Play> Rig<S> {
    /// Creates a world at time 0. Its clients are about to join.
    #[must_use]
    pub fn new(config: RigConfig) -> Self {
        let rules = Arc::new(S::rules_for(&config));
        let sim = S::start(&rules, config.seed);
        let resolver_count = Arc::new(AtomicU64::new(0));
        let asked = Arc::new(Asked::default());
        let resolver = watched::<S>(&rules, config.seed, &resolver_count, &asked);
        let mut match_ = Match::new(config.policies.clone(), sim, rules.clone(), resolver)
            .expect("the game starts");
        match_.set_referee(Judge);
        let mut elsewhere = Elsewhere::new(config.seed, config.encodes_within);
        elsewhere.serve(&mut match_);
        if config.journal {
            match_.keep_journal().expect("a journal");
        }
        let mut rig = Rig {
            scene: Scene::new(match_),
            journal: Vec::with_capacity(64 << 20),
            saves: Vec::new(),
            rules,
            given: Vec::with_capacity(1 << 12),
            digests: Vec::with_capacity(1 << 16),
            luck: Mwc::seed(config.seed),
            next_peer: 1,
            players_so_far: 0,
            buffer: Box::new([0; PACKET_BYTES_MAX]),
            observed: true,
            counter: || 0,
            counts: Counts::default(),
            resolver_count,
            asked,
            worked: Duration::ZERO,
            served_since: Duration::ZERO,
            excuse: Duration::ZERO,
            returning_since: None,
            waited_for: PlayerSet::default(),
            removals: 0,
            hostile: hostile::Hostile::new(config.seed),
            elsewhere,
            spoiled: false,
            slowed: Duration::ZERO,
            left: Vec::new(),
            looked_at: Duration::ZERO,
            moved: (Tick(0), Duration::ZERO),
            incidents: Vec::new(),
            config,
        };
        for i in 0..rig.config.clients {
            rig.join(&format!("player {i}"));
        }
        rig
    }

    pub fn observe(&mut self, observe: bool) {
        self.observed = observe;
    }

    /// Sets a counter of this thread (allocations, CPU time). [`counts`](Rig::counts) returns how much it rose.
    pub fn count_with(&mut self, counter: fn() -> u64) {
        self.counter = counter;
        COUNTER.set(counter);
    }

    #[must_use]
    pub fn counts(&self) -> Counts {
        let resolver = self.resolver_count.load(Ordering::Relaxed);
        Counts {
            resolver,
            server: self.counts.server - resolver,
            ..self.counts
        }
    }

    /// Lets a client join now. Returns its index among the clients.
    pub fn join(&mut self, identity: &str) -> usize {
        self.join_with(identity, 1).expect("a seat is free")
    }

    /// Lets a client with `seats` seats join now (0 for a spectator). Returns its index among the clients.
    pub fn join_with(&mut self, identity: &str, seats: usize) -> Result<usize, CloseCode> {
        let peer = self.dial(identity, seats)?;
        let luck = self.luck.fork(Key::new(peer.0, 0));
        let (frame, now) = (Duration::from_secs(1) / self.config.fps, self.now);
        let mut place = Place::new(peer, self.new_line(peer), frame, now);
        place.relink(self.new_line(peer), self.config.passes);
        self.scene.clients.push(RigClient {
            session: self.new_session(peer),
            place,
            identity: identity.to_owned(),
            seats,
            sent: Vec::with_capacity(1 << 12),
            flipped: false,
            desync: None,
            events: Vec::new(),
            tickets: 0,
            restarted: false,
            drivers: (0..seats.max(1))
                .map(|seat| {
                    let luck = match seat {
                        0 => luck.clone(),
                        _ => luck.fork(Key::new(peer.0, seat as u32)),
                    };
                    let mut driver = S::driver(self.config.input_pattern, luck);
                    // Different clients may draw equal values, and equal commands would be mistaken for one.
                    if self.config.fair {
                        self.players_so_far += 1;
                        S::number(&mut driver, self.players_so_far);
                    }
                    driver
                })
                .collect(),
            role: Role::Honest,
            ahead: Duration::ZERO,
            drift_ppm: 0,
            excuse: Duration::ZERO,
            cut_at: None,
            heals_since: None,
            awaited: client::Awaited::default(),
            left_out_since: (now, self.excuse),
            received_at: VecDeque::new(),
            given_at: VecDeque::new(),
            settled: 0,
            malformed: 0,
            compared: None,
            gone_to: (0, 0),
            arrived_at: now,
            packets_sent: 0,
            is_doubtful: client::is_doubtful(&self.config.link),
            was_dropped: false,
            held: None,
            decided: None,
            busy: Duration::ZERO,
            busy_since: now,
            sleeps: false,
            calls: 0,
            step_cost: self.config.step_cost,
            rebuild: None,
            commanding: true,
            healed: 0,
        });
        Ok(self.clients.len() - 1)
    }

    fn dial(&mut self, identity: &str, seats: usize) -> Result<SessionId, CloseCode> {
        let peer = SessionId(self.next_peer);
        self.next_peer += 1;
        let now = self.now;
        self.match_.connect(now, peer, identity, seats)?;
        self.drain();
        Ok(peer)
    }

    fn new_session(&self, peer: SessionId) -> Session<S, S::Show> {
        let smoothing = Smoothing::new(8.0, Duration::from_millis(100));
        let forge = self.config.forge;
        let waits = self.config.policies.start_when != StartWhen::Immediately;
        let mut config = S::session(&self.rules, !waits || peer.0.is_multiple_of(2))
            .speculate(|sim: &S, rules: &S::Rules, _: Key, query: &S::Query| {
                S::speculate(sim, rules, query)
            })
            .resolve(move |sim: &S, rules: &S::Rules, _: Key, query: &S::Query| {
                S::answer(sim, rules, query, forge)
            })
            .show(S::show(&self.rules), smoothing);
        config.verify = self.config.verify;
        config.taped = self.config.taped;
        let seed = self.config.seed;
        let start = |wrong: u64| S::start(&self.rules, seed ^ wrong);
        config.start = match (self.config.initial_world_knowledge, peer.0 % 4) {
            (InitialWorldKnowledge::Known, _) | (InitialWorldKnowledge::Mixed, 0 | 1) => {
                Some(start(0))
            }
            (InitialWorldKnowledge::Mixed, 2) => Some(start(1)),
            (InitialWorldKnowledge::Unknown, _) | (InitialWorldKnowledge::Mixed, _) => None,
        };
        config.reconcile = match self.config.rebuilds_late {
            None => Reconcile::Inline,
            Some(_) => self.config.reconcile,
        };
        let mut session = Session::new(config).expect("rules without NaN");
        session.ready(waits);
        session
    }

    fn new_line(&self, peer: SessionId) -> SimLink {
        let seed = self.config.seed ^ peer.0.wrapping_mul(0x9e37_79b9_7f4a_7c15);
        let mut line = SimLink::new(self.config.link, seed);
        line.up.reserve(256);
        line.down.reserve(256);
        line
    }

    /// Makes a client leave: delivers its goodbye to the server, and returns the removed client.
    pub fn leave(&mut self, client: usize) -> RigClient<S> {
        let mut gone = self.clients.remove(client);
        self.left.push((gone.identity.clone(), gone.seats));
        gone.session.leave();
        let theirs = gone.time(self.now);
        while let Some(len) = gone.session.poll_transmit(theirs, &mut *self.buffer) {
            let Scene { match_, now, .. } = &mut self.scene;
            match_.handle(*now, gone.peer(), &self.buffer[..len]);
        }
        self.drain();
        gone
    }

    pub fn freeze(&mut self, client: usize, until: Duration) {
        self.clients[client].place.frozen_until = until;
        self.disturb(client, until);
    }

    pub fn stall(&mut self, until: Duration) {
        self.stalled_until = until;
        self.disturb_all(until);
    }

    /// Corrupts one client's state, as a desync would.
    pub fn flip(&mut self, client: usize) {
        self.spoil(client, S::flip);
    }

    pub fn spoil(&mut self, client: usize, change: impl FnOnce(&mut S)) {
        let client = &mut self.clients[client];
        client.session.corrupt(change);
        client.flipped = true;
        client.healed = client.session.stats().heals;
        client.compared = None;
    }

    /// Permits one client's confirmed state to differ from now on.
    pub fn flip_excuse(&mut self, client: usize) {
        self.clients[client].flipped = true;
        self.clients[client].healed = u64::MAX;
    }

    pub fn record(&mut self, time: Duration) -> Recorded {
        self.clients[0].place.recorded = Some(Recorded::default());
        self.run(time);
        self.clients[0].place.recorded.take().unwrap_or_default()
    }

    pub fn draw_at(&mut self, client: usize, fps: u32) {
        self.clients[client].place.frame = Duration::from_secs(1) / fps;
    }

    /// The real time that the match took in `handle`, `advance` and drain on this machine. The simulation does not
    /// depend on it.
    #[must_use]
    pub fn worked(&self) -> Duration {
        self.worked
    }

    pub fn relink(&mut self, client: usize, link: LinkProfile) {
        let now = self.now;
        let theirs = &mut self.clients[client];
        theirs.place.line.set_profile(link);
        theirs.is_doubtful = client::is_doubtful(&link);
        theirs.arrived_at = now;
        self.disturb(client, now);
    }

    pub fn command(&mut self, commanding: bool) {
        for client in &mut self.clients {
            client.commanding = commanding;
        }
    }

    #[must_use]
    pub fn resolved(&self) -> usize {
        self.asked.count()
    }

    pub fn hold(&mut self, client: usize, input: Option<S::Input>) {
        let client = &mut self.clients[client];
        client.held = input;
        client.decided = None;
    }

    #[must_use]
    pub fn stats(&self, client: usize) -> SessionStats {
        self.clients[client].session.stats()
    }

    #[must_use]
    pub fn bytes_down(&self, client: usize) -> ByteCounts {
        self.match_
            .bytes_down(self.clients[client].peer())
            .unwrap_or_default()
    }

    #[must_use]
    pub fn all_play(&self) -> bool {
        self.clients
            .iter()
            .all(|c| self.match_.stage(c.peer()) == Some(SessionStage::Playing))
    }

    pub fn luck(&mut self) -> &mut Mwc {
        &mut self.luck
    }
}
