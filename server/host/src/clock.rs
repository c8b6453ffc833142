//! Where the host reads the clock: here and nowhere else in this crate.

use std::future::Future;
use std::time::{Duration, Instant, SystemTime};

/// Time since the host started: the one clock of all its matches.
#[derive(Clone, Copy, Debug)]
pub struct HostClock {
    began: Instant,
}

impl HostClock {
    /// A clock that starts now.
    #[expect(
        clippy::disallowed_methods,
        reason = "the edge: here the clock is read"
    )]
    #[must_use]
    pub fn start() -> HostClock {
        HostClock {
            began: Instant::now(),
        }
    }

    /// The time since the start.
    #[must_use]
    pub fn now(self) -> Duration {
        self.began.elapsed()
    }

    /// Waits for something until this time at the latest; `None`: it did not come.
    pub async fn wait_until<T>(self, by: Duration, what: impl Future<Output = T>) -> Option<T> {
        let left = by.saturating_sub(self.now());
        tokio::time::timeout(left, what).await.ok()
    }
}

/// The wall clock, since the unix epoch: for tickets, bans and ages of files.
#[must_use]
#[expect(
    clippy::disallowed_methods,
    reason = "the edge: here the clock is read"
)]
pub fn unix_now() -> Duration {
    SystemTime::now()
        .duration_since(SystemTime::UNIX_EPOCH)
        .unwrap_or_default()
}
