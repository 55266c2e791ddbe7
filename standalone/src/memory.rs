//! How much memory this process has taken.

/// The most memory that was resident at any time so far, in bytes, where the system tells.
pub fn peak_resident_bytes() -> Option<u64> {
    // Linux: see proc_pid_status(5); other systems have no such file.
    let status = std::fs::read_to_string("/proc/self/status").ok()?;
    let line = status.lines().find_map(|line| line.strip_prefix("VmHWM:"))?;
    let kibibytes: u64 = line.trim().strip_suffix("kB")?.trim().parse().ok()?;
    Some(kibibytes * 1024)
}
