//! Ops that combine values or select channels.

use ondes_kernels::Kernels;

use crate::native::layer::{Io, Layer};

pub(super) struct Add;

impl Layer for Add {
    fn updates_first_input(&self) -> bool {
        true
    }

    fn run(&mut self, kernels: Kernels, io: Io<'_>) {
        for other in 1..io.inputs.len() {
            kernels.add(io.output, io.input(other));
        }
    }
}

pub(super) struct Multiply;

impl Layer for Multiply {
    fn updates_first_input(&self) -> bool {
        true
    }

    fn run(&mut self, kernels: Kernels, io: Io<'_>) {
        let channels = io.channels(0);
        if io.channels(1) == channels {
            return kernels.multiply(io.output, io.input(1));
        }
        let factors = io.input(1);
        for (frame, &factor) in io.output.chunks_exact_mut(channels).zip(factors) {
            frame.iter_mut().for_each(|value| *value *= factor);
        }
    }
}

pub(super) struct Concat;

impl Layer for Concat {
    fn run(&mut self, _kernels: Kernels, io: Io<'_>) {
        let width: usize = io.inputs.iter().map(|place| place.channels).sum();
        let mut start = 0;
        for index in 0..io.inputs.len() {
            let channels = io.channels(index);
            let frames = io.input(index).chunks_exact(channels);
            io.output
                .chunks_exact_mut(width)
                .zip(frames)
                .for_each(|(y, x)| y[start..start + channels].copy_from_slice(x));
            start += channels;
        }
    }
}

pub(super) struct Split {
    pub start: usize,
    pub channels: usize,
}

impl Layer for Split {
    fn run(&mut self, _kernels: Kernels, io: Io<'_>) {
        let frames = io.input(0).chunks_exact(io.channels(0));
        io.output
            .chunks_exact_mut(self.channels)
            .zip(frames)
            .for_each(|(y, x)| y.copy_from_slice(&x[self.start..][..self.channels]));
    }
}
