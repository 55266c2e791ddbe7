//! Linear layer.

use ondes_kernels::{Columns, Kernels};
use serde::{Deserialize, Serialize};

use super::operation::WeightAxis::{Inputs, Outputs};
use super::operation::{
    ChannelCut, ChannelLinks, Operation, RowPass, WeightSpec, require_positive,
};
use crate::model::Shape;
use crate::model::export::node_line::NodeLine;
use crate::native::layer::{Io, Layer, LayerContext};
use crate::native::product::Dense;

/// `y = W x + b`, `weight [outputs][inputs]`, `bias [outputs]`.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Linear {
    /// Channels of the output.
    pub outputs: usize,
}

impl Operation for Linear {
    fn shape(&self, inputs: &[Shape], _block: usize) -> Result<Shape, String> {
        require_positive(&[self.outputs])?;
        Ok(inputs[0].with_channels(self.outputs))
    }

    fn weights(&self, inputs: &[Shape]) -> Vec<WeightSpec> {
        let shape = [self.outputs, Shape::channels_of_first(inputs)];
        vec![
            WeightSpec::new("weight", &[Outputs, Inputs], &shape),
            WeightSpec::bias(self.outputs),
        ]
    }

    fn multiply_adds(&self, inputs: &[Shape], _output: Shape) -> usize {
        inputs[0].channels * self.outputs
    }

    fn channel_links(&self) -> ChannelLinks {
        ChannelLinks::Independent
    }

    fn narrow(&mut self, cut: &ChannelCut<'_>) {
        self.outputs = cut.outputs.len();
    }

    fn layer(&self, context: &LayerContext<'_>) -> Box<dyn Layer> {
        Box::new(LinearLayer::new(context))
    }

    fn row_pass(&self) -> Option<RowPass> {
        Some(RowPass::Convolution {
            kernel: 1,
            dilation: 1,
            groups: 1,
        })
    }

    fn torchscript(&self, line: &mut NodeLine<'_, '_>) -> String {
        let x = line.x();
        let [weight, bias] = line.parameters(["weight", "bias"]);
        format!("torch.transpose(torch.linear(torch.transpose({x}, 1, 2), {weight}, {bias}), 1, 2)")
    }
}

/// One matrix product over all frames of all streams.
struct LinearLayer(Dense);

impl LinearLayer {
    fn new(context: &LayerContext<'_>) -> Self {
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

impl Layer for LinearLayer {
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
