//! The client's real socket, non-blocking, with an optional bad network inside.
//!
//! ```text
//!               ┌──────────── conditioner (optional) ────────────┐
//! endpoint ────▶│ up leg:   delay, jitter, loss, reorder, …       │────▶ UDP
//!          ◀────│ down leg                                        │◀────
//!               └─────────────────────────────────────────────────┘
//! ```
//!
//! The conditioner works on sealed datagrams, keep-alives and handshake included, so a game played through it on
//! one machine meets what it would meet on a bad line.
//!
//! A dial of which nothing is heard goes on from another port: the server knows this one for somebody else's where a process
//! that died had it a moment ago, and hears no knock from there while it takes that session for alive.
//!
//! Invariant: no error of the socket ends a session. An ICMP "refused" may come from anyone on the path, and a
//! full buffer or a network that changes is loss; what ends a session is the server's word or its silence.

use std::io;
use std::net::{Ipv4Addr, Ipv6Addr, SocketAddr, UdpSocket};
use std::time::Duration;

use twinstep_core::simnet::{LinkProfile, SimLink};

use crate::client::{ClientEndpoint, ClientEvent, TransportState};
use crate::look_up::LookUp;
use crate::netcode::DATAGRAM_MAX;
use crate::shared_link::SharedLink;
use crate::tickets::Ticket;
use crate::transport::Transport;
use crate::words::{CloseReason, PACKET_MAX, SendError, TransportCounters};

/// A dial goes on from another port when it was without any answer for so long, once: beyond a handshake's round trip
/// over any line that can be played on.
const DEAF_AFTER: Duration = Duration::from_millis(1_500);

/// Datagrams taken from the socket at one [`advance`](Transport::advance); the rest waits for the next one.
pub const RECEIVE_BUDGET: usize = 256;

/// A session over a UDP socket of its own.
pub struct UdpClient {
    endpoint: ClientEndpoint,
    socket: Socket,
    conditioner: Option<SimLink>,
    now: Duration,
    /// Whether the dial went on from another port.
    has_moved: bool,
    /// The names of the ticket, until their addresses are known: then the dial begins.
    names: Option<LookUp>,
    no_address: bool,
    io_errors: u64,
}

/// Why a session could not begin.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum ConnectError {
    /// No socket is to be had.
    #[error("cannot open a UDP socket: {0}")]
    Socket(#[from] io::Error),
}

impl UdpClient {
    /// Opens a socket and begins to connect; names of the ticket are looked up first, on another thread. The same ticket may be dialled again and again, also while an earlier
    /// session lives: the newest takes over.
    ///
    /// # Errors
    /// [`ConnectError`]: there is no socket.
    pub fn connect(ticket: &Ticket, now: Duration) -> Result<UdpClient, ConnectError> {
        let endpoint = ClientEndpoint::new(ticket, now);
        Ok(UdpClient {
            socket: Socket::open(endpoint.server())?,
            endpoint,
            conditioner: None,
            now,
            has_moved: false,
            names: LookUp::begin(ticket, now),
            no_address: false,
            io_errors: 0,
        })
    }

    /// Dials again, with another ticket or the same one, from the socket of an attempt that came to nothing. Its conditioner
    /// and its laminar move along.
    ///
    /// # Errors
    /// [`ConnectError`]: there is no socket.
    pub fn redial(&mut self, ticket: &Ticket, now: Duration) -> Result<UdpClient, ConnectError> {
        Ok(UdpClient {
            endpoint: ClientEndpoint::new(ticket, now).sharing(self.endpoint.link()),
            socket: self.socket.try_clone()?,
            conditioner: self.conditioner.take(),
            now,
            has_moved: false,
            names: LookUp::begin(ticket, now),
            no_address: false,
            io_errors: self.io_errors,
        })
    }

    /// Sends all datagrams, both ways, through a simulated bad network.
    #[must_use]
    pub fn with_conditioner(mut self, profile: LinkProfile, seed: u64) -> UdpClient {
        self.conditioner = Some(SimLink::new(profile, seed));
        self
    }

    /// Shares its laminar with whoever else has `link`: a process with many clients saves 1.7 MB for each.
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
        self.endpoint = self.endpoint.sharing(link);
        self
    }

    /// Changes the simulated network for what is sent from now on; nothing without one.
    pub fn set_profile(&mut self, profile: LinkProfile) {
        if let Some(link) = &mut self.conditioner {
            link.set_profile(profile);
        }
    }

    /// What was dropped so far, and why.
    #[must_use]
    pub fn counters(&self) -> TransportCounters {
        TransportCounters {
            io_errors: self.io_errors,
            ..self.endpoint.counters()
        }
    }

    /// The server's address that is tried now, or that answered.
    #[must_use]
    pub fn server(&self) -> SocketAddr {
        self.endpoint.server()
    }

    fn receive(&mut self, now: Duration) {
        // One byte more than a datagram may have, so that a larger one is seen as such.
        let mut buffer = [0; DATAGRAM_MAX + 1];
        for _ in 0..RECEIVE_BUDGET {
            let (bytes, from) = match self.socket.udp.recv_from(&mut buffer) {
                Ok(received) => received,
                Err(e) if e.kind() == io::ErrorKind::WouldBlock => break,
                Err(_) => {
                    self.io_errors += 1;
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
    }

    /// Begins the dial when the names are looked up. Returns `false` as long as they are not.
    fn is_looked_up(&mut self) -> bool {
        let Some(found) = self.names.as_mut().map(|names| names.poll(self.now)) else {
            return !self.no_address;
        };
        let Some(found) = found else {
            return false;
        };
        self.names = None;
        self.no_address = found.is_err();
        if let Ok(ticket) = found {
            self.endpoint = ClientEndpoint::new(&ticket, self.now).sharing(self.endpoint.link());
        }
        !self.no_address
    }

    /// Takes another port, if nobody answers the dial at this one.
    fn move_on(&mut self) {
        let is_dialling = self.endpoint.state() == TransportState::Connecting;
        if is_dialling && !self.has_moved && self.endpoint.silence() >= DEAF_AFTER {
            self.has_moved = true;
            // Without another socket it goes on by this one.
            match Socket::open(self.endpoint.server()) {
                Ok(socket) => self.socket = socket,
                Err(_) => self.io_errors += 1,
            }
        }
    }

    fn transmit(&mut self) {
        while let Some((to, datagram)) = self.endpoint.poll_transmit() {
            match &mut self.conditioner {
                None => {
                    let sent = self.socket.send(to, datagram);
                    self.io_errors += u64::from(sent.is_err());
                }
                Some(link) => link.up.send(self.now, datagram),
            }
        }
        self.release(self.now);
    }

    /// Sends what the simulated network lets out by `until`.
    fn release(&mut self, until: Duration) {
        let server = self.endpoint.server();
        if let Some(link) = &mut self.conditioner {
            while let Some(datagram) = link.up.poll(until) {
                let sent = self.socket.send(server, datagram);
                self.io_errors += u64::from(sent.is_err());
            }
        }
    }
}

/// A socket, and whose addresses it speaks: a ticket may name some of both families. That is remembered, since to ask the
/// system costs a call for each datagram.
struct Socket {
    udp: UdpSocket,
    is_ipv4: bool,
}

impl Socket {
    fn open(server: SocketAddr) -> io::Result<Socket> {
        let any: SocketAddr = match server {
            SocketAddr::V4(_) => (Ipv4Addr::UNSPECIFIED, 0).into(),
            SocketAddr::V6(_) => (Ipv6Addr::UNSPECIFIED, 0).into(),
        };
        let udp = UdpSocket::bind(any)?;
        udp.set_nonblocking(true)?;
        Ok(Socket {
            udp,
            is_ipv4: any.is_ipv4(),
        })
    }

    fn try_clone(&self) -> io::Result<Socket> {
        Ok(Socket {
            udp: self.udp.try_clone()?,
            is_ipv4: self.is_ipv4,
        })
    }

    /// Sends a datagram, from another socket if this one does not speak to such addresses.
    fn send(&mut self, to: SocketAddr, datagram: &[u8]) -> io::Result<usize> {
        if self.is_ipv4 != to.is_ipv4() {
            *self = Socket::open(to)?;
        }
        self.udp.send_to(datagram, to)
    }
}

impl Transport for UdpClient {
    fn advance(&mut self, now: Duration) {
        self.now = self.now.max(now);
        if !self.is_looked_up() {
            return;
        }
        self.receive(self.now);
        self.move_on();
        self.endpoint.advance(self.now);
        self.transmit();
    }

    fn poll(&mut self, buffer: &mut [u8; PACKET_MAX]) -> Option<usize> {
        loop {
            match self.endpoint.poll_event()? {
                ClientEvent::Packet(packet) => {
                    buffer[..packet.len()].copy_from_slice(packet);
                    return Some(packet.len());
                }
                // `state` tells these.
                ClientEvent::Connected | ClientEvent::Closed { .. } => {}
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
        // Nobody will be there to let the simulated network's time pass: what it still holds leaves now.
        self.release(Duration::MAX);
    }

    fn state(&self) -> TransportState {
        match self.no_address {
            true => TransportState::Closed(CloseReason::NameUnknown),
            false => self.endpoint.state(),
        }
    }
}

#[cfg(test)]
mod tests {
    use std::time::Instant;

    use super::*;
    use crate::address::ServerAddress;
    use crate::server::{ServerConfig, ServerEndpoint, ServerEvent};
    use crate::tickets::TicketSpec;
    use crate::{TicketKey, keys};

    const UNIX: Duration = Duration::from_secs(1_700_000_000);

    /// A server in this very thread.
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
                now_unix: UNIX,
            };
            Server {
                endpoint: ServerEndpoint::new(config, Duration::ZERO).unwrap(),
                socket,
                key,
                connected: 0,
            }
        }

        fn ticket(&self) -> Ticket {
            self.ticket_of("anna")
        }

        fn ticket_of(&self, identity: &str) -> Ticket {
            self.ticket_to(self.socket.local_addr().unwrap().into(), identity)
        }

        fn ticket_to(&self, server: ServerAddress, identity: &str) -> Ticket {
            let spec = TicketSpec {
                game: "test",
                wire_version: 1,
                identity,
                match_id: 1,
                seats: 1,
                servers: &[server],
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

        /// Until the client is connected, or so much of virtual time has passed.
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

    /// Its knocks were taken for late ones of the session that was still there, and it gave up after five seconds.
    #[test]
    fn who_gets_the_port_of_a_process_that_died_is_let_in_from_another_one() {
        let (mut server, mut now) = (Server::new(), Duration::ZERO);
        let second = Duration::from_secs(1);
        let ticket = server.ticket();
        let mut dies = UdpClient::connect(&ticket, now).unwrap();
        assert!(server.lets_in(&mut dies, &mut now, second));
        let port = dies.socket.udp.local_addr().unwrap();
        drop(dies);
        let mut next = UdpClient::connect(&server.ticket_of("bob"), now).unwrap();
        next.socket.udp = UdpSocket::bind(port).unwrap();
        next.socket.udp.set_nonblocking(true).unwrap();
        assert!(!server.lets_in(&mut next, &mut now, second), "it is taken");
        assert!(server.lets_in(&mut next, &mut now, second));
        assert_ne!(next.socket.udp.local_addr().unwrap(), port);
        assert_eq!((server.connected, server.endpoint.sessions()), (2, 2));
    }

    /// A client dials again for as long as its player plays: what it would leave its share for is 1.7 MB.
    #[test]
    fn a_laminar_is_shared_by_all_dials_of_all_that_share_it() {
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

    /// Finding P3-N0: tickets held socket addresses only, so an invite was worth nothing once the host's address had changed.
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
            now_unix: UNIX,
        };
        server.endpoint = ServerEndpoint::new(config, Duration::ZERO).unwrap();
        let ticket = server.ticket_to(name, "anna");
        let mut client = UdpClient::connect(&ticket, now).unwrap();
        assert_eq!(client.state(), TransportState::Connecting);
        // The name may stand for an address of each family, and the server listens at one.
        assert!(server.lets_in(&mut client, &mut now, Duration::from_secs(20)));
        // A ticket for its address is one for another server.
        let by_address = server.ticket();
        let mut other = UdpClient::connect(&by_address, now).unwrap();
        assert!(!server.lets_in(&mut other, &mut now, Duration::from_secs(1)));
    }

    #[test]
    fn who_is_heard_keeps_its_port() {
        let (mut server, mut now) = (Server::new(), Duration::ZERO);
        let ticket = server.ticket();
        let mut client = UdpClient::connect(&ticket, now).unwrap();
        let port = client.socket.udp.local_addr().unwrap();
        assert!(server.lets_in(&mut client, &mut now, Duration::from_secs(1)));
        for _ in 0..300 {
            now += Duration::from_millis(10);
            client.advance(now);
        }
        assert_eq!(client.socket.udp.local_addr().unwrap(), port);
    }
}
