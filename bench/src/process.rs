//! Linux's counters of this process, and pinning a thread to a core.
//!
//! Invariant: [`cores`] returns the same two cores for the life of the process. It queries the system only once,
//! because a pinned thread may use only one core, and would get a different result later.

use std::fs::read_to_string;
use std::sync::OnceLock;

use serde::{Deserialize, Serialize};

pub(crate) type Failed = Box<dyn std::error::Error>;

#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct Cpu {
    pub(crate) user_us: u64,
    pub(crate) system_us: u64,
}

impl Cpu {
    pub(crate) fn total_us(self) -> u64 {
        self.user_us + self.system_us
    }
}

impl std::ops::Sub for Cpu {
    type Output = Cpu;
    fn sub(self, earlier: Cpu) -> Cpu {
        Cpu {
            user_us: self.user_us.saturating_sub(earlier.user_us),
            system_us: self.system_us.saturating_sub(earlier.system_us),
        }
    }
}

pub(crate) fn cpu() -> Result<Cpu, Failed> {
    let stat = read_to_string("/proc/self/stat")?;
    // The name in brackets may contain anything. After it, the state is the first field, and the times are the 12th
    // and the 13th.
    let name_ends = stat.rfind(')').ok_or("no name in /proc/self/stat")?;
    let fields: Vec<&str> = stat[name_ends + 1..].split_whitespace().collect();
    let us = |at: usize| -> Result<u64, Failed> { Ok(fields[at].parse::<u64>()? * 10_000) };
    let (user_us, system_us) = (us(11)?, us(12)?);
    // These are hundredths of a second. Their sum is known to the nanosecond; its split is not.
    let system = system_us as f64 / (user_us + system_us).max(1) as f64;
    let total_us = linux::cpu_us().unwrap_or(user_us + system_us);
    let system_us = (total_us as f64 * system) as u64;
    Ok(Cpu {
        user_us: total_us - system_us,
        system_us,
    })
}

pub(crate) fn cpu_us() -> Option<u64> {
    linux::cpu_us()
}

pub(crate) fn resident_kb() -> Result<u64, Failed> {
    let status = read_to_string("/proc/self/status")?;
    let line = status.lines().find_map(|line| line.strip_prefix("VmRSS:"));
    let kb = line.and_then(|line| line.split_whitespace().next());
    Ok(kb.ok_or("no VmRSS in /proc/self/status")?.parse()?)
}

pub(crate) fn datagrams_sent() -> u64 {
    let text = read_to_string("/proc/net/snmp").unwrap_or_default();
    let mut lines = text.lines().filter(|line| line.starts_with("Udp:"));
    let (names, values) = (lines.next(), lines.next());
    let at = names.and_then(|names| names.split(' ').position(|name| name == "OutDatagrams"));
    let value = at
        .zip(values)
        .and_then(|(at, values)| values.split(' ').nth(at));
    value.and_then(|value| value.parse().ok()).unwrap_or(0)
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Core(usize);

/// Returns the core for the server and the core for its players; `None` with fewer than two cores, or on systems other
/// than Linux.
pub(crate) fn cores() -> Option<(Core, Core)> {
    static CORES: OnceLock<Option<(Core, Core)>> = OnceLock::new();
    *CORES.get_or_init(|| {
        let mut mine = linux::allowed().into_iter();
        Some((Core(mine.next()?), Core(mine.next()?)))
    })
}

pub(crate) fn pin(core: Core) {
    linux::pin(core.0);
}

#[cfg(target_os = "linux")]
mod linux {
    use rustix::thread::{CpuSet, sched_getaffinity, sched_setaffinity};
    use rustix::time::{ClockId, clock_gettime};

    pub(super) fn cpu_us() -> Option<u64> {
        let spent = clock_gettime(ClockId::ProcessCPUTime);
        u64::try_from(spent.tv_sec * 1_000_000 + spent.tv_nsec / 1_000).ok()
    }

    pub(super) fn allowed() -> Vec<usize> {
        let set = sched_getaffinity(None).unwrap_or_else(|_| CpuSet::new());
        (0..CpuSet::MAX_CPU)
            .filter(|core| set.is_set(*core))
            .collect()
    }

    pub(super) fn pin(core: usize) {
        let mut set = CpuSet::new();
        set.set(core);
        // If the system refuses, its scheduler chooses.
        let _ = sched_setaffinity(None, &set);
    }
}

#[cfg(not(target_os = "linux"))]
mod linux {
    pub(super) fn cpu_us() -> Option<u64> {
        None
    }

    pub(super) fn allowed() -> Vec<usize> {
        Vec::new()
    }

    pub(super) fn pin(_: usize) {}
}

#[cfg(all(test, target_os = "linux"))]
mod tests {
    use super::*;

    #[test]
    fn a_sent_datagram_is_counted() {
        let before = datagrams_sent();
        let socket = std::net::UdpSocket::bind("127.0.0.1:0").expect("a socket");
        let own = socket.local_addr().expect("a bound socket");
        socket.send_to(&[1], own).expect("loopback");
        assert!(datagrams_sent() > before);
    }

    #[test]
    fn a_pinned_thread_may_use_only_its_core_and_cores_still_returns_both() {
        let Some((first, second)) = cores() else {
            return;
        };
        assert_ne!(first, second);
        let pinned = std::thread::spawn(move || {
            pin(second);
            assert_eq!(linux::allowed(), [second.0]);
            assert_eq!(cores(), Some((first, second)));
        });
        pinned.join().expect("it has its core");
    }
}
