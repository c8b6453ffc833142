//! The frames of a journal, with the records between them, without simulating.

use alloc::boxed::Box;
use alloc::vec::Vec;

use super::error::ReplayError;
use super::index::Place;
use crate::journal::{Entry, JournalReader, JournalSource, Record};
use crate::packet::frames::RunReader;
use crate::wire::{Reader, WireError};
use twinstep_core::bounds::TURN_TICKS_MAX;
use twinstep_core::codec;
use twinstep_core::frame::{FrameData, PlayerSet};
use twinstep_core::world::{LargeEntries, World};
use twinstep_core::{Simulation, Tick};

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum CursorItem<'j> {
    Frame,
    Record(Entry<'j>),
}

/// Reads a journal's frames, starting at a world record.
///
/// Invariant: frame ticks continue without gaps from the first world's tick, and each later world is at the tick that
/// the frames have reached.
pub struct Frames<'j, S: Simulation> {
    journal: Box<dyn JournalSource + 'j>,
    cursor: Cursor<S>,
}

impl<'j, S: Simulation> Frames<'j, S> {
    /// Starts at a world record, which is the first item.
    #[must_use]
    pub fn at(journal: impl JournalSource + 'j, place: &Place) -> Self {
        Frames {
            journal: Box::new(journal),
            cursor: Cursor::at(place),
        }
    }

    #[must_use]
    pub fn frame(&self) -> &FrameData<S> {
        self.cursor.frame()
    }

    /// The offset of the record that contains the last frame.
    #[must_use]
    pub fn offset(&self) -> u64 {
        self.cursor.offset()
    }

    /// The next frame or record, or `None` at the end of the journal.
    ///
    /// # Errors
    /// If the next record cannot be read. Later calls return the same error.
    #[expect(
        clippy::should_implement_trait,
        reason = "a frame is lent, not handed out"
    )]
    pub fn next(&mut self) -> Result<Option<CursorItem<'_>>, ReplayError> {
        self.cursor.next(&mut self.journal)
    }
}

/// A position in a journal that the caller holds. All calls must be given the same journal.
pub(super) struct Cursor<S: Simulation> {
    reader: JournalReader,
    run: RunReader<S>,
    frame: FrameData<S>,
    unfinished: LargeEntries,
    next: Option<Tick>,
    /// Whether no frame has been read since the last world or resumption. If so, the next frame is encoded against
    /// neutral inputs.
    fresh: bool,
    /// The encoded frames of the current turn.
    turn: Vec<u8>,
    /// The number of bytes of `turn` that were read.
    turn_read: usize,
    /// The offset of the turn's record.
    offset: u64,
    /// The number of ticks of the last turn, which an idle turn repeats.
    turn_ticks: u32,
    /// The number of ticks still to be repeated.
    idle_ticks: u32,
    failed: Option<ReplayError>,
}

impl<S: Simulation> Cursor<S> {
    pub(super) fn at(place: &Place) -> Self {
        Cursor {
            reader: place.reader.clone(),
            run: RunReader::default(),
            frame: FrameData::preallocated(place.tick),
            unfinished: LargeEntries::default(),
            next: None,
            fresh: true,
            turn: Vec::new(),
            turn_read: 0,
            offset: place.offset(),
            turn_ticks: 0,
            idle_ticks: 0,
            failed: None,
        }
    }

    pub(super) fn frame(&self) -> &FrameData<S> {
        &self.frame
    }

    /// Continues from `unfinished`, the incomplete large entries of the world record that was just read.
    pub(super) fn go_on_with(&mut self, unfinished: &LargeEntries) {
        self.unfinished.clone_from(unfinished);
    }

    pub(super) fn offset(&self) -> u64 {
        self.offset
    }

    pub(super) fn has_failed(&self) -> bool {
        self.failed.is_some()
    }

    pub(super) fn next<'j>(
        &mut self,
        journal: &'j mut (impl JournalSource + ?Sized),
    ) -> Result<Option<CursorItem<'j>>, ReplayError> {
        if let Some(error) = &self.failed {
            return Err(error.clone());
        }
        let found = self.find(journal);
        if let Err(error) = &found {
            self.failed = Some(error.clone());
        }
        found
    }

    fn find<'j>(
        &mut self,
        journal: &'j mut (impl JournalSource + ?Sized),
    ) -> Result<Option<CursorItem<'j>>, ReplayError> {
        loop {
            if self.idle_ticks > 0 {
                self.idle_ticks -= 1;
                self.frame.clone_from(self.run.repeated());
                self.run.skip();
                return Ok(Some(self.found_frame()));
            }
            if self.turn_read < self.turn.len() {
                let mut turn = Reader::new(&self.turn[self.turn_read..]);
                let (offset, frame) = (self.offset, &mut self.frame);
                let damage = |error| ReplayError::Turn { offset, error };
                if self.turn_ticks == u32::from(TURN_TICKS_MAX) {
                    // Idle turns of 2 bytes each would repeat all its ticks.
                    return Err(damage(WireError::Malformed(
                        "more ticks than a turn may have",
                    )));
                }
                let no_players = PlayerSet::default();
                self.run
                    .next(
                        &mut turn,
                        no_players,
                        |_, _| None,
                        |read| frame.clone_from(read),
                    )
                    .map_err(damage)?;
                // An entry that started before the first world lacks its first part.
                let _ = self.unfinished.complete(&mut self.frame);
                self.unfinished.collect(&self.frame.fragments);
                self.turn_read = self.turn.len() - turn.rest().len();
                self.turn_ticks += 1;
                return Ok(Some(self.found_frame()));
            }
            let kind = self.reader.next_kind(journal);
            if !kind.is_some_and(Record::is_turn_kind) {
                return self.record(journal);
            }
            let Some(entry) = self.reader.read_from(journal)? else {
                return Ok(None);
            };
            match entry.record {
                Record::Turn(bytes) => self.begin_turn(entry.offset, bytes)?,
                // An idle turn repeats the one before it, so there must be one.
                _ if self.fresh => {
                    return Err(ReplayError::Misplaced {
                        offset: entry.offset,
                    });
                }
                _ => {
                    self.offset = entry.offset;
                    self.idle_ticks = self.turn_ticks;
                }
            }
        }
    }

    fn record<'j>(
        &mut self,
        journal: &'j mut (impl JournalSource + ?Sized),
    ) -> Result<Option<CursorItem<'j>>, ReplayError> {
        let Some(entry) = self.reader.read_from(journal)? else {
            return Ok(None);
        };
        match entry.record {
            Record::World { tick, .. } => {
                if self.next.is_some_and(|next| next != tick) {
                    let offset = entry.offset;
                    return Err(ReplayError::Misplaced { offset });
                }
                self.next = Some(tick);
                self.fresh = true;
            }
            // A world follows, unless it is too large for a record.
            Record::Resumed { .. } => self.fresh = true,
            _ => {}
        }
        Ok(Some(CursorItem::Record(entry)))
    }

    fn begin_turn(&mut self, offset: u64, bytes: &[u8]) -> Result<(), ReplayError> {
        let first = self.next.ok_or(ReplayError::Misplaced { offset })?;
        self.offset = offset;
        let mut turn = Reader::new(bytes);
        self.turn_ticks = 0;
        if self.fresh {
            self.fresh = false;
            self.run
                .restart(first, &mut turn)
                .map_err(|error| ReplayError::Turn { offset, error })?;
        }
        self.turn.clear();
        self.turn.extend_from_slice(turn.rest());
        self.turn_read = 0;
        if self.turn.is_empty() {
            // A turn without ticks is refused, because idle turns could repeat it forever.
            let error = WireError::Truncated;
            return Err(ReplayError::Turn { offset, error });
        }
        Ok(())
    }

    fn found_frame<'j>(&mut self) -> CursorItem<'j> {
        self.next = Some(self.frame.tick + 1);
        CursorItem::Frame
    }
}

pub(super) fn decode<S: Simulation>(
    offset: u64,
    tick: Tick,
    bytes: &[u8],
) -> Result<World<S>, ReplayError> {
    codec::decode_whole::<World<S>>(bytes)
        .ok()
        .filter(|world| world.is_sound() && world.tick() == tick)
        .ok_or(ReplayError::World { offset })
}
