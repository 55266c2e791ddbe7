//! A method as passes over signal buffers.

use ondes_kernels::{BufferView, Passes};

use super::fusion;
use super::layout::Layout;
use super::lowering;
use super::signal_buffer::SignalBuffer;
use crate::model::graph::Shapes;
use crate::model::{Method, Weights};

/// Passes of a method, and the buffers of all its signals.
pub struct Network {
    pub passes: Passes,
    pub buffers: Vec<SignalBuffer>,
    /// `[port]`
    pub inputs: Vec<BufferView>,
    pub output: BufferView,
    /// Values of all buffers together.
    pub length: usize,
}

impl Network {
    /// Compiles a method for chunks of up to `chunk` frames; `None` unless it has one output, all
    /// of its values are at audio rate and each of its ops has a pass.
    pub fn new(method: &Method, shapes: &Shapes, weights: &Weights, chunk: usize) -> Option<Self> {
        if method.outputs.len() != 1
            || method.nodes.is_empty()
            || shapes.values.iter().any(|shape| shape.ratio != 1)
        {
            return None;
        }
        let ops = lowering::lower(method, shapes, weights)?;
        let layout = Layout::new(method, shapes, &ops, chunk);
        let output = layout.range(shapes.shown[0]);
        let passes = fusion::fuse(ops, &layout, output);
        Some(Self {
            passes: fusion::with_views(passes, &layout.buffers),
            inputs: (0..method.inputs.len())
                .map(|port| layout.range(port).view(&layout.buffers))
                .collect(),
            output: output.view(&layout.buffers),
            length: layout.length,
            buffers: layout.buffers,
        })
    }
}
