//! Journals as files: one writer at a time, torn ends cut off, and which match of a folder goes on.

use std::fs;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

use twinstep_core::packet::hello::Hello;
use twinstep_core::replay::Index;
use twinstep_core::testing::doc::Counter;
use twinstep_core::{Key, Tick};
use twinstep_server::host::{
    Durability, Journal, JournalFileError, LeftAlone, newest_unfinished, used_tickets,
};
use twinstep_server::{Look, Match, MatchConfig, Output, Resolution};

/// A folder of one test's own, gone afterwards.
struct Folder(PathBuf);

impl Folder {
    fn new(name: &str) -> Folder {
        let path = std::env::temp_dir().join(format!("twinstep-{name}-{}", std::process::id()));
        let _ = fs::remove_dir_all(&path);
        fs::create_dir_all(&path).unwrap();
        Folder(path)
    }

    fn file(&self, name: &str) -> PathBuf {
        self.0.join(name)
    }
}

impl Drop for Folder {
    fn drop(&mut self) {
        let _ = fs::remove_dir_all(&self.0);
    }
}

type Ask = twinstep_core::Never;

fn config(unix_time: u64) -> MatchConfig {
    MatchConfig {
        unix_time,
        ..MatchConfig::action()
    }
}

fn nobody(_: &Look<'_, Counter>, _: Key, _: &Ask) -> Resolution<Ask> {
    Resolution::Unanswered
}

/// Writes what a match wants written.
fn drain(game: &mut Match<Counter>, journal: &mut Journal) {
    while let Some(output) = game.poll() {
        if let Output::Journal(bytes) = output {
            journal.append(bytes).unwrap();
        }
    }
    journal.settle().unwrap();
}

/// The file of a match that began at `unix_time` and was played for `seconds`; it is ended if `end` is said.
fn played(path: &Path, unix_time: u64, seconds: u64, end: bool) -> Tick {
    let mut game = Match::new(config(unix_time), Counter::default(), Arc::new(()), nobody).unwrap();
    game.keep_journal().unwrap();
    game.note_ticket(unix_time, "anna");
    let mut journal = Journal::create(path).unwrap().durability(Durability::Power);
    for ms in 0..seconds * 1_000 {
        game.advance(Duration::from_millis(ms));
        drain(&mut game, &mut journal);
    }
    if end {
        game.close(twinstep_core::packet::hello::CloseCode::MatchOver);
        drain(&mut game, &mut journal);
    }
    game.world().tick()
}

fn resume(path: &Path) -> Result<(Match<Counter>, Journal, Vec<u64>), JournalFileError> {
    Journal::resume(path, config(9), Arc::new(()), nobody)
}

#[test]
fn a_torn_file_is_cut_and_goes_on_and_only_one_process_writes_it() {
    let folder = Folder::new("torn");
    let path = folder.file("a.journal");
    let tick = played(&path, 5, 3, false);
    let sound = fs::metadata(&path).unwrap().len();
    let mut bytes = fs::read(&path).unwrap();
    bytes.extend_from_slice(&[0x83, 0x20]); // The head of a turn, cut off.
    fs::write(&path, &bytes).unwrap();

    let (mut game, mut journal, tickets) = resume(&path).unwrap();
    assert_eq!(tickets, [5]);
    assert!(tick - game.world().tick() < 2);
    assert_eq!(
        fs::metadata(&path).unwrap().len(),
        sound,
        "the torn end is gone"
    );
    // A second process, while this one lives.
    let second = resume(&path).err().unwrap();
    assert!(matches!(second, JournalFileError::InUse { .. }), "{second}");

    for ms in 0..12_000 {
        game.advance(Duration::from_millis(ms));
        drain(&mut game, &mut journal);
    }
    drop(journal);
    let bytes = fs::read(&path).unwrap();
    let index = Index::scan(&bytes).unwrap();
    assert_eq!((index.resumes, index.stopped), (1, None));
    assert_eq!(used_tickets(&path).unwrap(), [5]);
    // And once more.
    let before = game.world().tick();
    let (game, _journal, _) = resume(&path).unwrap();
    assert!(before - game.world().tick() < 2);
}

#[test]
fn damage_in_the_middle_and_matches_that_are_over_are_not_taken_up() {
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
fn the_newest_match_that_was_cut_off_goes_on_and_others_are_left_alone() {
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
    let [(path, LeftAlone::Ended(reason))] = &found.left_alone[..] else {
        panic!("{:?}", found.left_alone);
    };
    assert_eq!(
        (path, &reason[..]),
        (&folder.file("a-over.journal"), "the match is over")
    );

    // A program of other rules finds nothing to go on with, and is told why.
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

    fs::write(folder.file("worse.journal"), b"hello").unwrap();
    let refused = newest_unfinished(&folder.0, &hello)
        .unwrap_err()
        .to_string();
    assert!(refused.contains("worse.journal"), "{refused}");
}
