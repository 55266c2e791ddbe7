//! What a capture's trainer trains: a new network of a usual size, or one of any shape that there is already.

use ondes_engine::model::{Model, Op};

use super::architecture::Architecture;

/// A network to be trained.
#[derive(Clone, Debug)]
pub enum Network {
    /// From random weights.
    New(Architecture),
    /// From the weights that it has.
    Given(Box<Model>),
}

impl From<Architecture> for Network {
    fn from(architecture: Architecture) -> Self {
        Self::New(architecture)
    }
}

impl Network {
    /// Whether it remembers by a state rather than by what it can see.
    #[must_use]
    pub fn is_recurrent(&self) -> bool {
        match self {
            Self::New(architecture) => architecture.is_recurrent(),
            Self::Given(model) => {
                let mut nodes = model.header().methods.iter().flat_map(|method| &method.nodes);
                nodes.any(|node| matches!(node.op, Op::Gru { .. } | Op::Lstm { .. }))
            }
        }
    }

    /// The network before training, at that rate in Hz.
    ///
    /// # Errors
    /// When there is no such network, or it is at another rate.
    pub fn initial(&self, seed: u64, sample_rate: u32) -> anyhow::Result<Model> {
        match self {
            Self::New(architecture) => architecture.untrained(seed, sample_rate),
            Self::Given(model) => {
                let own = model.header().sample_rate;
                anyhow::ensure!(own == sample_rate, "the capture is at {own} Hz, the sound at {sample_rate} Hz");
                Ok(Model::clone(model))
            }
        }
    }

    /// The names of the weights that are trained. What other players have no place for stays as it is, and so does a second
    /// bias that is summed with a first.
    #[must_use]
    pub fn trained(&self) -> Vec<String> {
        match self {
            Self::New(architecture) => architecture.slots().into_iter().map(|slot| slot.name).collect(),
            Self::Given(model) => {
                let known = Architecture::of(model).and_then(|name| Architecture::named(&name).ok());
                known.map_or_else(|| free_weights(model), |architecture| Self::New(architecture).trained())
            }
        }
    }

    /// What the weights depend on.
    #[must_use]
    pub fn identity(&self) -> String {
        match self {
            Self::New(architecture) => format!("{architecture:?}"),
            Self::Given(model) => model.content_hash().to_owned(),
        }
    }
}

/// All weights of a `forward`, but the states that recurrent layers start from and their second biases.
fn free_weights(model: &Model) -> Vec<String> {
    let forward = model.header().method("forward");
    let nodes = forward.into_iter().flat_map(|method| &method.nodes);
    let mut names = Vec::new();
    for node in nodes {
        let fixed = |name: &str| match node.op {
            Op::Lstm { .. } => ["h0", "c0", "bias_hh"].contains(&name),
            Op::Gru { .. } => name == "h0",
            _ => false,
        };
        let specs = node.op.weights(&[]);
        names.extend(specs.iter().filter(|spec| !fixed(spec.name)).map(|spec| format!("{}.{}", node.name, spec.name)));
    }
    names
}
