//! [`Metrics`]: the totals of all matches of a process, including ended ones, and of its I/O task.
//!
//! Invariant: each match is counted once, running or over, so a sum never decreases, and no event is counted twice. The
//! lock is taken when a match starts or ends, and by a scrape; a running match never waits for it.

use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use twinstep_host::{MatchEnd, MatchNumbers, MatchObserver, NotMade, Observer, Traffic};
use twinstep_server::incident::{Incident, Trouble};
use twinstep_udp::{MatchId, TransportCounters};

use super::counts::{IoCounts, MatchCounts, MatchSum, load};

/// Counts the events of a host, for `GET /metrics`. Clones share it.
#[derive(Clone, Debug, Default)]
pub struct Metrics(Arc<Totals>);

#[derive(Debug, Default)]
struct Totals {
    matches: Mutex<Matches>,
    incidents: [AtomicU64; Trouble::COUNT],
    made: AtomicU64,
    not_made: [AtomicU64; NotMade::COUNT],
    ended: [AtomicU64; MatchEnd::COUNT],
    io: IoCounts,
}

#[derive(Debug, Default)]
struct Matches {
    running: Vec<Arc<MatchCounts>>,
    over: MatchSum,
}

#[derive(Debug)]
struct CountedMatch {
    metrics: Metrics,
    counts: Arc<MatchCounts>,
}

impl Metrics {
    pub(super) fn sum(&self) -> MatchSum {
        let matches = self.matches();
        let mut sum = matches.over.clone();
        for counts in &matches.running {
            counts.add_to(&mut sum);
        }
        sum
    }

    pub(super) fn incidents(&self) -> [u64; Trouble::COUNT] {
        self.0.incidents.each_ref().map(load)
    }

    /// The numbers of matches created on demand, of refused requests per [`NotMade`], and of ended matches per
    /// [`MatchEnd`].
    pub(super) fn demand(&self) -> (u64, [u64; NotMade::COUNT], [u64; MatchEnd::COUNT]) {
        let not_made = self.0.not_made.each_ref().map(load);
        (
            load(&self.0.made),
            not_made,
            self.0.ended.each_ref().map(load),
        )
    }

    pub(super) fn io(&self) -> &IoCounts {
        &self.0.io
    }

    fn matches(&self) -> MutexGuard<'_, Matches> {
        let matches = self.0.matches.lock();
        matches.unwrap_or_else(PoisonError::into_inner)
    }
}

fn add_one(number: &AtomicU64) {
    number.fetch_add(1, Ordering::Relaxed);
}

impl Observer for Metrics {
    fn match_starts(&self, _: MatchId) -> Arc<dyn MatchObserver> {
        let counts = Arc::<MatchCounts>::default();
        self.matches().running.push(counts.clone());
        let metrics = self.clone();
        Arc::new(CountedMatch { metrics, counts })
    }

    fn match_made(&self) {
        add_one(&self.0.made);
    }

    fn match_not_made(&self, why: NotMade) {
        add_one(&self.0.not_made[why as usize]);
    }

    fn match_ended(&self, end: MatchEnd) {
        add_one(&self.0.ended[end as usize]);
    }

    fn incident(&self, incident: &Incident) {
        add_one(&self.0.incidents[incident.trouble as usize]);
    }

    fn traffic(&self, traffic: &Traffic, transport: &TransportCounters) {
        self.0.io.show(traffic, transport);
    }

    fn sent(&self, took: Duration) {
        self.0.io.seal_to_send.record(took);
    }
}

impl MatchObserver for CountedMatch {
    fn numbers(&self, numbers: &MatchNumbers) {
        self.counts.show(numbers);
    }

    fn tick_late(&self, lateness: Duration) {
        self.counts.lateness.record(lateness);
    }

    fn step_took(&self, took: Duration) {
        self.counts.step.record(took);
    }

    fn resolver_took(&self, took: Duration) {
        self.counts.resolver.record(took);
    }

    fn journal_written(&self, bytes: usize) {
        self.counts.record_journal(bytes);
    }

    fn journal_failed(&self) {
        self.counts.record_journal_error();
    }

    fn panicked(&self) {
        self.counts.record_panic();
    }

    fn over(&self) {
        let mut matches = self.metrics.matches();
        let Matches { running, over } = &mut *matches;
        let before = running.len();
        running.retain(|counts| !Arc::ptr_eq(counts, &self.counts));
        // Moves the counts once, however often this is called.
        if running.len() < before {
            self.counts.add_to(over);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_counts_of_a_match_remain_after_its_end() {
        let metrics = Metrics::default();
        let (one, two) = (
            metrics.match_starts(MatchId(1)),
            metrics.match_starts(MatchId(2)),
        );
        one.journal_written(5);
        two.journal_written(7);
        one.panicked();
        let totals = || {
            let sum = metrics.sum();
            (sum.journal_bytes, sum.journal_writes, sum.panics)
        };
        assert_eq!(totals(), (12, 2, 1));
        one.over();
        one.over();
        assert_eq!(totals(), (12, 2, 1));
        // A thread that hangs in an ended match no longer counts.
        one.journal_written(100);
        two.journal_written(1);
        assert_eq!(totals(), (13, 3, 1));
        two.over();
        assert_eq!(totals(), (13, 3, 1));
    }
}
