//! [`UdpDoor`]: UDP with tickets, encrypted: one socket, and the state machine of all its sessions.

use std::io::ErrorKind;
use std::task::{Context, Poll};
use std::time::Duration;

use tokio::net::UdpSocket;
use twinstep_udp::{
    DATAGRAM_MAX, SerialOf, ServerConfigError, ServerEndpoint, ServerEvent, SessionId, TicketKey,
    TransportCounters,
};

use super::door::Door;
use super::knock::{Knock, OwnKnocks};
use super::metrics::Traffic;

/// See the [module](self).
pub(super) struct UdpDoor {
    socket: UdpSocket,
    endpoint: ServerEndpoint,
    /// The game that is served: who knocks for it hears that it is here.
    game: String,
    /// What this server asks others, lest it answers itself.
    own_knocks: OwnKnocks,
    is_shut: bool,
    buffer: Box<[u8; DATAGRAM_MAX + 1]>,
}

impl UdpDoor {
    pub(super) fn new(
        socket: UdpSocket,
        endpoint: ServerEndpoint,
        game: String,
        own_knocks: OwnKnocks,
    ) -> UdpDoor {
        UdpDoor {
            socket,
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
        // An error is met, and counted, by whoever receives.
        self.socket.poll_recv_ready(context).map(|_| ())
    }

    fn receive(&mut self, now: Duration, at_most: usize, traffic: &mut Traffic) -> usize {
        let buffer = &mut *self.buffer;
        for count in 0..at_most {
            let (bytes, from) = match self.socket.try_recv_from(buffer) {
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
                        let _ = self.socket.try_send_to(&knock.answer(), from);
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
            match self.socket.try_send_to(datagram, to) {
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
