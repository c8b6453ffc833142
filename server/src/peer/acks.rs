//! [`FrameAcks`]: the frames that a client has, according to its own reports.
//!
//! ```text
//!          view        wanted                       sent
//!  ──────────┼───────────┼───▒▒▒▒───────▒▒───────────┼──▶ ticks
//!   stepped  │   is here │   gaps: not here
//! ```
//!
//! Invariant: neither `view` nor `wanted` goes back while a session plays, and `view` never exceeds `wanted`.

use std::time::Duration;

use twinstep_core::Tick;
use twinstep_protocol::packet::gaps::Gaps;

/// A report of packet loss counts for this long. A client repeats its report in one of eight packets for a while.
const LOSSY_FOR: Duration = Duration::from_secs(1);

#[derive(Debug)]
pub(crate) struct FrameAcks {
    /// The next frame that the client needs; all frames before it are acknowledged.
    wanted: Tick,
    /// The frames after `wanted` that the client lacked at its last report of gaps.
    gaps: Gaps,
    view: Tick,
    /// When the client last reported recent packet loss, or that its connection is too new to know; initially, the time
    /// at which it connected.
    lossy_at: Duration,
    /// When the client last acknowledged a frame, or had no frame left to acknowledge.
    progress_at: Duration,
}

impl FrameAcks {
    pub(crate) fn new(now: Duration) -> FrameAcks {
        FrameAcks {
            wanted: Tick(0),
            gaps: Gaps::new(),
            view: Tick(0),
            lossy_at: now,
            progress_at: now,
        }
    }

    pub(crate) fn wanted(&self) -> Tick {
        self.wanted
    }

    pub(crate) fn view(&self) -> Tick {
        self.view
    }

    pub(crate) fn gaps(&self) -> &Gaps {
        &self.gaps
    }

    /// The time since the client last acknowledged a frame, or had none left to acknowledge.
    pub(crate) fn stood_for(&self, now: Duration) -> Duration {
        now.saturating_sub(self.progress_at)
    }

    pub(crate) fn begin(&mut self, from: Tick) {
        (self.wanted, self.view) = (from, from);
    }

    pub(crate) fn record_loaded(&mut self, wanted: Tick) {
        self.wanted = wanted;
    }

    pub(crate) fn record_progress(&mut self, now: Duration, wanted: Tick) {
        (self.wanted, self.progress_at) = (wanted, now);
    }

    /// Restarts the client's time limit, because it could not have acknowledged more until now.
    pub(crate) fn forgive(&mut self, now: Duration) {
        self.progress_at = now;
    }

    pub(crate) fn record_view(&mut self, view: Tick, wanted: Tick) {
        self.view = self.view.max(view.min(wanted));
    }

    /// Records the reported gaps. Not every packet reports them; without a report, gaps before `wanted` count as
    /// filled.
    pub(crate) fn record_gaps(&mut self, gaps: &mut Gaps, wanted: Tick) {
        if gaps.is_empty() {
            self.gaps.retain(|(_, end)| *end > wanted);
        } else {
            self.gaps = std::mem::take(gaps);
        }
    }

    pub(crate) fn record_lossy(&mut self, now: Duration) {
        self.lossy_at = now;
    }

    /// Returns `true` if all recent packets to the client have probably arrived: it reports no loss and no gaps, and
    /// acknowledged a new frame at most `patience` ago.
    pub(crate) fn is_steady(&self, now: Duration, patience: Duration) -> bool {
        now.saturating_sub(self.lossy_at) > LOSSY_FOR
            && self.gaps.is_empty()
            && self.stood_for(now) <= patience
    }

    pub(crate) fn shift_deadlines(&mut self, slip: Duration) {
        self.progress_at += slip;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const MS: fn(u64) -> Duration = Duration::from_millis;

    #[test]
    fn a_client_with_loss_gaps_or_no_progress_is_not_steady() {
        let steady = |acks: &FrameAcks, ms| acks.is_steady(MS(ms), MS(150));
        let mut acks = FrameAcks::new(MS(0));
        acks.record_progress(MS(1_000), Tick(3));
        assert!(!steady(&acks, 1_000), "its connection is not known yet");
        acks.record_progress(MS(1_100), Tick(4));
        assert!(steady(&acks, 1_100) && steady(&acks, 1_250));
        assert!(!steady(&acks, 1_251), "it makes no progress");
        let mut gaps = Gaps::new();
        gaps.push((Tick(6), Tick(8)));
        acks.record_gaps(&mut gaps, Tick(4));
        assert!(!steady(&acks, 1_100), "it lacks frames");
        acks.record_gaps(&mut Gaps::new(), Tick(8));
        assert!(steady(&acks, 1_100));
        acks.record_lossy(MS(1_100));
        acks.record_progress(MS(2_100), Tick(9));
        assert!(!steady(&acks, 2_100), "it loses packets");
        assert!(steady(&acks, 2_101), "its last report of loss is too old");
    }
}
