//! [`Summary`]: what a match that was shown came to.

use std::time::Duration;

use twinstep_client::{SessionEnd, SessionStats};

use crate::feed::Feed;

/// How it went.
#[derive(Clone, Debug)]
pub struct Summary {
    /// For how long the view ran.
    pub played: Duration,
    /// The session's counters at the end; none of a replay.
    pub stats: Option<SessionStats>,
    /// The team's points.
    pub score: u32,
    /// Why it ended; `None`: the player quit.
    pub ended: Option<SessionEnd>,
}

impl Summary {
    /// What a feed came to.
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
