//! [`Outgoing`]: decides when the session's next packet is due, and keeps the state carried over from earlier packets.
//!
//! Invariant: packets for new inputs are sent at a bounded rate, however many inputs are sampled, and no packet is so
//! late that the server would count the session as silent.

use std::time::Duration;

use arrayvec::ArrayVec;
use twinstep_core::bounds::{
    ANSWERS_MAX, INPUT_PACKETS_PER_SECOND, LARGE_COMMANDS_OPEN_MAX, PACKETS_PER_SEND_MAX, SEATS_MAX,
};
use twinstep_core::frame::LargeEntry;
use twinstep_core::{PlayerId, Tick};

use crate::input_repeats::InputRepeats;

/// The minimum mean interval between packets with new inputs.
const INPUT_EVERY: Duration = Duration::from_nanos(1_000_000_000 / INPUT_PACKETS_PER_SECOND as u64);
/// The maximum number of packets with new inputs in a burst after a pause.
const INPUT_BURST: u32 = 4;
/// The number of goodbye packets. There are several because no later packet can repeat a lost one.
const GOODBYES: u8 = 3;

/// The maximum number of large commands and answers uploaded at the same time.
pub(crate) const UPLOADS_MAX: usize = SEATS_MAX * LARGE_COMMANDS_OPEN_MAX + ANSWERS_MAX;

pub(crate) struct Outgoing {
    sent_at: Option<Duration>,
    is_urgent: bool,
    /// The time at which the packets sent so far would all have left at the full rate.
    paid_until: Duration,
    goodbyes: u8,
    /// The first tick whose input the server lacks, according to its newest report.
    pub(crate) needed: Tick,
    pub(crate) repeats: InputRepeats,
    /// Whether the last packet announced that this client rests.
    pub(crate) rests: bool,
    pub(crate) older: Older,
    /// The first command of the next packet, if one packet cannot hold all commands.
    pub(crate) commands_from: Option<(PlayerId, u32)>,
    /// The open large commands and answers being uploaded over this path's lane.
    pub(crate) uploaded: ArrayVec<LargeEntry, UPLOADS_MAX>,
}

impl Outgoing {
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
            uploaded: ArrayVec::new(),
        }
    }

    /// Restarts for a new path, over which no packet has been sent yet.
    pub(crate) fn restart(&mut self) {
        self.sent_at = None;
        self.is_urgent = true;
        self.repeats.restart();
        self.rests = false;
        self.uploaded.clear();
    }

    /// Lets the next packet leave as soon as the rate allows.
    pub(crate) fn urge(&mut self) {
        self.is_urgent = true;
    }

    /// The time of the next packet: `patience` after the last one, or earlier if a packet is urgent and the rate allows
    /// it.
    pub(crate) fn next_due(&self, patience: Duration) -> Duration {
        let Some(sent_at) = self.sent_at else {
            return Duration::ZERO;
        };
        let keep_alive = sent_at + patience;
        // After a pause, up to `INPUT_BURST` packets may leave before the rate allows the next one.
        let paid = self
            .paid_until
            .saturating_sub(INPUT_EVERY * (INPUT_BURST - 1));
        match self.is_urgent {
            true => keep_alive.min(paid),
            false => keep_alive,
        }
    }

    pub(crate) fn has_goodbyes(&self) -> bool {
        self.goodbyes > 0
    }

    pub(crate) fn record_sent(&mut self, now: Duration) {
        self.is_urgent = false;
        self.sent_at = Some(now);
    }

    pub(crate) fn pay(&mut self, now: Duration) {
        self.paid_until = self.paid_until.max(now) + INPUT_EVERY;
    }

    pub(crate) fn leave(&mut self) {
        self.goodbyes = GOODBYES;
    }

    pub(crate) fn take_goodbye(&mut self) -> bool {
        let is_left = self.goodbyes > 0;
        self.goodbyes -= u8::from(is_left);
        is_left
    }
}

/// The mean time between two datagrams with older inputs.
const OLDER_EVERY: Duration = Duration::from_millis(16);
/// The maximum number of datagrams with older inputs in a burst. A host accepts 150 datagrams a second, and the newest
/// inputs need most of them.
const OLDER_BURST: u32 = 12;

/// Inputs that did not fit into the newest datagram. They follow in later datagrams of the same send, and then of the
/// next sends, so that every input is sent.
#[derive(Default)]
pub(crate) struct Older {
    run: Option<(Tick, Tick)>,
    packets: usize,
    earned_since: Duration,
}

impl Older {
    pub(super) fn begin(&mut self, run: Option<(Tick, Tick)>) {
        self.packets = PACKETS_PER_SEND_MAX - 1;
        let ended = self.run.map(|(_, end)| end);
        self.run = run.map(|(first, end)| match ended {
            // The previous send sent the inputs starting at `ended`; the older ones are next.
            Some(ended) if first < ended && ended < end => (first, ended),
            _ => (first, end),
        });
    }

    pub(super) fn leave(&mut self, run: Option<(Tick, Tick)>) {
        self.packets = self.packets.saturating_sub(1);
        self.run = run;
    }

    pub(crate) fn next_due(&self) -> Option<(Duration, (Tick, Tick))> {
        let run = self.run.filter(|_| self.packets > 0)?;
        Some((self.earned_since + OLDER_EVERY, run))
    }

    pub(super) fn take(&mut self, now: Duration) -> Option<(Tick, Tick)> {
        // A pause allows at most one burst.
        let earliest = now.saturating_sub(OLDER_EVERY * OLDER_BURST);
        let paid = self.earned_since.max(earliest) + OLDER_EVERY;
        let run = self.run.filter(|_| self.packets > 0 && paid <= now)?;
        self.earned_since = paid;
        Some(run)
    }
}
