//! The boundary between a session and whatever carries its packets.
//!
//! A transport is polled: it has no thread and no clock, and whoever owns it calls it once a frame.
//!
//! ```text
//! advance(now) ─▶ poll … poll ─▶ (the session thinks) ─▶ send … send
//! ```
//!
//! Packets may be lost, doubled and reordered; none is ever changed or cut. [`UdpClient`](crate::UdpClient) is the
//! real one; [`SimulatedTransport`] is a pair in memory over the simulated network, for tests without encryption.

use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use twinstep_protocol::simnet::{LinkProfile, SimLink};

use crate::client::TransportState;
use crate::words::{CloseReason, PACKET_MAX, SendError};

/// Carries packets of one session.
pub trait Transport {
    /// Moves time on: takes in what arrived (a bounded amount), sends what is due.
    fn advance(&mut self, now: Duration);

    /// Copies the next packet into `buffer` and says how long it is.
    fn poll(&mut self, buffer: &mut [u8; PACKET_MAX]) -> Option<usize>;

    /// Sends a packet of at most [`PACKET_MAX`] bytes.
    ///
    /// # Errors
    /// [`SendError`]: too large, not connected, or too much was sent at once. All but the first are like loss.
    fn send(&mut self, packet: &[u8]) -> Result<(), SendError>;

    /// Ends the session and tells the peer, as far as a network can.
    fn disconnect(&mut self);

    /// How far the session has come.
    fn state(&self) -> TransportState;
}

/// One end of a simulated link: connected from the start, never times out.
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
    /// The client's end and the server's end of a new link.
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

    /// Changes the link, for both ends, for what is sent from now on.
    pub fn set_profile(&mut self, profile: LinkProfile) {
        self.wire().link.set_profile(profile);
    }

    fn wire(&self) -> MutexGuard<'_, Wire> {
        // A panic elsewhere leaves no half-done change in here.
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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn both_ends_of_a_simulated_link_speak_until_one_ends_it() {
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
