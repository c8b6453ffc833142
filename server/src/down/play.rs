//! Writes one packet of play: what a session is told beside frames, the frames that fit, and what is announced behind them.

use twinstep_core::bounds::{ANNOUNCE_TICKS, SEALING_AHEAD_MAX};
use twinstep_core::frame::{Order, PlayerSet};
use twinstep_core::{PlayerId, Simulation, Tick};
use twinstep_protocol::packet::company::CompanyTold;
use twinstep_protocol::packet::play_down::{
    DownStatus, FramesEnd, FramesWriter, PlayDownWriter, SLACK_UNIT_MS,
};
use twinstep_protocol::wire::{WireError, Writer};

use super::Telling;
use crate::config::Announce;
use crate::mode::MatchMode;
use crate::peer::Peer;
use crate::seat::{Held, Outlook};

impl<S: Simulation> Telling<'_, S> {
    /// Writes one packet into `out`; the tick after its last frame.
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
        peer.fates.note_telling(peer.link.next_seq() - 1);
        peer.bytes_down += bytes;
        Ok(reached)
    }

    /// What the packet says before its frames; the `first` one of a send acknowledges the lane.
    fn status(&self, peer: &mut Peer, first: bool) -> DownStatus {
        let (margin, unbroken) = match self.mode {
            MatchMode::Prediction => self.held(peer),
            MatchMode::Lockstep(_) => self.batches_held(peer),
        };
        let is_new = |told: &(u32, &CompanyTold)| peer.company_told != told.0 && peer.plays();
        let company = self.company.filter(is_new);
        if let Some((number, _)) = company {
            peer.company_told = number;
        }
        let mut status = DownStatus {
            next_seal: self.sealing.min(peer.acks.wanted() + SEALING_AHEAD_MAX),
            margin,
            unbroken,
            next_turn: self.mode.is_lockstep().then_some(self.turn),
            waiting: self.waiting,
            company: company.map(|(_, company)| *company),
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

    /// Newest input held minus the next tick to seal, and how many are held without a gap; of the worst seat. −127 means
    /// this late or more, −128 that none is held: a client that takes the one for the other never sets its clock right.
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

    /// With a command delay: how early the latest of the last batches came, in units of
    /// [`SLACK_UNIT_MS`] (−128: none came), and how many batches are held.
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

    /// As [`frames`](Telling::frames), for who only watches.
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
        // What one of them lost is nobody else's gap.
        if end == self.next {
            let (bytes, spent) = packet.frames();
            self.scratch.views.keep(from, end, reached, bytes, spent);
        }
        Ok((reached, packet))
    }

    /// Writes the frames from `from` on and before `end` that fit. Returns the tick after the last one.
    fn frames<'w, 'b>(
        &mut self,
        peer: &Peer,
        mut packet: FramesWriter<'w, 'b>,
        (from, end): (Tick, Tick),
    ) -> (Tick, FramesEnd<'w, 'b>) {
        let own = peer.own();
        let mut walk = self.history.frames(from);
        let mut reached = from;
        // Some are not shown all that is sealed.
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

    /// The own players whose input in the frame at hand is the very one that this session sent.
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

    /// Announces what is held of other players for ticks to come: inputs, and the commands that the referee would admit.
    /// Clients step it before the server does, so nothing is announced of a player who was struck lately.
    fn announce(&self, own: PlayerSet, packet: &mut FramesEnd<'_, '_>) {
        match self.announce {
            Announce::Never => return,
            // Orders for turns to come are nobody else's business.
            Announce::Ahead if self.mode.is_lockstep() => return,
            Announce::Ahead => {}
        }
        // The last frame written is the one that the announcements continue.
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

/// The tick that a command is announced for, if it is.
fn announced_for<C>(held: &Held<C>) -> Option<Tick> {
    match held.outlook {
        Outlook::Admitted(due) => Some(due),
        Outlook::Unasked | Outlook::Refused => None,
    }
}
