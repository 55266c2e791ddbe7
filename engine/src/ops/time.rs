//! Ops that move frames in time, or declare that they were moved.

use ondes_kernels::Kernels;
use serde::{Deserialize, Serialize};

use super::operation::{ChannelLinks, Memory, Operation, require};
use crate::model::export::node_line::{Function, NodeLine};
use crate::model::{ModelError, Shape, limits};
use crate::native::history::FrameHistory;
use crate::native::layer::{Io, Layer, LayerContext};

/// Delay, after initial zeros. Not counted as latency, since an echo and the alignment of two paths
/// look alike; use [`Latency`] to declare latency.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Delay {
    /// Delay in frames.
    pub frames: usize,
}

impl Operation for Delay {
    fn tail_samples(&self, inputs: &[Shape], _sample_rate: u32) -> usize {
        self.frames * inputs[0].ratio
    }

    fn held_frames(&self) -> usize {
        self.frames.saturating_mul(2)
    }

    fn memory(&self) -> Memory {
        Memory::frames(self.frames)
    }

    fn channel_links(&self) -> ChannelLinks {
        ChannelLinks::Same
    }

    fn layer(&self, context: &LayerContext<'_>) -> Box<dyn Layer> {
        Box::new(DelayLayer::new(context, self.frames))
    }

    fn torchscript(&self, line: &mut NodeLine<'_, '_>) -> String {
        let whole = line.with_past(self.frames);
        format!("torch.slice({whole}, 2, 0, torch.size({}, 2))", line.x())
    }
}

struct DelayLayer {
    /// `[stream]`
    histories: Vec<FrameHistory<f32>>,
}

impl DelayLayer {
    fn new(context: &LayerContext<'_>, frames: usize) -> Self {
        let history = |_| FrameHistory::new(context.channels(), frames, context.frames, 0.0);
        Self {
            histories: (0..context.streams).map(history).collect(),
        }
    }
}

impl Layer for DelayLayer {
    fn run(&mut self, _kernels: Kernels, io: Io<'_>) {
        let length = io.frames * io.channels(0);
        let rows = io
            .input(0)
            .chunks_exact(length)
            .zip(io.output.chunks_exact_mut(length));
        for ((input, output), &stream) in rows.zip(io.streams) {
            let history = &mut self.histories[stream];
            history.append(io.frames).copy_from_slice(input);
            output.copy_from_slice(&history.latest(io.frames)[..length]);
        }
    }

    fn reset(&mut self, stream: usize) {
        self.histories[stream].reset();
    }

    fn capture_initial_state(&mut self) {
        let past = self.histories[0].latest(0).to_vec();
        self.histories
            .iter_mut()
            .for_each(|history| history.set_initial(&past));
    }

    fn bytes(&self) -> usize {
        self.histories.iter().map(FrameHistory::bytes).sum()
    }
}

/// Identity. Declares `samples` of latency that cannot be derived from the taps, such as that of a
/// linear-phase filter.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Latency {
    /// Latency in samples.
    pub samples: usize,
}

impl Operation for Latency {
    fn check_limits(&self) -> Result<(), ModelError> {
        ModelError::limit("the latency of a node", self.samples, limits::LATENCY)
    }

    fn latency_samples(&self, _inputs: &[Shape]) -> usize {
        self.samples
    }

    fn channel_links(&self) -> ChannelLinks {
        ChannelLinks::Same
    }

    fn layer(&self, _context: &LayerContext<'_>) -> Box<dyn Layer> {
        Box::new(Identity)
    }

    fn torchscript(&self, line: &mut NodeLine<'_, '_>) -> String {
        line.x().to_owned()
    }
}

/// Each frame of `factor · C` channels becomes `factor` frames of C: channel `p · C + c` is channel
/// `c` of the `p`-th.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Interleave {
    /// Frames of output per frame of input.
    pub factor: usize,
}

impl Operation for Interleave {
    fn shape(&self, inputs: &[Shape], _block: usize) -> Result<Shape, String> {
        let (factor, Shape { channels, ratio }) = (self.factor, inputs[0]);
        require(
            factor > 0 && channels.is_multiple_of(factor) && ratio.is_multiple_of(factor),
            || {
                format!(
                    "has a factor of {factor}, which must divide {channels} channels and a ratio of {ratio}"
                )
            },
        )?;
        Ok(Shape {
            channels: channels / factor,
            ratio: ratio / factor,
        })
    }

    fn earlier_frames(&self) -> Option<usize> {
        None
    }

    /// A channel's number is its time.
    fn channel_links(&self) -> ChannelLinks {
        ChannelLinks::Fixed
    }

    /// Frames are contiguous, and so are the frames that an interleaved one consists of.
    fn layer(&self, _context: &LayerContext<'_>) -> Box<dyn Layer> {
        Box::new(Identity)
    }

    fn torchscript(&self, line: &mut NodeLine<'_, '_>) -> String {
        let (x, factor) = (line.x(), self.factor);
        let left = line.shapes[0].channels / factor;
        let parts = format!(
            "torch.reshape({x}, [torch.size({x}, 0), {factor}, {left}, torch.size({x}, 2)])"
        );
        format!(
            "torch.reshape(torch.permute({parts}, [0, 2, 3, 1]), [torch.size({x}, 0), {left}, -1])"
        )
    }
}

/// Leaves all values as they are.
struct Identity;

impl Layer for Identity {
    fn updates_first_input(&self) -> bool {
        true
    }

    fn run(&mut self, _kernels: Kernels, _io: Io<'_>) {}
}

/// Negates odd channels in the first frame of each pair. Every other band of a decimated filter
/// bank is mirrored in frequency; this flips it, and flips it back if applied again (Nguyen, IEEE
/// Trans. Signal Processing 42(1), 1994).
pub(super) struct FlipOddBands;

impl Operation for FlipOddBands {
    fn shape(&self, inputs: &[Shape], block: usize) -> Result<Shape, String> {
        let frames = block / inputs[0].ratio;
        require(frames.is_multiple_of(2), || {
            format!("has {frames} frames per block; an even number is needed")
        })?;
        Ok(inputs[0])
    }

    fn earlier_frames(&self) -> Option<usize> {
        None
    }

    /// A channel's number is its band.
    fn channel_links(&self) -> ChannelLinks {
        ChannelLinks::Fixed
    }

    fn layer(&self, _context: &LayerContext<'_>) -> Box<dyn Layer> {
        Box::new(Self)
    }

    fn torchscript(&self, line: &mut NodeLine<'_, '_>) -> String {
        let x = line.x();
        line.call(FLIP_ODD_BANDS, &[x])
    }
}

/// [`FlipOddBands`].
pub(super) const FLIP_ODD_BANDS: Function = Function {
    signature: "flip_odd_bands(x: Tensor) -> Tensor",
    body: "\
even_band = torch.remainder(torch.cumsum(torch.new_ones(x, [1, torch.size(x, 1), 1]), 1), 2)
first_frame = torch.remainder(torch.cumsum(torch.new_ones(x, [1, 1, torch.size(x, 2)]), 2), 2)
return x * (1. - 2. * (1. - even_band) * first_frame)",
};

/// A block is an even number of frames, so a step begins with the first of a pair.
impl Layer for FlipOddBands {
    fn updates_first_input(&self) -> bool {
        true
    }

    fn run(&mut self, _kernels: Kernels, io: Io<'_>) {
        let channels = io.channels(0);
        for frame in io.output.chunks_exact_mut(channels).step_by(2) {
            frame
                .iter_mut()
                .skip(1)
                .step_by(2)
                .for_each(|value| *value = -*value);
        }
    }
}
