//! What one identity has cost the others lately, in time that they waited: a sum over a window that slides.
//!
//! ```text
//!     forgotten │◀────────── window ──────────▶│ now
//!     ──────────┴──┬──┬─────┬──┬───────────────┤
//!                  │2s│     │7s│                  spent: 9 s
//! ```
//!
//! Who is waited for pays for it, whatever becomes of its sessions; what longer ticks and turns cost is summed up apart. An
//! identity that has spent its [`Budget`] is removed as too slow, or asks for nothing any more.
//!
//! Invariant: at most [`PARTS`] entries, so a cost takes the same memory whatever its identity does. A part is forgotten
//! as a whole, a twelfth of the window after its first moment has left it, so what was spent is never told too small.

use std::time::Duration;

use arrayvec::ArrayVec;
use twinstep_core::bounds::WAITED_PER_MINUTE;

/// Pieces that the window is kept in.
const PARTS: usize = 12;

/// See the [module](self).
#[derive(Clone, Debug, Default)]
pub(crate) struct Cost {
    /// When each part began, and what was spent in it; oldest first.
    parts: ArrayVec<(Duration, Duration), { PARTS + 1 }>,
}

impl Cost {
    /// Adds what was spent up to now.
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

    /// Takes back so much of what was spent, of the oldest first.
    pub(crate) fn forgive(&mut self, mut time: Duration) {
        for (_, sum) in &mut self.parts {
            let forgiven = time.min(*sum);
            *sum -= forgiven;
            time -= forgiven;
        }
    }

    /// What was spent within the window.
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

/// Over this time costs are summed up.
const MINUTE: Duration = Duration::from_secs(60);

/// What an identity may cost the others in waiting, and over which time that is summed up.
#[derive(Clone, Copy)]
pub(crate) struct Budget {
    pub(crate) spent_max: Duration,
    pub(crate) window: Duration,
}

impl Budget {
    /// 20 s a minute; where one silence may last longer than that, that long in three times as long.
    pub(crate) fn of(longest_silence: Duration) -> Self {
        let spent_max = longest_silence.max(WAITED_PER_MINUTE);
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
    fn what_was_spent_is_forgotten_after_the_window_and_not_before() {
        let mut cost = Cost::default();
        for second in 0..20 {
            cost.add(SECOND * second, SECOND, MINUTE);
        }
        assert_eq!(cost.spent(SECOND * 20, MINUTE), SECOND * 20);
        assert_eq!(cost.spent(SECOND * 60, MINUTE), SECOND * 20);
        assert_eq!(cost.spent(SECOND * 84, MINUTE), Duration::ZERO);
    }

    #[test]
    fn however_it_is_spent_the_sum_of_a_window_is_whole() {
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
