//! Times of MIDI messages, and what frame of a block they are.
//!
//! A message is heard a fixed time after it came: the length of the longest block. Played as soon as it is found, it would
//! be heard between nothing and a block later, and a run of notes would stumble.

use std::time::{Duration, Instant};

/// How fast the starts of blocks are followed, per block. Callbacks come up to a block late or early, sound does not.
const FOLLOWING: f64 = 0.03;

/// The audio thread's clock: when each block starts, freed from the callback's jitter.
#[derive(Clone, Debug)]
pub(super) struct BlockClock {
    sample_rate: f64,
    latency_frames: f64,
    /// When the next block should start.
    expected: Option<Instant>,
}

impl BlockClock {
    /// A clock for blocks of at most `max_block` frames at `sample_rate` in Hz.
    pub fn new(sample_rate: u32, max_block: usize) -> Self {
        Self { sample_rate: f64::from(sample_rate), latency_frames: max_block as f64, expected: None }
    }

    /// A block of some frames begins now; returns when it begins by this clock.
    pub fn begin(&mut self, now: Instant, frames: usize) -> Instant {
        let length = frames as f64 / self.sample_rate;
        let start = match self.expected {
            Some(expected) => {
                let late = signed_seconds(now, expected);
                // After a break there is nothing to follow.
                let usual = 4.0 * (self.latency_frames / self.sample_rate);
                if late.abs() > usual { now } else { shifted(expected, FOLLOWING * late) }
            }
            None => now,
        };
        self.expected = Some(shifted(start, length));
        start
    }

    /// The frame of a block that began at `start` at which what came at `at` is heard; 0 for what is overdue, `None` for what
    /// belongs to a later block than one of `frames`.
    pub fn frame(&self, at: Instant, start: Instant, frames: usize) -> Option<usize> {
        let frame = (signed_seconds(at, start) * self.sample_rate + self.latency_frames).round().max(0.0);
        (frame < frames as f64).then_some(frame as usize)
    }
}

/// Turns a source's own time stamps, in microseconds since some time, into ours.
///
/// What is known is when a message reached us, which is never too early and mostly hardly late: the least delay that was
/// seen tells how the two clocks stand to each other.
#[derive(Clone, Debug, Default)]
pub(super) struct Stamps {
    /// Where the source's clock began, by ours, and when that was found.
    origin: Option<(Instant, Instant)>,
}

/// How much two clocks of one machine may run apart, seconds per second.
const CLOCK_DRIFT: f64 = 1e-4;

impl Stamps {
    /// When a message was really there that has this stamp and reached us at `now`.
    pub fn time(&mut self, stamp_us: u64, now: Instant) -> Instant {
        let Some(origin) = now.checked_sub(Duration::from_micros(stamp_us)) else { return now };
        let best = match self.origin {
            // What was found earlier is believed less as time goes by.
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

fn signed_seconds(later: Instant, earlier: Instant) -> f64 {
    match later.checked_duration_since(earlier) {
        Some(duration) => duration.as_secs_f64(),
        None => -earlier.saturating_duration_since(later).as_secs_f64(),
    }
}

fn shifted(instant: Instant, seconds: f64) -> Instant {
    let by = Duration::from_secs_f64(seconds.abs());
    let shifted = if seconds < 0.0 { instant.checked_sub(by) } else { instant.checked_add(by) };
    shifted.unwrap_or(instant)
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Numbers in −1 … 1 that look random.
    fn noise() -> impl FnMut() -> f64 {
        let mut state = 1u32;
        move || {
            state = state.wrapping_mul(1_664_525).wrapping_add(1_013_904_223);
            f64::from(state) / f64::from(u32::MAX) * 2.0 - 1.0
        }
    }

    #[test]
    fn messages_keep_their_distance_although_callbacks_come_unevenly() {
        let (rate, block) = (48_000.0, 256);
        let mut clock = BlockClock::new(48_000, block);
        let origin = Instant::now();
        let mut noise = noise();
        // A message every 1000 frames, callbacks up to 2 ms off.
        let mut next = 0u64;
        let mut heard = Vec::new();
        for number in 0..4000u64 {
            let ideal = (number * block as u64) as f64 / rate;
            let now = origin + Duration::from_secs_f64(0.1 + ideal + 2e-3 * noise());
            let start = clock.begin(now, block);
            loop {
                let at = origin + Duration::from_secs_f64(0.1 + (next * 1000) as f64 / rate);
                let Some(frame) = clock.frame(at, start, block) else { break };
                heard.push(number * block as u64 + frame as u64);
                next += 1;
            }
        }
        // Once the clock has found its pace.
        for pair in heard[100..].windows(2) {
            assert!((pair[1] - pair[0]).abs_diff(1000) <= 25, "{pair:?}");
        }
        let (number, last) = (heard.len() as i64 - 1, heard[heard.len() - 1] as i64);
        assert!((last - number * 1000 - 256).abs() <= 25, "the latency is one block: {last}");
    }

    #[test]
    fn blocks_of_any_length_have_the_latency_of_the_longest() {
        let mut clock = BlockClock::new(1000, 10);
        let start = Instant::now();
        let ms = |ms| start + Duration::from_millis(ms);
        assert_eq!(clock.begin(ms(0), 10), start);
        assert_eq!(clock.frame(ms(0), start, 10), None);
        let start = clock.begin(ms(10), 4);
        assert_eq!((clock.frame(ms(0), start, 4), clock.frame(ms(3), start, 4)), (Some(0), Some(3)));
        assert_eq!(clock.frame(ms(4), start, 4), None);
        let start = clock.begin(ms(14), 10);
        assert_eq!((clock.frame(ms(4), start, 10), clock.frame(ms(9), start, 10)), (Some(0), Some(5)));
        // Overdue is at once.
        assert_eq!(clock.frame(ms(1), start, 10), Some(0));
    }

    #[test]
    fn stamps_take_away_what_delivery_added() {
        let mut stamps = Stamps::default();
        let origin = Instant::now();
        let mut noise = noise();
        for number in 1..2000u64 {
            let (real, delay) = (number * 10_000, (1000.0 * noise().abs()) as u64);
            let time = stamps.time(real, origin + Duration::from_micros(5_000_000 + real + delay));
            let error = signed_seconds(time, origin + Duration::from_micros(5_000_000 + real));
            assert!(error >= 0.0, "never before it happened");
            if number > 200 {
                assert!(error < 1e-4, "{error}");
            }
        }
    }
}
