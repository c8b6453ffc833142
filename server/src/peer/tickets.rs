//! [`Tickets`]: the ticket that a session came by, and those that it was handed to return with.
//!
//! Invariant: a client makes nothing safe but what it was handed. It could lock itself out by anything else, and have
//! each number between written down.

use std::time::Duration;

use arrayvec::ArrayVec;

/// Tickets that a session was handed and may still say to have stored: they come one in 10 s.
const HANDED_MAX: usize = 16;
/// A ticket to return with is due when a session plays, and every so often from then on.
const TICKET_EVERY: Duration = Duration::from_secs(10);

/// See the [module](self). Tickets are known by their serials.
#[derive(Debug)]
pub(crate) struct Tickets {
    /// The one that it came by, if it came by one.
    came_by: Option<u64>,
    /// Those that it was handed and that are not safe yet, oldest first.
    handed: ArrayVec<u64, HANDED_MAX>,
    /// When it is to get the next one; from when it plays on.
    due: Option<Duration>,
}

impl Tickets {
    /// A session came by this one.
    pub(crate) fn new(came_by: Option<u64>) -> Tickets {
        Tickets {
            came_by,
            handed: ArrayVec::new(),
            due: None,
        }
    }

    /// The one that it came by.
    pub(crate) fn came_by(&self) -> Option<u64> {
        self.came_by
    }

    /// The newest one that it has.
    pub(crate) fn newest(&self) -> Option<u64> {
        self.came_by.max(self.handed.last().copied())
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
    pub(crate) fn note_handed(&mut self, serial: u64) {
        if self.handed.is_full() {
            self.handed.remove(0);
        }
        self.handed.push(serial);
    }

    /// The client says that it stored one; whether that is one that it was handed. Older ones are forgotten then.
    pub(crate) fn note_stored(&mut self, serial: u64) -> bool {
        let was_handed = self.handed.contains(&serial);
        if was_handed {
            self.handed.retain(|handed| *handed > serial);
        }
        was_handed
    }
}
