//! The packets of a session: hello, inputs or batches, commands, claims, acks, and reports of a desync.
//!
//! A packet is read completely ([`PlayUp`]) and checked against the session before any part of it is applied.
//!
//! Law **Hostile wire**: all bytes are untrusted. The owner of an input comes from the session, never from the packet;
//! an input outside its window is never sealed; a breach of the protocol costs a strike.

use std::time::Duration;

use crate::seat::NotAdmitted;
use twinstep_core::{Simulation, Tick};
use twinstep_protocol::lane::{LaneAck, Message};
use twinstep_protocol::link::LinkState;
use twinstep_protocol::packet::hello::{self, Hello, JoinPacket};
use twinstep_protocol::packet::play_up::{CommandUp, PlayUp, UpContext, UpStatus};
use twinstep_protocol::packet::{UpKind, UpPacket, large, leave, message};
use twinstep_protocol::wire::WireError;

use crate::caught::decoded;
use crate::mode::MatchMode;
use crate::peer::Peer;
use crate::seat::{Arrival, BatchError, Seat};

#[cfg(test)]
mod tests;

/// A packet's request to the match, beyond its effect on its session and seats.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum UpRequest {
    None,
    Join(Box<Hello>),
    Leave,
    // Start the match, whose lobby the session is in.
    Start,
    Heal(Tick),
    Evidence(Tick),
}

#[derive(Clone, Copy)]
pub(crate) struct MatchPosition {
    pub(crate) now: Duration,
    pub(crate) next: Tick,
    pub(crate) turn: u32,
    pub(crate) mode: MatchMode,
    pub(crate) due: Duration,
    /// Whether the match is paused. During a pause, no batch is late.
    pub(crate) is_paused: bool,
    pub(crate) turn_length: Duration,
    pub(crate) tick: Duration,
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum FirstPacket {
    Hello(Box<Hello>),
    Leave,
    Other,
}

pub(crate) fn first_packet(bytes: &[u8]) -> Result<FirstPacket, WireError> {
    let packet = UpPacket::open(bytes, &LinkState::default())?;
    match packet.kind {
        UpKind::Hello => Ok(match hello::read(packet.body)? {
            JoinPacket::Hello(hello) => FirstPacket::Hello(hello),
            JoinPacket::Loading(_) | JoinPacket::Waiting(..) => FirstPacket::Other,
        }),
        UpKind::Leave => leave::read(packet.body).map(|()| FirstPacket::Leave),
        UpKind::Play | UpKind::Lane => Ok(FirstPacket::Other),
    }
}

/// Reads and applies one packet from `peer`. The session's seats are among `seats`. Answers to queries stay in `play`.
///
/// # Errors
/// If the bytes are not a packet, or this session may not send that packet. Then session and seats do not change.
pub(crate) fn read<S: Simulation>(
    peer: &mut Peer,
    seats: &mut [Seat<S>],
    position: MatchPosition,
    play: &mut PlayUp<S>,
    bytes: &[u8],
) -> Result<UpRequest, WireError> {
    let now = position.now;
    play.answers.clear();
    let UpPacket { kind, header, body } = UpPacket::open(bytes, &peer.link)?;
    if header.repeated {
        peer.link.note(now, header);
        return Ok(UpRequest::None);
    }
    let request = match kind {
        UpKind::Hello => match hello::read(body)? {
            JoinPacket::Hello(hello) if peer.greeting().is_some() => UpRequest::Join(hello),
            JoinPacket::Hello(_) => UpRequest::None,
            JoinPacket::Loading(ack) => {
                check_lane_ack(peer, Some(&ack))?;
                take_lane_ack(peer, now, Some(&ack));
                UpRequest::None
            }
            JoinPacket::Waiting(ack, waiting) => {
                check_lane_ack(peer, Some(&ack))?;
                take_lane_ack(peer, now, Some(&ack));
                let guest = peer.guest_mut().filter(|_| header.newest);
                match guest.is_some_and(|guest| guest.record(waiting)) {
                    true => UpRequest::Start,
                    false => UpRequest::None,
                }
            }
        },
        UpKind::Play => {
            let near = near(peer, position);
            let is_sound = decoded(|| play.read(body, &near))
                .and_then(|()| check(peer, seats, position, play));
            if let Err(error) = is_sound {
                play.answers.clear();
                return Err(error);
            }
            apply(peer, seats, position, header.newest, play);
            match (play.notes.heal, play.notes.evidence) {
                (Some(tick), _) => UpRequest::Heal(tick),
                (_, Some(tick)) => UpRequest::Evidence(tick),
                _ => UpRequest::None,
            }
        }
        UpKind::Lane => {
            peer.lane_in
                .handle(body.packet.rest())
                .map_err(|_| WireError::Malformed("a lane chunk"))?;
            UpRequest::None
        }
        UpKind::Leave => {
            leave::read(body)?;
            UpRequest::Leave
        }
    };
    // Only now: a malformed packet is not acknowledged.
    peer.link.note(now, header);
    Ok(request)
}

fn check<S: Simulation>(
    peer: &Peer,
    seats: &[Seat<S>],
    position: MatchPosition,
    play: &PlayUp<S>,
) -> Result<(), WireError> {
    if peer.greeting().is_some() {
        return Err(WireError::Malformed("a Play packet before the join"));
    }
    let (next, m) = (position.turn, position.mode.turns_ahead());
    for (seat, turn, input) in &play.batches {
        let seat = &seats[peer.players[*seat].index()];
        seat.check_batch(next, m, *turn, input)
            .map_err(|error| match error {
                BatchError::TooFar => WireError::Malformed("more open batches than turns"),
                BatchError::Changed => WireError::Malformed("two batches for one turn"),
            })?;
    }
    check_lane_ack(peer, play.lane_ack.as_ref())
}

fn apply<S: Simulation>(
    peer: &mut Peer,
    seats: &mut [Seat<S>],
    position: MatchPosition,
    newest: bool,
    play: &mut PlayUp<S>,
) {
    let MatchPosition { now, next, .. } = position;
    let UpStatus { wanted, view, .. } = play.status;
    take_lane_ack(peer, now, play.lane_ack.as_ref());
    if peer.take_wanted(now, wanted) {
        apply_progress(peer, position, newest, wanted, view);
    }
    if newest {
        peer.rhythm.record_status(play.status);
        peer.acks.record_gaps(&mut play.notes.gaps, wanted);
    }
    if play.notes.lossy {
        peer.acks.record_lossy(now);
    }
    for (seat, tick, input) in &play.inputs {
        if seats[peer.players[*seat].index()].offer_input(next, *tick, input) {
            peer.first_input[*seat] = peer.first_input[*seat].min(*tick);
        }
    }
    if newest {
        for player in &peer.players {
            let until = play.notes.rests.then(|| now + position.tick);
            seats[player.index()].record_rest(until);
        }
    }
    for given in play.commands.drain(..) {
        offer_command(peer, seats, now, given);
    }
    for claim in play.claims.drain(..) {
        let (player, seq) = (peer.players[claim.seat], claim.tick.0);
        let seat = &mut seats[player.index()];
        let arrival = seat.offer_claim(now, player, next, seq, claim.command);
        if let Arrival::Refused(why) = arrival {
            let claim = true;
            peer.refuse(NotAdmitted {
                player,
                claim,
                seq,
                why,
            });
        }
    }
    apply_batches(peer, seats, position, play);
}

fn offer_command<S: Simulation>(
    peer: &mut Peer,
    seats: &mut [Seat<S>],
    now: Duration,
    given: CommandUp<S::Command>,
) {
    let player = peer.players[given.seat];
    let seat = &mut seats[player.index()];
    seat.offer_command(player, given);
    while let Some((seq, arrival)) = seat.take_command(now) {
        if let Arrival::Refused(why) = arrival {
            let claim = false;
            peer.refuse(NotAdmitted {
                player,
                claim,
                seq,
                why,
            });
        }
    }
    // Acknowledged again even if it is not new: the last ack may have been lost.
    peer.fates.acknowledge();
}

/// Reads a large command or answer that arrived on the lane, and applies it like one from a `Play` packet.
///
/// # Errors
/// If the bytes are not such a message, or this session may not send it.
pub(crate) fn read_large<S: Simulation>(
    peer: &mut Peer,
    seats: &mut [Seat<S>],
    position: MatchPosition,
    play: &mut PlayUp<S>,
    received: &Message,
) -> Result<(), WireError> {
    if peer.greeting().is_some() {
        return Err(WireError::Malformed("a large order before the join"));
    }
    if received.kind == message::ANSWER {
        let answer = decoded(|| large::read_answer::<S>(&received.bytes, &peer.players))?;
        play.answers.push(answer);
        return Ok(());
    }
    let near = near(peer, position);
    let given = decoded(|| large::read_command(&received.bytes, &near))?;
    offer_command(peer, seats, position.now, given);
    Ok(())
}

fn near(peer: &Peer, position: MatchPosition) -> UpContext<'_> {
    UpContext {
        wanted: peer.acks.wanted(),
        next: position.next,
        turn: position.turn,
        command_delay: position.mode.turns_ahead(),
        players: &peer.players,
    }
}

fn apply_progress(
    peer: &mut Peer,
    position: MatchPosition,
    newest: bool,
    wanted: Tick,
    view: Tick,
) {
    let now = position.now;
    if newest && wanted > peer.acks.wanted() {
        if peer.acks.stood_for(now) > position.turn_length * 2 + position.tick * 2 {
            peer.record_late(now);
        }
        peer.acks.record_progress(now, wanted);
    }
    peer.acks.record_view(view, wanted);
}

/// Takes closed batches: each seat's input for whole turns. The slack of the newest one steers the client's clock.
fn apply_batches<S: Simulation>(
    peer: &mut Peer,
    seats: &mut [Seat<S>],
    position: MatchPosition,
    play: &PlayUp<S>,
) {
    let next = position.turn;
    let mut newest = None;
    for (seat, turn, input) in &play.batches {
        let seat = &mut seats[peer.players[*seat].index()];
        if seat.offer_batch(next, *turn, input) {
            newest = Some(*turn);
            seat.batch_at = Some(position.next);
        }
    }
    if let Some(turn) = newest.filter(|_| !position.is_paused) {
        let ms = |time: Duration| time.as_millis() as i64;
        let ahead = i64::from(turn) - i64::from(next);
        let due = ms(position.due) + ahead * ms(position.turn_length);
        let slack = due - ms(position.now);
        peer.rhythm.record_slack(slack);
        if slack < 0 {
            peer.record_late(position.now);
        }
    }
}

fn check_lane_ack(peer: &Peer, ack: Option<&LaneAck>) -> Result<(), WireError> {
    ack.map_or(Ok(()), |ack| peer.lane_out.check_ack(ack))
        .map_err(|_| WireError::Malformed("an ack of an unsent chunk"))
}

fn take_lane_ack(peer: &mut Peer, now: Duration, ack: Option<&LaneAck>) {
    if let Some(ack) = ack {
        let taken = peer.lane_out.handle_ack(now, ack);
        debug_assert!(taken.is_ok(), "it was checked");
        peer.record_arrived(now);
    }
}
