//! One match, round by round: time, packets and answers go in, outputs are carried out in their order.
//!
//! ```text
//!  what it slept through ─▶ hear all ─▶ ending? ─▶ a tick, if it is due ─▶ carry out (`runner/outputs.rs`) ─▶ beat ─▶ due again
//! ```
//!
//! Invariant: a match that was declared over while it stood still does nothing when it wakes.

use std::sync::Arc;
use std::time::Duration;

use crossbeam_channel::unbounded;
use tokio::sync::mpsc::{Receiver, Sender};
use tokio::sync::{oneshot, watch};
use twinstep_core::bounds::SPARSE_AFTER;
use twinstep_core::{Simulation, Tick};
use twinstep_protocol::packet::closed::CloseCode;
use twinstep_protocol::text::line;
use twinstep_udp::TicketClaims;

use super::clock::HostClock;
use super::incidents::IncidentFiles;
use super::io::ToIo;
use super::jobs::Jobs;
use super::journal_file::Journal;
use super::lineages::LineageKeeper;
use super::load_monitor::LoadMonitor;
use super::logged;
use super::match_inbox::{FromIo, MatchInbox, restarting};
use super::observer::{HostStopwatch, MatchNumbers, MatchObserver};
use super::orders::MatchOrder;
use super::packets::Spare;
use super::phase::{Phase, REST, deep_ticks, next_moment};
use super::pulse::Pulse;
use super::rejoin::RejoinTickets;
use super::thread_pool::{Limited, ThreadPool};
use super::workers::{Next, Play};
use twinstep_server::Encoded;
use twinstep_server::SessionId;
use twinstep_server::{Folded, Match, Unfolded};

mod aside;
mod ordering;
mod outputs;
#[cfg(test)]
mod tests;

/// Something to do with the match between two steps.
pub(super) type Errand<S> = Box<dyn FnOnce(&mut Match<S>) + Send>;

/// A tick that was folded to, for a client that differs there.
type Fold = (SessionId, Tick, Result<Folded, Unfolded>);

/// Packets that are taken before the clock is looked at again.
const BATCH: usize = 256;
/// Looks at the match that are taken before that, however many there are.
const ERRANDS_MAX: usize = 16;
/// A match that is asked to end waits at most so long for the end of its turn, so that its last world is written down.
const SEAL_PATIENCE: Duration = Duration::from_millis(250);
/// See [`Runner::catch_up_max`].
const CATCH_UP_MAX: Duration = Duration::from_millis(2);
/// Worlds of more bytes than this are encoded on a thread of their own: smaller ones take a few hundredths of a millisecond.
const ASIDE_BYTES: usize = 128 << 10;
/// A match looks for what came at least so often, also where its ticks are longer: who joins waits for it.
const NAP: Duration = Duration::from_millis(20);

/// How a host ends.
#[derive(Clone, Copy, Debug)]
pub(super) enum Ending {
    /// Its clients are told why.
    Told(CloseCode),
    /// As if the process had been killed.
    Abandoned,
}

/// What connects a match to the rest of its host.
pub(super) struct Ends<S: Simulation> {
    pub(super) clock: HostClock,
    pub(super) inbox: MatchInbox,
    pub(super) errands: Receiver<Errand<S>>,
    pub(super) to_io: Sender<ToIo>,
    pub(super) closing: watch::Receiver<Option<Ending>>,
    pub(super) pulse: Arc<Pulse>,
    pub(super) observer: Arc<dyn MatchObserver>,
    pub(super) operator_orders: Receiver<MatchOrder>,
    /// When a match that is kept is expected to go on.
    pub(super) back_after: Duration,
    pub(super) pool: ThreadPool,
    pub(super) encoders: Limited,
    /// What there is too much of in the process.
    pub(super) load_monitor: LoadMonitor,
    /// At which moments it is due.
    pub(super) phase: Phase,
}

/// A match and all that it is connected to.
pub(super) struct Runner<S: Simulation> {
    id: u64,
    match_: Match<S>,
    has_begun: bool,
    /// Why it ends, unless the match itself says so.
    reason: CloseCode,
    journal: Option<Journal>,
    tickets: RejoinTickets,
    /// Where it is remembered beside the journal which tickets are out of date.
    lineages: LineageKeeper,
    files: IncidentFiles,
    ends: Ends<S>,
    jobs: Jobs<S::Outcome>,
    /// Folds of the journal that were asked for: one at a time.
    folds: (
        crossbeam_channel::Sender<Fold>,
        crossbeam_channel::Receiver<Fold>,
    ),
    folding: bool,
    /// Worlds that were to be encoded.
    encoded: (
        crossbeam_channel::Sender<Encoded>,
        crossbeam_channel::Receiver<Encoded>,
    ),
    /// The match is to end here for another process, by then at the latest, and who waits for that.
    released: Option<(Duration, oneshot::Sender<Result<u32, &'static str>>)>,
    /// Nobody heard of it in time, so it was not to be looked at before.
    rested_until: Duration,
    /// How long a tick took that it slept through, when it last rested.
    tick_cost: Duration,
    /// What it sleeps through is played within this, or it sleeps less.
    catch_up_max: Duration,
    /// Whether it rests.
    rests: bool,
    /// Asked to end, it waits for the end of its turn until then at the latest.
    stop_by: Option<Duration>,
    /// It is closed with its host, and its players were told. Its journal settles in the next round: a disk takes
    /// milliseconds, and the players of all other matches are told before.
    has_parted: bool,
    /// What is to be told when the journal is settled.
    orders: Vec<ToIo>,
    /// Room for its packets.
    spare: Spare,
    /// Whom the match does not know, and what they are to be told: behind what the match itself says, so that whose session
    /// it ended in this round hears its reason, and not that of whoever is unknown.
    unknown: Vec<(SessionId, CloseCode)>,
    /// A turn is among it that was sealed then.
    has_sealed: Option<Duration>,
    /// When it was last said that the match goes on without a journal.
    no_journal_warned: Option<Duration>,
    /// When a client's report was logged last.
    reported: Option<Duration>,
    lost: u64,
}

impl<S: Simulation> Runner<S> {
    pub(super) fn new(
        id: u64,
        mut match_: Match<S>,
        journal: Option<Journal>,
        tickets: RejoinTickets,
        lineages: LineageKeeper,
        files: IncidentFiles,
        ends: Ends<S>,
    ) -> Self {
        match_.time_by(HostStopwatch {
            clock: ends.clock,
            observer: ends.observer.clone(),
        });
        match_.encode_aside(ASIDE_BYTES);
        Runner {
            id,
            match_,
            has_begun: false,
            reason: CloseCode::MatchOver,
            journal,
            tickets,
            lineages,
            files,
            jobs: Jobs::new(ends.pool.clone()),
            folds: unbounded(),
            ends,
            folding: false,
            encoded: unbounded(),
            released: None,
            rested_until: Duration::ZERO,
            tick_cost: Duration::MAX,
            catch_up_max: CATCH_UP_MAX,
            rests: false,
            stop_by: None,
            has_parted: false,
            orders: Vec::new(),
            spare: Spare::default(),
            unknown: Vec::new(),
            has_sealed: None,
            no_journal_warned: None,
            reported: None,
            lost: 0,
        }
    }

    /// What came meanwhile is heard in every round: a match whose ticks are late must not become deaf. Whether there may
    /// be more.
    fn handle_all(&mut self) -> bool {
        while let Ok(order) = self.ends.operator_orders.try_recv() {
            self.apply(order);
        }
        while let Some((job, outcome)) = self.jobs.finished() {
            self.take(job, outcome);
        }
        if let Ok((peer, tick, folded)) = self.folds.1.try_recv() {
            self.folding = false;
            self.match_.hand_evidence(peer, tick, folded);
        }
        while let Ok(encoded) = self.encoded.1.try_recv() {
            self.match_.hand_world(encoded);
        }
        for _ in 0..ERRANDS_MAX {
            let Ok(errand) = self.ends.errands.try_recv() else {
                break;
            };
            errand(&mut self.match_);
        }
        let mut heard = 0;
        while heard < BATCH
            && let Some(next) = self.ends.inbox.next()
        {
            self.handle_event(next);
            heard += 1;
        }
        heard == BATCH
    }

    /// Whether it was declared over while it stood still. Then it does nothing any more: its players were told, and
    /// another process may have its journal soon.
    fn is_condemned(&self) -> bool {
        self.ends.pulse.is_condemned()
    }

    /// Before anybody is heard: its journal begins, and its clock, at the last moment of its phase.
    fn begin(&mut self) {
        let began = self.ends.phase.last(self.ends.clock.now(), self.tick());
        self.match_.advance(began);
        self.carry_out();
        self.show();
    }

    /// Shows that the match is alive, how it is and what it has counted.
    fn show(&self) {
        self.ends.pulse.beat(&self.match_);
        self.ends.observer.numbers(&MatchNumbers::of(&self.match_));
    }

    /// Moves the match on if it is due.
    fn advance_if_due(&mut self) {
        let now = self.ends.clock.now();
        if now >= self.match_.next_due() {
            self.record_lateness(now, self.match_.next_due());
            self.play_until(now, now);
        }
    }

    /// Plays all that is due by then.
    fn play_until(&mut self, until: Duration, now: Duration) {
        let turns = self.match_.stats().turns;
        self.match_.advance(until);
        if self.match_.stats().turns > turns {
            self.has_sealed = Some(now);
        }
        self.log_reports(now);
        self.give_up_jobs(now);
    }

    /// Plays what was due while it rested, a little at a time, as if it had been looked at all along: what came meanwhile is
    /// heard after that. A match to which much time passes at once takes it for time in which its process stood.
    fn play_rest(&mut self, now: Duration) {
        self.rested_until = now.min(self.rested_until);
        // Turn follows turn now: nothing that is done elsewhere would be back in between.
        self.match_.encode_aside(usize::MAX);
        while self.match_.next_due() < self.rested_until && !self.match_.is_closed() {
            let due = self.match_.next_due();
            // The last step is a whole rest: then clients are told at its end, and what they are told bears that time.
            let last = self.rested_until.saturating_sub(REST);
            let until = match due < last {
                true => last.min(due + REST / 2),
                false => self.rested_until,
            };
            self.play_until(until, now);
        }
        self.match_.encode_aside(ASIDE_BYTES);
    }

    /// How long the ticks took that were played since.
    fn record_tick_cost(&mut self, began: Duration, ticks: u64) {
        let played = self.match_.stats().ticks - ticks;
        if played > 0 {
            let took = self.ends.clock.now().saturating_sub(began);
            self.tick_cost = took / played.try_into().unwrap_or(u32::MAX);
        }
    }

    /// Whether a match that rests is looked at but now and then: all are silent for long, nothing is on its way to it, and
    /// what it sleeps through is played soon. Of long ticks nothing would be spared, and clients would be told too rarely.
    fn rests_deeply(&self) -> bool {
        let tick = self.tick();
        let is_awaited = self.folding || !self.match_.world().open_queries().is_empty();
        self.match_.unheard_for() > SPARSE_AFTER
            && tick < REST
            && self.tick_cost <= self.catch_up_max / deep_ticks(tick)
            && self.jobs.is_empty()
            && !is_awaited
    }

    /// A match that rested is not late: nobody heard of it.
    fn record_lateness(&self, now: Duration, due: Duration) {
        if !self.rests {
            let lateness = now.saturating_sub(due);
            self.ends.pulse.record_lateness(lateness);
            self.ends.observer.tick_late(lateness);
        }
    }

    /// Ends the match in order if its host ends.
    fn handle_ending(&mut self, code: CloseCode) {
        let now = self.ends.clock.now();
        self.reason = self.close_code(code);
        let by = *self.stop_by.get_or_insert(now + SEAL_PATIENCE);
        if self.match_.is_between_turns() || now >= by {
            self.close(code);
        }
    }

    /// When the next round is due.
    fn next_round(&mut self, is_behind: bool) -> Duration {
        // Packets are heard when a tick is due: they carry the time at which they came, and waking for each of them costs
        // more than all the rest. Only a match that waits for one, or rests, is woken by it.
        let waits = self.match_.waits();
        // Who is about to go looks for the end of its turn; and in lockstep what is late moves the schedule.
        let is_lockstep = self.match_.config().command_delay > 0;
        let goes = self.stop_by.is_some() || self.released.is_some();
        let rests = !waits && !goes && !is_lockstep && self.match_.is_unheard();
        let listens = waits || rests;
        let has_more = self.ends.inbox.listen(listens) || listens && self.has_mail();
        self.rests = false;
        if is_behind || has_more {
            return Duration::ZERO;
        }
        let (now, due, tick) = (self.ends.clock.now(), self.match_.next_due(), self.tick());
        self.rests = rests;
        if rests {
            let is_deep = self.rests_deeply();
            self.rested_until = self.ends.phase.rest(due, tick, is_deep);
            return match is_deep {
                true => self.rested_until,
                false => self.rested_until.min(now + REST),
            };
        }
        let due = match is_lockstep {
            true => due,
            false => next_moment(due, tick),
        };
        due.min(now + NAP)
    }

    /// Whether somebody who is no player wants something of it.
    fn has_mail(&self) -> bool {
        !(self.ends.errands.is_empty() && self.ends.operator_orders.is_empty())
    }

    /// The length of its ticks.
    fn tick(&self) -> Duration {
        self.match_.world().turn().cadence.tick()
    }

    /// The match is over: lets go of its journal, and says why it ended.
    fn finish(&mut self) -> CloseCode {
        self.show();
        self.ends.pulse.show_end();
        self.write_incidents();
        if let Some(journal) = self.journal.take()
            && let Err(error) = journal.finish()
        {
            logged::error!(id = self.id, %error, "the journal's end may not be on the disk");
        }
        if let Some((_, answer)) = self.released.take() {
            let is_kept = self.match_.closed() == Some(CloseCode::Moved);
            let tick = self.match_.world().tick().0;
            let _ = answer.send(is_kept.then_some(tick).ok_or("it ended meanwhile"));
        }
        logged::info!(id = self.id, stats = ?self.match_.stats(), lost = self.lost, "match closed");
        self.match_.closed().unwrap_or(self.reason)
    }

    /// Whether it is released, and nobody has to be waited for any more.
    fn is_to_go(&self) -> bool {
        let is_due = |by| self.ends.clock.now() >= by || self.match_.is_all_heard();
        self.released.as_ref().is_some_and(|(by, _)| is_due(*by))
    }

    /// Ends the match: its journal first, so that what its clients are told of that is true.
    fn close(&mut self, code: CloseCode) {
        self.match_.end_journal(self.close_code(code));
        self.carry_out();
        if code == CloseCode::Moved && self.journal.is_none() {
            // No other process can resume it: it goes on here, or has ended for that, as it was told.
            self.stop_by = None;
            return;
        }
        self.match_.close(self.close_code(code));
    }

    /// A released match whose journal cannot be written stays.
    fn cancel_release(&mut self) {
        if let Some((_, answer)) = self.released.take() {
            let _ = answer.send(Err("its journal cannot be written"));
        }
    }

    /// What clients are told: a match with a journal is kept when its server ends in order.
    fn close_code(&self, code: CloseCode) -> CloseCode {
        match (code, &self.journal) {
            (CloseCode::Draining, Some(_)) => restarting(self.ends.back_after),
            (code, _) => code,
        }
    }

    fn handle_event(&mut self, heard: FromIo) {
        match heard {
            // Over for the match, and yet it speaks: that word was lost on its way to the socket.
            FromIo::Packet(_, peer, _) if self.match_.stage(peer).is_none() => {
                self.unknown.push((peer, CloseCode::MatchOver));
            }
            FromIo::Packet(came, peer, bytes) => self.match_.handle(came, peer, &bytes),
            FromIo::Gone(peer) => self.match_.disconnect(peer),
            FromIo::PutOut(identity, code, done) => {
                if self.match_.remove_identity(&identity, code) {
                    logged::info!(id = self.id, identity = ?line(&identity), reason = %code, "put out");
                    let _ = done.try_send(self.id);
                }
            }
            FromIo::Connected(peer, ticket) => self.connect(peer, &ticket),
        }
    }

    fn connect(&mut self, peer: SessionId, ticket: &TicketClaims) {
        let now = self.ends.clock.now();
        let (identity, seats) = (&ticket.identity, usize::from(ticket.seats));
        let connected = self
            .match_
            .connect_by_ticket(now, peer, identity, seats, ticket.stamp);
        self.carry_out();
        if self.match_.is_closed() {
            return;
        }
        logged::info!(id = self.id, peer = peer.0, identity = ?line(&ticket.identity), refused = ?connected.err(), "session");
        if let Err(code) = connected {
            self.unknown.push((peer, code));
        }
    }
}

impl<S: Simulation> Play for Runner<S> {
    fn round(&mut self) -> Next {
        const CONDEMNED: Next = Next::Over(Some(CloseCode::Fault));
        if self.is_condemned() {
            return CONDEMNED;
        }
        if self.has_parted {
            return Next::Over(Some(self.finish()));
        }
        if !self.has_begun {
            self.has_begun = true;
            self.begin();
        }
        let ending = *self.ends.closing.borrow();
        if matches!(ending, Some(Ending::Abandoned)) {
            return Next::Over(None);
        }
        self.match_.degrade(self.ends.load_monitor.degradation());
        let looked_at = || (self.ends.clock.now(), self.match_.stats().ticks);
        let rested = self.rests.then(looked_at);
        if let Some((now, _)) = rested {
            self.play_rest(now);
            if self.is_condemned() {
                return CONDEMNED;
            }
        }
        let is_behind = self.handle_all();
        if let Some(Ending::Told(code)) = ending {
            self.handle_ending(code);
        } else if self.is_to_go() {
            self.handle_ending(CloseCode::Moved);
        }
        self.advance_if_due();
        if let Some((began, ticks)) = rested {
            self.record_tick_cost(began, ticks);
        }
        // Each of these may have taken an author's code long.
        if self.is_condemned() {
            return CONDEMNED;
        }
        self.carry_out();
        self.show();
        if self.is_condemned() {
            CONDEMNED
        } else if self.match_.is_closed() && ending.is_some() && self.stop_by.is_some() {
            self.has_parted = true;
            // All others that were woken to end have told their players by then.
            let cadence = self.match_.world().turn().cadence;
            let turn = cadence.tick() * u32::from(cadence.turn_ticks);
            Next::At(self.ends.clock.now() + turn.min(SEAL_PATIENCE))
        } else if self.match_.is_closed() {
            Next::Over(Some(self.finish()))
        } else {
            Next::At(self.next_round(is_behind))
        }
    }
}
