//! [`Waker`]: wakes a match that listens for events because it rests or waits for a packet. Other matches read events
//! when their next tick is due.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering, fence};

use super::workers::{SlotId, Workers};

/// See the [module](self). Clones wake the same match.
#[derive(Clone)]
pub(super) struct Waker {
    workers: Workers,
    slot: SlotId,
    listens: Arc<AtomicBool>,
}

/// The match's side: sets whether it listens.
pub(super) struct Listening(Arc<AtomicBool>);

pub(super) fn waker(workers: Workers, slot: SlotId) -> (Waker, Listening) {
    let listens = Arc::<AtomicBool>::default();
    let waker = Waker {
        workers,
        slot,
        listens: listens.clone(),
    };
    (waker, Listening(listens))
}

impl Waker {
    /// Wakes the match if it listens. Must be called after the event was stored.
    pub(super) fn wake(&self) {
        // With the fence in `set`, either the match receives the event, or this side observes that the match is
        // waiting.
        fence(Ordering::SeqCst);
        if self.listens.swap(false, Ordering::Relaxed) {
            self.workers.wake(self.slot);
        }
    }
}

impl Listening {
    /// Sets whether an event wakes the match. After this, check for events that have already arrived.
    pub(super) fn set(&self, listens: bool) {
        self.0.store(listens, Ordering::Relaxed);
        fence(Ordering::SeqCst);
    }
}
