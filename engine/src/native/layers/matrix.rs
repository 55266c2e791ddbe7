//! The linear layer: one matrix product over all frames of all streams.

use ondes_kernels::{Columns, Kernels, PackedMatrix};

use super::{Build, Io, Layer};

pub(super) struct Linear {
    matrix: PackedMatrix,
}

impl Linear {
    pub fn new(build: &Build<'_>) -> Self {
        Self { matrix: pack(build, "weight", "bias") }
    }
}

/// Packs a weight `[outputs][inputs]` and a bias `[outputs]`.
pub(super) fn pack(build: &Build<'_>, weight: &str, bias: &str) -> PackedMatrix {
    let weight = build.weight(weight);
    let [outputs, inputs] = weight.shape[..] else { unreachable!("a checked model's matrix has two extents") };
    PackedMatrix::new(outputs, 1, inputs, |o, _, i| weight.data[o * inputs + i], Some(&build.weight(bias).data))
}

/// Columns that lie one after another.
pub(super) fn columns(data: &[f32], channels: usize) -> Columns<'_> {
    Columns { data, count: data.len() / channels, stride: channels, tap_stride: channels }
}

impl Layer for Linear {
    fn run(&mut self, kernels: Kernels, io: Io<'_>) {
        kernels.matmul(&self.matrix, columns(io.input(0), io.channels(0)), io.output, self.matrix.outputs());
    }

    fn bytes(&self) -> usize {
        self.matrix.bytes()
    }
}
