//! The counters of one match or of the I/O task, written by the thread that owns them and read by scrapes.
//!
//! Invariant: counting writes to atomics only. It does not take a lock or allocate, and never blocks.

use std::sync::atomic::{AtomicU64, Ordering};

use twinstep_host::internal::{Histogram, Spread};
use twinstep_host::{MatchNumbers, Traffic};
use twinstep_server::MatchStats;
use twinstep_server::internal::{JoinResult, KickReason};
use twinstep_udp::TransportCounters;

use super::names::{self, Family};

/// A metric and its value in [`MatchStats`].
type StatMetric = (&'static Family, fn(&MatchStats) -> u64);

pub(super) const TOLD: [StatMetric; 9] = [
    (&names::TICKS, |stats| stats.ticks),
    (&names::TURNS, |stats| stats.turns),
    (&names::FILLS, |stats| stats.fills),
    (&names::QUERIES, |stats| stats.queries),
    (&names::UNANSWERED, |stats| stats.unanswered),
    (&names::DESYNCS, |stats| stats.desyncs),
    (&names::SERVER_FAULTS, |stats| stats.server_faults),
    (&names::HEALS, |stats| stats.heals),
    (&names::MALFORMED, |stats| stats.malformed),
];

#[derive(Debug, Default)]
pub(super) struct MatchCounts {
    stats: [AtomicU64; TOLD.len()],
    joins: [AtomicU64; JoinResult::COUNT],
    kicks: [AtomicU64; KickReason::COUNT],
    panics: AtomicU64,
    /// Panics of jobs, or the panic that ended the match.
    other_panics: AtomicU64,
    journal_bytes: AtomicU64,
    journal_writes: AtomicU64,
    journal_errors: AtomicU64,
    pub(super) lateness: Histogram,
    pub(super) step: Histogram,
    pub(super) resolver: Histogram,
}

impl MatchCounts {
    /// Publishes the totals of the match. Cost: thirty writes.
    pub(super) fn show(&self, numbers: &MatchNumbers) {
        let stats = &numbers.stats;
        for (shown, (_, of)) in self.stats.iter().zip(TOLD) {
            shown.store(of(stats), Ordering::Relaxed);
        }
        self.panics.store(stats.panics, Ordering::Relaxed);
        store_all(&self.joins, &numbers.joins);
        store_all(&self.kicks, &numbers.kicks);
    }

    pub(super) fn record_journal(&self, bytes: usize) {
        self.journal_writes.fetch_add(1, Ordering::Relaxed);
        self.journal_bytes
            .fetch_add(bytes as u64, Ordering::Relaxed);
    }

    pub(super) fn record_journal_error(&self) {
        self.journal_errors.fetch_add(1, Ordering::Relaxed);
    }

    pub(super) fn record_panic(&self) {
        self.other_panics.fetch_add(1, Ordering::Relaxed);
    }

    pub(super) fn add_to(&self, sum: &mut MatchSum) {
        add_all(&mut sum.stats, &self.stats);
        add_all(&mut sum.joins, &self.joins);
        add_all(&mut sum.kicks, &self.kicks);
        sum.panics += load(&self.panics) + load(&self.other_panics);
        sum.journal_bytes += load(&self.journal_bytes);
        sum.journal_writes += load(&self.journal_writes);
        sum.journal_errors += load(&self.journal_errors);
        self.lateness.add_to(&mut sum.lateness);
        self.step.add_to(&mut sum.step);
        self.resolver.add_to(&mut sum.resolver);
    }
}

#[derive(Clone, Debug, Default)]
pub(super) struct MatchSum {
    pub(super) stats: [u64; TOLD.len()],
    pub(super) joins: [u64; JoinResult::COUNT],
    pub(super) kicks: [u64; KickReason::COUNT],
    pub(super) panics: u64,
    pub(super) journal_bytes: u64,
    pub(super) journal_writes: u64,
    pub(super) journal_errors: u64,
    pub(super) lateness: Spread,
    pub(super) step: Spread,
    pub(super) resolver: Spread,
}

pub(super) const DROPS: [&str; 17] = [
    "junk",
    "late",
    "oversize",
    "unknown_key",
    "rejected",
    "denied_full",
    "denied_expired",
    "denied_superseded",
    "bad_claims",
    "rate_limited",
    "unadmitted",
    "not_a_packet",
    "queue_full",
    "banned",
    "match_full",
    "unsent",
    "socket_error",
];

pub(super) const WEB_CLOSED: [&str; 3] = ["refused", "no_ticket", "stream"];

#[derive(Debug, Default)]
pub(super) struct IoCounts {
    traffic: [AtomicU64; 8],
    dropped: [AtomicU64; DROPS.len()],
    web_lines: AtomicU64,
    web_closed: [AtomicU64; WEB_CLOSED.len()],
    pub(super) seal_to_send: Histogram,
}

impl IoCounts {
    pub(super) fn show(&self, own: &Traffic, counters: &TransportCounters) {
        let traffic = [
            own.datagrams_in,
            own.bytes_in,
            own.datagrams_out,
            own.bytes_out,
            counters.packets,
            own.packets_out,
            own.web.datagrams_in,
            own.web.datagrams_out,
        ];
        store_all(&self.traffic, &traffic);
        // In the order of `DROPS`.
        let dropped = [
            counters.junk,
            counters.late,
            counters.oversize,
            counters.unknown_key,
            counters.rejected,
            counters.denied_full,
            counters.denied_expired,
            counters.denied_superseded,
            counters.bad_claims,
            counters.rate_limited,
            counters.unadmitted,
            counters.fenced,
            counters.queue_full,
            own.banned,
            own.match_full,
            own.unsent,
            own.errors,
        ];
        store_all(&self.dropped, &dropped);
        self.web_lines.store(own.web.lines, Ordering::Relaxed);
        // In the order of `WEB_CLOSED`.
        let web_closed = [own.web.refused, own.web.mute, own.web.streams];
        store_all(&self.web_closed, &web_closed);
    }

    pub(super) fn traffic(&self) -> [(&'static Family, u64); 8] {
        let families = [
            &names::DATAGRAMS_IN,
            &names::BYTES_IN,
            &names::DATAGRAMS_OUT,
            &names::BYTES_OUT,
            &names::PACKETS_IN,
            &names::PACKETS_OUT,
            &names::WEB_IN,
            &names::WEB_OUT,
        ];
        std::array::from_fn(|n| (families[n], load(&self.traffic[n])))
    }

    pub(super) fn web_lines(&self) -> u64 {
        load(&self.web_lines)
    }

    pub(super) fn web_closed(&self) -> [u64; WEB_CLOSED.len()] {
        std::array::from_fn(|n| load(&self.web_closed[n]))
    }

    pub(super) fn dropped(&self) -> [u64; DROPS.len()] {
        std::array::from_fn(|n| load(&self.dropped[n]))
    }
}

pub(super) fn load(number: &AtomicU64) -> u64 {
    number.load(Ordering::Relaxed)
}

fn store_all<const N: usize>(shown: &[AtomicU64; N], numbers: &[u64; N]) {
    for (shown, number) in shown.iter().zip(numbers) {
        shown.store(*number, Ordering::Relaxed);
    }
}

fn add_all<const N: usize>(sum: &mut [u64; N], shown: &[AtomicU64; N]) {
    for (sum, shown) in sum.iter_mut().zip(shown) {
        *sum += load(shown);
    }
}
