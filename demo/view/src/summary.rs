//! [`Summary`]: the result of a match that was shown.

use std::time::Duration;

use twinstep_client::{SessionEnd, SessionStats};

use crate::feed::Feed;

/// The result of a match that was shown.
#[derive(Clone, Debug)]
pub struct Summary {
    /// The time for which the view ran.
    pub played: Duration,
    /// The session's counters at the end; `None` for a replay.
    pub stats: Option<SessionStats>,
    /// The team's points.
    pub score: u32,
    /// The end of the session. `None` if the player quit.
    pub ended: Option<SessionEnd>,
}

impl Summary {
    /// Collects the result from a feed.
    #[must_use]
    pub fn of(feed: &Feed, ended: Option<SessionEnd>) -> Summary {
        Summary {
            played: feed.now(),
            stats: feed.stats(),
            score: feed.score(),
            ended,
        }
    }
}
