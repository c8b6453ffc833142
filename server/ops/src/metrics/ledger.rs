//! [`Ledger`]: what all matches of a process have counted, those that are over included.
//!
//! Invariant: a match is in the ledger once, running or over, so a sum never goes down and counts nothing twice. Its lock
//! is taken when a match starts or ends and by a scrape; no match waits for it while it runs.

use std::collections::BTreeMap;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use super::counts::{Gauges, MatchCounts, MatchSum};
use super::histogram::Spread;
use twinstep_server::incident::Trouble;

/// What all matches have counted. Clones share it.
#[derive(Clone, Debug, Default)]
pub(crate) struct Ledger(Arc<Books>);

#[derive(Debug, Default)]
struct Books {
    matches: Mutex<Matches>,
    incidents: [AtomicU64; Trouble::COUNT],
}

#[derive(Debug, Default)]
struct Matches {
    /// Each by the number under which it came in.
    running: Vec<(u64, Arc<MatchCounts>)>,
    entered: u64,
    over: MatchSum,
}

/// A match that runs; dropped, it is over.
#[derive(Debug)]
pub(crate) struct Entry {
    ledger: Ledger,
    pub(crate) counts: Arc<MatchCounts>,
}

impl Ledger {
    /// A match starts.
    pub(crate) fn enter(&self) -> Entry {
        let counts = Arc::<MatchCounts>::default();
        let mut matches = self.matches();
        matches.entered += 1;
        let number = matches.entered;
        matches.running.push((number, counts.clone()));
        drop(matches);
        Entry {
            ledger: self.clone(),
            counts,
        }
    }

    /// An incident of this kind was written down.
    pub(crate) fn note_incident(&self, trouble: Trouble) {
        self.0.incidents[trouble as usize].fetch_add(1, Ordering::Relaxed);
    }

    /// How the matches that run are now.
    pub(crate) fn gauges(&self) -> Gauges {
        let mut gauges = Gauges::default();
        for (_, counts) in &self.matches().running {
            counts.add_gauges_to(&mut gauges);
        }
        gauges
    }

    /// How late ticks were so far, of each match that runs, by a number that no other one ever has.
    pub(crate) fn lateness(&self) -> BTreeMap<u64, Spread> {
        let matches = self.matches();
        let of = |(number, counts): &(u64, Arc<MatchCounts>)| {
            let mut spread = Spread::default();
            counts.lateness.add_to(&mut spread);
            (*number, spread)
        };
        matches.running.iter().map(of).collect()
    }

    /// What all have counted so far.
    pub(super) fn sum(&self) -> MatchSum {
        let matches = self.matches();
        let mut sum = matches.over.clone();
        for (_, counts) in &matches.running {
            counts.add_to(&mut sum);
        }
        sum
    }

    pub(super) fn incidents(&self) -> [u64; Trouble::COUNT] {
        std::array::from_fn(|n| self.0.incidents[n].load(Ordering::Relaxed))
    }

    fn matches(&self) -> MutexGuard<'_, Matches> {
        let matches = self.0.matches.lock();
        matches.unwrap_or_else(PoisonError::into_inner)
    }
}

impl Drop for Entry {
    fn drop(&mut self) {
        let mut matches = self.ledger.matches();
        let Matches { running, over, .. } = &mut *matches;
        running.retain(|(_, counts)| !Arc::ptr_eq(counts, &self.counts));
        self.counts.add_to(over);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_a_match_counted_stays_when_it_is_over() {
        let ledger = Ledger::default();
        let (one, two) = (ledger.enter(), ledger.enter());
        one.counts.note_journal(5);
        two.counts.note_journal(7);
        one.counts.note_panic();
        let told = |ledger: &Ledger| {
            let sum = ledger.sum();
            (sum.journal_bytes, sum.journal_writes, sum.panics)
        };
        assert_eq!(told(&ledger), (12, 2, 1));
        drop(one);
        assert_eq!(told(&ledger), (12, 2, 1));
        assert_eq!(ledger.gauges().matches, 1);
        two.counts.note_journal(1);
        assert_eq!(told(&ledger), (13, 3, 1));
        drop(two);
        assert_eq!(told(&ledger), (13, 3, 1));
        assert_eq!(ledger.gauges().matches, 0);
    }
}
