//! [`MintingKey`]: the key that seals the host's new tickets. It can be replaced while matches run.

use std::sync::{Arc, Mutex, PoisonError};

use twinstep_udp::TicketKey;

/// The newest key. Clones share it.
#[derive(Clone, Debug)]
pub(super) struct MintingKey(Arc<Mutex<TicketKey>>);

impl MintingKey {
    pub(super) fn new(key: TicketKey) -> MintingKey {
        MintingKey(Arc::new(Mutex::new(key)))
    }

    pub(super) fn get(&self) -> TicketKey {
        let key = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        key.clone()
    }

    pub(super) fn set(&self, key: TicketKey) {
        *self.0.lock().unwrap_or_else(PoisonError::into_inner) = key;
    }
}
