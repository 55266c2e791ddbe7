//! High-pass filter for recordings, against rumble and direct current.

use std::f64::consts::{FRAC_1_SQRT_2, TAU};

/// Butterworth filter of the second order: −3 dB at its frequency, 12 dB per octave below. After the cookbook of
/// R. Bristow-Johnson.
pub struct HighPass {
    /// Coefficients of the input and of the output.
    forward: [f64; 3],
    back: [f64; 2],
    past: [f64; 2],
}

impl HighPass {
    /// Creates a filter; `None` at 0 Hz.
    #[must_use]
    pub fn new(frequency: u16, sample_rate: u32) -> Option<Self> {
        if frequency == 0 {
            return None;
        }
        let angle = TAU * f64::from(frequency) / f64::from(sample_rate);
        let (sine, cosine) = angle.sin_cos();
        // A quality of 1/√2 makes the filter maximally flat.
        let alpha = sine * FRAC_1_SQRT_2;
        let scale = 1.0 / (1.0 + alpha);
        let gain = 0.5 * (1.0 + cosine) * scale;
        Some(Self {
            forward: [gain, -2.0 * gain, gain],
            back: [-2.0 * cosine * scale, (1.0 - alpha) * scale],
            past: [0.0; 2],
        })
    }

    /// Filters the next samples in place.
    pub fn process(&mut self, sound: &mut [f32]) {
        let ([b0, b1, b2], [a1, a2]) = (self.forward, self.back);
        let [mut first, mut second] = self.past;
        for sample in sound {
            let x = f64::from(*sample);
            let y = b0 * x + first;
            first = b1 * x - a1 * y + second;
            second = b2 * x - a2 * y;
            *sample = y as f32;
        }
        self.past = [first, second];
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn rumble_is_attenuated_and_notes_are_not() {
        let level = |frequency: f64| {
            let mut filter = HighPass::new(40, 48_000).expect("a filter");
            let mut sound: Vec<f32> =
                (0..48_000).map(|n| (TAU * frequency * f64::from(n) / 48_000.0).sin() as f32 + 0.3).collect();
            let (first, second) = sound.split_at_mut(777);
            filter.process(first);
            filter.process(second);
            let peak = sound[24_000..].iter().fold(0.0_f32, |peak, x| peak.max(x.abs()));
            20.0 * peak.log10()
        };
        assert!((level(40.0) + 3.0).abs() < 0.1, "{}", level(40.0));
        assert!((level(10.0) + 24.0).abs() < 0.5, "{}", level(10.0));
        assert!(level(160.0).abs() < 0.05, "{}", level(160.0));
        assert!(HighPass::new(0, 48_000).is_none());
    }
}
