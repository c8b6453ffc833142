//! `Play`, up: the frames that a client has, its inputs and orders, and its requests to the server.
//!
//! ```text
//! first · link · wanted: 16 · wanted − shown: 8 · load and late turns: 4 and 4
//!   · [run of inputs]
//!   · [commands: count, and each: oldest open and seat: 1 and 7 · sequence: varint · stamp: 16 · value]
//!   · [claims: count, and each: seat: 8 · tick: 16 · value]
//!   · [batches]                               instead of inputs, with a command delay; after the commands of their turns
//!   · [lane ack]
//!   · [rare: 8 · [heal: 32] · [evidence: 32] · [gaps] · [answers: count, and each: wanted − asked: 32 · key · value]]
//! ```
//!
//! A client writes with [`PlayUpWriter`]: each list takes as many items as fit while a given number of bytes stays
//! free, and the packet keeps track of its parts. A server reads into a [`PlayUp`] and reuses its buffers. Reading has
//! no side effects: the server acts only on completely read packets, so a malformed tail only costs a strike.

use alloc::vec::Vec;
use core::time::Duration;

use serde::Serialize;
use serde::de::DeserializeOwned;
use twinstep_core::bounds::{
    ANSWERS_MAX, COMMAND_INLINE_MAX, COMMANDS_OPEN_MAX, INPUT_WINDOW, OUTCOME_INLINE_MAX, SEATS_MAX,
};
use twinstep_core::frame::Answer;
use twinstep_core::{Controls, Key, PlayerId, Simulation, Tick};

use super::batches::{self, BATCHES_MAX};
use super::gaps::{self, Gaps};
use super::head::PacketWriter;
use super::{ByteCounts, PacketBody, Parts, RareUp, UpKind, UpPart, inputs};
use crate::lane::LaneAck;
use crate::link::LinkState;
use crate::wire::{Reader, WireError, Writer};

/// The load of a machine that is always busy.
pub const LOAD_UNITS: f32 = 15.0;

/// The flag in a command's seat byte that marks it as the oldest open one.
const OLDEST_OPEN: u8 = 0x80;

#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct UpStatus {
    /// The first frame that the client lacks.
    pub wanted: Tick,
    /// The next tick of the client's authority, at most 255 before `wanted`.
    pub view: Tick,
    /// The share of time in which the client's machine is busy with the game, in [`LOAD_UNITS`].
    pub load: u8,
    /// The number of turns that the client played late, modulo 16.
    pub late_turns: u8,
}

/// A command in a packet. `C` is a reference while it is written.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct CommandUp<C> {
    pub seat: usize,
    pub seq: u32,
    /// The earliest tick, or turn with a command delay, in which it can run.
    pub stamp: Tick,
    /// The server does not wait for the seat's commands from this number up to, but not including, `seq`, because the
    /// client knows their results. 0 for the oldest unacknowledged command; otherwise at most `seq`. A `Play` packet
    /// contains 0 or `seq`.
    pub settled_from: u32,
    pub command: C,
}

/// A claim in a packet. `C` is a reference while it is written.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ClaimUp<C> {
    pub seat: usize,
    pub tick: Tick,
    pub command: C,
}

/// Parts that a client sends only occasionally.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct UpNotes {
    pub heal: Option<Tick>,
    pub evidence: Option<Tick>,
    pub gaps: Gaps,
    pub lossy: bool,
    pub rests: bool,
}

/// The session state that the reader needs: the values against which truncated numbers are expanded, and the players
/// for which the client may act.
pub struct UpContext<'a> {
    /// The first frame that the session lacks, as far as the server knows.
    pub wanted: Tick,
    pub next: Tick,
    pub turn: u32,
    /// The command delay m, or 0 without one.
    pub command_delay: u8,
    pub players: &'a [PlayerId],
}

/// The parts in the order in which they are written.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
enum PartOrder {
    Status,
    Inputs,
    Commands,
    Claims,
    Batches,
    LaneAck,
    Rare,
}

/// A packet being written. All parts are optional. A method panics if its part, or a part of a later method, has
/// already been written.
pub struct PlayUpWriter<'w, 'b> {
    packet: PacketWriter<'w, 'b, UpPart>,
    wanted: Tick,
    place: PartOrder,
}

impl<'w, 'b> PlayUpWriter<'w, 'b> {
    pub fn begin(
        now: Duration,
        link: &mut LinkState,
        status: UpStatus,
        out: &'w mut Writer<'b>,
    ) -> Result<Self, WireError> {
        let mut packet = PacketWriter::begin(UpKind::Play.alone(), now, link, out)?;
        let out = packet.out();
        out.tick16(status.wanted)?;
        out.u8((status.wanted - status.view).min(255) as u8)?;
        out.u8(status.load << 4 | status.late_turns & 15)?;
        packet.count(|counts| &mut counts.acks);
        Ok(PlayUpWriter {
            packet,
            wanted: status.wanted,
            place: PartOrder::Status,
        })
    }

    fn enter(&mut self, place: PartOrder) {
        assert!(self.place < place, "{place:?} after {:?}", self.place);
        self.place = place;
    }

    /// Writes the newest inputs of ticks `first..end`, which lie within `INPUT_WINDOW` of the wanted frame, as many as
    /// fit while `room` bytes stay free. Returns the first tick written, or `end` if none fits.
    pub fn inputs<'i, I: Controls>(
        &mut self,
        (first, end): (Tick, Tick),
        seats: usize,
        input: impl Fn(usize, Tick) -> &'i I,
        room: usize,
    ) -> Tick {
        self.enter(PartOrder::Inputs);
        let out = self.packet.out();
        let from = inputs::write_newest(out, self.wanted, (first, end), seats, input, room);
        if from < end {
            self.packet.add(UpPart::Inputs);
        }
        self.packet.count(|counts| &mut counts.inputs);
        from
    }

    /// Writes commands, as many as fit while `room` bytes stay free. Returns the first one left out, if any.
    pub fn commands<'c, C: Serialize + 'c>(
        &mut self,
        commands: impl Iterator<Item = CommandUp<&'c C>>,
        room: usize,
    ) -> Option<CommandUp<&'c C>> {
        self.enter(PartOrder::Commands);
        let write = |given: &CommandUp<&C>, out: &mut Writer<'_>| {
            let mark = if given.settled_from == 0 {
                OLDEST_OPEN
            } else {
                0
            };
            out.u8(given.seat as u8 | mark)?;
            out.varint(given.seq)?;
            out.tick16(given.stamp)?;
            out.value(given.command)
        };
        let (any, left) = write_list(self.packet.out(), commands, room, write);
        if any {
            self.packet.add(UpPart::Commands);
        }
        self.packet.count(|counts| &mut counts.commands);
        left
    }

    /// Writes claims, as many as fit while `room` bytes stay free.
    pub fn claims<'c, C: Serialize + 'c>(
        &mut self,
        claims: impl Iterator<Item = ClaimUp<&'c C>>,
        room: usize,
    ) {
        self.enter(PartOrder::Claims);
        let write = |claim: &ClaimUp<&C>, out: &mut Writer<'_>| {
            out.u8(claim.seat as u8)?;
            out.tick16(claim.tick)?;
            out.value(claim.command)
        };
        if write_list(self.packet.out(), claims, room, write).0 {
            self.packet.add(UpPart::Claims);
        }
        self.packet.count(|counts| &mut counts.commands);
    }

    /// Writes the batches of `count` turns starting at `first`, or as many as fit while `room` bytes stay free. Returns
    /// the number written.
    pub fn batches<'i, I: Controls>(
        &mut self,
        first: u32,
        count: usize,
        seats: usize,
        input: impl Fn(usize, u32) -> &'i I,
        room: usize,
    ) -> usize {
        self.enter(PartOrder::Batches);
        let out = self.packet.out();
        let start = out.len();
        let fits = |count: &usize| {
            let written = batches::write(out, first, *count, seats, &input);
            let fits = written.is_ok() && out.room() >= room;
            if !fits {
                out.truncate(start);
            }
            fits
        };
        let written = (1..=count.min(BATCHES_MAX)).rev().find(fits);
        // Inputs and batches share a bit: a session sends one or the other.
        if written.is_some() {
            self.packet.add(UpPart::Inputs);
        }
        self.packet.count(|counts| &mut counts.inputs);
        written.unwrap_or(0)
    }

    pub fn lane_ack(&mut self, ack: &LaneAck) -> Result<(), WireError> {
        self.enter(PartOrder::LaneAck);
        self.packet.add(UpPart::LaneAck);
        ack.write(self.packet.out())?;
        self.packet.count(|counts| &mut counts.bulk);
        Ok(())
    }

    /// Writes the occasional parts, and as many answers to queries of the client's players as fit: the tick asked, the
    /// key and the outcome of each.
    ///
    /// # Errors
    /// [`WireError::Full`] if the packet is full.
    pub fn rare<'o, O: Serialize + 'o>(
        &mut self,
        notes: &UpNotes,
        answers: impl Iterator<Item = (Tick, Key, &'o O)>,
    ) -> Result<(), WireError> {
        self.enter(PartOrder::Rare);
        let wanted = self.wanted;
        let out = self.packet.out();
        let start = out.len();
        out.u8(0)?;
        let mut rare = Parts::default();
        for (part, tick) in [
            (RareUp::Heal, notes.heal),
            (RareUp::Evidence, notes.evidence),
        ] {
            if let Some(tick) = tick {
                rare.add(part);
                out.u32(tick.0)?;
            }
        }
        if !notes.gaps.is_empty() {
            rare.add(RareUp::Gaps);
            gaps::write(out, &notes.gaps)?;
        }
        let write = |(asked, key, outcome): &(Tick, Key, &O), out: &mut Writer<'_>| {
            out.u32(wanted.0.wrapping_sub(asked.0))?;
            out.value(key)?;
            out.value(*outcome)
        };
        if write_list(out, answers, 0, write).0 {
            rare.add(RareUp::Answers);
        }
        for (part, is_so) in [(RareUp::Lossy, notes.lossy), (RareUp::Rests, notes.rests)] {
            if is_so {
                rare.add(part);
            }
        }
        if rare.is_empty() {
            out.truncate(start);
        } else {
            out.patch(start, rare.bits());
            self.packet.add(UpPart::Rare);
        }
        self.packet.count(|counts| &mut counts.bulk);
        Ok(())
    }

    #[must_use]
    pub fn end(self) -> ByteCounts {
        self.packet.end()
    }
}

/// Writes a count and the items, as many as fit while `room` bytes stay free. If no item fits, the count is also left
/// out. Returns whether any item was written, and the first one left out.
fn write_list<T>(
    out: &mut Writer<'_>,
    list: impl Iterator<Item = T>,
    room: usize,
    write: impl Fn(&T, &mut Writer<'_>) -> Result<(), WireError>,
) -> (bool, Option<T>) {
    let start = out.len();
    let mut count = 0u8;
    // The count is patched at the end.
    let has_count = out.u8(0).is_ok();
    let mut left = None;
    for item in list {
        let end = out.len();
        let fits = has_count && write(&item, out).is_ok() && out.room() >= room;
        if !fits {
            out.truncate(end);
            left = Some(item);
            break;
        }
        count += 1;
    }
    if count == 0 {
        out.truncate(start);
    } else {
        out.patch(start, count);
    }
    (count > 0, left)
}

/// A parsed packet from a client; see the [module](self). Its buffers are reused.
pub struct PlayUp<S: Simulation> {
    pub status: UpStatus,
    /// Inputs, each with its seat and tick.
    pub inputs: Vec<(usize, Tick, S::Input)>,
    /// Commands, oldest first.
    pub commands: Vec<CommandUp<S::Command>>,
    /// Claims, oldest first.
    pub claims: Vec<ClaimUp<S::Command>>,
    /// Closed batches, each with its seat and turn.
    pub batches: Vec<(usize, u32, S::Input)>,
    pub lane_ack: Option<LaneAck>,
    pub notes: UpNotes,
    /// Answers to queries, with the player that asked.
    pub answers: Vec<(PlayerId, Answer<S::Outcome>)>,
}

impl<S: Simulation> Default for PlayUp<S> {
    fn default() -> Self {
        PlayUp {
            status: UpStatus::default(),
            inputs: Vec::with_capacity(INPUT_WINDOW as usize * SEATS_MAX),
            commands: Vec::with_capacity(COMMANDS_OPEN_MAX),
            claims: Vec::with_capacity(COMMANDS_OPEN_MAX),
            batches: Vec::with_capacity(BATCHES_MAX * SEATS_MAX),
            lane_ack: None,
            notes: UpNotes::default(),
            answers: Vec::with_capacity(ANSWERS_MAX),
        }
    }
}

impl<S: Simulation> PlayUp<S> {
    /// Reads a packet, replacing all previous content.
    ///
    /// # Errors
    /// If the bytes are not a `Play`, or contain data that no client may send. In that case the content is meaningless.
    pub fn read(
        &mut self,
        body: PacketBody<'_, UpPart>,
        near: &UpContext<'_>,
    ) -> Result<(), WireError> {
        let PacketBody { parts, mut packet } = body;
        let packet = &mut packet;
        self.status = read_status(packet, near)?;
        let seats = near.players.len();
        self.inputs.clear();
        if parts.has(UpPart::Inputs) && near.command_delay == 0 {
            let read = &mut self.inputs;
            inputs::read::<S::Input>(packet, self.status.wanted, seats, |seat, tick, input| {
                read.push((seat, tick, input.clone()));
            })?;
        }
        self.commands.clear();
        if parts.has(UpPart::Commands) {
            for _ in 0..packet.u8()? {
                self.commands.push(read_command(packet, near)?);
            }
        }
        self.claims.clear();
        if parts.has(UpPart::Claims) {
            for _ in 0..packet.u8()? {
                self.claims.push(read_claim(packet, near)?);
            }
        }
        self.batches.clear();
        if parts.has(UpPart::Inputs) && near.command_delay > 0 {
            // After the commands, because a closed batch implies that all commands of its turn have been read.
            let read = &mut self.batches;
            batches::read::<S::Input>(packet, near.turn, seats, |seat, turn, input| {
                read.push((seat, turn, input.clone()));
                Ok(())
            })?;
        }
        self.lane_ack = match parts.has(UpPart::LaneAck) {
            true => Some(LaneAck::read(packet)?),
            false => None,
        };
        let rare = match parts.has(UpPart::Rare) {
            true => Parts::read(packet.u8()?)?,
            false => Parts::default(),
        };
        self.read_rare(rare, packet, near)?;
        packet.end()
    }

    fn read_rare(
        &mut self,
        rare: Parts<RareUp>,
        packet: &mut Reader<'_>,
        near: &UpContext<'_>,
    ) -> Result<(), WireError> {
        let tick = |part: RareUp, packet: &mut Reader<'_>| match rare.has(part) {
            true => packet.u32().map(|tick| Some(Tick(tick))),
            false => Ok(None),
        };
        let wanted = self.status.wanted;
        self.notes = UpNotes {
            heal: tick(RareUp::Heal, packet)?,
            evidence: tick(RareUp::Evidence, packet)?,
            gaps: match rare.has(RareUp::Gaps) {
                true => gaps::read(packet, wanted)?,
                false => Gaps::new(),
            },
            lossy: rare.has(RareUp::Lossy),
            rests: rare.has(RareUp::Rests),
        };
        self.answers.clear();
        if rare.has(RareUp::Answers) {
            for _ in 0..packet.u8()? {
                let answer = read_answer::<S>(packet, wanted, near.players)?;
                self.answers.push(answer);
            }
        }
        Ok(())
    }
}

fn read_status(packet: &mut Reader<'_>, near: &UpContext<'_>) -> Result<UpStatus, WireError> {
    let wanted = packet.tick16(near.wanted)?;
    let (behind, busy) = (packet.u8()?, packet.u8()?);
    if wanted > near.next {
        return Err(WireError::Malformed(
            "it acknowledges a frame that is not sealed",
        ));
    }
    Ok(UpStatus {
        wanted,
        view: wanted.back(u32::from(behind)),
        load: busy >> 4,
        late_turns: busy & 15,
    })
}

fn read_command<C: DeserializeOwned>(
    packet: &mut Reader<'_>,
    near: &UpContext<'_>,
) -> Result<CommandUp<C>, WireError> {
    let head = packet.u8()?;
    let (seat, seq) = (usize::from(head & !OLDEST_OPEN), packet.varint()?);
    let stamp = match near.command_delay {
        // A client's own ticks are near the frame that it wants, however far it is behind.
        0 => packet.tick16(near.wanted)?.min(near.next + INPUT_WINDOW),
        m => packet
            .tick16(Tick(near.turn))?
            .min(Tick(near.turn) + u32::from(m)),
    };
    let (command, bytes) = sized(packet)?;
    if seat >= near.players.len() {
        return Err(WireError::Malformed("a command of an unknown seat"));
    }
    if bytes > COMMAND_INLINE_MAX {
        return Err(WireError::Malformed("a command over its limit"));
    }
    Ok(CommandUp {
        seat,
        seq,
        stamp,
        settled_from: if head & OLDEST_OPEN != 0 { 0 } else { seq },
        command,
    })
}

fn read_claim<C: DeserializeOwned>(
    packet: &mut Reader<'_>,
    near: &UpContext<'_>,
) -> Result<ClaimUp<C>, WireError> {
    let seat = usize::from(packet.u8()?);
    let tick = packet.tick16(near.wanted)?;
    let (command, bytes) = sized(packet)?;
    if seat >= near.players.len() {
        return Err(WireError::Malformed("a claim of an unknown seat"));
    }
    if bytes > COMMAND_INLINE_MAX || tick > near.next + INPUT_WINDOW {
        return Err(WireError::Malformed("a claim over its limit"));
    }
    Ok(ClaimUp {
        seat,
        tick,
        command,
    })
}

fn read_answer<S: Simulation>(
    packet: &mut Reader<'_>,
    wanted: Tick,
    players: &[PlayerId],
) -> Result<(PlayerId, Answer<S::Outcome>), WireError> {
    let asked = wanted.back(packet.u32()?);
    let key: Key = packet.value()?;
    let (outcome, bytes) = sized::<S::Outcome>(packet)?;
    let owner = key
        .owner()
        .filter(|owner| players.contains(owner))
        .ok_or(WireError::Malformed("an answer to another player's query"))?;
    if bytes > OUTCOME_INLINE_MAX {
        return Err(WireError::Malformed("an outcome over its limit"));
    }
    let answer = Answer {
        asked,
        key,
        outcome: Some(outcome),
    };
    Ok((owner, answer))
}

fn sized<T: DeserializeOwned>(packet: &mut Reader<'_>) -> Result<(T, usize), WireError> {
    let before = packet.rest().len();
    let value = packet.value()?;
    Ok((value, before - packet.rest().len()))
}

#[cfg(test)]
mod tests;
