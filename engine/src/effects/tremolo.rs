//! Tremolo.

use super::tempo::{self, SYNC};
use super::{CHANGE_S, Effect, EffectKind, EffectParameter};
use crate::dsp::lfo::Lfo;
use crate::dsp::ramp::Ramp;

/// Sharpness of a wave that is nearly square.
const SQUARE: f32 = 12.0;

pub(super) static KIND: EffectKind = EffectKind {
    id: "tremolo",
    name: "Tremolo",
    description: "Makes the sound louder and softer, or moves it from side to side.",
    parameters: &[
        EffectParameter::new("rate", "Rate", " Hz", [0.1, 20.0], 5.0).logarithmic(),
        SYNC,
        EffectParameter::new("depth", "Depth", "", [0.0, 1.0], 0.6),
        EffectParameter::new("shape", "Shape", "", [0.0, 1.0], 0.0),
        EffectParameter::new("spread", "Spread", "", [0.0, 1.0], 0.0),
    ],
    mix: 1.0,
    new: |sample_rate| Box::new(Tremolo::new(sample_rate)),
};

struct Tremolo {
    sample_rate: u32,
    lfo: Lfo,
    depth: Ramp,
    /// From a sine at 0 to nearly a square at 1.
    shape: Ramp,
    /// Phase of the right channel relative to the left one, turns.
    spread: Ramp,
}

impl Tremolo {
    fn new(sample_rate: u32) -> Self {
        let ramp = |value| Ramp::new(value, CHANGE_S, sample_rate);
        Self {
            sample_rate,
            lfo: Lfo::default(),
            depth: ramp(0.0),
            shape: ramp(0.0),
            spread: ramp(0.0),
        }
    }
}

impl Effect for Tremolo {
    fn set(&mut self, values: &[f32], tempo: f32) {
        let &[rate, sync, depth, shape, spread] = values else {
            return;
        };
        let rate = tempo::seconds(sync, tempo).map_or(rate, f32::recip);
        self.lfo.set_rate(rate, self.sample_rate);
        self.depth.set_target(depth);
        self.shape.set_target(shape);
        self.spread.set_target(0.5 * spread);
    }

    fn reset(&mut self) {
        self.lfo.reset();
        for ramp in [&mut self.depth, &mut self.shape, &mut self.spread] {
            ramp.finish();
        }
    }

    fn process(&mut self, left: &mut [f32], right: &mut [f32]) {
        for (left, right) in left.iter_mut().zip(right) {
            let (depth, shape, spread) = (
                self.depth.advance(),
                self.shape.advance(),
                self.spread.advance(),
            );
            let sharpness = SQUARE * shape;
            let gain = |wave: f32| {
                let wave = if sharpness > 0.0 {
                    (sharpness * wave).tanh() / sharpness.tanh()
                } else {
                    wave
                };
                1.0 - depth * (0.5 - 0.5 * wave)
            };
            // It begins loud.
            *right *= gain(self.lfo.ahead(0.25 + spread));
            *left *= gain(self.lfo.ahead(0.25));
            self.lfo.advance();
        }
    }

    fn tail_samples(&self) -> usize {
        0
    }
}

#[cfg(test)]
mod tests {
    use super::super::effect;
    use super::super::tests::{level_db, play, play_at};
    use super::KIND;

    #[test]
    fn the_level_falls_by_the_depth_as_often_as_the_rate_says() {
        let sound = vec![0.5; 96_000];
        let [heard, _] = play(&KIND, &[4.0, 0.0, 0.5, 0.0, 0.0], [&sound, &sound]);
        let minima = (1..95_999)
            .filter(|&n| heard[n] < heard[n - 1] && heard[n] <= heard[n + 1] && heard[n] < 0.26);
        assert_eq!(minima.count(), 8);
        let least = heard[48_000..].iter().copied().fold(1.0, f32::min);
        assert!((least - 0.25).abs() < 1e-3, "{least}");
    }

    #[test]
    fn it_follows_the_tempo_and_pans() {
        let sound = vec![0.5; 96_000];
        // Eighth notes at 150 a minute: five a second.
        let eighth = KIND.parameters[1]
            .options
            .iter()
            .position(|name| *name == "1/8")
            .unwrap();
        let values = [1.0, eighth as f32, 1.0, 1.0, 1.0];
        let [left, right] = play_at(effect("tremolo").unwrap(), &values, 150.0, [&sound, &sound]);
        let falls = |sound: &[f32]| {
            sound
                .windows(2)
                .filter(|pair| pair[0] > 0.25 && pair[1] <= 0.25)
                .count()
        };
        assert_eq!((falls(&left), falls(&right)), (10, 10));
        let both: Vec<f32> = left
            .iter()
            .zip(&right)
            .map(|(left, right)| left + right)
            .collect();
        assert!(level_db(&both[4_800..]) > level_db(&sound) - 0.5);
    }
}
