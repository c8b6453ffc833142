//! The log of a host, with a bounded number of lines: players, strangers and failing disks cannot flood it.
//!
//! ```text
//!   info!(…) ──▶ has this kind of line room? ──yes──▶ the line
//!                     │ no: it is counted            (LINES_AT_ONCE, and one more each second)
//!                     └──▶ once a second, as soon as there is room: "lines were left out", their kind and number
//! ```
//!
//! A kind is one place in the source. Every log line of the host and of the operator's crate goes through these macros;
//! a test of the sources enforces it (`tests/tests/structure.rs`).
//!
//! Invariant (laws *Bounded*, *Hostile wire*): in any `n` seconds a kind writes at most `LINES_AT_ONCE + 1 + n` lines,
//! sums included; each suppressed line is counted in a sum.

use std::sync::{LazyLock, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use tracing::Level;

use super::clock::HostClock;

pub(crate) const LINES_AT_ONCE: u32 = 100;
/// The time after which a silent kind may write one more line.
const LINE_EACH: Duration = Duration::from_secs(1);

static CLOCK: LazyLock<HostClock> = LazyLock::new(HostClock::start);
/// The kinds with suppressed lines since their last sum.
static CURBED: Mutex<Vec<&'static LogKind>> = Mutex::new(Vec::new());

/// One kind of line.
pub struct LogKind {
    level: Level,
    words: &'static str,
    room: Mutex<LogRoom>,
}

#[derive(Debug)]
struct LogRoom {
    free_at: Duration,
    left_out: u64,
    /// The time at which the first line since the last sum was suppressed.
    left_out_since: Duration,
}

impl LogRoom {
    const fn new() -> LogRoom {
        LogRoom {
            free_at: Duration::ZERO,
            left_out: 0,
            left_out_since: Duration::ZERO,
        }
    }

    /// Takes the allowance of one line. Returns `false` if the burst would exceed `at_once` lines.
    fn take(&mut self, now: Duration, at_once: u32) -> bool {
        let free_at = self.free_at.max(now) + LINE_EACH;
        let has_room = free_at <= now + LINE_EACH * at_once;
        if has_room {
            self.free_at = free_at;
        }
        has_room
    }

    /// Returns `true` if a line may be written. Once one line has been suppressed, all are, until their number has been
    /// taken.
    fn admit(&mut self, now: Duration) -> bool {
        if self.left_out == 0 {
            if self.take(now, LINES_AT_ONCE) {
                return true;
            }
            self.left_out_since = now;
        }
        self.left_out += 1;
        false
    }

    /// Takes the number of suppressed lines and the time since the first one, if their sum may be written. A sum may
    /// exceed the bound for lines by one, so that a sum is written each second during a flood.
    fn sum(&mut self, now: Duration) -> Option<(u64, Duration)> {
        if self.left_out == 0 || !self.take(now, LINES_AT_ONCE + 1) {
            return None;
        }
        let since = now.saturating_sub(self.left_out_since);
        Some((std::mem::take(&mut self.left_out), since))
    }
}

impl LogKind {
    /// Creates a kind of line with this level and message.
    #[must_use]
    pub const fn new(level: Level, words: &'static str) -> LogKind {
        LogKind {
            level,
            words,
            room: Mutex::new(LogRoom::new()),
        }
    }

    /// Returns `true` if the line may be written; otherwise counts it.
    pub fn admits(&'static self) -> bool {
        let mut room = lock(&self.room);
        let was_curbed = room.left_out > 0;
        let admits = room.admit(CLOCK.now());
        drop(room);
        if !admits && !was_curbed {
            lock(&CURBED).push(self);
        }
        admits
    }

    /// Writes the sum of the suppressed lines. Returns `false` if it may not be written yet.
    fn sum_up(&self) -> bool {
        let mut room = lock(&self.room);
        let Some((left_out, since)) = room.sum(CLOCK.now()) else {
            return room.left_out == 0;
        };
        drop(room);
        let (line, elapsed_s) = (self.words, since.as_secs() + 1);
        macro_rules! sum {
            ($level:ident) => {
                tracing::$level!(line, left_out, elapsed_s, "lines were left out of the log")
            };
        }
        match self.level {
            Level::ERROR => sum!(error),
            Level::WARN => sum!(warn),
            Level::INFO => sum!(info),
            _ => sum!(debug),
        }
        true
    }
}

/// Writes a line for each kind with suppressed lines. Called once a second by the I/O task, and when a host ends.
pub(crate) fn sum_up() {
    let curbed = std::mem::take(&mut *lock(&CURBED));
    for kind in curbed {
        if !kind.sum_up() {
            lock(&CURBED).push(kind);
        }
    }
}

fn lock<T>(of: &Mutex<T>) -> MutexGuard<'_, T> {
    of.lock().unwrap_or_else(PoisonError::into_inner)
}

/// The words of a line: the last argument of a log macro.
#[doc(hidden)]
#[macro_export]
macro_rules! log_words {
    ($words:literal $(,)?) => { $words };
    ($a:tt $b:tt $c:tt $d:tt $($rest:tt)+) => { $crate::log_words!($($rest)+) };
    ($a:tt $($rest:tt)+) => { $crate::log_words!($($rest)+) };
}

#[doc(hidden)]
#[macro_export]
macro_rules! log_line {
    ($level:ident, $LEVEL:ident, $($line:tt)+) => {{
        static KIND: $crate::internal::logged::LogKind = $crate::internal::logged::LogKind::new(
            $crate::internal::tracing::Level::$LEVEL,
            $crate::log_words!($($line)+),
        );
        if KIND.admits() {
            $crate::internal::tracing::$level!($($line)+);
        }
    }};
}

#[doc(hidden)]
#[macro_export]
macro_rules! log_error { ($($line:tt)+) => { $crate::log_line!(error, ERROR, $($line)+) }; }
#[doc(hidden)]
#[macro_export]
macro_rules! log_warn { ($($line:tt)+) => { $crate::log_line!(warn, WARN, $($line)+) }; }
#[doc(hidden)]
#[macro_export]
macro_rules! log_info { ($($line:tt)+) => { $crate::log_line!(info, INFO, $($line)+) }; }
#[doc(hidden)]
#[macro_export]
macro_rules! log_debug { ($($line:tt)+) => { $crate::log_line!(debug, DEBUG, $($line)+) }; }

pub use log_debug as debug;
pub use log_error as error;
pub use log_info as info;
pub use log_warn as warn;

#[cfg(test)]
#[derive(Clone, Debug, Default)]
pub(crate) struct CountedLines(std::sync::Arc<Mutex<std::collections::BTreeMap<String, u32>>>);

#[cfg(test)]
impl CountedLines {
    pub(crate) fn of(&self, words: &str) -> u32 {
        lock(&self.0).get(words).copied().unwrap_or_default()
    }

    /// Checks that a flood was logged within the bound: `words` occur at least once, and at most as often as the bound
    /// allows `within` this time.
    pub(crate) fn check_bound(&self, words: &str, within: Duration) {
        let most = LINES_AT_ONCE + within.as_secs() as u32 + 1;
        let lines = self.of(words);
        assert!(
            (1..=most).contains(&lines),
            "{lines} lines {words:?}, at most {most}"
        );
    }
}

#[cfg(test)]
impl tracing::Subscriber for CountedLines {
    fn enabled(&self, _: &tracing::Metadata<'_>) -> bool {
        true
    }

    fn new_span(&self, _: &tracing::span::Attributes<'_>) -> tracing::span::Id {
        tracing::span::Id::from_u64(1)
    }

    fn record(&self, _: &tracing::span::Id, _: &tracing::span::Record<'_>) {}

    fn record_follows_from(&self, _: &tracing::span::Id, _: &tracing::span::Id) {}

    fn event(&self, event: &tracing::Event<'_>) {
        let mut words = String::new();
        event.record(
            &mut |field: &tracing::field::Field, value: &dyn std::fmt::Debug| {
                if field.name() == "message" {
                    words = format!("{value:?}");
                }
            },
        );
        *lock(&self.0).entry(words).or_default() += 1;
    }

    fn enter(&self, _: &tracing::span::Id) {}

    fn exit(&self, _: &tracing::span::Id) {}
}

#[cfg(test)]
mod tests {
    use super::*;

    const MS: Duration = Duration::from_millis(1);

    /// Finding O3-3: ticket holders that kept dialling caused 657 lines a second.
    #[test]
    fn a_flood_of_one_kind_logs_its_first_lines_and_then_a_sum_each_second() {
        let mut room = LogRoom::new();
        let (mut whole, mut sums, mut left_out) = (0, 0, 0);
        for ms in 0..60_000 {
            let now = MS * ms;
            whole += u32::from(room.admit(now));
            if ms % 1_000 == 999
                && let Some((sum, since)) = room.sum(now)
            {
                assert!(sum >= 900 && since <= MS * 1_001, "{sum} in {since:?}");
                (sums, left_out) = (sums + 1, left_out + sum);
            }
        }
        assert!(
            whole == LINES_AT_ONCE && (58..=60).contains(&sums),
            "{whole} lines, {sums} sums"
        );
        // Every line is counted.
        assert_eq!(u64::from(whole) + left_out + room.left_out, 60_000);
        // After the flood, lines are written again.
        let later = MS * 62_000;
        assert!(room.sum(later).is_some() || room.left_out == 0);
        assert!(room.admit(later + LINE_EACH));
    }

    #[test]
    fn suppressed_lines_are_summed_once_at_the_level_of_their_kind() {
        static KIND: LogKind = LogKind::new(Level::WARN, "a flood");
        let lines = CountedLines::default();
        tracing::subscriber::with_default(lines.clone(), || {
            assert!(KIND.sum_up(), "all sums are written");
            let is_full = |_| !lock(&KIND.room).admit(CLOCK.now());
            assert!((0..1_000).any(is_full));
            assert!(KIND.sum_up(), "one line more than others");
            assert!(!lock(&KIND.room).admit(CLOCK.now()));
            assert!(!KIND.sum_up(), "it has no room");
            for _ in 0..10_000 {
                self::info!(flood = true, "a line of a flood");
            }
        });
        assert_eq!(lines.of("lines were left out of the log"), 1);
        lines.check_bound("a line of a flood", LINE_EACH);
    }

    #[test]
    fn a_log_line_once_a_second_is_never_dropped() {
        let mut room = LogRoom::new();
        let admitted = (0..10_000).filter(|second| room.admit(LINE_EACH * *second));
        assert_eq!(admitted.count(), 10_000);
    }
}
