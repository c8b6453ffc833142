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

#[cfg(test)]
mod tests {
    use std::future::poll_fn;
    use std::net::SocketAddr;

    use twinstep_udp::ServerConfig;

    use super::*;
    use crate::host::knock::{Found, who_is};

    const PATIENCE: Duration = Duration::from_secs(20);

    async fn door(game: &str, own_knocks: OwnKnocks) -> (UdpDoor, SocketAddr) {
        let socket = tokio::net::UdpSocket::bind("127.0.0.1:0").await.unwrap();
        let address = socket.local_addr().unwrap();
        let config = ServerConfig {
            keys: &[TicketKey::generate()],
            public_addresses: &[address],
            sessions_max: 4,
            game,
            wire_version: 1,
            now_unix: Duration::ZERO,
        };
        let endpoint = ServerEndpoint::new(config, Duration::ZERO).unwrap();
        let door = UdpDoor::new(socket, endpoint, game.to_owned(), own_knocks);
        (door, address)
    }

    /// Takes what comes until the asker has its answer.
    async fn found(door: &mut UdpDoor, at: SocketAddr, own: &OwnKnocks) -> Found {
        let own = own.clone();
        let asking = tokio::task::spawn_blocking(move || who_is(at, "a game", &own));
        while !asking.is_finished() {
            door.receive(Duration::ZERO, 16, &mut Traffic::default());
            tokio::time::sleep(Duration::from_millis(1)).await;
        }
        asking.await.unwrap()
    }

    #[tokio::test]
    async fn whoever_asks_is_answered_but_by_itself_and_by_whom_is_about_to_end() {
        let own = OwnKnocks::default();
        let (mut door, at) = door("a game", own.clone()).await;
        let other = OwnKnocks::default();
        assert_eq!(found(&mut door, at, &other).await, Found::Other);
        assert_eq!(found(&mut door, at, &own).await, Found::Ourselves);
        door.shut();
        assert_eq!(found(&mut door, at, &other).await, Found::Nobody);
    }

    #[tokio::test]
    async fn a_batch_ends_where_nothing_is_left_or_at_its_bound_and_is_counted() {
        let (mut door, at) = door("a game", OwnKnocks::default()).await;
        let sender = std::net::UdpSocket::bind("127.0.0.1:0").unwrap();
        for _ in 0..5 {
            sender.send_to(b"junk", at).unwrap();
        }
        let mut traffic = Traffic::default();
        let mut took = Vec::new();
        let all = async {
            while took.iter().sum::<usize>() < 5 {
                poll_fn(|context| door.poll_ready(context)).await;
                took.push(door.receive(Duration::ZERO, 3, &mut traffic));
            }
        };
        tokio::time::timeout(PATIENCE, all).await.unwrap();
        assert!(took.iter().all(|count| *count <= 3), "{took:?}");
        assert_eq!(door.receive(Duration::ZERO, 3, &mut traffic), 0);
        assert_eq!((traffic.datagrams_in, traffic.bytes_in), (5, 20));
        assert_eq!((traffic.errors, door.counters().junk), (0, 5));
    }

    /// While it rouses nobody, tokio does not know the socket: nothing that comes wakes its thread.
    #[tokio::test]
    async fn what_comes_wakes_whoever_asked_unless_it_is_to_wake_nobody() {
        let (mut door, at) = door("a game", OwnKnocks::default()).await;
        let sender = std::net::UdpSocket::bind("127.0.0.1:0").unwrap();
        let mut traffic = Traffic::default();
        for round in 1..=3 {
            door.rouse(false);
            sender.send_to(b"junk", at).unwrap();
            let came = poll_fn(|context| door.poll_ready(context));
            let waited = tokio::time::timeout(Duration::from_millis(50), came).await;
            assert!(waited.is_err(), "nobody is woken");
            assert_eq!(door.receive(Duration::ZERO, 9, &mut traffic), 1);
            door.rouse(true);
            sender.send_to(b"junk", at).unwrap();
            let heard = async {
                while traffic.datagrams_in < 2 * round {
                    poll_fn(|context| door.poll_ready(context)).await;
                    door.receive(Duration::ZERO, 9, &mut traffic);
                }
            };
            let waited = tokio::time::timeout(PATIENCE, heard).await;
            waited.expect("whoever asked is woken again");
        }
    }
}
