//! Ops that combine values or select channels.

use std::ops::RangeInclusive;

use ondes_kernels::Kernels;
use serde::{Deserialize, Serialize};

use super::operation::{ChannelCut, ChannelLinks, Operation, RowPass, require};
use crate::model::Shape;
use crate::model::export::node_line::NodeLine;
use crate::native::layer::{Io, Layer, LayerContext};

/// Sum of two or more values of one shape: a residual or skip connection.
pub(super) struct Add;

impl Operation for Add {
    fn arity(&self) -> RangeInclusive<usize> {
        2..=64
    }

    fn shape(&self, inputs: &[Shape], _block: usize) -> Result<Shape, String> {
        let channels = inputs[0].channels;
        match inputs.iter().find(|input| input.channels != channels) {
            None => Ok(inputs[0]),
            Some(other) => Err(format!(
                "has inputs of different channel counts, {channels} and {}",
                other.channels
            )),
        }
    }

    fn channel_links(&self) -> ChannelLinks {
        ChannelLinks::Same
    }

    fn layer(&self, _context: &LayerContext<'_>) -> Box<dyn Layer> {
        Box::new(Self)
    }

    fn row_pass(&self) -> Option<RowPass> {
        Some(RowPass::Sum)
    }

    fn torchscript(&self, line: &mut NodeLine<'_, '_>) -> String {
        line.values.join(" + ")
    }
}

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

/// Product of `x [C]` and `y [C]` or `y [1]`.
pub(super) struct Multiply;

impl Operation for Multiply {
    fn arity(&self) -> RangeInclusive<usize> {
        2..=2
    }

    fn shape(&self, inputs: &[Shape], _block: usize) -> Result<Shape, String> {
        let [channels, factor] = [0, 1].map(|index| inputs[index].channels);
        require([1, channels].contains(&factor), || {
            format!("has a factor of {factor} channels; allowed: 1 or {channels}")
        })?;
        Ok(inputs[0])
    }

    fn channel_links(&self) -> ChannelLinks {
        ChannelLinks::Product
    }

    fn layer(&self, _context: &LayerContext<'_>) -> Box<dyn Layer> {
        Box::new(Self)
    }

    fn row_pass(&self) -> Option<RowPass> {
        Some(RowPass::Product)
    }

    fn torchscript(&self, line: &mut NodeLine<'_, '_>) -> String {
        line.values.join(" * ")
    }
}

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

/// Concatenation of the channels of all inputs.
pub(super) struct Concat;

impl Operation for Concat {
    fn arity(&self) -> RangeInclusive<usize> {
        1..=64
    }

    fn shape(&self, inputs: &[Shape], _block: usize) -> Result<Shape, String> {
        let sum = inputs
            .iter()
            .try_fold(0_usize, |sum, input| sum.checked_add(input.channels));
        Ok(inputs[0].with_channels(sum.ok_or("has too many channels")?))
    }

    fn channel_links(&self) -> ChannelLinks {
        ChannelLinks::Concatenated
    }

    fn layer(&self, _context: &LayerContext<'_>) -> Box<dyn Layer> {
        Box::new(Self)
    }

    fn torchscript(&self, line: &mut NodeLine<'_, '_>) -> String {
        format!("torch.cat([{}], 1)", line.values.join(", "))
    }
}

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

/// Range of channels.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Split {
    /// First channel.
    pub start: usize,
    /// Number of channels.
    pub channels: usize,
}

impl Operation for Split {
    fn shape(&self, inputs: &[Shape], _block: usize) -> Result<Shape, String> {
        let (Self { start, channels }, all) = (*self, inputs[0].channels);
        let fits = start.checked_add(channels).is_some_and(|end| end <= all);
        require(channels > 0 && fits, || {
            format!("takes {channels} channels from {start} on; its input has {all}")
        })?;
        Ok(inputs[0].with_channels(channels))
    }

    fn channel_links(&self) -> ChannelLinks {
        ChannelLinks::Range { start: self.start }
    }

    fn narrow(&mut self, cut: &ChannelCut<'_>) {
        let before = cut.inputs.iter().filter(|channel| **channel < self.start);
        (self.start, self.channels) = (before.count(), cut.outputs.len());
    }

    fn layer(&self, _context: &LayerContext<'_>) -> Box<dyn Layer> {
        Box::new(*self)
    }

    fn row_pass(&self) -> Option<RowPass> {
        Some(RowPass::Range { start: self.start })
    }

    fn torchscript(&self, line: &mut NodeLine<'_, '_>) -> String {
        let Self { start, channels } = self;
        format!(
            "torch.slice({}, 1, {start}, {})",
            line.x(),
            start + channels
        )
    }
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
