//! [`Tickets`]: the ticket that a session connected with, and those that it was given to return with.
//!
//! Invariant: a client can only make tickets safe that it was given. Otherwise it could lock itself out with any
//! number, and have every number up to it recorded.

use std::time::Duration;

use arrayvec::ArrayVec;
use twinstep_protocol::lineage::Stamp;

/// The number of given tickets that a session may still report as stored. It gets one every 10 s.
const HANDED_MAX: usize = 16;
/// A playing session gets a new ticket to return with this often.
const TICKET_EVERY: Duration = Duration::from_secs(10);

#[derive(Debug)]
pub(crate) struct Tickets {
    /// The stamp of the ticket that it connected with, if it used one.
    came_by: Option<Stamp>,
    /// The tickets that it was given and that are not safe yet, oldest first.
    handed: ArrayVec<Stamp, HANDED_MAX>,
    newest: Option<Stamp>,
    /// The time when the next ticket is due; `None`: when it plays.
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

    /// Returns `true` if a new ticket is due now; then the next one is due after [`TICKET_EVERY`].
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

    /// The client reports that it stored a ticket. Returns the ticket if the session was given it, and forgets older
    /// ones.
    pub(crate) fn take_stored(&mut self, lineage: u64, generation: u32) -> Option<Stamp> {
        let is_it = |stamp: &Stamp| (stamp.lineage, stamp.generation) == (lineage, generation);
        let at = self.handed.iter().position(is_it)?;
        self.handed.drain(..=at).last()
    }
}
