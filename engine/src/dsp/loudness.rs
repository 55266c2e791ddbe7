//! Loudness as a streaming frame feature: the A-weighted level in dB.
//!
//! The weighting is that of IEC 61672-1:2013, annex E.2: high-passes at 20.6 Hz (twice), 107.7 Hz and 737.9 Hz and low-passes
//! at 12194 Hz (twice), normalised at 1 kHz. The high-passes are made by the bilinear transform; the low-passes lie too near
//! to half the sample rate for that and are fitted to the analogue ones at 0 Hz, 8 kHz and 16 kHz instead, in the manner of
//! M. Vicanek, "Matched second order digital filters", 2016. At 48 kHz the result is within 0.15 dB of the standard from
//! 10 Hz to 16 kHz, and within 0.6 dB to 20 kHz; the tests hold it there.

use std::f64::consts::{PI, TAU};

/// Corner frequencies of the standard, in Hz.
const HIGH_PASSES_HZ: [f64; 4] = [20.598_997, 20.598_997, 107.652_65, 737.862_23];
const LOW_PASS_HZ: f64 = 12_194.217;
/// Where the low-passes are fitted, unless that is beyond 0.2 and 0.4 times the sample rate.
const FIT_HZ: (f64, f64) = (8_000.0, 16_000.0);
/// Where the weighting is 0 dB.
const REFERENCE_HZ: f64 = 1_000.0;
/// Half the window in seconds: 512 samples at 48 kHz.
const HALF_WINDOW_S: f64 = 512.0 / 48_000.0;
/// The quietest level told apart, dB.
pub const FLOOR_DB: f32 = -100.0;

/// The A-weighted level of a sound, one frame per hop.
///
/// Frame `i` is the mean square over a Hann window of 21 ms centred on sample `i * hop`, in dB, of the sound weighted by the
/// (causal) filter; what lies before the first sample counts as silence. A sine of amplitude 1 at 1 kHz is -3.01 dB; nothing
/// is below -100 dB.
pub struct Loudness {
    hop: usize,
    latency: usize,
    /// Samples still to come before the next frame.
    until_frame: usize,
    sections: [Biquad; 6],
    gain: f64,
    /// Squares of the last weighted samples, oldest at `position`.
    squares: Vec<f64>,
    position: usize,
    /// The window over the squares, with sum 1.
    window: Vec<f64>,
}

impl Loudness {
    /// A meter for input at `sample_rate` Hz that gives a frame every `hop` samples.
    ///
    /// # Panics
    ///
    /// If `hop` is 0 or the rate is not between 8 kHz and 768 kHz.
    pub fn new(sample_rate: f64, hop: usize) -> Self {
        assert!(hop > 0, "a hop has at least one sample");
        assert!((8_000.0..=768_000.0).contains(&sample_rate), "sample rate out of range: {sample_rate}");
        let half = (HALF_WINDOW_S * sample_rate).round() as usize;
        let length = 2 * half + 1;
        // The ends of a Hann window of length + 2 points are zero and left out; what remains sums to half of length + 1.
        let hann = |point: usize| (1.0 - (TAU * (point + 1) as f64 / (length + 1) as f64).cos()) / (length + 1) as f64;
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

    /// Samples from the moment a frame describes to its arrival: frame `i` comes out with sample `i * hop + latency - 1`.
    pub fn latency(&self) -> usize {
        self.latency
    }

    /// Samples from one frame to the next.
    pub fn hop(&self) -> usize {
        self.hop
    }

    /// Takes any number of samples and gives the levels in dB of the frames they complete, in order.
    pub fn push(&mut self, input: &[f32], mut emit: impl FnMut(f32)) {
        for &sample in input {
            // What is not a number counts as silence: let into the recursion, it would stay for ever.
            let sample = if sample.is_finite() { f64::from(sample) } else { 0.0 };
            let weighted = self.sections.iter_mut().fold(self.gain * sample, |value, section| section.next(value));
            self.squares[self.position] = weighted * weighted;
            self.position = if self.position + 1 == self.squares.len() { 0 } else { self.position + 1 };
            self.until_frame -= 1;
            if self.until_frame == 0 {
                self.until_frame = self.hop;
                emit(self.level_db());
            }
        }
    }

    /// Forgets all that was heard.
    pub fn reset(&mut self) {
        self.until_frame = self.latency;
        self.sections.iter_mut().for_each(|section| section.state = 0.0);
        self.squares.fill(0.0);
        self.position = 0;
    }

    /// Summed afresh each time, so that no rounding error outlives the window.
    fn level_db(&self) -> f32 {
        let (newer, older) = self.squares.split_at(self.position);
        let mean: f64 = older.iter().chain(newer).zip(&self.window).map(|(square, weight)| square * weight).sum();
        ((10.0 * mean.log10()) as f32).max(FLOOR_DB)
    }
}

/// A filter of first order, in transposed direct form.
#[derive(Debug, Clone, Copy)]
struct Biquad {
    /// Numerator and denominator, the first of the denominator being 1.
    b: [f64; 2],
    a: f64,
    state: f64,
}

impl Biquad {
    fn next(&mut self, input: f64) -> f64 {
        let output = self.b[0] * input + self.state;
        self.state = self.b[1] * input - self.a * output;
        output
    }

    fn high_pass(corner_hz: f64, sample_rate: f64) -> Self {
        let warped = (PI * corner_hz / sample_rate).tan();
        let gain = 1.0 / (1.0 + warped);
        Self { b: [gain, -gain], a: (warped - 1.0) * gain, state: 0.0 }
    }

    /// With the gain of the analogue filter at 0 Hz and at two frequencies above.
    fn low_pass(corner_hz: f64, sample_rate: f64) -> Self {
        // With s = sin²(ω/2), the squared gain of any filter of first order with gain 1 at 0 Hz is (1 + v s) / (1 + u s);
        // setting it to g makes a linear equation in u and v.
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
        // The gain at half the sample rate is the difference of the numerator over that of the denominator.
        let (numerator, denominator) = ((1.0 + v).max(0.0).sqrt(), (1.0 + u).max(0.0).sqrt());
        let a = (1.0 - denominator) / (1.0 + denominator);
        let scale = 0.5 * (1.0 + a);
        Self { b: [scale * (1.0 + numerator), scale * (1.0 - numerator)], a, state: 0.0 }
    }

    /// Gain at an angular frequency in radians per sample.
    fn magnitude(&self, omega: f64) -> f64 {
        let size =
            |first: f64, second: f64| (first * first + second * second + 2.0 * first * second * omega.cos()).sqrt();
        size(self.b[0], self.b[1]) / size(1.0, self.a)
    }
}

fn a_weighting(sample_rate: f64) -> [Biquad; 6] {
    let [first, second, third, fourth] = HIGH_PASSES_HZ.map(|corner| Biquad::high_pass(corner, sample_rate));
    let low_pass = Biquad::low_pass(LOW_PASS_HZ, sample_rate);
    [first, second, third, fourth, low_pass, low_pass]
}

fn response(sections: &[Biquad], omega: f64) -> f64 {
    sections.iter().map(|section| section.magnitude(omega)).product()
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;
    use crate::dsp::level::amplitude_to_db_f64;

    /// The standard's formula, in dB relative to 1 kHz.
    fn standard_db(frequency: f64) -> f64 {
        let gain = |f: f64| {
            let high: f64 = HIGH_PASSES_HZ.iter().map(|corner| f / f.hypot(*corner)).product();
            high * (LOW_PASS_HZ / f.hypot(LOW_PASS_HZ)).powi(2)
        };
        amplitude_to_db_f64(gain(frequency) / gain(1_000.0))
    }

    fn sine(rate: f64, frequency: f64, seconds: f64) -> Vec<f32> {
        (0..(rate * seconds) as usize).map(|n| (TAU * frequency * n as f64 / rate).sin() as f32).collect()
    }

    #[test]
    fn the_formula_is_that_of_the_table() {
        // IEC 61672-1, table 3, rounded to 0.1 dB there.
        for (frequency, db) in [(31.5, -39.4), (100.0, -19.1), (1_000.0, 0.0), (2_500.0, 1.3), (10_000.0, -2.5)] {
            assert!((standard_db(frequency) - db).abs() < 0.2, "{frequency}: {}", standard_db(frequency));
        }
    }

    #[test]
    fn weighting_is_near_the_standard() {
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
                let db = amplitude_to_db_f64(response(&sections, TAU * frequency / rate) / reference);
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
    fn sines_measure_as_weighted() {
        for frequency in [63.0, 200.0, 1_000.0, 4_000.0, 10_000.0] {
            let mut levels = Vec::new();
            Loudness::new(48_000.0, 192).push(&sine(48_000.0, frequency, 1.0), |db| levels.push(f64::from(db)));
            let expected = standard_db(frequency) - 10.0 * 2_f64.log10();
            // Well after the onset, which the high-passes ring from.
            for level in &levels[100..] {
                assert!((level - expected).abs() < 0.25, "{frequency}: {level} for {expected}");
            }
        }
    }

    #[test]
    fn full_scale_is_3_db_below_zero() {
        let mut last = 0.0;
        Loudness::new(48_000.0, 192).push(&sine(48_000.0, 1_000.0, 1.0), |db| last = db);
        assert!((last + 3.01).abs() < 0.01, "{last}");
    }

    #[test]
    fn silence_is_the_floor_again_after_sound() {
        let mut meter = Loudness::new(48_000.0, 192);
        meter.push(&[1.0; 1_000], |_| ());
        meter.push(&[f32::NAN, f32::INFINITY], |_| ());
        let mut last = 0.0;
        meter.push(&[0.0; 48_000], |db| last = db);
        assert!((last - FLOOR_DB).abs() < f32::EPSILON, "{last}");
    }

    #[test]
    fn a_click_is_loudest_in_the_frame_centred_on_it() {
        let mut sound = vec![0.0; 8_000];
        sound[20 * 192] = 1.0;
        let mut levels = Vec::new();
        Loudness::new(48_000.0, 192).push(&sound, |db| levels.push(db));
        let loudest = levels.iter().enumerate().max_by(|a, b| a.1.total_cmp(b.1)).map(|(frame, _)| frame);
        assert_eq!(loudest, Some(20));
        // The window reaches 512 samples, 2.67 hops, to either side. Behind the click the filter rings on.
        assert!((levels[17] - FLOOR_DB).abs() < f32::EPSILON && levels[18] > FLOOR_DB);
    }

    #[test]
    fn frames_come_out_when_they_are_said_to() {
        let mut meter = Loudness::new(48_000.0, 100);
        let mut arrivals = Vec::new();
        for sample in 0..3_000 {
            meter.push(&[0.1], |_| arrivals.push(sample));
        }
        let expected: Vec<usize> = (0..).map(|i| i * 100 + meter.latency() - 1).take_while(|&at| at < 3_000).collect();
        assert_eq!(arrivals, expected);
    }

    proptest! {
        #![proptest_config(ProptestConfig::with_cases(32))]
        #[test]
        fn any_split_gives_the_same_levels(splits in prop::collection::vec(0_usize..700, 1..40)) {
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
