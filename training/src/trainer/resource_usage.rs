//! Processor time and memory of this process.

/// Processor time and memory of this process; zero where the system does not say.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct ResourceUsage {
    /// Processor time of all threads, seconds.
    pub(super) cpu_seconds: f64,
    /// Largest resident memory so far, bytes.
    pub(super) peak_bytes: u64,
}

impl ResourceUsage {
    /// Returns the usage up to now.
    #[cfg(unix)]
    pub(super) fn now() -> Self {
        let mut usage = std::mem::MaybeUninit::<libc::rusage>::zeroed();
        // SAFETY: the pointer is valid; the call fills the struct, for which zeros are valid as well.
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
            peak_bytes: u64::try_from(usage.ru_maxrss).unwrap_or_default() * unit,
        }
    }

    /// Returns the usage up to now.
    #[cfg(not(unix))]
    pub(super) fn now() -> Self {
        Self::default()
    }
}
