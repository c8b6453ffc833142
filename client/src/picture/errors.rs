//! pDiff: how far what was drawn lay from what it should have been, as a histogram that costs nothing to keep.

/// A histogram of error lengths, four buckets per doubling, from 2⁻⁸ to 2⁸ of the poses' unit.
#[derive(Clone, Debug)]
pub struct Errors {
    buckets: [u64; Errors::BUCKETS],
    count: u64,
    teleports: u64,
}

impl Errors {
    const BUCKETS: usize = 64;
    /// A length's exponent and first two bits of mantissa number its bucket; those of 2⁻⁸ are number 0.
    const FIRST: u32 = (127 - 8) << 2;

    pub(super) fn new() -> Self {
        Errors {
            buckets: [0; Errors::BUCKETS],
            count: 0,
            teleports: 0,
        }
    }

    /// Counts one error; whether it is to be smoothed.
    pub(super) fn note(&mut self, length: f32, teleport: f32) -> bool {
        let bucket = (length.to_bits() >> 21).saturating_sub(Errors::FIRST) as usize;
        self.buckets[bucket.min(Errors::BUCKETS - 1)] += 1;
        self.count += 1;
        let smooth = length <= teleport;
        self.teleports += u64::from(!smooth);
        smooth
    }

    /// Errors of one entity each.
    #[must_use]
    pub fn count(&self) -> u64 {
        self.count
    }

    /// Of them, those too far to be smoothed.
    #[must_use]
    pub fn teleports(&self) -> u64 {
        self.teleports
    }

    /// The length that the part `part` (0 ..= 1) of all errors does not exceed, rounded up by at most 25 %;
    /// 0 without errors.
    #[must_use]
    pub fn quantile(&self, part: f64) -> f32 {
        let wanted = (self.count as f64 * part).ceil().max(1.0) as u64;
        let mut sum = 0;
        let bucket = self.buckets.iter().position(|n| {
            sum += n;
            sum >= wanted
        });
        bucket.map_or(0.0, |bucket| {
            f32::from_bits((Errors::FIRST + bucket as u32 + 1) << 21)
        })
    }
}
