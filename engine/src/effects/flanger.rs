//! Flanger.

use super::{CHANGE_S, Effect, EffectKind, EffectParameter};
use crate::dsp::delay_line::DelayLine;
use crate::dsp::lfo::Lfo;
use crate::dsp::ramp::Ramp;

/// Least delay, samples: the interpolation reads one sample ahead.
const LEAST: f32 = 2.0;
/// Longest delay, ms.
const LONGEST_MS: f32 = 20.0;

pub(super) static KIND: EffectKind = EffectKind {
    id: "flanger",
    name: "Flanger",
    description: "Sweeps a comb of notches through the sound.",
    parameters: &[
        EffectParameter::new("rate", "Rate", " Hz", [0.02, 5.0], 0.25).logarithmic(),
        EffectParameter::new("delay", "Delay", " ms", [0.3, 10.0], 2.5).logarithmic(),
        EffectParameter::new("depth", "Depth", "", [0.0, 1.0], 0.7),
        EffectParameter::new("feedback", "Feedback", "", [-0.95, 0.95], 0.5),
    ],
    mix: 0.5,
    new: |sample_rate| Box::new(Flanger::new(sample_rate)),
};

struct Flanger {
    sample_rate: u32,
    delays: [DelayLine; 2],
    lfo: Lfo,
    /// Samples.
    delay: Ramp,
    depth: Ramp,
    feedback: Ramp,
}

impl Flanger {
    fn new(sample_rate: u32) -> Self {
        let ramp = |value| Ramp::new(value, CHANGE_S, sample_rate);
        let delay = DelayLine::new((1e-3 * LONGEST_MS * sample_rate as f32) as usize);
        Self {
            sample_rate,
            delays: [delay.clone(), delay],
            lfo: Lfo::default(),
            delay: ramp(LEAST),
            depth: ramp(0.0),
            feedback: ramp(0.0),
        }
    }
}

impl Effect for Flanger {
    fn set(&mut self, values: &[f32], _tempo: f32) {
        let &[rate, delay, depth, feedback] = values else {
            return;
        };
        self.lfo.set_rate(rate, self.sample_rate);
        self.delay
            .set_target(1e-3 * delay * self.sample_rate as f32);
        self.depth.set_target(depth);
        self.feedback.set_target(feedback);
    }

    fn reset(&mut self) {
        self.lfo.reset();
        for ramp in [&mut self.delay, &mut self.depth, &mut self.feedback] {
            ramp.finish();
        }
        self.delays.iter_mut().for_each(DelayLine::reset);
    }

    fn process(&mut self, left: &mut [f32], right: &mut [f32]) {
        for (left, right) in left.iter_mut().zip(right) {
            let (delay, depth, feedback) = (
                self.delay.advance(),
                self.depth.advance(),
                self.feedback.advance(),
            );
            let back = (delay * (1.0 + depth * self.lfo.advance())).max(LEAST);
            for (line, sample) in self.delays.iter_mut().zip([left, right]) {
                // What is read before the push is a sample nearer.
                let heard = line.read(back - 1.0);
                line.push(*sample + feedback * heard);
                *sample = heard;
            }
        }
    }

    fn tail_samples(&self) -> usize {
        let each = 2.0 * self.delay.target();
        let share = self.feedback.target().abs().max(1e-3);
        (each * (1.0 + 1e-5_f32.ln() / share.ln())) as usize + 4
    }
}

#[cfg(test)]
mod tests {
    use super::super::tests::{play, spectrum_db};
    use super::KIND;

    #[test]
    fn a_steady_flanger_is_a_comb() {
        let mut click = vec![0.0; 48_000];
        click[0] = 1.0;
        let [heard, _] = play(&KIND, &[0.1, 2.0, 0.0, 0.5], [&click, &click]);
        // Its own sound, and half of it each 2 ms.
        for (turn, expected) in [(1, 1.0), (2, 0.5), (3, 0.25)] {
            let place = 96 * turn;
            assert!(
                (heard[place] - expected).abs() < 1e-4,
                "{turn}: {}",
                heard[place]
            );
        }
        // With the dry sound there are notches halfway between multiples of 500 Hz.
        let both: Vec<f32> = heard
            .iter()
            .zip(&click)
            .map(|(wet, dry)| 0.5 * (wet + dry))
            .collect();
        let spectrum = spectrum_db(&both);
        assert!(spectrum[500] > spectrum[750] + 12.0 && spectrum[5_000] > spectrum[5_250] + 12.0);
    }
}
