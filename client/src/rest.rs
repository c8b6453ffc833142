//! When a client that has nothing to say speaks at every second tick only.
//!
//! ```text
//!  tick      t      t+1     t+2     t+3     t+4
//!  holds     a       a       a       b       b
//!  packet   t │rests       t+1 t+2 │rests  t+3      t+4      b leaves at once, as it always does
//! ```
//!
//! A packet that says "rests" says of one tick more than it holds that all stays as it is, unless a later packet comes before that
//! tick is sealed. The server fills such a tick with the very value that is held, so nothing is lost if it seals it before
//! the next packet comes; and it counts neither a missing input nor a smaller margin.
//!
//! Invariant: a client rests only where a fill is what it holds, and where it has nothing else to say: no input is later, or
//! another one, than if it spoke at every tick.

use std::time::Duration;

use twinstep_core::Simulation;

use crate::again;
use crate::picture::Show;
use crate::session::Session;

/// Inputs stay as they are for so many ticks before a client rests.
const AFTER_TICKS: u32 = 8;
/// While it rests, it speaks after so many ticks...
const EVERY_TICKS: u32 = 2;
/// ...if these are no longer than so: frames are acknowledged in time all the same.
const EVERY_MAX: Duration = Duration::from_millis(50);
/// Round trips vary by no more than one of so many parts of a tick, in the mean: over a worse line fewer packets would show later
/// how early they come.
const JITTER_PARTS: u32 = 3;

impl<S: Simulation, V: Show<S>> Session<S, V> {
    /// Whether what was sampled now waits for the next tick's packet: the last one said that it would.
    pub(crate) fn keeps_silent(&self, now: Duration) -> bool {
        let Some(playing) = self.playing() else {
            return false;
        };
        let Some(said) = self.outgoing.again.said() else {
            return false;
        };
        let is_due = playing.timeline.orders().next() - said >= EVERY_TICKS;
        self.outgoing.rests && !is_due && self.rests(now)
    }

    /// Whether there is nothing to say but that all stays as it is.
    pub(crate) fn rests(&self, now: Duration) -> bool {
        let Some(playing) = self.playing() else {
            return false;
        };
        let orders = playing.timeline.orders();
        let tick = playing.timeline.authority().turn().cadence.tick();
        let is_at_rest = orders.held_for() >= AFTER_TICKS && orders.are_held_by_fills(EVERY_TICKS);
        let has_no_order = orders.unacknowledged().next().is_none()
            && orders.claims().next().is_none()
            && playing.answers.is_none();
        let asks_nothing = playing.inbox.gaps().is_empty()
            && playing.divergence.since().is_none()
            && self.asked_evidence.is_none()
            && !self.contact.is_away();
        let is_line_good = again::is_heard(now, &self.link)
            && self.outgoing.again.is_proven(now, &self.link)
            && self.link.jitter() * JITTER_PARTS <= tick;
        tick * EVERY_TICKS <= EVERY_MAX
            && playing.pace.as_ref().is_some_and(|pace| pace.is_calm())
            && is_at_rest
            && has_no_order
            && asks_nothing
            && is_line_good
    }
}
