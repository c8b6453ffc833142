//! The link layer without laminar, for browsers, where laminar has no clock.
//!
//! laminar puts five bytes before a whole unreliable packet, and does not keep state for it. Invariant: these bytes are
//! laminar's (a test of `manager.rs` compares them).

use std::fmt;
use std::ops::Deref;
use std::time::Duration;

use super::{HEADER_BYTES, NotAPacket};
use crate::transport::PACKET_MAX;

/// The version of laminar's protocol, and the marks of a packet that is unreliable and not ordered.
const HEADER: [u8; HEADER_BYTES] = [0x54, 0x09, 0, 0, 0];
/// The third byte of a heartbeat.
const HEARTBEAT: u8 = 2;

#[derive(Default)]
pub(crate) struct PlainLink {
    wrapped: Vec<u8>,
}

/// The bytes of a received packet.
#[derive(Clone, PartialEq, Eq)]
pub struct PlainPayload(Vec<u8>);

impl Deref for PlainPayload {
    type Target = [u8];

    fn deref(&self) -> &[u8] {
        &self.0
    }
}

impl From<Vec<u8>> for PlainPayload {
    fn from(bytes: Vec<u8>) -> PlainPayload {
        PlainPayload(bytes)
    }
}

impl fmt::Debug for PlainPayload {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_tuple("PlainPayload").field(&&**self).finish()
    }
}

impl PlainLink {
    pub(crate) fn new() -> PlainLink {
        PlainLink::default()
    }

    /// Wraps a packet of at most [`PACKET_MAX`] bytes. The datagram is readable until the next call.
    pub(crate) fn wrap(&mut self, _: Duration, packet: &[u8]) -> &[u8] {
        assert!(packet.len() <= PACKET_MAX, "{} bytes", packet.len());
        self.wrapped.clear();
        self.wrapped.extend_from_slice(&HEADER);
        self.wrapped.extend_from_slice(packet);
        &self.wrapped
    }

    /// Passes the packet in `datagram` to `deliver`. A heartbeat contains no packet.
    pub(crate) fn unwrap(
        &mut self,
        _: Duration,
        datagram: &[u8],
        deliver: impl FnOnce(PlainPayload),
    ) -> Result<(), NotAPacket> {
        match datagram.split_first_chunk() {
            Some((&HEADER, packet)) if packet.len() > PACKET_MAX => Err(NotAPacket::Oversize),
            Some((&HEADER, packet)) => {
                deliver(PlainPayload(packet.to_vec()));
                Ok(())
            }
            Some(([_, _, HEARTBEAT, 0, 0], [])) => Ok(()),
            _ => Err(NotAPacket::Fenced),
        }
    }
}
