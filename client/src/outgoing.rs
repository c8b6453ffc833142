//! [`Outgoing`]: when the session's next packet is due, and where it goes on from the ones before.
//!
//! Invariant: packets for new inputs leave at a bounded rate, whatever is sampled; and none is so late that the server
//! could take the session to be silent.

use std::time::Duration;

use twinstep_core::bounds::{INPUT_PACKETS_PER_SECOND, PACKETS_PER_SEND_MAX};
use twinstep_core::{PlayerId, Tick};

use crate::input_repeats::InputRepeats;

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
    pub(crate) repeats: InputRepeats,
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
            repeats: InputRepeats::default(),
            rests: false,
            older: Older::default(),
            commands_from: None,
        }
    }

    /// Nothing was sent yet over the path that there is now.
    pub(crate) fn begin_anew(&mut self) {
        self.sent_at = None;
        self.is_urgent = true;
        self.repeats.begin_anew();
        self.rests = false;
    }

    /// The next packet does not wait for its time.
    pub(crate) fn urge(&mut self) {
        self.is_urgent = true;
    }

    /// When the next packet is due: `patience` after the last one, or earlier, if there is something to send that does not
    /// wait and the rate allows it.
    pub(crate) fn next_due(&self, patience: Duration) -> Duration {
        let Some(sent_at) = self.sent_at else {
            return Duration::ZERO;
        };
        let keep_alive = sent_at + patience;
        let paid = self
            .paid_until
            .saturating_sub(INPUT_EVERY * (INPUT_BURST - 1));
        match self.is_urgent {
            true => keep_alive.min(paid),
            false => keep_alive,
        }
    }

    /// Whether goodbyes are left to send.
    pub(crate) fn has_goodbyes(&self) -> bool {
        self.goodbyes > 0
    }

    /// A packet that was due leaves, with all the news.
    pub(crate) fn record_sent(&mut self, now: Duration) {
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

/// The time between two datagrams with older inputs, in the mean.
const OLDER_EVERY: Duration = Duration::from_millis(16);
/// At most this many of them are sent at once. A host takes 150 datagrams a second, of which the newest inputs need most.
const OLDER_BURST: u32 = 12;

/// Inputs that found no room in the newest datagram, to follow in the next ones of the same send, and of the next send
/// where those do not suffice: each has its turn.
#[derive(Default)]
pub(crate) struct Older {
    /// From the first to the one after the last.
    run: Option<(Tick, Tick)>,
    /// How many datagrams of this send are left.
    packets: usize,
    /// Since when datagrams are earned that were not sent.
    earned_since: Duration,
}

impl Older {
    /// A send begins, whose newest datagram leaves `run` over. It goes on where the one before ended.
    pub(super) fn begin(&mut self, run: Option<(Tick, Tick)>) {
        self.packets = PACKETS_PER_SEND_MAX - 1;
        let ended = self.run.map(|(_, end)| end);
        self.run = run.map(|(first, end)| match ended {
            Some(ended) if first < ended && ended < end => (first, ended),
            _ => (first, end),
        });
    }

    /// A datagram is written; `run` is left over.
    pub(super) fn leave(&mut self, run: Option<(Tick, Tick)>) {
        self.packets = self.packets.saturating_sub(1);
        self.run = run;
    }

    /// When the inputs of the next datagram may be sent, and which these are.
    pub(crate) fn next_due(&self) -> Option<(Duration, (Tick, Tick))> {
        let run = self.run.filter(|_| self.packets > 0)?;
        Some((self.earned_since + OLDER_EVERY, run))
    }

    /// The inputs of the next datagram, if one may be sent now.
    pub(super) fn take(&mut self, now: Duration) -> Option<(Tick, Tick)> {
        let earliest = now.saturating_sub(OLDER_EVERY * OLDER_BURST);
        let paid = self.earned_since.max(earliest) + OLDER_EVERY;
        let run = self.run.filter(|_| self.packets > 0 && paid <= now)?;
        self.earned_since = paid;
        Some(run)
    }
}
