//! Processor time and memory of this process.

/// Processor time and memory of this process; zero where the system does not say.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct ResourceUsage {
    /// Processor time of all threads, seconds.
    pub(super) cpu_seconds: f64,
    /// Resident memory, bytes.
    pub(super) bytes: u64,
    /// Largest resident memory so far, bytes.
    pub(super) peak_bytes: u64,
}

impl ResourceUsage {
    /// Returns the usage up to now.
    #[cfg(unix)]
    pub(super) fn now() -> Self {
        let mut usage = std::mem::MaybeUninit::<libc::rusage>::zeroed();
        // SAFETY: the pointer is valid; the call fills the struct, for which zeros are valid as
        // well.
        #[expect(unsafe_code)]
        let usage = unsafe {
            libc::getrusage(libc::RUSAGE_SELF, usage.as_mut_ptr());
            usage.assume_init()
        };
        let seconds = |time: libc::timeval| time.tv_sec as f64 + 1e-6 * time.tv_usec as f64;
        // macOS counts bytes, others kilobytes.
        let unit = if cfg!(target_os = "macos") { 1 } else { 1024 };
        Self {
            cpu_seconds: seconds(usage.ru_utime) + seconds(usage.ru_stime),
            bytes: resident_bytes().unwrap_or_default(),
            peak_bytes: u64::try_from(usage.ru_maxrss).unwrap_or_default() * unit,
        }
    }

    /// Returns the usage up to now.
    #[cfg(not(unix))]
    pub(super) fn now() -> Self {
        Self::default()
    }
}

/// Returns the resident memory where the system has Linux's `/proc`.
#[cfg(unix)]
fn resident_bytes() -> Option<u64> {
    let text = std::fs::read_to_string("/proc/self/statm").ok()?;
    let pages: u64 = text.split_whitespace().nth(1)?.parse().ok()?;
    // SAFETY: the call has no arguments that could be wrong.
    #[expect(unsafe_code)]
    let page = unsafe { libc::sysconf(libc::_SC_PAGESIZE) };
    Some(pages * u64::try_from(page).ok()?)
}
