//! One match on its task: time, packets and answers go in, outputs are carried out in their order.
//!
//! The journal is written by this task itself, with plain blocking writes: a few hundred bytes into the page
//! cache take microseconds, and whoever writes elsewhere has to wait for it here before the packets behind it
//! may go (law **Journal first**).

use tokio::sync::mpsc::{Receiver, Sender};
use tokio::sync::watch;
use twinstep_core::Simulation;
use twinstep_core::packet::hello::CloseCode;
use twinstep_udp::TicketClaims;

use super::io::{Heard, Told};
use super::jobs::Jobs;
use super::journal_file::JournalFile;
use super::rejoin::RejoinTickets;
use super::{Clock, RESERVED, unix_now};
use crate::game::Match;
use crate::outbox::Output;
use crate::peer::PeerId;

/// Something to do with the match between two steps.
pub(super) type Errand<S> = Box<dyn FnOnce(&mut Match<S>) + Send>;

/// Packets that are taken before the clock is looked at again.
const BATCH: usize = 256;

/// A match and all that it is connected to.
pub(super) struct Runner<S: Simulation> {
    id: u64,
    game: Match<S>,
    journal: Option<JournalFile>,
    tickets: RejoinTickets,
    clock: Clock,
    heard: Receiver<Heard>,
    errands: Receiver<Errand<S>>,
    told: Sender<Told>,
    closing: watch::Receiver<Option<CloseCode>>,
    jobs: Jobs<S::Outcome>,
    lost: u64,
}

impl<S: Simulation> Runner<S> {
    #[expect(
        clippy::too_many_arguments,
        reason = "the ends of channels, put together in one place"
    )]
    pub(super) fn new(
        id: u64,
        game: Match<S>,
        journal: Option<JournalFile>,
        tickets: RejoinTickets,
        clock: Clock,
        heard: Receiver<Heard>,
        errands: Receiver<Errand<S>>,
        told: Sender<Told>,
        closing: watch::Receiver<Option<CloseCode>>,
    ) -> Self {
        Runner {
            id,
            game,
            journal,
            tickets,
            clock,
            heard,
            errands,
            told,
            closing,
            jobs: Jobs::new(),
            lost: 0,
        }
    }

    /// What came meanwhile is heard in every round: a match whose ticks are late must not become deaf.
    fn hear_all(&mut self) {
        for _ in 0..BATCH {
            let Ok(heard) = self.heard.try_recv() else {
                break;
            };
            self.hear(heard);
        }
        while let Ok(errand) = self.errands.try_recv() {
            errand(&mut self.game);
        }
    }

    /// Runs the match to its end, and says why it ended.
    pub(super) async fn run(mut self) -> CloseCode {
        let mut reason = CloseCode::MatchOver;
        self.game.advance(self.clock.now());
        self.carry_out();
        // A shutdown that came while the match was made is a change too.
        self.closing.mark_changed();
        while !self.game.is_closed() {
            let due = self.clock.instant(self.game.next_due());
            tokio::select! {
                // Time first: whoever floods a match with packets shall not hold up its ticks.
                biased;
                () = tokio::time::sleep_until(due) => {}
                Ok(()) = self.closing.changed() => {
                    let code = *self.closing.borrow();
                    if let Some(code) = code {
                        reason = code;
                        self.game.close(code);
                    }
                }
                Some((job, outcome)) = self.jobs.finished() => self.game.complete(job, outcome),
                Some(errand) = self.errands.recv() => errand(&mut self.game),
                Some(heard) = self.heard.recv() => self.hear(heard),
            }
            self.hear_all();
            let asked = *self.closing.borrow();
            if let Some(code) = asked {
                reason = code;
                self.game.close(code);
            }
            let now = self.clock.now();
            if now >= self.game.next_due() {
                self.game.advance(now);
                self.tell_reports();
            }
            self.carry_out();
        }
        if let Some(journal) = self.journal.take()
            && let Err(error) = journal.finish()
        {
            tracing::error!(id = self.id, %error, "the journal's end may not be on the disk");
        }
        tracing::info!(id = self.id, stats = ?self.game.stats(), lost = self.lost, "match closed");
        reason
    }

    fn hear(&mut self, heard: Heard) {
        let now = self.clock.now();
        match heard {
            // Over for the match, and yet it speaks: that word was lost on its way to the socket.
            Heard::Packet(peer, _) if self.game.stage(peer).is_none() => {
                self.tell(Told::Close(peer, CloseCode::MatchOver));
            }
            Heard::Packet(peer, bytes) => self.game.handle(now, peer, &bytes),
            Heard::Gone(peer) => self.game.disconnect(peer),
            Heard::Connected(peer, ticket) => self.let_in(peer, &ticket),
        }
    }

    /// The ticket is written down first; only then may its session speak.
    fn let_in(&mut self, peer: PeerId, ticket: &TicketClaims) {
        self.game.note_ticket(ticket.ticket_id, &ticket.identity);
        let now = self.clock.now();
        let seats = usize::from(ticket.seats);
        let connected = self.game.connect(now, peer, &ticket.identity, seats);
        self.carry_out();
        if self.game.is_closed() {
            return;
        }
        tracing::info!(id = self.id, peer = peer.0, identity = ?ticket.identity, refused = ?connected.err(), "session");
        match connected {
            Ok(()) => self.tell(Told::Admit(peer)),
            Err(code) => self.tell(Told::Close(peer, code)),
        }
    }

    /// Does all that the match wants done, in its order.
    fn carry_out(&mut self) {
        let mut failed = None;
        let mut due = Vec::new();
        while let Some(output) = self.game.poll() {
            match output {
                Output::Journal(bytes) => {
                    if let (Some(journal), None) = (&mut self.journal, &failed) {
                        failed = journal.append(bytes).err();
                    }
                }
                // What is not in the journal must not be seen.
                Output::Packet { .. } if failed.is_some() => {}
                Output::Packet { peer, bytes } => {
                    let sent = self.told.capacity() > RESERVED
                        && self.told.try_send(Told::Packet(peer, bytes.into())).is_ok();
                    self.lost += u64::from(!sent);
                }
                Output::Job { id, work } => {
                    if let Some(refused) = self.jobs.start(id, work) {
                        self.game.complete(refused, None);
                    }
                }
                Output::Ticket { peer } => due.push(peer),
                Output::Closed { peer, code } => {
                    // If it finds no room, the next packet of that session brings it up again.
                    let _ = self.told.try_send(Told::Close(peer, code));
                }
            }
        }
        for peer in due {
            self.hand_ticket(peer);
        }
        if let Some(error) = failed {
            tracing::error!(id = self.id, %error, "the journal cannot be written: the match ends");
            self.journal = None;
            self.game.close(CloseCode::Fault);
            self.carry_out();
        }
    }

    /// A session gets a ticket to return with.
    fn hand_ticket(&mut self, peer: PeerId) {
        let Some((identity, seats)) = self.game.identity(peer) else {
            return;
        };
        match self.tickets.issue(identity, seats, unix_now()) {
            Ok(ticket) => self.game.hand_ticket(peer, ticket.to_bytes()),
            Err(error) => tracing::error!(id = self.id, %error, "no ticket to return with"),
        }
    }

    fn tell(&mut self, order: Told) {
        let _ = self.told.try_send(order);
    }

    /// What clients found different, as they tell it: at most 16 a second, made harmless by `Debug`.
    fn tell_reports(&mut self) {
        for report in self.game.take_reports() {
            tracing::warn!(id = self.id, peer = report.peer.0, text = ?report.text, "a client's state differed");
        }
    }
}
