//! Chorus.

use super::{CHANGE_S, Effect, EffectKind, EffectParameter};
use crate::dsp::delay_line::DelayLine;
use crate::dsp::lfo::Lfo;
use crate::dsp::ramp::Ramp;

/// Voices of a channel.
const VOICES: usize = 3;
/// Mean delay of the voices, ms.
const DELAY_MS: f32 = 14.0;
/// Phase of the right channel relative to the left one, turns.
const STEREO_TURNS: f32 = 0.25;

pub(super) static KIND: EffectKind = EffectKind {
    id: "chorus",
    name: "Chorus",
    description: "Three voices beside the sound, each a little late and out of tune.",
    parameters: &[
        EffectParameter::new("rate", "Rate", " Hz", [0.05, 5.0], 0.7).logarithmic(),
        EffectParameter::new("depth", "Depth", " ms", [0.0, 8.0], 2.5),
        EffectParameter::new("width", "Width", "", [0.0, 1.0], 1.0),
    ],
    mix: 0.5,
    new: |sample_rate| Box::new(Chorus::new(sample_rate)),
};

struct Chorus {
    sample_rate: u32,
    delays: [DelayLine; 2],
    lfo: Lfo,
    /// Samples.
    depth: Ramp,
    width: Ramp,
}

impl Chorus {
    fn new(sample_rate: u32) -> Self {
        let longest = 2.0 * DELAY_MS * 1e-3 * sample_rate as f32;
        let delay = DelayLine::new(longest as usize);
        Self {
            sample_rate,
            delays: [delay.clone(), delay],
            lfo: Lfo::default(),
            depth: Ramp::new(0.0, CHANGE_S, sample_rate),
            width: Ramp::new(0.0, CHANGE_S, sample_rate),
        }
    }

    fn samples(&self, ms: f32) -> f32 {
        1e-3 * ms * self.sample_rate as f32
    }
}

impl Effect for Chorus {
    fn set(&mut self, values: &[f32], _tempo: f32) {
        let &[rate, depth, width] = values else {
            return;
        };
        self.lfo.set_rate(rate, self.sample_rate);
        self.depth.set_target(self.samples(depth));
        self.width.set_target(width);
    }

    fn reset(&mut self) {
        self.lfo.reset();
        self.depth.finish();
        self.width.finish();
        self.delays.iter_mut().for_each(DelayLine::reset);
    }

    fn process(&mut self, left: &mut [f32], right: &mut [f32]) {
        let middle = self.samples(DELAY_MS);
        for (left, right) in left.iter_mut().zip(right) {
            let (depth, width) = (self.depth.advance(), self.width.advance());
            for (channel, sample) in [left, right].into_iter().enumerate() {
                let delay = &mut self.delays[channel];
                delay.push(*sample);
                let ahead = channel as f32 * width * STEREO_TURNS;
                let voice = |voice: usize| {
                    let turns = ahead + voice as f32 / VOICES as f32;
                    delay.read(middle + depth * self.lfo.ahead(turns))
                };
                // Voices of different phases add like noises.
                *sample = (0..VOICES).map(voice).sum::<f32>() / (VOICES as f32).sqrt();
            }
            self.lfo.advance();
        }
    }

    fn tail_samples(&self) -> usize {
        self.samples(DELAY_MS + 8.0) as usize + 4
    }
}

#[cfg(test)]
mod tests {
    use super::super::tests::{play, sine, spectrum_db};
    use super::KIND;

    #[test]
    fn voices_swing_around_the_pitch() {
        let sound = sine(1_000.0, -12.0, 3.0);
        let [left, right] = play(&KIND, &[1.0, 3.0, 1.0], [&sound, &sound]);
        // A delay of 3 ms times the sine of a hertz bends 1,000 Hz by at most 18.8 Hz.
        let spectrum = spectrum_db(&left[48_000..96_000]);
        let inside = (981..=1_019)
            .map(|bin| spectrum[bin])
            .fold(f64::MIN, f64::max);
        let outside = (1_030..1_200)
            .map(|bin| spectrum[bin])
            .fold(f64::MIN, f64::max);
        assert!(inside > outside + 20.0, "{inside} dB, {outside} dB");
        assert!(left != right);
    }
}
