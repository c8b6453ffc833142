//! [`TicketLedger`]: decides whether a ticket opens a session. All transports of a server share it.
//!
//! ```text
//!  matches ──ruling, seat──▶ ┌──────────────┐ ◀── refusal? ── UDP        which opens and checks the sealed ticket
//!  lineages file ──────────▶ │ TicketLedger │ ◀── refusal? ── another transport
//!  wall clock ─────────────▶ └──────────────┘ ◀── refusal? ── the maker of matches on demand
//! ```
//!
//! A transport verifies that a ticket is authentic and that the client holds its secret. It then asks the ledger, which
//! knows what a ticket does not contain: whether a newer one is safe, and whether the ticket was revoked or has
//! expired.
//!
//! Invariants: the ledger's state of a lineage never goes back. A call waits only for the ledger's short lock, which is
//! never held during I/O.

use std::collections::BTreeSet;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use twinstep_protocol::identity::MatchId;
use twinstep_protocol::lineage::{LineageTable, Ruling};

use crate::claims::{Holder, TicketClaims};
use crate::lineage_file::LINEAGES_MAX;
use crate::wall_clock::WallClock;

/// The maximum number of identities whose seats are known. Seat holders beyond it compete with strangers for a slot.
const SEATED_MAX: usize = 65_536;

/// The reason why an authentic ticket cannot open a session.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum TicketRefusal {
    /// The ticket has expired.
    Expired,
    /// A newer ticket of the holder has played or is stored, or this ticket was revoked.
    Superseded,
}

/// The state of the tickets and seats of all matches on a server. Clones share it.
#[derive(Clone, Debug)]
pub struct TicketLedger(Arc<Mutex<Ledger>>);

#[derive(Debug)]
struct Ledger {
    lineages: LineageTable<Holder>,
    clock: WallClock,
    seated: BTreeSet<Holder>,
}

impl TicketLedger {
    /// A ledger without entries. `now` is the session time that corresponds to `now_unix`, the time since the Unix
    /// epoch.
    #[must_use]
    pub fn new(now: Duration, now_unix: Duration) -> TicketLedger {
        TicketLedger::with_lineages(LineageTable::new(LINEAGES_MAX), now, now_unix)
    }

    /// Like [`new`](Self::new), with the lineages read from a file.
    #[must_use]
    pub fn with_lineages(
        lineages: LineageTable<Holder>,
        now: Duration,
        now_unix: Duration,
    ) -> TicketLedger {
        TicketLedger(Arc::new(Mutex::new(Ledger {
            lineages,
            clock: WallClock::new(now, now_unix),
            seated: BTreeSet::new(),
        })))
    }

    /// Advances time. Tickets expire by `now_unix` alone. If that clock jumps forward, the jump takes effect after
    /// twenty minutes. Each transport may call this: a repeated call with the same times has no effect.
    pub fn advance(&self, now: Duration, now_unix: Duration) {
        let mut ledger = self.lock();
        ledger.clock.advance(now, now_unix);
        let now_unix_s = ledger.clock.unix_s();
        ledger.lineages.tidy(now_unix_s);
    }

    /// The reason why this ticket cannot open a session now, or `None` if it can.
    #[must_use]
    pub fn refusal(&self, ticket: &TicketClaims) -> Option<TicketRefusal> {
        let ledger = self.lock();
        // Checked first, because no other ticket of the holder can make an expired one valid again.
        if ledger.clock.is_past(ticket.stamp.expires_unix_s) {
            Some(TicketRefusal::Expired)
        } else if ledger.lineages.refuses(&ticket.holder(), &ticket.stamp) {
            Some(TicketRefusal::Superseded)
        } else {
            None
        }
    }

    /// Applies a ruling. Returns `true` if it changed anything. From now on, tickets that the ruling excludes are
    /// refused, even if their clients are already connecting.
    pub fn apply(&self, holder: &Holder, ruling: &Ruling) -> bool {
        self.lock().lineages.apply(holder, ruling)
    }

    /// Reads or changes the lineages under the lock. `f` must be short, and must not call the ledger.
    pub fn lineages<R>(&self, f: impl FnOnce(&mut LineageTable<Holder>) -> R) -> R {
        f(&mut self.lock().lineages)
    }

    /// Records whether an identity has a seat in its match. While the identity has a seat, a transport keeps a slot
    /// free for it to reconnect, however many other clients dial.
    pub fn set_seat(&self, of: Holder, is_held: bool) {
        let seated = &mut self.lock().seated;
        if !is_held {
            seated.remove(&of);
        } else if seated.len() < SEATED_MAX {
            seated.insert(of);
        }
    }

    /// Returns `true` if an identity has a seat, to which it may reconnect.
    #[must_use]
    pub fn has_seat(&self, of: &Holder) -> bool {
        self.lock().seated.contains(of)
    }

    /// Removes all seats of a finished match.
    pub fn forget_seats(&self, match_id: MatchId) {
        self.lock().seated.retain(|of| of.match_id != match_id);
    }

    fn lock(&self) -> MutexGuard<'_, Ledger> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}
