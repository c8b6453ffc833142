//! Command lines of the program: results and error messages.

use std::fs;
use std::io::Write;
use std::net::UdpSocket;
use std::process::Stdio;

use twinstep_protocol::lineage::Ruling;
use twinstep_udp::{Holder, Identity, LineageFile, MatchId, Role, Ticket};

use crate::common::{Folder, Process, address, powderkeg, refused, run};

#[test]
fn an_invalid_flag_is_named_in_the_error() {
    refused(&["--wings"], &["--wings"]);
    refused(
        &["bots", "--link", "moon"],
        &["--link", "perfect, lan, wan", "moon"],
    );
    refused(
        &["bots", "--link", "rtt=fast"],
        &["--link", "milliseconds", "fast"],
    );
    refused(&["bots", "--players", "9"], &["--players", "9"]);
    refused(&["bots", "--log", "a=b=c"], &["--log"]);
    let mut wrong = powderkeg(&["bots"]);
    let said = wrong.env("RUST_LOG", "a=b=c").output().unwrap();
    assert_eq!(said.status.code(), Some(2));
    let said = String::from_utf8(said.stderr).unwrap();
    assert!(
        said.contains("RUST_LOG") && !said.contains("--log"),
        "{said}"
    );
    refused(&["host", "--players", "3", "--seats", "2"], &["--players"]);
    let wide = ["--spectators", "2", "--spectator-delay", "4000000000"];
    let serve = ["serve", "--listen", "127.0.0.1:0", "--key-file", "none"];
    refused(
        &[&serve[..], &wide].concat(),
        &["--spectator-delay", "3 to 15"],
    );
    let many = ["--spectators", "17"];
    refused(
        &[&serve[..], &many].concat(),
        &["--spectators", "at most 16", "--spectator-delay"],
    );
    let names = [
        "--name", "A", "--name", "B", "--name", "C", "--name", "D", "--name", "E",
    ];
    refused(&[&["join", "-"], &names[..]].concat(), &["--name", "4"]);
    refused(
        &["serve", "--listen", "here"],
        &["--listen", "here", "IP:PORT"],
    );
    refused(&["--bots", "7", "--seats", "2"], &["--bots", "at most 8"]);
    refused(&["--name", "A", "--name", "B"], &["--name", "--seats 1"]);
    refused(&["dance"], &["dance"]);
}

#[test]
fn bad_files_are_reported_with_a_remedy() {
    let folder = Folder::with_a_key("files");
    let (missing, text) = (folder.file("missing"), folder.file("text"));
    fs::write(&text, "hello").unwrap();
    let key = folder.file("key");
    refused(&["key", &key], &[&key, "never overwritten"]);

    let serve = |key: &str| {
        refused(
            &["serve", "--listen", "127.0.0.1:0", "--key-file", key],
            &[key, "powderkeg key"],
        );
    };
    serve(&missing);
    let nowhere = folder.file("nowhere/key");
    let output = run(&["key", &nowhere]);
    let said = String::from_utf8(output.stderr).unwrap();
    assert!(!said.contains("makes one"), "it was just tried: {said}");
    serve(&text);
    refused(&["join", &missing], &[&missing, "ticket"]);
    refused(&["join", &text], &["expected a ticket"]);
    let ticket = [
        "ticket",
        "--key-file",
        &key,
        "--server",
        "127.0.0.1:1",
        "--player",
    ];
    refused(&[&ticket[..], &[""]].concat(), &["identity"]);

    let journals = folder.file("journals");
    fs::create_dir(&journals).unwrap();
    // A power loss can leave a file with its length, but without its bytes.
    fs::write(format!("{journals}/old.journal"), [0; 200]).unwrap();
    let at = ["serve", "--listen", "127.0.0.1:0", "--key-file", &key];
    refused(
        &[&at[..], &["--journal", &journals]].concat(),
        &["old.journal", "ends before its first world", "move it away"],
    );
    refused(&[&at[..], &["--journal", &text]].concat(), &[&text]);
    let output = run(&["journal", "repair", &missing]);
    let said = String::from_utf8(output.stderr).unwrap();
    assert!(said.contains("cannot read the journal"), "{said}");
    assert!(!said.contains("chown"), "nothing is there to own: {said}");
}

#[test]
fn a_port_in_use_is_reported() {
    let folder = Folder::with_a_key("port");
    let key = folder.file("key");
    let taken = UdpSocket::bind("127.0.0.1:0").unwrap();
    let address = taken.local_addr().unwrap().to_string();
    refused(
        &["serve", "--listen", &address, "--key-file", &key],
        &[&address, "another program", "another address"],
    );
}

#[test]
fn a_bots_run_succeeds_and_prints_a_report() {
    let folder = Folder::new("bots");
    let journals = folder.file("journals");
    let run = [
        "bots",
        "--players",
        "4",
        "--seconds",
        "10",
        "--link",
        "lan",
        "--seed",
        "3",
        "--report",
        "json",
        "--journal",
        &journals,
    ];
    let output = powderkeg(&run).output().unwrap();
    let said = String::from_utf8_lossy(&output.stderr).into_owned();
    let report: serde_json::Value = serde_json::from_slice(&output.stdout).expect(&said);
    assert!(output.status.success(), "{said}\n{report:#}");
    assert!(
        report["commands_executed"].as_u64().unwrap() > 0,
        "{report:#}"
    );
    assert_eq!(report["desyncs"], 0);
    for client in report["clients"].as_array().unwrap() {
        assert_eq!(client["digest_matches"], true, "{client:#}");
        assert_eq!(client["cues_open"], 0, "{client:#}");
        assert!(client["cues_started"].as_u64().unwrap() > 0, "{client:#}");
    }
    let journal = fs::read_dir(journals).unwrap().next().unwrap().unwrap();
    assert!(journal.metadata().unwrap().len() > 1_000);
    a_journal_is_summarised_verified_and_refused(&folder, journal.path().to_str().unwrap());
}

/// Checks the journal of the bots' run: its summary, its verification, and the messages about damaged copies.
fn a_journal_is_summarised_verified_and_refused(folder: &Folder, journal: &str) {
    let says = |args: &[&str], code: i32, words: &[&str]| {
        let output = run(args);
        let said = String::from_utf8(output.stdout).unwrap();
        assert_eq!(output.status.code(), Some(code), "{args:?}: {said}");
        for word in words {
            assert!(said.contains(word), "{args:?} should say {word:?}: {said}");
        }
    };
    let told = [
        "powderkeg version",
        "bot-1",
        "KB per player and minute",
        "can be resumed (kept)",
    ];
    says(&["replay", journal], 0, &told);
    says(
        &["replay", journal, "--verify"],
        0,
        &["equal digests: ", "x real time"],
    );

    let mut bytes = fs::read(journal).unwrap();
    // After the first world, which is most of a short journal.
    let flipped = bytes.len() - 400;
    bytes[flipped] ^= 1;
    let damaged = folder.file("damaged.journal");
    fs::write(&damaged, &bytes).unwrap();
    says(
        &["replay", &damaged, "--verify"],
        1,
        &["is corrupt at byte", "It plays up to tick "],
    );
    let torn = folder.file("torn.journal");
    fs::write(&torn, &fs::read(journal).unwrap()[..flipped]).unwrap();
    says(&["replay", &torn], 1, &["is torn at byte", "; not over"]);
    refused(
        &["replay", journal, "--enemies", "7"],
        &["powderkeg 0.1.0", "other rules", "--enemies"],
    );
    refused(
        &["replay", &folder.file("missing")],
        &["cannot read the journal", "--journal", "F9"],
    );
    refused(
        &["replay", &folder.file("")],
        &[
            "cannot read the journal",
            "expected a regular file, got a directory",
        ],
    );
    #[cfg(unix)]
    refused(&["replay", "/dev/zero"], &["expected a regular file"]);
    check_closed_pipe(&["replay", journal, "--summary"]);
    check_closed_pipe(&["replay", journal, "--verify"]);
    check_closed_pipe(&["journal", "check", journal]);
    check_closed_pipe(&["journal", "repair", journal]);
    check_closed_pipe(&["--help"]);
    fs::write(folder.file("text"), "hello").unwrap();
    refused(
        &["replay", &folder.file("text")],
        &["a different kind of file", "host --journal"],
    );
    a_journal_is_exported_whole_or_not_at_all(folder, journal);
}

/// Exports lines of JSON. An existing file is never overwritten, and a failed export leaves no file.
fn a_journal_is_exported_whole_or_not_at_all(folder: &Folder, journal: &str) {
    let (out, text) = (folder.file("out.jsonl"), folder.file("text"));
    let export = |journal: &str| run(&["journal", "export", journal, "--out", &out]);
    refused(
        &["journal", "export", &text, "--out", &out],
        &["a different kind of file"],
    );
    assert!(
        !fs::exists(&out).unwrap(),
        "it would be in the way of the next attempt"
    );
    assert!(export(journal).status.success());
    let told = fs::read_to_string(&out).unwrap();
    assert!(told.starts_with("{\"start\":{\"game\":\"powderkeg\""));
    assert!(told.trim_end().ends_with('}') && told.lines().count() > 100);
    assert!(!export(journal).status.success(), "the file is there");
    assert_eq!(fs::read_to_string(&out).unwrap(), told);
}

/// Finding O10: the reader of the output has closed its end. This is not an error, and does not cause a panic message.
fn check_closed_pipe(args: &[&str]) {
    let (reader, writer) = std::io::pipe().unwrap();
    drop(reader);
    let output = powderkeg(args).stdout(writer).output().unwrap();
    let said = String::from_utf8_lossy(&output.stderr);
    assert!(
        output.status.success() && said.is_empty(),
        "{args:?}: {said}"
    );
}

/// Runs a server and a player that joins with a ticket, and stops the server as an operator would.
#[cfg(unix)]
#[test]
fn a_player_joins_with_a_ticket_and_gets_the_reason_for_the_servers_end() {
    let folder = Folder::with_a_key("serve");
    let key = folder.file("key");
    let mut server = Process::start(&["serve", "--listen", "127.0.0.1:0", "--key-file", &key]);
    let mut lines = server.log();
    let at = lines.find_map(|line| address(&line));
    let ticket = folder.ticket(&at.expect("the server prints its address"), "anna");
    let player = Process::start(&["join", &ticket, "--bot"]);
    let let_in = lines.any(|line| line.contains("anna"));
    assert!(let_in, "the server logs who joins");
    // Long enough to play a little. Even on a busy machine, the session must receive the reason.
    std::thread::sleep(std::time::Duration::from_secs(2));
    server.signal("TERM");
    for _ in lines {}
    assert!(server.end().0);
    let (well, said) = player.end();
    assert!(well && said.contains("played to tick"), "{said}");
    assert!(said.contains("the server is shutting down"), "{said}");
}

/// Finding P3-D1: an invite with line breaks was refused.
#[test]
fn an_invite_broken_into_lines_by_mail_can_be_pasted() {
    let folder = Folder::with_a_key("pasted");
    // No server listens at this address.
    let invite = fs::read_to_string(folder.ticket("127.0.0.1:1", "anna")).unwrap();
    let quoted: String = invite
        .trim()
        .as_bytes()
        .chunks(76)
        .map(|piece| format!("> {}\r\n", str::from_utf8(piece).unwrap()))
        .collect();
    let said = |pasted: &str| {
        let mut join = powderkeg(&["join", "--bot", "-"]);
        let mut join = Process(join.stdin(Stdio::piped()).spawn().unwrap());
        let mut stdin = join.0.stdin.take().unwrap();
        stdin.write_all(pasted.as_bytes()).unwrap();
        let mut said = join.log();
        let mut dials = || {
            let is_over = join.has_ended();
            std::thread::sleep(std::time::Duration::from_millis(50));
            is_over
        };
        // Without a refusal within half a second, the client is dialling.
        match (0..10).any(|_| dials()) {
            true => said.next().unwrap_or_default(),
            false => "it dials".to_owned(),
        }
    };
    assert_eq!(said(&format!("\n\n{quoted}")), "it dials");
    let cut = quoted.lines().next().unwrap();
    let refused = said(&format!("{cut}\n\n"));
    assert!(refused.contains("cut off or damaged"), "{refused}");
    let refused = said("hello\n");
    assert!(refused.contains("expected a ticket"), "{refused}");
}

/// A ticket issued after a revocation is dated after it, even if the issuer's clock is behind.
#[test]
fn a_ticket_is_dated_after_the_revocations_in_the_keys_lineage_file() {
    let folder = Folder::with_a_key("ahead");
    let made = |player: &str| {
        let ticket = Ticket::load(folder.ticket("127.0.0.1:1", player)).unwrap();
        ticket.stamp().issued_unix_ms
    };
    let before = made("anna");
    let lineages = folder.file("key.lineages");
    assert!(
        !fs::exists(format!("{lineages}.lock")).unwrap(),
        "only read"
    );
    let ahead = before + 3_600_000;
    let anna = Holder {
        match_id: MatchId(1),
        identity: Identity::new("anna", Role::Player),
    };
    let revoked = [(anna, Ruling::MadeBefore { unix_ms: ahead })];
    let (mut file, _) = LineageFile::open(&lineages).unwrap();
    file.append(&revoked, 0, |_, _| ()).unwrap();
    assert_eq!(made("anna"), ahead);
    assert!(made("eve") < ahead);
    let key = folder.file("key");
    let ticket = ["ticket", "--key-file", &key, "--server", "127.0.0.1:1"];
    fs::write(&lineages, "damaged").unwrap();
    refused(
        &[&ticket[..], &["--player", "anna"]].concat(),
        &["line 1 of"],
    );
}

#[test]
fn durability_needs_a_journal() {
    let folder = Folder::with_a_key("durability");
    let key = folder.file("key");
    let serve = ["serve", "--listen", "127.0.0.1:0", "--key-file", &key];
    let kept = ["--durability", "power", "--on-journal-failure", "continue"];
    refused(&[&serve[..], &kept].concat(), &["--journal"]);
}

#[test]
fn a_tape_is_recorded_without_a_display() {
    let folder = Folder::new("tape");
    let tape = folder.file("mine.tape");
    let play = ["play", "--bots", "1", "--seconds", "2", "--tape", &tape];
    let played = powderkeg(&play).output().unwrap();
    let said = String::from_utf8_lossy(&played.stderr);
    assert!(played.status.success(), "{said}");
    assert!(fs::metadata(&tape).is_ok_and(|file| file.len() > 0));
}
