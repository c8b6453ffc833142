//! [`Recent`]: how late ticks were a moment ago, from what was counted since the start.

use std::collections::VecDeque;
use std::time::Duration;

use crate::host::metrics::Spread;

/// Looks that the lateness is taken over.
const LOOKS: usize = 5;
/// Fewer ticks say nothing.
const TICKS_MIN: u64 = 100;

/// What was counted at the last looks.
#[derive(Debug, Default)]
pub(super) struct Recent(VecDeque<Spread>);

impl Recent {
    /// So many ticks were so late up to now. The 99th percentile of those since [`LOOKS`] looks ago; zero, where these are few.
    pub(super) fn look(&mut self, so_far: Spread) -> Duration {
        let oldest = self.0.front().unwrap_or(&so_far);
        let lateness = match so_far.since(oldest) {
            spread if spread.count() < TICKS_MIN => Duration::ZERO,
            spread => spread.quantile(0.99),
        };
        self.0.push_back(so_far);
        if self.0.len() > LOOKS {
            self.0.pop_front();
        }
        lateness
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::host::metrics::Ledger;

    const LATE: Duration = Duration::from_millis(40);

    #[test]
    fn what_was_late_is_over_after_five_looks_and_few_ticks_say_nothing() {
        let ledger = Ledger::default();
        let entry = ledger.enter();
        let ticks = |count: usize, lateness| {
            for _ in 0..count {
                entry.counts.lateness.note(lateness);
            }
        };
        let mut recent = Recent::default();
        // What was counted before anybody looked is nobody's matter.
        ticks(10_000, LATE);
        assert_eq!(recent.look(ledger.lateness()), Duration::ZERO);
        ticks(99, LATE);
        assert_eq!(recent.look(ledger.lateness()), Duration::ZERO);
        ticks(1, LATE);
        assert!(recent.look(ledger.lateness()) >= LATE / 2);
        // A quarter is late: that is felt, though most are not. Then they are five looks ago.
        let mut told = Vec::new();
        for _ in 0..6 {
            ticks(100, Duration::ZERO);
            told.push(recent.look(ledger.lateness()) >= LATE / 2);
        }
        assert_eq!(told, [true, true, true, false, false, false]);
    }
}
