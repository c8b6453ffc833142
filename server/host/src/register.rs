//! [`Register`]: the running matches of a host, keyed by id.

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use super::histogram::Spread;
use super::mailbox::Mailbox;
use super::orders::MatchOrder;
use super::pulse::{MatchGlance, Pulse};
use twinstep_protocol::identity::MatchId;

/// A running match.
#[derive(Clone)]
pub struct ListedMatch {
    pub(super) pulse: Arc<Pulse>,
    pub(super) orders: Mailbox<MatchOrder>,
}

impl ListedMatch {
    /// The last published state.
    #[must_use]
    pub fn glance(&self) -> MatchGlance {
        self.pulse.glance()
    }

    /// Sends an order, which the match carries out between two steps. If its mailbox is full or the match is over, the
    /// order is dropped with its response channel.
    pub fn order(&self, order: MatchOrder) {
        let _ = self.orders.try_send(order);
    }

    fn is_over(&self) -> bool {
        self.orders.is_closed() || self.pulse.is_condemned()
    }
}

#[derive(Clone, Default)]
pub(super) struct Register(Arc<Mutex<BTreeMap<MatchId, ListedMatch>>>);

impl Register {
    /// The running matches. Removes matches that are over.
    pub(super) fn running(&self) -> MutexGuard<'_, BTreeMap<MatchId, ListedMatch>> {
        let mut matches = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        matches.retain(|_, listed| !listed.is_over());
        matches
    }

    /// The tick lateness so far, keyed by the running match's unique number.
    pub(super) fn lateness(&self) -> BTreeMap<u64, Spread> {
        let matches = self.running();
        matches
            .values()
            .map(|listed| listed.pulse.lateness_so_far())
            .collect()
    }
}
