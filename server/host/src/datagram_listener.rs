//! [`DatagramListener`]: receives and sends encrypted datagrams. Owns a UDP socket, the browser connections, and the
//! state machine of all their sessions.
//!
//! Invariant: a browser's connection is a peer of the same state machine. So slots, shares and bounds count UDP and
//! browser sessions together.

use std::task::{Context, Poll};
use std::time::Duration;

use twinstep_udp::{
    AddressPair, ServerConfigError, ServerEndpoint, ServerEvent, SessionId, TicketKey,
    TransportCounters,
};

use super::listener::Listener;
use super::observer::Traffic;
use super::socket::Socket;
use super::web::{Heard, WebLines, WebTraffic, is_line};

pub(super) struct DatagramListener {
    socket: Socket,
    web: Option<WebLines>,
    endpoint: ServerEndpoint,
}

impl DatagramListener {
    pub(super) fn new(
        socket: tokio::net::UdpSocket,
        web: Option<WebLines>,
        endpoint: ServerEndpoint,
    ) -> DatagramListener {
        DatagramListener {
            socket: Socket::new(socket),
            web,
            endpoint,
        }
    }

    fn receive_lines(&mut self, now: Duration, at_most: usize, traffic: &mut Traffic) -> usize {
        let Some(web) = &mut self.web else { return 0 };
        let endpoint = &mut self.endpoint;
        web.receive(now, at_most, |heard| match heard {
            Heard::Datagram(path, datagram) => {
                traffic.datagrams_in += 1;
                traffic.bytes_in += datagram.len() as u64;
                endpoint.handle(now, path, datagram);
            }
            Heard::Gone(peer) => endpoint.lose(peer),
        })
    }

    /// Sends the first `count` queued datagrams over UDP, as many as one system call takes. Returns the number sent or
    /// lost.
    fn transmit_udp(&mut self, count: usize, traffic: &mut Traffic) -> usize {
        let outgoing = self.endpoint.outgoing().take(count);
        match self.socket.send_some(outgoing.clone()) {
            Ok(sent) => {
                let bytes = outgoing.take(sent).map(|one| one.1.len());
                traffic.datagrams_out += sent as u64;
                traffic.bytes_out += bytes.sum::<usize>() as u64;
                sent
            }
            // The datagram is lost, as on any network.
            Err(_) => {
                traffic.unsent += 1;
                1
            }
        }
    }

    /// Sends the first queued datagram over its browser connection. Returns 1, because the datagram is now sent or
    /// lost.
    fn transmit_line(&mut self, traffic: &mut Traffic) -> usize {
        if let Some((path, datagram)) = self.endpoint.outgoing().next()
            && let Some(web) = &mut self.web
        {
            match web.send(path.peer, datagram) {
                true => {
                    traffic.datagrams_out += 1;
                    traffic.bytes_out += datagram.len() as u64;
                }
                false => traffic.unsent += 1,
            }
        }
        1
    }
}

impl Listener for DatagramListener {
    fn poll_ready(&mut self, context: &mut Context<'_>) -> Poll<()> {
        // Polls both, so that each registers the waker.
        let socket = self.socket.poll_ready(context);
        let web = self.web.as_mut().map(|web| web.poll_ready(context));
        match web {
            Some(Poll::Ready(())) => Poll::Ready(()),
            _ => socket,
        }
    }

    fn rouse(&mut self, rouses: bool) {
        self.socket.rouse(rouses);
        if let Some(web) = &mut self.web {
            web.rouse(rouses);
        }
    }

    fn receive(&mut self, now: Duration, at_most: usize, traffic: &mut Traffic) -> usize {
        let mut count = 0;
        while count < at_most {
            let took = self.socket.receive(at_most - count);
            for (datagram, path) in self.socket.came() {
                count += 1;
                traffic.datagrams_in += 1;
                traffic.bytes_in += datagram.len() as u64;
                // A datagram from such an address has a forged sender.
                if !is_line(path.peer) {
                    self.endpoint.handle(now, path, datagram);
                }
            }
            match took {
                Ok(true) => break,
                Ok(false) => {}
                Err(_) => {
                    count += 1;
                    traffic.errors += 1;
                }
            }
        }
        count + self.receive_lines(now, at_most, traffic)
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
        // Browser connections have a separate local address, so their datagrams are one group.
        self.endpoint.group_outgoing();
        loop {
            let by_line = |one: (AddressPair, &[u8])| is_line(one.0.peer);
            let mut outgoing = self.endpoint.outgoing().map(by_line);
            let Some(by_line) = outgoing.next() else {
                break;
            };
            let mut left = 1 + outgoing.take_while(|next| *next == by_line).count();
            while left > 0 {
                let gone = match by_line {
                    true => self.transmit_line(traffic),
                    false => self.transmit_udp(left, traffic),
                };
                self.endpoint.drop_outgoing(gone);
                left -= gone;
            }
        }
    }

    fn advance(&mut self, now: Duration, now_unix: Duration) {
        self.endpoint.advance(now, now_unix);
        if let Some(web) = &mut self.web {
            web.advance(now, |peer| self.endpoint.knows(peer));
        }
    }

    fn web(&self) -> WebTraffic {
        self.web
            .as_ref()
            .map_or_else(WebTraffic::default, WebLines::traffic)
    }

    fn settle(&mut self, session: SessionId) {
        self.endpoint.settle(session);
    }

    fn set_keys(&mut self, keys: &[TicketKey]) -> Result<(), ServerConfigError> {
        self.endpoint.set_keys(keys)
    }

    fn refuse_dials(&mut self) {
        self.endpoint.refuse_dials();
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

    use twinstep_udp::{ClientEndpoint, MatchId, ServerConfig, Ticket, TicketLedger, TicketSpec};

    use super::*;

    const PATIENCE: Duration = Duration::from_secs(20);

    async fn listener(game: &str) -> (DatagramListener, SocketAddr) {
        listener_of(&TicketKey::generate(), game).await
    }

    async fn listener_of(key: &TicketKey, game: &str) -> (DatagramListener, SocketAddr) {
        let socket = tokio::net::UdpSocket::bind("127.0.0.1:0").await.unwrap();
        let address = socket.local_addr().unwrap();
        let config = ServerConfig {
            keys: std::slice::from_ref(key),
            public_addresses: &[address.into()],
            sessions_max: 4,
            game,
            wire_version: 1,
            tickets: TicketLedger::new(Duration::ZERO, Duration::ZERO),
        };
        let endpoint = ServerEndpoint::new(config, Duration::ZERO).unwrap();
        let listener = DatagramListener::new(socket, None, endpoint);
        (listener, address)
    }

    #[tokio::test]
    async fn a_batch_ends_when_the_socket_is_empty_or_its_limit_is_reached() {
        let (mut listener, at) = listener("a game").await;
        let sender = std::net::UdpSocket::bind("127.0.0.1:0").unwrap();
        for _ in 0..5 {
            sender.send_to(b"junk", at).unwrap();
        }
        let mut traffic = Traffic::default();
        let mut took = Vec::new();
        let all = async {
            while took.iter().sum::<usize>() < 5 {
                poll_fn(|context| listener.poll_ready(context)).await;
                took.push(listener.receive(Duration::ZERO, 3, &mut traffic));
            }
        };
        tokio::time::timeout(PATIENCE, all).await.unwrap();
        assert!(took.iter().all(|count| *count <= 3), "{took:?}");
        assert_eq!(listener.receive(Duration::ZERO, 3, &mut traffic), 0);
        assert_eq!((traffic.datagrams_in, traffic.bytes_in), (5, 20));
        assert_eq!((traffic.errors, listener.counters().junk), (0, 5));
    }

    #[tokio::test]
    async fn every_waiting_datagram_is_sent_once_and_counted() {
        let key = TicketKey::generate();
        let (mut listener, at) = listener_of(&key, "a game").await;
        let dials = Vec::from_iter((0..50).map(|n| {
            let spec = TicketSpec {
                game: "a game",
                wire_version: 1,
                identity: &format!("player {n}"),
                match_id: MatchId(1),
                seats: 1,
                servers: &[at.into()],
                life: Duration::from_secs(60),
                timeout: Duration::from_secs(5),
                now_unix: Duration::ZERO,
            };
            let ticket = Ticket::issue(&key, &spec).unwrap();
            let socket = std::net::UdpSocket::bind("127.0.0.1:0").unwrap();
            let mut dial = ClientEndpoint::new(&ticket, Duration::ZERO);
            dial.advance(Duration::from_millis(1));
            let (to, knock) = dial.poll_transmit().expect("a knock");
            socket.send_to(knock, to).unwrap();
            (socket, dial)
        }));
        let mut traffic = Traffic::default();
        while traffic.datagrams_in < 50 {
            poll_fn(|context| listener.poll_ready(context)).await;
            listener.receive(Duration::from_millis(2), 100, &mut traffic);
        }
        listener.transmit(&mut traffic);
        let mut bytes_out = 0;
        for (socket, mut dial) in dials {
            socket.set_read_timeout(Some(PATIENCE)).unwrap();
            let mut buffer = [0; 2_000];
            let (bytes, from) = socket.recv_from(&mut buffer).unwrap();
            bytes_out += bytes as u64;
            dial.handle(Duration::from_millis(3), from, &buffer[..bytes]);
            dial.advance(Duration::from_millis(4));
            let response = dial.poll_transmit().map(|(_, bytes)| bytes.len());
            assert!(response.is_some_and(|bytes| bytes < 400), "no knock again");
            socket.set_nonblocking(true).unwrap();
            assert!(socket.recv_from(&mut buffer).is_err(), "one is enough");
        }
        assert_eq!((traffic.datagrams_out, traffic.unsent), (50, 0));
        assert_eq!(traffic.bytes_out, bytes_out);
    }

    /// While wake-ups are off, the socket is not registered with tokio, so no datagram wakes its thread.
    #[tokio::test]
    async fn a_datagram_wakes_the_task_unless_wakeups_are_off() {
        let (mut listener, at) = listener("a game").await;
        let sender = std::net::UdpSocket::bind("127.0.0.1:0").unwrap();
        let mut traffic = Traffic::default();
        for round in 1..=3 {
            listener.rouse(false);
            sender.send_to(b"junk", at).unwrap();
            let came = poll_fn(|context| listener.poll_ready(context));
            let waited = tokio::time::timeout(Duration::from_millis(50), came).await;
            assert!(waited.is_err(), "the task is not woken");
            assert_eq!(listener.receive(Duration::ZERO, 9, &mut traffic), 1);
            listener.rouse(true);
            sender.send_to(b"junk", at).unwrap();
            let woken = async {
                while traffic.datagrams_in < 2 * round {
                    poll_fn(|context| listener.poll_ready(context)).await;
                    listener.receive(Duration::ZERO, 9, &mut traffic);
                }
            };
            let waited = tokio::time::timeout(PATIENCE, woken).await;
            waited.expect("the task is woken again");
        }
    }
}
