//! Matches made on demand: a ticket names its match, and the first good one for it makes it.
//!
//! ```text
//!  I/O task        a good ticket, no such match ──Wanted──▶ maker ── may it be made? ── no ──▶ Refuse, and why
//!   (waits)                                                   │ yes
//!   led there ◀──────────── Open ───────────────── template, journal, match ◀┘
//!
//!  deserted for long enough ─▶ Rest: nobody is led there any more ─▶ it ends ─▶ its journal gets a number ─▶ forgotten
//!                                └ somebody plays there after all ─▶ Wake: it goes on
//! ```
//!
//! Invariant: a ticket that is forged, out of date or of a banned identity makes nothing: the I/O task asks only for sessions
//! that it would lead to their match, and the maker asks whether a newer ticket is safe. An id is free again when nothing of
//! its match is left: so two matches of one id never share a journal.

use std::path::PathBuf;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, OnceLock};
use std::time::Duration;

use tokio::sync::mpsc;
use tokio::task::AbortHandle;
use twinstep_core::Simulation;
use twinstep_udp::TicketClaims;

use super::blueprint::Blueprint;
use super::journal_file::{Durability, OnJournalFailure};
use twinstep_server::SessionId;

pub(super) mod counts;
mod folder;
mod maker;
mod pace;

pub use counts::{MatchEnd, NotMade};

/// What matches of a server are made of: each by its id.
pub trait Template<S: Simulation>: Send + Sync + 'static {
    /// What match `id` is made of; `None`: there is no such match here, so nothing is made, and whoever has a ticket for it
    /// is told so. Runs on a thread for blocking work, for several ids at once; a panic refuses that match alone.
    fn blueprint(&self, id: u64) -> Option<Blueprint<S>>;
}

impl<S, F, B> Template<S> for F
where
    S: Simulation,
    F: Fn(u64) -> B + Send + Sync + 'static,
    B: Into<Option<Blueprint<S>>>,
{
    fn blueprint(&self, id: u64) -> Option<Blueprint<S>> {
        self(id).into()
    }
}

/// How a server makes matches: each when the first good ticket of a player for it comes.
///
/// The closure says what the match of an id is made of; one that returns an `Option` says which ids there are.
///
/// ```
/// use twinstep_core::Simulation;
/// use twinstep_core::testing::doc::Counter;
/// use twinstep_host::{Blueprint, HostConfig, OnDemand, RunningMany};
/// use twinstep_udp::TicketKey;
///
/// let matches = OnDemand::new(|id| {
///     (id < 1_000).then(|| Blueprint::action(Counter::default(), ()).players(4))
/// });
/// let config = HostConfig::new(Counter::NAME, "127.0.0.1:0".parse()?, TicketKey::generate());
/// let server = RunningMany::start(matches.at_once(100), config)?;
/// let ticket = server.ticket(7, "anna")?; // give it to Client::connect: match 7 begins when she dials
/// assert_eq!(ticket.servers().collect::<Vec<_>>(), [server.local_addr()]);
/// server.shutdown();
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
pub struct OnDemand<S: Simulation> {
    template: Box<dyn Template<S>>,
    at_once: usize,
    per_second: u32,
    deserted_after: Duration,
    journals: Option<PathBuf>,
    durability: Durability,
    on_journal_failure: OnJournalFailure,
}

impl<S: Simulation> OnDemand<S> {
    /// 64 matches at once, 20 made a second, each over when it was deserted for a minute; no journals.
    pub fn new(template: impl Template<S>) -> Self {
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

    /// So many matches at once, at least 1. Whoever wants one more is told that the server is full.
    #[must_use]
    pub fn at_once(mut self, matches: usize) -> Self {
        self.at_once = matches.max(1);
        self
    }

    /// So many matches are made in a second, at least 1; as many at once after a quiet second. Whoever comes too early is told
    /// to come back in a moment.
    #[must_use]
    pub fn per_second(mut self, matches: u32) -> Self {
        self.per_second = matches.max(1);
        self
    }

    /// A match is over when nobody was in it for so long, at least a second. A player who is cut off keeps its seat for a
    /// minute, and the match is not deserted before that.
    #[must_use]
    pub fn deserted_after(mut self, time: Duration) -> Self {
        self.deserted_after = time.max(Duration::from_secs(1));
        self
    }

    /// Keeps a journal of each match in this folder, which must be there: `match-ID.journal` while it can go on, and
    /// `match-ID.N.journal` when it is over, with the next free number. A match whose process was killed, or ended in order
    /// before it was over, goes on from its journal when a ticket for it comes.
    #[must_use]
    pub fn journals(mut self, folder: impl Into<PathBuf>) -> Self {
        self.journals = Some(folder.into());
        self
    }

    /// What the journals are to survive; [`Durability::Process`] if nothing is said.
    #[must_use]
    pub fn durability(mut self, durability: Durability) -> Self {
        self.durability = durability;
        self
    }

    /// What becomes of a match whose journal cannot be written; it ends if nothing is said.
    #[must_use]
    pub fn on_journal_failure(mut self, on_failure: OnJournalFailure) -> Self {
        self.on_journal_failure = on_failure;
        self
    }
}

/// The maker's task; dropped, it ends, and what it was about to do.
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

/// A session whose ticket is good, for a match that is not there.
pub(super) type Wanted = (SessionId, TicketClaims);

/// Wishes that may wait for the maker: more than there are sessions.
const WANTED_MAX: usize = 2 * twinstep_udp::SESSIONS_MAX;

/// What the I/O task, the admin port and the maker share. Clones share it.
#[derive(Clone, Default)]
pub(super) struct Demand(Arc<Shared>);

#[derive(Default)]
struct Shared {
    wanted: OnceLock<mpsc::Sender<Wanted>>,
    /// So many at once; 0: none is made on demand.
    at_once: AtomicUsize,
    /// Now, those that are being made or put away included.
    alive: AtomicUsize,
}

impl Demand {
    /// Matches are made from here on; `None`: they are already.
    fn begin(&self, at_once: usize) -> Option<mpsc::Receiver<Wanted>> {
        let (send, wanted) = mpsc::channel(WANTED_MAX);
        self.0.wanted.set(send).ok()?;
        self.0.at_once.store(at_once, Ordering::Relaxed);
        Some(wanted)
    }

    /// Whether matches are made on demand.
    pub(super) fn is_on(&self) -> bool {
        self.at_once() > 0
    }

    pub(super) fn at_once(&self) -> usize {
        self.0.at_once.load(Ordering::Relaxed)
    }

    /// Whether another match has room.
    pub(super) fn has_room(&self) -> bool {
        self.0.alive.load(Ordering::Relaxed) < self.at_once()
    }

    fn show_alive(&self, matches: usize) {
        self.0.alive.store(matches, Ordering::Relaxed);
    }

    /// Somebody waits whose match is not there. Those who watch make none.
    pub(super) fn ask(&self, session: SessionId, ticket: &TicketClaims) {
        if let Some(wanted) = self.0.wanted.get()
            && ticket.seats > 0
        {
            // There is room for all; whoever finds none after all waits, and is told that the match is not there.
            let _ = wanted.try_send((session, ticket.clone()));
        }
    }
}
