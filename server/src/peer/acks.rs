//! [`FrameAcks`]: how far a client has come in the stream of frames, as it says itself.
//!
//! ```text
//!          view        wanted                       told
//!  ──────────┼───────────┼───▒▒▒▒───────▒▒───────────┼──▶ ticks
//!   stepped  │   is here │   gaps: not here
//! ```
//!
//! Invariant: neither `view` nor `wanted` goes back while a session plays; the view is never ahead of what is here.

use std::time::Duration;

use twinstep_core::Tick;
use twinstep_protocol::packet::gaps::Gaps;

/// That a client's line loses packets is true for so long: as long as it is, one in eight of its packets says so.
const LOSSY_FOR: Duration = Duration::from_secs(1);

/// See the [module](self).
#[derive(Debug)]
pub(crate) struct FrameAcks {
    /// The next frame that the client wants: all before it are acknowledged.
    wanted: Tick,
    /// What it lacked of the frames that it was told, as it said last.
    gaps: Gaps,
    /// The client's authority.
    view: Tick,
    /// When it said last that it has lost packets lately, or knows its line too little yet; at first, when it came.
    lossy_at: Duration,
    /// When it last wanted a later frame, or there was nothing that it could want.
    progress_at: Duration,
}

impl FrameAcks {
    /// Nothing is said yet.
    pub(crate) fn new(now: Duration) -> FrameAcks {
        FrameAcks {
            wanted: Tick(0),
            gaps: Gaps::new(),
            view: Tick(0),
            lossy_at: now,
            progress_at: now,
        }
    }

    /// The next frame that the client wants: all before it are acknowledged.
    pub(crate) fn wanted(&self) -> Tick {
        self.wanted
    }

    /// The client's authority.
    pub(crate) fn view(&self) -> Tick {
        self.view
    }

    /// What it lacks behind the frame that it wants.
    pub(crate) fn gaps(&self) -> &Gaps {
        &self.gaps
    }

    /// For how long it has not come on.
    pub(crate) fn stood_for(&self, now: Duration) -> Duration {
        now.saturating_sub(self.progress_at)
    }

    /// It begins with the world of this tick.
    pub(crate) fn begin(&mut self, from: Tick) {
        (self.wanted, self.view) = (from, from);
    }

    /// It has its world, and frames beyond it.
    pub(crate) fn note_loaded(&mut self, wanted: Tick) {
        self.wanted = wanted;
    }

    /// It wants a later frame than before.
    pub(crate) fn note_progress(&mut self, now: Duration, wanted: Tick) {
        (self.wanted, self.progress_at) = (wanted, now);
    }

    /// That it does not come on is no fault of its own up to now.
    pub(crate) fn forgive(&mut self, now: Duration) {
        self.progress_at = now;
    }

    /// Its authority, of a client that says that it wants `wanted` next.
    pub(crate) fn note_view(&mut self, view: Tick, wanted: Tick) {
        self.view = self.view.max(view.min(wanted));
    }

    /// It tells of gaps behind `wanted`. Not all packets do: else those are filled that it has passed.
    pub(crate) fn note_gaps(&mut self, gaps: &mut Gaps, wanted: Tick) {
        if gaps.is_empty() {
            self.gaps.retain(|(_, end)| *end > wanted);
        } else {
            self.gaps = std::mem::take(gaps);
        }
    }

    /// It has lost packets lately, it says, or does not know its line yet.
    pub(crate) fn note_lossy(&mut self, now: Duration) {
        self.lossy_at = now;
    }

    /// Whether all that was said to it lately came, as far as can be told: it lost nothing, lacks nothing between what it
    /// has, and came on no longer ago than `patience`.
    pub(crate) fn is_steady(&self, now: Duration, patience: Duration) -> bool {
        now.saturating_sub(self.lossy_at) > LOSSY_FOR
            && self.gaps.is_empty()
            && self.stood_for(now) <= patience
    }

    /// The match stood still for so long, for which nobody here is to blame.
    pub(crate) fn shift_deadlines(&mut self, slip: Duration) {
        self.progress_at += slip;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const MS: fn(u64) -> Duration = Duration::from_millis;

    #[test]
    fn who_loses_lacks_or_does_not_come_on_is_not_steady() {
        let steady = |acks: &FrameAcks, ms| acks.is_steady(MS(ms), MS(150));
        let mut acks = FrameAcks::new(MS(0));
        acks.note_progress(MS(1_000), Tick(3));
        assert!(!steady(&acks, 1_000), "nobody knows its line yet");
        acks.note_progress(MS(1_100), Tick(4));
        assert!(steady(&acks, 1_100) && steady(&acks, 1_250));
        assert!(!steady(&acks, 1_251), "it does not come on");
        let mut gaps = Gaps::new();
        gaps.push((Tick(6), Tick(8)));
        acks.note_gaps(&mut gaps, Tick(4));
        assert!(!steady(&acks, 1_100), "it lacks frames");
        acks.note_gaps(&mut Gaps::new(), Tick(8));
        assert!(steady(&acks, 1_100));
        acks.note_lossy(MS(1_100));
        acks.note_progress(MS(2_100), Tick(9));
        assert!(!steady(&acks, 2_100), "its line loses packets");
        assert!(steady(&acks, 2_101), "it has not said so for a while");
    }
}
