//! Accepted and refused tickets, in virtual time and from a seed: real tickets, the real admission, a match with its
//! journal, and clients that come and go for days while clocks are wrong and processes end.

use std::net::SocketAddr;
use std::sync::Arc;
use std::time::Duration;

use twinstep_client::{BUDGET_TICKS, NoPicture, Session, SessionConfig};
use twinstep_core::Mwc;
use twinstep_core::bounds::PACKET_BYTES_MAX;
use twinstep_core::testing::doc::Counter;
use twinstep_protocol::lineage::NextTicket;
use twinstep_rig::direct::no_queries;
use twinstep_server::{Match, MatchConfig, Output};
use twinstep_udp::{
    ClientEndpoint, ClientEvent, CloseReason, Holder, Identity, MatchId, ServerAddress,
    ServerConfig, ServerEndpoint, ServerEvent, Ticket, TicketKey, TicketLedger, TicketSpec,
};

const EPOCH: Duration = Duration::from_secs(1_700_000_000);
const FRAME: Duration = Duration::from_micros(16_667);
const DAY_S: i64 = 86_400;
/// The lifetime of a host's reconnect tickets, as in `server/host/src/tickets.rs`.
const REJOIN_LIFE: Duration = Duration::from_secs(1_200);
const LIFE: Duration = Duration::from_secs(7 * 86_400);

fn server() -> SocketAddr {
    "192.0.2.1:7777".parse().unwrap()
}

struct Host {
    now: Duration,
    set_s: i64,
    key: TicketKey,
    endpoint: ServerEndpoint,
    match_: Match<Counter>,
    journal: Vec<u8>,
    ports: u16,
}

impl Host {
    fn new(key: &TicketKey) -> Host {
        let match_ = Match::new(
            MatchConfig::action(),
            Counter::default(),
            Arc::new(()),
            no_queries(),
        );
        let mut match_ = match_.unwrap();
        match_.keep_journal().unwrap();
        Host {
            now: Duration::ZERO,
            set_s: 0,
            key: key.clone(),
            endpoint: endpoint(key, Duration::ZERO, EPOCH),
            match_,
            journal: Vec::new(),
            ports: 1_024,
        }
    }

    fn clock(&self) -> Duration {
        at(self.now, self.set_s)
    }

    fn spec<'a>(
        servers: &'a [ServerAddress],
        seats: u8,
        life: Duration,
        now_unix: Duration,
    ) -> TicketSpec<'a> {
        TicketSpec {
            game: "test",
            wire_version: 1,
            identity: "anna",
            match_id: MatchId(1),
            seats,
            servers,
            life,
            timeout: Duration::from_secs(5),
            now_unix,
        }
    }

    fn made(&self, off_s: i64) -> Ticket {
        let servers = [server().into()];
        let spec = Host::spec(&servers, 1, LIFE, at(self.now, off_s));
        Ticket::issue(&self.key, &spec).unwrap()
    }

    fn restart(&mut self) {
        let resumed = Match::resume(
            MatchConfig::action(),
            &self.journal,
            Arc::new(()),
            no_queries(),
        );
        let resumed = resumed.unwrap();
        self.journal.truncate(resumed.keep_bytes as usize);
        self.match_ = resumed.match_;
        self.endpoint = endpoint(&self.key, self.now, self.clock());
        for (identity, ruling) in self.match_.lineages().iter() {
            self.endpoint
                .tickets()
                .apply(&holder(identity.clone()), &ruling);
        }
    }

    fn step(&mut self) {
        self.now += FRAME;
        self.endpoint.advance(self.now, self.clock());
        while let Some(event) = self.endpoint.poll_event() {
            match event {
                ServerEvent::Connected { session, ticket } => {
                    let (peer, seats) = (session, usize::from(ticket.seats));
                    let entered = self.match_.connect_by_ticket(
                        self.now,
                        peer,
                        &ticket.identity.name,
                        seats,
                        ticket.stamp,
                    );
                    match entered {
                        Ok(()) => self.endpoint.admit(session),
                        Err(_) => self.endpoint.disconnect(session),
                    }
                }
                ServerEvent::Packet { session, bytes } => {
                    self.match_.handle(self.now, session, &bytes);
                }
                ServerEvent::Disconnected { session, .. } => self.match_.disconnect(session),
            }
        }
        self.match_.advance(self.now);
        let mut due = Vec::new();
        while let Some(output) = self.match_.poll() {
            match output {
                Output::Packet { peer, bytes } => {
                    let _ = self.endpoint.send(peer, bytes);
                }
                Output::Journal(bytes) => self.journal.extend_from_slice(bytes),
                Output::Ticket { peer } => due.push(peer),
                Output::Outdated { identity, ruling } => {
                    self.endpoint.tickets().apply(&holder(identity), &ruling);
                }
                _ => {}
            }
        }
        for peer in due {
            let next: NextTicket = self.match_.next_ticket(peer).unwrap();
            let servers = [server().into()];
            let spec = Host::spec(&servers, 1, REJOIN_LIFE, self.clock());
            let ticket = Ticket::issue_next(&self.key, &spec, &next).unwrap();
            self.match_
                .hand_ticket(peer, ticket.stamp(), ticket.to_bytes());
        }
    }

    /// A client's process joins with a ticket, plays until half a second after it received a new one, and is killed.
    /// `stores`: whether it stores received tickets; `jump_s`: a jump of the server's clock after the join, in seconds.
    fn visit(&mut self, ticket: &Ticket, stores: bool, jump_s: i64) -> Result<Ticket, String> {
        self.ports += 1;
        let from = SocketAddr::from(([198, 51, 100, 1], self.ports));
        let mut endpoint = ClientEndpoint::new(ticket, self.now);
        let config: SessionConfig<Counter, NoPicture> = SessionConfig::new(Arc::new(()));
        let mut session = Session::new(config).unwrap();
        let mut buffer = [0; PACKET_BYTES_MAX];
        let (mut handed, mut frames_left) = (None, 600);
        while frames_left > 0 {
            frames_left -= 1;
            endpoint.advance(self.now);
            while let Some((_, datagram)) = endpoint.poll_transmit() {
                self.endpoint.handle(self.now, from, datagram);
            }
            self.step();
            while let Some((_, datagram)) = self.endpoint.poll_transmit() {
                endpoint.handle(self.now, server(), datagram);
            }
            while let Some(event) = endpoint.poll_event() {
                match event {
                    ClientEvent::Connected => {}
                    ClientEvent::Packet(bytes) => session.handle(self.now, bytes),
                    ClientEvent::Closed { reason } => return Err(reason.to_string()),
                }
            }
            session
                .advance(self.now, BUDGET_TICKS, |_| 1)
                .map_err(|closed| closed.to_string())?;
            if let Some(bytes) = session.poll_ticket() {
                let ticket = Ticket::from_bytes(&bytes).unwrap();
                if stores {
                    session.stored(&ticket.stamp());
                }
                handed = Some(ticket);
                (frames_left, self.set_s) = (frames_left.min(30), self.set_s + jump_s);
            }
            while let Some(len) = session.poll_transmit(self.now, &mut buffer) {
                let _ = endpoint.send(&buffer[..len]);
            }
        }
        handed.ok_or_else(|| "it was not let in within ten seconds".to_owned())
    }

    fn dial_once(&mut self, ticket: &Ticket) -> Option<CloseReason> {
        self.ports += 1;
        let from = SocketAddr::from(([198, 51, 100, 2], self.ports));
        let mut endpoint = ClientEndpoint::new(ticket, self.now);
        for _ in 0..30 {
            endpoint.advance(self.now);
            while let Some((_, datagram)) = endpoint.poll_transmit() {
                self.endpoint.handle(self.now, from, datagram);
            }
            self.step();
            while let Some((_, datagram)) = self.endpoint.poll_transmit() {
                endpoint.handle(self.now, server(), datagram);
            }
            if let Some(ClientEvent::Closed { reason }) = endpoint.poll_event() {
                return Some(reason);
            }
        }
        None
    }
}

fn at(now: Duration, off_s: i64) -> Duration {
    let s = (EPOCH + now).as_secs().saturating_add_signed(off_s);
    Duration::new(s, (EPOCH + now).subsec_nanos())
}

fn holder(identity: Identity) -> Holder {
    Holder {
        match_id: MatchId(1),
        identity,
    }
}

fn endpoint(key: &TicketKey, now: Duration, now_unix: Duration) -> ServerEndpoint {
    let config = ServerConfig {
        keys: std::slice::from_ref(key),
        public_addresses: &[server().into()],
        sessions_max: 16,
        game: "test",
        wire_version: 1,
        tickets: TicketLedger::new(now, now_unix),
    };
    ServerEndpoint::new(config, now).unwrap()
}

/// Findings K3-C, K3-D, P3-T2, O3-8: issuers with clocks that are five minutes slow, correct, or 400 days fast; a
/// server with a clock that is changed by a day during play; reconnects after 3 s, 25 min and 6 h, from another
/// machine, and after a restart.
#[test]
fn no_identity_is_locked_out_and_replaced_tickets_admit_no_client() {
    const PLAYERS: u32 = if cfg!(debug_assertions) { 100 } else { 1_000 };
    const VISITS: u32 = 4;
    let key = TicketKey::generate();
    let (mut locked_out, mut let_in, mut replaced_shown) = (Vec::new(), Vec::new(), 0);
    for player in 0..PLAYERS {
        let mut luck = Mwc::seed(u64::from(player));
        let mut draw = |n: u32| luck.below(n);
        let makers = [-300, 0, 400 * DAY_S];
        let mut host = Host::new(&key);
        let mut held = host.made(makers[draw(3) as usize]);
        let mut replaced: Vec<Ticket> = Vec::new();
        for visit in 0..VISITS {
            if visit > 0 {
                host.now += Duration::from_secs([3, 1_500, 21_600][draw(3) as usize]);
                if draw(4) == 0 {
                    host.restart();
                }
                if draw(3) == 0 {
                    // On another machine, with a fresh ticket.
                    let fresh = host.made(makers[draw(3) as usize]);
                    replaced.push(std::mem::replace(&mut held, fresh));
                }
            }
            let jump_s = match (draw(4), host.set_s) {
                (0, 0) => [-DAY_S, DAY_S][draw(2) as usize],
                (1, set_s) => -set_s,
                _ => 0,
            };
            let stores = draw(3) > 0;
            match host.visit(&held, stores, jump_s) {
                Ok(handed) if stores => replaced.push(std::mem::replace(&mut held, handed)),
                Ok(_) => {}
                Err(why) => locked_out.push((player, visit, why)),
            }
            if !replaced.is_empty() {
                replaced_shown += 1;
                let at = draw(replaced.len() as u32) as usize;
                match host.dial_once(&replaced[at]) {
                    Some(CloseReason::Superseded | CloseReason::Expired) => {}
                    answer => let_in.push((player, visit, answer)),
                }
            }
        }
    }
    assert!(replaced_shown > 2 * PLAYERS, "{replaced_shown}");
    assert!(
        locked_out.is_empty(),
        "{} locked out: {locked_out:?}",
        locked_out.len()
    );
    assert!(let_in.is_empty(), "{} let in: {let_in:?}", let_in.len());
}

/// Finding P3-T1: the server's clock was set forward by two days mid-match, and a player that lost its link within
/// seconds was locked out.
#[test]
fn a_player_reconnects_with_its_old_tickets_after_the_clock_was_set_forward() {
    let key = TicketKey::generate();
    let mut host = Host::new(&key);
    let servers = [server().into()];
    let spec = Host::spec(&servers, 1, Duration::from_secs(600), EPOCH);
    let ticket = Ticket::issue(&key, &spec).unwrap();
    let handed = host.visit(&ticket, true, 2 * DAY_S).unwrap();
    assert!(host.clock().as_secs() > handed.expires_unix_s());
    host.now += Duration::from_secs(3);
    let again = host.visit(&handed, true, 0).unwrap();
    assert!(host.clock().as_secs() < again.expires_unix_s());
    host.now += Duration::from_secs(1_100);
    host.visit(&again, false, 0).unwrap();
    // By the time the jump takes effect, a ticket issued under the old clock has expired.
    host.now += Duration::from_secs(1_300);
    let answer = host.dial_once(&again);
    assert_eq!(answer, Some(CloseReason::Expired));
}
