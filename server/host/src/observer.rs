//! What others may watch of a host, and where they may say no: [`Observer`], [`MatchObserver`], [`AdmissionPolicy`].
//!
//! ```text
//!  I/O task ──traffic, sent──────────────▶ Observer          I/O task ──may this identity come in?──▶ AdmissionPolicy
//!  maker ─────made, not made, ended──────▶    │ match_starts
//!  runner ────numbers, lateness, journal─▶ MatchObserver
//! ```
//!
//! Invariant: the host names nobody who watches it, and calls on the threads of its matches and sockets: an observer must
//! not wait there. `twinstep-ops` counts metrics this way and bans players.

use std::fmt::Debug;
use std::sync::Arc;
use std::time::Duration;

use twinstep_core::Simulation;
use twinstep_protocol::packet::closed::CloseCode;
use twinstep_server::incident::Incident;
use twinstep_server::internal::{JoinResult, KickReason, Stopwatch, Timed};
use twinstep_server::{Match, MatchStats};
use twinstep_udp::TransportCounters;

use super::clock::HostClock;
use super::demand::counts::{MatchEnd, NotMade};

/// Learns what happens in a host. Each method does nothing unless it is implemented.
pub trait Observer: Debug + Send + Sync {
    /// A match starts. Returns its observer.
    fn match_starts(&self, id: u64) -> Arc<dyn MatchObserver> {
        let _ = id;
        Arc::new(())
    }

    /// A match was made on demand.
    fn match_made(&self) {}

    /// No match was made for a ticket.
    fn match_not_made(&self, why: NotMade) {
        let _ = why;
    }

    /// A match that was made on demand has ended.
    fn match_ended(&self, end: MatchEnd) {
        let _ = end;
    }

    /// An incident is written down.
    fn incident(&self, incident: &Incident) {
        let _ = incident;
    }

    /// The totals of the I/O task so far, at least ten times a second.
    fn traffic(&self, traffic: &Traffic, transport: &TransportCounters) {
        let _ = (traffic, transport);
    }

    /// The packets of a turn left this long after it was sealed.
    fn sent(&self, took: Duration) {
        let _ = took;
    }
}

/// Learns what happens in one match. Each method does nothing unless it is implemented.
pub trait MatchObserver: Debug + Send + Sync {
    /// The totals of the match, after each round of it.
    fn numbers(&self, numbers: &MatchNumbers) {
        let _ = numbers;
    }

    /// A tick was this late.
    fn tick_late(&self, lateness: Duration) {
        let _ = lateness;
    }

    /// The game's step took this long.
    fn step_took(&self, took: Duration) {
        let _ = took;
    }

    /// The game's resolver took this long for an answer.
    fn resolver_took(&self, took: Duration) {
        let _ = took;
    }

    /// A record was written to the journal.
    fn journal_written(&self, bytes: usize) {
        let _ = bytes;
    }

    /// The journal cannot be written any more.
    fn journal_failed(&self) {}

    /// Something panicked outside of what the match survives by itself.
    fn panicked(&self) {}

    /// The match is over. A thread that hangs in it may still call.
    fn over(&self) {}
}

/// Decides which identities may connect.
pub trait AdmissionPolicy: Debug + Send + Sync {
    /// The code that sessions of an identity are refused with; `None`: they are let in.
    fn refusal(&self, identity: &str, now_unix: Duration) -> Option<CloseCode>;
}

/// Watches nothing.
impl Observer for () {}

/// Watches nothing.
impl MatchObserver for () {}

/// Admits every identity.
impl AdmissionPolicy for () {
    fn refusal(&self, _: &str, _: Duration) -> Option<CloseCode> {
        None
    }
}

/// The totals of a match, and how many are in it now.
#[derive(Clone, Debug)]
pub struct MatchNumbers {
    /// What its rules and clients did.
    pub stats: MatchStats,
    /// How sessions came in, by [`JoinResult`].
    pub joins: [u64; JoinResult::COUNT],
    /// Why players were removed, by [`KickReason`].
    pub kicks: [u64; KickReason::COUNT],
    /// Players who are there.
    pub players: u64,
    /// Spectators who are there.
    pub spectators: u64,
    /// Seats that newcomers can take.
    pub seats_free: u64,
}

impl MatchNumbers {
    pub(super) fn of<S: Simulation>(match_: &Match<S>) -> MatchNumbers {
        let tally = match_.tally();
        MatchNumbers {
            stats: match_.stats(),
            joins: tally.joins,
            kicks: tally.kicks,
            players: match_.world().present().len() as u64,
            spectators: match_.spectators() as u64,
            seats_free: match_.free_seats() as u64,
        }
    }
}

/// The totals of the I/O task.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct Traffic {
    /// Datagrams received.
    pub datagrams_in: u64,
    /// Bytes received.
    pub bytes_in: u64,
    /// Datagrams sent.
    pub datagrams_out: u64,
    /// Bytes sent.
    pub bytes_out: u64,
    /// Packets sent.
    pub packets_out: u64,
    /// Sessions that [`AdmissionPolicy`] refused.
    pub banned: u64,
    /// Packets for a match whose channel was full.
    pub match_full: u64,
    /// Datagrams that the socket did not take.
    pub unsent: u64,
    /// Errors of the socket.
    pub errors: u64,
}

/// Measures what an author's code takes, by the host's clock.
pub(super) struct HostStopwatch {
    pub(super) clock: HostClock,
    pub(super) observer: Arc<dyn MatchObserver>,
}

impl Stopwatch for HostStopwatch {
    fn now(&self) -> Duration {
        self.clock.now()
    }

    fn note(&self, what: Timed, took: Duration) {
        match what {
            Timed::Step => self.observer.step_took(took),
            Timed::Resolver => self.observer.resolver_took(took),
        }
    }
}
