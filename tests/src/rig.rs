//! A world in virtual time: one match, some clients, a bad network between them.

use std::cell::Cell;
use std::collections::BTreeSet;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use twinstep_client::cues::{CueId, CueKind};
use twinstep_client::picture::Smoothing;
use twinstep_client::stats::SessionStats;
use twinstep_client::{Event, Session, SessionConfig};
use twinstep_core::bounds::{INPUT_WINDOW, LEAD_MAX, PACKET_BYTES_MAX, QUERIES_OPEN_MAX};
use twinstep_core::packet::ByteCounts;
use twinstep_core::packet::hello::CloseCode;
use twinstep_core::simnet::{Link, LinkProfile};
use twinstep_core::world::World;
use twinstep_core::{Key, Mwc, PlayerId, Tick};
use twinstep_server::game::Folded;
use twinstep_server::peer::Stage;
use twinstep_server::{JobId, Look, Match, Output, PeerId, Referee, Resolver};

use crash::Asked;

mod checks;
mod crash;
mod play;
mod reconnect;

pub use crash::Crash;
pub use play::{Play, RigConfig, Sticks};

/// About as large as a real ticket to return with.
const TICKET_BYTES: usize = 1_190;

thread_local! {
    /// What counts allocations: reached by the resolver too, which the match owns.
    static COUNTER: Cell<fn() -> u64> = const { Cell::new(|| 0) };
}

/// One client of the rig.
pub struct RigClient<S: Play> {
    /// Its session.
    pub session: Session<S, S::Show>,
    /// Its session's number at the server.
    pub peer: PeerId,
    /// Who it is.
    pub identity: String,
    /// How many seats it has; none: it watches.
    pub seats: usize,
    /// Its two legs.
    pub net: Link,
    /// Commands that it gave, with their sequences.
    pub sent: Vec<(u32, S::Command)>,
    /// Whether a desync was planted in it, so that its digest may differ until it is healed.
    pub flipped: bool,
    /// What its last desync report said.
    pub desync: Option<String>,
    /// What its session told, beside desyncs.
    pub events: Vec<Event>,
    /// Tickets to return with that it was handed.
    pub tickets: usize,
    /// Whether its process began anew, so that it does not know what the one before gave.
    pub restarted: bool,
    driver: S::Driver,
    /// What it holds instead of what its driver decides.
    held: Option<S::Input>,
    decided: Option<S::Input>,
    open_cues: BTreeSet<CueId>,
    frame: Duration,
    next_frame: Duration,
    frozen_until: Duration,
    busy: Duration,
    busy_since: Duration,
    /// What a step costs its machine.
    pub step_cost: Duration,
    commanding: bool,
    healed: u64,
}

/// Packets that crossed the first client's link for a while.
#[derive(Clone, Debug, Default)]
pub struct Recorded {
    /// Of the client.
    pub up: Vec<Vec<u8>>,
    /// Of the server.
    pub down: Vec<Vec<u8>>,
}

/// Allocations counted so far, by part.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Counts {
    /// Of all clients: `handle`, `advance`, drain.
    pub client: u64,
    /// Of the match: `handle`, `advance`, drain; without its resolver.
    pub server: u64,
    /// Of the resolver, which is the game's own.
    pub resolver: u64,
}

/// A whole world.
pub struct Rig<S: Play> {
    /// The server's match.
    pub game: Match<S>,
    /// The clients.
    pub clients: Vec<RigClient<S>>,
    /// The journal so far.
    pub journal: Vec<u8>,
    /// Virtual time.
    pub now: Duration,
    /// What it is like.
    pub config: RigConfig,
    rules: Arc<S::Rules>,
    /// Every command that any client gave.
    given: Vec<S::Command>,
    digests: Vec<u64>,
    luck: Mwc,
    jobs: Vec<(Duration, JobId, S::Outcome)>,
    stalled_until: Duration,
    next_peer: u64,
    buffer: Box<[u8; PACKET_BYTES_MAX]>,
    observed: bool,
    counter: fn() -> u64,
    counts: Counts,
    resolver_count: Arc<AtomicU64>,
    asked: Arc<Asked>,
    recorded: Option<Recorded>,
    worked: Duration,
}

impl<S: Play> Rig<S> {
    /// A world at time 0 whose clients are about to join.
    ///
    /// # Panics
    /// If the game cannot be started.
    #[must_use]
    pub fn new(config: RigConfig) -> Self {
        let rules = Arc::new(S::rules(config.crowd));
        let sim = S::start(&rules, config.seed);
        let resolver_count = Arc::new(AtomicU64::new(0));
        let asked = Arc::new(Asked::default());
        let resolver = watched::<S>(&rules, config.seed, &resolver_count, &asked);
        let mut game = Match::new(config.policies.clone(), sim, rules.clone(), resolver)
            .expect("the game starts");
        game.set_referee(Judge);
        if config.journal {
            game.keep_journal().expect("a journal");
        }
        let mut rig = Rig {
            game,
            clients: Vec::new(),
            journal: Vec::with_capacity(64 << 20),
            now: Duration::ZERO,
            rules,
            given: Vec::with_capacity(1 << 12),
            digests: Vec::with_capacity(1 << 16),
            luck: Mwc::seed(config.seed),
            jobs: Vec::with_capacity(256),
            stalled_until: Duration::ZERO,
            next_peer: 1,
            buffer: Box::new([0; PACKET_BYTES_MAX]),
            observed: true,
            counter: || 0,
            counts: Counts::default(),
            resolver_count,
            asked,
            recorded: None,
            worked: Duration::ZERO,
            config,
        };
        for i in 0..rig.config.clients {
            rig.join(&format!("player {i}"));
        }
        rig
    }

    /// Turns the checks of every frame off or on (they cost allocations and time).
    pub fn observe(&mut self, observe: bool) {
        self.observed = observe;
    }

    /// Sets what counts allocations on this thread; see [`counts`](Rig::counts).
    pub fn count_with(&mut self, counter: fn() -> u64) {
        self.counter = counter;
        COUNTER.set(counter);
    }

    /// Allocations so far.
    #[must_use]
    pub fn counts(&self) -> Counts {
        let resolver = self.resolver_count.load(Ordering::Relaxed);
        Counts {
            resolver,
            server: self.counts.server - resolver,
            ..self.counts
        }
    }

    /// A client joins now; its place among the clients.
    ///
    /// # Panics
    /// If the match refuses it.
    pub fn join(&mut self, identity: &str) -> usize {
        self.join_with(identity, 1).expect("a seat is free")
    }

    /// A client of so many seats joins now (none: it watches); its place among the clients.
    ///
    /// # Errors
    /// The match refuses it.
    pub fn join_with(&mut self, identity: &str, seats: usize) -> Result<usize, CloseCode> {
        let peer = self.dial(identity, seats)?;
        let luck = self.luck.fork(Key::new(peer.0, 0));
        let frame = Duration::from_secs(1) / self.config.fps;
        self.clients.push(RigClient {
            session: self.new_session(),
            peer,
            identity: identity.to_owned(),
            seats,
            net: self.new_net(peer),
            sent: Vec::with_capacity(1 << 12),
            flipped: false,
            desync: None,
            events: Vec::new(),
            tickets: 0,
            restarted: false,
            driver: S::driver(self.config.sticks, luck),
            held: None,
            decided: None,
            open_cues: BTreeSet::new(),
            frame,
            // Every client draws in a phase of its own.
            next_frame: self.now + frame * (peer.0 as u32 % 7) / 7,
            frozen_until: Duration::ZERO,
            busy: Duration::ZERO,
            busy_since: self.now,
            step_cost: self.config.step_cost,
            commanding: true,
            healed: 0,
        });
        Ok(self.clients.len() - 1)
    }

    /// The match is told of a new transport.
    fn dial(&mut self, identity: &str, seats: usize) -> Result<PeerId, CloseCode> {
        let peer = PeerId(self.next_peer);
        self.next_peer += 1;
        self.game.connect(self.now, peer, identity, seats)?;
        self.drain();
        Ok(peer)
    }

    /// A session that has not said anything yet.
    fn new_session(&self) -> Session<S, S::Show> {
        let smoothing = Smoothing {
            teleport: 8.0,
            muzzle: Duration::from_millis(100),
        };
        let forge = self.config.forge;
        let mut config = SessionConfig::new(self.rules.clone())
            .speculate(|sim: &S, rules: &S::Rules, _: Key, query: &S::Query| {
                S::speculate(sim, rules, query)
            })
            .resolve(move |sim: &S, rules: &S::Rules, _: Key, query: &S::Query| {
                S::answer(sim, rules, query, forge)
            })
            .show(S::show(&self.rules), smoothing);
        config.verify = self.config.verify;
        Session::new(config).expect("rules without NaN")
    }

    fn new_net(&self, peer: PeerId) -> Link {
        let seed = self.config.seed ^ peer.0.wrapping_mul(0x9e37_79b9_7f4a_7c15);
        let mut net = Link::new(self.config.link, seed);
        net.up.reserve(256);
        net.down.reserve(256);
        net
    }

    /// A client says goodbye and is gone once the server heard it.
    pub fn leave(&mut self, client: usize) -> RigClient<S> {
        let mut gone = self.clients.remove(client);
        gone.session.leave();
        while let Some(len) = gone.session.poll_transmit(self.now, &mut *self.buffer) {
            self.game.handle(self.now, gone.peer, &self.buffer[..len]);
        }
        self.drain();
        gone
    }

    /// A client's process stands still until `until`.
    pub fn freeze(&mut self, client: usize, until: Duration) {
        self.clients[client].frozen_until = until;
    }

    /// The server's process stands still until `until`.
    pub fn stall(&mut self, until: Duration) {
        self.stalled_until = until;
    }

    /// A state that no frame told, in one client.
    pub fn flip(&mut self, client: usize) {
        let client = &mut self.clients[client];
        client.session.corrupt(S::flip);
        client.flipped = true;
        client.healed = client.session.stats().heals;
    }

    /// Lets a client's authority be wrong from now on.
    pub fn flip_excuse(&mut self, client: usize) {
        self.clients[client].flipped = true;
        self.clients[client].healed = u64::MAX;
    }

    /// Runs for a while, and keeps the first client's packets of both directions.
    pub fn record(&mut self, time: Duration) -> Recorded {
        self.recorded = Some(Recorded::default());
        self.run(time);
        self.recorded.take().unwrap_or_default()
    }

    /// Lets a client draw so many frames a second from now on.
    pub fn draw_at(&mut self, client: usize, fps: u32) {
        self.clients[client].frame = Duration::from_secs(1) / fps;
    }

    /// What the match's own work has taken on this machine so far: `handle`, `advance` and drain. Nothing depends
    /// on it.
    #[must_use]
    pub fn worked(&self) -> Duration {
        self.worked
    }

    /// Changes a client's links.
    pub fn relink(&mut self, client: usize, link: LinkProfile) {
        self.clients[client].net.set_profile(link);
    }

    /// Clients stop giving commands, or start again.
    pub fn command(&mut self, commanding: bool) {
        for client in &mut self.clients {
            client.commanding = commanding;
        }
    }

    /// Queries that the server's own resolver was asked.
    #[must_use]
    pub fn resolved(&self) -> usize {
        self.asked.count()
    }

    /// From its next input on a client holds this, whatever its driver decides; `None`: the driver again.
    pub fn hold(&mut self, client: usize, input: Option<S::Input>) {
        let client = &mut self.clients[client];
        client.held = input;
        client.decided = None;
    }

    /// Runs for a while; `watch` sees the world after everything that happens.
    pub fn watch(&mut self, time: Duration, mut watch: impl FnMut(&mut Self)) {
        let end = self.now + time;
        while self.now < end {
            self.now = self.next_moment().min(end);
            self.step();
            watch(self);
        }
    }

    /// Runs for a while.
    pub fn run(&mut self, time: Duration) {
        let end = self.now + time;
        while self.now < end {
            self.now = self.next_moment().min(end);
            self.step();
        }
    }

    /// The next moment at which anything happens.
    fn next_moment(&self) -> Duration {
        let server = self.game.next_due().max(self.stalled_until);
        let clients = self
            .clients
            .iter()
            .map(|client| client.next_frame.max(client.frozen_until));
        let nets = self.clients.iter().flat_map(|c| {
            [
                c.net.up.next_due().map(|due| due.max(self.stalled_until)),
                c.net.down.next_due().map(|d| d.max(c.frozen_until)),
            ]
        });
        let jobs = self.jobs.iter().map(|job| job.0.max(self.stalled_until));
        let next = clients
            .chain(nets.flatten())
            .chain(jobs)
            .fold(server, Duration::min);
        // Lanes are served often enough, and time always moves.
        next.clamp(
            self.now + Duration::from_micros(50),
            self.now + Duration::from_millis(5),
        )
    }

    fn step(&mut self) {
        let now = self.now;
        if now >= self.stalled_until {
            self.step_server();
        }
        for i in 0..self.clients.len() {
            if now >= self.clients[i].frozen_until {
                self.step_client(i);
            }
        }
    }

    #[expect(
        clippy::disallowed_methods,
        reason = "says what the match costs here; nothing depends on it"
    )]
    fn step_server(&mut self) {
        let now = self.now;
        let began = std::time::Instant::now();
        for client in &mut self.clients {
            while let Some(bytes) = client.net.up.poll(now) {
                assert!(bytes.len() <= PACKET_BYTES_MAX);
                let before = (self.counter)();
                self.game.handle(now, client.peer, bytes);
                self.counts.server += (self.counter)() - before;
            }
        }
        let mut at = 0;
        while at < self.jobs.len() {
            if self.jobs[at].0 <= now {
                let (_, id, outcome) = self.jobs.swap_remove(at);
                self.game.complete(id, Some(outcome));
            } else {
                at += 1;
            }
        }
        let before = (self.counter)();
        self.game.advance(now);
        self.drain();
        self.counts.server += (self.counter)() - before;
        self.worked += began.elapsed();
        if self.observed {
            assert!(self.game.world().open_queries().len() <= QUERIES_OPEN_MAX);
        }
        self.note_digests();
    }

    fn note_digests(&mut self) {
        let next = self.game.world().tick();
        while self.digests.len() <= next.0 as usize {
            let tick = Tick(self.digests.len() as u32);
            let digest = self
                .game
                .digest_at(tick)
                .expect("each tick's digest is taken before it is forgotten");
            self.digests.push(digest);
        }
    }

    /// Does what the match wants done, in its order: Law Journal first.
    fn drain(&mut self) {
        let (mut tickets, mut evidence) = (Vec::new(), Vec::new());
        while let Some(output) = self.game.poll() {
            match output {
                Output::Journal(bytes) => self.journal.extend_from_slice(bytes),
                Output::Packet { peer, bytes } => {
                    assert!(bytes.len() <= PACKET_BYTES_MAX);
                    if let Some(client) = self.clients.iter_mut().find(|c| c.peer == peer) {
                        client.net.down.send(self.now, bytes);
                    }
                    if let Some(recorded) = &mut self.recorded
                        && self.clients.first().is_some_and(|c| c.peer == peer)
                    {
                        recorded.down.push(bytes.to_vec());
                    }
                }
                Output::Job { id, work } => {
                    let outcome = work();
                    if !S::is_lost(&outcome) {
                        let wait = Duration::from_millis(u64::from(self.luck.below(400)));
                        self.jobs.push((self.now + wait, id, outcome));
                    }
                }
                Output::Ticket { peer } if self.config.tickets => tickets.push(peer),
                Output::Ticket { .. } => {}
                Output::Evidence { peer, tick } => evidence.push((peer, tick)),
                Output::Closed { .. } => {}
            }
        }
        for peer in tickets {
            self.game.hand_ticket(peer, vec![0x5a; TICKET_BYTES]);
        }
        for (peer, tick) in evidence {
            let (rules, hello) = self.game.origin();
            let folded = Folded::of::<S>(&self.journal, &rules, &hello, tick);
            self.game.hand_evidence(peer, tick, folded);
        }
    }

    fn step_client(&mut self, i: usize) {
        let now = self.now;
        let client = &mut self.clients[i];
        let before = (self.counter)();
        while let Some(bytes) = client.net.down.poll(now) {
            client.session.handle(now, bytes);
        }
        self.counts.client += (self.counter)() - before;
        if now >= client.next_frame {
            while client.next_frame <= now {
                client.next_frame += client.frame;
            }
            client.decide(&self.rules, &mut self.given);
            let held = client.decided.clone().unwrap_or_default();
            let mut used = false;
            let before = (self.counter)();
            let ticks_before = client.authority_tick();
            let _ = client.session.advance(now, self.config.budget, |_| {
                used = true;
                held.clone()
            });
            self.counts.client += (self.counter)() - before;
            // A slow machine is away while it steps.
            let steps = client.authority_tick() - ticks_before;
            if ticks_before > Tick(0) && !client.step_cost.is_zero() {
                let busy = client.step_cost * steps;
                client.frozen_until = client.frozen_until.max(now + busy);
                client.busy += busy;
            }
            let measured = now - client.busy_since;
            if measured >= Duration::from_secs(2) {
                let load = client.busy.as_secs_f32() / measured.as_secs_f32();
                client.session.note_load(load);
                (client.busy, client.busy_since) = (Duration::ZERO, now);
            }
            if used {
                client.decided = None;
            }
        }
        let before = (self.counter)();
        while let Some(len) = client.session.poll_transmit(now, &mut *self.buffer) {
            client.net.up.send(now, &self.buffer[..len]);
            if i == 0
                && let Some(recorded) = &mut self.recorded
            {
                recorded.up.push(self.buffer[..len].to_vec());
            }
        }
        client.read_cues(self.observed);
        client.tickets += usize::from(client.session.poll_ticket().is_some());
        while let Some(event) = client.session.poll_event() {
            match event {
                Event::Desync(report) => client.desync = Some(report),
                event => client.events.push(event),
            }
        }
        self.counts.client += (self.counter)() - before;
        if self.observed {
            self.check(i);
        }
    }

    /// The statistics of a client.
    #[must_use]
    pub fn stats(&self, client: usize) -> SessionStats {
        self.clients[client].session.stats()
    }

    /// Bytes sent down to a client so far.
    #[must_use]
    pub fn bytes_down(&self, client: usize) -> ByteCounts {
        self.game
            .bytes_down(self.clients[client].peer)
            .unwrap_or_default()
    }

    /// Whether all clients are in the match.
    #[must_use]
    pub fn all_play(&self) -> bool {
        self.clients
            .iter()
            .all(|c| self.game.stage(c.peer) == Some(Stage::Playing))
    }

    /// A fraction of chance, for plans.
    pub fn luck(&mut self) -> &mut Mwc {
        &mut self.luck
    }
}

/// Admits what the game says.
struct Judge;

impl<S: Play> Referee<S> for Judge {
    fn admit(&mut self, look: &Look<'_, S>, by: PlayerId, command: &S::Command, _: bool) -> bool {
        look.sim().admit(look.rules(), by, command)
    }

    fn admit_answer(
        &mut self,
        look: &Look<'_, S>,
        _: PlayerId,
        _: Key,
        query: &S::Query,
        outcome: &S::Outcome,
    ) -> bool {
        look.sim().admit_answer(query, outcome)
    }
}

/// The game's resolver, with its allocations counted and its questions noted.
fn watched<S: Play>(
    rules: &S::Rules,
    seed: u64,
    count: &Arc<AtomicU64>,
    asked: &Arc<Asked>,
) -> impl Resolver<S> {
    let (count, asked) = (count.clone(), asked.clone());
    let mut inner = S::resolver(rules, seed);
    move |look: &Look<'_, S>, key: Key, query: &S::Query| {
        let counter = COUNTER.get();
        let before = counter();
        asked.note(key, look.tick());
        let resolution = inner.resolve(look, key, query);
        count.fetch_add(counter() - before, Ordering::Relaxed);
        resolution
    }
}

impl<S: Play> RigClient<S> {
    /// Draws so many frames a second from now on.
    pub fn draws(&mut self, fps: u32) {
        self.frame = Duration::from_secs(1) / fps;
    }

    fn authority_tick(&self) -> Tick {
        self.session.authority().map_or(Tick(0), World::tick)
    }

    /// What its player holds next, decided once for each sampled tick, and what it orders.
    fn decide(&mut self, rules: &S::Rules, given: &mut Vec<S::Command>) {
        if self.decided.is_some() {
            return;
        }
        if let Some(held) = &self.held {
            self.decided = Some(held.clone());
            return;
        }
        let Some(world) = self.session.prediction() else {
            return;
        };
        let Some(&me) = self.session.seats().first() else {
            return;
        };
        let (input, order) = world.sim().drive(&mut self.driver, rules, me, world.tick());
        self.decided = Some(input);
        if let Some(command) = order.filter(|_| self.commanding)
            && let Ok(seq) = self.session.command(0, command.clone())
        {
            given.push(command.clone());
            self.sent.push((seq, command));
        }
    }

    /// Each cue starts once and is settled once.
    fn read_cues(&mut self, observed: bool) {
        while let Some(event) = self.session.poll_cue() {
            if !observed {
                continue;
            }
            let fresh = match event.kind {
                CueKind::Started { .. } => self.open_cues.insert(event.id),
                CueKind::Confirmed { .. } | CueKind::Cancelled => self.open_cues.remove(&event.id),
            };
            assert!(
                fresh,
                "{}: cue {:?} started or settled twice",
                self.identity, event.id
            );
        }
    }
}
