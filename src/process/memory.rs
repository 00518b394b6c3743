//! The memory that a program and everything below it use, and the memory of this machine. Linux only: elsewhere both are unknown,
//! and no limit applies.

use std::fs;
use std::path::Path;
use std::time::Duration;

use rustix::process::Pid;
use tokio::time::sleep;

use crate::supervisor;

/// The time between two measurements.
const EVERY: Duration = Duration::from_millis(250);

/// Waits until a process and those below it use more memory than `limit` bytes. Files in memory do not count: the system can
/// drop them. A limit of the address space (`RLIMIT_AS`) would end Node, Go and Java, which reserve far more than they use.
pub async fn exceeded(root: Pid, limit: u64) {
    let root = root.as_raw_nonzero().get();
    loop {
        sleep(EVERY).await;
        let measured = tokio::task::spawn_blocking(move || exceeds(root, limit)).await;
        if measured.unwrap_or(false) {
            return;
        }
    }
}

/// Returns true if a process and those below it use more than `limit` bytes.
fn exceeds(root: i32, limit: u64) -> bool {
    let mut all = supervisor::below(root);
    all.push(root);
    let sum = |of: fn(i32) -> u64| all.iter().fold(0_u64, |sum, pid| sum.saturating_add(of(*pid)));
    // The exact figure is slow to read, and never larger.
    sum(resident) > limit && sum(share) > limit
}

/// Returns the memory of a process. Pages that it shares with others count for each of them.
fn resident(pid: i32) -> u64 {
    let status = fs::read_to_string(format!("/proc/{pid}/status")).unwrap_or_default();
    let own = |key: &str| size_after(&status, key);
    let resident = own("RssAnon:").map(|private| private.saturating_add(own("RssShmem:").unwrap_or(0)));
    resident.or_else(|| own("VmRSS:")).unwrap_or(0).saturating_add(own("VmSwap:").unwrap_or(0))
}

/// Returns the memory of a process, with its share of the pages that it has in common with others: a process and its forks have
/// most of their pages in common.
fn share(pid: i32) -> u64 {
    let map = fs::read_to_string(format!("/proc/{pid}/smaps_rollup")).unwrap_or_default();
    let part = |key: &str| size_after(&map, key);
    match part("Pss_Anon:").zip(part("Pss_Shmem:")) {
        Some((private, shared)) => private.saturating_add(shared).saturating_add(part("SwapPss:").unwrap_or(0)),
        None => resident(pid),
    }
}

/// Returns half of the memory of this machine, or of the control groups of this process if their limit is lower. `None` if it is
/// unknown.
pub fn half_of_the_machine() -> Option<u64> {
    let all = size_after(&fs::read_to_string("/proc/meminfo").ok()?, "MemTotal:")?;
    let groups = fs::read_to_string("/proc/self/cgroup").unwrap_or_default();
    let limit = limit_of_groups(&groups, |file| fs::read_to_string(file).ok());
    Some(limit.map_or(all, |limit| limit.min(all)) / 2)
}

/// Returns the lowest limit of the control groups of a process and of the groups around them. `groups` is its `/proc/PID/cgroup`.
fn limit_of_groups(groups: &str, read: impl Fn(&Path) -> Option<String>) -> Option<u64> {
    let files = groups.lines().filter_map(|line| {
        let (_, rest) = line.split_once(':')?;
        let (controllers, path) = rest.split_once(':')?;
        let (top, file) = match controllers {
            "" => ("/sys/fs/cgroup", "memory.max"),
            _ if controllers.split(',').any(|name| name == "memory") => {
                ("/sys/fs/cgroup/memory", "memory.limit_in_bytes")
            }
            _ => return None,
        };
        Some((Path::new(top), path.trim_start_matches('/'), file))
    });
    let limits = files.flat_map(|(top, path, file)| {
        let places = Path::new(path).ancestors().map(|group| top.join(group).join(file));
        // A group without a limit has the word `max`.
        places.filter_map(|place| read(&place)?.trim().parse::<u64>().ok()).collect::<Vec<u64>>()
    });
    limits.min()
}

/// Returns the size in bytes after a key, which the system writes in kB.
fn size_after(text: &str, key: &str) -> Option<u64> {
    let line = text.lines().find_map(|line| line.strip_prefix(key))?;
    let (number, unit) = line.trim().split_once(' ')?;
    (unit == "kB").then(|| number.parse::<u64>().ok()?.checked_mul(1024)).flatten()
}

/// Returns a size as people read it: `4 GiB`, `1.5 GiB`, `200 MiB`.
pub fn shown(bytes: u64) -> String {
    const UNITS: [(&str, u32); 4] = [("TiB", 40), ("GiB", 30), ("MiB", 20), ("KiB", 10)];
    let Some((unit, shift)) = UNITS.into_iter().find(|(_, shift)| bytes >> shift > 0) else {
        return format!("{bytes} bytes");
    };
    let tenths = (u128::from(bytes) * 10) >> shift;
    match (tenths / 10, tenths % 10) {
        (whole, 0) => format!("{whole} {unit}"),
        (whole, tenth) => format!("{whole}.{tenth} {unit}"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn sizes_are_read_and_shown() {
        let status = "Name:\tsh\nVmRSS:\t    1204 kB\nRssAnon:\t     120 kB\nThreads:\t1\n";
        assert_eq!((size_after(status, "RssAnon:"), size_after(status, "Threads:")), (Some(120 << 10), None));
        assert_eq!(size_after("MemTotal:       16303428 kB\n", "MemTotal:"), Some(16_303_428 << 10));
        for (bytes, text) in [(4 << 30, "4 GiB"), (3 << 29, "1.5 GiB"), (200 << 20, "200 MiB"), (12, "12 bytes")] {
            assert_eq!(shown(bytes), text);
        }
    }

    #[test]
    fn the_lowest_limit_of_the_control_groups_counts() {
        let read = |path: &Path| {
            let text = match path.to_str()? {
                "/sys/fs/cgroup/memory.max" | "/sys/fs/cgroup/a/b/memory.max" => "max\n",
                "/sys/fs/cgroup/a/memory.max" => "1000\n",
                "/sys/fs/cgroup/memory/docker/memory.limit_in_bytes" => "9223372036854771712\n",
                "/sys/fs/cgroup/memory/memory.limit_in_bytes" => "2000\n",
                _ => return None,
            };
            Some(text.to_owned())
        };
        for (groups, limit) in [
            ("0::/a/b\n", Some(1000)),
            ("0::/\n", None),
            ("3:cpu,cpuacct:/\n2:memory:/docker\n0::/c\n", Some(2000)),
            ("", None),
        ] {
            assert_eq!(limit_of_groups(groups, read), limit, "{groups}");
        }
    }

    #[cfg(target_os = "linux")]
    #[test]
    fn the_memory_of_this_process_is_measured() {
        let own = i32::try_from(std::process::id()).unwrap();
        let held = std::hint::black_box(vec![1_u8; 64 << 20]);
        assert!(exceeds(own, 64 << 20) && !exceeds(own, 1 << 50), "{}", held.len());
        assert!(half_of_the_machine().is_some_and(|half| half > 64 << 20));
    }
}
