//! What a process has used up, as Linux tells it.

use std::fs::{read_dir, read_to_string};

use serde::{Deserialize, Serialize};

/// Why something could not be measured.
pub(crate) type Failed = Box<dyn std::error::Error>;

/// Time on a processor, in microseconds.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct Cpu {
    /// By its own code.
    pub(crate) user_us: u64,
    /// By the kernel for it.
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

/// Memory and threads.
#[derive(Clone, Copy, Debug, Default, Serialize, Deserialize)]
pub(crate) struct Usage {
    /// Of memory, now.
    pub(crate) resident_kb: u64,
    pub(crate) threads: u64,
    /// How often its threads went to sleep.
    pub(crate) sleeps: u64,
}

/// The time that this process has had on processors: all its threads, those that ended too.
pub(crate) fn cpu() -> Result<Cpu, Failed> {
    let stat = read_to_string("/proc/self/stat")?;
    // Behind the name, which may hold anything: state is the first field, so times are the 12th and the 13th.
    let name_ends = stat.rfind(')').ok_or("no name in /proc/self/stat")?;
    let fields: Vec<&str> = stat[name_ends + 1..].split_whitespace().collect();
    // Linux counts in hundredths of a second there, whatever the kernel's own clock.
    let us = |at: usize| -> Result<u64, Failed> { Ok(fields[at].parse::<u64>()? * 10_000) };
    let (user_us, system_us) = (us(11)?, us(12)?);
    // The sum is told to the nanosecond elsewhere; how it is divided is not.
    let system = system_us as f64 / (user_us + system_us).max(1) as f64;
    let total_us = precise_us().unwrap_or(user_us + system_us);
    let system_us = (total_us as f64 * system) as u64;
    Ok(Cpu {
        user_us: total_us - system_us,
        system_us,
    })
}

/// The time of all threads on processors, in microseconds.
#[cfg(target_os = "linux")]
fn precise_us() -> Option<u64> {
    let spent = rustix::time::clock_gettime(rustix::time::ClockId::ProcessCPUTime);
    let us = spent.tv_sec * 1_000_000 + spent.tv_nsec / 1_000;
    u64::try_from(us).ok()
}

#[cfg(not(target_os = "linux"))]
fn precise_us() -> Option<u64> {
    None
}

/// What this process has now, and has done.
pub(crate) fn usage() -> Result<Usage, Failed> {
    let status = read_to_string("/proc/self/status")?;
    let mut usage = Usage {
        resident_kb: number(&status, "VmRSS:"),
        threads: number(&status, "Threads:"),
        sleeps: 0,
    };
    for task in read_dir("/proc/self/task")? {
        let status = read_to_string(task?.path().join("status")).unwrap_or_default();
        usage.sleeps += number(&status, "voluntary_ctxt_switches:");
    }
    Ok(usage)
}

/// Datagrams that all processes of this machine have sent: on a quiet machine, those between a server and its players.
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

fn number(text: &str, name: &str) -> u64 {
    let line = text.lines().find(|line| line.starts_with(name));
    let value = line.and_then(|line| line.split_whitespace().nth(1));
    value.and_then(|value| value.parse().ok()).unwrap_or(0)
}

#[cfg(all(test, target_os = "linux"))]
mod tests {
    use super::*;

    #[test]
    fn work_takes_time_on_a_processor_and_threads_are_seen() {
        let before = cpu().expect("Linux tells");
        let mut n = 1_u64;
        while (cpu().expect("Linux tells") - before).total_us() < 20_000 {
            (0..100_000).for_each(|_| n = std::hint::black_box(n.wrapping_mul(3)));
        }
        let usage = usage().expect("Linux tells");
        assert!(usage.resident_kb > 500 && usage.threads >= 1, "{usage:?}");
    }

    #[test]
    fn a_datagram_that_is_sent_is_counted() {
        let before = datagrams_sent();
        let socket = std::net::UdpSocket::bind("127.0.0.1:0").expect("a socket");
        let own = socket.local_addr().expect("it is bound");
        socket.send_to(&[1], own).expect("it is sent");
        assert!(datagrams_sent() > before);
    }
}
