//! Histogram of durations, recorded and read by any thread without a lock.

use std::array;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

/// Durations below 2¹⁰ ns, about a microsecond, share one bucket.
const FINEST_BITS: u32 = 10;
/// Octaves up to 2³⁶ ns, 69 s; longer durations count as the longest.
const OCTAVES: usize = 26;
/// Buckets per octave, 2³, of equal width: quantiles are at most an eighth too long.
const SUB_BITS: u32 = 3;
const BUCKETS: usize = 1 + (OCTAVES << SUB_BITS);

/// Counts of durations in logarithmic buckets. Any thread may record or read at any time, without a
/// lock.
///
/// # Examples
/// ```
/// use std::time::Duration;
///
/// use ondes_engine::realtime::histogram::Histogram;
///
/// let histogram = Histogram::new();
/// (1..=100).for_each(|ms| histogram.record(Duration::from_millis(ms)));
/// assert_eq!(histogram.worst(), Duration::from_millis(100));
/// assert!(histogram.quantile(0.5) >= Duration::from_millis(50));
/// ```
#[derive(Debug)]
pub struct Histogram {
    counts: [AtomicU64; BUCKETS],
    worst_ns: AtomicU64,
}

impl Histogram {
    /// Creates an empty histogram.
    #[must_use]
    pub fn new() -> Self {
        Self {
            counts: array::from_fn(|_| AtomicU64::new(0)),
            worst_ns: AtomicU64::new(0),
        }
    }

    /// Adds a duration. Wait-free, except where two threads record a new worst at the same time.
    pub fn record(&self, duration: Duration) {
        let ns = u64::try_from(duration.as_nanos()).unwrap_or(u64::MAX);
        if ns > self.worst_ns.load(Ordering::Relaxed) {
            self.worst_ns.fetch_max(ns, Ordering::Relaxed);
        }
        // Release, paired with the acquire in `snapshot`: the worst is at least as long as every
        // counted duration.
        self.counts[bucket(ns)].fetch_add(1, Ordering::Release);
    }

    /// Returns the longest duration, exactly; zero for an empty histogram.
    pub fn worst(&self) -> Duration {
        Duration::from_nanos(self.worst_ns.load(Ordering::Relaxed))
    }

    /// Returns the number of durations.
    pub fn count(&self) -> u64 {
        self.snapshot().count
    }

    /// Returns the quantile `q` (0 to 1) of the durations: up to an eighth too long, never longer
    /// than the worst; zero for an empty histogram.
    pub fn quantile(&self, q: f64) -> Duration {
        self.snapshot().quantile(q)
    }

    /// Returns the usual quantiles, all of the same durations.
    pub fn percentiles(&self) -> Percentiles {
        let snapshot = self.snapshot();
        Percentiles {
            count: snapshot.count,
            p50: snapshot.quantile(0.5),
            p95: snapshot.quantile(0.95),
            p99: snapshot.quantile(0.99),
            p999: snapshot.quantile(0.999),
            worst: snapshot.worst,
        }
    }

    /// Removes all durations. One that is recorded at the same time may be removed in part.
    pub fn reset(&self) {
        for count in &self.counts {
            count.store(0, Ordering::Relaxed);
        }
        self.worst_ns.store(0, Ordering::Relaxed);
    }

    fn snapshot(&self) -> Counts {
        let counts = array::from_fn(|i| self.counts[i].load(Ordering::Acquire));
        Counts {
            counts,
            count: counts.iter().sum(),
            worst: self.worst(),
        }
    }
}

impl Default for Histogram {
    fn default() -> Self {
        Self::new()
    }
}

/// Quantiles of durations.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Percentiles {
    /// Number of durations.
    pub count: u64,
    /// Median.
    pub p50: Duration,
    /// 95th percentile.
    pub p95: Duration,
    /// 99th percentile.
    pub p99: Duration,
    /// 99.9th percentile.
    pub p999: Duration,
    /// Longest duration, exactly.
    pub worst: Duration,
}

/// Counts read at about one instant.
struct Counts {
    counts: [u64; BUCKETS],
    count: u64,
    worst: Duration,
}

impl Counts {
    fn quantile(&self, q: f64) -> Duration {
        let rank = ((q * self.count as f64).ceil() as u64).clamp(1, self.count.max(1));
        let mut so_far = 0;
        let bucket = self.counts.iter().position(|count| {
            so_far += count;
            so_far >= rank
        });
        bucket.map_or(Duration::ZERO, |bucket| upper_edge(bucket).min(self.worst))
    }
}

fn bucket(ns: u64) -> usize {
    let Some(octave) = (ns >> FINEST_BITS).checked_ilog2() else {
        return 0;
    };
    // The bits below the leading one.
    let sub = (ns >> (octave + FINEST_BITS - SUB_BITS)) as usize & ((1 << SUB_BITS) - 1);
    (1 + ((octave as usize) << SUB_BITS) + sub).min(BUCKETS - 1)
}

/// Returns the end of a bucket, exclusive.
fn upper_edge(bucket: usize) -> Duration {
    if bucket == BUCKETS - 1 {
        return Duration::MAX;
    }
    // The start of the next bucket.
    let (octave, sub) = (bucket >> SUB_BITS, bucket & ((1 << SUB_BITS) - 1));
    Duration::from_nanos(((1 << SUB_BITS) + sub as u64) << (octave as u32 + FINEST_BITS - SUB_BITS))
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn buckets_are_contiguous() {
        for i in 0..BUCKETS - 1 {
            let edge = upper_edge(i).as_nanos() as u64;
            assert_eq!((bucket(edge - 1), bucket(edge)), (i, i + 1));
        }
        assert_eq!(upper_edge(0), Duration::from_nanos(1_024));
        assert!(upper_edge(BUCKETS - 2) > Duration::from_secs(60));
        assert_eq!(bucket(u64::MAX), BUCKETS - 1);
    }

    proptest! {
        #[test]
        fn quantiles_are_close_to_exact(
            octaves in prop::collection::vec(10f64..37.0, 1..2_000), q in prop_oneof![0f64..=1.0, 0.99..=1.0],
        ) {
            let mut exact: Vec<u64> = octaves.iter().map(|octave| octave.exp2() as u64).collect();
            let histogram = Histogram::new();
            for &ns in &exact {
                histogram.record(Duration::from_nanos(ns));
            }
            exact.sort_unstable();
            let rank = ((q * exact.len() as f64).ceil() as usize).max(1);
            let (read, exact) = (histogram.quantile(q).as_nanos() as u64, (exact[rank - 1], exact[exact.len() - 1]));
            prop_assert!(read >= exact.0 && read <= exact.1);
            if bucket(exact.0) < BUCKETS - 1 {
                prop_assert!(read as f64 <= exact.0 as f64 * 1.125);
            }
            prop_assert_eq!(histogram.worst(), Duration::from_nanos(exact.1));
            prop_assert_eq!(histogram.count(), octaves.len() as u64);
            let percentiles = histogram.percentiles();
            prop_assert_eq!(percentiles.p95, histogram.quantile(0.95));
            prop_assert!(percentiles.p50 <= percentiles.p95 && percentiles.p95 <= percentiles.p99);
            prop_assert!(percentiles.p99 <= percentiles.p999 && percentiles.p999 <= percentiles.worst);
        }
    }

    #[test]
    fn extreme_durations_are_counted_and_reset() {
        let histogram = Histogram::default();
        assert_eq!(histogram.percentiles(), Percentiles::default());
        assert_eq!(histogram.quantile(f64::NAN), Duration::ZERO);
        histogram.record(Duration::ZERO);
        histogram.record(Duration::MAX);
        assert_eq!(
            (histogram.quantile(0.0), histogram.count()),
            (Duration::from_nanos(1_024), 2)
        );
        assert_eq!(histogram.quantile(1.0), Duration::from_nanos(u64::MAX));
        histogram.reset();
        assert_eq!(histogram.percentiles(), Percentiles::default());
    }

    #[test]
    fn threads_record_concurrently() {
        let histogram = Histogram::new();
        std::thread::scope(|scope| {
            for thread in 0..4 {
                let histogram = &histogram;
                scope.spawn(move || {
                    (0..10_000)
                        .for_each(|i| histogram.record(Duration::from_micros(i * 4 + thread)));
                });
            }
        });
        assert_eq!(
            (histogram.count(), histogram.worst()),
            (40_000, Duration::from_micros(39_999))
        );
    }
}
