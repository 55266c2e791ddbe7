//! Limiter.

use super::{CHANGE_S, Effect, EffectKind, EffectParameter, decay};
use crate::dsp::level::{db_to_amplitude, limit_sample};
use crate::dsp::ramp::Ramp;

/// Time over which the gain goes down before a peak, s; the delay of the limiter.
const AHEAD_S: f64 = 0.0015;

pub(super) static KIND: EffectKind = EffectKind {
    id: "limiter",
    name: "Limiter",
    description: "Keeps all samples below a ceiling, turning down just before each peak.",
    parameters: &[
        EffectParameter::new("gain", "Gain", " dB", [0.0, 24.0], 0.0),
        EffectParameter::new("ceiling", "Ceiling", " dB", [-24.0, 0.0], -1.0),
        EffectParameter::new("release", "Release", " ms", [10.0, 1_000.0], 100.0).logarithmic(),
    ],
    mix: 1.0,
    new: |sample_rate| Box::new(Limiter::new(sample_rate)),
};

/// Limiter that looks ahead. The least gain that any of the coming peaks needs, which it holds and
/// releases, is averaged over as many samples as it looks ahead; so it is reached, in a smooth curve,
/// where the peak is.
pub struct Limiter {
    sample_rate: u32,
    gain: Ramp,
    ceiling: Ramp,
    release: f32,
    ahead: usize,
    /// Both channels, delayed, `[sample]`.
    delayed: Vec<[f32; 2]>,
    /// Gains that the samples to come need, beginning with the least, of samples that follow each
    /// other: `(sample, gain)`.
    needed: Vec<(usize, f32)>,
    first: usize,
    count: usize,
    /// Samples since the beginning.
    sample: usize,
    held: f32,
    /// Gains that are averaged, and their sum.
    averaged: Vec<f32>,
    sum: f64,
}

impl Limiter {
    /// Creates a limiter at rest for a sample rate in Hz.
    #[must_use]
    pub fn new(sample_rate: u32) -> Self {
        let ahead = (AHEAD_S * f64::from(sample_rate)).ceil() as usize;
        Self {
            sample_rate,
            gain: Ramp::new(1.0, CHANGE_S, sample_rate),
            ceiling: Ramp::new(1.0, CHANGE_S, sample_rate),
            release: 0.0,
            ahead,
            delayed: vec![[0.0; 2]; ahead],
            needed: vec![(0, 1.0); ahead + 1],
            first: 0,
            count: 0,
            sample: 0,
            held: 1.0,
            averaged: vec![1.0; ahead],
            sum: ahead as f64,
        }
    }

    /// Returns the least gain that the samples from `ahead` samples ago until now need.
    fn least(&mut self, needed: f32) -> f32 {
        let length = self.needed.len();
        if self.count > 0 && self.needed[self.first].0 + self.ahead < self.sample {
            self.first = (self.first + 1) % length;
            self.count -= 1;
        }
        while self.count > 0 {
            let last = (self.first + self.count - 1) % length;
            if self.needed[last].1 < needed {
                break;
            }
            self.count -= 1;
        }
        self.needed[(self.first + self.count) % length] = (self.sample, needed);
        self.count += 1;
        self.needed[self.first].1
    }
}

impl Effect for Limiter {
    fn set(&mut self, values: &[f32], _tempo: f32) {
        let &[gain, ceiling, release] = values else {
            return;
        };
        self.gain.set_target(db_to_amplitude(gain));
        self.ceiling.set_target(db_to_amplitude(ceiling));
        self.release = decay(1e-3 * release, self.sample_rate);
    }

    fn reset(&mut self) {
        self.gain.finish();
        self.ceiling.finish();
        self.delayed.fill([0.0; 2]);
        self.averaged.fill(1.0);
        (self.first, self.count, self.sample) = (0, 0, 0);
        (self.held, self.sum) = (1.0, self.ahead as f64);
    }

    fn process(&mut self, left: &mut [f32], right: &mut [f32]) {
        for (left, right) in left.iter_mut().zip(right) {
            let gain = self.gain.advance();
            let ceiling = self.ceiling.advance();
            let now = [*left, *right].map(|sample| gain * limit_sample(sample));
            let peak = now[0].abs().max(now[1].abs());
            let needed = if peak > ceiling { ceiling / peak } else { 1.0 };
            let least = self.least(needed);
            let released = 1.0 + self.release * (self.held - 1.0);
            self.held = released.min(least);
            let place = self.sample % self.ahead;
            let old = std::mem::replace(&mut self.averaged[place], self.held);
            self.sum += f64::from(self.held) - f64::from(old);
            let [delayed_left, delayed_right] = std::mem::replace(&mut self.delayed[place], now);
            let mean = (self.sum / self.ahead as f64) as f32;
            // Rounding, and a ceiling that moves, would leave a little above it.
            *left = (mean * delayed_left).clamp(-ceiling, ceiling);
            *right = (mean * delayed_right).clamp(-ceiling, ceiling);
            self.sample += 1;
        }
    }

    fn latency_samples(&self) -> usize {
        self.ahead
    }

    fn tail_samples(&self) -> usize {
        self.ahead
    }
}

#[cfg(test)]
mod tests {
    use super::super::tests::{play, sine, spectrum_db};
    use super::KIND;

    #[test]
    fn no_sample_is_above_the_ceiling_and_quiet_sound_is_only_delayed() {
        let mut sound = sine(200.0, -20.0, 2.0);
        for (n, sample) in sound.iter_mut().enumerate().skip(20_000).step_by(1_700) {
            *sample = if n % 2 == 0 { 3.0 } else { -2.0 };
        }
        let [heard, _] = play(&KIND, &[0.0, -6.0, 50.0], [&sound, &sound]);
        let ceiling = 10.0_f32.powf(-6.0 / 20.0);
        assert!(heard.iter().all(|sample| sample.abs() <= ceiling + 1e-6));
        assert!(heard.iter().any(|sample| sample.abs() > 0.98 * ceiling));
        for n in 0..19_000 {
            assert!((heard[n + 72] - sound[n]).abs() < 1e-6, "{n}");
        }
    }

    #[test]
    fn a_loud_tone_stays_a_tone() {
        let sound = sine(1_000.0, 6.0, 3.0);
        let [heard, _] = play(&KIND, &[0.0, -1.0, 100.0], [&sound, &sound]);
        let spectrum = spectrum_db(&heard[48_000..96_000]);
        let tone = spectrum[1_000];
        let others = spectrum
            .iter()
            .enumerate()
            .filter(|(bin, _)| bin.abs_diff(1_000) > 4);
        let loudest = others.map(|(_, db)| *db).fold(f64::MIN, f64::max);
        assert!(
            (tone + 1.0).abs() < 0.1 && loudest < tone - 50.0,
            "{tone} dB, {loudest} dB"
        );
    }
}
