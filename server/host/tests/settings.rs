//! What an operator chooses: by flags, environment and file; and what is said of what cannot be meant.

use std::ffi::OsString;
use std::fs;
use std::time::Duration;

use clap::Command;
use twinstep_core::testing::doc::Counter;
use twinstep_host::Server;
use twinstep_host::TicketKey;
use twinstep_ops::operator::{
    Configured, GivenFlags, Operator, Setting, SettingError, SettingSource, Wanted,
};
use twinstep_server::MatchConfig;

use crate::folder::Folder;

/// A file of a folder, with this in it; its path.
fn written(folder: &Folder, name: &str, text: &str) -> String {
    let path = folder.file(name);
    fs::write(&path, text).unwrap();
    path.to_str().unwrap().to_owned()
}

fn new_key(folder: &Folder, name: &str) -> String {
    let path = folder.file(name);
    TicketKey::generate().save(&path).unwrap();
    path.to_str().unwrap().to_owned()
}

fn operator() -> Operator {
    let wings = Setting::number("wings", 0..=9, "wings", "How many wings").or("2");
    Operator::new("test").players(1..=8, 8).setting(wings)
}

fn flags(line: &str) -> GivenFlags {
    let command = operator().flags(Command::new("test"));
    let words = std::iter::once("test").chain(line.split_whitespace());
    operator().given(&command.try_get_matches_from(words).unwrap())
}

fn environment(pairs: &[(&str, &str)]) -> Vec<(OsString, OsString)> {
    let pair = |(name, value): &(&str, &str)| ((*name).into(), (*value).into());
    pairs.iter().map(pair).collect()
}

fn read(line: &str, pairs: &[(&str, &str)]) -> Result<Configured, SettingError> {
    match operator().read(&flags(line), environment(pairs))? {
        Wanted::Server(configured) => Ok(*configured),
        Wanted::Check(_) => panic!("only to check"),
        Wanted::Words(words) => panic!("{words}"),
    }
}

/// Runs `--check` on a counter's server.
fn check(line: &str, pairs: &[(&str, &str)]) -> Result<String, SettingError> {
    check_of(MatchConfig::action(), line, pairs)
}

fn check_of(
    policies: MatchConfig,
    line: &str,
    pairs: &[(&str, &str)],
) -> Result<String, SettingError> {
    let line = format!("{line} --check");
    match operator().read(&flags(&line), environment(pairs))? {
        Wanted::Check(chosen) => chosen.check(counter(policies)),
        _ => panic!("{line} is only to check"),
    }
}

fn counter(policies: MatchConfig) -> Server<Counter> {
    Server::with(policies, Counter::default(), ())
}

fn refusal(line: &str, pairs: &[(&str, &str)]) -> String {
    read(line, pairs).expect_err(line).to_string()
}

#[test]
fn flags_win_over_the_environment_and_that_over_the_file_and_that_over_defaults() {
    let folder = Folder::new("order");
    let file = written(
        &folder,
        "s.toml",
        "# a server\nmax-players = 3\nwings = 4\nspectators = 5\npublic = [\"1.2.3.4:5\", \"[::1]:6\"]\nnew-match = false\n",
    );
    let config = format!("--config {file}");
    let line = format!("{config} --max-players 1");
    let chosen = read(
        &line,
        &[("TWINSTEP_MAX_PLAYERS", "2"), ("TWINSTEP_WINGS", "7")],
    )
    .unwrap();
    let numbers = ["max-players", "wings", "spectators", "spectator-delay"];
    let numbers = numbers.map(|name| chosen.get::<u32>(name));
    assert_eq!(numbers, [Some(1), Some(7), Some(5), Some(0)]);
    assert_eq!(chosen.text("public"), Some("1.2.3.4:5,[::1]:6"));
    let named = |name: &str| chosen.source(name).to_string();
    assert_eq!(named("max-players"), "--max-players");
    assert_eq!(named("wings"), "the environment's TWINSTEP_WINGS");
    assert_eq!(named("spectators"), format!("{file}, line 4, spectators"));
    assert_eq!(chosen.source("spectator-delay"), SettingSource::Default);
    // The file is named by the environment as well as by a flag.
    let by_environment = read("", &[("TWINSTEP_CONFIG", &file)]).unwrap();
    assert_eq!(by_environment.get::<u32>("max-players"), Some(3));
}

#[test]
fn a_name_that_is_not_known_is_an_error_that_says_where_it_stands_and_which_is_nearest() {
    let folder = Folder::new("nearest");
    let file = written(&folder, "s.toml", "wings = 1\n\nmax-playrs = 3\n");
    let said = refusal(&format!("--config {file}"), &[]);
    assert!(
        said.starts_with(&format!("{file}, line 3, max-playrs: there is no such")),
        "{said}"
    );
    assert!(said.ends_with("did you mean max-players?"), "{said}");
    let said = refusal("", &[("TWINSTEP_SPECTATOR_DLAY", "3"), ("OTHER", "x")]);
    assert!(
        said.contains("the environment's TWINSTEP_SPECTATOR_DLAY"),
        "{said}"
    );
    assert!(
        said.ends_with("did you mean TWINSTEP_SPECTATOR_DELAY?"),
        "{said}"
    );
    // A file names no file.
    let file = written(&folder, "t.toml", "config = \"s.toml\"\n");
    assert!(refusal(&format!("--config {file}"), &[]).contains("no such setting"));
}

/// Finding P3-E1: a Service that is called like the game stopped every server of its namespace.
#[test]
fn variables_that_an_orchestrator_sets_stop_no_server_and_misspelt_ones_do() {
    let folder = Folder::new("links");
    let line = format!(
        "--key-file {} --listen 127.0.0.1:0",
        new_key(&folder, "key")
    );
    for (name, value) in [
        ("TWINSTEP_SERVICE_HOST", "10.0.0.1"),
        ("TWINSTEP_SERVICE_PORT", "7777"),
        ("TWINSTEP_SERVICE_PORT_GAME", "7777"),
        ("TWINSTEP_PORT", "udp://10.0.0.1:7777"),
        ("TWINSTEP_PORT_7777_UDP", "udp://10.0.0.1:7777"),
        ("TWINSTEP_PORT_7777_UDP_PROTO", "udp"),
        ("TWINSTEP_PORT_7777_UDP_PORT", "7777"),
        ("TWINSTEP_PORT_7777_UDP_ADDR", "10.0.0.1"),
        // A Service that is called like a setting of the game.
        ("TWINSTEP_ADMIN_SERVICE_HOST", "10.0.0.1"),
        ("TWINSTEP_ADMIN_PORT", "tcp://10.0.0.1:7700"),
        // And what is near nothing.
        ("TWINSTEP_ZZQXJ", "3"),
    ] {
        let said = check(&line, &[(name, value)]).unwrap_or_else(|error| panic!("{error}"));
        assert!(said.contains(name) && said.contains("no setting"), "{said}");
        assert!(read(&line, &[(name, value)]).is_ok());
    }
    for name in [
        "TWINSTEP_ADMIN_PORT",
        "TWINSTEP_MAX_PLAYER",
        "TWINSTEP_PUBLIK",
    ] {
        let said = refusal(&line, &[(name, "7700")]);
        assert!(said.contains("did you mean"), "{said}");
    }
}

/// An operator put one thing right at a time, and started anew for each.
#[test]
fn all_that_will_not_do_is_told_at_once() {
    let folder = Folder::new("several");
    let text = "max-players = 9\nmax-playrs = 3\nwings = [1]\nnew-match = true\n";
    let file = written(&folder, "s.toml", text);
    let said = refusal(&format!("--config {file}"), &[("TWINSTEP_LISTN", "x")]);
    for words in [
        "5 things are wrong",
        "TWINSTEP_LISTN",
        "line 1, max-players: expected 1 to 8",
        "line 2, max-playrs: there is no such setting",
        "line 3, wings: expected 0 to 9",
        "line 4, new-match: it means something only with",
    ] {
        assert!(said.contains(words), "{words:?}: {said}");
    }
    let said = check("", &[]).unwrap_err().to_string();
    assert!(
        said.contains("--listen") && said.contains("--key-file"),
        "{said}"
    );
}

/// Finding O3-9: the unit's `ExecStartPre` said yes, and the restart failed.
#[cfg(unix)]
#[test]
fn a_check_says_no_where_the_start_does_and_in_the_same_words() {
    let folder = Folder::new("agree");
    let key = new_key(&folder, "key");
    let pipe = folder.file("pipe");
    let made = std::process::Command::new("mkfifo").arg(&pipe).status();
    assert!(made.unwrap().success());
    let pipe = pipe.to_str().unwrap();
    let sound = format!("--listen 127.0.0.1:0 --key-file {key}");
    let action = MatchConfig::action;
    let waits = || MatchConfig {
        players_max: 3,
        ..MatchConfig::action()
    };
    let impossible = MatchConfig {
        tick: Duration::ZERO,
        ..action()
    };
    for (policies, line, pairs, words) in [
        (
            action(),
            &*format!("{sound} --journal /proc/x"),
            &[][..],
            "--journal: cannot use /proc/x",
        ),
        (
            action(),
            &format!("{sound} --state /proc/x"),
            &[],
            "--state: cannot use",
        ),
        (
            action(),
            &format!("{sound} --incidents /proc/x/y"),
            &[],
            "--incidents: cannot use",
        ),
        (
            action(),
            &format!("{sound} --incidents {key}/y"),
            &[],
            "--incidents: cannot use",
        ),
        (
            action(),
            &sound,
            &[("TWINSTEP_JOURNAL", "a\0b")],
            "TWINSTEP_JOURNAL: cannot use",
        ),
        (
            action(),
            &format!("--listen 127.0.0.1:0 --key-file {pipe}"),
            &[],
            "expected a regular file",
        ),
        (
            action(),
            &format!("{sound} --old-key-file {pipe}"),
            &[],
            "expected a regular file",
        ),
        (
            action(),
            &format!("{sound} --admin-token-file {pipe}"),
            &[],
            "expected a regular file",
        ),
        (
            action(),
            &format!("{sound} --admin unix:/proc/x/s"),
            &[],
            "--admin: cannot use",
        ),
        (
            action(),
            &format!("--config {pipe}"),
            &[],
            "expected a regular file",
        ),
        (impossible, &sound, &[], "tick"),
    ] {
        let checked = check_of(policies.clone(), line, pairs);
        let checked = checked.expect_err(line).to_string();
        assert!(
            checked.contains(words),
            "{line} should say {words:?}: {checked}"
        );
        let started = read(line, pairs).and_then(|chosen| chosen.listen(counter(policies)));
        let started = started
            .err()
            .unwrap_or_else(|| panic!("{line} starts"))
            .to_string();
        assert_eq!(started, checked, "{line}");
    }
    // And yes where the start does.
    let deep = format!(
        "{sound} --journal {0}/a/b --state {0}/c",
        folder.0.display()
    );
    assert!(check_of(waits(), &deep, &[]).is_ok());
    assert!(!folder.0.join("a").exists() && !folder.0.join("c").exists());
    assert!(read(&deep, &[]).unwrap().listen(counter(waits())).is_ok());
}

#[test]
fn a_value_that_will_not_do_is_told_with_where_it_stands_and_what_was_expected() {
    let folder = Folder::new("values");
    for (text, words) in [
        (
            "max-players = 9",
            &["line 1", "1 to 8 players", "\"9\""][..],
        ),
        ("max-players = -1", &["1 to 8 players", "\"-1\""]),
        ("max-players = 1.5", &["1 to 8 players", "TOML float"]),
        ("max-players = [1]", &["1 to 8 players", "TOML array"]),
        ("\n[max-players]\nx = 1", &["line 2", "TOML table"]),
        ("new-match = 1", &["true or false", "\"1\""]),
        ("durability = \"often\"", &["process, power", "\"often\""]),
        ("public = \"0.0.0.0:1\"", &["every address"]),
        ("max-players = 0x4", &["1 to 8 players", "TOML integer"]),
        ("listen = \"here\"", &["a port in numbers", "\"here\""]),
        ("new-match = true", &["line 1, new-match", "--journal"]),
        ("max-players 8", &["line 1", "expected TOML"]),
        ("wings = 1\nwings = 2", &["line 2", "expected TOML"]),
    ] {
        let file = written(&folder, "s.toml", text);
        let said = refusal(&format!("--config {file}"), &[]);
        for word in words {
            assert!(said.contains(word), "{text:?} should say {word:?}: {said}");
        }
    }
    let said = refusal("--wings many", &[]);
    assert_eq!(said, "--wings: expected 0 to 9 wings, got \"many\"");
    let said = refusal("", &[("TWINSTEP_WINGS", "\u{1b}[2J")]);
    assert!(
        said.contains("TWINSTEP_WINGS: expected 0 to 9") && !said.contains('\u{1b}'),
        "{said}"
    );
    // No file is no file, and nobody's settings take a megabyte.
    let said = refusal("", &[("TWINSTEP_CONFIG", "")]);
    assert!(said.contains("TWINSTEP_CONFIG: expected a file"), "{said}");
    let large = written(&folder, "large.toml", &" ".repeat((1 << 20) + 1));
    assert!(refusal(&format!("--config {large}"), &[]).contains("cannot read"));
    assert!(
        refusal("--config nowhere.toml", &[])
            .contains("cannot read the file of settings nowhere.toml")
    );
}

#[test]
fn what_is_printed_says_all_settings_and_their_sources_and_is_itself_a_file_of_settings() {
    let folder = Folder::new("print");
    let key = new_key(&folder, "key");
    let line = format!("--key-file {key} --listen 127.0.0.1:0 --print-config");
    let odd = environment(&[("TWINSTEP_INCIDENTS", "a\"b\tc")]);
    let Ok(Wanted::Words(words)) = operator().read(&flags(&line), odd) else {
        panic!("words were asked for");
    };
    for setting in operator().settings() {
        assert!(
            words.contains(setting.name()) || ["check", "print-config"].contains(&setting.name()),
            "{words}"
        );
    }
    assert!(words.contains("listen = \"127.0.0.1:0\""), "{words}");
    assert!(
        words
            .lines()
            .any(|line| line.starts_with("listen") && line.ends_with("# --listen"))
    );
    assert!(
        words
            .lines()
            .any(|line| line.starts_with("wings = 2") && line.ends_with("# default"))
    );
    let secret = fs::read_to_string(&key).unwrap();
    let secret = secret.lines().last().unwrap();
    assert!(!words.contains(secret), "a secret is told");
    // What it says is read back as the same.
    let file = written(&folder, "printed.toml", &words);
    let again = read(&format!("--config {file}"), &[]).unwrap();
    assert_eq!(again.text("incidents"), Some("a\"b\tc"));
    assert!(!words.contains('\t'), "{words}");
    assert_eq!(again.address("listen").unwrap().port(), 0);
}

#[test]
fn a_check_reads_all_files_and_makes_none() {
    let folder = Folder::new("check");
    let key = new_key(&folder, "key");
    let before = fs::read_dir(&folder.0).unwrap().count();
    let sound = format!("--key-file {key} --listen 127.0.0.1:0 --journal {key}.journals");
    assert_eq!(
        check(&sound, &[]).unwrap(),
        "the settings and files will do\n"
    );
    assert_eq!(
        fs::read_dir(&folder.0).unwrap().count(),
        before,
        "nothing was made"
    );
    for (line, pairs, words) in [
        ("--listen 127.0.0.1:0", &[][..], "--key-file"),
        (&*format!("--key-file {key}"), &[], "TWINSTEP_LISTEN"),
        (
            "--listen 127.0.0.1:0 --key-file nowhere",
            &[],
            "--key-file: expected a key file at nowhere",
        ),
        (
            "--listen 127.0.0.1:0",
            &[("TWINSTEP_KEY_FILE", "nowhere")],
            "the environment's TWINSTEP_KEY_FILE: expected a key file",
        ),
        (
            &*format!("{sound} --old-key-file nowhere"),
            &[],
            "--old-key-file: expected a key file",
        ),
        (
            &*format!("{sound} --spectators 17"),
            &[],
            "--spectator-delay",
        ),
        (
            &*format!("--listen 127.0.0.1:0 --key-file {key} --journal {key}"),
            &[],
            "--journal: cannot use",
        ),
    ] {
        let said = check(line, pairs).unwrap_err().to_string();
        assert!(said.contains(words), "{line} should say {words:?}: {said}");
    }
    // A socket of one family hears nothing of the other (finding P3-M3).
    for (listen, public, is_sound) in [
        ("0.0.0.0:7777", "[::1]:7777", false),
        ("0.0.0.0:7777", "192.0.2.1:7777,[::1]:7777", false),
        ("[::1]:7777", "192.0.2.1:7777", false),
        ("[::]:7777", "192.0.2.1:7777,[::1]:7777", true),
        ("0.0.0.0:7777", "192.0.2.1:7777", true),
        ("[::ffff:127.0.0.1]:7777", "192.0.2.1:7777", true),
    ] {
        let line = format!("--key-file {key} --listen {listen} --public {public}");
        let said = check(&line, &[]).map_err(|error| error.to_string());
        assert_eq!(said.is_ok(), is_sound, "{line}");
        let named = said
            .err()
            .is_none_or(|said| said.contains("--listen [::]:7777"));
        assert!(named, "{line}");
    }
    let refused = check(&format!("{sound} --public auto"), &[]);
    assert!(refused.unwrap_err().to_string().contains("--fleet agones"));
    // What belongs to the key is found beside it, or where it is said to be.
    for name in ["key.bans", "key.lineages", "key.old", "key.admin"] {
        let path = written(&folder, name, "[{]");
        let said = check(&sound, &[]).expect_err(name).to_string();
        assert!(said.contains(name), "{said}");
        fs::remove_file(path).unwrap();
    }
    fs::create_dir(folder.0.join("kept")).unwrap();
    let elsewhere = format!("{sound} --state {}", folder.0.join("kept").display());
    let bad = written(&folder, "kept/key.bans", "[{]");
    assert!(check(&sound, &[]).is_ok() && check(&elsewhere, &[]).is_err());
    fs::remove_file(bad).unwrap();
    let token = written(&folder, "token", "no secret");
    let named = format!("{sound} --admin 127.0.0.1:0 --admin-token-file {token}");
    let said = check(&named, &[]).unwrap_err().to_string();
    assert!(said.starts_with("--admin-token-file"), "{said}");
}

/// A secret is named by a file; systemd's credentials need no name.
#[cfg(unix)]
#[test]
fn a_credential_is_taken_if_no_file_was_named() {
    let folder = Folder::new("credentials");
    let credentials = folder.0.to_str().unwrap();
    new_key(&folder, "key-file");
    let state = folder.0.join("state");
    let pairs = [
        ("CREDENTIALS_DIRECTORY", credentials),
        ("STATE_DIRECTORY", state.to_str().unwrap()),
    ];
    let line = "--listen 127.0.0.1:0";
    assert!(check(line, &pairs).is_ok());
    let said = check(line, &pairs[1..]);
    assert!(
        said.unwrap_err().to_string().contains("--key-file"),
        "there is none"
    );
    let Ok(Wanted::Words(words)) = operator().read(&flags("--print-config"), environment(&pairs))
    else {
        panic!("words were asked for");
    };
    let is_it =
        |line: &str| line.starts_with("# key-file ") && line.ends_with("# the credential key-file");
    assert!(words.lines().any(is_it), "{words}");
    // What is no key is told by the credential's name.
    written(&folder, "key-file", "hello");
    let said = check(line, &pairs).unwrap_err().to_string();
    assert!(said.contains("the credential key-file"), "{said}");
    assert!(!said.contains("hello"), "{said}");
}

/// The table in the guide is the table of settings.
#[test]
fn the_guide_lists_every_setting_as_it_is() {
    let path = concat!(env!("CARGO_MANIFEST_DIR"), "/../../docs/src/configuring.rs");
    let guide = fs::read_to_string(path).unwrap();
    let guide: String = guide
        .lines()
        .map(|line| line.trim_start_matches("//!").trim_start().to_owned() + "\n")
        .collect();
    let table = Operator::new("any").many().table();
    assert!(
        guide.contains(&table),
        "the guide lacks this table:\n{table}"
    );
}
