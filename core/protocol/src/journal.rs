//! The record format of a match's file: its journal, which is also its replay.
//!
//! Invariants: a record is read whole or not at all. Checksums are chained through all earlier records, so an altered,
//! moved or spliced-in record is an error at that record or at the next payload. A turn without events costs 2 bytes,
//! if it has as many ticks as the turn before.
//!
//! ```text
//!  file     Start · World · Turn · Idle · Idle · … · Digest · World · …                 · End
//!           after a crash: the whole records · Resumed · World · Turn · …
//!  record   head: varint (payload length << 8 | kind) · check u8 [· payload · check u32]
//!                                                                ╰─ only if there is a payload
//!  chain    seed ─► xxh3(head) ─► xxh3(payload) ─► xxh3(next head) ─► …    a check is the low bytes
//! ```
//!
//! Undetected damage: a head's one-byte check misses damage with probability 1/256, and a payload's four-byte check
//! with probability 2⁻³². All 64 bits seed the next check, so every later check tests for missed damage again: after n
//! idle turns it is still missed with probability 256⁻ⁿ, and after one payload with probability 2⁻³². The digests
//! inside the journal detect the rest.
//!
//! No I/O here: [`JournalWriter`] appends to a `Vec`, [`JournalReader`] reads from slices or from a [`JournalSource`].
//!
//! ```
//! use twinstep_core::Tick;
//! use twinstep_protocol::journal::{self, JournalWriter, Record, Start};
//! let start = Start { game: "powderkeg", sim_version: 1, rules_digest: 7, build: "dev", started_unix_s: 0, command_delay: 0,
//!     by: journal::WrittenBy::Server };
//! let mut file = Vec::new();
//! let mut writer = JournalWriter::start(&start, &mut file)?;
//! writer.append(&Record::World { tick: Tick(0), bytes: b"world" }, &mut file)?;
//! writer.append(&Record::Idle, &mut file)?;
//! let kinds: Vec<u8> = journal::records(&file).map(|entry| Ok(entry?.record.kind())).collect::<Result<_, journal::JournalError>>()?;
//! assert_eq!(kinds, [1, 2, 4]);
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```

use alloc::vec::Vec;

use xxhash_rust::xxh3::xxh3_64_with_seed;

use crate::varint;

mod chain;
mod reader;
mod record;
mod remains;
mod source;

use chain::{CHAIN_START, head_check, payload_check};
pub use reader::{
    Damage, Entry, JournalError, JournalReader, TAIL_BYTES_MAX, guess_end_reason,
    looks_like_journal, records,
};
pub use record::{
    BUILD_BYTES_MAX, FORMAT_VERSION, GAME_BYTES_MAX, IDENTITY_BYTES_MAX, LABEL_BYTES_MAX,
    OTHER_BYTES_MAX, REASON_BYTES_MAX, Record, Start, TURN_BYTES_MAX, WriteError, WrittenBy,
};
pub use remains::{Remains, remains};
pub use source::{JournalSource, SourceError, UpTo};

pub const EXTENSION: &str = "journal";

/// Appends records to a journal's bytes, and keeps the chain of checks.
#[derive(Clone, Debug)]
pub struct JournalWriter {
    offset: u64,
    chain: u64,
}

impl JournalWriter {
    /// Starts a journal with its first record.
    ///
    /// # Errors
    /// [`WriteError::TooLong`] if the record is too long. In that case no byte is written.
    pub fn start(start: &Start<'_>, out: &mut Vec<u8>) -> Result<JournalWriter, WriteError> {
        let mut writer = JournalWriter {
            offset: 0,
            chain: CHAIN_START,
        };
        writer.write(&Record::Start(*start), out)?;
        Ok(writer)
    }

    /// Continues after the last record that `reader` has read, for example after a crash. The caller must cut off any
    /// bytes after that record.
    #[must_use]
    pub fn resume(reader: &JournalReader) -> JournalWriter {
        JournalWriter {
            offset: reader.offset(),
            chain: reader.chain(),
        }
    }

    /// A reader positioned at the next record to be written.
    #[must_use]
    pub fn reader(&self) -> JournalReader {
        JournalReader::at(self.offset, self.chain)
    }

    /// Appends one record to `out`, which need not contain the earlier ones. Returns the record's size in bytes.
    ///
    /// # Errors
    /// [`WriteError`] if the record cannot be written. In that case no byte is written.
    ///
    /// # Panics
    /// If a seat's player is not below [`PLAYERS_MAX`](twinstep_core::bounds::PLAYERS_MAX).
    pub fn append(&mut self, record: &Record<'_>, out: &mut Vec<u8>) -> Result<usize, WriteError> {
        match record {
            Record::Start(_) => Err(WriteError::Misplaced {
                kind: record.kind(),
            }),
            _ => self.write(record, out),
        }
    }

    fn write(&mut self, record: &Record<'_>, out: &mut Vec<u8>) -> Result<usize, WriteError> {
        let begin = out.len();
        let (fields, tail) = record.payload()?;
        let payload_bytes = fields.len() + tail.len();
        let head = varint::encode((payload_bytes as u64) << 8 | u64::from(record.kind()));
        let head_chain = xxh3_64_with_seed(&head, self.chain);
        out.extend_from_slice(&head);
        // The head has a check of its own, so that a reader can trust the length before it reads the payload.
        out.push(head_check(head_chain));
        self.chain = head_chain;
        if payload_bytes > 0 {
            let payload = out.len();
            out.extend_from_slice(&fields);
            out.extend_from_slice(tail);
            self.chain = xxh3_64_with_seed(&out[payload..], head_chain);
            out.extend_from_slice(&payload_check(self.chain).to_le_bytes());
        }
        self.offset += (out.len() - begin) as u64;
        Ok(out.len() - begin)
    }
}

#[cfg(test)]
mod tests;
