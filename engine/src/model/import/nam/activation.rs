//! Activations by their names in `.nam` files.

use crate::model::import::field::Field;
use crate::model::import::graph_builder::GraphBuilder;
use crate::model::{Activation, ModelError, Op};
use crate::ops::{Affine, Prelu};

/// Activation with its parameters.
#[derive(Clone, Debug, PartialEq)]
pub(super) enum NamActivation {
    /// Activation without weights.
    Plain(Op),
    /// PReLU with one slope, or one for each channel.
    Prelu(Vec<f32>),
    /// Softsign mapped to the range 0 to 1.
    Softsigmoid,
}

impl NamActivation {
    /// Reads a name, or an object with a name and parameters.
    pub fn read(field: &Field<'_>) -> Result<Self, ModelError> {
        let name = if field.is_object() {
            field.find("type").map_or_else(|| field.need("name"), Ok)?
        } else {
            field.clone()
        };
        let number = |parameter: &str, usual: f32| match field.find(parameter) {
            Some(number) => number.finite(),
            None => Ok(usual),
        };
        let op = match name.text()? {
            "Tanh" => Op::Activation(Activation::Tanh),
            "Hardtanh" => match (number("min_val", -1.0)?, number("max_val", 1.0)?) {
                (-1.0, 1.0) => Op::Activation(Activation::HardTanh),
                (min, max) => Op::Activation(Activation::LeakyHardTanh {
                    min,
                    max,
                    min_slope: 0.0,
                    max_slope: 0.0,
                }),
            },
            "Fasttanh" => Op::Activation(Activation::FastTanh),
            "ReLU" => Op::Activation(Activation::Relu),
            "LeakyReLU" => Op::Activation(Activation::LeakyRelu {
                slope: number("negative_slope", 0.01)?,
            }),
            "PReLU" => return Self::prelu(field),
            "Sigmoid" => Op::Activation(Activation::Sigmoid),
            "SiLU" => Op::Activation(Activation::Silu),
            "Hardswish" => Op::Activation(Activation::HardSwish),
            "LeakyHardtanh" => Op::Activation(Activation::LeakyHardTanh {
                min: number("min_val", -1.0)?,
                max: number("max_val", 1.0)?,
                min_slope: number("min_slope", 0.01)?,
                max_slope: number("max_slope", 0.01)?,
            }),
            "Softsign" => Op::Activation(Activation::Softsign),
            "Softsigmoid" => return Ok(Self::Softsigmoid),
            other => return Err(name.error(&format!("unknown activation {other:?}"))),
        };
        Ok(Self::Plain(op))
    }

    fn prelu(field: &Field<'_>) -> Result<Self, ModelError> {
        let slopes = match (field.find("negative_slopes"), field.find("negative_slope")) {
            (Some(slopes), _) => slopes.numbers()?,
            (None, Some(slope)) => vec![slope.finite()?],
            // As in the format's own player.
            (None, None) => vec![0.01],
        };
        if slopes.is_empty() {
            Err(field.error("a PReLU needs a slope"))
        } else {
            Ok(Self::Prelu(slopes))
        }
    }

    /// Returns the activation of the first channels alone.
    pub fn sliced(&self, channels: usize) -> Self {
        match self {
            Self::Prelu(slopes) if slopes.len() > channels => {
                Self::Prelu(slopes[..channels].to_vec())
            }
            _ => self.clone(),
        }
    }

    /// Adds the activation's nodes; the last one is called `name`.
    pub fn add(
        &self,
        builder: &mut GraphBuilder,
        name: &str,
        input: &str,
    ) -> Result<String, ModelError> {
        match self {
            Self::Plain(op) => builder.node(name, &[input], op.clone()),
            Self::Prelu(slopes) => {
                let node = builder.node(
                    name,
                    &[input],
                    Op::Prelu(Prelu {
                        slopes: slopes.len(),
                    }),
                )?;
                builder.weight(&node, "weight", &[slopes.len()], slopes.clone());
                Ok(node)
            }
            Self::Softsigmoid => {
                let sign = builder.node(
                    &format!("{name}_sign"),
                    &[input],
                    Op::Activation(Activation::Softsign),
                )?;
                builder.node(
                    name,
                    &[&sign],
                    Op::Affine(Affine {
                        scale: 0.5,
                        offset: 0.5,
                    }),
                )
            }
        }
    }
}
