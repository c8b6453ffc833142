//! Packets through laminar. This is the only module that uses laminar.
//!
//! ```text
//! packet ──▶ ConnectionManager ──▶ pipe ──▶ the cipher          (wrap)
//! packet ◀── ConnectionManager ◀── pipe ◀── fence ◀── the cipher (unwrap)
//! ```
//!
//! A client has one manager, or shares it with other clients of its process; a server has one for all its sessions. The
//! in-memory pipe holds one datagram. One packet becomes one datagram within the same call, in both directions, so
//! there is no queue here. A manager takes 1.7 MB after its first packet (congestion tables), so a server creates it
//! when the first session is admitted.
//!
//! Invariant: the fence lets only whole unreliable packets and heartbeats through. The state that laminar would keep
//! for a peer (fragments, ordered streams, acknowledged packets) can grow without bound or fail, and is never created.
//!
//! laminar allocates small buffers for each packet: three for an outgoing one, one for an incoming one. No other code
//! allocates in the steady state of a session; to avoid a copy, an incoming packet stays in its buffer.

use std::fmt;
use std::io;
use std::net::{Ipv4Addr, SocketAddr, SocketAddrV4};
use std::ops::Deref;
use std::time::{Duration, Instant};

use laminar::{Config, ConnectionManager, DatagramSocket, Packet, SocketEvent, VirtualConnection};

use super::{HEADER_BYTES, NotAPacket};
use crate::transport::PACKET_MAX;

/// The address that stands for the manager's only peer.
const PEER: SocketAddr = SocketAddr::V4(SocketAddrV4::new(Ipv4Addr::LOCALHOST, 1));
pub(crate) struct LaminarLink {
    manager: ConnectionManager<Pipe, VirtualConnection>,
    /// laminar needs an `Instant`: this instant plus the session's time.
    base: Instant,
    /// The latest time that laminar has seen. Clients that share a laminar instance have different clocks, but its time
    /// must not go back: laminar computes the age of its last packet, and std may panic if that packet is in the
    /// future.
    latest: Instant,
}

/// The bytes of a received packet, in the buffer in which laminar put them. No further copy is needed.
#[derive(Clone, PartialEq, Eq)]
pub struct Payload(Packet);

impl Deref for Payload {
    type Target = [u8];

    fn deref(&self) -> &[u8] {
        self.0.payload()
    }
}

impl From<Vec<u8>> for Payload {
    fn from(bytes: Vec<u8>) -> Payload {
        Payload(Packet::unreliable(PEER, bytes))
    }
}

impl fmt::Debug for Payload {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_tuple("Payload").field(&&**self).finish()
    }
}

impl LaminarLink {
    pub(crate) fn new() -> LaminarLink {
        let config = Config {
            // Only the cipher detects time-outs.
            idle_connection_timeout: Duration::MAX,
            heartbeat_interval: None,
            max_packets_in_flight: 4_096,
            receive_buffer_max_size: 1_300,
            ..Config::default()
        };
        let base = base();
        LaminarLink {
            manager: ConnectionManager::new(Pipe::default(), config),
            base,
            latest: base,
        }
    }

    fn at(&mut self, now: Duration) -> Instant {
        let at = self.base.checked_add(now).unwrap_or(self.latest);
        self.latest = self.latest.max(at);
        self.latest
    }

    /// Wraps a packet of at most [`PACKET_MAX`] bytes. The datagram is readable until the next call.
    pub(crate) fn wrap(&mut self, now: Duration, packet: &[u8]) -> &[u8] {
        assert!(packet.len() <= PACKET_MAX, "{} bytes", packet.len());
        let at = self.at(now);
        self.manager.socket_mut().outgoing.clear();
        let queued = self
            .manager
            .event_sender()
            .send(Packet::unreliable(PEER, packet.to_vec()));
        queued.expect("the manager holds its own receiver");
        self.manager.manual_poll(at);
        let wrapped = &self.manager.socket().outgoing;
        assert_eq!(wrapped.len(), HEADER_BYTES + packet.len());
        wrapped
    }

    /// Passes the packet in `datagram` to `deliver`. A heartbeat contains no packet.
    pub(crate) fn unwrap(
        &mut self,
        now: Duration,
        datagram: &[u8],
        deliver: impl FnOnce(Payload),
    ) -> Result<(), NotAPacket> {
        if !passes(datagram) {
            return Err(NotAPacket::Fenced);
        }
        if datagram.len() > HEADER_BYTES + PACKET_MAX {
            return Err(NotAPacket::Oversize);
        }
        let at = self.at(now);
        let incoming = &mut self.manager.socket_mut().incoming;
        incoming.clear();
        incoming.extend_from_slice(datagram);
        self.manager.manual_poll(at);
        let mut packet = None;
        while let Ok(event) = self.manager.event_receiver().try_recv() {
            // Other events concern laminar's own connection, which holds no state for unreliable packets.
            if let SocketEvent::Packet(arrived) = event {
                packet = Some(arrived);
            }
        }
        match packet {
            Some(packet) => deliver(Payload(packet)),
            None if datagram[2] == 2 => {}
            // The datagram is of another version of laminar's protocol.
            None => return Err(NotAPacket::Fenced),
        }
        Ok(())
    }
}

#[expect(
    clippy::disallowed_methods,
    reason = "laminar never acts on the absolute time, so any base will do; `now` stays an argument"
)]
fn base() -> Instant {
    Instant::now()
}

/// Returns `true` for datagrams that may reach laminar. Bytes 2, 3 and 4 are kind (packet,
/// fragment, heartbeat), delivery and ordering.
fn passes(datagram: &[u8]) -> bool {
    match datagram.get(2..HEADER_BYTES) {
        Some([0, 0, 0]) => true,
        Some([2, 0, 0]) => datagram.len() == HEADER_BYTES,
        _ => false,
    }
}

/// An in-memory socket that holds one datagram each way. An empty buffer means no datagram.
#[derive(Debug, Default)]
struct Pipe {
    incoming: Vec<u8>,
    outgoing: Vec<u8>,
}

impl DatagramSocket for Pipe {
    fn send_packet(&mut self, _: &SocketAddr, payload: &[u8]) -> io::Result<usize> {
        self.outgoing.extend_from_slice(payload);
        Ok(payload.len())
    }

    fn receive_packet<'a>(&mut self, buffer: &'a mut [u8]) -> io::Result<(&'a [u8], SocketAddr)> {
        if self.incoming.is_empty() {
            return Err(io::ErrorKind::WouldBlock.into());
        }
        let held = &mut buffer[..self.incoming.len()];
        held.copy_from_slice(&self.incoming);
        self.incoming.clear();
        Ok((held, PEER))
    }

    fn local_addr(&self) -> io::Result<SocketAddr> {
        Ok(PEER)
    }

    fn is_blocking_mode(&self) -> bool {
        false
    }
}

#[cfg(test)]
mod tests {
    use twinstep_protocol::datagrams::MARKS;

    use super::*;
    use crate::link::{SharedLink, plain};

    const NOW: Duration = Duration::from_secs(5);

    #[test]
    fn laminars_datagrams_differ_from_probes_in_their_first_byte() {
        let mut link = LaminarLink::new();
        for n in 0..2_000 {
            let wrapped = link.wrap(NOW, &[0xff; 7][..n % 8]);
            assert!(!MARKS.contains(&wrapped[0]), "{wrapped:?}");
        }
    }

    fn unwrapped(link: &mut LaminarLink, datagram: &[u8]) -> Result<Option<Vec<u8>>, NotAPacket> {
        let mut packet = None;
        link.unwrap(NOW, datagram, |bytes| packet = Some(bytes.to_vec()))?;
        Ok(packet)
    }

    /// The datagrams that a peer's laminar sends for a packet, without the fence.
    fn datagrams_of(packet: Packet) -> Vec<Vec<u8>> {
        #[derive(Debug, Default)]
        struct Tap(Vec<Vec<u8>>);
        impl DatagramSocket for Tap {
            fn send_packet(&mut self, _: &SocketAddr, payload: &[u8]) -> io::Result<usize> {
                self.0.push(payload.to_vec());
                Ok(payload.len())
            }
            fn receive_packet<'a>(
                &mut self,
                _: &'a mut [u8],
            ) -> io::Result<(&'a [u8], SocketAddr)> {
                Err(io::ErrorKind::WouldBlock.into())
            }
            fn local_addr(&self) -> io::Result<SocketAddr> {
                Ok(PEER)
            }
            fn is_blocking_mode(&self) -> bool {
                false
            }
        }
        let mut manager: ConnectionManager<Tap, VirtualConnection> =
            ConnectionManager::new(Tap::default(), Config::default());
        manager.event_sender().send(packet).unwrap();
        manager.manual_poll(base());
        manager.socket().0.clone()
    }

    #[test]
    fn packets_of_every_size_are_unwrapped_unchanged() {
        let (mut one, mut other) = (LaminarLink::new(), LaminarLink::new());
        for size in [0, 1, 2, 100, PACKET_MAX - 1, PACKET_MAX] {
            let packet: Vec<u8> = (0..size).map(|i| i as u8).collect();
            let datagram = one.wrap(NOW, &packet).to_vec();
            assert_eq!(datagram.len(), size + 5);
            assert_eq!(unwrapped(&mut other, &datagram), Ok(Some(packet)));
        }
    }

    /// Browsers use the plain link, but their server uses laminar.
    #[test]
    fn the_plain_link_writes_and_accepts_the_same_bytes() {
        let (mut laminar, mut plain) = (LaminarLink::new(), plain::PlainLink::new());
        for size in [0, 1, 2, 100, PACKET_MAX] {
            let packet: Vec<u8> = (0..size).map(|i| i as u8).collect();
            let datagram = laminar.wrap(NOW, &packet).to_vec();
            assert_eq!(plain.wrap(NOW, &packet), datagram);
        }
        let oversize = datagrams_of(Packet::unreliable(PEER, vec![7; PACKET_MAX + 1])).remove(0);
        let mut datagrams = vec![vec![], vec![0x54], oversize];
        for kind in 0..=3 {
            for (delivery, ordering) in [(0, 0), (1, 0), (0, 1)] {
                let head = vec![0x54, 0x09, kind, delivery, ordering];
                datagrams.push([&head[..], b"packet"].concat());
                datagrams.push(head);
            }
        }
        datagrams.push(b"\x55\x09\0\0\0packet".to_vec());
        for datagram in datagrams {
            let mut packet = None;
            let deliver = |bytes: plain::PlainPayload| packet = Some(bytes.to_vec());
            let taken = plain.unwrap(NOW, &datagram, deliver).map(|()| packet);
            assert_eq!(unwrapped(&mut laminar, &datagram), taken, "{datagram:?}");
        }
    }

    #[test]
    fn a_payload_equals_its_bytes_from_any_source() {
        let (mut one, mut other) = (LaminarLink::new(), LaminarLink::new());
        let mut came = None;
        let datagram = one.wrap(NOW, b"packet").to_vec();
        let taken = other.unwrap(NOW, &datagram, |packet| came = Some(packet));
        assert_eq!(taken, Ok(()));
        let came = came.expect("a packet");
        assert_eq!(came, Payload::from(b"packet".to_vec()));
        assert_ne!(came, Payload::from(b"Packet".to_vec()));
        assert_eq!(
            format!("{:?}", Payload::from(vec![1, 2])),
            "Payload([1, 2])"
        );
    }

    #[test]
    fn only_whole_unreliable_packets_and_heartbeats_pass_the_fence() {
        let mut link = LaminarLink::new();
        let bytes = vec![7; 100];
        let refused = [
            Packet::unreliable_sequenced(PEER, bytes.clone(), None),
            Packet::reliable_unordered(PEER, bytes.clone()),
            Packet::reliable_ordered(PEER, bytes.clone(), Some(3)),
            Packet::reliable_sequenced(PEER, bytes.clone(), Some(3)),
            Packet::reliable_unordered(PEER, vec![7; 3_000]),
        ];
        for packet in refused {
            let datagrams = datagrams_of(packet);
            assert!(!datagrams.is_empty());
            for datagram in datagrams {
                assert_eq!(unwrapped(&mut link, &datagram), Err(NotAPacket::Fenced));
            }
        }

        let whole = datagrams_of(Packet::unreliable(PEER, bytes.clone())).remove(0);
        assert_eq!(unwrapped(&mut link, &whole), Ok(Some(bytes)));
        let mut heartbeat = whole[..5].to_vec();
        heartbeat[2] = 2;
        assert_eq!(unwrapped(&mut link, &heartbeat), Ok(None));
        let mut other_version = whole.clone();
        other_version[0] ^= 1;
        assert_eq!(
            unwrapped(&mut link, &other_version),
            Err(NotAPacket::Fenced)
        );
    }

    #[test]
    fn a_packet_above_the_bound_is_refused() {
        let datagram = datagrams_of(Packet::unreliable(PEER, vec![7; PACKET_MAX + 1])).remove(0);
        assert_eq!(
            unwrapped(&mut LaminarLink::new(), &datagram),
            Err(NotAPacket::Oversize)
        );
    }

    #[test]
    fn laminars_time_never_goes_back() {
        let mut link = LaminarLink::new();
        let seconds = [5, 3, 0, 7, u64::MAX, 6, 8];
        let seen = seconds.map(|seconds| link.at(Duration::from_secs(seconds)) - link.base);
        assert_eq!(seen.map(|seen| seen.as_secs()), [5, 5, 5, 7, 7, 7, 8]);
    }

    #[test]
    fn a_link_silent_for_a_day_still_works() {
        let (mut one, mut other) = (LaminarLink::new(), LaminarLink::new());
        for day in 0..3 {
            let now = Duration::from_secs(day * 86_400);
            let datagram = one.wrap(now, b"packet").to_vec();
            let mut arrived = Vec::new();
            let taken = other.unwrap(now, &datagram, |packet| arrived.extend_from_slice(&packet));
            assert_eq!(taken, Ok(()));
            assert_eq!(arrived, b"packet");
        }
    }

    /// Each client's time starts with the client.
    #[test]
    fn clients_with_different_clocks_can_share_a_link() {
        let (shared, mut server) = (SharedLink::new(), LaminarLink::new());
        let clocks = [0, 86_400 * 30, 1, 86_400, 0, u64::MAX, 2];
        for now in clocks.map(Duration::from_secs) {
            let mut arrived = Vec::new();
            let mut deliver = |packet: Payload| arrived.extend_from_slice(&packet);
            let up = shared.clone().lock().link.wrap(now, b"up").to_vec();
            let then = Duration::from_secs(5);
            assert_eq!(server.unwrap(then, &up, &mut deliver), Ok(()));
            let down = server.wrap(then, b"down").to_vec();
            assert_eq!(shared.lock().link.unwrap(now, &down, &mut deliver), Ok(()));
            assert_eq!(arrived, b"updown");
        }
    }
}
