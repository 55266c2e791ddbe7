//! Models as data: header, graph, weights and card. Nothing here computes sound.
//!
//! Suggested reading order: [`graph`] (methods, ports, nodes), [`ops`](crate::ops) (the
//! operations of nodes), [`control`], [`card`], [`variant`], [`attacks`], [`weights`] and their
//! [`storage`], [`compression`] (16-bit and 8-bit weights), [`mod@file`] (safetensors with a JSON
//! header), [`import`] (captures made by other programs), [`export`] (files for other programs),
//! [`program`] (TorchScript models) and [`limits`] (bounds on what a file may request).
//! [`crate::executor`] runs a model.

pub mod attacks;
pub mod bars;
pub mod card;
pub mod compression;
pub mod control;
pub mod error;
pub mod export;
pub mod file;
mod foreign;
pub mod graph;
mod identity;
pub mod import;
pub mod limits;
pub mod program;
mod shape;
pub mod storage;
mod tensors;
mod validate;
pub mod variant;
pub mod weights;

use std::sync::Arc;

use serde::{Deserialize, Serialize};

pub use attacks::{Attack, Attacks};
pub use card::{Card, Gear, Kind, Levels, Measure, Training};
pub use control::{Control, Curve, KnobRange};
pub use error::{ModelError, ModelFileError};
pub use graph::{Method, Node, Port};
pub use program::Program;
pub use shape::Shape;
pub use storage::Storage;
pub use variant::Variant;
pub use weights::{Tensor, Weights};

pub use crate::ops::{Activation, Distribution, Op, WeightAxis, WeightSpec};

use self::identity::Identity;
use crate::instrument::Performance;

/// File format version of models whose weights are all F32. Every engine reads it.
pub const FORMAT: u32 = 1;
/// File format version of models with compressed weights ([`Storage`]); the newest that this engine
/// reads.
pub const FORMAT_COMPRESSED: u32 = 2;

/// Everything in a model except its weights; stored as the JSON header of a model file.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Header {
    /// File format version: [`FORMAT`] if all weights are F32, else [`FORMAT_COMPRESSED`].
    pub format: u32,
    /// Kind of model: instrument, effect, codec or generator.
    pub kind: Kind,
    /// Sample rate in Hz of all audio ports; the reference of all ratios.
    pub sample_rate: u32,
    /// Methods of the model, such as `forward` or `synth`.
    pub methods: Vec<Method>,
    /// Named, ranged inputs. A control with the name of an input port feeds that port.
    #[serde(default)]
    pub controls: Vec<Control>,
    /// Smaller versions of the base method, smallest first; each is a method of its own.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub variants: Vec<Variant>,
    /// Factor of [`OVERSAMPLINGS`](limits::OVERSAMPLINGS) at which an effect is played unless the
    /// player asks for another, so that what it adds to a sound does not alias.
    #[serde(default = "one", skip_serializing_if = "is_one")]
    pub oversampling: usize,
    /// Performance settings that turn notes into pitch and loudness; only instruments have them.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub performance: Option<Performance>,
    /// Name, author, licence, training and quality.
    pub card: Card,
}

fn one() -> usize {
    1
}

#[allow(
    clippy::trivially_copy_pass_by_ref,
    reason = "serde passes a reference"
)]
fn is_one(factor: &usize) -> bool {
    *factor == 1
}

impl Header {
    /// Returns the method called `name`.
    #[must_use]
    pub fn method(&self, name: &str) -> Option<&Method> {
        self.methods.iter().find(|method| method.name == name)
    }
}

/// A validated model: all shapes fit, all weights are finite, all sizes are within [`limits`].
///
/// # Examples
/// ```
/// use ondes_engine::model::{Card, FORMAT, Header, Kind, Method, Model, Node, Op, Port, Tensor, Weights, file};
/// use ondes_engine::ops::Linear;
///
/// let port = |name: &str| Port { name: name.into(), channels: 1, ratio: 1 };
/// let gain = Node { name: "gain".into(), inputs: vec!["in".into()], op: Op::Linear(Linear { outputs: 1 }) };
/// let header = Header {
///     format: FORMAT,
///     kind: Kind::Effect,
///     sample_rate: 48_000,
///     methods: vec![Method {
///         name: "forward".into(),
///         block: 1,
///         warm_up: 0,
///         inputs: vec![port("in")],
///         outputs: vec![port("gain")],
///         nodes: vec![gain],
///     }],
///     controls: Vec::new(),
///     variants: Vec::new(),
///     oversampling: 1,
///     performance: None,
///     card: Card { name: "Half".into(), ..Card::default() },
/// };
/// let mut weights = Weights::default();
/// weights.insert("gain.weight", Tensor::new(&[1, 1], vec![0.5]));
/// weights.insert("gain.bias", Tensor::new(&[1], vec![0.0]));
/// let model = Model::new(header, weights)?;
///
/// // The bytes of a model file are parsed to an equal model.
/// assert_eq!(file::parse(&file::serialize(&model)?)?, model);
/// assert_eq!(model.header().card.name, "Half");
/// assert_eq!(model.parameters(), 2);
/// assert_eq!(model.latency_samples(model.method("forward")?), 0);
/// # Ok::<(), ondes_engine::model::ModelError>(())
/// ```
#[derive(Clone, Debug)]
pub struct Model {
    header: Header,
    weights: Weights,
    program: Option<Arc<Program>>,
    attacks: Option<Arc<Attacks>>,
    identity: Identity,
}

/// Two models are equal if they would be written the same.
impl PartialEq for Model {
    fn eq(&self, other: &Self) -> bool {
        (&self.header, &self.weights, &self.program, &self.attacks)
            == (
                &other.header,
                &other.weights,
                &other.program,
                &other.attacks,
            )
    }
}

impl Model {
    /// Creates a model from a header and weights, and validates both.
    ///
    /// # Errors
    /// Returns [`ModelError`] for the first node, weight or size that is invalid.
    pub fn new(header: Header, weights: Weights) -> Result<Self, ModelError> {
        validate::check_header(&header)?;
        let mut expected = std::collections::BTreeMap::new();
        for method in &header.methods {
            let shapes = method.infer()?;
            if method.is_program() {
                return Err(ModelError::Header(format!(
                    "method {:?} has no nodes",
                    method.name
                )));
            }
            validate::check_method(method, &shapes)?;
            for (node, inputs) in method.nodes.iter().zip(shapes.node_inputs()) {
                for spec in node.op.weights(&inputs) {
                    let name = format!("{}.{}", node.name, spec.name);
                    if let Some(other) = expected.insert(name.clone(), spec.shape.clone())
                        && other != spec.shape
                    {
                        return Err(ModelError::weight(
                            &name,
                            "is used with two different shapes",
                        ));
                    }
                }
            }
        }
        weights.check(&expected)?;
        if header.format == FORMAT && !weights.are_f32() {
            let reason = format!("a model of format {FORMAT} has weights that are not F32");
            return Err(ModelError::Header(reason));
        }
        let identity = Identity::new(&header, &weights, None)?;
        Ok(Self::identified(header, weights, None, identity))
    }

    fn identified(
        header: Header,
        weights: Weights,
        program: Option<Arc<Program>>,
        identity: Identity,
    ) -> Self {
        Self {
            header,
            weights,
            program,
            attacks: None,
            identity,
        }
    }

    /// Gives a model whose file states no name that of its file.
    #[must_use]
    pub(crate) fn named_after(mut self, file: &std::path::Path) -> Self {
        if self.header.card.name.trim().is_empty()
            && let Some(stem) = file.file_stem()
        {
            self.header.card.name = stem.to_string_lossy().into_owned();
        }
        self
    }

    /// Creates a model that runs a TorchScript program; its methods have ports but no nodes.
    ///
    /// # Errors
    /// Returns [`ModelError`] for the first method or size that is invalid.
    pub fn from_program(header: Header, program: Program) -> Result<Self, ModelError> {
        validate::check_header(&header)?;
        for method in &header.methods {
            validate::check_method(method, &method.infer()?)?;
            if !(method.is_program() && program.calls.contains_key(&method.name)) {
                return Err(ModelError::Header(format!(
                    "method {:?} is not in the program",
                    method.name
                )));
            }
        }
        let base = program
            .original
            .as_ref()
            .map(|original| original.content_hash().to_owned());
        let hash = match &base {
            None => blake3::hash(&program.bytes),
            Some(base) => {
                let played = serde_json::to_vec(&(base, header.kind, &program.calls));
                blake3::hash(&played.map_err(|error| ModelError::Header(error.to_string()))?)
            }
        };
        let whole = hash.to_hex().to_string();
        let identity = Identity {
            base: base.unwrap_or_else(|| whole.clone()),
            whole,
        };
        Ok(Self::identified(
            header,
            Weights::default(),
            Some(Arc::new(program)),
            identity,
        ))
    }

    /// Returns the header.
    #[must_use]
    pub fn header(&self) -> &Header {
        &self.header
    }

    /// Returns the weights, keyed by `NODE.PARAMETER`.
    #[must_use]
    pub fn weights(&self) -> &Weights {
        &self.weights
    }

    /// Returns the TorchScript program, if the model is one.
    #[must_use]
    pub fn program(&self) -> Option<&Arc<Program>> {
        self.program.as_ref()
    }

    /// Returns the content hash: BLAKE3 over what computes the sound (graph, weights, rates, ranges
    /// of controls), or over a program's file and what was chosen of it, as 64 hexadecimal digits.
    /// Names, card and path are not part of it. Models with equal hashes sound equal.
    #[must_use]
    pub fn content_hash(&self) -> &str {
        &self.identity.whole
    }

    /// Returns the [content hash](Self::content_hash) of the model without its variants, or without
    /// what was chosen of a program. It is equal for all files that sound equal at full size, with
    /// or without variants.
    #[must_use]
    pub fn base_hash(&self) -> &str {
        &self.identity.base
    }

    /// Returns the checksum that a model file holds: BLAKE3 over the whole header and the weights,
    /// hexadecimal.
    ///
    /// # Errors
    /// Returns [`ModelError::Header`] if the header cannot be encoded.
    pub fn checksum(&self) -> Result<String, ModelError> {
        let attacks = self.attacks.iter().flat_map(|attacks| attacks.tensors());
        identity::checksum(&self.header, self.weights.iter().chain(attacks))
    }

    /// Returns the number of weight values.
    #[must_use]
    pub fn parameters(&self) -> usize {
        let own: usize = self
            .weights
            .iter()
            .map(|(_, tensor)| tensor.values().len())
            .sum();
        own + self
            .program
            .as_ref()
            .map_or(0, |program| program.parameters)
    }

    /// Returns a method's latency in samples, from its graph ([`Method::latency_samples`]) or as
    /// its program states.
    #[must_use]
    pub fn latency_samples(&self, method: &Method) -> usize {
        let call = self
            .program
            .as_ref()
            .and_then(|program| program.calls.get(&method.name));
        call.map_or_else(|| method.latency_samples(), |call| call.delay)
    }

    /// Returns how long a method sounds after its input has ended, in samples
    /// ([`Method::tail_samples`]).
    #[must_use]
    pub fn tail_samples(&self, method: &Method) -> usize {
        let rate = self.header.sample_rate;
        if self.program.is_some() {
            Program::tail_samples(rate)
        } else {
            method.tail_samples(rate)
        }
    }

    /// Returns the method called `name`.
    ///
    /// # Errors
    /// Returns [`ModelError::Method`] if the model has no method of that name.
    pub fn method(&self, name: &str) -> Result<&Method, ModelError> {
        self.header
            .method(name)
            .ok_or_else(|| ModelError::Method(name.to_owned()))
    }
}
