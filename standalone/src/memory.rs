//! Memory of this process: its peak, and the limit of decoded sound.

use std::sync::OnceLock;
use std::sync::atomic::{AtomicU64, Ordering::Relaxed};

use anyhow::bail;

/// Limit if the memory of the machine is unknown, bytes.
const USUAL_LIMIT: u64 = 4 << 30;

/// Limit of the command line, bytes.
static LIMIT: OnceLock<u64> = OnceLock::new();
/// All reservations, bytes.
static RESERVED: AtomicU64 = AtomicU64::new(0);

/// Returns the peak resident memory of this process in bytes; `None` if the system does not report
/// it.
pub fn peak_resident_bytes() -> Option<u64> {
    // Linux, proc_pid_status(5); other systems have no such file.
    entry("/proc/self/status", "VmHWM:")
}

/// Reads a size in bytes from a file of the kernel.
fn entry(file: &str, name: &str) -> Option<u64> {
    let text = std::fs::read_to_string(file).ok()?;
    let line = text.lines().find_map(|line| line.strip_prefix(name))?;
    let kibibytes: u64 = line.trim().strip_suffix("kB")?.trim().parse().ok()?;
    Some(kibibytes * 1024)
}

/// Returns half of the machine's memory in bytes.
pub fn usual_limit() -> u64 {
    entry("/proc/meminfo", "MemTotal:").map_or(USUAL_LIMIT, |bytes| bytes / 2)
}

/// Sets the limit of decoded sound for the whole process, which can be done once.
pub fn set_limit(bytes: u64) {
    // A command sets it before anything is decoded.
    LIMIT.get_or_init(|| bytes);
}

/// Parses a size such as 512M or 4G, in bytes.
pub fn parse_size(text: &str) -> Result<u64, String> {
    let (number, shift) = match text.trim().strip_suffix(['K', 'M', 'G', 'k', 'm', 'g']) {
        Some(number) if text.ends_with(['K', 'k']) => (number, 10),
        Some(number) if text.ends_with(['M', 'm']) => (number, 20),
        Some(number) => (number, 30),
        None => (text.trim(), 0),
    };
    let size = number
        .parse::<f64>()
        .ok()
        .map(|number| number * f64::from(1 << shift));
    let size = size.filter(|size| (1.0..=f64::from(1 << 30) * f64::from(1 << 20)).contains(size));
    size.map(|size| size as u64)
        .ok_or_else(|| "expected a size such as 512M or 4G".to_owned())
}

/// Memory that is set aside for decoded sound, and given back when this is dropped.
#[derive(Debug, Default)]
pub struct Reservation(u64);

impl Reservation {
    /// Sets aside `bytes` in total, more or fewer than before.
    ///
    /// # Errors
    /// Returns an error if all reservations would exceed the limit.
    pub fn resize(&mut self, bytes: u64) -> anyhow::Result<()> {
        let limit = LIMIT.get().copied().unwrap_or_else(usual_limit);
        let before = self.0;
        let resized = |reserved: u64| {
            let reserved = (reserved - before).saturating_add(bytes);
            (reserved <= limit || bytes < before).then_some(reserved)
        };
        if let Err(reserved) = RESERVED.fetch_update(Relaxed, Relaxed, resized) {
            let megabytes = |bytes: u64| bytes.div_ceil(1 << 20);
            let advice = if LIMIT.get().is_some() {
                "; raise --memory"
            } else {
                ""
            };
            bail!(
                "its sound takes {} MB of memory; {} of {} MB are free for sound{advice}",
                megabytes(bytes),
                limit.saturating_sub(reserved - before) >> 20,
                megabytes(limit)
            );
        }
        self.0 = bytes;
        Ok(())
    }
}

impl Drop for Reservation {
    fn drop(&mut self) {
        RESERVED.fetch_sub(self.0, Relaxed);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn sizes_have_units() {
        for (text, bytes) in [
            ("4G", 4 << 30),
            ("512m", 512 << 20),
            ("1.5K", 1536),
            ("77", 77),
        ] {
            assert_eq!(parse_size(text), Ok(bytes));
        }
        for text in ["", "G", "-1G", "0", "nan", "inf", "4T", "1e99", "4 GB"] {
            assert!(parse_size(text).is_err(), "{text:?}");
        }
    }

    #[test]
    fn reservations_are_limited_and_returned() {
        let mut one = Reservation::default();
        one.resize(1_000).unwrap();
        let error = one.resize(u64::MAX / 2).unwrap_err().to_string();
        assert!(
            error.contains("MB are free for sound") && !error.contains('\n'),
            "{error}"
        );
        assert_eq!(one.0, 1_000);
        one.resize(10).unwrap();
        assert_eq!(one.0, 10);
    }
}
