//! Reads records, and reports exactly where a journal stops being intact.

use xxhash_rust::xxh3::xxh3_64_with_seed;

use super::chain::{CHAIN_START, head_check, payload_check};
use super::record::{END, FORMAT_VERSION, MAGIC, REASON_BYTES_MAX, Record, Start};
use super::source::JournalSource;
use crate::varint::{self, VarintError};

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Entry<'a> {
    /// The offset of the record, in bytes from the start of the journal.
    pub offset: u64,
    /// The size of the record in the journal, including head and checks.
    pub bytes: usize,
    pub record: Record<'a>,
}

/// Where and why reading stops, if it stops before the end.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum JournalError {
    #[error(
        "the journal is torn at byte {offset}: its last record is incomplete; \
         the records before it are intact"
    )]
    Torn { offset: u64 },
    #[error(
        "the journal is corrupt at byte {offset}: {damage}; only the records before it can be used"
    )]
    Corrupt { offset: u64, damage: Damage },
    #[error("the journal cannot be read at byte {offset}: {why}")]
    Unreadable { offset: u64, why: &'static str },
    #[error("expected a Twinstep journal, got a different kind of file")]
    NotAJournal,
    #[error(
        "expected a journal of format {FORMAT_VERSION}, got format {found}; read it with the version that wrote it"
    )]
    FormatVersion { found: u32 },
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum Damage {
    #[error("the head of a record cannot be read: {0}")]
    Head(VarintError),
    #[error("unknown kind of record: {kind}")]
    Kind { kind: u8 },
    #[error(
        "the head of a record has a wrong checksum: expected {expected:#04x}, got {found:#04x}"
    )]
    HeadCheck { expected: u8, found: u8 },
    #[error("expected at most {max} bytes in a record of kind {kind}, got {bytes}")]
    Length { kind: u8, bytes: u64, max: usize },
    #[error(
        "the payload of a record has a wrong checksum: expected {expected:#010x}, got {found:#010x}"
    )]
    PayloadCheck { expected: u32, found: u32 },
    #[error("the payload of a record of kind {kind} cannot be decoded")]
    Payload { kind: u8 },
    #[error("expected one start record, at byte 0, got a second one")]
    SecondStart,
}

/// All records of a journal in memory. The iterator ends after the first error.
pub fn records(journal: &[u8]) -> impl Iterator<Item = Result<Entry<'_>, JournalError>> {
    let (mut reader, mut rest, mut failed) = (JournalReader::new(), journal, false);
    core::iter::from_fn(move || {
        if failed {
            return None;
        }
        let next = reader.read(&mut rest).transpose();
        failed = matches!(next, Some(Err(_)));
        next
    })
}

/// The largest size of an [`End`](Record::End) record, in bytes.
pub const TAIL_BYTES_MAX: usize = varint::BYTES_MAX + 1 + REASON_BYTES_MAX + 4;

/// The reason in the end record, if the journal seems to end with one. `tail` is the last [`TAIL_BYTES_MAX`] bytes of
/// the journal, or the whole journal.
///
/// This is a quick guess: checks are chained from the start, so none is verified here. If writing was interrupted,
/// bytes chosen by a player can look like an end record.
#[must_use]
pub fn guess_end_reason(tail: &[u8]) -> Option<&str> {
    (1..=REASON_BYTES_MAX).find_map(|bytes| {
        let (rest, _check) = tail.split_last_chunk::<4>()?;
        let (rest, reason) = rest.split_at_checked(rest.len().checked_sub(bytes)?)?;
        let (_check, rest) = rest.split_last()?;
        let head = varint::encode((bytes as u64) << 8 | u64::from(END));
        let is_end = rest.ends_with(&head);
        core::str::from_utf8(reason).ok().filter(|_| is_end)
    })
}

/// Returns `true` if a file starts like a journal, even a damaged or empty one.
#[must_use]
pub fn looks_like_journal(beginning: &[u8]) -> bool {
    let head = &beginning[..beginning.len().min(HEAD_BYTES_MAX + MAGIC.len())];
    // A disk that lost power leaves zeros instead of data.
    head.iter().all(|byte| *byte == 0) || head.windows(MAGIC.len()).any(|bytes| bytes == MAGIC)
}

/// The maximum size of a head and its check, in bytes. The first payload follows them.
const HEAD_BYTES_MAX: usize = varint::BYTES_MAX + 1;

/// Reads a journal record by record, from pieces of any size.
///
/// A reader does not hold bytes, only its position and the chain of checks. So a caller can read a large file through a
/// small buffer: after [`Torn`](JournalError::Torn), [`read`](Self::read) can be called again from the same position
/// with more bytes. Only at the end of the file does `Torn` mean a torn tail. [`read_from`](Self::read_from) does this.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct JournalReader {
    offset: u64,
    chain: u64,
}

impl Default for JournalReader {
    fn default() -> Self {
        JournalReader::new()
    }
}

impl JournalReader {
    #[must_use]
    pub fn new() -> JournalReader {
        JournalReader {
            offset: 0,
            chain: CHAIN_START,
        }
    }

    pub(super) fn at(offset: u64, chain: u64) -> JournalReader {
        JournalReader { offset, chain }
    }

    /// The offset of the next record, in bytes from the start of the journal.
    #[must_use]
    pub fn offset(&self) -> u64 {
        self.offset
    }

    /// Takes the next record from the front of `rest`, which must start at [`offset`](Self::offset). Returns `None` if
    /// `rest` is empty.
    ///
    /// # Errors
    /// [`JournalError`] if the record cannot be read. In that case, the positions of the reader and of `rest` are
    /// unchanged.
    pub fn read<'a>(&mut self, rest: &mut &'a [u8]) -> Result<Option<Entry<'a>>, JournalError> {
        let is_zeros = rest.first() == Some(&0) && rest.iter().all(|byte| *byte == 0);
        self.read_before(rest, is_zeros)
    }

    /// Reads the next record. Returns `None` at the end of the journal.
    ///
    /// # Errors
    /// [`JournalError`] if the record cannot be read. In that case, the reader's position is unchanged.
    pub fn read_from<'s>(
        &mut self,
        source: &'s mut (impl JournalSource + ?Sized),
    ) -> Result<Option<Entry<'s>>, JournalError> {
        let offset = self.offset;
        let unreadable = |super::SourceError(why)| JournalError::Unreadable { offset, why };
        let head = source.window(offset, HEAD_BYTES_MAX).map_err(unreadable)?;
        let (starts_with_zero, wanted) = (head.first() == Some(&0), record_bytes(head));
        // No record starts with a zero, and a power loss can leave any number of zeros.
        if starts_with_zero && ends_in_zeros(source, offset).map_err(unreadable)? {
            return Err(JournalError::Torn { offset });
        }
        let mut window = source.window(offset, wanted).map_err(unreadable)?;
        self.read_before(&mut window, false)
    }

    pub(crate) fn next_kind(&self, source: &mut (impl JournalSource + ?Sized)) -> Option<u8> {
        let mut head = source.window(self.offset, HEAD_BYTES_MAX).ok()?;
        varint::take(&mut head).ok().map(|head| head as u8)
    }

    /// Takes the next record. `is_zeros` is `true` if the rest of the journal consists of zeros.
    fn read_before<'a>(
        &mut self,
        rest: &mut &'a [u8],
        is_zeros: bool,
    ) -> Result<Option<Entry<'a>>, JournalError> {
        if rest.is_empty() {
            return Ok(None);
        }
        let offset = self.offset;
        let corrupt = |damage| JournalError::Corrupt { offset, damage };
        let Parsed {
            kind,
            payload,
            chain,
            after,
        } = self.frame(rest, is_zeros).map_err(|stop| match stop {
            Stop::Torn => JournalError::Torn { offset },
            // A file with a damaged first head is reported as not a journal.
            Stop::Damaged(Damage::Head(_) | Damage::Kind { .. } | Damage::HeadCheck { .. })
                if offset == 0 =>
            {
                JournalError::NotAJournal
            }
            Stop::Damaged(damage) => corrupt(damage),
        })?;
        if offset == 0 {
            // Before parsing: a start of another version may have other fields.
            match Start::format_version(payload) {
                Some(FORMAT_VERSION) => {}
                Some(found) => return Err(JournalError::FormatVersion { found }),
                None => return Err(JournalError::NotAJournal),
            }
        }
        let record = Record::parse(kind, payload).ok_or(corrupt(Damage::Payload { kind }))?;
        if matches!(record, Record::Start(_)) != (offset == 0) {
            return Err(if offset == 0 {
                JournalError::NotAJournal
            } else {
                corrupt(Damage::SecondStart)
            });
        }
        let bytes = rest.len() - after.len();
        *rest = after;
        self.offset += bytes as u64;
        self.chain = chain;
        Ok(Some(Entry {
            offset,
            bytes,
            record,
        }))
    }

    pub(super) fn chain(&self) -> u64 {
        self.chain
    }

    /// Finds the bounds of the record at the front of `bytes` and verifies its checks.
    fn frame<'a>(&self, bytes: &'a [u8], is_zeros: bool) -> Result<Parsed<'a>, Stop> {
        let mut rest = bytes;
        let head = varint::take(&mut rest).map_err(|error| match error {
            VarintError::Truncated => Stop::Torn,
            error => Stop::Damaged(Damage::Head(error)),
        })?;
        let head_chain = xxh3_64_with_seed(&bytes[..bytes.len() - rest.len()], self.chain);
        // A power loss can leave zeros instead of the last writes.
        if is_zeros {
            return Err(Stop::Torn);
        }
        let (&found, rest) = rest.split_first().ok_or(Stop::Torn)?;
        let expected = head_check(head_chain);
        if found != expected {
            return Err(Stop::Damaged(Damage::HeadCheck { expected, found }));
        }
        let (kind, payload_bytes) = (head as u8, head >> 8);
        let max = Record::payload_bytes_max(kind).ok_or(Stop::Damaged(Damage::Kind { kind }))?;
        let payload_bytes = usize::try_from(payload_bytes)
            .ok()
            .filter(|&bytes| bytes <= max)
            .ok_or(Stop::Damaged(Damage::Length {
                kind,
                bytes: payload_bytes,
                max,
            }))?;
        if payload_bytes == 0 {
            return Ok(Parsed {
                kind,
                payload: &[],
                chain: head_chain,
                after: rest,
            });
        }
        let (payload, rest) = rest.split_at_checked(payload_bytes).ok_or(Stop::Torn)?;
        let (found, after) = rest.split_first_chunk::<4>().ok_or(Stop::Torn)?;
        let chain = xxh3_64_with_seed(payload, head_chain);
        let (expected, found) = (payload_check(chain), u32::from_le_bytes(*found));
        if found != expected {
            return Err(Stop::Damaged(Damage::PayloadCheck { expected, found }));
        }
        Ok(Parsed {
            kind,
            payload,
            chain,
            after,
        })
    }
}

fn ends_in_zeros(
    source: &mut (impl JournalSource + ?Sized),
    mut at: u64,
) -> Result<bool, super::SourceError> {
    loop {
        let window = source.window(at, 1)?;
        if window.is_empty() {
            return Ok(true);
        } else if window.iter().any(|byte| *byte != 0) {
            return Ok(false);
        }
        at += window.len() as u64;
    }
}

/// The size of the record whose head is at the front of `window`, or enough bytes to show that there is no record.
fn record_bytes(window: &[u8]) -> usize {
    let mut rest = window;
    let Ok(head) = varint::take(&mut rest) else {
        return HEAD_BYTES_MAX;
    };
    let head_bytes = window.len() - rest.len() + 1;
    let longest = Record::payload_bytes_max(head as u8).unwrap_or(0);
    match usize::try_from(head >> 8) {
        Ok(payload) if (1..=longest).contains(&payload) => head_bytes + payload + 4,
        _ => head_bytes,
    }
}

struct Parsed<'a> {
    kind: u8,
    payload: &'a [u8],
    chain: u64,
    after: &'a [u8],
}

enum Stop {
    Torn,
    Damaged(Damage),
}
