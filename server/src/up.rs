//! What a session says: hello, inputs or batches, commands, claims, acks, and "we differ".
//!
//! Law **Hostile wire**: nothing here trusts a byte. Whose input it is comes from the session, never from
//! the packet; what is out of its window is ignored; what is out of the protocol costs a strike.

use std::time::Duration;

use arrayvec::ArrayVec;
use twinstep_core::bounds::{ANSWERS_MAX, COMMAND_BYTES_MAX, INPUT_WINDOW, OUTCOME_BYTES_MAX};
use twinstep_core::frame::Answer;
use twinstep_core::lane::LaneAck;
use twinstep_core::link::Link;
use twinstep_core::packet::hello::Hello;
use twinstep_core::packet::{WIRE_VERSION, batches, inputs, kind, rare, up};
use twinstep_core::wire::{Reader, WireError};
use twinstep_core::{Key, Simulation, Tick};

use crate::peer::{Peer, Stage};
use crate::seat::{Arrival, BatchError, Seat};

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
pub(crate) struct Standing {
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
    let first = packet.u8()?;
    Link::default().read(Duration::ZERO, &mut packet)?;
    match kind(first) {
        up::HELLO if first & up::LANE_ACK == 0 => {
            let hello = Hello::read(&mut packet)?;
            if hello.wire == WIRE_VERSION {
                packet.end()?;
            }
            Ok(Greeting::Hello(Box::new(hello)))
        }
        up::LEAVE => {
            packet.end()?;
            Ok(Greeting::Leave)
        }
        _ => Ok(Greeting::Other),
    }
}

/// Reads one packet of `peer`, whose seats are among `seats`.
pub(crate) fn read<S: Simulation>(
    peer: &mut Peer,
    seats: &mut [Seat<S>],
    standing: Standing,
    bytes: &[u8],
) -> Result<Asked, WireError> {
    let mut packet = Reader::new(bytes);
    let first = packet.u8()?;
    let now = standing.now;
    let heard = peer.link.read(now, &mut packet)?;
    peer.bytes_up += bytes.len() as u64;
    peer.packets_up += 1;
    if heard.repeated {
        return Ok(Asked::Nothing);
    }
    match kind(first) {
        up::HELLO if first & up::LANE_ACK != 0 => {
            // Still waiting for its world.
            lane_ack(peer, now, &mut packet)?;
            packet.end()?;
            Ok(Asked::Nothing)
        }
        up::HELLO => {
            let hello = Hello::read(&mut packet)?;
            // Of another version only the number was read, and that is enough to refuse it in words.
            if hello.wire == WIRE_VERSION {
                packet.end()?;
            }
            Ok(if peer.stage == Stage::Greeting {
                Asked::Join(Box::new(hello))
            } else {
                Asked::Nothing
            })
        }
        up::PLAY => play(peer, seats, standing, first, heard.newest, &mut packet),
        up::LANE => {
            let chunk = packet.rest();
            peer.lane_in
                .handle(chunk)
                .map_err(|_| WireError::Malformed("a chunk of the lane"))?;
            Ok(Asked::Nothing)
        }
        _ => {
            packet.end()?;
            Ok(Asked::Leave)
        }
    }
}

fn play<S: Simulation>(
    peer: &mut Peer,
    seats: &mut [Seat<S>],
    standing: Standing,
    flags: u8,
    newest: bool,
    packet: &mut Reader<'_>,
) -> Result<Asked, WireError> {
    let Standing { now, next, .. } = standing;
    let wanted = packet.tick16(peer.wanted)?;
    let view = wanted.back(u32::from(packet.u8()?));
    let pauses = packet.u8()?;
    if wanted > next {
        return Err(WireError::Malformed(
            "it acknowledges a frame that is not sealed",
        ));
    }
    if peer.stage == Stage::Greeting {
        return Err(WireError::Malformed("it plays before it joined"));
    }
    let loads = peer.stage == Stage::Loading;
    if !loads && newest && wanted > peer.wanted {
        if now.saturating_sub(peer.progress_at) > standing.turn_length * 2 + standing.tick * 2 {
            peer.note_late(now);
        }
        peer.wanted = wanted;
        peer.progress_at = now;
    }
    if !loads {
        peer.view = peer.view.max(view.min(wanted));
    }
    if newest {
        peer.note_pauses(pauses);
    }
    let count = peer.players.len();
    if flags & up::INPUTS != 0 && standing.command_delay == 0 {
        let players = peer.players.clone();
        let mut taken: ArrayVec<(usize, Tick), { 4 * INPUT_WINDOW as usize }> = ArrayVec::new();
        inputs::read::<S::Input>(packet, wanted, count, |seat, tick, input| {
            if seats[players[seat].index()].offer_input(next, tick, input) {
                taken.push((seat, tick));
            }
        })?;
        for (seat, tick) in taken {
            peer.first_input[seat] = peer.first_input[seat].min(tick);
        }
    }
    if flags & up::COMMANDS != 0 {
        for _ in 0..packet.u8()? {
            let (seat, seq) = (usize::from(packet.u8()?), packet.varint()?);
            let stamp = match standing.command_delay {
                0 => packet.tick16(next)?.min(next + INPUT_WINDOW),
                m => packet
                    .tick16(Tick(standing.turn))?
                    .min(Tick(standing.turn + u32::from(m))),
            };
            let (command, bytes) = sized::<S::Command>(packet)?;
            let player = *peer
                .players
                .get(seat)
                .ok_or(WireError::Malformed("a command of no seat"))?;
            if bytes > COMMAND_BYTES_MAX {
                return Err(WireError::Malformed("a command over its bound"));
            }
            let arrival = seats[player.index()].offer_command(now, player, stamp, seq, command);
            // Said again even if known: the telling may have been lost.
            peer.acks_told_in = Some(0);
            if arrival == Arrival::Refused {
                peer.refuse(player, false, seq);
            }
        }
    }
    if flags & up::CLAIMS != 0 {
        for _ in 0..packet.u8()? {
            let seat = usize::from(packet.u8()?);
            let tick = packet.tick16(next)?;
            let (command, bytes) = sized::<S::Command>(packet)?;
            let player = *peer
                .players
                .get(seat)
                .ok_or(WireError::Malformed("a claim of no seat"))?;
            if bytes > COMMAND_BYTES_MAX || tick > next + INPUT_WINDOW {
                return Err(WireError::Malformed("a claim over its bound"));
            }
            let seat = &mut seats[player.index()];
            if seat.offer_claim(now, player, next, tick.0, command) == Arrival::Refused {
                peer.refuse(player, true, tick.0);
            }
        }
    }
    if flags & up::INPUTS != 0 && standing.command_delay > 0 {
        // Behind the commands: a batch that is closed has all of them.
        batches(peer, seats, standing, packet)?;
    }
    if flags & up::LANE_ACK != 0 {
        lane_ack(peer, now, packet)?;
    }
    // Whoever has not acknowledged its world has none to play on from, whatever it says.
    if loads && peer.has_loaded() && wanted >= peer.wanted {
        peer.enter(Stage::CatchingUp, now);
        peer.wanted = wanted;
    }
    let rare = if flags & up::RARE != 0 {
        packet.u8()?
    } else {
        0
    };
    let heal = if rare & rare::HEAL != 0 {
        Some(Tick(packet.u32()?))
    } else {
        None
    };
    let evidence = if rare & rare::EVIDENCE != 0 {
        Some(Tick(packet.u32()?))
    } else {
        None
    };
    if rare & rare::ANSWERS != 0 {
        answers(peer, seats, wanted, packet)?;
    }
    packet.end()?;
    Ok(match (heal, evidence) {
        (Some(tick), _) => Asked::Heal(tick),
        (_, Some(tick)) => Asked::Evidence(tick),
        _ => Asked::Nothing,
    })
}

/// Answers to queries, which wait with the seat of the player who asked until the match looks at them.
fn answers<S: Simulation>(
    peer: &Peer,
    seats: &mut [Seat<S>],
    near: Tick,
    packet: &mut Reader<'_>,
) -> Result<(), WireError> {
    for _ in 0..packet.u8()? {
        let asked = near.back(packet.u32()?);
        let key: Key = packet.value()?;
        let (outcome, bytes) = sized::<S::Outcome>(packet)?;
        let owner = key
            .owner()
            .filter(|owner| peer.players.contains(owner))
            .ok_or(WireError::Malformed("an answer to another one's query"))?;
        if bytes > OUTCOME_BYTES_MAX {
            return Err(WireError::Malformed("an outcome over its bound"));
        }
        let seat = &mut seats[owner.index()];
        if seat.answers.len() < ANSWERS_MAX {
            seat.answers.push(Answer {
                asked,
                key,
                outcome: Some(outcome),
            });
        }
    }
    Ok(())
}

/// Closed batches: each seat's input for whole turns. How early the newest came steers the client's clock.
fn batches<S: Simulation>(
    peer: &mut Peer,
    seats: &mut [Seat<S>],
    standing: Standing,
    packet: &mut Reader<'_>,
) -> Result<(), WireError> {
    let players = peer.players.clone();
    let (next, m) = (standing.turn, standing.command_delay);
    let mut newest = None;
    batches::read::<S::Input>(packet, next, players.len(), |seat, turn, input| match seats
        [players[seat].index()]
    .offer_batch(next, m, turn, input)
    {
        Ok(news) => {
            if news {
                newest = Some(turn);
            }
            Ok(())
        }
        Err(BatchError::TooFar) => Err(WireError::Malformed("more open batches than turns")),
        Err(BatchError::Changed) => Err(WireError::Malformed("two batches for one turn")),
    })?;
    if let Some(turn) = newest {
        let ms = |time: Duration| time.as_millis() as i64;
        let ahead = i64::from(turn) - i64::from(next);
        let due = ms(standing.due) + ahead * ms(standing.turn_length);
        let slack = due - ms(standing.now);
        peer.note_slack(slack);
        if slack < ms(standing.turn_length) / 4 {
            peer.note_late(standing.now);
        }
    }
    Ok(())
}

fn lane_ack(peer: &mut Peer, now: Duration, packet: &mut Reader<'_>) -> Result<(), WireError> {
    let ack = LaneAck::decode(packet.rest_mut())
        .map_err(|_| WireError::Malformed("an ack of the lane"))?;
    peer.lane_out
        .handle_ack(now, &ack)
        .map_err(|_| WireError::Malformed("an ack of an unsent chunk"))
}

fn sized<T: serde::de::DeserializeOwned>(packet: &mut Reader<'_>) -> Result<(T, usize), WireError> {
    let before = packet.rest().len();
    let value = packet.value()?;
    Ok((value, before - packet.rest().len()))
}
