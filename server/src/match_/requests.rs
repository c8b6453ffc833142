//! Requests to the match itself: its speed, a pause, single steps, a save, its start.
//!
//! ```text
//!  a player   ─ lane ─▶ rate limit ─▶ Referee::admit_request ─┬ admitted ─▶ Requested ─▶ cadence of the next turn
//!                            │                                │                 │
//!                            ╰──────── refused ───────────────┴─▶ that player   ╰▶ an event for all clients
//!  the host   ─ Match::request ──────────────────────────────────▶
//!
//!  a save: admitted ─▶ Output::Save ─▶ the host writes it ─▶ hand_saved ─▶ an event for all clients, or a refusal
//! ```
//!
//! Invariant: a request that changes the course of the match takes effect at the first tick of a turn. So it is part of
//! a frame, and all clients, journals and replays switch at the same tick. A save and a start do not change frames.

use std::sync::Arc;
use std::time::Duration;

use twinstep_core::turn::Cadence;
use twinstep_core::{PlayerId, Simulation};
use twinstep_protocol::packet::message;
use twinstep_protocol::packet::refusal::CommandRefusal;
use twinstep_protocol::packet::request::{MatchRequest, RequestResult};

use super::Match;
use super::tick::LEAVE_AFTER;
use crate::config::{ConfigError, TickLength};
use crate::outbox::Output;
use crate::peer::Peer;

impl<S: Simulation> Match<S> {
    /// Makes a request as the match's host. The referee is not asked. All clients get `Event::Request` without a
    /// player. A save or a start takes effect immediately, another request at the first tick of the next turn; in a lobby,
    /// at the first tick of the match.
    ///
    /// # Errors
    /// If a value in the request is out of range. [`MatchRequest::Save`] fails without
    /// [`offer_saves`](Match::offer_saves), in a lobby or during a save; [`MatchRequest::Start`] fails without a lobby.
    pub fn request(&mut self, request: MatchRequest) -> Result<(), ConfigError> {
        if let MatchRequest::Tick(tick) = request
            && !request.is_sound()
        {
            return Err(ConfigError::Tick(tick));
        }
        let may_fail = matches!(request, MatchRequest::Save | MatchRequest::Start);
        if may_fail && (!self.can(request) || self.requested.saving.is_some()) {
            return Err(ConfigError::Request(request));
        }
        self.apply_request(None, request);
        Ok(())
    }

    /// Allows players to request saves, if the referee admits it. The host runs each [`Output::Save`], and then calls
    /// [`hand_saved`](Match::hand_saved).
    pub fn offer_saves(&mut self) {
        self.requested.offers_saves = true;
    }

    /// Takes the result of an [`Output::Save`]. If the save was written, all clients get `Event::Request` with the
    /// player that requested it; otherwise that player gets a refusal.
    pub fn hand_saved(&mut self, is_written: bool) {
        let Some(by) = self.requested.saving.take() else {
            return;
        };
        let result = RequestResult {
            by,
            request: MatchRequest::Save,
            refused: (!is_written).then_some(CommandRefusal::Unavailable),
        };
        let asked = |peer: &Peer| by.is_some_and(|by| peer.players.contains(&by));
        match is_written {
            true => self.send_result(result, Peer::has_world),
            false => self.send_result(result, asked),
        }
    }

    /// Returns `true` if a request has paused the match. It stays paused until another request.
    #[must_use]
    pub fn is_paused(&self) -> bool {
        let turn = self.world.current.turn();
        let is_over = matches!(self.requested.pause, Some((false, _)));
        turn.cadence.paused
            && !is_over
            && self.requested.steps == 0
            && turn.began == self.world.current.tick()
    }

    pub(super) fn handle_request(&mut self, at: usize, bytes: &[u8]) {
        match MatchRequest::decode(bytes) {
            Some((seat, request)) => self.decide_request(at, seat.into(), request),
            None => self.diagnostics.stats.malformed += 1,
        }
    }

    pub(super) fn decide_request(&mut self, at: usize, seat: usize, request: MatchRequest) {
        let now = self.clock.now;
        let Some(by) = self.people[at].players.get(seat).copied() else {
            self.diagnostics.stats.malformed += 1;
            return;
        };
        let mut decision = match self.people[at].limits.may_request(now) {
            false => Err(CommandRefusal::Bounds),
            true if !self.can(request) => Err(CommandRefusal::Unavailable),
            true => self.sealer.admits_request(
                &self.world.context(&self.people.views),
                by,
                request,
                &mut self.diagnostics.panics,
            ),
        };
        self.diagnostics.report_panics();
        if request == MatchRequest::Save && decision.is_ok() {
            let is_free = self.requested.saving.is_none();
            if !is_free || !self.people[at].limits.may_save(now) {
                decision = Err(CommandRefusal::Bounds);
            }
        }
        match decision {
            Ok(()) => self.apply_request(Some(by), request),
            Err(why) => {
                self.diagnostics.stats.requests_refused += 1;
                let result = RequestResult {
                    by: Some(by),
                    request,
                    refused: Some(why),
                };
                let id = self.people[at].id;
                self.send_result(result, |peer| peer.id == id);
            }
        }
    }

    // Returns `true` if the match can do this at all. In a lobby, a player can only request the start.
    fn can(&self, request: MatchRequest) -> bool {
        match request {
            MatchRequest::Start => self.lobby().is_some(),
            _ if self.lobby().is_some() => false,
            MatchRequest::Save => self.requested.offers_saves,
            _ => true,
        }
    }

    fn send_result(&mut self, result: RequestResult, is_for: impl Fn(&Peer) -> bool) {
        let bytes: Arc<[u8]> = result.encode().into();
        for peer in self.people.iter_mut().filter(|peer| is_for(peer)) {
            // A lane full of results belongs to a client that floods the match with requests.
            let _ = peer.lane_out.push(message::REQUEST_RESULT, bytes.clone());
        }
    }

    // Frees all seats of a paused match that has had no sessions for a minute. No tick drops its players, so otherwise
    // it would never be [deserted](Match::is_deserted).
    pub(super) fn free_paused_seats(&mut self, now: Duration) {
        if !self.is_paused() || self.sessions() > 0 {
            self.requested.alone_since = None;
            return;
        }
        let since = *self.requested.alone_since.get_or_insert(now);
        if now.saturating_sub(since) > LEAVE_AFTER {
            for player in (0..self.seats.len() as u8).map(PlayerId) {
                if self.people.identity_of(player).is_some() {
                    self.free(player);
                }
            }
        }
    }

    fn apply_request(&mut self, by: Option<PlayerId>, request: MatchRequest) {
        self.diagnostics.stats.requests += 1;
        match request {
            MatchRequest::Tick(tick) => self.set_tick(tick),
            MatchRequest::Pause => {
                (self.requested.pause, self.requested.steps) = (Some((true, by)), 0);
            }
            MatchRequest::Resume => {
                (self.requested.pause, self.requested.steps) = (Some((false, None)), 0);
            }
            MatchRequest::Step(ticks) if self.world.current.turn().cadence.paused => {
                self.requested.steps += u32::from(ticks);
            }
            MatchRequest::Save => {
                self.requested.saving = Some(by);
                let saving = self.saving(by);
                self.outbox.push(Output::Save(saving));
                return;
            }
            MatchRequest::Start => drop(self.start()),
            // A single step was requested while the match was not paused.
            _ => {}
        }
        let result = RequestResult {
            by,
            request,
            refused: None,
        };
        self.send_result(result, |peer| peer.has_world() || peer.guest().is_some());
    }

    pub(super) fn take_requests(&mut self, last: Cadence, cadence: &mut Cadence) {
        let requested = &mut self.requested;
        (cadence.paused, cadence.paused_by) = match requested.pause.take() {
            Some(pause) => pause,
            None => (last.paused, last.paused_by),
        };
        cadence.requested_ns = requested.tick_ns;
        let turn_ticks = u32::from(cadence.turn_ticks);
        requested.steps = requested.steps.saturating_sub(turn_ticks);
    }

    pub(super) fn resume_requests(&mut self) {
        if let Some(ns) = self.world.current.turn().cadence.requested_ns {
            self.set_tick(Duration::from_nanos(ns.into()));
        }
    }

    fn set_tick(&mut self, tick: Duration) {
        self.config.tick = tick;
        if let TickLength::Adaptive { max } = &mut self.config.tick_length {
            *max = tick.max(*max);
        }
        self.requested.tick_ns = Some(tick.as_nanos() as u32);
    }
}
