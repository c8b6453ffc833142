//! Processes of players that join, crash, reconnect and leave.

use std::fs;
use std::io::{BufRead, BufReader};
use std::path::Path;
use std::time::Duration;

use crate::common::{Folder, Process, address, is_owners_alone, succeed, within};

fn address_in(mut lines: impl Iterator<Item = String> + Send + 'static) -> String {
    let address = lines.find_map(|line| address(&line));
    listen_on(lines);
    address.expect("it prints its address")
}

/// Reads the rest of the output, because a full pipe would block the process.
#[expect(
    clippy::disallowed_methods,
    reason = "the output is read next to the test"
)]
fn listen_on(lines: impl Iterator<Item = String> + Send + 'static) {
    std::thread::spawn(move || lines.for_each(drop));
}

#[test]
fn a_ticket_in_a_file_is_readable_only_by_its_owner() {
    let folder = Folder::with_a_key("out");
    let file = folder.ticket("127.0.0.1:7", "anna");
    assert!(is_owners_alone(&file));
    let written = fs::read_to_string(&file).unwrap();
    assert!(written.starts_with("twinstep-ticket-"), "{written}");
    let key = folder.file("key");
    let of = |more: &[&str]| {
        let task = [
            "ticket",
            "--key-file",
            &key,
            "--server",
            "127.0.0.1:7",
            "--player",
            "eve",
        ];
        succeed(&[&task[..], more].concat())
    };
    assert!(
        of(&[]).starts_with("twinstep-ticket-"),
        "otherwise it is printed"
    );
    assert!(of(&["--spectate"]).starts_with("twinstep-ticket-"));
}

/// The second process gets the first ticket, which is out of date, and enters with the ticket that the first process
/// stored.
#[test]
fn a_player_reconnects_with_its_stored_ticket_after_its_process_is_killed() {
    let folder = Folder::with_a_key("killed");
    let key = folder.file("key");
    let mut server = Process::start(&["serve", "--listen", "127.0.0.1:0", "--key-file", &key]);
    let address = address_in(server.log());
    let ticket = folder.ticket(&address, "anna");
    let kept = format!("{ticket}.rejoin");

    let first = Process::start(&["join", &ticket, "--bot"]);
    within(|| Path::new(&kept).exists());
    assert!(is_owners_alone(&kept));
    let held = fs::read_to_string(&kept).unwrap();
    first.signal("KILL");
    drop(first);

    let second = Process::start(&["join", &ticket, "--bot"]);
    within(|| fs::read_to_string(&kept).unwrap() != held);
    std::thread::sleep(Duration::from_millis(500));
    second.signal("TERM");
    let (well, said) = second.end();
    assert!(well && said.contains("played to tick"), "{said}");
    server.signal("TERM");
    assert!(server.end().0);
}

/// Finding O3-2: a player that reconnected to a full server exited immediately, with the wrong reason.
#[test]
fn a_reconnecting_player_enters_a_full_server_when_a_seat_becomes_free() {
    let folder = Folder::with_a_key("full");
    let key = folder.file("key");
    let listen = ["serve", "--listen", "127.0.0.1:0", "--key-file", &key];
    let mut server = Process::start(&[&listen[..], &["--max-players", "1"]].concat());
    let address = address_in(server.log());
    let [anna, bob] = ["anna", "bob"].map(|name| folder.ticket(&address, name));
    let kept = |ticket: &str| format!("{ticket}.rejoin");
    let plays = |ticket: &str| {
        let player = Process::start(&["join", ticket, "--bot"]);
        within(|| Path::new(&kept(ticket)).exists());
        player
    };
    let leave = |player: Process| {
        player.signal("TERM");
        let (well, said) = player.end();
        assert!(well && said.contains("played to tick"), "{said}");
    };
    leave(plays(&anna));
    let held = fs::read_to_string(kept(&anna)).unwrap();
    let guest = plays(&bob);
    let mut back = Process::start(&["join", &anna, "--bot"]);
    let waits = back.log().find(|line| line.contains("retrying")).unwrap();
    assert!(waits.contains("full"), "{waits}");
    leave(guest);
    within(|| fs::read_to_string(kept(&anna)).unwrap() != held);
    leave(back);
}

/// Row 73: with `--stay`, the match survives the host's own game until the last player has left.
#[test]
fn a_match_outlives_its_hosts_game_until_all_players_have_left() {
    let folder = Folder::with_a_key("listen");
    let key = folder.file("key");
    let mut host = Process::start(&[
        "play",
        "--listen",
        "127.0.0.1:0",
        "--key-file",
        &key,
        "--stay",
        "--seconds",
        "3",
        "--bots",
        "1",
        "--link",
        "lan",
    ]);
    let out = BufReader::new(host.0.stdout.take().unwrap());
    let address = address_in(out.lines().map_while(Result::ok));
    let ticket = folder.ticket(&address, "guest");
    let guest = Process::start(&["join", &ticket, "--bot"]);
    std::thread::sleep(Duration::from_secs(6));
    assert!(!host.has_ended(), "the guest plays on");
    guest.signal("TERM");
    let (well, said) = guest.end();
    assert!(well && said.contains("played to tick"), "{said}");
    within(|| host.has_ended());
    assert!(host.0.wait().unwrap().success());
}

#[test]
fn a_server_signalled_twice_exits_immediately() {
    let folder = Folder::with_a_key("twice");
    let key = folder.file("key");
    let mut server = Process::start(&["serve", "--listen", "127.0.0.1:0", "--key-file", &key]);
    let address = address_in(server.log());
    // A player that no longer responds would delay an orderly shutdown.
    let ticket = folder.ticket(&address, "anna");
    let player = Process::start(&["join", &ticket, "--bot"]);
    within(|| Path::new(&format!("{ticket}.rejoin")).exists());
    player.signal("STOP");
    server.signal("TERM");
    std::thread::sleep(Duration::from_millis(100));
    server.signal("TERM");
    std::thread::sleep(Duration::from_millis(400));
    assert!(
        server.has_ended(),
        "it waits for a player that does not answer"
    );
    player.signal("CONT");
}
