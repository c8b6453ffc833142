//! Writes one `Play` packet: its status, the frames that fit, and the announcements after them.

use twinstep_core::bounds::{ANNOUNCE_TICKS, SEALING_AHEAD_MAX};
use twinstep_core::frame::{Order, PlayerSet};
use twinstep_core::{PlayerId, Simulation, Tick};
use twinstep_protocol::packet::play_down::{
    DownStatus, FramesEnd, FramesWriter, PlayDownWriter, SLACK_UNIT_MS,
};
use twinstep_protocol::packet::presence::PresenceUpdate;
use twinstep_protocol::wire::{WireError, Writer};

use super::DownSender;
use crate::config::Announce;
use crate::mode::MatchMode;
use crate::peer::Peer;
use crate::seat::{Outlook, PendingOrder};

impl<S: Simulation> DownSender<'_, S> {
    /// Writes one packet into `out`. Returns the tick after its last frame.
    pub(super) fn play(
        &mut self,
        peer: &mut Peer,
        out: &mut Writer<'_>,
        (from, end): (Tick, Tick),
        first: bool,
    ) -> Result<Tick, WireError> {
        let status = self.status(peer, first);
        let packet = PlayDownWriter::begin(self.now, &mut peer.link, &status, out)?;
        let (reached, bytes) = match from < end {
            true => {
                let frames = packet.frames();
                let (reached, mut packet) = match peer.is_spectator() {
                    true => self.view(peer, frames, (from, end))?,
                    false => self.frames(peer, frames, (from, end)),
                };
                if reached == self.next && peer.plays() && !peer.is_spectator() {
                    self.announce(peer.own(), &mut packet);
                }
                (reached, packet.end())
            }
            false => (from, packet.end()),
        };
        peer.fates.record_sent(peer.link.next_seq() - 1);
        peer.bytes_down += bytes;
        Ok(reached)
    }

    /// The packet's part before its frames. The `first` packet of a send acknowledges the lane.
    fn status(&self, peer: &mut Peer, first: bool) -> DownStatus {
        let (margin, unbroken) = match self.mode {
            MatchMode::Prediction => self.held(peer),
            MatchMode::Lockstep(_) => self.batches_held(peer),
        };
        let is_new = |block: &(u32, &PresenceUpdate)| peer.presence_sent != block.0 && peer.plays();
        let presence = self.presence.filter(is_new);
        if let Some((number, _)) = presence {
            peer.presence_sent = number;
        }
        let mut status = DownStatus {
            next_seal: self.sealing.min(peer.acks.wanted() + SEALING_AHEAD_MAX),
            margin,
            unbroken,
            next_turn: self.mode.is_lockstep().then_some(self.turn),
            waiting: self.waiting,
            presence: presence.map(|(_, presence)| *presence),
            lane_ack: first.then(|| peer.lane_in.poll_ack()).flatten(),
            ..DownStatus::default()
        };
        if peer.fates.owes_acks() {
            let next_seq = |player: &PlayerId| self.seats[player.index()].next_seq;
            status
                .command_acks
                .extend(peer.players.iter().map(next_seq));
        }
        status.refusals.extend(peer.fates.refusals());
        status
    }

    /// The newest input's tick minus the next tick to seal, and the number of inputs without a gap, both for the worst
    /// seat. −127 means this late or later; −128 means that no input arrived. If a client confused the two, it could
    /// never correct its clock.
    fn held(&self, peer: &Peer) -> (i8, u8) {
        let mut worst = (i8::MAX, u8::MAX);
        for player in &peer.players {
            let seat = &self.seats[player.index()];
            let margin = seat.newest_by(self.now).map_or(i8::MIN, |newest| {
                let margin = i64::from(newest.0) - i64::from(self.sealing.0);
                margin.clamp(-127, 127) as i8
            });
            worst.0 = worst.0.min(margin);
            worst.1 = worst.1.min(seat.unbroken(self.sealing) as u8);
        }
        worst
    }

    /// The smallest slack of the last batches, in units of [`SLACK_UNIT_MS`] (−128: no batch arrived), and the number
    /// of batches that wait (in lockstep only).
    fn batches_held(&self, peer: &Peer) -> (i8, u8) {
        let slack = peer
            .rhythm
            .slack()
            .map_or(i8::MIN, |ms| (ms / SLACK_UNIT_MS).clamp(-127, 127) as i8);
        let held = peer
            .players
            .iter()
            .map(|player| {
                self.seats[player.index()]
                    .next_batch
                    .saturating_sub(self.turn)
            })
            .min();
        (slack, held.unwrap_or(0).min(255) as u8)
    }

    fn view<'w, 'b>(
        &mut self,
        peer: &Peer,
        mut packet: FramesWriter<'w, 'b>,
        (from, end): (Tick, Tick),
    ) -> Result<(Tick, FramesEnd<'w, 'b>), WireError> {
        if let Some(view) = self.scratch.views.find(from, end)
            && view.at.len() <= packet.room()
        {
            let bytes = &self.scratch.views.bytes[view.at.clone()];
            return Ok((view.reached, packet.copy(bytes, view.spent)?));
        }
        let (reached, mut packet) = self.frames(peer, packet, (from, end));
        // Only runs up to `next` are shared; a gap belongs to one spectator.
        if end == self.next {
            let (bytes, spent) = packet.frames();
            self.scratch.views.keep(from, end, reached, bytes, spent);
        }
        Ok((reached, packet))
    }

    /// Writes the frames in `from..end`, as far as they fit. Returns the tick after the last one.
    fn frames<'w, 'b>(
        &mut self,
        peer: &Peer,
        mut packet: FramesWriter<'w, 'b>,
        (from, end): (Tick, Tick),
    ) -> (Tick, FramesEnd<'w, 'b>) {
        let own = peer.own();
        let mut walk = self.history.frames(from);
        let mut reached = from;
        // A delayed spectator is not shown all sealed frames.
        while reached < end && walk.next(&mut self.scratch.frame) {
            let as_sent = self.as_sent(peer);
            if !packet.push(&self.scratch.before, &self.scratch.frame, own, as_sent) {
                break;
            }
            reached += 1;
            std::mem::swap(&mut self.scratch.before, &mut self.scratch.frame);
        }
        let digest = self.history.newest_digest(from, reached);
        (reached, packet.end(from, digest))
    }

    /// The session's own players whose input in the current frame is the one that this session sent.
    fn as_sent(&self, peer: &Peer) -> PlayerSet {
        let sent = peer
            .players
            .iter()
            .zip(peer.first_input)
            .filter(|(player, first)| {
                self.scratch.frame.tick >= *first && !self.scratch.frame.filled.contains(**player)
            });
        sent.map(|(player, _)| *player).collect()
    }

    /// Announces the waiting inputs and commands of other players. Commands that the referee would refuse and entries
    /// of a player with a recent strike are left out, because clients step announced entries before the server does.
    fn announce(&self, own: PlayerSet, packet: &mut FramesEnd<'_, '_>) {
        match self.announce {
            Announce::Never => return,
            // Other players must not see orders for later turns.
            Announce::Ahead if self.mode.is_lockstep() => return,
            Announce::Ahead => {}
        }
        // The announcements continue the last frame written.
        let last = &self.scratch.before;
        let others: PlayerSet = last
            .inputs
            .iter()
            .map(|(p, _)| p)
            .filter(|p| !own.or(self.struck).contains(*p))
            .collect();
        let horizon = |player: PlayerId| {
            let seat = &self.seats[player.index()];
            let command = seat.commands.iter().filter_map(announced_for).max();
            seat.newest()
                .max(command)
                .map_or(0, |newest| (newest + 1) - self.next)
        };
        let ticks = others
            .iter()
            .map(horizon)
            .max()
            .unwrap_or(0)
            .min(ANNOUNCE_TICKS);
        if ticks == 0 {
            return;
        }
        let input = |player: PlayerId, tick: Tick| match others.contains(player) {
            true => self.seats[player.index()].input(tick),
            false => None,
        };
        let commands = |tick: Tick, each: &mut dyn FnMut(&Order<S::Command>)| {
            for player in others.iter() {
                let held = &self.seats[player.index()].commands;
                held.iter()
                    .filter(|held| announced_for(held) == Some(tick))
                    .for_each(|held| each(&held.order));
            }
        };
        packet.announce(last, own, ticks, input, commands);
    }
}

fn announced_for<C>(held: &PendingOrder<C>) -> Option<Tick> {
    match held.outlook {
        Outlook::Admitted(due) => Some(due),
        Outlook::Unasked | Outlook::Refused => None,
    }
}
