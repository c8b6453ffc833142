//! [`HostClock`]: the only place of this crate that reads the clock.

use std::future::Future;
use std::time::{Duration, Instant, SystemTime};

/// The time since the host started: the clock of all its matches.
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

    /// Awaits a future until `by` at the latest. Returns `None` after that.
    pub async fn wait_until<T>(self, by: Duration, what: impl Future<Output = T>) -> Option<T> {
        let left = by.saturating_sub(self.now());
        tokio::time::timeout(left, what).await.ok()
    }
}

/// The wall clock, since the unix epoch: for tickets, bans and the age of files.
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
