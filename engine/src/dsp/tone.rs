//! Three-band tone control.

use std::f64::consts::TAU;

/// Corner of the low shelf, centre of the peak and corner of the high shelf, Hz, for guitar.
const BANDS_HZ: [f64; 3] = [150.0, 500.0, 2_000.0];
/// Q of the shelves, the steepest without overshoot, and of the peak, about two octaves wide.
const QUALITIES: [f64; 3] = [
    std::f64::consts::FRAC_1_SQRT_2,
    0.7,
    std::f64::consts::FRAC_1_SQRT_2,
];
/// Highest frequency of a band relative to the sample rate.
const MAX_RELATIVE_FREQUENCY: f64 = 0.45;
/// Largest boost or cut of a band, dB.
pub const MAX_GAIN_DB: f32 = 12.0;
/// Samples over which coefficients are interpolated linearly.
const STEP: u32 = 16;
/// Duration of gain changes, s.
const RAMP_S: f64 = 0.020;
/// Time after which the filters' states have decayed, s.
const SETTLE_S: f64 = 0.100;

/// Low shelf, peak and high shelf in series, after R. Bristow-Johnson, "Cookbook formulae for audio
/// equalizer biquad filter coefficients".
///
/// Samples pass unchanged while all bands are at 0 dB.
///
/// # Examples
/// ```
/// use ondes_engine::dsp::tone::Tone;
///
/// let mut tone = Tone::new(48_000);
/// tone.set([6.0, 0.0, -3.0]);
/// let mut block = [0.1; 64];
/// tone.process(&mut block);
/// ```
#[derive(Clone)]
pub struct Tone {
    bands: [Band; 3],
    /// Current gains, `[band]`, dB.
    gains: [f32; 3],
    targets: [f32; 3],
    /// Steps of a change, remaining steps, and remaining samples of the current step.
    ramp: u32,
    steps: u32,
    samples: u32,
    /// Samples until the states have decayed after a change to 0 dB.
    unsettled: u32,
    settle: u32,
}

/// Biquad filter of one band.
#[derive(Clone, Copy)]
struct Band {
    kind: FilterKind,
    /// Cosine of the corner or centre frequency.
    cos: f64,
    alpha: f64,
    /// b0, b1, b2, a1, a2, divided by a0.
    coefficients: [f64; 5],
    /// Change of the coefficients per sample, and their target.
    slopes: [f64; 5],
    next: [f64; 5],
    state: [f64; 2],
}

#[derive(Clone, Copy)]
enum FilterKind {
    Low,
    Peak,
    High,
}

impl Tone {
    /// Creates a tone control with all bands at 0 dB, for a sample rate in Hz.
    #[must_use]
    pub fn new(sample_rate: u32) -> Self {
        let rate = f64::from(sample_rate);
        let band = |index: usize, kind| {
            Band::new(
                kind,
                BANDS_HZ[index].min(MAX_RELATIVE_FREQUENCY * rate) / rate,
                QUALITIES[index],
            )
        };
        Self {
            bands: [
                band(0, FilterKind::Low),
                band(1, FilterKind::Peak),
                band(2, FilterKind::High),
            ],
            gains: [0.0; 3],
            targets: [0.0; 3],
            ramp: (RAMP_S * rate / f64::from(STEP)).ceil().max(1.0) as u32,
            steps: 0,
            samples: 0,
            unsettled: 0,
            settle: (SETTLE_S * rate) as u32,
        }
    }

    /// Sets the gains of bass, middle and treble in dB, clamped to ±[`MAX_GAIN_DB`]; changes are
    /// smoothed.
    pub fn set(&mut self, gains: [f32; 3]) {
        let gains = gains.map(|db| {
            if db.is_nan() {
                0.0
            } else {
                db.clamp(-MAX_GAIN_DB, MAX_GAIN_DB)
            }
        });
        #[expect(clippy::float_cmp, reason = "an equal target is the same target")]
        if gains != self.targets {
            (self.targets, self.steps) = (gains, self.ramp);
        }
    }

    /// Clears all state and completes changes that are being smoothed.
    pub fn reset(&mut self) {
        (self.gains, self.steps, self.samples, self.unsettled) = (self.targets, 0, 0, 0);
        for (band, gain) in self.bands.iter_mut().zip(self.gains) {
            band.aim(gain, 1);
            band.arrive();
            band.state = [0.0; 2];
        }
    }

    /// Returns whether samples pass unchanged until a gain is changed.
    #[must_use]
    pub fn is_neutral(&self) -> bool {
        let flat = [self.gains, self.targets]
            .iter()
            .flatten()
            .all(|gain| *gain == 0.0);
        flat && self.steps == 0 && self.samples == 0 && self.unsettled == 0
    }

    /// Filters samples in place.
    pub fn process(&mut self, sound: &mut [f32]) {
        let mut rest = sound;
        while !rest.is_empty() {
            if self.samples == 0 && self.steps > 0 {
                self.step();
            }
            if self.is_neutral() {
                return;
            }
            let moving = self.samples > 0;
            let length = if moving {
                rest.len().min(self.samples as usize)
            } else {
                rest.len()
            };
            let (now, later) = rest.split_at_mut(length);
            for band in &mut self.bands {
                if moving {
                    band.glide(now)
                } else {
                    band.stay(now)
                }
            }
            if moving {
                self.samples -= length as u32;
                if self.samples == 0 {
                    self.bands.iter_mut().for_each(Band::arrive);
                }
            } else {
                self.unsettled = self.unsettled.saturating_sub(length as u32);
                if self.is_neutral() {
                    self.bands.iter_mut().for_each(|band| band.state = [0.0; 2]);
                }
            }
            rest = later;
        }
    }

    /// Begins the next step of a change.
    fn step(&mut self) {
        for ((band, gain), target) in self.bands.iter_mut().zip(&mut self.gains).zip(self.targets) {
            // Ends exactly on the target.
            *gain = if self.steps == 1 {
                target
            } else {
                *gain + (target - *gain) / self.steps as f32
            };
            band.aim(*gain, STEP);
        }
        (self.steps, self.samples, self.unsettled) = (self.steps - 1, STEP, self.settle);
    }
}

impl Band {
    /// Creates a band at 0 dB; `frequency` is relative to the sample rate.
    fn new(kind: FilterKind, frequency: f64, quality: f64) -> Self {
        let (sin, cos) = (TAU * frequency).sin_cos();
        let mut band = Self {
            kind,
            cos,
            alpha: sin / (2.0 * quality),
            coefficients: [0.0; 5],
            slopes: [0.0; 5],
            next: [0.0; 5],
            state: [0.0; 2],
        };
        band.aim(0.0, 1);
        band.arrive();
        band
    }

    /// Returns the coefficients for a gain.
    fn design(&self, gain_db: f32) -> [f64; 5] {
        let a = 10.0_f64.powf(f64::from(gain_db) / 40.0);
        let (cos, alpha) = (self.cos, self.alpha);
        let shelf = |cos: f64, turn: f64| {
            let (more, less, root) = (a + 1.0, a - 1.0, 2.0 * a.sqrt() * alpha);
            let b = [
                a * (more - less * cos + root),
                turn * 2.0 * a * (less - more * cos),
                a * (more - less * cos - root),
            ];
            (
                b,
                [
                    more + less * cos + root,
                    turn * -2.0 * (less + more * cos),
                    more + less * cos - root,
                ],
            )
        };
        let (b, [a0, a1, a2]) = match self.kind {
            FilterKind::Low => shelf(cos, 1.0),
            // A mirrored low shelf: the signs of the cosine and of the odd coefficients change.
            FilterKind::High => shelf(-cos, -1.0),
            FilterKind::Peak => (
                [1.0 + alpha * a, -2.0 * cos, 1.0 - alpha * a],
                [1.0 + alpha / a, -2.0 * cos, 1.0 - alpha / a],
            ),
        };
        [b[0] / a0, b[1] / a0, b[2] / a0, a1 / a0, a2 / a0]
    }

    /// Starts interpolating to the coefficients of a gain over `samples` samples. All filters
    /// between two stable ones are stable.
    fn aim(&mut self, gain_db: f32, samples: u32) {
        self.next = self.design(gain_db);
        for (slope, (next, now)) in self
            .slopes
            .iter_mut()
            .zip(self.next.iter().zip(&self.coefficients))
        {
            *slope = (next - now) / f64::from(samples);
        }
    }

    fn arrive(&mut self) {
        self.coefficients = self.next;
    }

    fn glide(&mut self, sound: &mut [f32]) {
        for sample in sound {
            for (coefficient, slope) in self.coefficients.iter_mut().zip(self.slopes) {
                *coefficient += slope;
            }
            *sample = self.tick(*sample);
        }
    }

    fn stay(&mut self, sound: &mut [f32]) {
        for sample in sound {
            *sample = self.tick(*sample);
        }
    }

    /// Filters one sample (transposed direct form II).
    fn tick(&mut self, sample: f32) -> f32 {
        let [b0, b1, b2, a1, a2] = self.coefficients;
        let [first, second] = self.state;
        // A non-finite value would persist in the state.
        let x = if sample.is_finite() {
            f64::from(sample)
        } else {
            0.0
        };
        let y = b0 * x + first;
        self.state = [b1 * x - a1 * y + second, b2 * x - a2 * y];
        y as f32
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const RATE: u32 = 48_000;

    fn sine(hz: f64, length: usize) -> Vec<f32> {
        (0..length)
            .map(|n| (0.3 * (TAU * hz * n as f64 / f64::from(RATE)).sin()) as f32)
            .collect()
    }

    /// Returns the gain of a sine in dB in the steady state.
    fn gain_db(bands: [f32; 3], hz: f64) -> f64 {
        let mut tone = Tone::new(RATE);
        tone.set(bands);
        let mut sound = sine(hz, 96_000);
        tone.process(&mut sound);
        let power = sound[48_000..]
            .iter()
            .map(|x| f64::from(*x).powi(2))
            .sum::<f64>()
            / 48_000.0;
        10.0 * (power / 0.045).log10()
    }

    fn assert_near(found: f64, expected: f64, tolerance: f64) {
        assert!(
            (found - expected).abs() < tolerance,
            "{found} dB for {expected} dB"
        );
    }

    #[test]
    fn bands_have_their_gains() {
        for db in [-12.0, -3.0, 6.0, 12.0_f32] {
            let expected = f64::from(db);
            assert_near(gain_db([db, 0.0, 0.0], 15.0), expected, 0.1);
            // A shelf has half its gain at the corner.
            assert_near(gain_db([db, 0.0, 0.0], 150.0), expected / 2.0, 0.02);
            assert_near(gain_db([db, 0.0, 0.0], 2_000.0), 0.0, 0.1);
            assert_near(gain_db([0.0, db, 0.0], 500.0), expected, 0.02);
            assert_near(gain_db([0.0, db, 0.0], 20.0), 0.0, 0.2);
            assert_near(gain_db([0.0, db, 0.0], 20_000.0), 0.0, 0.1);
            assert_near(gain_db([0.0, 0.0, db], 20_000.0), expected, 0.1);
            assert_near(gain_db([0.0, 0.0, db], 2_000.0), expected / 2.0, 0.02);
            assert_near(gain_db([0.0, 0.0, db], 100.0), 0.0, 0.1);
        }
        assert_near(gain_db([99.0, f32::NAN, -99.0], 15.0), 12.0, 0.1);
    }

    #[test]
    fn flat_gains_pass_samples_unchanged() {
        let mut tone = Tone::new(RATE);
        let sound = sine(1_000.0, 5_000);
        let mut output = sound.clone();
        tone.set([0.0; 3]);
        tone.process(&mut output);
        assert!(output == sound && tone.is_neutral());
        // Also after a change.
        tone.set([6.0, -3.0, 12.0]);
        tone.process(&mut output);
        tone.set([0.0; 3]);
        tone.process(&mut sine(80.0, 20_000));
        assert!(tone.is_neutral());
        let mut output = sound.clone();
        tone.process(&mut output);
        assert_eq!(output, sound);
    }

    #[test]
    fn changes_are_smooth_in_blocks_of_any_length() {
        let play = |block: usize| {
            let mut tone = Tone::new(RATE);
            let mut sound = sine(60.0, 24_000);
            for (turn, part) in sound.chunks_mut(4_000).enumerate() {
                tone.set(if turn % 2 == 0 {
                    [12.0, 12.0, 12.0]
                } else {
                    [-12.0, -12.0, -12.0]
                });
                part.chunks_mut(block).for_each(|block| tone.process(block));
            }
            sound
        };
        let expected = play(4_000);
        for block in [1, 7, 64] {
            assert_eq!(play(block), expected, "blocks of {block}");
        }
        // The second difference reveals steps.
        let bend = expected
            .windows(3)
            .map(|part| (part[0] - 2.0 * part[1] + part[2]).abs())
            .fold(0.0, f32::max);
        // A gain change over the full range in 20 ms has a corner of about 0.01; 60 steps would
        // each leave 0.06.
        assert!(bend < 0.015, "{bend}");
    }
}
