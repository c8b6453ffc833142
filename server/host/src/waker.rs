//! [`Waker`]: wakes a match that wants to be woken by what comes: it rests, or waits for a packet. Any other one hears of it
//! when its next tick is due.

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

/// The match's side: whether it listens.
pub(super) struct Listening(Arc<AtomicBool>);

/// What wakes the match in this slot; it does not listen yet.
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
    /// To be called after something was put where the match looks for it.
    pub(super) fn wake(&self) {
        // Either this is seen there, or that it listens is seen here.
        fence(Ordering::SeqCst);
        if self.listens.swap(false, Ordering::Relaxed) {
            self.workers.wake(self.slot);
        }
    }
}

impl Listening {
    /// From now on the match is woken by what comes, or not. To be followed by a look at what has come already.
    pub(super) fn set(&self, listens: bool) {
        self.0.store(listens, Ordering::Relaxed);
        fence(Ordering::SeqCst);
    }
}
