//! Matches on demand: a ticket names its match, and the first valid ticket for a match creates it.
//!
//! ```text
//!  I/O task        valid ticket, no such match ──Wanted──▶ maker ── may it be made? ── no ──▶ Refuse, with a code
//!   (waits)                                                   │ yes
//!   routed ◀─────────────── Open ───────────────── template, journal, match ◀┘
//!
//!  deserted for long enough ─▶ Rest: new sessions wait ─▶ it ends ─▶ its journal gets a number ─▶ forgotten
//!                                └ a player came back ─▶ Wake: it continues
//! ```
//!
//! Invariant: a ticket that is forged, outdated or held by a banned identity does not start a match. The I/O task
//! requests matches only for sessions that it would route, and the maker asks the ticket ledger. An id is free again
//! once its match has released everything, so two matches with the same id never share a journal.

use std::path::PathBuf;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, OnceLock};
use std::time::Duration;

use tokio::sync::mpsc;
use tokio::task::AbortHandle;
use twinstep_core::Simulation;
use twinstep_protocol::identity::MatchId;
use twinstep_udp::TicketClaims;

use super::blueprint::Blueprint;
use super::journal_file::{Durability, OnJournalFailure};
use twinstep_server::SessionId;

pub(super) mod counts;
mod folder;
mod maker;
mod pace;

pub use counts::{MatchEnd, NotMade};

/// The blueprints of a server's matches, by match id.
pub trait BlueprintSource<S: Simulation>: Send + Sync + 'static {
    /// Returns the blueprint of match `id`, or `None` if the template has no match `id`. In that case, sessions with a
    /// ticket for it are refused. Called on threads for blocking work, possibly for several ids at once. After a panic,
    /// only the sessions for this id are refused.
    fn blueprint(&self, id: MatchId) -> Option<Blueprint<S>>;
}

impl<S, F, B> BlueprintSource<S> for F
where
    S: Simulation,
    F: Fn(MatchId) -> B + Send + Sync + 'static,
    B: Into<Option<Blueprint<S>>>,
{
    fn blueprint(&self, id: MatchId) -> Option<Blueprint<S>> {
        self(id).into()
    }
}

/// Creates a server's matches, each when the first valid player ticket for it arrives.
///
/// The closure returns the blueprint for a match id. A closure that returns an `Option` decides which ids exist.
///
/// ```
/// use twinstep_core::Simulation;
/// use twinstep_core::testing::doc::Counter;
/// use twinstep_host::{Blueprint, HostConfig, MatchId, OnDemand, RunningMany};
/// use twinstep_udp::TicketKey;
///
/// let matches = OnDemand::new(|MatchId(id)| {
///     (id < 1_000).then(|| Blueprint::action(Counter::default(), ()).players(4))
/// });
/// let config = HostConfig::new(Counter::NAME, "127.0.0.1:0".parse()?, TicketKey::generate());
/// let server = RunningMany::start(matches.at_once(100), config)?;
/// let ticket = server.ticket(MatchId(7), "anna")?; // give it to Client::connect: match 7 begins when she dials
/// assert_eq!(ticket.servers().collect::<Vec<_>>(), [server.local_addr()]);
/// server.shutdown();
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
pub struct OnDemand<S: Simulation> {
    template: Box<dyn BlueprintSource<S>>,
    at_once: usize,
    per_second: u32,
    deserted_after: Duration,
    journals: Option<PathBuf>,
    durability: Durability,
    on_journal_failure: OnJournalFailure,
}

impl<S: Simulation> OnDemand<S> {
    /// Allows 64 matches at a time and 20 new matches per second, and ends each after a minute without sessions. There
    /// are no journals.
    pub fn new(template: impl BlueprintSource<S>) -> Self {
        OnDemand {
            template: Box::new(template),
            at_once: 64,
            per_second: 20,
            deserted_after: Duration::from_secs(60),
            journals: None,
            durability: Durability::default(),
            on_journal_failure: OnJournalFailure::default(),
        }
    }

    /// Sets how many matches may run at a time, at least 1. Players of further matches are refused with "server full".
    #[must_use]
    pub fn at_once(mut self, matches: usize) -> Self {
        self.at_once = matches.max(1);
        self
    }

    /// Sets how many matches may be created per second, at least 1; after a quiet second, this many at once. Players of
    /// further matches are asked to retry in a moment.
    #[must_use]
    pub fn per_second(mut self, matches: u32) -> Self {
        self.per_second = matches.max(1);
        self
    }

    /// Ends a match after this time without sessions, at least a second. A player whose connection broke keeps its seat
    /// for a minute, and the match is not deserted before that.
    #[must_use]
    pub fn deserted_after(mut self, time: Duration) -> Self {
        self.deserted_after = time.max(Duration::from_secs(1));
        self
    }

    /// Keeps a journal of each match in this folder, which must exist: `match-ID.journal` while the match can continue,
    /// `match-ID.N.journal` with the next free number when it is over. A match whose process was killed, or ended
    /// cleanly before the match was over, continues from its journal when a ticket for it arrives.
    #[must_use]
    pub fn journals(mut self, folder: impl Into<PathBuf>) -> Self {
        self.journals = Some(folder.into());
        self
    }

    /// Sets which failures the journals survive. Default: [`Durability::Process`].
    #[must_use]
    pub fn durability(mut self, durability: Durability) -> Self {
        self.durability = durability;
        self
    }

    /// Sets what happens to a match whose journal cannot be written. Default: it ends.
    #[must_use]
    pub fn on_journal_failure(mut self, on_failure: OnJournalFailure) -> Self {
        self.on_journal_failure = on_failure;
        self
    }
}

pub(super) struct Making(AbortHandle);

impl Making {
    fn new(task: AbortHandle) -> Making {
        Making(task)
    }
}

impl Drop for Making {
    fn drop(&mut self) {
        self.0.abort();
    }
}

/// A session with a valid ticket for a match that is not running.
pub(super) type Wanted = (SessionId, TicketClaims);

const WANTED_MAX: usize = 2 * twinstep_udp::SESSIONS_MAX;

/// The state that the I/O task, the admin port and the maker share. Clones share it.
#[derive(Clone, Default)]
pub(super) struct Demand(Arc<Shared>);

#[derive(Default)]
struct Shared {
    wanted: OnceLock<mpsc::Sender<Wanted>>,
    /// The limit; 0 if no matches are created on demand.
    at_once: AtomicUsize,
    /// The number of matches being created, running or being closed down.
    alive: AtomicUsize,
}

impl Demand {
    /// Turns on matches on demand. Returns the receiver of requests, or `None` if they are already on.
    fn begin(&self, at_once: usize) -> Option<mpsc::Receiver<Wanted>> {
        let (send, wanted) = mpsc::channel(WANTED_MAX);
        self.0.wanted.set(send).ok()?;
        self.0.at_once.store(at_once, Ordering::Relaxed);
        Some(wanted)
    }

    pub(super) fn is_on(&self) -> bool {
        self.at_once() > 0
    }

    pub(super) fn at_once(&self) -> usize {
        self.0.at_once.load(Ordering::Relaxed)
    }

    pub(super) fn has_room(&self) -> bool {
        self.0.alive.load(Ordering::Relaxed) < self.at_once()
    }

    fn show_alive(&self, matches: usize) {
        self.0.alive.store(matches, Ordering::Relaxed);
    }

    /// Asks the maker for the match of a waiting session. A spectator does not start a match.
    pub(super) fn ask(&self, session: SessionId, ticket: &TicketClaims) {
        if let Some(wanted) = self.0.wanted.get()
            && ticket.seats > 0
        {
            // The channel has space for two requests per session. If it is full, the session waits until it is closed
            // with `NoMatch`.
            let _ = wanted.try_send((session, ticket.clone()));
        }
    }
}
