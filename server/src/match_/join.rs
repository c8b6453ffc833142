//! Joining: a session that sends its hello gets a world, or the frames after the world that it already has. When it has
//! caught up, its players join the match.
//!
//! ```text
//!  hello ─▶ fits? ─▶ the world that it has is known here? ── yes ─▶ welcome: frames from there ──┐
//!             │                  │ no, or a part of one                                          ▼
//!             ▼ refused          └▶ a slot free?  ─▶ welcome, and the world, or its rest ▶ caught up ─▶ Joined
//! ```
//!
//! At most two worlds at a time are sent to players, and eight to spectators, because worlds are large: each uses a
//! slot. When another session waits for a slot, a download loses its slot if it has run for 1 s at less than 128 KiB/s,
//! or progressed by less than 16 KiB in 3 s. It then continues without a slot, at no more than 128 KiB/s. But a stalled
//! spectator is closed, and so is a stalled player whose seats another session wants. A client that received less than
//! 16 KiB before that may not join again for 30 s. Frames do not need a slot.
//!
//! Invariants: a join does not cost the other players anything, because the new player joins only when the session's
//! authority has caught up, and in lockstep when its batches come in time. Every join ends, even if the client does not
//! answer: each stage of a session has a time limit.

use std::time::Duration;

use twinstep_core::bounds::{JOINS_AT_ONCE, RTT_MAX, ticks_in};
use twinstep_core::world::Presence;
use twinstep_core::{PlayerId, RosterChange, Simulation, Tick, codec};
use twinstep_protocol::packet::closed::CloseCode;
use twinstep_protocol::packet::hello::{Basis, Hello, Holds, Welcome};
use twinstep_protocol::packet::message;

use super::Match;
use crate::config::{AnsweredBy, SealWhen};
use crate::encoding::Snapshot;
use crate::mode::MatchMode;
use crate::outbox::Output;
use crate::peer::{Distance, Greeting, Judgement, Peer};
use crate::tally::JoinResult;

/// A client that waits for a slot must repeat its hello within this time, or it loses its turn.
const ASKS_AGAIN: Duration = Duration::from_millis(500);
/// The assumed cost of a frame for a joiner, in bytes: a frame is sent about three times until it is acknowledged. If a
/// world is smaller than the frames, the joiner gets the world, unless it has a recent authority.
const FRAME_BYTES: usize = 64;

/// The maximum number of worlds being sent to spectators, in addition to those being sent to players.
const VIEWS_AT_ONCE: usize = 8;
/// A session has caught up if its lag is at most its round trip, two turns, and `NEAR` (at least `NEAR_TICKS_MIN`).
const NEAR: Duration = Duration::from_millis(100);
const NEAR_TICKS_MIN: u32 = 6;
/// A session that catches up makes progress when it comes nearer by this much match time.
const STEP: Duration = Duration::from_secs(1);

/// If a match waits for batches, a new player joins once its batches arrive in time, or after this time.
const IN_TIME_WITHIN: Duration = Duration::from_secs(2);

/// The start of a session: `from` is the tick of its basis; `world` is sent without its first `u32` bytes.
struct Begins {
    at: usize,
    basis: Basis,
    from: Tick,
    world: Option<(Snapshot, u32)>,
}

impl Begins {
    /// Starts with the rest of a world, of which the session has the first `from` bytes.
    fn with(at: usize, world: Snapshot, from: u32) -> Begins {
        Begins {
            at,
            basis: Basis::World {
                world: world.id,
                from,
            },
            from: world.id.tick,
            world: Some((world, from)),
        }
    }
}

impl<S: Simulation> Match<S> {
    pub(super) fn join(&mut self, now: Duration, at: usize, hello: &Hello) {
        if let Some(code) = self.refusal(hello) {
            return self.leave_unseated(at, code);
        }
        if self.take_guest(now, at, hello) {
            return;
        }
        let rules = self.rules_for(at, hello);
        let begins = match self.by_frames(at, hello.holds) {
            Some((basis, from)) => self.begin_by_frames(now, at, basis, from),
            None => self.begin_by_world(now, at, hello.holds),
        };
        let Some(begins) = begins else {
            return; // The client repeats its hello, or was sent a close code.
        };
        let Begins {
            at,
            basis,
            from,
            world,
        } = begins;
        let returns = self.returns(at, basis);
        let peer = &mut self.people[at];
        let welcome = Welcome {
            seats: peer.players.clone(),
            next_seq: peer
                .players
                .iter()
                .map(|p| self.seats[p.index()].next_seq)
                .collect(),
            command_delay: self.mode.turns_ahead(),
            owners_answer: self.config.answered_by == AnsweredBy::Owner,
            basis,
        };
        let mut bytes = Vec::new();
        let granted = world.as_ref().map(|(world, _)| world.id);
        let lane = &mut peer.lane_out;
        let is_queued = codec::append(&welcome, &mut bytes).is_ok()
            && rules.is_none_or(|rules| lane.push(message::RULES, rules).is_ok())
            && lane.push(message::WELCOME, bytes.into()).is_ok()
            && world.is_none_or(|(world, from)| {
                lane.push_rest(message::WORLD, world.bytes, from as usize)
                    .is_ok()
            });
        if !is_queued {
            return;
        }
        for (n, player) in peer.players.iter().enumerate() {
            let name = hello.names.get(n).copied().unwrap_or_default();
            self.player_list.wish(*player, name);
        }
        self.diagnostics.stats.joined_by_frames += u64::from(matches!(basis, Basis::Start(..)));
        if returns && peer.limits.may_be_excused(now) {
            self.diagnostics.stats.excused += 1;
            // The player is back before it was dropped, and its input is on its way, so no roster change is needed.
            for player in &peer.players {
                if self.world.current.presence(*player) == Presence::Present {
                    let seat = &mut self.seats[player.index()];
                    seat.given = seat.given.max(self.world.current.tick());
                }
            }
        }
        // The client's first turn is this one, and the first batch that it closes is for m turns later. A resuming
        // session has also sent the earlier batches.
        let m = match basis {
            Basis::Authority => 0,
            Basis::World { .. } | Basis::Start(..) => self.mode.turns_ahead(),
        };
        let number = self.world.current.turn().number + u32::from(m);
        for player in &peer.players {
            self.seats[player.index()].awaited_from = number;
        }
        peer.begin_loading(now, granted, from);
        // So that the client can compare its world soon.
        self.world.digests.want();
        let settled = Output::Settled { peer: peer.id };
        self.outbox.push(settled);
    }

    /// The basis from which a client can continue by frames alone, and the tick of the basis. Returns `None` if the
    /// client needs a world.
    fn by_frames(&self, at: usize, holds: Holds) -> Option<(Basis, Tick)> {
        let (basis, from) = match (holds, self.origin.start) {
            (
                Holds::Authority {
                    tick,
                    digest,
                    agreed,
                },
                _,
            ) if self.is_ours(tick, digest, agreed) => (Basis::Authority, tick),
            (Holds::Start(digest), Some(start)) if start.digest == digest => {
                (Basis::Start(start.tick, start.cadence), start.tick)
            }
            _ => return None,
        };
        let shown = self.shown_to(at);
        if from > shown {
            return None;
        }
        let bytes = FRAME_BYTES * (shown - from) as usize;
        let is_cheaper = bytes <= self.diagnostics.stats.world_bytes;
        let history = &self.world.history;
        let is_there = match basis == Basis::Authority {
            // Older frames are kept for clients whose join was cut off.
            true => {
                let is_kept = from >= history.first() && self.snapshots.cut_off.reaches(from);
                history.reaches(from) || is_kept && is_cheaper
            }
            false => history.reaches(from) && is_cheaper,
        };
        is_there.then_some((basis, from))
    }

    /// Returns `true` if a client's authority equals the server's, judged by the digest at `tick` if the server took
    /// it, otherwise by the newest digest that the client compared. The next digest detects a later difference.
    fn is_ours(&self, tick: Tick, digest: u32, agreed: Option<(Tick, u32)>) -> bool {
        let ours = |tick| self.world.digest_at(tick).map(|ours| ours as u32);
        match (ours(tick), agreed) {
            (Some(ours), _) => ours == digest,
            (None, Some((at, digest))) => at <= tick && ours(at) == Some(digest),
            (None, None) => false,
        }
    }

    /// Returns `true` if a session returns instead of joining: all its players are in the match, and it continues from
    /// its authority.
    fn returns(&self, at: usize, basis: Basis) -> bool {
        let is_in = |player: &PlayerId| {
            self.world.current.presence(*player) != Presence::Absent && !self.sealer.leaves(*player)
        };
        basis == Basis::Authority && self.people[at].players.iter().all(is_in)
    }

    /// Starts a session by frames. It needs no slot. Its joins are rate-limited, unless it returns.
    fn begin_by_frames(
        &mut self,
        now: Duration,
        at: usize,
        basis: Basis,
        from: Tick,
    ) -> Option<Begins> {
        let returns = self.returns(at, basis);
        let peer = &mut self.people[at];
        peer.greeting_mut()?.ask(now);
        (returns || peer.limits.may_join(now)).then_some(Begins {
            at,
            basis,
            from,
            world: None,
        })
    }

    /// Finds the world, or its rest, with which a session starts. Returns `None` if the session must wait or was
    /// refused.
    fn begin_by_world(&mut self, now: Duration, at: usize, holds: Holds) -> Option<Begins> {
        let rest = self.rest_for(at, holds);
        let at = self.take_place(now, at, rest.is_some())?;
        if let Some((world, from)) = rest {
            return Some(Begins::with(at, world, from));
        }
        match self.world_for(at) {
            // `None` if no world is old enough yet to be shown.
            Ok(world) => Some(Begins::with(at, world?, 0)),
            Err(code) => {
                self.leave_unseated(at, code);
                None
            }
        }
    }

    /// The world of which a client has a part, and the length of that part in bytes. Returns `None` if that world is
    /// not kept or may not be shown to the client.
    fn rest_for(&self, at: usize, holds: Holds) -> Option<(Snapshot, u32)> {
        let Holds::Part { world, bytes } = holds else {
            return None;
        };
        let has_frames = world.tick >= self.world.history.first();
        if !has_frames || world.tick > self.shown_to(at) {
            return None;
        }
        let world = self.snapshots.cut_off.world(world, bytes)?;
        Some((world.clone(), bytes))
    }

    /// Reserves a slot for the world of the session at `at`. Returns the session's index afterwards, because freeing a
    /// slot may close other sessions. Returns `None` if the session must ask again, for example because its world must
    /// be encoded first. Sessions get slots in the order in which they asked; if none is free, a stalled or slow
    /// download loses its slot. `is_there` is `true` if the world is already encoded.
    fn take_place(&mut self, now: Duration, at: usize, is_there: bool) -> Option<usize> {
        let peer = &mut self.people[at];
        peer.greeting_mut()?.ask_for_world(now);
        // Players and spectators have separate slots, so players do not wait for spectators.
        let (id, watches) = (peer.id, peer.is_spectator());
        let places = if watches {
            VIEWS_AT_ONCE
        } else {
            JOINS_AT_ONCE
        };
        let alike = |p: &&Peer| p.is_spectator() == watches;
        let is_counted = |p: &Peer| p.greeting().is_some_and(Greeting::is_counted);
        let could_join = |p: &Peer| is_counted(p) || p.limits.could_join(now);
        if !could_join(&self.people[at]) {
            return None;
        }
        let mine = self.people[at].greeting()?;
        let asks_before = |p: &&Peer| {
            p.greeting().is_some_and(|greeting| {
                now.saturating_sub(greeting.at()) < ASKS_AGAIN && greeting.is_before(mine)
            }) && could_join(p)
        };
        let peers = self.people.iter().filter(alike);
        let before = peers.filter(asks_before).count();
        let loads = |this: &Self| {
            let peers = this.people.iter().filter(alike);
            peers.filter(|p| p.is_loading()).count()
        };
        // Each pass frees one slot, or gives up.
        while loads(self) + before >= places {
            self.free_place(now, watches)?;
        }
        let at = self.people.position(id)?;
        // Each join is counted once, even if its world must be encoded first.
        let peer = &mut self.people[at];
        if !is_counted(peer) {
            if !peer.limits.may_join(now) {
                return None;
            }
            peer.greeting_mut()?.count();
        }
        let has_world = is_there || self.has_world_for(now, at);
        if has_world {
            self.people[at].greeting_mut()?.settle();
        }
        has_world.then_some(at)
    }

    /// Frees the slot of a world that is slow or does not make progress. Returns `None` if there is no such world.
    fn free_place(&mut self, now: Duration, watches: bool) -> Option<()> {
        let loading = |p: &Peer| p.is_spectator() == watches && p.is_loading();
        let peers = &mut self.people;
        let stalled = |p: &Peer| loading(p) && p.is_stalled(now);
        if let Some(stalled) = peers.find(stalled) {
            if watches {
                self.put_out(now, stalled);
            } else {
                self.lose_place(now, stalled);
            }
            return Some(());
        }
        let slow = peers.find(|p| loading(p) && p.is_slow(now))?;
        peers[slow].go_beside();
        // Each of these keeps a world in memory, so the spectators' number is bounded. Players are few.
        let beside = |p: &&Peer| p.is_spectator() && p.loads_beside();
        let beside = peers.iter().filter(beside);
        if beside.clone().count() > VIEWS_AT_ONCE
            && let Some(oldest) = beside.min_by_key(|p| p.since).map(|p| p.id)
            && let Some(at) = self.people.position(oldest)
        {
            self.leave_unseated(at, CloseCode::JoinTooSlow);
        }
        Some(())
    }

    /// Frees the slot of a world that does not make progress. If the world never made any, its client may not join
    /// again for 30 s.
    fn lose_place(&mut self, now: Duration, at: usize) {
        let peer = &mut self.people[at];
        peer.go_beside();
        if !peer.has_progressed() {
            peer.limits.give_way(now);
        }
    }

    /// Returns `true` if a world for a session is ready, or can be encoded without making others wait. If not, lets the
    /// host encode one, if it can.
    fn has_world_for(&mut self, now: Duration, at: usize) -> bool {
        if self.is_delayed(at) {
            return self.snapshots.watched.world(self.shown_to(at)).is_some();
        }
        let oldest = self.oldest_for(at);
        if !self.snapshots.is_aside(now, &self.diagnostics)
            || self.snapshots.is_at_hand(now, &self.world, oldest)
        {
            return true;
        }
        if self.snapshots.aside.is_busy() {
            return false;
        }
        let Some(request) = self.people[at].greeting_mut() else {
            return false;
        };
        if request.may_encode() {
            let world = self.snapshots.encode(now, &self.world, &self.diagnostics);
            self.outbox.encode(world);
        } else {
            // A world was encoded for this session, but the session asked too late, and the world is no longer kept.
            request.settle();
        }
        false
    }

    /// The oldest tick of a world with which a session may join. A reconnecting player may have seen all earlier ticks.
    fn oldest_for(&mut self, at: usize) -> Tick {
        let (peer, world) = (&mut self.people[at], &self.world.current);
        let is_in = |player: &PlayerId| world.presence(*player) != Presence::Absent;
        if !peer.players.iter().any(is_in) {
            return Tick(0);
        }
        let began = world.turn().began;
        peer.greeting_mut()
            .map_or(began, |request| request.wait_from(began))
    }

    /// Closes a session that joins too slowly while another session needs its slot or seats.
    fn put_out(&mut self, now: Duration, at: usize) {
        let peer = &mut self.people[at];
        if !peer.has_progressed() {
            peer.limits.bar(now, CloseCode::JoinTooSlow);
        }
        self.leave_unseated(at, CloseCode::JoinTooSlow);
    }

    /// Frees as many seats as an identity lacks, from sessions that are not in the match and make no progress with
    /// their worlds.
    ///
    /// # Errors
    /// [`CloseCode::Full`] if too few seats can be freed. In that case, no seat is freed.
    pub(super) fn free_overdue(
        &mut self,
        now: Duration,
        identity: &str,
        seats: usize,
    ) -> Result<(), CloseCode> {
        let has = self.people.seats_of(identity);
        let numbers = (0..self.seats.len() as u8).map(PlayerId);
        let free = numbers.filter(|player| self.is_free_for(*player, identity));
        let free = free.count();
        let mut lacks = seats.saturating_sub(has.count() + free);
        let never_played = |player: &PlayerId| {
            self.world.current.presence(*player) == Presence::Absent
                && !self.sealer.changes(*player)
        };
        let mut overdue: Vec<&Peer> = self
            .people
            .iter()
            .filter(|p| !p.is_spectator() && p.is_overdue(now))
            .filter(|p| p.players.iter().all(never_played))
            .collect();
        overdue.sort_by_key(|p| p.since);
        // Collected first: if too few seats can be freed, no session may lose one.
        let mut out = Vec::new();
        for peer in overdue {
            if lacks == 0 {
                break;
            }
            lacks = lacks.saturating_sub(peer.players.len());
            out.push(peer.id);
        }
        if lacks > 0 {
            return Err(CloseCode::Full);
        }
        for id in out {
            if let Some(at) = self.people.position(id) {
                self.put_out(now, at);
            }
        }
        Ok(())
    }

    /// The world with which a session joins. Returns `None` if no world is old enough yet.
    fn world_for(&mut self, at: usize) -> Result<Option<Snapshot>, CloseCode> {
        if self.is_delayed(at) {
            return Ok(self.snapshots.watched.world(self.shown_to(at)));
        }
        let (now, oldest) = (self.clock.now, self.oldest_for(at));
        let (world, diagnostics) = (&self.world, &mut self.diagnostics);
        match self
            .snapshots
            .take_for_join(now, world, oldest, diagnostics)
        {
            Some(world) => Ok(Some(world)),
            None => Err(CloseCode::WorldTooLarge),
        }
    }

    /// Closes a session not yet in the match, and frees the seats of its players that never joined.
    pub(super) fn leave_unseated(&mut self, at: usize, code: CloseCode) {
        for player in self.people[at].players.clone() {
            if self.world.current.presence(player) == Presence::Absent {
                let _ = self.people.unseat(player);
            }
        }
        self.close_peer(at, code);
    }

    /// Adds the session's players to the match, unless they are already in it. If a player's number still belongs to a
    /// player that is about to leave, the new player waits until that player has left.
    pub(super) fn let_in(&mut self, at: usize) {
        let players = self.people[at].players.clone();
        if players.iter().any(|p| self.sealer.changes(*p)) {
            return;
        }
        if self.would_delay_others(at) {
            return;
        }
        let next = self.world.current.tick();
        let turn = self.world.current.turn().number;
        for player in players {
            let is_in = self.world.current.presence(player) != Presence::Absent;
            if is_in && self.people.expected(player).is_none() {
                continue;
            }
            let identity = self.people[at].identity.name.clone();
            self.people.record_owner(player, &identity);
            self.people.expect(player, None);
            // Not earlier: after a crash, the last identity that the journal names for a player number owns that
            // player's character.
            self.journal.write(&mut self.outbox, |recorder, out| {
                recorder.seat(player, &identity, out)
            });
            let seat = &mut self.seats[player.index()];
            // Seed row 21: earlier turns are sealed without its batches.
            seat.awaited_from = turn + u32::from(self.mode.turns_ahead());
            if !is_in {
                seat.given = seat.given.max(next);
                self.sealer.change(player, RosterChange::Joined);
            }
        }
    }

    /// Returns `true` if the others would now wait for the batches of new players. A client closes batches starting
    /// with its first turn, so these batches show whether the next ones will arrive in time.
    fn would_delay_others(&self, at: usize) -> bool {
        let (world, peer) = (&self.world.current, &self.people[at]);
        let is_new = |player: &&PlayerId| world.presence(**player) == Presence::Absent;
        let lacks_batch = |player: &PlayerId| {
            self.seats[player.index()]
                .batch(world.turn().number)
                .is_none()
        };
        matches!(self.config.sealing, SealWhen::WaitForAll { .. })
            && !world.present().is_empty()
            // After a restart or a load, all start together.
            && self.clock.returning.is_none()
            && self.clock.now.saturating_sub(peer.since) < IN_TIME_WITHIN
            && peer.players.iter().filter(is_new).any(lacks_batch)
    }

    /// Adds the players of sessions that have caught up; closes sessions that take too long or do not answer.
    pub(super) fn look_after_peers(&mut self, now: Duration) {
        self.kick_laggards(now);
        self.end_silent_takeovers(now);
        let oldest = self.world.history.first();
        let cadence = self.world.current.turn().cadence;
        let turn_ticks = u32::from(cadence.turn_ticks);
        // Frames of the unfinished turn have not been sent to any client.
        let sent = self.world.current.turn().began;
        let step_ticks = ticks_in(STEP, cadence.tick()).max(1);
        let near_ticks = ticks_in(NEAR, cadence.tick()).max(NEAR_TICKS_MIN);
        let mut at = 0;
        while at < self.people.len() {
            let next = self.shown_to(at);
            let peer = &mut self.people[at];
            let rtt_ticks = peer
                .link
                .rtt()
                .unwrap_or_default()
                .min(RTT_MAX)
                .as_secs_f64()
                / cadence.tick().as_secs_f64();
            if peer.acks.wanted() >= next.min(sent) {
                // The session has acknowledged all frames sent to it.
                peer.acks.forgive(now);
            }
            // A predicting client steps frames as fast as its machine can, so its authority must also be near.
            // Spectators and lockstep clients show turns later on purpose.
            let has_come_to = match self.mode {
                MatchMode::Prediction if !peer.is_spectator() => peer.acks.view(),
                _ => peer.acks.wanted(),
            };
            let distance = Distance {
                oldest,
                ticks: next - has_come_to,
                near: 2 * turn_ticks + near_ticks + rtt_ticks.ceil() as u32,
                step: step_ticks,
            };
            let judgement = peer.judge(now, &distance);
            if judgement == Judgement::CaughtUp {
                peer.play(now);
                self.diagnostics.tally.join(JoinResult::Playing);
                self.make_used_ticket_safe(at);
                for player in &self.people[at].players {
                    let seat = &mut self.seats[player.index()];
                    seat.given = seat.given.max(next);
                }
            }
            if self.people[at].plays() {
                self.let_in(at);
            }
            let (id, behind) = (self.people[at].id, self.people[at].acks.wanted() < oldest);
            if behind && self.people[at].has_world() {
                // The session lacks frames that are no longer kept, so it needs a world.
                if self.is_delayed(at) {
                    self.close_peer(at, CloseCode::NoAcks);
                } else {
                    self.send_world(now, at);
                }
            }
            if self.people.position(id) != Some(at) {
                continue; // It was closed above.
            }
            if self.people[at].takes_ticket(now) {
                self.outbox.push(Output::Ticket { peer: id });
            }
            // A closed session leaves its index to the next one, so `at` stays.
            match judgement {
                Judgement::Over(code @ CloseCode::NoAcks) => self.close_peer(at, code),
                Judgement::Over(code) => self.leave_unseated(at, code),
                Judgement::Stays | Judgement::CaughtUp => at += 1,
            }
        }
    }
}
