//! Challenged dials that are not sessions yet; and a record of the dials that became sessions.
//!
//! Invariant: a dial becomes a session once, and the dials of one identity leave space for the dials of all others.
//! Whether a ticket is still valid is decided elsewhere: see [`TicketLedger`](crate::TicketLedger).

use std::collections::BTreeMap;
use std::net::SocketAddr;
use std::time::Duration;

use crate::claims::{Holder, TicketClaims};
use crate::dial::SessionKeys;
use crate::netcode::HANDSHAKE_LIFE;

/// The response to a challenge must arrive within this time, or the client must dial again.
const CHALLENGE_LIFE: Duration = Duration::from_secs(10);
/// The maximum number of challenged addresses kept: four for each possible session.
const CHALLENGED_MAX: usize = 4_096;
/// The maximum number of an identity's recent dials; a dial is recent for [`HANDSHAKE_LIFE`]. It is far below netcode's
/// limit of thousands of pending connections, so that one identity cannot use them up.
const DIALS_MAX: usize = 32;
/// The interval at which expired entries are dropped.
const FORGET_EVERY: Duration = Duration::from_secs(1);

/// A challenge sent to an address, with the server key under which it was sent.
pub(crate) struct Challenge {
    pub(crate) key: usize,
    pub(crate) since: Duration,
    pub(crate) keys: SessionKeys,
    pub(crate) ticket: TicketClaims,
}

/// The maximum number of addresses at which one dial is challenged. It is more than one because the client may move to
/// a different port, and because a copied datagram from a forged address may arrive before the original.
const ADDRESSES_MAX: usize = 4;

/// A dial that counts towards [`DIALS_MAX`].
struct RecentDial {
    session: u64,
    from: Vec<SocketAddr>,
    at: Duration,
    lineage: u64,
    generation: u32,
}

#[derive(Default)]
pub(crate) struct Admissions {
    challenged: BTreeMap<SocketAddr, Challenge>,
    /// Dials that became sessions, with the time. Kept while any datagram of their handshake could
    /// still be used.
    begun: BTreeMap<u64, Duration>,
    dials: BTreeMap<Holder, Vec<RecentDial>>,
    forgot_at: Duration,
}

impl Admissions {
    pub(crate) fn challenge(&self, from: SocketAddr) -> Option<&Challenge> {
        self.challenged.get(&from)
    }

    pub(crate) fn knows_key(&self, key: usize) -> bool {
        self.challenged.values().any(|one| one.key == key)
    }

    /// Returns `true` if a client at this address can be challenged.
    pub(crate) fn has_room(&self, from: SocketAddr) -> bool {
        self.challenged.len() < CHALLENGED_MAX || self.challenged.contains_key(&from)
    }

    pub(crate) fn has_begun(&self, keys: &SessionKeys) -> bool {
        self.begun.contains_key(&keys.session)
    }

    /// Returns `true` if this ticket's holder may be challenged for this dial at this address now. If the holder
    /// already has the maximum number of dials, a newer ticket replaces an older one, and each lineage has its share.
    /// So copies of one ticket cannot block the holder's other tickets.
    pub(crate) fn may_dial(
        &mut self,
        now: Duration,
        from: SocketAddr,
        ticket: &TicketClaims,
        keys: &SessionKeys,
    ) -> bool {
        let dials = self.dials.entry(ticket.holder()).or_default();
        let is_it = |dialled: &&mut RecentDial| dialled.session == keys.session;
        if let Some(dialled) = dials.iter_mut().find(is_it) {
            // Each address takes a slot in netcode, so copies from forged addresses must not use them up.
            let is_known = dialled.from.contains(&from);
            let may = is_known || dialled.from.len() < ADDRESSES_MAX;
            if may && !is_known {
                dialled.from.push(from);
            }
            return may;
        }
        if dials.len() == DIALS_MAX {
            let Some(at) = place_to_take(dials, ticket) else {
                return false;
            };
            dials.swap_remove(at);
        }
        dials.push(RecentDial {
            session: keys.session,
            from: vec![from],
            at: now,
            lineage: ticket.stamp.lineage,
            generation: ticket.stamp.generation,
        });
        true
    }

    /// Removes and returns the challenge of another dial from this address, which its client has abandoned.
    pub(crate) fn take_other(&mut self, from: SocketAddr, keys: &SessionKeys) -> Option<Challenge> {
        let is_other = |challenge: &Challenge| challenge.keys != *keys;
        match self.challenged.get(&from).is_some_and(is_other) {
            true => self.challenged.remove(&from),
            false => None,
        }
    }

    pub(crate) fn note(&mut self, from: SocketAddr, challenge: Challenge) {
        self.challenged.insert(from, challenge);
    }

    /// Takes the challenge of session `id`, after a response from this address. Returns `None` if there was none, or if
    /// it has already been answered.
    pub(crate) fn take_answered(
        &mut self,
        now: Duration,
        from: SocketAddr,
        id: u64,
    ) -> Option<TicketClaims> {
        let challenge = self.challenged.remove(&from)?;
        let is_first = challenge.keys.session == id && !self.has_begun(&challenge.keys);
        if is_first {
            self.begun.insert(id, now);
        }
        is_first.then_some(challenge.ticket)
    }

    pub(crate) fn clear_challenges(&mut self) {
        self.challenged.clear();
    }

    pub(crate) fn forget(&mut self, now: Duration) {
        if now.saturating_sub(self.forgot_at) < FORGET_EVERY {
            return;
        }
        self.forgot_at = now;
        self.challenged
            .retain(|_, challenge| now.saturating_sub(challenge.since) < CHALLENGE_LIFE);
        let is_new = |at: Duration| now.saturating_sub(at) < HANDSHAKE_LIFE;
        self.begun.retain(|_, at| is_new(*at));
        self.dials.retain(|_, dials| {
            dials.retain(|dialled| is_new(dialled.at));
            !dials.is_empty()
        });
    }

    #[cfg(test)]
    pub(crate) fn len(&self) -> usize {
        self.challenged.len()
    }
}

/// The dial that loses its slot to a dial with `ticket` when all slots are taken: a dial with an older ticket of the
/// same lineage, or a dial of a lineage that has more slots.
fn place_to_take(dials: &[RecentDial], ticket: &TicketClaims) -> Option<usize> {
    let count = |lineage: u64| dials.iter().filter(|dial| dial.lineage == lineage).count();
    let (lineage, generation) = (ticket.stamp.lineage, ticket.stamp.generation);
    let older = |dial: &RecentDial| dial.lineage == lineage && dial.generation < generation;
    let older = (0..dials.len()).filter(|at| older(&dials[*at]));
    older.min_by_key(|at| dials[*at].generation).or_else(|| {
        let largest = dials
            .iter()
            .map(|dial| dial.lineage)
            .max_by_key(|of| count(*of))?;
        let is_its = |at: &usize| dials[*at].lineage == largest;
        let lowest = (0..dials.len())
            .filter(is_its)
            .min_by_key(|at| dials[*at].generation);
        lowest.filter(|_| count(largest) > count(lineage))
    })
}
