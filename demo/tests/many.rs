//! `powderkeg serve --matches` as a process: matches are created for their players, and the server ends as an
//! orchestrator expects.

use std::io::{Read, Write};
use std::net::TcpStream;
use std::sync::mpsc;
use std::time::Duration;

use twinstep_protocol::replay::Index;
use twinstep_server::KEPT;

use crate::common::{Folder, Process, address, run, succeed, within};

pub(crate) struct Served {
    pub(crate) process: Process,
    pub(crate) address: String,
    pub(crate) admin: String,
    said: mpsc::Receiver<String>,
}

impl Served {
    pub(crate) fn start(folder: &Folder, listen: &str, drain_s: &str) -> Served {
        Served::start_with(folder, listen, &["--drain", drain_s])
    }

    pub(crate) fn start_with(folder: &Folder, listen: &str, more: &[&str]) -> Served {
        let (key, journals) = (folder.file("key"), folder.file("journals"));
        let args = [
            "serve",
            "--listen",
            listen,
            "--key-file",
            &key,
            "--journal",
            &journals,
            "--matches",
            "8",
            "--admin",
            "127.0.0.1:0",
        ];
        let mut process = Process::start(&[&args[..], more].concat());
        let (mut served, mut port) = (None, None);
        let mut log = process.log();
        while served.is_none() || port.is_none() {
            let line = log.next().expect("it starts");
            if line.contains("admin port") {
                port = address(&line);
            }
            if line.contains("serving Powderkeg") {
                served = address(&line);
            }
        }
        let (say, said) = mpsc::channel();
        std::thread::Builder::new()
            .spawn(move || log.for_each(|line| drop(say.send(line))))
            .unwrap();
        Served {
            process,
            address: served.unwrap(),
            admin: port.unwrap(),
            said,
        }
    }

    pub(crate) fn ask(&self, path: &str) -> String {
        let mut stream = TcpStream::connect(&self.admin).unwrap();
        let head = format!(
            "GET {path} HTTP/1.1\r\nHost: {}\r\nConnection: close\r\n\r\n",
            self.admin
        );
        stream.write_all(head.as_bytes()).unwrap();
        let mut answer = String::new();
        stream.read_to_string(&mut answer).unwrap();
        answer
    }

    pub(crate) fn ticket(&self, folder: &Folder, player: &str, id: &str) -> String {
        self.ticket_to(&self.address, folder, player, id)
    }

    pub(crate) fn ticket_to(
        &self,
        addresses: &str,
        folder: &Folder,
        player: &str,
        id: &str,
    ) -> String {
        let file = folder.file(&format!("{player}-{id}.ticket"));
        let key = folder.file("key");
        let mut args = vec!["ticket", "--key-file", &key, "--player", player];
        args.extend(["--match", id, "--out", &file, "--server", addresses]);
        succeed(&args);
        file
    }

    pub(crate) fn has(&self, players: usize) {
        let series = format!("\ntwinstep_players {players}\n");
        within(|| self.ask("/metrics").contains(&series));
    }

    pub(crate) fn exit(mut self) -> (Option<i32>, Vec<String>) {
        within(|| self.process.has_ended());
        let code = self.process.0.wait().unwrap().code();
        (code, self.said.iter().collect())
    }
}

fn bot(ticket: &str) -> Process {
    Process::start(&["join", "--bot", ticket])
}

#[test]
fn a_draining_server_keeps_its_players_and_their_matches() {
    let folder = Folder::with_a_key("many-drain");
    let server = Served::start(&folder, "127.0.0.1:0", "6");
    let (anna, bob) = (
        server.ticket(&folder, "anna", "7"),
        server.ticket(&folder, "bob", "8"),
    );
    let (mut one, two) = (bot(&anna), bot(&bob));
    server.has(2);
    assert!(server.ask("/matches").contains("\"match\":8"));
    server.process.signal("TERM");
    within(|| server.ask("/readyz").starts_with("HTTP/1.1 503"));
    let said = server.ask("/readyz");
    assert!(said.contains("draining"), "{said}");
    // New players are refused, in an existing match and in a new one.
    for id in ["7", "9"] {
        let newcomer = server.ticket(&folder, "carl", id);
        let output = run(&["join", "--bot", &newcomer]);
        let said = String::from_utf8([output.stdout, output.stderr].concat()).unwrap();
        assert!(said.contains("shutting down"), "match {id}: {said}");
    }
    // A player that was cut off returns.
    one.0.kill().unwrap();
    one.0.wait().unwrap();
    let mut one = bot(&anna);
    std::thread::sleep(Duration::from_millis(1_500));
    assert!(!one.has_ended() && server.ask("/livez").starts_with("HTTP/1.1 200"));
    let address = server.address.clone();
    let (code, log) = server.exit();
    assert_eq!(code, Some(0), "{log:?}");
    assert!(
        log.iter()
            .any(|line| line.contains("drain timed out: some players or spectators have not left")),
        "{log:?}"
    );

    // Their matches are intact to their ends, and continue at the next server.
    for id in [7, 8] {
        let journal = format!("{}/match-{id}.journal", folder.file("journals"));
        let bytes = std::fs::read(&journal).unwrap();
        let index = Index::scan(&bytes).unwrap();
        assert_eq!(index.ended.as_deref(), Some(KEPT), "match {id}");
        // A world at the very end: resuming steps no tick again.
        assert_eq!(
            index.worlds.last().map(|world| world.tick),
            Some(index.newest)
        );
    }
    let next = Served::start(&folder, &address, "0");
    next.has(2);
    let metrics = next.ask("/metrics");
    assert!(
        metrics.contains("\ntwinstep_matches_started_total 2\n"),
        "{metrics}"
    );
    drop((one, two));
}

#[test]
fn a_draining_server_exits_when_all_players_have_left_or_when_signalled_again() {
    let folder = Folder::with_a_key("many-left");
    let server = Served::start(&folder, "127.0.0.1:0", "3600");
    let one = bot(&server.ticket(&folder, "anna", "7"));
    server.has(1);
    server.process.signal("TERM");
    within(|| server.ask("/readyz").contains("draining"));
    one.signal("TERM");
    let (code, log) = server.exit();
    assert_eq!(code, Some(0), "{log:?}");
    assert!(
        log.iter()
            .any(|line| line.contains("drain ended: all players and spectators have left")),
        "{log:?}"
    );

    let server = Served::start(&folder, "127.0.0.1:0", "3600");
    let one = bot(&server.ticket(&folder, "anna", "8"));
    server.has(1);
    server.process.signal("TERM");
    within(|| server.ask("/readyz").contains("draining"));
    server.process.signal("TERM");
    let (code, log) = server.exit();
    assert_eq!(code, Some(130), "{log:?}");
    // Its match can be resumed, as after a kill.
    let journal = format!("{}/match-8.journal", folder.file("journals"));
    succeed(&["journal", "check", &journal]);
    drop(one);
}

#[test]
fn the_compressed_journal_of_an_ended_match_is_read_directly() {
    let folder = Folder::with_a_key("many-over");
    let server = Served::start(&folder, "127.0.0.1:0", "0");
    let mut one = bot(&server.ticket(&folder, "anna", "7"));
    server.has(1);
    std::thread::sleep(Duration::from_millis(1_500));
    let token = folder.file("key.admin");
    let admin = ["admin", "--to", &server.admin, "--token-file", &token];
    succeed(&[&admin[..], &["end", "7"]].concat());
    within(|| one.has_ended());
    let journal = format!("{}/match-7.1.journal", folder.file("journals"));
    within(|| std::path::Path::new(&journal).exists());
    let checked = succeed(&["journal", "check", &journal]);
    assert!(checked.contains("intact up to tick"), "{checked}");
    let verified = succeed(&["replay", "--verify", &journal]);
    assert!(verified.contains("tick"), "{verified}");
    assert!(server.ask("/matches").ends_with("[]"), "nothing runs");
    // A truncated file is an error, not a shorter journal.
    let bytes = std::fs::read(&journal).unwrap();
    std::fs::write(&journal, &bytes[..bytes.len() / 2]).unwrap();
    assert!(!run(&["replay", "--verify", &journal]).status.success());
}
