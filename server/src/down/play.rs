//! Writes one packet of play: what a session is told beside frames, the frames that fit, and what is announced behind them.

use twinstep_core::bounds::{ANNOUNCE_TICKS, SEALING_AHEAD_MAX};
use twinstep_core::frame::{Order, PlayerSet};
use twinstep_core::{PlayerId, Simulation, Tick};
use twinstep_protocol::packet::{
    ByteCounts, DownKind, DownPart, NO_DIGEST, OUTER_BYTES, Parts, RareDown, SLACK_UNIT_MS, frames,
};
use twinstep_protocol::wire::{WireError, Writer};

use super::Telling;
use crate::config::Announce;
use crate::peer::{OpenRefusal, Peer, SessionStage};
use crate::seat::{Held, Outlook};

/// Bytes of a digest and its place, which end a run of frames, at most.
const DIGEST_BYTES: usize = 5;

impl<S: Simulation> Telling<'_, S> {
    /// Writes one packet into `out`; the tick after its last frame.
    pub(super) fn play(
        &mut self,
        peer: &mut Peer,
        out: &mut Writer<'_>,
        (from, end): (Tick, Tick),
        first: bool,
    ) -> Result<Tick, WireError> {
        let mut bytes = ByteCounts {
            packets: 1,
            headers: OUTER_BYTES,
            ..ByteCounts::default()
        };
        let mut parts = Parts::default();
        out.u8(0)?;
        peer.link.write(self.now, out)?;
        bytes.headers += out.len() as u64;
        let mut at = out.len();
        let mut count = |out: &Writer<'_>, kind: &mut u64| {
            *kind += (out.len() - at) as u64;
            at = out.len();
        };
        let (margin, unbroken) = match self.turn {
            None => self.held(peer),
            Some(turn) => self.batches_held(peer, turn),
        };
        out.tick16(self.sealing.min(peer.acks.wanted() + SEALING_AHEAD_MAX))?;
        out.u8(margin as u8)?;
        out.u8(unbroken)?;
        if let Some(turn) = self.turn {
            out.tick16(Tick(turn))?;
        }
        if self.write_rare(peer, first, out)? {
            parts.add(DownPart::Rare);
        }
        count(out, &mut bytes.acks);
        if peer.fates.owes_acks() {
            parts.add(DownPart::CommandAcks);
            for player in &peer.players {
                out.varint(self.seats[player.index()].next_seq)?;
            }
        }
        if !peer.fates.refusals().is_empty() {
            parts.add(DownPart::Refusals);
            write_refusals(peer.fates.refusals(), out)?;
        }
        count(out, &mut bytes.commands);
        let mut reached = from;
        if from < end {
            parts.add(DownPart::Frames);
            reached = match peer.is_spectator() {
                true => self.view(peer, out, (from, end), &mut bytes)?,
                false => self.frames(peer, out, (from, end), &mut bytes)?,
            };
            at = out.len();
            if reached == self.next
                && peer.stage == SessionStage::Playing
                && !peer.is_spectator()
                && self.announce(peer.own(), out)?
            {
                parts.add(DownPart::Announced);
            }
            bytes.announcements += (out.len() - at) as u64;
        }
        out.patch(0, DownKind::Play.head(parts));
        peer.fates.note_telling(peer.link.next_seq() - 1);
        peer.bytes_down += bytes;
        Ok(reached)
    }

    /// Writes what is told only now and then; whether there was any of it.
    fn write_rare(
        &self,
        peer: &mut Peer,
        first: bool,
        out: &mut Writer<'_>,
    ) -> Result<bool, WireError> {
        let start = out.len();
        out.u8(0)?;
        let mut rare = Parts::default();
        if !self.waiting.is_empty() {
            rare.add(RareDown::Waiting);
            out.varint(u32::from(self.waiting.0))?;
        }
        if let Some((number, company)) = self.company
            && peer.company_told != number
            && peer.stage == SessionStage::Playing
        {
            rare.add(RareDown::Company);
            out.bytes(company)?;
            peer.company_told = number;
        }
        if first && let Some(ack) = peer.lane_in.poll_ack() {
            rare.add(RareDown::LaneAck);
            out.bytes(&ack.encode())?;
        }
        if rare.is_empty() {
            out.truncate(start);
        } else {
            out.patch(start, rare.bits());
        }
        Ok(!rare.is_empty())
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
    fn batches_held(&self, peer: &Peer, turn: u32) -> (i8, u8) {
        let slack = peer
            .rhythm
            .slack()
            .map_or(i8::MIN, |ms| (ms / SLACK_UNIT_MS).clamp(-127, 127) as i8);
        let held = peer
            .players
            .iter()
            .map(|player| self.seats[player.index()].next_batch.saturating_sub(turn))
            .min();
        (slack, held.unwrap_or(0).min(255) as u8)
    }

    /// As [`frames`](Telling::frames), for who only watches.
    fn view(
        &mut self,
        peer: &Peer,
        out: &mut Writer<'_>,
        (from, end): (Tick, Tick),
        bytes: &mut ByteCounts,
    ) -> Result<Tick, WireError> {
        if let Some(view) = self.pages.views.find(from, end)
            && view.at.len() <= out.room()
        {
            out.bytes(&self.pages.views.bytes[view.at.clone()])?;
            *bytes += view.spent;
            return Ok(view.reached);
        }
        let start = out.len();
        let mut spent = ByteCounts::default();
        let reached = self.frames(peer, out, (from, end), &mut spent)?;
        // What one of them lost is nobody else's gap.
        if end == self.next {
            self.pages
                .views
                .keep(from, end, reached, out.since(start), spent);
        }
        *bytes += spent;
        Ok(reached)
    }

    fn frames(
        &mut self,
        peer: &Peer,
        out: &mut Writer<'_>,
        (from, end): (Tick, Tick),
        bytes: &mut ByteCounts,
    ) -> Result<Tick, WireError> {
        let own = peer.own();
        let mut walk = self.history.frames(from);
        let mut run = None;
        let mut count = 0;
        let start = out.len();
        let mut spent = ByteCounts::default();
        // Some are not shown all that is sealed.
        let most = frames::RUN_MAX.min((end - from) as usize);
        while count < most && walk.next(&mut self.pages.frame) {
            if run.is_none() {
                run = Some(frames::begin(out, &self.pages.frame)?);
            }
            let end = out.len();
            let as_sent = self.as_sent(peer);
            let previous = (count > 0).then_some(&self.pages.before);
            let before = spent;
            if frames::write(out, previous, &self.pages.frame, own, as_sent, &mut spent).is_err() {
                break;
            }
            if out.room() < DIGEST_BYTES {
                out.truncate(end);
                spent = before;
                break;
            }
            count += 1;
            std::mem::swap(&mut self.pages.before, &mut self.pages.frame);
        }
        let Some(run) = run else { return Ok(from) };
        frames::end(out, &run, count);
        let reached = from + count as u32;
        let run_ends = out.len();
        match self.history.newest_digest(from, reached) {
            Some((tick, digest)) => {
                out.u8((reached - tick) as u8)?;
                out.u32(digest as u32)?;
            }
            None => out.u8(NO_DIGEST)?,
        }
        *bytes += spent;
        bytes.acks += (out.len() - run_ends) as u64;
        let rest = (run_ends - start) as u64;
        bytes.inputs += rest - spent.total();
        Ok(reached)
    }

    /// The own players whose input in the frame at hand is the very one that this session sent.
    fn as_sent(&self, peer: &Peer) -> PlayerSet {
        let sent = peer
            .players
            .iter()
            .zip(peer.first_input)
            .filter(|(player, first)| {
                self.pages.frame.tick >= *first && !self.pages.frame.filled.contains(**player)
            });
        sent.map(|(player, _)| *player).collect()
    }

    /// Announces what is held of other players for ticks to come: inputs, and the commands that the referee would admit.
    /// Clients step it before the server does, so nothing is announced of a player who was struck lately. Returns `true` if
    /// there was anything.
    fn announce(&self, own: PlayerSet, out: &mut Writer<'_>) -> Result<bool, WireError> {
        match self.announce {
            Announce::Never => return Ok(false),
            // Orders for turns to come are nobody else's business.
            Announce::Ahead if self.turn.is_some() => return Ok(false),
            Announce::Ahead => {}
        }
        // The last frame written is the one that the announcements continue.
        let last = &self.pages.before;
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
            return Ok(false);
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
        Ok(frames::announce(out, last, own, ticks, input, commands).is_ok())
    }
}

/// The tick that a command is announced for, if it is.
fn announced_for<C>(held: &Held<C>) -> Option<Tick> {
    match held.outlook {
        Outlook::Admitted(due) => Some(due),
        Outlook::Unasked | Outlook::Refused => None,
    }
}

fn write_refusals(refusals: &[OpenRefusal], out: &mut Writer<'_>) -> Result<(), WireError> {
    out.u8(refusals.len() as u8)?;
    refusals.iter().try_for_each(|open| open.refusal.write(out))
}
