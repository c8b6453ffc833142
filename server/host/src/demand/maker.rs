//! The maker: a task that receives requests for matches, has the matches created, and removes finished matches.
//!
//! Invariant: the task never blocks. Templates and files run on threads for blocking work, each match in its own task,
//! so a match that is slow to create or to end does not delay other matches.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;

use tokio::sync::{mpsc, oneshot};
use tokio::task::{JoinError, JoinSet};
use tokio::time::MissedTickBehavior;
use twinstep_core::Simulation;
use twinstep_protocol::identity::MatchId;
use twinstep_protocol::packet::closed::CloseCode;
use twinstep_protocol::text::line;
use twinstep_udp::{TicketClaims, TicketRefusal};

use super::counts::{MatchEnd, NotMade};
use super::pace::Pace;
use super::{Demand, Making, OnDemand, Wanted, folder};
use crate::config::HostError;
use crate::handle::MatchHandle;
use crate::io::ToIo;
use crate::journal_file::{Journal, JournalFileError};
use crate::logged;
use crate::mailbox::Mailbox;
use crate::match_spawner::MatchSpawner;
use crate::matches::Host;
use crate::orders::MatchOrder;
use twinstep_server::Match;

const SWEEP_EVERY: Duration = Duration::from_millis(250);

impl Host {
    /// Starts creating matches when players connect for them, in addition to [added](Host::add_match) matches. A second
    /// call has no effect.
    pub fn make_on_demand<S: Simulation>(&self, matches: OnDemand<S>) {
        let spawner = self.spawner();
        let matches = Arc::new(matches);
        let Some(wanted) = spawner.demand.begin(matches.at_once) else {
            return;
        };
        if let Some(folder) = &matches.journals {
            spawner.load_monitor.watch_folder(folder);
        }
        let maker = Maker {
            demand: spawner.demand.clone(),
            spawner: spawner.clone(),
            at_once: matches.at_once,
            pace: Pace::new(matches.per_second),
            deserted_after: matches.deserted_after,
            plan: Arc::new(Plan {
                matches,
                spawner: spawner.clone(),
            }),
            known: BTreeMap::new(),
            work: JoinSet::new(),
            makes: Vec::new(),
        };
        let task = tokio::spawn(maker.run(wanted)).abort_handle();
        let mut making = self.maker.lock().expect("nothing panics under this lock");
        *making = Some(Making::new(task));
    }
}

struct Plan<S: Simulation> {
    matches: Arc<OnDemand<S>>,
    spawner: Arc<MatchSpawner>,
}

type Prepared<S> = Result<(Match<S>, Option<Journal>), NotMade>;

enum Stage {
    Making,
    Runs {
        deserted_since: Option<Deserted>,
    },
    /// The I/O task and the match are checking whether it is really deserted.
    Resting,
}

/// The time since which a match is deserted, and its number of visits
/// ([`Pulse::visits`](super::super::pulse::Pulse::visits)) at that time.
#[derive(Clone, Copy)]
struct Deserted {
    since: Duration,
    visits: u64,
}

enum Done<S: Simulation> {
    Made(MatchId, Result<MatchHandle<S>, NotMade>),
    /// A deserted match's response to the request to end: `true` if it ends.
    Rested(MatchId, bool),
    Gone(MatchId, Option<CloseCode>),
}

struct Maker<S: Simulation> {
    demand: Demand,
    spawner: Arc<MatchSpawner>,
    at_once: usize,
    pace: Pace,
    deserted_after: Duration,
    plan: Arc<Plan<S>>,
    known: BTreeMap<MatchId, Stage>,
    work: JoinSet<Done<S>>,
    makes: Vec<(tokio::task::Id, MatchId)>,
}

impl<S: Simulation> Maker<S> {
    async fn run(mut self, mut wanted: mpsc::Receiver<Wanted>) {
        let mut sweep = tokio::time::interval(SWEEP_EVERY);
        sweep.set_missed_tick_behavior(MissedTickBehavior::Delay);
        loop {
            tokio::select! {
                request = wanted.recv() => match request {
                    Some(request) => self.handle_wanted(request).await,
                    None => return,
                },
                Some(done) = self.work.join_next_with_id() => self.handle_done(done).await,
                _ = sweep.tick() => self.sweep(),
            }
            self.demand.show_alive(self.known.len());
        }
    }

    async fn handle_wanted(&mut self, (session, ticket): Wanted) {
        let id = ticket.match_id;
        if self.known.contains_key(&id) {
            // The session is routed when the match runs. If the match has ended by then, it is requested again.
            return;
        }
        if let Err(why) = self.may_be_made(&ticket) {
            self.spawner.observer.match_not_made(why);
            logged::info!(
                "match" = id.0,
                session = session.0,
                identity = ?line(&ticket.identity.name),
                code = why.name(),
                "match not started for this ticket"
            );
            let refusal = ToIo::Refuse(session, why.code());
            let _ = self.spawner.to_io.send(refusal).await;
            return;
        }
        self.known.insert(id, Stage::Making);
        let plan = self.plan.clone();
        let making = self
            .work
            .spawn(async move { Done::Made(id, plan.make(id).await) });
        self.makes.push((making.id(), id));
    }

    /// Checks permanent reasons first, so that they are reported before temporary ones.
    fn may_be_made(&mut self, ticket: &TicketClaims) -> Result<(), NotMade> {
        let refusal = self.spawner.tickets.ledger().refusal(ticket);
        if refusal == Some(TicketRefusal::Superseded) {
            return Err(NotMade::Superseded);
        }
        if self.spawner.drains.has_begun() {
            return Err(NotMade::Draining);
        }
        if self.known.len() >= self.at_once {
            return Err(NotMade::Matches);
        }
        match self.pace.take(self.spawner.clock.now()) {
            true => Ok(()),
            false => Err(NotMade::Rate),
        }
    }

    async fn handle_done(&mut self, done: Result<(tokio::task::Id, Done<S>), JoinError>) {
        let task = done.as_ref().map_or_else(JoinError::id, |(task, _)| *task);
        let made = self.makes.iter().position(|(makes, _)| *makes == task);
        let made = made.map(|at| self.makes.swap_remove(at).1);
        let done = match (done, made) {
            (Ok((_, done)), _) => done,
            // Otherwise the id would stay taken, and its players would wait for a match that never starts.
            (Err(panic), Some(id)) => {
                logged::error!("match" = id.0, error = %panic, "match not started: internal panic");
                Done::Made(id, Err(NotMade::Failed))
            }
            (Err(_), None) => return,
        };
        match done {
            Done::Made(id, Ok(match_)) => {
                self.spawner.observer.match_made();
                let deserted_since = None;
                self.known.insert(id, Stage::Runs { deserted_since });
                let plan = self.plan.clone();
                self.work
                    .spawn(async move { Done::Gone(id, plan.see_off(id, match_).await) });
            }
            Done::Made(id, Err(why)) => {
                // Other reasons are logged where they are found.
                if why == NotMade::Id {
                    logged::info!(
                        "match" = id.0,
                        code = why.name(),
                        "match not started for a ticket: the game knows no such match"
                    );
                }
                self.spawner.observer.match_not_made(why);
                self.known.remove(&id);
                let _ = self
                    .spawner
                    .to_io
                    .send(ToIo::RefuseAll(id, why.code()))
                    .await;
            }
            Done::Rested(id, ends) => {
                if let Some(stage @ Stage::Resting) = self.known.get_mut(&id)
                    && !ends
                {
                    let deserted_since = None;
                    *stage = Stage::Runs { deserted_since };
                }
            }
            Done::Gone(id, code) => {
                let end = match (self.known.remove(&id), code) {
                    (Some(Stage::Resting), _) => MatchEnd::Deserted,
                    (_, code) => code.map_or(MatchEnd::Kept, MatchEnd::of),
                };
                logged::info!("match" = id.0, code = end.name(), "match id is free again");
                self.spawner.observer.match_ended(end);
                let _ = self.spawner.to_io.send(ToIo::Free(id)).await;
            }
        }
    }

    /// Asks matches that have been deserted for long enough to end.
    fn sweep(&mut self) {
        let now = self.spawner.clock.now();
        let register = self.spawner.register.running();
        for (id, stage) in &mut self.known {
            let Stage::Runs { deserted_since } = stage else {
                continue;
            };
            let Some(listed) = register.get(id) else {
                continue;
            };
            if !listed.pulse.is_deserted() {
                *deserted_since = None;
                continue;
            }
            let visits = listed.pulse.visits();
            let began = deserted_since.filter(|deserted| deserted.visits == visits);
            let since = began.map_or(now, |deserted| deserted.since);
            *deserted_since = Some(Deserted { since, visits });
            if now.saturating_sub(since) < self.deserted_after {
                continue;
            }
            *stage = Stage::Resting;
            let (id, orders, to_io) = (*id, listed.orders.clone(), self.spawner.to_io.clone());
            self.work
                .spawn(async move { Done::Rested(id, rest(id, &orders, &to_io).await) });
        }
    }
}

/// Asks a match to end if it is deserted. Until it responds, new sessions wait. Returns `true` if it ends.
async fn rest(id: MatchId, orders: &Mailbox<MatchOrder>, to_io: &mpsc::Sender<ToIo>) -> bool {
    let (answer, is_deserted) = oneshot::channel();
    let asked = to_io.send(ToIo::Rest(id, answer)).await.is_ok();
    if !asked || !is_deserted.await.unwrap_or(false) {
        return false;
    }
    let (answer, ends) = oneshot::channel();
    let ends = match orders.send(MatchOrder::EndDeserted(answer)).await {
        // A match that is gone has ended.
        Ok(()) => ends.await.unwrap_or(true),
        Err(_) => true,
    };
    if !ends {
        let _ = to_io.send(ToIo::Wake(id)).await;
    }
    ends
}

impl<S: Simulation> Plan<S> {
    async fn make(self: Arc<Self>, id: MatchId) -> Result<MatchHandle<S>, NotMade> {
        let plan = self.clone();
        let made = tokio::task::spawn_blocking(move || plan.prepare(id)).await;
        let (match_, journal) = match made {
            Ok(Ok(made)) => made?,
            Ok(Err(HostError::Journal(error @ JournalFileError::InUse { .. }))) => {
                if self.spawner.lost.holds_journal(id) {
                    logged::error!("match" = id.0, %error, "match not started: its earlier run hangs and still holds the journal; restart this server");
                    return Err(NotMade::Failed);
                }
                logged::warn!("match" = id.0, %error, "match not started: another process holds its journal (another server plays this match, or has not let go of it yet); the next ticket tries again");
                return Err(NotMade::Elsewhere);
            }
            Ok(Err(error @ HostError::Journal(_))) => {
                logged::error!("match" = id.0, %error, "match not started: its journal cannot be used; repair it or move it away, and the next ticket starts the match");
                return Err(NotMade::Failed);
            }
            Ok(Err(error)) => {
                logged::error!("match" = id.0, %error, "match not started");
                return Err(NotMade::Failed);
            }
            Err(panic) => {
                logged::error!("match" = id.0, error = %panic, "match not started: the game's match template panicked");
                return Err(NotMade::Failed);
            }
        };
        match self.spawner.add_match(id, match_, journal).await {
            Ok(match_) => Ok(match_),
            Err(HostError::Stopped) => Err(NotMade::Draining),
            Err(error) => {
                logged::error!("match" = id.0, %error, "match not started");
                Err(NotMade::Failed)
            }
        }
    }

    /// Prepares match `id`: builds it from its blueprint, or reads its journal. Call it on a thread for blocking work,
    /// because it runs the game's own code and reads files.
    fn prepare(&self, id: MatchId) -> Result<Prepared<S>, HostError> {
        if self.spawner.lost.hangs(id) {
            logged::error!(
                "match" = id.0,
                "match not started: it hung three times within the last hour; the next ticket can start it an hour after the first of these, or after a restart of this server"
            );
            return Ok(Err(NotMade::Failed));
        }
        let OnDemand {
            template,
            journals,
            durability,
            on_journal_failure,
            ..
        } = &*self.matches;
        if let Some(full) = self.spawner.load_monitor.full() {
            // A player who reconnects to an interrupted match has a seat there.
            let goes_on = journals.as_ref().map(|folder| folder::goes_on(folder, id));
            if !goes_on.transpose()?.unwrap_or(false) {
                return Ok(Err(full.into()));
            }
        }
        let Some(blueprint) = template.blueprint(id) else {
            return Ok(Err(NotMade::Id));
        };
        let blueprint = blueprint.dated();
        let Some(folder) = journals else {
            return Ok(Ok((blueprint.make()?, None)));
        };
        let (match_, journal) = folder::make_in(folder, id, blueprint)?;
        let journal = journal
            .durability(*durability)
            .on_failure(*on_journal_failure);
        Ok(Ok((match_, Some(journal))))
    }

    /// Waits until a match is over, and numbers its journal. Returns its close code.
    async fn see_off(self: Arc<Self>, id: MatchId, match_: MatchHandle<S>) -> Option<CloseCode> {
        let code = match_.ended().await;
        drop(match_);
        self.spawner.forget(id).await;
        let settled = tokio::task::spawn_blocking(move || match &self.matches.journals {
            Some(folder) => folder::settle(folder, id),
            None => Ok(None),
        });
        if let Ok(Err(error)) = settled.await {
            logged::error!("match" = id.0, %error, "cannot rename the journal of an ended match; retrying at the next ticket for it");
        }
        code
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::clock::HostClock;
    use crate::mailbox::mailbox;
    use crate::waker::waker;
    use crate::workers::Workers;

    /// Calls `rest`. The I/O task answers `is_deserted`; the match answers `ends`, or is gone if `None`. Returns the
    /// result of `rest`, and whether the I/O task was asked to wake the match's sessions.
    async fn rested(is_deserted: bool, ends: Option<bool>) -> (bool, bool) {
        let workers = Workers::new("rests", 1, HostClock::start());
        let (waker, _listening) = waker(workers.clone(), workers.slot());
        let (orders, mut ordered) = mailbox(waker, 4);
        let (to_io, mut orders_to_io) = mpsc::channel(4);
        let answers = tokio::spawn(async move {
            let Some(ToIo::Rest(MatchId(7), answer)) = orders_to_io.recv().await else {
                panic!("the I/O task is asked first");
            };
            answer.send(is_deserted).unwrap();
            match (is_deserted, ends) {
                (true, Some(ends)) => match ordered.recv().await {
                    Some(MatchOrder::EndDeserted(answer)) => answer.send(ends).unwrap(),
                    _ => panic!("the match is asked next"),
                },
                // The match is gone, or must not be asked.
                _ => drop(ordered),
            }
            matches!(orders_to_io.recv().await, Some(ToIo::Wake(MatchId(7))))
        });
        let ends = rest(MatchId(7), &orders, &to_io).await;
        drop((orders, to_io));
        (ends, answers.await.unwrap())
    }

    /// If a match that continues is not woken, new sessions wait there forever.
    #[tokio::test]
    async fn a_deserted_match_that_continues_is_woken() {
        assert_eq!(rested(true, Some(true)).await, (true, false));
        assert_eq!(rested(true, Some(false)).await, (false, true));
        // The I/O task never stopped routing to a match with players.
        assert_eq!(rested(false, None).await, (false, false));
        assert_eq!(rested(true, None).await, (true, false));
    }
}
