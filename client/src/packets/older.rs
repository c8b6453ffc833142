//! The inputs that found no room in the newest datagram of a send.

use std::time::Duration;

use twinstep_core::Tick;
use twinstep_core::bounds::PACKETS_PER_SEND_MAX;

/// Datagrams with older inputs are paid for by time: one takes so long to earn...
const OLDER_EVERY: Duration = Duration::from_millis(16);
/// ...and so many are earned in advance. A host takes 150 datagrams a second, of which the newest inputs need most.
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

    /// The inputs of the next datagram, if one may be sent now.
    pub(super) fn take(&mut self, now: Duration) -> Option<(Tick, Tick)> {
        let earliest = now.saturating_sub(OLDER_EVERY * OLDER_BURST);
        let paid = self.earned_since.max(earliest) + OLDER_EVERY;
        let run = self.run.filter(|_| self.packets > 0 && paid <= now)?;
        self.earned_since = paid;
        Some(run)
    }
}
