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
use twinstep_core::packet::gaps::Gaps;

/// See the [module](self).
#[derive(Debug)]
pub(crate) struct FrameAcks {
    /// The next frame that the client wants: all before it are acknowledged.
    wanted: Tick,
    /// What it lacked of the frames that it was told, as it said last.
    gaps: Gaps,
    /// The client's authority.
    view: Tick,
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

    /// The match stood still for so long, for which nobody here is to blame.
    pub(crate) fn excuse(&mut self, slip: Duration) {
        self.progress_at += slip;
    }
}
