//! Wah.

use super::{CHANGE_S, Effect, EffectKind, EffectParameter, STEP, Steps, decay};
use crate::dsp::level::limit_sample;
use crate::dsp::ramp::Ramp;
use crate::dsp::svf::{FilterResponse, Svf};

/// Centre at either end of the pedal, Hz.
const ENDS_HZ: [f32; 2] = [350.0, 2_200.0];
/// Times in which the envelope rises and falls, s.
const ENVELOPE_S: [f32; 2] = [0.005, 0.120];
/// Loudest input that the envelope knows, as an amplitude.
const LOUD: f32 = 0.25;
/// The filter passes a narrow band, so that it is quieter than its input.
const GAIN: f32 = 2.0;

pub(super) static KIND: EffectKind = EffectKind {
    id: "wah",
    name: "Wah",
    description: "A band that a pedal moves, or the loudness of the sound.",
    parameters: &[
        EffectParameter::new("position", "Position", "", [0.0, 1.0], 0.3),
        EffectParameter::new("touch", "Touch", "", [-1.0, 1.0], 0.0),
        EffectParameter::new("resonance", "Resonance", "", [1.0, 12.0], 4.0).logarithmic(),
    ],
    mix: 1.0,
    new: |sample_rate| Box::new(Wah::new(sample_rate)),
};

struct Wah {
    sample_rate: u32,
    steps: Steps,
    /// By the step.
    position: Ramp,
    touch: Ramp,
    resonance: Ramp,
    /// Shares that are left of a rise and of a fall after a sample.
    decays: [f32; 2],
    envelope: f32,
    filters: [Svf; 2],
}

impl Wah {
    fn new(sample_rate: u32) -> Self {
        let by_step = |value| Ramp::new(value, CHANGE_S, sample_rate / STEP as u32);
        Self {
            sample_rate,
            steps: Steps::default(),
            position: by_step(0.0),
            touch: by_step(0.0),
            resonance: by_step(1.0),
            decays: ENVELOPE_S.map(|seconds| decay(seconds, sample_rate)),
            envelope: 0.0,
            filters: Default::default(),
        }
    }

    fn tune(&mut self) {
        let touched = self.touch.advance() * (self.envelope / LOUD).min(1.0);
        let position = (self.position.advance() + touched).clamp(0.0, 1.0);
        let [low, high] = ENDS_HZ;
        let hz = low * (high / low).powf(position);
        let quality = self.resonance.advance();
        for filter in &mut self.filters {
            filter.set(
                FilterResponse::BandPass,
                hz.into(),
                quality.into(),
                self.sample_rate,
            );
        }
    }
}

impl Effect for Wah {
    fn set(&mut self, values: &[f32], _tempo: f32) {
        let &[position, touch, resonance] = values else {
            return;
        };
        self.position.set_target(position);
        self.touch.set_target(touch);
        self.resonance.set_target(resonance);
    }

    fn reset(&mut self) {
        self.steps.reset();
        for ramp in [&mut self.position, &mut self.touch, &mut self.resonance] {
            ramp.finish();
        }
        self.envelope = 0.0;
        self.filters.iter_mut().for_each(Svf::reset);
    }

    fn process(&mut self, left: &mut [f32], right: &mut [f32]) {
        let mut done = 0;
        while done < left.len() {
            let (part, begins) = self.steps.next(left.len() - done);
            if begins {
                self.tune();
            }
            for n in done..done + part {
                let [input, other] = [left[n], right[n]].map(limit_sample);
                let peak = input.abs().max(other.abs());
                let decay = self.decays[usize::from(peak < self.envelope)];
                self.envelope = peak + decay * (self.envelope - peak);
                left[n] = GAIN * self.filters[0].process(input);
                right[n] = GAIN * self.filters[1].process(other);
            }
            done += part;
        }
    }

    fn tail_samples(&self) -> usize {
        self.sample_rate as usize / 10
    }
}

#[cfg(test)]
mod tests {
    use super::super::tests::{level_db, play, sine};
    use super::KIND;

    #[test]
    fn the_pedal_moves_the_band() {
        let gain = |position: f32, hz: f64| {
            let sound = sine(hz, -30.0, 1.0);
            let [heard, _] = play(&KIND, &[position, 0.0, 6.0], [&sound, &sound]);
            level_db(&heard[24_000..]) - level_db(&sound)
        };
        assert!((gain(0.0, 350.0) - 6.0).abs() < 0.3 && gain(0.0, 2_200.0) < -15.0);
        assert!((gain(1.0, 2_200.0) - 6.0).abs() < 0.3 && gain(1.0, 350.0) < -15.0);
    }

    #[test]
    fn loud_notes_open_it_by_touch() {
        let gain = |level: f64| {
            let sound = sine(2_200.0, level, 1.0);
            let [heard, _] = play(&KIND, &[0.0, 1.0, 6.0], [&sound, &sound]);
            level_db(&heard[24_000..]) - level_db(&sound)
        };
        assert!(gain(-6.0) > gain(-50.0) + 15.0);
    }
}
