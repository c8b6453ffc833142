//! Looks after who is there: players of whom nothing is heard, sessions that take too long or do not answer.
//!
//! Invariant: whatever a client does or fails to do, it ends: each stage of a session has its patience, and so has a
//! seat that nobody sits on.

use std::time::Duration;

use twinstep_core::bounds::{ACK_CLOSE_AFTER, HELLO_WITHIN, RTT_MAX, ticks_in};
use twinstep_core::world::Presence;
use twinstep_core::{PlayerId, RosterChange, Simulation};
use twinstep_protocol::packet::closed::CloseCode;

use super::Match;
use crate::config::SealWhen;
use crate::outbox::Output;
use crate::peer::SessionStage;
use crate::tally::JoinResult;

/// Who catches up is let in when its acks are no farther behind than its round trip, two turns and this explain.
const NEAR: Duration = Duration::from_millis(100);
const NEAR_TICKS_MIN: u32 = 6;
/// A client that catches up makes progress when it comes this much of the match's time nearer.
const STEP: Duration = Duration::from_secs(1);
/// A dropped player's seat is freed after so long.
const LEAVE_AFTER: Duration = Duration::from_secs(60);

impl<S: Simulation> Match<S> {
    /// Drops players of whom nothing is heard, brings them back when they speak, frees their seats.
    pub(super) fn note_silence(&mut self) {
        let next = self.world.current.tick();
        let turn = self.world.current.turn().number;
        let tick = self.world.current.turn().cadence.tick();
        // Where everybody is waited for, silence ends in a kick instead.
        let drops = self.config.sealing == SealWhen::Deadline;
        for i in 0..self.seats.len() {
            let player = PlayerId(i as u8);
            let seat = &mut self.seats[i];
            let session = self
                .people
                .peers
                .iter()
                .any(|p| p.stage == SessionStage::Playing && p.players.contains(&player));
            let speaks = session
                && match self.config.command_delay {
                    0 => seat.input(next).is_some(),
                    _ => seat.batch(turn).is_some() || seat.spoke.is_some_and(|at| next - at <= 1),
                };
            if let Some(change) = self
                .sealing
                .sealer
                .silence(
                    self.world.current.presence(player),
                    seat,
                    next,
                    tick,
                    speaks,
                )
                .filter(|change| drops || *change == RosterChange::Returned)
            {
                self.sealing.sealer.change(player, change);
                if change == RosterChange::Returned {
                    seat.returned = Some(next);
                }
            }
            let presence = self.world.current.presence(player);
            let held = self
                .people
                .peers
                .iter()
                .any(|p| p.players.contains(&player));
            let named = self.people.identities.iter().any(|(_, p)| *p == player);
            // Gone for long, or gone before it ever joined.
            let gone = presence == Presence::Dropped
                && next - seat.heard() > ticks_in(LEAVE_AFTER, tick)
                || presence == Presence::Absent && named;
            if gone && !held {
                self.free(player);
            }
        }
    }

    /// Lets joiners in who caught up; closes sessions that take too long or do not answer.
    pub(super) fn look_after_peers(&mut self, now: Duration) {
        self.kick_laggards(now);
        self.end_silent_takeovers(now);
        let oldest = self.world.history.first();
        let cadence = self.world.current.turn().cadence;
        let turn_ticks = u32::from(cadence.turn_ticks);
        // Of the turn that is not full nobody was told anything.
        let told = self.world.current.turn().began;
        let step_ticks = ticks_in(STEP, cadence.tick()).max(1);
        let near_ticks = ticks_in(NEAR, cadence.tick()).max(NEAR_TICKS_MIN);
        let mut at = 0;
        while at < self.people.peers.len() {
            let next = self.shown_to(at);
            let peer = &mut self.people.peers[at];
            let rtt_ticks = peer
                .link
                .rtt()
                .unwrap_or_default()
                .min(RTT_MAX)
                .as_secs_f64()
                / cadence.tick().as_secs_f64();
            if peer.acks.wanted() >= next.min(told) {
                // There is nothing that it could acknowledge.
                peer.acks.forgive(now);
            }
            // Who predicts steps what arrives as fast as its machine can, so its authority must be near too. Who plays
            // turns out shows them later on purpose.
            let has_come_to = match self.config.command_delay {
                0 if !peer.is_spectator() => peer.acks.view(),
                _ => peer.acks.wanted(),
            };
            let near = 2 * turn_ticks + near_ticks + rtt_ticks.ceil() as u32;
            let stuck = peer.acks.stood_for(now) > ACK_CLOSE_AFTER;
            let verdict = match peer.stage {
                // Waiting for a place does not count, as long as it is asked for.
                SessionStage::Greeting => {
                    let silent = now.saturating_sub(peer.request.at().max(peer.since));
                    (silent > HELLO_WITHIN).then_some(CloseCode::JoinTooSlow)
                }
                SessionStage::Loading => {
                    // Without the frames since, its world is of no use.
                    let in_vain = !peer.has_loaded() && peer.acks.wanted() < oldest;
                    let is_stuck = peer.is_stuck(now);
                    if is_stuck && !peer.has_loaded() && !peer.came_on() {
                        peer.limits.give_way(now);
                    }
                    (in_vain || is_stuck).then_some(CloseCode::JoinTooSlow)
                }
                SessionStage::CatchingUp if next - has_come_to <= near => {
                    peer.enter(SessionStage::Playing, now);
                    self.diagnostics.tally.join(JoinResult::Playing);
                    self.note_used(at);
                    let peer = &self.people.peers[at];
                    for player in &peer.players {
                        let seat = &mut self.seats[player.index()];
                        seat.given = seat.given.max(next);
                    }
                    self.let_in(at);
                    None
                }
                SessionStage::CatchingUp => {
                    peer.note_distance(now, next - has_come_to, step_ticks);
                    peer.is_stuck(now).then_some(CloseCode::JoinTooSlow)
                }
                SessionStage::Playing => {
                    self.let_in(at);
                    stuck.then_some(CloseCode::NoAcks)
                }
            };
            let (id, behind) = (
                self.people.peers[at].id,
                self.people.peers[at].acks.wanted() < oldest,
            );
            if behind && self.people.peers[at].stage.has_world() {
                // Farther behind than the frames that are kept: only a world helps.
                if self.is_delayed(at) {
                    self.close_peer(at, CloseCode::NoAcks);
                } else {
                    self.send_world(now, at);
                }
            }
            if self.people.peers.get(at).map(|p| p.id) != Some(id) {
                continue; // Healed too often: it is gone.
            }
            if self.people.peers[at].takes_ticket(now) {
                self.outbox.push(Output::Ticket { peer: id });
            }
            match verdict {
                Some(code @ CloseCode::NoAcks) => self.close_peer(at, code),
                Some(code) => self.leave_unseated(at, code),
                None => at += 1,
            }
        }
    }
}
