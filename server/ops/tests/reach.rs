//! Each setting reaches its server: a process runs a server with the setting, and is checked from outside.
//!
//! A setting is checked at a value that is not its default. A setting without a check fails [`reaches`].

use std::collections::BTreeSet;
use std::fs;
use std::io::{BufRead, BufReader, Read, Write};
use std::net::{TcpListener, TcpStream};
use std::path::Path;
use std::process::{Command, ExitCode, Stdio};
use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant};

use clap::CommandFactory;
use twinstep_client::{Client, SessionConfig};
use twinstep_core::Simulation;
use twinstep_host::{Blueprint, Server, Stopped};
use twinstep_ops::{AdminAddress, AdminClient};
use twinstep_protocol::packet::WIRE_VERSION;
use twinstep_udp::{MatchId, Ticket, TicketKey, TicketSpec};

use crate::{Flags, Folder, Fuse, IS_SERVER, Process, program};

/// The value of [`IS_SERVER`] for a child process that runs a server, with one match or many, and prints its state.
pub(crate) const TELLS: &str = "tells";
/// Also set for this child: once the server listens, it waits for the end of standard input before it runs.
const WAITS: &str = "OPERATED_WAITS";

const PATIENCE: Duration = Duration::from_secs(30);

/// Settings checked elsewhere in this program, or not at all: whether a write is flushed to survive a power loss cannot
/// be seen from outside, so only the lints ensure that the setting is passed on.
const SEEN_ELSEWHERE: [&str; 6] = [
    "config",
    "check",
    "print-config",
    "breaks-at",
    "stalls",
    "durability",
];

#[expect(clippy::disallowed_methods, reason = "a wait needs an end")]
fn within(what: &str, mut done: impl FnMut() -> bool) {
    let began = Instant::now();
    while !done() {
        let is_in_time = began.elapsed() < PATIENCE;
        assert!(is_in_time, "{what}: not within {PATIENCE:?}");
        std::thread::sleep(Duration::from_millis(5));
    }
}

/// The child's main function: does the same as [`operate`](twinstep_ops::operator::operate), and prints values that
/// requests cannot ask for.
pub(crate) fn serve() -> ExitCode {
    let read = twinstep_ops::operator::read::<Flags>(std::env::args_os(), std::env::vars_os());
    let Ok((flags, _)) = read else {
        return ExitCode::from(2);
    };
    let rules = (flags.breaks_at, flags.stalls);
    let (settings, many) = (flags.settings, flags.many);
    if settings.check {
        let checked = match many.matches {
            None => settings.check_one(Server::action(Fuse::default(), rules)),
            Some(_) => {
                settings.check_many(&many, move |_| Blueprint::action(Fuse::default(), rules))
            }
        };
        checked.expect("it would start");
        return ExitCode::SUCCESS;
    }
    let stopped = if many.matches.is_some() {
        let template = move |_| Blueprint::action(Fuse::default(), rules);
        let server = settings.listen_on_demand(&many, template);
        let server = server.expect("it starts");
        println!("public {:?}", server.running().public_addresses());
        println!("web {:?}", server.running().host().web_address());
        println!("listens {}", server.running().local_addr());
        hold_on();
        server.run_until_stopped()
    } else {
        let server = settings.listen(Server::action(Fuse::default(), rules));
        let server = server.expect("it starts");
        let running = server.running();
        let seats = running.inspect(|game| (game.config().players_max, game.config().spectators));
        println!("seats {seats:?}");
        println!("public {:?}", running.public_addresses());
        println!("web {:?}", running.web_address());
        println!("listens {}", running.local_addr());
        hold_on();
        server.run_until_stopped()
    };
    match stopped.expect("signals are handled") {
        Stopped::InOrder => ExitCode::SUCCESS,
        _ => ExitCode::FAILURE,
    }
}

/// Splits a command line into words, and replaces `@NAME` with the path of that file in `folder`.
fn named(folder: &Folder, flags: &str) -> Vec<String> {
    let named = |flag: &str| match flag.split_once('@') {
        Some((before, name)) => format!("{before}{}", folder.file(name)),
        None => flag.to_owned(),
    };
    flags.split_whitespace().map(named).collect()
}

fn hold_on() {
    if std::env::var_os(WAITS).is_some() {
        let _ = std::io::stdin().read_to_end(&mut Vec::new());
    }
}

/// A server with some settings, in its own folder or in the folder of another server.
struct Started<'f> {
    folder: &'f Folder,
    process: Process,
    output: String,
    address: String,
    rules: (u32, u32),
}

impl<'f> Started<'f> {
    fn terminate(&self) {
        let id = self.process.0.id().to_string();
        let sent = Command::new("kill").args(["-s", "TERM", &id]).status();
        assert!(sent.unwrap().success());
    }

    /// Starts a server. Each `@NAME` in the flags is a file in the folder.
    fn new(folder: &'f Folder, flags: &str) -> Started<'f> {
        Started::by(folder, flags, |_| {})
    }

    fn by(folder: &'f Folder, flags: &str, prepare: impl FnOnce(&mut Command)) -> Started<'f> {
        let flags: Vec<String> = named(folder, flags);
        let flags: Vec<&str> = flags.iter().map(String::as_str).collect();
        let mut command = program(&flags);
        prepare(&mut command);
        command.env(IS_SERVER, TELLS).stderr(Stdio::null());
        let mut process = Process(command.spawn().unwrap());
        let mut output = String::new();
        let mut lines = BufReader::new(process.0.stdout.take().unwrap());
        let mut address = None;
        while address.is_none() && lines.read_line(&mut output).unwrap() > 0 {
            let last = output.lines().last().unwrap_or_default();
            address = last.strip_prefix("listens ").map(str::to_owned);
        }
        let address =
            address.unwrap_or_else(|| panic!("{flags:?}: it ended with the output {output:?}"));
        let rule = |name| {
            let is_it = |pair: &&[&str]| pair[0] == name;
            let pair = flags.windows(2).find(is_it);
            pair.map_or(0, |pair| pair[1].parse().unwrap())
        };
        Started {
            rules: (rule("--breaks-at"), rule("--stalls")),
            folder,
            process,
            output,
            address,
        }
    }

    fn get(&self, path: &str) -> String {
        let socket: AdminAddress = format!("unix:{}", self.folder.file("s")).parse().unwrap();
        let answer = AdminClient::new(socket).get(path);
        answer.map(|answer| answer.body).unwrap_or_default()
    }

    /// Checks that the server refuses newcomers because this resource is short.
    fn is_full_of(&self, what: &str) {
        within(what, || {
            let output = self.get("/readyz");
            output.contains(what)
        });
    }

    fn counts(&self, line: &str) -> bool {
        let metrics = self.get("/metrics");
        metrics.lines().any(|one| one.starts_with(line))
    }

    fn has_some(&self, series: &str) -> bool {
        let metrics = self.get("/metrics");
        let is_some = |line: &str| line.starts_with(series) && !line.ends_with(" 0");
        metrics.lines().any(is_some)
    }

    #[expect(
        clippy::disallowed_methods,
        reason = "real tickets need the wall clock"
    )]
    fn join(&self, key: &str, identity: &str, match_id: u64, seats: u8) -> Client<Fuse> {
        let spec = TicketSpec {
            game: Fuse::NAME,
            wire_version: u32::from(WIRE_VERSION),
            identity,
            match_id: MatchId(match_id),
            seats,
            servers: &[self.address.parse().unwrap()],
            life: Duration::from_secs(600),
            timeout: Duration::from_secs(5),
            now_unix: std::time::SystemTime::now()
                .duration_since(std::time::UNIX_EPOCH)
                .unwrap(),
        };
        let key = TicketKey::load(self.folder.file(key)).unwrap();
        let ticket = Ticket::issue(&key, &spec).unwrap();
        Client::connect(&ticket, SessionConfig::new(Arc::new(self.rules))).unwrap()
    }

    fn plays(&self, key: &str, match_id: u64) -> Client<Fuse> {
        let mut client = self.join(key, "anna", match_id, 1);
        within("playing", || {
            client.advance(|_| 0).unwrap();
            client.session().authority().is_some()
        });
        client
    }
}

/// A fake fleet sidecar. It returns the address that players dial, and records the requests.
struct Sidecar {
    port: String,
    requests: Arc<Mutex<String>>,
}

impl Sidecar {
    fn start() -> Sidecar {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let port = listener.local_addr().unwrap().port().to_string();
        let requests = Arc::<Mutex<String>>::default();
        let received = requests.clone();
        let answer = move |mut stream: TcpStream| {
            let mut asked = [0; 4_096];
            let bytes = stream.read(&mut asked).unwrap_or_default();
            *received.lock().unwrap() += &String::from_utf8_lossy(&asked[..bytes]);
            let meta = "{\"labels\":{},\"annotations\":{}}";
            let ports = "[{\"name\":\"game\",\"port\":7123}]";
            let status =
                format!("{{\"state\":\"Ready\",\"address\":\"192.0.2.7\",\"ports\":{ports}}}");
            let body = format!("{{\"object_meta\":{meta},\"status\":{status}}}");
            let _ = write!(stream, "HTTP/1.0 200 OK\r\n\r\n{body}");
        };
        let serving = move || listener.incoming().flatten().for_each(answer);
        std::thread::Builder::new().spawn(serving).unwrap();
        Sidecar { port, requests }
    }

    fn start_server<'f>(&self, folder: &'f Folder, more: &str) -> Started<'f> {
        let flags = format!("{OWN} --fleet agones --public auto {more}");
        let server = Started::by(folder, &flags, |command| {
            command.env("AGONES_SDK_HTTP_PORT", &self.port);
        });
        assert!(
            server.output.contains("192.0.2.7:7123"),
            "{}",
            server.output
        );
        within("health", || {
            self.requests.lock().unwrap().contains("/health")
        });
        server
    }
}

fn journals(folder: &Folder) -> usize {
    let found = fs::read_dir(folder.file("j")).unwrap();
    let names = found.map(|one| one.unwrap().file_name().into_string().unwrap());
    names.filter(|name| name.starts_with("match-1-")).count()
}

/// A journal of a finished match, which every retention rule removes.
fn old_journal(folder: &Folder) -> impl Fn() -> bool + use<> {
    fs::create_dir_all(folder.file("j")).unwrap();
    let path = folder.file("j/match-9.1.journal");
    fs::write(&path, vec![7; 1_000]).unwrap();
    move || !Path::new(&path).exists()
}

const OWN: &str = "--listen 127.0.0.1:0 --key-file @key --admin 127.0.0.1:0,unix:@s";

fn seats_addresses_and_files(folder: &Folder) {
    TicketKey::generate().save(folder.file("old")).unwrap();
    let is_gone = old_journal(folder);
    let more = "--max-players 2 --spectators 20 --spectator-delay 3 --journal @j --state @state --old-key-file @old \
                --admin-token-file @token --keep-megabytes 0";
    fs::create_dir(folder.file("state")).unwrap();
    let mut server = Started::new(folder, &format!("{OWN} {more}"));
    let seats = "(2, Spectators { max: 20, delay_ticks: 180 })";
    assert!(server.output.contains(seats), "{}", server.output);
    within("no old journal", is_gone);
    assert!(Path::new(&folder.file("token")).exists());
    assert!(!Path::new(&folder.file("key.admin")).exists());
    drop(server.plays("old", 1));
    assert_eq!(journals(folder), 1);
    server.process.0.kill().unwrap();
    server.process.0.wait().unwrap();

    // Without `--new-match`, the match would be resumed.
    let more = "--journal @j --new-match --state @state --disk-limit 1000000000 --keep-days 0";
    let is_gone = old_journal(folder);
    let server = Started::new(folder, &format!("{OWN} {more}"));
    assert_eq!(journals(folder), 2);
    assert!(Path::new(&folder.file("state/key.admin")).exists());
    server.is_full_of("on the disk of the journals");
    within("no old journal", is_gone);
}

fn memory(folder: &Folder) {
    let more = "--memory-limit 1 --public 127.0.0.1:9";
    let server = Started::new(folder, &format!("{OWN} {more}"));
    assert!(server.output.contains("[127.0.0.1:9]"), "{}", server.output);
    server.is_full_of("memory");
}

/// A certificate whose key no longer exists.
const CERTIFICATE: &str = "\
-----BEGIN CERTIFICATE-----
MIIBfzCCASWgAwIBAgIUBQvfqcDQBG3NvhsZ0UExEiic8DEwCgYIKoZIzj0EAwIw
FDESMBAGA1UEAwwJbG9jYWxob3N0MCAXDTI2MTEyODA2MjQxMloYDzIxMjYxMTA0
MDYyNDEyWjAUMRIwEAYDVQQDDAlsb2NhbGhvc3QwWTATBgcqhkjOPQIBBggqhkjO
PQMBBwNCAAQ4jHl0q2gKXdRGBbgaY1HR3zfeTsmEtuxzj+pQqunskMV7nDuYZZux
LXMs062lCMOeNult3UAFJp74D04IJCUNo1MwUTAdBgNVHQ4EFgQUOoCz5Zt9P1jC
Df5ojPeAM7OO8RgwHwYDVR0jBBgwFoAUOoCz5Zt9P1jCDf5ojPeAM7OO8RgwDwYD
VR0TAQH/BAUwAwEB/zAKBggqhkjOPQQDAgNIADBFAiEAwRZrx6IOjrREzOj0JQY5
W8kW+3nYNvkSAUsV/AQuY8ECIBD4JOO5idZpLNcped+RXG8DbZIhNiAb7AW4vLbu
vRrC
-----END CERTIFICATE-----
";

fn browsers(folder: &Folder) {
    browsers_of(folder, "");
}

fn browsers_of_many(folder: &Folder) {
    browsers_of(folder, "--matches 2");
}

/// The port and the hashes are in tickets. A restarted server has the same certificate.
fn browsers_of(folder: &Folder, more: &str) {
    let flags = format!("{OWN} {more} --web 127.0.0.1:0");
    let hashes = || {
        let server = Started::new(folder, &flags);
        let web = server.output.lines().find(|line| line.starts_with("web "));
        let web = web.expect("a line").to_owned();
        assert!(web.contains("127.0.0.1:"), "{web}");
        let hashes = web.split("hashes").nth(1).expect("hashes").to_owned();
        assert!(hashes.len() > 64, "{web}");
        hashes
    };
    let checked = |flags: &str| {
        let flags: Vec<String> = named(folder, &format!("{flags} --check"));
        let flags: Vec<&str> = flags.iter().map(String::as_str).collect();
        program(&flags).env(IS_SERVER, TELLS).output().unwrap()
    };
    let _ = fs::remove_file(folder.file("key.web"));
    assert!(checked(&flags).status.success());
    assert!(
        !Path::new(&folder.file("key.web")).exists(),
        "a check writes no file"
    );
    assert_eq!(hashes(), hashes());
    assert!(checked(&flags).status.success());
    assert!(Path::new(&folder.file("key.web")).exists());

    // Each of the two files is read.
    fs::write(folder.file("chain"), CERTIFICATE).unwrap();
    for (chain, unread) in [("missing", "missing"), ("chain", "no-key")] {
        let files = format!("{flags} --tls-cert @{chain} --tls-key @no-key");
        let check = checked(&files);
        let flags: Vec<String> = named(folder, &files);
        let flags: Vec<&str> = flags.iter().map(String::as_str).collect();
        let output = program(&flags).env(IS_SERVER, TELLS).output().unwrap();
        let said = String::from_utf8_lossy(&output.stderr);
        let names = format!("cannot use {}", folder.file(unread));
        assert!(said.contains(&names), "{said}");
        let said = String::from_utf8_lossy(&check.stderr);
        assert!(!check.status.success() && said.contains(&names), "{said}");
    }
}

fn fleet(folder: &Folder) {
    Sidecar::start().start_server(folder, "");
}

fn incidents(folder: &Folder) {
    let more = "--incidents @i --breaks-at 20";
    let mut server = Started::new(folder, &format!("{OWN} {more}"));
    assert_eq!(server.process.0.wait().unwrap().code(), Some(1));
    assert_eq!(fs::read_dir(folder.file("i")).unwrap().count(), 1);
}

/// Checks that ticks late by a tenth of a second are tolerated with the setting. Without it, they exceed the default
/// limit of 20 ms once there are enough of them, which takes seconds.
fn bears_lateness(server: &Started<'_>, anna: &mut Client<Fuse>) {
    const ENOUGH: u64 = 200;
    within("late ticks", || {
        anna.advance(|_| 0).unwrap();
        let metrics = server.get("/metrics");
        let is_it = |line: &&str| line.starts_with("twinstep_tick_lateness_seconds_count ");
        let count = metrics
            .lines()
            .find(is_it)
            .and_then(|line| line.rsplit(' ').next());
        count.is_some_and(|count| count.parse().is_ok_and(|count: u64| count > ENOUGH))
    });
    assert!(
        !server.has_some("twinstep_load_shedding_level "),
        "no degradation step"
    );
}

fn lateness(folder: &Folder) {
    let more = "--lateness-limit 1000 --stalls 120";
    let server = Started::new(folder, &format!("{OWN} {more}"));
    bears_lateness(&server, &mut server.plays("key", 1));
}

fn without_disk(command: &mut Command) {
    let mut shell = Command::new("sh");
    let script = "trap '' XFSZ; ulimit -f 0; exec \"$0\" \"$@\"";
    shell.args(["-c", script]).arg(command.get_program());
    shell.args(command.get_args());
    for (name, value) in command.get_envs() {
        match value {
            Some(value) => shell.env(name, value),
            None => shell.env_remove(name),
        };
    }
    shell.stdin(Stdio::null()).stdout(Stdio::piped());
    *command = shell;
}

fn a_lost_journal(folder: &Folder) {
    fs::copy(folder.file("key"), folder.file("key.admin")).unwrap();
    let more = "--journal @j --on-journal-failure continue";
    let server = Started::by(folder, &format!("{OWN} {more}"), without_disk);
    within("its journal is lost", || {
        server.counts("twinstep_journal_errors_total 1")
    });
    drop(server.plays("key", 1));
}

fn many_matches(folder: &Folder) {
    let is_gone = old_journal(folder);
    TicketKey::generate().save(folder.file("old")).unwrap();
    let more = "--matches 1 --deserted-after 1 --max-players 3 --spectators 2 --journal @j --keep-days 0 \
                --old-key-file @old --state @state --admin-token-file @token";
    fs::create_dir(folder.file("state")).unwrap();
    let server = Started::new(folder, &format!("{OWN} {more}"));
    within("no old journal", is_gone);
    assert!(server.counts("twinstep_matches_max 1") && server.counts("twinstep_sessions_max 10"));
    let mut anna = server.plays("old", 7);
    within("seats", || server.counts("twinstep_seats_free 2"));
    assert!(Path::new(&folder.file("j/match-7.journal")).exists());
    assert!(Path::new(&folder.file("token")).exists());
    let mut watcher = server.join("key", "bob", 7, 0);
    within("a spectator", || {
        anna.advance(|_| 0).unwrap();
        watcher.advance(|_| 0).unwrap();
        server.counts("twinstep_spectators 1")
    });
    for client in [&mut anna, &mut watcher] {
        client.leave();
    }
    within("it is over", || {
        let _ = (anna.advance(|_| 0), watcher.advance(|_| 0));
        server.counts("twinstep_matches 0")
    });
}

fn many_that_are_made_too_fast(folder: &Folder) {
    let more = "--matches 8 --matches-per-second 1 --incidents @i --breaks-at 20 --keep-megabytes 0 --journal @j \
                --state @state";
    let is_gone = old_journal(folder);
    fs::create_dir(folder.file("state")).unwrap();
    let server = Started::new(folder, &format!("{OWN} {more}"));
    assert!(Path::new(&folder.file("state/key.admin")).exists());
    within("no old journal", is_gone);
    let mut dial: Vec<_> = (1..=8)
        .map(|id| server.join("key", "anna", id, 1))
        .collect();
    within("refused", || {
        for client in &mut dial {
            let _ = client.advance(|_| 0);
        }
        server.has_some("twinstep_match_requests_refused_total{reason=\"rate\"} ")
    });
    let incidents = || fs::read_dir(folder.file("i")).map_or(0, Iterator::count);
    within("an incident", || {
        for client in &mut dial {
            let _ = client.advance(|_| 0);
        }
        incidents() > 0
    });
}

fn many_without_room(folder: &Folder) {
    let more = "--matches 2 --journal @j --memory-limit 1";
    let server = Sidecar::start().start_server(folder, more);
    server.is_full_of("memory");
    drop(server);
    let more = "--matches 2 --journal @j --disk-limit 1000000000";
    let server = Started::new(folder, &format!("{OWN} {more}"));
    server.is_full_of("on the disk of the journals");
}

fn many_that_lose_their_journals(folder: &Folder) {
    fs::copy(folder.file("key"), folder.file("key.admin")).unwrap();
    let more = "--matches 2 --journal @j --on-journal-failure continue";
    let server = Started::by(folder, &format!("{OWN} {more}"), without_disk);
    let _anna = server.plays("key", 1);
    assert!(server.counts("twinstep_journal_errors_total 1"));
}

fn many_that_drain(folder: &Folder) {
    let more = "--matches 2 --drain 3600 --lateness-limit 1000 --stalls 120";
    let server = Started::new(folder, &format!("{OWN} {more}"));
    let mut anna = server.plays("key", 1);
    bears_lateness(&server, &mut anna);
    server.terminate();
    within("draining", || {
        anna.advance(|_| 0).unwrap();
        server.get("/readyz").contains("draining")
    });
    let seen = anna.session().authority().map(|world| world.tick());
    within("playing on", || {
        anna.advance(|_| 0).unwrap();
        let now = anna.session().authority().map(|world| world.tick());
        now > seen.map(|tick| tick + 30)
    });
}

/// A request to end that arrives after the server listens, and before it runs, takes effect when it runs.
fn asked_too_early(folder: &Folder) {
    for more in ["", "--matches 2"] {
        let flags = format!("{OWN} {more}");
        let mut server = Started::by(folder, &flags, |command| {
            command.env(WAITS, "yes").stdin(Stdio::piped());
        });
        server.terminate();
        drop(server.process.0.stdin.take());
        let status = server.process.0.wait().unwrap();
        assert_eq!(status.code(), Some(0), "{more}: {status}");
    }
}

type LookAt = (fn(&Folder), &'static [&'static str]);

const ONE: &[LookAt] = &[
    (
        seats_addresses_and_files,
        &[
            "listen",
            "max-players",
            "key-file",
            "old-key-file",
            "state",
            "journal",
            "new-match",
            "spectators",
            "spectator-delay",
            "disk-limit",
            "admin",
            "admin-token-file",
            "keep-days",
            "keep-megabytes",
        ],
    ),
    (memory, &["memory-limit", "public"]),
    (fleet, &["fleet", "public"]),
    (browsers, &["web", "tls-cert", "tls-key"]),
    (incidents, &["incidents"]),
    (lateness, &["lateness-limit"]),
    (a_lost_journal, &["on-journal-failure"]),
];

const MANY: &[LookAt] = &[
    (
        many_matches,
        &[
            "listen",
            "matches",
            "deserted-after",
            "max-players",
            "spectators",
            "journal",
            "keep-days",
            "key-file",
            "old-key-file",
            "state",
            "admin",
            "admin-token-file",
        ],
    ),
    (
        many_that_are_made_too_fast,
        &["matches-per-second", "incidents", "keep-megabytes"],
    ),
    (
        many_without_room,
        &["public", "fleet", "memory-limit", "disk-limit"],
    ),
    (many_that_lose_their_journals, &["on-journal-failure"]),
    (many_that_drain, &["drain", "lateness-limit"]),
    (browsers_of_many, &["web", "tls-cert", "tls-key"]),
];

/// Runs all checks concurrently, because each waits most of the time.
pub(crate) fn reaches() {
    for (looks, elsewhere) in [
        // A draining server of one match is checked where it is asked to end.
        (
            ONE,
            &["drain", "matches", "deserted-after", "matches-per-second"][..],
        ),
        (MANY, &["new-match", "spectator-delay"]),
    ] {
        let seen: BTreeSet<&str> = looks
            .iter()
            .flat_map(|(_, names)| *names)
            .copied()
            .collect();
        for flag in Flags::command().get_arguments() {
            let name = flag.get_long().expect("each is a long one");
            let is_seen = seen.contains(name) || elsewhere.contains(&name);
            assert!(
                is_seen || SEEN_ELSEWHERE.contains(&name),
                "no check covers {name}"
            );
        }
    }
    std::thread::scope(|scope| {
        scope.spawn(|| asked_too_early(&Folder::new()));
        for (look, _) in ONE.iter().chain(MANY) {
            scope.spawn(move || look(&Folder::new()));
        }
    });
}
