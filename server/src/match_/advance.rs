//! How the match advances: deadlines, due turns, and the players that the match waits for.
//!
//! ```text
//!  command delay 0    tick t is sealed at its own deadline, with the inputs that have arrived
//!  command delay m    turn n + m is sealed when turn n is due (and, waiting for all, every batch has arrived)
//!
//!             n due        n+1 due      n+2 due            m = 2
//!  server  ───seal n+2─────seal n+3─────seal n+4───▶       its world is m turns ahead of the picture
//!                 ╲ down        ╱ up: the batch for n+3, closed when n+1 ran
//!  client  ────────run n──────run n+1──────run n+2──▶
//! ```
//!
//! A late turn pauses clients for its lateness, minus the part that the m − 1 turns in between absorb. The schedule
//! moves by the same time.
//!
//! The cadence of a turn is the slowest one requested by a session, limited by what each session may cost the others.
//!
//! ```text
//!  load, pauses, round trip ─▶ each session's tempo ─▶ asks for ticks, turns ─┬▶ the longest of each ─▶ cadence
//!  (counts while it is late)         ▲                                        └▶ its own budget pays for its request
//!                                    ╰──── spent: asks only for what its round trip needs
//! ```
//!
//! Invariant: an identity pays for the ticks that it makes longer, even if other identities request the same length. If
//! a turn is longer than most sessions request, the sessions with the longest request pay for it. So an identity slows
//! the others only until its own budget is spent, and no request is refused because of another identity.

use std::mem::discriminant;
use std::time::Duration;

use arrayvec::ArrayVec;
use twinstep_core::bounds::{ACK_SLOW_AFTER, KEEP_ALIVE, PLAYERS_MAX, RTT_MAX, ticks_in};
use twinstep_core::frame::PlayerSet;
use twinstep_core::turn::Cadence;
use twinstep_core::{PlayerId, Simulation};
use twinstep_protocol::packet::closed::CloseCode;

use super::Match;
use crate::clock::WaitReason;
use crate::config::{Laggards, SealWhen};
use crate::cost::Budget;
use crate::down::send_lane;
use crate::peer::Peer;
use crate::up;

/// The resend interval for unacknowledged frames in lockstep, and while the match waits.
const REPEAT: Duration = Duration::from_millis(50);
/// A match that is late by at most this many ticks, or `HURRY` if longer, catches up. A longer lateness is skipped.
const HURRY_TICKS: u32 = 8;
const HURRY: Duration = Duration::from_millis(130);
/// A waiting match is advanced every 50 ms. After a gap longer than this, the process is assumed to have been stopped.
const STOOD: Duration = Duration::from_millis(500);
/// A client's lag is explained up to the sum of its round trip, twice its jitter, one turn, the turns sealed ahead, and
/// this margin of at least [`TRAIL_TICKS_MIN`]. The margin covers one frame, because a client steps and reports only
/// once a frame.
const TRAIL: Duration = Duration::from_millis(50);
const TRAIL_TICKS_MIN: u32 = 3;
/// The match pauses for a client only if its lag is at least this many ticks higher than expected, because its reports
/// do not arrive exactly at the ticks.
const HOLD_TICKS_MIN: u32 = 2;
/// The shortest time between two pauses for clients that trail: after a pause, all clients are slightly late or early.
const HOLD_APART: Duration = Duration::from_millis(500);
// The last packets of a dead client can arrive this long after its first missing batch was due.
const LAST_PACKETS: Duration = Duration::from_millis(500);

impl<S: Simulation> Match<S> {
    /// The time at which [`advance`](Match::advance) next has work to do.
    #[must_use]
    pub fn next_due(&self) -> Duration {
        let Some(due) = self.clock.due else {
            return self.clock.now;
        };
        let repeat = self.clock.sent_at + self.repeat_every();
        let is_late = due <= self.clock.now;
        match is_late.then(|| self.wait()).flatten() {
            Some(WaitReason::Laggards(players)) => {
                repeat.min(self.clock.now + self.hold_left(players))
            }
            Some(
                WaitReason::Batches(_)
                | WaitReason::Return(_)
                | WaitReason::Start(_)
                | WaitReason::Pause,
            ) => repeat,
            None => due.min(repeat),
        }
    }

    fn hold_left(&self, players: PlayerSet) -> Duration {
        let Laggards::Hold { at_once, .. } = self.config.laggards else {
            return Duration::ZERO;
        };
        let is_held = |peer: &&Peer| peer.players.iter().any(|p| players.contains(*p));
        let held = self.people.iter().filter(is_held);
        held.map(|peer| at_once.saturating_sub(peer.limits.held()))
            .max()
            .unwrap_or_default()
    }

    /// Returns `true` if the next tick waits for a packet rather than for its time.
    pub fn waits_for_packet(&self) -> bool {
        let is_late = self.clock.due.is_some_and(|due| due <= self.clock.now);
        is_late && self.wait().is_some()
    }

    /// Returns `true` if there are no sessions, or all have a world and none has acknowledged a frame for a second.
    #[must_use]
    pub fn is_unacked(&self) -> bool {
        self.unacked_for() > ACK_SLOW_AFTER
    }

    /// The time since a client last acknowledged a frame. Zero while a session has no world or waits to take over, and
    /// [`Duration::MAX`] if there are no sessions.
    pub fn unacked_for(&self) -> Duration {
        let silence = |peer: &Peer| match peer.has_world() {
            true => peer.acks.stood_for(self.clock.now),
            false => Duration::ZERO,
        };
        match self.people.takeovers.is_empty() {
            true => self.people.iter().map(silence).min(),
            false => Some(Duration::ZERO),
        }
        .unwrap_or(Duration::MAX)
    }

    /// The players that the match waits for now, for example because their batch is missing. Clients get this set.
    #[must_use]
    pub fn waiting(&self) -> PlayerSet {
        match self.clock.waiting_since {
            Some(_) => self.wait().map(WaitReason::players).unwrap_or_default(),
            None => PlayerSet::default(),
        }
    }

    /// Does all work that is due by `now`: seals ticks, writes and sends turns, sends lane messages, closes
    /// unresponsive sessions. A call that is a few ticks late catches up; the match's clock skips a longer lateness.
    pub fn advance(&mut self, now: Duration) {
        let now = self.clock.reach(now);
        if self.closed.is_some() {
            return;
        }
        let tick = self.world.current.turn().cadence.tick();
        self.clock.begin(now, tick);
        self.end_return(now);
        self.gather(now);
        // Before the loop, so that players are not charged for time in which this process was stopped.
        self.give_way(now);
        while self.closed.is_none() && self.clock.due.is_some_and(|due| now >= due) {
            if let Some(wait) = self.wait() {
                self.wait_on(now, wait);
                break;
            }
            self.go_on(now);
        }
        if self.closed.is_none() && now >= self.clock.sent_at + self.repeat_every() {
            self.send_turns(true);
        }
        for peer in self.people.iter_mut() {
            // A silent session gets its lane's messages together, with its rare turn packets.
            if !peer.is_silent(now) || peer.sent_at == now {
                send_lane(peer, now, &mut self.outbox);
            }
        }
        self.look_after_peers(now);
        self.free_paused_seats(now);
        self.look_around(now);
        self.introduce();
    }

    /// The interval at which clients get a packet even if no turn is sealed. Without packets they assume that the
    /// server is gone.
    fn repeat_every(&self) -> Duration {
        if self.mode.is_lockstep() || self.clock.waiting_since.is_some() {
            REPEAT
        } else {
            KEEP_ALIVE
        }
    }

    /// Skips the time in which this process was stopped. It is not charged to sessions, nor made up for.
    fn give_way(&mut self, now: Duration) {
        let Some(due) = self.clock.due else { return };
        let before = self.clock.advanced_at.replace(now).unwrap_or(now);
        if self.clock.waiting_since.is_some() && now - before > STOOD {
            // The missing player is not to blame either, because its packets may be unread in the socket.
            let stood = now - before;
            self.clock.due = Some(due + stood);
            return self.shift_deadlines(stood);
        }
        let slack = HURRY.max(self.world.current.turn().cadence.tick() * HURRY_TICKS);
        if self.clock.waiting_since.is_some() || now <= due + slack {
            return;
        }
        // Skips whole ticks, so that the matches of a process keep their phases although all were stopped together.
        let tick = self.world.current.turn().cadence.tick();
        let ticks = (now - due).as_nanos() / tick.as_nanos();
        let slip = tick * u32::try_from(ticks).unwrap_or(u32::MAX);
        self.clock.due = Some(due + slip);
        self.shift_deadlines(slip);
    }

    fn shift_deadlines(&mut self, slip: Duration) {
        self.diagnostics.stats.slipped += slip;
        for seat in &mut self.seats {
            seat.missed_since += slip;
        }
        for peer in self.people.iter_mut() {
            peer.shift_deadlines(slip);
        }
        for takeover in &mut self.people.takeovers {
            takeover.since += slip;
        }
    }

    /// The reason why the next tick or turn must not be sealed yet, with the players that the match waits for.
    fn wait(&self) -> Option<WaitReason> {
        if let Some(awaited) = self.awaited_at_start() {
            return Some(WaitReason::Start(awaited));
        }
        if self.is_paused() {
            return Some(WaitReason::Pause);
        }
        // After a restart the match waits for all former players, under any policy.
        if self.clock.returning.is_some() {
            return Some(WaitReason::Return(self.missing_after_restart()));
        }
        if let SealWhen::WaitForAll { .. } = self.config.sealing {
            let turn = self.world.current.turn().number;
            let missing: PlayerSet = self
                .world
                .current
                .present()
                .iter()
                .filter(|player| {
                    let seat = &self.seats[player.index()];
                    turn >= seat.awaited_from
                        && seat.batch(turn).is_none()
                        && !self.sealer.leaves(*player)
                        // Its owner is not connected yet.
                        && self.people.expected(*player).is_none()
                })
                .collect();
            if !missing.is_empty() {
                return Some(WaitReason::Batches(missing));
            }
        }
        if let Laggards::Hold {
            at_once,
            per_minute,
            ..
        } = self.config.laggards
            && self.clock.now >= self.clock.hold_from
        {
            let trailing: PlayerSet = self
                .people
                .iter()
                .filter(|peer| {
                    self.trails(peer)
                        && peer
                            .limits
                            .may_be_held_for(self.clock.now, at_once, per_minute)
                })
                .flat_map(|peer| peer.players.iter().copied())
                .collect();
            if !trailing.is_empty() {
                return Some(WaitReason::Laggards(trailing));
            }
        }
        None
    }

    /// Returns `true` while the match seals late ticks. Clients have not seen these yet, so they do not trail.
    fn catches_up(&self) -> bool {
        let tick = self.world.current.turn().cadence.tick();
        let is_late = |due| self.clock.now >= due + tick;
        // During a hold nothing is sealed, however rarely `advance` is called.
        let is_held = matches!(self.clock.waited_for, Some(WaitReason::Laggards(_)));
        !is_held && self.clock.due.is_some_and(is_late)
    }

    /// Handles a wait of the match. A player that is awaited for too long is removed, and the others continue.
    fn wait_on(&mut self, now: Duration, wait: WaitReason) {
        self.record_missed(now, wait);
        // Up to now, the match waited for the players of the last call.
        let waited = self.clock.waited_for.replace(wait).unwrap_or(wait);
        self.pay(now, waited);
        match (wait, self.config.sealing) {
            (WaitReason::Batches(players), SealWhen::WaitForAll { kick_after }) => {
                // Even with a spent budget, a player may be as late as the turns in between absorb.
                let mut late = match self.clock.paid.is_zero() {
                    true => PlayerSet::default(),
                    false => self.people.overdrawn(now, players, Budget::of(kick_after)),
                };
                for player in players.iter() {
                    let since = self.seats[player.index()].missed_since;
                    let waited = now.saturating_sub(since.max(self.clock.excused_until));
                    if waited >= kick_after {
                        late.set(player, true);
                    }
                }
                for player in late.iter() {
                    let since = self.seats[player.index()].missed_since;
                    let is_silent = self.people.is_silent(player, since + LAST_PACKETS);
                    let identity = self.people.identity_of(player).map(str::to_owned);
                    self.remove(player, CloseCode::TooSlow);
                    if is_silent && let Some(identity) = identity {
                        let window = Budget::of(kick_after).window;
                        self.people.away.spare(now, &identity, window);
                    }
                }
            }
            (WaitReason::Batches(_), SealWhen::Deadline) => {}
            // The schedule moves with the clock, so the wait is not caught up.
            (
                WaitReason::Return(_)
                | WaitReason::Start(_)
                | WaitReason::Laggards(_)
                | WaitReason::Pause,
                _,
            ) => {
                self.clock.due = Some(now);
                self.clock.paid = Duration::ZERO;
            }
        }
    }

    /// Records the players that the match waits for now. During a wait, the time limit of each newly recorded player
    /// starts now.
    fn record_missed(&mut self, now: Duration, wait: WaitReason) {
        let since = match self.clock.waiting_since {
            Some(_) => now,
            None => self.clock.due.unwrap_or(now),
        };
        self.clock.waiting_since.get_or_insert(now);
        if let WaitReason::Start(_) = wait {
            return;
        }
        let is_same = |before: &WaitReason| discriminant(before) == discriminant(&wait);
        let before = self.clock.waited_for.filter(is_same);
        let before = before.map(WaitReason::players).unwrap_or_default();
        let missed: PlayerSet = wait
            .players()
            .iter()
            .filter(|p| !before.contains(*p))
            .collect();
        for player in missed.iter() {
            let seat = &mut self.seats[player.index()];
            seat.missed_since = since;
            seat.stats.awaited += 1;
        }
        let is_missed = |peer: &&mut Peer| peer.players.iter().any(|p| missed.contains(*p));
        for peer in self.people.iter_mut().filter(is_missed) {
            peer.record_late(now);
        }
    }

    /// Charges the awaited players for the delay of the schedule since the last call. Delay that does not cause a pause
    /// is free, because clients still have earlier turns to play.
    fn pay(&mut self, now: Duration, wait: WaitReason) {
        let began = self.clock.due.unwrap_or(now);
        if let WaitReason::Laggards(players) = wait {
            // The limit on pauses counts the whole pause, charged or not.
            let held = now.saturating_sub(began);
            self.diagnostics.stats.held += held;
            for peer in self.people.iter_mut() {
                if peer.players.iter().any(|p| players.contains(*p)) {
                    peer.limits.record_held(now, held);
                }
            }
        }
        let due = began.max(self.clock.excused_until);
        let absorbed = match wait {
            WaitReason::Batches(_) => self.clock.absorbed(),
            WaitReason::Laggards(_)
            | WaitReason::Return(_)
            | WaitReason::Start(_)
            | WaitReason::Pause => Duration::ZERO,
        };
        let cost = now.saturating_sub(due).saturating_sub(absorbed);
        // Only the time since the last call: a wait is charged step by step, so that a spent budget ends it early.
        let waited = cost.saturating_sub(self.clock.paid);
        self.clock.paid += waited;
        match (wait, self.config.sealing) {
            (WaitReason::Batches(players), SealWhen::WaitForAll { kick_after }) => {
                self.charge(now, players, waited, Budget::of(kick_after));
            }
            (WaitReason::Laggards(players), _) => {
                self.charge(now, players, waited, Budget::of(Duration::ZERO));
            }
            // A pause, the start and the server's own restart are charged to no player.
            (WaitReason::Batches(_), SealWhen::Deadline)
            | (WaitReason::Return(_) | WaitReason::Start(_) | WaitReason::Pause, _) => {}
        }
    }

    fn charge(&mut self, now: Duration, players: PlayerSet, waited: Duration, budget: Budget) {
        for player in players.iter() {
            self.seats[player.index()].stats.waited += waited;
        }
        let present = self.world.current.present();
        self.people.charge(now, players, present, waited, budget);
    }

    /// Continues after a pause, without catching up. A pause is not a sign of a slow machine or connection.
    fn end_pause(&mut self, now: Duration) {
        let lasted = self.paused_for(now);
        self.diagnostics.stats.paused += lasted;
        // Predicting clients stopped when they got the last turn, a tick before the next one was due. So the next tick
        // is due a tick from now, although its turn is sealed immediately.
        let tick = self.world.current.turn().cadence.tick();
        self.clock.due = Some(match self.mode.is_lockstep() {
            true => now,
            false => now + tick,
        });
        for peer in self.people.iter_mut() {
            peer.rhythm.shift_pause(lasted);
        }
    }

    pub(super) fn paused_for(&self, now: Duration) -> Duration {
        let is_paused = self.clock.waited_for == Some(WaitReason::Pause);
        let since = self.clock.waiting_since.filter(|_| is_paused);
        since.map_or(Duration::ZERO, |since| now.saturating_sub(since))
    }

    /// Seals the tick or turn that is due, and computes when the next one is due.
    fn go_on(&mut self, now: Duration) {
        // The match is not held for clients before they could receive the ticks that this server seals late.
        if self.catches_up() {
            self.clock.hold_from = now + HOLD_APART;
        }
        let was_paused = self.clock.waited_for == Some(WaitReason::Pause);
        if was_paused {
            self.end_pause(now);
        }
        if let Some(wait) = self.clock.waited_for.take() {
            if let WaitReason::Laggards(_) | WaitReason::Pause = wait {
                self.clock.hold_from = now + HOLD_APART;
            }
            self.pay(now, wait);
            self.record_pause(wait);
        }
        self.clock.paid = Duration::ZERO;
        self.clock.waiting_since = None;
        self.record_lags(now);
        let (began, number) = (self.world.current.tick(), self.world.current.turn().number);
        self.tick();
        // In lockstep a turn is sealed as a whole, also after a pause, so that clients continue as early as possible.
        while (self.mode.is_lockstep() || was_paused)
            && self.closed.is_none()
            && self.world.current.turn().number == number
        {
            self.tick();
        }
        let ticks = self.world.current.tick() - began;
        self.clock.record_sealed(now, ticks);
        let next = self.world.current.turn().number;
        for seat in &mut self.seats {
            seat.forget_batches(next);
        }
    }

    pub(super) fn position(&self, now: Duration) -> up::MatchPosition {
        let turn = self.world.current.turn();
        up::MatchPosition {
            now,
            next: self.world.current.tick(),
            turn: turn.number,
            mode: self.mode,
            due: self.clock.due.unwrap_or(now),
            is_paused: self.is_paused(),
            turn_length: turn.cadence.turn(),
            tick: turn.cadence.tick(),
        }
    }

    /// The number of ticks by which a session's authority is farther behind than expected. The expected lag is the
    /// explained one (see [`TRAIL`]), or the session's usual lag with its round trip and jitter, if that is known and
    /// smaller.
    fn trail(&self, peer: &Peer) -> u32 {
        let cadence = self.world.current.turn().cadence;
        let turn = u32::from(cadence.turn_ticks);
        let ticks = |time| ticks_of(time, cadence);
        let jitter = ticks(peer.link.jitter() * 2);
        let rtt = ticks(peer.link.rtt().unwrap_or_default());
        let way = rtt + jitter;
        let ahead = u32::from(self.mode.turns_ahead()) * turn;
        let frames = ticks(TRAIL).max(TRAIL_TICKS_MIN);
        let explained = ahead + turn + way + frames;
        let usual = peer.rhythm.usual_lag(cadence).map(|lag| lag + rtt + jitter);
        let lag = self.world.current.tick() - peer.acks.view();
        lag.saturating_sub(usual.map_or(explained, |usual| usual.min(explained)))
    }

    fn trails(&self, peer: &Peer) -> bool {
        let cadence = self.world.current.turn().cadence;
        let turn = u32::from(cadence.turn_ticks);
        let from = match self.config.laggards {
            Laggards::Hold { from, .. } => {
                ticks_in(from, cadence.tick()).max(turn).max(HOLD_TICKS_MIN)
            }
            Laggards::Ignore | Laggards::Kick { .. } => turn + 1,
        };
        peer.plays() && !peer.players.is_empty() && self.trail(peer) >= from
    }

    pub(super) fn kick_laggards(&mut self, now: Duration) {
        let Laggards::Kick { after } = self.config.laggards else {
            return;
        };
        for at in 0..self.people.len() {
            let trails = self.trails(&self.people[at]);
            self.people[at].rhythm.record_trailing(now, trails);
        }
        let is_over = |peer: &Peer| peer.rhythm.has_trailed_for(now, after);
        while let Some(at) = self.people.find(is_over) {
            self.leave(at, CloseCode::TooSlow);
        }
    }

    /// Records the lag of each client. The match may again pause at full length for clients that no longer trail.
    fn record_lags(&mut self, now: Duration) {
        let Laggards::Hold { .. } = self.config.laggards else {
            return;
        };
        let (next, cadence) = (self.world.current.tick(), self.world.current.turn().cadence);
        for at in 0..self.people.len() {
            let trail = self.trail(&self.people[at]);
            let peer = &mut self.people[at];
            // Not earlier, because the match would pause repeatedly for a client that catches up in steps.
            if trail == 0 {
                peer.limits.end_hold();
            }
            if peer.plays() {
                // Excludes the round trip, because its current value is known.
                let rtt = ticks_of(peer.link.rtt().unwrap_or_default(), cadence);
                let lag = (next - peer.acks.view()).saturating_sub(rtt);
                peer.rhythm.record_lag(now, cadence, lag);
            }
        }
    }

    /// The players whose machines or connections ask for longer ticks or turns than the others need. While there are
    /// such players, the match is slower or responds later, and these players are charged for it.
    #[must_use]
    pub fn slowing(&self) -> PlayerSet {
        let (common, longest) = self.asked_turns();
        let asks_for_more = |peer: &&Peer| {
            peer.plays()
                && !peer
                    .rhythm
                    .tempo()
                    .excess(&self.config, common, longest)
                    .is_zero()
        };
        let asking = self.people.iter().filter(asks_for_more);
        asking
            .flat_map(|peer| peer.players.iter().copied())
            .collect()
    }

    /// The median and the maximum of the turns requested by players' sessions, in ticks. For an even number of
    /// sessions, the median is the shorter of the two middle turns. If most connections need long turns, no session is
    /// charged for them.
    fn asked_turns(&self) -> (u8, u8) {
        let players = self
            .people
            .iter()
            .filter(|p| p.plays() && !p.is_spectator());
        let mut turns: ArrayVec<u8, PLAYERS_MAX> = players
            .take(PLAYERS_MAX)
            .map(|peer| peer.rhythm.tempo().turn_ticks())
            .collect();
        turns.sort_unstable();
        let median = turns.get(turns.len().saturating_sub(1) / 2);
        let turn = |ticks: Option<&u8>| ticks.copied().unwrap_or(0);
        (turn(median), turn(turns.last()))
    }

    pub(super) fn next_cadence(&mut self) -> Cadence {
        let (now, next) = (self.clock.now, self.world.current.tick());
        let last = self.world.current.turn().cadence;
        let (budget, (common, longest)) = (self.patience(), self.asked_turns());
        let mut cadence = self.config.cadence();
        for peer in self.people.iter_mut() {
            if !peer.plays() || peer.is_spectator() {
                peer.rhythm.forget_pauses();
                continue;
            }
            let fills = |player: &PlayerId| self.seats[player.index()].newest_by(now) < Some(next);
            // The newest input is older than this tick, so the tick will be filled.
            if !self.mode.is_lockstep() && peer.players.iter().any(fills) {
                peer.record_late(now);
            }
            let excess = peer.rhythm.tempo().excess(&self.config, common, longest);
            peer.limits.slowed.add(now, excess, budget.window);
            let is_spent = peer.limits.slowed.spent(now, budget.window) >= budget.spent_max;
            let line = (peer.link.rtt().unwrap_or_default(), peer.link.jitter());
            let asked = peer.rhythm.ask(now, &self.config, last, line, is_spent);
            cadence.turn_ticks = cadence.turn_ticks.max(asked.turn_ticks);
            cadence.tick_ns = cadence.tick_ns.max(asked.tick_ns);
        }
        cadence.turn_ticks = self.degradation.turn_ticks(cadence.turn_ticks);
        self.take_requests(last, &mut cadence);
        cadence
    }

    /// Records the end of a wait. The wait counts as a pause for the awaited sessions.
    pub(super) fn record_pause(&mut self, wait: WaitReason) {
        let players = match wait {
            WaitReason::Batches(players) | WaitReason::Laggards(players) => players,
            WaitReason::Return(_) | WaitReason::Start(_) | WaitReason::Pause => return,
        };
        let is_missing = |peer: &&mut Peer| peer.players.iter().any(|p| players.contains(*p));
        for peer in self.people.iter_mut().filter(is_missing) {
            peer.rhythm.record_waited_for();
        }
    }

    /// The budget of an identity for making the others wait, and for making ticks and turns longer.
    pub(super) fn patience(&self) -> Budget {
        Budget::of(match self.config.sealing {
            SealWhen::WaitForAll { kick_after } => kick_after,
            SealWhen::Deadline => Duration::ZERO,
        })
    }
}

fn ticks_of(time: Duration, cadence: Cadence) -> u32 {
    let time = time.min(RTT_MAX).as_nanos();
    time.div_ceil(cadence.tick().as_nanos()) as u32
}
