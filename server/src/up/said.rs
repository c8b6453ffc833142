//! [`Said`]: a client's packet as one value.
//!
//! Invariant: reading changes nothing but this value, whose buffers are used again. Only a packet that was read to its
//! end is acted on, so a malformed tail costs a strike and nothing else.

use twinstep_core::bounds::{
    ANSWERS_MAX, COMMAND_BYTES_MAX, COMMANDS_OPEN_MAX, INPUT_WINDOW, OUTCOME_BYTES_MAX, SEATS_MAX,
};
use twinstep_core::frame::Answer;
use twinstep_core::{Key, PlayerId, Simulation, Tick};
use twinstep_protocol::lane::LaneAck;
use twinstep_protocol::packet::gaps::{self, Gaps};
use twinstep_protocol::packet::hello::Hello;
use twinstep_protocol::packet::{
    OLDEST_OPEN, Parts, RareUp, UpKind, UpPart, WIRE_VERSION, batches, inputs,
};
use twinstep_protocol::wire::{Reader, WireError};

use crate::seat::Given;

/// What kind of packet it is, and what the short ones hold.
pub(crate) enum Packet<'a> {
    /// It asks to join.
    Hello(Box<Hello>),
    /// It still waits for its world.
    Loading(LaneAck),
    /// It plays: the rest stands in [`Said`].
    Play,
    /// A chunk of a message.
    Chunk(&'a [u8]),
    /// Goodbye.
    Leave,
}

/// What a packet is read with: numbers near its own shortened ones, and whose it is.
pub(crate) struct Near<'a> {
    /// The first frame that the session is known to lack.
    pub(crate) wanted: Tick,
    /// The next tick to be sealed.
    pub(crate) next: Tick,
    /// The next turn to be sealed.
    pub(crate) turn: u32,
    /// The command delay m, or 0.
    pub(crate) command_delay: u8,
    /// The session's players, by seat.
    pub(crate) players: &'a [PlayerId],
}

/// See the [module](self).
pub(crate) struct Said<S: Simulation> {
    pub(crate) wanted: Tick,
    /// The client's authority.
    pub(crate) view: Tick,
    pub(crate) pauses: u8,
    /// By seat and tick.
    pub(crate) inputs: Vec<(usize, Tick, S::Input)>,
    pub(crate) commands: Vec<Given<S::Command>>,
    pub(crate) claims: Vec<Given<S::Command>>,
    /// By seat and turn.
    pub(crate) batches: Vec<(usize, u32, S::Input)>,
    pub(crate) lane_ack: Option<LaneAck>,
    pub(crate) heal: Option<Tick>,
    pub(crate) evidence: Option<Tick>,
    pub(crate) gaps: Gaps,
    /// It has lost packets lately.
    pub(crate) lossy: bool,
    /// All stays as it is for one tick more.
    pub(crate) rests: bool,
    /// With the player who asked.
    pub(crate) answers: Vec<(PlayerId, Answer<S::Outcome>)>,
}

impl<S: Simulation> Default for Said<S> {
    fn default() -> Self {
        Said {
            wanted: Tick(0),
            view: Tick(0),
            pauses: 0,
            inputs: Vec::with_capacity(INPUT_WINDOW as usize * SEATS_MAX),
            commands: Vec::with_capacity(COMMANDS_OPEN_MAX),
            claims: Vec::with_capacity(COMMANDS_OPEN_MAX),
            batches: Vec::with_capacity(batches::BATCHES_MAX * SEATS_MAX),
            lane_ack: None,
            heal: None,
            evidence: None,
            gaps: Gaps::new(),
            lossy: false,
            rests: false,
            answers: Vec::with_capacity(ANSWERS_MAX),
        }
    }
}

impl<S: Simulation> Said<S> {
    /// Reads a packet behind its link header. What was read before is forgotten.
    ///
    /// # Errors
    /// Bytes that are no packet, or one that nobody may send; the value means nothing then.
    pub(crate) fn read<'a>(
        &mut self,
        kind: UpKind,
        parts: Parts<UpPart>,
        packet: &mut Reader<'a>,
        near: &Near<'_>,
    ) -> Result<Packet<'a>, WireError> {
        let said = match kind {
            UpKind::Hello if parts.has(UpPart::LaneAck) => Packet::Loading(lane_ack(packet)?),
            UpKind::Hello => {
                let hello = Hello::read(packet)?;
                if hello.wire != WIRE_VERSION {
                    // Only the number was read, and that is enough to refuse it in words.
                    return Ok(Packet::Hello(Box::new(hello)));
                }
                Packet::Hello(Box::new(hello))
            }
            UpKind::Play => {
                self.read_play(parts, packet, near)?;
                Packet::Play
            }
            UpKind::Lane => return Ok(Packet::Chunk(packet.rest())),
            UpKind::Leave => Packet::Leave,
        };
        packet.end()?;
        Ok(said)
    }

    fn read_play(
        &mut self,
        parts: Parts<UpPart>,
        packet: &mut Reader<'_>,
        near: &Near<'_>,
    ) -> Result<(), WireError> {
        self.wanted = packet.tick16(near.wanted)?;
        self.view = self.wanted.back(u32::from(packet.u8()?));
        self.pauses = packet.u8()?;
        if self.wanted > near.next {
            return Err(WireError::Malformed(
                "it acknowledges a frame that is not sealed",
            ));
        }
        let seats = near.players.len();
        self.inputs.clear();
        if parts.has(UpPart::Inputs) && near.command_delay == 0 {
            let said = &mut self.inputs;
            inputs::read::<S::Input>(packet, self.wanted, seats, |seat, tick, input| {
                said.push((seat, tick, input.clone()));
            })?;
        }
        self.commands.clear();
        if parts.has(UpPart::Commands) {
            for _ in 0..packet.u8()? {
                let given = read_command(packet, near)?;
                self.commands.push(given);
            }
        }
        self.claims.clear();
        if parts.has(UpPart::Claims) {
            for _ in 0..packet.u8()? {
                let given = read_claim(packet, near)?;
                self.claims.push(given);
            }
        }
        self.batches.clear();
        if parts.has(UpPart::Inputs) && near.command_delay > 0 {
            // Behind the commands: a batch that is closed has all of them.
            let said = &mut self.batches;
            batches::read::<S::Input>(packet, near.turn, seats, |seat, turn, input| {
                said.push((seat, turn, input.clone()));
                Ok(())
            })?;
        }
        self.lane_ack = match parts.has(UpPart::LaneAck) {
            true => Some(lane_ack(packet)?),
            false => None,
        };
        let rare = match parts.has(UpPart::Rare) {
            true => Parts::read(packet.u8()?)?,
            false => Parts::default(),
        };
        self.read_rare(rare, packet, near)
    }

    fn read_rare(
        &mut self,
        rare: Parts<RareUp>,
        packet: &mut Reader<'_>,
        near: &Near<'_>,
    ) -> Result<(), WireError> {
        let tick = |part: RareUp, packet: &mut Reader<'_>| match rare.has(part) {
            true => packet.u32().map(|tick| Some(Tick(tick))),
            false => Ok(None),
        };
        self.heal = tick(RareUp::Heal, packet)?;
        self.evidence = tick(RareUp::Evidence, packet)?;
        self.gaps = match rare.has(RareUp::Gaps) {
            true => gaps::read(packet, self.wanted)?,
            false => Gaps::new(),
        };
        self.lossy = rare.has(RareUp::Lossy);
        self.rests = rare.has(RareUp::Rests);
        self.answers.clear();
        if rare.has(RareUp::Answers) {
            for _ in 0..packet.u8()? {
                let answer = read_answer::<S>(packet, self.wanted, near.players)?;
                self.answers.push(answer);
            }
        }
        Ok(())
    }
}

fn read_command<C: serde::de::DeserializeOwned>(
    packet: &mut Reader<'_>,
    near: &Near<'_>,
) -> Result<Given<C>, WireError> {
    let head = packet.u8()?;
    let (seat, seq) = (usize::from(head & !OLDEST_OPEN), packet.varint()?);
    let stamp = match near.command_delay {
        // Its own ticks are near those that it wants, however far it is behind.
        0 => packet.tick16(near.wanted)?.min(near.next + INPUT_WINDOW),
        m => packet
            .tick16(Tick(near.turn))?
            .min(Tick(near.turn) + u32::from(m)),
    };
    let (command, bytes) = sized(packet)?;
    let player = *near
        .players
        .get(seat)
        .ok_or(WireError::Malformed("a command of no seat"))?;
    if bytes > COMMAND_BYTES_MAX {
        return Err(WireError::Malformed("a command over its bound"));
    }
    Ok(Given {
        player,
        stamp,
        seq,
        is_oldest: head & OLDEST_OPEN != 0,
        command,
    })
}

fn read_claim<C: serde::de::DeserializeOwned>(
    packet: &mut Reader<'_>,
    near: &Near<'_>,
) -> Result<Given<C>, WireError> {
    let seat = usize::from(packet.u8()?);
    let tick = packet.tick16(near.wanted)?;
    let (command, bytes) = sized(packet)?;
    let player = *near
        .players
        .get(seat)
        .ok_or(WireError::Malformed("a claim of no seat"))?;
    if bytes > COMMAND_BYTES_MAX || tick > near.next + INPUT_WINDOW {
        return Err(WireError::Malformed("a claim over its bound"));
    }
    Ok(Given {
        player,
        stamp: tick,
        seq: tick.0,
        is_oldest: false,
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
        .ok_or(WireError::Malformed("an answer to another one's query"))?;
    if bytes > OUTCOME_BYTES_MAX {
        return Err(WireError::Malformed("an outcome over its bound"));
    }
    let answer = Answer {
        asked,
        key,
        outcome: Some(outcome),
    };
    Ok((owner, answer))
}

fn lane_ack(packet: &mut Reader<'_>) -> Result<LaneAck, WireError> {
    LaneAck::decode(packet.rest_mut()).map_err(|_| WireError::Malformed("an ack of the lane"))
}

fn sized<T: serde::de::DeserializeOwned>(packet: &mut Reader<'_>) -> Result<(T, usize), WireError> {
    let before = packet.rest().len();
    let value = packet.value()?;
    Ok((value, before - packet.rest().len()))
}
