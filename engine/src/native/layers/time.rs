//! Ops that move frames in time, or declare that they were moved.

use ondes_kernels::Kernels;

use super::history::FrameHistory;
use crate::native::layer::{Io, Layer, LayerContext};

pub(super) struct Delay {
    /// `[stream]`
    histories: Vec<FrameHistory<f32>>,
}

impl Delay {
    pub fn new(context: &LayerContext<'_>, frames: usize) -> Self {
        let history = |_| FrameHistory::new(context.channels(), frames, context.frames, 0.0);
        Self {
            histories: (0..context.streams).map(history).collect(),
        }
    }
}

impl Layer for Delay {
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

/// Leaves all values as they are.
pub(super) struct Identity;

impl Layer for Identity {
    fn updates_first_input(&self) -> bool {
        true
    }

    fn run(&mut self, _kernels: Kernels, _io: Io<'_>) {}
}

/// Negates odd channels in the first frame of each pair. A block is an even number of frames, so a
/// step begins with a first one.
pub(super) struct FlipOddBands;

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
