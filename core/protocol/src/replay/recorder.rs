//! Writes a journal: worlds, turns, digests, seats, rulings on tickets. [`Frames`](super::Frames) reads it.
//!
//! Frames are encoded as on the wire, each against its predecessor, but against neutral inputs after a world or a
//! resumption. So reading can start at any world. Memory: one turn and one world, for a match of any length.

use alloc::collections::VecDeque;
use alloc::vec::Vec;
use core::time::Duration;

use super::index::{Index, Place};
use crate::identity::Identity;
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

/// The match time from one world record to the next. A record may come a few turns later, and a world that is too large
/// for a record is left out. Unless one is left out, a seek in a replay steps little more than this, and so does the
/// resumption of a match, in addition to its backlog.
pub const WORLD_EVERY: Duration = Duration::from_secs(10);
/// The match time after which a digest is written. A digest is also written before each world that is due.
pub const DIGEST_EVERY: Duration = Duration::from_secs(1);
const PLACES_KEPT: usize = 8;

/// Appends the events of one match to its journal.
pub struct Recorder<S: Simulation> {
    writer: JournalWriter,
    turn: Vec<u8>,
    ticks: usize,
    idle: bool,
    previous: FrameData<S>,
    /// The number of ticks of the previous turn, which an idle turn repeats.
    previous_ticks: usize,
    next: Tick,
    /// Whether no frame has been written since the last world, or by this process. If so, the next frame is encoded
    /// against neutral inputs.
    fresh: bool,
    world: Vec<u8>,
    since_world: Duration,
    since_digest: Duration,
    worlds_skipped: u32,
    places: VecDeque<Place>,
}

impl<S: Simulation> Recorder<S> {
    /// Starts a journal with the world from which the match starts. `command_delay` is in turns.
    ///
    /// # Errors
    /// If a name in `hello` is too long, or the world too large for a record.
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

    /// Continues the journal of `index`, after the caller has cut it to its intact part. `world` is the world to which
    /// the journal's frames lead. If `world` is too large for a record, it is skipped and counted.
    ///
    /// # Errors
    /// If the build's name in `hello` is too long.
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
            previous: FrameData::preallocated(next),
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

    /// The positions of the last worlds, the newest last: a reader that searches for a recent tick can start there
    /// instead of at the journal's start.
    #[must_use]
    pub fn last_worlds(&self) -> Vec<Place> {
        self.places.iter().cloned().collect()
    }

    #[must_use]
    pub fn last_world(&self) -> Option<&Place> {
        self.places.back()
    }

    /// Records the identity of a player's seat; an empty one if the player has left.
    ///
    /// # Errors
    /// If the identity is too long; in that case no byte is written.
    pub fn seat(
        &mut self,
        player: PlayerId,
        identity: &str,
        out: &mut Vec<u8>,
    ) -> Result<(), WriteError> {
        let identity = identity.as_bytes();
        self.append(&Record::Seat { player, identity }, out)
    }

    /// Records the identity for which a seat is reserved; an empty one if it is no longer reserved.
    ///
    /// # Errors
    /// If the identity is too long; in that case no byte is written.
    pub fn reserved(
        &mut self,
        player: PlayerId,
        identity: &str,
        out: &mut Vec<u8>,
    ) -> Result<(), WriteError> {
        let identity = identity.as_bytes();
        self.append(&Record::Reserved { player, identity }, out)
    }

    /// Records that some tickets of an identity are refused from now on.
    ///
    /// # Errors
    /// If the identity is too long; in that case no byte is written.
    pub fn ruling(
        &mut self,
        ruling: Ruling,
        identity: &Identity,
        out: &mut Vec<u8>,
    ) -> Result<(), WriteError> {
        let record = Record::Ruling {
            ruling,
            role: identity.role,
            identity: identity.name.as_bytes(),
        };
        self.append(&record, out)
    }

    /// Writes the world, so that a process that resumes the match need not simulate its last seconds again. Has no
    /// effect in the middle of a turn, or right after a world.
    ///
    /// # Errors
    /// If the world is too large for a record; in that case no byte is written.
    pub fn snapshot(&mut self, world: &World<S>, out: &mut Vec<u8>) -> Result<(), WriteError> {
        if self.ticks > 0 || self.fresh {
            return Ok(());
        }
        self.write_world(world, out)
    }

    /// Writes the world's digest, so that the frames since the last one can be verified. Has no effect in the middle of
    /// a turn, or if the digest was just written.
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

    /// Records the end of the match.
    ///
    /// # Errors
    /// If the reason is too long; in that case no byte is written.
    pub fn end(&mut self, reason: &str, out: &mut Vec<u8>) -> Result<(), WriteError> {
        self.append(&Record::End { reason }, out)
    }

    /// Adds a sealed frame to the turn under construction.
    ///
    /// # Panics
    /// If the frame takes more than [`PACKET_BYTES_MAX`], which no sealer produces.
    pub fn frame(&mut self, frame: &FrameData<S>) {
        if self.ticks == 0 {
            self.turn.clear();
            self.idle = true;
        }
        // An idle record would lose which inputs were filled.
        self.idle &= frame.is_plain()
            && frame.filled.is_empty()
            && !self.fresh
            && self.previous.inputs == frame.inputs;
        let start = self.turn.len();
        // Space for the largest frame. The unused rest is cut off below.
        self.turn.resize(start + PACKET_BYTES_MAX, 0);
        let mut out = Writer::new(&mut self.turn[start..]);
        let previous = (!self.fresh).then_some(&self.previous);
        let written = (|| {
            if self.fresh {
                out.varint(u32::from(frame.inputs.players().0))?;
            }
            let no_players = PlayerSet::default();
            let mut spent = ByteCounts::default();
            frames::write(
                &mut out, previous, frame, no_players, no_players, &mut spent,
            )
        })();
        written.expect("a frame within its bound fits");
        let len = out.len();
        self.turn.truncate(start + len);
        self.previous.clone_from(frame);
        self.fresh = false;
        self.ticks += 1;
    }

    /// Returns `true` if a digest will follow the full turn, so that a caller computes one only if necessary.
    #[must_use]
    pub fn wants_digest(&self, world: &World<S>) -> bool {
        let length = self.length(world);
        self.since_world + length >= WORLD_EVERY || self.since_digest + length >= DIGEST_EVERY
    }

    /// The length of the full turn. A new cadence starts with the next turn's first frame, so `world`, the one after
    /// the turn, still has this turn's cadence.
    fn length(&self, world: &World<S>) -> Duration {
        world.turn().cadence.tick() * self.ticks as u32
    }

    /// Writes the full turn and, at their intervals, a digest and a world. `world` is the one after the turn, and
    /// `digest` its digest, if [one is wanted](Recorder::wants_digest) and the world has one. A turn without events
    /// that has as many ticks as the one before takes 2 bytes. A world that is too large for a record is skipped and
    /// counted: readers then start at an earlier world.
    ///
    /// # Errors
    /// If the turn is too long for a record. A turn of up to 50 ticks never is.
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

    /// Like [`turn`](Recorder::turn), but does not write the world. Returns `true` if a world is due, which
    /// [`late_world`](Recorder::late_world) can write until the next frame. If it is not written, it is due again after
    /// the next turn.
    ///
    /// # Errors
    /// The errors of [`turn`](Recorder::turn).
    pub fn turn_alone(
        &mut self,
        world: &World<S>,
        digest: impl Into<Option<u64>>,
        out: &mut Vec<u8>,
    ) -> Result<bool, WriteError> {
        let length = self.length(world);
        // An idle record also repeats the number of ticks.
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

    /// Writes the world that [`turn_alone`](Recorder::turn_alone) left out. Returns `false` if the world is too large
    /// for a record; such a world is skipped and counted.
    pub fn due_world(&mut self, world: &World<S>, out: &mut Vec<u8>) -> bool {
        let skipped = self.worlds_skipped;
        self.try_world(world, out).is_ok() && self.worlds_skipped == skipped
    }

    /// Writes the encoded world before `tick` if a world is due. `tick` must follow the last turn, and no frame of the
    /// next turn may have been added. Returns `true` if the world was written.
    ///
    /// # Errors
    /// If the world is too large for a record; in that case no byte is written.
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

    #[must_use]
    pub fn worlds_skipped(&self) -> u32 {
        self.worlds_skipped
    }

    fn try_world(&mut self, world: &World<S>, out: &mut Vec<u8>) -> Result<(), WriteError> {
        match self.write_world(world, out) {
            Err(WriteError::TooLong { .. }) => {
                // Try again only after the usual interval: encoding a large world is expensive.
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
