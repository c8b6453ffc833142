//! The end of a server: exit codes, files, and messages.

use std::fs;
use std::process::{Command, Stdio};
use std::time::Duration;

use crate::common::{Folder, Process, address, powderkeg, refused, run, succeed, within};

/// Finding O5: a full disk ended the match, but the process exited successfully, and did so again when it was restarted
/// on that disk.
#[cfg(target_os = "linux")]
#[test]
fn a_server_with_a_full_disk_ends_with_an_error_and_an_incident_file() {
    let folder = Folder::with_a_key("full");
    let journals = folder.file("journals");
    // Its files cannot grow beyond 1 KB.
    let script = "trap '' XFSZ; ulimit -f 1; exec \"$0\" \"$@\"";
    let serve = || {
        let run = crate::common::without_settings(&mut Command::new("bash"))
            .args(["-c", script, env!("CARGO_BIN_EXE_powderkeg")])
            .args(["serve", "--listen", "127.0.0.1:0", "--key-file"])
            .args([
                &folder.file("key"),
                "--journal",
                &journals,
                "--enemies",
                "0",
            ])
            .stdout(Stdio::null())
            .output()
            .unwrap();
        (run.status.code(), String::from_utf8(run.stderr).unwrap())
    };
    for again in [false, true] {
        let (code, said) = serve();
        assert_eq!(code, Some(1), "again: {again}: {said}");
        assert!(said.contains("File too large"), "{said}");
        assert!(said.contains("error: a fault ended the match"), "{said}");
    }
    let incidents: Vec<String> = fs::read_dir(&journals)
        .unwrap()
        .map(|entry| entry.unwrap().path())
        .filter(|path| path.extension().is_some_and(|end| end == "txt"))
        .map(|path| fs::read_to_string(path).unwrap())
        .collect();
    assert!(!incidents.is_empty());
    // Everything that could be written stays, and is intact.
    for left in twinstep_host::journals(journals.as_ref()).unwrap() {
        let checked = succeed(&["journal", "check", left.to_str().unwrap()]);
        assert!(checked.contains("intact up to tick"), "{checked}");
    }
    for said in incidents {
        assert!(said.contains("the journal cannot be written"), "{said:?}");
    }
}

/// Finding O7: zeros or junk after a journal's last record stopped the server, and could not be repaired.
#[test]
fn a_journal_is_checked_and_repaired_and_its_match_continues() {
    let folder = Folder::with_a_key("repair");
    let journals = folder.file("journals");
    let bots = [
        "bots",
        "--players",
        "1",
        "--seconds",
        "4",
        "--seed",
        "3",
        "--journal",
        &journals,
    ];
    let _ = run(&bots);
    let path = fs::read_dir(&journals)
        .unwrap()
        .next()
        .unwrap()
        .unwrap()
        .path();
    let name = path.to_str().unwrap();
    let whole = fs::read(&path).unwrap();
    let journal = |task: &str, code: i32| {
        let output = run(&["journal", task, name]);
        let said = String::from_utf8(output.stdout).unwrap();
        assert_eq!(output.status.code(), Some(code), "{task}: {said}");
        said
    };
    assert!(journal("check", 0).contains("intact up to tick"));
    let rows = journal("export", 0);
    let rows: Vec<serde_json::Value> = rows
        .lines()
        .map(|row| serde_json::from_str(row).unwrap())
        .collect();
    let ticks: Vec<u64> = rows
        .iter()
        .filter_map(|row| row["tick"]["tick"].as_u64())
        .collect();
    assert_eq!(rows[0]["start"]["game"], "powderkeg");
    assert!(ticks.len() > 200 && ticks.iter().copied().eq(0..ticks.len() as u64));
    let held = |row: &serde_json::Value| row["tick"]["inputs"]["0"].is_object();
    assert!(rows.iter().filter(|row| held(row)).count() > 150);
    // An existing file is not overwritten.
    let out = folder.file("rows");
    succeed(&["journal", "export", name, "--out", &out]);
    let again = run(&["journal", "export", name, "--out", &out]);
    assert_eq!(again.status.code(), Some(2));
    let said = String::from_utf8(again.stderr).unwrap();
    assert!(
        said.contains(&out) && said.contains("choose a new name"),
        "{said}"
    );
    assert_eq!(
        fs::read_to_string(&out).unwrap().lines().count(),
        rows.len()
    );
    let serve = [
        "serve",
        "--listen",
        "127.0.0.1:0",
        "--key-file",
        &folder.file("key"),
        "--journal",
        &journals,
    ];

    // Simulates a loss of power: zeros, then old contents of the disk.
    let junk: Vec<u8> = [0; 64]
        .into_iter()
        .chain(b"not a record at all".repeat(9))
        .collect();
    fs::write(&path, [&whole[..], &junk].concat()).unwrap();
    refused(&serve, &["powderkeg journal check", name]);
    let said = journal("check", 1);
    assert!(
        said.contains("zeros or junk") && said.contains("journal repair"),
        "{said}"
    );
    let damaged = fs::read(&path).unwrap();
    let said = journal("repair", 0);
    assert!(said.contains(".damaged"), "{said}");
    assert_eq!(fs::read(&path).unwrap(), whole, "no intact record is lost");
    assert_eq!(fs::read(format!("{name}.damaged")).unwrap(), damaged);
    journal("check", 0);

    // Damage in the middle: the remainder is lost, and the message states how much.
    let mut bytes = whole.clone();
    let middle = whole.len() - 400;
    bytes[middle] ^= 1;
    fs::write(&path, bytes).unwrap();
    let said = journal("check", 1);
    assert!(
        said.contains("in the middle") && said.contains("ticks ("),
        "{said}"
    );
    let sound = journal("export", 1);
    assert!(sound.lines().count() > 100 && sound.lines().count() < rows.len());
    journal("repair", 0);
    journal("check", 0);
    let mut server = powderkeg(&serve).spawn().unwrap();
    let log = std::io::BufReader::new(server.stderr.take().unwrap());
    let taken_up = std::io::BufRead::lines(log)
        .map_while(Result::ok)
        .any(|line| line.contains("match resumed"));
    let _ = server.kill();
    let _ = server.wait();
    assert!(taken_up);
}

/// Finding O3-15: the process exited with 0, so scripts took it for success.
#[test]
fn a_join_refused_by_a_draining_server_exits_with_1() {
    let folder = Folder::with_a_key("join-draining");
    let own = ["--key-file", &folder.file("key"), "--enemies", "0"];
    let listen = ["serve", "--listen", "127.0.0.1:0", "--drain", "60"];
    let mut server = Process::start(&[&listen[..], &own].concat());
    let mut log = server.log();
    let mut until = |words: &str| log.by_ref().find(|line| line.contains(words)).unwrap();
    let at = address(&until("serving Powderkeg")).unwrap();
    let join = ["join", "--bot", "--enemies", "0"];
    let (anna, bob) = (folder.ticket(&at, "anna"), folder.ticket(&at, "bob"));
    let _anna = Process::start(&[&join[..], &[&anna]].concat());
    until("session accepted");
    server.signal("TERM");
    until("draining");
    let refused = run(&[&join[..], &[&bob]].concat());
    let said = String::from_utf8(refused.stderr).unwrap();
    assert_eq!(refused.status.code(), Some(1), "{said}");
    assert!(said.contains("the server is shutting down"), "{said}");
}

/// Finding P3-H2: the process read a closed terminal 11,600 times a second, forever.
#[cfg(target_os = "linux")]
#[test]
fn a_player_leaves_and_its_process_exits_when_its_terminal_is_closed() {
    let folder = Folder::with_a_key("closed-terminal");
    let own = ["--key-file", &folder.file("key"), "--enemies", "0"];
    let mut server = Process::start(&[&["serve", "--listen", "127.0.0.1:0"], &own[..]].concat());
    let mut log = server.log();
    let at = log.by_ref().find_map(|line| address(&line)).unwrap();
    let anna = folder.ticket(&at, "anna");
    let join = format!(
        "exec {} join --terminal --enemies 0 {anna}",
        env!("CARGO_BIN_EXE_powderkeg")
    );
    // `script` holds the other end of the terminal, which closes when `script` ends.
    let terminal = Command::new("script")
        .args(["-q", "-c", &join, "/dev/null"])
        .env_remove("DISPLAY")
        .env_remove("WAYLAND_DISPLAY")
        .env("TERM", "xterm")
        .stdin(Stdio::piped())
        .stdout(Stdio::null())
        .stderr(Stdio::null())
        .spawn();
    let mut terminal = Process(terminal.expect("util-linux's script"));
    let is_in =
        |line: &String| line.contains("session accepted") && line.contains("identity=\"anna\"");
    assert!(log.any(|line| is_in(&line)));
    let id = terminal.0.id();
    let children = fs::read_to_string(format!("/proc/{id}/task/{id}/children")).unwrap();
    let player = children.split_whitespace().next().unwrap().to_owned();
    let is_gone = || {
        let status = fs::read_to_string(format!("/proc/{player}/status"));
        // Without a process that reaps orphans, an ended process stays as a zombie.
        status.map_or(true, |status| status.contains("State:\tZ"))
    };
    // Long enough for the player to be in the loop of its view.
    std::thread::sleep(Duration::from_millis(500));
    assert!(!is_gone());
    terminal.0.kill().unwrap();
    terminal.0.wait().unwrap();
    within(is_gone);
}

/// Finding O3-9: the server panicked.
#[cfg(unix)]
#[test]
fn a_low_open_file_limit_is_reported() {
    let folder = Folder::with_a_key("few-files");
    for most in [8, 16] {
        let script = format!("ulimit -n {most}; exec \"$0\" \"$@\"");
        let server = crate::common::without_settings(&mut Command::new("bash"))
            .args(["-c", &script, env!("CARGO_BIN_EXE_powderkeg")])
            .args(["serve", "--listen", "127.0.0.1:0", "--key-file"])
            .args([&folder.file("key"), "--admin", "127.0.0.1:0"])
            .output()
            .unwrap();
        let said = String::from_utf8(server.stderr).unwrap();
        assert_eq!(server.status.code(), Some(2), "{said}");
        let words = format!("expected a hard limit of at least 65 open files, got {most}");
        assert!(said.contains(&words), "{said}");
    }
}
