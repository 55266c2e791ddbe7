//! Compressor.

use super::{CHANGE_S, Effect, EffectKind, EffectParameter, decay};
use crate::dsp::level::{amplitude_to_db, db_to_amplitude, limit_sample};
use crate::dsp::ramp::Ramp;

/// Levels around the threshold over which the ratio sets in, dB.
const KNEE_DB: f32 = 6.0;
/// Lowest level that is measured, as an amplitude.
const SILENCE: f32 = 1e-6;

pub(super) static KIND: EffectKind = EffectKind {
    id: "compressor",
    name: "Compressor",
    description: "Makes loud notes softer, and soft ones louder by the gain after it.",
    parameters: &[
        EffectParameter::new("threshold", "Threshold", " dB", [-60.0, 0.0], -24.0),
        EffectParameter::new("ratio", "Ratio", " : 1", [1.0, 20.0], 4.0).logarithmic(),
        EffectParameter::new("attack", "Attack", " ms", [0.1, 100.0], 10.0).logarithmic(),
        EffectParameter::new("release", "Release", " ms", [10.0, 2_000.0], 150.0).logarithmic(),
        EffectParameter::new("gain", "Gain", " dB", [0.0, 24.0], 6.0),
    ],
    mix: 1.0,
    new: |sample_rate| Box::new(Compressor::new(sample_rate)),
};

/// Feed-forward compressor of both channels by the louder one (Giannoulis, Massberg & Reiss,
/// "Digital dynamic range compressor design", J. Audio Eng. Soc. 60(6), 2012: the smooth branching
/// peak detector).
struct Compressor {
    sample_rate: u32,
    threshold_db: f32,
    /// Share by which levels above the threshold are reduced.
    slope: f32,
    /// Shares that are left after a sample while the reduction grows and shrinks.
    decays: [f32; 2],
    gain_db: Ramp,
    reduction_db: f32,
}

impl Compressor {
    fn new(sample_rate: u32) -> Self {
        Self {
            sample_rate,
            threshold_db: 0.0,
            slope: 0.0,
            decays: [0.0; 2],
            gain_db: Ramp::new(0.0, CHANGE_S, sample_rate),
            reduction_db: 0.0,
        }
    }

    /// Returns the reduction of a steady level, dB.
    fn reduction(&self, level_db: f32) -> f32 {
        let over = level_db - self.threshold_db;
        let half = 0.5 * KNEE_DB;
        if over <= -half {
            0.0
        } else if over < half {
            self.slope * (over + half).powi(2) / (2.0 * KNEE_DB)
        } else {
            self.slope * over
        }
    }
}

impl Effect for Compressor {
    fn set(&mut self, values: &[f32], _tempo: f32) {
        let &[threshold, ratio, attack, release, gain] = values else {
            return;
        };
        self.threshold_db = threshold;
        self.slope = 1.0 - 1.0 / ratio;
        self.decays = [attack, release].map(|ms| decay(1e-3 * ms, self.sample_rate));
        self.gain_db.set_target(gain);
    }

    fn reset(&mut self) {
        self.gain_db.finish();
        self.reduction_db = 0.0;
    }

    fn process(&mut self, left: &mut [f32], right: &mut [f32]) {
        for (left, right) in left.iter_mut().zip(right) {
            let [input, other] = [*left, *right].map(limit_sample);
            let peak = input.abs().max(other.abs()).max(SILENCE);
            let wanted = self.reduction(amplitude_to_db(peak));
            let decay = self.decays[usize::from(wanted < self.reduction_db)];
            self.reduction_db = wanted + decay * (self.reduction_db - wanted);
            let gain = db_to_amplitude(self.gain_db.advance() - self.reduction_db);
            *left = gain * input;
            *right = gain * other;
        }
    }

    fn tail_samples(&self) -> usize {
        0
    }
}

#[cfg(test)]
mod tests {
    use super::super::tests::{level_db, play, sine};
    use super::KIND;

    #[test]
    fn levels_follow_the_ratio_above_the_threshold() {
        let values = [-30.0, 4.0, 1.0, 400.0, 0.0];
        for (level, expected) in [
            (-50.0, -50.0),
            (-30.0, -30.6),
            (-18.0, -27.0),
            (-6.0, -24.0),
        ] {
            let sound = sine(1_000.0, level, 2.0);
            let [heard, _] = play(&KIND, &values, [&sound, &sound]);
            let found = level_db(&heard[48_000..]) - level_db(&sound) + level;
            assert!(
                (found - expected).abs() < 0.7,
                "{level} dB: {found}, expected {expected}"
            );
        }
    }

    #[test]
    fn it_takes_its_attack_and_its_release() {
        let values = [-30.0, 10.0, 20.0, 200.0, 0.0];
        let step: Vec<f32> = (0..96_000)
            .map(|n| {
                if (24_000..48_000).contains(&n) {
                    0.5
                } else {
                    0.01
                }
            })
            .collect();
        let [heard, _] = play(&KIND, &values, [&step, &step]);
        let gain_db = |n: usize| 20.0 * (heard[n] / step[n]).log10();
        let whole = gain_db(47_999);
        assert!((whole + 0.9 * 24.0).abs() < 0.3, "{whole}");
        let attack = (24_000..48_000)
            .position(|n| gain_db(n) < 0.632 * whole)
            .unwrap();
        assert!(
            (attack as f32 / 960.0 - 1.0).abs() < 0.05,
            "{attack} samples"
        );
        let release = (48_000..96_000)
            .position(|n| gain_db(n) > 0.368 * whole)
            .unwrap();
        assert!(
            (release as f32 / 9_600.0 - 1.0).abs() < 0.05,
            "{release} samples"
        );
    }
}
