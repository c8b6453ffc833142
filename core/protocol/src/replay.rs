//! Records a match and replays it from any tick onwards, frame by frame, compared with the original.
//!
//! ```text
//!  Recorder        worlds, turns, digests ─▶ journal
//!  Index::scan     all but frames and worlds ─▶ the match, the offsets of its worlds, where it stops being intact
//!  Frames          the frames and records of a journal, in order, without simulating
//!  Replay          world at a world record ─frames─▶ world at any tick;  digests compared on the way
//!  Survey          statistics: ticks, players, orders, bytes
//! ```
//!
//! Outcomes come from the frames; no query is resolved again (laws *One door*, *Journal first*). Law *Hostile wire*:
//! a damaged file is an error that names the offset of the damaged record, and everything before it can be played. A
//! journal is read record by record, from memory or a file ([`JournalSource`]). An hour of four players takes about
//! 5 MB.
//!
//! ```
//! use twinstep_protocol::replay::Replay;
//! use twinstep_core::testing::doc::Counter;
//! use twinstep_protocol::replay::doc::journal;
//! use twinstep_core::Tick;
//!
//! let file = journal(300); // 300 ticks of a match, as a server wrote them
//! let mut replay = Replay::<Counter>::open(&file, &())?;
//! assert_eq!(replay.seek(Tick(250))?, Tick(250));
//! assert!(replay.step()?);
//! assert_eq!(replay.world().tick(), Tick(251));
//! let verified = Replay::<Counter>::open(&file, &())?.verify();
//! assert_eq!((verified.fault, verified.ticks), (None, 300));
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```

use alloc::boxed::Box;
use alloc::sync::Arc;
use alloc::vec::Vec;

use crate::journal::{Entry, JournalSource, Record};
use crate::packet::hello::Hello;
use twinstep_core::codec;
use twinstep_core::diff::{Difference, diff};
use twinstep_core::effects::Effects;
use twinstep_core::frame::{FrameData, Perspective, PlayerSet};
use twinstep_core::world::{Stepper, World};
use twinstep_core::{Simulation, Tick};

mod cursor;
mod error;
mod index;
mod recorder;
mod survey;
/// A journal for examples in documentation, and for tests of code that reads journals.
pub mod doc {
    use alloc::vec::Vec;

    use twinstep_core::frame::{FrameData, Perspective, PlayerSet};
    use twinstep_core::testing::doc::Counter;
    use twinstep_core::world::{Stepper, World};
    use twinstep_core::{PlayerId, RosterChange, Tick};

    use super::Recorder;
    use crate::journal::WrittenBy;
    use crate::packet::hello::Hello;

    /// The journal of a match of `ticks` ticks at 60 Hz in one-tick turns. Its single player holds a different number
    /// every tick.
    ///
    /// # Panics
    /// If the journal cannot be written, which does not happen for this match.
    #[must_use]
    pub fn journal(ticks: u32) -> Vec<u8> {
        let mut world = World::new(Counter::default(), Tick(0));
        let mut stepper = Stepper::default();
        let mut file = Vec::new();
        let hello = Hello::of::<Counter>(&(), "doc").expect("rules without a NaN");
        let mut recorder = Recorder::start(WrittenBy::Server, &hello, 0, 0, &world, &mut file)
            .expect("names of a few bytes");
        for tick in (0..ticks).map(Tick) {
            let mut frame = FrameData::<Counter>::empty(tick);
            if tick == Tick(0) {
                frame.roster.push((PlayerId(0), RosterChange::Joined));
            }
            frame.inputs.set(PlayerId(0), Some(tick.0 as u8));
            let perspective = Perspective::authority(tick);
            stepper
                .step(&mut world, &frame, &(), perspective, PlayerSet::default())
                .expect("a frame that fits");
            recorder.frame(&frame);
            let digest = world.digest().expect("a state without a NaN");
            recorder
                .turn(&world, digest, &mut file)
                .expect("a turn of one tick");
        }
        file
    }
}

#[cfg(test)]
mod tests;

use cursor::{Cursor, decode};
pub use cursor::{CursorItem, Frames};
pub use error::{About, ReplayError};
pub use index::{Index, KindBytes, Place};
pub use recorder::{DIGEST_EVERY, Recorder, WORLD_EVERY};
pub use survey::{PlayerSurvey, Survey};

/// The maximum number of differing fields reported per world.
const FIELDS_MAX: usize = 16;

/// A replay of a journal, which it borrows or owns.
pub struct Replay<'j, S: Simulation> {
    journal: Box<dyn JournalSource + Send + 'j>,
    rules: Lent<'j, S::Rules>,
    index: Index,
    frames: Cursor<S>,
    stepper: Stepper<S>,
    played: Played<S>,
}

enum Lent<'j, R> {
    By(&'j R),
    Shared(Arc<R>),
}

impl<R> Lent<'_, R> {
    fn get(&self) -> &R {
        match self {
            Lent::By(rules) => rules,
            Lent::Shared(rules) => rules,
        }
    }
}

struct Played<S: Simulation> {
    world: World<S>,
    agreed: Tick,
    digests: u64,
    worlds: u64,
    fields: Vec<Difference>,
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Verified {
    pub ticks: u32,
    /// The number of digests compared and found equal.
    pub digests: u64,
    /// The number of world records compared and found equal.
    pub worlds: u64,
    /// Where and why verification stopped, if it stopped before the end of the file. `None` if everything agreed.
    pub fault: Option<ReplayError>,
    /// The first differing fields at the next world record, replayed against recorded, if worlds differ.
    pub fields: Vec<Difference>,
}

impl<'j, S: Simulation> Replay<'j, S> {
    /// Opens a journal at its first world.
    ///
    /// # Errors
    /// If the bytes are not a journal of this game, version and rules, or if the first world is missing or cannot be
    /// decoded. Damage after the first world is not an error yet: see [`Index::stopped`].
    pub fn open(
        journal: impl JournalSource + Send + 'j,
        rules: &'j S::Rules,
    ) -> Result<Self, ReplayError> {
        Self::begin_first(Box::new(journal), Lent::By(rules))
    }

    /// Like [`open`](Self::open), with shared rules.
    ///
    /// # Errors
    /// The errors of [`open`](Self::open).
    pub fn own(
        journal: impl JournalSource + Send + 'j,
        rules: Arc<S::Rules>,
    ) -> Result<Replay<'j, S>, ReplayError> {
        Self::begin_first(Box::new(journal), Lent::Shared(rules))
    }

    /// Opens a journal with a known index, at one of its worlds. Does not read the bytes before that world.
    ///
    /// # Errors
    /// If there is no world at `place`, or it cannot be decoded.
    pub fn open_at(
        journal: impl JournalSource + Send + 'j,
        rules: &'j S::Rules,
        index: Index,
        place: &Place,
    ) -> Result<Self, ReplayError> {
        Self::begin(Box::new(journal), Lent::By(rules), index, place)
    }

    fn begin_first(
        mut journal: Box<dyn JournalSource + Send + 'j>,
        rules: Lent<'j, S::Rules>,
    ) -> Result<Self, ReplayError> {
        let index = Index::scan(&mut journal)?;
        index.check(&Hello::of::<S>(rules.get(), "").map_err(ReplayError::Rules)?)?;
        let first = index.worlds.first().cloned();
        let first = first.ok_or(ReplayError::NoWorld)?;
        Self::begin(journal, rules, index, &first)
    }

    fn begin(
        mut journal: Box<dyn JournalSource + Send + 'j>,
        rules: Lent<'j, S::Rules>,
        index: Index,
        place: &Place,
    ) -> Result<Self, ReplayError> {
        let (frames, world) = begin(&mut journal, place)?;
        Ok(Replay {
            frames,
            stepper: Stepper::default(),
            played: Played {
                agreed: world.tick(),
                world,
                digests: 0,
                worlds: 0,
                fields: Vec::new(),
            },
            journal,
            rules,
            index,
        })
    }

    #[must_use]
    pub fn index(&self) -> &Index {
        &self.index
    }

    /// Computes statistics of the journal. Reads all its frames; the replay's position does not change.
    pub fn survey(&mut self) -> Survey {
        Survey::of::<S>(&mut self.journal, &self.index)
    }

    /// The world. Its tick is the next one to step.
    #[must_use]
    pub fn world(&self) -> &World<S> {
        &self.played.world
    }

    #[must_use]
    pub fn frame(&self) -> &FrameData<S> {
        self.frames.frame()
    }

    #[must_use]
    pub fn differing(&self) -> &[Difference] {
        &self.played.fields
    }

    #[must_use]
    pub fn effects(&self) -> &Effects<S> {
        self.stepper.effects()
    }

    /// Moves to `tick`, or as near to it as the journal reaches. Returns the tick reached. Costs the steps since the
    /// nearest earlier world record, usually at most 10 s of match time.
    ///
    /// # Errors
    /// If a record on the way cannot be played.
    pub fn seek(&mut self, tick: Tick) -> Result<Tick, ReplayError> {
        let place = self.index.at_or_before(tick).ok_or(ReplayError::NoWorld)?;
        let here = self.world().tick();
        // Step on from here, unless a later world is nearer to the target.
        if tick < here || place.tick > here || self.frames.has_failed() {
            self.rewind(tick)?;
        }
        while self.world().tick() < tick && self.step()? {}
        Ok(self.world().tick())
    }

    /// Moves to the newest world record at or before `tick`, otherwise to the first one. Returns its tick.
    ///
    /// # Errors
    /// If it cannot be read.
    pub fn rewind(&mut self, tick: Tick) -> Result<Tick, ReplayError> {
        let place = self.index.at_or_before(tick).ok_or(ReplayError::NoWorld)?;
        (self.frames, self.played.world) = begin(&mut self.journal, place)?;
        self.played.agreed = self.played.world.tick();
        Ok(self.played.agreed)
    }

    /// Steps one tick. Returns `false` at the end of the journal.
    ///
    /// # Errors
    /// If a record is damaged, in which case every later call fails as well; if a frame does not fit the world; or if a
    /// recorded world or digest differs or cannot be decoded, in which case stepping can continue with the computed
    /// world.
    pub fn step(&mut self) -> Result<bool, ReplayError> {
        self.step_inspecting(|_| {})
    }

    /// Steps like [`step`](Self::step), and passes each record before the tick to `see`, before it is checked.
    ///
    /// # Errors
    /// The errors of [`step`](Self::step).
    pub fn step_inspecting(
        &mut self,
        mut see: impl FnMut(&Record<'_>),
    ) -> Result<bool, ReplayError> {
        loop {
            match self.frames.next(&mut self.journal)? {
                None => return Ok(false),
                Some(CursorItem::Record(entry)) => {
                    see(&entry.record);
                    self.played.check_record(&entry)?;
                }
                Some(CursorItem::Frame) => break,
            }
        }
        let (frame, offset) = (self.frames.frame(), self.frames.offset());
        let perspective = Perspective::authority(frame.tick);
        let no_players = PlayerSet::default();
        self.stepper
            .step(
                &mut self.played.world,
                frame,
                self.rules.get(),
                perspective,
                no_players,
            )
            .map_err(|error| ReplayError::Frame { offset, error })?;
        Ok(true)
    }

    /// Replaces the world with a copy decoded from its own encoding, which is what a joining client would receive.
    /// State that is not encoded is lost; if steps depend on it, the world then differs from the recorded digests.
    ///
    /// # Errors
    /// If the world cannot be encoded, or its bytes cannot be decoded.
    pub fn reload(&mut self) -> Result<(), ReplayError> {
        let (tick, offset) = (self.world().tick(), self.frames.offset());
        let mut bytes = Vec::new();
        codec::append(self.world(), &mut bytes).map_err(|_| ReplayError::World { offset })?;
        self.played.world = decode(offset, tick, &bytes)?;
        Ok(())
    }

    /// Plays from the current tick to the end or the first fault, and compares every digest and every world on the way.
    #[must_use]
    pub fn verify(&mut self) -> Verified {
        let (first, digests, worlds) =
            (self.world().tick(), self.played.digests, self.played.worlds);
        let fault = loop {
            match self.step() {
                Ok(true) => {}
                Ok(false) => break None,
                Err(fault) => break Some(fault),
            }
        };
        let ticks = self.world().tick() - first;
        if matches!(fault, Some(ReplayError::Differs { .. })) {
            // The next world record shows which fields differ.
            while self.played.fields.is_empty()
                && matches!(self.step(), Ok(true) | Err(ReplayError::Differs { .. }))
            {}
        }
        Verified {
            ticks,
            digests: self.played.digests - digests,
            worlds: self.played.worlds - worlds,
            fault,
            fields: core::mem::take(&mut self.played.fields),
        }
    }
}

impl<S: Simulation> Played<S> {
    fn check_record(&mut self, entry: &Entry<'_>) -> Result<(), ReplayError> {
        let offset = entry.offset;
        match entry.record {
            Record::Digest { tick, digest } => {
                self.compare(offset, tick, digest)?;
                self.digests += 1;
            }
            Record::World { tick, bytes } => {
                let theirs = decode::<S>(offset, tick, bytes)?;
                let digest = theirs.digest().map_err(|_| ReplayError::World { offset })?;
                let compared = self.compare(offset, tick, digest);
                if compared.is_err() {
                    self.fields = diff(&self.world.digested(), &theirs.digested(), FIELDS_MAX);
                }
                compared?;
                self.worlds += 1;
            }
            _ => {}
        }
        Ok(())
    }

    fn compare(&mut self, offset: u64, tick: Tick, digest: u64) -> Result<(), ReplayError> {
        if self.world.tick() != tick {
            return Err(ReplayError::Misplaced { offset });
        }
        if self.world.digest() != Ok(digest) {
            return Err(ReplayError::Differs {
                tick,
                agreed: self.agreed,
                offset,
            });
        }
        self.agreed = tick;
        Ok(())
    }
}

/// Reads the world record at `place`. Returns a cursor over the frames after it, and the world.
fn begin<S: Simulation>(
    journal: &mut (impl JournalSource + ?Sized),
    place: &Place,
) -> Result<(Cursor<S>, World<S>), ReplayError> {
    let mut frames = Cursor::at(place);
    match frames.next(journal)? {
        Some(CursorItem::Record(Entry {
            offset,
            record: Record::World { tick, bytes },
            ..
        })) => {
            let world: World<S> = decode(offset, tick, bytes)?;
            frames.go_on_with(world.unfinished());
            Ok((frames, world))
        }
        _ => Err(ReplayError::Misplaced {
            offset: place.offset(),
        }),
    }
}
