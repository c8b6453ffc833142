//! Executes a match's outputs in order, the journal first.
//!
//! The worker writes the journal itself, with plain blocking writes: a few hundred bytes into the page cache take
//! microseconds, and if another thread wrote it, the packets after it would have to wait for that thread (law **Journal
//! first**). Orders to the I/O task wait until all records of a round are written and, if so configured, on the disk:
//! one wait per round, however many turns it had, and one per connecting session.

use std::time::Duration;

use twinstep_core::Simulation;
use twinstep_core::bounds::REPORT_BYTES_MAX;
use twinstep_protocol::packet::closed::CloseCode;
use twinstep_protocol::text::line;
use twinstep_udp::Holder;

use super::Runner;
use crate::io::{RESERVED, ToIo};
use crate::journal_file::{JournalFileError, OnJournalFailure};
use crate::logged;
use crate::match_inbox::seat_of;
use twinstep_server::SessionId;
use twinstep_server::incident::{Incident, Trouble};
use twinstep_server::{Output, Report};

const WARN_NO_JOURNAL_EVERY: Duration = Duration::from_secs(60);
/// The minimum interval between two log lines about client reports.
const REPORT_EVERY: Duration = Duration::from_secs(1);

impl<S: Simulation> Runner<S> {
    pub(super) fn carry_out(&mut self) {
        if self.is_condemned() {
            return;
        }
        let mut failed = None;
        let (mut due, mut worlds, mut evidence) = (Vec::new(), Vec::new(), None);
        let mut save = None;
        while let Some(output) = self.match_.poll() {
            match output {
                Output::Journal(bytes) => {
                    if let (Some(journal), None) = (&mut self.journal, &failed) {
                        failed = journal.append(bytes).err();
                        if failed.is_none() {
                            self.ends.observer.journal_written(bytes.len());
                        }
                    }
                }
                Output::Packet { peer, bytes } => match self.orders.last_mut() {
                    Some(ToIo::Packets(batch)) => batch.push(peer, bytes),
                    _ => {
                        let mut batch = self.spare.next();
                        batch.push(peer, bytes);
                        self.orders.push(ToIo::Packets(batch));
                    }
                },
                Output::Job { id, work } => {
                    let (now, work) = (self.ends.clock.now(), self.ends.timed(work));
                    if let Some(refused) = self.jobs.start(now, id, work) {
                        self.match_.complete(refused, None);
                    }
                }
                Output::Encode(world) => worlds.push(world),
                Output::Save(saving) => save = Some(saving),
                Output::Ticket { peer } => due.push(peer),
                Output::Outdated { identity, ruling } => {
                    let holder = Holder {
                        match_id: self.id,
                        identity,
                    };
                    self.tickets.rule(&holder, ruling);
                }
                Output::Settled { peer } => self.orders.push(ToIo::Settled(peer)),
                Output::Unseated { identity } => {
                    let of = seat_of(self.id, &identity);
                    self.orders.push(ToIo::Unseated(of));
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
        for world in worlds {
            self.encode(world);
        }
        if let Some(saving) = save {
            self.write_save(saving);
        }
        if let (Some(journal), None) = (&mut self.journal, &failed) {
            failed = journal.settle().err();
        }
        if let (Some((peer, tick)), None) = (evidence, &failed) {
            self.fold(peer, tick);
        }
        // The host condemns a match whose thread waits too long for the disk or for an author's code.
        if self.is_condemned() {
            return;
        }
        self.write_incidents();
        match failed {
            Some(error) => self.lose_journal(&error),
            None => self.send(),
        }
        self.warn_no_journal();
    }

    fn send(&mut self) {
        if let Some(sealed) = self.has_sealed.take() {
            self.orders.push(ToIo::Sealed(sealed));
        }
        for order in self.orders.drain(..) {
            let room = match order {
                ToIo::Packets(_) => self.ends.to_io.capacity() > RESERVED,
                // If there is no space for this order, the session's next packet causes it again.
                _ => true,
            };
            let packets = match &order {
                ToIo::Packets(batch) => batch.len() as u64,
                _ => 1,
            };
            let sent = room && self.ends.to_io.try_send(order).is_ok();
            self.lost += if sent { 0 } else { packets };
        }
    }

    fn lose_journal(&mut self, error: &JournalFileError) {
        let Some(journal) = self.journal.take() else {
            return;
        };
        let tick = self.match_.world().tick();
        let message = error.to_string();
        self.ends.observer.journal_failed();
        let incident = Incident::new(tick, Trouble::Journal, &message);
        match journal.failure_policy() {
            OnJournalFailure::Continue => {
                self.files.write_survived(&incident);
                journal.abandon();
                self.match_.forgo_journal();
                self.orders.push(ToIo::Unkept(self.id));
                self.cancel_release();
                self.send();
            }
            OnJournalFailure::End => {
                self.files.write(&incident);
                // Clients must not see what is not in the journal.
                self.orders
                    .retain(|order| !matches!(order, ToIo::Packets(_)));
                self.match_.close(CloseCode::Fault);
                self.carry_out();
                journal.discard_unbegun();
            }
        }
    }

    fn warn_no_journal(&mut self) {
        if self.match_.stats().journal_lost.is_none() {
            return;
        }
        let now = self.ends.clock.now();
        if self
            .no_journal_warned
            .is_none_or(|at| now.saturating_sub(at) >= WARN_NO_JOURNAL_EVERY)
        {
            self.no_journal_warned = Some(now);
            logged::error!(
                "match" = self.id.0,
                "this match has had no journal since a write failed: a crash ends it for good. Free space or repair the disk; the next match with this id gets a journal again"
            );
        }
    }

    pub(super) fn hand_ticket(&mut self, peer: SessionId) {
        let session = self
            .match_
            .identity(peer)
            .zip(self.match_.next_ticket(peer));
        let Some(((identity, seats), next)) = session else {
            return;
        };
        match self.tickets.next_ticket(self.id, identity, seats, &next) {
            Ok(ticket) => self
                .match_
                .hand_ticket(peer, ticket.stamp(), ticket.to_bytes()),
            Err(error) => {
                logged::error!("match" = self.id.0, %error, "cannot make a new ticket for a player; the player keeps the current one")
            }
        }
    }

    pub(super) fn write_incidents(&mut self) {
        while let Some(incident) = self.match_.unlogged().1.log() {
            self.files.write(&incident);
        }
    }

    /// Logs clients' desync reports, at most one a second, escaped by `Debug`.
    pub(super) fn log_reports(&mut self, now: Duration) {
        let lately = |at| now.saturating_sub(at) < REPORT_EVERY;
        if self.reported.is_some_and(lately) {
            return;
        }
        if let Some(report) = self.match_.unlogged().0.log() {
            self.reported = Some(now);
            let fault = match report {
                Report {
                    step_impure: true, ..
                } => "step",
                Report {
                    server_at_fault: true,
                    ..
                } => "server",
                // The client is at fault, or there is no journal to prove that it is not.
                _ => "unproven",
            };
            let text = line(&report.text).at_most(REPORT_BYTES_MAX);
            logged::warn!("match" = self.id.0, session = report.peer.0, fault, report = ?text, "desync: a client's world differs from the server's");
        }
    }
}
