//! Mel spectrogram.

use std::f32::consts::TAU;

/// Lowest value of a spectrogram, dB.
pub const FLOOR_DB: f32 = -120.0;

/// Length of the FFT. The mel scale is finest at low frequencies: 4096 points resolve 12 Hz at 48
/// kHz.
pub const FFT_SIZE: usize = 4096;

/// Converts Hz to mel (HTK's formula).
pub fn mel(hz: f32) -> f32 {
    2595.0 * (1.0 + hz / 700.0).log10()
}

/// Converts mel to Hz.
fn hz(mel: f32) -> f32 {
    700.0 * (10f32.powf(mel / 2595.0) - 1.0)
}

/// Triangular filters over the bins of a spectrum, spaced evenly in mel.
pub struct FilterBank {
    /// For each band, the first bin and the weights from there on.
    bands: Vec<(usize, Vec<f32>)>,
}

impl FilterBank {
    /// Spaces `bands` filters evenly from `low_hz` to `high_hz`, for spectra of `size` points at
    /// `sample_rate` Hz.
    pub fn new(bands: usize, low_hz: f32, high_hz: f32, size: usize, sample_rate: u32) -> Self {
        let bin_hz = sample_rate as f32 / size as f32;
        let (low, high) = (mel(low_hz), mel(high_hz));
        let corner = |index: usize| hz(low + (high - low) * index as f32 / (bands + 1) as f32);
        let band = |index| {
            let [left, middle, right] = [corner(index), corner(index + 1), corner(index + 2)];
            // A band above half the sample rate has no bins.
            let first = ((left / bin_hz).ceil() as usize).min(size / 2 + 1);
            let last = ((right / bin_hz) as usize).min(size / 2);
            let weight = |bin: usize| {
                let bin_centre = bin as f32 * bin_hz;
                ((bin_centre - left) / (middle - left))
                    .min((right - bin_centre) / (right - middle))
                    .max(0.0)
            };
            (first, (first..=last).map(weight).collect())
        };
        Self {
            bands: (0..bands).map(band).collect(),
        }
    }

    /// Returns the power in each band.
    fn apply<'a>(&'a self, powers: &'a [f32]) -> impl Iterator<Item = f32> + 'a {
        let band = |(first, weights): &(usize, Vec<f32>)| {
            powers[*first..]
                .iter()
                .zip(weights)
                .map(|(power, weight)| power * weight)
                .sum()
        };
        self.bands.iter().map(band)
    }
}

/// Returns `columns` spectra at even distances, in dB of a full-scale sine: `[column][band]`, from
/// low to high.
pub fn spectrogram(samples: &[f32], columns: usize, bank: &FilterBank) -> Vec<Vec<f32>> {
    let fft = Fft::new();
    let window: Vec<f32> = (0..FFT_SIZE)
        .map(|n| 0.5 - 0.5 * (TAU * n as f32 / FFT_SIZE as f32).cos())
        .collect();
    // A sine of amplitude 1 has a bin of half the window's sum, and the window spreads 3/2 of that
    // power over bins.
    let full_scale = 1.5 * (FFT_SIZE as f32 / 4.0).powi(2);
    let column = |index: usize| {
        let middle = (index as f64 + 0.5) / columns as f64 * samples.len() as f64;
        let start = middle as isize - FFT_SIZE as isize / 2;
        let sample = |n: usize| {
            usize::try_from(start + n as isize)
                .ok()
                .and_then(|at| samples.get(at))
        };
        let input: Vec<f32> = (0..FFT_SIZE)
            .map(|n| window[n] * sample(n).copied().unwrap_or(0.0))
            .collect();
        let powers: Vec<f32> = fft
            .powers(&input)
            .into_iter()
            .map(|power| power / full_scale)
            .collect();
        bank.apply(&powers)
            .map(|power| (10.0 * power.max(1e-30).log10()).max(FLOOR_DB))
            .collect()
    };
    (0..columns).map(column).collect()
}

/// Radix-2 FFT of [`FFT_SIZE`] points. A picture needs no faster one, and a library would take
/// longer to build than to save.
struct Fft {
    /// `exp(−2πi·n / FFT_SIZE)` as `[re, im]`, for the first half of the circle.
    twiddles: Vec<[f32; 2]>,
}

impl Fft {
    fn new() -> Self {
        let twiddle = |n: usize| {
            let (sin, cos) = (-TAU * n as f32 / FFT_SIZE as f32).sin_cos();
            [cos, sin]
        };
        Self {
            twiddles: (0..FFT_SIZE / 2).map(twiddle).collect(),
        }
    }

    /// Returns the power of each bin up to half the sample rate.
    fn powers(&self, input: &[f32]) -> Vec<f32> {
        let reversed = |n: usize| n.reverse_bits() >> (usize::BITS - FFT_SIZE.trailing_zeros());
        let mut values: Vec<[f32; 2]> = (0..FFT_SIZE).map(|n| [input[reversed(n)], 0.0]).collect();
        let mut half = 1;
        while half < FFT_SIZE {
            for butterflies in values.chunks_exact_mut(2 * half) {
                let (even, odd) = butterflies.split_at_mut(half);
                let twiddles = self.twiddles.iter().step_by(FFT_SIZE / 2 / half);
                for ((a, b), w) in even.iter_mut().zip(odd).zip(twiddles) {
                    let turned = [w[0] * b[0] - w[1] * b[1], w[0] * b[1] + w[1] * b[0]];
                    *b = [a[0] - turned[0], a[1] - turned[1]];
                    *a = [a[0] + turned[0], a[1] + turned[1]];
                }
            }
            half *= 2;
        }
        values[..=FFT_SIZE / 2]
            .iter()
            .map(|[re, im]| re * re + im * im)
            .collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const RATE: u32 = 48_000;

    #[test]
    fn mel_and_hz_are_inverse() {
        assert!((mel(1000.0) - 1000.0).abs() < 0.1);
        for frequency in [0.0, 50.0, 440.0, 16_000.0] {
            assert!((hz(mel(frequency)) - frequency).abs() < 0.05);
        }
    }

    #[test]
    fn filters_sum_to_one() {
        let bank = FilterBank::new(160, 40.0, 16_000.0, FFT_SIZE, RATE);
        let mut sums = vec![0.0; FFT_SIZE / 2 + 1];
        for (first, weights) in &bank.bands {
            assert!(
                weights.iter().any(|&weight| weight > 0.0),
                "the band at bin {first} has no weight"
            );
            weights
                .iter()
                .enumerate()
                .for_each(|(index, weight)| sums[first + index] += weight);
        }
        // Between the middles of the first band and the last, the triangles sum to one.
        let bin = |frequency: f32| (frequency * FFT_SIZE as f32 / RATE as f32) as usize;
        assert!(
            sums[bin(80.0)..bin(15_000.0)]
                .iter()
                .all(|sum| (sum - 1.0).abs() < 1e-2)
        );
    }

    #[test]
    fn a_sine_has_its_frequency_and_level() {
        let bank = FilterBank::new(40, 40.0, 16_000.0, FFT_SIZE, RATE);
        let samples: Vec<f32> = (0..RATE)
            .map(|n| 0.1 * (std::f32::consts::TAU * 3000.0 * n as f32 / RATE as f32).sin())
            .collect();
        let columns = spectrogram(&samples, 9, &bank);
        let step = (mel(16_000.0) - mel(40.0)) / 41.0;
        let nearest = ((mel(3000.0) - mel(40.0)) / step - 1.0).round() as usize;
        for column in &columns {
            let loudest = (0..40)
                .max_by(|&a, &b| column[a].total_cmp(&column[b]))
                .unwrap();
            assert_eq!(loudest, nearest);
            let power: f32 = column.iter().map(|db| 10f32.powf(db / 10.0)).sum();
            assert!((10.0 * power.log10() + 20.0).abs() < 0.5);
        }
        assert!(
            spectrogram(&[0.0; 10], 2, &bank)
                .iter()
                .flatten()
                .all(|&db| db == FLOOR_DB)
        );
        // At a low sample rate the upper bands stay empty.
        let bank = FilterBank::new(40, 40.0, 16_000.0, FFT_SIZE, 16_000);
        for column in spectrogram(&samples, 9, &bank) {
            assert!(column[10] > -30.0 && column[39] == FLOOR_DB);
        }
    }
}
