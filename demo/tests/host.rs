//! A match for friends, as processes: `host` writes invites, friends join with a file or by pasting its line.
#![cfg(unix)]

use std::fs;
use std::io::{BufRead, BufReader, Read, Write};
use std::os::unix::fs::PermissionsExt;
use std::path::PathBuf;
use std::process::{Child, Command, Output, Stdio};
use std::time::Duration;

fn powderkeg(args: &[&str]) -> Command {
    let mut command = Command::new(env!("CARGO_BIN_EXE_powderkeg"));
    // No window, even where there is a display.
    command.env_remove("DISPLAY").env_remove("WAYLAND_DISPLAY");
    command
        .args(args)
        .stdin(Stdio::null())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .env_remove("RUST_LOG")
        // No window, also where there is a display.
        .env_remove("DISPLAY")
        .env_remove("WAYLAND_DISPLAY");
    command
}

/// A process that does not outlive its test.
struct Process(Child);

impl Process {
    fn start(args: &[&str]) -> Process {
        Process(powderkeg(args).spawn().unwrap())
    }

    /// A process that is given these words to read.
    fn told(args: &[&str], words: &str) -> Process {
        let mut child = powderkeg(args).stdin(Stdio::piped()).spawn().unwrap();
        let mut input = child.stdin.take().unwrap();
        input.write_all(words.as_bytes()).unwrap();
        Process(child)
    }

    fn stop(&self) {
        let id = self.0.id().to_string();
        let sent = Command::new("kill").args(["-s", "TERM", &id]).status();
        assert!(sent.unwrap().success());
    }

    /// Whether it ended well, and what it said.
    fn end(mut self) -> (bool, String) {
        let mut said = String::new();
        let mut out = self.0.stdout.take().unwrap();
        out.read_to_string(&mut said).unwrap();
        (self.0.wait().unwrap().success(), said)
    }
}

impl Drop for Process {
    fn drop(&mut self) {
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

struct Folder(PathBuf);

impl Folder {
    fn new(name: &str) -> Folder {
        let path = std::env::temp_dir().join(format!("powderkeg-{name}-{}", std::process::id()));
        let _ = fs::remove_dir_all(&path);
        fs::create_dir_all(&path).unwrap();
        Folder(path)
    }

    fn file(&self, name: &str) -> String {
        self.0.join(name).to_str().unwrap().to_owned()
    }
}

impl Drop for Folder {
    fn drop(&mut self) {
        let _ = fs::remove_dir_all(&self.0);
    }
}

/// A match that is being hosted, and what the host was told.
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

fn mode(path: &str) -> u32 {
    fs::metadata(path).unwrap().permissions().mode() & 0o777
}

#[test]
fn friends_join_by_a_file_or_by_its_pasted_line_and_the_invites_end_with_the_match() {
    let folder = Folder::new("host");
    let invites = folder.file("invites");
    let (host, said) = hosted(&["--players", "3", "--invites", &invites, "--enemies", "12"]);
    assert_eq!(mode(&invites), 0o700);
    let files: Vec<String> = (1..=3)
        .map(|n| format!("{invites}/player-{n}.invite"))
        .collect();
    for file in &files {
        assert_eq!(mode(file), 0o600, "{file}");
        assert!(said.contains(file.as_str()), "{said}");
    }
    let join = ["--bot", "--enemies", "12"];
    let anna = Process::start(&[&["join", &files[0], "--name", "Anna"], &join[..]].concat());
    let line = fs::read_to_string(&files[1]).unwrap();
    let bert = Process::told(
        &[&["join", "-", "--name", "Bert"], &join[..]].concat(),
        &line,
    );
    std::thread::sleep(Duration::from_secs(4));
    for friend in [anna, bert] {
        friend.stop();
        let (well, said) = friend.end();
        assert!(well && said.contains("played to tick"), "{said}");
    }
    host.stop();
    assert!(host.end().0);
    assert!(!PathBuf::from(&files[2]).exists(), "worthless now");
    assert!(PathBuf::from(format!("{}.rejoin", files[0])).exists());
}

#[test]
fn an_invite_for_two_lets_two_players_in_at_one_screen() {
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
    two.stop();
    assert!(two.end().0);
    host.stop();
    assert!(host.end().0);
    let journal = fs::read_dir(&journals).unwrap().next().unwrap().unwrap();
    let journal = journal.path().to_str().unwrap().to_owned();
    let told = powderkeg(&["replay", &journal, "--enemies", "12", "--verify"]).output();
    let told = String::from_utf8(told.unwrap().stdout).unwrap();
    let of_two = told.lines().filter(|line| line.ends_with("player-2"));
    assert_eq!(of_two.count(), 2, "{told}");
}

fn refused(output: &Output, words: &str) {
    let said = String::from_utf8_lossy(&output.stderr);
    assert_eq!(output.status.code(), Some(2), "{said}");
    assert!(said.contains(words), "expected {words:?}: {said}");
}

#[test]
fn what_cannot_be_hosted_or_joined_is_said() {
    let folder = Folder::new("host-not");
    let run = |args: &[&str]| powderkeg(args).output().unwrap();
    refused(&run(&["join", "-"]), "expected a ticket");
    let too_few = ["host", "--players", "1", "--seats", "2"];
    refused(&run(&too_few), "--players");
    refused(&run(&["play", "--name", "\u{200b}"]), "--name");
    let file = folder.file("file");
    fs::write(&file, "").unwrap();
    let at = ["host", "--listen", "127.0.0.1:0", "--invites"];
    refused(&run(&[&at[..], &[&file]].concat()), "--invites");
}
