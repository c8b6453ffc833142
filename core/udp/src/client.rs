//! The client's side of a session, as a state machine without a socket.
//!
//! ```text
//! Connecting ──▶ Connected ──▶ Closed { why }
//!      └───────────────────────────▲
//! ```
//!
//! Invariants: a datagram becomes a packet only if it comes from the server's address and is sealed with the server's
//! half of the ticket's keys. A closed endpoint cannot be reused: to reconnect, create a new one.

use std::collections::VecDeque;
use std::net::SocketAddr;
use std::time::Duration;

use twinstep_protocol::datagrams::{CUT_BYTES_MAX, Datagrams};

use crate::link::{NotAPacket, Payload, SharedLink, SharedParts, path_unknown};
use crate::netcode::{CipherClient, CipherState, DATAGRAM_MAX, sane};
use crate::send_queue::SendQueue;
use crate::tickets::Ticket;
use crate::transport::{CloseReason, PACKET_MAX, SendError, TransportCounters, TransportState};

/// The maximum number of datagrams waiting to be sent, and of packets waiting to be read.
const QUEUE_MAX: usize = 1_024;

/// Of a pause between two calls of [`advance`](ClientEndpoint::advance), at most this much counts as the server's
/// silence, because datagrams that arrived during the pause still wait in the socket.
const SILENCE_MAX: Duration = Duration::from_millis(500);

/// An event of the session.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ClientEvent<'a> {
    /// The server accepted the ticket: packets can be sent.
    Connected,
    /// A packet from the server, at most [`PACKET_MAX`] bytes.
    Packet(&'a [u8]),
    /// The session is over. No event follows.
    Closed {
        /// The reason.
        reason: CloseReason,
    },
}

/// The client's side of a session: datagrams and time in, datagrams and events out.
///
/// A closed endpoint cannot be reused: to reconnect, create a new one, with the same ticket or a newer one.
pub struct ClientEndpoint {
    cipher: CipherClient,
    datagrams: Datagrams,
    link: SharedLink,
    now: Duration,
    state: TransportState,
    reported_connected: bool,
    reported_closed: bool,
    outbox: SendQueue,
    inbox: VecDeque<Payload>,
    last_packet: Option<Payload>,
    counters: TransportCounters,
}

impl ClientEndpoint {
    /// Starts connecting. The server alone decides, with its own clock, whether the ticket is still valid.
    ///
    /// # Panics
    /// If the operating system has no random bytes.
    #[must_use]
    pub fn new(ticket: &Ticket, now: Duration) -> ClientEndpoint {
        ClientEndpoint {
            cipher: CipherClient::new(ticket),
            datagrams: path_unknown(),
            link: SharedLink::new(),
            now,
            state: TransportState::Connecting,
            reported_connected: false,
            reported_closed: false,
            outbox: SendQueue::new(QUEUE_MAX),
            inbox: VecDeque::new(),
            last_packet: None,
            counters: TransportCounters::default(),
        }
    }

    /// Starts connecting over a connection that leads to one server only. The ticket's addresses are ignored: all
    /// datagrams come from `server` and go there.
    ///
    /// # Panics
    /// If the operating system has no random bytes.
    #[must_use]
    pub fn connect_to(ticket: &Ticket, server: SocketAddr, now: Duration) -> ClientEndpoint {
        ClientEndpoint::new(&ticket.looked_up(vec![server.into()]), now)
    }

    /// From the next packet onwards, uses the laminar instance of `link`, which all clones of `link` share.
    #[must_use]
    pub fn sharing(mut self, link: &SharedLink) -> ClientEndpoint {
        self.link = link.clone();
        self
    }

    pub(crate) fn link(&self) -> &SharedLink {
        &self.link
    }

    /// Handles a datagram from the socket. Invalid datagrams are not errors; they are only counted.
    pub fn handle(&mut self, now: Duration, from: SocketAddr, datagram: &[u8]) {
        self.counters.datagrams += 1;
        if datagram.len() > DATAGRAM_MAX {
            self.counters.oversize += 1;
            return;
        }
        let for_us = self.is_server(from) && sane(datagram);
        if !for_us || self.is_closed() {
            self.counters.junk += 1;
            return;
        }
        let mut shared = self.link.lock();
        let SharedParts { link, scratch } = &mut *shared;
        let copy = &mut scratch[..datagram.len()];
        copy.copy_from_slice(datagram);
        let payload = self.cipher.handle(copy);
        if let Some(payload) = payload.and_then(|payload| self.datagrams.join(payload)) {
            let (inbox, counters) = (&mut self.inbox, &mut self.counters);
            let unwrapped = link.unwrap(now, payload, |packet| {
                if inbox.len() < QUEUE_MAX {
                    inbox.push_back(packet);
                    counters.packets += 1;
                } else {
                    counters.queue_full += 1;
                }
            });
            match unwrapped {
                Ok(()) => {}
                Err(NotAPacket::Fenced) => self.counters.fenced += 1,
                Err(NotAPacket::Oversize) => self.counters.oversize += 1,
            }
        }
        drop(shared);
        self.settle();
    }

    /// Advances time: sends requests and keep-alives, and detects time-outs. Call this at least every 50 ms. Of a pause
    /// longer than half a second, only half a second counts as the server's silence.
    pub fn advance(&mut self, now: Duration) {
        let elapsed = now.saturating_sub(self.now);
        self.now += elapsed;
        if !self.is_closed() {
            self.cipher
                .advance(elapsed.min(SILENCE_MAX), &mut self.outbox);
            self.settle();
            let mut datagram = [0; CUT_BYTES_MAX];
            while self.state == TransportState::Connected
                && let Some(bytes) = self.datagrams.poll(self.now, &mut datagram)
            {
                // If the queue is full the datagram is lost, as on any network.
                let _ = self.cipher.seal(&datagram[..bytes], &mut self.outbox);
            }
        }
    }

    /// Queues a packet.
    ///
    /// # Errors
    /// [`SendError`] if the packet is too large, the client is not connected, or the queue is full.
    pub fn send(&mut self, packet: &[u8]) -> Result<(), SendError> {
        if packet.len() > PACKET_MAX {
            return Err(SendError::Oversize {
                bytes: packet.len(),
            });
        }
        if self.state != TransportState::Connected {
            return Err(SendError::NotConnected);
        }
        let mut shared = self.link.lock();
        let wrapped = shared.link.wrap(self.now, packet);
        let (cipher, out) = (&mut self.cipher, &mut self.outbox);
        let seal = |datagram: &[u8]| cipher.seal(datagram, out);
        if self.datagrams.cut(self.now, wrapped, seal) {
            Ok(())
        } else {
            Err(SendError::QueueFull)
        }
    }

    /// Ends the session and notifies the server. Transmit the queued datagrams afterwards.
    pub fn disconnect(&mut self) {
        if !self.is_closed() {
            self.cipher.disconnect(&mut self.outbox);
            self.close(CloseReason::ByClient);
        }
    }

    /// The next datagram for the socket. Its bytes are readable until the next call.
    pub fn poll_transmit(&mut self) -> Option<(SocketAddr, &[u8])> {
        let (path, datagram) = self.outbox.pop()?;
        Some((path.peer, datagram))
    }

    /// The next event. `Connected` comes before every packet, `Closed` after them.
    pub fn poll_event(&mut self) -> Option<ClientEvent<'_>> {
        let was_connected = self.state == TransportState::Connected || self.counters.packets > 0;
        if was_connected && !self.reported_connected {
            self.reported_connected = true;
            return Some(ClientEvent::Connected);
        }
        self.last_packet = self.inbox.pop_front();
        if let Some(packet) = &self.last_packet {
            return Some(ClientEvent::Packet(packet));
        }
        match self.state {
            TransportState::Closed(reason) if !self.reported_closed => {
                self.reported_closed = true;
                Some(ClientEvent::Closed { reason })
            }
            _ => None,
        }
    }

    /// The state of the session.
    #[must_use]
    pub fn state(&self) -> TransportState {
        self.state
    }

    /// The server address dialled now, or the one that responded.
    #[must_use]
    pub fn server(&self) -> SocketAddr {
        self.cipher.server()
    }

    /// The time since the last datagram that the server sealed for this session.
    pub(crate) fn silence(&self) -> Duration {
        self.cipher.silence()
    }

    /// Counters of the datagrams and packets received, and of those dropped, by reason.
    #[must_use]
    pub fn counters(&self) -> TransportCounters {
        self.counters
    }

    /// Compares only address and port: a scope id depends on the machine.
    pub(crate) fn is_server(&self, from: SocketAddr) -> bool {
        let server = self.cipher.server();
        (from.ip(), from.port()) == (server.ip(), server.port())
    }

    fn is_closed(&self) -> bool {
        matches!(self.state, TransportState::Closed(_))
    }

    fn settle(&mut self) {
        match self.cipher.state() {
            CipherState::Connecting => {}
            CipherState::Connected => self.state = TransportState::Connected,
            CipherState::Closed(reason) => self.close(reason),
        }
    }

    fn close(&mut self, reason: CloseReason) {
        self.state = TransportState::Closed(reason);
    }
}
