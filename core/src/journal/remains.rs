//! What stands behind damage: records that cannot be checked any more, or nothing that was ever one.
//!
//! Checks are chained, so behind damage none can be compared. But records have a shape, and a run of them that goes on to
//! the end of the file is no accident.

use super::record::{Record, START, TURN_BYTES_MAX};
use crate::Tick;
use crate::varint;

/// Records that follow each other, at least, where the end of the file is not met exactly.
const RUN_MIN: u64 = 8;
/// A run is looked for at so many places: more than any turn takes.
const PLACES_MAX: usize = 128 << 10;
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

/// Looks for records in `bytes`, which begin where a journal stops being sound; `None`: there are none, as when a disk
/// that lost power left zeros, or what stood there before.
#[must_use]
pub fn remains(bytes: &[u8]) -> Option<Remains> {
    let mut looks = 0;
    (0..bytes.len().min(PLACES_MAX)).find_map(|from| {
        if looks > LOOKS_MAX {
            return None;
        }
        let (found, rest) = run(&bytes[from..], &mut looks);
        // At the very place of the damage even one record is one.
        let is_last = from == 0 && found.records > 0 && rest == 0;
        (is_last || (found.records >= RUN_MIN && rest <= TORN_MAX)).then_some(found)
    })
}

/// The rest of a run may be a record that was cut off: a head, a turn.
const TORN_MAX: usize = TURN_BYTES_MAX;

/// The records from the beginning of `bytes` on, and how many bytes are left behind them.
fn run(mut bytes: &[u8], looks: &mut u64) -> (Remains, usize) {
    let mut found = Remains::default();
    while let Some((record, rest)) = shape(bytes) {
        *looks += 1;
        found.records += 1;
        match record {
            Record::Turn(_) | Record::Idle => found.turns += 1,
            Record::World { tick, .. } | Record::Digest { tick, .. } => {
                found.newest = found.newest.max(Some(tick));
            }
            _ => {}
        }
        bytes = rest;
    }
    (found, bytes.len())
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
