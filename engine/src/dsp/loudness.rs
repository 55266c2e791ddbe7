//! Loudness as a frame feature: the A-weighted level in dB.
//!
//! The weighting is that of IEC 61672-1:2013, annex E.2: high-passes at 20.6 Hz (twice), 107.7 Hz
//! and 737.9 Hz and low-passes at 12194 Hz (twice), normalised at 1 kHz. The high-passes use the
//! bilinear transform. The low-passes are too close to half the sample rate for that; they are
//! fitted to the analogue gain at 0 Hz, 8 kHz and 16 kHz, similar to M. Vicanek, "Matched second
//! order digital filters", 2016. At 48 kHz the result is within 0.15 dB of the standard from 10 Hz
//! to 16 kHz, and within 0.6 dB up to 20 kHz; the tests check these bounds.

use std::f64::consts::{PI, TAU};

/// Corner frequencies of the standard, Hz.
const HIGH_PASSES_HZ: [f64; 4] = [20.598_997, 20.598_997, 107.652_65, 737.862_23];
const LOW_PASS_HZ: f64 = 12_194.217;
/// Frequencies at which the low-passes are fitted, Hz; at most 0.2 and 0.4 times the sample rate.
const FIT_HZ: (f64, f64) = (8_000.0, 16_000.0);
/// Frequency at which the weighting is 0 dB, Hz.
const REFERENCE_HZ: f64 = 1_000.0;
/// Half the window, s: 512 samples at 48 kHz.
const HALF_WINDOW_S: f64 = 512.0 / 48_000.0;
/// Lowest level, dB.
pub const FLOOR_DB: f32 = -100.0;

/// A-weighted level of a sound, one frame per hop.
///
/// Frame `i` is the mean square of the weighted sound over a Hann window of 21 ms centred on sample
/// `i * hop`, in dB; before the first sample there is silence. A 1 kHz sine of amplitude 1 has
/// -3.01 dB. Levels are at least -100 dB.
///
/// # Examples
/// ```
/// use std::f32::consts::TAU;
///
/// use ondes_engine::dsp::loudness::Loudness;
///
/// let sine: Vec<f32> = (0..48_000).map(|n| (TAU * 1_000.0 * n as f32 / 48_000.0).sin()).collect();
/// let mut levels = Vec::new();
/// Loudness::new(48_000.0, 480).push(&sine, |level_db| levels.push(level_db));
/// assert!((levels[50] + 3.01).abs() < 0.05);
/// ```
pub struct Loudness {
    hop: usize,
    latency: usize,
    /// Samples until the next frame.
    until_frame: usize,
    sections: [FirstOrderFilter; 6],
    gain: f64,
    /// Ring of the squares of the last weighted samples; the oldest is at `position`.
    squares: Vec<f64>,
    position: usize,
    /// Window over the squares, with sum 1.
    window: Vec<f64>,
}

impl Loudness {
    /// Creates a meter for a sample rate in Hz that emits a frame every `hop` samples.
    ///
    /// # Panics
    ///
    /// If `hop` is 0 or the rate is not between 8 kHz and 768 kHz.
    pub fn new(sample_rate: f64, hop: usize) -> Self {
        assert!(hop > 0, "hop must be at least 1");
        assert!(
            (8_000.0..=768_000.0).contains(&sample_rate),
            "sample rate out of range: {sample_rate}"
        );
        let half = (HALF_WINDOW_S * sample_rate).round() as usize;
        let length = 2 * half + 1;
        // The zero ends of a Hann window of length + 2 points are omitted; the rest sums to half of
        // length + 1.
        let hann = |point: usize| {
            (1.0 - (TAU * (point + 1) as f64 / (length + 1) as f64).cos()) / (length + 1) as f64
        };
        let sections = a_weighting(sample_rate);
        let reference = response(&sections, TAU * REFERENCE_HZ / sample_rate);
        Self {
            hop,
            latency: half + 1,
            until_frame: half + 1,
            sections,
            gain: 1.0 / reference,
            squares: vec![0.0; length],
            position: 0,
            window: (0..length).map(hann).collect(),
        }
    }

    /// Returns the latency in samples: frame `i` is emitted with sample `i * hop + latency - 1`.
    pub fn latency(&self) -> usize {
        self.latency
    }

    /// Returns the samples per hop.
    pub fn hop(&self) -> usize {
        self.hop
    }

    /// Processes any number of samples and emits the levels in dB of the completed frames, in
    /// order.
    pub fn push(&mut self, input: &[f32], mut emit: impl FnMut(f32)) {
        for &sample in input {
            // A non-finite value would persist in the recursion.
            let sample = if sample.is_finite() {
                f64::from(sample)
            } else {
                0.0
            };
            let weighted = self
                .sections
                .iter_mut()
                .fold(self.gain * sample, |value, section| section.next(value));
            self.squares[self.position] = weighted * weighted;
            self.position = if self.position + 1 == self.squares.len() {
                0
            } else {
                self.position + 1
            };
            self.until_frame -= 1;
            if self.until_frame == 0 {
                self.until_frame = self.hop;
                emit(self.level_db());
            }
        }
    }

    /// Clears all state.
    pub fn reset(&mut self) {
        self.until_frame = self.latency;
        self.sections
            .iter_mut()
            .for_each(|section| section.state = 0.0);
        self.squares.fill(0.0);
        self.position = 0;
    }

    /// Returns the level of the window; summed anew each time, so that rounding errors do not
    /// accumulate.
    fn level_db(&self) -> f32 {
        let (newer, older) = self.squares.split_at(self.position);
        let mean: f64 = older
            .iter()
            .chain(newer)
            .zip(&self.window)
            .map(|(square, weight)| square * weight)
            .sum();
        ((10.0 * mean.log10()) as f32).max(FLOOR_DB)
    }
}

/// First-order filter in transposed direct form.
#[derive(Debug, Clone, Copy)]
struct FirstOrderFilter {
    /// Numerator, and the second coefficient of the denominator; its first is 1.
    b: [f64; 2],
    a: f64,
    state: f64,
}

impl FirstOrderFilter {
    fn next(&mut self, input: f64) -> f64 {
        let output = self.b[0] * input + self.state;
        self.state = self.b[1] * input - self.a * output;
        output
    }

    fn high_pass(corner_hz: f64, sample_rate: f64) -> Self {
        let warped = (PI * corner_hz / sample_rate).tan();
        let gain = 1.0 / (1.0 + warped);
        Self {
            b: [gain, -gain],
            a: (warped - 1.0) * gain,
            state: 0.0,
        }
    }

    /// Low-pass with the gain of the analogue filter at 0 Hz and at two frequencies above.
    fn low_pass(corner_hz: f64, sample_rate: f64) -> Self {
        // With s = sin²(ω/2), the squared gain of any first-order filter with gain 1 at 0 Hz is (1
        // + v s) / (1 + u s); setting it to g gives a linear equation in u and v.
        let equation = |hz: f64| {
            let gain = 1.0 / (1.0 + (hz / corner_hz).powi(2));
            let s = (PI * hz / sample_rate).sin().powi(2);
            (s, -gain * s, gain - 1.0)
        };
        let (v1, u1, right1) = equation(FIT_HZ.0.min(0.2 * sample_rate));
        let (v2, u2, right2) = equation(FIT_HZ.1.min(0.4 * sample_rate));
        let determinant = v1 * u2 - v2 * u1;
        let v = (right1 * u2 - right2 * u1) / determinant;
        let u = (v1 * right2 - v2 * right1) / determinant;
        // At half the sample rate, the gain is the difference of the numerator's coefficients over
        // that of the denominator's.
        let (numerator, denominator) = ((1.0 + v).max(0.0).sqrt(), (1.0 + u).max(0.0).sqrt());
        let a = (1.0 - denominator) / (1.0 + denominator);
        let scale = 0.5 * (1.0 + a);
        Self {
            b: [scale * (1.0 + numerator), scale * (1.0 - numerator)],
            a,
            state: 0.0,
        }
    }

    /// Returns the gain at an angular frequency in radians per sample.
    fn magnitude(&self, omega: f64) -> f64 {
        let size = |first: f64, second: f64| {
            (first * first + second * second + 2.0 * first * second * omega.cos()).sqrt()
        };
        size(self.b[0], self.b[1]) / size(1.0, self.a)
    }
}

fn a_weighting(sample_rate: f64) -> [FirstOrderFilter; 6] {
    let [first, second, third, fourth] =
        HIGH_PASSES_HZ.map(|corner| FirstOrderFilter::high_pass(corner, sample_rate));
    let low_pass = FirstOrderFilter::low_pass(LOW_PASS_HZ, sample_rate);
    [first, second, third, fourth, low_pass, low_pass]
}

fn response(sections: &[FirstOrderFilter], omega: f64) -> f64 {
    sections
        .iter()
        .map(|section| section.magnitude(omega))
        .product()
}

/// Returns the level of the mean A-weighted power of a whole sound, dB; `sample_rate` is in Hz.
#[must_use]
pub fn mean_db(sound: &[f32], sample_rate: f64) -> f32 {
    let (mut power, mut count) = (0.0, 0);
    Loudness::new(sample_rate, (sample_rate / 100.0) as usize).push(sound, |level| {
        power += 10.0_f32.powf(level / 10.0);
        count += 1;
    });
    (10.0 * (power / count as f32).log10()).max(FLOOR_DB)
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;
    use crate::dsp::level::amplitude_to_db_f64;

    /// Formula of the standard, in dB relative to 1 kHz.
    fn standard_db(frequency: f64) -> f64 {
        let gain = |f: f64| {
            let high: f64 = HIGH_PASSES_HZ
                .iter()
                .map(|corner| f / f.hypot(*corner))
                .product();
            high * (LOW_PASS_HZ / f.hypot(LOW_PASS_HZ)).powi(2)
        };
        amplitude_to_db_f64(gain(frequency) / gain(1_000.0))
    }

    fn sine(rate: f64, frequency: f64, seconds: f64) -> Vec<f32> {
        (0..(rate * seconds) as usize)
            .map(|n| (TAU * frequency * n as f64 / rate).sin() as f32)
            .collect()
    }

    #[test]
    fn the_formula_matches_the_table_of_the_standard() {
        // IEC 61672-1, table 3, which is rounded to 0.1 dB.
        for (frequency, db) in [
            (31.5, -39.4),
            (100.0, -19.1),
            (1_000.0, 0.0),
            (2_500.0, 1.3),
            (10_000.0, -2.5),
        ] {
            assert!(
                (standard_db(frequency) - db).abs() < 0.2,
                "{frequency}: {}",
                standard_db(frequency)
            );
        }
    }

    #[test]
    fn weighting_is_close_to_the_standard() {
        let limits = [
            (48_000.0, 16_000.0, 0.15),
            (48_000.0, 20_000.0, 0.6),
            (44_100.0, 16_000.0, 0.2),
            (96_000.0, 20_000.0, 0.15),
            (192_000.0, 20_000.0, 0.15),
            (32_000.0, 12_000.0, 0.5),
            (16_000.0, 7_000.0, 0.5),
        ];
        for (rate, top, tolerance) in limits {
            let sections = a_weighting(rate);
            let reference = response(&sections, TAU * 1_000.0 / rate);
            let mut frequency = 10.0;
            let mut worst = (0.0_f64, 0.0);
            while frequency < top {
                let db =
                    amplitude_to_db_f64(response(&sections, TAU * frequency / rate) / reference);
                let error = (db - standard_db(frequency)).abs();
                if error > worst.0 {
                    worst = (error, frequency);
                }
                frequency *= 1.02;
            }
            assert!(worst.0 < tolerance, "{rate}: {worst:?}");
        }
    }

    #[test]
    fn sines_have_their_weighted_level() {
        for frequency in [63.0, 200.0, 1_000.0, 4_000.0, 10_000.0] {
            let mut levels = Vec::new();
            Loudness::new(48_000.0, 192).push(&sine(48_000.0, frequency, 1.0), |db| {
                levels.push(f64::from(db))
            });
            let expected = standard_db(frequency) - 10.0 * 2_f64.log10();
            // After the transient of the high-passes.
            for level in &levels[100..] {
                assert!(
                    (level - expected).abs() < 0.25,
                    "{frequency}: {level} for {expected}"
                );
            }
        }
    }

    #[test]
    fn a_full_scale_sine_is_3_db_below_zero() {
        let mut last = 0.0;
        Loudness::new(48_000.0, 192).push(&sine(48_000.0, 1_000.0, 1.0), |db| last = db);
        assert!((last + 3.01).abs() < 0.01, "{last}");
    }

    #[test]
    fn silence_returns_to_the_floor() {
        let mut meter = Loudness::new(48_000.0, 192);
        meter.push(&[1.0; 1_000], |_| ());
        meter.push(&[f32::NAN, f32::INFINITY], |_| ());
        let mut last = 0.0;
        meter.push(&[0.0; 48_000], |db| last = db);
        assert!((last - FLOOR_DB).abs() < f32::EPSILON, "{last}");
    }

    #[test]
    fn frames_are_centred() {
        let mut sound = vec![0.0; 8_000];
        sound[20 * 192] = 1.0;
        let mut levels = Vec::new();
        Loudness::new(48_000.0, 192).push(&sound, |db| levels.push(db));
        let loudest = levels
            .iter()
            .enumerate()
            .max_by(|a, b| a.1.total_cmp(b.1))
            .map(|(frame, _)| frame);
        assert_eq!(loudest, Some(20));
        // The window extends 512 samples, 2.67 hops, to either side. After the click the filter
        // decays.
        assert!((levels[17] - FLOOR_DB).abs() < f32::EPSILON && levels[18] > FLOOR_DB);
    }

    #[test]
    fn latency_is_exact() {
        let mut meter = Loudness::new(48_000.0, 100);
        let mut arrivals = Vec::new();
        for sample in 0..3_000 {
            meter.push(&[0.1], |_| arrivals.push(sample));
        }
        let expected: Vec<usize> = (0..)
            .map(|i| i * 100 + meter.latency() - 1)
            .take_while(|&at| at < 3_000)
            .collect();
        assert_eq!(arrivals, expected);
    }

    proptest! {
        #![proptest_config(ProptestConfig::with_cases(32))]
        #[test]
        fn levels_do_not_depend_on_block_length(splits in prop::collection::vec(0_usize..700, 1..40)) {
            let sound = sine(48_000.0, 333.0, 0.25);
            let (mut whole, mut split) = (Vec::new(), Vec::new());
            let mut meter = Loudness::new(48_000.0, 192);
            meter.push(&sound, |db| whole.push(db.to_bits()));
            meter.reset();
            let mut rest = sound.as_slice();
            for length in splits {
                let (block, after) = rest.split_at(length.min(rest.len()));
                meter.push(block, |db| split.push(db.to_bits()));
                rest = after;
            }
            meter.push(rest, |db| split.push(db.to_bits()));
            prop_assert_eq!(whole, split);
        }
    }
}
