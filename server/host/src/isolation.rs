//! Watches each match, so that a panic or a hang in one match does not stop the others.
//!
//! ```text
//!  a worker     catch_unwind(round) ──beat──beat──beat── … no more
//!  its watch    (a host task)      ─sample─sample─sample─ … 10 times the same beat ─▶ condemned: it is over,
//!                                                            its sessions are closed, its worker is lost
//! ```
//!
//! The watch counts samples instead of time, because a pause of the whole process stops samples as well as beats.
//!
//! Invariant: a condemned match loses its sessions, its worker and its journal, so that it can be resumed from the
//! journal.

use std::collections::BTreeMap;
use std::pin::pin;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use tokio::sync::{mpsc, oneshot, watch};
use tokio::task::spawn_blocking;
use tokio::time::{MissedTickBehavior, timeout};
use twinstep_protocol::identity::MatchId;
use twinstep_protocol::packet::closed::CloseCode;

use super::clock::HostClock;
use super::incidents::IncidentFiles;
use super::io::ToIo;
use super::journal_file::JournalHold;
use super::logged;
use super::observer::MatchObserver;
use super::pulse::Pulse;
use super::workers::Ended;
use twinstep_server::incident::{Incident, Trouble};

const SAMPLE_EVERY: Duration = Duration::from_millis(500);
/// A match that shows the same beat in this many consecutive samples counts as hung.
const SAME_BEATS_MAX: u32 = 10;
/// The maximum wait for the disk when an incident file is written or a journal is taken away.
const DISK_PATIENCE: Duration = Duration::from_secs(5);
/// Sessions are closed after waiting for the disk for at most this time.
const DISK_SOON: Duration = Duration::from_millis(500);
/// A match that hung this many times within [`HANGS_WITHIN`] is not created again, because each hang costs a thread.
const HANGS_MAX: usize = 3;
const HANGS_WITHIN: Duration = Duration::from_secs(3_600);

#[derive(Clone)]
pub(super) struct HungMatches {
    clock: HostClock,
    hung: Arc<Mutex<BTreeMap<MatchId, Hung>>>,
}

#[derive(Default)]
struct Hung {
    at: Vec<Duration>,
    holds_journal: bool,
}

impl HungMatches {
    pub(super) fn new(clock: HostClock) -> HungMatches {
        HungMatches {
            clock,
            hung: Arc::default(),
        }
    }

    fn lock(&self) -> MutexGuard<'_, BTreeMap<MatchId, Hung>> {
        self.hung.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn record(&self, id: MatchId, holds_journal: bool) {
        let now = self.clock.now();
        let mut hung = self.lock();
        for hung in hung.values_mut() {
            hung.at.retain(|at| now.saturating_sub(*at) < HANGS_WITHIN);
        }
        hung.retain(|_, hung| hung.holds_journal || !hung.at.is_empty());
        let hung = hung.entry(id).or_default();
        hung.at.push(now);
        hung.holds_journal |= holds_journal;
    }

    pub(super) fn holds_journal(&self, id: MatchId) -> bool {
        self.lock().get(&id).is_some_and(|hung| hung.holds_journal)
    }

    /// Returns `true` if this match has recently hung too often to be created again.
    pub(super) fn hangs(&self, id: MatchId) -> bool {
        let now = self.clock.now();
        let lately = |at: &&Duration| now.saturating_sub(**at) < HANGS_WITHIN;
        let hung = self.lock();
        hung.get(&id)
            .is_some_and(|hung| hung.at.iter().filter(lately).count() >= HANGS_MAX)
    }
}

pub(super) struct Owned {
    pub(super) journal: Option<Arc<JournalHold>>,
    pub(super) lost: HungMatches,
}

/// Watches a match until it ends, and then closes its sessions, unless the match was abandoned.
pub(super) async fn watch<E>(
    id: MatchId,
    mut end: oneshot::Receiver<Ended>,
    (pulse, observer): (Arc<Pulse>, Arc<dyn MatchObserver>),
    files: IncidentFiles,
    owned: Owned,
    (to_io, closing): (mpsc::Sender<ToIo>, watch::Receiver<Option<E>>),
    over: watch::Sender<Option<CloseCode>>,
) {
    let mut samples = tokio::time::interval(SAMPLE_EVERY);
    // After a process pause, a burst of samples would leave the match no time to beat in between.
    samples.set_missed_tick_behavior(MissedTickBehavior::Delay);
    let (mut seen, mut same) = (0, 0);
    let trouble = loop {
        tokio::select! {
            ended = &mut end => match ended {
                Ok(Ok(code)) => break Ok(code),
                Ok(Err(panic)) => {
                    observer.panicked();
                    break Err((Trouble::Match, panic));
                }
                Err(_) => break Err((Trouble::Match, "the thread that ran it ended".to_owned())),
            },
            _ = samples.tick() => {
                let beats = pulse.beats();
                same = if beats == seen { same + 1 } else { 0 };
                seen = beats;
                // While a host shuts down, its matches wait for each other; the host bounds that wait. A match that has
                // ended cleanly may wait for its disk.
                let is_ending = closing.borrow().is_some() || pulse.has_ended();
                if same >= SAME_BEATS_MAX && !is_ending {
                    pulse.condemn();
                    let silence = SAMPLE_EVERY * SAME_BEATS_MAX;
                    break Err((Trouble::MatchHangs, format!("no progress for {} s", silence.as_secs())));
                }
            }
        }
    };
    observer.over();
    let mut written = None;
    let code = match trouble {
        Ok(Some(code)) => {
            logged::info!("match" = id.0, code = code.name(), "match ended");
            code
        }
        // Ends as if the process had been killed: with a close code, the clients would not reconnect.
        Ok(None) => return,
        Err((trouble, message)) => {
            let tick = pulse.glance().tick;
            let incident = Incident::new(tick, trouble, &message);
            written = Some(spawn_blocking(move || files.write(&incident)));
            CloseCode::Fault
        }
    };
    let is_condemned = pulse.is_condemned();
    let mut disk = pin!(async move {
        if let Some(written) = written {
            let _ = timeout(DISK_PATIENCE, written).await;
        }
        if is_condemned {
            owned.take_back(id).await;
        }
    });
    // A player who reconnects immediately should find the journal free; but a hung disk must not delay players.
    let is_done = timeout(DISK_SOON, &mut disk).await.is_ok();
    let _ = to_io.send(ToIo::Over(id, code)).await;
    if !is_done {
        disk.await;
    }
    // Last, when the journal is free or given up: callers of `ended` may open it.
    over.send_replace(Some(code));
}

impl Owned {
    /// Takes the journal of a match away from its thread, which may never return.
    async fn take_back(self, id: MatchId) {
        let mut is_held = false;
        if let Some(journal) = self.journal {
            let taken = spawn_blocking(move || journal.take_away());
            let failed = match timeout(DISK_PATIENCE, taken).await {
                Ok(Ok(Ok(()))) => None,
                Ok(Ok(Err(error))) => Some(error.to_string()),
                Ok(Err(_)) => None,
                Err(_) => Some("the disk does not answer".to_owned()),
            };
            is_held = failed.is_some();
            if let Some(error) = failed {
                logged::error!(
                    "match" = id.0,
                    error,
                    "the journal of a match that hung cannot be released: restart this server, then the match can be resumed"
                );
            }
        }
        self.lost.record(id, is_held);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn files() -> IncidentFiles {
        IncidentFiles {
            id: MatchId(1),
            folder: None,
            journal: None,
            about: String::new(),
            recent: Arc::default(),
            observer: Arc::new(()),
        }
    }

    fn owned() -> Owned {
        Owned {
            journal: None,
            lost: HungMatches::new(HostClock::start()),
        }
    }

    /// A dropped server sometimes sent a close code, after which the clients did not reconnect.
    #[tokio::test]
    async fn clients_of_an_abandoned_match_get_no_close_code() {
        for (ended, has_code) in [(None, false), (Some(CloseCode::MatchOver), true)] {
            let (end, ends) = oneshot::channel();
            let (to_io, mut received) = mpsc::channel(8);
            let (over, shown) = watch::channel(None);
            end.send(Ok(ended)).unwrap();
            let closing = watch::channel(None::<()>).1;
            let ways = (to_io, closing);
            let pulse = (Arc::default(), Arc::new(()) as Arc<dyn MatchObserver>);
            super::watch(MatchId(1), ends, pulse, files(), owned(), ways, over).await;
            assert_eq!(received.try_recv().is_ok(), has_code);
            assert_eq!(*shown.borrow(), ended);
        }
    }

    /// Finding K3-L8: a match that had ended cleanly was condemned because its disk was slow.
    #[tokio::test]
    async fn an_ended_match_may_wait_for_its_disk() {
        for (has_ended, is_condemned) in [(true, false), (false, true)] {
            let (end, ends) = oneshot::channel();
            let (to_io, _heard) = mpsc::channel(8);
            let (over, shown) = watch::channel(None);
            let pulse = Arc::new(Pulse::default());
            if has_ended {
                pulse.show_end();
            }
            let watched = (pulse.clone(), Arc::new(()) as Arc<dyn MatchObserver>);
            let ways = (to_io, watch::channel(None::<()>).1);
            let disk = async {
                tokio::time::sleep(SAMPLE_EVERY * (SAME_BEATS_MAX + 2)).await;
                let _ = end.send(Ok(Some(CloseCode::MatchOver)));
            };
            let watching = super::watch(MatchId(1), ends, watched, files(), owned(), ways, over);
            tokio::join!(watching, disk);
            assert_eq!(pulse.is_condemned(), is_condemned);
            let code = match is_condemned {
                true => CloseCode::Fault,
                false => CloseCode::MatchOver,
            };
            assert_eq!(*shown.borrow(), Some(code));
        }
    }
}
