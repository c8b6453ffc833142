//! [`Pace`]: how fast matches are made.

use std::time::Duration;

/// At most so many in a second, evenly or at once after a quiet second.
#[derive(Debug)]
pub(super) struct Pace {
    each: Duration,
    /// When all that was made so far would be paid for.
    paid_at: Duration,
}

impl Pace {
    pub(super) fn new(per_second: u32) -> Pace {
        Pace {
            each: Duration::from_secs(1) / per_second,
            paid_at: Duration::ZERO,
        }
    }

    /// Whether another one may be made now; then it counts.
    pub(super) fn take(&mut self, now: Duration) -> bool {
        let paid_at = self.paid_at.max(now) + self.each;
        // Half of one for what division leaves.
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
    fn so_many_are_made_at_once_and_then_evenly() {
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
