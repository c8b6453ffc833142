//! The session's packets: one is read to its end, and only then it counts; its own are put together in
//! [`write`](self::write).

use std::time::Duration;

use twinstep_core::bounds::SEALING_AHEAD_MAX;
use twinstep_core::{Simulation, Tick};
use twinstep_protocol::link::LinkHeader;
use twinstep_protocol::packet::closed::CloseCode;
use twinstep_protocol::packet::play_down::{DownNear, DownStatus, PlayDown, SLACK_UNIT_MS};
use twinstep_protocol::packet::refusal::OrderRefusal;
use twinstep_protocol::packet::{DownPacket, DownPart, PacketBody, closed};
use twinstep_protocol::wire::WireError;

use crate::hooks::caught;
use crate::local_actions::RefusalNews;
use crate::picture::Show;
use crate::playing::Playing;
use crate::session::{Event, Events, Session, SessionEnd, State};

#[cfg(test)]
mod tests;
mod write;

impl<S: Simulation, V: Show<S>> Session<S, V> {
    /// Reads a packet and does what it says.
    ///
    /// # Errors
    /// Bytes that are no packet for this session; it is as before then.
    pub(crate) fn read(&mut self, now: Duration, bytes: &[u8]) -> Result<(), WireError> {
        let header = match DownPacket::open(bytes, &self.link)? {
            DownPacket::Closed(body) => {
                self.handle_closed(closed::read(body)?);
                return Ok(());
            }
            DownPacket::Lane(header, _) | DownPacket::Play(header, _) if header.repeated => header,
            DownPacket::Lane(header, chunk) => {
                self.lane_in
                    .handle(chunk)
                    .map_err(|_| WireError::Malformed("a chunk of the lane"))?;
                header
            }
            DownPacket::Play(header, body) => return self.read_play(now, header, body),
        };
        self.link.note(now, header);
        Ok(())
    }

    fn handle_closed(&mut self, code: CloseCode) {
        match (&self.state, code) {
            (State::Closed(_), _) => {}
            // What ended is the transport; the player may come back, or join elsewhere.
            (State::Playing(_), CloseCode::NoAcks)
            | (_, CloseCode::Moved | CloseCode::Restarting { .. }) => self.contact.record_cut(code),
            // Removed while it was lost, or its turn did not come in time: it may come back, and tries. Or its server
            // has just started, and does not run the match yet, or has to do with others first; or it has a newer ticket.
            (
                State::Playing(_),
                CloseCode::TooSlow
                | CloseCode::JoinTooSlow
                | CloseCode::NoMatch
                | CloseCode::ServerFull { .. }
                | CloseCode::ServerBusy { .. }
                | CloseCode::Superseded,
            ) if self.contact.goes_back() => self.contact.record_cut(code),
            _ => self.close(SessionEnd::Server(code)),
        }
    }

    fn read_play(
        &mut self,
        now: Duration,
        header: LinkHeader,
        body: PacketBody<'_, DownPart>,
    ) -> Result<(), WireError> {
        match &self.state {
            State::Playing(playing) if !self.contact.goes_back() => {
                let actions = playing.timeline.local_actions();
                let near = DownNear {
                    next_seal: self.match_status.next_seal(),
                    next_turn: playing.next_turn(),
                    wanted: playing.inbox.next(),
                    seats: actions.seats().len(),
                    own: actions.players(),
                };
                let sent = |player, tick| actions.input_of(player, tick);
                // A value of the game's may panic as it is read, by a decoder that its author wrote.
                let told = &mut self.received;
                caught(|| told.read(body, &near, sent))
                    .unwrap_or(Err(WireError::Malformed("a value whose decoder panics")))?;
                if let Some(ack) = &self.received.status.lane_ack {
                    self.lane_out
                        .check_ack(ack)
                        .map_err(|_| WireError::Malformed("an ack of an unsent chunk"))?;
                }
                self.link.note(now, header);
                self.apply(now, header.newest);
            }
            // Of a match that it is not in (any more, or yet) it takes nothing but that the server lives.
            _ => self.link.note(now, header),
        }
        Ok(())
    }

    /// Does what a packet says that was read to its end.
    fn apply(&mut self, now: Duration, newest: bool) {
        let State::Playing(playing) = &mut self.state else {
            return;
        };
        let told = &self.received;
        let status = &told.status;
        if newest {
            self.match_status
                .update(status.next_seal, status.waiting, status.company.as_ref());
            playing.next_seal = status.next_seal;
            // Of who is farther behind, not all of that is told.
            let is_near = status.next_seal - playing.inbox.next() < SEALING_AHEAD_MAX / 2;
            if !playing.has_come() && is_near {
                playing.come_at(status.next_seal);
            }
            if playing.next_turn().is_none() {
                self.outgoing.needed = status.next_seal + u32::from(status.unbroken);
                self.outgoing.repeats.record_sealing(now, status.next_seal);
            }
            apply_pace(playing, now, status, self.link.rtt().unwrap_or_default());
        }
        for (seat, next) in status.command_acks.iter().enumerate() {
            playing
                .timeline
                .local_actions_mut()
                .acknowledge(seat, *next);
        }
        for refusal in &status.refusals {
            apply_refusal(playing, *refusal, &mut self.events);
        }
        if let Some(ack) = &status.lane_ack {
            let taken = self.lane_out.handle_ack(now, ack);
            debug_assert!(taken.is_ok(), "it was checked");
        }
        apply_frames(playing, now, told);
        for (player, tick, input) in &told.inputs {
            playing.timeline.announce(*player, *tick, input);
        }
        for (tick, order) in self.received.commands.drain(..) {
            playing.timeline.announce_command(tick, order);
        }
    }
}

/// How early what this client sends arrives: its clock follows.
fn apply_pace<S: Simulation, V: Show<S>>(
    playing: &mut Playing<S, V>,
    now: Duration,
    status: &DownStatus,
    rtt: Duration,
) {
    let meter = &mut playing.meter;
    meter.rtts.add(rtt.as_millis() as i32);
    let margin = (status.margin != i8::MIN).then_some(i32::from(status.margin));
    if let Some(lockstep) = playing.lockstep.as_mut().filter(|l| l.delay > 0) {
        let next_turn = status.next_turn.unwrap_or_default();
        lockstep.next_turn = next_turn;
        lockstep.needed = next_turn + u32::from(status.unbroken);
        if let Some(margin) = margin {
            let slack_ms = margin * i32::from(SLACK_UNIT_MS);
            lockstep.playout.report(next_turn, slack_ms.into());
            meter.margins.add(margin);
        }
    }
    let Some(pace) = &mut playing.pace else {
        return;
    };
    match margin {
        Some(margin) => {
            meter.margins.add(margin);
            let newest_held = Tick(status.next_seal.0.saturating_add_signed(margin));
            pace.report(now, margin, newest_held, rtt);
        }
        None => pace.report_nothing(now, rtt),
    }
}

fn apply_refusal<S: Simulation, V: Show<S>>(
    playing: &mut Playing<S, V>,
    refusal: OrderRefusal,
    events: &mut Events,
) {
    let OrderRefusal {
        seat,
        claim,
        seq,
        why,
    } = refusal;
    let (actions, meter) = (playing.timeline.local_actions_mut(), &mut playing.meter);
    if claim {
        meter.claims_refused += u64::from(actions.refused_claim(seat, seq));
        return;
    }
    let news = actions.refused_command(seat, seq);
    if news == RefusalNews::AfterAll {
        meter.commands_executed -= 1;
    }
    if news != RefusalNews::Known {
        meter.commands_refused += 1;
        events.push(Event::CommandRefused { seat, seq, why });
    }
}

fn apply_frames<S: Simulation, V: Show<S>>(
    playing: &mut Playing<S, V>,
    now: Duration,
    told: &PlayDown<S>,
) {
    if !told.has_frames {
        return;
    }
    let before = playing.inbox.next();
    for frame in told.frames() {
        playing.inbox.push(frame);
    }
    if let Some(lockstep) = &mut playing.lockstep {
        for frame in playing.inbox.since(before) {
            lockstep.record_frame(now, frame);
        }
    }
    if let Some((tick, digest)) = told.digest {
        playing.inbox.record_digest(tick, digest);
    }
    playing.meter.turns += 1;
    if playing.inbox.next() > before {
        playing.record_arrival(now);
    }
}
