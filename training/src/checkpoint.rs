//! Checkpoints: the complete state of a training run.

use std::collections::{BTreeMap, HashMap};
use std::path::Path;

use anyhow::{Context, bail, ensure};
use ondes_engine::files::{self, AtomicFile};
use ondes_torch::TorchWeights;
use safetensors::SafeTensors;
use safetensors::tensor::{Dtype, TensorView};
use serde::{Deserialize, Serialize};
use tch::{Device, Tensor};

use crate::optimiser::AdamW;

/// Metadata key of the progress.
const PROGRESS_KEY: &str = "progress";

/// Progress of a run.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Progress {
    /// Next step; next epoch for captures.
    pub step: u64,
    /// Number of steps or epochs.
    #[serde(default)]
    pub steps: u64,
    /// Lowest validation loss and the step at which it was measured.
    pub best: Option<(f64, u64)>,
    /// Everything that the weights depend on ([`crate::config::Config::identity`]).
    pub identity: String,
}

/// State of a run.
pub struct TrainingState {
    /// Progress.
    pub progress: Progress,
    /// Current weights.
    pub weights: TorchWeights,
    /// Weights with the lowest validation loss.
    pub best: TorchWeights,
    /// Optimiser with its moments.
    pub optimiser: AdamW,
}

/// Sections of a checkpoint.
const SECTIONS: [&str; 4] = ["weights", "best", "first", "second"];

impl TrainingState {
    fn tensors(&self, section: &str) -> BTreeMap<&str, &Tensor> {
        let moments = |pick: fn(&(Tensor, Tensor)) -> &Tensor| {
            self.optimiser.moments.iter().map(|(name, moments)| (name.as_str(), pick(moments))).collect()
        };
        match section {
            "weights" => self.weights.0.iter().map(|(name, tensor)| (name.as_str(), tensor)).collect(),
            "best" => self.best.0.iter().map(|(name, tensor)| (name.as_str(), tensor)).collect(),
            "first" => moments(|(first, _)| first),
            _ => moments(|(_, second)| second),
        }
    }

    /// Writes a checkpoint; an existing one is replaced atomically.
    ///
    /// # Errors
    /// Returns an error if the file cannot be written.
    pub fn save(&self, path: &Path) -> anyhow::Result<()> {
        let mut values = Vec::new();
        for section in SECTIONS {
            for (name, tensor) in self.tensors(section) {
                let stored = ondes_torch::weights::to_plain(tensor)?;
                values.push((format!("{section}/{name}"), stored.shape().to_vec(), stored.floats().into_owned()));
            }
        }
        let views = values.iter().map(|(name, shape, floats)| {
            let bytes = bytemuck::cast_slice(floats);
            (name, TensorView::new(Dtype::F32, shape.clone(), bytes).expect("a checked tensor"))
        });
        let texts = HashMap::from([(PROGRESS_KEY.to_owned(), serde_json::to_string(&self.progress)?)]);
        let write = || -> anyhow::Result<()> {
            let file = AtomicFile::create(path)?;
            safetensors::serialize_to_file(views, Some(texts), file.temporary_path())?;
            Ok(file.finish()?)
        };
        write().with_context(|| format!("{}: cannot be written", path.display()))
    }

    /// Replaces this state by a saved one.
    ///
    /// # Errors
    /// Returns an error if the file is missing or damaged, or belongs to another configuration.
    pub fn load(&mut self, path: &Path, device: Device) -> anyhow::Result<()> {
        let name = path.display();
        let bytes = files::read(path, u64::MAX).with_context(|| format!("{name}: no checkpoint to resume from"))?;
        let (_, metadata) = SafeTensors::read_metadata(&bytes).with_context(|| format!("{name}: damaged"))?;
        let tensors = SafeTensors::deserialize(&bytes).with_context(|| format!("{name}: damaged"))?;
        let progress = metadata.metadata().as_ref().and_then(|texts| texts.get(PROGRESS_KEY));
        let progress: Progress =
            serde_json::from_str(progress.map_or("", String::as_str)).with_context(|| format!("{name}: damaged"))?;
        if progress.identity != self.progress.identity {
            bail!("{name}: belongs to another configuration; omit --resume to start a new run");
        }
        let read = |section: &str, like: &BTreeMap<&str, &Tensor>| -> anyhow::Result<BTreeMap<String, Tensor>> {
            let tensor = |name: &str, like: &Tensor| -> anyhow::Result<Tensor> {
                let view = tensors.tensor(&format!("{section}/{name}"))?;
                let values: Vec<f32> = bytemuck::allocation::pod_collect_to_vec(view.data());
                ensure!(view.dtype() == Dtype::F32 && values.len() == like.numel(), "{section}/{name}: another size");
                Ok(Tensor::from_slice(&values).view(like.size().as_slice()).to_device(device))
            };
            let all = like.iter().map(|(&name, like)| Ok((name.to_owned(), tensor(name, like)?)));
            all.collect::<anyhow::Result<_>>().with_context(|| format!("{}: damaged", path.display()))
        };
        let [weights, best, first, mut second] = {
            let sections = SECTIONS.map(|section| read(section, &self.tensors(section)));
            let [weights, best, first, second] = sections;
            [weights?, best?, first?, second?]
        };
        self.weights = TorchWeights(weights);
        self.best = TorchWeights(best);
        let pair = |(name, first): (String, Tensor)| second.remove(&name).map(|second| (name, (first, second)));
        self.optimiser.moments = first.into_iter().filter_map(pair).collect();
        self.progress = progress;
        Ok(())
    }
}
