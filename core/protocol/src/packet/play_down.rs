//! `Play`, down: frames that a client has not acknowledged, and the state of its session.
//!
//! ```text
//! first · link · next to seal: 16 · margin: 8 · held: 8 · (next turn: 16)
//!   · [rare: 8 · [waiting: varint] · [presence] · [lane ack]]
//!   · [command acks: a varint a seat] · [refusals: count and each]
//!   · [run of frames · digest: its age in ticks, 8; 0: none · its low half, 32]
//!   · [announcements]
//! ```
//!
//! The next turn is present only with a command delay, which both sides know. A server writes a [`DownStatus`], then
//! frames, then announcements: each step of [`PlayDownWriter`] returns the next one, so no other order compiles. A
//! client reads into a [`PlayDown`] and reuses its buffers. Reading has no side effects: the client acts only on
//! completely read packets, so a malformed tail only increments a counter.

use alloc::vec::Vec;
use core::time::Duration;

use arrayvec::ArrayVec;
use twinstep_core::bounds::{COUNT_MAX, REFUSALS_PER_PACKET, SEATS_MAX};
use twinstep_core::frame::{FrameData, Order};
use twinstep_core::{PlayerId, PlayerSet, Simulation, Tick};

use super::frames::{self, RunReader, RunStart};
use super::head::PacketWriter;
use super::presence::{self, PresenceUpdate};
use super::refusal::OrderRefusal;
use super::{ByteCounts, DownKind, DownPart, PacketBody, Parts, RareDown};
use crate::lane::LaneAck;
use crate::link::LinkState;
use crate::wire::{Reader, WireError, Writer};

/// The value of the age if no digest follows.
const NO_DIGEST: u8 = 0;
const DIGEST_BYTES: usize = 5;
/// The unit of margins with a command delay, in milliseconds.
pub const SLACK_UNIT_MS: i16 = 4;

/// The maximum number of frames per packet that are read without allocating.
const FRAMES: usize = 64;
/// The maximum number of announced inputs and commands read without allocating.
const ANNOUNCED: usize = 128;

/// The part of the packet before its frames.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct DownStatus {
    pub next_seal: Tick,
    /// The least margin of the seats: the newest input received minus the next tick to seal, in ticks. With a command
    /// delay, how early the last batches arrived, in units of [`SLACK_UNIT_MS`]. −128 if none arrived.
    pub margin: i8,
    /// The least number of consecutive inputs, or batches, that the server holds of a seat.
    pub unbroken: u8,
    /// The next turn that the server seals, with a command delay.
    pub next_turn: Option<u32>,
    pub waiting: PlayerSet,
    pub presence: Option<PresenceUpdate>,
    /// The lane chunks that the server has received.
    pub lane_ack: Option<LaneAck>,
    /// The next sequence number expected from each seat's commands. Empty if the packet does not contain them.
    pub command_acks: ArrayVec<u32, SEATS_MAX>,
    pub refusals: ArrayVec<OrderRefusal, REFUSALS_PER_PACKET>,
}

/// The client's state, against which truncated numbers are expanded.
pub struct DownContext {
    /// The newest [`DownStatus::next_seal`] received.
    pub next_seal: Tick,
    pub next_turn: Option<u32>,
    /// The first frame that the client lacks.
    pub wanted: Tick,
    pub seats: usize,
    pub own: PlayerSet,
}

impl DownStatus {
    fn write(&self, packet: &mut PacketWriter<'_, '_, DownPart>) -> Result<(), WireError> {
        let out = packet.out();
        out.tick16(self.next_seal)?;
        out.u8(self.margin as u8)?;
        out.u8(self.unbroken)?;
        if let Some(turn) = self.next_turn {
            out.tick16(Tick(turn))?;
        }
        self.write_rare(packet)?;
        packet.count(|counts| &mut counts.acks);
        if !self.command_acks.is_empty() {
            packet.add(DownPart::CommandAcks);
            let mut acks = self.command_acks.iter();
            acks.try_for_each(|next| packet.out().varint(*next))?;
        }
        if !self.refusals.is_empty() {
            packet.add(DownPart::Refusals);
            packet.out().u8(self.refusals.len() as u8)?;
            let mut refusals = self.refusals.iter();
            refusals.try_for_each(|refusal| refusal.write(packet.out()))?;
        }
        packet.count(|counts| &mut counts.commands);
        Ok(())
    }

    fn write_rare(&self, packet: &mut PacketWriter<'_, '_, DownPart>) -> Result<(), WireError> {
        let mut rare = Parts::default();
        for (part, is_there) in [
            (RareDown::Waiting, !self.waiting.is_empty()),
            (RareDown::Presence, self.presence.is_some()),
            (RareDown::LaneAck, self.lane_ack.is_some()),
        ] {
            if is_there {
                rare.add(part);
            }
        }
        if rare.is_empty() {
            return Ok(());
        }
        packet.add(DownPart::Rare);
        let out = packet.out();
        out.u8(rare.bits())?;
        if !self.waiting.is_empty() {
            out.varint(u32::from(self.waiting.0))?;
        }
        if let Some(update) = &self.presence {
            presence::write(out, update.here, |player| update.links[player.index()])?;
        }
        if let Some(ack) = &self.lane_ack {
            ack.write(out)?;
        }
        Ok(())
    }

    /// Reads into this value, which is cheaper than moving a new value of about 300 bytes.
    fn read(
        &mut self,
        parts: Parts<DownPart>,
        packet: &mut Reader<'_>,
        near: &DownContext,
    ) -> Result<(), WireError> {
        self.next_seal = packet.tick16(near.next_seal)?;
        self.margin = packet.u8()? as i8;
        self.unbroken = packet.u8()?;
        self.next_turn = match near.next_turn {
            Some(turn) => Some(packet.tick16(Tick(turn))?.0),
            None => None,
        };
        if self.next_turn > Some(COUNT_MAX) {
            return Err(WireError::Malformed("a turn beyond the limit"));
        }
        let rare = match parts.has(DownPart::Rare) {
            true => Parts::read(packet.u8()?)?,
            false => Parts::default(),
        };
        self.waiting = match rare.has(RareDown::Waiting) {
            true => u16::try_from(packet.varint()?)
                .map(PlayerSet)
                .map_err(|_| WireError::Malformed("a player beyond the limit"))?,
            false => PlayerSet::default(),
        };
        self.presence = match rare.has(RareDown::Presence) {
            true => Some(presence::read(packet)?),
            false => None,
        };
        self.lane_ack = match rare.has(RareDown::LaneAck) {
            true => Some(LaneAck::read(packet)?),
            false => None,
        };
        self.command_acks.clear();
        if parts.has(DownPart::CommandAcks) {
            for _ in 0..near.seats {
                self.command_acks.push(packet.varint()?);
            }
        }
        self.refusals.clear();
        if parts.has(DownPart::Refusals) {
            let count = usize::from(packet.u8()?);
            if count > REFUSALS_PER_PACKET {
                return Err(WireError::Malformed("more refusals than a packet holds"));
            }
            for _ in 0..count {
                self.refusals.push(OrderRefusal::read(packet)?);
            }
        }
        Ok(())
    }
}

/// A packet whose status has been written. It can end here, or continue with frames.
pub struct PlayDownWriter<'w, 'b> {
    packet: PacketWriter<'w, 'b, DownPart>,
}

impl<'w, 'b> PlayDownWriter<'w, 'b> {
    pub fn begin(
        now: Duration,
        link: &mut LinkState,
        status: &DownStatus,
        out: &'w mut Writer<'b>,
    ) -> Result<Self, WireError> {
        let mut packet = PacketWriter::begin(DownKind::Play.alone(), now, link, out)?;
        status.write(&mut packet)?;
        Ok(PlayDownWriter { packet })
    }

    #[must_use]
    pub fn frames(mut self) -> FramesWriter<'w, 'b> {
        FramesWriter {
            start: self.packet.out().len(),
            packet: self.packet,
            run: None,
            count: 0,
            spent: ByteCounts::default(),
        }
    }

    #[must_use]
    pub fn end(self) -> ByteCounts {
        self.packet.end()
    }
}

/// A packet whose frames are being written.
pub struct FramesWriter<'w, 'b> {
    packet: PacketWriter<'w, 'b, DownPart>,
    start: usize,
    run: Option<RunStart>,
    count: usize,
    spent: ByteCounts,
}

impl<'w, 'b> FramesWriter<'w, 'b> {
    #[must_use]
    pub fn room(&mut self) -> usize {
        self.packet.out().room()
    }

    /// Writes the next frame. `previous` is the frame before it, ignored for the first frame. `own` are the receiver's
    /// players, and `as_sent` is the subset with an input equal to the one that the receiver sent. Returns `false` if
    /// the frame does not fit.
    pub fn push<S: Simulation>(
        &mut self,
        previous: &FrameData<S>,
        frame: &FrameData<S>,
        own: PlayerSet,
        as_sent: PlayerSet,
    ) -> bool {
        if self.count == frames::RUN_FRAMES_MAX {
            return false;
        }
        let out = self.packet.out();
        if self.run.is_none() {
            // Without space for the run's header, no frame fits.
            self.run = frames::begin(out, frame).ok();
        }
        if self.run.is_none() {
            return false;
        }
        let (end, before) = (out.len(), self.spent);
        let previous = (self.count > 0).then_some(previous);
        let written = frames::write(out, previous, frame, own, as_sent, &mut self.spent);
        // Keep space for the digest, because `end` cannot fail.
        let fits = written.is_ok() && out.room() >= DIGEST_BYTES;
        if fits {
            self.count += 1;
        } else {
            out.truncate(end);
            self.spent = before;
        }
        fits
    }

    /// Finishes the frames section. `digest` is the newest digest among these frames, with its tick; only its low half
    /// is sent.
    #[must_use]
    pub fn end(mut self, first: Tick, digest: Option<(Tick, u64)>) -> FramesEnd<'w, 'b> {
        let start = self.start;
        let Some(run) = self.run.filter(|_| self.count > 0) else {
            self.packet.out().truncate(start);
            return FramesEnd::of(self.packet, start, ByteCounts::default());
        };
        let out = self.packet.out();
        frames::end(out, &run, self.count);
        let run_ends = out.len();
        let written = match digest {
            // At least 1, because the tick lies within the run. So 0 can mean that no digest follows.
            Some((tick, digest)) => out
                .u8(((first + self.count as u32) - tick) as u8)
                .and_then(|()| out.u32(digest as u32)),
            None => out.u8(NO_DIGEST),
        };
        assert!(written.is_ok(), "room was kept for a digest");
        let mut spent = self.spent;
        spent.acks += (out.len() - run_ends) as u64;
        // The head of the run counts as inputs.
        spent.inputs += (run_ends - start) as u64 - self.spent.total();
        FramesEnd::of(self.packet, start, spent)
    }

    /// Copies frames and digest from another packet's [`FramesEnd::frames`].
    pub fn copy(mut self, bytes: &[u8], spent: ByteCounts) -> Result<FramesEnd<'w, 'b>, WireError> {
        let start = self.start;
        self.packet.out().bytes(bytes)?;
        Ok(FramesEnd::of(self.packet, start, spent))
    }
}

/// A packet whose frames have been written. It can end here, or continue with announcements.
pub struct FramesEnd<'w, 'b> {
    packet: PacketWriter<'w, 'b, DownPart>,
    start: usize,
    spent: ByteCounts,
}

impl<'w, 'b> FramesEnd<'w, 'b> {
    fn of(mut packet: PacketWriter<'w, 'b, DownPart>, start: usize, spent: ByteCounts) -> Self {
        if packet.out().len() > start {
            packet.add(DownPart::Frames);
        }
        packet.count_as(spent);
        FramesEnd {
            packet,
            start,
            spent,
        }
    }

    /// The written bytes of the frames and their digest, with their counts by content.
    pub fn frames(&mut self) -> (&[u8], ByteCounts) {
        (self.packet.out().since(self.start), self.spent)
    }

    /// Announces, for each of `ticks` ticks after the last frame `last`, the inputs that `input` knows of players
    /// outside `own`, and the `commands` due. Leaves the announcements out if they do not fit.
    pub fn announce<'s, S: Simulation>(
        &mut self,
        last: &'s FrameData<S>,
        own: PlayerSet,
        ticks: u32,
        input: impl Fn(PlayerId, Tick) -> Option<&'s S::Input>,
        commands: impl Fn(Tick, &mut dyn FnMut(&Order<S::Command>)),
    ) {
        let written = frames::announce(self.packet.out(), last, own, ticks, input, commands);
        if written.is_ok() {
            self.packet.add(DownPart::Announced);
        }
        self.packet.count(|counts| &mut counts.announcements);
    }

    #[must_use]
    pub fn end(self) -> ByteCounts {
        self.packet.end()
    }
}

/// A parsed packet from the server, with reused buffers; see the [module](self).
pub struct PlayDown<S: Simulation> {
    pub status: DownStatus,
    /// The frames read. The first `new_frames` are the packet's new frames, starting with the wanted one.
    frames: Vec<FrameData<S>>,
    new_frames: usize,
    /// Whether the packet contained frames, new or repeated.
    pub has_frames: bool,
    /// The first tick of a turn, and the low half of the world's digest at that tick.
    pub digest: Option<(Tick, u32)>,
    pub inputs: Vec<(PlayerId, Tick, S::Input)>,
    pub commands: Vec<(Tick, Order<S::Command>)>,
    run: RunReader<S>,
}

impl<S: Simulation> Default for PlayDown<S> {
    fn default() -> Self {
        PlayDown {
            status: DownStatus::default(),
            frames: Vec::new(),
            new_frames: 0,
            has_frames: false,
            digest: None,
            inputs: Vec::new(),
            commands: Vec::new(),
            run: RunReader::default(),
        }
    }
}

impl<S: Simulation> PlayDown<S> {
    /// A value with space for most packets: reading them does not allocate. An empty one grows as needed.
    #[must_use]
    pub fn preallocated() -> Self {
        PlayDown {
            frames: (0..FRAMES)
                .map(|_| FrameData::preallocated(Tick(0)))
                .collect(),
            inputs: Vec::with_capacity(ANNOUNCED),
            commands: Vec::with_capacity(ANNOUNCED),
            ..PlayDown::default()
        }
    }

    /// The packet's new frames, in order.
    #[must_use]
    pub fn frames(&self) -> &[FrameData<S>] {
        &self.frames[..self.new_frames]
    }

    /// Reads a packet, replacing all previous content. `sent` returns the inputs that this client sent for its own
    /// players.
    ///
    /// # Errors
    /// If the bytes are not a `Play`. In that case the content is meaningless.
    pub fn read<'s>(
        &mut self,
        body: PacketBody<'_, DownPart>,
        near: &DownContext,
        sent: impl Fn(PlayerId, Tick) -> Option<&'s S::Input>,
    ) -> Result<(), WireError>
    where
        S: 's,
    {
        let PacketBody { parts, mut packet } = body;
        self.status.read(parts, &mut packet, near)?;
        self.new_frames = 0;
        self.has_frames = parts.has(DownPart::Frames);
        self.digest = None;
        self.inputs.clear();
        self.commands.clear();
        if self.has_frames {
            self.read_frames(&mut packet, near, sent)?;
        }
        if parts.has(DownPart::Announced) {
            if !self.has_frames {
                return Err(WireError::Malformed("announcements without frames"));
            }
            let (inputs, commands) = (&mut self.inputs, &mut self.commands);
            self.run.announced(
                &mut packet,
                near.own,
                |player, tick, input| inputs.push((player, tick, input.clone())),
                |tick, order| commands.push((tick, order)),
            )?;
        }
        packet.end()
    }

    fn read_frames<'s>(
        &mut self,
        packet: &mut Reader<'_>,
        near: &DownContext,
        sent: impl Fn(PlayerId, Tick) -> Option<&'s S::Input>,
    ) -> Result<(), WireError>
    where
        S: 's,
    {
        self.run.begin(packet, near.wanted)?;
        let (frames, new_frames) = (&mut self.frames, &mut self.new_frames);
        while self.run.next(packet, near.own, &sent, |frame| {
            if frame.tick < near.wanted {
                return; // A repeated frame.
            }
            if *new_frames == frames.len() {
                frames.push(FrameData::preallocated(frame.tick));
            }
            frames[*new_frames].clone_from(frame);
            *new_frames += 1;
        })? {}
        let age = packet.u8()?;
        if age != NO_DIGEST {
            let tick = self.run.tick().back(u32::from(age));
            self.digest = Some((tick, packet.u32()?));
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests;
