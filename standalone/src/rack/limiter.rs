//! Keeps peaks below a ceiling, without a click and without having heard them too late.

use std::collections::VecDeque;
use std::f32::consts::FRAC_1_SQRT_2;

/// How far the limiter looks ahead, seconds: its latency.
pub const AHEAD_S: f64 = 0.0015;
/// Time in which the gain has come back half-way (in dB, near 1) after a peak, seconds.
const RELEASE_S: f64 = 0.060;
/// No sample is larger than this, −0.3 dB re full scale.
pub const CEILING: f32 = 0.966;

/// A stereo limiter that looks ahead: the gain falls in a straight line just as far as the peak needs that is coming, and comes
/// back slowly. It is 1, and the sound only late, as long as nothing is louder than [`CEILING`].
///
/// The least gain that the coming samples need, averaged over as many samples: each sample meets an average of gains that are
/// all small enough for it.
pub struct Limiter {
    delay: VecDeque<[f32; 2]>,
    /// Gains that coming samples need, with their places: each smaller than those before it.
    needed: VecDeque<(u64, f32)>,
    /// The last least gains, and their sum.
    least: VecDeque<f32>,
    sum: f64,
    held: f32,
    release: f32,
    place: u64,
    reduction: f32,
}

impl Limiter {
    /// A limiter for that rate in Hz.
    #[must_use]
    pub fn new(sample_rate: u32) -> Self {
        let ahead = ((AHEAD_S * f64::from(sample_rate)).round() as usize).max(1);
        let release = f64::from(FRAC_1_SQRT_2).powf(2.0 / (RELEASE_S * f64::from(sample_rate)));
        Self {
            delay: line([0.0; 2], ahead),
            needed: VecDeque::with_capacity(ahead + 2),
            least: line(1.0, ahead),
            sum: ahead as f64,
            held: 1.0,
            release: release as f32,
            place: 0,
            reduction: 1.0,
        }
    }

    /// Samples by which the sound is late.
    #[must_use]
    pub fn latency_samples(&self) -> usize {
        self.delay.len()
    }

    /// The least gain since this was last asked.
    pub fn reduction(&mut self) -> f32 {
        std::mem::replace(&mut self.reduction, 1.0)
    }

    /// Limits `left` and `right`, which are equally long. What is no number is silence.
    pub fn process(&mut self, left: &mut [f32], right: &mut [f32]) {
        let ahead = self.delay.len() as u64;
        for (left, right) in left.iter_mut().zip(right) {
            let frame = [*left, *right].map(|sample| if sample.is_finite() { sample } else { 0.0 });
            let peak = frame[0].abs().max(frame[1].abs());
            let wanted = if peak > CEILING { CEILING / peak } else { 1.0 };
            // Falls at once, comes back slowly.
            self.held = wanted.min(1.0 - (1.0 - self.held) * self.release);
            while self.needed.back().is_some_and(|(_, later)| *later >= self.held) {
                self.needed.pop_back();
            }
            self.needed.push_back((self.place, self.held));
            while self.needed.front().is_some_and(|(place, _)| place + ahead < self.place) {
                self.needed.pop_front();
            }
            let least = self.needed.front().map_or(1.0, |(_, gain)| *gain);
            self.least.push_back(least);
            let gone = self.least.pop_front().unwrap_or(1.0);
            self.sum += f64::from(least) - f64::from(gone);
            self.place += 1;
            // The sum gathers errors of rounding over hours: near 1 it is 1.
            let mean = (self.sum / ahead as f64) as f32;
            let gain = if mean > 1.0 - 1e-6 { 1.0 } else { mean };
            self.reduction = self.reduction.min(gain);
            self.delay.push_back(frame);
            let [old_left, old_right] = self.delay.pop_front().unwrap_or_default();
            (*left, *right) = (gain * old_left, gain * old_right);
        }
    }
}

/// So many of them, with room for the one that comes before the oldest goes.
fn line<T: Clone>(value: T, count: usize) -> VecDeque<T> {
    let mut line = VecDeque::with_capacity(count + 1);
    line.resize(count, value);
    line
}

#[cfg(test)]
mod tests {
    use super::*;

    fn limited(sound: &[f32]) -> Vec<f32> {
        let mut limiter = Limiter::new(48_000);
        let (mut left, mut right) = (sound.to_vec(), sound.iter().map(|sample| -0.5 * sample).collect::<Vec<_>>());
        for (left, right) in left.chunks_mut(37).zip(right.chunks_mut(37)) {
            limiter.process(left, right);
        }
        assert!(left.iter().zip(&right).all(|(left, right)| (0.5 * left + right).abs() < 1e-6), "both alike");
        left
    }

    #[test]
    fn what_is_not_too_loud_is_only_late() {
        let sound: Vec<f32> = (0..10_000).map(|n| CEILING * (n as f32 * 0.05).sin()).collect();
        let late = Limiter::new(48_000).latency_samples();
        assert_eq!(limited(&sound)[late..], sound[..sound.len() - late]);
    }

    #[test]
    fn nothing_is_louder_than_the_ceiling_and_the_gain_never_leaps() {
        let mut state = 1_u32;
        let noise = |loudness: f32| {
            let mut next = || {
                state = state.wrapping_mul(1_664_525).wrapping_add(1_013_904_223);
                (state >> 8) as f32 / (1 << 23) as f32 - 1.0
            };
            loudness * next()
        };
        let loudness = |n: usize| if (n / 8_000).is_multiple_of(2) { 8.0 } else { 0.5 };
        let mut noise = noise;
        let sound: Vec<f32> = (0..40_000).map(|n| noise(loudness(n))).collect();
        let out = limited(&sound);
        assert!(out.iter().all(|sample| sample.abs() <= CEILING * 1.0001));
        let late = Limiter::new(48_000).latency_samples();
        let gains: Vec<f32> = out[late..].iter().zip(&sound).map(|(out, sound)| out / sound).collect();
        let step = gains.windows(2).map(|pair| (pair[1] - pair[0]).abs()).fold(0.0, f32::max);
        assert!(step < 1.5 / late as f32, "{step}");
        assert!(gains.iter().any(|gain| *gain < 0.2) && gains.iter().any(|gain| *gain > 0.5));
    }

    #[test]
    fn a_nan_does_not_stay() {
        let mut sound = vec![0.1; 5_000];
        (sound[10], sound[20]) = (f32::NAN, f32::INFINITY);
        let out = limited(&sound);
        assert!(out.iter().all(|sample| sample.is_finite()));
        assert_eq!(out[4_000], 0.1);
    }
}
