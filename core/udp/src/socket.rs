//! The client's real socket, non-blocking, with an optional simulated bad network.
//!
//! ```text
//!               ┌──────────── conditioner (optional) ────────────┐
//! endpoint ────▶│ up leg:   delay, jitter, loss, reorder, …       │────▶ UDP
//!          ◀────│ down leg                                        │◀────
//!               └─────────────────────────────────────────────────┘
//! ```
//!
//! The conditioner works on sealed datagrams, including keep-alives and the handshake, so a game on a single machine
//! can be played under the conditions of a bad network.
//!
//! A ticket's addresses are dialled one after the other, each from another local port. The next address is dialled when
//! the system refuses to send to the previous one, or when that address was silent for [`HEAD_START`]. The first
//! address to respond is the server's.
//!
//! A dial without a response continues from another port: the old port may have belonged to a process that has just
//! ended, and the server ignores dials from a port while it believes that the old session still exists.
//!
//! Invariant: no socket error ends a session. An ICMP "refused" may come from any machine on the path, and a full
//! buffer or a changing network counts as loss; only the server's message or its silence ends a session.

use std::io;
use std::net::{Ipv4Addr, Ipv6Addr, SocketAddr, UdpSocket};
use std::time::Duration;

use twinstep_protocol::simnet::{LinkProfile, SimLink};

use crate::address::LookUp;
use crate::client::{ClientEndpoint, ClientEvent};
use crate::link::SharedLink;
use crate::netcode::DATAGRAM_MAX;
use crate::tickets::Ticket;
use crate::transport::{
    CloseReason, PACKET_MAX, SendError, Transport, TransportCounters, TransportState,
};

/// The time of silence after which the next address is dialled: longer than the round trip of most connections, and
/// barely noticeable to a player.
const HEAD_START: Duration = Duration::from_millis(300);

/// A dial without a response continues from another port after this time, once. The time exceeds a handshake's round
/// trip over any playable connection.
const DEAF_AFTER: Duration = Duration::from_millis(1_500);

/// The maximum number of datagrams that one [`advance`](Transport::advance) takes from each socket. The others wait for
/// the next call.
pub const RECEIVE_BUDGET: usize = 256;

/// A session over its own UDP socket.
pub struct UdpClient {
    ticket: Ticket,
    /// One dial per address so far. After the session is connected or closed, only its dial is left.
    lines: Vec<UdpLine>,
    /// The number of the ticket's addresses dialled so far.
    dialled: usize,
    network: Option<(LinkProfile, u64)>,
    now: Duration,
    /// The lookup of the ticket's names. The dial starts when it is done.
    names: Option<LookUp>,
    /// The reason why no address could be dialled after the lookup.
    undialled: Option<CloseReason>,
    io_errors: u64,
}

/// The reason why a session could not start.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
#[expect(missing_docs, reason = "the messages explain the variants")]
pub enum ConnectError {
    #[error("cannot open a UDP socket: {0}")]
    Socket(#[from] io::Error),
    #[error("this ticket is not for a browser: ask the server's operator for a link")]
    NotForBrowsers,
}

impl UdpClient {
    /// Opens a socket and starts to connect; the ticket's names are looked up first, on another thread. The same ticket
    /// may be dialled repeatedly, even during an earlier session: the newest session takes over.
    ///
    /// # Errors
    /// [`ConnectError`] if a socket cannot be opened for any address of the ticket.
    pub fn connect(ticket: &Ticket, now: Duration) -> Result<UdpClient, ConnectError> {
        let mut client = UdpClient {
            ticket: ticket.clone(),
            lines: Vec::new(),
            dialled: 0,
            network: None,
            now,
            names: LookUp::begin(ticket.servers(), now),
            undialled: None,
            io_errors: 0,
        };
        client.dial_first(&SharedLink::new(), None)?;
        Ok(client)
    }

    /// Dials again, with the same ticket or another one, reusing the socket of a failed attempt. The new client takes
    /// over this client's conditioner and laminar instance.
    ///
    /// # Errors
    /// [`ConnectError`] if a socket cannot be opened for any address of the ticket.
    pub fn redial(&mut self, ticket: &Ticket, now: Duration) -> Result<UdpClient, ConnectError> {
        let mut client = UdpClient {
            ticket: ticket.clone(),
            lines: Vec::new(),
            dialled: 0,
            network: self.network,
            now,
            names: LookUp::begin(ticket.servers(), now),
            undialled: None,
            io_errors: self.io_errors,
        };
        let before = &mut self.lines[0];
        let moved = Some((before.socket.try_clone()?, before.conditioner.take()));
        client.dial_first(before.endpoint.link(), moved)?;
        Ok(client)
    }

    /// Dials the first address for which a socket can be opened. Reuses an earlier attempt's socket if it has the same
    /// address family.
    fn dial_first(
        &mut self,
        link: &SharedLink,
        mut moved: Option<(ClientSocket, Option<SimLink>)>,
    ) -> Result<(), ConnectError> {
        let mut refused = None;
        for n in 0..self.ticket.servers().count() {
            self.dialled = n + 1;
            let ticket = self.ticket.with_first_address(n, 1);
            let endpoint = ClientEndpoint::new(&ticket, self.now).sharing(link);
            let is_same = |socket: &ClientSocket| socket.is_ipv4 == endpoint.server().is_ipv4();
            let (socket, conditioner) = match moved.take_if(|(socket, _)| is_same(socket)) {
                Some((socket, conditioner)) => (Ok(socket), conditioner),
                None => (ClientSocket::open(endpoint.server()), self.network_of(n)),
            };
            match socket {
                Ok(socket) => {
                    self.lines.push(UdpLine::new(endpoint, socket, conditioner));
                    return Ok(());
                }
                Err(error) => {
                    self.io_errors += 1;
                    refused.get_or_insert(error);
                }
            }
        }
        Err(refused.expect("a ticket names an address").into())
    }

    /// Sends all datagrams, in both directions, through a simulated bad network.
    #[must_use]
    pub fn with_conditioner(mut self, profile: LinkProfile, seed: u64) -> UdpClient {
        self.network = Some((profile, seed));
        for (n, line) in self.lines.iter_mut().enumerate() {
            line.conditioner = Some(SimLink::new(profile, seed.wrapping_add(n as u64)));
        }
        self
    }

    fn network_of(&self, n: usize) -> Option<SimLink> {
        let (profile, seed) = self.network?;
        Some(SimLink::new(profile, seed.wrapping_add(n as u64)))
    }

    /// Uses the laminar instance of `link`, which all clones of `link` share: a process with many clients saves 1.7 MB
    /// per client.
    ///
    /// ```no_run
    /// # use std::time::Duration;
    /// # use twinstep_udp::{ConnectError, SharedLink, Ticket, UdpClient};
    /// # fn bots(tickets: &[Ticket]) -> Result<Vec<UdpClient>, ConnectError> {
    /// let link = SharedLink::new();
    /// let dial = |ticket| Ok(UdpClient::connect(ticket, Duration::ZERO)?.sharing(&link));
    /// tickets.iter().map(dial).collect()
    /// # }
    /// ```
    #[must_use]
    pub fn sharing(mut self, link: &SharedLink) -> UdpClient {
        self.lines = self
            .lines
            .into_iter()
            .map(|line| line.sharing(link))
            .collect();
        self
    }

    /// Changes the simulated network for datagrams sent from now on. Has no effect without one.
    pub fn set_profile(&mut self, profile: LinkProfile) {
        if let Some((old, _)) = &mut self.network {
            *old = profile;
        }
        for link in self
            .lines
            .iter_mut()
            .filter_map(|line| line.conditioner.as_mut())
        {
            link.set_profile(profile);
        }
    }

    /// Counters of the datagrams and packets received, and of those dropped, by reason.
    #[must_use]
    pub fn counters(&self) -> TransportCounters {
        TransportCounters {
            io_errors: self.io_errors,
            ..self.lines[0].endpoint.counters()
        }
    }

    /// The server address that responded; before that, the first one dialled.
    #[must_use]
    pub fn server(&self) -> SocketAddr {
        self.lines[0].endpoint.server()
    }

    /// Starts the dial once the names are looked up. Returns `false` while there is no address to dial.
    fn is_looked_up(&mut self) -> bool {
        let Some(names) = &mut self.names else {
            return self.undialled.is_none();
        };
        let Some(found) = names.poll(self.now) else {
            return false;
        };
        self.names = None;
        if found.is_empty() {
            self.undialled = Some(CloseReason::NameUnknown);
            return false;
        }
        self.ticket = self.ticket.looked_up(found);
        // Socket and simulated network existed before the addresses were known: the first address uses them.
        let before = &mut self.lines[0];
        let link = before.endpoint.link().clone();
        let socket = before.socket.try_clone();
        let moved = socket
            .ok()
            .map(|socket| (socket, before.conditioner.take()));
        match self.dial_first(&link, moved) {
            Ok(()) => drop(self.lines.remove(0)),
            Err(_) => self.undialled = Some(CloseReason::NoAnswer),
        }
        self.undialled.is_none()
    }

    /// When one dial is connected or refused, keeps it and drops the dials without a response.
    fn settle(&mut self) {
        if self.lines.len() == 1 && self.dialled >= self.ticket.servers().count() {
            return;
        }
        let is_decided = |line: &UdpLine| match line.endpoint.state() {
            TransportState::Connected => true,
            // Another address may still respond.
            TransportState::Connecting | TransportState::Closed(CloseReason::NoAnswer) => false,
            TransportState::Closed(_) => true,
        };
        if let Some(at) = self.lines.iter().position(is_decided) {
            let decided = self.lines.swap_remove(at);
            for mut other in std::mem::replace(&mut self.lines, vec![decided]) {
                other.endpoint.disconnect();
                self.io_errors += other.transmit(self.now);
            }
            self.dialled = usize::MAX;
            return;
        }
        let is_over = |line: &UdpLine| line.endpoint.state() != TransportState::Connecting;
        while self.lines.len() > 1
            && let Some(at) = self.lines.iter().position(is_over)
        {
            self.lines.remove(at);
        }
    }

    /// Dials the next address, if the previous ones are silent or unreachable.
    fn dial_on(&mut self) {
        let now = self.now;
        let count = self.ticket.servers().count();
        while self.dialled < count && self.lines.iter().all(|line| line.is_silent(now)) {
            let ticket = self.ticket.with_first_address(self.dialled, 1);
            let endpoint = ClientEndpoint::new(&ticket, now).sharing(self.lines[0].endpoint.link());
            let conditioner = self.network_of(self.dialled);
            self.dialled += 1;
            match ClientSocket::open(endpoint.server()) {
                Ok(socket) => {
                    let mut line = UdpLine::new(endpoint, socket, conditioner);
                    self.io_errors += line.advance(now);
                    self.lines.push(line);
                }
                Err(_) => self.io_errors += 1,
            }
        }
    }
}

struct UdpLine {
    endpoint: ClientEndpoint,
    socket: ClientSocket,
    conditioner: Option<SimLink>,
    dialled: Option<Duration>,
    /// Whether the system has refused to send to the address. The system may be wrong, or the network may change.
    is_refused: bool,
    has_moved: bool,
}

impl UdpLine {
    fn new(
        endpoint: ClientEndpoint,
        socket: ClientSocket,
        conditioner: Option<SimLink>,
    ) -> UdpLine {
        UdpLine {
            endpoint,
            socket,
            conditioner,
            dialled: None,
            is_refused: false,
            has_moved: false,
        }
    }

    fn sharing(mut self, link: &SharedLink) -> UdpLine {
        self.endpoint = self.endpoint.sharing(link);
        self
    }

    /// Returns `true` if the next address need not wait for this dial.
    fn is_silent(&self, now: Duration) -> bool {
        match self.endpoint.state() {
            TransportState::Closed(CloseReason::NoAnswer) => true,
            TransportState::Connected | TransportState::Closed(_) => false,
            TransportState::Connecting => {
                let dials_for = self.dialled.map(|at| now.saturating_sub(at));
                let waited = dials_for.is_some_and(|dials_for| dials_for >= HEAD_START);
                self.is_refused || waited && self.endpoint.silence() >= HEAD_START
            }
        }
    }

    /// Receives, advances time and sends. Returns the number of system calls that failed.
    fn advance(&mut self, now: Duration) -> u64 {
        let errors = self.receive(now) + self.move_on();
        self.endpoint.advance(now);
        errors + self.transmit(now)
    }

    fn receive(&mut self, now: Duration) -> u64 {
        let mut errors = 0;
        // One byte more than the largest datagram, to detect a larger one.
        let mut buffer = [0; DATAGRAM_MAX + 1];
        for _ in 0..RECEIVE_BUDGET {
            let (bytes, from) = match self.socket.udp.recv_from(&mut buffer) {
                Ok(received) => received,
                Err(e) if e.kind() == io::ErrorKind::WouldBlock => break,
                Err(_) => {
                    // Windows reports here that no process listens at the address.
                    self.is_refused = true;
                    errors += 1;
                    continue;
                }
            };
            match &mut self.conditioner {
                None => self.endpoint.handle(now, from, &buffer[..bytes]),
                Some(link) if self.endpoint.is_server(from) => {
                    link.down.send(now, &buffer[..bytes]);
                }
                Some(_) => {}
            }
        }
        let server = self.endpoint.server();
        if let Some(link) = &mut self.conditioner {
            while let Some(datagram) = link.down.poll(now) {
                self.endpoint.handle(now, server, datagram);
            }
        }
        errors
    }

    /// Moves to another port if the dial gets no response at this one.
    fn move_on(&mut self) -> u64 {
        let is_dialling = self.endpoint.state() == TransportState::Connecting;
        if !is_dialling || self.has_moved || self.endpoint.silence() < DEAF_AFTER {
            return 0;
        }
        self.has_moved = true;
        // Without another socket, the dial keeps this one.
        match ClientSocket::open(self.endpoint.server()) {
            Ok(socket) => {
                self.socket = socket;
                0
            }
            Err(_) => 1,
        }
    }

    fn transmit(&mut self, now: Duration) -> u64 {
        let mut errors = 0;
        while let Some((to, datagram)) = self.endpoint.poll_transmit() {
            self.dialled.get_or_insert(now);
            match &mut self.conditioner {
                None => {
                    let failed = self.socket.udp.send_to(datagram, to).is_err();
                    self.is_refused |= failed;
                    errors += u64::from(failed);
                }
                Some(link) => link.up.send(now, datagram),
            }
        }
        errors + self.release(now)
    }

    /// Sends the datagrams that leave the simulated network by `until`.
    fn release(&mut self, until: Duration) -> u64 {
        let mut errors = 0;
        let server = self.endpoint.server();
        if let Some(link) = &mut self.conditioner {
            while let Some(datagram) = link.up.poll(until) {
                let failed = self.socket.udp.send_to(datagram, server).is_err();
                self.is_refused |= failed;
                errors += u64::from(failed);
            }
        }
        errors
    }
}

/// A socket, and its address family. The family is stored, because asking the system costs a call for each datagram.
struct ClientSocket {
    udp: UdpSocket,
    is_ipv4: bool,
}

impl ClientSocket {
    fn open(server: SocketAddr) -> io::Result<ClientSocket> {
        #[cfg(test)]
        if tests::LACKS_IPV6.get() && server.is_ipv6() {
            return Err(io::ErrorKind::Unsupported.into());
        }
        let any: SocketAddr = match server {
            SocketAddr::V4(_) => (Ipv4Addr::UNSPECIFIED, 0).into(),
            SocketAddr::V6(_) => (Ipv6Addr::UNSPECIFIED, 0).into(),
        };
        let udp = UdpSocket::bind(any)?;
        udp.set_nonblocking(true)?;
        Ok(ClientSocket {
            udp,
            is_ipv4: any.is_ipv4(),
        })
    }

    fn try_clone(&self) -> io::Result<ClientSocket> {
        Ok(ClientSocket {
            udp: self.udp.try_clone()?,
            is_ipv4: self.is_ipv4,
        })
    }
}

impl Transport for UdpClient {
    fn advance(&mut self, now: Duration) {
        self.now = self.now.max(now);
        if !self.is_looked_up() {
            return;
        }
        for line in &mut self.lines {
            self.io_errors += line.advance(self.now);
        }
        self.dial_on();
        self.settle();
    }

    fn poll(&mut self, buffer: &mut [u8; PACKET_MAX]) -> Option<usize> {
        loop {
            match self.lines[0].endpoint.poll_event()? {
                ClientEvent::Packet(packet) => {
                    buffer[..packet.len()].copy_from_slice(packet);
                    return Some(packet.len());
                }
                // `state` reports these.
                ClientEvent::Connected | ClientEvent::Closed { .. } => {}
            }
        }
    }

    fn send(&mut self, packet: &[u8]) -> Result<(), SendError> {
        let line = &mut self.lines[0];
        line.endpoint.send(packet)?;
        self.io_errors += line.transmit(self.now);
        Ok(())
    }

    fn disconnect(&mut self) {
        for line in &mut self.lines {
            line.endpoint.disconnect();
            self.io_errors += line.transmit(self.now);
            // Time will not advance after this, so the simulated network's datagrams are sent now.
            self.io_errors += line.release(Duration::MAX);
        }
        self.dialled = usize::MAX;
        self.names = None;
    }

    fn state(&self) -> TransportState {
        if let Some(reason) = self.undialled {
            return TransportState::Closed(reason);
        }
        match self.lines[0].endpoint.state() {
            // Another address may still respond.
            TransportState::Closed(CloseReason::NoAnswer)
                if self.dialled < self.ticket.servers().count() =>
            {
                TransportState::Connecting
            }
            state => state,
        }
    }
}

#[cfg(test)]
mod tests {
    use std::cell::Cell;
    use std::time::Instant;

    use super::*;
    use crate::address::ServerAddress;
    use crate::server::{ServerConfig, ServerEndpoint, ServerEvent};
    use crate::tickets::TicketSpec;
    use crate::{MatchId, TicketKey, TicketLedger, keys};

    const UNIX: Duration = Duration::from_secs(1_700_000_000);

    thread_local! {
        /// Simulates a system without IPv6 sockets.
        pub(super) static LACKS_IPV6: Cell<bool> = const { Cell::new(false) };
    }

    struct Server {
        socket: UdpSocket,
        endpoint: ServerEndpoint,
        key: TicketKey,
        connected: usize,
    }

    impl Server {
        fn new() -> Server {
            let socket = UdpSocket::bind("127.0.0.1:0").unwrap();
            socket.set_nonblocking(true).unwrap();
            let key = keys::TicketKey::generate();
            let config = ServerConfig {
                keys: std::slice::from_ref(&key),
                public_addresses: &[socket.local_addr().unwrap().into()],
                sessions_max: 8,
                game: "test",
                wire_version: 1,
                tickets: TicketLedger::new(Duration::ZERO, UNIX),
            };
            Server {
                endpoint: ServerEndpoint::new(config, Duration::ZERO).unwrap(),
                socket,
                key,
                connected: 0,
            }
        }

        fn ticket(&self) -> Ticket {
            self.ticket_for("anna", &[self.socket.local_addr().unwrap()])
        }

        fn ticket_for<A>(&self, identity: &str, servers: &[A]) -> Ticket
        where
            A: Copy + Into<ServerAddress>,
        {
            let servers: Vec<ServerAddress> = servers.iter().map(|at| (*at).into()).collect();
            let spec = TicketSpec {
                game: "test",
                wire_version: 1,
                identity,
                match_id: MatchId(1),
                seats: 1,
                servers: &servers,
                life: Duration::from_secs(60),
                timeout: Duration::from_secs(5),
                now_unix: UNIX,
            };
            Ticket::issue(&self.key, &spec).unwrap()
        }

        fn serve(&mut self, now: Duration) {
            let mut buffer = [0; DATAGRAM_MAX + 1];
            while let Ok((bytes, from)) = self.socket.recv_from(&mut buffer) {
                self.endpoint.handle(now, from, &buffer[..bytes]);
            }
            self.endpoint.advance(now, UNIX + now);
            while let Some(event) = self.endpoint.poll_event() {
                if let ServerEvent::Connected { session, .. } = event {
                    self.connected += 1;
                    self.endpoint.admit(session);
                }
            }
            while let Some((to, bytes)) = self.endpoint.poll_transmit() {
                let _ = self.socket.send_to(bytes, to);
            }
        }

        /// Runs until the client is connected, or `within` of virtual time has passed. Returns `true` if the client is
        /// connected.
        #[expect(clippy::disallowed_methods, reason = "datagrams need real time")]
        fn lets_in(
            &mut self,
            client: &mut UdpClient,
            now: &mut Duration,
            within: Duration,
        ) -> bool {
            let end = *now + within;
            while *now < end {
                *now += Duration::from_millis(10);
                client.advance(*now);
                let until = Instant::now() + Duration::from_millis(1);
                while Instant::now() < until {
                    self.serve(*now);
                }
                if client.state() == TransportState::Connected {
                    return true;
                }
            }
            false
        }
    }

    /// The server mistook the client's dials for late datagrams of the old session, and the client gave up after five
    /// seconds.
    #[test]
    fn a_client_on_the_port_of_a_dead_process_connects_from_another_port() {
        let (mut server, mut now) = (Server::new(), Duration::ZERO);
        let second = Duration::from_secs(1);
        let ticket = server.ticket();
        let mut dies = UdpClient::connect(&ticket, now).unwrap();
        assert!(server.lets_in(&mut dies, &mut now, second));
        let port = dies.lines[0].socket.udp.local_addr().unwrap();
        drop(dies);
        let bob = server.ticket_for("bob", &[server.socket.local_addr().unwrap()]);
        let mut next = UdpClient::connect(&bob, now).unwrap();
        next.lines[0].socket.udp = UdpSocket::bind(port).unwrap();
        next.lines[0].socket.udp.set_nonblocking(true).unwrap();
        assert!(!server.lets_in(&mut next, &mut now, second), "it is taken");
        assert!(server.lets_in(&mut next, &mut now, second));
        assert_ne!(next.lines[0].socket.udp.local_addr().unwrap(), port);
        assert_eq!((server.connected, server.endpoint.sessions()), (2, 2));
    }

    /// A system without IPv6 has no socket for the address (finding P3-M4).
    #[test]
    fn an_address_without_a_socket_is_skipped() {
        LACKS_IPV6.set(true);
        let (mut server, mut now) = (Server::new(), Duration::ZERO);
        let right = server.socket.local_addr().unwrap();
        let [v6, mute]: [SocketAddr; 2] =
            ["[2001:db8::1]:7", "127.0.0.1:9"].map(|at| at.parse().unwrap());
        for servers in [vec![v6, right], vec![v6, v6, right], vec![mute, v6, right]] {
            let ticket = server.ticket_for("anna", &servers);
            let mut client = UdpClient::connect(&ticket, now).unwrap();
            assert!(
                server.lets_in(&mut client, &mut now, 2 * HEAD_START),
                "{servers:?}"
            );
            let mut again = client.redial(&ticket, now).unwrap();
            assert!(
                server.lets_in(&mut again, &mut now, 2 * HEAD_START),
                "{servers:?}"
            );
        }
        let nowhere = server.ticket_for("anna", &[v6]);
        assert!(UdpClient::connect(&nowhere, now).is_err());
    }

    /// An undialable address ended the join immediately (finding P3-M4). Broadcasts are refused unless a program asks
    /// for them.
    #[test]
    fn an_undialable_address_costs_no_time_if_the_next_one_works() {
        for wrong in ["255.255.255.255:7", "[::ffff:255.255.255.255]:7"] {
            let (mut server, mut now) = (Server::new(), Duration::ZERO);
            let right = server.socket.local_addr().unwrap();
            let ticket = server.ticket_for("anna", &[wrong.parse().unwrap(), right]);
            let mut client = UdpClient::connect(&ticket, now).unwrap();
            assert!(
                server.lets_in(&mut client, &mut now, HEAD_START / 2),
                "{wrong}"
            );
            assert_eq!((client.server(), client.lines.len()), (right, 1));
            // The same when the client reconnects.
            let mut again = client.redial(&ticket, now).unwrap();
            assert!(
                server.lets_in(&mut again, &mut now, HEAD_START / 2),
                "{wrong}"
            );
        }
    }

    /// An unresponsive address delayed each join by 5 s (finding P3-M4).
    #[test]
    fn a_silent_address_costs_a_moment_and_the_first_to_respond_wins() {
        let (mut server, mut now) = (Server::new(), Duration::ZERO);
        let right = server.socket.local_addr().unwrap();
        let mute = UdpSocket::bind("127.0.0.1:0").unwrap();
        let mute_at = mute.local_addr().unwrap();
        for (servers, moments) in [
            (vec![mute_at, right], 1),
            (vec![mute_at, mute_at, right], 2),
            (vec![right, mute_at], 0),
        ] {
            let began = now;
            let ticket = server.ticket_for("anna", &servers);
            let mut client = UdpClient::connect(&ticket, now).unwrap();
            let within = Duration::from_secs(2);
            assert!(server.lets_in(&mut client, &mut now, within));
            let took = now - began;
            let room = HEAD_START * moments..HEAD_START * moments + Duration::from_millis(100);
            assert!(room.contains(&took), "{took:?} to {servers:?}");
            assert_eq!((client.server(), client.lines.len()), (right, 1));
        }
        assert_eq!(server.connected, 3, "each client is let in once");
        mute.set_nonblocking(true).unwrap();
        assert!(mute.recv(&mut [0; DATAGRAM_MAX]).is_ok(), "it was dialled");
    }

    /// All addresses are tried, and the client gives up little later than it would with one address.
    #[test]
    fn with_no_response_from_any_address_the_dial_takes_little_longer_than_for_one() {
        let (mut server, mut now) = (Server::new(), Duration::ZERO);
        let mute = UdpSocket::bind("127.0.0.1:0").unwrap();
        let ticket = server.ticket_for("anna", &[mute.local_addr().unwrap(); 3]);
        let mut client = UdpClient::connect(&ticket, now).unwrap();
        let first = Duration::from_millis(5_000);
        assert!(!server.lets_in(&mut client, &mut now, first));
        assert_eq!(client.state(), TransportState::Connecting);
        assert!(!server.lets_in(&mut client, &mut now, 3 * HEAD_START));
        let no_answer = TransportState::Closed(CloseReason::NoAnswer);
        assert_eq!(client.state(), no_answer);
    }

    /// On a slow connection both dials get a response: one of them says goodbye to the server, and the other continues.
    #[test]
    fn a_client_that_dials_twice_on_a_slow_connection_has_one_session() {
        let (mut server, mut now) = (Server::new(), Duration::ZERO);
        let right = server.socket.local_addr().unwrap();
        let ticket = server.ticket_for("anna", &[right, right]);
        let profile = "rtt=800,jitter=0,loss=0".parse().unwrap();
        let client = UdpClient::connect(&ticket, now).unwrap();
        let mut client = client.with_conditioner(profile, 1);
        let within = Duration::from_secs(3);
        assert!(server.lets_in(&mut client, &mut now, within));
        for _ in 0..300 {
            now += Duration::from_millis(10);
            client.advance(now);
            server.serve(now);
        }
        assert_eq!(client.state(), TransportState::Connected);
        let sessions = (server.endpoint.sessions(), client.lines.len());
        assert!(sessions.0 <= 2 && sessions.1 == 1, "{sessions:?}");
    }

    /// The server keeps only the session that the client chose.
    #[test]
    fn a_client_that_dialled_twice_sends_a_goodbye_on_the_dropped_dial() {
        let (mut server, mut now) = (Server::new(), Duration::ZERO);
        let right = server.socket.local_addr().unwrap();
        let ticket = server.ticket_for("anna", &[right, right]);
        let mut client = UdpClient::connect(&ticket, now).unwrap();
        while client.lines.len() < 2 {
            now += Duration::from_millis(10);
            client.advance(now);
        }
        assert!(server.lets_in(&mut client, &mut now, HEAD_START));
        for _ in 0..20 {
            now += Duration::from_millis(10);
            client.advance(now);
            server.serve(now);
        }
        assert_eq!((server.endpoint.sessions(), client.lines.len()), (1, 1));
    }

    /// A client keeps redialling while its player plays, and a new laminar instance for each dial would cost 1.7 MB.
    #[test]
    fn all_dials_of_a_client_share_one_laminar_instance() {
        let (mut server, mut now) = (Server::new(), Duration::ZERO);
        let link = SharedLink::new();
        let ticket = server.ticket();
        let mut one = UdpClient::connect(&ticket, now).unwrap().sharing(&link);
        let other = UdpClient::connect(&ticket, now).unwrap().sharing(&link);
        assert_eq!(link.holders(), 3);
        let mut again = one.redial(&ticket, now).unwrap();
        assert_eq!(link.holders(), 4);
        assert!(server.lets_in(&mut again, &mut now, Duration::from_secs(1)));
        drop((one, other));
        assert_eq!(link.holders(), 2);
    }

    /// Finding P3-N0: tickets held socket addresses only, so an invite was worthless once the host's address had
    /// changed.
    #[test]
    fn a_name_is_looked_up_when_it_is_dialled() {
        let (mut server, mut now) = (Server::new(), Duration::ZERO);
        let port = server.socket.local_addr().unwrap().port();
        let name: ServerAddress = format!("localhost:{port}").parse().unwrap();
        let config = ServerConfig {
            keys: std::slice::from_ref(&server.key),
            public_addresses: &[name],
            sessions_max: 8,
            game: "test",
            wire_version: 1,
            tickets: TicketLedger::new(Duration::ZERO, UNIX),
        };
        server.endpoint = ServerEndpoint::new(config, Duration::ZERO).unwrap();
        let ticket = server.ticket_for("anna", &[name]);
        let mut client = UdpClient::connect(&ticket, now).unwrap();
        assert_eq!(client.state(), TransportState::Connecting);
        // The name may have an address of each family, but the server listens at only one.
        assert!(server.lets_in(&mut client, &mut now, Duration::from_secs(20)));
        // A ticket for the server's address is rejected, because its public address is a name.
        let by_address = server.ticket();
        let mut other = UdpClient::connect(&by_address, now).unwrap();
        assert!(!server.lets_in(&mut other, &mut now, Duration::from_secs(1)));
    }

    /// A ticket's names are dialled like its addresses: a moment apart.
    #[test]
    fn a_name_of_a_silent_address_costs_a_moment_if_the_next_one_responds() {
        let (mut server, mut now) = (Server::new(), Duration::ZERO);
        let right = server.socket.local_addr().unwrap();
        let mute = UdpSocket::bind("127.0.0.1:0").unwrap();
        let name = format!("localhost:{}", mute.local_addr().unwrap().port());
        let servers: [ServerAddress; 2] = [name.parse().unwrap(), right.into()];
        let ticket = server.ticket_for("anna", &servers);
        let mut client = UdpClient::connect(&ticket, now).unwrap();
        while client.names.is_some() {
            client.advance(now);
        }
        // The name may have an address of each family.
        let within = HEAD_START * 2 + Duration::from_millis(100);
        assert!(server.lets_in(&mut client, &mut now, within));
        assert_eq!((client.server(), client.lines.len()), (right, 1));
        mute.set_nonblocking(true).unwrap();
        assert!(mute.recv(&mut [0; DATAGRAM_MAX]).is_ok(), "it was dialled");
    }

    #[test]
    fn a_client_that_gets_responses_keeps_its_port() {
        let (mut server, mut now) = (Server::new(), Duration::ZERO);
        let ticket = server.ticket();
        let mut client = UdpClient::connect(&ticket, now).unwrap();
        let port = client.lines[0].socket.udp.local_addr().unwrap();
        assert!(server.lets_in(&mut client, &mut now, Duration::from_secs(1)));
        for _ in 0..300 {
            now += Duration::from_millis(10);
            client.advance(now);
        }
        assert_eq!(client.lines[0].socket.udp.local_addr().unwrap(), port);
    }
}
