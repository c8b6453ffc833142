//! [`MatchSpawner`]: starts matches, with everything that they need from their host.
//!
//! Invariant: the id of a match is taken before the match is routed to or run, and is free again when the match is
//! over.

use std::collections::BTreeMap;
use std::collections::btree_map::Entry;
use std::path::PathBuf;
use std::sync::{Arc, Mutex};
use std::time::Duration;

use tokio::sync::{mpsc, watch};
use tokio::task::{JoinHandle, spawn_blocking};
use twinstep_core::Simulation;
use twinstep_protocol::identity::MatchId;
use twinstep_protocol::packet::closed::CloseCode;
use twinstep_udp::Holder;

use super::clock::HostClock;
use super::config::HostError;
use super::control::Drains;
use super::demand::Demand;
use super::handle::MatchHandle;
use super::incidents::IncidentFiles;
use super::io::ToIo;
use super::isolation::{self, HungMatches, Owned};
use super::journal_file::Journal;
use super::load_monitor::LoadMonitor;
use super::logged;
use super::mailbox::mailbox;
use super::match_inbox::{InboxSender, match_inbox, restarting, seat_of};
use super::observer::Observer;
use super::phase::Phase;
use super::pulse::Pulse;
use super::register::{ListedMatch, Register};
use super::runner::{Ending, Ends, Runner};
use super::thread_pool::{Limited, ThreadPool};
use super::tickets::TicketOffice;
use super::waker::waker;
use super::workers::Workers;
use twinstep_server::Match;

const ERRANDS_MAX: usize = 16;
const OPERATOR_ORDERS_MAX: usize = 64;

pub(super) enum Hosted {
    Starting,
    Runs(JoinHandle<()>),
}

/// The id of a starting match. If this is dropped before [`runs`](Taken::runs), the id is free again.
struct Taken<'h> {
    matches: &'h Mutex<BTreeMap<MatchId, Hosted>>,
    id: MatchId,
}

impl Taken<'_> {
    fn runs(self, hosted: Hosted) {
        let mut matches = self.matches.lock().expect("nothing panics under this lock");
        matches.insert(self.id, hosted);
    }
}

impl Drop for Taken<'_> {
    fn drop(&mut self) {
        let mut matches = self.matches.lock().expect("nothing panics under this lock");
        if matches!(matches.get(&self.id), Some(Hosted::Starting)) {
            matches.remove(&self.id);
        }
    }
}

pub(super) struct MatchSpawner {
    pub(super) incidents: Option<PathBuf>,
    pub(super) saves: Option<PathBuf>,
    pub(super) back_after: Duration,
    pub(super) clock: HostClock,
    pub(super) tickets: TicketOffice,
    pub(super) to_io: mpsc::Sender<ToIo>,
    pub(super) closing: watch::Sender<Option<Ending>>,
    pub(super) matches: Arc<Mutex<BTreeMap<MatchId, Hosted>>>,
    pub(super) register: Register,
    pub(super) observer: Arc<dyn Observer>,
    pub(super) drains: Drains,
    pub(super) demand: Demand,
    pub(super) load_monitor: LoadMonitor,
    pub(super) workers: Workers,
    pub(super) pool: ThreadPool,
    pub(super) encoders: Limited,
    pub(super) lost: HungMatches,
}

impl MatchSpawner {
    pub(super) async fn add_match<S: Simulation>(
        &self,
        id: MatchId,
        mut match_: Match<S>,
        journal: Option<Journal>,
    ) -> Result<MatchHandle<S>, HostError> {
        if self.closing.borrow().is_some() {
            return Err(HostError::Stopped);
        }
        let taken = self.take_id(id)?;
        if journal.as_ref().is_some_and(Journal::is_new) {
            // Encodes the first world: too slow for a thread of the runtime (finding K3-A).
            let begun = spawn_blocking(move || match_.keep_journal().map(|()| match_)).await;
            match_ = begun.map_err(|panic| match panic.try_into_panic() {
                Ok(panic) => std::panic::resume_unwind(panic),
                Err(_) => HostError::Stopped,
            })??;
        }
        let known = self.tickets.of_match(id);
        match_.know_rulings(known.iter().map(|(identity, ruling)| (identity, *ruling)));
        if let Some(folder) = journal.as_ref().and_then(|journal| journal.path().parent()) {
            self.load_monitor.watch_folder(folder);
        }
        let files = self.incident_files::<S>(id, journal.as_ref());
        let slot = self.workers.slot();
        let (waker, listening) = waker(self.workers.clone(), slot);
        let (mut sender, inbox) = match_inbox(waker.clone(), listening);
        sender.if_kept = journal.is_some().then(|| restarting(self.back_after));
        let seated = match_.seat_holders().map(|identity| seat_of(id, identity));
        self.tickets.learn(id, &match_);
        self.open_routes(id, sender, seated.collect()).await?;
        let (send, errands) = mailbox(waker.clone(), ERRANDS_MAX);
        let (orders, operator_orders) = mailbox(waker, OPERATOR_ORDERS_MAX);
        let pulse = Arc::new(Pulse::default());
        let observer = self.observer.match_starts(id);
        let listed = ListedMatch {
            pulse: pulse.clone(),
            orders,
        };
        let ends = Ends {
            clock: self.clock,
            inbox,
            errands,
            to_io: self.to_io.clone(),
            closing: self.closing.subscribe(),
            pulse: pulse.clone(),
            observer: observer.clone(),
            operator_orders,
            back_after: self.back_after,
            pool: self.pool.clone(),
            encoders: self.encoders.clone(),
            saves: self.saves.clone(),
            load_monitor: self.load_monitor.clone(),
            phase: Phase::of(slot),
        };
        let tick = match_.world().tick().0;
        let owned = Owned {
            journal: journal.as_ref().map(Journal::hold),
            lost: self.lost.clone(),
        };
        let runner = Runner::new(
            id,
            match_,
            journal,
            self.tickets.clone(),
            files.clone(),
            ends,
        );
        let end = match self.workers.run(slot, Box::new(runner)) {
            Ok(end) => end,
            Err(error) => {
                observer.over();
                // Sessions must not be routed to a match that does not run, nor wait for it.
                let _ = self.to_io.send(ToIo::Over(id, CloseCode::Fault)).await;
                return Err(HostError::Threads(error));
            }
        };
        self.register.running().insert(id, listed);
        let incidents = files.recent.clone();
        let (over, is_over) = watch::channel(None);
        let (pulse, ways) = (
            (pulse, observer),
            (self.to_io.clone(), self.closing.subscribe()),
        );
        let watching = isolation::watch(id, end, pulse, files, owned, ways, over);
        taken.runs(Hosted::Runs(tokio::spawn(watching)));
        logged::info!("match" = id.0, tick, "match is running");
        Ok(MatchHandle {
            errands: send,
            over: is_over,
            incidents,
        })
    }

    fn incident_files<S: Simulation>(
        &self,
        id: MatchId,
        journal: Option<&Journal>,
    ) -> IncidentFiles {
        let path = journal.map(|journal| journal.path().to_owned());
        let beside = path.as_ref().and_then(|path| path.parent());
        IncidentFiles {
            id,
            folder: self.incidents.clone().or(beside.map(PathBuf::from)),
            journal: path,
            about: format!("{} version {}", S::NAME, S::VERSION),
            recent: Arc::default(),
            observer: self.observer.clone(),
        }
    }

    async fn open_routes(
        &self,
        id: MatchId,
        sender: InboxSender,
        seated: Vec<Holder>,
    ) -> Result<(), HostError> {
        let opened = self.to_io.send(ToIo::Open(id, sender, seated)).await;
        opened.map_err(|_| HostError::Stopped)
    }

    /// Returns `true` if no match has a session, or a seat whose player may reconnect.
    pub(super) fn is_deserted(&self) -> bool {
        let register = self.register.running();
        register.values().all(|listed| listed.pulse.is_deserted())
    }

    /// Waits for the task of a finished match, and removes the match from the register.
    pub(super) async fn forget(&self, id: MatchId) {
        let watching = self.with_matches(|matches| matches.remove(&id));
        if let Some(Hosted::Runs(watching)) = watching {
            // A panicked task has also ended.
            let _ = watching.await;
        }
        self.register.running().remove(&id);
    }

    fn take_id(&self, id: MatchId) -> Result<Taken<'_>, HostError> {
        self.with_matches(|matches| match matches.entry(id) {
            Entry::Occupied(_) => Err(HostError::MatchExists(id)),
            Entry::Vacant(free) => {
                free.insert(Hosted::Starting);
                Ok(Taken {
                    matches: &self.matches,
                    id,
                })
            }
        })
    }

    pub(super) fn with_matches<R>(&self, f: impl FnOnce(&mut BTreeMap<MatchId, Hosted>) -> R) -> R {
        let mut matches = self.matches.lock().expect("nothing panics under this lock");
        matches.retain(|_, hosted| match hosted {
            Hosted::Starting => true,
            Hosted::Runs(watching) => !watching.is_finished(),
        });
        f(&mut matches)
    }
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;
    use std::sync::atomic::{AtomicBool, Ordering};

    use serde::{Deserialize, Serialize, Serializer};
    use twinstep_core::testing::doc::Counter;
    use twinstep_core::{Effects, Frame, Never};

    use super::*;
    use crate::tickets::TicketPrint;
    use twinstep_server::config::MatchConfig;
    use twinstep_server::hooks::{Decision, HookContext};

    fn spawner() -> (MatchSpawner, mpsc::Receiver<ToIo>) {
        let (to_io, to_io_receiver) = mpsc::channel(64);
        let clock = HostClock::start();
        let spawner = MatchSpawner {
            incidents: None,
            saves: None,
            back_after: Duration::ZERO,
            clock,
            tickets: TicketOffice::start(TicketPrint::of_a_test(Counter::NAME), None),
            to_io,
            closing: watch::Sender::new(None),
            matches: Arc::default(),
            register: Register::default(),
            observer: Arc::new(()),
            drains: Drains::default(),
            demand: Demand::default(),
            load_monitor: LoadMonitor::default(),
            workers: Workers::new("spawner", 1, clock),
            pool: ThreadPool::new(),
            encoders: Limited::new(ThreadPool::new(), 1),
            lost: HungMatches::new(clock),
        };
        (spawner, to_io_receiver)
    }

    /// Regression: players were routed to the match and waited there, and its id was never free again.
    #[tokio::test]
    async fn a_match_without_a_thread_ends_and_can_be_started_again() {
        let (spawner, mut to_io_receiver) = spawner();
        let new_match = || {
            let unanswered = |_: &HookContext<'_, Counter>, _, _: &_| Decision::Unanswered;
            let config = MatchConfig::action();
            Match::new(config, Counter::default(), Arc::new(()), unanswered).unwrap()
        };
        spawner.workers.starve(true);
        let refused = spawner.add_match(MatchId(7), new_match(), None).await;
        assert!(matches!(refused, Err(HostError::Threads(_))));
        assert!(matches!(
            to_io_receiver.try_recv(),
            Ok(ToIo::Open(MatchId(7), ..))
        ));
        assert!(matches!(
            to_io_receiver.try_recv(),
            Ok(ToIo::Over(MatchId(7), CloseCode::Fault))
        ));
        assert!(spawner.register.running().is_empty());
        spawner.workers.starve(false);
        let handle = spawner
            .add_match(MatchId(7), new_match(), None)
            .await
            .unwrap();
        assert!(handle.inspect(|match_| match_.is_deserted()).await.unwrap());
        // Finding K3-L3: without an admin port, the host never removed finished matches.
        let closes = |match_: &mut Match<Counter>| match_.close(CloseCode::MatchOver);
        handle.inspect(closes).await.unwrap();
        handle.ended().await;
        spawner
            .add_match(MatchId(8), new_match(), None)
            .await
            .unwrap();
        let known: Vec<MatchId> = spawner.register.running().keys().copied().collect();
        assert_eq!(known, [MatchId(8)]);
        spawner.closing.send_replace(Some(Ending::Abandoned));
        spawner.workers.shut_down();
    }

    /// A world whose encoding is slow, once.
    #[derive(Clone, Debug, Deserialize)]
    struct Slow;

    static IS_SLOW: AtomicBool = AtomicBool::new(false);
    const SLOW: Duration = Duration::from_millis(500);

    impl Serialize for Slow {
        fn serialize<Z: Serializer>(&self, to: Z) -> Result<Z::Ok, Z::Error> {
            if IS_SLOW.swap(false, Ordering::Relaxed) {
                std::thread::sleep(SLOW);
            }
            to.serialize_unit()
        }
    }

    impl Simulation for Slow {
        const NAME: &'static str = "slow";
        const VERSION: u32 = 1;
        type Rules = ();
        type Input = u8;
        type Command = Never;
        type Query = Never;
        type Outcome = Never;
        type Cue = Never;

        fn step(&mut self, _: &Frame<'_, Self>, _: &mut Effects<Self>) {}
    }

    /// Finding K3-A: a large first world was encoded on one of the runtime's two threads.
    #[tokio::test]
    async fn the_first_world_is_encoded_off_the_runtime_threads() {
        let name = format!("twinstep-match-spawner-{}.journal", std::process::id());
        let path = std::env::temp_dir().join(name);
        let _ = std::fs::remove_file(&path);
        let (spawner, _tells) = spawner();
        let unanswered = |_: &HookContext<'_, Slow>, _, _: &_| Decision::Unanswered;
        let match_ = Match::new(MatchConfig::action(), Slow, Arc::new(()), unanswered).unwrap();
        let journal = Journal::create(&path).unwrap();
        IS_SLOW.store(true, Ordering::Relaxed);
        let began = spawner.clock.now();
        let others_run = async {
            tokio::time::sleep(SLOW / 50).await;
            spawner.clock.now() - began
        };
        let (added, took) = tokio::join!(
            spawner.add_match(MatchId(7), match_, Some(journal)),
            others_run
        );
        added.unwrap();
        assert!(!IS_SLOW.load(Ordering::Relaxed), "it was encoded");
        assert!(took < SLOW / 2, "{took:?}");
        spawner.closing.send_replace(Some(Ending::Abandoned));
        spawner.workers.shut_down();
        std::fs::remove_file(&path).unwrap();
    }
}
