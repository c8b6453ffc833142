//! The waiting time that one identity has cost the others recently: a sum over a sliding window.
//!
//! ```text
//!     forgotten │◀────────── window ──────────▶│ now
//!     ──────────┴──┬──┬─────┬──┬───────────────┤
//!                  │2s│     │7s│                  spent: 9 s
//! ```
//!
//! An identity pays for the time that others waited for it, even if its sessions change in that time. The cost of
//! longer ticks and turns is summed separately. An identity that has spent the [`Budget`] for waiting is removed as too
//! slow. If the budget for longer ticks and turns is spent, its requests beyond what its round trip needs are ignored.
//!
//! Invariant: a cost has at most [`PARTS`] + 1 parts, so its memory is bounded. A part is dropped as a whole, a twelfth
//! of the window after its start has left the window, so the sum is never too small.

use std::time::Duration;

use arrayvec::ArrayVec;
use twinstep_core::bounds::WAIT_PER_MINUTE_MAX;

const PARTS: usize = 12;

#[derive(Clone, Debug, Default)]
pub(crate) struct Cost {
    /// The start of each part and the time spent in it; oldest first.
    parts: ArrayVec<(Duration, Duration), { PARTS + 1 }>,
}

impl Cost {
    pub(crate) fn add(&mut self, now: Duration, spent: Duration, window: Duration) {
        if spent.is_zero() {
            return;
        }
        let part = window / PARTS as u32;
        if let Some((began, sum)) = self.parts.last_mut()
            && now < *began + part
        {
            *sum += spent;
            return;
        }
        self.parts.retain(|(began, _)| now < *began + window + part);
        if self.parts.is_full() {
            self.parts.remove(0);
        }
        self.parts.push((now, spent));
    }

    /// Subtracts `time` from the sum, oldest parts first.
    pub(crate) fn forgive(&mut self, mut time: Duration) {
        for (_, sum) in &mut self.parts {
            let forgiven = time.min(*sum);
            *sum -= forgiven;
            time -= forgiven;
        }
    }

    pub(crate) fn spent(&self, now: Duration, window: Duration) -> Duration {
        let part = window / PARTS as u32;
        let within = |(began, _): &&(Duration, Duration)| now < *began + window + part;
        self.parts
            .iter()
            .filter(within)
            .map(|(_, spent)| *spent)
            .sum()
    }
}

/// The window of a [`Budget`] whose `spent_max` is at most 20 s.
const MINUTE: Duration = Duration::from_secs(60);

/// The waiting time that an identity may cost the others, and the window over which it is summed.
#[derive(Clone, Copy)]
pub(crate) struct Budget {
    pub(crate) spent_max: Duration,
    pub(crate) window: Duration,
}

impl Budget {
    /// 20 s in a minute. If one wait may last longer than 20 s: `longest_silence` within three times `longest_silence`.
    pub(crate) fn of(longest_silence: Duration) -> Self {
        let spent_max = longest_silence.max(WAIT_PER_MINUTE_MAX);
        Budget {
            spent_max,
            window: MINUTE.max(spent_max * 3),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const SECOND: Duration = Duration::from_secs(1);

    #[test]
    fn time_spent_is_dropped_after_the_window_and_not_before() {
        let mut cost = Cost::default();
        for second in 0..20 {
            cost.add(SECOND * second, SECOND, MINUTE);
        }
        assert_eq!(cost.spent(SECOND * 20, MINUTE), SECOND * 20);
        assert_eq!(cost.spent(SECOND * 60, MINUTE), SECOND * 20);
        assert_eq!(cost.spent(SECOND * 84, MINUTE), Duration::ZERO);
    }

    #[test]
    fn the_sum_of_a_window_is_complete_for_any_pattern_of_spending() {
        let mut cost = Cost::default();
        let piece = Duration::from_millis(7);
        for n in 0..100_000u32 {
            let now = piece * n;
            cost.add(now, piece, MINUTE);
            let spent = cost.spent(now, MINUTE);
            let whole = (piece * (n + 1)).min(MINUTE);
            assert!(spent >= whole, "{spent:?} of {whole:?} at {now:?}");
            assert!(spent <= whole + MINUTE / 6, "{spent:?} of {whole:?}");
        }
    }
}
