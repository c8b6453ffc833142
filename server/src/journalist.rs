//! Writes the match's journal: worlds, turns, digests, seats, used tickets.
//!
//! Law **Journal first**: a sealed turn is queued for writing before any packet that tells of it. The
//! journal is the replay, and what a crash is repaired from. Frames are coded as on the wire, each turn
//! against its predecessor; after a world, against neutral.

use twinstep_core::codec;
use twinstep_core::frame::{FrameData, PlayerSet};
use twinstep_core::journal::{JournalWriter, Record, Start, WriteError};
use twinstep_core::packet::hello::Hello;
use twinstep_core::packet::{ByteCounts, frames};
use twinstep_core::wire::Writer;
use twinstep_core::world::World;
use twinstep_core::{PlayerId, Simulation, Tick};

/// A world is written at the latest so many ticks after the last one (10 s at 60 Hz).
const WORLD_EVERY: u32 = 600;
/// A digest is written every so many ticks, and before each world.
const DIGEST_EVERY: u32 = 64;

/// Writes one match's journal into memory; whoever drains the match writes it to a file.
pub(crate) struct Journalist<S: Simulation> {
    writer: JournalWriter,
    /// Frames sealed since the last turn was written.
    turn: Vec<u8>,
    ticks: usize,
    idle: bool,
    first: Tick,
    previous: FrameData<S>,
    /// No frame was written since the last world: the next is coded against neutral.
    fresh: bool,
    world: Vec<u8>,
    world_at: Tick,
    since_world: usize,
    digest_at: Tick,
}

impl<S: Simulation> Journalist<S> {
    /// Begins a journal with the world that the match starts from.
    pub(crate) fn start(
        hello: &Hello,
        unix_time: u64,
        world: &World<S>,
        out: &mut Vec<u8>,
    ) -> Result<Self, WriteError> {
        let start = Start {
            game: &hello.game,
            sim_version: hello.version,
            rules_digest: hello.rules,
            build: &hello.build,
            started_unix_s: unix_time,
        };
        let writer = JournalWriter::start(&start, out)?;
        let mut journalist = Journalist {
            writer,
            turn: Vec::with_capacity(64 << 10),
            ticks: 0,
            idle: true,
            first: world.tick(),
            previous: FrameData::roomy(world.tick()),
            fresh: true,
            world: Vec::with_capacity(64 << 10),
            world_at: world.tick(),
            since_world: 0,
            digest_at: world.tick(),
        };
        journalist.write_world(world, out)?;
        Ok(journalist)
    }

    /// Notes who has a seat.
    pub(crate) fn seat(
        &mut self,
        player: PlayerId,
        identity: &str,
        out: &mut Vec<u8>,
    ) -> Result<(), WriteError> {
        self.append(
            &Record::Seat {
                player,
                identity: identity.as_bytes(),
            },
            out,
        )
    }

    /// Notes that a ticket was used.
    pub(crate) fn ticket(
        &mut self,
        id: u64,
        identity: &str,
        out: &mut Vec<u8>,
    ) -> Result<(), WriteError> {
        self.append(
            &Record::Ticket {
                id,
                identity: identity.as_bytes(),
            },
            out,
        )
    }

    /// Notes the end.
    pub(crate) fn end(&mut self, reason: &str, out: &mut Vec<u8>) -> Result<(), WriteError> {
        self.append(&Record::End { reason }, out)
    }

    /// Adds a sealed frame to the turn that is being filled.
    pub(crate) fn frame(&mut self, frame: &FrameData<S>) {
        if self.ticks == 0 {
            self.first = frame.tick;
            self.turn.clear();
            self.idle = true;
        }
        self.idle &= frame.is_plain()
            && frame.filled.is_empty()
            && !self.fresh
            && self.previous.inputs == frame.inputs;
        let start = self.turn.len();
        self.turn
            .resize(start + twinstep_core::bounds::PACKET_BYTES_MAX, 0);
        let mut out = Writer::new(&mut self.turn[start..]);
        let nobody = PlayerSet::default();
        let previous = (!self.fresh).then_some(&self.previous);
        let written = (|| {
            if self.fresh {
                out.varint(u32::from(presence(frame).0))?;
            }
            frames::write(
                &mut out,
                previous,
                frame,
                nobody,
                nobody,
                &mut ByteCounts::default(),
            )
        })();
        written.expect("a frame of at most 512 bytes fits");
        let len = out.len();
        self.turn.truncate(start + len);
        self.previous.clone_from(frame);
        self.fresh = false;
        self.ticks += 1;
    }

    /// Writes the turn that is full now, and from time to time a digest and a world: `world` is the one
    /// after the turn.
    pub(crate) fn turn(
        &mut self,
        world: &World<S>,
        digest: u64,
        out: &mut Vec<u8>,
    ) -> Result<(), WriteError> {
        let start = out.len();
        if self.idle {
            self.writer.append(&Record::Idle, out)?;
        } else {
            self.writer.append(&Record::Turn(&self.turn), out)?;
        }
        self.ticks = 0;
        self.since_world += out.len() - start;
        let tick = world.tick();
        let world_due =
            tick - self.world_at >= WORLD_EVERY || self.since_world > self.world.len().max(4 << 10);
        if world_due || tick - self.digest_at >= DIGEST_EVERY {
            self.writer.append(&Record::Digest { tick, digest }, out)?;
            self.digest_at = tick;
        }
        if world_due {
            self.write_world(world, out)?;
        }
        Ok(())
    }

    fn write_world(&mut self, world: &World<S>, out: &mut Vec<u8>) -> Result<(), WriteError> {
        self.world.clear();
        codec::append(world, &mut self.world).expect("a world of at most 8 MiB");
        self.writer.append(
            &Record::World {
                tick: world.tick(),
                bytes: &self.world,
            },
            out,
        )?;
        self.world_at = world.tick();
        self.since_world = 0;
        self.fresh = true;
        Ok(())
    }

    fn append(&mut self, record: &Record<'_>, out: &mut Vec<u8>) -> Result<(), WriteError> {
        self.writer.append(record, out).map(|_| ())
    }
}

fn presence<S: Simulation>(frame: &FrameData<S>) -> PlayerSet {
    frame.inputs.iter().map(|(player, _)| player).collect()
}
