//! Searches for records after damage: it distinguishes records that can no longer be checked from bytes that never were
//! records.
//!
//! Checks are chained, so after damage none can be verified. But records have a shape, and a run of well-shaped records
//! up to the end of the file is unlikely to be accidental.

use super::record::{Record, START, TURN_BYTES_MAX};
use super::source::{JournalSource, SourceError};
use crate::varint;
use twinstep_core::Tick;
use twinstep_core::bounds::WORLD_BYTES_MAX;

/// The minimum number of records of a run, unless it starts at the damage and ends at the end of the file.
const RUN_MIN: u64 = 8;
/// The search looks for the start of a run at this many byte offsets, which is more than the size of any turn.
const PLACES_MAX: usize = 128 << 10;
/// The number of bytes that the search reads at a time. A run of [`RUN_MIN`] records fits, unless several are large
/// worlds.
const NEAR_BYTES: usize = 16 << 20;
const FOLLOWED_MAX: usize = 4;
/// The maximum number of records examined; it bounds the search time.
const LOOKS_MAX: u64 = 4 << 20;

/// The records that seem to have been lost.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Remains {
    /// The number of records, including the damaged one if its shape is intact.
    pub records: u64,
    pub turns: u64,
    /// The newest tick of a world or a digest in these records.
    pub newest: Option<Tick>,
}

/// Searches for records after offset `from`, at which the journal stops being intact. Returns `None` if there are none,
/// for example because a disk that lost power left zeros or older data. Takes 16 MiB of memory, however long the file
/// is.
///
/// # Errors
/// If the file cannot be read.
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
            // Exactly at the damage, even one record counts.
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

/// The largest incomplete record accepted after a run: a turn.
const TORN_MAX: usize = TURN_BYTES_MAX;
/// This many bytes suffice for any record.
const REST_BYTES: usize = 16 + WORLD_BYTES_MAX;
const _: () = assert!(REST_BYTES > TORN_MAX);

impl Remains {
    /// Counts the records at the start of `bytes`. Returns their size in bytes.
    fn count(&mut self, bytes: &[u8]) -> usize {
        let mut rest = bytes;
        while let Some((record, after)) = shape(rest) {
            self.records += 1;
            match record {
                Record::Turn(_) | Record::Idle => self.turns += 1,
                Record::World { tick, .. } | Record::Digest { tick, .. } => {
                    self.newest = self.newest.max(Some(tick));
                }
                _ => {}
            }
            rest = after;
        }
        bytes.len() - rest.len()
    }
}

/// Parses the record at the start of `bytes` without verifying its checks. Returns it with the bytes after it, or
/// `None` if the bytes do not have the shape of a known record other than a start.
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
        // An idle record has no payload.
        Record::Idle if length > 0 => None,
        record => Some((record, rest)),
    }
}
