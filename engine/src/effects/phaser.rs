//! Phaser.

use std::f32::consts::PI;

use super::{CHANGE_S, Effect, EffectKind, EffectParameter, STEP, Steps};
use crate::dsp::level::limit_sample;
use crate::dsp::lfo::Lfo;
use crate::dsp::ramp::Ramp;

/// Most stages of a channel.
const MOST_STAGES: usize = 12;
/// Numbers of stages to choose from.
const STAGES: [usize; 4] = [4, 6, 8, MOST_STAGES];
/// Range of the centre at full depth, octaves to either side.
const OCTAVES: f32 = 2.0;
/// Highest frequency of a stage relative to the sample rate.
const MAX_RELATIVE_FREQUENCY: f32 = 0.45;

pub(super) static KIND: EffectKind = EffectKind {
    id: "phaser",
    name: "Phaser",
    description: "Sweeps a few notches through the sound.",
    parameters: &[
        EffectParameter::new("rate", "Rate", " Hz", [0.02, 8.0], 0.4).logarithmic(),
        EffectParameter::new("centre", "Centre", " Hz", [100.0, 4_000.0], 800.0).logarithmic(),
        EffectParameter::new("depth", "Depth", "", [0.0, 1.0], 0.6),
        EffectParameter::new("feedback", "Feedback", "", [0.0, 0.95], 0.3),
        EffectParameter::choice("stages", "Stages", &["4", "6", "8", "12"]),
    ],
    mix: 0.5,
    new: |sample_rate| Box::new(Phaser::new(sample_rate)),
};

struct Phaser {
    sample_rate: u32,
    steps: Steps,
    lfo: Lfo,
    /// Octaves above 1 Hz, by the step.
    centre: Ramp,
    depth: Ramp,
    feedback: Ramp,
    /// Shares of the outputs after each number of [`STAGES`].
    shares: [Ramp; STAGES.len()],
    coefficient: Ramp,
    /// `[channel][stage]`
    states: [[f32; MOST_STAGES]; 2],
    /// Last output of each channel.
    last: [f32; 2],
}

impl Phaser {
    fn new(sample_rate: u32) -> Self {
        let by_step = |value| Ramp::new(value, CHANGE_S, sample_rate / STEP as u32);
        Self {
            sample_rate,
            steps: Steps::default(),
            lfo: Lfo::default(),
            centre: by_step(10.0),
            depth: by_step(0.0),
            feedback: Ramp::new(0.0, CHANGE_S, sample_rate),
            shares: [Ramp::new(0.0, CHANGE_S, sample_rate); STAGES.len()],
            coefficient: Ramp::new(0.0, STEP as f64 / f64::from(sample_rate), sample_rate),
            states: [[0.0; MOST_STAGES]; 2],
            last: [0.0; 2],
        }
    }

    /// Returns the coefficient of the stages in the next step.
    fn next_coefficient(&mut self) -> f32 {
        let swing = OCTAVES * self.depth.advance() * self.lfo.advance();
        let hz = (self.centre.advance() + swing).exp2();
        let relative = (hz / self.sample_rate as f32).min(MAX_RELATIVE_FREQUENCY);
        let tan = (PI * relative).tan();
        (tan - 1.0) / (tan + 1.0)
    }
}

impl Effect for Phaser {
    fn set(&mut self, values: &[f32], _tempo: f32) {
        let &[rate, centre, depth, feedback, stages] = values else {
            return;
        };
        self.lfo.set_rate(rate * STEP as f32, self.sample_rate);
        self.centre.set_target(centre.log2());
        self.depth.set_target(depth);
        self.feedback.set_target(feedback);
        for (choice, share) in self.shares.iter_mut().enumerate() {
            share.set_target(f32::from(u8::from(choice == stages as usize)));
        }
    }

    fn reset(&mut self) {
        self.steps.reset();
        self.lfo.reset();
        for ramp in [&mut self.centre, &mut self.depth, &mut self.feedback] {
            ramp.finish();
        }
        self.shares.iter_mut().for_each(Ramp::finish);
        let first = self.next_coefficient();
        self.coefficient.jump(first);
        self.lfo.reset();
        self.states = [[0.0; MOST_STAGES]; 2];
        self.last = [0.0; 2];
    }

    fn process(&mut self, left: &mut [f32], right: &mut [f32]) {
        let mut done = 0;
        while done < left.len() {
            let (part, begins) = self.steps.next(left.len() - done);
            if begins {
                let next = self.next_coefficient();
                self.coefficient.set_target(next);
            }
            for n in done..done + part {
                let coefficient = self.coefficient.advance();
                let feedback = self.feedback.advance();
                let shares = self.shares.each_mut().map(Ramp::advance);
                for (channel, sample) in [&mut left[n], &mut right[n]].into_iter().enumerate() {
                    let mut sound = limit_sample(*sample) + feedback * self.last[channel];
                    let (mut mixed, mut first) = (0.0, 0);
                    for (share, stages) in shares.into_iter().zip(STAGES) {
                        for state in &mut self.states[channel][first..stages] {
                            let output = coefficient * sound + *state;
                            *state = sound - coefficient * output;
                            sound = output;
                        }
                        mixed += share * sound;
                        first = stages;
                    }
                    self.last[channel] = mixed;
                    *sample = mixed;
                }
            }
            done += part;
        }
    }

    fn tail_samples(&self) -> usize {
        self.sample_rate as usize / 2
    }
}

#[cfg(test)]
mod tests {
    use super::super::tests::{play, spectrum_db};
    use super::KIND;

    #[test]
    fn stages_pass_all_frequencies_and_make_notches_beside_the_dry_sound() {
        let mut click = vec![0.0; 48_000];
        click[0] = 1.0;
        let [heard, _] = play(&KIND, &[0.1, 1_000.0, 0.0, 0.0, 0.0], [&click, &click]);
        let alone = spectrum_db(&heard);
        let level = alone[1_000];
        assert!((50..20_000).all(|bin| (alone[bin] - level).abs() < 0.01));
        let both: Vec<f32> = heard
            .iter()
            .zip(&click)
            .map(|(wet, dry)| 0.5 * (wet + dry))
            .collect();
        let spectrum = spectrum_db(&both);
        // Four stages turn by half a turn where each turns by an eighth: at tan(π/8) and its inverse.
        let notches: Vec<usize> = (100..10_000)
            .filter(|&bin| {
                spectrum[bin] < level - 30.0
                    && spectrum[bin] <= spectrum[bin - 1]
                    && spectrum[bin] < spectrum[bin + 1]
            })
            .collect();
        assert_eq!(notches.len(), 2, "{notches:?}");
        assert!(
            notches[0].abs_diff(414) < 5 && notches[1].abs_diff(2_400) < 40,
            "{notches:?}"
        );
    }
}
