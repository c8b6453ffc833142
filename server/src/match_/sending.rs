//! Sending to all sessions: turns, names, and the presence and link quality of players.

use std::sync::Arc;
use std::time::Duration;

use twinstep_core::Simulation;
use twinstep_core::bounds::{
    ACK_SLOW_AFTER, KEEP_ALIVE, NOTICE_BYTES_MAX, PLAYERS_MAX, SPARSE_AFTER, SPARSE_EVERY,
};
use twinstep_core::frame::PlayerSet;
use twinstep_protocol::packet::message;
use twinstep_protocol::packet::presence::LinkQuality;
use twinstep_protocol::text::is_plain;

use super::Match;
use crate::down::{DownSender, Extent};
use crate::mode::MatchMode;

impl<S: Simulation> Match<S> {
    /// Sends each session the frames that it has not acknowledged. `again` is `true` if no new frame was sealed.
    pub(super) fn send_turns(&mut self, again: bool) {
        self.clock.sent_at = self.clock.now;
        let (waiting, spectator_delay) = (self.waiting(), self.spectator_delay());
        let now = self.clock.now;
        let mut sender = DownSender {
            now,
            // Law Journal first: ticks of an unfinished turn are not written yet.
            next: self.world.current.turn().began,
            sealing: self.world.current.tick(),
            mode: self.mode,
            turn: self.world.current.turn().number,
            waiting,
            presence: None,
            announce: self.degradation.announce(self.config.announce),
            struck: self.people.struck(now),
            history: &self.world.history,
            seats: &self.seats,
            scratch: &mut self.scratch,
        };
        sender.scratch.views.clear();
        let (newest, sealing) = (sender.next, sender.sealing);
        let (is_delayed, delay) = (self.config.spectators.delay_ticks > 0, spectator_delay);
        let presence = self.player_list.block(self.world.current.tick());
        for peer in self.people.iter_mut() {
            if !peer.has_world() {
                continue;
            }
            let stood = peer.acks.stood_for(now);
            let slow = stood > ACK_SLOW_AFTER;
            let every = match stood > SPARSE_AFTER {
                true => SPARSE_EVERY,
                false => KEEP_ALIVE,
            };
            // A session that still sends packets may lack the first frames.
            let extent = match slow {
                true if peer.is_silent(now) => Extent::NoFrames,
                true => Extent::First,
                false => Extent::Whole,
            };
            let silent = now.saturating_sub(peer.sent_at) >= every;
            if !is_delayed || !peer.is_spectator() {
                let quiet = slow || again && peer.acks.wanted() >= newest;
                if !quiet || silent {
                    sender.next = newest;
                    sender.sealing = sealing;
                    sender.waiting = waiting;
                    sender.presence = presence;
                    sender.send(peer, extent, &mut self.outbox);
                }
            } else if silent {
                sender.next = newest.back(delay).max(self.config.start);
                sender.sealing = sender.next;
                // The players that the match waits for now are not those of that earlier time.
                sender.waiting = PlayerSet::default();
                sender.presence = self.player_list.block(sender.next);
                sender.send(peer, extent, &mut self.outbox);
            }
        }
    }

    pub(super) fn look_around(&mut self, now: Duration) {
        if !self.player_list.is_due(now) {
            return;
        }
        let next = self.world.current.tick();
        let shown = next.back(self.config.spectators.delay_ticks);
        self.player_list.name(self.people.identities(), next, shown);
        let mut links = [LinkQuality::default(); PLAYERS_MAX];
        let mut here = PlayerSet::default();
        for peer in self.people.playing() {
            let rtt = peer.link.rtt().unwrap_or_default();
            for player in &peer.players {
                here.set(*player, true);
                let newest = self.seats[player.index()].newest();
                let margin = newest.map_or(i64::from(i8::MIN), |newest| {
                    i64::from(newest.0) - i64::from(next.0)
                });
                links[player.index()] = LinkQuality {
                    rtt_ms: rtt.as_millis().min(u16::MAX.into()) as u16,
                    loss_percent: (peer.link.loss() * 100.0).round() as u8,
                    margin_ticks: match self.mode {
                        MatchMode::Prediction => margin.clamp(-128, 127) as i8,
                        MatchMode::Lockstep(_) => 0,
                    },
                };
            }
        }
        self.player_list.record_links(here, &links, next, shown);
    }

    /// Sends a line of text to all players and spectators, for example "this server restarts in five minutes". Clients
    /// get the text as `Event::Notice`, reliably and in order, in a lobby too. A session with a full lane does not, nor
    /// one that is still loading its world.
    /// Returns the number of recipient sessions, which is 0 if the text is empty, longer than [`NOTICE_BYTES_MAX`]
    /// bytes, or contains invisible characters.
    pub fn notify(&mut self, words: &str) -> usize {
        if words.is_empty() || words.len() > NOTICE_BYTES_MAX || !is_plain(words) {
            return 0;
        }
        let bytes: Arc<[u8]> = words.as_bytes().into();
        let peers = self.people.iter_mut();
        peers
            .filter(|peer| peer.has_world() || peer.guest().is_some())
            .filter_map(|peer| peer.lane_out.push(message::NOTICE, bytes.clone()).ok())
            .count()
    }

    /// Sends the names to sessions that do not have them. Names are queued only when the lane is idle, so that they do
    /// not wait behind a world.
    pub(super) fn introduce(&mut self) {
        for at in 0..self.people.len() {
            let shown = self.shown_to(at);
            let peer = &mut self.people[at];
            if !peer.has_world() {
                continue;
            }
            let Some((number, names)) = self.player_list.names(shown) else {
                continue;
            };
            if peer.names_sent != number
                && peer.lane_out.is_idle()
                && peer.lane_out.push(message::NAMES, names.clone()).is_ok()
            {
                peer.names_sent = number;
            }
        }
    }
}
