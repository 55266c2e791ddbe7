//! Drive.

use std::f64::consts::LN_2;

use super::{CHANGE_S, Effect, EffectKind, EffectParameter, STEP, Steps};
use crate::dsp::dc_blocker::DcBlocker;
use crate::dsp::level::{db_to_amplitude, limit_sample};
use crate::dsp::ramp::Ramp;
use crate::dsp::svf::{FilterResponse, Svf};

/// Largest offset before the curve, which makes both halves of a wave differ.
const BIAS: f32 = 0.6;
/// Samples closer than this are one to the quotient of differences.
const SAME: f64 = 1e-5;

pub(super) static KIND: EffectKind = EffectKind {
    id: "drive",
    name: "Drive",
    description: "A soft curve that saturates, with a tone control after it.",
    parameters: &[
        EffectParameter::new("drive", "Drive", " dB", [0.0, 48.0], 18.0),
        EffectParameter::new("asymmetry", "Asymmetry", "", [0.0, 1.0], 0.2),
        EffectParameter::new("tone", "Tone", " Hz", [500.0, 16_000.0], 5_000.0).logarithmic(),
    ],
    mix: 1.0,
    new: |sample_rate| Box::new(Drive::new(sample_rate)),
};

/// Hyperbolic tangent, by differences of its antiderivative, which alias less (Parker, Zavalishin &
/// Le Bivic, "Reducing the aliasing of nonlinear waveshaping using continuous-time convolution",
/// DAFx-16).
struct Drive {
    sample_rate: u32,
    steps: Steps,
    gain: Ramp,
    bias: Ramp,
    /// Octaves above 1 Hz, by the step.
    tone: Ramp,
    channels: [Channel; 2],
}

struct Channel {
    /// Last input of the curve, and its antiderivative there.
    last: [f64; 2],
    dc: DcBlocker,
    tone: Svf,
}

impl Drive {
    fn new(sample_rate: u32) -> Self {
        let ramp = |value| Ramp::new(value, CHANGE_S, sample_rate);
        let channel = || {
            let mut dc = DcBlocker::new(sample_rate);
            dc.set(true);
            dc.reset();
            Channel {
                last: [0.0, antiderivative(0.0)],
                dc,
                tone: Svf::default(),
            }
        };
        Self {
            sample_rate,
            steps: Steps::default(),
            gain: ramp(1.0),
            bias: ramp(0.0),
            tone: Ramp::new(12.0, CHANGE_S, sample_rate / STEP as u32),
            channels: [channel(), channel()],
        }
    }

    fn tune(&mut self) {
        let hz = f64::from(self.tone.advance()).exp2();
        for channel in &mut self.channels {
            channel
                .tone
                .set(FilterResponse::LowPass, hz, 0.7, self.sample_rate);
        }
    }
}

/// Returns ln cosh x, the antiderivative of the hyperbolic tangent.
fn antiderivative(x: f64) -> f64 {
    x.abs() + (-2.0 * x.abs()).exp().ln_1p() - LN_2
}

impl Channel {
    fn curve(&mut self, x: f64) -> f32 {
        let [before, integral_before] = self.last;
        let integral = antiderivative(x);
        self.last = [x, integral];
        if (x - before).abs() < SAME {
            return (0.5 * (x + before)).tanh() as f32;
        }
        ((integral - integral_before) / (x - before)) as f32
    }
}

impl Effect for Drive {
    fn set(&mut self, values: &[f32], _tempo: f32) {
        let &[drive, asymmetry, tone] = values else {
            return;
        };
        self.gain.set_target(db_to_amplitude(drive));
        self.bias.set_target(BIAS * asymmetry);
        self.tone.set_target(tone.log2());
    }

    fn reset(&mut self) {
        self.steps.reset();
        for ramp in [&mut self.gain, &mut self.bias, &mut self.tone] {
            ramp.finish();
        }
        let rest = f64::from(self.bias.target());
        for channel in &mut self.channels {
            channel.last = [rest, antiderivative(rest)];
            channel.dc.reset();
            channel.tone.reset();
        }
    }

    fn process(&mut self, left: &mut [f32], right: &mut [f32]) {
        let mut done = 0;
        while done < left.len() {
            let (part, begins) = self.steps.next(left.len() - done);
            if begins {
                self.tune();
            }
            let part = done..done + part;
            for n in part.clone() {
                let (gain, bias) = (self.gain.advance(), self.bias.advance());
                let rest = bias.tanh();
                // Loud sound becomes no louder, soft sound half as many decibels.
                let level = 1.0 / gain.sqrt();
                for (channel, sample) in self.channels.iter_mut().zip([&mut left[n], &mut right[n]])
                {
                    let input = limit_sample(*sample);
                    let driven = channel.curve(f64::from(gain * input + bias));
                    *sample = channel.tone.process(level * (driven - rest));
                }
            }
            for (channel, sound) in self.channels.iter_mut().zip([&mut *left, &mut *right]) {
                channel.dc.process(&mut sound[part.clone()]);
            }
            done = part.end;
        }
    }

    fn tail_samples(&self) -> usize {
        self.sample_rate as usize / 4
    }
}

#[cfg(test)]
mod tests {
    use super::super::tests::{play, sine, spectrum_db};
    use super::KIND;

    /// Returns levels of the first overtones relative to the tone, dB.
    fn overtones(drive: f32, asymmetry: f32) -> [f64; 2] {
        let sound = sine(500.0, -12.0, 2.0);
        let [heard, _] = play(&KIND, &[drive, asymmetry, 16_000.0], [&sound, &sound]);
        let spectrum = spectrum_db(&heard[48_000..]);
        [1_000, 1_500].map(|hz| spectrum[hz] - spectrum[500])
    }

    #[test]
    fn drive_makes_odd_overtones_and_asymmetry_even_ones() {
        let [even, odd] = overtones(24.0, 0.0);
        assert!(even < -80.0 && odd > -20.0, "{even} dB, {odd} dB");
        let [even, _] = overtones(24.0, 1.0);
        assert!(even > -35.0, "{even} dB");
        assert!(overtones(0.0, 0.0)[1] < -40.0);
    }

    #[test]
    fn aliases_are_weaker_than_those_of_the_bare_curve() {
        let sound = sine(5_501.0, -6.0, 2.0);
        let strongest = |sound: &[f32]| {
            let spectrum = spectrum_db(&sound[48_000..96_000]);
            let aliases = (20..6_000).filter(|bin| bin % 5_501 > 4 && bin % 5_501 < 5_497);
            aliases.map(|bin| spectrum[bin]).fold(f64::MIN, f64::max) - spectrum[5_501]
        };
        let [heard, _] = play(&KIND, &[24.0, 0.0, 16_000.0], [&sound, &sound]);
        let gain = 10.0_f32.powf(24.0 / 20.0);
        let bare: Vec<f32> = sound.iter().map(|sample| (gain * sample).tanh()).collect();
        assert!(
            strongest(&heard) < strongest(&bare) - 12.0,
            "{} dB, {} dB",
            strongest(&heard),
            strongest(&bare)
        );
    }
}
