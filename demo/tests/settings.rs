//! `powderkeg serve` configured by a file, an environment and signals.

use std::fs;
use std::sync::mpsc;
use std::time::Duration;

use crate::common::{Folder, Process, address, powderkeg, run, within};

const PATIENCE: Duration = Duration::from_secs(30);

#[test]
fn a_settings_file_is_checked_printed_and_used() {
    let folder = Folder::with_a_key("settings");
    let (key, file) = (folder.file("key"), folder.file("serve.toml"));
    let text =
        format!("listen = \"127.0.0.1:0\"\nkey-file = \"{key}\"\nenemies = 0\nturn = \"1..4\"\n");
    fs::write(&file, &text).unwrap();
    let said = |args: &[&str]| {
        let output = run(&[&["serve", "--config", &file], args].concat());
        let words = [output.stdout, output.stderr].concat();
        (output.status.code(), String::from_utf8(words).unwrap())
    };
    let (code, words) = said(&["--check"]);
    assert_eq!(code, Some(0));
    assert!(
        words.starts_with("settings and files are valid ("),
        "{words}"
    );
    let (code, words) = said(&["--print-config", "--max-players", "2"]);
    assert_eq!(code, Some(0), "{words}");
    let line = |start: &str| words.lines().find(|line| line.starts_with(start)).unwrap();
    assert!(line("max-players = 2").ends_with("# --max-players"));
    assert!(line("turn = \"1..4\"").ends_with(&format!("# {file}, turn")));
    assert!(line("sealing = \"deadline\"").ends_with("# default"));
    assert!(!words.contains(fs::read_to_string(&key).unwrap().lines().last().unwrap()));

    let mut server = Process::start(&["serve", "--config", &file]);
    assert!(server.log().any(|line| line.contains("serving Powderkeg")));
    server.signal("TERM");
    assert!(server.end().0);

    fs::write(&file, format!("{text}enemys = 3\n")).unwrap();
    let (code, words) = said(&["--check"]);
    assert_eq!(code, Some(2));
    assert!(
        words.contains("serve.toml, enemys: ") && words.contains("did you mean enemies?"),
        "{words}"
    );
    let mut misspelt = powderkeg(&["serve"]);
    let output = misspelt
        .env("TWINSTEP_LISTN", "127.0.0.1:0")
        .output()
        .unwrap();
    assert_eq!(output.status.code(), Some(2));
    let words = String::from_utf8(output.stderr).unwrap();
    assert!(
        words.contains("TWINSTEP_LISTN") && words.contains("TWINSTEP_LISTEN "),
        "{words}"
    );
    let mut secret = powderkeg(&["serve", "--listen", "127.0.0.1:0"]);
    let output = secret
        .env("TWINSTEP_KEY_FILE", "0123456789abcdef")
        .output()
        .unwrap();
    let words = String::from_utf8(output.stderr).unwrap();
    assert!(
        words.contains("environment variable TWINSTEP_KEY_FILE: there is no key file"),
        "a file, never a key: {words}"
    );
}

/// The start creates a missing folder, `--check` does not; and both refuse a file in place of a folder.
#[test]
fn folders_are_checked_before_the_start_and_created_by_it() {
    let folder = Folder::with_a_key("settings-folders");
    let key = folder.file("key");
    let told = |name: &str, path: &str, more: &[&str]| {
        let listen = ["serve", "--listen", "127.0.0.1:0", "--key-file", &key];
        let output = run(&[&listen[..], &[name, path], more].concat());
        (
            output.status.code(),
            String::from_utf8(output.stderr).unwrap(),
        )
    };
    for name in ["--state", "--journal", "--incidents"] {
        for more in [&["--check"][..], &[]] {
            let (code, words) = told(name, &key, more);
            assert_eq!(code, Some(2), "{words}");
            assert!(words.contains(name) && words.contains(&key), "{words}");
        }
        let missing = folder.file(&format!("{name}/deep"));
        assert_eq!(told(name, &missing, &["--check"]).0, Some(0));
        assert!(!fs::exists(&missing).unwrap());
        let listen = ["serve", "--listen", "127.0.0.1:0", "--key-file", &key];
        let mut server = Process::start(&[&listen[..], &[name, &missing]].concat());
        assert!(server.log().next().is_some());
        assert!(fs::exists(&missing).unwrap(), "{name}");
    }
}

/// The logging flags belong to the program, but are also settings of its server.
#[test]
fn a_servers_log_is_configured_like_its_other_settings() {
    let folder = Folder::with_a_key("settings-log");
    let (key, file) = (folder.file("key"), folder.file("serve.toml"));
    let text = format!("listen = \"127.0.0.1:0\"\nkey-file = \"{key}\"\nlog-format = \"json\"\n");
    fs::write(&file, &text).unwrap();
    let first_line = |args: &[&str]| {
        let mut server = Process::start(&[&["serve", "--config", &file], args].concat());
        server.log().next().unwrap()
    };
    assert!(first_line(&[]).starts_with('{'));
    assert!(!first_line(&["--log-format", "text"]).starts_with('{'));
    let printed = run(&[
        "serve",
        "--config",
        &file,
        "--log",
        "warn",
        "--print-config",
    ]);
    let printed = String::from_utf8(printed.stdout).unwrap();
    let line = |start: &str| {
        printed
            .lines()
            .find(|line| line.starts_with(start))
            .unwrap()
    };
    assert!(line("log = \"warn\"").ends_with("# --log"), "{printed}");
    assert!(
        line("log-format = \"json\"").ends_with("serve.toml, log-format"),
        "{printed}"
    );
    fs::write(&file, format!("{text}log = \"a=b=c\"\n")).unwrap();
    let refused = run(&["serve", "--config", &file]);
    let said = String::from_utf8(refused.stderr).unwrap();
    assert_eq!(refused.status.code(), Some(2));
    assert!(
        said.contains("serve.toml, log: ") && said.contains("expected a filter"),
        "{said}"
    );
}

/// A complete key rotation, with a process and its signals: first both keys are valid, then only the new one.
#[cfg(unix)]
#[test]
fn keys_can_be_rotated_while_players_are_connected() {
    let folder = Folder::with_a_key("rotation");
    let (key, old) = (folder.file("key"), folder.file("key.old"));
    let own = [
        "--key-file",
        &key,
        "--enemies",
        "0",
        "--admin",
        "127.0.0.1:0",
    ];
    let mut server = Process::start(&[&["serve", "--listen", "127.0.0.1:0"], &own[..]].concat());
    let (lines, log) = mpsc::channel();
    let written = server.log();
    let follower = std::thread::Builder::new().spawn(move || {
        written.for_each(|line| drop(lines.send(line)));
    });
    let until = |words: &str| {
        let next = || log.recv_timeout(PATIENCE).ok();
        let said = std::iter::from_fn(next).find(|line| line.contains(words));
        said.unwrap_or_else(|| panic!("the log never said {words:?}"))
    };
    let admin = address(&until("admin port")).unwrap();
    let at = address(&until("serving Powderkeg")).unwrap();
    let token = folder.file("key.admin");
    let plays = |name: &str| {
        let told = run(&["admin", "--to", &admin, "--token-file", &token, "players"]);
        let told = String::from_utf8(told.stdout).unwrap();
        let is_it = |line: &str| line.contains(name) && line.contains("playing");
        told.lines().any(is_it)
    };
    let join = |file: &str| Process::start(&["join", "--bot", "--enemies", "0", file]);
    let mut anna = join(&folder.ticket(&at, "anna"));
    within(|| plays("anna"));

    // Tickets are made with the new key, and tickets of the old one are still valid.
    let of_old = folder.ticket(&at, "bob");
    fs::rename(&key, &old).unwrap();
    assert!(run(&["key", &key]).status.success());
    server.signal("HUP");
    let said = until("keys reloaded signing_key=");
    let named = said.split(" keys=").nth(1).unwrap();
    let named = named.split(" previous_keys=").next().unwrap();
    assert_eq!(named.split(' ').count(), 2, "{said}");
    let mut bob = join(&of_old);
    let _carla = join(&folder.ticket(&at, "carla"));
    within(|| plays("bob") && plays("carla"));

    // Without the old key, its tickets are invalid, but a player who joined with one stays connected.
    let of_old = folder.file("dora");
    let ticket = [
        "ticket",
        "--key-file",
        &old,
        "--server",
        &at,
        "--player",
        "dora",
    ];
    assert!(
        run(&[&ticket[..], &["--out", &of_old]].concat())
            .status
            .success()
    );
    fs::rename(&old, folder.file("away")).unwrap();
    server.signal("HUP");
    until("keys reloaded signing_key=");
    let _dora = join(&of_old);
    let _emil = join(&folder.ticket(&at, "emil"));
    within(|| plays("emil"));
    assert!(plays("anna") && !plays("dora") && !anna.has_ended());

    // Another server with the same ban file has banned a player.
    let ban = "[{\"identity\":\"bob\",\"since_unix_s\":1,\"until_unix_s\":null,\"reason\":\"x\"}]";
    assert!(plays("bob"));
    fs::write(folder.file("key.bans"), ban).unwrap();
    server.signal("HUP");
    until("bans reloaded");
    within(|| bob.has_ended());

    // A file that cannot be read changes nothing.
    fs::write(&key, "no key").unwrap();
    server.signal("HUP");
    until("keys not reloaded");
    assert!(plays("anna") && plays("carla"));
    server.signal("TERM");
    within(|| server.has_ended());
    drop(follower);
}
