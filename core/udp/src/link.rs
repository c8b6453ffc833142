//! Whole unreliable packets between session and cipher, with 5 bytes before each packet.
//!
//! laminar writes and reads these bytes (`manager`), except in a browser, where it has no clock (`plain`).

use std::fmt;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use twinstep_protocol::datagrams::Datagrams;

use crate::netcode::{AROUND_BYTES, DATAGRAM_MAX};
use crate::transport::PACKET_MAX;

#[cfg(not(target_arch = "wasm32"))]
mod manager;
#[cfg(any(target_arch = "wasm32", test))]
#[cfg_attr(
    not(target_arch = "wasm32"),
    expect(unreachable_pub, reason = "a test compares it with laminar")
)]
mod plain;

#[cfg(not(target_arch = "wasm32"))]
pub(crate) use manager::LaminarLink;
#[cfg(not(target_arch = "wasm32"))]
pub use manager::Payload;
#[cfg(target_arch = "wasm32")]
pub(crate) use plain::PlainLink as LaminarLink;
#[cfg(target_arch = "wasm32")]
pub use plain::PlainPayload as Payload;

/// The `log` target of laminar. If a bridge from `log` is installed, turn this target off: a peer can cause an error
/// line with each packet. Without a `log` logger no line is written.
pub const LINK_LOG_TARGET: &str = "laminar";

const HEADER_BYTES: usize = 5;

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum NotAPacket {
    /// The datagram is neither a whole unreliable packet nor a heartbeat.
    Fenced,
    /// The datagram contains a packet above [`PACKET_MAX`].
    Oversize,
}

/// The datagram sizes of a path not probed yet. A probe's first byte differs from a laminar datagram's.
pub(crate) fn path_unknown() -> Datagrams {
    Datagrams::new(AROUND_BYTES, HEADER_BYTES + PACKET_MAX)
}

/// One laminar instance for several [`ClientEndpoint`](crate::ClientEndpoint)s, for a process with many clients, for
/// example bots or a load generator. A laminar instance takes 1.7 MB, per client or once for all clients that share it.
///
/// Clones share the same instance. A mutex guards it for a few microseconds per packet, so on several busy threads use
/// one link per thread.
#[derive(Clone)]
pub struct SharedLink(Arc<Mutex<SharedParts>>);

/// Each call first writes its own bytes and reads only those, so no endpoint can read another one's data.
pub(crate) struct SharedParts {
    pub(crate) link: LaminarLink,
    pub(crate) scratch: [u8; DATAGRAM_MAX],
}

impl SharedLink {
    /// Creates a laminar instance that is not shared yet.
    #[must_use]
    pub fn new() -> SharedLink {
        SharedLink(Arc::new(Mutex::new(SharedParts {
            link: LaminarLink::new(),
            scratch: [0; DATAGRAM_MAX],
        })))
    }

    pub(crate) fn lock(&self) -> MutexGuard<'_, SharedParts> {
        // A panic in another call does no harm: each call starts by writing its own bytes.
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    #[cfg(test)]
    pub(crate) fn holders(&self) -> usize {
        Arc::strong_count(&self.0)
    }
}

impl Default for SharedLink {
    fn default() -> SharedLink {
        SharedLink::new()
    }
}

impl fmt::Debug for SharedLink {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("SharedLink").finish_non_exhaustive()
    }
}
