//! [`Runner`]: runs one match, round by round. Takes time, packets and answers, and executes the match's outputs in
//! order.
//!
//! ```text
//!  catch up after a rest ─▶ handle events ─▶ ending? ─▶ a tick, if it is due ─▶ carry out (`runner/outputs.rs`) ─▶ beat ─▶ due again
//! ```
//!
//! Invariant: a match that was declared over while its thread hung has no effect if the thread resumes.

use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

use crossbeam_channel::unbounded;
use tokio::sync::mpsc::{Receiver, Sender};
use tokio::sync::{oneshot, watch};
use twinstep_core::bounds::SPARSE_AFTER;
use twinstep_core::{Simulation, Tick};
use twinstep_protocol::identity::MatchId;
use twinstep_protocol::packet::closed::CloseCode;
use twinstep_protocol::text::line;
use twinstep_udp::TicketClaims;

use super::clock::HostClock;
use super::incidents::IncidentFiles;
use super::io::ToIo;
use super::jobs::Jobs;
use super::journal_file::Journal;
use super::load_monitor::LoadMonitor;
use super::logged;
use super::match_inbox::{FromIo, MatchInbox, restarting};
use super::observer::{HostStopwatch, MatchNumbers, MatchObserver};
use super::orders::MatchOrder;
use super::packets::Spare;
use super::phase::{Phase, REST, deep_ticks, next_moment};
use super::pulse::Pulse;
use super::thread_pool::{Limited, ThreadPool};
use super::tickets::TicketOffice;
use super::workers::{Next, Playable};
use twinstep_server::EncodedWorld;
use twinstep_server::SessionId;
use twinstep_server::{FoldError, Folded, Match};

mod aside;
mod ordering;
mod outputs;
#[cfg(test)]
mod tests;

pub(super) type Errand<S> = Box<dyn FnOnce(&mut Match<S>) + Send>;

/// A world folded from the journal, as evidence for a client whose state differs at that tick.
type Fold = (SessionId, Tick, Result<Folded, FoldError>);

/// The maximum number of packets handled before the clock is read again.
const BATCH: usize = 256;
const ERRANDS_MAX: usize = 16;
/// The maximum time that a match waits for the end of the turn when it is asked to end, so that its last world is
/// journalled.
const SEAL_PATIENCE: Duration = Duration::from_millis(250);
const CATCH_UP_MAX: Duration = Duration::from_millis(2);
/// Worlds larger than this are encoded on another thread. Smaller ones take tens of microseconds.
const ASIDE_BYTES: usize = 128 << 10;
/// The maximum pause between two rounds of a match that does not rest, even if ticks are longer: joining clients wait
/// for the next round.
const NAP: Duration = Duration::from_millis(20);

#[derive(Clone, Copy, Debug)]
pub(super) enum Ending {
    Told(CloseCode),
    /// Clients do not receive a close code, as if the process had been killed.
    Abandoned,
}

pub(super) struct Ends<S: Simulation> {
    pub(super) clock: HostClock,
    pub(super) inbox: MatchInbox,
    pub(super) errands: Receiver<Errand<S>>,
    pub(super) to_io: Sender<ToIo>,
    pub(super) closing: watch::Receiver<Option<Ending>>,
    pub(super) pulse: Arc<Pulse>,
    pub(super) observer: Arc<dyn MatchObserver>,
    pub(super) operator_orders: Receiver<MatchOrder>,
    /// The restart time in the close code for players of a kept match.
    pub(super) back_after: Duration,
    pub(super) pool: ThreadPool,
    pub(super) encoders: Limited,
    // The folder of saved games.
    pub(super) saves: Option<PathBuf>,
    pub(super) load_monitor: LoadMonitor,
    pub(super) phase: Phase,
}

pub(super) struct Runner<S: Simulation> {
    id: MatchId,
    match_: Match<S>,
    has_begun: bool,
    /// The close code to use if the match has none.
    reason: CloseCode,
    journal: Option<Journal>,
    tickets: TicketOffice,
    files: IncidentFiles,
    ends: Ends<S>,
    jobs: Jobs<S::Outcome>,
    // Folds of the journal. One runs at a time; `folding` is set while it runs.
    folds: (
        crossbeam_channel::Sender<Fold>,
        crossbeam_channel::Receiver<Fold>,
    ),
    folding: bool,
    encoded: (
        crossbeam_channel::Sender<EncodedWorld>,
        crossbeam_channel::Receiver<EncodedWorld>,
    ),
    // `true` if the save was written.
    saved: (
        crossbeam_channel::Sender<bool>,
        crossbeam_channel::Receiver<bool>,
    ),
    /// The release to another process: its deadline, and the pending response to the operator.
    released: Option<(Duration, oneshot::Sender<Result<u32, &'static str>>)>,
    /// The end of the rest. Rounds before it are skipped as long as no packet arrives.
    rested_until: Duration,
    // The mean time per tick that was caught up after the last rest.
    tick_cost: Duration,
    /// The maximum time for catching up. A match that would need longer does not rest deeply.
    catch_up_max: Duration,
    rests: bool,
    // The deadline for the end of the current turn, once the match was asked to end.
    stop_by: Option<Duration>,
    /// The match is closed with its host, and the clients have their close code. The journal is finished in the next
    /// round, because a disk takes milliseconds, and the clients of all other matches come first.
    has_parted: bool,
    /// Orders to the I/O task that wait until the journal is settled.
    orders: Vec<ToIo>,
    spare: Spare,
    /// Sessions that this match does not know, with their close codes. Sent after the match's own output, so that a
    /// session closed in this round gets the match's reason.
    unknown: Vec<(SessionId, CloseCode)>,
    /// The seal time of a turn whose packets are among `orders`.
    has_sealed: Option<Duration>,
    no_journal_warned: Option<Duration>,
    reported: Option<Duration>,
    lost: u64,
}

impl<S: Simulation> Runner<S> {
    pub(super) fn new(
        id: MatchId,
        mut match_: Match<S>,
        journal: Option<Journal>,
        tickets: TicketOffice,
        files: IncidentFiles,
        ends: Ends<S>,
    ) -> Self {
        match_.time_by(HostStopwatch {
            clock: ends.clock,
            observer: ends.observer.clone(),
        });
        match_.encode_aside(ASIDE_BYTES);
        if ends.saves.is_some() {
            match_.offer_saves();
        }
        Runner {
            id,
            match_,
            has_begun: false,
            reason: CloseCode::MatchOver,
            journal,
            tickets,
            files,
            jobs: Jobs::new(ends.pool.clone()),
            folds: unbounded(),
            ends,
            folding: false,
            encoded: unbounded(),
            saved: unbounded(),
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

    /// Handles everything that has arrived since the last round, but at most `BATCH` packets. Each round does this, so
    /// that a match that runs late still reads its packets. Returns `true` if there may be more.
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
        while let Ok(is_written) = self.saved.1.try_recv() {
            self.match_.hand_saved(is_written);
        }
        for _ in 0..ERRANDS_MAX {
            let Ok(errand) = self.ends.errands.try_recv() else {
                break;
            };
            errand(&mut self.match_);
        }
        let mut handled = 0;
        while handled < BATCH
            && let Some(next) = self.ends.inbox.next()
        {
            self.handle_event(next);
            handled += 1;
        }
        handled == BATCH
    }

    /// Returns `true` if the match was declared over while its thread hung. Such a match must have no effect, because
    /// its players have their close code, and another process may soon have its journal.
    fn is_condemned(&self) -> bool {
        self.ends.pulse.is_condemned()
    }

    /// Starts the journal and the clock, at the last moment of the phase, before any event is handled.
    fn begin(&mut self) {
        let began = self.ends.phase.last(self.ends.clock.now(), self.tick());
        self.match_.advance(began);
        self.carry_out();
        self.show();
    }

    fn show(&self) {
        self.ends.pulse.beat(&self.match_);
        self.ends.observer.numbers(&MatchNumbers::of(&self.match_));
    }

    fn advance_if_due(&mut self) {
        let now = self.ends.clock.now();
        if now >= self.match_.next_due() {
            self.record_lateness(now, self.match_.next_due());
            self.play_until(now, now);
        }
    }

    fn play_until(&mut self, until: Duration, now: Duration) {
        let turns = self.match_.stats().turns;
        self.match_.advance(until);
        if self.match_.stats().turns > turns {
            self.has_sealed = Some(now);
        }
        self.log_reports(now);
        self.give_up_jobs(now);
    }

    /// Runs the ticks that were due during the rest in small steps, as if the match had not rested. The packets that
    /// ended the rest are handled afterwards. One large step would look like a process pause.
    fn play_rest(&mut self, now: Duration) {
        self.rested_until = now.min(self.rested_until);
        // The turns follow without a pause, so a world encoded on another thread would come back too late.
        self.match_.encode_aside(usize::MAX);
        while self.match_.next_due() < self.rested_until && !self.match_.is_closed() {
            let due = self.match_.next_due();
            // The last step covers a whole rest, so that the packets to clients are sent at its end and carry its time.
            let last = self.rested_until.saturating_sub(REST);
            let until = match due < last {
                true => last.min(due + REST / 2),
                false => self.rested_until,
            };
            self.play_until(until, now);
        }
        self.match_.encode_aside(ASIDE_BYTES);
    }

    fn record_tick_cost(&mut self, began: Duration, ticks: u64) {
        let played = self.match_.stats().ticks - ticks;
        if played > 0 {
            let took = self.ends.clock.now().saturating_sub(began);
            self.tick_cost = took / played.try_into().unwrap_or(u32::MAX);
        }
    }

    /// Returns `true` if the match may rest for several ticks: all clients have long been silent, no answer is pending,
    /// and the missed ticks can be caught up quickly. With long ticks a rest would not save work, and clients would get
    /// packets too rarely.
    fn rests_deeply(&self) -> bool {
        let tick = self.tick();
        let is_awaited = self.folding || !self.match_.world().open_queries().is_empty();
        self.match_.unacked_for() > SPARSE_AFTER
            && tick < REST
            && self.tick_cost <= self.catch_up_max / deep_ticks(tick)
            && self.jobs.is_empty()
            && !is_awaited
    }

    /// Ticks after a rest do not count as late, because no client waited for them.
    fn record_lateness(&self, now: Duration, due: Duration) {
        if !self.rests {
            let lateness = now.saturating_sub(due);
            self.ends.pulse.record_lateness(lateness);
            self.ends.observer.tick_late(lateness);
        }
    }

    /// Ends the match at the end of its turn, or after `SEAL_PATIENCE`.
    fn handle_ending(&mut self, code: CloseCode) {
        let now = self.ends.clock.now();
        self.reason = self.close_code(code);
        // The first call sets the deadline; later rounds keep it.
        let by = *self.stop_by.get_or_insert(now + SEAL_PATIENCE);
        if self.match_.is_between_turns() || now >= by {
            self.close(code);
        }
    }

    fn next_round(&mut self, is_behind: bool) -> Duration {
        // Packets are handled when a tick is due: they carry their arrival time, and a wake-up for each of them would
        // cost more than everything else. Only a match that waits for a packet, or rests, is woken by a packet.
        let waits = self.match_.waits_for_packet();
        // A match that is about to end must not miss the end of its turn. In lockstep, a late packet moves the
        // schedule. So neither rests.
        let is_lockstep = self.match_.config().command_delay > 0;
        let goes = self.stop_by.is_some() || self.released.is_some();
        let rests = !waits && !goes && !is_lockstep && self.match_.is_unacked();
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

    fn has_mail(&self) -> bool {
        !(self.ends.errands.is_empty() && self.ends.operator_orders.is_empty())
    }

    fn tick(&self) -> Duration {
        self.match_.world().turn().cadence.tick()
    }

    /// Finishes the journal of a finished match. Returns its close code.
    fn finish(&mut self) -> CloseCode {
        self.show();
        // Before the journal is finished, so that waiting for the disk does not look like a hang.
        self.ends.pulse.show_end();
        self.write_incidents();
        if let Some(journal) = self.journal.take()
            && let Err(error) = journal.finish()
        {
            logged::error!("match" = self.id.0, %error, "cannot finish the journal: its last records may be lost in a power cut");
        }
        if let Some((_, answer)) = self.released.take() {
            let is_kept = self.match_.closed() == Some(CloseCode::Moved);
            let tick = self.match_.world().tick().0;
            match is_kept {
                true => logged::info!("match" = self.id.0, tick, "match released by an operator"),
                false => logged::warn!(
                    "match" = self.id.0,
                    tick,
                    "match not released: it ended meanwhile"
                ),
            }
            let _ = answer.send(is_kept.then_some(tick).ok_or("it ended meanwhile"));
        }
        let stats = self.match_.stats();
        logged::info!(
            "match" = self.id.0,
            ticks = stats.ticks,
            turns = stats.turns,
            fills = stats.fills,
            queries = stats.queries,
            unanswered = stats.unanswered,
            desyncs = stats.desyncs,
            heals = stats.heals,
            malformed = stats.malformed,
            panics = stats.panics,
            world_bytes = stats.world_bytes,
            paused_s = stats.paused.as_secs(),
            packets_lost = self.lost,
            "match statistics"
        );
        self.match_.closed().unwrap_or(self.reason)
    }

    /// Returns `true` if the match was released and no client needs more time.
    fn is_to_go(&self) -> bool {
        let is_due = |by| self.ends.clock.now() >= by || self.match_.is_all_acknowledged();
        self.released.as_ref().is_some_and(|(by, _)| is_due(*by))
    }

    /// Ends the match. The journal is ended first, so that the close code is true when clients receive it.
    fn close(&mut self, code: CloseCode) {
        self.match_.end_journal(self.close_code(code));
        self.carry_out();
        if code == CloseCode::Moved && self.journal.is_none() {
            // Without a journal no other process can resume the match: it continues here, or it ended because the
            // journal failed.
            self.stop_by = None;
            return;
        }
        self.match_.close(self.close_code(code));
    }

    fn cancel_release(&mut self) {
        if let Some((_, answer)) = self.released.take() {
            logged::warn!(
                "match" = self.id.0,
                "match not released: its journal cannot be written"
            );
            let _ = answer.send(Err("its journal cannot be written"));
        }
    }

    /// Returns the close code for clients. A match with a journal is kept when its server ends cleanly.
    fn close_code(&self, code: CloseCode) -> CloseCode {
        match (code, &self.journal) {
            (CloseCode::Draining, Some(_)) => restarting(self.ends.back_after),
            (code, _) => code,
        }
    }

    fn handle_event(&mut self, event: FromIo) {
        match event {
            // The session is over for the match, but its client still sends: the close code was lost on the way to the
            // socket.
            FromIo::Packet(_, peer, _) if self.match_.stage(peer).is_none() => {
                self.unknown.push((peer, CloseCode::MatchOver));
            }
            FromIo::Packet(came, peer, bytes) => self.match_.handle(came, peer, &bytes),
            FromIo::Gone(peer) => self.match_.disconnect(peer),
            FromIo::PutOut(identity, code, done) => {
                if self.match_.remove_identity(&identity, code) {
                    logged::info!("match" = self.id.0, identity = ?line(&identity), code = code.name(), "player or spectator removed");
                    let _ = done.try_send(self.id);
                }
            }
            FromIo::Connected(peer, ticket) => self.connect(peer, &ticket),
        }
    }

    fn connect(&mut self, peer: SessionId, ticket: &TicketClaims) {
        let now = self.ends.clock.now();
        let (identity, seats) = (&ticket.identity.name, usize::from(ticket.seats));
        let connected = self
            .match_
            .connect_by_ticket(now, peer, identity, seats, ticket.stamp);
        self.carry_out();
        if self.match_.is_closed() {
            return;
        }
        let (id, session, identity) = (self.id.0, peer.0, line(identity));
        match connected {
            Ok(_) => logged::info!("match" = id, session, ?identity, "session accepted"),
            Err(code) => {
                logged::info!(
                    "match" = id,
                    session,
                    ?identity,
                    code = code.name(),
                    "session refused"
                );
                self.unknown.push((peer, code));
            }
        }
    }
}

impl<S: Simulation> Playable for Runner<S> {
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
        // Each of the calls above may have run an author's code for a long time.
        if self.is_condemned() {
            return CONDEMNED;
        }
        self.carry_out();
        self.show();
        if self.is_condemned() {
            CONDEMNED
        } else if self.match_.is_closed() && ending.is_some() && self.stop_by.is_some() {
            self.has_parted = true;
            // By then, all other matches woken to end have closed their sessions.
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
