//! The linear layer: one matrix product over all frames of all streams.

use ondes_kernels::{Columns, Kernels};

use super::product::Dense;
use super::{Build, Io, Layer};

pub(super) struct Linear(Dense);

impl Linear {
    pub fn new(build: &Build<'_>) -> Self {
        Self(Dense::new(build.weight("weight"), build.weight("bias"), build.streams * build.frames))
    }
}

/// Columns that lie one after another.
pub(super) fn columns(data: &[f32], channels: usize) -> Columns<'_> {
    Columns { data, count: data.len() / channels, stride: channels, tap_stride: channels }
}

impl Layer for Linear {
    fn run(&mut self, kernels: Kernels, io: Io<'_>) {
        self.0.run(kernels, io.input(0), io.output);
    }

    fn in_bytes(&self) -> bool {
        self.0.in_bytes()
    }

    fn bytes(&self) -> usize {
        self.0.bytes()
    }
}
