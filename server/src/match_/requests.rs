//! Requests to the match itself: its speed, a pause, single steps.
//!
//! ```text
//!  a player   ─ lane ─▶ rate limit ─▶ Referee::admit_request ─┬ admitted ─▶ Requested ─▶ cadence of the next turn
//!                            │                                │                 │
//!                            ╰──────── refused ───────────────┴─▶ that player   ╰▶ an event for all clients
//!  the host   ─ Match::request ──────────────────────────────────▶
//! ```
//!
//! Invariant: a request takes effect at the first tick of a turn. So it is part of a frame, and all clients, journals
//! and replays switch at the same tick.

use std::time::Duration;

use twinstep_core::turn::Cadence;
use twinstep_core::{PlayerId, Simulation};
use twinstep_protocol::packet::message;
use twinstep_protocol::packet::refusal::CommandRefusal;
use twinstep_protocol::packet::request::{MatchRequest, RequestResult};

use super::Match;
use super::tick::LEAVE_AFTER;
use crate::config::{ConfigError, TickLength};

impl<S: Simulation> Match<S> {
    /// Makes a request as the match's host. The referee is not asked. All clients get `Event::Request` without a player.
    /// Takes effect at the first tick of the next turn.
    ///
    /// # Errors
    /// If a value of the request is out of its range.
    pub fn request(&mut self, request: MatchRequest) -> Result<(), ConfigError> {
        if let MatchRequest::Tick(tick) = request
            && !request.is_sound()
        {
            return Err(ConfigError::Tick(tick));
        }
        self.apply_request(None, request);
        Ok(())
    }

    /// Returns `true` if the match is paused by a request, and stands still until another request.
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
        let now = self.clock.now;
        let peer = &mut self.people[at];
        let read = MatchRequest::decode(bytes);
        let read = read.and_then(|(seat, request)| {
            let by = peer.players.get(usize::from(seat))?;
            Some((*by, request))
        });
        let Some((by, request)) = read else {
            self.diagnostics.stats.malformed += 1;
            return;
        };
        let decision = match peer.limits.may_request(now) {
            false => Err(CommandRefusal::Bounds),
            true => self.sealer.admits_request(
                &self.world.context(&self.people.views),
                by,
                request,
                &mut self.diagnostics.panics,
            ),
        };
        self.diagnostics.report_panics();
        match decision {
            Ok(()) => self.apply_request(Some(by), request),
            Err(why) => {
                self.diagnostics.stats.requests_refused += 1;
                let result = RequestResult {
                    by: Some(by),
                    request,
                    refused: Some(why),
                };
                // A lane without room means that the client floods: it gets no answer.
                let _ = self.people[at]
                    .lane_out
                    .push(message::REQUEST_RESULT, result.encode().into());
            }
        }
    }

    /// Frees all seats of a paused match without sessions after a minute. No tick drops its players, so it would never
    /// be [deserted](Match::is_deserted).
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
            // A step of a match that is not paused.
            _ => {}
        }
        let result = RequestResult {
            by,
            request,
            refused: None,
        };
        let bytes: std::sync::Arc<[u8]> = result.encode().into();
        for peer in self.people.iter_mut().filter(|peer| peer.has_world()) {
            // A lane without room is full of earlier requests, and its client sees the cadence in any case.
            let _ = peer.lane_out.push(message::REQUEST_RESULT, bytes.clone());
        }
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
