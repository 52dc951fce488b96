//! Memory of the machine and of this process, as Linux reports it. Elsewhere nothing is known.

use std::fs::read_to_string;

/// Bytes of memory of the machine.
pub fn of_machine() -> Option<u64> {
    bytes("/proc/meminfo", "MemTotal")
}

/// Bytes that this process has in memory.
pub fn resident() -> Option<u64> {
    bytes("/proc/self/status", "VmRSS")
}

/// The most bytes that this process ever had in memory.
pub fn peak_resident() -> Option<u64> {
    bytes("/proc/self/status", "VmHWM")
}

/// A line of a file that has its numbers in KiB.
fn bytes(file: &str, line: &str) -> Option<u64> {
    let text = read_to_string(file).ok()?;
    let value = text.lines().find_map(|found| found.strip_prefix(line)?.strip_prefix(':'))?;
    let kib: u64 = value.trim().strip_suffix("kB")?.trim().parse().ok()?;
    Some(kib * 1_024)
}
