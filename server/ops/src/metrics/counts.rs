//! What one match has counted, and what the I/O task has: numbers that its own thread writes and a scrape reads.
//!
//! Invariant: whoever counts writes to atomics of its own: it takes no lock, allocates nothing and waits for nobody.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use twinstep_core::Simulation;
use twinstep_udp::TransportCounters;

use super::histogram::{Histogram, Spread};
use super::names::{self, Family};
use crate::clock::HostClock;
use twinstep_server::game::{Match, MatchStats};
use twinstep_server::internal::{JoinResult, KickReason};
use twinstep_server::internal::{Stopwatch, Timed};

/// What is told of [`MatchStats`].
type Told = (&'static Family, fn(&MatchStats) -> u64);

pub(super) const TOLD: [Told; 9] = [
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

/// What one match has counted, and the gauges that it shows.
#[derive(Debug, Default)]
pub(crate) struct MatchCounts {
    stats: [AtomicU64; TOLD.len()],
    joins: [AtomicU64; JoinResult::COUNT],
    kicks: [AtomicU64; KickReason::COUNT],
    /// Panics that the match survived.
    panics: AtomicU64,
    /// Panics of jobs, or the one that ended it.
    other_panics: AtomicU64,
    journal_bytes: AtomicU64,
    journal_writes: AtomicU64,
    journal_errors: AtomicU64,
    pub(crate) lateness: Histogram,
    pub(crate) step: Histogram,
    pub(crate) resolver: Histogram,
    players: AtomicU64,
    spectators: AtomicU64,
    seats_free: AtomicU64,
}

impl MatchCounts {
    /// Shows how far the match has counted. Cost: thirty writes.
    pub(crate) fn show<S: Simulation>(&self, game: &Match<S>) {
        let stats = game.stats();
        for (shown, (_, of)) in self.stats.iter().zip(TOLD) {
            shown.store(of(&stats), Ordering::Relaxed);
        }
        self.panics.store(stats.panics, Ordering::Relaxed);
        let tally = game.tally();
        store_all(&self.joins, &tally.joins);
        store_all(&self.kicks, &tally.kicks);
        let players = game.world().present().len() as u64;
        self.players.store(players, Ordering::Relaxed);
        let spectators = game.spectators() as u64;
        self.spectators.store(spectators, Ordering::Relaxed);
        let free = game.free_seats() as u64;
        self.seats_free.store(free, Ordering::Relaxed);
    }

    /// A record of so many bytes was written to the journal.
    pub(crate) fn note_journal(&self, bytes: usize) {
        self.journal_writes.fetch_add(1, Ordering::Relaxed);
        self.journal_bytes
            .fetch_add(bytes as u64, Ordering::Relaxed);
    }

    /// The journal cannot be written any more.
    pub(crate) fn note_journal_error(&self) {
        self.journal_errors.fetch_add(1, Ordering::Relaxed);
    }

    /// Something panicked outside of what the match survives by itself.
    pub(crate) fn note_panic(&self) {
        self.other_panics.fetch_add(1, Ordering::Relaxed);
    }

    /// Adds what was counted so far; the gauges are of now, so they count while the match runs only.
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

    /// Adds how the match is now.
    pub(super) fn add_gauges_to(&self, sum: &mut Gauges) {
        sum.matches += 1;
        sum.players += load(&self.players);
        sum.spectators += load(&self.spectators);
        sum.seats_free += load(&self.seats_free);
    }
}

/// What several matches have counted.
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

/// How the matches that run are now.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Gauges {
    pub(crate) matches: u64,
    pub(crate) players: u64,
    pub(crate) spectators: u64,
    pub(crate) seats_free: u64,
}

/// Measures what an author's code takes, by the host's clock.
pub(crate) struct HostStopwatch {
    pub(crate) clock: HostClock,
    pub(crate) counts: Arc<MatchCounts>,
}

impl Stopwatch for HostStopwatch {
    fn now(&self) -> Duration {
        self.clock.now()
    }

    fn note(&self, what: Timed, took: Duration) {
        match what {
            Timed::Step => self.counts.step.note(took),
            Timed::Resolver => self.counts.resolver.note(took),
        }
    }
}

/// Why datagrams and packets led to nothing, as it is called.
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
    "fenced",
    "queue_full",
    "banned",
    "match_full",
    "unsent",
    "socket_error",
];

/// What the I/O task has counted: its own, plain numbers, which it shows at least ten times a second.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub(crate) struct Traffic {
    pub(crate) datagrams_in: u64,
    pub(crate) bytes_in: u64,
    pub(crate) datagrams_out: u64,
    pub(crate) bytes_out: u64,
    pub(crate) packets_out: u64,
    /// Sessions of an identity that is banned.
    pub(crate) banned: u64,
    /// Packets for a match whose channel was full.
    pub(crate) match_full: u64,
    /// Datagrams that the socket did not take.
    pub(crate) unsent: u64,
    /// Errors of the socket.
    pub(crate) errors: u64,
}

/// What the I/O task shows.
#[derive(Debug, Default)]
pub(crate) struct IoCounts {
    traffic: [AtomicU64; 6],
    dropped: [AtomicU64; DROPS.len()],
    sessions: AtomicU64,
    pub(crate) seal_to_send: Histogram,
}

impl IoCounts {
    pub(crate) fn show(&self, own: &Traffic, counters: &TransportCounters, sessions: usize) {
        let traffic = [
            own.datagrams_in,
            own.bytes_in,
            own.datagrams_out,
            own.bytes_out,
            counters.packets,
            own.packets_out,
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
        self.sessions.store(sessions as u64, Ordering::Relaxed);
    }

    /// Sessions now, admitted or not.
    pub(crate) fn sessions(&self) -> u64 {
        load(&self.sessions)
    }

    /// Each of these metrics with its number.
    pub(super) fn traffic(&self) -> [(&'static Family, u64); 6] {
        let families = [
            &names::DATAGRAMS_IN,
            &names::BYTES_IN,
            &names::DATAGRAMS_OUT,
            &names::BYTES_OUT,
            &names::PACKETS_IN,
            &names::PACKETS_OUT,
        ];
        std::array::from_fn(|n| (families[n], load(&self.traffic[n])))
    }

    pub(super) fn dropped(&self) -> [u64; DROPS.len()] {
        std::array::from_fn(|n| load(&self.dropped[n]))
    }
}

fn load(number: &AtomicU64) -> u64 {
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
