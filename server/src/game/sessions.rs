//! The match's sessions: who comes, who goes, who is silent, who needs a world.
//!
//! ```text
//!  connect ─▶ Greeting ─hello─▶ Loading ─world─▶ CatchingUp ─near the newest turn─▶ Playing
//!                │ refused         │ too slow        │ too slow                        │ no acks, strikes
//!                ▼                 ▼                 ▼                                 ▼
//!              closed, with a reason that the player reads ◀───── leave, kick, taken over
//! ```
//!
//! A joiner costs the others nothing: its player joins only when its authority has caught up.

use super::spectators::VIEWS_AT_ONCE;
use super::*;
use crate::config::{Resolves, Sealing};
use crate::sealer::ticks_in;

/// Players' numbers.
type Numbers = ArrayVec<PlayerId, PLAYERS_MAX>;

/// Desync reports that wait to be looked at.
const REPORTS_MAX: usize = 16;

impl<S: Simulation> Match<S> {
    /// A session of `seats` local players begins. The same identity gets the same players as before, and
    /// takes them over from a session that still holds them. Who was removed stays out for a while: 30 s for being too
    /// slow, 60 s for strikes, and for the match if it was kicked.
    ///
    /// # Errors
    /// Why not; nothing was changed then.
    pub fn connect(
        &mut self,
        now: Duration,
        peer: PeerId,
        identity: &str,
        seats: usize,
    ) -> Result<(), CloseCode> {
        if let Some(code) = self.closed {
            return Err(code);
        }
        if let Some(code) = self.standings.barred(now, identity, seats == 0) {
            return Err(code);
        }
        let players = if seats == 0 {
            self.assign_view(identity)?
        } else {
            self.assign(identity, seats)?
        };
        // Who plays may watch too: each takes over its own kind only.
        let taken = |p: &Peer| p.identity == identity && p.is_spectator() == (seats == 0);
        if let Some(at) = self.peers.iter().position(taken) {
            self.close_peer(at, CloseCode::TakenOver);
        }
        for player in &players {
            let known = self.identities.iter().any(|(_, p)| p == player);
            let seat = &mut self.seats[player.index()];
            if known {
                // Commands that were accepted are not lost by coming back.
                seat.forget_inputs();
            } else {
                seat.purge();
                self.identities.push((identity.to_owned(), *player));
            }
        }
        let standing = self.standings.take(identity, seats == 0);
        let joined = Peer::new(peer, identity.to_owned(), players, standing, now);
        self.peers.push(joined);
        Ok(())
    }

    /// The sessions that are in the match.
    #[must_use]
    pub fn playing(&self) -> Vec<PeerId> {
        let playing = self.peers.iter().filter(|p| p.stage == Stage::Playing);
        playing.map(|p| p.id).collect()
    }

    /// Whether those in the match have heard all that is not said by turns: tickets, for example.
    #[must_use]
    pub fn is_all_heard(&self) -> bool {
        let mut playing = self.peers.iter().filter(|p| p.stage == Stage::Playing);
        playing.all(|p| p.lane_out.is_idle())
    }

    /// Whether nobody is there and nobody's seat is kept: all have left.
    #[must_use]
    pub fn is_deserted(&self) -> bool {
        self.peers.is_empty() && self.identities.is_empty()
    }

    /// Lets newcomers in, or none any more; who has a seat may return whatever is said here.
    pub fn set_open(&mut self, open: bool) {
        self.config.open = open;
    }

    /// Gives a session a ticket to return with, as [`Output::Ticket`] asked for. Its bytes are the host's and the
    /// client's own matter.
    pub fn hand_ticket(&mut self, peer: PeerId, ticket: Vec<u8>) {
        if let Some(peer) = self.peers.iter_mut().find(|p| p.id == peer) {
            // One that finds no room is followed by another.
            let _ = peer.lane_out.push(message::TICKET, ticket.into());
        }
    }

    /// Who a session is, and for how many local players; `None`: there is no such session.
    #[must_use]
    pub fn identity(&self, peer: PeerId) -> Option<(&str, usize)> {
        let peer = self.peers.iter().find(|p| p.id == peer)?;
        Some((&peer.identity, peer.players.len()))
    }

    /// Writes down that a ticket was used, before its session is let in: it must never work again.
    pub fn note_ticket(&mut self, ticket: u64, identity: &str) {
        self.journal(|recorder, out| recorder.ticket(ticket, identity, out));
    }

    /// The players of an identity: those it had, or free ones.
    fn assign(
        &self,
        identity: &str,
        seats: usize,
    ) -> Result<ArrayVec<PlayerId, SEATS_MAX>, CloseCode> {
        let seats = seats.clamp(1, SEATS_MAX);
        let known = self
            .identities
            .iter()
            .filter(|(name, _)| name == identity)
            .map(|(_, p)| *p);
        let mut players: ArrayVec<PlayerId, SEATS_MAX> = known.take(seats).collect();
        let numbers = (0..self.seats.len() as u8).map(PlayerId);
        let free = numbers.filter(|p| self.identities.iter().all(|(_, taken)| taken != p));
        // A number whose last player leaves with the next tick is there only if no other is.
        let (leaving, free): (Numbers, Numbers) = free.partition(|p| self.sealer.leaves(*p));
        if players.len() < seats && !self.config.open {
            return Err(CloseCode::Shut);
        }
        players.extend(free.into_iter().chain(leaving).take(seats - players.len()));
        if players.len() < seats {
            Err(CloseCode::Full)
        } else {
            Ok(players)
        }
    }

    /// The transport of a session is gone. Its players keep their seats until they are dropped.
    pub fn disconnect(&mut self, peer: PeerId) {
        if let Some(at) = self.peers.iter().position(|p| p.id == peer) {
            self.standings.keep(self.now, self.peers.remove(at));
        }
    }

    /// A session is to end: it is told why, and its players leave.
    pub fn kick(&mut self, peer: PeerId, code: CloseCode) {
        if let Some(at) = self.peers.iter().position(|p| p.id == peer) {
            self.leave(at, code);
        }
    }

    /// Ends the match: everybody is told why, and the journal is closed.
    pub fn close(&mut self, code: CloseCode) {
        if self.closed.is_some() {
            return;
        }
        while !self.peers.is_empty() {
            self.close_peer(0, code);
        }
        let reason = match code {
            CloseCode::Moved => MOVED.to_owned(),
            code => code.to_string(),
        };
        self.journal(|recorder, out| recorder.end(&reason, out));
        self.closed = Some(code);
    }

    /// A player is to leave, whether or not it has a session.
    pub(super) fn remove(&mut self, player: PlayerId, code: CloseCode) {
        if let Some(at) = self.peers.iter().position(|p| p.players.contains(&player)) {
            return self.leave(at, code);
        }
        self.seats[player.index()].purge();
        self.sealer.change(player, RosterChange::Left);
        if let Some(at) = self.identities.iter().position(|(_, p)| *p == player) {
            let (identity, _) = self.identities.remove(at);
            self.standings.bar(self.now, &identity, code);
        }
    }

    pub(super) fn leave(&mut self, at: usize, code: CloseCode) {
        self.peers[at].bar(self.now, code);
        for player in self.peers[at].players.clone() {
            self.seats[player.index()].purge();
            self.sealer.change(player, RosterChange::Left);
            self.identities.retain(|(_, p)| *p != player);
        }
        self.close_peer(at, code);
    }

    fn close_peer(&mut self, at: usize, code: CloseCode) {
        let peer = self.peers.remove(at);
        // Said a few times, because nobody will be there to say it again.
        for _ in 0..3 {
            self.outbox.packet(peer.id, 16, |buffer| {
                let mut packet = Writer::new(buffer);
                packet
                    .u8(down::CLOSED)
                    .and_then(|()| packet.value(&code))
                    .ok()?;
                Some(packet.len())
            });
        }
        self.outbox.push(Item::Closed(peer.id, code));
        self.standings.keep(self.now, peer);
    }

    /// Takes a packet of a session. A packet of an unknown session is ignored; one that breaks the
    /// protocol is counted, and closes the session when there are too many.
    pub fn handle(&mut self, now: Duration, peer: PeerId, bytes: &[u8]) {
        self.now = self.now.max(now);
        let Some(at) = self.peers.iter().position(|p| p.id == peer) else {
            return;
        };
        let standing = self.standing(now);
        match up::read(&mut self.peers[at], &mut self.seats, standing, bytes) {
            Ok(Asked::Nothing) => {}
            Ok(Asked::Join(hello)) => self.join(now, at, &hello),
            Ok(Asked::Leave) => self.leave(at, CloseCode::Left),
            Ok(Asked::Heal(tick)) => self.heal(now, at, tick),
            Ok(Asked::Evidence(tick)) => self.show_evidence(at, tick),
            Err(_) => {
                self.stats.malformed += 1;
                if self.peers[at].strike(now) {
                    self.leave(at, CloseCode::Strikes);
                    return;
                }
            }
        }
        let Some(peer) = self.peers.iter_mut().find(|p| p.id == peer) else {
            return;
        };
        for player in &peer.players {
            self.views[player.index()] = peer.view;
        }
        let players = peer.players.clone();
        while let Ok(Some(told)) = peer.lane_in.poll_message() {
            let is_due = told.kind == message::REPORT
                && told.bytes.len() <= REPORT_BYTES_MAX
                && peer.reports_due > 0;
            peer.reports_due -= u32::from(is_due);
            if !is_due || self.reports.len() == REPORTS_MAX {
                self.stats.reports_dropped += 1;
                continue;
            }
            let text = String::from_utf8_lossy(&told.bytes);
            self.reports.push_back(Report {
                peer: peer.id,
                text: text
                    .chars()
                    .filter(|c| !c.is_control() || *c == '\n')
                    .collect(),
                server_at_fault: peer.server_at_fault,
            });
        }
        for player in players {
            self.take_answers(player);
        }
    }

    fn join(&mut self, now: Duration, at: usize, hello: &Hello) {
        if let Some(code) = self.hello.refusal(hello) {
            return self.leave_unseated(at, code);
        }
        let resumed = hello
            .resume
            .is_some_and(|(tick, digest)| self.can_resume(at, tick, digest));
        let world = if resumed {
            None
        } else {
            // Nobody who comes to play waits for those who come to watch.
            let watches = self.peers[at].is_spectator();
            let alike = |p: &&Peer| p.is_spectator() == watches;
            let loading = |p: &&Peer| p.stage == Stage::Loading && !p.resumed;
            let loads = self.peers.iter().filter(alike).filter(loading).count();
            let busy = loads
                >= if watches {
                    VIEWS_AT_ONCE
                } else {
                    JOINS_AT_ONCE
                };
            if busy || !self.peers[at].may_join(now) {
                return; // The client repeats its hello.
            }
            match self.world_for(at) {
                Some(world) => Some(world),
                None => return, // Nothing old enough yet to show.
            }
        };
        let peer = &mut self.peers[at];
        let welcome = Welcome {
            seats: peer.players.clone(),
            next_seq: peer
                .players
                .iter()
                .map(|p| self.seats[p.index()].next_seq)
                .collect(),
            command_delay: self.config.command_delay,
            owners_answer: self.config.resolves == Resolves::Owner,
            resumed,
        };
        let had = hello.resume.map(|(tick, _)| tick);
        let Some(from) = world.as_ref().map(|(tick, _)| *tick).or(had) else {
            return;
        };
        let mut bytes = Vec::new();
        let told = codec::append(&welcome, &mut bytes).is_ok()
            && peer.lane_out.push(message::WELCOME, bytes.into()).is_ok()
            && world.is_none_or(|(_, world)| peer.lane_out.push(message::WORLD, world).is_ok());
        if told {
            for (n, player) in peer.players.iter().enumerate() {
                let name = hello.names.get(n).copied().unwrap_or_default();
                self.company.wish(*player, name);
            }
            peer.resumed = resumed;
            // The first turn that it runs is this one; its batch is for m turns later. Who resumes has the
            // batches before that too.
            let m = if resumed {
                0
            } else {
                self.config.command_delay
            };
            let number = self.world.turn().number + u32::from(m);
            for player in &peer.players {
                self.seats[player.index()].awaited_from = number;
            }
            peer.enter(Stage::Loading, now);
            peer.wanted = from;
            peer.view = from;
        }
    }

    /// Whether a client can go on by frames from the world that it has. Who is to join needs a world: those are
    /// handed out slowly, so that nobody comes and goes as fast as its line.
    fn can_resume(&self, at: usize, tick: Tick, digest: u32) -> bool {
        let is_in = |player: &PlayerId| {
            self.world.presence(*player) != Presence::Absent && !self.sealer.leaves(*player)
        };
        self.peers[at].players.iter().all(is_in)
            && tick >= self.history.first()
            && tick <= self.shown_to(at)
            && self.digest_at(tick).map(|ours| ours as u32) == Some(digest)
    }

    /// The world that a session joins with, and its tick.
    fn world_for(&mut self, at: usize) -> Option<(Tick, Arc<[u8]>)> {
        if self.is_delayed(at) {
            return self.watched.world(self.shown_to(at));
        }
        Some((self.world.tick(), self.snapshot()))
    }

    /// Closes a session that never came so far as to have players.
    fn leave_unseated(&mut self, at: usize, code: CloseCode) {
        for player in self.peers[at].players.clone() {
            if self.world.presence(player) == Presence::Absent {
                self.identities.retain(|(_, p)| *p != player);
            }
        }
        self.close_peer(at, code);
    }

    /// The current world as bytes, made once for all that ask at this tick.
    fn snapshot(&mut self) -> Arc<[u8]> {
        let tick = self.world.tick();
        if let Some((at, bytes)) = &self.snapshot
            && *at == tick
        {
            return bytes.clone();
        }
        let mut bytes = Vec::new();
        codec::append(&self.world, &mut bytes).expect("a world of at most 8 MiB");
        let bytes: Arc<[u8]> = bytes.into();
        self.snapshot = Some((tick, bytes.clone()));
        bytes
    }

    /// A client says that it differs at `tick`: its digest is trusted for nothing but this.
    fn heal(&mut self, now: Duration, at: usize, tick: Tick) {
        if self.is_delayed(at) {
            // The current world is not for its eyes; it may join again.
            return self.close_peer(at, CloseCode::Desync);
        }
        if !self.send_world(now, at) {
            return;
        }
        self.stats.desyncs += 1;
        if self.recorder.is_some() {
            let peer = self.peers[at].id;
            self.outbox.push(Item::Evidence(peer, tick));
        }
        self.peers[at].evidence = self.history.world(tick).and_then(|world| {
            let mut bytes = Vec::new();
            codec::append(world, &mut bytes).ok()?;
            Some((tick, Arc::from(bytes)))
        });
    }

    /// Sends the current world to a client that cannot go on from frames, if it may have one now.
    fn send_world(&mut self, now: Duration, at: usize) -> bool {
        if !self.peers[at].lane_out.is_idle() {
            return false; // On its way.
        }
        match self.peers[at].may_heal(now) {
            Some(true) => {}
            Some(false) => return false,
            None => {
                self.leave(at, CloseCode::Desync);
                return false;
            }
        }
        self.stats.heals += 1;
        let world = self.snapshot();
        self.peers[at].lane_out.push(message::HEAL, world).is_ok()
    }

    fn show_evidence(&mut self, at: usize, tick: Tick) {
        let peer = &mut self.peers[at];
        if let Some((kept, world)) = peer.evidence.take_if(|(kept, _)| *kept == tick) {
            debug_assert_eq!(kept, tick);
            if peer.lane_out.push(message::EVIDENCE, world).is_ok() {
                peer.reports_due += 1;
            }
        }
    }

    /// What a job of the resolver returned; `None`: it failed. Late answers are ignored.
    pub fn complete(&mut self, job: JobId, outcome: Option<S::Outcome>) {
        self.queries.complete(job, outcome);
    }

    /// Drops players of whom nothing is heard, brings them back when they speak, frees their seats.
    pub(super) fn note_silence(&mut self) {
        let next = self.world.tick();
        let turn = self.world.turn().number;
        let tick = self.world.turn().cadence.tick();
        // Where everybody is waited for, silence ends in a kick instead.
        let drops = self.config.sealing == Sealing::Deadline;
        for (i, seat) in self.seats.iter_mut().enumerate() {
            let player = PlayerId(i as u8);
            let session = self
                .peers
                .iter()
                .any(|p| p.stage == Stage::Playing && p.players.contains(&player));
            let speaks = session
                && match self.config.command_delay {
                    0 => seat.input(next).is_some(),
                    _ => seat.batch(turn).is_some(),
                };
            if let Some(change) = self
                .sealer
                .silence(self.world.presence(player), seat, next, tick, speaks)
                .filter(|change| drops || *change == RosterChange::Returned)
            {
                self.sealer.change(player, change);
                seat.changed = Some(next);
            }
            let presence = self.world.presence(player);
            let held = self.peers.iter().any(|p| p.players.contains(&player));
            let named = self.identities.iter().any(|(_, p)| *p == player);
            // Gone for long, or gone before it ever joined.
            let gone = presence == Presence::Dropped
                && next - seat.given > ticks_in(LEAVE_AFTER, tick)
                || presence == Presence::Absent && named;
            if gone && !held {
                self.sealer.change(player, RosterChange::Left);
                seat.purge();
                self.identities.retain(|(_, p)| *p != player);
            }
        }
    }

    /// Lets the players of a session in that are not in the match. Who got the number of a player that is about to
    /// leave is let in when that one has left.
    fn let_in(&mut self, at: usize) {
        let players = self.peers[at].players.clone();
        if players.iter().any(|p| self.sealer.changes(*p)) {
            return;
        }
        let next = self.world.tick();
        let turn = self.world.turn().number;
        for player in players {
            if self.world.presence(player) != Presence::Absent {
                continue;
            }
            let identity = self.peers[at].identity.clone();
            // Not sooner: after a crash, who is said to have a number has its character too.
            self.journal(|recorder, out| recorder.seat(player, &identity, out));
            self.sealer.change(player, RosterChange::Joined);
            let seat = &mut self.seats[player.index()];
            seat.given = seat.given.max(next);
            seat.changed = Some(next);
            // Seed row 21: the turns until then are sealed without it.
            seat.awaited_from = turn + u32::from(self.config.command_delay);
            self.joined = true;
        }
    }

    /// Lets joiners in who caught up; closes sessions that take too long or do not answer.
    pub(super) fn look_after_peers(&mut self, now: Duration) {
        self.kick_laggards(now);
        let oldest = self.history.first();
        let cadence = self.world.turn().cadence;
        let turn_ticks = u32::from(cadence.turn_ticks);
        let mut at = 0;
        while at < self.peers.len() {
            let next = self.shown_to(at);
            let peer = &mut self.peers[at];
            let rtt_ticks = peer
                .link
                .rtt()
                .unwrap_or_default()
                .min(RTT_MAX)
                .as_secs_f64()
                / cadence.tick().as_secs_f64();
            if peer.wanted >= next {
                // There is nothing that it could acknowledge.
                peer.progress_at = now;
            }
            let near = 2 * turn_ticks + 6 + rtt_ticks.ceil() as u32;
            let waited = now.saturating_sub(peer.since);
            let stuck = now.saturating_sub(peer.progress_at) > ACK_CLOSE_AFTER;
            let verdict = match peer.stage {
                Stage::Greeting | Stage::Loading => {
                    (waited > JOIN_TIME_MAX).then_some(CloseCode::JoinTooSlow)
                }
                Stage::CatchingUp if waited > JOIN_TIME_MAX => Some(CloseCode::JoinTooSlow),
                Stage::CatchingUp if next - peer.wanted <= near => {
                    peer.enter(Stage::Playing, now);
                    for player in &peer.players {
                        let seat = &mut self.seats[player.index()];
                        seat.given = seat.given.max(next);
                    }
                    self.let_in(at);
                    None
                }
                Stage::CatchingUp => None,
                Stage::Playing => {
                    self.let_in(at);
                    stuck.then_some(CloseCode::NoAcks)
                }
            };
            let (id, behind) = (self.peers[at].id, self.peers[at].wanted < oldest);
            if behind && self.peers[at].stage == Stage::Playing {
                // Farther behind than the frames that are kept: only a world helps.
                if self.is_delayed(at) {
                    self.close_peer(at, CloseCode::NoAcks);
                } else {
                    self.send_world(now, at);
                }
            }
            if self.peers.get(at).map(|p| p.id) != Some(id) {
                continue; // Healed too often: it is gone.
            }
            if self.peers[at].takes_ticket(now) {
                self.outbox.push(Item::Ticket(id));
            }
            match verdict {
                Some(code @ CloseCode::NoAcks) => self.close_peer(at, code),
                Some(code) => self.leave_unseated(at, code),
                None => at += 1,
            }
        }
    }
}
