//! Whole programs by [`operate`]: their exit codes and output. This program is both sides: it starts itself again as a
//! server, and checks it. It is a separate program because a server's flags belong to its process.

use std::io::Read;
use std::path::PathBuf;
use std::process::{Child, Command, ExitCode, Stdio};
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

use clap::{Parser, value_parser};
use serde::{Deserialize, Serialize};
use twinstep_core::{Effects, Frame, Never, Simulation};
use twinstep_host::{MatchId, Server};
use twinstep_ops::operator::{ManySettings, SettingError, Settings, operate};

#[cfg(unix)]
mod reach;

/// Set for a child process, which runs the server.
const IS_SERVER: &str = "OPERATED_IS_SERVER";

/// A game with two rules that apply on a server: the tick at which it panics (0 for never), and the milliseconds that
/// every 64th tick takes.
#[derive(Clone, Debug, Default, Serialize, Deserialize)]
struct Fuse(u32);

impl Simulation for Fuse {
    const NAME: &'static str = "fuse";
    const VERSION: u32 = 1;
    type Rules = (u32, u32);
    type Input = u8;
    type Command = Never;
    type Query = Never;
    type Outcome = Never;
    type Cue = Never;

    fn step(&mut self, frame: &Frame<'_, Self>, _: &mut Effects<Self>) {
        self.0 += 1;
        let (breaks_at, stall_ms) = *frame.rules();
        let thread = std::thread::current();
        if !thread.name().is_some_and(|name| name.starts_with("match-")) {
            return;
        }
        if stall_ms > 0 && self.0.is_multiple_of(64) {
            std::thread::sleep(Duration::from_millis(stall_ms.into()));
        }
        assert_ne!(self.0, breaks_at, "planted");
    }
}

#[derive(Debug, Parser)]
#[command(name = "fuse", mut_arg("max_players", |arg| {
    arg.value_parser(value_parser!(u64).range(1..=4)).default_value("4")
}))]
struct Flags {
    #[command(flatten)]
    settings: Settings,
    #[command(flatten)]
    many: ManySettings,
    /// The tick at which the server's step panics
    #[arg(long, default_value_t = 0, value_parser = value_parser!(u32).range(..=1_000))]
    breaks_at: u32,
    /// The milliseconds that a slow step takes
    #[arg(long, default_value_t = 0, value_parser = value_parser!(u32).range(..=1_000))]
    stalls: u32,
}

fn serve() -> ExitCode {
    operate(
        |flags: &Flags| &flags.settings,
        |flags| match flags.breaks_at {
            13 => Err(SettingError::refused(
                "breaks-at",
                "expected another number, got 13",
            )),
            at => Ok(Server::action(Fuse::default(), (at, 0))),
        },
    )
}

struct Folder(PathBuf);

impl Folder {
    fn new() -> Folder {
        static MADE: AtomicUsize = AtomicUsize::new(0);
        let made = MADE.fetch_add(1, Ordering::Relaxed);
        let name = format!("twinstep-operated-{}-{made}", std::process::id());
        let path = std::env::temp_dir().join(name);
        let _ = std::fs::remove_dir_all(&path);
        std::fs::create_dir_all(&path).unwrap();
        let key = twinstep_udp::TicketKey::generate();
        key.save(path.join("key")).unwrap();
        Folder(path)
    }

    fn file(&self, name: &str) -> String {
        self.0.join(name).to_str().unwrap().to_owned()
    }

    fn server(&self, more: &[&str]) -> Command {
        let key = self.file("key");
        let mut command = program(&["--listen", "127.0.0.1:0", "--key-file", &key]);
        command.args(more);
        command
    }
}

impl Drop for Folder {
    fn drop(&mut self) {
        let _ = std::fs::remove_dir_all(&self.0);
    }
}

fn program(flags: &[&str]) -> Command {
    let mut command = Command::new(std::env::current_exe().unwrap());
    // The environment of a test run must not be a server setting.
    for (name, _) in std::env::vars_os() {
        if name.to_string_lossy().starts_with("TWINSTEP_") {
            command.env_remove(name);
        }
    }
    command
        .env(IS_SERVER, "yes")
        .args(flags)
        .stdin(Stdio::null())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped());
    command
}

struct Process(Child);

impl Drop for Process {
    fn drop(&mut self) {
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

fn ends(mut command: Command, code: i32, out: &str, err: &str) {
    let mut process = Process(command.spawn().unwrap());
    let (mut output, mut errors) = (String::new(), String::new());
    let (stdout, stderr) = (process.0.stdout.take(), process.0.stderr.take());
    stdout.unwrap().read_to_string(&mut output).unwrap();
    stderr.unwrap().read_to_string(&mut errors).unwrap();
    let status = process.0.wait().unwrap();
    let message = format!("{command:?}: {status}, output {output:?} and {errors:?}");
    assert_eq!(status.code(), Some(code), "{message}");
    assert!(output.contains(out) && errors.contains(err), "{message}");
    assert!(!out.is_empty() || output.is_empty(), "{message}");
}

fn help_and_version_are_printed_without_serving() {
    let folder = Folder::new();
    ends(program(&["--help"]), 0, "--breaks-at", "");
    ends(folder.server(&["--print-config"]), 0, "breaks-at = 0", "");
    ends(folder.server(&["--check"]), 0, "are valid", "");
    // A reader that closes the output early is not an error.
    let mut unread = Process(folder.server(&["--print-config"]).spawn().unwrap());
    drop(unread.0.stdout.take());
    assert_eq!(unread.0.wait().unwrap().code(), Some(0));
}

fn invalid_flags_are_reported_and_exit_with_2() {
    let folder = Folder::new();
    ends(folder.server(&["--wings", "3"]), 2, "", "--wings");
    let many = "error: invalid value '9' for '--max-players <N>': expected 1 to 4, got 9";
    ends(folder.server(&["--max-players", "9"]), 2, "", many);
    let named = "error: environment variable TWINSTEP_BREAKS_AT: invalid value 'soon'";
    let mut by_environment = folder.server(&[]);
    by_environment.env("TWINSTEP_BREAKS_AT", "soon");
    ends(by_environment, 2, "", named);
    // Refused by the author's code, and by the operating system.
    let refused = "error: --breaks-at: expected another number, got 13";
    ends(folder.server(&["--breaks-at", "13"]), 2, "", refused);
    let taken = std::net::UdpSocket::bind("127.0.0.1:0").unwrap();
    let address = taken.local_addr().unwrap().to_string();
    let key = folder.file("key");
    let listens = program(&["--listen", &address, "--key-file", &key]);
    ends(listens, 2, "", "error: cannot listen on");
}

/// A secret is given as a file. A systemd credential needs no name, and the related files are in its state folder.
#[cfg(unix)]
fn a_credential_is_used_if_no_file_was_named() {
    let folder = Folder::new();
    let by = |credential: &str| {
        std::fs::copy(folder.file("key"), folder.file("key-file")).unwrap();
        if !credential.is_empty() {
            std::fs::write(folder.file("key-file"), credential).unwrap();
        }
        let mut command = program(&["--listen", "127.0.0.1:0", "--check"]);
        command.env("CREDENTIALS_DIRECTORY", folder.file(""));
        command.env("STATE_DIRECTORY", folder.file("state"));
        command
    };
    ends(by(""), 0, "are valid", "");
    // An invalid key is reported by the credential's name.
    ends(
        by("hello"),
        2,
        "",
        "error: the credential key-file (in $CREDENTIALS_DIRECTORY):",
    );
    std::fs::remove_file(folder.file("key-file")).unwrap();
    let none = program(&["--listen", "127.0.0.1:0", "--check"]);
    ends(none, 2, "", "--key-file");
}

fn a_match_that_ends_by_a_fault_is_a_failure() {
    let folder = Folder::new();
    let fault = "error: a fault ended the match";
    ends(folder.server(&["--breaks-at", "20"]), 1, "", fault);
}

/// Servers asked to end, once and twice.
#[cfg(unix)]
mod asked {
    use std::io::Write;
    use std::os::unix::net::UnixStream;
    use std::sync::Arc;
    use std::time::Instant;

    use twinstep_client::{Client, SessionConfig};
    use twinstep_protocol::packet::WIRE_VERSION;
    use twinstep_udp::{Ticket, TicketKey, TicketSpec};

    use super::*;

    const PATIENCE: Duration = Duration::from_secs(30);

    #[expect(clippy::disallowed_methods, reason = "a wait needs an end")]
    fn within(what: &str, mut done: impl FnMut() -> bool) {
        let began = Instant::now();
        while !done() {
            assert!(
                began.elapsed() < PATIENCE,
                "{what}: not within {PATIENCE:?}"
            );
            std::thread::sleep(Duration::from_millis(5));
        }
    }

    struct Served {
        folder: Folder,
        process: Process,
        address: String,
    }

    impl Served {
        fn start(more: &[&str]) -> Served {
            let folder = Folder::new();
            // The port was free a moment ago.
            let free = std::net::UdpSocket::bind("127.0.0.1:0").unwrap();
            let address = free.local_addr().unwrap().to_string();
            drop(free);
            let admin = format!("unix:{}", folder.file("admin.sock"));
            let key = folder.file("key");
            let own = ["--listen", &address, "--key-file", &key, "--admin", &admin];
            let mut command = program(&own);
            // Its logs are discarded, and the rest is not read.
            command
                .args(more)
                .stderr(Stdio::null())
                .stdout(Stdio::null());
            let process = Process(command.spawn().unwrap());
            let served = Served {
                folder,
                process,
                address,
            };
            within("ready", || served.ready().contains("200 OK"));
            served
        }

        fn ready(&self) -> String {
            let mut answer = String::new();
            if let Ok(mut stream) = UnixStream::connect(self.folder.file("admin.sock")) {
                let _ = stream.write_all(b"GET /readyz HTTP/1.1\r\nHost: x\r\n\r\n");
                let _ = stream.read_to_string(&mut answer);
            }
            answer
        }

        #[expect(
            clippy::disallowed_methods,
            reason = "real tickets need the wall clock"
        )]
        fn join(&self) -> Client<Fuse> {
            let spec = TicketSpec {
                game: Fuse::NAME,
                wire_version: u32::from(WIRE_VERSION),
                identity: "anna",
                match_id: MatchId(1),
                seats: 1,
                servers: &[self.address.parse().unwrap()],
                life: Duration::from_secs(600),
                timeout: Duration::from_secs(5),
                now_unix: std::time::SystemTime::now()
                    .duration_since(std::time::UNIX_EPOCH)
                    .unwrap(),
            };
            let key = TicketKey::load(self.folder.file("key")).unwrap();
            let ticket = Ticket::issue(&key, &spec).unwrap();
            Client::connect(&ticket, SessionConfig::new(Arc::new((0, 0)))).unwrap()
        }

        fn terminate(&self) {
            let id = self.process.0.id().to_string();
            let sent = Command::new("kill").args(["-s", "TERM", &id]).status();
            assert!(sent.unwrap().success());
        }

        fn code(mut self) -> Option<i32> {
            let mut status = None;
            within("its end", || {
                status = self.process.0.try_wait().unwrap();
                status.is_some()
            });
            status.unwrap().code()
        }
    }

    pub(super) fn a_server_that_is_asked_to_end_exits_with_0() {
        let served = Served::start(&[]);
        served.terminate();
        assert_eq!(served.code(), Some(0));
    }

    pub(super) fn a_server_stopped_twice_exits_with_a_failure() {
        let served = Served::start(&["--drain", "3600"]);
        let mut anna = served.join();
        within("playing", || {
            anna.advance(|_| 0).unwrap();
            anna.session().authority().is_some()
        });
        served.terminate();
        within("draining", || {
            anna.advance(|_| 0).unwrap();
            served.ready().contains("draining")
        });
        // The server waits for its players to leave.
        let seen = anna.session().authority().map(|world| world.tick());
        within("playing on", || {
            anna.advance(|_| 0).unwrap();
            let now = anna.session().authority().map(|world| world.tick());
            now > seen.map(|tick| tick + 180)
        });
        served.terminate();
        assert_eq!(served.code(), Some(130));
    }
}

fn main() -> ExitCode {
    match std::env::var(IS_SERVER).as_deref() {
        #[cfg(unix)]
        Ok(reach::TELLS) => return reach::serve(),
        Ok(_) => return serve(),
        Err(_) => {}
    }
    // A tool that lists tests finds none here, because this is one program.
    if std::env::args().any(|word| word == "--list") {
        return ExitCode::SUCCESS;
    }
    // The cases wait for processes, so they run concurrently. A panic ends the program with 101.
    std::thread::scope(|scope| {
        scope.spawn(help_and_version_are_printed_without_serving);
        scope.spawn(invalid_flags_are_reported_and_exit_with_2);
        scope.spawn(a_match_that_ends_by_a_fault_is_a_failure);
        #[cfg(unix)]
        {
            scope.spawn(a_credential_is_used_if_no_file_was_named);
            scope.spawn(reach::reaches);
            scope.spawn(asked::a_server_that_is_asked_to_end_exits_with_0);
            scope.spawn(asked::a_server_stopped_twice_exits_with_a_failure);
        }
    });
    ExitCode::SUCCESS
}
