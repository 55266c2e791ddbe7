//! Activations without weights, and fixed scales.

use ondes_kernels::{Activation, Kernels, Unary};
use serde::{Deserialize, Serialize};

use super::operation::{ChannelLinks, Operation, RowPass, require};
use crate::model::Shape;
use crate::model::export::node_line::{NodeLine, number};
use crate::native::layer::{Io, Layer, LayerContext};

impl Operation for Activation {
    fn shape(&self, inputs: &[Shape], _block: usize) -> Result<Shape, String> {
        require(self.has_finite_parameters(), || {
            format!("has a parameter that is not finite: {self:?}")
        })?;
        if let Self::LeakyHardTanh { min, max, .. } = *self {
            require(min <= max, || {
                format!("has a min of {min} above its max of {max}")
            })?;
        }
        Ok(inputs[0])
    }

    fn channel_links(&self) -> ChannelLinks {
        ChannelLinks::Same
    }

    fn layer(&self, _context: &LayerContext<'_>) -> Box<dyn Layer> {
        Box::new(*self)
    }

    fn row_pass(&self) -> Option<RowPass> {
        Some(RowPass::Unary(Unary::Activation(*self)))
    }

    fn torchscript(&self, line: &mut NodeLine<'_, '_>) -> String {
        activate(*self, line)
    }
}

impl Layer for Activation {
    fn updates_first_input(&self) -> bool {
        true
    }

    fn run(&mut self, kernels: Kernels, io: Io<'_>) {
        kernels.activate(*self, io.output);
    }
}

/// `scale · x + offset` with fixed numbers, such as to normalise an input port.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
pub struct Affine {
    /// Factor.
    pub scale: f32,
    /// Summand, after scaling.
    pub offset: f32,
}

impl Operation for Affine {
    fn shape(&self, inputs: &[Shape], _block: usize) -> Result<Shape, String> {
        let Self { scale, offset } = self;
        require(scale.is_finite() && offset.is_finite(), || {
            format!("has a parameter that is not finite: scale {scale}, offset {offset}")
        })?;
        Ok(inputs[0])
    }

    fn channel_links(&self) -> ChannelLinks {
        ChannelLinks::Same
    }

    fn layer(&self, _context: &LayerContext<'_>) -> Box<dyn Layer> {
        Box::new(*self)
    }

    fn row_pass(&self) -> Option<RowPass> {
        let Self { scale, offset } = *self;
        Some(RowPass::Unary(Unary::ScaleOffset { scale, offset }))
    }

    fn torchscript(&self, line: &mut NodeLine<'_, '_>) -> String {
        let [scale, offset] = [self.scale, self.offset].map(number);
        format!("{} * {scale} + {offset}", line.x())
    }
}

impl Layer for Affine {
    fn updates_first_input(&self) -> bool {
        true
    }

    fn run(&mut self, kernels: Kernels, io: Io<'_>) {
        kernels.scale_offset(io.output, self.scale, self.offset);
    }
}

/// Returns an activation in TorchScript.
fn activate(activation: Activation, line: &mut NodeLine<'_, '_>) -> String {
    let x = line.x();
    match activation {
        Activation::Tanh => format!("torch.tanh({x})"),
        Activation::Sigmoid => format!("torch.sigmoid({x})"),
        Activation::Relu => format!("torch.relu({x})"),
        Activation::LeakyRelu { slope } => format!("torch.leaky_relu({x}, {})", number(slope)),
        Activation::HardTanh => format!("torch.hardtanh({x})"),
        Activation::LeakyHardTanh {
            min,
            max,
            min_slope,
            max_slope,
        } => {
            let [min, max, min_slope, max_slope] = [min, max, min_slope, max_slope].map(number);
            format!(
                "torch.clamp({x}, {min}, {max}) + {min_slope} * torch.clamp_max({x} - {min}, 0.) \
                 + {max_slope} * torch.clamp_min({x} - {max}, 0.)"
            )
        }
        Activation::HardSwish => format!("torch.hardswish({x})"),
        Activation::Softsign => format!("{x} / (torch.abs({x}) + 1.)"),
        Activation::Silu => format!("torch.silu({x})"),
        Activation::FastTanh => {
            let a = line.variable("a", &format!("torch.abs({x})"));
            let s = line.variable("s", &format!("{a} * {a}"));
            format!(
                "{x} * (2.45550750702956 * ({a} + 1.) + (0.821226666969744 * {a} + 0.893229853513558) * {s}) \
                 / (({s} + 2.44506634652299) * ({a} + 0.814642734961073 * {s}) + 2.44506634652299)"
            )
        }
        Activation::Softplus => format!("torch.softplus({x})"),
        Activation::Exp => format!("torch.exp({x})"),
        Activation::ExpSigmoid => {
            format!(
                "2. * torch.exp({:?} * torch.log_sigmoid({x})) + 1e-07",
                std::f64::consts::LN_10
            )
        }
    }
}
