//! Both endpoints in one world of virtual time, without sockets.

mod hostile;
mod keys;
mod sessions;
mod tickets;

use std::net::SocketAddr;
use std::time::Duration;

use crate::claims::TicketClaims;
use crate::keys::TicketKey;
use crate::server::{ServerConfig, ServerEndpoint, ServerEvent};
use crate::tickets::{Ticket, TicketSpec};
use crate::transport::LeaveReason;
use crate::{ClientEndpoint, ClientEvent, CloseReason, MatchId, SessionId, TicketLedger};

const GAME: &str = "test";
const WIRE: u32 = 1;
const EPOCH: Duration = Duration::from_secs(1_700_000_000);
const STEP: Duration = Duration::from_millis(10);

fn server_address() -> SocketAddr {
    "192.0.2.1:7777".parse().expect("an address")
}

fn player_address(n: u16) -> SocketAddr {
    SocketAddr::from(([198, 51, 100, 1], 10_000 + n))
}

/// A datagram in flight: from, to, bytes.
type Sent = (SocketAddr, SocketAddr, Vec<u8>);

struct World {
    key: TicketKey,
    server: ServerEndpoint,
    players: Vec<Player>,
    now: Duration,
    /// The time by which the server's wall clock was set forward.
    clock_jump: Duration,
    sent: Option<Vec<Sent>>,
    admits: bool,
    connected: Vec<(SessionId, TicketClaims)>,
    left: Vec<(SessionId, LeaveReason)>,
    packets: Vec<(SessionId, Vec<u8>)>,
}

struct Player {
    address: SocketAddr,
    endpoint: ClientEndpoint,
    connected: bool,
    closed: Option<CloseReason>,
    packets: Vec<Vec<u8>>,
}

fn server_of(keys: &[TicketKey], now: Duration, sessions_max: usize) -> ServerEndpoint {
    let config = ServerConfig {
        keys,
        public_addresses: &[server_address().into()],
        sessions_max,
        game: GAME,
        wire_version: WIRE,
        tickets: TicketLedger::new(now, EPOCH + now),
    };
    ServerEndpoint::new(config, now).expect("a valid configuration")
}

fn spec_at(now_unix: Duration) -> TicketSpec<'static> {
    TicketSpec {
        game: GAME,
        wire_version: WIRE,
        identity: "anna",
        match_id: MatchId(4),
        seats: 2,
        servers: &[],
        life: Duration::from_secs(60),
        timeout: Duration::from_secs(5),
        now_unix,
    }
}

impl World {
    fn new() -> World {
        let key = TicketKey::generate();
        World {
            server: server_of(std::slice::from_ref(&key), Duration::ZERO, 8),
            key,
            players: Vec::new(),
            now: Duration::ZERO,
            clock_jump: Duration::ZERO,
            sent: None,
            admits: true,
            connected: Vec::new(),
            left: Vec::new(),
            packets: Vec::new(),
        }
    }

    /// Replaces the server process, which dies without a goodbye.
    fn restart(&mut self) {
        self.server = server_of(std::slice::from_ref(&self.key), self.now, 8);
    }

    fn ticket(&self) -> Ticket {
        self.ticket_of(&self.key, server_address())
    }

    fn ticket_of(&self, key: &TicketKey, server: SocketAddr) -> Ticket {
        let spec = TicketSpec {
            servers: &[server.into()],
            ..spec_at(EPOCH + self.now)
        };
        Ticket::issue(key, &spec).expect("a valid spec")
    }

    fn join(&mut self, n: u16, ticket: &Ticket) -> usize {
        self.join_as(n, ClientEndpoint::new(ticket, self.now))
    }

    fn join_as(&mut self, n: u16, endpoint: ClientEndpoint) -> usize {
        self.players.push(Player {
            address: player_address(n),
            endpoint,
            connected: false,
            closed: None,
            packets: Vec::new(),
        });
        self.players.len() - 1
    }

    fn with_a_player() -> (World, SessionId) {
        let mut world = World::new();
        let ticket = world.ticket();
        world.join(0, &ticket);
        world.run(Duration::from_secs(1));
        assert!(world.players[0].connected, "connected within a second");
        let session = world.connected[0].0;
        (world, session)
    }

    fn run(&mut self, span: Duration) {
        let end = self.now + span;
        while self.now < end {
            self.now += STEP;
            self.step();
        }
    }

    fn step(&mut self) {
        let now = self.now;
        for player in &mut self.players {
            player.endpoint.advance(now);
            while let Some((to, bytes)) = player.endpoint.poll_transmit() {
                if let Some(sent) = &mut self.sent {
                    sent.push((player.address, to, bytes.to_vec()));
                }
                if to == server_address() {
                    self.server.handle(now, player.address, bytes);
                }
            }
        }
        self.server.advance(now, EPOCH + now + self.clock_jump);
        self.take_server_events();
        while let Some((to, bytes)) = self.server.poll_transmit() {
            if let Some(sent) = &mut self.sent {
                sent.push((server_address(), to, bytes.to_vec()));
            }
            for player in self.players.iter_mut().filter(|p| p.address == to) {
                player.endpoint.handle(now, server_address(), bytes);
            }
        }
        for player in &mut self.players {
            while let Some(event) = player.endpoint.poll_event() {
                match event {
                    ClientEvent::Connected => player.connected = true,
                    ClientEvent::Packet(bytes) => player.packets.push(bytes.to_vec()),
                    ClientEvent::Closed { reason } => player.closed = Some(reason),
                }
            }
        }
    }

    fn take_server_events(&mut self) {
        while let Some(event) = self.server.poll_event() {
            match event {
                ServerEvent::Connected { session, ticket } => {
                    self.connected.push((session, ticket));
                    if self.admits {
                        self.server.admit(session);
                    }
                }
                ServerEvent::Packet { session, bytes } => {
                    self.packets.push((session, bytes.to_vec()));
                }
                ServerEvent::Disconnected { session, reason } => self.left.push((session, reason)),
            }
        }
    }
}
