//! A world in virtual time with the production transports: tickets, netcode and laminar at both ends, over lossy links.
//! Only sockets and threads are missing. The [rig](crate::rig) has sessions and no transports; this world tests the
//! time between a dead link and a reconnected session.
//!
//! ```text
//!  Client ─ Plug ─ Plug ─ ...      several at once: the path in use, and attempts
//!             └──────┴── Cable ─── a link to each address of the server ──▶ ServerEndpoint ─▶ Match
//! ```

use std::collections::{BTreeMap, VecDeque};
use std::net::SocketAddr;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use twinstep_client::{Client, Event, Reconcile, Session, SessionConfig, SessionEnd, SessionStats};
use twinstep_core::{Key as Cause, Mwc, Simulation};
use twinstep_protocol::packet::WIRE_VERSION;
use twinstep_protocol::simnet::{LegProfile, LinkProfile, SimLink};
use twinstep_server::config::Spectators;
use twinstep_server::{Match, MatchConfig, Output};
use twinstep_testing::scene::Jobs;
use twinstep_udp::{
    ClientEndpoint, ClientEvent, Holder, Identity, MatchId, NextTicket, PACKET_MAX, Role,
    SendError, ServerAddress, ServerConfig, ServerEndpoint, ServerEvent, SessionId, Ticket,
    TicketKey, TicketLedger, TicketSpec, Transport, TransportState,
};

use crate::rig::{InputPattern, Play, RigConfig};

const EPOCH: Duration = Duration::from_secs(1_700_000_000);
const STEP: Duration = Duration::from_millis(1);
const FRAME: Duration = Duration::from_millis(8);
/// The time between two advances of the server's transports.
const BEAT: Duration = Duration::from_millis(10);
/// The time for which a closed session is kept.
const GOODBYE: Duration = Duration::from_secs(1);
/// The number of bytes that precede a datagram on a link: the client's port.
const PORT_BYTES: usize = 2;

/// The links of one machine, one to each address of the server, shared by all its sockets.
struct Cable {
    links: Vec<SimLink>,
    inboxes: BTreeMap<u16, VecDeque<(usize, Vec<u8>)>>,
    next_port: u16,
}

pub struct Plug {
    cable: Arc<Mutex<Cable>>,
    port: u16,
    servers: Vec<SocketAddr>,
    endpoint: ClientEndpoint,
    now: Duration,
}

fn locked(cable: &Mutex<Cable>) -> MutexGuard<'_, Cable> {
    cable.lock().unwrap_or_else(PoisonError::into_inner)
}

impl Plug {
    fn dial(
        cable: &Arc<Mutex<Cable>>,
        before: Option<&mut Plug>,
        servers: &[SocketAddr],
        ticket: &Ticket,
        now: Duration,
    ) -> Plug {
        // Each attempt dials one address. A real client with two addresses uses two sockets.
        let endpoint = ClientEndpoint::new(&ticket.with_first_address(0, 1), now);
        let mut wires = locked(cable);
        let port = before.map_or_else(
            || {
                wires.next_port += 1;
                wires.next_port
            },
            |before| before.port,
        );
        wires.inboxes.insert(port, VecDeque::new());
        Plug {
            cable: cable.clone(),
            port,
            servers: servers.to_vec(),
            endpoint,
            now,
        }
    }

    fn transmit(&mut self) {
        let mut wires = locked(&self.cable);
        while let Some((to, datagram)) = self.endpoint.poll_transmit() {
            let at = self.servers.iter().position(|server| *server == to);
            let mut sent = self.port.to_le_bytes().to_vec();
            sent.extend_from_slice(datagram);
            let at = at.expect("tickets name addresses of the server");
            wires.links[at].up.send(self.now, &sent);
        }
    }
}

impl Transport for Plug {
    fn advance(&mut self, now: Duration) {
        self.now = now;
        let arrived = {
            let mut wires = locked(&self.cable);
            let Cable { links, inboxes, .. } = &mut *wires;
            for (at, link) in links.iter_mut().enumerate() {
                while let Some(bytes) = link.down.poll(now) {
                    let port = u16::from_le_bytes([bytes[0], bytes[1]]);
                    if let Some(inbox) = inboxes.get_mut(&port) {
                        inbox.push_back((at, bytes[PORT_BYTES..].to_vec()));
                    }
                }
            }
            std::mem::take(inboxes.entry(self.port).or_default())
        };
        for (at, datagram) in arrived {
            self.endpoint.handle(now, self.servers[at], &datagram);
        }
        self.endpoint.advance(now);
        self.transmit();
    }

    fn poll(&mut self, buffer: &mut [u8; PACKET_MAX]) -> Option<usize> {
        loop {
            if let ClientEvent::Packet(packet) = self.endpoint.poll_event()? {
                buffer[..packet.len()].copy_from_slice(packet);
                return Some(packet.len());
            }
        }
    }

    fn send(&mut self, packet: &[u8]) -> Result<(), SendError> {
        self.endpoint.send(packet)?;
        self.transmit();
        Ok(())
    }

    fn disconnect(&mut self) {
        self.endpoint.disconnect();
        self.transmit();
    }

    fn state(&self) -> TransportState {
        self.endpoint.state()
    }
}

pub struct Player<S: Play> {
    pub client: Client<S, S::Show, Plug>,
    pub events: Vec<Event>,
    pub ended: Option<SessionEnd>,
    pub stood: Vec<Duration>,
    cable: Arc<Mutex<Cable>>,
    driver: S::Driver,
    moved_at: Duration,
    next_frame: Duration,
}

pub struct Lines<S: Play> {
    pub match_: Match<S>,
    pub players: Vec<Player<S>>,
    pub now: Duration,
    /// The place where players that join later rebuild their predictions: inline, or on threads.
    pub reconcile: Reconcile,
    rules: Arc<S::Rules>,
    key: TicketKey,
    servers: Vec<SocketAddr>,
    endpoint: ServerEndpoint,
    sides: BTreeMap<SocketAddr, usize>,
    leaving: BTreeMap<SessionId, Duration>,
    /// Clients with valid tickets that connect and never send a hello.
    mute: Vec<(SocketAddr, ClientEndpoint)>,
    jobs: Jobs<S>,
    luck: Mwc,
    profile: LinkProfile,
    policies: MatchConfig,
    stalled_until: Duration,
    /// The time when the server's process restarts; `None` while it runs.
    dead_until: Option<Duration>,
    journal: Vec<u8>,
    beat_at: Duration,
    seed: u64,
}

impl<S: Play> Lines<S> {
    /// Creates a server with `addresses` addresses, without clients.
    #[must_use]
    pub fn new(seed: u64, profile: LinkProfile, addresses: u8) -> Self {
        let mut config = RigConfig::new(seed, profile);
        config.policies.spectators = Spectators {
            max: 4,
            delay_ticks: 0,
        };
        Lines::like(&config, addresses)
    }

    /// Like [`new`](Lines::new), with the rules, policies and links of a rig's configuration, without clients.
    #[must_use]
    pub fn like(config: &RigConfig, addresses: u8) -> Self {
        let (seed, policies) = (config.seed, config.policies.clone());
        let rules = Arc::new(S::rules_for(config));
        let (sim, resolver) = (S::start(&rules, seed), S::resolver(&rules, seed));
        let match_ = Match::new(policies.clone(), sim, rules.clone(), resolver);
        let mut match_ = match_.expect("the game starts");
        match_.keep_journal().expect("no tick was played yet");
        let key = TicketKey::generate();
        let servers: Vec<SocketAddr> = (1..=addresses)
            .map(|n| SocketAddr::from(([192, 0, 2, n], 7_777)))
            .collect();
        Lines {
            match_,
            players: Vec::new(),
            now: Duration::ZERO,
            reconcile: Reconcile::Inline,
            rules,
            endpoint: endpoint::<S>(&key, &servers, Duration::ZERO),
            key,
            servers,
            sides: BTreeMap::new(),
            leaving: BTreeMap::new(),
            mute: Vec::new(),
            jobs: Jobs::default(),
            luck: Mwc::seed(seed),
            profile: config.link,
            policies,
            stalled_until: Duration::ZERO,
            dead_until: None,
            journal: Vec::new(),
            beat_at: Duration::ZERO,
            seed,
        }
    }

    /// Lets a player join. Returns its index.
    pub fn join(&mut self, identity: &str) -> usize {
        self.join_with(identity, 1)
    }

    /// Lets a client with this many seats join (0 for a spectator). Returns its index.
    pub fn join_with(&mut self, identity: &str, seats: u8) -> usize {
        let n = self.players.len();
        let seed = self.seed ^ (n as u64 + 1).wrapping_mul(0x9e37_79b9_7f4a_7c15);
        let links = (0..self.servers.len() as u64)
            .map(|at| SimLink::new(self.profile, seed.wrapping_add(at)));
        let cable = Arc::new(Mutex::new(Cable {
            links: links.collect(),
            inboxes: BTreeMap::new(),
            next_port: 10_000,
        }));
        let client = self.client(identity, seats, &cable);
        self.players.push(Player {
            client,
            events: Vec::new(),
            ended: None,
            stood: Vec::new(),
            cable,
            driver: S::driver(
                InputPattern::Sticky,
                self.luck.fork(Cause::new(1, n as u32)),
            ),
            moved_at: self.now,
            next_frame: self.now + FRAME * (n as u32 % 7) / 7,
        });
        n
    }

    /// Kills a player's process. A new one joins with a new ticket over the same link.
    pub fn crash(&mut self, player: usize, identity: &str) {
        let client = self.client(identity, 1, &self.players[player].cable.clone());
        let player = &mut self.players[player];
        (player.client, player.ended) = (client, None);
    }

    /// Connects this many strangers with valid tickets. They do not send a hello, and connect again whenever they are
    /// refused or disconnected.
    pub fn add_mute_strangers(&mut self, strangers: u8) {
        for n in 0..strangers {
            let ticket = self.ticket(&format!("stranger {n}"), 1, &NextTicket::default());
            let address = SocketAddr::from(([203, 0, 113, n], 9_000));
            let dial = ClientEndpoint::new(&ticket, self.now);
            self.mute.push((address, dial));
        }
    }

    fn step_mute(&mut self) {
        let now = self.now;
        for n in 0..self.mute.len() {
            if let TransportState::Closed(_) = self.mute[n].1.state() {
                let ticket = self.ticket(&format!("stranger {n}"), 1, &NextTicket::default());
                let (address, dial) = &mut self.mute[n];
                address.set_port(9_000 + (address.port() - 8_999) % 50_000);
                *dial = ClientEndpoint::new(&ticket, now);
            }
            let (address, dial) = &mut self.mute[n];
            while dial.poll_event().is_some() {}
            dial.advance(now);
            while let Some((_, datagram)) = dial.poll_transmit() {
                self.endpoint.handle(now, *address, datagram);
            }
        }
    }

    fn client(
        &self,
        identity: &str,
        seats: u8,
        cable: &Arc<Mutex<Cable>>,
    ) -> Client<S, S::Show, Plug> {
        let ticket = self.ticket(identity, seats, &NextTicket::default());
        let smoothing = twinstep_client::Smoothing::new(8.0, Duration::from_millis(100));
        let config = SessionConfig::new(self.rules.clone())
            .reconcile(self.reconcile)
            .show(S::show(&self.rules), smoothing);
        let session = Session::new(config);
        let session = session.expect("rules without NaN");
        let (wires, servers) = (cable.clone(), self.servers.clone());
        let plug = Plug::dial(&wires, None, &servers, &ticket, self.now);
        let client = Client::with_transport(plug, session).with_ticket(&ticket);
        client.reconnecting(move |before: Option<&mut Plug>, ticket, now| {
            Ok(Plug::dial(&wires, before, &servers, ticket, now))
        })
    }

    fn ticket(&self, identity: &str, seats: u8, next: &NextTicket) -> Ticket {
        let spec = TicketSpec {
            game: S::NAME,
            wire_version: u32::from(WIRE_VERSION),
            identity,
            match_id: MatchId(1),
            seats,
            servers: &named(&self.servers),
            life: Duration::from_secs(600),
            timeout: Duration::from_secs(5),
            now_unix: EPOCH + self.now,
        };
        Ticket::issue_next(&self.key, &spec, next).expect("a valid spec")
    }

    pub fn profile_from_now_on(&mut self, profile: LinkProfile) {
        self.profile = profile;
    }

    pub fn relink(&mut self, player: usize, address: usize, profile: LinkProfile) {
        locked(&self.players[player].cable).links[address].set_profile(profile);
    }

    pub fn cut(&mut self, player: usize, is_cut: bool) {
        let profile = match is_cut {
            true => LinkProfile::both(LegProfile::BLACKOUT),
            false => self.profile,
        };
        (0..self.servers.len()).for_each(|at| self.relink(player, at, profile));
    }

    /// Freezes the server's process for `time`. Arriving datagrams wait in its socket.
    pub fn stall(&mut self, time: Duration) {
        self.stalled_until = self.now + time;
    }

    /// Suspends a player's machine for `time`. Arriving datagrams wait in its sockets.
    pub fn sleep(&mut self, player: usize, time: Duration) {
        self.players[player].next_frame = self.now + time;
    }

    /// Kills the server's process. After `down`, another process resumes the match from its journal. Datagrams that
    /// arrive before then are lost.
    pub fn kill(&mut self, down: Duration) {
        self.dead_until = Some(self.now + down);
    }

    fn step_dead(&mut self, until: Duration) {
        for player in &self.players {
            for link in &mut locked(&player.cable).links {
                while link.up.poll(self.now).is_some() {}
            }
        }
        if self.now < until {
            return;
        }
        self.dead_until = None;
        let resolver = S::resolver(&self.rules, self.seed);
        let config = self.policies.clone();
        let resumed = Match::resume(config, &self.journal, self.rules.clone(), resolver);
        let resumed = resumed.expect("the journal of a killed server can be resumed");
        self.journal.truncate(resumed.keep_bytes as usize);
        self.match_ = resumed.match_;
        self.endpoint = endpoint::<S>(&self.key, &self.servers, self.now);
        for (identity, ruling) in self.match_.lineages().iter() {
            self.endpoint
                .tickets()
                .apply(&of(identity.clone()), &ruling);
        }
        for identity in self.match_.seat_holders() {
            self.endpoint.tickets().set_seat(of(player(identity)), true);
        }
        self.leaving.clear();
        self.jobs = Jobs::default();
    }

    pub fn run(&mut self, time: Duration) {
        let end = self.now + time;
        while self.now < end {
            self.now += STEP;
            if let Some(until) = self.dead_until {
                self.step_dead(until);
            } else if self.now >= self.stalled_until {
                self.step_server();
            }
            for at in 0..self.players.len() {
                self.step_player(at);
            }
        }
    }

    #[must_use]
    pub fn stats(&self, player: usize) -> SessionStats {
        self.players[player].client.session().stats()
    }

    /// Returns `true` if a player's session is in the match and receives its frames.
    #[must_use]
    pub fn plays(&self, player: usize) -> bool {
        let player = &self.players[player];
        player.ended.is_none()
            && player.client.session().prediction().is_some()
            && !player.client.session().is_returning()
    }

    fn step_server(&mut self) {
        let now = self.now;
        for n in 0..self.players.len() {
            let mut wires = locked(&self.players[n].cable);
            for (at, link) in wires.links.iter_mut().enumerate() {
                while let Some(bytes) = link.up.poll(now) {
                    let port = u16::from_le_bytes([bytes[0], bytes[1]]);
                    let from = SocketAddr::from(([198, 51, 100, n as u8], port));
                    self.sides.insert(from, at);
                    self.endpoint.handle(now, from, &bytes[PORT_BYTES..]);
                }
            }
        }
        if now >= self.beat_at {
            self.beat_at = now + BEAT;
            self.step_mute();
            self.endpoint.advance(now, EPOCH + now);
        }
        while let Some(event) = self.endpoint.poll_event() {
            match event {
                ServerEvent::Connected { session, ticket } => {
                    let (peer, seats) = (session, usize::from(ticket.seats));
                    let (identity, stamp) = (&ticket.identity.name, ticket.stamp);
                    let entered = self
                        .match_
                        .connect_by_ticket(now, peer, identity, seats, stamp);
                    self.endpoint.admit(session);
                    if entered.is_err() {
                        self.leaving.insert(session, now + GOODBYE);
                    }
                }
                ServerEvent::Packet { session, bytes } => {
                    self.match_.handle(now, session, &bytes);
                }
                ServerEvent::Disconnected { session, .. } => {
                    self.match_.disconnect(session);
                }
            }
        }
        self.jobs.complete(now, &mut self.match_);
        if now >= self.match_.next_due() {
            self.match_.advance(now);
        }
        self.carry_out();
        let over: Vec<SessionId> = self
            .leaving
            .iter()
            .filter_map(|(session, until)| (now >= *until).then_some(*session))
            .collect();
        for session in over {
            self.leaving.remove(&session);
            self.endpoint.disconnect(session);
        }
        while let Some((to, datagram)) = self.endpoint.poll_transmit() {
            let SocketAddr::V4(address) = to else {
                continue;
            };
            if let Some((_, dial)) = self.mute.iter_mut().find(|(from, _)| *from == to) {
                dial.handle(now, self.servers[0], datagram);
                continue;
            } else if address.ip().octets()[0] == 203 {
                continue;
            }
            let n = usize::from(address.ip().octets()[3]);
            let mut sent = to.port().to_le_bytes().to_vec();
            sent.extend_from_slice(datagram);
            let mut wires = locked(&self.players[n].cable);
            wires.links[self.sides[&to]].down.send(now, &sent);
        }
    }

    fn carry_out(&mut self) {
        let mut due = Vec::new();
        while let Some(output) = self.match_.poll() {
            match output {
                Output::Packet { peer, bytes } => {
                    let _ = self.endpoint.send(peer, bytes);
                }
                Output::Job { id, work } => {
                    let outcome = work();
                    if !S::is_lost(&outcome) {
                        let wait = Duration::from_millis(u64::from(self.luck.below(100)));
                        self.jobs.answer_at(self.now + wait, id, outcome);
                    }
                }
                Output::Ticket { peer } => due.push(peer),
                Output::Settled { peer } => self.endpoint.settle(peer),
                Output::Unseated { identity } => {
                    self.endpoint
                        .tickets()
                        .set_seat(of(player(&identity)), false);
                }
                Output::Outdated { identity, ruling } => {
                    self.endpoint.tickets().apply(&of(identity), &ruling);
                }
                Output::Closed { peer, .. } => {
                    self.leaving.insert(peer, self.now + GOODBYE);
                }
                Output::Journal(bytes) => self.journal.extend_from_slice(bytes),
                Output::Encode(_) | Output::Save(_) | Output::Evidence { .. } => {}
            }
        }
        for peer in due {
            let session = self
                .match_
                .identity(peer)
                .zip(self.match_.next_ticket(peer));
            let Some(((identity, seats), next)) = session else {
                continue;
            };
            let ticket = self.ticket(identity, seats as u8, &next);
            let stamp = ticket.stamp();
            self.match_.hand_ticket(peer, stamp, ticket.to_bytes());
        }
    }

    fn step_player(&mut self, at: usize) {
        let now = self.now;
        let player = &mut self.players[at];
        if now < player.next_frame || player.ended.is_some() {
            return;
        }
        player.next_frame += FRAME;
        let session = player.client.session();
        let tick = session.authority().map(|world| world.tick());
        let (input, order) = match (session.prediction(), session.seats().first()) {
            (Some(world), Some(me)) => {
                let sim = world.sim();
                sim.drive(&mut player.driver, &self.rules, *me, world.tick())
            }
            _ => (S::Input::default(), None),
        };
        if let Some(order) = order {
            // A command beyond the limit is refused, which does not matter here.
            let _ = player.client.session_mut().command(0, order);
        }
        let advanced = player
            .client
            .advance_at(now, || Duration::ZERO, |_| input.clone());
        player.ended = advanced.err();
        let session = player.client.session_mut();
        let moved = session.authority().map(|world| world.tick()) != tick;
        if moved {
            let stood = now - player.moved_at;
            if tick.is_some() && stood > Duration::from_millis(250) {
                player.stood.push(stood);
            }
            player.moved_at = now;
        }
        while session.poll_cue().is_some() {}
        player
            .events
            .extend(std::iter::from_fn(|| session.poll_event()));
    }
}

fn of(identity: Identity) -> Holder {
    Holder {
        match_id: MatchId(1),
        identity,
    }
}

fn player(name: &str) -> Identity {
    Identity::new(name, Role::Player)
}

fn named(servers: &[SocketAddr]) -> Vec<ServerAddress> {
    servers.iter().copied().map(Into::into).collect()
}

fn endpoint<S: Simulation>(
    key: &TicketKey,
    servers: &[SocketAddr],
    now: Duration,
) -> ServerEndpoint {
    let config = ServerConfig {
        keys: std::slice::from_ref(key),
        public_addresses: &named(servers),
        sessions_max: 2 * MatchConfig::action().players_max,
        game: S::NAME,
        wire_version: u32::from(WIRE_VERSION),
        tickets: TicketLedger::new(now, EPOCH + now),
    };
    ServerEndpoint::new(config, now).expect("a valid configuration")
}
