//! Reading and applying the session's packets and messages. A packet is read completely before any part of it is
//! applied; the session's own packets are written in [`write`](self::write).

use std::time::Duration;

use twinstep_core::bounds::{NOTICE_BYTES_MAX, SEALING_AHEAD_MAX};
use twinstep_core::{Simulation, Tick, codec};
use twinstep_protocol::lane::Message;
use twinstep_protocol::link::LinkHeader;
use twinstep_protocol::lobby::LobbyMessage;
use twinstep_protocol::packet::closed::CloseCode;
use twinstep_protocol::packet::play_down::{DownContext, DownStatus, PlayDown, SLACK_UNIT_MS};
use twinstep_protocol::packet::refusal::OrderRefusal;
use twinstep_protocol::packet::request::RequestResult;
use twinstep_protocol::packet::{DownPacket, DownPart, PacketBody, closed, message};
use twinstep_protocol::text::is_plain;
use twinstep_protocol::wire::WireError;

use crate::hooks::caught;
use crate::local_actions::RefusalNews;
use crate::picture::Show;
use crate::session::events::{Events, report};
use crate::session::joining::read_world;
use crate::session::playing::{Mode, Playing};
use crate::session::stage::Stage;
use crate::session::{Event, Session, SessionEnd};

#[cfg(test)]
mod tests;
mod write;

impl<S: Simulation, V: Show<S>> Session<S, V> {
    /// Reads a packet and applies it. After an error, the session is unchanged.
    pub(crate) fn read(&mut self, now: Duration, bytes: &[u8]) -> Result<(), WireError> {
        let header = match DownPacket::open(bytes, &self.link)? {
            DownPacket::Closed(body) => {
                self.handle_closed(closed::read(body)?);
                return Ok(());
            }
            // A copy of a packet already applied.
            DownPacket::Lane(header, _) | DownPacket::Play(header, _) if header.repeated => header,
            DownPacket::Lane(header, chunk) => {
                self.lane_in
                    .handle(chunk)
                    .map_err(|_| WireError::Malformed("a lane chunk"))?;
                header
            }
            DownPacket::Play(header, body) => return self.read_play(now, header, body),
        };
        self.link.note(now, header);
        Ok(())
    }

    /// Applies a lane message. Law **Hostile wire**: an unexpected message is counted and dropped. So is an unreadable
    /// one, except that an unreadable world or unreadable rules end the session, and an unreadable heal or evidence is
    /// not counted.
    pub(crate) fn take_message(&mut self, now: Duration, message: &Message) {
        let bytes = &message.bytes[..];
        match (message.kind, &mut self.stage) {
            (message::WELCOME, Stage::Joining(_)) => {
                self.welcome(now, codec::decode_whole(bytes).ok());
            }
            (message::WORLD, Stage::Joining(_)) => self.begin_with(now, bytes),
            (message::LOBBY, Stage::Joining(_) | Stage::Returning(_)) => {
                self.take_lobby(LobbyMessage::read(bytes))
            }
            (message::RULES, Stage::Joining(_)) => self.take_rules(bytes),
            (message::REQUEST_RESULT, Stage::Joining(_)) => self.take_result(bytes),
            (message::NOTICE, Stage::Joining(_)) => self.take_notice(bytes),
            (message::WELCOME, Stage::Returning(_)) => {
                self.welcome_back(now, codec::decode_whole(bytes).ok());
            }
            (message::WORLD, Stage::Returning(_)) => match read_world(bytes) {
                Some(world) => self.continue_from(now, world),
                None => self.close(SessionEnd::UnreadableWorld),
            },
            (kind, stage) => match stage.playing_mut() {
                Some(playing) => match kind {
                    message::TICKET => self.ticket = Some(message.bytes.clone()),
                    message::NAMES => match codec::decode_whole(bytes) {
                        Ok(names) => {
                            let names = self.match_status.rename(names);
                            if let Some(tape) = &mut playing.replica.tape {
                                tape.rename(names);
                            }
                        }
                        Err(_) => self.traffic.record_malformed(),
                    },
                    message::NOTICE => self.take_notice(bytes),
                    message::REQUEST_RESULT => self.take_result(bytes),
                    message::HEAL => {
                        let Some(world) = read_world(bytes) else {
                            self.traffic.record_malformed();
                            return;
                        };
                        let at = world.tick();
                        playing.heal(world);
                        let evidence = playing.replica.divergence.evidence();
                        self.asked_evidence = evidence.map(|ours| (ours.tick(), now));
                        self.events.push(Event::Healed { at });
                        self.outgoing.urge();
                    }
                    message::EVIDENCE => {
                        let theirs = read_world::<S>(bytes);
                        if theirs.is_none() {
                            self.traffic.record_malformed();
                        }
                        let ours = playing.replica.divergence.take_evidence();
                        if let (Some(ours), Some(theirs)) = (ours, theirs) {
                            let report = report(&ours, &theirs);
                            // If the lane is full, the report is not sent.
                            let _ = self
                                .lane_out
                                .push(message::REPORT, report.as_bytes().into());
                            self.events.push(Event::Desync(report));
                        }
                        self.asked_evidence = None;
                    }
                    _ => self.traffic.record_malformed(),
                },
                None => self.traffic.record_malformed(),
            },
        }
    }

    fn take_notice(&mut self, bytes: &[u8]) {
        match core::str::from_utf8(bytes) {
            Ok(words) if words.len() <= NOTICE_BYTES_MAX && is_plain(words) => {
                self.events.push(Event::Notice(words.to_owned()));
            }
            _ => self.traffic.record_malformed(),
        }
    }

    fn take_result(&mut self, bytes: &[u8]) {
        match RequestResult::decode(bytes) {
            Some(result) => self.events.push(request_event(result)),
            None => self.traffic.record_malformed(),
        }
    }

    fn handle_closed(&mut self, code: CloseCode) {
        match (&self.stage, code) {
            (Stage::Closed(_), _) => {}
            (Stage::Joining(joining), CloseCode::NoAcks) if joining.lobby.view().is_some() => {
                self.outages.record_cut(code);
            }
            // Only the transport ended. The player may reconnect, or join elsewhere.
            (Stage::Playing(_) | Stage::Returning(_), CloseCode::NoAcks)
            | (_, CloseCode::Moved | CloseCode::Restarting { .. }) => self.outages.record_cut(code),
            // A reconnecting session keeps trying. The player may have been removed while disconnected, or the join
            // timed out; the server may have just started, be busy, or not run the match yet; or the client has a newer
            // ticket.
            (
                Stage::Returning(_),
                CloseCode::TooSlow
                | CloseCode::JoinTooSlow
                | CloseCode::NoMatch
                | CloseCode::ServerFull { .. }
                | CloseCode::ServerBusy { .. }
                | CloseCode::Superseded,
            ) => self.outages.record_cut(code),
            _ => self.close(SessionEnd::Server(code)),
        }
    }

    fn read_play(
        &mut self,
        now: Duration,
        header: LinkHeader,
        body: PacketBody<'_, DownPart>,
    ) -> Result<(), WireError> {
        match &self.stage {
            Stage::Playing(playing) => {
                let actions = playing.replica.timeline.local_actions();
                let near = DownContext {
                    next_seal: self.match_status.next_seal(),
                    next_turn: playing.next_turn(),
                    wanted: playing.replica.inbox.next(),
                    seats: actions.seats().len(),
                    own: actions.players(),
                };
                let sent = |player, tick| actions.input_of(player, tick);
                // The game's own decoder may panic on a value.
                let received = &mut self.received;
                caught(|| received.read(body, &near, sent))
                    .unwrap_or(Err(WireError::Malformed("a value whose decoder panics")))?;
                // Checked before anything is applied, so that a malformed packet does not change the state.
                if let Some(ack) = &self.received.status.lane_ack {
                    self.lane_out
                        .check_ack(ack)
                        .map_err(|_| WireError::Malformed("an ack of an unsent chunk"))?;
                }
                self.link.note(now, header);
                self.apply(now, header.newest);
            }
            // Outside a match only the link header counts, because it shows that the server is alive.
            _ => self.link.note(now, header),
        }
        Ok(())
    }

    fn apply(&mut self, now: Duration, newest: bool) {
        let Some(playing) = self.stage.playing_mut() else {
            return;
        };
        let received = &self.received;
        let status = &received.status;
        // An older packet must not set these values back.
        if newest {
            self.match_status
                .update(status.next_seal, status.waiting, status.presence.as_ref());
            playing.replica.next_seal = status.next_seal;
            // The server does not send everything sealed ahead to a client that is farther behind.
            let is_near = status.next_seal - playing.replica.inbox.next() < SEALING_AHEAD_MAX / 2;
            if !playing.replica.has_joined() && is_near {
                playing.replica.record_join(status.next_seal);
            }
            if playing.next_turn().is_none() {
                self.outgoing.needed = status.next_seal + u32::from(status.unbroken);
                self.outgoing.repeats.record_sealing(now, status.next_seal);
            }
            apply_pace(playing, now, status, self.link.rtt().unwrap_or_default());
        }
        // Acks only grow, and repeated refusals and frames are recognised, so these may also come from an older packet.
        for (seat, next) in status.command_acks.iter().enumerate() {
            playing
                .replica
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
        apply_frames(playing, now, received);
        for (player, tick, input) in &received.inputs {
            playing.replica.timeline.announce(*player, *tick, input);
        }
        for (tick, order) in self.received.commands.drain(..) {
            playing.replica.timeline.announce_command(tick, order);
        }
    }
}

fn request_event(result: RequestResult) -> Event {
    let RequestResult {
        by,
        request,
        refused,
    } = result;
    match refused {
        None => Event::Request { by, request },
        Some(why) => Event::RequestRefused { request, why },
    }
}

/// Applies the server's report of how early this client's inputs or batches arrive.
fn apply_pace<S: Simulation, V: Show<S>>(
    playing: &mut Playing<S, V>,
    now: Duration,
    status: &DownStatus,
    rtt: Duration,
) {
    let meter = &mut playing.replica.meter;
    meter.rtts.add(rtt.as_millis() as i32);
    let margin = (status.margin != i8::MIN).then_some(i32::from(status.margin));
    let predicting = match &mut playing.mode {
        Mode::Predicting(predicting) => predicting,
        Mode::Lockstep(lockstep) if lockstep.delay > 0 => {
            let next_turn = status.next_turn.unwrap_or_default();
            lockstep.next_turn = next_turn;
            lockstep.needed = next_turn + u32::from(status.unbroken);
            if let Some(margin) = margin {
                let slack_ms = margin * i32::from(SLACK_UNIT_MS);
                lockstep.playout.report(next_turn, slack_ms.into());
                meter.margins.add(margin);
            }
            return;
        }
        Mode::Lockstep(_) => return,
    };
    // The server stands still in a pause, so its reports say nothing about the route.
    let is_paused = predicting.paused_at.is_some();
    let Some(pace) = predicting.pace.as_mut().filter(|_| !is_paused) else {
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
    let (actions, meter) = (
        playing.replica.timeline.local_actions_mut(),
        &mut playing.replica.meter,
    );
    if claim {
        meter.claims_refused += u64::from(actions.refused_claim(seat, seq));
        return;
    }
    let effect = actions.refused_command(seat, seq);
    if effect == RefusalNews::AfterAll {
        meter.commands_executed -= 1;
    }
    if effect != RefusalNews::Known {
        meter.commands_refused += 1;
        events.push(Event::CommandRefused { seat, seq, why });
    }
}

fn apply_frames<S: Simulation, V: Show<S>>(
    playing: &mut Playing<S, V>,
    now: Duration,
    received: &PlayDown<S>,
) {
    if !received.has_frames {
        return;
    }
    let before = playing.replica.inbox.next();
    for frame in received.frames() {
        playing.replica.inbox.push(frame);
    }
    if let Mode::Lockstep(lockstep) = &mut playing.mode {
        for frame in playing.replica.inbox.since(before) {
            lockstep.record_frame(now, frame);
        }
    }
    if let Some((tick, digest)) = received.digest {
        playing.replica.inbox.record_digest(tick, digest);
    }
    playing.replica.meter.turns += 1;
    if playing.replica.inbox.next() > before
        && let Mode::Predicting(predicting) = &mut playing.mode
    {
        predicting.record_arrival(&mut playing.replica, now);
    }
}
