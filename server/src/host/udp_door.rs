//! [`UdpDoor`]: UDP with tickets, encrypted: one socket, and the state machine of all its sessions.
//!
//! As long as tokio knows the socket, each datagram that comes wakes its thread, whether or not anybody waits for it. So
//! while there is much to do it does not know it.

use std::io::{self, ErrorKind};
use std::net::SocketAddr;
use std::task::{Context, Poll};
use std::time::Duration;

use socket2::SockRef;
use twinstep_udp::{
    DATAGRAM_MAX, SerialOf, ServerConfigError, ServerEndpoint, ServerEvent, SessionId, TicketKey,
    TransportCounters,
};

use super::door::Door;
use super::knock::{Knock, OwnKnocks};
use super::metrics::Traffic;

/// See the [module](self).
pub(super) struct UdpDoor {
    socket: Socket,
    endpoint: ServerEndpoint,
    /// The game that is served: who knocks for it hears that it is here.
    game: String,
    /// What this server asks others, lest it answers itself.
    own_knocks: OwnKnocks,
    is_shut: bool,
    buffer: Box<[u8; DATAGRAM_MAX + 1]>,
}

/// The socket, which never waits.
enum Socket {
    /// What comes wakes whoever asked.
    Rousing(tokio::net::UdpSocket),
    Quiet(std::net::UdpSocket),
}

impl Socket {
    fn receive(&self, buffer: &mut [u8]) -> io::Result<(usize, SocketAddr)> {
        match self {
            Socket::Rousing(socket) => socket.try_recv_from(buffer),
            Socket::Quiet(socket) => socket.recv_from(buffer),
        }
    }

    fn send(&self, datagram: &[u8], to: SocketAddr) -> io::Result<usize> {
        match self {
            Socket::Rousing(socket) => socket.try_send_to(datagram, to),
            Socket::Quiet(socket) => socket.send_to(datagram, to),
        }
    }
}

impl UdpDoor {
    pub(super) fn new(
        socket: tokio::net::UdpSocket,
        endpoint: ServerEndpoint,
        game: String,
        own_knocks: OwnKnocks,
    ) -> UdpDoor {
        UdpDoor {
            socket: Socket::Rousing(socket),
            endpoint,
            game,
            own_knocks,
            is_shut: false,
            buffer: Box::new([0; DATAGRAM_MAX + 1]),
        }
    }
}

impl Door for UdpDoor {
    fn poll_ready(&mut self, context: &mut Context<'_>) -> Poll<()> {
        match &self.socket {
            // An error is met, and counted, by whoever receives.
            Socket::Rousing(socket) => socket.poll_recv_ready(context).map(|_| ()),
            Socket::Quiet(_) => Poll::Pending,
        }
    }

    fn rouse(&mut self, rouses: bool) {
        // A second name of the same socket; where there are no more, it stays as it is, which costs time and nothing else.
        let changed = match &self.socket {
            Socket::Rousing(socket) if !rouses => SockRef::from(socket)
                .try_clone()
                .map(|socket| Socket::Quiet(socket.into())),
            Socket::Quiet(socket) if rouses => socket
                .try_clone()
                .and_then(tokio::net::UdpSocket::from_std)
                .map(Socket::Rousing),
            _ => return,
        };
        match changed {
            Ok(socket) => self.socket = socket,
            Err(error) => tracing::warn!(%error, rouses, "the socket stays as it is"),
        }
    }

    fn receive(&mut self, now: Duration, at_most: usize, traffic: &mut Traffic) -> usize {
        let buffer = &mut *self.buffer;
        for count in 0..at_most {
            let (bytes, from) = match self.socket.receive(buffer) {
                Ok(came) => came,
                Err(error) if error.kind() == ErrorKind::WouldBlock => return count,
                // Windows reports here that an earlier datagram found nobody; larger ones fail there too.
                Err(_) => {
                    traffic.errors += 1;
                    continue;
                }
            };
            traffic.datagrams_in += 1;
            traffic.bytes_in += bytes as u64;
            let datagram = &buffer[..bytes];
            match Knock::read(datagram, &self.game) {
                // Who ends is there for nobody, and nobody is sent to where he is.
                Some(knock) => {
                    if !knock.is_one_of(&self.own_knocks) && !self.is_shut {
                        let _ = self.socket.send(&knock.answer(), from);
                    }
                }
                None => self.endpoint.handle(now, from, datagram),
            }
        }
        at_most
    }

    fn event(&mut self) -> Option<ServerEvent> {
        self.endpoint.poll_event()
    }

    fn admit(&mut self, session: SessionId) {
        self.endpoint.admit(session);
    }

    fn send(&mut self, session: SessionId, packet: &[u8]) -> bool {
        self.endpoint.send(session, packet).is_ok()
    }

    fn disconnect(&mut self, session: SessionId) {
        self.endpoint.disconnect(session);
    }

    fn transmit(&mut self, traffic: &mut Traffic) {
        while let Some((to, datagram)) = self.endpoint.poll_transmit() {
            match self.socket.send(datagram, to) {
                Ok(bytes) => {
                    traffic.datagrams_out += 1;
                    traffic.bytes_out += bytes as u64;
                }
                Err(_) => traffic.unsent += 1,
            }
        }
    }

    fn advance(&mut self, now: Duration, now_unix: Duration) {
        self.endpoint.advance(now, now_unix);
    }

    fn note_safe(&mut self, of: SerialOf, serial: u64) {
        self.endpoint.note_safe(of, serial);
    }

    fn set_keys(&mut self, keys: &[TicketKey]) -> Result<(), ServerConfigError> {
        self.endpoint.set_keys(keys)
    }

    fn forget_match(&mut self, id: u64) {
        self.endpoint.forget_match(id);
    }

    fn shut(&mut self) {
        self.is_shut = true;
        self.endpoint.shut();
    }

    fn sessions(&self) -> usize {
        self.endpoint.sessions()
    }

    fn counters(&self) -> TransportCounters {
        self.endpoint.counters()
    }
}
