//! [`Tickets`]: the ticket with which a session connected, and the reconnect tickets that it got.
//!
//! Invariant: a client can make only its own tickets safe. Otherwise a client could lock itself out with an arbitrary
//! number, and fill the records with numbers up to it.

use std::time::Duration;

use arrayvec::ArrayVec;
use twinstep_protocol::lineage::Stamp;

/// The maximum number of tickets that a session may still report as stored. A session gets one every 10 s.
const HANDED_MAX: usize = 16;
/// The interval at which a playing session gets a new ticket for reconnecting.
const TICKET_EVERY: Duration = Duration::from_secs(10);

#[derive(Debug)]
pub(crate) struct Tickets {
    came_by: Option<Stamp>,
    /// The tickets that the session was given and that are not safe yet, oldest first.
    handed: ArrayVec<Stamp, HANDED_MAX>,
    newest: Option<Stamp>,
    /// The time when the next ticket is due. `None` if it is due when the session starts to play.
    due: Option<Duration>,
}

impl Tickets {
    pub(crate) fn new(came_by: Option<Stamp>) -> Tickets {
        Tickets {
            came_by,
            handed: ArrayVec::new(),
            newest: came_by,
            due: None,
        }
    }

    pub(crate) fn came_by(&self) -> Option<&Stamp> {
        self.came_by.as_ref()
    }

    pub(crate) fn newest(&self) -> Option<&Stamp> {
        self.newest.as_ref()
    }

    pub(crate) fn take_due(&mut self, now: Duration) -> bool {
        let is_due = self.due.is_none_or(|due| now >= due);
        if is_due {
            self.due = Some(now + TICKET_EVERY);
        }
        is_due
    }

    pub(crate) fn note_handed(&mut self, stamp: Stamp) {
        if self.handed.is_full() {
            self.handed.remove(0);
        }
        self.handed.push(stamp);
        self.newest = Some(stamp);
    }

    /// Handles a client's report that it stored a ticket. Returns the ticket if it is one of this session's, and drops
    /// older ones.
    pub(crate) fn take_stored(&mut self, lineage: u64, generation: u32) -> Option<Stamp> {
        let is_it = |stamp: &Stamp| (stamp.lineage, stamp.generation) == (lineage, generation);
        let at = self.handed.iter().position(is_it)?;
        self.handed.drain(..=at).last()
    }
}
