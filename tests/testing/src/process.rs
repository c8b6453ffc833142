//! The same run in a second process, with other hashes, addresses and times.
//!
//! ```text
//!   first process ── digests of every frame and world ──▶ stdin of the second: the same test of the same program
//!                 ◀── "equal", or the tick and the world ── its stdout
//! ```
//!
//! The test harness names each test's thread, so the second process runs that test alone. At the same `check` the
//! second process compares digests instead, answers, and exits. If libfaketime is installed, the second process's clock
//! is a year ahead; the answer contains the time, so that the first process can verify this.
//!
//! Invariant: if there is no second process, or its clock is not ahead, the report gives the reason.

use std::cell::RefCell;
use std::collections::BTreeMap;
use std::env;
use std::io::{Read, Write};
use std::panic::Location;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio, exit};
use std::time::{Duration, SystemTime, UNIX_EPOCH};

use twinstep_core::codec;
use twinstep_core::world::World;
use twinstep_core::{Simulation, Tick};

use crate::again::test_name;
use crate::cause::{is_address, is_reordered};
use crate::fault::{FIELDS_MAX, Found, Kind};
use crate::line::Line;
use crate::script::Script;
use crate::steps::differences;

/// Names the check that the second process must compare.
const VARIABLE: &str = "TWINSTEP_TESTING_SECOND_PROCESS";
const MARK: &str = "twinstep-testing: ";
const WORDS_MAX: usize = 600;
/// The time by which libfaketime moves the second process's clock: to another year, month, day, weekday and hour.
const AHEAD: &str = "+401.3d";
const AHEAD_TEXT: &str = "this process != a second process, whose clock is a year ahead";
/// A difference below this is not a moved clock.
const SHIFTED: Duration = Duration::from_secs(24 * 60 * 60);

/// The name of a check: its place in the source, and its number among the calls from there.
pub(crate) fn name(place: &Location<'_>) -> String {
    thread_local! {
        static CHECKS: RefCell<BTreeMap<String, u32>> = const { RefCell::new(BTreeMap::new()) };
    }
    let place = place.to_string();
    let n = CHECKS.with_borrow_mut(|checks| {
        let n = checks.entry(place.clone()).or_default();
        *n += 1;
        *n
    });
    format!("{place}#{n}")
}

pub(crate) fn is_second(check: &str) -> bool {
    env::var(VARIABLE).is_ok_and(|wanted| wanted == check)
}

pub(crate) fn is_any_second() -> bool {
    env::var_os(VARIABLE).is_some()
}

/// The first process's digests: of the rules, and of each frame and the world after it.
pub(crate) struct Trace {
    pub(crate) rules: u64,
    pub(crate) ticks: Vec<(u64, u64)>,
}

/// Runs the script in the second process, compares, answers, and exits.
pub(crate) fn second<S: Simulation>(start: S, rules: &S::Rules, script: Script<S>) -> ! {
    let answer = compare(start, rules, script);
    let mut out = std::io::stdout();
    // If the answer cannot be written, the first process reports that there was none.
    let _ = write!(out, "\n{MARK}{} {answer}\n", unix_now().as_secs()).and_then(|()| out.flush());
    exit(0)
}

#[expect(
    clippy::disallowed_methods,
    reason = "whether the second process's clock was shifted"
)]
fn unix_now() -> Duration {
    let now = SystemTime::now().duration_since(UNIX_EPOCH);
    now.unwrap_or_default()
}

fn compare<S: Simulation>(start: S, rules: &S::Rules, script: Script<S>) -> String {
    let mut bytes = Vec::new();
    if let Err(error) = std::io::stdin().read_to_end(&mut bytes) {
        return format!("unread {error}");
    }
    let numbers: Vec<u64> = bytes
        .chunks_exact(8)
        .map(|bytes| u64::from_le_bytes(bytes.try_into().unwrap_or_default()))
        .collect();
    let (rules_there, ticks) = match numbers.split_first() {
        Some((rules, ticks)) => (*rules, ticks),
        None => return "unread nothing".to_owned(),
    };
    let mut line = match Line::new(start, rules, script) {
        Ok(line) => line,
        Err(found) => return format!("failed {} {}", found.tick.0, found.what),
    };
    if line.rules_digest() != rules_there {
        return "rules".to_owned();
    }
    for there in ticks.chunks_exact(2) {
        if let Err(found) = line.tick() {
            return format!("failed {} {}", found.tick.0, found.what);
        }
        let (frame, world) = line.digests();
        let tick = line.frame.tick.0;
        if frame != there[0] {
            return format!("script {tick}");
        }
        if world != there[1] {
            let mut bytes = Vec::new();
            // Without the bytes the first process cannot name the fields.
            let _ = codec::append(&line.world, &mut bytes);
            let hex: String = bytes.iter().map(|byte| format!("{byte:02x}")).collect();
            return format!("differs {tick} {hex}");
        }
    }
    "equal".to_owned()
}

/// The reasons for what was skipped, when no fault was found.
pub(crate) struct Second {
    pub(crate) skipped: Option<String>,
    pub(crate) same_clock: Option<String>,
}

/// Runs the second process and judges its answer. `world_at` returns the first process's world after a tick.
pub(crate) fn first<S: Simulation>(
    check: &str,
    trace: &Trace,
    world_at: impl Fn(Tick) -> Option<World<S>>,
) -> Result<Second, Found> {
    let Some(test) = test_name() else {
        let why = "this thread is not named after a test".to_owned();
        return Ok(Second {
            same_clock: Some(why.clone()),
            skipped: Some(why),
        });
    };
    let judged = |library: Option<&Path>| match ask(check, &test, trace, library) {
        Ok(Answer { said: None, words }) => Ok(Judged::LeftOut(format!(
            "the test `{test}`, run alone, did not reach this check: {words}"
        ))),
        Ok(answer) => judge(&answer, &world_at),
        Err(error) => Ok(Judged::LeftOut(format!("it could not be started: {error}"))),
    };
    let mut same_clock =
        "libfaketime is not installed (Debian: apt-get install libfaketime)".to_owned();
    if let Some(library) = clock_library() {
        match judged(Some(&library)) {
            Ok(Judged::Agreed { is_shifted: true }) => {
                return Ok(Second {
                    skipped: None,
                    same_clock: None,
                });
            }
            Ok(Judged::Agreed { is_shifted: false }) => {
                same_clock = "libfaketime has no effect on this program".to_owned();
            }
            Ok(Judged::LeftOut(why)) => same_clock = format!("with libfaketime, {why}"),
            Err(found) => {
                // Does the clock alone make the difference?
                return Err(match judged(None) {
                    Ok(Judged::Agreed { is_shifted: false }) => found.by_clock(),
                    Ok(_) => found,
                    Err(found) => found,
                });
            }
        }
    }
    Ok(match judged(None)? {
        Judged::Agreed { .. } => Second {
            skipped: None,
            same_clock: Some(same_clock),
        },
        Judged::LeftOut(why) => Second {
            skipped: Some(why),
            same_clock: Some(same_clock),
        },
    })
}

impl Found {
    /// Blames the clock, because a second process with the same clock agrees. Hash order may agree by chance.
    fn by_clock(mut self) -> Found {
        let may_be = matches!(self.kind, Kind::Process | Kind::Address);
        if may_be && self.what == AHEAD_TEXT {
            self.kind = Kind::Clock;
        }
        self
    }
}

fn clock_library() -> Option<PathBuf> {
    let name = "faketime/libfaketime.so.1";
    let folders = std::fs::read_dir("/usr/lib").into_iter().flatten();
    let folders = folders.filter_map(|entry| Some(entry.ok()?.path()));
    let folders = folders.chain(["/usr/lib".into(), "/usr/local/lib".into()]);
    folders
        .map(|folder| folder.join(name))
        .find(|path| path.is_file())
}

enum Judged {
    Agreed { is_shifted: bool },
    LeftOut(String),
}

fn judge<S: Simulation>(
    answer: &Answer,
    world_at: impl Fn(Tick) -> Option<World<S>>,
) -> Result<Judged, Found> {
    let said = answer.said.as_deref().unwrap_or_default();
    let (unix, said) = said.split_once(' ').unwrap_or((said, ""));
    let (word, rest) = said.split_once(' ').unwrap_or((said, ""));
    let (tick, rest) = rest.split_once(' ').unwrap_or((rest, ""));
    let tick = Tick(tick.parse().unwrap_or_default());
    let theirs = Duration::from_secs(unix.parse().unwrap_or_default());
    let is_shifted = theirs.saturating_sub(unix_now()) > SHIFTED;
    let here_and_there = match is_shifted {
        true => AHEAD_TEXT,
        false => "this process != a second process",
    };
    Err(match word {
        "equal" => return Ok(Judged::Agreed { is_shifted }),
        "rules" => Found::new(Kind::RulesDiffer, tick, here_and_there),
        "script" => Found::new(Kind::Script, tick, here_and_there),
        "failed" => {
            let text = format!("in a second process: {rest}");
            Found::new(Kind::Process, tick, text)
        }
        "differs" => {
            let theirs = unhex(rest).and_then(|bytes| codec::decode_whole::<World<S>>(&bytes).ok());
            let fields = match (world_at(tick), theirs) {
                (Some(ours), Some(theirs)) => differences(&ours, &theirs, 8 * FIELDS_MAX),
                _ => None,
            };
            let mut fields = fields.unwrap_or_default();
            let kind = if is_reordered(&fields) {
                Kind::HashOrder
            } else if fields
                .first()
                .and_then(|field| field.left.parse().ok())
                .is_some_and(is_address)
            {
                Kind::Address
            } else {
                Kind::Process
            };
            fields.truncate(FIELDS_MAX);
            Found::new(kind, tick, here_and_there).at(fields)
        }
        _ => {
            let why = format!("its answer was `{said}`: {}", answer.words);
            return Ok(Judged::LeftOut(why));
        }
    })
}

struct Answer {
    /// The second process's time and answer, if it reached the check.
    said: Option<String>,
    /// The end of its other output.
    words: String,
}

/// Runs the test in a separate process, with its clock moved by `library`.
fn ask(check: &str, test: &str, trace: &Trace, library: Option<&Path>) -> std::io::Result<Answer> {
    let mut command = Command::new(env::current_exe()?);
    if let Some(library) = library {
        command
            .env("LD_PRELOAD", library)
            .env("FAKETIME", AHEAD)
            // Sleeps must last as long as they do here.
            .env("FAKETIME_DONT_FAKE_MONOTONIC", "1");
    }
    let mut child = command
        .args([
            test,
            "--exact",
            "--nocapture",
            "--include-ignored",
            "--test-threads=1",
        ])
        .env(VARIABLE, check)
        // Local times and localised texts must differ from this process.
        .env("TZ", "XYZ-13:37")
        .env("LC_ALL", "C")
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()?;
    let mut bytes = trace.rules.to_le_bytes().to_vec();
    for (frame, world) in &trace.ticks {
        bytes.extend_from_slice(&frame.to_le_bytes());
        bytes.extend_from_slice(&world.to_le_bytes());
    }
    if let Some(mut stdin) = child.stdin.take() {
        // A child that exits before it has read everything has given its reason.
        let _ = stdin.write_all(&bytes);
    }
    let output = child.wait_with_output()?;
    let said = String::from_utf8_lossy(&output.stdout);
    let answer = said.lines().find_map(|line| line.strip_prefix(MARK));
    let mut words = String::from_utf8_lossy(&output.stderr)
        .trim()
        .replace('\n', "; ");
    if words.is_empty() {
        words = said.trim().replace('\n', "; ");
    }
    let from = words.len().saturating_sub(WORDS_MAX);
    let from = (from..words.len()).find(|at| words.is_char_boundary(*at));
    words.drain(..from.unwrap_or(0));
    Ok(Answer {
        said: answer.map(str::to_owned),
        words,
    })
}

fn unhex(text: &str) -> Option<Vec<u8>> {
    let digits = text.as_bytes().chunks_exact(2);
    digits
        .map(|pair| u8::from_str_radix(std::str::from_utf8(pair).ok()?, 16).ok())
        .collect()
}
