//! Time stamps of MIDI sources.

use std::time::{Duration, Instant};

/// Converts a source's time stamps, in microseconds since an unknown origin, to [`Instant`]s.
///
/// A message is never delivered early and mostly almost at once, so the smallest delay seen so far
/// relates the two clocks.
#[derive(Clone, Debug, Default)]
pub(super) struct TimestampMapper {
    /// Origin of the source's clock, and when it was estimated.
    origin: Option<(Instant, Instant)>,
}

/// Largest drift between two clocks of one machine, seconds per second.
const CLOCK_DRIFT: f64 = 1e-4;

impl TimestampMapper {
    /// Returns the time of a message with this time stamp that was delivered at `now`.
    pub fn time(&mut self, stamp_us: u64, now: Instant) -> Instant {
        let Some(origin) = now.checked_sub(Duration::from_micros(stamp_us)) else {
            return now;
        };
        let best = match self.origin {
            // Earlier estimates lose weight as time goes by.
            Some((best, found)) => {
                let doubt = now.saturating_duration_since(found).mul_f64(CLOCK_DRIFT);
                origin.min(best + doubt)
            }
            None => origin,
        };
        self.origin = Some((best, now));
        (best + Duration::from_micros(stamp_us)).min(now)
    }
}

#[cfg(test)]
mod tests {
    use ondes_engine::random::Lcg;

    use super::*;
    use crate::io::block_clock::signed_seconds;

    #[test]
    fn time_stamps_remove_the_delivery_jitter() {
        let mut stamps = TimestampMapper::default();
        let origin = Instant::now();
        let mut random = Lcg::new(1);
        for number in 1..2000u64 {
            let (real, delay) = (
                number * 10_000,
                (1000.0 * random.next_signed().abs()) as u64,
            );
            let time = stamps.time(
                real,
                origin + Duration::from_micros(5_000_000 + real + delay),
            );
            let error = signed_seconds(time, origin + Duration::from_micros(5_000_000 + real));
            assert!(error >= 0.0, "never before it happened");
            if number > 200 {
                assert!(error < 1e-4, "{error}");
            }
        }
    }
}
