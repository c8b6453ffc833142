//! [`Register`]: the matches of a host by their ids, as others reach them.

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use super::histogram::Spread;
use super::mailbox::Mailbox;
use super::orders::MatchOrder;
use super::pulse::{MatchGlance, Pulse};

/// A match that runs.
#[derive(Clone)]
pub struct ListedMatch {
    pub(super) pulse: Arc<Pulse>,
    pub(super) orders: Mailbox<MatchOrder>,
}

impl ListedMatch {
    /// What the match last showed.
    #[must_use]
    pub fn glance(&self) -> MatchGlance {
        self.pulse.glance()
    }

    /// Gives the match an order, which it carries out between two of its steps. One that finds no room, or whose match is
    /// over, is dropped, and with it the way back of its answer.
    pub fn order(&self, order: MatchOrder) {
        let _ = self.orders.try_send(order);
    }

    fn is_over(&self) -> bool {
        self.orders.is_closed() || self.pulse.is_condemned()
    }
}

/// The matches of a host. Clones share them.
#[derive(Clone, Default)]
pub(super) struct Register(Arc<Mutex<BTreeMap<u64, ListedMatch>>>);

impl Register {
    /// The matches that run; others are forgotten.
    pub(super) fn running(&self) -> MutexGuard<'_, BTreeMap<u64, ListedMatch>> {
        let mut matches = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        matches.retain(|_, listed| !listed.is_over());
        matches
    }

    /// How late ticks were so far, of each match that runs, by a number that no other match ever has.
    pub(super) fn lateness(&self) -> BTreeMap<u64, Spread> {
        let matches = self.running();
        matches
            .values()
            .map(|listed| listed.pulse.lateness_so_far())
            .collect()
    }
}
