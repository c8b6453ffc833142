//! The match's sessions: how they start and end, and how their packets are handled.
//!
//! ```text
//!  connect ─▶ Greeting ─hello─▶ Loading ─world─▶ CatchingUp ─near the newest turn─▶ Playing
//!                │ refused         │ too slow        │ too slow                        │ no acks, strikes
//!                ▼                 ▼                 ▼                                 ▼
//!              closed, with a reason that the player reads ◀───── leave, kick, taken over
//! ```
//!
//! A client whose server was silent connects over a new path while it still listens on the old one. While the old
//! session exists, the new connection is a pending takeover: seats change hands only after its hello. The first path
//! with a response wins: the client sends its hello only on that path.
//!
//! ```text
//!  connect ─▶ the identity has a session? ── no ──▶ Greeting
//!                       │ yes
//!                       ▼
//!               PendingTakeover ── hello that fits ──▶ takes over: the old session is closed, the new one is Greeting
//!                       └─ silent for 5 s, too many of them, the transport gone ──▶ forgotten
//! ```
//!
//! Tickets, according to the rules of [`twinstep_protocol::lineage`]; L0, L1, L2 are successive tickets of one lineage:
//!
//! ```text
//!  ticket L0 opens a session ───▶ plays ──────────▶ L0 is safe, and lineages seen before are out of date
//!  ticket L1 is handed down ──stored──▶ reported ─▶ L1 is safe, and L0 is out of date
//!  ticket L2 is handed down ── the client is killed  (its next process may connect with L1 or L2, any number of times)
//! ```
//!
//! Invariants: after the lobby, an identity keeps its seat until it leaves or is removed, even if its sessions end. A
//! connection attempt that a client abandons does not affect its current session. The safe generation only rises, and
//! only to that of a ticket that the identity's client has stored for its next process, or with which it has played. So
//! one ticket always admits the identity, after a crash of either side. The match drops all that belongs to a removed
//! identity: its sessions, pending takeovers and seats.

use std::time::Duration;

use arrayvec::ArrayVec;
use twinstep_core::bounds::{HELLO_WITHIN, PLAYERS_MAX, REPORT_BYTES_MAX, SEATS_MAX, ticks_in};
use twinstep_core::{PlayerId, Presence, RosterChange, Simulation, Tick};
use twinstep_protocol::identity::{Identity, Role, SessionId};
use twinstep_protocol::lineage::{LineageTable, Lineages, NextTicket, Ruling, Stamp};
use twinstep_protocol::packet::closed::CloseCode;
use twinstep_protocol::packet::request::MatchRequest;
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
use crate::up::UpRequest;

/// The maximum number of pending takeovers of one identity, and thus of paths that a client tries at a time. An
/// additional takeover replaces the oldest one.
const TAKEOVERS_MAX: usize = 3;

type Numbers = ArrayVec<PlayerId, PLAYERS_MAX>;

impl<S: Simulation> Match<S> {
    /// Starts a session, which takes over its players from any session that still has them.
    pub(super) fn enter(
        &mut self,
        now: Duration,
        peer: SessionId,
        (identity, came_by): (&Identity, Option<Stamp>),
        seats: usize,
    ) -> Result<(), CloseCode> {
        // A newer ticket may have become safe since it connected.
        if came_by.is_some_and(|stamp| self.people.is_superseded(identity, &stamp)) {
            return Err(CloseCode::Superseded);
        }
        if let Some(code) = self.people.away.barred(now, identity) {
            return Err(code);
        }
        let name = &identity.name;
        let players = match identity.role {
            Role::Spectator => self.assign_view(name)?,
            Role::Player => match self.assign(name, seats) {
                Err(CloseCode::Full) => {
                    self.free_overdue(now, name, seats)?;
                    self.assign(name, seats)?
                }
                assigned => assigned?,
            },
        };
        if let Some(at) = self.people.session_of(identity) {
            self.close_peer(at, CloseCode::TakenOver);
        }
        for player in &players {
            let known = self.people.identity_of(*player).is_some();
            let seat = &mut self.seats[player.index()];
            if known {
                // Accepted commands survive a reconnect, so only inputs are dropped.
                seat.forget_inputs();
            } else {
                // The previous owner of this seat got the fates of its orders when it left.
                let _ = seat.purge();
                seat.expect_new_claims();
                self.people.seat(*player, name);
                self.people.was_joined = true;
            }
            seat.expect_gaps();
        }
        let limits = self.people.away.take(identity);
        let who = (identity.clone(), came_by);
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

    /// Returns `true` if no session is joining, and all sessions have acknowledged the messages of their lanes, for
    /// example tickets and heal worlds.
    #[must_use]
    pub fn is_all_acknowledged(&self) -> bool {
        let here = |p: &Peer| (p.plays() || p.guest().is_some()) && p.lane_out.is_idle();
        self.people.takeovers.is_empty() && self.people.iter().all(here)
    }

    /// Returns `true` if the match has no sessions and no seat is kept: all players have left. Owners of a
    /// [loaded](Match::load) match that have not connected yet do not count.
    #[must_use]
    pub fn is_deserted(&self) -> bool {
        let is_away = |(_, player): &(_, _)| self.people.expected(*player).is_some();
        self.people.len() == 0 && self.people.identities().iter().all(is_away)
    }

    /// Returns `true` if any identity has had a seat. A match that is [deserted](Match::is_deserted) and was never
    /// joined still waits for its first player.
    #[must_use]
    pub fn was_joined(&self) -> bool {
        self.people.was_joined
    }

    /// The identities that have seats.
    pub fn seat_holders(&self) -> impl Iterator<Item = &str> + '_ {
        let identities = self.people.identities().iter();
        identities.map(|(identity, _)| &**identity)
    }

    /// Sets whether newcomers are admitted. Identities with a seat may always return.
    pub fn set_open(&mut self, open: bool) {
        self.config.open = open;
    }

    /// The identity of a session, and the number of its local players. Returns `None` if no session has this id.
    #[must_use]
    pub fn identity(&self, peer: SessionId) -> Option<(&str, usize)> {
        let peer = self.people.peer(peer)?;
        Some((&peer.identity.name, peer.players.len()))
    }

    /// The sessions of an identity, playing or watching.
    pub fn sessions_of(&self, identity: &str) -> Vec<SessionId> {
        let own = self.people.iter().filter(|p| p.identity.name == identity);
        own.map(|p| p.id).collect()
    }

    /// Assigns player numbers to an identity: its current ones, then its reserved and former ones, then free ones.
    fn assign(
        &self,
        identity: &str,
        seats: usize,
    ) -> Result<ArrayVec<PlayerId, SEATS_MAX>, CloseCode> {
        let seats = seats.clamp(1, SEATS_MAX);
        let known = self.people.seats_of(identity);
        let mut players: ArrayVec<PlayerId, SEATS_MAX> = known.take(seats).collect();
        let numbers = (0..self.seats.len() as u8).map(PlayerId);
        let free = numbers.filter(|p| self.is_free_for(*p, identity));
        // A simulation knows players by number. So a returning identity gets its former number and its player's state
        // there, and a new identity gets an unused number, if one is left. A number whose last player leaves with the
        // next tick is used last.
        let order = |p: &PlayerId| match self.reserved_for(*p).or(self.people.last_owner(*p)) {
            Some(had) if had == identity => 0,
            None => 1,
            Some(_) => 2 + u8::from(self.sealer.leaves(*p)),
        };
        let mut free: Numbers = free.collect();
        free.sort_by_key(order);
        free.truncate(free.len().saturating_sub(self.reserved_seats(identity)));
        let own = free
            .iter()
            .filter(|p| self.reserved_for(**p).is_some())
            .count();
        if players.len() + own < seats && !self.config.open {
            return Err(CloseCode::Shut);
        }
        if let Some(code) = self.degradation.refuses_newcomers()
            && players.is_empty()
            && own == 0
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

    /// Ends a session whose transport is gone. Its players keep their seats until the match removes them.
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

    /// Ends a session with this code. The session's players leave.
    pub fn kick(&mut self, peer: SessionId, code: CloseCode) {
        if let Some(at) = self.people.position(peer) {
            self.leave(at, code);
        }
    }

    /// Ends the match: closes all sessions with this code, and ends the journal. A journal that ended for
    /// [`Draining`](CloseCode::Draining), [`Restarting`](CloseCode::Restarting) or [`Moved`](CloseCode::Moved) can be
    /// resumed: it ends with its last world, if the match is [between turns](Self::is_between_turns).
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

    /// Ends the journal as [`close`](Self::close) would with this code, but does not close any client. To have the end
    /// on disk before clients are closed, a host calls this, and then [`close`](Self::close) once the end is written,
    /// or [`forgo_journal`](Self::forgo_journal) if writing failed.
    pub fn end_journal(&mut self, code: CloseCode) {
        let reason = match code {
            CloseCode::Moved => MOVED.to_owned(),
            CloseCode::Draining | CloseCode::Restarting { .. } => KEPT.to_owned(),
            code => code.to_string(),
        };
        self.end_journal_saying(&reason);
    }

    /// Like [`end_journal`](Self::end_journal), with a reason as text.
    pub fn end_journal_saying(&mut self, reason: &str) {
        if is_resumable(reason) {
            // Without the world, a resumed match would step the last seconds again.
            let world = &self.world.current;
            self.journal.write(&mut self.outbox, |recorder, out| {
                recorder.snapshot(world, out)
            });
        } else if self.journal.is_kept()
            && self.is_between_turns()
            && let Some(digest) = self.world.digest_now()
        {
            // Without the digest, the last second could not be verified.
            let world = &self.world.current;
            self.journal.write(&mut self.outbox, |recorder, out| {
                recorder.digest(world, digest, out)
            });
        }
        self.journal
            .write(&mut self.outbox, |recorder, out| recorder.end(reason, out));
        self.journal = JournalOut::none();
    }

    /// Returns `true` if the match is between two turns: all sealed ticks have been sent.
    #[must_use]
    pub fn is_between_turns(&self) -> bool {
        let world = &self.world.current;
        world.turn().began == world.tick()
    }

    pub(super) fn remove(&mut self, player: PlayerId, code: CloseCode) {
        if let Some(at) = self.people.find(|p| p.players.contains(&player)) {
            return self.leave(at, code);
        }
        let plays_on = self.people.session_behind(player).is_some();
        if let Some(identity) = self.free(player)
            && !plays_on
        {
            self.diagnostics.tally.record_removal(code);
            self.people.away.bar(self.clock.now, &identity, code);
        }
    }

    /// Frees the seat of a player without a session: the player leaves with the next tick. Returns the identity that
    /// had the seat. The player's pending orders are refused; the client is informed when it returns.
    pub(super) fn free(&mut self, player: PlayerId) -> Option<String> {
        self.sealer.change(player, RosterChange::Left);
        let refused = self.seats[player.index()].purge();
        let identity = self.people.unseat(player)?;
        self.record_left(player);
        self.report_unseated(&identity);
        // If the identity still plays, no client has this seat any longer, so the refusals cannot be reported.
        if !self.people.iter().any(|p| p.plays_as(&identity)) {
            for refused in refused {
                self.people.away.refuse(self.clock.now, &identity, refused);
            }
        }
        Some(identity)
    }

    pub(super) fn report_unseated(&mut self, identity: &str) {
        if self.people.seats_of(identity).next().is_none() {
            self.outbox.push(Output::Unseated {
                identity: identity.to_owned(),
            });
        }
    }

    pub(super) fn leave(&mut self, at: usize, code: CloseCode) {
        self.people[at].limits.bar(self.clock.now, code);
        let identity = self.people[at].identity.name.clone();
        self.dismiss_takeovers_of(&identity, code);
        for player in self.people[at].players.clone() {
            // Before the session ends: its limits carry these refusals to its next session.
            for refused in self.seats[player.index()].purge() {
                self.people[at].refuse(refused);
            }
            if self.keeps_seat(player) {
                continue;
            }
            self.sealer.change(player, RosterChange::Left);
            let _ = self.people.unseat(player);
            self.record_left(player);
        }
        self.report_unseated(&identity);
        self.close_peer(at, code);
    }

    // Journals that a player leaves. If the match is paused, the frame with that roster change may come much later.
    fn record_left(&mut self, player: PlayerId) {
        if self.world.current.presence(player) != Presence::Absent {
            self.journal.write(&mut self.outbox, |recorder, out| {
                recorder.seat(player, "", out)
            });
        }
    }

    pub(super) fn close_peer(&mut self, at: usize, code: CloseCode) {
        let peer = self.people.take(at);
        if !peer.plays() {
            self.diagnostics.tally.join(JoinResult::of(code));
        }
        self.diagnostics.tally.record_removal(code);
        self.send_closed(peer.id, code);
        if matches!(
            code,
            CloseCode::TakenOver | CloseCode::JoinTooSlow | CloseCode::NoAcks
        ) {
            self.keep_join(&peer);
        }
        self.people.away.keep(self.clock.now, peer.end());
    }

    /// Keeps the world and the frames that a closed session still needed to join, in case its client returns.
    fn keep_join(&mut self, peer: &Peer) {
        if let Some((from, world)) = peer.unfinished() {
            self.snapshots.cut_off.keep(self.clock.now, from, world);
        }
    }

    pub(super) fn send_closed(&mut self, peer: SessionId, code: CloseCode) {
        // Sent three times, because the session is gone and cannot repeat it.
        for _ in 0..3 {
            self.outbox.packet(peer, closed::BYTES_MAX, |buffer| {
                let mut packet = Writer::new(buffer);
                closed::write(code, &mut packet).ok()?;
                Some(packet.len())
            });
        }
        self.outbox.push(Output::Closed { peer, code });
    }

    /// Handles a packet of a session. A packet of an unknown session is ignored. A malformed packet is counted; after
    /// too many of them the session is closed.
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
            &mut self.play_up,
            bytes,
        ) {
            Ok(UpRequest::None) => {}
            Ok(UpRequest::Join(hello)) => self.join(now, at, &hello),
            Ok(UpRequest::Leave) => self.leave(at, CloseCode::Left),
            Ok(UpRequest::Start) => self.decide_request(at, 0, MatchRequest::Start),
            Ok(UpRequest::Heal(tick)) => self.heal(now, at, tick),
            Ok(UpRequest::Evidence(tick)) => self.show_evidence(at, tick),
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
        self.people.record_view(at);
        while let Ok(Some(received)) = self.people[at].lane_in.poll_message() {
            if received.kind == message::STORED {
                self.record_stored_ticket(at, &received.bytes);
                continue;
            }
            if received.kind == message::REQUEST {
                self.handle_request(at, &received.bytes);
                continue;
            }
            if matches!(received.kind, message::COMMAND | message::ANSWER) {
                let (peer, seats) = (&mut self.people[at], &mut self.seats);
                let read = up::read_large(peer, seats, position, &mut self.play_up, &received);
                if read.is_err() {
                    self.diagnostics.stats.malformed += 1;
                    if peer.limits.strike(now) {
                        self.leave(at, CloseCode::Strikes);
                        return;
                    }
                }
                continue;
            }
            let peer = &mut self.people[at];
            let is_due = received.kind == message::REPORT
                && received.bytes.len() <= REPORT_BYTES_MAX
                && peer.inquiry.take_report();
            if !is_due || !self.diagnostics.reports.has_room() {
                self.diagnostics.stats.reports_dropped += 1;
                continue;
            }
            let text = String::from_utf8_lossy(&received.bytes);
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

    /// Takes the result of a resolver's job; `None` means that the job failed. Late results are ignored.
    pub fn complete(&mut self, job: JobId, outcome: Option<S::Outcome>) {
        self.queries.complete(job, outcome, &mut self.diagnostics);
    }

    /// Takes a client's answers to the queries of its own players. Ignores an answer that is late or repeated. If an
    /// answer is invalid or refused, the resolver answers instead.
    fn take_answers(&mut self) {
        let context = self.world.context(&self.people.views);
        let diagnostics = &mut self.diagnostics;
        for (player, answer) in self.play_up.answers.drain(..) {
            let id = QueryId::answered_by(&answer);
            if !self.queries.is_with_owner(id) {
                continue;
            }
            // An invalid outcome is a malformed answer here, not an author's mistake, so it is not an incident.
            let outcome = answer.outcome.as_ref();
            let is_admitted = outcome.is_some_and(|outcome| self.queries.is_sealable(outcome))
                && self
                    .sealer
                    .admits_answer(&context, player, &answer, &mut diagnostics.panics);
            diagnostics.report_panics();
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

    /// Removes an identity: closes its sessions and pending takeovers with this code, and frees its seats. An identity
    /// removed with [`CloseCode::Kicked`] is refused until it is [pardoned](Self::pardon) or the match ends. Returns
    /// `true` if the identity had a session, a seat or a reservation.
    pub fn remove_identity(&mut self, identity: &str, code: CloseCode) -> bool {
        let mut was_here = false;
        while let Some(at) = self.people.find(|p| p.identity.name == identity) {
            was_here = true;
            self.leave(at, code);
        }
        self.dismiss_takeovers_of(identity, code);
        let seats: Numbers = self.people.seats_of(identity).collect();
        for player in seats {
            if !was_here {
                self.diagnostics.tally.record_removal(code);
            }
            was_here = true;
            self.free(player);
        }
        was_here |= self.stop_expecting(identity);
        if was_here {
            let now = self.clock.now;
            self.people.away.bar(now, identity, code);
        }
        was_here
    }

    /// Lets a kicked identity join this match again. Returns `true` if the identity had been kicked.
    pub fn pardon(&mut self, identity: &str) -> bool {
        self.people.away.pardon(identity)
    }

    /// Starts a session of `seats` local players, or of a spectator if `seats` is 0. An identity gets its former
    /// players back. If the identity already has a session, that session continues until the new one sends its hello
    /// and takes over. A removed identity is refused: for 30 s if it was too slow in play, or made no progress with its
    /// world while others wanted its seats or slot; for 60 s after too many strikes; until the match ends if kicked.
    ///
    /// # Errors
    /// If the session is refused; the error is the close code to send. Other sessions are not affected.
    pub fn connect(
        &mut self,
        now: Duration,
        peer: SessionId,
        identity: &str,
        seats: usize,
    ) -> Result<(), CloseCode> {
        let identity = Identity::new(identity, Role::of_seats(seats));
        self.call(now, peer, (&identity, None), seats)
    }

    /// Like [`connect`](Match::connect), with the stamp of the ticket that the identity used, if any.
    pub(super) fn call(
        &mut self,
        now: Duration,
        peer: SessionId,
        (identity, came_by): (&Identity, Option<Stamp>),
        seats: usize,
    ) -> Result<(), CloseCode> {
        let now = self.clock.reach(now);
        if let Some(code) = self.closed {
            return Err(code);
        }
        if self.people.session_of(identity).is_none() {
            let entered = self.enter(now, peer, (identity, came_by), seats);
            if let Err(code) = entered {
                self.diagnostics.tally.join(JoinResult::of(code));
            }
            return entered;
        }
        let own = |takeover: &PendingTakeover| takeover.identity.name == identity.name;
        let takeovers = self.people.takeovers.iter();
        if takeovers.filter(|takeover| own(takeover)).count() == TAKEOVERS_MAX
            && let Some(oldest) = self.people.find_takeover(own)
        {
            self.dismiss(oldest, CloseCode::TakenOver);
        }
        self.people.takeovers.push(PendingTakeover {
            id: peer,
            identity: identity.clone(),
            seats,
            came_by,
            since: now,
        });
        Ok(())
    }

    /// Handles a packet of a pending takeover. Returns the index of its session if it has taken over.
    pub(super) fn handle_takeover(
        &mut self,
        now: Duration,
        peer: SessionId,
        bytes: &[u8],
    ) -> Option<usize> {
        let at = self.people.find_takeover(|takeover| takeover.id == peer)?;
        let packet = match up::first_packet(bytes) {
            Ok(packet) => packet,
            Err(_) => {
                self.diagnostics.stats.malformed += 1;
                self.strike_takeover(now, at);
                return None;
            }
        };
        match packet {
            up::FirstPacket::Hello(hello) => {
                if let Some(code) = self.refusal(&hello) {
                    self.dismiss(at, code);
                    return None;
                }
            }
            // The hello may have been lost: a client that was reconnecting leaves.
            up::FirstPacket::Leave => {
                let takeover = &self.people.takeovers[at];
                match self.people.session_of(&takeover.identity) {
                    Some(session) => self.leave(session, CloseCode::Left),
                    None => self.dismiss(at, CloseCode::Left),
                }
                return None;
            }
            up::FirstPacket::Other => return None,
        }
        let PendingTakeover {
            identity,
            seats,
            came_by,
            ..
        } = self.people.takeovers.remove(at);
        if let Err(code) = self.enter(now, peer, (&identity, came_by), seats) {
            self.diagnostics.tally.join(JoinResult::of(code));
            self.send_closed(peer, code);
            return None;
        }
        self.people.position(peer)
    }

    fn strike_takeover(&mut self, now: Duration, at: usize) {
        let takeover = &self.people.takeovers[at];
        let session = self.people.session_of(&takeover.identity);
        match session {
            None => self.dismiss(at, CloseCode::Strikes),
            Some(session) if self.people[session].limits.strike(now) => {
                self.leave(session, CloseCode::Strikes);
            }
            Some(_) => {}
        }
    }

    pub(super) fn forget_takeover(&mut self, peer: SessionId) {
        if let Some(at) = self.people.find_takeover(|c| c.id == peer) {
            self.people.takeovers.remove(at);
            self.diagnostics.tally.join(JoinResult::Gone);
        }
    }

    pub(super) fn dismiss_takeovers_of(&mut self, identity: &str, code: CloseCode) {
        while let Some(at) = self.people.find_takeover(|c| c.identity.name == identity) {
            self.dismiss(at, code);
        }
    }

    pub(super) fn dismiss_outdated(&mut self, identity: &Identity) {
        let is_outdated = |this: &Self, takeover: &PendingTakeover| {
            takeover.identity == *identity
                && takeover
                    .came_by
                    .is_some_and(|stamp| this.people.is_superseded(identity, &stamp))
        };
        while let Some(at) = self.people.find_takeover(|c| is_outdated(self, c)) {
            self.dismiss(at, CloseCode::Superseded);
        }
    }

    pub(super) fn end_silent_takeovers(&mut self, now: Duration) {
        let waits = |takeover: &PendingTakeover| now.saturating_sub(takeover.since) > HELLO_WITHIN;
        while let Some(at) = self.people.find_takeover(waits) {
            self.dismiss(at, CloseCode::JoinTooSlow);
        }
    }

    pub(super) fn dismiss(&mut self, at: usize, code: CloseCode) {
        let takeover = self.people.takeovers.remove(at);
        self.diagnostics.tally.join(JoinResult::of(code));
        self.send_closed(takeover.id, code);
    }

    /// Checks that the match can take another spectator. Returns an empty set of players.
    pub(super) fn assign_view(
        &self,
        identity: &str,
    ) -> Result<ArrayVec<PlayerId, SEATS_MAX>, CloseCode> {
        if let Some(code) = self.degradation.refuses_spectators() {
            return Err(code);
        }
        let others = |p: &&Peer| p.is_spectator() && p.identity.name != identity;
        if self.people.iter().filter(others).count() < self.config.spectators.max {
            Ok(ArrayVec::new())
        } else {
            Err(CloseCode::Full)
        }
    }

    /// The number of spectators in any stage.
    #[must_use]
    pub fn spectators(&self) -> usize {
        self.people.iter().filter(|p| p.is_spectator()).count()
    }

    pub(super) fn is_delayed(&self, at: usize) -> bool {
        self.config.spectators.delay_ticks > 0 && self.people[at].is_spectator()
    }

    // The delay shrinks during a pause, so that delayed spectators reach the pause.
    pub(super) fn spectator_delay(&self) -> u32 {
        let tick = self.world.current.turn().cadence.tick();
        let paused_ticks = ticks_in(self.paused_for(self.clock.now), tick);
        self.config
            .spectators
            .delay_ticks
            .saturating_sub(paused_ticks)
    }

    /// The end of the frames that a session may see.
    pub(super) fn shown_to(&self, at: usize) -> Tick {
        let delay = match self.is_delayed(at) {
            true => self.spectator_delay(),
            false => 0,
        };
        self.world.current.tick().back(delay).max(self.config.start)
    }

    /// Like [`connect`](Match::connect), with the stamp of the ticket used. The ticket becomes safe when the session
    /// plays: a refused or interrupted join does not use up the ticket.
    ///
    /// # Errors
    /// The errors of [`connect`](Match::connect), and [`CloseCode::Superseded`] if the ticket is out of date.
    pub fn connect_by_ticket(
        &mut self,
        now: Duration,
        peer: SessionId,
        identity: &str,
        seats: usize,
        stamp: Stamp,
    ) -> Result<(), CloseCode> {
        let identity = Identity::new(identity, Role::of_seats(seats));
        if self.people.is_superseded(&identity, &stamp) {
            self.diagnostics.tally.join(JoinResult::Superseded);
            return Err(CloseCode::Superseded);
        }
        self.call(now, peer, (&identity, Some(stamp)), seats)
    }

    /// Applies rulings on outdated tickets from another source, without writing them into the journal.
    pub fn know_rulings<'a>(&mut self, rulings: impl IntoIterator<Item = (&'a Identity, Ruling)>) {
        for (identity, ruling) in rulings {
            self.people.lineages.apply(identity, &ruling);
        }
    }

    /// Revokes the tickets of an identity: all lineages that the server has seen, and all tickets issued before
    /// `made_before_unix_ms`, according to the issuer's clock. Pass the current time plus
    /// [`REVOKE_SLACK_MS`](twinstep_protocol::lineage::REVOKE_SLACK_MS). Later tickets are valid. The current session
    /// of the identity continues, and gets tickets of a new lineage; to end it, call [`kick`](Match::kick).
    pub fn revoke(&mut self, identity: &Identity, made_before_unix_ms: u64) {
        self.rule(identity, |lineages| lineages.revoke(made_before_unix_ms));
    }

    /// Returns `true` if an identity's ticket is outdated.
    #[must_use]
    pub fn is_out_of_date(&self, identity: &Identity, stamp: &Stamp) -> bool {
        self.people.is_superseded(identity, stamp)
    }

    /// The outdated tickets of each identity and role (player or spectator).
    #[must_use]
    pub fn lineages(&self) -> &LineageTable<Identity> {
        &self.people.lineages
    }

    /// The lineage, generation and lifetime of a session's next ticket. Returns `None` if no session has this id.
    #[must_use]
    pub fn next_ticket(&self, peer: SessionId) -> Option<NextTicket> {
        let peer = self.people.peer(peer)?;
        let known = self.people.lineages.get(&peer.identity);
        let (came_by, newest) = (peer.tickets.came_by(), peer.tickets.newest());
        let nothing = Lineages::default();
        Some(known.unwrap_or(&nothing).next(came_by, newest))
    }

    /// Gives a session the reconnect ticket that [`Output::Ticket`](crate::outbox::Output::Ticket) requested. `stamp`
    /// comes from [`next_ticket`](Match::next_ticket), dated now; only the host and the client understand the bytes.
    pub fn hand_ticket(&mut self, peer: SessionId, stamp: Stamp, ticket: Vec<u8>) {
        let Some(peer) = self.people.peer_mut(peer) else {
            return;
        };
        // If the lane is full, the ticket is dropped, because another one follows soon.
        if peer.lane_out.push(message::TICKET, ticket.into()).is_ok() {
            peer.tickets.note_handed(stamp);
            let identity = peer.identity.clone();
            self.rule(&identity, |lineages| {
                lineages.note_handed(&stamp).into_iter().collect()
            });
            // A match has no wall clock, so it uses the time in the stamp.
            self.people.lineages.tidy(stamp.issued_unix_ms / 1_000);
        }
    }

    pub(super) fn make_used_ticket_safe(&mut self, at: usize) {
        if let Some(stamp) = self.people[at].tickets.came_by().copied() {
            self.make_safe(at, &stamp);
        }
    }

    /// Handles a client's report that it stored a ticket for its next process. Only tickets issued to this session
    /// count.
    pub(super) fn record_stored_ticket(&mut self, at: usize, report: &[u8]) {
        let tickets = &mut self.people[at].tickets;
        let stored = Stamp::read_stored(report)
            .and_then(|(lineage, generation)| tickets.take_stored(lineage, generation));
        match stored {
            Some(stamp) => self.make_safe(at, &stamp),
            None => self.diagnostics.stats.malformed += 1,
        }
    }

    fn make_safe(&mut self, at: usize, stamp: &Stamp) {
        let peer = &self.people[at];
        let identity = peer.identity.clone();
        self.rule(&identity, |lineages| lineages.make_safe(stamp));
    }

    /// Changes the lineages of an identity. The journal and the host get the resulting rulings.
    fn rule(&mut self, identity: &Identity, change: impl FnOnce(&mut Lineages) -> Vec<Ruling>) {
        let rulings = self.people.lineages.change(identity, change);
        for ruling in &rulings {
            self.journal.write(&mut self.outbox, |recorder, out| {
                recorder.ruling(*ruling, identity, out)
            });
            self.outbox.push(Output::Outdated {
                identity: identity.clone(),
                ruling: *ruling,
            });
        }
        if !rulings.is_empty() {
            self.dismiss_outdated(identity);
        }
    }
}
