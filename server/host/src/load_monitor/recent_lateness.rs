//! [`RecentLateness`]: the lateness of a process's ticks over the last seconds, as the median of its matches.
//!
//! Invariant: lateness in half of the matches or fewer does not count. A match with a slow step or resolver is late
//! alone; an overloaded machine makes all matches late. A single match does not show the load of its machine. A process
//! paused with its virtual machine was not busy, so samples before a gap are dropped.

use std::collections::{BTreeMap, VecDeque};
use std::time::Duration;

use crate::histogram::Spread;

pub(crate) const SAMPLE_EVERY: Duration = Duration::from_secs(1);
/// The number of samples over which lateness is measured.
const SAMPLES: usize = 5;
/// A result needs at least this many ticks, over all matches.
const TICKS_MIN: u64 = 100;
/// A result needs at least this many matches with ticks.
const MATCHES_MIN: usize = 2;
/// If two samples are farther apart than this, the process was paused between them.
const GAP: Duration = SAMPLE_EVERY.saturating_mul(2);

#[derive(Debug, Default)]
pub(super) struct RecentLateness {
    samples: VecDeque<BTreeMap<u64, Spread>>,
    sampled_at: Duration,
}

impl RecentLateness {
    /// Takes the totals of the running matches. Returns the lateness since the oldest sample; zero without enough ticks
    /// or matches.
    pub(super) fn sample(&mut self, now: Duration, noted: BTreeMap<u64, Spread>) -> Duration {
        if now.saturating_sub(self.sampled_at) >= GAP {
            self.samples.clear();
        }
        self.sampled_at = now;
        self.samples.push_back(noted);
        if self.samples.len() > SAMPLES + 1 {
            self.samples.pop_front();
        }
        let (Some(newest), Some(oldest)) = (self.samples.back(), self.samples.front()) else {
            return Duration::ZERO;
        };
        let (mut late, mut ticks) = (Vec::with_capacity(newest.len()), 0);
        for (number, spread) in newest {
            let before = oldest.get(number).copied().unwrap_or_default();
            let lately = spread.since(&before);
            if lately.count() > 0 {
                ticks += lately.count();
                late.push(lately.quantile(0.99));
            }
        }
        if ticks < TICKS_MIN || late.len() < MATCHES_MIN {
            return Duration::ZERO;
        }
        late.sort();
        late[(late.len() - 1) / 2]
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::histogram::Histogram;

    const MS: fn(u64) -> Duration = Duration::from_millis;

    fn spreads(noted: &[Histogram]) -> BTreeMap<u64, Spread> {
        (0..).zip(noted.iter().map(Histogram::spread)).collect()
    }

    /// The result after six samples. `matches`: the number of ticks of each match between two samples, and their
    /// lateness in ms.
    fn lateness_of(matches: &[(u32, u64)]) -> Duration {
        let noted: Vec<_> = matches.iter().map(|_| Histogram::default()).collect();
        let (mut lately, mut lateness_now) = (RecentLateness::default(), Duration::ZERO);
        for sample in 0..=SAMPLES as u32 {
            for (lateness, (ticks, late_ms)) in noted.iter().zip(matches) {
                (0..*ticks).for_each(|_| lateness.record(MS(*late_ms)));
            }
            lateness_now = lately.sample(SAMPLE_EVERY * sample, spreads(&noted));
        }
        lateness_now
    }

    /// One match with a slow resolver made the whole process close its spectators, then refuse newcomers.
    #[test]
    fn a_single_late_match_does_not_degrade_the_process() {
        let (well, sick, still) = ((60, 1), (15, 70), (0, 0));
        for (matches, is_late) in [
            (&[well, well, well][..], false),
            (&[well, well, sick], false),
            (&[well, sick, sick], true),
            (&[well, sick], false),
            (&[sick], false),
            (&[well, well, sick, still], false),
            (&[sick, sick, sick], true),
        ] {
            let lateness_now = lateness_of(matches);
            assert_eq!(
                lateness_now > MS(20),
                is_late,
                "{matches:?}: {lateness_now:?}"
            );
        }
    }

    /// Finding P3-H1: a host on a player's machine refused friends and closed spectators because of hitching frames.
    #[test]
    fn the_lateness_of_a_single_match_is_not_process_load() {
        assert_eq!(lateness_of(&[(60, 70)]), Duration::ZERO);
        assert_eq!(
            lateness_of(&[(60, 70), (0, 0)]),
            Duration::ZERO,
            "the other match rests"
        );
        assert!(lateness_of(&[(60, 70), (60, 70)]) > MS(20));
    }

    /// Finding P3-H1: after a virtual machine was paused for a few seconds, newcomers were refused for half a minute.
    #[test]
    fn a_gap_between_two_samples_does_not_count_as_load() {
        let noted = [Histogram::default(), Histogram::default()];
        let mut lately = RecentLateness::default();
        let mut sample = |at_ms, late_ms| {
            for lateness in &noted {
                (0..60).for_each(|_| lateness.record(MS(late_ms)));
            }
            lately.sample(MS(at_ms), spreads(&noted))
        };
        for second in 0..10 {
            assert!(sample(second * 1_000, 1) < MS(20));
        }
        // The process was paused for three seconds, and its ticks are late by as much.
        assert_eq!(sample(12_000, 3_000), Duration::ZERO);
        assert!(sample(13_000, 1) < MS(20));
        // Lateness in every sample is load.
        assert!(sample(14_000, 70) > MS(20));
    }

    #[test]
    fn old_samples_and_ended_matches_are_ignored() {
        let noted = [Histogram::default(), Histogram::default()];
        let (mut lately, mut now) = (RecentLateness::default(), Duration::ZERO);
        let mut sample = |late_ms, ticks| {
            for lateness in &noted {
                (0..ticks).for_each(|_| lateness.record(MS(late_ms)));
            }
            now += SAMPLE_EVERY;
            lately.sample(now, spreads(&noted))
        };
        assert_eq!(
            sample(50, 300),
            Duration::ZERO,
            "one sample gives no result"
        );
        assert!(sample(50, 300) > MS(20));
        let later: Vec<Duration> = (0..=SAMPLES).map(|_| sample(1, 300)).collect();
        assert!(
            later[SAMPLES - 2] > MS(20) && later[SAMPLES] < MS(2),
            "{later:?}"
        );
    }
}
