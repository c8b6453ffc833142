//! Writes a journal: worlds, turns, digests, seats, tickets that are out of date. The other end of [`Frames`](super::Frames).
//!
//! Frames are coded as on the wire, each against its predecessor; after a world, and where another process goes on,
//! against neutral. So reading may begin at any world. Memory: one turn and one world, whatever the match's length.

use alloc::collections::VecDeque;
use alloc::vec::Vec;
use core::time::Duration;

use super::index::{Index, Place};
use crate::journal::{JournalWriter, Record, Start, WriteError, WrittenBy};
use crate::lineage::Ruling;
use crate::packet::hello::Hello;
use crate::packet::{ByteCounts, frames};
use crate::wire::Writer;
use twinstep_core::bounds::{PACKET_BYTES_MAX, WORLD_BYTES_MAX};
use twinstep_core::codec;
use twinstep_core::frame::{FrameData, PlayerSet};
use twinstep_core::world::World;
use twinstep_core::{PlayerId, Simulation, Tick};

/// A world is written after so much match time, or a few turns later: what a replay steps at most to seek, and a
/// repair, beyond its backlog.
pub const WORLD_EVERY: Duration = Duration::from_secs(10);
/// A digest is written after so much match time, and before each world.
pub const DIGEST_EVERY: Duration = Duration::from_secs(1);
/// The offsets of this many worlds are kept.
const PLACES_KEPT: usize = 8;

/// Appends what happens in one match to its journal.
pub struct Recorder<S: Simulation> {
    writer: JournalWriter,
    /// Frames of the turn that is being filled.
    turn: Vec<u8>,
    ticks: usize,
    idle: bool,
    previous: FrameData<S>,
    /// The ticks of the turn before, which an idle turn repeats.
    previous_ticks: usize,
    /// The tick after the last turn.
    next: Tick,
    /// No frame was written since the last world, or by this process: the next is coded against neutral.
    fresh: bool,
    world: Vec<u8>,
    since_world: Duration,
    since_digest: Duration,
    worlds_skipped: u32,
    /// Where the last worlds stand.
    places: VecDeque<Place>,
}

impl<S: Simulation> Recorder<S> {
    /// Begins a journal with the world that the match starts from, played with a command delay of so many turns.
    ///
    /// # Errors
    /// A name in `hello` that is too long.
    pub fn start(
        by: WrittenBy,
        hello: &Hello,
        now_unix_s: u64,
        command_delay: u8,
        world: &World<S>,
        out: &mut Vec<u8>,
    ) -> Result<Self, WriteError> {
        let start = Start {
            game: &hello.game,
            sim_version: hello.version,
            rules_digest: hello.rules,
            build: &hello.build,
            started_unix_s: now_unix_s,
            command_delay,
            by,
        };
        let mut recorder = Recorder::with(JournalWriter::start(&start, out)?, world.tick());
        recorder.write_world(world, out)?;
        Ok(recorder)
    }

    /// Goes on with the journal of `index`, cut to what is sound of it; `world` is where its frames led. One that is too
    /// large for a record is left out, and counted.
    ///
    /// # Errors
    /// A build in `hello` whose name is too long.
    pub fn resume(
        index: &Index,
        hello: &Hello,
        now_unix_s: u64,
        world: &World<S>,
        out: &mut Vec<u8>,
    ) -> Result<Self, WriteError> {
        let mut writer = index.writer();
        let resumed = Record::Resumed {
            at_unix_s: now_unix_s,
            build: &hello.build,
        };
        writer.append(&resumed, out)?;
        let mut recorder = Recorder::with(writer, world.tick());
        let older = index.worlds.len().saturating_sub(PLACES_KEPT);
        recorder
            .places
            .extend(index.worlds[older..].iter().cloned());
        recorder.try_world(world, out)?;
        Ok(recorder)
    }

    fn remember(&mut self, place: Place) {
        if self.places.len() == PLACES_KEPT {
            self.places.pop_front();
        }
        self.places.push_back(place);
    }

    fn with(writer: JournalWriter, next: Tick) -> Self {
        Recorder {
            writer,
            turn: Vec::new(),
            ticks: 0,
            idle: true,
            previous: FrameData::roomy(next),
            previous_ticks: 0,
            next,
            fresh: true,
            world: Vec::new(),
            since_world: Duration::ZERO,
            since_digest: Duration::ZERO,
            worlds_skipped: 0,
            places: VecDeque::new(),
        }
    }

    /// Where the last worlds stand, the newest last: who looks for a tick of late begins there, and not at the journal's start.
    #[must_use]
    pub fn last_worlds(&self) -> Vec<Place> {
        self.places.iter().cloned().collect()
    }

    /// Where the newest world stands.
    #[must_use]
    pub fn last_world(&self) -> Option<&Place> {
        self.places.back()
    }

    /// Notes who has a seat.
    ///
    /// # Errors
    /// An identity that is too long; nothing is written then.
    pub fn seat(
        &mut self,
        player: PlayerId,
        identity: &str,
        out: &mut Vec<u8>,
    ) -> Result<(), WriteError> {
        let identity = identity.as_bytes();
        self.append(&Record::Seat { player, identity }, out)
    }

    /// Notes that some tickets of an identity let nobody in any more.
    ///
    /// # Errors
    /// An identity that is too long; nothing is written then.
    pub fn ruling(
        &mut self,
        ruling: Ruling,
        watches: bool,
        identity: &str,
        out: &mut Vec<u8>,
    ) -> Result<(), WriteError> {
        let identity = identity.as_bytes();
        let record = Record::Ruling {
            ruling,
            watches,
            identity,
        };
        self.append(&record, out)
    }

    /// Writes the world, so that whoever takes the match up need not step its last seconds again; nothing in the middle
    /// of a turn.
    ///
    /// # Errors
    /// A world that no reader would take; nothing is written then.
    pub fn snapshot(&mut self, world: &World<S>, out: &mut Vec<u8>) -> Result<(), WriteError> {
        if self.ticks > 0 || self.fresh {
            return Ok(());
        }
        self.write_world(world, out)
    }

    /// Writes the world's digest, so that the frames since the last one can be verified; nothing in the middle of a turn,
    /// or where it was written.
    ///
    /// # Errors
    /// None: a digest is never too long.
    pub fn digest(
        &mut self,
        world: &World<S>,
        digest: u64,
        out: &mut Vec<u8>,
    ) -> Result<(), WriteError> {
        if self.ticks > 0 || self.since_digest.is_zero() {
            return Ok(());
        }
        let tick = world.tick();
        self.append(&Record::Digest { tick, digest }, out)?;
        self.since_digest = Duration::ZERO;
        Ok(())
    }

    /// Notes the end.
    ///
    /// # Errors
    /// A reason that is too long; nothing is written then.
    pub fn end(&mut self, reason: &str, out: &mut Vec<u8>) -> Result<(), WriteError> {
        self.append(&Record::End { reason }, out)
    }

    /// Adds a sealed frame to the turn that is being filled.
    ///
    /// # Panics
    /// With a frame over [`FRAME_BYTES_MAX`](twinstep_core::bounds::FRAME_BYTES_MAX): no sealer makes one.
    pub fn frame(&mut self, frame: &FrameData<S>) {
        if self.ticks == 0 {
            self.turn.clear();
            self.idle = true;
        }
        self.idle &= frame.is_plain()
            && frame.filled.is_empty()
            && !self.fresh
            && self.previous.inputs == frame.inputs;
        let start = self.turn.len();
        self.turn.resize(start + PACKET_BYTES_MAX, 0);
        let mut out = Writer::new(&mut self.turn[start..]);
        let previous = (!self.fresh).then_some(&self.previous);
        let written = (|| {
            if self.fresh {
                out.varint(u32::from(frame.inputs.players().0))?;
            }
            let nobody = PlayerSet::default();
            let mut spent = ByteCounts::default();
            frames::write(&mut out, previous, frame, nobody, nobody, &mut spent)
        })();
        written.expect("a frame within its bound fits");
        let len = out.len();
        self.turn.truncate(start + len);
        self.previous.clone_from(frame);
        self.fresh = false;
        self.ticks += 1;
    }

    /// Whether a digest follows the turn that is full now. Who has none at hand computes it only then.
    #[must_use]
    pub fn wants_digest(&self, world: &World<S>) -> bool {
        let length = self.length(world);
        self.since_world + length >= WORLD_EVERY || self.since_digest + length >= DIGEST_EVERY
    }

    /// How long the turn is that is full now: a new cadence begins with the next turn's first frame, so `world`, the
    /// one after the turn, still has this one's.
    fn length(&self, world: &World<S>) -> Duration {
        world.turn().cadence.tick() * self.ticks as u32
    }

    /// Writes the turn that is full now, and from time to time a digest and a world: `world` is the one after
    /// the turn, `digest` its digest, if [one is wanted](Recorder::wants_digest) and the world has one. A turn of as many ticks as the one
    /// before, in which nothing happened, takes 2 bytes. A world that is too large for a record is left out, and counted:
    /// reading begins farther back then.
    ///
    /// # Errors
    /// A turn that is too long: more than 50 ticks.
    pub fn turn(
        &mut self,
        world: &World<S>,
        digest: impl Into<Option<u64>>,
        out: &mut Vec<u8>,
    ) -> Result<(), WriteError> {
        match self.turn_alone(world, digest, out)? {
            true => self.try_world(world, out),
            false => Ok(()),
        }
    }

    /// As [`turn`](Recorder::turn), without the world; whether it is due. Then [`late_world`](Recorder::late_world) can write
    /// it until the next frame; after each turn that is written without it, it is due again.
    ///
    /// # Errors
    /// As [`turn`](Recorder::turn).
    pub fn turn_alone(
        &mut self,
        world: &World<S>,
        digest: impl Into<Option<u64>>,
        out: &mut Vec<u8>,
    ) -> Result<bool, WriteError> {
        let length = self.length(world);
        if self.idle && self.ticks == self.previous_ticks {
            self.writer.append(&Record::Idle, out)?;
        } else {
            self.writer.append(&Record::Turn(&self.turn), out)?;
        }
        self.previous_ticks = self.ticks;
        self.ticks = 0;
        self.next = world.tick();
        self.since_world += length;
        self.since_digest += length;
        let tick = world.tick();
        let world_due = self.since_world >= WORLD_EVERY;
        if world_due || self.since_digest >= DIGEST_EVERY {
            if let Some(digest) = digest.into() {
                self.writer.append(&Record::Digest { tick, digest }, out)?;
            }
            self.since_digest = Duration::ZERO;
        }
        Ok(world_due)
    }

    /// Writes the world that [`turn_alone`](Recorder::turn_alone) left out, now; whether a record holds it.
    ///
    /// # Errors
    /// None: a world that is too large is left out, and counted.
    pub fn due_world(&mut self, world: &World<S>, out: &mut Vec<u8>) -> Result<bool, WriteError> {
        let skipped = self.worlds_skipped;
        self.try_world(world, out)?;
        Ok(self.worlds_skipped == skipped)
    }

    /// Writes the world before `tick`, encoded, if it is due, that is the tick after the last turn, and no frame of the next
    /// one was added; whether it did.
    ///
    /// # Errors
    /// A world that is too large for a record; nothing is written then.
    pub fn late_world(
        &mut self,
        tick: Tick,
        world: &[u8],
        out: &mut Vec<u8>,
    ) -> Result<bool, WriteError> {
        let is_due = self.since_world >= WORLD_EVERY;
        if !is_due || self.ticks > 0 || self.fresh || tick != self.next {
            return Ok(false);
        }
        let record = Record::World { tick, bytes: world };
        let place = Place::next(&self.writer, tick, world.len());
        self.writer.append(&record, out)?;
        self.remember(place);
        self.since_world = Duration::ZERO;
        self.fresh = true;
        Ok(true)
    }

    /// Worlds that were too large for a record.
    #[must_use]
    pub fn worlds_skipped(&self) -> u32 {
        self.worlds_skipped
    }

    /// Writes the world, if a record holds it.
    fn try_world(&mut self, world: &World<S>, out: &mut Vec<u8>) -> Result<(), WriteError> {
        match self.write_world(world, out) {
            Err(WriteError::TooLong { .. }) => {
                self.worlds_skipped += 1;
                self.since_world = Duration::ZERO;
                Ok(())
            }
            written => written,
        }
    }

    fn write_world(&mut self, world: &World<S>, out: &mut Vec<u8>) -> Result<(), WriteError> {
        self.world.clear();
        if codec::append(world, &mut self.world).is_err() {
            return Err(WriteError::TooLong {
                kind: Record::WORLD_KIND,
                bytes: codec::size(world).unwrap_or(usize::MAX),
                max: WORLD_BYTES_MAX,
            });
        }
        let record = Record::World {
            tick: world.tick(),
            bytes: &self.world,
        };
        let place = Place::next(&self.writer, world.tick(), self.world.len());
        self.writer.append(&record, out)?;
        self.remember(place);
        self.since_world = Duration::ZERO;
        self.fresh = true;
        Ok(())
    }

    fn append(&mut self, record: &Record<'_>, out: &mut Vec<u8>) -> Result<(), WriteError> {
        self.writer.append(record, out).map(|_| ())
    }
}
