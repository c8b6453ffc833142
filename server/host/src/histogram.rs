//! [`Histogram`]: counts durations, without locks or allocations.

use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

/// The upper bounds of the buckets, in microseconds. The last bucket has no upper bound.
pub const BOUNDS_US: [u64; 16] = [
    10, 25, 50, 100, 250, 500, 1_000, 2_500, 5_000, 10_000, 25_000, 50_000, 100_000, 250_000,
    1_000_000, 5_000_000,
];

const BUCKETS: usize = BOUNDS_US.len() + 1;

/// A histogram of durations. Cost of a record: a search among 16 numbers and two additions.
#[derive(Debug, Default)]
pub struct Histogram {
    buckets: [AtomicU64; BUCKETS],
    sum_ns: AtomicU64,
}

impl Histogram {
    /// Counts one duration.
    pub fn record(&self, took: Duration) {
        let at = BOUNDS_US.partition_point(|bound| Duration::from_micros(*bound) < took);
        self.buckets[at].fetch_add(1, Ordering::Relaxed);
        let ns = u64::try_from(took.as_nanos()).unwrap_or(u64::MAX);
        self.sum_ns.fetch_add(ns, Ordering::Relaxed);
    }

    /// The counts so far.
    pub fn spread(&self) -> Spread {
        let mut spread = Spread::default();
        self.add_to(&mut spread);
        spread
    }

    /// Adds the counts so far.
    pub fn add_to(&self, sum: &mut Spread) {
        for (ours, all) in self.buckets.iter().zip(&mut sum.buckets) {
            *all += ours.load(Ordering::Relaxed);
        }
        sum.sum_ns += u128::from(self.sum_ns.load(Ordering::Relaxed));
    }
}

/// The counts of one histogram, or the sum of several.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Spread {
    /// Counts per bucket, not cumulative.
    pub buckets: [u64; BUCKETS],
    /// The sum of all durations.
    pub sum_ns: u128,
}

impl Spread {
    /// The counts since an earlier state.
    pub fn since(&self, earlier: &Spread) -> Spread {
        Spread {
            buckets: std::array::from_fn(|n| self.buckets[n].saturating_sub(earlier.buckets[n])),
            sum_ns: self.sum_ns.saturating_sub(earlier.sum_ns),
        }
    }

    /// The number of durations.
    pub fn count(&self) -> u64 {
        self.buckets.iter().sum()
    }

    /// The quantile `part` (0 to 1), interpolated within its bucket: this part of all durations was not longer. Returns
    /// zero if there are none, and the last bound for the last bucket.
    pub fn quantile(&self, part: f64) -> Duration {
        let wanted = part * self.count() as f64;
        if wanted == 0.0 {
            return Duration::ZERO;
        }
        let (mut below, mut from_us) = (0.0, 0);
        for (count, to_us) in self.buckets.iter().zip(BOUNDS_US) {
            let count = *count as f64;
            if count > 0.0 && below + count >= wanted {
                let within = (wanted - below) / count * (to_us - from_us) as f64;
                return Duration::from_micros(from_us + within as u64);
            }
            (below, from_us) = (below + count, to_us);
        }
        Duration::from_micros(from_us)
    }

    /// The cumulative counts per bound. They never decrease from bucket to bucket, even while other threads record.
    pub fn cumulative(&self) -> [u64; BUCKETS] {
        let mut so_far = 0;
        self.buckets.map(|bucket| {
            so_far += bucket;
            so_far
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_quantile_is_interpolated_within_its_bucket() {
        let histogram = Histogram::default();
        let spread = || histogram.spread();
        assert_eq!(spread().quantile(0.99), Duration::ZERO);
        for _ in 0..980 {
            histogram.record(Duration::from_micros(800));
        }
        let before = spread();
        for _ in 0..20 {
            histogram.record(Duration::from_millis(40));
        }
        // Ten of twenty are in the lower half of 25 to 50 ms.
        assert_eq!(spread().quantile(0.99), Duration::from_micros(37_500));
        let lately = spread().since(&before);
        assert_eq!(lately.count(), 20);
        assert_eq!(lately.quantile(0.5), Duration::from_micros(37_500));
        histogram.record(Duration::from_secs(60));
        assert_eq!(spread().quantile(1.0), Duration::from_secs(5));
    }

    #[test]
    fn a_duration_equal_to_a_bound_is_in_its_bucket() {
        let histogram = Histogram::default();
        for us in [0, 10, 11, 5_000_000, 5_000_001] {
            histogram.record(Duration::from_micros(us));
        }
        let spread = histogram.spread();
        assert_eq!(spread.buckets[..2], [2, 1]);
        assert_eq!(spread.buckets[15..], [1, 1]);
        assert_eq!(spread.cumulative()[16], 5);
        assert_eq!(spread.sum_ns, 10_000_022_000);
    }
}
