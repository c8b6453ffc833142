// [`PictureErrors`]: the drawn picture, compared with the final match; and [`PictureStats`], the same in numbers.
//
// ```text
//   drawn in a frame ──▶ kept until the authority has passed its tick ──▶ compared ──▶ Errors
// ```

use serde::Serialize;

/// A cheap histogram of distances, speeds or ticks, with eight buckets per doubling, from 2⁻⁸ to 2⁸ of their unit.
#[derive(Clone, Debug)]
pub struct Errors {
    buckets: [u32; Errors::BUCKETS],
    count: u64,
    teleports: u64,
}

impl Default for Errors {
    fn default() -> Self {
        Errors {
            buckets: [0; Errors::BUCKETS],
            count: 0,
            teleports: 0,
        }
    }
}

impl Errors {
    const BUCKETS: usize = 128;
    // A bucket's number is the length's exponent and its first three bits of mantissa, counted from 2⁻⁸.
    const FIRST: u32 = (127 - 8) << 3;

    // Counts one error. Returns `true` if it should be smoothed.
    pub(super) fn record(&mut self, length: f32, teleport: f32) -> bool {
        let bucket = (length.to_bits() >> 20).saturating_sub(Errors::FIRST) as usize;
        self.buckets[bucket.min(Errors::BUCKETS - 1)] += 1;
        self.count += 1;
        let smooth = length <= teleport;
        self.teleports += u64::from(!smooth);
        smooth
    }

    /// The number of errors. Each is the error of one entity.
    #[must_use]
    pub fn count(&self) -> u64 {
        self.count
    }

    /// The number of errors too large to be smoothed.
    #[must_use]
    pub fn teleports(&self) -> u64 {
        self.teleports
    }

    /// A quantile of the errors: the share `part` (0 ..= 1) of them is at most this large. Rounded up by at most 13 %;
    /// 0 if there are no errors, or if it is below about 2⁻⁸.
    #[must_use]
    pub fn quantile(&self, part: f64) -> f32 {
        let wanted = (self.count as f64 * part).ceil().max(1.0) as u64;
        let mut sum = 0;
        let bucket = self.buckets.iter().position(|n| {
            sum += u64::from(*n);
            sum >= wanted
        });
        match bucket {
            None | Some(0) => 0.0,
            Some(bucket) => f32::from_bits((Errors::FIRST + bucket as u32 + 1) << 20),
        }
    }

    pub(crate) fn add(&mut self, other: &Errors) {
        for (sum, more) in self.buckets.iter_mut().zip(&other.buckets) {
            *sum += more;
        }
        self.count += other.count;
        self.teleports += other.teleports;
    }

    pub(crate) fn since(&self, earlier: &Errors) -> Errors {
        let mut rest = self.clone();
        for (rest, before) in rest.buckets.iter_mut().zip(&earlier.buckets) {
            *rest = rest.saturating_sub(*before);
        }
        rest.count = self.count.saturating_sub(earlier.count);
        rest.teleports = self.teleports.saturating_sub(earlier.teleports);
        rest
    }
}

/// Measurements of the drawn picture against the final match, since the session joined. [`since`](Self::since) narrows
/// them to any window.
#[derive(Clone, Debug, Default)]
pub struct PictureErrors {
    pub(crate) own_off: Errors,
    pub(super) others_off: Errors,
    pub(crate) things_off: Errors,
    pub(crate) own_pdiff: Errors,
    pub(crate) others_pdiff: Errors,
    pub(crate) things_pdiff: Errors,
    pub(super) jerk: Errors,
    pub(super) age: Errors,
    pub(super) key: Errors,
    pub(super) steps: u64,
    pub(super) too_fast: u64,
    pub(super) standing: u64,
}

/// The differences between the drawn picture and the final match, in numbers. Lengths are in the unit of
/// [`Pose::length`](crate::Pose::length), times in ticks. A field that ends in `p50`, `p95` or `p99` is a percentile:
/// 50, 95 or 99 of 100 values are not above it. It is rounded up by at most 13 %.
///
/// The *own* entities belong to local players, the *others* to other players; the *things* are all other entities. Own
/// entities and things are compared every eighth tick, as drawn at its end; others every tick, at the [drawn
/// time](crate::Session::drawn_at).
///
/// | field | measures |
/// |---|---|
/// | `own_off`, `others_off`, `things_off` | the distance between an entity's drawn pose and its final pose in the match at that time |
/// | `own_pdiff`, `others_pdiff`, `things_pdiff` | pDiff: the distance by which a rebuild moved an entity; entities that it did not move do not count |
/// | `jerk` | the change of another player's drawn move from tick to tick, beyond the changes of its true moves in these ticks |
/// | `too_fast` | the share of ticks in which another player is drawn more than 1.5 times as fast as it ever was in the last one to two seconds |
/// | `standing` | the share of ticks in which another player moves, but is drawn at less than a tenth of its speed |
/// | `age_ticks` | for each frame, how far another player's time is behind the local player's |
/// | `key_ticks` | the delay from another player's key to the screen: when a tick of that player is first drawn with its known input, how far the local player's time is past that tick |
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize)]
#[non_exhaustive]
#[expect(missing_docs, reason = "the table says it")]
pub struct PictureStats {
    pub own_off_p50: f32,
    pub own_off_p95: f32,
    pub others_off_p50: f32,
    pub others_off_p95: f32,
    pub things_off_p50: f32,
    pub things_off_p95: f32,
    pub own_pdiff_p95: f32,
    pub others_pdiff_p95: f32,
    pub things_pdiff_p95: f32,
    pub jerk_p99: f32,
    pub too_fast: f32,
    pub standing: f32,
    pub age_ticks_p50: f32,
    pub age_ticks_p95: f32,
    pub key_ticks_p50: f32,
    pub key_ticks_p95: f32,
}

impl PictureErrors {
    /// The errors since an earlier copy.
    #[must_use]
    pub fn since(&self, earlier: &PictureErrors) -> PictureErrors {
        PictureErrors {
            own_off: self.own_off.since(&earlier.own_off),
            others_off: self.others_off.since(&earlier.others_off),
            things_off: self.things_off.since(&earlier.things_off),
            own_pdiff: self.own_pdiff.since(&earlier.own_pdiff),
            others_pdiff: self.others_pdiff.since(&earlier.others_pdiff),
            things_pdiff: self.things_pdiff.since(&earlier.things_pdiff),
            jerk: self.jerk.since(&earlier.jerk),
            age: self.age.since(&earlier.age),
            key: self.key.since(&earlier.key),
            steps: self.steps.saturating_sub(earlier.steps),
            too_fast: self.too_fast.saturating_sub(earlier.too_fast),
            standing: self.standing.saturating_sub(earlier.standing),
        }
    }

    /// The errors in numbers.
    #[must_use]
    pub fn stats(&self) -> PictureStats {
        let share = |ticks: u64| ticks as f32 / self.steps.max(1) as f32;
        PictureStats {
            own_off_p50: self.own_off.quantile(0.5),
            own_off_p95: self.own_off.quantile(0.95),
            others_off_p50: self.others_off.quantile(0.5),
            others_off_p95: self.others_off.quantile(0.95),
            things_off_p50: self.things_off.quantile(0.5),
            things_off_p95: self.things_off.quantile(0.95),
            own_pdiff_p95: self.own_pdiff.quantile(0.95),
            others_pdiff_p95: self.others_pdiff.quantile(0.95),
            things_pdiff_p95: self.things_pdiff.quantile(0.95),
            jerk_p99: self.jerk.quantile(0.99),
            too_fast: share(self.too_fast),
            standing: share(self.standing),
            age_ticks_p50: self.age.quantile(0.5),
            age_ticks_p95: self.age.quantile(0.95),
            key_ticks_p50: self.key.quantile(0.5),
            key_ticks_p95: self.key.quantile(0.95),
        }
    }
}
