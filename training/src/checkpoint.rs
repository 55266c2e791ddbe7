//! Checkpoints: all that a killed run needs to go on exactly where it was.

use std::collections::{BTreeMap, HashMap};
use std::path::Path;

use anyhow::{Context, bail};
use ondes_torch::TorchWeights;
use safetensors::SafeTensors;
use safetensors::tensor::{Dtype, TensorView};
use serde::{Deserialize, Serialize};
use tch::{Device, Tensor};

use crate::optimiser::AdamW;

/// Key of the progress in the metadata.
const PROGRESS_KEY: &str = "progress";

/// Where a run stands.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Progress {
    /// The next step; of a capture, the next epoch.
    pub step: u64,
    /// How many there will be.
    #[serde(default)]
    pub steps: u64,
    /// The lowest validation loss, and the step at which it was measured.
    pub best: Option<(f64, u64)>,
    /// What the weights of the run depend on ([`crate::config::Config::identity`]).
    pub identity: String,
}

/// The state of a run.
pub struct State {
    /// Where it stands.
    pub progress: Progress,
    /// The weights as they are.
    pub weights: TorchWeights,
    /// The weights with the lowest validation loss.
    pub best: TorchWeights,
    /// The optimiser's moments.
    pub optimiser: AdamW,
}

/// Names of the parts of a state.
const PARTS: [&str; 4] = ["weights", "best", "first", "second"];

impl State {
    fn part(&self, part: &str) -> BTreeMap<&str, &Tensor> {
        let moments = |pick: fn(&(Tensor, Tensor)) -> &Tensor| {
            self.optimiser.moments.iter().map(|(name, moments)| (name.as_str(), pick(moments))).collect()
        };
        match part {
            "weights" => self.weights.0.iter().map(|(name, tensor)| (name.as_str(), tensor)).collect(),
            "best" => self.best.0.iter().map(|(name, tensor)| (name.as_str(), tensor)).collect(),
            "first" => moments(|(first, _)| first),
            _ => moments(|(_, second)| second),
        }
    }

    /// Writes the state; a checkpoint of that name is replaced only by a whole one.
    ///
    /// # Errors
    /// One line with the file and the reason.
    pub fn save(&self, path: &Path) -> anyhow::Result<()> {
        let mut values = Vec::new();
        for part in PARTS {
            for (name, tensor) in self.part(part) {
                let plain = ondes_torch::weights::to_plain(tensor)?;
                values.push((format!("{part}/{name}"), plain.shape().to_vec(), plain.floats().into_owned()));
            }
        }
        let views = values.iter().map(|(name, shape, floats)| {
            let bytes = bytemuck::cast_slice(floats);
            (name, TensorView::new(Dtype::F32, shape.clone(), bytes).expect("a checked tensor"))
        });
        let texts = HashMap::from([(PROGRESS_KEY.to_owned(), serde_json::to_string(&self.progress)?)]);
        let part = path.with_extension("part");
        let written = safetensors::serialize_to_file(views, Some(texts), &part).map_err(anyhow::Error::from);
        let written = written.and_then(|()| Ok(std::fs::rename(&part, path)?));
        written.with_context(|| format!("{}: cannot be written", path.display()))
    }

    /// Puts a saved state in the place of this one.
    ///
    /// # Errors
    /// When the file is missing or damaged, or belongs to another configuration.
    pub fn load(&mut self, path: &Path, device: Device) -> anyhow::Result<()> {
        let name = path.display();
        let bytes = std::fs::read(path).with_context(|| format!("{name}: no checkpoint to resume from"))?;
        let (_, metadata) = SafeTensors::read_metadata(&bytes).with_context(|| format!("{name}: damaged"))?;
        let tensors = SafeTensors::deserialize(&bytes).with_context(|| format!("{name}: damaged"))?;
        let progress = metadata.metadata().as_ref().and_then(|texts| texts.get(PROGRESS_KEY));
        let progress: Progress =
            serde_json::from_str(progress.map_or("", String::as_str)).with_context(|| format!("{name}: damaged"))?;
        if progress.identity != self.progress.identity {
            bail!("{name}: was made with another configuration; without --resume the run starts anew");
        }
        let read = |part: &str, like: &BTreeMap<&str, &Tensor>| -> anyhow::Result<BTreeMap<String, Tensor>> {
            let tensor = |name: &str, like: &Tensor| {
                let view = tensors.tensor(&format!("{part}/{name}"))?;
                let values: Vec<f32> = bytemuck::allocation::pod_collect_to_vec(view.data());
                anyhow::Ok(Tensor::from_slice(&values).view(like.size().as_slice()).to_device(device))
            };
            like.iter().map(|(&name, like)| Ok((name.to_owned(), tensor(name, like)?))).collect()
        };
        let [weights, best, first, mut second] = {
            let parts = PARTS.map(|part| read(part, &self.part(part)));
            let [weights, best, first, second] = parts;
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
