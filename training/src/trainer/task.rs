//! The interface of everything that learns.

use std::collections::BTreeMap;
use std::ops::Range;
use std::path::Path;

use ondes_engine::model::{Method, Model, Training, Weights};
use ondes_torch::{TorchGraph, TorchWeights};
use tch::{Device, Tensor};

use crate::data::LoaderStats;
use crate::loss::Loss;

/// Result of a validation.
pub struct Validation {
    /// Loss that selects the best weights; lower is better.
    pub loss: f64,
    /// Name of the loss.
    pub measure: &'static str,
    /// Beginning of the validation sound: target, then the model's. Only for logs.
    pub sounds: Option<[Vec<f32>; 2]>,
    /// Further measures for the progress line, such as the information in a codec's latents.
    pub note: Option<String>,
}

/// Description of a training.
pub struct TaskInfo {
    /// Name for messages.
    pub name: String,
    /// Name of the corpus.
    pub corpus: String,
    /// Length of the training sound, seconds.
    pub seconds: f64,
    /// Seed of initial weights, crops and noise.
    pub seed: u64,
}

impl TaskInfo {
    /// Describes a training on the recordings of a folder.
    #[must_use]
    pub fn from_recordings(name: &str, folder: &Path, seconds: f64, seed: u64) -> Self {
        let corpus = folder.file_name().unwrap_or_default();
        Self {
            name: name.to_owned(),
            corpus: corpus.to_string_lossy().into_owned(),
            seconds,
            seed,
        }
    }

    /// Returns the training part of the card for weights after `steps` steps.
    #[must_use]
    pub fn card(self, steps: u64, validation_loss: f64) -> Training {
        Training {
            tool: format!("ondes-train {}", env!("CARGO_PKG_VERSION")),
            corpus: self.corpus,
            corpus_seconds: self.seconds.round(),
            steps,
            seed: self.seed,
            validation_loss,
        }
    }
}

/// Something that learns: its batches, its loss and its validation. It knows nothing of optimisers,
/// precision or files.
///
/// A step calls [`Task::batch`], then [`Task::loss`] as often as the optimiser needs gradients,
/// then [`Task::finish_step`]. Batches and noise depend on the step and the seed only, so that a
/// run can be resumed.
pub trait Task {
    /// Data of a step.
    type Batch;

    /// Returns the model before training; its weights are those to start from.
    fn initial(&self) -> &Model;

    /// Returns weights that are trained but not part of the model, such as projections between two
    /// networks.
    fn further_weights(&self) -> Option<&BTreeMap<String, Tensor>> {
        None
    }

    /// Returns the names of the weights that are trained.
    fn trained(&self) -> Vec<String>;

    /// Describes the training for messages and for the model's card.
    fn info(&self) -> TaskInfo;

    /// Returns the sample rate, Hz.
    fn sample_rate(&self) -> u32 {
        self.initial().header().sample_rate
    }

    /// Returns the number of steps of a pass through the data; `None` if crops are drawn at random.
    fn epoch_steps(&self) -> Option<u64> {
        None
    }

    /// Returns the number of rows in the batch of a step.
    fn rows(&self, step: u64) -> usize;

    /// Changes the number of rows, before the first step.
    fn set_batch(&mut self, _rows: usize) {}

    /// Sets which process of how many this is. A batch is then asked for by the rows of this
    /// process only.
    fn set_process(&mut self, _rank: usize, _size: usize) {}

    /// Computes the network's values again in the backward pass from now on, to need less memory.
    fn checkpoint_activations(&mut self) {}

    /// Returns rows of the batch of a step.
    ///
    /// # Errors
    /// Returns an error if the data cannot be read.
    fn batch(
        &mut self,
        step: u64,
        rows: Range<usize>,
        device: Device,
    ) -> anyhow::Result<Self::Batch>;

    /// Returns counts and times of the threads that read the data, if the task has any.
    fn loader_stats(&self) -> Option<LoaderStats> {
        None
    }

    /// Tells whether a step moves the weights; others only bring recurrent state up to date.
    fn learns(&self, _step: u64) -> bool {
        true
    }

    /// Returns the loss of a batch.
    fn loss(&mut self, weights: &TorchWeights, batch: &Self::Batch) -> Loss;

    /// Returns a random scalar whose gradient, squared, has as its mean the diagonal of the loss's
    /// Gauss-Newton matrix; `None` if the loss has no squared error.
    fn curvature_sample(
        &mut self,
        _weights: &TorchWeights,
        _batch: &Self::Batch,
        _seed: u64,
    ) -> Option<Tensor> {
        None
    }

    /// Forgets what has been computed of the current step, which begins again.
    fn restart_step(&mut self) {}

    /// Ends a step: the state after its batch becomes that before the next.
    fn finish_step(&mut self) {}

    /// Returns the state between steps by name, for checkpoints, of the rows that were computed;
    /// they are in dimension 1.
    fn state(&self) -> Vec<(String, Tensor)> {
        Vec::new()
    }

    /// Replaces the state between steps by that of all rows.
    fn set_state(&mut self, _state: Vec<(String, Tensor)>) {}

    /// Measures weights on the validation sound, up to `rows` crops at once: fewer need less
    /// memory.
    ///
    /// # Errors
    /// Returns an error if the weights are not finite.
    fn validate(
        &mut self,
        weights: &TorchWeights,
        device: Device,
        rows: usize,
    ) -> anyhow::Result<Validation>;

    /// Returns the most crops that [`Task::validate`] computes at once; 1 if fewer would not need
    /// less memory.
    fn validation_rows(&self) -> usize {
        1
    }

    /// Returns the node at which the values of a batch first stop being finite, if any.
    fn first_non_finite(&self, weights: &TorchWeights, batch: &Self::Batch) -> Option<String>;

    /// Returns everything that the weights depend on besides the settings of the trainer, by name.
    /// A checkpoint is resumed only if all are equal.
    fn identity(&self) -> Vec<(String, String)>;
}

/// Returns the first node of a method whose output is not finite, as "NODE".
pub fn first_non_finite(
    method: &Method,
    sample_rate: u32,
    weights: &TorchWeights,
    inputs: &[Tensor],
) -> Option<String> {
    let shapes = method.infer().ok()?;
    let mut observed = method.clone();
    observed.outputs.clear();
    for (index, node) in method.nodes.iter().enumerate() {
        let shape = shapes.values[method.inputs.len() + index];
        observed.outputs.push(ondes_engine::model::Port {
            name: node.name.clone(),
            channels: shape.channels,
            ratio: shape.ratio,
        });
    }
    let graph = TorchGraph::new(&observed, sample_rate).ok()?;
    let values = tch::no_grad(|| graph.run(weights, inputs, 0));
    let finite = |value: &Tensor| value.isfinite().all().int64_value(&[]) == 1;
    method
        .nodes
        .iter()
        .zip(&values)
        .find(|(_, value)| !finite(value))
        .map(|(node, _)| node.name.clone())
}

/// Returns the parts of `batches` batches of `batch` rows with `most` at once: number of the batch,
/// rows, and their share of the batch.
pub fn validation_parts(
    batches: u64,
    batch: usize,
    most: usize,
) -> impl Iterator<Item = (u64, Range<usize>, f64)> {
    let most = most.clamp(1, batch.max(1));
    (0..batches).flat_map(move |step| {
        (0..batch).step_by(most).map(move |first| {
            let rows = first..(first + most).min(batch);
            let share = rows.len() as f64 / batch as f64;
            (step, rows, share)
        })
    })
}

/// Selects the weights of a model from trained ones.
///
/// # Errors
/// Returns an error if one is missing.
pub fn model_weights(model: &Model, trained: &TorchWeights) -> anyhow::Result<Weights> {
    let mut weights = Weights::default();
    for (name, _) in model.weights().iter() {
        let tensor = trained.0.get(name);
        let tensor =
            anyhow::Context::with_context(tensor, || format!("the model has no weight {name:?}"))?;
        weights.insert(name, ondes_torch::weights::to_plain(tensor)?);
    }
    Ok(weights)
}

/// Returns a hash of a model's methods and weights; what else is on its card does not matter.
#[must_use]
pub fn model_hash(model: &Model) -> String {
    let mut hasher = blake3::Hasher::new();
    hasher.update(format!("{:?}", model.header().methods).as_bytes());
    for (name, weight) in model.weights().iter() {
        hasher
            .update(name.as_bytes())
            .update(bytemuck::cast_slice(&weight.floats()));
    }
    hasher.finalize().to_hex().to_string()
}
