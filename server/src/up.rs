//! What a session says: hello, inputs or batches, commands, claims, acks, and "we differ".
//!
//! A packet is read to its end ([`Said`]), checked against the session, and only then it counts.
//!
//! Law **Hostile wire**: nothing here trusts a byte. Whose input it is comes from the session, never from
//! the packet; what is out of its window is ignored; what is out of the protocol costs a strike.

use std::time::Duration;

use crate::seat::NotAdmitted;
use twinstep_core::bounds::ANSWERS_MAX;
use twinstep_core::{Simulation, Tick};
use twinstep_protocol::lane::LaneAck;
use twinstep_protocol::link::LinkState;
use twinstep_protocol::packet::hello::Hello;
use twinstep_protocol::packet::{UpKind, UpPart, WIRE_VERSION};
use twinstep_protocol::wire::{Reader, WireError};

use crate::caught::decoded;
use crate::peer::{Peer, SessionStage};
use crate::seat::{Arrival, BatchError, Seat};
pub(crate) use said::Said;
use said::{Near, Packet};

mod said;
#[cfg(test)]
mod tests;

/// What a packet asks of the match, beyond what it left with its session and seats.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Asked {
    Nothing,
    /// To join.
    Join(Box<Hello>),
    /// To be told once more why the session is over, or to leave.
    Leave,
    /// Help: its authority differs at this tick.
    Heal(Tick),
    /// The server's world of this tick.
    Evidence(Tick),
}

/// Where the match stands, for whoever reads what a session says.
#[derive(Clone, Copy)]
pub(crate) struct MatchPosition {
    pub(crate) now: Duration,
    /// The next tick to be sealed.
    pub(crate) next: Tick,
    /// The next turn to be sealed.
    pub(crate) turn: u32,
    /// The command delay m, or 0.
    pub(crate) command_delay: u8,
    /// When that turn is due, and how long it is.
    pub(crate) due: Duration,
    pub(crate) turn_length: Duration,
    pub(crate) tick: Duration,
}

/// What somebody says whose identity has another session.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Greeting {
    /// That it takes its seats over.
    Hello(Box<Hello>),
    /// That it goes.
    Leave,
    /// Nothing that matters yet.
    Other,
}

/// Reads whether a packet begins a session.
pub(crate) fn greeting(bytes: &[u8]) -> Result<Greeting, WireError> {
    let mut packet = Reader::new(bytes);
    let (kind, parts) = UpKind::read(packet.u8()?)?;
    LinkState::default().parse(&mut packet)?;
    match kind {
        UpKind::Hello if !parts.has(UpPart::LaneAck) => {
            let hello = Hello::read(&mut packet)?;
            if hello.wire == WIRE_VERSION {
                packet.end()?;
            }
            Ok(Greeting::Hello(Box::new(hello)))
        }
        UpKind::Leave => {
            packet.end()?;
            Ok(Greeting::Leave)
        }
        _ => Ok(Greeting::Other),
    }
}

/// Reads one packet of `peer`, whose seats are among `seats`, and does what it says.
///
/// # Errors
/// Bytes that are no packet, or one that this session may not send; session and seats are as before then.
pub(crate) fn read<S: Simulation>(
    peer: &mut Peer,
    seats: &mut [Seat<S>],
    position: MatchPosition,
    said: &mut Said<S>,
    bytes: &[u8],
) -> Result<Asked, WireError> {
    let now = position.now;
    let mut packet = Reader::new(bytes);
    let (kind, parts) = UpKind::read(packet.u8()?)?;
    let header = peer.link.parse(&mut packet)?;
    if header.repeated {
        peer.link.note(now, header);
        return Ok(Asked::Nothing);
    }
    let near = Near {
        wanted: peer.acks.wanted(),
        next: position.next,
        turn: position.turn,
        command_delay: position.command_delay,
        players: &peer.players,
    };
    let asked = match decoded(|| said.read(kind, parts, &mut packet, &near))? {
        Packet::Hello(hello) if peer.stage == SessionStage::Greeting => Asked::Join(hello),
        Packet::Hello(_) => Asked::Nothing,
        Packet::Loading(ack) => {
            check_lane_ack(peer, Some(&ack))?;
            take_lane_ack(peer, now, Some(&ack));
            Asked::Nothing
        }
        Packet::Play => {
            check(peer, seats, position, said)?;
            heed(peer, seats, position, header.newest, said);
            match (said.heal, said.evidence) {
                (Some(tick), _) => Asked::Heal(tick),
                (_, Some(tick)) => Asked::Evidence(tick),
                _ => Asked::Nothing,
            }
        }
        Packet::Chunk(chunk) => {
            peer.lane_in
                .handle(chunk)
                .map_err(|_| WireError::Malformed("a chunk of the lane"))?;
            Asked::Nothing
        }
        Packet::Leave => Asked::Leave,
    };
    peer.link.note(now, header);
    Ok(asked)
}

/// Whether this session may say that now.
fn check<S: Simulation>(
    peer: &Peer,
    seats: &[Seat<S>],
    position: MatchPosition,
    said: &Said<S>,
) -> Result<(), WireError> {
    if peer.stage == SessionStage::Greeting {
        return Err(WireError::Malformed("it plays before it joined"));
    }
    let (next, m) = (position.turn, position.command_delay);
    for (seat, turn, input) in &said.batches {
        let seat = &seats[peer.players[*seat].index()];
        seat.check_batch(next, m, *turn, input)
            .map_err(|error| match error {
                BatchError::TooFar => WireError::Malformed("more open batches than turns"),
                BatchError::Changed => WireError::Malformed("two batches for one turn"),
            })?;
    }
    check_lane_ack(peer, said.lane_ack.as_ref())
}

/// Does what a packet says that was read to its end and checked.
fn heed<S: Simulation>(
    peer: &mut Peer,
    seats: &mut [Seat<S>],
    position: MatchPosition,
    newest: bool,
    said: &mut Said<S>,
) {
    let MatchPosition { now, next, .. } = position;
    take_lane_ack(peer, now, said.lane_ack.as_ref());
    if peer.stage != SessionStage::Loading {
        heed_progress(peer, position, newest, said.wanted, said.view);
    } else if peer.has_loaded() && said.wanted >= peer.acks.wanted() {
        // Whoever has not acknowledged its world has none to play on from, whatever it says.
        peer.standing.note_loaded();
        peer.enter(SessionStage::CatchingUp, now);
        peer.acks.note_loaded(said.wanted);
    }
    if newest {
        peer.rhythm.note_told(said.pauses);
        peer.acks.note_gaps(&mut said.gaps, said.wanted);
    }
    if said.lossy {
        peer.acks.note_lossy(now);
    }
    for (seat, tick, input) in &said.inputs {
        if seats[peer.players[*seat].index()].offer_input(next, *tick, input) {
            peer.first_input[*seat] = peer.first_input[*seat].min(*tick);
        }
    }
    if newest {
        for player in &peer.players {
            let until = said.rests.then(|| now + position.tick);
            seats[player.index()].note_rest(until);
        }
    }
    for given in said.commands.drain(..) {
        let player = given.player;
        let seat = &mut seats[player.index()];
        seat.offer_command(given);
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
        // Said again even if nothing is new: the telling may have been lost.
        peer.fates.acknowledge();
    }
    for given in said.claims.drain(..) {
        let (player, seq) = (given.player, given.seq);
        let seat = &mut seats[player.index()];
        let arrival = seat.offer_claim(now, player, next, seq, given.command);
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
    heed_batches(peer, seats, position, said);
    for (owner, answer) in said.answers.drain(..) {
        let seat = &mut seats[owner.index()];
        if seat.answers.len() < ANSWERS_MAX {
            seat.answers.push(answer);
        }
    }
}

/// How far its client has come, and whether that is late.
fn heed_progress(peer: &mut Peer, position: MatchPosition, newest: bool, wanted: Tick, view: Tick) {
    let now = position.now;
    if newest && wanted > peer.acks.wanted() {
        if peer.acks.stood_for(now) > position.turn_length * 2 + position.tick * 2 {
            peer.note_late(now);
        }
        peer.acks.note_progress(now, wanted);
    }
    peer.acks.note_view(view, wanted);
}

/// Closed batches: each seat's input for whole turns. How early the newest came steers the client's clock.
fn heed_batches<S: Simulation>(
    peer: &mut Peer,
    seats: &mut [Seat<S>],
    position: MatchPosition,
    said: &Said<S>,
) {
    let next = position.turn;
    let mut newest = None;
    for (seat, turn, input) in &said.batches {
        let seat = &mut seats[peer.players[*seat].index()];
        if seat.offer_batch(next, *turn, input) {
            newest = Some(*turn);
            seat.spoke = Some(position.next);
        }
    }
    if let Some(turn) = newest {
        let ms = |time: Duration| time.as_millis() as i64;
        let ahead = i64::from(turn) - i64::from(next);
        let due = ms(position.due) + ahead * ms(position.turn_length);
        let slack = due - ms(position.now);
        peer.rhythm.note_slack(slack);
        if slack < 0 {
            peer.note_late(position.now);
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
        peer.note_arrived(now);
    }
}
