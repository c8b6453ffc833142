//! Folds a journal back into its world: what replays, repairs and desync reports are made of.
//!
//! ```text
//! journal ──records──▶ world at the last world record ──frames──▶ world at the end
//!                                                      digests compared on the way
//! ```
//!
//! Outcomes come from the frames; nothing is resolved again (laws *One door*, *Journal first*).

use twinstep_core::codec;
use twinstep_core::frame::{FrameData, Perspective, PlayerSet};
use twinstep_core::journal::{Entry, JournalError, Record, records};
use twinstep_core::packet::frames::RunReader;
use twinstep_core::packet::hello::{CloseCode, Hello};
use twinstep_core::wire::{Reader, WireError};
use twinstep_core::world::{FrameError, Stepper, World};
use twinstep_core::{PlayerId, Simulation, Tick};

/// Why a journal cannot be folded further. What was folded before stays good.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum FoldError {
    /// The file is torn, corrupt, or no journal.
    #[error(transparent)]
    Journal(#[from] JournalError),
    /// The journal is of another game or version, or was played by other rules.
    #[error(
        "the journal does not fit this program: it is of {game:?} version {version}, build {build:?} ({code})"
    )]
    Mismatch {
        /// The journal's game.
        game: String,
        /// The journal's simulation version.
        version: u32,
        /// The build that wrote it.
        build: String,
        /// What differs.
        code: CloseCode,
    },
    /// A record that cannot stand where it does.
    #[error("the record at byte {offset} is out of place")]
    Misplaced {
        /// Where.
        offset: u64,
    },
    /// A world that cannot be decoded.
    #[error("the world at byte {offset} cannot be decoded by this build")]
    World {
        /// Where.
        offset: u64,
    },
    /// A turn that cannot be decoded.
    #[error("the turn at byte {offset} cannot be decoded: {error}")]
    Turn {
        /// Where.
        offset: u64,
        /// Why.
        error: WireError,
    },
    /// A frame that does not fit the world.
    #[error("the turn at byte {offset} does not fit: {error}")]
    Frame {
        /// Where.
        offset: u64,
        /// Why.
        error: FrameError,
    },
    /// The folded world is not the one that was played.
    #[error("the world of {tick} differs from the one that was played (record at byte {offset})")]
    Differs {
        /// The first tick whose digest differs.
        tick: Tick,
        /// Where the digest stands.
        offset: u64,
    },
}

/// A journal being folded.
pub struct Fold<'r, S: Simulation> {
    rules: &'r S::Rules,
    ours: Hello,
    world: Option<World<S>>,
    stepper: Stepper<S>,
    run: RunReader<S>,
    /// No frame was read since the last world.
    fresh: bool,
    /// Ticks of the last turn, which an idle one repeats.
    turn_ticks: u32,
    /// Who has a seat.
    pub seats: Vec<(PlayerId, String)>,
    /// Tickets that were used.
    pub tickets: Vec<u64>,
    /// Digests that were compared and agreed.
    pub agreed: u64,
    /// Why the match ended, if it did.
    pub ended: Option<String>,
}

impl<'r, S: Simulation> Fold<'r, S> {
    /// Nothing folded yet. `ours` is this program's own handshake.
    pub fn new(rules: &'r S::Rules, ours: Hello) -> Self {
        Fold {
            rules,
            ours,
            world: None,
            stepper: Stepper::default(),
            run: RunReader::default(),
            fresh: true,
            turn_ticks: 0,
            seats: Vec::new(),
            tickets: Vec::new(),
            agreed: 0,
            ended: None,
        }
    }

    /// Folds a whole journal; `each` sees every frame just stepped, and the world after it.
    ///
    /// # Errors
    /// The first record that cannot be folded; the world before it stays in [`world`](Fold::world).
    pub fn run(
        &mut self,
        journal: &[u8],
        mut each: impl FnMut(&FrameData<S>, &World<S>),
    ) -> Result<(), FoldError> {
        for entry in records(journal) {
            self.entry(&entry?, &mut each)?;
        }
        Ok(())
    }

    /// The world so far.
    pub fn world(&self) -> Option<&World<S>> {
        self.world.as_ref()
    }

    fn entry(
        &mut self,
        entry: &Entry<'_>,
        each: &mut impl FnMut(&FrameData<S>, &World<S>),
    ) -> Result<(), FoldError> {
        let offset = entry.offset;
        match entry.record {
            Record::Start(start) => {
                let theirs = Hello {
                    wire: self.ours.wire,
                    game: start.game.to_owned(),
                    version: start.sim_version,
                    rules: start.rules_digest,
                    build: start.build.to_owned(),
                    resume: None,
                };
                match self.ours.refusal(&theirs) {
                    None => Ok(()),
                    Some(code) => Err(FoldError::Mismatch {
                        game: theirs.game,
                        version: theirs.version,
                        build: theirs.build,
                        code,
                    }),
                }
            }
            Record::World { tick, bytes } => self.take_world(offset, tick, bytes),
            Record::Turn(bytes) => self.turn(offset, bytes, each),
            Record::Idle => self.idle(offset, each),
            Record::Digest { tick, digest } => self.compare(offset, tick, digest),
            Record::Ticket { id, .. } => {
                self.tickets.push(id);
                Ok(())
            }
            Record::Seat { player, identity } => {
                self.seats
                    .push((player, String::from_utf8_lossy(identity).into_owned()));
                Ok(())
            }
            Record::End { reason } => {
                self.ended = Some(reason.to_owned());
                Ok(())
            }
            _ => Ok(()),
        }
    }

    /// The first world is where the fold begins; each later one must be where it has come to.
    fn take_world(&mut self, offset: u64, tick: Tick, bytes: &[u8]) -> Result<(), FoldError> {
        let world = codec::decode_whole::<World<S>>(bytes)
            .ok()
            .filter(World::is_sound);
        let world = world
            .filter(|world| world.tick() == tick)
            .ok_or(FoldError::World { offset })?;
        self.fresh = true;
        match &self.world {
            Some(ours) if ours.digest().ok() != world.digest().ok() => {
                Err(FoldError::Differs { tick, offset })
            }
            Some(_) => Ok(()),
            None => {
                self.world = Some(world);
                Ok(())
            }
        }
    }

    fn compare(&mut self, offset: u64, tick: Tick, digest: u64) -> Result<(), FoldError> {
        let world = self.world.as_ref().ok_or(FoldError::Misplaced { offset })?;
        if world.tick() != tick || world.digest() != Ok(digest) {
            return Err(FoldError::Differs { tick, offset });
        }
        self.agreed += 1;
        Ok(())
    }

    fn turn(
        &mut self,
        offset: u64,
        bytes: &[u8],
        each: &mut impl FnMut(&FrameData<S>, &World<S>),
    ) -> Result<(), FoldError> {
        let world = self.world.as_mut().ok_or(FoldError::Misplaced { offset })?;
        let mut packet = Reader::new(bytes);
        let damage = |error| FoldError::Turn { offset, error };
        if self.fresh {
            self.run
                .restart(world.tick(), &mut packet)
                .map_err(damage)?;
            self.fresh = false;
        }
        self.turn_ticks = 0;
        while !packet.rest().is_empty() {
            let nobody = PlayerSet::default();
            let (stepper, rules) = (&mut self.stepper, self.rules);
            let mut stepped = Ok(());
            let sent = |_, _| None;
            self.run
                .next(&mut packet, nobody, sent, |frame| {
                    let perspective = Perspective::authority(frame.tick);
                    stepped = stepper
                        .step(world, frame, rules, perspective, nobody)
                        .map(|_| ());
                    if stepped.is_ok() {
                        each(frame, world);
                    }
                })
                .map_err(damage)?;
            stepped.map_err(|error| FoldError::Frame { offset, error })?;
            self.turn_ticks += 1;
        }
        Ok(())
    }

    /// A turn in which everybody held what it held, and nothing happened.
    fn idle(
        &mut self,
        offset: u64,
        each: &mut impl FnMut(&FrameData<S>, &World<S>),
    ) -> Result<(), FoldError> {
        let world = self
            .world
            .as_mut()
            .filter(|_| !self.fresh)
            .ok_or(FoldError::Misplaced { offset })?;
        for _ in 0..self.turn_ticks {
            let frame = self.run.repeated();
            let perspective = Perspective::authority(frame.tick);
            let stepped =
                self.stepper
                    .step(world, frame, self.rules, perspective, PlayerSet::default());
            stepped.map_err(|error| FoldError::Frame { offset, error })?;
            each(frame, world);
            self.run.skip();
        }
        Ok(())
    }
}
