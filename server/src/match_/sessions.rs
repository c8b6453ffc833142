//! The match's sessions: who comes and goes, and what they say.
//!
//! ```text
//!  connect ─▶ Greeting ─hello─▶ Loading ─world─▶ CatchingUp ─near the newest turn─▶ Playing
//!                │ refused         │ too slow        │ too slow                        │ no acks, strikes
//!                ▼                 ▼                 ▼                                 ▼
//!              closed, with a reason that the player reads ◀───── leave, kick, taken over
//! ```
//!
//! A client whose server was silent dials by another path and goes on hearing the old one. While its old session lives, the
//! new one is a pending takeover: nothing changes hands before it says hello. Whichever answers first wins, and the client says
//! which by greeting, or not.
//!
//! ```text
//!  connect ─▶ the identity has a session? ── no ──▶ Greeting
//!                       │ yes
//!                       ▼
//!               PendingTakeover ── hello that fits ──▶ takes over: the old session is closed, this one greets
//!                       └─ nothing for 5 s, too many of them, the transport gone ──▶ forgotten
//! ```
//!
//! Tickets, by the rules of [`twinstep_protocol::lineage`]:
//!
//! ```text
//!  ticket L0 opens a session ───▶ plays ──────▶ L0 is safe, and lineages that were seen before are out of date
//!  ticket L1 is handed down ──stored──▶ told ─▶ L1 is safe, and L0 is out of date
//!  ticket L2 is handed down ── the client is killed      (L1 lets it in, as often as it is shown; so would L2)
//! ```
//!
//! Invariants: an identity has its seat until it leaves or is removed, whatever becomes of its sessions. An attempt that its
//! client gave up costs the session that it has nothing. What is safe only rises, and only to what the identity's client holds
//! where a new process finds it, or was let in with: so there is always a ticket that lets it in, whatever crashes. Who is
//! removed keeps nothing here: no session, no pending takeover, no seat.

use std::time::Duration;

use arrayvec::ArrayVec;
use twinstep_core::bounds::{HELLO_WITHIN, PLAYERS_MAX, REPORT_BYTES_MAX, SEATS_MAX};
use twinstep_core::{PlayerId, RosterChange, Simulation, Tick};
use twinstep_protocol::identity::SessionId;
use twinstep_protocol::lineage::{LineageTable, Lineages, NextTicket, Ruling, Stamp};
use twinstep_protocol::packet::closed::CloseCode;
use twinstep_protocol::packet::{closed, message};
use twinstep_protocol::text::plain;
use twinstep_protocol::wire::Writer;

use super::Match;
use crate::diagnostics::Report;
use crate::journal::{JournalOut, KEPT, MOVED, is_resumable};
use crate::outbox::{JobId, Output};
use crate::peer::{Peer, Verdict};
use crate::people::PendingTakeover;
use crate::queries::QueryId;
use crate::tally::JoinResult;
use crate::up;
use crate::up::Asked;

/// Pending takeovers of one identity: a client dials by at most this many paths at once. One more replaces the oldest.
const TAKEOVERS_MAX: usize = 3;

/// Players' numbers.
type Numbers = ArrayVec<PlayerId, PLAYERS_MAX>;

impl<S: Simulation> Match<S> {
    /// A session begins, and takes its players over from a session that still holds them.
    pub(super) fn enter(
        &mut self,
        now: Duration,
        peer: SessionId,
        (identity, came_by): (&str, Option<Stamp>),
        seats: usize,
    ) -> Result<(), CloseCode> {
        // A newer one may have become safe since it connected.
        if came_by.is_some_and(|stamp| self.people.is_superseded(identity, seats == 0, &stamp)) {
            return Err(CloseCode::Superseded);
        }
        if let Some(code) = self.people.away.barred(now, identity, seats == 0) {
            return Err(code);
        }
        let players = if seats == 0 {
            self.assign_view(identity)?
        } else {
            match self.assign(identity, seats) {
                Err(CloseCode::Full) => {
                    self.free_overdue(now, identity, seats)?;
                    self.assign(identity, seats)?
                }
                assigned => assigned?,
            }
        };
        if let Some(at) = self.people.session_of(identity, seats == 0) {
            self.close_peer(at, CloseCode::TakenOver);
        }
        for player in &players {
            let known = self.people.identity_of(*player).is_some();
            let seat = &mut self.seats[player.index()];
            if known {
                // Commands that were accepted are not lost by coming back.
                seat.forget_inputs();
            } else {
                // Who had this number before has heard the fate of its orders when it left.
                let _ = seat.purge();
                seat.expect_new_claims();
                self.people.seat(*player, identity);
            }
            seat.expect_gaps();
        }
        let limits = self.people.away.take(identity, seats == 0);
        let who = (identity.to_owned(), came_by);
        let joined = Peer::new(peer, who, players, limits, now);
        self.people.add(joined);
        Ok(())
    }

    /// The sessions that are in the match.
    #[must_use]
    pub fn playing(&self) -> Vec<SessionId> {
        let playing = self.people.playing();
        playing.map(|p| p.id).collect()
    }

    /// Whether nobody is on its way into the match, and all have heard what is not said by turns: worlds that heal, and
    /// tickets, for example.
    #[must_use]
    pub fn is_all_heard(&self) -> bool {
        let here = |p: &Peer| p.plays() && p.lane_out.is_idle();
        self.people.takeovers.is_empty() && self.people.iter().all(here)
    }

    /// Whether nobody is there and nobody's seat is kept: all have left.
    #[must_use]
    pub fn is_deserted(&self) -> bool {
        self.people.len() == 0 && self.people.identities().is_empty()
    }

    /// Whether anybody ever had a seat: who has left counts too. A match that is [deserted](Match::is_deserted) and was not joined
    /// still waits for its first player.
    #[must_use]
    pub fn was_joined(&self) -> bool {
        self.people.was_joined()
    }

    /// The identities that have seats.
    pub fn seat_holders(&self) -> impl Iterator<Item = &str> + '_ {
        let identities = self.people.identities().iter();
        identities.map(|(identity, _)| &**identity)
    }

    /// Lets newcomers in, or none any more; who has a seat may return whatever is said here.
    pub fn set_open(&mut self, open: bool) {
        self.config.open = open;
    }

    /// Who a session is, and for how many local players; `None`: there is no such session.
    #[must_use]
    pub fn identity(&self, peer: SessionId) -> Option<(&str, usize)> {
        let peer = self.people.peer(peer)?;
        Some((&peer.identity, peer.players.len()))
    }

    /// The sessions of an identity, playing or watching.
    pub fn sessions_of(&self, identity: &str) -> Vec<SessionId> {
        let own = self.people.iter().filter(|p| p.identity == identity);
        own.map(|p| p.id).collect()
    }

    /// The players of an identity: those it has, those it had, or free ones.
    fn assign(
        &self,
        identity: &str,
        seats: usize,
    ) -> Result<ArrayVec<PlayerId, SEATS_MAX>, CloseCode> {
        let seats = seats.clamp(1, SEATS_MAX);
        let known = self.people.seats_of(identity);
        let mut players: ArrayVec<PlayerId, SEATS_MAX> = known.take(seats).collect();
        let numbers = (0..self.seats.len() as u8).map(PlayerId);
        let free = numbers.filter(|p| self.people.identity_of(*p).is_none());
        // A simulation knows players by number. So who comes again gets the one that it had and finds what it left there,
        // and who is new gets one that nobody had, if there is one. Of the others, a number whose last player leaves
        // with the next tick is there only if no other is.
        let order = |p: &PlayerId| match self.people.had(*p) {
            Some(had) if had == identity => 0,
            None => 1,
            Some(_) => 2 + u8::from(self.sealer.leaves(*p)),
        };
        let mut free: Numbers = free.collect();
        free.sort_by_key(order);
        if players.len() < seats && !self.config.open {
            return Err(CloseCode::Shut);
        }
        if let Some(code) = self.degradation.refuses_newcomers()
            && players.is_empty()
        {
            return Err(code);
        }
        players.extend(free.into_iter().take(seats - players.len()));
        if players.len() < seats {
            Err(CloseCode::Full)
        } else {
            Ok(players)
        }
    }

    /// The transport of a session is gone. Its players keep their seats until they are dropped.
    pub fn disconnect(&mut self, peer: SessionId) {
        self.forget_takeover(peer);
        if let Some(at) = self.people.position(peer) {
            let gone = self.people.take(at);
            self.keep_join(&gone);
            if !gone.plays() {
                self.diagnostics.tally.join(JoinResult::Gone);
            }
            self.people.away.keep(self.clock.now, gone.end());
        }
    }

    /// A session is to end: it is told why, and its players leave.
    pub fn kick(&mut self, peer: SessionId, code: CloseCode) {
        if let Some(at) = self.people.position(peer) {
            self.leave(at, code);
        }
    }

    /// Ends the match: everybody is told why, and the journal is closed. The match of a journal that is closed for
    /// [`Draining`](CloseCode::Draining), [`Restarting`](CloseCode::Restarting) or [`Moved`](CloseCode::Moved) can be
    /// taken up again: its last world stands there, if it is closed [between turns](Self::is_between_turns).
    pub fn close(&mut self, code: CloseCode) {
        if self.closed.is_some() {
            return;
        }
        while self.people.len() > 0 {
            self.close_peer(0, code);
        }
        while !self.people.takeovers.is_empty() {
            self.dismiss(0, code);
        }
        self.end_journal(code);
        self.closed = Some(code);
    }

    /// Writes the journal's end, as [`close`](Self::close) would with this code. A host that must know that it stands there
    /// before anybody is told calls this, and [`close`](Self::close) when it was written; or
    /// [`forgo_journal`](Self::forgo_journal), if it could not be.
    pub fn end_journal(&mut self, code: CloseCode) {
        let reason = match code {
            CloseCode::Moved => MOVED.to_owned(),
            CloseCode::Draining | CloseCode::Restarting { .. } => KEPT.to_owned(),
            code => code.to_string(),
        };
        self.end_journal_saying(&reason);
    }

    /// As [`end_journal`](Self::end_journal), for this reason in words.
    pub fn end_journal_saying(&mut self, reason: &str) {
        if is_resumable(reason) {
            // Without it the last seconds are stepped again.
            let world = &self.world.current;
            self.journal.write(&mut self.outbox, |recorder, out| {
                recorder.snapshot(world, out)
            });
        } else if self.journal.is_kept()
            && self.is_between_turns()
            && let Some(digest) = self.world.digest_now()
        {
            // Without it the last second could not be verified.
            let world = &self.world.current;
            self.journal.write(&mut self.outbox, |recorder, out| {
                recorder.digest(world, digest, out)
            });
        }
        self.journal
            .write(&mut self.outbox, |recorder, out| recorder.end(reason, out));
        self.journal = JournalOut::none();
    }

    /// Whether no turn has begun that is not full: what was sealed was told.
    #[must_use]
    pub fn is_between_turns(&self) -> bool {
        let world = &self.world.current;
        world.turn().began == world.tick()
    }

    /// A player is to leave, whether or not it has a session.
    pub(super) fn remove(&mut self, player: PlayerId, code: CloseCode) {
        if let Some(at) = self.people.find(|p| p.players.contains(&player)) {
            return self.leave(at, code);
        }
        let plays_on = self.people.session_behind(player).is_some();
        if let Some(identity) = self.free(player)
            && !plays_on
        {
            self.diagnostics.tally.removal(code);
            self.people.away.bar(self.clock.now, &identity, code);
        }
    }

    /// Frees the seat of a player who is away: it leaves with the next tick. Whose it was; what it had ordered and did
    /// not run is refused, of which it hears when it is back.
    pub(super) fn free(&mut self, player: PlayerId) -> Option<String> {
        self.sealer.change(player, RosterChange::Left);
        let refused = self.seats[player.index()].purge();
        let identity = self.people.unseat(player)?;
        self.note_unseated(&identity);
        // Who plays on without this seat has nobody there who could hear of it.
        if !self.people.iter().any(|p| p.plays_as(&identity)) {
            for refused in refused {
                self.people.away.refuse(self.clock.now, &identity, refused);
            }
        }
        Some(identity)
    }

    fn note_unseated(&mut self, identity: &str) {
        if self.people.seats_of(identity).next().is_none() {
            self.outbox.push(Output::Unseated {
                identity: identity.to_owned(),
            });
        }
    }

    pub(super) fn leave(&mut self, at: usize, code: CloseCode) {
        self.people[at].limits.bar(self.clock.now, code);
        let identity = self.people[at].identity.clone();
        self.dismiss_takeovers_of(&identity, code);
        for player in self.people[at].players.clone() {
            for refused in self.seats[player.index()].purge() {
                self.people[at].refuse(refused);
            }
            self.sealer.change(player, RosterChange::Left);
            let _ = self.people.unseat(player);
        }
        self.note_unseated(&identity);
        self.close_peer(at, code);
    }

    pub(super) fn close_peer(&mut self, at: usize, code: CloseCode) {
        let peer = self.people.take(at);
        if !peer.plays() {
            self.diagnostics.tally.join(JoinResult::of(code));
        }
        self.diagnostics.tally.removal(code);
        self.say_closed(peer.id, code);
        if matches!(
            code,
            CloseCode::TakenOver | CloseCode::JoinTooSlow | CloseCode::NoAcks
        ) {
            self.keep_join(&peer);
        }
        self.people.away.keep(self.clock.now, peer.end());
    }

    /// A session ends whose client may come back: what its join lacks is kept for it.
    fn keep_join(&mut self, peer: &Peer) {
        if let Some((from, world)) = peer.unfinished() {
            self.snapshots.cut_off.keep(self.clock.now, from, world);
        }
    }

    /// A transport is told that it is over.
    pub(super) fn say_closed(&mut self, peer: SessionId, code: CloseCode) {
        // Said a few times, because nobody will be there to say it again.
        for _ in 0..3 {
            self.outbox.packet(peer, closed::BYTES_MAX, |buffer| {
                let mut packet = Writer::new(buffer);
                closed::write(code, &mut packet).ok()?;
                Some(packet.len())
            });
        }
        self.outbox.push(Output::Closed { peer, code });
    }

    /// Takes a packet of a session. A packet of an unknown session is ignored; one that breaks the
    /// protocol is counted, and closes the session when there are too many.
    pub fn handle(&mut self, now: Duration, peer: SessionId, bytes: &[u8]) {
        let now = self.clock.reach(now);
        let session = self.people.position(peer);
        let Some(at) = session.or_else(|| self.handle_takeover(now, peer, bytes)) else {
            return;
        };
        let position = self.position(now);
        match up::read(
            &mut self.people[at],
            &mut self.seats,
            position,
            &mut self.said,
            bytes,
        ) {
            Ok(Asked::Nothing) => {}
            Ok(Asked::Join(hello)) => self.join(now, at, &hello),
            Ok(Asked::Leave) => self.leave(at, CloseCode::Left),
            Ok(Asked::Heal(tick)) => self.heal(now, at, tick),
            Ok(Asked::Evidence(tick)) => self.show_evidence(at, tick),
            Err(_) => {
                self.diagnostics.stats.malformed += 1;
                if self.people[at].limits.strike(now) {
                    self.leave(at, CloseCode::Strikes);
                    return;
                }
            }
        }
        let Some(at) = self.people.position(peer) else {
            return;
        };
        self.people.note_view(at);
        while let Ok(Some(told)) = self.people[at].lane_in.poll_message() {
            if told.kind == message::STORED {
                self.note_stored(at, &told.bytes);
                continue;
            }
            let peer = &mut self.people[at];
            let is_due = told.kind == message::REPORT
                && told.bytes.len() <= REPORT_BYTES_MAX
                && peer.inquiry.take_report();
            if !is_due || !self.diagnostics.reports.has_room() {
                self.diagnostics.stats.reports_dropped += 1;
                continue;
            }
            let text = String::from_utf8_lossy(&told.bytes);
            let Verdict {
                server_at_fault,
                step_impure,
            } = peer.inquiry.verdict();
            self.diagnostics.reports.push(Report {
                peer: peer.id,
                text: plain(&text).to_string(),
                server_at_fault,
                step_impure,
            });
        }
        self.take_answers();
    }

    /// What a job of the resolver returned; `None`: it failed. Late answers are ignored.
    pub fn complete(&mut self, job: JobId, outcome: Option<S::Outcome>) {
        self.queries.complete(job, outcome, &mut self.diagnostics);
    }

    /// Takes what a client answered to queries of its own players. An answer to a query that is not its owner's to answer is
    /// late, doubled, or somebody else's, and is ignored.
    fn take_answers(&mut self) {
        let context = self.world.context(&self.people.views);
        let diagnostics = &mut self.diagnostics;
        for (player, answer) in self.said.answers.drain(..) {
            let id = QueryId::answered_by(&answer);
            if !self.queries.is_with_owner(id) {
                continue;
            }
            // What cannot be sealed is no author's mistake here: its client said so.
            let outcome = answer.outcome.as_ref();
            let is_admitted = outcome.is_some_and(|outcome| self.queries.is_sealable(outcome))
                && self
                    .sealer
                    .admits_answer(&context, player, &answer, &mut diagnostics.panics);
            diagnostics.note_panics();
            if is_admitted {
                diagnostics.stats.owner_answers += 1;
                self.queries.answer(id, answer.outcome, diagnostics);
            } else {
                diagnostics.stats.forged_answers += 1;
                self.queries
                    .resolve(id, &context, diagnostics, &mut self.outbox);
            }
        }
    }

    /// Removes an identity: its sessions are told why, whoever of it dials is sent away, and its seats are free. For
    /// [`CloseCode::Kicked`] it stays out of this match until it is [pardoned](Self::pardon) or the match ends. Whether it
    /// was here.
    pub fn remove_identity(&mut self, identity: &str, code: CloseCode) -> bool {
        let mut was_here = false;
        while let Some(at) = self.people.find(|p| p.identity == identity) {
            was_here = true;
            self.leave(at, code);
        }
        self.dismiss_takeovers_of(identity, code);
        let seats: Numbers = self.people.seats_of(identity).collect();
        for player in seats {
            if !was_here {
                self.diagnostics.tally.removal(code);
            }
            was_here = true;
            self.free(player);
        }
        if was_here {
            let now = self.clock.now;
            self.people.away.bar(now, identity, code);
        }
        was_here
    }

    /// Lets an identity back in that was kicked from this match. Whether it was.
    pub fn pardon(&mut self, identity: &str) -> bool {
        self.people.away.pardon(identity)
    }

    /// A session of `seats` local players begins. The same identity gets the same players as before. If it has a session
    /// already, that one goes on until this one says hello, and is taken over then. Who was removed stays out for a
    /// while: 30 s for being too slow, in play or with a world that did not come on while others wanted its seats, 60 s for
    /// strikes, and for the match if it was kicked.
    ///
    /// # Errors
    /// Why not. Whoever is in the match, or on its way into it, is as before.
    pub fn connect(
        &mut self,
        now: Duration,
        peer: SessionId,
        identity: &str,
        seats: usize,
    ) -> Result<(), CloseCode> {
        self.call(now, peer, (identity, None), seats)
    }

    /// As [`connect`](Match::connect): who it is, and the stamp of the ticket that says so, if one does.
    pub(super) fn call(
        &mut self,
        now: Duration,
        peer: SessionId,
        (identity, came_by): (&str, Option<Stamp>),
        seats: usize,
    ) -> Result<(), CloseCode> {
        let now = self.clock.reach(now);
        if let Some(code) = self.closed {
            return Err(code);
        }
        if self.people.session_of(identity, seats == 0).is_none() {
            let entered = self.enter(now, peer, (identity, came_by), seats);
            if let Err(code) = entered {
                self.diagnostics.tally.join(JoinResult::of(code));
            }
            return entered;
        }
        let own = |takeover: &PendingTakeover| takeover.identity == identity;
        let takeovers = self.people.takeovers.iter();
        if takeovers.filter(|takeover| own(takeover)).count() == TAKEOVERS_MAX
            && let Some(oldest) = self.people.find_takeover(own)
        {
            self.dismiss(oldest, CloseCode::TakenOver);
        }
        self.people.takeovers.push(PendingTakeover {
            id: peer,
            identity: identity.to_owned(),
            seats,
            came_by,
            since: now,
        });
        Ok(())
    }

    /// Handles a packet of a pending takeover. Returns its place among the sessions, if it has taken its seats over.
    pub(super) fn handle_takeover(
        &mut self,
        now: Duration,
        peer: SessionId,
        bytes: &[u8],
    ) -> Option<usize> {
        let at = self.people.find_takeover(|takeover| takeover.id == peer)?;
        let heard = match up::greeting(bytes) {
            Ok(heard) => heard,
            Err(_) => {
                self.diagnostics.stats.malformed += 1;
                self.strike_takeover(now, at);
                return None;
            }
        };
        match heard {
            up::Greeting::Hello(hello) => {
                if let Some(code) = self.origin.hello.refusal(&hello) {
                    self.dismiss(at, code);
                    return None;
                }
            }
            // Its greeting was lost: whoever was on the way back leaves.
            up::Greeting::Leave => {
                let takeover = &self.people.takeovers[at];
                match self
                    .people
                    .session_of(&takeover.identity, takeover.seats == 0)
                {
                    Some(session) => self.leave(session, CloseCode::Left),
                    None => self.dismiss(at, CloseCode::Left),
                }
                return None;
            }
            up::Greeting::Other => return None,
        }
        let PendingTakeover {
            identity,
            seats,
            came_by,
            ..
        } = self.people.takeovers.remove(at);
        if let Err(code) = self.enter(now, peer, (&identity, came_by), seats) {
            self.diagnostics.tally.join(JoinResult::of(code));
            self.say_closed(peer, code);
            return None;
        }
        self.people.position(peer)
    }

    /// A pending takeover broke the protocol: the bound is the identity's.
    fn strike_takeover(&mut self, now: Duration, at: usize) {
        let takeover = &self.people.takeovers[at];
        let session = self
            .people
            .session_of(&takeover.identity, takeover.seats == 0);
        match session {
            None => self.dismiss(at, CloseCode::Strikes),
            Some(session) if self.people[session].limits.strike(now) => {
                self.leave(session, CloseCode::Strikes);
            }
            Some(_) => {}
        }
    }

    /// Forgets a pending takeover whose transport is gone.
    pub(super) fn forget_takeover(&mut self, peer: SessionId) {
        if let Some(at) = self.people.find_takeover(|c| c.id == peer) {
            self.people.takeovers.remove(at);
            self.diagnostics.tally.join(JoinResult::Gone);
        }
    }

    /// Closes all pending takeovers of an identity, which is removed.
    pub(super) fn dismiss_takeovers_of(&mut self, identity: &str, code: CloseCode) {
        while let Some(at) = self.people.find_takeover(|c| c.identity == identity) {
            self.dismiss(at, code);
        }
    }

    /// Closes the pending takeovers that came by a ticket which has become out of date: they speak for nobody any more.
    pub(super) fn dismiss_outdated(&mut self, identity: &str, watches: bool) {
        let is_outdated = |this: &Self, takeover: &PendingTakeover| {
            takeover.identity == identity
                && (takeover.seats == 0) == watches
                && takeover
                    .came_by
                    .is_some_and(|stamp| this.people.is_superseded(identity, watches, &stamp))
        };
        while let Some(at) = self.people.find_takeover(|c| is_outdated(self, c)) {
            self.dismiss(at, CloseCode::Superseded);
        }
    }

    /// Closes the pending takeovers that say nothing.
    pub(super) fn end_silent_takeovers(&mut self, now: Duration) {
        let waits = |takeover: &PendingTakeover| now.saturating_sub(takeover.since) > HELLO_WITHIN;
        while let Some(at) = self.people.find_takeover(waits) {
            self.dismiss(at, CloseCode::JoinTooSlow);
        }
    }

    pub(super) fn dismiss(&mut self, at: usize, code: CloseCode) {
        let takeover = self.people.takeovers.remove(at);
        self.diagnostics.tally.join(JoinResult::of(code));
        self.say_closed(takeover.id, code);
    }

    /// Room for another spectator: it has no players.
    pub(super) fn assign_view(
        &self,
        identity: &str,
    ) -> Result<ArrayVec<PlayerId, SEATS_MAX>, CloseCode> {
        if let Some(code) = self.degradation.refuses_spectators() {
            return Err(code);
        }
        let others = |p: &&Peer| p.is_spectator() && p.identity != identity;
        if self.people.iter().filter(others).count() < self.config.spectators.max {
            Ok(ArrayVec::new())
        } else {
            Err(CloseCode::Full)
        }
    }

    /// Spectators now, whatever their stage.
    #[must_use]
    pub fn spectators(&self) -> usize {
        self.people.iter().filter(|p| p.is_spectator()).count()
    }

    /// Whether a session watches from a distance in time.
    pub(super) fn is_delayed(&self, at: usize) -> bool {
        self.config.spectators.delay_ticks > 0 && self.people[at].is_spectator()
    }

    /// The tick before which all frames may be shown to a session.
    pub(super) fn shown_to(&self, at: usize) -> Tick {
        let delay = match self.is_delayed(at) {
            true => self.config.spectators.delay_ticks,
            false => 0,
        };
        self.world.current.tick().back(delay).max(self.config.start)
    }

    /// As [`connect`](Match::connect), by a ticket with this stamp. It is safe once the session plays: a join that is
    /// refused or breaks off spends nothing.
    ///
    /// # Errors
    /// As [`connect`](Match::connect), and [`CloseCode::Superseded`] if the ticket is out of date.
    pub fn connect_by_ticket(
        &mut self,
        now: Duration,
        peer: SessionId,
        identity: &str,
        seats: usize,
        stamp: Stamp,
    ) -> Result<(), CloseCode> {
        if self.people.is_superseded(identity, seats == 0, &stamp) {
            self.diagnostics.tally.join(JoinResult::Superseded);
            return Err(CloseCode::Superseded);
        }
        self.call(now, peer, (identity, Some(stamp)), seats)
    }

    /// Takes rulings on outdated tickets from elsewhere: identity, whether it is a spectator's, ruling. They are not
    /// written into the journal.
    pub fn know_rulings<'a>(&mut self, rulings: impl IntoIterator<Item = (&'a str, bool, Ruling)>) {
        for (identity, watches, ruling) in rulings {
            let holder = (identity.to_owned(), watches);
            self.people.lineages.apply(&holder, &ruling);
        }
    }

    /// Revokes the tickets of an identity: all lineages that the server has seen, and all tickets made before
    /// `made_before_unix_ms`, by its maker's clock: the time of now and
    /// [`REVOKE_SLACK_MS`](twinstep_protocol::lineage::REVOKE_SLACK_MS). Tickets that are dated later are good. A session
    /// that is there goes on, and is handed tickets of a new lineage; [`kick`](Match::kick) ends it.
    pub fn revoke(&mut self, identity: &str, watches: bool, made_before_unix_ms: u64) {
        self.rule(identity, watches, |lineages| {
            lineages.revoke(made_before_unix_ms)
        });
    }

    /// Whether a ticket of an identity is out of date.
    #[must_use]
    pub fn is_out_of_date(&self, identity: &str, watches: bool, stamp: &Stamp) -> bool {
        self.people.is_superseded(identity, watches, stamp)
    }

    /// Which tickets are out of date, by identity and whether it is a spectator.
    #[must_use]
    pub fn lineages(&self) -> &LineageTable<(String, bool)> {
        &self.people.lineages
    }

    /// The lineage, generation and life of a session's next ticket; `None`: there is no such session.
    #[must_use]
    pub fn next_ticket(&self, peer: SessionId) -> Option<NextTicket> {
        let peer = self.people.peer(peer)?;
        let holder = (peer.identity.clone(), peer.is_spectator());
        let known = self.people.lineages.get(&holder);
        let (came_by, newest) = (peer.tickets.came_by(), peer.tickets.newest());
        let nothing = Lineages::default();
        Some(known.unwrap_or(&nothing).next(came_by, newest))
    }

    /// Gives a session a ticket to return with, as [`Output::Ticket`](crate::outbox::Output::Ticket) asked for: its stamp,
    /// which is as [`next_ticket`](Match::next_ticket) said and dated by the clock of now, and its bytes, which are the
    /// host's and the client's own matter.
    pub fn hand_ticket(&mut self, peer: SessionId, stamp: Stamp, ticket: Vec<u8>) {
        let Some(peer) = self.people.peer_mut(peer) else {
            return;
        };
        // One that finds no room is followed by another.
        if peer.lane_out.push(message::TICKET, ticket.into()).is_ok() {
            peer.tickets.note_handed(stamp);
            let (identity, watches) = (peer.identity.clone(), peer.is_spectator());
            self.rule(&identity, watches, |lineages| {
                lineages.note_handed(&stamp).into_iter().collect()
            });
            // A match has no wall clock of its own.
            self.people.lineages.tidy(stamp.made_unix_ms / 1_000);
        }
    }

    /// A session plays: the ticket that it came by is safe.
    pub(super) fn note_used(&mut self, at: usize) {
        if let Some(stamp) = self.people[at].tickets.came_by().copied() {
            self.make_safe(at, &stamp);
        }
    }

    /// A client reports that it stored a ticket where a new process of it finds it. Only what it was handed counts.
    pub(super) fn note_stored(&mut self, at: usize, told: &[u8]) {
        let tickets = &mut self.people[at].tickets;
        let stored = Stamp::read_stored(told)
            .and_then(|(lineage, generation)| tickets.take_stored(lineage, generation));
        match stored {
            Some(stamp) => self.make_safe(at, &stamp),
            None => self.diagnostics.stats.malformed += 1,
        }
    }

    fn make_safe(&mut self, at: usize, stamp: &Stamp) {
        let peer = &self.people[at];
        let (identity, watches) = (peer.identity.clone(), peer.is_spectator());
        self.rule(&identity, watches, |lineages| lineages.make_safe(stamp));
    }

    /// Changes what is known of a holder; the journal and the host get what changed.
    fn rule(
        &mut self,
        identity: &str,
        watches: bool,
        change: impl FnOnce(&mut Lineages) -> Vec<Ruling>,
    ) {
        let holder = (identity.to_owned(), watches);
        let rulings = self.people.lineages.change(&holder, change);
        for ruling in &rulings {
            self.journal.write(&mut self.outbox, |recorder, out| {
                recorder.ruling(*ruling, watches, identity, out)
            });
            self.outbox.push(Output::Outdated {
                identity: identity.to_owned(),
                watches,
                ruling: *ruling,
            });
        }
        if !rulings.is_empty() {
            self.dismiss_outdated(identity, watches);
        }
    }
}
