//! [`InputDelay`]: the input delay in use, on its way to the one that the match wishes.
//!
//! Invariant: it grows and shrinks in steps that a player does not feel.

use std::time::Duration;

/// The input delay grows by at most so many ticks, and shrinks by one, at once...
const DELAY_STEP_TICKS: u32 = 4;
/// ...and so often...
const DELAY_STEP: Duration = Duration::from_millis(500);
/// ...but it shrinks only every so many ticks at most: for that the clock stands for a tick, and makes that up at 5 %
/// before it does so again. With long ticks inputs would come too late otherwise, for as long as the delay shrinks.
const DELAY_STEP_EVERY: u32 = 30;

/// See the [module](self).
pub(super) struct InputDelay {
    ticks: u32,
    changed_at: Duration,
}

/// What the input tick is to do, so that the delay follows.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum DelayStep {
    /// Nothing.
    None,
    /// Go ahead by so many ticks, which repeat what is held.
    GoAhead(u32),
    /// Stand still for a tick.
    Stand,
}

impl InputDelay {
    /// A session begins with this one.
    pub(super) fn new(ticks: u32) -> InputDelay {
        InputDelay {
            ticks,
            changed_at: Duration::ZERO,
        }
    }

    /// The delay in use.
    pub(super) fn ticks(&self) -> u32 {
        self.ticks
    }

    /// Comes closer to the wished delay, if it is time for that; `room_ticks`: how far the input tick may go ahead.
    pub(super) fn follow(
        &mut self,
        now: Duration,
        wished: u32,
        tick: Duration,
        room_ticks: u32,
    ) -> DelayStep {
        let every = match wished < self.ticks {
            true => DELAY_STEP.max(tick * DELAY_STEP_EVERY),
            false => DELAY_STEP,
        };
        if wished == self.ticks || now.saturating_sub(self.changed_at) < every {
            return DelayStep::None;
        }
        if wished < self.ticks {
            self.changed_at = now;
            self.ticks -= 1;
            return DelayStep::Stand;
        }
        let more = (wished - self.ticks).min(DELAY_STEP_TICKS).min(room_ticks);
        if more == 0 {
            return DelayStep::None;
        }
        self.changed_at = now;
        self.ticks += more;
        DelayStep::GoAhead(more)
    }
}
