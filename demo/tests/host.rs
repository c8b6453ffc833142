//! A match for friends, as processes: `host` writes invites, and friends join with a file or by pasting its line.

use std::fs;
use std::io::{BufRead, BufReader, Write};
use std::path::PathBuf;
use std::process::Stdio;
use std::time::Duration;

use crate::common::{Folder, Process, is_owners_alone, powderkeg, refused, run};

fn told(args: &[&str], words: &str) -> Process {
    let mut child = powderkeg(args).stdin(Stdio::piped()).spawn().unwrap();
    let mut input = child.stdin.take().unwrap();
    input.write_all(words.as_bytes()).unwrap();
    Process(child)
}

/// Starts a hosted match. Returns the process and the text that it prints for the host.
fn hosted(args: &[&str]) -> (Process, String) {
    let mut host = Process::start(&[&["host", "--listen", "127.0.0.1:0"], args].concat());
    let mut lines = BufReader::new(host.0.stdout.as_mut().unwrap()).lines();
    let mut said = String::new();
    while !said.contains("Ctrl-C") {
        said += &lines.next().expect("more words").unwrap();
        said.push('\n');
    }
    (host, said)
}

#[test]
fn friends_join_with_a_file_or_its_pasted_line_and_the_invites_expire_with_the_match() {
    let folder = Folder::new("host");
    let invites = folder.file("invites");
    let (host, said) = hosted(&["--players", "3", "--invites", &invites, "--enemies", "12"]);
    assert!(is_owners_alone(&invites));
    let files: Vec<String> = (1..=3)
        .map(|n| format!("{invites}/player-{n}.invite"))
        .collect();
    for file in &files {
        assert!(is_owners_alone(file), "{file}");
        assert!(said.contains(file.as_str()), "{said}");
    }
    let join = ["--bot", "--enemies", "12"];
    let anna = Process::start(&[&["join", &files[0], "--name", "Anna"], &join[..]].concat());
    // A mail program may format the line like this.
    let line = format!("\n  \r\n {}", fs::read_to_string(&files[1]).unwrap());
    let bert = told(
        &[&["join", "-", "--name", "Bert"], &join[..]].concat(),
        &line,
    );
    std::thread::sleep(Duration::from_secs(4));
    for friend in [anna, bert] {
        friend.signal("TERM");
        let (well, said) = friend.end();
        assert!(well && said.contains("played to tick"), "{said}");
    }
    host.signal("TERM");
    assert!(host.end().0);
    assert!(!PathBuf::from(&files[2]).exists(), "worthless now");
    assert!(PathBuf::from(format!("{}.rejoin", files[0])).exists());
}

#[test]
fn an_invite_for_two_admits_two_players_sharing_a_screen() {
    let folder = Folder::new("host-two");
    let (invites, journals) = (folder.file("invites"), folder.file("journals"));
    let at = ["--players", "4", "--seats", "2", "--enemies", "12"];
    let (host, said) =
        hosted(&[&at[..], &["--invites", &invites, "--journal", &journals]].concat());
    assert!(
        said.contains("2 invites, each for 2 players at one screen"),
        "{said}"
    );
    let file = format!("{invites}/player-2.invite");
    let two = Process::start(&["join", &file, "--bot", "--enemies", "12"]);
    std::thread::sleep(Duration::from_secs(3));
    two.signal("TERM");
    assert!(two.end().0);
    host.signal("TERM");
    assert!(host.end().0);
    let journal = fs::read_dir(&journals).unwrap().next().unwrap().unwrap();
    let journal = journal.path().to_str().unwrap().to_owned();
    let told = run(&["replay", &journal, "--enemies", "12", "--verify"]);
    let told = String::from_utf8(told.stdout).unwrap();
    let of_two = told.lines().filter(|line| line.ends_with("player-2"));
    assert_eq!(of_two.count(), 2, "{told}");
}

#[test]
fn hosting_and_joining_errors_are_reported() {
    let folder = Folder::new("host-not");
    refused(&["join", "-"], &["expected a ticket"]);
    let too_few = ["host", "--players", "1", "--seats", "2"];
    refused(&too_few, &["--players"]);
    refused(&["play", "--name", "\u{200b}"], &["--name"]);
    let file = folder.file("file");
    fs::write(&file, "").unwrap();
    let at = ["host", "--listen", "127.0.0.1:0", "--invites"];
    refused(&[&at[..], &[&file]].concat(), &["--invites"]);
}
