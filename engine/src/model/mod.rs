//! A model as data: what it is, what it can do, its graph and its weights.
//!
//! Read in this order: [`graph`] (methods, ports, nodes), [`op`] (what a node does, its shapes and weights), [`control`],
//! [`card`], [`variant`], [`weights`] and their [`storage`], [`compression`] (the same model in fewer bits), [`mod@file`]
//! (safetensors with a JSON header), [`import`] (captures of other programs), [`program`] (models that are code) and [`limits`]
//! (what a file may ask of us). Nothing here computes sound; executors do.

pub mod card;
pub mod compression;
pub mod control;
pub mod error;
pub mod file;
pub mod graph;
pub mod import;
pub mod limits;
pub mod op;
pub mod program;
pub mod storage;
mod tensors;
pub mod variant;
pub mod weights;

use std::sync::Arc;

use serde::{Deserialize, Serialize};

pub use card::{Card, Gear, Kind, Levels, Measure, Training};
pub use control::{Control, Curve};
pub use error::{ModelError, ModelFileError};
pub use graph::{Method, Node, Port, Shape};
pub use op::{Distribution, Op};
pub use program::Program;
pub use storage::Storage;
pub use variant::Variant;
pub use weights::{Tensor, Weights};

use crate::instrument::Performance;

/// The version of the file format of models whose weights are all F32: what every engine reads.
pub const FORMAT: u32 = 1;
/// That of models with weights in fewer bits ([`Storage`]); the newest that this engine reads.
pub const FORMAT_COMPRESSED: u32 = 2;

/// All of a model but its weights; the JSON header of a model file.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Header {
    /// File format version: [`FORMAT`] where all weights are F32, else [`FORMAT_COMPRESSED`].
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
    program: Option<Arc<Program>>,
    content_hash: String,
    base_hash: Option<String>,
}

impl Model {
    /// Checks that header and weights fit together.
    ///
    /// # Errors
    /// [`ModelError`] names the first node, weight or size that does not fit.
    pub fn new(header: Header, weights: Weights) -> Result<Self, ModelError> {
        limits::check_header(&header)?;
        let mut expected = std::collections::BTreeMap::new();
        for method in &header.methods {
            let shapes = method.infer()?;
            if method.is_program() {
                return Err(ModelError::Header(format!("method {:?} has no nodes", method.name)));
            }
            limits::check_method(method, &shapes)?;
            for (node, inputs) in method.nodes.iter().zip(shapes.node_inputs()) {
                for spec in node.op.weights(&inputs) {
                    let name = format!("{}.{}", node.name, spec.name);
                    if let Some(other) = expected.insert(name.clone(), spec.shape.clone())
                        && other != spec.shape
                    {
                        return Err(ModelError::weight(&name, "is used with two different shapes"));
                    }
                }
            }
        }
        weights.check(&expected)?;
        if header.format == FORMAT && !weights.are_f32() {
            let reason = format!("a model of format {FORMAT} has weights that are not F32");
            return Err(ModelError::Header(reason));
        }
        let content_hash = file::content_hash(&header, weights.iter())?;
        let whole = (!header.variants.is_empty()).then(|| header.without_variants());
        let base_hash = whole.map(|whole| file::content_hash(&whole, weights.used_by(&whole.methods))).transpose()?;
        Ok(Self { header, weights, program: None, content_hash, base_hash })
    }

    /// A model that is a program; its methods have ports and no nodes.
    ///
    /// # Errors
    /// [`ModelError`] names the first method or size that does not fit.
    pub fn from_program(header: Header, program: Program) -> Result<Self, ModelError> {
        limits::check_header(&header)?;
        for method in &header.methods {
            limits::check_method(method, &method.infer()?)?;
            if !(method.is_program() && program.calls.contains_key(&method.name)) {
                return Err(ModelError::Header(format!("method {:?} is none of the program's", method.name)));
            }
        }
        let content_hash = blake3::hash(&program.bytes).to_hex().to_string();
        Ok(Self {
            header,
            weights: Weights::default(),
            program: Some(Arc::new(program)),
            content_hash,
            base_hash: None,
        })
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

    /// What runs it, where it is no graph.
    #[must_use]
    pub fn program(&self) -> Option<&Arc<Program>> {
        self.program.as_ref()
    }

    /// The BLAKE3 hash of header and weights, or of a program's file, 64 hexadecimal digits; equal for equal sound.
    #[must_use]
    pub fn content_hash(&self) -> &str {
        &self.content_hash
    }

    /// The [content hash](Self::content_hash) that it has without its smaller sizes: equal for all that sounds equal at full
    /// size, whatever else a file holds.
    #[must_use]
    pub fn base_hash(&self) -> &str {
        self.base_hash.as_deref().unwrap_or(&self.content_hash)
    }

    /// Number of weights.
    #[must_use]
    pub fn parameters(&self) -> usize {
        let own: usize = self.weights.iter().map(|(_, tensor)| tensor.values().len()).sum();
        own + self.program.as_ref().map_or(0, |program| program.parameters)
    }

    /// Samples by which what comes out of one of its methods is behind what goes in ([`Method::latency_samples`]), or as a
    /// program says.
    #[must_use]
    pub fn latency_samples(&self, method: &Method) -> usize {
        let call = self.program.as_ref().and_then(|program| program.calls.get(&method.name));
        call.map_or_else(|| method.latency_samples(), |call| call.delay)
    }

    /// Samples for which sound still comes out of one of its methods after all that goes in has ended ([`Method::tail_samples`]).
    #[must_use]
    pub fn tail_samples(&self, method: &Method) -> usize {
        let rate = self.header.sample_rate;
        if self.program.is_some() { Program::tail_samples(rate) } else { method.tail_samples(rate) }
    }

    /// The method of that name.
    ///
    /// # Errors
    /// [`ModelError::Method`] when the model has none.
    pub fn method(&self, name: &str) -> Result<&Method, ModelError> {
        self.header.method(name).ok_or_else(|| ModelError::Method(name.to_owned()))
    }
}
