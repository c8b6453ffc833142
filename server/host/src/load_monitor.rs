//! [`LoadMonitor`]: measures the process once a second, and sheds load before players feel it.
//!
//! ```text
//!  lateness of ticks: the 99th percentile of each match over 5 s; the median of these if there are two matches or more
//!     above the limit for 3 samples (4 times the limit: 1) ─▶ one step up: spectators, announcements, newcomers, turns
//!     below half of it for 10 samples                      ─▶ one step down
//!  memory above its limit, disk below its limit            ─▶ full: no newcomers, no new matches
//!     below 95 % of it, above 110 % of it                  ─▶ no longer full
//! ```
//!
//! The process is busy from the third step on. A player with a seat may always reconnect.
//!
//! The median counts, because a match with slow code is late without any overload, and degrading the other matches does
//! not help it. So a process with one match does not shed load: its ticks are late because of slow code or a machine
//! hitch, and refusing players helps against neither.
//!
//! The operating system is queried on a thread for blocking work, because a hung network disk responds only after
//! minutes, or never. Until then, the disk's last response is used.
//!
//! Invariant: each state starts and ends at different thresholds, so a process at a threshold does not flicker.

use std::collections::{BTreeMap, BTreeSet};
use std::mem::{Discriminant, discriminant};
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicBool, AtomicU8, AtomicU64, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use tokio::task::{JoinHandle, spawn_blocking};
use tokio::time::timeout;
use twinstep_protocol::packet::closed::CloseCode;

use super::clock::HostClock;
use super::histogram::Spread;
use super::logged;
use super::register::Register;
use twinstep_server::Degradation;

mod degradation_steps;
mod recent_lateness;
mod system;

use degradation_steps::{DegradationSteps, Gauge, fits_again, is_free_again};
use recent_lateness::{RecentLateness, SAMPLE_EVERY};
pub(super) use system::free_bytes;
use system::{memory_bytes, memory_max_bytes};

/// The maximum time that one sample waits for the operating system. A later response is used by the next sample.
const ANSWERS_WITHIN: Duration = Duration::from_millis(100);

/// The limits beyond which a process sheds load or refuses newcomers.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Limits {
    /// The maximum tick lateness: the 99th percentile over 5 s, in more than half of the matches. Default: 20 ms, which
    /// is 1.2 ticks at 60 Hz, and which clients hide. It has no effect while only one match runs.
    pub tick_lateness: Duration,
    /// The memory limit of the process, in bytes. If `None`, 85 % of the cgroup's or machine's memory, whichever is
    /// less. If neither is known, memory is not limited.
    pub memory_bytes: Option<u64>,
    /// The minimum number of free bytes on each disk with a journal. Default: 256 MiB. Measured on unix only.
    pub disk_free_bytes: u64,
}

impl Default for Limits {
    fn default() -> Self {
        Limits {
            tick_lateness: Duration::from_millis(20),
            memory_bytes: None,
            disk_free_bytes: 256 << 20,
        }
    }
}

/// The reason why a process refuses newcomers: the measurement and the limit.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
#[expect(missing_docs, reason = "the messages explain the variants")]
pub enum Full {
    #[error(
        "busy: load shedding refuses new players, because the p99 of tick lateness over 5 s is {:.1} ms, limit {} ms \
         (lateness-limit); its level falls by one after each 10 s below half of the limit, and below level 3 new players are \
         admitted again",
        .0.as_secs_f64() * 1e3, .1.as_millis()
    )]
    Lateness(Duration, Duration),
    #[error(
        "full: {} of memory used, limit {} (memory-limit); new players are admitted again below {}",
        mega(*.0), mega(*.1), mega(fits_again(*.1))
    )]
    Memory(u64, u64),
    #[error(
        "full: {} free on the disk of the journals, limit {} (disk-limit); new players are admitted again above {}",
        mega(*.0), mega(*.1), mega(is_free_again(*.1))
    )]
    Disk(u64, u64),
}

fn mega(bytes: u64) -> String {
    format!("{:.1} MB", bytes as f64 / 1e6)
}

#[derive(Clone, Debug, Default)]
pub(super) struct LoadMonitor(Arc<Shown>);

#[derive(Debug, Default)]
struct Shown {
    steps: AtomicU8,
    memory_is_short: AtomicU8,
    disk_is_short: AtomicU8,
    drains: AtomicU8,
    is_measured: AtomicBool,
    lateness_us: AtomicU64,
    memory: Bytes,
    disk_free: Bytes,
    lateness_us_max: AtomicU64,
    memory_max: AtomicU64,
    disk_free_min: AtomicU64,
    folders: Mutex<BTreeSet<PathBuf>>,
}

/// A number of bytes, which is unknown at first.
#[derive(Debug)]
struct Bytes(AtomicU64);

impl Default for Bytes {
    fn default() -> Bytes {
        Bytes(AtomicU64::new(u64::MAX))
    }
}

impl Bytes {
    fn get(&self) -> Option<u64> {
        let bytes = self.0.load(Ordering::Relaxed);
        (bytes < u64::MAX).then_some(bytes)
    }

    fn set(&self, bytes: u64) {
        self.0.store(bytes, Ordering::Relaxed);
    }
}

impl LoadMonitor {
    /// The degradation of all matches. Cost: four reads.
    pub(super) fn degradation(&self) -> Degradation {
        let is = |flag: &AtomicU8| flag.load(Ordering::Relaxed) > 0;
        Degradation {
            steps: self.0.steps.load(Ordering::Relaxed),
            refusal: if is(&self.0.drains) {
                Some(CloseCode::Draining)
            } else if is(&self.0.memory_is_short) || is(&self.0.disk_is_short) {
                Some(Degradation::FULL)
            } else {
                None
            },
        }
    }

    pub(super) fn begin_drain(&self) {
        self.0.drains.store(1, Ordering::Relaxed);
    }

    /// Returns `true` once memory and disks were measured, or did not respond in time. Before that, the process does
    /// not know whether it can take more players.
    pub(super) fn is_measured(&self) -> bool {
        self.0.is_measured.load(Ordering::Relaxed)
    }

    pub(super) fn full(&self) -> Option<Full> {
        let Degradation { steps, .. } = self.degradation();
        let shown = &*self.0;
        let load = |number: &AtomicU64| number.load(Ordering::Relaxed);
        let time = |us: &AtomicU64| Duration::from_micros(load(us));
        if shown.memory_is_short.load(Ordering::Relaxed) > 0 {
            let used = shown.memory.get().unwrap_or_default();
            Some(Full::Memory(used, load(&shown.memory_max)))
        } else if shown.disk_is_short.load(Ordering::Relaxed) > 0 {
            let free = shown.disk_free.get().unwrap_or_default();
            Some(Full::Disk(free, load(&shown.disk_free_min)))
        } else if steps >= 3 {
            let (late, limit) = (&shown.lateness_us, &shown.lateness_us_max);
            Some(Full::Lateness(time(late), time(limit)))
        } else {
            None
        }
    }

    /// Returns the reason for refusing new players if it changed: `Some(None)` if they are admitted again, `None` if
    /// it is unchanged.
    #[expect(clippy::option_option, reason = "a change, and what it leads to")]
    fn change(&self, was: &mut Option<Discriminant<Full>>) -> Option<Option<Full>> {
        let full = self.full();
        let is = full.as_ref().map(discriminant);
        (is != std::mem::replace(was, is)).then_some(full)
    }

    /// The current step, the used memory, and the free bytes of the fullest disk.
    pub(super) fn measured(&self) -> (u8, Option<u64>, Option<u64>) {
        (
            self.0.steps.load(Ordering::Relaxed),
            self.0.memory.get(),
            self.0.disk_free.get(),
        )
    }

    pub(super) fn watch_folder(&self, folder: &Path) {
        let folder = match folder.as_os_str().is_empty() {
            true => Path::new("."),
            false => folder,
        };
        let folders = self.0.folders.lock();
        let mut folders = folders.unwrap_or_else(PoisonError::into_inner);
        if !folders.contains(folder) {
            folders.insert(folder.to_owned());
        }
    }

    pub(super) async fn measure(self, limits: Limits, register: Register, clock: HostClock) {
        let load_monitor = self.clone();
        let ask = move || (memory_bytes(), load_monitor.least_free());
        let lateness = move || register.lateness();
        self.measure_by(limits, lateness, clock, ask).await;
    }

    /// Like [`measure`](Self::measure). `lateness` returns the lateness so far per match; `ask` returns the used memory
    /// and the free bytes of the fullest disk.
    async fn measure_by(
        self,
        limits: Limits,
        lateness: impl Fn() -> BTreeMap<u64, Spread>,
        clock: HostClock,
        ask: impl Fn() -> (Option<u64>, Option<u64>) + Clone + Send + 'static,
    ) {
        let mut samples = tokio::time::interval(SAMPLE_EVERY);
        // After a pause, one sample is due, not one for each missed second.
        samples.set_missed_tick_behavior(tokio::time::MissedTickBehavior::Delay);
        let measured = spawn_blocking(memory_max_bytes).await;
        let most = limits.memory_bytes.or(measured.unwrap_or_default());
        let show = |number: &AtomicU64, limit| number.store(limit, Ordering::Relaxed);
        show(
            &self.0.lateness_us_max,
            limits.tick_lateness.as_micros() as u64,
        );
        show(&self.0.memory_max, most.unwrap_or(u64::MAX));
        show(&self.0.disk_free_min, limits.disk_free_bytes);
        let mut was_full = None;
        let mut steps = DegradationSteps::new(limits.tick_lateness);
        let mut memory = Gauge::above(most.unwrap_or(u64::MAX));
        let mut disk = Gauge::below(limits.disk_free_bytes);
        let mut lately = RecentLateness::default();
        let mut asked: Option<JoinHandle<(Option<u64>, Option<u64>)>> = None;
        loop {
            samples.tick().await;
            let lateness = lately.sample(clock.now(), lateness());
            self.0
                .lateness_us
                .store(lateness.as_micros() as u64, Ordering::Relaxed);
            self.0
                .steps
                .store(steps.sample(lateness), Ordering::Relaxed);
            let mut asking = match asked.take() {
                Some(asking) => asking,
                None => spawn_blocking(ask.clone()),
            };
            let (memory_is, disk_is) = match timeout(ANSWERS_WITHIN, &mut asking).await {
                Ok(answered) => answered.unwrap_or_default(),
                Err(_) => {
                    // The response is taken by the next sample.
                    asked = Some(asking);
                    (None, None)
                }
            };
            if let Some(bytes) = memory_is {
                self.0.memory.set(bytes);
                let is_short = memory.sample(bytes);
                self.0
                    .memory_is_short
                    .store(is_short.into(), Ordering::Relaxed);
            }
            if let Some(bytes) = disk_is {
                self.0.disk_free.set(bytes);
                let is_short = disk.sample(bytes);
                self.0
                    .disk_is_short
                    .store(is_short.into(), Ordering::Relaxed);
            }
            self.0.is_measured.store(true, Ordering::Relaxed);
            match self.change(&mut was_full) {
                Some(Some(why)) => logged::warn!(reason = %why, "new players are refused"),
                Some(None) => logged::info!("new players are admitted again"),
                None => {}
            }
        }
    }

    /// The free bytes of the fullest disk. One system call per folder; a server has one or two.
    fn least_free(&self) -> Option<u64> {
        let folders = self.0.folders.lock();
        let folders = folders.unwrap_or_else(PoisonError::into_inner).clone();
        folders.iter().filter_map(|folder| free_bytes(folder)).min()
    }

    #[cfg(test)]
    pub(super) fn pretend(&self, steps: u8, disk_is_short: bool) {
        self.0.is_measured.store(true, Ordering::Relaxed);
        self.0.steps.store(steps, Ordering::Relaxed);
        self.0
            .disk_is_short
            .store(disk_is_short.into(), Ordering::Relaxed);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::logged::CountedLines;
    use crate::pulse::Pulse;

    const WAIT: Duration = Duration::from_secs(5);
    const SHORT: Duration = Duration::from_millis(20);

    #[test]
    fn newcomers_are_refused_while_memory_or_disk_is_short_or_the_process_ends() {
        let load_monitor = LoadMonitor::default();
        assert_eq!(load_monitor.degradation().refusal, None);
        for is_short in [
            &load_monitor.0.memory_is_short,
            &load_monitor.0.disk_is_short,
        ] {
            is_short.store(1, Ordering::Relaxed);
            assert_eq!(load_monitor.degradation().refusal, Some(Degradation::FULL));
            assert!(load_monitor.full().is_some());
            is_short.store(0, Ordering::Relaxed);
            assert_eq!(
                (load_monitor.degradation().refusal, load_monitor.full()),
                (None, None)
            );
        }
        // "Draining" is the better reason, because it tells the player not to wait.
        load_monitor.pretend(0, true);
        load_monitor.begin_drain();
        assert_eq!(
            load_monitor.degradation().refusal,
            Some(CloseCode::Draining)
        );
        load_monitor.pretend(0, false);
        assert_eq!(
            load_monitor.degradation().refusal,
            Some(CloseCode::Draining)
        );
    }

    /// Finding O3-14: a server on a full disk refused each newcomer, without a reason in its log.
    #[test]
    fn a_change_is_logged_once_with_value_limit_and_setting() {
        let load_monitor = LoadMonitor::default();
        load_monitor.0.disk_free.set(900_000);
        load_monitor
            .0
            .disk_free_min
            .store(1_000_000, Ordering::Relaxed);
        let mut was = None;
        assert_eq!(load_monitor.change(&mut was), None);
        load_monitor.pretend(0, true);
        let reason = load_monitor.change(&mut was).flatten().unwrap().to_string();
        assert!(
            reason.contains("full: 0.9 MB") && reason.contains("1.0 MB (disk-limit)"),
            "{reason}"
        );
        // The text is also true above the limit, while new players are still refused.
        assert!(
            reason.ends_with("new players are admitted again above 1.1 MB"),
            "{reason}"
        );
        load_monitor.0.disk_free.set(800_000);
        assert_eq!(load_monitor.change(&mut was), None, "reported once");
        load_monitor.pretend(3, false);
        let reason = load_monitor.change(&mut was).flatten().unwrap().to_string();
        assert!(
            reason.contains("busy") && reason.contains("(lateness-limit)"),
            "{reason}"
        );
        load_monitor.pretend(2, false);
        assert_eq!(load_monitor.change(&mut was), Some(None), "let in again");
        assert_eq!(load_monitor.change(&mut was), None);
    }

    #[test]
    fn the_fullest_disk_counts_and_a_bare_file_name_means_the_working_directory() {
        let load_monitor = LoadMonitor::default();
        assert_eq!(load_monitor.least_free(), None, "no folder is watched");
        load_monitor.watch_folder(Path::new("/there/is/no/such/folder"));
        assert_eq!(load_monitor.least_free(), None);
        load_monitor.watch_folder(Path::new("match.journal").parent().unwrap());
        let here = load_monitor.least_free();
        assert_eq!(here.is_some(), cfg!(unix), "{here:?}");
    }

    /// Finding O3-14: the refusal was not logged.
    #[tokio::test]
    async fn each_start_and_end_of_refusing_newcomers_is_logged() {
        let lines = CountedLines::default();
        let _logs = tracing::subscriber::set_default(lines.clone());
        let free = Arc::new(AtomicU64::new(1));
        let shown = free.clone();
        let limits = Limits {
            disk_free_bytes: 1_000,
            ..Limits::default()
        };
        let clock = HostClock::start();
        let measuring =
            LoadMonitor::default().measure_by(limits, BTreeMap::new, clock, move || {
                (None, Some(shown.load(Ordering::Relaxed)))
            });
        let measuring = tokio::spawn(measuring);
        for words in ["new players are refused", "new players are admitted again"] {
            while lines.of(words) == 0 {
                assert!(clock.now() < WAIT, "no line {words:?}");
                tokio::time::sleep(SHORT).await;
            }
            free.store(1_000_000, Ordering::Relaxed);
        }
        assert_eq!(lines.of("new players are refused"), 1);
        measuring.abort();
    }

    /// Finding K3-A: a network disk that hung blocked a thread of the runtime for good. All other values are still
    /// measured.
    #[tokio::test]
    async fn an_unresponsive_disk_does_not_delay_other_measurements() {
        let (release, held) = std::sync::mpsc::channel::<()>();
        let held = Arc::new(Mutex::new(held));
        let hangs = move || {
            let _ = held.lock().map(|held| held.recv_timeout(2 * WAIT));
            (None, None)
        };
        let (load_monitor, clock) = (LoadMonitor::default(), HostClock::start());
        let pulses = [(); 2].map(|()| Arc::new(Pulse::default()));
        let noted = pulses.clone();
        let lateness = move || noted.iter().map(|pulse| pulse.lateness_so_far()).collect();
        let measuring = load_monitor.clone();
        let measuring = measuring.measure_by(Limits::default(), lateness, clock, hangs);
        let measuring = tokio::spawn(measuring);
        // On this one thread, a blocked sample would stop everything.
        while load_monitor.0.lateness_us.load(Ordering::Relaxed) == 0 {
            assert!(clock.now() < WAIT, "no measurement");
            for pulse in &pulses {
                (0..60).for_each(|_| pulse.record_lateness(SHORT));
            }
            tokio::time::sleep(SHORT).await;
        }
        measuring.abort();
        drop(release);
    }
}
