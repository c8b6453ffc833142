//! [`Samples`]: with which offset of the clock each tick was sampled, for what the server tells of it later.
//!
//! Invariant: only a tick that was sampled in time says something of the way. The server may tell of one before a
//! freeze, a hold or a jump when it has held it for long.

use core::time::Duration;

use twinstep_core::Tick;
use twinstep_core::bounds::INPUT_WINDOW;

use super::clock::FREEZE;

/// How a tick was sampled.
#[derive(Clone, Copy)]
struct Sampled {
    tick: Tick,
    /// Position minus nominal time, in ticks.
    offset: f64,
}

/// See the [module](self).
pub(super) struct Samples {
    sampled: [Option<Sampled>; INPUT_WINDOW as usize],
    sampled_at: Duration,
    /// The first tick since when ticks were sampled in time.
    unbroken_from: Tick,
}

impl Samples {
    /// Nothing is sampled before this tick.
    pub(super) fn new(now: Duration, first: Tick) -> Samples {
        Samples {
            sampled: [None; INPUT_WINDOW as usize],
            sampled_at: now,
            unbroken_from: first,
        }
    }

    /// A tick is sampled, with this offset.
    pub(super) fn note(&mut self, now: Duration, tick: Tick, offset: f64) {
        if now.saturating_sub(self.sampled_at) > FREEZE {
            self.unbroken_from = tick;
        }
        self.sampled_at = now;
        self.sampled[slot(tick)] = Some(Sampled { tick, offset });
    }

    /// The clock stood still or jumped: ticks before this one say nothing any more.
    pub(super) fn break_at(&mut self, tick: Tick) {
        self.unbroken_from = tick;
    }

    /// The offset with which a tick was sampled; `None` if that says nothing.
    pub(super) fn offset_of(&self, now: Duration, tick: Tick) -> Option<f64> {
        let sampled = self.sampled[slot(tick)].filter(|sampled| sampled.tick == tick)?;
        let frozen = now.saturating_sub(self.sampled_at) > FREEZE;
        (tick >= self.unbroken_from && !frozen).then_some(sampled.offset)
    }
}

fn slot(tick: Tick) -> usize {
    (tick.0 % INPUT_WINDOW) as usize
}
