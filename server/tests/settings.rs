//! What an operator chooses: by flags, environment and file; and what is said of what cannot be meant.

use std::ffi::OsString;
use std::fs;

use clap::Command;
use twinstep_server::TicketKey;
use twinstep_server::operator::{
    Configured, GivenFlags, Operator, Setting, SettingError, SettingSource, Wanted,
};

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
        Wanted::Words(words) => panic!("{words}"),
    }
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
    // Nothing is near this.
    let said = refusal("", &[("TWINSTEP_ZZQXJ", "3")]);
    assert!(!said.contains("did you mean"), "{said}");
    // A file names no file.
    let file = written(&folder, "t.toml", "config = \"s.toml\"\n");
    assert!(refusal(&format!("--config {file}"), &[]).contains("no such setting"));
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
        (
            "take-over = \"127.0.0.1:1\"\njournal = \"x\"",
            &["take-over", "cannot be used with", "line 2, journal"],
        ),
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
    let check = |line: &str, pairs: &[(&str, &str)]| {
        operator().read(&flags(&format!("{line} --check")), environment(pairs))
    };
    let before = fs::read_dir(&folder.0).unwrap().count();
    let sound = format!("--key-file {key} --listen 127.0.0.1:0 --journal {key}.journals");
    assert!(matches!(check(&sound, &[]), Ok(Wanted::Words(_))));
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
    let refused = check(&format!("{sound} --public auto"), &[]);
    assert!(refused.unwrap_err().to_string().contains("--fleet agones"));
    // What belongs to the key is found beside it, or where it is said to be.
    for name in ["key.bans", "key.serials", "key.old", "key.admin"] {
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
    let pairs = [
        ("CREDENTIALS_DIRECTORY", credentials),
        ("STATE_DIRECTORY", "/nowhere/state"),
    ];
    let line = "--listen 127.0.0.1:0 --check";
    assert!(operator().read(&flags(line), environment(&pairs)).is_ok());
    let said = operator().read(&flags(line), environment(&pairs[1..]));
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
    let said = operator()
        .read(&flags(line), environment(&pairs))
        .unwrap_err()
        .to_string();
    assert!(said.contains("the credential key-file"), "{said}");
    assert!(!said.contains("hello"), "{said}");
}

/// The table in the guide is the table of settings.
#[test]
fn the_guide_lists_every_setting_as_it_is() {
    let path = concat!(env!("CARGO_MANIFEST_DIR"), "/src/guide/configuring.rs");
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
