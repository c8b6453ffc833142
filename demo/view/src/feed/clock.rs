//! [`ReplayClock`]: the time of a replay, of the wall or of frames.

use std::time::{Duration, Instant};

/// Where a replay's time comes from.
#[derive(Clone, Debug)]
pub enum ReplayClock {
    /// From the wall, since then.
    Wall(Instant),
    /// From counting: each frame is so long, however long it took. For pictures that must come out alike.
    Frames {
        /// The length of one.
        frame: Duration,
        /// When the last one was.
        now: Duration,
    },
}

impl ReplayClock {
    /// The wall's, from now on.
    #[must_use]
    #[expect(
        clippy::disallowed_methods,
        reason = "the edge: here the clock is read"
    )]
    pub fn wall() -> ReplayClock {
        ReplayClock::Wall(Instant::now())
    }

    /// Frames of this length.
    #[must_use]
    pub fn frames(frame: Duration) -> ReplayClock {
        ReplayClock::Frames {
            frame,
            now: Duration::ZERO,
        }
    }

    /// A frame begins: when.
    pub(super) fn tick(&mut self) -> Duration {
        match self {
            ReplayClock::Wall(began) => began.elapsed(),
            ReplayClock::Frames { frame, now } => {
                *now += *frame;
                *now
            }
        }
    }
}
