//! [`Outgoing`]: when the session's next packet is due, and where it goes on from the ones before.
//!
//! Invariant: packets for new inputs leave at a bounded rate, whatever is sampled; and none is so late that the server
//! could take the session to be silent.

use std::time::Duration;

use twinstep_core::bounds::INPUT_PACKETS_PER_SECOND;
use twinstep_core::{PlayerId, Tick};

use crate::again::Again;
use crate::packets::older::Older;

/// New inputs leave this often at most, and so many at once after a pause.
const INPUT_EVERY: Duration = Duration::from_nanos(1_000_000_000 / INPUT_PACKETS_PER_SECOND as u64);
const INPUT_BURST: u32 = 4;
/// A goodbye is said so often, since nobody will be there to say it again.
const GOODBYES: u8 = 3;

/// See the [module](self).
pub(crate) struct Outgoing {
    sent_at: Option<Duration>,
    /// There is something to say that does not wait for its time.
    is_urgent: bool,
    /// When the packets sent so far have left at the full rate.
    paid_until: Duration,
    /// Goodbyes that are left to say.
    goodbyes: u8,
    /// The first tick of which the server holds no input of ours, as far as we know.
    pub(crate) needed: Tick,
    /// Which of the inputs since then are said again.
    pub(crate) again: Again,
    /// The last packet said that this client rests.
    pub(crate) rests: bool,
    /// What is left of a send that takes several datagrams.
    pub(crate) older: Older,
    /// The next packet goes on with this command, where one does not hold all: each has its turn.
    pub(crate) commands_from: Option<(PlayerId, u32)>,
}

impl Outgoing {
    /// A session begins with a packet at once.
    pub(crate) fn new() -> Outgoing {
        Outgoing {
            sent_at: None,
            is_urgent: true,
            paid_until: Duration::ZERO,
            goodbyes: 0,
            needed: Tick(0),
            again: Again::default(),
            rests: false,
            older: Older::default(),
            commands_from: None,
        }
    }

    /// Nothing was sent yet over the path that there is now.
    pub(crate) fn begin_anew(&mut self) {
        self.sent_at = None;
        self.is_urgent = true;
        self.again.begin_anew();
        self.rests = false;
    }

    /// The next packet does not wait for its time.
    pub(crate) fn urge(&mut self) {
        self.is_urgent = true;
    }

    /// Whether a packet is due: the last one left so long ago, or there is news and its rate allows it.
    pub(crate) fn is_due(&self, now: Duration, patience: Duration) -> bool {
        let is_paid = self.paid_until <= now + INPUT_EVERY * (INPUT_BURST - 1);
        let is_silent = self
            .sent_at
            .is_none_or(|at| now.saturating_sub(at) >= patience);
        is_silent || self.is_urgent && is_paid
    }

    /// A packet that was due leaves, with all the news.
    pub(crate) fn note_sent(&mut self, now: Duration) {
        self.is_urgent = false;
        self.sent_at = Some(now);
    }

    /// A packet that was due counts against its rate.
    pub(crate) fn pay(&mut self, now: Duration) {
        self.paid_until = self.paid_until.max(now) + INPUT_EVERY;
    }

    /// The session says goodbye.
    pub(crate) fn leave(&mut self) {
        self.goodbyes = GOODBYES;
    }

    /// Whether a goodbye is left to say; if so, it is said now.
    pub(crate) fn take_goodbye(&mut self) -> bool {
        let is_left = self.goodbyes > 0;
        self.goodbyes -= u8::from(is_left);
        is_left
    }
}
