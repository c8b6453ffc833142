//! Journals as files: one process writes at a time, torn ends are cut off, and the right match of a folder is
//! continued.

use std::fs;
use std::io::Write;
use std::path::Path;
use std::sync::Arc;
use std::time::Duration;
use twinstep_protocol::identity::{Identity, Role};
use twinstep_protocol::lineage::Lineages;

use twinstep_core::testing::doc::Counter;
use twinstep_core::{Key, Tick, World};
use twinstep_host::{
    Durability, Journal, JournalFileError, LeftAlone, Unfinished, newest_unfinished,
};
use twinstep_ops::Checkup;
use twinstep_protocol::journal::{
    JournalError, JournalSource, JournalWriter, Record, SourceError, WrittenBy, records,
};
use twinstep_protocol::packet::closed::CloseCode;
use twinstep_protocol::packet::hello::Hello;
use twinstep_protocol::replay::doc;
use twinstep_protocol::replay::{Index, Recorder};
use twinstep_server::{Decision, HookContext, Match, MatchConfig, Output};

use crate::folder::Folder;

type Ask = twinstep_core::Never;

fn config(unix_time: u64) -> MatchConfig {
    MatchConfig {
        unix_time,
        ..MatchConfig::action()
    }
}

fn no_resolver(_: &HookContext<'_, Counter>, _: Key, _: &Ask) -> Decision<Ask> {
    Decision::Unanswered
}

fn drain(match_: &mut Match<Counter>, journal: &mut Journal) {
    while let Some(output) = match_.poll() {
        if let Output::Journal(bytes) = output {
            journal.append(bytes).unwrap();
        }
    }
    journal.settle().unwrap();
}

/// Writes the journal file of a match that started at `unix_time` and ran for `seconds`. With `end`, the match is over.
fn played(path: &Path, unix_time: u64, seconds: u64, end: bool) -> Tick {
    let mut match_ = Match::new(
        config(unix_time),
        Counter::default(),
        Arc::new(()),
        no_resolver,
    )
    .unwrap();
    match_.keep_journal().unwrap();
    match_.revoke(&Identity::new("anna", Role::Player), unix_time);
    let mut journal = Journal::create(path).unwrap().durability(Durability::Power);
    for ms in 0..seconds * 1_000 {
        match_.advance(Duration::from_millis(ms));
        drain(&mut match_, &mut journal);
    }
    if end {
        match_.close(CloseCode::MatchOver);
        drain(&mut match_, &mut journal);
    }
    match_.world().tick()
}

fn resume(path: &Path) -> Result<(Match<Counter>, Journal), JournalFileError> {
    Journal::resume(path, config(9), Arc::new(()), no_resolver)
}

#[test]
fn a_torn_journal_is_cut_and_resumed_by_only_one_process() {
    let folder = Folder::new("torn");
    let path = folder.file("a.journal");
    let tick = played(&path, 5, 3, false);
    let sound = fs::metadata(&path).unwrap().len();
    let mut bytes = fs::read(&path).unwrap();
    bytes.extend_from_slice(&[0x83, 0x20]); // A turn's header, cut off.
    fs::write(&path, &bytes).unwrap();

    let (mut match_, mut journal) = resume(&path).unwrap();
    let revoked = |match_: &Match<Counter>, role| {
        let of = match_.lineages().get(&Identity::new("anna", role));
        of.map(Lineages::issued_since_unix_ms)
    };
    assert_eq!(revoked(&match_, Role::Player), Some(5));
    match_.revoke(&Identity::new("anna", Role::Player), 4);
    match_.revoke(&Identity::new("anna", Role::Spectator), 3);
    assert!(tick - match_.world().tick() < 2);
    assert_eq!(
        fs::metadata(&path).unwrap().len(),
        sound,
        "the torn end is gone"
    );
    // A second process, while this one lives.
    let second = resume(&path).err().unwrap();
    assert!(matches!(second, JournalFileError::InUse { .. }), "{second}");

    for ms in 0..12_000 {
        match_.advance(Duration::from_millis(ms));
        drain(&mut match_, &mut journal);
    }
    drop(journal);
    let bytes = fs::read(&path).unwrap();
    let index = Index::scan(&bytes).unwrap();
    assert_eq!((index.resumes, index.stopped), (1, None));
    // The match is resumed once more.
    let before = match_.world().tick();
    let (match_, _journal) = resume(&path).unwrap();
    assert_eq!(revoked(&match_, Role::Player), Some(5));
    assert_eq!(revoked(&match_, Role::Spectator), Some(3));
    assert!(before - match_.world().tick() < 2);
}

/// A player who was told that a match had moved was refused permanently, because the match's journal was still locked.
#[test]
fn a_resume_waits_for_a_journal_lock_about_to_be_released() {
    let folder = Folder::new("soon");
    let path = folder.file("a.journal");
    played(&path, 5, 3, false);
    let (match_, journal) = resume(&path).unwrap();
    std::thread::scope(|scope| {
        scope.spawn(move || {
            std::thread::sleep(Duration::from_millis(300));
            drop((match_, journal));
        });
        resume(&path).unwrap();
    });
}

#[test]
fn damaged_journals_and_finished_matches_are_not_resumed() {
    let folder = Folder::new("damage");
    let (over, hurt) = (folder.file("over.journal"), folder.file("hurt.journal"));
    played(&over, 1, 2, true);
    let refused = resume(&over).err().unwrap().to_string();
    assert!(refused.contains("the match is over"), "{refused}");
    played(&hurt, 1, 2, false);
    let mut bytes = fs::read(&hurt).unwrap();
    let middle = bytes.len() / 2;
    bytes[middle] ^= 1;
    fs::write(&hurt, &bytes).unwrap();
    let refused = resume(&hurt).err().unwrap().to_string();
    assert!(
        refused.contains("corrupt at byte") && refused.contains("hurt.journal"),
        "{refused}"
    );
    assert_eq!(fs::read(&hurt).unwrap(), bytes, "it is left as it is");
}

#[test]
fn the_newest_interrupted_match_is_resumed_and_the_others_are_left_alone() {
    let folder = Folder::new("folder");
    let hello = Hello::of::<Counter>(&(), "").unwrap();
    let found = newest_unfinished(&folder.0, &hello).unwrap();
    assert!(found.newest.is_none() && found.left_alone.is_empty());

    played(&folder.file("z-oldest.journal"), 100, 1, false);
    played(&folder.file("b-cut-off.journal"), 200, 1, false);
    played(&folder.file("a-over.journal"), 300, 1, true);
    fs::write(folder.file("empty.journal"), b"").unwrap();
    fs::write(folder.file("notes.txt"), b"not a journal").unwrap();
    let found = newest_unfinished(&folder.0, &hello).unwrap();
    assert_eq!(found.newest, Some(folder.file("b-cut-off.journal")));
    let [(path, LeftAlone::Ended(reason)), (_, LeftAlone::Empty)] = &found.left_alone[..] else {
        panic!("{:?}", found.left_alone);
    };
    assert_eq!(
        (path, &reason[..]),
        (&folder.file("a-over.journal"), "the match is over")
    );

    // A program with other rules does not find a match to continue, and gets the reason.
    let mut other = hello.clone();
    other.rules ^= 1;
    let found = newest_unfinished(&folder.0, &other).unwrap();
    assert_eq!(found.newest, None);
    assert_eq!(found.left_alone.len(), 4);
    let why = found.left_alone[0].1.to_string();
    assert!(
        why.contains("counter") && why.contains("other rules"),
        "{why}"
    );
    assert!(
        found
            .left_alone
            .iter()
            .any(|(_, why)| *why == LeftAlone::Empty)
    );
}

fn why_of(found: &Unfinished, path: &Path) -> LeftAlone {
    let mut left = found.left_alone.iter();
    left.find(|(left, _)| left == path).unwrap().1.clone()
}

/// Finding H11: one foreign file, or one of another format, stopped a server.
#[test]
fn foreign_files_in_the_folder_do_not_stop_a_server() {
    let folder = Folder::new("foreign");
    let hello = Hello::of::<Counter>(&(), "").unwrap();
    let ours = folder.file("ours.journal");
    played(&ours, 100, 1, false);
    let (text, older) = (folder.file("text.journal"), folder.file("older.journal"));
    fs::write(&text, b"hello").unwrap();
    // The start of a file in format version 1.
    let mut other_format =
        b"\x81\x4e\xeaTwJ\n\x01\x03\xef\xcd\xab\x89\x67\x45\x23\x01\x80\xe2\xcf\xaa\x06\x02\x09"
            .to_vec();
    other_format.extend_from_slice(b"powderkeg1.2.3-dev\x5b\xa1\x65\x4f");
    fs::write(&older, other_format).unwrap();
    let found = newest_unfinished(&folder.0, &hello).unwrap();
    assert_eq!(found.newest, Some(ours.clone()));
    let foreign = LeftAlone::Foreign(JournalError::NotAJournal);
    assert_eq!(why_of(&found, &text), foreign);
    let format = LeftAlone::Foreign(JournalError::FormatVersion { found: 1 });
    assert_eq!(why_of(&found, &older), format);
    assert!(foreign.is_strange());

    // A journal of this version with damaged first bytes is not taken for a foreign file.
    let mut bytes = fs::read(&ours).unwrap();
    bytes[1] ^= 1;
    fs::write(&ours, bytes).unwrap();
    let refused = newest_unfinished(&folder.0, &hello).unwrap_err();
    assert!(
        matches!(refused, JournalFileError::Damaged { .. }),
        "{refused}"
    );
}

/// Finding O8: a journal cut before its first world was ignored silently, and a new match was started.
#[test]
fn a_journal_cut_before_its_first_world_is_never_ignored() {
    let folder = Folder::new("headless");
    let hello = Hello::of::<Counter>(&(), "").unwrap();
    let (older, cut) = (folder.file("older.journal"), folder.file("cut.journal"));
    played(&older, 100, 1, false);
    played(&cut, 200, 1, false);
    let whole = fs::read(&cut).unwrap();
    let world = Index::scan(&whole).unwrap().worlds[0].offset() as usize;
    for length in [1, world / 2, world, world + 3] {
        fs::write(&cut, &whole[..length]).unwrap();
        let refused = newest_unfinished(&folder.0, &hello).unwrap_err();
        let is_cut = matches!(&refused, JournalFileError::NoWorld { path } if *path == cut);
        assert!(is_cut, "{length} bytes: {refused}");
        assert!(resume(&cut).is_err());
    }
    fs::write(&cut, vec![0; world]).unwrap();
    let refused = newest_unfinished(&folder.0, &hello).unwrap_err();
    assert!(
        matches!(refused, JournalFileError::NoWorld { .. }),
        "{refused}"
    );
}

/// Finding H4: a client's recording was continued as the server's match.
#[test]
fn a_clients_recording_is_not_resumed() {
    let folder = Folder::new("recording");
    let hello = Hello::of::<Counter>(&(), "").unwrap();
    let (ours, theirs) = (folder.file("ours.journal"), folder.file("theirs.journal"));
    played(&ours, 100, 1, false);
    let world = World::new(Counter::default(), Tick(0));
    let mut bytes = Vec::new();
    Recorder::start(WrittenBy::Client, &hello, 200, 0, &world, &mut bytes).unwrap();
    fs::write(&theirs, bytes).unwrap();
    let found = newest_unfinished(&folder.0, &hello).unwrap();
    assert_eq!(found.newest, Some(ours));
    assert_eq!(why_of(&found, &theirs), LeftAlone::Recording);
    let refused = resume(&theirs).err().unwrap().to_string();
    assert!(refused.contains("a client recorded"), "{refused}");
}

/// Finding K10: a cleanly ended server recorded that its match was over.
#[test]
fn a_drained_match_can_be_resumed_where_it_stopped() {
    for code in [CloseCode::Draining, CloseCode::Restarting { after_s: 5 }] {
        let folder = Folder::new("drained");
        let path = folder.file("a.journal");
        let mut match_ =
            Match::new(config(7), Counter::default(), Arc::new(()), no_resolver).unwrap();
        match_.keep_journal().unwrap();
        let mut journal = Journal::create(&path).unwrap();
        for ms in 0.. {
            match_.advance(Duration::from_millis(ms));
            drain(&mut match_, &mut journal);
            if ms > 3_000 && match_.is_between_turns() {
                break;
            }
        }
        let (tick, digest) = (match_.world().tick(), match_.digest());
        match_.close(code);
        drain(&mut match_, &mut journal);
        drop(journal);
        let bytes = fs::read(&path).unwrap();
        let index = Index::scan(&bytes).unwrap();
        assert_eq!(index.worlds.last().unwrap().tick, tick, "its last world");
        let hello = Hello::of::<Counter>(&(), "").unwrap();
        let found = newest_unfinished(&folder.0, &hello).unwrap();
        assert_eq!(found.newest, Some(path.clone()));
        let (match_, _) = resume(&path).unwrap();
        assert_eq!((match_.world().tick(), match_.digest()), (tick, digest));
    }
}

/// Finding H8: the disk had the bytes, but not the file's name in its folder.
#[cfg(unix)]
#[test]
fn durable_files_have_their_directory_entry_on_disk() {
    let folder = Folder::new("named");
    let (here, gone) = (folder.file("here"), folder.file("gone"));
    for (durability, is_missed) in [(Durability::Power, true), (Durability::Process, false)] {
        fs::create_dir(&here).unwrap();
        let journal = Journal::create(here.join("a.journal")).unwrap();
        let mut journal = journal.durability(durability);
        // The file is still written, but its name leads nowhere.
        fs::rename(&here, &gone).unwrap();
        journal.append(b"bytes").unwrap();
        assert_eq!(journal.settle().is_err(), is_missed, "{durability:?}");
        fs::remove_dir_all(&gone).unwrap();
    }
}

/// A server that resumed and ran the match between the check and the repair lost its records in the cut.
#[test]
fn a_journal_written_to_since_it_was_scanned_is_not_cut() {
    let folder = Folder::new("repair");
    let path = folder.file("1.journal");
    played(&path, 1, 2, false);
    let mut file = fs::OpenOptions::new().append(true).open(&path).unwrap();
    file.write_all(&[0; 100]).unwrap();
    let checkup = Checkup::check_file::<Counter>(&path).unwrap();
    assert!(checkup.harm.is_some());
    // Another program has written to it.
    file.write_all(b"more").unwrap();
    drop(file);
    let before = fs::read(&path).unwrap();
    let refused = checkup.repair(&path);
    assert!(
        matches!(refused, Err(JournalFileError::Changed { .. })),
        "{refused:?}"
    );
    assert!(fs::read(&path).unwrap() == before);
    assert_eq!(fs::read_dir(&folder.0).unwrap().count(), 1, "no copy");

    let kept = Checkup::check_file::<Counter>(&path)
        .unwrap()
        .repair(&path)
        .unwrap();
    assert!(fs::read(kept).unwrap() == before);
    resume(&path).unwrap();
}

/// Finding O3-13: a pipe in the folder of journals blocked the start silently, and links were written through.
#[cfg(all(unix, not(target_vendor = "apple")))]
#[test]
fn irregular_files_in_the_folder_are_skipped_and_reported() {
    let folder = Folder::new("strange");
    let pipe = folder.file("match-1-1.journal");
    // No process is started for it: until its `exec` it would hold the locks of other tests.
    rustix::fs::mkfifoat(rustix::fs::CWD, &pipe, rustix::fs::Mode::RWXU).unwrap();
    let link = folder.file("match-1-2.journal");
    std::os::unix::fs::symlink(folder.file("elsewhere"), &link).unwrap();
    let hello = Hello::of::<Counter>(&(), "a build").unwrap();
    let found = newest_unfinished(&folder.0, &hello).unwrap();
    assert_eq!(found.newest, None);
    assert_eq!(found.left_alone.len(), 2);
    for (path, why) in found.left_alone {
        assert_eq!(why, LeftAlone::NotRegularFile, "{}", path.display());
    }
    assert!(Journal::create(&link).is_err() && !folder.file("elsewhere").exists());
}

/// A journal of any length, generated as it is read: a match of 300 ticks, preceded by unknown records.
struct MadeUp {
    played: Vec<u8>,
    writer: JournalWriter,
    made: Vec<u8>,
    from: u64,
    unknown: u64,
}

const UNKNOWN_BYTES: usize = 64 << 10;

impl MadeUp {
    fn of(bytes: u64) -> MadeUp {
        let (played, mut made) = (doc::journal(300), Vec::new());
        let Record::Start(start) = records(&played).next().unwrap().unwrap().record else {
            panic!("a journal begins with its start");
        };
        MadeUp {
            writer: JournalWriter::start(&start, &mut made).unwrap(),
            played,
            made,
            from: 0,
            unknown: bytes / UNKNOWN_BYTES as u64 + 1,
        }
    }
}

impl JournalSource for MadeUp {
    fn window(&mut self, offset: u64, least: usize) -> Result<&[u8], SourceError> {
        while self.unknown > 0 && self.from + (self.made.len() as u64) < offset + least as u64 {
            // Earlier bytes are not read again.
            let passed = (offset - self.from).min(self.made.len() as u64);
            self.made.drain(..passed as usize);
            self.from += passed;
            let record = Record::Other {
                kind: 200,
                payload: &[7; UNKNOWN_BYTES],
            };
            self.writer.append(&record, &mut self.made).unwrap();
            self.unknown -= 1;
            if self.unknown == 0 {
                for entry in records(&self.played).skip(1) {
                    let record = entry.unwrap().record;
                    self.writer.append(&record, &mut self.made).unwrap();
                }
            }
        }
        let at = (offset - self.from) as usize;
        Ok(self.made.get(at..).unwrap_or_default())
    }
}

#[cfg(target_os = "linux")]
fn most_memory() -> u64 {
    let status = fs::read_to_string("/proc/self/status").unwrap();
    let line = status.lines().find(|line| line.starts_with("VmHWM:"));
    let number = line.unwrap().split_whitespace().nth(1).unwrap();
    number.parse::<u64>().unwrap() * 1_024
}

/// Finding K3-B: to resume a match, its whole journal was read into memory.
#[cfg(target_os = "linux")]
#[test]
fn a_long_journal_is_resumed_in_bounded_memory() {
    let before = most_memory();
    let journal = MadeUp::of(1 << 30);
    let resumed = Match::<Counter>::resume(config(1), journal, Arc::new(()), no_resolver).unwrap();
    assert_eq!(resumed.match_.world().tick(), Tick(300));
    assert!(resumed.keep_bytes > 1 << 30);
    let more = most_memory() - before;
    assert!(more < 200 << 20, "{more} bytes of memory");
}

/// Measures the cost of reading journals: run it with `--ignored --nocapture`, and `JOURNAL_BYTES` of any size.
#[cfg(target_os = "linux")]
#[test]
#[ignore = "a measurement of minutes, for the largest sizes"]
#[expect(clippy::disallowed_methods, reason = "it is measured")]
fn the_cost_of_reading_a_long_journal_is_measured() {
    use twinstep_ops::export_journal;
    use twinstep_protocol::replay::{Replay, Survey};
    use twinstep_server::Folded;
    let bytes = std::env::var("JOURNAL_BYTES").map_or(10 << 20, |bytes| bytes.parse().unwrap());
    let timed = |what: &str, work: &dyn Fn()| {
        let began = std::time::Instant::now();
        work();
        let (took, memory) = (began.elapsed(), most_memory() >> 20);
        println!("{bytes} bytes: {what}: {took:.2?}, at most {memory} MiB");
    };
    timed("make", &|| {
        let mut journal = MadeUp::of(bytes);
        let mut at = 0;
        while let more @ 1.. = journal.window(at, UNKNOWN_BYTES).unwrap().len() as u64 {
            at += more;
        }
    });
    timed("resume", &|| {
        let journal = MadeUp::of(bytes);
        Match::<Counter>::resume(config(1), journal, Arc::new(()), no_resolver).unwrap();
    });
    timed("evidence", &|| {
        let mut journal = MadeUp::of(bytes);
        let index = Index::scan(&mut journal).unwrap();
        let began = std::time::Instant::now();
        Folded::compute::<Counter>(&mut journal, &(), index, Tick(290)).unwrap();
        println!("  of that the fold itself {:.2?}", began.elapsed());
    });
    timed("check", &|| {
        let index = Index::scan(MadeUp::of(bytes)).unwrap();
        let survey = Survey::of::<Counter>(MadeUp::of(bytes), &index);
        assert_eq!((survey.ticks, survey.fault), (300, None));
    });
    timed("replay", &|| {
        // A replay goes back to its first world, so it starts there.
        let index = Index::scan(MadeUp::of(bytes)).unwrap();
        let mut journal = MadeUp::of(bytes);
        let first = index.worlds[0].clone();
        let opened = Replay::<Counter>::open_at(&mut journal, &(), index, &first);
        let verified = opened.unwrap().verify();
        assert_eq!((verified.fault, verified.ticks), (None, 300));
    });
    let path = std::env::temp_dir().join(format!("twinstep-long-{}.journal", std::process::id()));
    if bytes <= 2 << 30 {
        let (mut file, mut journal) = (fs::File::create(&path).unwrap(), MadeUp::of(bytes));
        let mut at = 0;
        while let more @ [_, ..] = journal.window(at, UNKNOWN_BYTES).unwrap() {
            file.write_all(more).unwrap();
            at += more.len() as u64;
        }
        timed("check a file", &|| {
            assert_eq!(Checkup::check_file::<Counter>(&path).unwrap().harm, None);
        });
        timed("export a file", &|| {
            let journal = twinstep_host::StoredJournal::open(&path).unwrap();
            export_journal::<Counter>(journal, &mut std::io::sink()).unwrap();
        });
        timed("verify a file", &|| {
            let journal = twinstep_host::StoredJournal::open(&path).unwrap();
            let verified = Replay::<Counter>::open(journal, &()).unwrap().verify();
            assert_eq!((verified.fault, verified.ticks), (None, 300));
        });
        timed("resume a file", &|| {
            Journal::resume::<Counter>(&path, config(1), Arc::new(()), no_resolver).unwrap();
        });
        fs::remove_file(&path).unwrap();
    }
}
