//! [`Told`]: a `Play` packet of the server as one value.
//!
//! Invariant: reading changes nothing but this value, whose buffers are used again. Only a packet that was read to its
//! end is acted on, so a malformed tail costs a counter and nothing else.

use arrayvec::ArrayVec;
use twinstep_core::bounds::{COUNT_MAX, REFUSALS_PER_PACKET, SEATS_MAX};
use twinstep_core::frame::{FrameData, Order};
use twinstep_core::{PlayerId, PlayerSet, Simulation, Tick};
use twinstep_protocol::lane::LaneAck;
use twinstep_protocol::packet::company::{self, CompanyTold};
use twinstep_protocol::packet::frames::RunReader;
use twinstep_protocol::packet::refusal::OrderRefusal;
use twinstep_protocol::packet::{DownPart, NO_DIGEST, Parts, RareDown};
use twinstep_protocol::wire::{Reader, WireError};

use crate::orders::LocalActions;

/// Frames of one packet that there is room for without allocating.
const FRAMES: usize = 64;
/// Announced inputs and commands that there is room for without allocating.
const ANNOUNCED: usize = 128;

/// What a packet is read with: numbers near its own shortened ones, and what this client knows of itself.
pub(crate) struct Near<'a, S: Simulation> {
    pub(crate) next_seal: Tick,
    /// With a command delay.
    pub(crate) next_turn: Option<u32>,
    /// The first frame that is not here yet.
    pub(crate) wanted: Tick,
    pub(crate) orders: &'a LocalActions<S>,
}

/// See the [module](self).
pub(crate) struct Told<S: Simulation> {
    pub(crate) next_seal: Tick,
    pub(crate) margin: i8,
    pub(crate) unbroken: u8,
    /// With a command delay.
    pub(crate) next_turn: u32,
    pub(crate) waiting: PlayerSet,
    pub(crate) company: Option<CompanyTold>,
    pub(crate) lane_ack: Option<LaneAck>,
    /// Per seat; empty: not told.
    pub(crate) command_acks: ArrayVec<u32, SEATS_MAX>,
    pub(crate) refusals: ArrayVec<OrderRefusal, REFUSALS_PER_PACKET>,
    /// The first `news` are the frames from the wanted one on.
    frames: Vec<FrameData<S>>,
    news: usize,
    /// Whether there were frames, new ones or not.
    pub(crate) has_frames: bool,
    /// If one was taken: the tick of a turn's beginning, and the low half of the digest of the world there.
    pub(crate) digest: Option<(Tick, u32)>,
    pub(crate) inputs: Vec<(PlayerId, Tick, S::Input)>,
    pub(crate) commands: Vec<(Tick, Order<S::Command>)>,
    run: RunReader<S>,
}

impl<S: Simulation> Default for Told<S> {
    fn default() -> Self {
        Told {
            next_seal: Tick(0),
            margin: 0,
            unbroken: 0,
            next_turn: 0,
            waiting: PlayerSet::default(),
            company: None,
            lane_ack: None,
            command_acks: ArrayVec::new(),
            refusals: ArrayVec::new(),
            frames: (0..FRAMES).map(|_| FrameData::roomy(Tick(0))).collect(),
            news: 0,
            has_frames: false,
            digest: None,
            inputs: Vec::with_capacity(ANNOUNCED),
            commands: Vec::with_capacity(ANNOUNCED),
            run: RunReader::default(),
        }
    }
}

impl<S: Simulation> Told<S> {
    /// The frames that are not here yet, in order.
    pub(crate) fn frames(&self) -> &[FrameData<S>] {
        &self.frames[..self.news]
    }

    /// Reads a packet behind its link header. What was read before is forgotten.
    ///
    /// # Errors
    /// Bytes that are no such packet; the value means nothing then.
    pub(crate) fn read(
        &mut self,
        parts: Parts<DownPart>,
        packet: &mut Reader<'_>,
        near: &Near<'_, S>,
    ) -> Result<(), WireError> {
        self.next_seal = packet.tick16(near.next_seal)?;
        (self.margin, self.unbroken) = (packet.u8()? as i8, packet.u8()?);
        self.next_turn = match near.next_turn {
            Some(turn) => packet.tick16(Tick(turn))?.0,
            None => 0,
        };
        if self.next_turn > COUNT_MAX {
            return Err(WireError::Malformed("a turn beyond all counts"));
        }
        self.read_rare(parts, packet)?;
        self.read_fates(parts, packet, near.orders.seats().len())?;
        self.news = 0;
        self.has_frames = parts.has(DownPart::Frames);
        self.digest = None;
        self.inputs.clear();
        self.commands.clear();
        let own = near.orders.players();
        if self.has_frames {
            self.read_frames(packet, own, near)?;
        }
        if parts.has(DownPart::Announced) {
            if !self.has_frames {
                return Err(WireError::Malformed("announcements behind no frame"));
            }
            let (inputs, commands) = (&mut self.inputs, &mut self.commands);
            self.run.announced(
                packet,
                own,
                |player, tick, input| inputs.push((player, tick, input.clone())),
                |tick, order| commands.push((tick, order)),
            )?;
        }
        packet.end()
    }

    fn read_rare(
        &mut self,
        parts: Parts<DownPart>,
        packet: &mut Reader<'_>,
    ) -> Result<(), WireError> {
        let rare = match parts.has(DownPart::Rare) {
            true => Parts::read(packet.u8()?)?,
            false => Parts::default(),
        };
        self.waiting = match rare.has(RareDown::Waiting) {
            true => u16::try_from(packet.varint()?)
                .map(PlayerSet)
                .map_err(|_| WireError::Malformed("a player beyond the bound"))?,
            false => PlayerSet::default(),
        };
        self.company = match rare.has(RareDown::Company) {
            true => Some(company::read(packet)?),
            false => None,
        };
        self.lane_ack = match rare.has(RareDown::LaneAck) {
            true => Some(
                LaneAck::decode(packet.rest_mut())
                    .map_err(|_| WireError::Malformed("an ack of the lane"))?,
            ),
            false => None,
        };
        Ok(())
    }

    fn read_fates(
        &mut self,
        parts: Parts<DownPart>,
        packet: &mut Reader<'_>,
        seats: usize,
    ) -> Result<(), WireError> {
        self.command_acks.clear();
        if parts.has(DownPart::CommandAcks) {
            for _ in 0..seats {
                self.command_acks.push(packet.varint()?);
            }
        }
        self.refusals.clear();
        if parts.has(DownPart::Refusals) {
            let count = usize::from(packet.u8()?);
            if count > REFUSALS_PER_PACKET {
                return Err(WireError::Malformed("more refusals than a packet tells"));
            }
            for _ in 0..count {
                self.refusals.push(OrderRefusal::read(packet)?);
            }
        }
        Ok(())
    }

    fn read_frames(
        &mut self,
        packet: &mut Reader<'_>,
        own: PlayerSet,
        near: &Near<'_, S>,
    ) -> Result<(), WireError> {
        self.run.begin(packet, near.wanted)?;
        let sent = |player, tick| near.orders.input_of(player, tick);
        let (frames, news) = (&mut self.frames, &mut self.news);
        while self.run.next(packet, own, sent, |frame| {
            if frame.tick < near.wanted {
                return; // Said again.
            }
            if *news == frames.len() {
                frames.push(FrameData::roomy(frame.tick));
            }
            frames[*news].clone_from(frame);
            *news += 1;
        })? {}
        let age = packet.u8()?;
        if age != NO_DIGEST {
            let tick = self.run.tick().back(u32::from(age));
            self.digest = Some((tick, packet.u32()?));
        }
        Ok(())
    }
}
