//! A client's tape: the guesses and the picture of a session, for a page that compares them with the match's journal.
//!
//! ```text
//!  file     magic · record · record · …          record   varint (length) · TapeRecord
//! ```
//!
//! A tape has no checksums: it only explains a session, and no match is resumed from it. Values of the game are text,
//! at most 128 bytes each, so that a tape can be read without the game. A torn last record is skipped.

use alloc::string::String;
use alloc::vec::Vec;

use serde::{Deserialize, Serialize};
use twinstep_core::{PlayerId, Tick, codec};

use crate::varint;

// The end of a tape's file name.
pub const EXTENSION: &str = "tape";
// The first bytes of a tape. The third is the version of the format.
pub const MAGIC: [u8; 4] = *b"Tw1\n";
pub const RECORD_BYTES_MAX: usize = 4 << 10;

// The wrongly assumed part of a frame.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub enum FramePart {
    Roster,
    Outcome,
    OwnCommand,
    Command,
    Input,
    Withheld,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub enum TapeEvent {
    Joined,
    Differs,
    Desync,
    Healed,
    Refused,
    Given,
    Connection,
    Fault,
}

// A field whose shown value differs from the rebuilt one.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct ShownField {
    pub path: String,
    pub shown: String,
    pub rebuilt: String,
}

// A loop of the step. Of its items in rebuilt ticks so far, `taken` reused a result and `run` were run.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct LoopShare {
    pub name: String,
    pub taken: u64,
    pub run: u64,
}

// One record. Records follow each other in the order in which the client saw them.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub enum TapeRecord {
    // The game of the tape. Always the first record.
    Start {
        game: String,
        sim_version: u32,
        rules_digest: u64,
        build: String,
    },
    // The players of this session from here onwards.
    Seats(Vec<PlayerId>),
    // The next ticks of both worlds after an advance, and the newest margin that the server reported.
    Advanced {
        authority: Tick,
        shown: Tick,
        margin: Option<i32>,
    },
    // The frame of `tick` was confirmed, and the shown prediction had assumed something else.
    Assumed {
        tick: Tick,
        part: FramePart,
        player: Option<PlayerId>,
        assumed: String,
    },
    // Rebuilds caused by one part of a frame, and the ticks simulated again.
    Rebuilt {
        part: FramePart,
        player: Option<PlayerId>,
        rebuilds: u32,
        ticks: u32,
    },
    // A rebuild replaced the shown world of `tick`.
    Corrected {
        tick: Tick,
        fields: Vec<ShownField>,
    },
    Event {
        at: Tick,
        kind: TapeEvent,
        text: String,
    },
    Loops(Vec<LoopShare>),
    // The number of records dropped because the program did not fetch any for too long.
    Lost {
        records: u64,
    },
}

impl TapeRecord {
    // Appends the record. Returns `false`, and appends nothing, if it is too long.
    #[must_use]
    pub fn append(&self, out: &mut Vec<u8>) -> bool {
        let mut bytes = Vec::new();
        if codec::append(self, &mut bytes).is_err() || bytes.len() > RECORD_BYTES_MAX {
            return false;
        }
        out.extend_from_slice(&varint::encode(bytes.len() as u64));
        out.extend_from_slice(&bytes);
        true
    }
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum TapeError {
    #[error("expected a tape written by a client, but the file does not start like one")]
    NotATape,
    #[error("the tape's record at byte {offset} cannot be read: the file is damaged there")]
    Damaged { offset: usize },
}

// The records of a tape, up to its end or to a torn last record.
//
// # Errors
// [`TapeError::NotATape`] if the file is not a tape. If a record cannot be read, the last item is an error with its
// offset.
pub fn records(file: &[u8]) -> Result<Records<'_>, TapeError> {
    let rest = file.strip_prefix(&MAGIC).ok_or(TapeError::NotATape)?;
    Ok(Records {
        length: file.len(),
        rest,
    })
}

#[derive(Clone, Debug)]
pub struct Records<'a> {
    length: usize,
    rest: &'a [u8],
}

impl Iterator for Records<'_> {
    type Item = Result<TapeRecord, TapeError>;

    fn next(&mut self) -> Option<Self::Item> {
        let offset = self.length - self.rest.len();
        let mut rest = self.rest;
        self.rest = &[];
        let bytes = match varint::take(&mut rest) {
            Ok(bytes) => bytes,
            Err(varint::VarintError::Truncated) => return None,
            Err(_) => return Some(Err(TapeError::Damaged { offset })),
        };
        if bytes > RECORD_BYTES_MAX as u64 {
            return Some(Err(TapeError::Damaged { offset }));
        }
        let (record, after) = rest.split_at_checked(bytes as usize)?;
        let Ok(record) = codec::decode_whole(record) else {
            return Some(Err(TapeError::Damaged { offset }));
        };
        self.rest = after;
        Some(Ok(record))
    }
}

#[cfg(test)]
mod tests {
    use alloc::string::ToString;

    use super::*;

    fn tape() -> (Vec<u8>, Vec<usize>) {
        let mut file = MAGIC.to_vec();
        let mut ends = Vec::new();
        for n in 0..40 {
            let record = TapeRecord::Assumed {
                tick: Tick(n * 100),
                part: FramePart::Input,
                player: Some(PlayerId(3)),
                assumed: "x".repeat(n as usize),
            };
            assert!(record.append(&mut file));
            ends.push(file.len());
        }
        (file, ends)
    }

    #[test]
    fn a_torn_tape_is_read_up_to_its_last_whole_record() {
        let (file, ends) = tape();
        for cut in MAGIC.len()..=file.len() {
            let whole = ends.iter().filter(|end| **end <= cut).count();
            let read: Result<Vec<_>, _> = records(&file[..cut]).unwrap().collect();
            assert_eq!(read.unwrap().len(), whole, "cut at {cut}");
        }
    }

    // Law *Hostile wire*.
    #[test]
    fn a_corrupted_tape_ends_with_an_error_and_never_panics() {
        let (file, _) = tape();
        for bit in MAGIC.len() * 8..file.len() * 8 {
            let mut spoiled = file.clone();
            spoiled[bit / 8] ^= 1 << (bit % 8);
            let read = records(&spoiled).unwrap();
            let errors = read.filter(Result::is_err).count();
            assert!(errors <= 1);
        }
        assert!(matches!(records(b"TwJ\n"), Err(TapeError::NotATape)));
        let long = [MAGIC.as_slice(), &[0xff, 0xff, 0x7f]].concat();
        let error = records(&long).unwrap().next().unwrap().unwrap_err();
        assert!(error.to_string().contains("byte 4"), "{error}");
    }

    #[test]
    fn an_oversized_record_is_not_appended() {
        let mut out = Vec::new();
        let record = TapeRecord::Event {
            at: Tick(0),
            kind: TapeEvent::Fault,
            text: "x".repeat(RECORD_BYTES_MAX),
        };
        assert!(!record.append(&mut out) && out.is_empty());
    }
}
