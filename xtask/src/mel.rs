//! A mel spectrogram: how much of which frequency there is when, in steps as the ear takes them.

use realfft::RealFftPlanner;

/// What is quieter is shown as if it were so quiet, dB.
pub const FLOOR_DB: f32 = -120.0;

/// HTK's mel scale.
pub fn mel(hz: f32) -> f32 {
    2595.0 * (1.0 + hz / 700.0).log10()
}

/// Its inverse.
fn hz(mel: f32) -> f32 {
    700.0 * (10f32.powf(mel / 2595.0) - 1.0)
}

/// Triangles over the bins of a spectrum, as wide as mel steps are.
pub struct FilterBank {
    /// For each band the first bin and the weights from there on.
    bands: Vec<(usize, Vec<f32>)>,
}

impl FilterBank {
    /// Bands whose outermost corners are at `low` and `high` Hz, for spectra of `size` points at `rate` Hz.
    pub fn new(bands: usize, low: f32, high: f32, size: usize, rate: u32) -> Self {
        let bin_hz = rate as f32 / size as f32;
        let corner = |index: usize| hz(mel(low) + (mel(high) - mel(low)) * index as f32 / (bands + 1) as f32);
        let band = |index| {
            let [left, middle, right] = [corner(index), corner(index + 1), corner(index + 2)];
            let first = (left / bin_hz).ceil() as usize;
            let last = ((right / bin_hz) as usize).min(size / 2);
            let weight = |bin: usize| {
                let at = bin as f32 * bin_hz;
                ((at - left) / (middle - left)).min((right - at) / (right - middle)).max(0.0)
            };
            (first, (first..=last).map(weight).collect())
        };
        Self { bands: (0..bands).map(band).collect() }
    }

    /// Power in each band.
    fn apply<'a>(&'a self, powers: &'a [f32]) -> impl Iterator<Item = f32> + 'a {
        let band = |(first, weights): &(usize, Vec<f32>)| {
            powers[*first..].iter().zip(weights).map(|(power, weight)| power * weight).sum()
        };
        self.bands.iter().map(band)
    }
}

/// Points of the spectra, for the mel steps at low frequencies are narrow: 12 Hz at 48 kHz.
pub const FFT_SIZE: usize = 4096;

/// `columns` spectra at even distances over a sound, in dB of a full-scale sine; `[column][band]`, from low to high.
pub fn spectrogram(samples: &[f32], columns: usize, bank: &FilterBank) -> Vec<Vec<f32>> {
    let fft = RealFftPlanner::<f32>::new().plan_fft_forward(FFT_SIZE);
    let window: Vec<f32> =
        (0..FFT_SIZE).map(|n| 0.5 - 0.5 * (std::f32::consts::TAU * n as f32 / FFT_SIZE as f32).cos()).collect();
    // A sine of amplitude 1 has a bin of half the window's sum, and the window spreads 3/2 of that power over bins.
    let full_scale = 1.5 * (FFT_SIZE as f32 / 4.0).powi(2);
    let (mut input, mut output) = (fft.make_input_vec(), fft.make_output_vec());
    let column = |index: usize| {
        let middle = (index as f64 + 0.5) / columns as f64 * samples.len() as f64;
        let start = middle as isize - FFT_SIZE as isize / 2;
        for (n, (value, weight)) in input.iter_mut().zip(&window).enumerate() {
            let at = usize::try_from(start + n as isize).ok();
            *value = weight * at.and_then(|at| samples.get(at)).copied().unwrap_or(0.0);
        }
        fft.process(&mut input, &mut output).expect("the vectors are of the FFT's own making");
        let powers: Vec<f32> = output.iter().map(|bin| bin.norm_sqr() / full_scale).collect();
        bank.apply(&powers).map(|power| (10.0 * power.max(1e-30).log10()).max(FLOOR_DB)).collect()
    };
    (0..columns).map(column).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    const RATE: u32 = 48_000;

    #[test]
    fn mel_scale() {
        assert!((mel(1000.0) - 1000.0).abs() < 0.1);
        for frequency in [0.0, 50.0, 440.0, 16_000.0] {
            assert!((hz(mel(frequency)) - frequency).abs() < 0.05);
        }
    }

    #[test]
    fn triangles_leave_no_gap() {
        let bank = FilterBank::new(160, 40.0, 16_000.0, FFT_SIZE, RATE);
        let mut sums = vec![0.0; FFT_SIZE / 2 + 1];
        for (first, weights) in &bank.bands {
            assert!(weights.iter().any(|&weight| weight > 0.0), "a band from bin {first} hears nothing");
            weights.iter().enumerate().for_each(|(index, weight)| sums[first + index] += weight);
        }
        // Between the middles of the first band and the last, the triangles sum to one.
        let bin = |frequency: f32| (frequency * FFT_SIZE as f32 / RATE as f32) as usize;
        assert!(sums[bin(80.0)..bin(15_000.0)].iter().all(|sum| (sum - 1.0).abs() < 1e-2));
    }

    #[test]
    fn a_sine_is_where_and_as_loud_as_it_is() {
        let bank = FilterBank::new(40, 40.0, 16_000.0, FFT_SIZE, RATE);
        let samples: Vec<f32> =
            (0..RATE).map(|n| 0.1 * (std::f32::consts::TAU * 3000.0 * n as f32 / RATE as f32).sin()).collect();
        let columns = spectrogram(&samples, 9, &bank);
        let step = (mel(16_000.0) - mel(40.0)) / 41.0;
        let nearest = ((mel(3000.0) - mel(40.0)) / step - 1.0).round() as usize;
        for column in &columns {
            let loudest = (0..40).max_by(|&a, &b| column[a].total_cmp(&column[b])).unwrap();
            assert_eq!(loudest, nearest);
            let power: f32 = column.iter().map(|db| 10f32.powf(db / 10.0)).sum();
            assert!((10.0 * power.log10() + 20.0).abs() < 0.5);
        }
        assert!(spectrogram(&[0.0; 10], 2, &bank).iter().flatten().all(|&db| db == FLOOR_DB));
    }
}
