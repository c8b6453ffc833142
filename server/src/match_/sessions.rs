//! The match's sessions: who comes and goes, and what they say.
//!
//! ```text
//!  connect ─▶ Greeting ─hello─▶ Loading ─world─▶ CatchingUp ─near the newest turn─▶ Playing
//!                │ refused         │ too slow        │ too slow                        │ no acks, strikes
//!                ▼                 ▼                 ▼                                 ▼
//!              closed, with a reason that the player reads ◀───── leave, kick, taken over
//! ```
//!
//! Invariant: an identity has its seat until it leaves or is removed, whatever becomes of its sessions.

use std::time::Duration;
use twinstep_protocol::lineage::Stamp;

use arrayvec::ArrayVec;
use twinstep_core::bounds::{PLAYERS_MAX, REPORT_BYTES_MAX, SEATS_MAX};
use twinstep_core::{PlayerId, RosterChange, Simulation};
use twinstep_protocol::packet::closed::CloseCode;
use twinstep_protocol::packet::{closed, message};
use twinstep_protocol::text::plain;
use twinstep_protocol::wire::Writer;

use super::Match;
use crate::diagnostics::Report;
use crate::ended::{KEPT, MOVED, is_resumable};
use crate::journal::JournalOut;
use crate::outbox::Output;
use crate::peer::{Peer, SessionStage, Verdict};
use crate::tally::JoinResult;
use crate::up;
use crate::up::Asked;
use twinstep_protocol::identity::SessionId;

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
            let known = self.people.identities.iter().any(|(_, p)| p == player);
            let seat = &mut self.seats[player.index()];
            if known {
                // Commands that were accepted are not lost by coming back.
                seat.forget_inputs();
            } else {
                // Who had this number before has heard the fate of its orders when it left.
                let _ = seat.purge();
                seat.expect_new_claims();
                self.people.identities.push((identity.to_owned(), *player));
                self.people.lately[player.index()] = Some(identity.to_owned());
            }
            seat.expect_gaps();
        }
        let limits = self.people.away.take(identity, seats == 0);
        let who = (identity.to_owned(), came_by);
        let joined = Peer::new(peer, who, players, limits, now);
        self.people.peers.push(joined);
        Ok(())
    }

    /// The sessions that are in the match.
    #[must_use]
    pub fn playing(&self) -> Vec<SessionId> {
        let playing = self
            .people
            .peers
            .iter()
            .filter(|p| p.stage == SessionStage::Playing);
        playing.map(|p| p.id).collect()
    }

    /// Whether nobody is on its way into the match, and all have heard what is not said by turns: worlds that heal, and
    /// tickets, for example.
    #[must_use]
    pub fn is_all_heard(&self) -> bool {
        let here = |p: &Peer| p.stage == SessionStage::Playing && p.lane_out.is_idle();
        self.people.takeovers.is_empty() && self.people.peers.iter().all(here)
    }

    /// Whether nobody is there and nobody's seat is kept: all have left.
    #[must_use]
    pub fn is_deserted(&self) -> bool {
        self.people.peers.is_empty() && self.people.identities.is_empty()
    }

    /// Whether anybody ever had a seat: who has left counts too. A match that is [deserted](Match::is_deserted) and was not joined
    /// still waits for its first player.
    #[must_use]
    pub fn was_joined(&self) -> bool {
        self.people.lately.iter().any(Option::is_some)
    }

    /// The identities that have seats.
    pub fn seat_holders(&self) -> impl Iterator<Item = &str> + '_ {
        let identities = self.people.identities.iter();
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
        let own = self.people.peers.iter().filter(|p| p.identity == identity);
        own.map(|p| p.id).collect()
    }

    /// The players of an identity: those it has, those it had, or free ones.
    fn assign(
        &self,
        identity: &str,
        seats: usize,
    ) -> Result<ArrayVec<PlayerId, SEATS_MAX>, CloseCode> {
        let seats = seats.clamp(1, SEATS_MAX);
        let known = self
            .people
            .identities
            .iter()
            .filter(|(name, _)| name == identity)
            .map(|(_, p)| *p);
        let mut players: ArrayVec<PlayerId, SEATS_MAX> = known.take(seats).collect();
        let numbers = (0..self.seats.len() as u8).map(PlayerId);
        let free = numbers.filter(|p| self.people.identities.iter().all(|(_, taken)| taken != p));
        // A simulation knows players by number. So who comes again gets the one that it had and finds what it left there,
        // and who is new gets one that nobody had, if there is one. Of the others, a number whose last player leaves
        // with the next tick is there only if no other is.
        let order = |p: &PlayerId| match &self.people.lately[p.index()] {
            Some(had) if had == identity => 0,
            None => 1,
            Some(_) => 2 + u8::from(self.sealing.sealer.leaves(*p)),
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
            let gone = self.people.peers.remove(at);
            self.keep_join(&gone);
            if gone.stage != SessionStage::Playing {
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
        while !self.people.peers.is_empty() {
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
        if let Some(at) = self
            .people
            .peers
            .iter()
            .position(|p| p.players.contains(&player))
        {
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
        self.sealing.sealer.change(player, RosterChange::Left);
        let refused = self.seats[player.index()].purge();
        let at = self
            .people
            .identities
            .iter()
            .position(|(_, p)| *p == player)?;
        let (identity, _) = self.people.identities.remove(at);
        self.note_unseated(&identity);
        // Who plays on without this seat has nobody there who could hear of it.
        if !self.people.peers.iter().any(|p| p.plays_as(&identity)) {
            for refused in refused {
                self.people.away.refuse(self.clock.now, &identity, refused);
            }
        }
        Some(identity)
    }

    fn note_unseated(&mut self, identity: &str) {
        if self
            .people
            .identities
            .iter()
            .all(|(name, _)| name != identity)
        {
            self.outbox.push(Output::Unseated {
                identity: identity.to_owned(),
            });
        }
    }

    pub(super) fn leave(&mut self, at: usize, code: CloseCode) {
        self.people.peers[at].limits.bar(self.clock.now, code);
        let identity = self.people.peers[at].identity.clone();
        self.dismiss_takeovers_of(&identity, code);
        for player in self.people.peers[at].players.clone() {
            for refused in self.seats[player.index()].purge() {
                self.people.peers[at].refuse(refused);
            }
            self.sealing.sealer.change(player, RosterChange::Left);
            self.people.identities.retain(|(_, p)| *p != player);
        }
        self.note_unseated(&identity);
        self.close_peer(at, code);
    }

    pub(super) fn close_peer(&mut self, at: usize, code: CloseCode) {
        let peer = self.people.peers.remove(at);
        if peer.stage != SessionStage::Playing {
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
        let limits = self.position(now);
        match up::read(
            &mut self.people.peers[at],
            &mut self.seats,
            limits,
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
                if self.people.peers[at].limits.strike(now) {
                    self.leave(at, CloseCode::Strikes);
                    return;
                }
            }
        }
        let Some(at) = self.people.position(peer) else {
            return;
        };
        for player in &self.people.peers[at].players {
            self.people.views[player.index()] = self.people.peers[at].acks.view();
        }
        let players = self.people.peers[at].players.clone();
        while let Ok(Some(told)) = self.people.peers[at].lane_in.poll_message() {
            if told.kind == message::STORED {
                self.note_stored(at, &told.bytes);
                continue;
            }
            let peer = &mut self.people.peers[at];
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
        for player in players {
            self.take_answers(player);
        }
    }
}
