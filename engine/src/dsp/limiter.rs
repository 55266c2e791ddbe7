//! Stereo look-ahead limiter.

use std::collections::VecDeque;
use std::f32::consts::FRAC_1_SQRT_2;

/// Look-ahead, seconds: the limiter's latency.
pub const LOOKAHEAD_S: f64 = 0.0015;
/// Default time after a peak in which the gain recovers half-way (in dB, near 1), seconds.
const RELEASE_S: f64 = 0.060;
/// Default of the largest output sample: −0.3 dB re full scale.
pub const CEILING: f32 = 0.966;

/// Stereo look-ahead limiter: the gain falls linearly to what the coming peak requires and recovers
/// slowly. Below the ceiling the gain is exactly 1 and the sound only delayed.
///
/// The gain is a moving average, as long as the look-ahead, of the smallest gain that the coming
/// samples require; each sample is multiplied by an average of gains that are all small enough for
/// it.
pub struct Limiter {
    delay: VecDeque<[f32; 2]>,
    /// Required gains of the coming samples with their positions; increasing, for a sliding
    /// minimum.
    needed: VecDeque<(u64, f32)>,
    /// Sliding minima whose average is the gain, and their sum.
    window_minima: VecDeque<f32>,
    sum: f64,
    envelope: f32,
    sample_rate: u32,
    ceiling: f32,
    release: f32,
    position: u64,
    reduction: f32,
}

impl Limiter {
    /// Creates a limiter for a sample rate in Hz, with ceiling and release at their defaults.
    #[must_use]
    pub fn new(sample_rate: u32) -> Self {
        let ahead = ((LOOKAHEAD_S * f64::from(sample_rate)).round() as usize).max(1);
        let mut limiter = Self {
            delay: filled([0.0; 2], ahead),
            needed: VecDeque::with_capacity(ahead + 2),
            window_minima: filled(1.0, ahead),
            sum: ahead as f64,
            envelope: 1.0,
            sample_rate,
            ceiling: CEILING,
            release: 0.0,
            position: 0,
            reduction: 1.0,
        };
        limiter.set(CEILING, RELEASE_S);
        limiter
    }

    /// Sets the largest output sample, and the time after a peak in which the gain recovers half-way
    /// (in dB, near 1), seconds.
    pub fn set(&mut self, ceiling: f32, release_s: f64) {
        self.ceiling = ceiling;
        let samples = release_s * f64::from(self.sample_rate);
        self.release = f64::from(FRAC_1_SQRT_2).powf(2.0 / samples) as f32;
    }

    /// Forgets all sound.
    pub fn reset(&mut self) {
        self.delay.iter_mut().for_each(|frame| *frame = [0.0; 2]);
        self.needed.clear();
        self.window_minima.iter_mut().for_each(|gain| *gain = 1.0);
        self.sum = self.window_minima.len() as f64;
        (self.envelope, self.position, self.reduction) = (1.0, 0, 1.0);
    }

    /// Returns the latency in samples.
    #[must_use]
    pub fn latency_samples(&self) -> usize {
        self.delay.len()
    }

    /// Returns the smallest gain since the last call.
    pub fn reduction(&mut self) -> f32 {
        std::mem::replace(&mut self.reduction, 1.0)
    }

    /// Limits `left` and `right`, which have the same length. Non-finite samples become silence.
    pub fn process(&mut self, left: &mut [f32], right: &mut [f32]) {
        let ahead = self.delay.len() as u64;
        for (left, right) in left.iter_mut().zip(right) {
            let frame = [*left, *right].map(|sample| if sample.is_finite() { sample } else { 0.0 });
            let peak = frame[0].abs().max(frame[1].abs());
            let required = if peak > self.ceiling {
                self.ceiling / peak
            } else {
                1.0
            };
            // Instant attack, slow release.
            self.envelope = required.min(1.0 - (1.0 - self.envelope) * self.release);
            while self
                .needed
                .back()
                .is_some_and(|(_, later)| *later >= self.envelope)
            {
                self.needed.pop_back();
            }
            self.needed.push_back((self.position, self.envelope));
            while self
                .needed
                .front()
                .is_some_and(|(position, _)| position + ahead < self.position)
            {
                self.needed.pop_front();
            }
            let window_minima = self.needed.front().map_or(1.0, |(_, gain)| *gain);
            self.window_minima.push_back(window_minima);
            let oldest = self.window_minima.pop_front().unwrap_or(1.0);
            self.sum += f64::from(window_minima) - f64::from(oldest);
            self.position += 1;
            // Rounding errors accumulate in the sum over hours; near 1 the gain is 1.
            let mean = (self.sum / ahead as f64) as f32;
            let gain = if mean > 1.0 - 1e-6 { 1.0 } else { mean };
            self.reduction = self.reduction.min(gain);
            self.delay.push_back(frame);
            let [old_left, old_right] = self.delay.pop_front().unwrap_or_default();
            (*left, *right) = (gain * old_left, gain * old_right);
        }
    }
}

/// Creates a queue of `count` equal values with room for one more.
fn filled<T: Clone>(value: T, count: usize) -> VecDeque<T> {
    let mut filled = VecDeque::with_capacity(count + 1);
    filled.resize(count, value);
    filled
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::dsp::level::max_step;
    use crate::random::Lcg;

    fn limited(sound: &[f32]) -> Vec<f32> {
        let mut limiter = Limiter::new(48_000);
        let (mut left, mut right) = (
            sound.to_vec(),
            sound.iter().map(|sample| -0.5 * sample).collect::<Vec<_>>(),
        );
        for (left, right) in left.chunks_mut(37).zip(right.chunks_mut(37)) {
            limiter.process(left, right);
        }
        assert!(
            left.iter()
                .zip(&right)
                .all(|(left, right)| (0.5 * left + right).abs() < 1e-6),
            "both alike"
        );
        left
    }

    #[test]
    fn soft_sound_is_only_delayed() {
        let sound: Vec<f32> = (0..10_000)
            .map(|n| CEILING * (n as f32 * 0.05).sin())
            .collect();
        let late = Limiter::new(48_000).latency_samples();
        assert_eq!(limited(&sound)[late..], sound[..sound.len() - late]);
    }

    #[test]
    fn the_output_stays_below_the_ceiling_and_the_gain_is_smooth() {
        let mut random = Lcg::new(1);
        let noise =
            |loudness: f32| loudness * ((random.next_u32() >> 8) as f32 / (1 << 23) as f32 - 1.0);
        let loudness = |n: usize| {
            if (n / 8_000).is_multiple_of(2) {
                8.0
            } else {
                0.5
            }
        };
        let mut noise = noise;
        let sound: Vec<f32> = (0..40_000).map(|n| noise(loudness(n))).collect();
        let out = limited(&sound);
        assert!(out.iter().all(|sample| sample.abs() <= CEILING * 1.0001));
        let late = Limiter::new(48_000).latency_samples();
        let gains: Vec<f32> = out[late..]
            .iter()
            .zip(&sound)
            .map(|(out, sound)| out / sound)
            .collect();
        let step = max_step(&gains);
        assert!(step < 1.5 / late as f32, "{step}");
        assert!(gains.iter().any(|gain| *gain < 0.2) && gains.iter().any(|gain| *gain > 0.5));
    }

    #[test]
    fn a_nan_does_not_persist() {
        let mut sound = vec![0.1; 5_000];
        (sound[10], sound[20]) = (f32::NAN, f32::INFINITY);
        let out = limited(&sound);
        assert!(out.iter().all(|sample| sample.is_finite()));
        assert_eq!(out[4_000], 0.1);
    }
}
