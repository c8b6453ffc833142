//! What stands where in a journal: found by heads and checks alone, without decoding a frame.

use alloc::collections::BTreeMap;
use alloc::string::String;
use alloc::vec::Vec;

use super::error::{About, ReplayError};
use crate::journal::{JournalError, JournalReader, JournalWriter, Record};
use crate::packet::hello::Hello;
use crate::{PlayerId, Tick};

/// A world record.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Place {
    /// Its tick.
    pub tick: Tick,
    /// The bytes of its world.
    pub bytes: usize,
    /// Stands before the record.
    pub(super) reader: JournalReader,
}

impl Place {
    /// Where it stands, in bytes from the start of the journal.
    #[must_use]
    pub fn offset(&self) -> u64 {
        self.reader.offset()
    }
}

/// Bytes of a journal by what they are for, heads and checks included.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct KindBytes {
    /// Turns in which something happened.
    pub turns: u64,
    /// Turns in which nothing did.
    pub idle: u64,
    /// Digests.
    pub digests: u64,
    /// Worlds.
    pub worlds: u64,
    /// All else.
    pub other: u64,
}

impl KindBytes {
    /// All of it.
    #[must_use]
    pub fn total(&self) -> u64 {
        self.turns + self.idle + self.digests + self.worlds + self.other
    }
}

/// What stands where.
#[derive(Clone, Debug)]
pub struct Index {
    /// What it is of.
    pub about: About,
    /// Its worlds, by tick.
    pub worlds: Vec<Place>,
    /// The newest tick that a world or a digest names; frames may reach up to one turn's digest beyond.
    pub newest: Tick,
    /// Who got which seat, in the order in which they came.
    pub seats: Vec<(PlayerId, String)>,
    /// The lowest serial of a ticket that lets an identity in, by identity and whether it watches.
    pub serials: BTreeMap<(String, bool), u64>,
    /// How many times another process took the match up.
    pub resumes: u32,
    /// Why the match ended, if it did and was not taken up again.
    pub ended: Option<String>,
    /// Records of turns, idle ones included.
    pub turns: u64,
    /// Bytes by kind.
    pub bytes: KindBytes,
    /// Where and why it stops being sound before the end of the file.
    pub stopped: Option<JournalError>,
    /// Stands behind the last whole record.
    reader: JournalReader,
}

impl Index {
    /// Reads a journal's heads, as far as it is sound.
    ///
    /// # Errors
    /// Its first record is no start: it is no journal, or one of another format.
    pub fn scan(journal: &[u8]) -> Result<Index, JournalError> {
        let (mut reader, mut rest) = (JournalReader::new(), journal);
        let about = match reader.read(&mut rest)? {
            Some(first) => About::of(&first.record).ok_or(JournalError::NotAJournal)?,
            None => return Err(JournalError::NotAJournal),
        };
        let mut index = Index {
            about,
            worlds: Vec::new(),
            newest: Tick(0),
            seats: Vec::new(),
            serials: BTreeMap::new(),
            resumes: 0,
            ended: None,
            turns: 0,
            bytes: KindBytes {
                other: reader.offset(),
                ..KindBytes::default()
            },
            stopped: None,
            reader,
        };
        loop {
            let before = index.reader.clone();
            match index.reader.read(&mut rest) {
                Ok(None) => return Ok(index),
                Ok(Some(entry)) => index.note(before, &entry.record, entry.bytes as u64),
                Err(stopped) => {
                    index.stopped = Some(stopped);
                    return Ok(index);
                }
            }
        }
    }

    fn note(&mut self, before: JournalReader, record: &Record<'_>, bytes: u64) {
        let kind = match record {
            Record::Turn(_) => &mut self.bytes.turns,
            Record::Idle => &mut self.bytes.idle,
            Record::Digest { .. } => &mut self.bytes.digests,
            Record::World { .. } => &mut self.bytes.worlds,
            _ => &mut self.bytes.other,
        };
        *kind += bytes;
        match *record {
            Record::Turn(_) | Record::Idle => self.turns += 1,
            Record::Digest { tick, .. } => self.newest = self.newest.max(tick),
            // One that stands before its predecessor is found out when it is played.
            Record::World { tick, bytes }
                if self.worlds.last().is_none_or(|last| last.tick <= tick) =>
            {
                self.newest = self.newest.max(tick);
                self.worlds.push(Place {
                    tick,
                    bytes: bytes.len(),
                    reader: before,
                });
            }
            Record::Seat { player, identity } => self.seats.push((player, text(identity))),
            Record::Serial {
                serial,
                watches,
                identity,
            } => {
                let safe = self.serials.entry((text(identity), watches)).or_default();
                *safe = serial.max(*safe);
            }
            Record::End { reason } => self.ended = Some(reason.into()),
            Record::Resumed { .. } => {
                self.resumes += 1;
                self.ended = None;
            }
            _ => {}
        }
    }

    /// Whether this program can play it.
    ///
    /// # Errors
    /// [`ReplayError::Mismatch`].
    pub fn check(&self, ours: &Hello) -> Result<(), ReplayError> {
        let about = &self.about;
        let theirs = Hello {
            wire: ours.wire,
            game: about.game.clone(),
            version: about.sim_version,
            rules: about.rules_digest,
            build: about.build.clone(),
            holds: Default::default(),
            names: Default::default(),
        };
        match ours.refusal(&theirs) {
            None => Ok(()),
            Some(code) => Err(ReplayError::Mismatch {
                about: about.clone(),
                code,
            }),
        }
    }

    /// The newest world at or before `tick`, or else the first.
    #[must_use]
    pub fn before(&self, tick: Tick) -> Option<&Place> {
        let after = self.worlds.partition_point(|place| place.tick <= tick);
        self.worlds.get(after.saturating_sub(1))
    }

    /// The length of what is sound, in bytes.
    #[must_use]
    pub fn sound_bytes(&self) -> u64 {
        self.reader.offset()
    }

    /// Goes on behind the last whole record. Cut the file to [`sound_bytes`](Index::sound_bytes) first.
    #[must_use]
    pub fn writer(&self) -> JournalWriter {
        JournalWriter::resume(&self.reader)
    }
}

/// A text of a file, for people.
fn text(bytes: &[u8]) -> String {
    String::from_utf8_lossy(bytes).into_owned()
}
