//! The boundary between a session and the transport of its packets.
//!
//! A transport is polled: it has no thread and no clock, and its owner calls it once a frame.
//!
//! ```text
//! advance(now) ─▶ poll … poll ─▶ (the session works) ─▶ send … send
//! ```
//!
//! Packets may be lost, duplicated and reordered, but never changed or cut. [`UdpClient`](crate::UdpClient) is the real
//! transport; [`SimulatedTransport`] is an in-memory pair over the simulated network, for tests without encryption.

use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use twinstep_protocol::simnet::{LinkProfile, SimLink};

/// The largest session packet, in bytes. With all headers its datagram stays below 1,200 bytes.
pub const PACKET_MAX: usize = 1_100;

/// A transport for the packets of one session.
pub trait Transport {
    /// Advances time: receives what arrived (a bounded amount), sends what is due.
    fn advance(&mut self, now: Duration);

    /// Copies the next packet into `buffer`. Returns its length, or `None` if no packet is waiting.
    fn poll(&mut self, buffer: &mut [u8; PACKET_MAX]) -> Option<usize>;

    /// Sends a packet of at most [`PACKET_MAX`] bytes.
    ///
    /// # Errors
    /// [`SendError`] if the packet is too large, the client is not connected, or the queue is full. In the last two
    /// cases the packet counts as lost.
    fn send(&mut self, packet: &[u8]) -> Result<(), SendError>;

    /// Ends the session and notifies the peer, as far as a network can.
    fn disconnect(&mut self);

    /// The state of the session.
    fn state(&self) -> TransportState;
}

/// One side of a simulated link: connected from the start, never times out.
///
/// ```
/// use std::time::Duration;
/// use twinstep_udp::{PACKET_MAX, SimulatedTransport, Transport};
/// let profile = "rtt=100,jitter=0,loss=0".parse().unwrap();
/// let (mut client, mut server) = SimulatedTransport::pair(profile, 7);
/// client.send(b"hello").unwrap();
/// let mut packet = [0; PACKET_MAX];
/// server.advance(Duration::from_millis(49));
/// assert_eq!(server.poll(&mut packet), None);
/// server.advance(Duration::from_millis(50));
/// assert_eq!(server.poll(&mut packet), Some(5));
/// ```
#[derive(Debug)]
pub struct SimulatedTransport {
    wire: Arc<Mutex<Wire>>,
    is_client: bool,
    now: Duration,
}

#[derive(Debug)]
struct Wire {
    link: SimLink,
    closed: Option<CloseReason>,
}

impl SimulatedTransport {
    /// Creates a new link. Returns the client's side and the server's side.
    #[must_use]
    pub fn pair(profile: LinkProfile, seed: u64) -> (SimulatedTransport, SimulatedTransport) {
        let wire = Arc::new(Mutex::new(Wire {
            link: SimLink::new(profile, seed),
            closed: None,
        }));
        let end = |is_client| SimulatedTransport {
            wire: Arc::clone(&wire),
            is_client,
            now: Duration::ZERO,
        };
        (end(true), end(false))
    }

    /// Changes the link, in both directions, for packets sent from now on.
    pub fn set_profile(&mut self, profile: LinkProfile) {
        self.wire().link.set_profile(profile);
    }

    fn wire(&self) -> MutexGuard<'_, Wire> {
        // A panic elsewhere does not leave a half-done change here.
        self.wire.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Transport for SimulatedTransport {
    fn advance(&mut self, now: Duration) {
        self.now = self.now.max(now);
    }

    fn poll(&mut self, buffer: &mut [u8; PACKET_MAX]) -> Option<usize> {
        let mut wire = self.wire();
        let leg = match self.is_client {
            true => &mut wire.link.down,
            false => &mut wire.link.up,
        };
        let packet = leg.poll(self.now)?;
        buffer[..packet.len()].copy_from_slice(packet);
        Some(packet.len())
    }

    fn send(&mut self, packet: &[u8]) -> Result<(), SendError> {
        if packet.len() > PACKET_MAX {
            return Err(SendError::Oversize {
                bytes: packet.len(),
            });
        }
        let mut wire = self.wire();
        if wire.closed.is_some() {
            return Err(SendError::NotConnected);
        }
        let leg = match self.is_client {
            true => &mut wire.link.up,
            false => &mut wire.link.down,
        };
        leg.send(self.now, packet);
        Ok(())
    }

    fn disconnect(&mut self) {
        let reason = match self.is_client {
            true => CloseReason::ByClient,
            false => CloseReason::ByServer,
        };
        self.wire().closed.get_or_insert(reason);
    }

    fn state(&self) -> TransportState {
        match self.wire().closed {
            None => TransportState::Connected,
            Some(reason) => TransportState::Closed(reason),
        }
    }
}

/// The state of a session.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum TransportState {
    /// The server has not accepted the ticket yet.
    Connecting,
    /// Packets can be sent and received.
    Connected,
    /// The session is over.
    Closed(CloseReason),
}

/// The reason why a client's session ended, or never started.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
#[expect(missing_docs, reason = "the messages explain the variants")]
pub enum CloseReason {
    /// No datagram arrived from the server within the ticket's timeout.
    #[error("no packet came from the server for too long: check your connection, then join again")]
    TimedOut,
    #[error(
        "no answer: the server is down or unreachable, or has another key, address or game version than the ticket"
    )]
    NoAnswer,
    #[error(
        "the server's name cannot be looked up: check this machine's network, or the name in the ticket"
    )]
    NameUnknown,
    /// The server knows the ticket but has no space for another session.
    #[error("the server is full: try again later")]
    Denied,
    #[error("the ticket expired, by the server's clock; ask for a new one")]
    Expired,
    #[error(
        "this ticket is no longer valid: a newer one of yours replaced it, or the operator revoked it; use your newest ticket, or ask for a new one"
    )]
    Superseded,
    #[error("the server ended the session")]
    ByServer,
    #[error("this side ended the session")]
    ByClient,
}

/// The reason why a session ended at the server, other than by the server itself.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum LeaveReason {
    /// No authentic datagram arrived from the client within the ticket's timeout, or its connection was closed.
    TimedOut,
    /// The client said goodbye.
    Left,
    /// The session was not [settled](crate::ServerEndpoint::settle) in time, and another session took its slot; or it
    /// was silent, and its client dialled again from the same address.
    Displaced,
}

/// The reason why a packet was not sent.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
#[expect(missing_docs, reason = "the messages name the fields")]
pub enum SendError {
    #[error(
        "expected a packet of at most {max} bytes, got {bytes}; split it so that each part can be decoded on its own",
        max = PACKET_MAX
    )]
    Oversize { bytes: usize },
    #[error(
        "the session cannot send yet: wait until it is connected (on a server: until it is admitted)"
    )]
    NotConnected,
    /// The queue of outgoing datagrams is full. The packet is lost, as on any network.
    #[error("the queue of outgoing datagrams is full; drain poll_transmit more often")]
    QueueFull,
}

/// Counts the datagrams and packets that arrived at a transport, and those that it dropped, by reason. All counters
/// only grow.
///
/// Junk is counted and not logged, because otherwise any sender of datagrams could fill a disk.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct TransportCounters {
    /// Datagrams that arrived, of every kind.
    pub datagrams: u64,
    /// Packets handed to the layer above.
    pub packets: u64,
    /// Datagrams of another protocol, or from an address that did not dial.
    pub junk: u64,
    /// Copies of a session's datagrams, datagrams of a session that has just ended, and dials to a server about to shut
    /// down.
    pub late: u64,
    /// Datagrams or packets above their bound.
    pub oversize: u64,
    /// Dials with a ticket for another key, game or wire version.
    pub unknown_key: u64,
    /// Datagrams sealed with the wrong key or for another server, or sent from a session's address but not sealed by
    /// it.
    pub rejected: u64,
    /// Dials with an authentic ticket while the server was full.
    pub denied_full: u64,
    /// Dials with an authentic ticket that had expired.
    pub denied_expired: u64,
    /// Dials with an authentic ticket when a newer one of its identity was safe, or it was revoked.
    pub denied_superseded: u64,
    /// Authentic tickets whose claims this version cannot read.
    pub bad_claims: u64,
    /// Datagrams above a session's rate, and dials above an identity's or a ticket's limit.
    pub rate_limited: u64,
    /// Datagrams of a session not yet admitted.
    pub unadmitted: u64,
    /// Authentic datagrams that are not a whole unreliable packet.
    pub fenced: u64,
    /// Packets lost because the layer above did not drain its queue.
    pub queue_full: u64,
    /// Socket errors. Each counts as loss.
    pub io_errors: u64,
}

impl core::ops::AddAssign for TransportCounters {
    fn add_assign(&mut self, other: Self) {
        let TransportCounters {
            datagrams,
            packets,
            junk,
            late,
            oversize,
            unknown_key,
            rejected,
            denied_full,
            denied_expired,
            denied_superseded,
            bad_claims,
            rate_limited,
            unadmitted,
            fenced,
            queue_full,
            io_errors,
        } = other;
        self.datagrams += datagrams;
        self.packets += packets;
        self.junk += junk;
        self.late += late;
        self.oversize += oversize;
        self.unknown_key += unknown_key;
        self.rejected += rejected;
        self.denied_full += denied_full;
        self.denied_expired += denied_expired;
        self.denied_superseded += denied_superseded;
        self.bad_claims += bad_claims;
        self.rate_limited += rate_limited;
        self.unadmitted += unadmitted;
        self.fenced += fenced;
        self.queue_full += queue_full;
        self.io_errors += io_errors;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn both_ends_of_a_simulated_link_send_until_one_ends_it() {
        let (mut client, mut server) = SimulatedTransport::pair(LinkProfile::PERFECT, 1);
        let mut buffer = [0; PACKET_MAX];
        client.send(&[1; PACKET_MAX]).unwrap();
        server.send(b"two").unwrap();
        assert_eq!(server.poll(&mut buffer), Some(PACKET_MAX));
        assert_eq!(client.poll(&mut buffer), Some(3));
        assert_eq!(&buffer[..3], b"two");
        assert_eq!(
            client.send(&[0; PACKET_MAX + 1]),
            Err(SendError::Oversize {
                bytes: PACKET_MAX + 1
            })
        );

        server.disconnect();
        assert_eq!(client.send(b"late"), Err(SendError::NotConnected));
        assert_eq!(
            client.state(),
            TransportState::Closed(CloseReason::ByServer)
        );
    }
}
