//! Ops that measure a sound.

use std::ops::RangeInclusive;

use ondes_kernels::Kernels;
use serde::{Deserialize, Serialize};

use super::operation::{ChannelLinks, Memory, Operation, require};
use crate::dsp::pitch::{FIRST_PITCH, PitchTracker};
use crate::model::export::node_line::{Function, Initial, NodeLine, WITH_PAST, number};
use crate::model::{Shape, limits};
use crate::native::layer::{Io, Layer, LayerContext};

/// Pitch of a sound, semitones (69 = 440 Hz), by [`PitchTracker::in_step`]. Input: audio. Output:
/// `[1]`, a frame every `hop` samples with the pitch of 11 ms before its end, kept through silence
/// and noise.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Pitch {
    /// Samples of a frame.
    pub hop: usize,
}

/// Hops of a pitch: each costs several Fourier transforms.
const HOPS: RangeInclusive<usize> = 32..=limits::BLOCK;

impl Operation for Pitch {
    fn shape(&self, inputs: &[Shape], _block: usize) -> Result<Shape, String> {
        let Shape { channels, ratio } = inputs[0];
        require(HOPS.contains(&self.hop), || {
            format!(
                "has a hop of {}; allowed: {} to {}",
                self.hop,
                HOPS.start(),
                HOPS.end()
            )
        })?;
        require(channels == 1 && ratio == 1, || {
            format!("hears {channels} channels at a ratio of {ratio}; one of audio is needed")
        })?;
        Ok(Shape {
            channels: 1,
            ratio: self.hop,
        })
    }

    /// Three Fourier transforms of about 3,800 samples, and three of 1,500.
    fn multiply_adds(&self, _inputs: &[Shape], _output: Shape) -> usize {
        400_000
    }

    fn memory(&self) -> Memory {
        Memory::Sound
    }

    fn channel_links(&self) -> ChannelLinks {
        ChannelLinks::Fixed
    }

    fn torchscript(&self, line: &mut NodeLine<'_, '_>) -> String {
        let rate = line.sample_rate();
        let windows = PitchTracker::in_step(f64::from(rate), self.hop).windows();
        let taps = windows.taps.len();
        let taps_tensor = line.tensor("taps", || (vec![1, 1, taps], windows.taps.to_vec()));
        let past = windows.window.saturating_sub(self.hop) + taps - 1;
        let past = line.state("past", vec![1, past], Initial::Zeros);
        let held = line.state("held", vec![1], Initial::Floats(vec![FIRST_PITCH]));
        for function in [WITH_PAST, PITCH_PERIODS] {
            line.need(function);
        }
        let sizes = [
            self.hop,
            windows.window,
            windows.short.unwrap_or(windows.window),
            *windows.lags.start(),
            *windows.lags.end(),
        ];
        let sizes = sizes.map(|size| size.to_string());
        let [hop, window, short, shortest, longest] = sizes.each_ref().map(String::as_str);
        let (x, rate) = (line.x(), number(rate));
        line.call(
            PITCH,
            &[
                x,
                &past,
                &held,
                &taps_tensor,
                hop,
                window,
                short,
                shortest,
                longest,
                &rate,
            ],
        )
    }

    fn layer(&self, context: &LayerContext<'_>) -> Box<dyn Layer> {
        let tracker = || PitchTracker::in_step(f64::from(context.sample_rate), self.hop);
        Box::new(PitchLayer {
            trackers: (0..context.streams).map(|_| tracker()).collect(),
        })
    }
}

struct PitchLayer {
    /// `[stream]`
    trackers: Vec<PitchTracker>,
}

impl Layer for PitchLayer {
    fn run(&mut self, _kernels: Kernels, io: Io<'_>) {
        let sounds = io.input(0).chunks_exact(io.frames);
        let frames = io.output.len() / io.streams.len();
        let outputs = io.output.chunks_exact_mut(frames);
        for ((&stream, sound), output) in io.streams.iter().zip(sounds).zip(outputs) {
            let mut output = output.iter_mut();
            self.trackers[stream].push(sound, |frame| {
                if let Some(pitch) = output.next() {
                    *pitch = frame.semitones;
                }
            });
        }
    }

    fn reset(&mut self, stream: usize) {
        self.trackers[stream].reset();
    }
}

/// [`Pitch`], without what the tracker keeps from one frame to the next, and without the shorter
/// stretch that it refines a pitch over: steady tones are within 5 cents of it. `held [1]` is the
/// last pitch. The numbers are those of [`crate::dsp::pitch`].
pub(super) const PITCH: Function = Function {
    signature: "pitch(x: Tensor, past: Tensor, held: Tensor, taps: Tensor, hop: int, window: int, short: int, \
                shortest: int, longest: int, sample_rate: float) -> Tensor",
    body: "\
smooth = torch.squeeze(torch.conv1d(self.with_past(x, past), taps), 1)
frames = torch.floordiv(torch.size(x, 2), hop)
length = window + (frames - 1) * hop
windows = torch.unfold(torch.slice(smooth, 1, torch.size(smooth, 1) - length), 1, window, hop)
whole = self.pitch_periods(windows, shortest, longest)
reach = torch.floordiv(short, 2)
recent = self.pitch_periods(torch.slice(windows, 2, window - short), shortest, reach)
tolerance = torch.where(torch.lt(torch.select(whole, 0, 0), float(reach)), 0.1, -0.05)
is_recent = torch.ge(torch.select(recent, 0, 1), torch.select(whole, 0, 1) - tolerance)
chosen = torch.where(torch.unsqueeze(is_recent, 0), recent, whole)
lag = torch.select(chosen, 0, 0)
semitones = torch.log2(sample_rate / (lag * 440.)) * 12. + 69.
order = torch.cumsum(torch.ones_like(semitones), 1)
voiced = torch.ge(torch.select(chosen, 0, 1), 0.7)
last = torch.cummax(torch.where(voiced, order, torch.zeros_like(order)), 1)[0]
before = torch.slice(held, 0, 0, torch.size(x, 0))
pitch = torch.gather(torch.cat([before, semitones], 1), 1, torch.to(last, 4))
before = torch.copy_(before, torch.slice(pitch, 1, -1))
return torch.unsqueeze(pitch, 1)",
};

/// Period of each window `[batch, frame, sample]` in samples, and its height as a peak:
/// `[2, batch, frame]`.
pub(super) const PITCH_PERIODS: Function = Function {
    signature: "pitch_periods(windows: Tensor, shortest: int, longest: int) -> Tensor",
    body: "\
samples = windows - torch.mean(windows, [2], True)
window = torch.size(samples, 2)
lags = longest + 2
fft = window + lags
squares = samples * samples
energy = torch.sum(squares, [2], True)
spectrum = torch.view_as_real(torch.fft_rfft(samples, fft))
power = torch.sum(spectrum * spectrum, [3])
heard = torch.ge(power, torch.amax(power, [2], True) * 0.0001)
flat = torch.where(heard, torch.pow(power, 0.3125), torch.zeros_like(power))
correlation = torch.slice(torch.fft_irfft(power, fft), 2, 0, lags)
flat = torch.max_pool1d(torch.slice(torch.fft_irfft(flat, fft), 2, 0, lags), [3], [1])
lost = torch.slice(torch.cumsum(squares + torch.flip(squares, [2]), 2), 2, 0, lags - 1)
norm = energy * 2. - torch.constant_pad_nd(lost, [1, 0])
norm = torch.maximum(norm, energy * 0.5) + 1e-12
nsdf = correlation * 2. / norm
at = torch.slice(nsdf, 2, 1, -1)
order = torch.cumsum(torch.ones_like(at), 2)
peak = torch.ge(at, torch.slice(nsdf, 2, 0, -2)) * torch.ge(at, torch.slice(nsdf, 2, 2)) * torch.gt(at, 0.)
peak = peak * torch.ge(order, float(shortest)) * torch.gt(torch.cumsum(torch.to(torch.le(at, 0.), 6), 2), 0.)
heights = at * torch.to(peak, 6)
highest = torch.amax(heights, [2], True)
candidate = peak * torch.ge(heights, highest * 0.9)
flattest = torch.amax(flat * torch.to(candidate, 6), [2], True)
candidate = candidate * torch.ge(flat, flattest * 0.6)
lag = torch.argmax(torch.to(candidate, 6), 2, True) + 1
height = torch.gather(nsdf, 2, lag) * torch.to(torch.gather(candidate, 2, lag - 1), 6)
period = torch.to(lag, 6)
is_clear = torch.gt(height, 0.)
around = torch.cumsum(torch.new_ones(lag, [1, 1, 5]), 2) - 3
multiple = 1.
for step in range(6):
  expected = torch.round(period * multiple)
  is_clear = is_clear * torch.lt(expected, float(torch.floordiv(window, 4 if step > 0 else 1)))
  index = torch.clamp(torch.to(expected, 4), 3, lags - 4) + around
  values = torch.gather(nsdf, 2, index)
  best = torch.clamp(torch.gather(index, 2, torch.argmax(values, 2, True)), 1, lags - 2)
  before = torch.gather(nsdf, 2, best - 1)
  middle = torch.gather(nsdf, 2, best)
  after = torch.gather(nsdf, 2, best + 1)
  bend = torch.clamp_max(before - middle * 2. + after, -1e-9)
  offset = torch.clamp((before - after) * 0.5 / bend, -0.5, 0.5)
  is_clear = is_clear * torch.ge(middle, height * 0.9)
  refined = (torch.to(best, 6) + offset) / multiple
  period = torch.where(is_clear, refined, period)
  multiple = multiple * 2.
loud = torch.gt(energy, 1e-09 * float(window))
height = height * torch.to(loud, 6)
return torch.squeeze(torch.stack([period, height], 0), 3)",
};
