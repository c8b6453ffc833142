//! Settings from flags, environment and file; and the errors for invalid ones.

use std::fs;
use std::path::PathBuf;

use clap::{Parser, value_parser};
use twinstep_core::testing::doc::Counter;
use twinstep_server::MatchConfig;
use twinstep_udp::TicketKey;

use super::*;

#[derive(Debug, Parser)]
#[command(name = "test", mut_arg("max_players", |arg| arg.value_parser(value_parser!(u64).range(1..=8))))]
struct Flags {
    #[command(flatten)]
    settings: Settings,
    #[command(flatten)]
    many: ManySettings,
    /// How many wings
    #[arg(long, default_value_t = 2, value_parser = value_parser!(u32).range(0..=9))]
    wings: u32,
}

struct Folder(PathBuf);

impl Folder {
    fn new(name: &str) -> Folder {
        let path = std::env::temp_dir().join(format!("twinstep-{name}-{}", std::process::id()));
        let _ = fs::remove_dir_all(&path);
        fs::create_dir_all(&path).unwrap();
        Folder(path)
    }

    fn written(&self, name: &str, text: &str) -> String {
        let path = self.0.join(name);
        fs::write(&path, text).unwrap();
        path.to_str().unwrap().to_owned()
    }

    fn new_key(&self, name: &str) -> String {
        let path = self.0.join(name);
        TicketKey::generate().save(&path).unwrap();
        path.to_str().unwrap().to_owned()
    }
}

impl Drop for Folder {
    fn drop(&mut self) {
        let _ = fs::remove_dir_all(&self.0);
    }
}

fn read_both(line: &str, pairs: &[(&str, &str)]) -> Result<(Flags, ReadSettings), String> {
    let words = std::iter::once("test").chain(line.split_whitespace());
    let pairs = pairs
        .iter()
        .map(|(name, value)| (name.into(), value.into()));
    read::<Flags>(words.map(OsString::from), pairs).map_err(|error| error.to_string())
}

fn refusal(line: &str, pairs: &[(&str, &str)]) -> String {
    read_both(line, pairs).expect_err(line)
}

fn counter(policies: MatchConfig) -> Server<Counter> {
    Server::with(policies, Counter::default(), ())
}

fn check_of(policies: MatchConfig, line: &str, pairs: &[(&str, &str)]) -> Result<String, String> {
    let (flags, _) = read_both(line, pairs)?;
    let checked = flags.settings.check_one(counter(policies));
    checked
        .map(|()| ReadSettings::check_report().to_owned())
        .map_err(|error| error.to_string())
}

fn check(line: &str, pairs: &[(&str, &str)]) -> Result<String, String> {
    check_of(MatchConfig::action(), line, pairs)
}

#[test]
fn a_switch_turned_off_by_the_environment_stays_off() {
    let folder = Folder::new("switch-off");
    let file = folder.written("s.toml", "new-match = true\njournal = \"x\"\n");
    let line = format!("--config {file}");
    let new_match = |pairs: &[(&str, &str)]| read_both(&line, pairs).unwrap().0.settings.new_match;
    assert!(new_match(&[]));
    assert!(!new_match(&[("TWINSTEP_NEW_MATCH", "false")]));
}

#[test]
fn flags_override_the_environment_which_overrides_the_file() {
    let folder = Folder::new("order");
    let text = "# a server\nmax-players = 3\nwings = 4\nspectators = 5\npublic = [\"1.2.3.4:5\", \"[::1]:6\"]\n\
                new-match = false\nincidents = \"-x\"\n";
    let file = folder.written("s.toml", text);
    let line = format!("--config {file} --max-players 1");
    let pairs = [("TWINSTEP_MAX_PLAYERS", "2"), ("TWINSTEP_WINGS", "7")];
    let (flags, reading) = read_both(&line, &pairs).unwrap();
    let Settings {
        max_players,
        spectators,
        spectator_delay,
        new_match,
        public,
        incidents,
        ..
    } = flags.settings;
    assert_eq!((max_players, spectators, spectator_delay), (1, 5, 0));
    assert_eq!((flags.wings, new_match, public.len()), (7, false, 2));
    assert_eq!(incidents, Some("-x".into()), "it may begin with a sign");
    for (start, end) in [
        ("max-players = 1 ", "# --max-players"),
        ("wings = 7 ", "# environment variable TWINSTEP_WINGS"),
        ("spectators = 5 ", &format!("# {file}, spectators")),
        (
            "public = \"1.2.3.4:5,[::1]:6\"",
            &format!("# {file}, public"),
        ),
        ("spectator-delay = 0 ", "# default"),
        ("new-match = false", &format!("# {file}, new-match")),
        ("# journal: not set", "not set"),
        ("# keep-days: not set", "(default: never)"),
    ] {
        let is_it = |line: &str| line.starts_with(start) && line.ends_with(end);
        assert!(
            reading.printed.lines().any(is_it),
            "{start}: {}",
            reading.printed
        );
    }
    // The environment can also name the file.
    let (flags, _) = read_both("", &[("TWINSTEP_CONFIG", &file)]).unwrap();
    assert_eq!(flags.settings.max_players, 3);
}

#[test]
fn an_unknown_key_is_an_error_with_its_place_and_the_nearest_flag() {
    let folder = Folder::new("nearest");
    let file = folder.written("s.toml", "wings = 1\n\nmax-playrs = 3\n");
    let said = refusal(&format!("--config {file}"), &[]);
    assert!(
        said.contains(&format!("{file}, max-playrs: not a setting")),
        "{said}"
    );
    assert!(said.contains("did you mean max-players?"), "{said}");
    // A settings file cannot name another.
    let file = folder.written("t.toml", "config = \"s.toml\"\n");
    assert!(refusal(&format!("--config {file}"), &[]).contains("another settings file"));
}

/// Finding P3-E1: a Kubernetes Service named like the game stopped every server of its namespace.
#[test]
fn unknown_variables_are_logged_and_do_not_stop_a_server() {
    let folder = Folder::new("links");
    let line = format!("--key-file {} --listen 127.0.0.1:0", folder.new_key("key"));
    for (name, value) in [
        ("TWINSTEP_SERVICE_HOST", "10.0.0.1"),
        ("TWINSTEP_PORT_7777_UDP", "udp://10.0.0.1:7777"),
        ("TWINSTEP_ADMIN_PORT", "tcp://10.0.0.1:7700"),
        ("TWINSTEP_MAX_PLAYER", "3"),
    ] {
        let (_, reading) = read_both(&line, &[(name, value)]).unwrap();
        assert_eq!(reading.unknown, [name]);
        // Only the log names the variable.
        let said = check(&line, &[(name, value)]).unwrap();
        assert!(!said.contains(name), "{said}");
    }
    let (_, reading) = read_both(&line, &[("OTHER", "x")]).unwrap();
    assert!(reading.unknown.is_empty());
}

/// Finding O3-9: the unit's `ExecStartPre` passed, and the restart failed.
#[cfg(all(unix, not(target_vendor = "apple")))]
#[test]
fn a_check_fails_whenever_a_start_does_with_the_same_message() {
    let folder = Folder::new("agree");
    let key = folder.new_key("key");
    let pipe = folder.0.join("pipe");
    // No process is started for it: until its `exec` it would hold the locks of other tests.
    rustix::fs::mkfifoat(rustix::fs::CWD, &pipe, rustix::fs::Mode::RWXU).unwrap();
    let pipe = pipe.to_str().unwrap();
    let sound = format!("--listen 127.0.0.1:0 --key-file {key}");
    let action = MatchConfig::action;
    let impossible = MatchConfig {
        tick: std::time::Duration::ZERO,
        ..action()
    };
    for (policies, more, pairs, words) in [
        (
            action(),
            "--journal /proc/x",
            &[][..],
            "--journal: cannot use /proc/x",
        ),
        (action(), "--state /proc/x", &[], "--state: cannot use"),
        (
            action(),
            "--incidents /proc/x/y",
            &[],
            "--incidents: cannot use",
        ),
        (
            action(),
            &format!("--incidents {key}/y"),
            &[],
            "--incidents: cannot use",
        ),
        (
            action(),
            "",
            &[("TWINSTEP_JOURNAL", "a\0b")],
            "--journal: cannot use",
        ),
        (
            action(),
            &format!("--old-key-file {pipe}"),
            &[],
            "expected a regular file",
        ),
        (
            action(),
            &format!("--admin-token-file {pipe}"),
            &[],
            "expected a regular file",
        ),
        (
            action(),
            "--admin unix:/proc/x/s",
            &[],
            "--admin: cannot use",
        ),
        (
            action(),
            &format!("--config {pipe}"),
            &[],
            "expected a regular file",
        ),
        (impossible, "", &[], "tick"),
    ] {
        let line = format!("{sound} {more}");
        let checked = check_of(policies.clone(), &line, pairs).expect_err(&line);
        assert!(
            checked.contains(words),
            "{line} should say {words:?}: {checked}"
        );
        let started = read_both(&line, pairs).and_then(|(flags, _)| {
            let started = flags.settings.listen(counter(policies));
            started.map_err(|error| error.to_string())
        });
        assert_eq!(started.err(), Some(checked), "{line}");
    }
    // The check passes whenever the start does.
    let deep = format!(
        "{sound} --journal {0}/a/b --state {0}/c",
        folder.0.display()
    );
    assert!(check(&deep, &[]).is_ok());
    assert!(!folder.0.join("a").exists() && !folder.0.join("c").exists());
    let (flags, _) = read_both(&deep, &[]).unwrap();
    assert!(flags.settings.listen(counter(action())).is_ok());
}

#[test]
fn an_unusable_value_is_refused_with_its_place_and_the_expected_form() {
    let folder = Folder::new("values");
    for (text, words) in [
        (
            "max-players = 9",
            &["s.toml, max-players", "'9'", "expected 1 to 8"][..],
        ),
        ("max-players = -1", &["s.toml, max-players", "'-1'"]),
        (
            "max-players = 1.5",
            &["s.toml, max-players", "a whole number"],
        ),
        ("max-players = [1]", &["a list of strings"]),
        ("[max-players]\nx = 1", &["s.toml, max-players"]),
        ("new-match = 1", &["s.toml, new-match", "true or false"]),
        (
            "durability = \"often\"",
            &["s.toml, durability", "process, power"],
        ),
        (
            "public = \"0.0.0.0:1\"",
            &["s.toml, public", "cannot be dialled"],
        ),
        (
            "listen = \"here\"",
            &["s.toml, listen", "IP:PORT", "'here'"],
        ),
        ("new-match = true", &["--journal"]),
        ("max-players 8", &["line 1", "expected TOML"]),
        ("wings = 1\nwings = 2", &["line 2", "expected TOML"]),
    ] {
        let file = folder.written("s.toml", text);
        let said = refusal(&format!("--config {file}"), &[]);
        for word in words {
            assert!(said.contains(word), "{text:?} should say {word:?}: {said}");
        }
    }
    let said = refusal("", &[("TWINSTEP_WINGS", "\u{1b}[2J")]);
    assert!(
        said.contains("environment variable TWINSTEP_WINGS: invalid value"),
        "{said}"
    );
    assert!(!said.contains('\u{1b}'), "{said}");
    // An empty name is refused, and so is a file of more than a megabyte.
    assert!(refusal("", &[("TWINSTEP_CONFIG", "")]).contains("TWINSTEP_CONFIG"));
    let large = folder.written("large.toml", &" ".repeat((1 << 20) + 1));
    assert!(refusal(&format!("--config {large}"), &[]).contains("cannot read"));
    let said = refusal("--config nowhere.toml", &[]);
    assert!(
        said.contains("cannot read the settings file nowhere.toml"),
        "{said}"
    );
}

#[test]
fn printed_settings_are_a_settings_file_without_secrets() {
    let folder = Folder::new("print");
    let key = folder.new_key("key");
    let line = format!("--key-file {key} --listen 127.0.0.1:0");
    let (_, reading) = read_both(&line, &[("TWINSTEP_INCIDENTS", "a\"b\tc")]).unwrap();
    let secret = fs::read_to_string(&key).unwrap();
    assert!(!reading.printed.contains(secret.lines().last().unwrap()));
    assert!(!reading.printed.contains('\t'), "{}", reading.printed);
    let file = folder.written("printed.toml", &reading.printed);
    let (again, _) = read_both(&format!("--config {file}"), &[]).unwrap();
    assert_eq!(again.settings.incidents, Some("a\"b\tc".into()));
    assert_eq!(again.settings.listen.unwrap().port(), 0);
}

#[test]
fn a_check_reads_all_files_and_creates_no_file() {
    let folder = Folder::new("check");
    let key = folder.new_key("key");
    let before = fs::read_dir(&folder.0).unwrap().count();
    let sound = format!("--key-file {key} --listen 127.0.0.1:0 --journal {key}.journals");
    let said = check(&sound, &[]).unwrap();
    assert!(said.starts_with("settings and files are valid ("), "{said}");
    assert_eq!(
        fs::read_dir(&folder.0).unwrap().count(),
        before,
        "no file was created"
    );
    for (line, words) in [
        ("--listen 127.0.0.1:0", "--key-file"),
        (&*format!("--key-file {key}"), "TWINSTEP_LISTEN"),
        (
            "--listen 127.0.0.1:0 --key-file nowhere",
            "--key-file: there is no key file at nowhere",
        ),
        (
            &*format!("{sound} --old-key-file nowhere"),
            "--old-key-file: there is no key file",
        ),
        (&*format!("{sound} --spectators 17"), "--spectator-delay"),
        (
            &*format!("--listen 127.0.0.1:0 --key-file {key} --journal {key}"),
            "--journal: cannot use",
        ),
        (&*format!("{sound} --public auto"), "--fleet agones"),
        (
            &*format!("{sound} --admin 127.0.0.1:1,127.0.0.1:2"),
            "one of each",
        ),
    ] {
        let said = check(line, &[]).unwrap_err();
        assert!(said.contains(words), "{line} should say {words:?}: {said}");
    }
    // A socket of one family receives no packets of the other (finding P3-M3).
    for (listen, public, is_sound) in [
        ("0.0.0.0:7777", "[::1]:7777", false),
        ("0.0.0.0:7777", "192.0.2.1:7777,[::1]:7777", false),
        ("[::1]:7777", "192.0.2.1:7777", false),
        ("[::]:7777", "192.0.2.1:7777,[::1]:7777", true),
        ("0.0.0.0:7777", "192.0.2.1:7777", true),
        ("[::ffff:127.0.0.1]:7777", "192.0.2.1:7777", true),
    ] {
        let line = format!("--key-file {key} --listen {listen} --public {public}");
        let said = check(&line, &[]);
        assert_eq!(said.is_ok(), is_sound, "{line}");
        let named = said
            .err()
            .is_none_or(|said| said.contains("--listen [::]:7777"));
        assert!(named, "{line}");
    }
    // The files of the key are next to it, or where the settings say.
    for name in ["key.bans", "key.lineages", "key.old", "key.admin"] {
        let path = folder.written(name, "[{]");
        let said = check(&sound, &[]).expect_err(name);
        assert!(said.contains(name), "{said}");
        fs::remove_file(path).unwrap();
    }
    fs::create_dir(folder.0.join("kept")).unwrap();
    let elsewhere = format!("{sound} --state {}", folder.0.join("kept").display());
    let bad = folder.written("kept/key.bans", "[{]");
    assert!(check(&sound, &[]).is_ok() && check(&elsewhere, &[]).is_err());
    fs::remove_file(bad).unwrap();
    let token = folder.written("token", "no secret");
    let named = format!("{sound} --admin 127.0.0.1:0 --admin-token-file {token}");
    let said = check(&named, &[]).unwrap_err();
    assert!(said.starts_with("--admin-token-file"), "{said}");
}

#[test]
fn a_check_reads_the_journal_that_the_start_would_resume_and_leaves_it_as_it_is() {
    let folder = Folder::new("check-resume");
    let key = folder.new_key("key");
    let journals = folder.0.join("journals");
    fs::create_dir(&journals).unwrap();
    let path = journals.join("match-1-1.journal");
    let server = counter(MatchConfig::action()).journal(&path);
    let running = server.listen("127.0.0.1:0").unwrap();
    std::thread::sleep(std::time::Duration::from_millis(500));
    drop(running);
    let line = format!(
        "--key-file {key} --listen 127.0.0.1:0 --journal {}",
        journals.display()
    );
    check(&line, &[]).unwrap();
    let mut bytes = fs::read(&path).unwrap();
    // In the last record, after the world.
    let late = bytes.len() - 3;
    bytes[late] ^= 1;
    fs::write(&path, &bytes).unwrap();
    let said = check(&line, &[]).unwrap_err();
    assert!(said.contains("match-1-1.journal"), "{said}");
    assert_eq!(fs::read(&path).unwrap(), bytes);
    check(&format!("{line} --new-match"), &[]).unwrap();
}

#[test]
fn a_wrong_number_in_a_flag_is_reported_like_one_in_a_file() {
    for (line, words) in [
        (
            "--drain abc",
            "'abc' for '--drain <SECONDS>': expected a whole number",
        ),
        (
            "--max-players 99",
            "'--max-players <N>': expected 1 to 8, got 99",
        ),
    ] {
        let said = refusal(line, &[]);
        assert!(said.contains(words), "{said}");
        assert!(
            said.starts_with("error: ") && said.contains("--help"),
            "{said}"
        );
    }
}

#[test]
fn the_guide_lists_every_setting() {
    #[derive(Parser)]
    struct Every {
        #[command(flatten)]
        _settings: Settings,
        #[command(flatten)]
        _many: ManySettings,
    }
    let path = concat!(
        env!("CARGO_MANIFEST_DIR"),
        "/../../docs/guide/configuring.md"
    );
    let guide = fs::read_to_string(path).unwrap().replace("\r\n", "\n");
    let table = table(&Every::command());
    assert!(
        guide.contains(&table),
        "the guide lacks this table:\n{table}"
    );
}
