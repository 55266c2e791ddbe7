//! Source of the network that a capture is trained from.

use ondes_engine::model::{Model, Op};

use super::architecture::Architecture;

/// Network to train.
#[derive(Clone, Debug)]
pub enum NetworkSource {
    /// An architecture with random weights.
    New(Architecture),
    /// An existing model of any shape.
    Given(Box<Model>),
}

impl From<Architecture> for NetworkSource {
    fn from(architecture: Architecture) -> Self {
        Self::New(architecture)
    }
}

impl NetworkSource {
    /// Tells whether the network is recurrent.
    #[must_use]
    pub fn is_recurrent(&self) -> bool {
        match self {
            Self::New(architecture) => architecture.is_recurrent(),
            Self::Given(model) => {
                let mut nodes = model
                    .header()
                    .methods
                    .iter()
                    .flat_map(|method| &method.nodes);
                nodes.any(|node| matches!(node.op, Op::Gru(_) | Op::Lstm(_)))
            }
        }
    }

    /// Returns the model before training, at a sample rate in Hz.
    ///
    /// # Errors
    /// Returns an error if the model has another sample rate.
    pub fn initial(&self, seed: u64, sample_rate: u32) -> anyhow::Result<Model> {
        match self {
            Self::New(architecture) => architecture.untrained(seed, sample_rate),
            Self::Given(model) => {
                let own = model.header().sample_rate;
                anyhow::ensure!(
                    own == sample_rate,
                    "the capture has a sample rate of {own} Hz, the pair {sample_rate} Hz"
                );
                Ok(Model::clone(model))
            }
        }
    }

    /// Returns the names of the trained methods: all sizes of a new network, `forward` of an
    /// existing one.
    #[must_use]
    pub fn methods(&self, model: &Model) -> Vec<String> {
        let variants = model
            .header()
            .variants
            .iter()
            .map(|variant| variant.method.clone());
        let sizes = variants.filter(|_| matches!(self, Self::New(_)));
        std::iter::once("forward".to_owned()).chain(sizes).collect()
    }

    /// Returns the names of the trained weights. Weights that `.nam` files do not store stay fixed,
    /// and so does the second of two biases that are added.
    #[must_use]
    pub fn trained(&self) -> Vec<String> {
        match self {
            Self::New(architecture) => architecture
                .slots()
                .into_iter()
                .map(|slot| slot.name)
                .collect(),
            Self::Given(model) => {
                let known =
                    Architecture::recognize(model).and_then(|name| Architecture::named(&name).ok());
                known.map_or_else(
                    || trainable_weights(model),
                    |architecture| Self::New(architecture).trained(),
                )
            }
        }
    }

    /// Returns everything that the initial weights depend on, besides the seed.
    #[must_use]
    pub fn identity(&self) -> String {
        match self {
            Self::New(architecture) => format!("{architecture:?}"),
            Self::Given(model) => crate::trainer::task::model_hash(model),
        }
    }
}

/// Returns all weights of `forward` except the initial states and second biases of recurrent
/// layers.
fn trainable_weights(model: &Model) -> Vec<String> {
    let forward = model.header().method("forward");
    let nodes = forward.into_iter().flat_map(|method| &method.nodes);
    let mut names = Vec::new();
    for node in nodes {
        let fixed = |name: &str| match node.op {
            Op::Lstm(_) => ["h0", "c0", "bias_hh"].contains(&name),
            Op::Gru(_) => name == "h0",
            _ => false,
        };
        let specs = node.op.weights(&[]);
        names.extend(
            specs
                .iter()
                .filter(|spec| !fixed(spec.name))
                .map(|spec| format!("{}.{}", node.name, spec.name)),
        );
    }
    names
}
