//! How many datagrams one session may send: a bucket of tokens.
//!
//! Invariant: in any span of `t` seconds at most `BURST + RATE · t` datagrams pass.

use std::time::Duration;

/// Datagrams a second that a session may send in the long run.
pub const DATAGRAMS_PER_SECOND: u64 = 150;
/// Datagrams that a session may send at once after a pause.
pub const DATAGRAMS_BURST: u64 = 64;

/// A token is this many parts: then a nanosecond fills a whole number of them.
const TOKEN: u64 = 1_000_000_000;

/// One session's tokens.
pub(crate) struct Bucket {
    parts: u64,
    filled_at: Duration,
}

impl Bucket {
    pub(crate) fn full(now: Duration) -> Bucket {
        Bucket {
            parts: DATAGRAMS_BURST * TOKEN,
            filled_at: now,
        }
    }

    /// Whether a datagram that arrives `now` may pass.
    pub(crate) fn take(&mut self, now: Duration) -> bool {
        let elapsed = now.saturating_sub(self.filled_at);
        self.filled_at = self.filled_at.max(now);
        let filled = u64::try_from(elapsed.as_nanos())
            .unwrap_or(u64::MAX)
            .saturating_mul(DATAGRAMS_PER_SECOND);
        self.parts = self
            .parts
            .saturating_add(filled)
            .min(DATAGRAMS_BURST * TOKEN);
        let passes = self.parts >= TOKEN;
        if passes {
            self.parts -= TOKEN;
        }
        passes
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn passed(bucket: &mut Bucket, from: Duration, step: Duration, datagrams: u32) -> u32 {
        let arrivals = (0..datagrams).map(|i| from + step * i);
        arrivals.filter(|&at| bucket.take(at)).count() as u32
    }

    #[test]
    fn a_burst_passes_and_then_the_rate() {
        let mut bucket = Bucket::full(Duration::ZERO);
        let second = Duration::from_secs(1);
        assert_eq!(
            passed(&mut bucket, Duration::ZERO, Duration::ZERO, 1_000),
            64
        );
        assert_eq!(passed(&mut bucket, second, second / 1_000, 1_000), 64 + 149);
        assert_eq!(passed(&mut bucket, second * 60, second / 120, 120), 120);
    }

    #[test]
    fn time_that_goes_back_gives_no_tokens() {
        let mut bucket = Bucket::full(Duration::from_secs(10));
        assert_eq!(
            passed(&mut bucket, Duration::from_secs(10), Duration::ZERO, 100),
            64
        );
        assert!(!bucket.take(Duration::ZERO));
        assert!(!bucket.take(Duration::from_secs(10)));
    }
}
