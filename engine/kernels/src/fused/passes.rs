//! Sequences of passes over frames, run in one call: where channels are few, the cost of a call
//! would show.

use super::buffer_view::{BufferView, StreamSignals, ViewsAt};
use super::convolution::{Convolution, ConvolutionGroup};
use super::elementwise::{self, Binary, Unary};
use super::layer_stack::LayerStack;
use crate::Kernels;
use crate::simd::{Kernel, Simd};

/// Sequence of passes over some frames of a network's signals. Passes name their operands as
/// indices into a list of views.
///
/// ```
/// use ondes_kernels::{Activation, Binary, BufferView, ChannelRows, FRAMES_PER_VECTOR, Kernels, Passes, Unary};
///
/// let stride = FRAMES_PER_VECTOR;
/// let view = |index: usize| BufferView::new(ChannelRows { start: index * stride, stride, channels: 1 }, 0);
/// let mut passes = Passes::new(vec![view(0), view(1)]);
/// passes.apply(Unary::Activation(Activation::Relu), 0);
/// passes.combine(Binary::Add, 0, 1);
///
/// let mut signals = vec![0.0; 2 * stride];
/// signals[..3].copy_from_slice(&[-1.0, 0.0, 2.0]);
/// signals[stride..][..3].copy_from_slice(&[10.0, 20.0, 30.0]);
/// Kernels::detect().run_passes(&passes, &[0], &mut signals, 3);
/// assert_eq!(signals[stride..][..3], [10.0, 20.0, 32.0]);
/// ```
#[derive(Clone, Debug)]
pub struct Passes {
    views: Vec<BufferView>,
    passes: Vec<Pass>,
}

/// One loop over the frames.
#[derive(Clone, Debug)]
enum Pass {
    Convolutions(ConvolutionGroup),
    Layers(LayerStack),
    Unary {
        operation: Unary,
        in_out: usize,
    },
    Binary {
        operation: Binary,
        operand: usize,
        in_out: usize,
    },
}

impl Passes {
    /// Starts an empty sequence over these views.
    pub fn new(views: Vec<BufferView>) -> Self {
        Self {
            views,
            passes: Vec::new(),
        }
    }

    /// Appends a pass of convolutions that are interleaved a few frames at a time.
    ///
    /// A convolution may read the outputs of the ones before it at the same frame, but not at later
    /// ones, and must not change what they read at other frames.
    ///
    /// # Panics
    /// Here or when run, if a convolution names a view that is not in the list.
    pub fn convolve(&mut self, convolutions: Vec<Convolution>) {
        let pass = match LayerStack::new(&self.views, &convolutions) {
            Some(layers) => Pass::Layers(layers),
            None => Pass::Convolutions(ConvolutionGroup::new(convolutions)),
        };
        match (self.passes.last_mut(), pass) {
            (Some(Pass::Layers(layers)), Pass::Layers(next)) if layers.width() == next.width() => {
                layers.append(next)
            }
            (_, pass) => self.passes.push(pass),
        }
    }

    /// Appends `in_out[c][t] = operation(in_out[c][t])`.
    pub fn apply(&mut self, operation: Unary, in_out: usize) {
        self.passes.push(Pass::Unary { operation, in_out });
    }

    /// Appends `in_out[c][t] = operation(in_out[c][t], operand[c][t])`.
    pub fn combine(&mut self, operation: Binary, operand: usize, in_out: usize) {
        self.passes.push(Pass::Binary {
            operation,
            operand,
            in_out,
        });
    }

    /// Returns the memory of the weights in bytes.
    pub fn bytes(&self) -> usize {
        let bytes = |pass: &Pass| match pass {
            Pass::Convolutions(convolutions) => convolutions.bytes(),
            Pass::Layers(layers) => layers.bytes(),
            Pass::Unary { .. } | Pass::Binary { .. } => 0,
        };
        self.passes.iter().map(bytes).sum()
    }
}

struct RunPasses<'a, 'b> {
    passes: &'a Passes,
    streams: &'a mut [StreamSignals<'b>],
    frames: usize,
}

impl Kernel for RunPasses<'_, '_> {
    #[inline(always)]
    fn run<S: Simd>(self, s: S) {
        let Self {
            passes: Passes { views, passes },
            streams,
            frames,
        } = self;
        for pass in passes {
            if let Pass::Layers(layers) = pass {
                layers.run(s, streams, frames);
                continue;
            }
            for StreamSignals { positions, signals } in &mut *streams {
                let views = ViewsAt { views, positions };
                match *pass {
                    Pass::Convolutions(ref convolutions) => {
                        convolutions.run(s, views, signals, frames)
                    }
                    Pass::Layers(_) => {}
                    Pass::Unary { operation, in_out } => {
                        elementwise::apply_unary(
                            s,
                            operation,
                            signals,
                            views.rows(in_out),
                            None,
                            frames,
                        );
                        views.mirror(in_out, signals, frames);
                    }
                    Pass::Binary {
                        operation,
                        operand,
                        in_out,
                    } => {
                        let (operand, rows) = (views.rows(operand), views.rows(in_out));
                        elementwise::apply_binary(s, operation, signals, operand, rows, frames);
                        views.mirror(in_out, signals, frames);
                    }
                }
            }
        }
    }
}

/// Networks at audio rate.
impl Kernels {
    /// Runs passes over `frames` frames of `signals` from `positions[buffer]` on. For rings,
    /// `frames` is at most the number of mirrored frames.
    ///
    /// # Panics
    /// If a view or a position is missing, taps have more channels than there are weights, or whole
    /// vectors of `frames` frames of a row lie outside the slice.
    pub fn run_passes(
        self,
        passes: &Passes,
        positions: &[usize],
        signals: &mut [f32],
        frames: usize,
    ) {
        self.run_passes_batch(passes, &mut [StreamSignals { positions, signals }], frames);
    }

    /// Runs passes as [`Kernels::run_passes`] does, for several streams in one go: a layer of one
    /// stream is computed while that of another waits for its inputs.
    ///
    /// # Panics
    /// As [`Kernels::run_passes`] does.
    pub fn run_passes_batch(
        self,
        passes: &Passes,
        streams: &mut [StreamSignals<'_>],
        frames: usize,
    ) {
        self.run(RunPasses {
            passes,
            streams,
            frames,
        });
    }
}
