//! Checkpoints: the complete state of a run and its initial model, in a safetensors file.

use std::collections::HashMap;
use std::path::Path;

use anyhow::{Context, bail};
use ondes_engine::files::{self, AtomicFile};
use ondes_engine::model::{Model, Training, file};
use safetensors::SafeTensors;
use safetensors::tensor::{Dtype, TensorView};
use serde::{Deserialize, Serialize};
use tch::Tensor;

use super::precision::LossScale;
use crate::schedule::PlateauState;

/// Metadata key of the progress.
const PROGRESS_KEY: &str = "progress";
/// Name of the initial model's bytes.
const MODEL: &str = "model";

/// Progress of a run.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Progress {
    /// Steps that are done.
    pub step: u64,
    /// Steps of the run.
    pub steps: u64,
    /// Lowest validation loss and the step at which it was measured.
    pub best: Option<(f64, u64)>,
    /// Validations since the best.
    pub waited: u64,
    /// State of the plateau schedule.
    pub plateau: PlateauState,
    /// Mean of the loss over the last steps.
    pub mean_loss: Option<f64>,
    /// Factor of the loss in f16.
    pub loss_scale: LossScale,
    /// Steps in a row whose gradient was not finite.
    pub skipped: u64,
    /// Number of times that the run has diverged and continued.
    #[serde(default)]
    pub recoveries: i32,
    /// Kept checkpoints: validation loss and step.
    #[serde(default)]
    pub kept: Vec<(f64, u64)>,
    /// Everything that the mathematics of the run depends on, by name.
    pub identity: Vec<(String, String)>,
    /// Training part of the card of the best weights; `None` before the first validation.
    pub card: Option<Training>,
}

impl Progress {
    /// Returns the number of rows per batch.
    #[must_use]
    pub fn batch(&self) -> Option<usize> {
        let names = ["batch", "training.batch"];
        let (_, rows) = self
            .identity
            .iter()
            .find(|(name, _)| names.contains(&name.as_str()))?;
        rows.parse().ok()
    }

    /// Checks that another run computes the same.
    ///
    /// # Errors
    /// Returns an error that names the first field that differs.
    pub fn check_identity(&self, other: &[(String, String)]) -> anyhow::Result<()> {
        const LONG: usize = 60;
        for (name, ours) in other {
            let stored = self
                .identity
                .iter()
                .find(|(stored, _)| stored == name)
                .map(|(_, value)| value);
            match stored {
                Some(stored) if stored == ours => {}
                Some(stored) if stored.len() <= LONG && ours.len() <= LONG => {
                    bail!(
                        "{name} is {stored} in the checkpoint and {ours} now; omit --resume to start a new run"
                    )
                }
                _ => bail!(
                    "{name} has changed since the checkpoint; omit --resume to start a new run"
                ),
            }
        }
        let is_ours = |name: &String| other.iter().any(|(ours, _)| ours == name);
        if let Some((name, stored)) = self.identity.iter().find(|(name, _)| !is_ours(name)) {
            bail!(
                "{name} is {stored} in the checkpoint and not set now; omit --resume to start a new run"
            );
        }
        Ok(())
    }
}

/// Opened checkpoint.
pub struct Checkpoint {
    /// Progress.
    pub progress: Progress,
    bytes: Vec<u8>,
}

impl Checkpoint {
    /// Reads a checkpoint.
    ///
    /// # Errors
    /// Returns an error if the file is missing, damaged, or of another version.
    pub fn read(path: &Path) -> anyhow::Result<Self> {
        Self::parse(files::read(path, u64::MAX).context("no checkpoint to resume from")?)
    }

    /// Parses the bytes of a checkpoint.
    ///
    /// # Errors
    /// Returns an error if they are damaged, or of another version.
    pub fn parse(bytes: Vec<u8>) -> anyhow::Result<Self> {
        let (_, metadata) =
            SafeTensors::read_metadata(&bytes).context("the checkpoint is damaged")?;
        SafeTensors::deserialize(&bytes).context("the checkpoint is damaged")?;
        let progress = metadata
            .metadata()
            .as_ref()
            .and_then(|texts| texts.get(PROGRESS_KEY));
        let progress = serde_json::from_str(progress.map_or("", String::as_str))
            .context("the checkpoint is damaged or was written by another version")?;
        Ok(Self { progress, bytes })
    }

    /// Returns the bytes of the file.
    #[must_use]
    pub fn bytes(&self) -> &[u8] {
        &self.bytes
    }

    fn tensors(&self) -> anyhow::Result<SafeTensors<'_>> {
        Ok(SafeTensors::deserialize(&self.bytes)?)
    }

    /// Returns the model that the run started from.
    ///
    /// # Errors
    /// Returns an error if the checkpoint is damaged.
    pub fn model(&self) -> anyhow::Result<Model> {
        Ok(file::parse(self.tensors()?.tensor(MODEL)?.data())?)
    }

    /// Returns a tensor.
    ///
    /// # Errors
    /// Returns an error if there is none of this name.
    pub fn tensor(&self, name: &str) -> anyhow::Result<Tensor> {
        let tensors = self.tensors()?;
        let view = tensors
            .tensor(name)
            .with_context(|| format!("the checkpoint has no {name}"))?;
        anyhow::ensure!(view.dtype() == Dtype::F32, "{name} is not f32");
        let values: Vec<f32> = bytemuck::allocation::pod_collect_to_vec(view.data());
        let shape: Vec<i64> = view.shape().iter().map(|&extent| extent as i64).collect();
        Ok(Tensor::from_slice(&values).view(shape.as_slice()))
    }

    /// Returns the names that begin with a prefix, without it.
    ///
    /// # Errors
    /// Returns an error if the checkpoint is damaged.
    pub fn names(&self, prefix: &str) -> anyhow::Result<Vec<String>> {
        let tensors = self.tensors()?;
        Ok(tensors
            .names()
            .iter()
            .filter_map(|name| name.strip_prefix(prefix))
            .map(str::to_owned)
            .collect())
    }

    /// Returns the best model so far; the current one if none has been validated.
    ///
    /// # Errors
    /// Returns an error if the checkpoint is damaged.
    pub fn best_model(&self) -> anyhow::Result<Model> {
        let section = if self.progress.best.is_some() {
            "best"
        } else {
            "weights"
        };
        self.model_of(section)
    }

    /// Returns the model of the last step; its mean over the last steps if the run has one.
    ///
    /// # Errors
    /// Returns an error if the checkpoint is damaged.
    pub fn last_model(&self) -> anyhow::Result<Model> {
        let section = if self.names("ema/")?.is_empty() {
            "weights"
        } else {
            "ema"
        };
        let model = self.model_of(section)?;
        let mut header = model.header().clone();
        if let Some(training) = &mut header.card.training {
            training.steps = self.progress.step;
        }
        Ok(model.with_header(header)?)
    }

    fn model_of(&self, section: &str) -> anyhow::Result<Model> {
        let model = self.model()?;
        let mut weights = model.weights().clone();
        for name in self.names(&format!("{section}/"))? {
            if weights.iter().any(|(known, _)| known == name) {
                let tensor = self.tensor(&format!("{section}/{name}"))?;
                weights.insert(&name, ondes_torch::weights::to_plain(&tensor)?);
            }
        }
        let mut header = model.header().clone();
        header.card.training.clone_from(&self.progress.card);
        Ok(Model::new(header, weights)?)
    }
}

/// Writes a checkpoint. An existing one is replaced at once, so that a crash at any moment leaves a
/// whole file.
///
/// # Errors
/// Returns an error if the file cannot be written.
pub fn write(
    path: &Path,
    progress: &Progress,
    model: &Model,
    tensors: &[(String, Tensor)],
) -> anyhow::Result<()> {
    let model = file::serialize(model)?;
    let mut values = Vec::new();
    for (name, tensor) in tensors {
        let stored = ondes_torch::weights::to_plain(tensor)?;
        values.push((
            name.clone(),
            stored.shape().to_vec(),
            stored.floats().into_owned(),
        ));
    }
    let mut views = Vec::with_capacity(values.len() + 1);
    views.push((
        MODEL,
        TensorView::new(Dtype::U8, vec![model.len()], &model)?,
    ));
    for (name, shape, floats) in &values {
        views.push((
            name,
            TensorView::new(Dtype::F32, shape.clone(), bytemuck::cast_slice(floats))?,
        ));
    }
    let texts = HashMap::from([(PROGRESS_KEY.to_owned(), serde_json::to_string(progress)?)]);
    let written = || -> anyhow::Result<()> {
        let file = AtomicFile::create(path)?;
        safetensors::serialize_to_file(views, Some(texts), file.temporary_path())?;
        Ok(file.finish()?)
    };
    written().with_context(|| format!("{}: cannot be written", path.display()))
}
