//! `powderkeg serve` and `powderkeg admin` together, as an operator uses them.

use std::io::{Read, Write};
use std::net::TcpStream;
use std::path::Path;

use crate::common::{Folder, Process, address, powderkeg, refused, run, within};

struct Served {
    process: Process,
    address: String,
    admin: String,
}

fn serve(folder: &Folder, log_format: &str) -> (Served, Vec<String>) {
    let key = folder.file("key");
    let mut server = Process::start(&[
        "serve",
        "--listen",
        "127.0.0.1:0",
        "--key-file",
        &key,
        "--admin",
        "127.0.0.1:0",
        "--log-format",
        log_format,
    ]);
    let (mut served, mut port, mut seen) = (None, None, Vec::new());
    for line in server.log() {
        if line.contains("admin port") {
            port = address(&line);
        }
        if line.contains("serving Powderkeg") {
            served = address(&line);
        }
        seen.push(line);
        if served.is_some() && port.is_some() {
            break;
        }
    }
    let served = Served {
        process: server,
        address: served.unwrap(),
        admin: port.unwrap(),
    };
    (served, seen)
}

impl Served {
    fn admin(&self, folder: &Folder, args: &[&str]) -> (bool, String) {
        let token = folder.file("key.admin");
        let to = ["admin", "--to", &self.admin, "--token-file", &token];
        let output = run(&[&to[..], args].concat());
        let said = [output.stdout, output.stderr].concat();
        (output.status.success(), String::from_utf8(said).unwrap())
    }

    fn done(&self, folder: &Folder, args: &[&str]) -> String {
        let (is_done, said) = self.admin(folder, args);
        assert!(is_done, "{args:?}: {said}");
        said
    }
}

#[test]
fn an_operator_lists_and_bans_and_unbans_players_with_the_command_line() {
    let folder = Folder::with_a_key("operating");
    let (server, _) = serve(&folder, "text");
    let anna = folder.ticket(&server.address, "anna");
    assert!(server.done(&folder, &["matches"]).contains("players"));
    within(|| server.admin(&folder, &["ready"]).0);
    assert_eq!(server.done(&folder, &["ready"]), "ready\n");
    assert_eq!(
        server.done(&folder, &["players"]),
        "no players or spectators in that match\n"
    );

    let bot = Process::start(&["join", "--bot", &anna]);
    within(|| server.done(&folder, &["players"]).contains("playing"));
    within(|| Path::new(&format!("{anna}.rejoin")).exists());
    let said = server.done(&folder, &["players", "1"]);
    assert!(said.contains("anna") && said.lines().count() == 2, "{said}");
    let raw = server.done(&folder, &["--json", "players", "1"]);
    let raw: serde_json::Value = serde_json::from_str(&raw).unwrap();
    assert_eq!(raw["players"][0]["identity"], "anna");
    let metrics = server.done(&folder, &["metrics"]);
    assert!(metrics.contains("\ntwinstep_players 1\n"), "{metrics}");

    let said = server.done(&folder, &["message", "five minutes to go"]);
    assert_eq!(said, "sent to 1 client\n");

    let ban = ["ban", "anna", "--for", "7d", "--reason", "an aimbot"];
    let said = server.done(&folder, &ban);
    assert!(
        said.contains("banned for 7 days, and was removed from match 1"),
        "{said}"
    );
    let mut bot = bot;
    within(|| bot.has_ended());
    // The player can return neither with its stored ticket (finding O3-2) nor with a new one.
    for is_new in [false, true] {
        if is_new {
            folder.ticket(&server.address, "anna");
        }
        let output = run(&["join", "--bot", &anna]);
        let said = String::from_utf8(output.stderr).unwrap();
        assert!(!output.status.success());
        assert!(
            said.contains("you are banned from this server for 7 days more"),
            "{said}"
        );
    }
    let said = server.done(&folder, &["bans"]);
    assert!(
        said.contains("anna") && said.contains("an aimbot"),
        "{said}"
    );
    assert!(
        server
            .done(&folder, &["unban", "anna"])
            .contains("may join again")
    );
    assert_eq!(server.done(&folder, &["bans"]), "no bans\n");

    // Errors are explained, and exit with 1.
    for (args, words) in [
        (&["kick", "bob"][..], "not in match 1"),
        (&["players", "7"], "match 7 is not running here"),
        (&["unban", "anna"], "neither banned nor kicked"),
        (&["kick", ""], "field `identity`"),
    ] {
        let (is_done, said) = server.admin(&folder, args);
        assert!(!is_done && said.contains(words), "{args:?}: {said}");
    }
    let plain = run(&["admin", "--to", &server.admin, "bans"]);
    let said = String::from_utf8(plain.stderr).unwrap();
    assert_eq!(plain.status.code(), Some(1));
    assert!(said.contains("--token-file"), "{said}");
    // A user of the command line sends no header.
    let key = folder.file("key");
    let plain = run(&["admin", "--to", &server.admin, "--token-file", &key, "bans"]);
    let said = String::from_utf8(plain.stderr).unwrap();
    assert_eq!(plain.status.code(), Some(1));
    assert!(
        said.contains("does not accept the token in") && !said.contains("Bearer"),
        "{said}"
    );

    // The match ends, and so does its server.
    assert!(
        server
            .done(&folder, &["revoke", "anna"])
            .contains("match 1 made before 2")
    );
    let end = ["end", "1", "--reason", "good night"];
    assert_eq!(server.done(&folder, &end), "match 1 is over\n");
    assert!(server.process.end().0, "in order");
}

#[test]
fn invalid_admin_commands_are_refused_before_a_request() {
    let folder = Folder::with_a_key("operating-wrong");
    let admin = ["admin", "--to", "127.0.0.1:1"];
    let with = |args: &[&'static str]| [&admin[..], args].concat();
    refused(&with(&["ban", "anna", "--for", "soon"]), &["such as 90s"]);
    refused(&with(&["ban"]), &["IDENTITY"]);
    refused(&with(&["end"]), &["ID"]);
    refused(
        &["admin", "--to", "10.0.0.1:7700", "bans"],
        &["this machine"],
    );
    refused(&["admin", "bans"], &["--to"]);
    let missing = folder.file("missing");
    refused(
        &[&admin[..], &["--token-file", &missing, "bans"]].concat(),
        &["missing"],
    );
    assert!(!std::path::Path::new(&missing).exists(), "and none is made");
    // No server is there.
    let nobody = run(&with(&["matches"]));
    let said = String::from_utf8(nobody.stderr).unwrap();
    assert_eq!(nobody.status.code(), Some(1), "{said}");
    assert!(said.contains("with --admin 127.0.0.1:1"), "{said}");
}

#[test]
fn a_json_log_has_an_object_on_each_line() {
    let folder = Folder::with_a_key("operating-log");
    let (server, log) = serve(&folder, "json");
    assert!(log.len() >= 3, "{log:?}");
    for line in &log {
        let said: serde_json::Value = serde_json::from_str(line).expect(line);
        assert!(
            said["message"].is_string() && said["timestamp"].is_string(),
            "{line}"
        );
        assert_eq!(said["level"], "INFO", "{line}");
    }
    // A scraper's requests are served at the same time.
    let mut stream = TcpStream::connect(&server.admin).unwrap();
    let request = format!(
        "GET /metrics HTTP/1.1\r\nHost: {}\r\nConnection: close\r\n\r\n",
        server.admin
    );
    stream.write_all(request.as_bytes()).unwrap();
    let mut answer = String::new();
    stream.read_to_string(&mut answer).unwrap();
    assert!(answer.contains("twinstep_build_info{"), "{answer}");
    let mut wrong = powderkeg(&["serve", "--log-format", "xml"]);
    assert_eq!(wrong.output().unwrap().status.code(), Some(2));
}

/// A Unix socket needs no token, because only its owner can use it. A journal can be copied while the match runs.
#[cfg(unix)]
#[test]
fn an_operator_at_a_unix_socket_needs_no_token_and_saves_a_journal() {
    use std::os::unix::fs::PermissionsExt;

    let folder = Folder::with_a_key("operating-socket");
    let (key, socket, journals) = (
        folder.file("key"),
        folder.file("admin.sock"),
        folder.file("journals"),
    );
    let at = format!("unix:{socket}");
    let args = [
        "serve",
        "--listen",
        "127.0.0.1:0",
        "--key-file",
        &key,
        "--enemies",
        "0",
        "--admin",
        &at,
        "--journal",
        &journals,
    ];
    let start = || {
        let mut server = Process::start(&args);
        assert!(server.log().any(|line| line.contains("serving Powderkeg")));
        server
    };
    let admin = |args: &[&str]| {
        let output = run(&[&["admin", "--to", &at], args].concat());
        let said = [output.stdout, output.stderr].concat();
        (output.status.success(), String::from_utf8(said).unwrap())
    };
    // A killed server leaves its socket behind, and the next one replaces it.
    drop(start());
    assert!(std::path::Path::new(&socket).exists());
    let server = start();
    let mode = std::fs::metadata(&socket).unwrap().permissions().mode();
    assert_eq!(mode & 0o777, 0o600);
    assert_eq!(admin(&["bans"]), (true, "no bans\n".to_owned()));
    assert!(admin(&["ban", "anna"]).0);
    let (is_done, said) = admin(&["copy-journal"]);
    assert!(is_done && said.contains(".copy-"), "{said}");
    let saved = said
        .strip_prefix("copied ")
        .and_then(|rest| rest.split(" (").next());
    let saved = saved.unwrap();
    let summary = run(&["replay", "--verify", "--enemies", "0", saved]);
    assert!(summary.status.success(), "{summary:?}");
    let (is_done, said) = admin(&["save", "7"]);
    assert!(
        !is_done && said.contains("match 7 is not running here"),
        "{said}"
    );
    server.signal("TERM");
    assert!(server.end().0);
    assert!(
        !std::path::Path::new(&socket).exists(),
        "it goes with its server"
    );
    assert!(!admin(&["bans"]).0);
}
