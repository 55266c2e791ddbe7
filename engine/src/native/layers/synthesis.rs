//! Ops that synthesise sound: harmonics, filtered noise, a room.

use ondes_kernels::{HarmonicFrame, Kernels, PackedMatrix};

use super::matrix::columns;
use crate::dsp::convolution::Convolver;
use crate::dsp::filtered_noise::NoiseFilter;
use crate::dsp::fourier::RealFft;
use crate::dsp::noise;
use crate::native::layer::{Io, Layer, LayerContext};

/// Limits of an oscillator's pitch in semitones, 0.06 Hz and 0.27 MHz, beyond any use.
const PITCH_LIMITS: (f32, f32) = (-84.0, 180.0);

pub(super) struct Harmonic {
    sample_rate: f64,
    hop: usize,
    oscillators: Vec<Oscillator>,
    /// `[harmonic]`: amplitudes at the end of the frame.
    target: Vec<f32>,
}

/// Oscillator bank of one stream.
struct Oscillator {
    /// Cycles at the last sample, in [0, 1).
    phase: f64,
    /// Cycles per sample at the end of the last frame; `None` before the first.
    step: Option<f64>,
    /// `[harmonic]`: amplitudes at the end of the last frame.
    amplitudes: Vec<f32>,
}

impl Harmonic {
    pub fn new(context: &LayerContext<'_>) -> Self {
        let harmonics = context.inputs[2].channels;
        let oscillator = || Oscillator {
            phase: 0.0,
            step: None,
            amplitudes: vec![0.0; harmonics],
        };
        Self {
            sample_rate: f64::from(context.sample_rate),
            hop: context.inputs[0].ratio,
            oscillators: (0..context.streams).map(|_| oscillator()).collect(),
            target: vec![0.0; harmonics],
        }
    }
}

impl Layer for Harmonic {
    fn run(&mut self, kernels: Kernels, io: Io<'_>) {
        let harmonics = self.target.len();
        let controls = io
            .input(0)
            .iter()
            .zip(io.input(1))
            .zip(io.input(2).chunks_exact(harmonics));
        for (index, (((&pitch, &amplitude), distribution), out)) in controls
            .zip(io.output.chunks_exact_mut(self.hop))
            .enumerate()
        {
            let oscillator = &mut self.oscillators[io.streams[index / io.frames]];
            // In f64, as in every executor, since the phase accumulates the error of the step.
            let pitch = f64::from(if pitch.is_nan() {
                0.0
            } else {
                pitch.clamp(PITCH_LIMITS.0, PITCH_LIMITS.1)
            });
            let step_end = 440.0 * ((pitch - 69.0) / 12.0).exp2() / self.sample_rate;
            let audible = distribution
                .iter()
                .enumerate()
                .take_while(|(h, _)| (h + 1) as f64 * step_end < 0.5)
                .count();
            let sum: f32 = distribution[..audible].iter().sum();
            let gain = amplitude / sum.max(1e-12);
            self.target.fill(0.0);
            kernels.multiply_add(&mut self.target[..audible], &distribution[..audible], gain);
            let step_start = oscillator.step.unwrap_or(step_end);
            let frame = HarmonicFrame {
                phase: oscillator.phase,
                step_start,
                step_end,
                start: &oscillator.amplitudes,
                end: &self.target,
            };
            kernels.harmonics(frame, out);
            oscillator.phase =
                HarmonicFrame::phase_after(oscillator.phase, step_start, step_end, self.hop);
            oscillator.step = Some(step_end);
            oscillator.amplitudes.copy_from_slice(&self.target);
        }
    }

    fn reset(&mut self, stream: usize) {
        let oscillator = &mut self.oscillators[stream];
        oscillator.phase = 0.0;
        oscillator.step = None;
        oscillator.amplitudes.fill(0.0);
    }

    fn bytes(&self) -> usize {
        (self.oscillators.len() + 1) * size_of_val(self.target.as_slice())
    }
}

pub(super) struct FilteredNoise {
    filter: NoiseFilter,
    response: PackedMatrix,
    fft: RealFft,
    signal: Vec<f32>,
    spectrum: Vec<f32>,
    /// `[stream of the step][frame][bin]`: the real spectra of the filters.
    gains: Vec<f32>,
    streams: Vec<NoiseStream>,
}

/// Noise of one stream.
struct NoiseStream {
    seed: u64,
    position: u64,
    /// Tail of earlier frames, from the next sample on.
    tail: Vec<f32>,
}

impl FilteredNoise {
    pub fn new(context: &LayerContext<'_>) -> Self {
        let filter = NoiseFilter {
            bands: context.channels(),
            hop: context.inputs[0].ratio,
        };
        let length = filter.fft();
        let bins = length / 2 + 1;
        let response = filter.response();
        let scale = 1.0 / length as f32;
        let fft = RealFft::new(length, context.kernels);
        let streams = (0..context.streams).map(|stream| NoiseStream {
            seed: noise::stream_seed(0, stream as u64),
            position: 0,
            tail: vec![0.0; length],
        });
        Self {
            filter,
            response: PackedMatrix::new(
                bins,
                1,
                filter.bands,
                |bin, _, band| scale * response[bin * filter.bands + band],
                None,
            ),
            signal: vec![0.0; length],
            spectrum: vec![0.0; fft.spectrum()],
            fft,
            gains: vec![0.0; bins * context.streams * context.frames],
            streams: streams.collect(),
        }
    }
}

impl Layer for FilteredNoise {
    fn run(&mut self, kernels: Kernels, io: Io<'_>) {
        let hop = self.filter.hop;
        let lead = self.filter.taps() / 2;
        let bins = self.response.outputs();
        kernels.matmul(
            &self.response,
            columns(io.input(0), self.filter.bands),
            &mut self.gains,
            bins,
        );
        for (index, (gains, out)) in self
            .gains
            .chunks_exact(bins)
            .zip(io.output.chunks_exact_mut(hop))
            .enumerate()
        {
            let stream = &mut self.streams[io.streams[index / io.frames]];
            self.signal.fill(0.0);
            noise::fill(
                kernels,
                stream.seed,
                stream.position,
                &mut self.signal[lead..lead + hop],
            );
            stream.position += hop as u64;
            self.fft.forward(&mut self.signal, &mut self.spectrum);
            for (bin, gain) in self.spectrum.chunks_exact_mut(2).zip(gains) {
                bin.iter_mut().for_each(|part| *part *= gain);
            }
            self.fft.inverse(&mut self.spectrum, &mut self.signal);
            kernels.add(&mut stream.tail, &self.signal);
            out.copy_from_slice(&stream.tail[..hop]);
            stream.tail.copy_within(hop.., 0);
            let left = stream.tail.len() - hop;
            stream.tail[left..].fill(0.0);
        }
    }

    fn reset(&mut self, stream: usize) {
        self.streams[stream].tail.fill(0.0);
    }

    fn seed(&mut self, stream: usize, seed: u64) {
        let stream = &mut self.streams[stream];
        (stream.seed, stream.position) = (seed, 0);
    }

    fn bytes(&self) -> usize {
        self.response.bytes() + (self.streams.len() + 3) * size_of_val(self.signal.as_slice())
    }
}

pub(super) struct Convolve {
    block: usize,
    taps: usize,
    convolvers: Vec<Convolver>,
}

impl Convolve {
    pub fn new(context: &LayerContext<'_>) -> Self {
        let impulse = context.weight("impulse").floats();
        let convolver = Convolver::new(&impulse, context.block, context.kernels);
        Self {
            block: context.block,
            taps: impulse.len(),
            convolvers: vec![convolver; context.streams],
        }
    }
}

impl Layer for Convolve {
    fn run(&mut self, _kernels: Kernels, io: Io<'_>) {
        let blocks = io
            .input(0)
            .chunks_exact(self.block)
            .zip(io.output.chunks_exact_mut(self.block));
        for (index, (x, y)) in blocks.enumerate() {
            self.convolvers[io.streams[index / io.blocks]].process(x, y);
        }
    }

    fn reset(&mut self, stream: usize) {
        self.convolvers[stream].reset();
    }

    fn bytes(&self) -> usize {
        // The spectra of the response, which all streams share, and of the past of each, padded to
        // twice their length.
        (self.convolvers.len() + 1) * self.taps * 2 * size_of::<f32>()
    }
}
