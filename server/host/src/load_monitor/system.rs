//! Values from the operating system about this process, the machine and the disks. A value is `None` if the system does
//! not provide it.

use std::path::Path;

/// The default share of the available memory, in percent.
const SHARE_PERCENT: u64 = 85;

/// The resident memory of this process, in bytes. Linux only.
pub(super) fn memory_bytes() -> Option<u64> {
    let status = std::fs::read_to_string("/proc/self/status").ok()?;
    kilobytes(&status, "VmRSS:")
}

/// The memory that this process may use, in bytes: a share of its cgroup's or machine's memory, whichever is less.
pub(super) fn memory_max_bytes() -> Option<u64> {
    let machine = std::fs::read_to_string("/proc/meminfo").ok();
    let machine = machine.and_then(|text| kilobytes(&text, "MemTotal:"));
    let group = std::fs::read_to_string("/sys/fs/cgroup/memory.max").ok();
    let group = group.and_then(|text| text.trim().parse::<u64>().ok());
    let most = machine.into_iter().chain(group).min()?;
    Some(most / 100 * SHARE_PERCENT)
}

fn kilobytes(text: &str, name: &str) -> Option<u64> {
    let line = text.lines().find(|line| line.starts_with(name))?;
    let number: u64 = line.split_whitespace().nth(1)?.parse().ok()?;
    Some(number * 1_024)
}

#[cfg(unix)]
pub(crate) fn free_bytes(folder: &Path) -> Option<u64> {
    let disk = rustix::fs::statvfs(folder).ok()?;
    Some(disk.f_bavail.saturating_mul(disk.f_frsize))
}

#[cfg(not(unix))]
pub(crate) fn free_bytes(_folder: &Path) -> Option<u64> {
    None
}

#[cfg(all(test, target_os = "linux"))]
mod tests {
    use super::*;

    #[test]
    fn linux_reports_memory_and_disks() {
        let (ours, most) = (memory_bytes().unwrap(), memory_max_bytes().unwrap());
        assert!((1 << 20..most).contains(&ours), "{ours} of {most}");
        let much = vec![1_u8; 64 << 20];
        let more = memory_bytes().unwrap();
        assert!(more > ours + (50 << 20), "{ours}, then {more}");
        drop(much);
        assert!(free_bytes(&std::env::temp_dir()).unwrap() > 0);
        assert_eq!(free_bytes(Path::new("/there/is/no/such/folder")), None);
    }
}
