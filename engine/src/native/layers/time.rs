//! Ops that move frames in time, or say that they were moved.

use ondes_kernels::Kernels;

use super::history::Past;
use super::{Build, Io, Layer};

pub(super) struct Delay {
    pasts: Vec<Past<f32>>,
}

impl Delay {
    pub fn new(build: &Build<'_>, frames: usize) -> Self {
        let past = |_| Past::new(build.channels(), frames, build.frames, 0.0);
        Self { pasts: (0..build.streams).map(past).collect() }
    }
}

impl Layer for Delay {
    fn run(&mut self, _kernels: Kernels, io: Io<'_>) {
        let length = io.frames * io.channels(0);
        let rows = io.input(0).chunks_exact(length).zip(io.output.chunks_exact_mut(length));
        for ((input, output), &stream) in rows.zip(io.streams) {
            let past = &mut self.pasts[stream];
            past.room(io.frames).copy_from_slice(input);
            output.copy_from_slice(&past.seen(io.frames)[..length]);
        }
    }

    fn reset(&mut self, stream: usize) {
        self.pasts[stream].reset();
    }

    fn settle(&mut self) {
        let settled = self.pasts[0].seen(0).to_vec();
        self.pasts.iter_mut().for_each(|past| past.settle(&settled));
    }

    fn bytes(&self) -> usize {
        self.pasts.iter().map(Past::bytes).sum()
    }
}

/// What comes out is what goes in, value by value.
pub(super) struct Identity;

impl Layer for Identity {
    fn run(&mut self, _kernels: Kernels, _io: Io<'_>) {}
}

/// A step begins with the first frame of two, since a block is an even number of them.
pub(super) struct FlipOddBands;

impl Layer for FlipOddBands {
    fn run(&mut self, _kernels: Kernels, io: Io<'_>) {
        let channels = io.channels(0);
        for frame in io.output.chunks_exact_mut(channels).step_by(2) {
            frame.iter_mut().skip(1).step_by(2).for_each(|value| *value = -*value);
        }
    }
}
