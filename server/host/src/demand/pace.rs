//! [`Pace`]: a rate limit for creating matches.

use std::time::Duration;

/// Limits new matches to a number per second: evenly spaced, or all at once after a quiet second.
#[derive(Debug)]
pub(super) struct Pace {
    each: Duration,
    /// The time at which the budget spent on all matches so far is restored.
    paid_at: Duration,
}

impl Pace {
    pub(super) fn new(per_second: u32) -> Pace {
        Pace {
            each: Duration::from_secs(1) / per_second,
            paid_at: Duration::ZERO,
        }
    }

    /// Returns `true` if a match may be created now, and counts it.
    pub(super) fn take(&mut self, now: Duration) -> bool {
        let paid_at = self.paid_at.max(now) + self.each;
        // Plus half a match's share, because the division rounds down.
        let may = paid_at <= now + Duration::from_secs(1) + self.each / 2;
        if may {
            self.paid_at = paid_at;
        }
        may
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_burst_is_followed_by_an_even_rate() {
        for rate in [1, 3, 7, 20, 1_000] {
            let mut pace = Pace::new(rate);
            let mut now = Duration::from_secs(9);
            let burst = (0..5_000).filter(|_| pace.take(now)).count();
            assert_eq!(burst, rate as usize, "{rate} a second");
            let mut later = 0;
            for _ in 0..4_000 {
                now += Duration::from_millis(1);
                later += u32::from(pace.take(now));
            }
            assert!(later.abs_diff(4 * rate) <= 1, "{rate} a second: {later}");
        }
    }
}
