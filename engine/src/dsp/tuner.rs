//! Pitch of a single string, for a tuner.
//!
//! [`TunerPitch`] is slower than [`pitch`](super::pitch) but exact to a fraction of a cent, and
//! reaches down to the low B of a bass. It works in two steps. The normalised square difference
//! function of P. McLeod and G. Wyvill, "A smarter way to find pitch", ICMC 2005, over the last 100
//! ms tells which note it is. Then the phases of the first partials are compared between two
//! windows: each is a whole number of periods long, so that the partials do not disturb one
//! another. The partials of a string are sharp by its stiffness, `f(n) = n f √(1 + B n²)` (H.
//! Fletcher, "Normal vibration frequencies of a stiff piano string", JASA 36, 1964), so a fit of
//! pitch and B returns the frequency of the first partial, which is what strings are tuned to.

use std::f64::consts::{PI, TAU};

use realfft::num_complex::Complex;

/// Range of the pitch, Hz: from below B0 to above E6.
const RANGE_HZ: (f64, f64) = (29.0, 1_450.0);
/// Least sample rate after decimation, Hz.
const RATE_HZ: f64 = 11_000.0;
/// Length of the decimation filter in output samples, and its corner as a part of the output rate.
const TAPS: usize = 16;
const CORNER: f64 = 0.27;
/// Corner of the high-pass against rumble, Hz.
const RUMBLE_HZ: f64 = 15.0;
/// Sound that is kept, s.
const HISTORY_S: f64 = 0.45;
/// Window of the first step, s, and the least length of a note.
const COARSE_S: f64 = 0.100;
const SHORTEST_S: f64 = 0.040;
/// Windows of the second step together: least and largest length, s, and length in periods between
/// these.
const FINE_S: (f64, f64) = (0.14, 0.40);
const FINE_PERIODS: f64 = 12.0;
/// Least number of periods in one of its windows: fewer do not separate the partials.
const WINDOW_PERIODS: f64 = 3.0;
/// Length of the blocks in which a note's beginning is looked for, s, and number of quiet ones
/// before it: longer than the longest period.
const BLOCK_S: f64 = 0.005;
const QUIET_BLOCKS: usize = 7;
/// Energy of a quiet block relative to the loudest one after it.
const QUIET: f32 = 0.04;
/// Mean square below which nothing sounds: −66 dBFS.
const SILENCE: f32 = 2.5e-7;
/// Least height of the function at the period.
const CLARITY: f64 = 0.8;
/// Height relative to the highest peak from which the first peak is the period.
const PEAK_THRESHOLD: f64 = 0.9;
/// Partials that are fitted, their least level relative to the strongest, and the largest
/// stiffness.
const PARTIALS: usize = 6;
const LEAST_PARTIAL: f64 = 0.02;
const MAX_STIFFNESS: f64 = 2e-3;
/// Independent partial sums of a product.
const LANES: usize = 16;
/// Difference at which another note is played, semitones; the second step must not reach back into
/// the last one.
const OTHER_NOTE_SEMITONES: f64 = 0.7;

/// Pitch of the latest sound.
///
/// # Examples
/// ```
/// use std::f32::consts::TAU;
///
/// use ondes_engine::dsp::tuner::TunerPitch;
///
/// let sine: Vec<f32> = (0..9_600).map(|n| 0.1 * (TAU * 82.41 * n as f32 / 48_000.0).sin()).collect();
/// let mut pitch = TunerPitch::new(48_000.0);
/// pitch.push(&sine);
/// assert!((pitch.frequency_hz().unwrap() - 82.41).abs() < 0.02);
/// ```
pub struct TunerPitch {
    decimator: Decimator,
    /// Sample rate of the history, Hz.
    rate_hz: f64,
    /// Latest samples, at most twice of what is kept.
    history: Vec<f32>,
    kept: usize,
    /// The note of the last call, and for how many samples it has been played.
    last_hz: f64,
    stable: usize,
}

impl TunerPitch {
    /// Creates a detector for a sample rate in Hz.
    ///
    /// # Panics
    /// If the rate is not above 0.
    #[must_use]
    pub fn new(sample_rate_hz: f64) -> Self {
        assert!(
            sample_rate_hz > 0.0,
            "sample rate out of range: {sample_rate_hz}"
        );
        let factor = ((sample_rate_hz / RATE_HZ) as usize).max(1);
        let rate_hz = sample_rate_hz / factor as f64;
        let kept = (HISTORY_S * rate_hz) as usize;
        let history = Vec::with_capacity(2 * kept);
        Self {
            decimator: Decimator::new(factor, rate_hz),
            rate_hz,
            history,
            kept,
            last_hz: 0.0,
            stable: 0,
        }
    }

    /// Takes the next samples.
    pub fn push(&mut self, samples: &[f32]) {
        let before = self.history.len();
        for &sample in samples {
            if let Some(sample) = self.decimator.next(sample) {
                self.history.push(sample);
            }
        }
        self.stable = self.stable.saturating_add(self.history.len() - before);
        if self.history.len() > 2 * self.kept {
            self.history.drain(..self.history.len() - self.kept);
        }
    }

    /// Forgets all sound.
    pub fn clear(&mut self) {
        self.history.clear();
        self.decimator.clear();
        (self.last_hz, self.stable) = (0.0, 0);
    }

    /// Returns the frequency of the first partial in Hz; `None` if there is no note.
    pub fn frequency_hz(&mut self) -> Option<f64> {
        let coarse = self.coarse();
        let Some((coarse, available)) = coarse else {
            self.stable = 0;
            return None;
        };
        if 12.0 * (coarse / self.last_hz).log2().abs() > OTHER_NOTE_SEMITONES {
            self.stable = self.samples(COARSE_S);
        }
        self.last_hz = coarse;
        let fine = self
            .fine(coarse, available.min(self.stable))
            .unwrap_or(coarse);
        Some(fine)
    }

    fn samples(&self, seconds: f64) -> usize {
        (seconds * self.rate_hz) as usize
    }

    /// Returns the frequency to about ten cents, and for how many samples there has been sound.
    fn coarse(&self) -> Option<(f64, usize)> {
        let available = self.sounding()?;
        let window = available.min(self.samples(COARSE_S));
        let sound = &self.history[self.history.len() - window..];
        let longest = ((self.rate_hz / RANGE_HZ.0) as usize).min(window / 2);
        let function = square_difference(sound, longest + 1);
        let shortest = ((self.rate_hz / RANGE_HZ.1) as usize).max(1);
        let lag = period(&function, shortest)?;
        Some((self.rate_hz / lag, available))
    }

    /// Returns the number of samples since the last silence; `None` during silence.
    fn sounding(&self) -> Option<usize> {
        let block = self.samples(BLOCK_S).max(1);
        let sound = &self.history[self.history.len().saturating_sub(self.kept)..];
        let (mut loudest, mut quiet, mut until) = (0.0, 0, 0);
        for (index, block) in sound.rchunks_exact(block).enumerate() {
            let energy = block.iter().map(|x| x * x).sum::<f32>() / block.len() as f32;
            loudest = f32::max(loudest, energy);
            if energy < (QUIET * loudest).max(SILENCE) {
                quiet += 1;
            } else {
                (quiet, until) = (0, index + 1);
            }
            if quiet == QUIET_BLOCKS {
                break;
            }
        }
        let available = until * block;
        (available >= self.samples(SHORTEST_S)).then_some(available)
    }

    /// Returns the frequency of the first partial by the phases of the partials, if the last
    /// `available` samples are enough for it.
    fn fine(&self, coarse: f64, available: usize) -> Option<f64> {
        let period = self.rate_hz / coarse;
        let wanted =
            (FINE_PERIODS * period).clamp(FINE_S.0 * self.rate_hz, FINE_S.1 * self.rate_hz);
        let whole = wanted.min(available as f64);
        let window = period * (0.6 * whole / period).floor().max(WINDOW_PERIODS);
        let shift = (whole - window).floor();
        if shift < 0.4 * period {
            return None;
        }
        let first = &self.history[self.history.len() - (window + shift) as usize..];
        let hann: Vec<f64> = (0..window as usize)
            .map(|n| 0.5 - 0.5 * (TAU * (n as f64 + 0.5) / window).cos())
            .collect();
        let windowed = |sound: &[f32]| {
            sound
                .iter()
                .zip(&hann)
                .map(|(x, hann)| f64::from(*x) * hann)
                .collect()
        };
        let windows: [Vec<f64>; 2] = [first, &first[shift as usize..]].map(windowed);
        let mut fit = StringFit {
            squared: (coarse / self.rate_hz).powi(2),
            ..StringFit::default()
        };
        for n in 1..=PARTIALS {
            let expected = fit.partial(n);
            if expected > CORNER {
                break;
            }
            let [early, late] = [0, 1].map(|index| component(&windows[index], expected));
            // The phase by which the second window differs from what is expected.
            let phase = (late * early.conj()).arg() - TAU * expected * shift;
            let wrapped = phase - TAU * (phase / TAU).round();
            fit.add(n, expected + wrapped / (TAU * shift), early.norm());
        }
        let found = self.rate_hz * fit.partial(1);
        (12.0 * (found / coarse).log2().abs() < OTHER_NOTE_SEMITONES).then_some(found)
    }
}

/// Returns the Fourier component of `sound` at `frequency`, in cycles per sample.
fn component(sound: &[f64], frequency: f64) -> Complex<f64> {
    let step = Complex::from_polar(1.0, -TAU * frequency);
    let (mut turn, mut sum) = (Complex::from(1.0), Complex::default());
    for sample in sound {
        sum += turn * sample;
        turn *= step;
    }
    sum
}

/// Weighted fit of `(f(n) / n)² = squared + slope n²`.
#[derive(Default)]
struct StringFit {
    squared: f64,
    slope: f64,
    strongest: f64,
    /// Weight, and weighted sums of n², n⁴, y and n² y.
    sums: [f64; 5],
    partials: usize,
}

impl StringFit {
    /// Returns the frequency of a partial.
    fn partial(&self, n: usize) -> f64 {
        let n = n as f64;
        n * (self.squared + self.slope * n * n).sqrt()
    }

    /// Adds a measured partial, unless it is too weak.
    fn add(&mut self, n: usize, frequency: f64, amplitude: f64) {
        self.strongest = self.strongest.max(amplitude);
        let n = n as f64;
        let y = (frequency / n).powi(2);
        let off_semitones = 6.0 * (y / (self.squared + self.slope * n * n)).log2().abs();
        if amplitude < LEAST_PARTIAL * self.strongest
            || off_semitones.is_nan()
            || off_semitones >= 0.5
        {
            return;
        }
        // Noise moves the phase by the inverse of the amplitude; the same phase is less of a higher
        // frequency.
        let weight = (amplitude * n).powi(2);
        let terms = [1.0, n.powi(2), n.powi(4), y, n * n * y];
        self.sums
            .iter_mut()
            .zip(terms)
            .for_each(|(sum, term)| *sum += weight * term);
        self.partials += 1;
        let [ones, squares, fourths, ys, products] = self.sums;
        let determinant = ones * fourths - squares * squares;
        self.slope = if self.partials > 1 && determinant > 0.0 {
            let slope = (ones * products - squares * ys) / determinant;
            slope.clamp(0.0, MAX_STIFFNESS * ys / ones)
        } else {
            0.0
        };
        self.squared = (ys - self.slope * squares) / ones;
    }
}

/// Returns the normalised square difference function, `[lag]`; 1 at the period of a clean tone.
fn square_difference(sound: &[f32], lags: usize) -> Vec<f32> {
    let mean = sound.iter().sum::<f32>() / sound.len() as f32;
    let sound: Vec<f32> = sound.iter().map(|x| x - mean).collect();
    let mut norm = 2.0 * sound.iter().map(|x| x * x).sum::<f32>();
    let last = sound.len() - 1;
    let mut value = |lag: usize| {
        if lag > 0 {
            norm -= sound[lag - 1].powi(2) + sound[last + 1 - lag].powi(2);
        }
        2.0 * dot(&sound[..=last - lag], &sound[lag..]) / norm
    };
    (0..lags).map(&mut value).collect()
}

/// Returns the sum of products, in independent parts that the compiler vectorises.
fn dot(a: &[f32], b: &[f32]) -> f32 {
    let ((a, a_rest), (b, b_rest)) = (a.as_chunks::<LANES>(), b.as_chunks::<LANES>());
    let mut lanes = [0.0; LANES];
    for (a, b) in a.iter().zip(b) {
        (0..LANES).for_each(|lane| lanes[lane] += a[lane] * b[lane]);
    }
    let rest: f32 = a_rest.iter().zip(b_rest).map(|(a, b)| a * b).sum();
    lanes.iter().sum::<f32>() + rest
}

/// Returns the lag of the first peak that is nearly as high as the highest; each is the highest of
/// a positive run.
fn period(function: &[f32], shortest: usize) -> Option<f64> {
    let begin = function.iter().position(|value| *value <= 0.0)?;
    let peaks = || {
        let runs = function[begin..].chunk_by(|a, b| (*a > 0.0) == (*b > 0.0));
        let mut start = begin;
        runs.filter_map(move |run| {
            let at = start;
            start += run.len();
            let highest = (0..run.len()).max_by(|a, b| run[*a].total_cmp(&run[*b]))?;
            Some(at + highest).filter(|_| run[highest] > 0.0)
        })
    };
    let inner = |lag: &usize| {
        *lag >= shortest && *lag + 1 < function.len() && function[*lag + 1] <= function[*lag]
    };
    let peaks = || peaks().filter(inner).map(|lag| vertex(function, lag));
    let highest = peaks().map(|(_, height)| height).fold(0.0, f64::max);
    let (lag, _) = peaks().find(|(_, height)| *height >= PEAK_THRESHOLD * highest)?;
    (highest >= CLARITY).then_some(lag)
}

/// Returns lag and height of the parabola through a peak and its neighbours.
fn vertex(function: &[f32], lag: usize) -> (f64, f64) {
    let [before, at, after] = [lag - 1, lag, lag + 1].map(|lag| f64::from(function[lag]));
    let curvature = before - 2.0 * at + after;
    let offset = if curvature < 0.0 {
        (0.5 * (before - after) / curvature).clamp(-0.5, 0.5)
    } else {
        0.0
    };
    (lag as f64 + offset, at - 0.25 * (before - after) * offset)
}

/// Low-pass and decimation by a whole number, and a high-pass.
struct Decimator {
    factor: usize,
    taps: Vec<f32>,
    /// The last samples, stored twice, so that any window is contiguous.
    delayed: Vec<f32>,
    position: usize,
    until: usize,
    pole: f32,
    previous: f32,
    high_passed: f32,
}

impl Decimator {
    fn new(factor: usize, rate_hz: f64) -> Self {
        let length = if factor == 1 { 1 } else { TAPS * factor };
        let tap = |n: usize| {
            let at = (n as f64 + 0.5) / factor as f64 - 0.5 * TAPS as f64;
            let window = 0.5 + 0.5 * (TAU * at / TAPS as f64).cos();
            (PI * 2.0 * CORNER * at).sin() / (PI * at) / factor as f64 * window
        };
        let taps = if factor == 1 {
            vec![1.0]
        } else {
            (0..length).map(|n| tap(n) as f32).collect()
        };
        let pole = (-TAU * RUMBLE_HZ / rate_hz).exp() as f32;
        let delayed = vec![0.0; 2 * length];
        Self {
            factor,
            taps,
            delayed,
            position: 0,
            until: factor,
            pole,
            previous: 0.0,
            high_passed: 0.0,
        }
    }

    fn clear(&mut self) {
        self.delayed.fill(0.0);
        (self.until, self.previous, self.high_passed) = (self.factor, 0.0, 0.0);
    }

    fn next(&mut self, sample: f32) -> Option<f32> {
        // A value that is not finite would stay in the recursion.
        let sample = if sample.is_finite() { sample } else { 0.0 };
        let length = self.taps.len();
        self.delayed[self.position] = sample;
        self.delayed[self.position + length] = sample;
        self.position = if self.position + 1 == length {
            0
        } else {
            self.position + 1
        };
        self.until -= 1;
        if self.until > 0 {
            return None;
        }
        self.until = self.factor;
        let run = &self.delayed[self.position..self.position + length];
        let low: f32 = run
            .iter()
            .zip(&self.taps)
            .map(|(value, tap)| value * tap)
            .sum();
        self.high_passed = low - self.previous + self.pole * self.high_passed;
        self.previous = low;
        Some(self.high_passed)
    }
}

#[cfg(test)]
mod tests;
