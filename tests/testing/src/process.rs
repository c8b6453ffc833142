//! The same run in a second process: with different hashes, addresses and times, a different environment, and from the
//! middle.
//!
//! ```text
//!   first process ── worlds, frames, digests ──▶ stdin of the second: the same test of the same program
//!                 ◀── "equal", or the tick and the world ── its stdout
//! ```
//!
//! The test harness names each test's thread, so the second process runs that test alone. At the same `check` the
//! second process compares instead, replies, and exits. If libfaketime is installed, the second process's clock is a
//! year ahead, and further ahead at each reading; the reply contains the time, so that the first process can verify
//! this.
//!
//! Invariant: if there is no second process, or one without a change, the report gives the reason. The module `blame`
//! finds the change that causes a difference.

pub(crate) mod change;
pub(crate) mod request;

use std::cell::RefCell;
use std::collections::BTreeMap;
use std::env;
use std::io::{Read, Write};
use std::panic::Location;
use std::process::{Command, Stdio, exit};
use std::thread;
use std::time::{Duration, SystemTime, UNIX_EPOCH};

use twinstep_core::codec;
use twinstep_core::digest::digest;
use twinstep_core::frame::FrameData;
use twinstep_core::world::World;
use twinstep_core::{Simulation, Tick};

use self::change::Change;
use self::request::Request;
use crate::cause::{is_address, is_reordered};
use crate::fault::{FIELDS_MAX, Found, Kind};
use crate::line::Line;
use crate::moments::{self, Trace};
use crate::script::Script;
use crate::steps::{Steps, differences};
use crate::traces::elsewhere;

/// The variable that names the check for the second process to compare.
const VARIABLE: &str = "TWINSTEP_TESTING_SECOND_PROCESS";
const MARK: &str = "twinstep-testing: ";
const WORDS_MAX: usize = 600;
/// The number of repetitions of a step that a second process returns.
const REPEATS: usize = 24;
/// One in this many repetitions starts after a pause, in which a clock advances.
const PAUSE_EVERY: usize = 4;
const PAUSE: Duration = Duration::from_millis(3);
/// A smaller difference between the two processes' times does not prove that the clock was changed.
const SHIFTED: Duration = Duration::from_secs(24 * 60 * 60);

thread_local! {
    /// The number of calls of `check` from each line.
    static CHECKS: RefCell<BTreeMap<String, u32>> = const { RefCell::new(BTreeMap::new()) };
}

/// The name of a check: its line in the source, and its number among the calls from that line.
pub(crate) fn name(place: &Location<'_>) -> String {
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

/// Returns `true` if the test made other checks before this one.
pub(crate) fn has_earlier_checks() -> bool {
    CHECKS.with_borrow(|checks| checks.values().sum::<u32>() > 1)
}

/// Returns `true` in a second process that leaves out the checks before the one that it compares.
pub(crate) fn leaves_out_earlier_checks() -> bool {
    env::var_os(change::ALONE).is_some()
}

/// Runs the script in the second process, compares, replies, and exits.
pub(crate) fn second<S: Simulation>(
    start: S,
    rules: &S::Rules,
    script: Script<S>,
    others: &[(S, S::Rules)],
) -> ! {
    let answer = compare(start, rules, script, others);
    let mut out = std::io::stdout();
    // If the reply cannot be written, the first process reports that there was none.
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

fn compare<S: Simulation>(
    start: S,
    rules: &S::Rules,
    script: Script<S>,
    others: &[(S, S::Rules)],
) -> String {
    let mut bytes = Vec::new();
    if let Err(error) = std::io::stdin().read_to_end(&mut bytes) {
        return format!("unread {error}");
    }
    let (trace, how) = match Request::<S>::decode(&bytes) {
        Some(Request::Repeat(step, seed)) => {
            return elsewhere(seed, || repeat(rules, &step.0, &step.1));
        }
        Some(Request::Compare { trace, how }) => (trace, how),
        None => return "unread request".to_owned(),
    };
    if how.leaves_folder {
        // Not earlier, because the test may have read files of its package until now.
        let _ = env::set_current_dir(env::temp_dir());
    }
    if digest(rules) != Ok(trace.rules) {
        return "rules".to_owned();
    }
    let Trace {
        ticks,
        frames,
        moments,
        ..
    } = &trace;
    if how.plays_others_first {
        for (start, rules) in others {
            play(script.world(start.clone()), rules, frames);
        }
    }
    for moment in moments.iter().rev() {
        let run = || moment.run(rules, frames, ticks);
        let differs = moments::on_a_new_thread(u64::from(moment.tick.0), run);
        match differs {
            Some(None) => {}
            Some(Some((tick, Ok(world)))) => return answer_of("middle", tick, &world),
            Some(Some((tick, Err(words)))) => return format!("failed {} {words}", tick.0),
            None => return format!("failed {} the thread ended", moment.tick.0),
        }
    }
    let mut line = match Line::new(start, rules, script) {
        Ok(line) => line,
        Err(found) => return format!("failed {} {}", found.tick.0, found.what),
    };
    for there in ticks {
        if let Err(found) = line.tick() {
            return format!("failed {} {}", found.tick.0, found.what);
        }
        let (frame, world) = line.digests();
        let tick = line.frame.tick;
        if frame != there.0 {
            return format!("script {}", tick.0);
        }
        if world != there.1 {
            return answer_of("differs", tick, &line.world);
        }
    }
    "equal".to_owned()
}

/// Steps another match with the players' actions of this one, until a step fails.
fn play<S: Simulation>(mut world: World<S>, rules: &S::Rules, frames: &[FrameData<S>]) {
    let mut steps = Steps::<S>::new(rules);
    for frame in frames {
        let mut frame = frame.clone();
        // The other match asked other queries.
        frame.outcomes.clear();
        if steps.confirmed(&mut world, &frame).is_err() {
            return;
        }
    }
}

fn repeat<S: Simulation>(rules: &S::Rules, before: &World<S>, frame: &FrameData<S>) -> String {
    let mut steps = Steps::<S>::new(rules);
    let digests = (0..REPEATS).map(|n| {
        if n % PAUSE_EVERY == PAUSE_EVERY - 1 {
            thread::sleep(PAUSE);
        }
        // Cloned here, so that the clone's addresses also depend on the seed.
        let mut world = before.clone();
        let stepped = steps.confirmed(&mut world, frame).is_ok();
        let digest = stepped.then(|| world.digest().ok()).flatten();
        format!("{:x}", digest.unwrap_or_default())
    });
    format!("repeats {}", digests.collect::<Vec<_>>().join(","))
}

fn answer_of<S: Simulation>(word: &str, tick: Tick, world: &World<S>) -> String {
    let mut bytes = Vec::new();
    // Without the bytes the first process cannot name the fields.
    let _ = codec::append(world, &mut bytes);
    let hex: String = bytes.iter().map(|byte| format!("{byte:02x}")).collect();
    format!("{word} {} {hex}", tick.0)
}

/// The result of a second process that reported no difference.
pub(crate) enum Judged {
    Agreed {
        is_shifted: bool,
    },
    /// The second process could not be started, or gave no usable reply.
    LeftOut(String),
}

/// Judges a reply. Returns an error if the two processes differ.
pub(crate) fn judge<S: Simulation>(
    answer: &Answer,
    world_at: impl Fn(Tick) -> Option<World<S>>,
) -> Result<Judged, Found> {
    let Some(said) = answer.said.as_deref() else {
        let why = format!(
            "the test, run alone, did not reach this check: {}",
            answer.words
        );
        return Ok(Judged::LeftOut(why));
    };
    let (unix, said) = said.split_once(' ').unwrap_or((said, ""));
    let (word, rest) = said.split_once(' ').unwrap_or((said, ""));
    let (tick, rest) = rest.split_once(' ').unwrap_or((rest, ""));
    let tick = Tick(tick.parse().unwrap_or_default());
    let theirs = Duration::from_secs(unix.parse().unwrap_or_default());
    let is_shifted = theirs.saturating_sub(unix_now()) > SHIFTED;
    let here_and_there = "this process != a second process";
    Err(match word {
        "equal" => return Ok(Judged::Agreed { is_shifted }),
        "rules" => Found::new(Kind::RulesDiffer, tick, here_and_there),
        "script" => Found::new(Kind::Script, tick, here_and_there),
        "failed" => {
            let text = format!("in a second process: {rest}");
            Found::new(Kind::Process, tick, text)
        }
        "differs" | "middle" => {
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

pub(crate) struct Answer {
    /// The second process's time and reply, if it reached the check.
    said: Option<String>,
    /// The end of the second process's other output.
    words: String,
}

impl Answer {
    pub(crate) fn text(&self) -> Option<&str> {
        Some(self.said.as_deref()?.split_once(' ')?.1)
    }
}

/// Runs the test in a separate process, with these changes, and sends it this request.
pub(crate) fn ask(
    check: &str,
    test: &str,
    request: &[u8],
    changes: &[Change],
) -> std::io::Result<Answer> {
    let mut command = match changes.iter().any(Change::fixes_addresses) {
        true => Command::new("setarch"),
        false => Command::new(env::current_exe()?),
    };
    if changes.iter().any(Change::fixes_addresses) {
        command.arg("-R").arg(env::current_exe()?);
    }
    for change in changes {
        change.apply(&mut command);
    }
    command
        .args([
            test,
            "--exact",
            "--nocapture",
            "--include-ignored",
            "--test-threads=1",
        ])
        .env(VARIABLE, check)
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped());
    let mut child = change::spawn(&mut command, changes)?;
    if let Some(mut stdin) = child.stdin.take() {
        // A child that exits before it has read everything has given its reason.
        let _ = stdin.write_all(request);
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
