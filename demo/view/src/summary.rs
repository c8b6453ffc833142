//! [`Summary`]: the result of a shown match.

use std::time::Duration;

use twinstep_client::{SessionEnd, SessionStats};

use crate::feed::Feed;

#[derive(Clone, Debug)]
pub struct Summary {
    pub played: Duration,
    /// The session's counters at the end; `None` for a replay.
    pub stats: Option<SessionStats>,
    pub score: u32,
    pub ended: Option<SessionEnd>,
}

impl Summary {
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
