//! Frames at which MIDI messages are played.
//!
//! A message is played a fixed time after its arrival, the length of the largest block. If it were
//! played as soon as it is found, the delay would vary by up to a block and runs of notes would be
//! uneven.

use std::time::{Duration, Instant};

/// Rate at which the clock follows the starts of blocks, per block: callbacks jitter by up to a
/// block, sound does not.
const TRACKING_RATE: f64 = 0.03;

/// Clock of the audio thread: start of each block, without the jitter of the callback.
#[derive(Clone, Debug)]
pub(super) struct BlockClock {
    sample_rate: f64,
    latency_frames: f64,
    /// Expected start of the next block.
    expected: Option<Instant>,
}

impl BlockClock {
    /// Creates a clock for blocks of at most `max_block` frames at `sample_rate` Hz.
    pub fn new(sample_rate: u32, max_block: usize) -> Self {
        Self {
            sample_rate: f64::from(sample_rate),
            latency_frames: max_block as f64,
            expected: None,
        }
    }

    /// Starts a block of `frames` and returns its start by this clock.
    pub fn begin(&mut self, now: Instant, frames: usize) -> Instant {
        let length = frames as f64 / self.sample_rate;
        let start = match self.expected {
            Some(expected) => {
                let late = signed_seconds(now, expected);
                // After an interruption the clock starts anew.
                let usual = 4.0 * (self.latency_frames / self.sample_rate);
                if late.abs() > usual {
                    now
                } else {
                    shifted(expected, TRACKING_RATE * late)
                }
            }
            None => now,
        };
        self.expected = Some(shifted(start, length));
        start
    }

    /// Returns the frame, in a block of `frames` that began at `start`, at which a message that
    /// arrived `at` is played: 0 if it is overdue, `None` if it belongs to a later block.
    pub fn frame(&self, at: Instant, start: Instant, frames: usize) -> Option<usize> {
        let frame = (signed_seconds(at, start) * self.sample_rate + self.latency_frames)
            .round()
            .max(0.0);
        (frame < frames as f64).then_some(frame as usize)
    }
}

pub(crate) fn signed_seconds(later: Instant, earlier: Instant) -> f64 {
    match later.checked_duration_since(earlier) {
        Some(duration) => duration.as_secs_f64(),
        None => -earlier.saturating_duration_since(later).as_secs_f64(),
    }
}

fn shifted(instant: Instant, seconds: f64) -> Instant {
    let by = Duration::from_secs_f64(seconds.abs());
    let shifted = if seconds < 0.0 {
        instant.checked_sub(by)
    } else {
        instant.checked_add(by)
    };
    shifted.unwrap_or(instant)
}

#[cfg(test)]
mod tests {
    use ondes_engine::random::Lcg;

    use super::*;

    /// Pseudo-random numbers in −1 … 1.
    fn noise() -> impl FnMut() -> f64 {
        let mut random = Lcg::new(1);
        move || random.next_signed()
    }

    #[test]
    fn messages_keep_their_spacing_with_callback_jitter() {
        let (rate, block) = (48_000.0, 256);
        let mut clock = BlockClock::new(48_000, block);
        let origin = Instant::now();
        let mut noise = noise();
        // A message every 1000 frames, callbacks off by up to 2 ms.
        let mut next = 0u64;
        let mut played = Vec::new();
        for number in 0..4000u64 {
            let ideal = (number * block as u64) as f64 / rate;
            let now = origin + Duration::from_secs_f64(0.1 + ideal + 2e-3 * noise());
            let start = clock.begin(now, block);
            loop {
                let at = origin + Duration::from_secs_f64(0.1 + (next * 1000) as f64 / rate);
                let Some(frame) = clock.frame(at, start, block) else {
                    break;
                };
                played.push(number * block as u64 + frame as u64);
                next += 1;
            }
        }
        // After the clock has settled.
        for pair in played[100..].windows(2) {
            assert!((pair[1] - pair[0]).abs_diff(1000) <= 25, "{pair:?}");
        }
        let (number, last) = (played.len() as i64 - 1, played[played.len() - 1] as i64);
        assert!(
            (last - number * 1000 - 256).abs() <= 25,
            "the latency is one block: {last}"
        );
    }

    #[test]
    fn blocks_of_any_length_have_the_latency_of_the_longest() {
        let mut clock = BlockClock::new(1000, 10);
        let start = Instant::now();
        let ms = |ms| start + Duration::from_millis(ms);
        assert_eq!(clock.begin(ms(0), 10), start);
        assert_eq!(clock.frame(ms(0), start, 10), None);
        let start = clock.begin(ms(10), 4);
        assert_eq!(
            (clock.frame(ms(0), start, 4), clock.frame(ms(3), start, 4)),
            (Some(0), Some(3))
        );
        assert_eq!(clock.frame(ms(4), start, 4), None);
        let start = clock.begin(ms(14), 10);
        assert_eq!(
            (clock.frame(ms(4), start, 10), clock.frame(ms(9), start, 10)),
            (Some(0), Some(5))
        );
        // An overdue message is played at once.
        assert_eq!(clock.frame(ms(1), start, 10), Some(0));
    }
}
