//! Which tickets let an identity in, and the newer ones that it is handed: see [`twinstep_protocol::lineage`].
//!
//! ```text
//!  ticket L0 opens a session ───▶ plays ──────▶ L0 is safe, and lineages that were seen before are out of date
//!  ticket L1 is handed down ──stored──▶ told ─▶ L1 is safe, and L0 is out of date
//!  ticket L2 is handed down ── the client is killed      (L1 lets it in, as often as it is shown; so would L2)
//! ```
//!
//! Invariant: what is safe only rises, and only to what the identity's client holds where a new process finds it, or was
//! let in with. So there is always a ticket that lets it in, whatever crashes.

use std::time::Duration;

use twinstep_core::Simulation;
use twinstep_protocol::lineage::{LineageTable, Lineages, NextTicket, Ruling, Stamp};
use twinstep_protocol::packet::closed::CloseCode;
use twinstep_protocol::packet::message;

use super::Match;
use crate::outbox::Output;
use crate::tally::JoinResult;
use twinstep_protocol::identity::SessionId;

impl<S: Simulation> Match<S> {
    /// As [`connect`](Match::connect), by a ticket with this stamp. It is safe once the session plays: a join that is
    /// refused or breaks off spends nothing.
    ///
    /// # Errors
    /// As [`connect`](Match::connect), and [`CloseCode::Superseded`] if the ticket is out of date.
    pub fn connect_by_ticket(
        &mut self,
        now: Duration,
        peer: SessionId,
        identity: &str,
        seats: usize,
        stamp: Stamp,
    ) -> Result<(), CloseCode> {
        if self.people.is_superseded(identity, seats == 0, &stamp) {
            self.diagnostics.tally.join(JoinResult::Superseded);
            return Err(CloseCode::Superseded);
        }
        self.call(now, peer, (identity, Some(stamp)), seats)
    }

    /// Takes rulings on outdated tickets from elsewhere: identity, whether it is a spectator's, ruling. They are not
    /// written into the journal.
    pub fn know_rulings<'a>(&mut self, rulings: impl IntoIterator<Item = (&'a str, bool, Ruling)>) {
        for (identity, watches, ruling) in rulings {
            let holder = (identity.to_owned(), watches);
            self.people.lineages.apply(&holder, &ruling);
        }
    }

    /// Revokes the tickets of an identity: all lineages that the server has seen, and all tickets made before
    /// `made_before_unix_ms`, by its maker's clock: the time of now and
    /// [`REVOKE_SLACK_MS`](twinstep_protocol::lineage::REVOKE_SLACK_MS). Tickets that are dated later are good. A session
    /// that is there goes on, and is handed tickets of a new lineage; [`kick`](Match::kick) ends it.
    pub fn revoke(&mut self, identity: &str, watches: bool, made_before_unix_ms: u64) {
        self.rule(identity, watches, |lineages| {
            lineages.revoke(made_before_unix_ms)
        });
    }

    /// Whether a ticket of an identity is out of date.
    #[must_use]
    pub fn is_out_of_date(&self, identity: &str, watches: bool, stamp: &Stamp) -> bool {
        self.people.is_superseded(identity, watches, stamp)
    }

    /// Which tickets are out of date, by identity and whether it is a spectator.
    #[must_use]
    pub fn lineages(&self) -> &LineageTable<(String, bool)> {
        &self.people.lineages
    }

    /// The lineage, generation and life of a session's next ticket; `None`: there is no such session.
    #[must_use]
    pub fn next_ticket(&self, peer: SessionId) -> Option<NextTicket> {
        let peer = self.people.peer(peer)?;
        let holder = (peer.identity.clone(), peer.is_spectator());
        let known = self.people.lineages.get(&holder);
        let (came_by, newest) = (peer.tickets.came_by(), peer.tickets.newest());
        let nothing = Lineages::default();
        Some(known.unwrap_or(&nothing).next(came_by, newest))
    }

    /// Gives a session a ticket to return with, as [`Output::Ticket`](crate::outbox::Output::Ticket) asked for: its stamp,
    /// which is as [`next_ticket`](Match::next_ticket) said and dated by the clock of now, and its bytes, which are the
    /// host's and the client's own matter.
    pub fn hand_ticket(&mut self, peer: SessionId, stamp: Stamp, ticket: Vec<u8>) {
        let Some(peer) = self.people.peer_mut(peer) else {
            return;
        };
        // One that finds no room is followed by another.
        if peer.lane_out.push(message::TICKET, ticket.into()).is_ok() {
            peer.tickets.note_handed(stamp);
            let (identity, watches) = (peer.identity.clone(), peer.is_spectator());
            self.rule(&identity, watches, |lineages| {
                lineages.note_handed(&stamp).into_iter().collect()
            });
            // A match has no wall clock of its own.
            self.people.lineages.tidy(stamp.made_unix_ms / 1_000);
        }
    }

    /// A session plays: the ticket that it came by is safe.
    pub(super) fn note_used(&mut self, at: usize) {
        if let Some(stamp) = self.people.peers[at].tickets.came_by().copied() {
            self.make_safe(at, &stamp);
        }
    }

    /// A client reports that it stored a ticket where a new process of it finds it. Only what it was handed counts.
    pub(super) fn note_stored(&mut self, at: usize, told: &[u8]) {
        let tickets = &mut self.people.peers[at].tickets;
        let stored = Stamp::read_stored(told)
            .and_then(|(lineage, generation)| tickets.take_stored(lineage, generation));
        match stored {
            Some(stamp) => self.make_safe(at, &stamp),
            None => self.diagnostics.stats.malformed += 1,
        }
    }

    fn make_safe(&mut self, at: usize, stamp: &Stamp) {
        let peer = &self.people.peers[at];
        let (identity, watches) = (peer.identity.clone(), peer.is_spectator());
        self.rule(&identity, watches, |lineages| lineages.make_safe(stamp));
    }

    /// Changes what is known of a holder; the journal and the host get what changed.
    fn rule(
        &mut self,
        identity: &str,
        watches: bool,
        change: impl FnOnce(&mut Lineages) -> Vec<Ruling>,
    ) {
        let holder = (identity.to_owned(), watches);
        let rulings = self.people.lineages.change(&holder, change);
        for ruling in &rulings {
            self.journal.write(&mut self.outbox, |recorder, out| {
                recorder.ruling(*ruling, watches, identity, out)
            });
            self.outbox.push(Output::Outdated {
                identity: identity.to_owned(),
                watches,
                ruling: *ruling,
            });
        }
        if !rulings.is_empty() {
            self.dismiss_outdated(identity, watches);
        }
    }
}
