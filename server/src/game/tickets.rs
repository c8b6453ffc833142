//! Which tickets let an identity in, and the newer ones that it is handed: see [`Serials`](crate::serials::Serials).

use std::time::Duration;

use twinstep_core::Simulation;
use twinstep_core::packet::hello::CloseCode;
use twinstep_core::packet::message;

use super::Match;
use crate::outbox::Item;
use crate::peer::PeerId;
use crate::tally::JoinResult;

impl<S: Simulation> Match<S> {
    /// As [`connect`](Match::connect), by a ticket with this serial. It is safe once the session plays: a join that is
    /// refused or breaks off spends nothing.
    ///
    /// # Errors
    /// As [`connect`](Match::connect), and [`CloseCode::Superseded`] if a newer ticket is safe.
    pub fn connect_by_ticket(
        &mut self,
        now: Duration,
        peer: PeerId,
        identity: &str,
        seats: usize,
        serial: u64,
    ) -> Result<(), CloseCode> {
        if self.people.is_superseded(identity, seats == 0, serial) {
            self.noted.tally.join(JoinResult::Superseded);
            return Err(CloseCode::Superseded);
        }
        self.call(now, peer, (identity, Some(serial)), seats)
    }

    /// What is known of safe serials from elsewhere: identity, whether it watches, serial. The journal does not hear of
    /// these.
    pub fn know_serials<'a>(&mut self, safe: impl IntoIterator<Item = (&'a str, bool, u64)>) {
        for (identity, watches, serial) in safe {
            self.people.serials.raise(identity, watches, serial);
        }
    }

    /// Tickets of an identity with a lower serial let nobody in any more. An operator revokes what an identity holds by
    /// raising its serial above all that were issued (the time of now, in milliseconds since the unix epoch, unless a
    /// clock was ahead): tickets that are made later are good. Raised to [`SERIAL_END`](twinstep_core::bounds::SERIAL_END) it is shut out for good, and no
    /// ticket can be made for it any more. A session that is there goes on, and is handed newer tickets unless it is shut
    /// out for good; [`kick`](Match::kick) ends it.
    pub fn raise_serial(&mut self, identity: &str, watches: bool, serial: u64) {
        if !self.people.serials.raise(identity, watches, serial) {
            return;
        }
        self.journal.write(&mut self.outbox, |recorder, out| {
            recorder.serial(serial, watches, identity, out)
        });
        self.outbox
            .push(Item::Safe(identity.to_owned(), watches, serial));
        self.dismiss_outdated(identity, watches);
    }

    /// The lowest serial that lets an identity in; `None`: all do.
    #[must_use]
    pub fn safe_serial(&self, identity: &str, watches: bool) -> Option<u64> {
        self.people.serials.safe(identity, watches)
    }

    /// All serials that are safe: identity, whether it watches, the lowest serial that lets it in.
    pub fn safe_serials(&self) -> impl Iterator<Item = (&str, bool, u64)> + '_ {
        self.people.serials.iter()
    }

    /// The ticket that a session is to get must be newer than the one with this serial.
    #[must_use]
    pub fn newest_serial(&self, peer: PeerId) -> Option<u64> {
        let peer = self.people.peer(peer)?;
        let safe = self
            .people
            .serials
            .safe(&peer.identity, peer.is_spectator());
        safe.max(peer.tickets.newest())
    }

    /// Gives a session a ticket to return with, as [`Output::Ticket`](crate::outbox::Output::Ticket) asked for, and its
    /// serial. Its bytes are the host's and the client's own matter.
    pub fn hand_ticket(&mut self, peer: PeerId, serial: u64, ticket: Vec<u8>) {
        if let Some(peer) = self.people.peer_mut(peer) {
            // One that finds no room is followed by another.
            if peer.lane_out.push(message::TICKET, ticket.into()).is_ok() {
                peer.tickets.note_handed(serial);
            }
        }
    }

    /// A session plays: the ticket that it came by is safe.
    pub(super) fn note_used(&mut self, at: usize) {
        if let Some(serial) = self.people.peers[at].tickets.came_by() {
            self.note_safe(at, serial);
        }
    }

    /// A client says that it stored a ticket where a new process of it finds it. Only what it was handed counts.
    pub(super) fn note_stored(&mut self, at: usize, told: &[u8]) {
        let serial = told.try_into().map(u64::from_le_bytes);
        match serial {
            Ok(serial) if self.people.peers[at].tickets.note_stored(serial) => {
                self.note_safe(at, serial);
            }
            _ => self.noted.stats.malformed += 1,
        }
    }

    fn note_safe(&mut self, at: usize, serial: u64) {
        let peer = &self.people.peers[at];
        let (identity, watches) = (peer.identity.clone(), peer.is_spectator());
        self.raise_serial(&identity, watches, serial);
    }
}
