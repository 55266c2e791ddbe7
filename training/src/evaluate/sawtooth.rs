//! Baseline: a sawtooth with the pitch, loudness and mean spectrum of the recordings.

use ondes_engine::Kernels;
use ondes_engine::dsp::analysis::analyse;
use ondes_engine::dsp::convolution::Convolver;
use ondes_engine::dsp::level::db_to_amplitude;
use ondes_kernels::HarmonicFrame;
use realfft::num_complex::Complex32;
use realfft::{RealFftPlanner, RealToComplex};

use crate::data::{FeatureRate, Features};

/// Length of the Fourier transforms of the mean spectra and of the filter, samples.
const FFT: usize = 2048;
/// Most harmonics of the sawtooth.
const PARTIALS: usize = 400;
/// Limits of the gain of a frame, dB.
const LEVEL_LIMITS_DB: (f32, f32) = (-100.0, 60.0);

/// Baseline for a set of recordings.
pub struct SawtoothBaseline {
    rate: FeatureRate,
    /// Filter from the sawtooth's mean spectrum to the recordings'; linear phase, centred at
    /// `FFT / 2`.
    filter: Vec<f32>,
}

impl SawtoothBaseline {
    /// Computes the filter from the mean spectra of the recordings and of the sawtooth.
    #[must_use]
    pub fn new(files: &[Features], rate: FeatureRate) -> Self {
        let mut recordings = MeanSpectrum::new();
        let mut sawtooths = MeanSpectrum::new();
        for file in files {
            recordings.add(file.audio());
            sawtooths.add(&match_loudness(&sawtooth(file), file));
        }
        let gains: Vec<f32> = recordings
            .power
            .iter()
            .zip(&sawtooths.power)
            .map(|(a, b)| (a / (b + 1e-12)).sqrt() as f32)
            .collect();
        let mut spectrum: Vec<Complex32> = gains
            .iter()
            .map(|&gain| Complex32::new(gain, 0.0))
            .collect();
        let mut response = vec![0.0; FFT];
        spectrum[0] = Complex32::default();
        spectrum[FFT / 2] = Complex32::default();
        RealFftPlanner::new()
            .plan_fft_inverse(FFT)
            .process(&mut spectrum, &mut response)
            .expect("lengths as planned");
        response.rotate_right(FFT / 2);
        let window =
            |tap: usize| 0.5 - 0.5 * (std::f32::consts::TAU * tap as f32 / FFT as f32).cos();
        let filter = response
            .iter()
            .enumerate()
            .map(|(tap, value)| window(tap) * value / FFT as f32);
        Self {
            rate,
            filter: filter.collect(),
        }
    }

    /// Renders the sawtooth with the pitch and loudness of a file, aligned with it and of its
    /// length.
    #[must_use]
    pub fn replay(&self, file: &Features) -> Vec<f32> {
        let mut sound = match_loudness(&sawtooth(file), file);
        sound.extend(vec![0.0; FFT]);
        sound.resize(sound.len().next_multiple_of(self.rate.hop), 0.0);
        let mut convolver = Convolver::new(&self.filter, self.rate.hop, Kernels::detect());
        let mut filtered = vec![0.0; sound.len()];
        let blocks = sound
            .chunks_exact(self.rate.hop)
            .zip(filtered.chunks_exact_mut(self.rate.hop));
        blocks.for_each(|(x, y)| convolver.process(x, y));
        filtered.drain(..FFT / 2);
        filtered.truncate(file.audio().len());
        match_loudness(&filtered, file)
    }
}

/// Renders a band-limited sawtooth with the pitch of a file.
fn sawtooth(file: &Features) -> Vec<f32> {
    let (hop, sample_rate) = (file.rate.hop, f64::from(file.rate.sample_rate));
    let step = |pitch: f32| 440.0 * ((f64::from(pitch) - 69.0) / 12.0).exp2() / sample_rate;
    let amplitudes = |step: f64| -> Vec<f32> {
        (1..=PARTIALS)
            .map(|h| {
                if h as f64 * step < 0.5 {
                    1.0 / h as f32
                } else {
                    0.0
                }
            })
            .collect()
    };
    let kernels = Kernels::detect();
    let mut sound = vec![0.0; file.audio().len()];
    let mut phase = 0.0;
    for (pair, out) in file.pitch().windows(2).zip(sound.chunks_exact_mut(hop)) {
        let (step_start, step_end) = (step(pair[0]), step(pair[1]));
        let (start, end) = (amplitudes(step_start), amplitudes(step_end));
        kernels.harmonics(
            HarmonicFrame {
                phase,
                step_start,
                step_end,
                start: &start,
                end: &end,
            },
            out,
        );
        phase = HarmonicFrame::phase_after(phase, step_start, step_end, hop);
    }
    sound
}

/// Scales each frame of a sound to the loudness of a file, with linear interpolation between
/// frames.
fn match_loudness(sound: &[f32], file: &Features) -> Vec<f32> {
    let hop = file.rate.hop;
    let frames = analyse(sound, f64::from(file.rate.sample_rate), hop);
    let targets = file.loudness().iter().zip(&frames);
    let gains: Vec<f32> = targets
        .map(|(&target, frame)| {
            let change = (target - frame.loudness).clamp(LEVEL_LIMITS_DB.0, LEVEL_LIMITS_DB.1);
            db_to_amplitude(change)
        })
        .collect();
    let gain = |sample: usize| {
        let (frame, fraction) = (sample / hop, (sample % hop) as f32 / hop as f32);
        let (here, next) = (gains[frame], gains[(frame + 1).min(gains.len() - 1)]);
        here + fraction * (next - here)
    };
    sound
        .iter()
        .enumerate()
        .map(|(sample, value)| value * gain(sample))
        .collect()
}

/// Mean power spectrum.
struct MeanSpectrum {
    transform: std::sync::Arc<dyn RealToComplex<f32>>,
    /// `[bin]`
    power: Vec<f64>,
}

impl MeanSpectrum {
    fn new() -> Self {
        Self {
            transform: RealFftPlanner::new().plan_fft_forward(FFT),
            power: vec![0.0; FFT / 2 + 1],
        }
    }

    /// Adds a sound. Only ratios of spectra over equal lengths are used, so the sum is not divided
    /// by the number of frames.
    fn add(&mut self, sound: &[f32]) {
        let mut bins = self.transform.make_output_vec();
        for frame in sound.windows(FFT).step_by(FFT / 2) {
            let window =
                |n: usize| 0.5 - 0.5 * (std::f32::consts::TAU * n as f32 / FFT as f32).cos();
            let mut samples: Vec<f32> = frame
                .iter()
                .enumerate()
                .map(|(n, value)| window(n) * value)
                .collect();
            self.transform
                .process(&mut samples, &mut bins)
                .expect("lengths as planned");
            self.power
                .iter_mut()
                .zip(&bins)
                .for_each(|(sum, bin)| *sum += f64::from(bin.norm_sqr()));
        }
    }
}
