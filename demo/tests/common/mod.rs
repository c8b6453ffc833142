//! The program as a process: it is started, read and signalled, and ends with its test.

use std::fs;
use std::io::{BufRead, BufReader, Read};
use std::path::PathBuf;
use std::process::{Child, Command, Output, Stdio};
use std::sync::atomic::{AtomicU32, Ordering};
use std::time::{Duration, Instant};

/// The maximum time of a wait, which only an overloaded machine reaches.
const PATIENCE: Duration = Duration::from_secs(30);

/// The program with these arguments. It does not open a window, even if there is a display; it does not read input; the
/// test gets its output; and it touches no file of the user that runs the test.
pub(crate) fn powderkeg(args: &[&str]) -> Command {
    let mut command = Command::new(env!("CARGO_BIN_EXE_powderkeg"));
    for name in ["DISPLAY", "WAYLAND_DISPLAY", "RUST_LOG"] {
        command.env_remove(name);
    }
    for name in ["HOME", "XDG_CONFIG_HOME", "APPDATA"] {
        command.env(name, std::env::temp_dir().join("powderkeg-nobody"));
    }
    without_settings(&mut command)
        .args(args)
        .stdin(Stdio::null())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped());
    command
}

pub(crate) fn without_settings(command: &mut Command) -> &mut Command {
    for (name, _) in std::env::vars_os() {
        if name.to_string_lossy().starts_with("TWINSTEP_") {
            command.env_remove(name);
        }
    }
    command
}

pub(crate) fn run(args: &[&str]) -> Output {
    powderkeg(args).output().unwrap()
}

pub(crate) fn succeed(args: &[&str]) -> String {
    let output = run(args);
    assert!(output.status.success(), "{args:?}: {output:?}");
    String::from_utf8(output.stdout).unwrap()
}

pub(crate) fn refused(args: &[&str], words: &[&str]) {
    let output = run(args);
    let said = String::from_utf8(output.stderr).unwrap();
    assert_eq!(output.status.code(), Some(2), "{args:?}: {said}");
    for word in words {
        assert!(said.contains(word), "{args:?} should say {word:?}: {said}");
    }
}

pub(crate) struct Process(pub(crate) Child);

impl Process {
    pub(crate) fn start(args: &[&str]) -> Process {
        Process(powderkeg(args).spawn().unwrap())
    }

    pub(crate) fn signal(&self, name: &str) {
        let id = self.0.id().to_string();
        let sent = Command::new("kill").args(["-s", name, &id]).status();
        assert!(sent.unwrap().success());
    }

    pub(crate) fn has_ended(&mut self) -> bool {
        self.0.try_wait().unwrap().is_some()
    }

    pub(crate) fn log(&mut self) -> impl Iterator<Item = String> + Send + use<> {
        let log = BufReader::new(self.0.stderr.take().unwrap());
        log.lines().map_while(Result::ok)
    }

    pub(crate) fn end(mut self) -> (bool, String) {
        within(|| self.has_ended());
        let mut said = String::new();
        if let Some(mut out) = self.0.stdout.take() {
            out.read_to_string(&mut said).unwrap();
        }
        (self.0.wait().unwrap().success(), said)
    }
}

/// Returns `true` if only the owner may read and write a file or folder, on systems with file modes.
pub(crate) fn is_owners_alone(path: &str) -> bool {
    let about = std::fs::metadata(path).unwrap();
    #[cfg(unix)]
    return std::os::unix::fs::PermissionsExt::mode(&about.permissions()) & 0o077 == 0;
    #[cfg(not(unix))]
    return !about.permissions().readonly();
}

#[expect(clippy::disallowed_methods, reason = "a wait needs an end")]
pub(crate) fn within(mut done: impl FnMut() -> bool) {
    let began = Instant::now();
    while !done() {
        assert!(began.elapsed() < PATIENCE, "timed out");
        std::thread::sleep(Duration::from_millis(20));
    }
}

impl Drop for Process {
    fn drop(&mut self) {
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

pub(crate) fn address(line: &str) -> Option<String> {
    let (_, rest) = line.split_once("127.0.0.1:")?;
    let port: String = rest.chars().take_while(char::is_ascii_digit).collect();
    Some(format!("127.0.0.1:{port}"))
}

/// A folder for one test. It is removed at the end, unless the test fails.
pub(crate) struct Folder(PathBuf);

impl Folder {
    /// Creates a new folder for each call, because tests of one program run in parallel.
    pub(crate) fn new(name: &str) -> Folder {
        static MADE: AtomicU32 = AtomicU32::new(0);
        let (process, nth) = (std::process::id(), MADE.fetch_add(1, Ordering::Relaxed));
        let path = std::env::temp_dir().join(format!("powderkeg-{name}-{process}-{nth}"));
        let _ = fs::remove_dir_all(&path);
        fs::create_dir_all(&path).unwrap();
        Folder(path)
    }

    pub(crate) fn with_a_key(name: &str) -> Folder {
        let folder = Folder::new(name);
        succeed(&["key", &folder.file("key")]);
        folder
    }

    pub(crate) fn file(&self, name: &str) -> String {
        self.0.join(name).to_str().unwrap().to_owned()
    }

    /// Writes a ticket made with this folder's key to a file with the player's name. Returns its path.
    pub(crate) fn ticket(&self, server: &str, player: &str) -> String {
        let (file, key) = (self.file(player), self.file("key"));
        let task = ["ticket", "--key-file", &key, "--server", server];
        succeed(&[&task[..], &["--player", player, "--out", &file]].concat());
        file
    }
}

impl Drop for Folder {
    fn drop(&mut self) {
        if std::thread::panicking() {
            eprintln!("what the test wrote stays in {}", self.0.display());
        } else {
            let _ = fs::remove_dir_all(&self.0);
        }
    }
}
