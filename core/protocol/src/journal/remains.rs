//! What stands behind damage: records that cannot be checked any more, or nothing that was ever one.
//!
//! Checks are chained, so behind damage none can be compared. But records have a shape, and a run of them that goes on to
//! the end of the file is no accident.

use super::record::{Record, START, TURN_BYTES_MAX};
use super::source::{JournalSource, SourceError};
use crate::varint;
use twinstep_core::Tick;
use twinstep_core::bounds::WORLD_BYTES_MAX;

/// Records that follow each other, at least, where the end of the file is not met exactly.
const RUN_MIN: u64 = 8;
/// A run is looked for at so many places: more than any turn takes.
const PLACES_MAX: usize = 128 << 10;
/// The search looks at this many bytes at once: a run of [`RUN_MIN`] records fits, if not all of them are large worlds.
const NEAR_BYTES: usize = 16 << 20;
/// Runs that are followed to the end of the file.
const FOLLOWED_MAX: usize = 4;
/// Records that are looked at in all, so that no file makes the search long.
const LOOKS_MAX: u64 = 4 << 20;

/// What seems to have been lost.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Remains {
    /// Records, the damaged one among them if its shape is whole.
    pub records: u64,
    /// Turns among them.
    pub turns: u64,
    /// The newest tick that a world or a digest among them names.
    pub newest: Option<Tick>,
}

/// Looks for records from `from` on, where a journal stops being sound; `None`: there are none, as when a disk that lost
/// power left zeros, or what stood there before. Takes 16 MiB of memory, whatever is left of the file.
///
/// # Errors
/// The file cannot be read.
pub fn remains(
    source: &mut (impl JournalSource + ?Sized),
    from: u64,
) -> Result<Option<Remains>, SourceError> {
    let (mut looks, mut place) = (0, 0);
    for _ in 0..FOLLOWED_MAX {
        let near = source.window(from, NEAR_BYTES)?;
        let begun = (place..near.len().min(PLACES_MAX)).find_map(|place| {
            if looks > LOOKS_MAX {
                return None;
            }
            let mut found = Remains::default();
            let bytes = found.count(&near[place..]);
            looks += found.records;
            // At the very place of the damage even one record is one.
            let is_run = found.records >= RUN_MIN || (place == 0 && found.records > 0);
            is_run.then_some((place, bytes, found))
        });
        let Some((begins, bytes, mut found)) = begun else {
            return Ok(None);
        };
        let mut at = from + (begins + bytes) as u64;
        let rest = loop {
            let near = source.window(at, REST_BYTES)?;
            match found.count(near) {
                0 => break near.len(),
                bytes => at += bytes as u64,
            }
        };
        let is_last = begins == 0 && rest == 0;
        if is_last || (found.records >= RUN_MIN && rest <= TORN_MAX) {
            return Ok(Some(found));
        }
        place = begins + 1;
    }
    Ok(None)
}

/// The rest of a run may be a record that was cut off: a head, a turn.
const TORN_MAX: usize = TURN_BYTES_MAX;
/// Bytes that hold any record.
const REST_BYTES: usize = 16 + WORLD_BYTES_MAX;
const _: () = assert!(REST_BYTES > TORN_MAX);

impl Remains {
    /// Counts the records at the beginning of `bytes`; how many bytes they take.
    fn count(&mut self, bytes: &[u8]) -> usize {
        let mut rest = bytes;
        while let Some((record, behind)) = shape(rest) {
            self.records += 1;
            match record {
                Record::Turn(_) | Record::Idle => self.turns += 1,
                Record::World { tick, .. } | Record::Digest { tick, .. } => {
                    self.newest = self.newest.max(Some(tick));
                }
                _ => {}
            }
            rest = behind;
        }
        bytes.len() - rest.len()
    }
}

/// A record of a kind that this version writes, whatever its checks say, and what is behind it.
fn shape(bytes: &[u8]) -> Option<(Record<'_>, &[u8])> {
    let mut rest = bytes;
    let head = varint::take(&mut rest).ok()?;
    let (_check, rest) = rest.split_first()?;
    let kind = head as u8;
    let length = usize::try_from(head >> 8).ok()?;
    if kind == START || length > Record::payload_bytes_max(kind)? {
        return None;
    }
    let (payload, rest) = rest.split_at_checked(length)?;
    let rest = match length {
        0 => rest,
        _ => rest.split_at_checked(4)?.1,
    };
    match Record::parse(kind, payload)? {
        Record::Other { .. } => None,
        Record::Idle if length > 0 => None,
        record => Some((record, rest)),
    }
}
