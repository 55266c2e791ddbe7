//! Ops that synthesise sound: harmonics, filtered noise, a room.

use std::ops::RangeInclusive;

use ondes_kernels::{HarmonicFrame, Kernels, PackedMatrix};
use serde::{Deserialize, Serialize};

use super::linear::columns;
use super::operation::WeightAxis::Fixed;
use super::operation::{ChannelLinks, Memory, Operation, WeightSpec, require, require_positive};
use crate::dsp::convolution::Convolver;
use crate::dsp::filtered_noise::NoiseFilter;
use crate::dsp::fourier::RealFft;
use crate::dsp::noise;
use crate::model::export::node_line::{Function, Initial, NodeLine, number};
use crate::model::{ModelError, Shape, limits};
use crate::native::layer::{Io, Layer, LayerContext};

/// One channel of audio.
const AUDIO: Shape = Shape {
    channels: 1,
    ratio: 1,
};

/// Harmonic oscillator bank. Inputs: `pitch [1]` (semitones, 69 = 440 Hz), `amplitude [1]`,
/// `distribution [H]` (≥ 0). Harmonics at or above half the sample rate are dropped and the others
/// scaled to sum to one. Output: audio; control frame `i` is reached at the end of its segment, so
/// sound is one frame late (Engel et al., ICLR 2020).
pub(super) struct Harmonic;

impl Operation for Harmonic {
    fn arity(&self) -> RangeInclusive<usize> {
        3..=3
    }

    fn shape(&self, inputs: &[Shape], _block: usize) -> Result<Shape, String> {
        let [pitch, amplitude] = [0, 1].map(|index| inputs[index].channels);
        require(pitch == 1 && amplitude == 1 && inputs[0].ratio > 1, || {
            format!(
                "has a pitch of {pitch} and an amplitude of {amplitude} channels; 1 at control rate is needed"
            )
        })?;
        Ok(AUDIO)
    }

    fn latency_samples(&self, inputs: &[Shape]) -> usize {
        inputs[0].ratio
    }

    fn tail_samples(&self, inputs: &[Shape], _sample_rate: u32) -> usize {
        inputs[0].ratio
    }

    fn multiply_adds(&self, inputs: &[Shape], _output: Shape) -> usize {
        6 * inputs[2].channels
    }

    fn memory(&self) -> Memory {
        Memory::Sound
    }

    /// The number of a harmonic is its frequency.
    fn channel_links(&self) -> ChannelLinks {
        ChannelLinks::Fixed
    }

    fn layer(&self, context: &LayerContext<'_>) -> Box<dyn Layer> {
        Box::new(HarmonicLayer::new(context))
    }

    fn torchscript(&self, line: &mut NodeLine<'_, '_>) -> String {
        let phase = line.state("phase", vec![1, 1], Initial::Double(0.0));
        let step = line.state("step", vec![1, 1], Initial::Double(-1.0));
        let harmonics = line.shapes[2].channels;
        let levels = line.state("levels", vec![harmonics, 1], Initial::Zeros);
        let (hop, rate) = (line.shapes[0].ratio.to_string(), number(line.sample_rate()));
        let [pitch, amplitude, distribution] = [0, 1, 2].map(|input| line.values[input]);
        line.call(
            HARMONIC,
            &[
                pitch,
                amplitude,
                distribution,
                &phase,
                &step,
                &levels,
                &hop,
                &rate,
            ],
        )
    }
}

/// [`Harmonic`]. Phase in cycles and step in cycles per sample are
/// 64-bit floats; a step below zero is that of a stream that has not begun.
pub(super) const HARMONIC: Function = Function {
    signature: "harmonic(pitch: Tensor, amplitude: Tensor, distribution: Tensor, phase: Tensor, step: Tensor, \
                levels: Tensor, hop: int, sample_rate: float) -> Tensor",
    body: "\
batch = torch.size(pitch, 0)
last_phase = torch.slice(phase, 0, 0, batch)
last_step = torch.slice(step, 0, 0, batch)
last_levels = torch.slice(levels, 0, 0, batch)
semitones = torch.clamp(torch.nan_to_num(torch.to(pitch, 7), 0.), -84., 180.)
ends = torch.exp2((semitones - 69.) / 12.) * (440. / sample_rate)
first = torch.where(torch.lt(last_step, 0.), torch.slice(ends, 2, 0, 1), last_step)
starts = torch.cat([first, torch.slice(ends, 2, 0, -1)], 2)
phases = torch.cumsum((starts + ends) * (0.5 * hop), 2) + last_phase
begins = torch.unsqueeze(torch.cat([last_phase, torch.slice(phases, 2, 0, -1)], 2), 3)
t = torch.cumsum(torch.new_ones(ends, [1, 1, 1, hop]), 3)
turns = begins + t * torch.unsqueeze(starts, 3) + t * t * torch.unsqueeze(ends - starts, 3) * (0.5 / hop)
turns = torch.to(turns - torch.round(turns), 6)
order = torch.cumsum(torch.new_ones(distribution, [1, torch.size(distribution, 1), 1]), 1)
sines = torch.sin(torch.frac(turns * torch.unsqueeze(order, 3)) * 6.283185307179586)
audible = distribution * torch.to(torch.lt(order * ends, 0.5), 6)
after = audible * (amplitude / torch.clamp_min(torch.sum(audible, [1], True), 1e-12))
before = torch.cat([last_levels, torch.slice(after, 2, 0, -1)], 2)
ramp = torch.to(t / hop, 6)
sound = torch.sum(sines * (torch.unsqueeze(before, 3) + torch.unsqueeze(after - before, 3) * ramp), [1], True)
ended = torch.slice(phases, 2, -1)
last_phase = torch.copy_(last_phase, ended - torch.floor(ended))
last_step = torch.copy_(last_step, torch.slice(ends, 2, -1))
last_levels = torch.copy_(last_levels, torch.slice(after, 2, -1))
return torch.reshape(sound, [batch, 1, -1])",
};

/// Limits of an oscillator's pitch in semitones, 0.06 Hz and 0.27 MHz, beyond any use.
const PITCH_LIMITS: (f32, f32) = (-84.0, 180.0);

struct HarmonicLayer {
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

impl HarmonicLayer {
    fn new(context: &LayerContext<'_>) -> Self {
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

impl Layer for HarmonicLayer {
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

    fn set_phase(&mut self, stream: usize, cycles: f64) {
        self.oscillators[stream].phase = cycles.rem_euclid(1.0);
    }

    fn bytes(&self) -> usize {
        (self.oscillators.len() + 1) * size_of_val(self.target.as_slice())
    }
}

/// White noise through a filter that changes each frame. Input: `magnitudes [bands]` from 0 Hz to
/// half the sample rate. Output: audio, one frame late as [`Harmonic`] (Engel et al., ICLR 2020).
pub(super) struct FilteredNoise;

impl Operation for FilteredNoise {
    fn shape(&self, inputs: &[Shape], _block: usize) -> Result<Shape, String> {
        let Shape { channels, ratio } = inputs[0];
        require(channels >= 2 && ratio > 1, || {
            format!(
                "has {channels} bands at a ratio of {ratio}; at least 2 at control rate are needed"
            )
        })?;
        Ok(AUDIO)
    }

    fn latency_samples(&self, inputs: &[Shape]) -> usize {
        inputs[0].ratio
    }

    fn tail_samples(&self, inputs: &[Shape], _sample_rate: u32) -> usize {
        inputs[0].ratio
    }

    fn multiply_adds(&self, _inputs: &[Shape], _output: Shape) -> usize {
        TWO_TRANSFORMS
    }

    fn memory(&self) -> Memory {
        Memory::Sound
    }

    /// The number of a band is its frequency.
    fn channel_links(&self) -> ChannelLinks {
        ChannelLinks::Fixed
    }

    fn layer(&self, context: &LayerContext<'_>) -> Box<dyn Layer> {
        Box::new(FilteredNoiseLayer::new(context))
    }

    fn torchscript(&self, line: &mut NodeLine<'_, '_>) -> String {
        let (bands, hop) = (line.shapes[0].channels, line.shapes[0].ratio);
        let filter = NoiseFilter { bands, hop };
        let response = filter.response();
        let bins = response.len() / bands;
        let response = line.tensor("response", || (vec![bins, bands], response));
        let tail = line.state("tail", vec![1, filter.fft() - hop], Initial::Zeros);
        let sizes = [hop, filter.taps() / 2, filter.fft()].map(|size| size.to_string());
        let [hop, lead, fft] = sizes.each_ref().map(String::as_str);
        let x = line.x();
        line.call(FILTERED_NOISE, &[x, &response, &tail, hop, lead, fft])
    }
}

/// Multiply-adds per sample of a forward and an inverse Fourier transform, by the usual count of
/// 2.5 n log2 n for real input.
const TWO_TRANSFORMS: usize = 64;

/// [`FilteredNoise`]. `response` is `[bin][band]`,
/// `tail [fft − hop]`.
pub(super) const FILTERED_NOISE: Function = Function {
    signature: "filtered_noise(magnitudes: Tensor, response: Tensor, tail: Tensor, hop: int, lead: int, fft: int) -> \
                Tensor",
    body: "\
frames = torch.size(magnitudes, 2)
white = torch.uniform_(torch.new_empty(magnitudes, [torch.size(magnitudes, 0), frames, hop]), -1., 1.)
white = torch.constant_pad_nd(white, [lead, fft - lead - hop])
gains = torch.matmul(torch.transpose(magnitudes, 1, 2), torch.t(response))
filtered = torch.transpose(torch.fft_irfft(torch.fft_rfft(white, fft) * gains, fft), 1, 2)
length = frames * hop
sum = torch.col2im(filtered, [1, length - hop + fft], [1, fft], [1, 1], [0, 0], [1, hop])
last = torch.slice(tail, 0, 0, torch.size(magnitudes, 0))
sum = torch.squeeze(sum, 2) + torch.constant_pad_nd(last, [0, length])
last = torch.copy_(last, torch.slice(sum, 2, length))
return torch.slice(sum, 2, 0, length)",
};

struct FilteredNoiseLayer {
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

impl FilteredNoiseLayer {
    fn new(context: &LayerContext<'_>) -> Self {
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

impl Layer for FilteredNoiseLayer {
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

/// Convolution of audio with a learnt impulse response, `impulse [taps]`, such as a room or a body.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Convolve {
    /// Length of the response in samples.
    pub taps: usize,
}

impl Operation for Convolve {
    fn shape(&self, inputs: &[Shape], block: usize) -> Result<Shape, String> {
        let Shape { channels, ratio } = inputs[0];
        require_positive(&[self.taps])?;
        require(channels == 1 && ratio == 1, || {
            format!("has {channels} channels at a ratio of {ratio}; one channel of audio is needed")
        })?;
        require(block > 1, || {
            "needs a method whose block is longer than one sample".to_owned()
        })?;
        Ok(inputs[0])
    }

    fn check_limits(&self) -> Result<(), ModelError> {
        ModelError::limit("the length of an impulse response", self.taps, limits::TAPS)
    }

    fn weights(&self, _inputs: &[Shape]) -> Vec<WeightSpec> {
        vec![WeightSpec::new("impulse", &[Fixed], &[self.taps])]
    }

    fn tail_samples(&self, _inputs: &[Shape], _sample_rate: u32) -> usize {
        self.taps - 1
    }

    fn multiply_adds(&self, _inputs: &[Shape], _output: Shape) -> usize {
        TWO_TRANSFORMS
    }

    /// The spectra of the response and of past input, each of twice the length.
    fn held_frames(&self) -> usize {
        self.taps.saturating_mul(4)
    }

    fn memory(&self) -> Memory {
        Memory::frames(self.taps - 1)
    }

    fn can_warm_up(&self) -> bool {
        false
    }

    fn channel_links(&self) -> ChannelLinks {
        ChannelLinks::Fixed
    }

    fn layer(&self, context: &LayerContext<'_>) -> Box<dyn Layer> {
        Box::new(ConvolveLayer::new(context))
    }

    fn torchscript(&self, line: &mut NodeLine<'_, '_>) -> String {
        let whole = line.with_past(self.taps - 1);
        let [impulse] = line.parameters(["impulse"]);
        line.call(CONVOLVE, &[&whole, &impulse])
    }
}

/// Convolution of `whole`, which begins with the `taps − 1` samples before, with `impulse [taps]`.
pub(super) const CONVOLVE: Function = Function {
    signature: "convolve(whole: Tensor, impulse: Tensor) -> Tensor",
    body: "\
length = torch.size(whole, 2)
product = torch.fft_rfft(whole, length) * torch.fft_rfft(impulse, length)
return torch.slice(torch.fft_irfft(product, length), 2, torch.size(impulse, 0) - 1)",
};

struct ConvolveLayer {
    block: usize,
    taps: usize,
    convolvers: Vec<Convolver>,
}

impl ConvolveLayer {
    fn new(context: &LayerContext<'_>) -> Self {
        let impulse = context.weight("impulse").floats();
        let convolver = Convolver::new(&impulse, context.block, context.kernels);
        Self {
            block: context.block,
            taps: impulse.len(),
            convolvers: vec![convolver; context.streams],
        }
    }
}

impl Layer for ConvolveLayer {
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
