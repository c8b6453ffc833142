//! One match, round by round: time, packets and answers go in, outputs are carried out in their order.
//!
//! The journal is written by the worker itself, with plain blocking writes: a few hundred bytes into the page
//! cache take microseconds, and whoever writes elsewhere has to wait for it here before the packets behind it
//! may go (law **Journal first**). What is to be told waits until all of a round is written, and the disk has
//! it if it must: one wait a round, however many turns it had.

use std::net::SocketAddr;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::Arc;
use std::time::Duration;

use crossbeam_channel::unbounded;
use tokio::sync::mpsc::{Receiver, Sender};
use tokio::sync::watch;
use twinstep_core::packet::hello::CloseCode;
use twinstep_core::replay::ReplayError;
use twinstep_core::text::line;
use twinstep_core::{Simulation, Tick};
use twinstep_udp::{SerialOf, TicketClaims};

use super::clock::{HostClock, unix_now};
use super::hands::Hands;
use super::incidents::IncidentFiles;
use super::io::{RESERVED, ToIo};
use super::jobs::Jobs;
use super::journal_file::{Journal, JournalFileError, OnJournalFailure};
use super::line::{Ear, FromIo};
use super::metrics::{HostStopwatch, MatchCounts};
use super::moves::{Move, MoveOrder, Moved};
use super::orders::Order;
use super::packets::Packets;
use super::phase::{Phase, next_moment};
use super::pulse::Pulse;
use super::rejoin::RejoinTickets;
use super::serials::SerialKeeper;
use super::strain::Strain;
use super::workers::{Next, Play};
use crate::game::{Folded, Match, Unfolded};
use crate::incident::{Incident, Trouble};
use crate::outbox::{JobId, Output};
use crate::peer::PeerId;

mod moving;
mod ordering;

/// Something to do with the match between two steps.
pub(super) type Errand<S> = Box<dyn FnOnce(&mut Match<S>) + Send>;

/// A tick that was folded to, for a client that differs there.
type Fold = (PeerId, Tick, Result<Folded, Unfolded>);

/// Packets that are taken before the clock is looked at again.
const BATCH: usize = 256;
/// Looks at the match that are taken before that, however many there are.
const ERRANDS_MAX: usize = 16;
/// A match that is asked to end waits at most so long for the end of its turn, so that its last world is written down.
const SEAL_PATIENCE: Duration = Duration::from_millis(250);
/// A match looks for what came at least so often, also where its ticks are longer: who joins waits for it.
const NAP: Duration = Duration::from_millis(20);
/// That a match has no journal is said so often.
const LAMENT_EVERY: Duration = Duration::from_secs(60);

/// What a client found different is logged at most so often, whatever clients send.
const REPORT_EVERY: Duration = Duration::from_secs(1);

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
    pub(super) heard: Ear,
    pub(super) errands: Receiver<Errand<S>>,
    pub(super) told: Sender<ToIo>,
    pub(super) closing: watch::Receiver<Option<Ending>>,
    pub(super) pulse: Arc<Pulse>,
    pub(super) counts: Arc<MatchCounts>,
    pub(super) moves: Receiver<Move>,
    pub(super) wishes: Receiver<Order>,
    /// When a match that is kept is expected to go on.
    pub(super) back_after: Duration,
    pub(super) hands: Hands,
    /// What there is too much of in the process.
    pub(super) strain: Strain,
    /// At which moments it is due.
    pub(super) phase: Phase,
}

impl<S: Simulation> Ends<S> {
    /// A job of the resolver, measured.
    fn timed<O: 'static>(
        &self,
        work: Box<dyn FnOnce() -> O + Send>,
    ) -> Box<dyn FnOnce() -> O + Send> {
        let (clock, counts) = (self.clock, self.counts.clone());
        Box::new(move || {
            let began = clock.now();
            let outcome = work();
            counts.resolver.note(clock.now().saturating_sub(began));
            outcome
        })
    }
}

/// A match and all that it is connected to.
pub(super) struct Runner<S: Simulation> {
    id: u64,
    game: Match<S>,
    has_begun: bool,
    /// Why it ends, unless the match itself says so.
    reason: CloseCode,
    journal: Option<Journal>,
    tickets: RejoinTickets,
    /// Where safe serials are written down beside the journal.
    serials: SerialKeeper,
    files: IncidentFiles,
    ends: Ends<S>,
    jobs: Jobs<S::Outcome>,
    /// Folds of the journal that were asked for: one at a time.
    folds: (
        crossbeam_channel::Sender<Fold>,
        crossbeam_channel::Receiver<Fold>,
    ),
    folding: bool,
    /// The match is to go to another process by then at the latest.
    moving: Option<(Duration, MoveOrder)>,
    /// What tickets named before.
    home: Vec<SocketAddr>,
    /// Nobody heard of it in time, so it was not looked at before.
    rested_until: Duration,
    /// Asked to end, it waits for the end of its turn until then at the latest.
    stop_by: Option<Duration>,
    /// What is to be told when the journal is settled.
    orders: Vec<ToIo>,
    /// Whom the match does not know, and what they are to be told: behind what the match itself says, so that whose session
    /// it ended in this round hears its reason, and not that of whoever is unknown.
    unknown: Vec<(PeerId, CloseCode)>,
    /// A turn is among it that was sealed then.
    has_sealed: Option<Duration>,
    /// When it was last said that the match goes on without a journal.
    lamented: Option<Duration>,
    /// When a client's report was logged last.
    reported: Option<Duration>,
    lost: u64,
}

impl<S: Simulation> Runner<S> {
    pub(super) fn new(
        id: u64,
        mut game: Match<S>,
        journal: Option<Journal>,
        tickets: RejoinTickets,
        serials: SerialKeeper,
        files: IncidentFiles,
        ends: Ends<S>,
    ) -> Self {
        game.time_by(HostStopwatch {
            clock: ends.clock,
            counts: ends.counts.clone(),
        });
        Runner {
            id,
            game,
            has_begun: false,
            reason: CloseCode::MatchOver,
            journal,
            tickets,
            serials,
            files,
            jobs: Jobs::new(ends.hands.clone()),
            folds: unbounded(),
            ends,
            folding: false,
            moving: None,
            home: Vec::new(),
            rested_until: Duration::ZERO,
            stop_by: None,
            orders: Vec::new(),
            unknown: Vec::new(),
            has_sealed: None,
            lamented: None,
            reported: None,
            lost: 0,
        }
    }

    /// What came meanwhile is heard in every round: a match whose ticks are late must not become deaf. Whether there may
    /// be more.
    fn hear_all(&mut self) -> bool {
        while let Ok(asked) = self.ends.moves.try_recv() {
            self.hear_of_move(asked);
        }
        while let Ok(order) = self.ends.wishes.try_recv() {
            self.obey(order);
        }
        while let Some((job, outcome)) = self.jobs.finished() {
            self.take(job, outcome);
        }
        if let Ok((peer, tick, folded)) = self.folds.1.try_recv() {
            self.folding = false;
            self.game.hand_evidence(peer, tick, folded);
        }
        for _ in 0..ERRANDS_MAX {
            let Ok(errand) = self.ends.errands.try_recv() else {
                break;
            };
            errand(&mut self.game);
        }
        let mut heard = 0;
        while heard < BATCH
            && let Some(next) = self.ends.heard.next()
        {
            self.hear(next);
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
        self.game.advance(began);
        self.carry_out();
        self.ends.counts.show(&self.game);
    }

    /// Moves the match on if it is due.
    fn go_on(&mut self) {
        let now = self.ends.clock.now();
        if now >= self.game.next_due() {
            self.note_lateness(now, self.game.next_due());
            let turns = self.game.stats().turns;
            self.game.advance(now);
            self.has_sealed = (self.game.stats().turns > turns).then_some(now);
            self.tell_reports(now);
            self.give_up_jobs(now);
        }
    }

    /// Ticks that were due while it rested are not late: nobody hears of them.
    fn note_lateness(&self, now: Duration, due: Duration) {
        if due >= self.rested_until {
            let lateness = now.saturating_sub(due);
            self.ends.pulse.note_lateness(lateness);
            self.ends.counts.lateness.note(lateness);
        }
    }

    /// Ends the match in order if its host ends.
    fn heed_ending(&mut self, code: CloseCode) {
        let now = self.ends.clock.now();
        self.reason = self.words_of(code);
        let by = *self.stop_by.get_or_insert(now + SEAL_PATIENCE);
        if self.game.is_between_turns() || now >= by {
            self.close(code);
        }
    }

    /// When the next round is due.
    fn next_round(&mut self, is_behind: bool) -> Duration {
        // Packets are heard when a tick is due: they carry the time at which they came, and waking for each of them costs
        // more than all the rest. Only a match that waits for one, or rests, is woken by it.
        let waits = self.game.waits();
        let rests = !waits && self.game.is_unheard();
        let has_more = self.ends.heard.listen(waits || rests);
        if is_behind || has_more {
            return Duration::ZERO;
        }
        let (due, tick) = (self.game.next_due(), self.tick());
        if rests {
            self.rested_until = self.ends.phase.rest(due, tick);
            return self.rested_until;
        }
        let due = match self.game.config().command_delay {
            0 => next_moment(due, tick),
            // What is late here moves the schedule.
            _ => due,
        };
        due.min(self.ends.clock.now() + NAP)
    }

    /// The length of its ticks.
    fn tick(&self) -> Duration {
        self.game.world().turn().cadence.tick()
    }

    /// The match is over: lets go of its journal, and says why it ended.
    fn finish(&mut self) -> CloseCode {
        self.ends.counts.show(&self.game);
        let stopped = unix_now();
        self.write_incidents();
        let journal = self.journal.take();
        let path = journal.as_ref().map(Journal::found_from_anywhere);
        if let Some(journal) = journal
            && let Err(error) = journal.finish()
        {
            tracing::error!(id = self.id, %error, "the journal's end may not be on the disk");
        }
        if let Some((_, order)) = self.moving.take() {
            let moved = path.filter(|_| self.game.closed() == Some(CloseCode::Moved));
            let moved = moved.map(|journal| Moved {
                journal,
                tick: self.game.world().tick().0,
                stopped_unix_ms: stopped.as_millis() as u64,
            });
            let _ = order.done.send(moved.ok_or("it ended meanwhile"));
        }
        tracing::info!(id = self.id, stats = ?self.game.stats(), lost = self.lost, "match closed");
        self.game.closed().unwrap_or(self.reason)
    }

    /// Goes to another process if it is to, and its clients know.
    fn move_on(&mut self) {
        if let Some((_, order)) = &self.moving
            && order.done.is_closed()
        {
            self.call_off("whoever asked for it is gone");
        }
        let moves = self.moving.as_ref();
        let now = self.ends.clock.now();
        if moves.is_some_and(|(by, _)| now >= *by || self.game.is_all_heard()) {
            self.move_away();
        }
    }

    /// Ends the match: its journal first, so that what its clients are told of that is true.
    fn close(&mut self, code: CloseCode) {
        self.game.end_journal(self.words_of(code));
        self.carry_out();
        self.game.close(self.words_of(code));
    }

    /// What clients are told: a match with a journal is kept when its server ends in order.
    fn words_of(&self, code: CloseCode) -> CloseCode {
        match (code, &self.journal) {
            (CloseCode::Draining, Some(_)) => {
                let after_s = self.ends.back_after.as_secs().try_into();
                let after_s = after_s.unwrap_or(u16::MAX);
                CloseCode::Restarting { after_s }
            }
            (code, _) => code,
        }
    }

    /// What a job came to.
    fn take(&mut self, job: JobId, outcome: Result<S::Outcome, String>) {
        self.jobs.retire(self.ends.clock.now(), job);
        if let Err(panic) = &outcome {
            self.ends.counts.note_panic();
            let tick = self.game.world().tick();
            self.game
                .note_incident(Incident::new(tick, Trouble::Job, panic));
        }
        self.game.complete(job, outcome.ok());
    }

    fn give_up_jobs(&mut self, now: Duration) {
        while let Some(job) = self.jobs.give_up_late(now) {
            let tick = self.game.world().tick();
            let message = format!("job {}", job.0);
            self.game
                .note_incident(Incident::new(tick, Trouble::JobHangs, &message));
            self.game.complete(job, None);
        }
    }

    fn write_incidents(&mut self) {
        while let Some(incident) = self.game.unlogged().1.log() {
            self.files.write(&incident);
        }
    }

    fn hear(&mut self, heard: FromIo) {
        match heard {
            // Over for the match, and yet it speaks: that word was lost on its way to the socket.
            FromIo::Packet(_, peer, _) if self.game.stage(peer).is_none() => {
                self.unknown.push((peer, CloseCode::MatchOver));
            }
            FromIo::Packet(came, peer, bytes) => self.game.handle(came, peer, &bytes),
            FromIo::Gone(peer) => self.game.disconnect(peer),
            FromIo::PutOut(identity, code, done) => {
                if self.game.remove_identity(&identity, code) {
                    tracing::info!(id = self.id, identity = ?line(&identity), reason = %code, "put out");
                    let _ = done.try_send(self.id);
                }
            }
            FromIo::Connected(peer, ticket) => self.let_in(peer, &ticket),
        }
    }

    fn let_in(&mut self, peer: PeerId, ticket: &TicketClaims) {
        let now = self.ends.clock.now();
        let (identity, seats) = (&ticket.identity, usize::from(ticket.seats));
        let connected = self
            .game
            .connect_by_ticket(now, peer, identity, seats, ticket.serial);
        self.carry_out();
        if self.game.is_closed() {
            return;
        }
        tracing::info!(id = self.id, peer = peer.0, identity = ?line(&ticket.identity), refused = ?connected.err(), "session");
        if let Err(code) = connected {
            self.unknown.push((peer, code));
        }
    }

    /// Does all that the match wants done, in its order.
    fn carry_out(&mut self) {
        if self.is_condemned() {
            return;
        }
        let mut failed = None;
        let (mut due, mut evidence) = (Vec::new(), None);
        while let Some(output) = self.game.poll() {
            match output {
                Output::Journal(bytes) => {
                    if let (Some(journal), None) = (&mut self.journal, &failed) {
                        failed = journal.append(bytes).err();
                        if failed.is_none() {
                            self.ends.counts.note_journal(bytes.len());
                        }
                    }
                }
                Output::Packet { peer, bytes } => match self.orders.last_mut() {
                    Some(ToIo::Packets(batch)) => batch.push(peer, bytes),
                    _ => {
                        let mut batch = Packets::default();
                        batch.push(peer, bytes);
                        self.orders.push(ToIo::Packets(batch));
                    }
                },
                Output::Job { id, work } => {
                    let (now, work) = (self.ends.clock.now(), self.ends.timed(work));
                    if let Some(refused) = self.jobs.start(now, id, work) {
                        self.game.complete(refused, None);
                    }
                }
                Output::Ticket { peer } => due.push(peer),
                Output::Safe {
                    identity,
                    watches,
                    serial,
                } => {
                    let of = SerialOf {
                        match_id: self.id,
                        watches,
                        identity,
                    };
                    self.serials.raise(of.clone(), serial);
                    // Lost, it is known to the match all the same.
                    self.orders.push(ToIo::Safe(of, serial));
                }
                Output::Evidence { peer, tick } => evidence = Some((peer, tick)),
                Output::Closed { peer, code } => self.orders.push(ToIo::Close(peer, code)),
            }
        }
        let unknown = self.unknown.drain(..);
        self.orders
            .extend(unknown.map(|(peer, code)| ToIo::Close(peer, code)));
        for peer in due {
            self.hand_ticket(peer);
        }
        if let (Some(journal), None) = (&mut self.journal, &failed) {
            failed = journal.settle().err();
        }
        if let (Some((peer, tick)), None) = (evidence, &failed) {
            self.fold(peer, tick);
        }
        // The disk, or an author's code, may have held it up for so long that it is over.
        if self.is_condemned() {
            return;
        }
        self.write_incidents();
        match failed {
            Some(error) => self.lose_journal(&error),
            None => self.send(),
        }
        self.lament();
    }

    /// Hands on what waited for the journal.
    fn send(&mut self) {
        if let Some(sealed) = self.has_sealed.take() {
            self.orders.push(ToIo::Sealed(sealed));
        }
        for order in self.orders.drain(..) {
            let room = match order {
                ToIo::Packets(_) => self.ends.told.capacity() > RESERVED,
                // If it finds no room, the next packet of that session brings it up again.
                _ => true,
            };
            let packets = match &order {
                ToIo::Packets(batch) => batch.len() as u64,
                _ => 1,
            };
            let sent = room && self.ends.told.try_send(order).is_ok();
            self.lost += if sent { 0 } else { packets };
        }
    }

    /// The journal cannot be written: the match ends or goes on, as it was told.
    fn lose_journal(&mut self, error: &JournalFileError) {
        let Some(journal) = self.journal.take() else {
            return;
        };
        let tick = self.game.world().tick();
        let message = error.to_string();
        self.ends.counts.note_journal_error();
        self.files
            .write(&Incident::new(tick, Trouble::Journal, &message));
        match journal.failure_policy() {
            OnJournalFailure::GoOn => {
                journal.abandon();
                self.game.forgo_journal();
                self.call_off("its journal was lost");
                self.send();
            }
            OnJournalFailure::End => {
                // What is not in the journal must not be seen.
                self.orders
                    .retain(|order| !matches!(order, ToIo::Packets(_)));
                self.game.close(CloseCode::Fault);
                self.carry_out();
                journal.discard_unbegun();
            }
        }
    }

    /// Says once a minute that a match goes on without a journal.
    fn lament(&mut self) {
        if self.game.stats().journal_lost.is_none() {
            return;
        }
        let now = self.ends.clock.now();
        if self
            .lamented
            .is_none_or(|at| now.saturating_sub(at) >= LAMENT_EVERY)
        {
            self.lamented = Some(now);
            tracing::error!(
                id = self.id,
                "the match goes on WITHOUT A JOURNAL: a crash would end it"
            );
        }
    }

    /// Folds the journal to a tick at which a client differs: on a thread, since the file may be long.
    fn fold(&mut self, peer: PeerId, tick: Tick) {
        let Some(journal) = self.journal.as_ref().filter(|_| !self.folding) else {
            return;
        };
        self.folding = true;
        let path = journal.path().to_owned();
        let (rules, hello) = self.game.origin();
        let done = self.folds.0.clone();
        let started = self.ends.hands.run(move || {
            let fold = AssertUnwindSafe(|| {
                let bytes = std::fs::read(&path).map_err(|_| ReplayError::NoWorld)?;
                Folded::of::<S>(&bytes, &rules, &hello, tick)
            });
            let folded = catch_unwind(fold).unwrap_or(Err(ReplayError::NoWorld.into()));
            let _ = done.send((peer, tick, folded));
        });
        if let Err(error) = started {
            tracing::error!(id = self.id, %error, "no thread to look for the cause of a desync");
            self.folding = false;
        }
    }

    /// A session gets a ticket to return with.
    fn hand_ticket(&mut self, peer: PeerId) {
        let Some((identity, seats)) = self.game.identity(peer) else {
            return;
        };
        let after = self.game.newest_serial(peer);
        match self.tickets.issue(identity, seats, unix_now(), after) {
            Ok(ticket) => self
                .game
                .hand_ticket(peer, ticket.serial(), ticket.to_bytes()),
            Err(error) => tracing::error!(id = self.id, %error, "no ticket to return with"),
        }
    }

    /// What clients found different, as they tell it: at most one a second, made harmless by `Debug`.
    fn tell_reports(&mut self, now: Duration) {
        let lately = |at| now.saturating_sub(at) < REPORT_EVERY;
        if self.reported.is_some_and(lately) {
            return;
        }
        if let Some(report) = self.game.unlogged().0.log() {
            self.reported = Some(now);
            tracing::warn!(id = self.id, peer = report.peer.0, server_at_fault = report.server_at_fault, step_impure = report.step_impure, text = ?line(&report.text).at_most(twinstep_core::bounds::REPORT_BYTES_MAX), "a client's state differed");
        }
    }
}

impl<S: Simulation> Play for Runner<S> {
    fn round(&mut self) -> Next {
        const CONDEMNED: Next = Next::Over(Some(CloseCode::Fault));
        if self.is_condemned() {
            return CONDEMNED;
        }
        if !self.has_begun {
            self.has_begun = true;
            self.begin();
        }
        self.game.relieve(self.ends.strain.relief());
        let is_behind = self.hear_all();
        let ending = *self.ends.closing.borrow();
        match ending {
            None => {}
            Some(Ending::Told(code)) => self.heed_ending(code),
            Some(Ending::Abandoned) => return Next::Over(None),
        }
        self.go_on();
        // Each of these may have taken an author's code long.
        if self.is_condemned() {
            return CONDEMNED;
        }
        self.move_on();
        self.carry_out();
        self.ends.pulse.beat(&self.game);
        self.ends.counts.show(&self.game);
        if self.is_condemned() {
            CONDEMNED
        } else if self.game.is_closed() {
            Next::Over(Some(self.finish()))
        } else {
            Next::At(self.next_round(is_behind))
        }
    }
}
