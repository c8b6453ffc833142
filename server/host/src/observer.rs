//! Traits for code that observes a host or refuses sessions: [`Observer`], [`MatchObserver`], [`AdmissionPolicy`].
//!
//! ```text
//!  I/O task ──traffic, sent──────────────▶ Observer          I/O task ──is it refused?──▶ AdmissionPolicy
//!  maker ─────made, not made, ended──────▶    │ match_starts
//!  runner ────numbers, lateness, journal─▶ MatchObserver
//! ```
//!
//! Invariant: the host does not know its observers, and calls them on the threads of its matches and sockets, so an
//! observer must not block. `twinstep-ops` counts metrics and bans players through these traits.

use std::fmt::Debug;
use std::sync::Arc;
use std::time::Duration;

use twinstep_core::Simulation;
use twinstep_protocol::identity::MatchId;
use twinstep_protocol::packet::closed::CloseCode;
use twinstep_server::incident::Incident;
use twinstep_server::internal::{JoinResult, KickReason, Stopwatch, Timed};
use twinstep_server::{Match, MatchStats};
use twinstep_udp::TransportCounters;

use super::clock::HostClock;
use super::demand::counts::{MatchEnd, NotMade};
use super::web::WebTraffic;

/// Observes a host. Each method has an empty default.
#[expect(missing_docs, reason = "the names are self-explanatory")]
pub trait Observer: Debug + Send + Sync {
    /// Returns the observer for a new match.
    fn match_starts(&self, id: MatchId) -> Arc<dyn MatchObserver> {
        let _ = id;
        Arc::new(())
    }

    fn match_made(&self) {}

    fn match_not_made(&self, why: NotMade) {
        let _ = why;
    }

    fn match_ended(&self, end: MatchEnd) {
        let _ = end;
    }

    fn incident(&self, incident: &Incident) {
        let _ = incident;
    }

    /// Called at least ten times a second with the totals of the I/O task so far.
    fn traffic(&self, traffic: &Traffic, transport: &TransportCounters) {
        let _ = (traffic, transport);
    }

    /// The packets of a turn were sent this long after it was sealed.
    fn sent(&self, took: Duration) {
        let _ = took;
    }
}

/// Observes one match. Each method has an empty default.
#[expect(missing_docs, reason = "the names are self-explanatory")]
pub trait MatchObserver: Debug + Send + Sync {
    /// The match's totals, after each round.
    fn numbers(&self, numbers: &MatchNumbers) {
        let _ = numbers;
    }

    /// A tick was this late.
    fn tick_late(&self, lateness: Duration) {
        let _ = lateness;
    }

    fn step_took(&self, took: Duration) {
        let _ = took;
    }

    /// The game's resolver took this long to answer.
    fn resolver_took(&self, took: Duration) {
        let _ = took;
    }

    fn journal_written(&self, bytes: usize) {
        let _ = bytes;
    }

    fn journal_failed(&self) {}

    fn panicked(&self) {}

    /// The match is over. A thread that hangs in the match may still call this observer.
    fn over(&self) {}
}

/// Decides which identities may connect.
pub trait AdmissionPolicy: Debug + Send + Sync {
    /// Returns the code with which sessions of an identity are refused, or `None` if they are admitted.
    fn refusal(&self, identity: &str, now_unix: Duration) -> Option<CloseCode>;
}

impl Observer for () {}

impl MatchObserver for () {}

impl AdmissionPolicy for () {
    fn refusal(&self, _: &str, _: Duration) -> Option<CloseCode> {
        None
    }
}

/// A match's totals, and its current population.
#[derive(Clone, Debug)]
#[expect(missing_docs, reason = "the names are self-explanatory")]
pub struct MatchNumbers {
    /// The match's counters.
    pub stats: MatchStats,
    /// The number of joins per [`JoinResult`].
    pub joins: [u64; JoinResult::COUNT],
    /// The number of removals per [`KickReason`].
    pub kicks: [u64; KickReason::COUNT],
    pub players: u64,
    pub spectators: u64,
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
#[expect(missing_docs, reason = "the names are self-explanatory")]
pub struct Traffic {
    pub datagrams_in: u64,
    pub bytes_in: u64,
    pub datagrams_out: u64,
    pub bytes_out: u64,
    pub packets_out: u64,
    /// Sessions that [`AdmissionPolicy`] refused.
    pub banned: u64,
    /// Packets for a match whose inbox was full.
    pub match_full: u64,
    /// Datagrams that the socket did not accept.
    pub unsent: u64,
    pub errors: u64,
    /// The counters of browser connections.
    pub web: WebTraffic,
}

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
