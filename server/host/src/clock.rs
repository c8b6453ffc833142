//! Where the host reads the clock: here and nowhere else in this crate.

use std::future::Future;
use std::time::{Duration, Instant, SystemTime};

/// Time since the host started: the one clock of all its matches.
#[derive(Clone, Copy, Debug)]
pub(super) struct HostClock {
    began: Instant,
}

impl HostClock {
    #[expect(
        clippy::disallowed_methods,
        reason = "the edge: here the clock is read"
    )]
    pub(super) fn start() -> HostClock {
        HostClock {
            began: Instant::now(),
        }
    }

    pub(super) fn now(self) -> Duration {
        self.began.elapsed()
    }

    /// Waits for something until this time at the latest; `None`: it did not come.
    pub(super) async fn wait_until<T>(
        self,
        by: Duration,
        what: impl Future<Output = T>,
    ) -> Option<T> {
        let left = by.saturating_sub(self.now());
        tokio::time::timeout(left, what).await.ok()
    }
}

/// The wall clock, for tickets only.
#[expect(
    clippy::disallowed_methods,
    reason = "the edge: here the clock is read"
)]
pub(crate) fn unix_now() -> Duration {
    SystemTime::now()
        .duration_since(SystemTime::UNIX_EPOCH)
        .unwrap_or_default()
}
