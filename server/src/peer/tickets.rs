//! [`Tickets`]: the ticket that a session came by, and those that it was handed to return with.
//!
//! Invariant: a client makes nothing safe but what it was handed. It could lock itself out by anything else, and have
//! each number between written down.

use std::time::Duration;

use arrayvec::ArrayVec;
use twinstep_protocol::lineage::Stamp;

/// Tickets that a session was handed and may still report as stored: they come one in 10 s.
const HANDED_MAX: usize = 16;
/// A ticket to return with is due when a session plays, and every so often from then on.
const TICKET_EVERY: Duration = Duration::from_secs(10);

/// See the [module](self).
#[derive(Debug)]
pub(crate) struct Tickets {
    /// The one that it came by, if it came by one.
    came_by: Option<Stamp>,
    /// Those that it was handed and that are not safe yet, oldest first.
    handed: ArrayVec<Stamp, HANDED_MAX>,
    newest: Option<Stamp>,
    /// When it is to get the next one; from when it plays on.
    due: Option<Duration>,
}

impl Tickets {
    /// A session came by this one.
    pub(crate) fn new(came_by: Option<Stamp>) -> Tickets {
        Tickets {
            came_by,
            handed: ArrayVec::new(),
            newest: came_by,
            due: None,
        }
    }

    /// The one that it came by.
    pub(crate) fn came_by(&self) -> Option<&Stamp> {
        self.came_by.as_ref()
    }

    /// The newest one that it has.
    pub(crate) fn newest(&self) -> Option<&Stamp> {
        self.newest.as_ref()
    }

    /// Whether another one is due now; if so, the next one is due a while later.
    pub(crate) fn take_due(&mut self, now: Duration) -> bool {
        let is_due = self.due.is_none_or(|due| now >= due);
        if is_due {
            self.due = Some(now + TICKET_EVERY);
        }
        is_due
    }

    /// It was handed one.
    pub(crate) fn note_handed(&mut self, stamp: Stamp) {
        if self.handed.is_full() {
            self.handed.remove(0);
        }
        self.handed.push(stamp);
        self.newest = Some(stamp);
    }

    /// The client reports that it stored a ticket. Returns it if the session was handed it; older ones are forgotten then.
    pub(crate) fn take_stored(&mut self, lineage: u64, generation: u32) -> Option<Stamp> {
        let is_it = |stamp: &Stamp| (stamp.lineage, stamp.generation) == (lineage, generation);
        let at = self.handed.iter().position(is_it)?;
        self.handed.drain(..=at).last()
    }
}
