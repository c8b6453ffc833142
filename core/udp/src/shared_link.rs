//! [`SharedLink`]: what the client endpoints of one process need for a moment only, and so can share.
//!
//! Invariant: each call begins with bytes of its own and reads only those, so nobody sees what another endpoint left there.

use std::fmt;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use crate::link::LaminarLink;
use crate::netcode::DATAGRAM_MAX;

/// The laminar of [`ClientEndpoint`](crate::ClientEndpoint)s, for a process that holds many of them: bots, or a load
/// generator. A client with its own takes 1.7 MB for it; those that share one take that once.
///
/// Clones are the same laminar. A lock guards it, for some microseconds a packet: clients of several threads that have much to
/// say should share one for each thread.
#[derive(Clone)]
pub struct SharedLink(Arc<Mutex<Shared>>);

/// What is shared.
pub(crate) struct Shared {
    pub(crate) link: LaminarLink,
    /// Where a datagram is opened.
    pub(crate) scratch: [u8; DATAGRAM_MAX],
}

impl SharedLink {
    /// One that nobody shares yet.
    #[must_use]
    pub fn new() -> SharedLink {
        SharedLink(Arc::new(Mutex::new(Shared {
            link: LaminarLink::new(),
            scratch: [0; DATAGRAM_MAX],
        })))
    }

    pub(crate) fn lock(&self) -> MutexGuard<'_, Shared> {
        // Each call begins with its own bytes: what a panic left of another one does not matter.
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// How many hold this one.
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

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use super::*;
    use crate::link::Payload;

    /// Each client's time begins when it does.
    #[test]
    fn clients_with_other_clocks_can_share_one() {
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
