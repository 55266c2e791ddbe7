//! Linear layer: one matrix product over all frames of all streams.

use ondes_kernels::{Columns, Kernels};

use super::product::Dense;
use crate::native::layer::{Io, Layer, LayerContext};

pub(super) struct Linear(Dense);

impl Linear {
    pub fn new(context: &LayerContext<'_>) -> Self {
        Self(Dense::new(
            context.weight("weight"),
            context.weight("bias"),
            context.streams * context.frames,
        ))
    }
}

/// Returns adjacent columns of `channels` values.
pub(super) fn columns(data: &[f32], channels: usize) -> Columns<'_> {
    Columns {
        data,
        count: data.len() / channels,
        stride: channels,
        tap_stride: channels,
    }
}

impl Layer for Linear {
    fn run(&mut self, kernels: Kernels, io: Io<'_>) {
        self.0.run(kernels, io.input(0), io.output);
    }

    fn uses_int8(&self) -> bool {
        self.0.uses_int8()
    }

    fn bytes(&self) -> usize {
        self.0.bytes()
    }
}
