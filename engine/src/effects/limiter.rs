//! Limiter.

use super::{CHANGE_S, Effect, EffectKind, EffectParameter};
use crate::dsp::level::{db_to_amplitude, limit_sample};
use crate::dsp::limiter::Limiter;
use crate::dsp::ramp::Ramp;

pub(super) static KIND: EffectKind = EffectKind {
    id: "limiter",
    name: "Limiter",
    description: "Keeps all samples below a ceiling, turning down just before each peak.",
    parameters: &[
        EffectParameter::new("gain", "Gain", " dB", [0.0, 24.0], 0.0),
        EffectParameter::new("ceiling", "Ceiling", " dB", [-24.0, 0.0], -1.0),
        EffectParameter::new("release", "Release", " ms", [10.0, 1_000.0], 60.0).logarithmic(),
    ],
    mix: 1.0,
    new: |sample_rate| {
        Box::new(LoudLimiter {
            gain: Ramp::new(1.0, CHANGE_S, sample_rate),
            limiter: Limiter::new(sample_rate),
        })
    },
};

/// Limiter with a gain before it.
struct LoudLimiter {
    gain: Ramp,
    limiter: Limiter,
}

impl Effect for LoudLimiter {
    fn set(&mut self, values: &[f32], _tempo: f32) {
        let &[gain, ceiling, release] = values else {
            return;
        };
        self.gain.set_target(db_to_amplitude(gain));
        self.limiter
            .set(db_to_amplitude(ceiling), 1e-3 * f64::from(release));
    }

    fn reset(&mut self) {
        self.gain.finish();
        self.limiter.reset();
    }

    fn process(&mut self, left: &mut [f32], right: &mut [f32]) {
        for (left, right) in left.iter_mut().zip(&mut *right) {
            let gain = self.gain.advance();
            *left = gain * limit_sample(*left);
            *right = gain * limit_sample(*right);
        }
        self.limiter.process(left, right);
    }

    fn latency_samples(&self) -> usize {
        self.limiter.latency_samples()
    }

    fn tail_samples(&self) -> usize {
        self.limiter.latency_samples()
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
