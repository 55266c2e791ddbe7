//! A model as data: what it is, what it can do, its graph and its weights.
//!
//! Read in this order: [`graph`] (methods, ports, nodes), [`op`] (what a node does, its shapes and weights), [`control`],
//! [`card`], [`variant`], [`file`] (safetensors with a JSON header), [`import`] (captures of other programs) and [`limits`]
//! (what a file may ask of us). Nothing here computes sound; executors do.

pub mod card;
pub mod control;
pub mod error;
pub mod file;
pub mod graph;
pub mod import;
pub mod limits;
pub mod op;
pub mod variant;
pub mod weights;

use serde::{Deserialize, Serialize};

pub use card::{Card, Gear, Kind, Levels, Measure, Training};
pub use control::{Control, Curve};
pub use error::{Fault, ModelError};
pub use graph::{Method, Node, Port, Shape};
pub use op::Op;
pub use variant::Variant;
pub use weights::{Tensor, Weights};

use crate::instrument::Performance;

/// The version of the file format that this engine writes and reads.
pub const FORMAT: u32 = 1;

/// All of a model but its weights; the JSON header of a model file.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Header {
    /// File format version, [`FORMAT`].
    pub format: u32,
    /// What the model is to a player.
    pub kind: Kind,
    /// Rate of all audio and the reference of all ratios, Hz.
    pub sample_rate: u32,
    /// What the model can do.
    pub methods: Vec<Method>,
    /// Named, ranged inputs. A control named like an input port of a method feeds that port.
    #[serde(default)]
    pub controls: Vec<Control>,
    /// Smaller sizes of the method `forward`, the smallest first; each is a method of its own.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub variants: Vec<Variant>,
    /// How an instrument turns notes into pitch and loudness; only instruments have one.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub performance: Option<Performance>,
    /// Who made it, from what, and how good it is.
    pub card: Card,
}

impl Header {
    /// The method of that name.
    #[must_use]
    pub fn method(&self, name: &str) -> Option<&Method> {
        self.methods.iter().find(|method| method.name == name)
    }
}

/// A checked model: every shape fits, every weight is finite, every size is within [`limits`].
#[derive(Clone, Debug, PartialEq)]
pub struct Model {
    header: Header,
    weights: Weights,
    content_hash: String,
}

impl Model {
    /// Checks that header and weights fit together.
    ///
    /// # Errors
    /// [`Fault`] names the first node, weight or size that does not fit.
    pub fn new(header: Header, weights: Weights) -> Result<Self, Fault> {
        limits::check_header(&header)?;
        let mut expected = std::collections::BTreeMap::new();
        for method in &header.methods {
            let shapes = method.infer()?;
            limits::check_method(method, &shapes)?;
            for (node, inputs) in method.nodes.iter().zip(shapes.node_inputs()) {
                for spec in node.op.weights(&inputs) {
                    let name = format!("{}.{}", node.name, spec.name);
                    if let Some(other) = expected.insert(name.clone(), spec.shape.clone())
                        && other != spec.shape
                    {
                        return Err(Fault::weight(&name, "is used with two different shapes"));
                    }
                }
            }
        }
        weights.check(&expected)?;
        let content_hash = file::content_hash(&header, &weights)?;
        Ok(Self { header, weights, content_hash })
    }

    /// All but the weights.
    #[must_use]
    pub fn header(&self) -> &Header {
        &self.header
    }

    /// The weights by name, `NODE.PARAMETER`.
    #[must_use]
    pub fn weights(&self) -> &Weights {
        &self.weights
    }

    /// The BLAKE3 hash of header and weights, 64 hexadecimal digits; equal for equal sound.
    #[must_use]
    pub fn content_hash(&self) -> &str {
        &self.content_hash
    }

    /// Number of weights.
    #[must_use]
    pub fn parameters(&self) -> usize {
        self.weights.iter().map(|(_, tensor)| tensor.data.len()).sum()
    }

    /// The method of that name.
    ///
    /// # Errors
    /// [`Fault::Method`] when the model has none.
    pub fn method(&self, name: &str) -> Result<&Method, Fault> {
        self.header.method(name).ok_or_else(|| Fault::Method(name.to_owned()))
    }
}
