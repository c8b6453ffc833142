//! [`HostClock`]: the only code in this crate that reads the clock.

use std::future::Future;
use std::time::{Duration, Instant, SystemTime};

/// The time since the host started, which is the clock of all its matches.
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

    /// Awaits a future until `by`. Returns `None` if it is not ready by then.
    pub async fn wait_until<T>(self, by: Duration, what: impl Future<Output = T>) -> Option<T> {
        let left = by.saturating_sub(self.now());
        tokio::time::timeout(left, what).await.ok()
    }
}

/// The wall-clock time since the Unix epoch, used for tickets, bans and file ages.
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

// A Unix time in RFC 3339 format, for logs and reports.
#[doc(hidden)]
#[must_use]
pub fn utc(unix_s: u64) -> String {
    // Years start in March here, so that a leap day is the last day of its year.
    let days = unix_s / 86_400 + 719_468;
    let (era, day_of_era) = (days / 146_097, days % 146_097);
    let year = (day_of_era - day_of_era / 1_460 + day_of_era / 36_524 - day_of_era / 146_096) / 365;
    let day_of_year = day_of_era - (365 * year + year / 4 - year / 100);
    let month = (5 * day_of_year + 2) / 153;
    let day = day_of_year - (153 * month + 2) / 5 + 1;
    let month = if month < 10 { month + 3 } else { month - 9 };
    let year = era * 400 + year + u64::from(month <= 2);
    let (hour, minute, second) = (unix_s / 3_600 % 24, unix_s / 60 % 60, unix_s % 60);
    format!("{year}-{month:02}-{day:02}T{hour:02}:{minute:02}:{second:02}Z")
}
