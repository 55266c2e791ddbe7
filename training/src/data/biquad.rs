//! Filters of the second order for recordings, after the cookbook of R. Bristow-Johnson.

use std::f64::consts::{FRAC_1_SQRT_2, TAU};

/// Filter with two poles and two zeros.
pub struct Biquad {
    /// Coefficients of the input and of the output.
    forward: [f64; 3],
    back: [f64; 2],
    past: [f64; 2],
}

impl Biquad {
    /// Creates a Butterworth high-pass against rumble and direct current: −3 dB at its frequency,
    /// 12 dB per octave below.
    #[must_use]
    pub fn high_pass(frequency: f64, sample_rate: u32) -> Self {
        let (sine, cosine) = angle(frequency, sample_rate).sin_cos();
        // A quality of 1/√2 makes the filter maximally flat.
        let alpha = sine * FRAC_1_SQRT_2;
        let scale = 1.0 / (1.0 + alpha);
        let gain = 0.5 * (1.0 + cosine) * scale;
        Self {
            forward: [gain, -2.0 * gain, gain],
            back: [-2.0 * cosine * scale, (1.0 - alpha) * scale],
            past: [0.0; 2],
        }
    }

    /// Creates a shelf: `gain_db` below the frequency, or above if `high` is set, half of it there.
    #[must_use]
    pub fn shelf(frequency: f64, gain_db: f64, high: bool, sample_rate: u32) -> Self {
        let (sine, cosine) = angle(frequency, sample_rate).sin_cos();
        let (a, side) = (10_f64.powf(gain_db / 40.0), if high { -1.0 } else { 1.0 });
        // A slope of 1: the steepest without overshoot.
        let (root, cosine) = (2.0 * a.sqrt() * sine * FRAC_1_SQRT_2, side * cosine);
        let [sum, difference] = [a + 1.0, a - 1.0];
        let forward = [
            a * (sum - difference * cosine + root),
            side * 2.0 * a * (difference - sum * cosine),
            a * (sum - difference * cosine - root),
        ];
        let back = [
            sum + difference * cosine + root,
            side * -2.0 * (difference + sum * cosine),
            sum + difference * cosine - root,
        ];
        Self::normalized(forward, back)
    }

    /// Creates a peak of `gain_db` at the frequency, about two octaves wide.
    #[must_use]
    pub fn peak(frequency: f64, gain_db: f64, sample_rate: u32) -> Self {
        let (sine, cosine) = angle(frequency, sample_rate).sin_cos();
        let (a, alpha) = (10_f64.powf(gain_db / 40.0), sine * FRAC_1_SQRT_2);
        Self::normalized(
            [1.0 + alpha * a, -2.0 * cosine, 1.0 - alpha * a],
            [1.0 + alpha / a, -2.0 * cosine, 1.0 - alpha / a],
        )
    }

    fn normalized(forward: [f64; 3], [b0, b1, b2]: [f64; 3]) -> Self {
        Self {
            forward: forward.map(|value| value / b0),
            back: [b1 / b0, b2 / b0],
            past: [0.0; 2],
        }
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

fn angle(frequency: f64, sample_rate: u32) -> f64 {
    TAU * frequency / f64::from(sample_rate)
}

#[cfg(test)]
mod tests {
    use super::*;

    const RATE: u32 = 48_000;

    /// Returns the gain of a filter for a sine, dB, in two pieces.
    fn gain(mut filter: Biquad, frequency: f64, offset: f32) -> f32 {
        let mut sound: Vec<f32> = (0..RATE)
            .map(|n| (TAU * frequency * f64::from(n) / f64::from(RATE)).sin() as f32 + offset)
            .collect();
        let (first, second) = sound.split_at_mut(777);
        filter.process(first);
        filter.process(second);
        let peak = sound[24_000..]
            .iter()
            .fold(0.0_f32, |peak, x| peak.max(x.abs()));
        20.0 * peak.log10()
    }

    #[test]
    fn rumble_is_attenuated_and_notes_are_not() {
        let level = |frequency| gain(Biquad::high_pass(40.0, RATE), frequency, 0.3);
        assert!((level(40.0) + 3.0).abs() < 0.1, "{}", level(40.0));
        assert!((level(10.0) + 24.0).abs() < 0.5, "{}", level(10.0));
        assert!(level(160.0).abs() < 0.05, "{}", level(160.0));
    }

    #[test]
    fn shelves_and_peaks_have_their_gains() {
        for db in [-6.0, 6.0] {
            let checks = [
                (Biquad::shelf(500.0, db, false, RATE), 20.0, db),
                (Biquad::shelf(500.0, db, false, RATE), 500.0, db / 2.0),
                (Biquad::shelf(500.0, db, false, RATE), 10_000.0, 0.0),
                (Biquad::shelf(4_000.0, db, true, RATE), 100.0, 0.0),
                (Biquad::shelf(4_000.0, db, true, RATE), 4_000.0, db / 2.0),
                (Biquad::shelf(4_000.0, db, true, RATE), 20_000.0, db),
                (Biquad::peak(1_000.0, db, RATE), 1_000.0, db),
                (Biquad::peak(1_000.0, db, RATE), 50.0, 0.0),
                (Biquad::peak(1_000.0, db, RATE), 15_000.0, 0.0),
            ];
            for (filter, frequency, expected) in checks {
                let found = f64::from(gain(filter, frequency, 0.0));
                assert!(
                    (found - expected).abs() < 0.15,
                    "{db} dB, {frequency} Hz: {found} is not {expected}"
                );
            }
        }
    }
}
