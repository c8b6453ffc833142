use super::*;
use crate::identity::Role;
use crate::lineage::Ruling;
use alloc::string::String;
use alloc::vec;
use core::fmt::Write;
use proptest::prelude::*;
use twinstep_core::bounds::WORLD_BYTES_MAX;
use twinstep_core::ids::{PlayerId, Tick};

const START: Start<'static> = Start {
    game: "powderkeg",
    sim_version: 3,
    rules_digest: 0x0123_4567_89ab_cdef,
    build: "1.2.3-dev",
    started_unix_s: 1_700_000_000,
    command_delay: 2,
    by: WrittenBy::Server,
};

fn journal(records: &[Record<'_>]) -> Vec<u8> {
    let mut out = Vec::new();
    let mut writer = JournalWriter::start(&START, &mut out).unwrap();
    for record in records {
        writer.append(record, &mut out).unwrap();
    }
    out
}

fn read(bytes: &[u8]) -> (Vec<Entry<'_>>, Option<JournalError>) {
    let mut entries = Vec::new();
    for entry in super::records(bytes) {
        match entry {
            Ok(entry) => entries.push(entry),
            Err(error) => return (entries, Some(error)),
        }
    }
    (entries, None)
}

const ONE_OF_EACH: [Record<'static>; 10] = [
    Record::World {
        tick: Tick(0),
        bytes: b"world",
    },
    Record::Turn(b"frames"),
    Record::Idle,
    Record::Digest {
        tick: Tick(300),
        digest: 0xfedc_ba98_7654_3210,
    },
    Record::Ruling {
        ruling: Ruling::Below {
            lineage: 77,
            generation: 3,
            until_unix_s: 1_700_000_000,
        },
        role: Role::Player,
        identity: b"anna",
    },
    Record::Ruling {
        ruling: Ruling::MadeBefore { unix_ms: 78 },
        role: Role::Spectator,
        identity: b"anna",
    },
    Record::Seat {
        player: PlayerId(2),
        identity: b"anna",
    },
    Record::End { reason: "drained" },
    Record::Resumed {
        at_unix_s: 1_700_000_300,
        build: "1.2.4",
    },
    Record::Other {
        kind: 200,
        payload: b"later",
    },
];

#[test]
fn the_bytes_of_each_record_do_not_drift() {
    let bytes = journal(&ONE_OF_EACH);
    let (entries, end) = read(&bytes);
    assert_eq!(end, None);
    let mut golden = String::new();
    for entry in entries {
        let from = entry.offset as usize;
        for byte in &bytes[from..from + entry.bytes] {
            write!(golden, "{byte:02x}").unwrap();
        }
        golden.push('\n');
    }
    assert_eq!(golden, GOLDEN);
}

/// head · check · payload · check, for a start and for `ONE_OF_EACH`.
const GOLDEN: &str = "\
81500554774a0a0503efcdab896745230180e2cfaa06020009706f776465726b6567312e322e332d6465763f1ba1a2
820ce200776f726c64e02fed1d
830caf6672616d6573c36e3b32
0440
8514901032547698badcfeac020deee860
8632fd004d000000000000000300000000f1536500000000616e6e61398a1a83
861a66034e00000000000000616e6e61b3abf989
870a5102616e6e6145a26168
880e15647261696e6564a9306984
89142dace4cfaa06312e322e34b39bd646
c80bcc6c617465728cce8c8c
";

#[test]
fn an_idle_turn_costs_two_bytes() {
    assert_eq!(journal(&[Record::Idle; 10]).len() - journal(&[]).len(), 20);
}

/// A record of each limited kind, `more` bytes above its limit, together with that limit.
fn bounded(long: &[u8], more: usize) -> [(Record<'_>, usize); 6] {
    let text = core::str::from_utf8(long).unwrap();
    [
        (
            Record::World {
                tick: Tick::MAX,
                bytes: &long[..WORLD_BYTES_MAX + more],
            },
            WORLD_BYTES_MAX,
        ),
        (Record::Turn(&long[..TURN_BYTES_MAX + more]), TURN_BYTES_MAX),
        (
            Record::Ruling {
                ruling: Ruling::Below {
                    lineage: u64::MAX,
                    generation: u32::MAX,
                    until_unix_s: u64::MAX,
                },
                role: Role::Spectator,
                identity: &long[..IDENTITY_BYTES_MAX + more],
            },
            IDENTITY_BYTES_MAX,
        ),
        (
            Record::Seat {
                player: PlayerId(15),
                identity: &long[..IDENTITY_BYTES_MAX + more],
            },
            IDENTITY_BYTES_MAX,
        ),
        (
            Record::End {
                reason: &text[..REASON_BYTES_MAX + more],
            },
            REASON_BYTES_MAX,
        ),
        (
            Record::Other {
                kind: u8::MAX,
                payload: &long[..OTHER_BYTES_MAX + more],
            },
            OTHER_BYTES_MAX,
        ),
    ]
}

#[test]
fn a_record_over_its_limit_is_not_written() {
    let long = vec![b'x'; WORLD_BYTES_MAX + 1];
    let mut out = Vec::new();
    let mut writer = JournalWriter::start(&START, &mut out).unwrap();
    let before = out.len();
    for (record, max) in bounded(&long, 1) {
        let refused = WriteError::TooLong {
            kind: record.kind(),
            bytes: max + 1,
            max,
        };
        assert_eq!(writer.append(&record, &mut out), Err(refused));
    }
    assert_eq!(out.len(), before);
    writer.append(&Record::Idle, &mut out).unwrap();
    assert_eq!(read(&out).0.len(), 2, "the chain was not disturbed");
    let start = Start {
        game: core::str::from_utf8(&long[..257]).unwrap(),
        ..START
    };
    let refused = JournalWriter::start(&start, &mut Vec::new()).unwrap_err();
    let (bytes, max) = (257, GAME_BYTES_MAX);
    assert_eq!(
        refused,
        WriteError::TooLong {
            kind: 1,
            bytes,
            max
        }
    );
}

#[test]
fn the_largest_of_each_record_is_read_back() {
    let long = vec![b'x'; WORLD_BYTES_MAX];
    let text = core::str::from_utf8(&long).unwrap();
    let mut records = bounded(&long, 0).map(|(record, _)| record).to_vec();
    records.push(Record::Digest {
        tick: Tick::MAX,
        digest: u64::MAX,
    });
    let start = Start {
        game: &text[..GAME_BYTES_MAX],
        sim_version: u32::MAX,
        rules_digest: u64::MAX,
        build: &text[..BUILD_BYTES_MAX],
        started_unix_s: u64::MAX,
        command_delay: u8::MAX,
        by: WrittenBy::Client,
    };
    let mut bytes = Vec::new();
    let mut writer = JournalWriter::start(&start, &mut bytes).unwrap();
    for record in &records {
        writer.append(record, &mut bytes).unwrap();
    }
    let (entries, end) = read(&bytes);
    assert_eq!(end, None);
    assert!(entries[0].record == Record::Start(start));
    assert!(entries[1..].iter().map(|entry| entry.record).eq(records));
}

#[test]
fn a_record_in_the_wrong_place_is_not_written() {
    let mut out = Vec::new();
    let mut writer = JournalWriter::start(&START, &mut out).unwrap();
    let second = writer.append(&Record::Start(START), &mut out);
    assert_eq!(second, Err(WriteError::Misplaced { kind: 1 }));
    let disguised = writer.append(
        &Record::Other {
            kind: 2,
            payload: &[],
        },
        &mut out,
    );
    assert_eq!(disguised, Err(WriteError::Misplaced { kind: 2 }));
}

fn forged(kind: u8, payload: &[u8]) -> Vec<u8> {
    let head = varint::encode((payload.len() as u64) << 8 | u64::from(kind));
    let chain = xxh3_64_with_seed(&head, CHAIN_START);
    let mut bytes = [&head[..], &[head_check(chain)]].concat();
    if !payload.is_empty() {
        let chain = xxh3_64_with_seed(payload, chain);
        bytes.extend_from_slice(payload);
        bytes.extend_from_slice(&payload_check(chain).to_le_bytes());
    }
    bytes
}

#[test]
fn a_file_of_another_format_or_version_is_refused() {
    #[track_caller]
    fn check(bytes: &[u8], expected: JournalError) {
        assert_eq!(read(bytes), (vec![], Some(expected)));
    }
    check(b"#!/bin/sh\nexit 0\n", JournalError::NotAJournal);
    check(&forged(4, &[]), JournalError::NotAJournal);
    check(&forged(1, b"not the magic"), JournalError::NotAJournal);
    check(
        &forged(1, b"TwJ\n\x01and more"),
        JournalError::FormatVersion { found: 1 },
    );
    let damage = Damage::Payload { kind: 1 };
    check(
        &forged(1, b"TwJ\n\x05"),
        JournalError::Corrupt { offset: 0, damage },
    );
}

#[test]
fn a_record_in_the_wrong_format_is_corrupt() {
    #[track_caller]
    fn check(kind: u8, payload: &[u8], damage: Damage) {
        let mut bytes = Vec::new();
        let JournalWriter { chain, .. } = JournalWriter::start(&START, &mut bytes).unwrap();
        let offset = bytes.len() as u64;
        let head = varint::encode((payload.len() as u64) << 8 | u64::from(kind));
        let chain = xxh3_64_with_seed(&head, chain);
        bytes.extend_from_slice(&head);
        bytes.push(head_check(chain));
        bytes.extend_from_slice(payload);
        let chain = xxh3_64_with_seed(payload, chain);
        bytes.extend_from_slice(&payload_check(chain).to_le_bytes());
        let (entries, end) = read(&bytes);
        assert_eq!(
            (entries.len(), end),
            (1, Some(JournalError::Corrupt { offset, damage }))
        );
    }
    check(0, b"x", Damage::Kind { kind: 0 });
    check(
        4,
        b"x",
        Damage::Length {
            kind: 4,
            bytes: 1,
            max: 0,
        },
    );
    check(
        3,
        &[0; 65_537],
        Damage::Length {
            kind: 3,
            bytes: 65_537,
            max: 65_536,
        },
    );
    check(5, b"only 8 b", Damage::Payload { kind: 5 });
    check(6, b"short", Damage::Payload { kind: 6 });
    check(7, &[16, b'x'], Damage::Payload { kind: 7 });
    check(8, &[0xff], Damage::Payload { kind: 8 });
    let start = Record::Start(START).payload().unwrap();
    check(1, &[&start.0[..], start.1].concat(), Damage::SecondStart);
}

#[test]
fn swapped_records_are_corrupt() {
    let bytes = journal(&[Record::Turn(b"first"), Record::Turn(b"other")]);
    let (entries, _) = read(&bytes);
    let (at, size) = (entries[1].offset as usize, entries[1].bytes);
    let swapped = [&bytes[..at], &bytes[at + size..], &bytes[at..at + size]].concat();
    let (entries, end) = read(&swapped);
    assert_eq!(entries.len(), 1);
    assert!(
        matches!(end, Some(JournalError::Corrupt { offset, .. }) if offset == at as u64),
        "{end:?}"
    );
}

#[test]
fn a_tail_of_zeros_is_torn_and_zeros_elsewhere_are_corrupt() {
    let whole = journal(&[Record::Turn(b"frames")]);
    let offset = whole.len() as u64;
    for zeros in 1..50 {
        let torn = [&whole[..], &vec![0; zeros]].concat();
        assert_eq!(read(&torn).1, Some(JournalError::Torn { offset }));
    }
    let (_, end) = read(&[&whole[..], &[0, 0, 0, 1]].concat());
    assert!(matches!(end, Some(JournalError::Corrupt { .. })), "{end:?}");
}

#[test]
fn a_torn_journal_continues_after_its_last_whole_record() {
    let mut bytes = journal(&[Record::Turn(b"one"), Record::Turn(b"two")]);
    bytes.truncate(bytes.len() - 1);
    let (mut reader, mut rest) = (JournalReader::new(), &bytes[..]);
    while let Ok(Some(_)) = reader.read(&mut rest) {}
    let mut writer = JournalWriter::resume(&reader);
    bytes.truncate(reader.offset() as usize);
    writer
        .append(&Record::Turn(b"two again"), &mut bytes)
        .unwrap();
    let (entries, end) = read(&bytes);
    assert_eq!(end, None);
    let turns: Vec<Record<'_>> = entries[1..].iter().map(|entry| entry.record).collect();
    assert_eq!(turns, [Record::Turn(b"one"), Record::Turn(b"two again")]);
}

#[test]
fn a_journal_is_read_through_a_small_buffer() {
    let bytes = journal(&ONE_OF_EACH);
    let (mut reader, mut filled, mut seen) = (JournalReader::new(), 0, 0);
    while filled < bytes.len() || reader.offset() < filled as u64 {
        let mut buffer = &bytes[reader.offset() as usize..filled];
        match reader.read(&mut buffer) {
            Ok(Some(entry)) => {
                seen += usize::from(entry.record.kind() != 1);
            }
            Ok(None) | Err(JournalError::Torn { .. }) => filled += 1,
            Err(error) => panic!("{error}"),
        }
    }
    assert_eq!(seen, ONE_OF_EACH.len());
}

struct Narrow<'a>(&'a [u8]);

impl JournalSource for Narrow<'_> {
    fn window(&mut self, offset: u64, least: usize) -> Result<&[u8], SourceError> {
        let after = self.0.get(offset as usize..).unwrap_or_default();
        Ok(&after[..after.len().min(least)])
    }
}

/// Finding K3-B: each journal reader held the whole journal in memory.
#[test]
fn a_journal_reads_the_same_through_the_narrowest_window() {
    let whole = journal(&ONE_OF_EACH);
    let mut cases = vec![whole.clone()];
    for end in 0..whole.len() {
        cases.push(whole[..end].to_vec());
        let mut damaged = whole.clone();
        damaged[end] ^= 0x20;
        cases.push(damaged);
        for after in [&[0; 40][..], &[0, 0, 0, 7], &[0xff; 20]] {
            cases.push([&whole[..end], after].concat());
        }
    }
    for bytes in cases {
        let (entries, error) = read(&bytes);
        let (mut reader, mut narrow) = (JournalReader::new(), Narrow(&bytes));
        for entry in entries {
            assert_eq!(reader.read_from(&mut narrow), Ok(Some(entry)));
        }
        assert_eq!(reader.read_from(&mut narrow).err(), error);
    }
}

#[derive(Clone, Debug)]
struct Owned {
    kind: u8,
    number: u64,
    bytes: Vec<u8>,
    text: String,
}

impl Owned {
    fn record(&self) -> Record<'_> {
        let tick = Tick(self.number as u32);
        match self.kind {
            2 => Record::World {
                tick,
                bytes: &self.bytes,
            },
            3 => Record::Turn(&self.bytes),
            4 => Record::Idle,
            5 => Record::Digest {
                tick,
                digest: self.number,
            },
            6 => Record::Ruling {
                ruling: match self.number % 3 {
                    0 => Ruling::MadeBefore {
                        unix_ms: self.number,
                    },
                    _ => Ruling::Below {
                        lineage: self.number,
                        generation: self.number as u32,
                        until_unix_s: !self.number,
                    },
                },
                role: Role::of_seats((self.number % 2) as usize),
                identity: &self.bytes,
            },
            7 => Record::Seat {
                player: PlayerId((self.number % 16) as u8),
                identity: &self.bytes,
            },
            8 => Record::End { reason: &self.text },
            9 => Record::Resumed {
                at_unix_s: self.number,
                build: &self.text,
            },
            10 => Record::Reserved {
                player: PlayerId((self.number % 16) as u8),
                identity: &self.bytes,
            },
            11 => Record::Shell(&self.bytes),
            12 => Record::Label(&self.text),
            kind => Record::Other {
                kind,
                payload: &self.bytes,
            },
        }
    }
}

fn any_records() -> impl Strategy<Value = Vec<Owned>> {
    // Many idle turns, as in a real journal: their one-byte checks are the weak ones.
    let kind = prop_oneof![Just(4u8), Just(3u8), 2u8..=255];
    let bytes = proptest::collection::vec(any::<u8>(), 0..100);
    let one = (kind, any::<u64>(), bytes, "[a-zé]{0,20}");
    let one = one.prop_map(|(kind, number, bytes, text)| Owned {
        kind,
        number,
        bytes,
        text,
    });
    proptest::collection::vec(one, 0..30)
}

fn borrowed(records: &[Owned]) -> Vec<Record<'_>> {
    records.iter().map(Owned::record).collect()
}

proptest! {
    #[test]
    fn every_record_is_read_back_at_its_offset(records in any_records()) {
        let records = borrowed(&records);
        let bytes = journal(&records);
        let (entries, end) = read(&bytes);
        prop_assert_eq!(end, None);
        prop_assert_eq!(entries[0].record, Record::Start(START));
        prop_assert!(entries[1..].iter().map(|entry| entry.record).eq(records));
        let mut offset = 0;
        for entry in entries {
            prop_assert_eq!(entry.offset, offset);
            offset += entry.bytes as u64;
        }
        prop_assert_eq!(offset, bytes.len() as u64);
    }

    #[test]
    fn a_journal_cut_anywhere_keeps_its_whole_records_and_is_torn(records in any_records()) {
        let bytes = journal(&borrowed(&records));
        let (entries, _) = read(&bytes);
        for cut in 0..bytes.len() {
            let is_whole = |entry: &&Entry<'_>| entry.offset as usize + entry.bytes <= cut;
            let whole = entries.iter().take_while(is_whole).count();
            let begin = entries[whole].offset;
            let torn = (begin < cut as u64).then_some(JournalError::Torn { offset: begin });
            let (got, end) = read(&bytes[..cut]);
            prop_assert_eq!(&got[..], &entries[..whole]);
            prop_assert_eq!(end, torn);
        }
    }

    /// No record after the next payload is accepted: a payload's check misses damage only with a chance of 2⁻³².
    /// (Before it, one idle turn in 256 with a flipped bit passes.)
    #[test]
    fn a_flipped_bit_is_detected_at_the_next_payload_at_the_latest(records in any_records()) {
        let mut bytes = journal(&borrowed(&records));
        let (_, whole) = read(&bytes);
        prop_assert_eq!(whole, None);
        let payload_ends: Vec<u64> = super::records(&bytes)
            .map(Result::unwrap)
            .filter(|entry| entry.bytes > 3) // a head and its check alone
            .map(|entry| entry.offset + entry.bytes as u64)
            .collect();
        for bit in 0..bytes.len() * 8 {
            let flipped_at = bit / 8;
            bytes[flipped_at] ^= 1 << (bit % 8);
            let good_until = match payload_ends.iter().find(|&&end| end > flipped_at as u64) {
                Some(&end) => end,
                None => bytes.len() as u64 + 1,
            };
            let (entries, end) = read(&bytes);
            let read_until = entries.last().map_or(0, |entry| entry.offset + entry.bytes as u64);
            prop_assert!(read_until < good_until, "bit {bit}: read until {read_until}, then {end:?}");
            bytes[flipped_at] ^= 1 << (bit % 8);
        }
    }

    #[test]
    fn a_flipped_bit_in_an_idle_turn_is_missed_by_its_own_check_once_in_256(seed: u64) {
        let id = seed.to_le_bytes();
        let bytes = journal(&[&[Record::Turn(&id)][..], &[Record::Idle; 512]].concat());
        let mut missed = 0;
        let mut flipped = bytes.clone();
        let first = bytes.len() - 1_024;
        for n in 0..512 {
            let at = first + 2 * n;
            flipped[at] ^= 1;
            let end = read(&flipped).1;
            let offset = at as u64;
            let at_once = matches!(end, Some(JournalError::Corrupt { offset: o, .. }) if o == offset);
            missed += usize::from(!at_once);
            flipped[at] ^= 1;
        }
        // On average 2; more than 16 has a chance of 10⁻¹⁰.
        prop_assert!(missed <= 16, "{missed}");
    }

    #[test]
    fn hostile_bytes_never_panic(bytes in proptest::collection::vec(any::<u8>(), 0..200)) {
        read(&bytes);
        let behind_a_start = [&journal(&[])[..], &bytes].concat();
        prop_assert!(!read(&behind_a_start).0.is_empty());
    }
}

#[test]
fn an_end_reason_is_found_only_in_the_last_bytes() {
    let long = "x".repeat(REASON_BYTES_MAX);
    for reason in ["a", "over", &long] {
        let bytes = journal(&[Record::Turn(b"frames"), Record::End { reason }]);
        let tail = &bytes[bytes.len().saturating_sub(TAIL_BYTES_MAX)..];
        assert_eq!(guess_end_reason(tail), Some(reason));
        assert_eq!(guess_end_reason(&bytes[..bytes.len() - 1]), None);
    }
    for record in ONE_OF_EACH {
        let bytes = journal(&[record]);
        let is_end = matches!(record, Record::End { .. });
        assert_eq!(guess_end_reason(&bytes).is_some(), is_end, "{record:?}");
    }
    assert_eq!(guess_end_reason(b""), None);
}

#[test]
fn damaged_journals_are_recognised_and_other_files_are_not() {
    let mut bytes = journal(&[]);
    assert!(looks_like_journal(&bytes));
    for at in 0..2 {
        bytes[at] ^= 0x55;
        assert!(looks_like_journal(&bytes));
    }
    assert!(looks_like_journal(&[0; 64]));
    assert!(!looks_like_journal(b"#!/bin/sh\nexit 0\n"));
    assert!(!looks_like_journal(b"hello"));
}

/// Finding O7: zeros and junk after the last record are distinguished from damage in the middle.
#[test]
fn records_after_damage_are_found_and_junk_is_not_mistaken_for_records() {
    assert_eq!(remains(&mut &[0; 5_000], 0).unwrap(), None);
    let mut junk = twinstep_core::Mwc::seed(7);
    for _ in 0..50 {
        let bytes: Vec<u8> = (0..3_000).map(|_| junk.below(256) as u8).collect();
        assert_eq!(remains(&mut &bytes, 0).unwrap(), None);
    }
    let mut records = vec![Record::Turn(b"frames"); 40];
    records.push(Record::Digest {
        tick: Tick(500),
        digest: 7,
    });
    records.extend([Record::Idle; 30]);
    let bytes = journal(&records);
    let after = read(&bytes).0[1].offset as usize;
    let whole = Remains {
        records: 71,
        turns: 70,
        newest: Some(Tick(500)),
    };
    assert_eq!(remains(&mut &bytes, after as u64).unwrap(), Some(whole));
    // An altered payload keeps its shape; an altered head does not.
    for at in [after + 4, after] {
        let mut bytes = bytes.clone();
        bytes[at] ^= 0x40;
        let found = remains(&mut &bytes, after as u64).unwrap().unwrap();
        assert!(
            found.turns >= 69 && found.newest == Some(Tick(500)),
            "{found:?}"
        );
    }
    // The last record alone.
    let last = read(&bytes).0.last().unwrap().offset as usize;
    assert_eq!(remains(&mut &bytes, last as u64).unwrap().unwrap().turns, 1);
}
