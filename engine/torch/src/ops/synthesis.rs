//! Ops that make sound, with gradients.
//!
//! An oscillator's sines do not depend on weights, only its amplitudes do. The sines of a frame are
//! one factor of a batched matrix product; the other holds the amplitudes at both ends of the
//! frame. Only the sines exist per harmonic at the audio rate.

use ondes_engine::Kernels;
use ondes_engine::dsp::filtered_noise::NoiseFilter;
use ondes_engine::dsp::noise;
use ondes_engine::model::Distribution;
use tch::{Device, Kind, Tensor};

/// Computes [`ondes_engine::model::Op::Harmonic`] from `pitch [B, 1, F]` in semitones,
/// `amplitude [B, 1, F]`, `distribution [B, H, F]`; returns `[B, 1, F · hop]`.
pub(crate) fn harmonic(
    pitch: &Tensor,
    amplitude: &Tensor,
    distribution: &Tensor,
    hop: usize,
    sample_rate: f64,
) -> Tensor {
    let (batch, harmonics, frames) = distribution.size3().expect("[batch, harmonics, frames]");
    let (hop_samples, device) = (hop as i64, distribution.device());
    let (steps, sines) = tch::no_grad(|| {
        let step_end = ((pitch.to_kind(Kind::Double) - 69.0) / 12.0).exp2() * (440.0 / sample_rate);
        let step_start = previous_frame(&step_end, &step_end.narrow(2, 0, 1));
        // Phase at the end of each frame, then at each sample: the integral of a linearly changing
        // frequency.
        let cycles = ((&step_start + &step_end) * (0.5 * hop as f64)).remainder(1.0);
        let advance = cycles.narrow(2, 0, 1) * 0.0;
        let phase = previous_frame(&cycles.cumsum(2, Kind::Double), &advance);
        let t = Tensor::arange_start(1, hop_samples + 1, (Kind::Double, device)).view([
            1,
            1,
            1,
            hop_samples,
        ]);
        let [phase, start, end] =
            [phase, step_start, step_end.shallow_clone()].map(|value| value.unsqueeze(3));
        let turns = phase + &t * &start + (end - start) * (&t * &t) * (0.5 / hop as f64);
        let turns =
            (&turns - turns.round())
                .to_kind(Kind::Float)
                .reshape([batch * frames, 1, hop_samples]);
        let order =
            Tensor::arange_start(1, harmonics + 1, (Kind::Float, device)).view([1, harmonics, 1]);
        // In place: temporaries of a hundred megabytes would cost more than the sines.
        let mut turns = (turns * order).frac_();
        turns *= std::f64::consts::TAU;
        let sines = turns.sin_();
        (step_end, sines)
    });
    let order =
        Tensor::arange_start(1, harmonics + 1, (Kind::Double, device)).view([1, harmonics, 1]);
    let audible = (order * steps).lt(0.5).to_kind(Kind::Float);
    let distribution = distribution * audible;
    let sum = distribution
        .sum_dim_intlist([1_i64].as_slice(), true, Kind::Float)
        .clamp_min(1e-12);
    let amplitudes = distribution * (amplitude / sum);
    let before = previous_frame(&amplitudes, &amplitudes.narrow(2, 0, 1).zeros_like());
    // [B · F, 2, H] × [B · F, H, hop]: each frame with the amplitudes of its start, and with those
    // of its end.
    let ends = Tensor::stack(&[before, amplitudes], 3)
        .permute([0, 2, 3, 1])
        .reshape([batch * frames, 2, harmonics]);
    let sounds = ends.bmm(&sines);
    let ramp = Tensor::arange_start(1, hop_samples + 1, (Kind::Float, device)) / hop as f64;
    let (from_start, from_end) = (sounds.select(1, 0), sounds.select(1, 1));
    let sound = &from_start + (from_end - &from_start) * ramp;
    sound.reshape([batch, 1, frames * hop_samples])
}

/// Shifts by one frame; `first` becomes frame 0.
fn previous_frame(value: &Tensor, first: &Tensor) -> Tensor {
    let frames = value.size()[2];
    Tensor::cat(&[first, &value.narrow(2, 0, frames - 1)], 2)
}

/// Noise that matches the native executor's.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Noise {
    /// Seed.
    pub seed: u64,
    /// Stream of the first row of the batch; the following rows have the following streams.
    pub first_stream: u64,
}

impl From<u64> for Noise {
    fn from(seed: u64) -> Self {
        Self {
            seed,
            first_stream: 0,
        }
    }
}

impl Noise {
    /// Returns the noise of each row of a batch, from its beginning.
    pub(crate) fn rows(self, batch: i64) -> Vec<NoiseRow> {
        let seed = |row| noise::stream_seed(self.seed, self.first_stream + row);
        (0..batch as u64)
            .map(|row| NoiseRow {
                seed: seed(row),
                frame: 0,
            })
            .collect()
    }
}

/// Noise of a row of a batch.
#[derive(Clone, Copy, Debug)]
pub(crate) struct NoiseRow {
    /// Seed of the stream.
    pub seed: u64,
    /// Number of frames that came before.
    pub frame: u64,
}

/// Makes noise `[batch, channels, frames]` for the node of that `number`, by a function such as
/// [`noise::fill`].
pub(crate) fn node_noise(
    rows: &[NoiseRow],
    number: u32,
    (channels, frames): (i64, i64),
    fill: impl Fn(Kernels, u64, u64, &mut [f32]),
) -> Tensor {
    let mut values = vec![0.0_f32; rows.len() * (channels * frames) as usize];
    for (row, values) in rows
        .iter()
        .zip(values.chunks_exact_mut((channels * frames).max(1) as usize))
    {
        let seed = noise::stream_seed(row.seed, number.into());
        fill(Kernels::detect(), seed, row.frame * channels as u64, values);
    }
    Tensor::from_slice(&values)
        .view([rows.len() as i64, frames, channels])
        .transpose(1, 2)
}

/// Returns uniform noise `[batch, frames, hop]` from the beginning of each row's.
fn samples(rows: &[NoiseRow], frames: i64, hop: i64, device: Device) -> Tensor {
    let mut samples = vec![0.0_f32; rows.len() * (frames * hop) as usize];
    for (row, samples) in rows
        .iter()
        .zip(samples.chunks_exact_mut((frames * hop) as usize))
    {
        noise::fill(Kernels::detect(), row.seed, 0, samples);
    }
    Tensor::from_slice(&samples)
        .view([rows.len() as i64, frames, hop])
        .to_device(device)
}

/// Computes [`ondes_engine::model::Op::FilteredNoise`] from `magnitudes [B, bands, F]`; returns
/// `[B, 1, F · hop]`.
pub(crate) fn filtered_noise(magnitudes: &Tensor, hop: usize, rows: &[NoiseRow]) -> Tensor {
    let (batch, bands, frames) = magnitudes.size3().expect("[batch, bands, frames]");
    let filter = NoiseFilter {
        bands: bands as usize,
        hop,
    };
    let (fft, hop, device) = (filter.fft() as i64, hop as i64, magnitudes.device());
    let response = Tensor::from_slice(&filter.response())
        .view([fft / 2 + 1, bands])
        .to_device(device);
    let gains = magnitudes.transpose(1, 2).matmul(&response.transpose(0, 1));
    let lead = filter.taps() as i64 / 2;
    let noise = samples(rows, frames, hop, device).constant_pad_nd([lead, fft - lead - hop]);
    let filtered = (noise.fft_rfft(fft, -1, "backward") * gains).fft_irfft(fft, -1, "backward");
    // Overlap-add: part `p` of each frame is delayed by `p` hops.
    let parts = (fft + hop - 1) / hop;
    let filtered = filtered
        .constant_pad_nd([0, parts * hop - fft])
        .view([batch, frames, parts, hop]);
    let delayed = |part: i64| {
        let shifted = filtered
            .select(2, part)
            .narrow(1, 0, (frames - part).max(0));
        shifted.constant_pad_nd([0, 0, part.min(frames), 0])
    };
    let sum = (1..parts).fold(delayed(0), |sum, part| sum + delayed(part));
    sum.reshape([batch, 1, frames * hop])
}

/// Computes [`ondes_engine::model::Op::Noise`] with the native executor's values,
/// `[B, channels, F]` for `x [B, C, F]`.
pub(crate) fn noise(
    x: &Tensor,
    channels: usize,
    distribution: Distribution,
    number: u32,
    rows: &[NoiseRow],
) -> Tensor {
    let fill = match distribution {
        Distribution::Uniform => noise::fill,
        Distribution::Normal => noise::fill_normal,
    };
    node_noise(rows, number, (channels as i64, x.size()[2]), fill).to_device(x.device())
}

/// Computes [`ondes_engine::model::Op::ShapedNoise`] from `magnitudes [B, C · bands, F]`,
/// `noise [B, C · hop, F]`; returns `[B, C, F · hop]`.
pub(crate) fn shaped_noise(
    magnitudes: &Tensor,
    noise: &Tensor,
    bands: usize,
    hop: usize,
) -> Tensor {
    let (batch, _, frames) = magnitudes.size3().expect("[batch, channels, frames]");
    let (bands, hop) = (bands as i64, hop as i64);
    let apart = |x: &Tensor, width: i64| x.transpose(1, 2).reshape([batch, frames, -1, width]);
    let taps = 2 * (bands - 1);
    let response = apart(magnitudes, bands)
        .fft_irfft(taps, -1, "backward")
        .roll([taps / 2], [-1]);
    let response = response * Tensor::hann_window(taps, (Kind::Float, magnitudes.device()));
    let response = response
        .constant_pad_nd([0, hop - taps])
        .roll([-taps / 2], [-1]);
    let spectrum = |x: Tensor| x.fft_rfft(2 * hop, -1, "backward");
    let sound =
        (spectrum(response) * spectrum(apart(noise, hop))).fft_irfft(2 * hop, -1, "backward");
    sound
        .narrow(3, 0, hop)
        .permute([0, 2, 1, 3])
        .reshape([batch, -1, frames * hop])
}

/// Computes [`ondes_engine::model::Op::Convolve`] from `audio [B, 1, T]` and `impulse [taps]`;
/// returns `[B, 1, T]`.
pub(crate) fn convolve(audio: &Tensor, impulse: &Tensor) -> Tensor {
    let samples = audio.size()[2];
    let fft = (samples + impulse.size()[0] - 1).max(1) as u64;
    let fft = fft.next_power_of_two() as i64;
    let product = audio.fft_rfft(fft, -1, "backward") * impulse.fft_rfft(fft, -1, "backward");
    product.fft_irfft(fft, -1, "backward").narrow(2, 0, samples)
}
