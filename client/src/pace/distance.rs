//! [`Distance`]: how far the clock is ahead of the turns that came, while all is well: the distance to go back to when
//! there is nothing else to go by.
//!
//! Invariant: how far a clock is ahead while it waits for turns, or shortly after, is no distance to keep.

use core::time::Duration;

use twinstep_core::Tick;

use super::clock::FREEZE;

/// See the [module](self).
pub(super) struct Distance {
    /// The first tick that no received turn covers.
    known: Tick,
    /// Mean of I − known when a turn arrives, in ticks.
    mean: Option<f64>,
    /// Until when turns that come show how late the clock has become by waiting for them; `MAX` while it waits.
    waited_until: Option<Duration>,
}

impl Distance {
    /// Nothing is measured.
    pub(super) fn new(known: Tick) -> Distance {
        Distance {
            known,
            mean: None,
            waited_until: None,
        }
    }

    /// The first tick that no received turn covers.
    pub(super) fn known(&self) -> Tick {
        self.known
    }

    /// The distance, in ticks, once there is one.
    pub(super) fn measured(&self) -> Option<f64> {
        self.mean
    }

    /// The clock waits for turns.
    pub(super) fn note_waiting(&mut self) {
        self.waited_until = Some(Duration::MAX);
    }

    /// The clock is held for another reason: that it waited does not matter any more.
    pub(super) fn forget_waiting(&mut self) {
        self.waited_until = None;
    }

    /// Turns came, up to `known`; whether the clock was waiting for them, just now or a moment ago.
    pub(super) fn hear_of(&mut self, now: Duration, known: Tick) -> bool {
        self.known = known;
        if self.waited_until == Some(Duration::MAX) {
            self.waited_until = Some(now + FREEZE);
        }
        self.waited_until = self.waited_until.filter(|until| now <= *until);
        self.waited_until.is_some()
    }

    /// So far the clock is ahead of turns that come, and all is well.
    pub(super) fn note(&mut self, ticks: f64) {
        let mean = self.mean.map_or(ticks, |mean| mean + (ticks - mean) / 16.0);
        self.mean = Some(mean);
    }

    /// This is the distance to keep, whatever was measured.
    pub(super) fn set(&mut self, ticks: f64) {
        self.mean = Some(ticks);
    }
}
