//! The index of a journal. Building it decodes neither a frame nor a world.

use alloc::string::String;
use alloc::vec::Vec;

use super::error::{About, ReplayError};
use crate::identity::Identity;
use crate::journal::{
    JournalError, JournalReader, JournalSource, JournalWriter, Record, WrittenBy,
};
use crate::lineage::LineageTable;
use crate::packet::hello::Hello;
use twinstep_core::bounds::MATCH_LINEAGES_MAX;
use twinstep_core::{PlayerId, PlayerSet, Tick};

/// The maximum number of worlds kept with their positions. In a longer journal, every second world of the older half is
/// dropped, repeatedly.
const PLACES_MAX: usize = 1 << 16;
/// At twice this many seats, old ones are dropped until about this many are left. The newest seat of each player is
/// kept.
const SEATS_MAX: usize = 1 << 12;

#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Place {
    pub tick: Tick,
    pub bytes: usize,
    pub(super) reader: JournalReader,
}

impl Place {
    pub(super) fn next(writer: &JournalWriter, tick: Tick, bytes: usize) -> Place {
        Place {
            tick,
            bytes,
            reader: writer.reader(),
        }
    }

    /// The offset of the record, in bytes from the start of the journal.
    #[must_use]
    pub fn offset(&self) -> u64 {
        self.reader.offset()
    }
}

/// The number of journal bytes for each kind of record, including heads and checks.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct KindBytes {
    /// Turns with events.
    pub turns: u64,
    /// Turns without events.
    pub idle: u64,
    pub digests: u64,
    pub worlds: u64,
    pub other: u64,
}

impl KindBytes {
    #[must_use]
    pub fn total(&self) -> u64 {
        self.turns + self.idle + self.digests + self.worlds + self.other
    }
}

#[derive(Clone, Debug)]
pub struct Index {
    pub about: About,
    /// The worlds, in tick order. In a very long journal, some of the older ones are missing.
    pub worlds: Vec<Place>,
    /// The newest tick of a world or a digest. Frames may reach beyond it, up to the next digest.
    pub newest: Tick,
    /// Player and identity of each join, oldest first. If there are very many, only the newest are kept.
    pub seats: Vec<(PlayerId, String)>,
    // The players that have left. If the match was paused, the frames do not contain this yet.
    pub left: PlayerSet,
    /// The seats reserved for an identity that has not taken its seat.
    pub reserved: Vec<(PlayerId, String)>,
    /// The outdated tickets of each identity.
    pub lineages: LineageTable<Identity>,
    pub resumes: u32,
    /// The reason why the match ended. `None` if it has not ended, or was resumed.
    pub ended: Option<String>,
    /// The number of turns, including idle ones.
    pub turns: u64,
    pub bytes: KindBytes,
    /// Where and why the journal stops being intact, if that is before the end of the file.
    pub stopped: Option<JournalError>,
    reader: JournalReader,
}

impl Index {
    /// The index of a journal that is still being written. It contains only the last worlds, which the writer supplies.
    /// Does not read the journal.
    #[must_use]
    pub fn of_worlds(hello: &Hello, worlds: Vec<Place>) -> Index {
        let about = About {
            game: hello.game.clone(),
            sim_version: hello.version,
            rules_digest: hello.rules,
            build: hello.build.clone(),
            started_unix_s: 0,
            command_delay: 0,
            by: WrittenBy::Server,
        };
        let last = worlds.last().map(|last| (last.tick, last.reader.clone()));
        let (newest, reader) = last.unwrap_or_default();
        Index {
            worlds,
            newest,
            ..Index::empty(about, reader)
        }
    }

    /// Reads the records of a journal, as far as it is intact. Takes the memory of the largest record, and at most a
    /// few megabytes for the index.
    ///
    /// # Errors
    /// If the first record is not an intact start record, or reading fails.
    pub fn scan(mut journal: impl JournalSource) -> Result<Index, JournalError> {
        let mut reader = JournalReader::new();
        let about = match reader.read_from(&mut journal)? {
            Some(first) => About::of(&first.record).ok_or(JournalError::NotAJournal)?,
            None => return Err(JournalError::NotAJournal),
        };
        let mut index = Index::empty(about, reader);
        index.bytes.other = index.reader.offset();
        loop {
            let before = index.reader.clone();
            match index.reader.read_from(&mut journal) {
                Ok(None) => return Ok(index),
                // Not damage: another attempt may succeed.
                Err(unreadable @ JournalError::Unreadable { .. }) => return Err(unreadable),
                Ok(Some(entry)) => index.add(before, &entry.record, entry.bytes as u64),
                Err(stopped) => {
                    index.stopped = Some(stopped);
                    return Ok(index);
                }
            }
        }
    }

    fn empty(about: About, reader: JournalReader) -> Index {
        Index {
            about,
            worlds: Vec::new(),
            newest: Tick(0),
            seats: Vec::new(),
            left: PlayerSet::default(),
            reserved: Vec::new(),
            lineages: LineageTable::new(MATCH_LINEAGES_MAX),
            resumes: 0,
            ended: None,
            turns: 0,
            bytes: KindBytes::default(),
            stopped: None,
            reader,
        }
    }

    fn add(&mut self, before: JournalReader, record: &Record<'_>, bytes: u64) {
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
            // A world out of order is an error when it is played.
            Record::World { tick, bytes }
                if self.worlds.last().is_none_or(|last| last.tick <= tick) =>
            {
                self.newest = self.newest.max(tick);
                self.worlds.push(Place {
                    tick,
                    bytes: bytes.len(),
                    reader: before,
                });
                thin_out(&mut self.worlds);
            }
            Record::Seat {
                player,
                identity: [],
            } => self.left.set(player, true),
            Record::Seat { player, identity } => {
                self.left.set(player, false);
                self.reserved.retain(|(reserved, _)| *reserved != player);
                self.seats.push((player, text(identity)));
                forget_oldest(&mut self.seats);
            }
            Record::Reserved { player, identity } => {
                self.reserved.retain(|(reserved, _)| *reserved != player);
                if !identity.is_empty() {
                    self.reserved.push((player, text(identity)));
                }
            }
            Record::Ruling {
                ruling,
                role,
                identity,
            } => {
                self.lineages
                    .apply(&Identity::new(text(identity), role), &ruling);
                // The current time is unknown here, so only entries beyond the limit are dropped.
                self.lineages.tidy(0);
            }
            Record::End { reason } => self.ended = Some(reason.into()),
            Record::Resumed { .. } => {
                self.resumes += 1;
                // The match was resumed, so that was not its end.
                self.ended = None;
            }
            _ => {}
        }
    }

    /// Checks whether this program can play the journal.
    ///
    /// # Errors
    /// [`ReplayError::Mismatch`] if the journal belongs to another game, version or rules.
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

    /// The newest world at or before `tick`, otherwise the first one, if any.
    #[must_use]
    pub fn at_or_before(&self, tick: Tick) -> Option<&Place> {
        let after = self.worlds.partition_point(|place| place.tick <= tick);
        self.worlds.get(after.saturating_sub(1))
    }

    /// The length of the intact part, in bytes.
    #[must_use]
    pub fn sound_bytes(&self) -> u64 {
        self.reader.offset()
    }

    /// Continues after the last intact record. The caller must first cut the file to
    /// [`sound_bytes`](Index::sound_bytes).
    #[must_use]
    pub fn writer(&self) -> JournalWriter {
        JournalWriter::resume(&self.reader)
    }
}

/// Drops every second world of the older half, but not the first world.
fn thin_out(worlds: &mut Vec<Place>) {
    if worlds.len() < PLACES_MAX {
        return;
    }
    let mut n = 0;
    worlds.retain(|_| {
        n += 1;
        n % 2 == 1 || n > PLACES_MAX / 2
    });
}

/// Drops old seats, but not the newest of each player.
fn forget_oldest(seats: &mut Vec<(PlayerId, String)>) {
    let surplus = seats.len().saturating_sub(SEATS_MAX);
    if surplus < SEATS_MAX {
        return;
    }
    let (mut n, newer) = (0, seats.clone());
    seats.retain(|(player, _)| {
        n += 1;
        n > surplus || newer[n..].iter().all(|(other, _)| other != player)
    });
}

fn text(bytes: &[u8]) -> String {
    String::from_utf8_lossy(bytes).into_owned()
}
