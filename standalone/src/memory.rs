//! Memory use of this process.

/// Returns the peak resident memory of this process in bytes; `None` if the system does not report it.
pub fn peak_resident_bytes() -> Option<u64> {
    // Linux, proc_pid_status(5); other systems have no such file.
    let status = std::fs::read_to_string("/proc/self/status").ok()?;
    let line = status.lines().find_map(|line| line.strip_prefix("VmHWM:"))?;
    let kibibytes: u64 = line.trim().strip_suffix("kB")?.trim().parse().ok()?;
    Some(kibibytes * 1024)
}
