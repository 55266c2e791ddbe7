//! Configuration of `ondes-train prior`: one TOML file per generator.

use std::path::{Path, PathBuf};

use anyhow::{Context, ensure};
use ondes_engine::model::bars::MAX_BARS_BEFORE;
use ondes_engine::model::file;
use serde::{Deserialize, Serialize};

use crate::check;
use crate::data::{FeatureRate, RecordingsConfig, WorkersConfig};
use crate::optimizer::OptimizerConfig;
use crate::schedule::ScheduleConfig;
use crate::trainer::recipe::{Recipe, RecipeTables};
use crate::trainer::recipe_file::{read_toml, without_recipe};
use crate::trainer::training_config::TrainingConfig;
use crate::trainer::{AlertsConfig, TrainerOptions};

/// Settings of a generator without a recipe.
const WITHOUT_RECIPE: &str = "
[training]
minutes = 120.0
batch = 16
clip_seconds = 4.0
learning_rate = 1e-3
ema = 0.999
";
/// Length of its groups of frames, seconds.
const GROUP_S: f64 = 0.0213;

/// Configuration of a training run. Paths are relative to the file's folder.
#[derive(Clone, Debug, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct PriorConfig {
    /// Name of the generator.
    pub name: String,
    /// Description for the card, one or two sentences.
    #[serde(default)]
    pub description: String,
    /// Author, for the card.
    #[serde(default)]
    pub author: String,
    /// Licence for the card, an SPDX expression.
    #[serde(default)]
    pub licence: String,
    /// Trained codec whose latents are learnt.
    pub codec: PathBuf,
    /// Folder of training audio.
    pub data: PathBuf,
    /// Trained generator to start from, with its codec and its sizes.
    #[serde(default)]
    pub from: Option<PathBuf>,
    /// Model file to write.
    pub out: PathBuf,
    /// Folder for checkpoints, and for analysed audio without `cache`.
    pub work: PathBuf,
    /// Folder for analysed audio, which several recipes may share; by default in the work folder.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub cache: Option<PathBuf>,
    /// Seed of initial weights, crops and noise.
    #[serde(default)]
    pub seed: u64,
    /// Sizes of the network.
    #[serde(default)]
    pub network: PriorNetworkConfig,
    /// Selection and filtering of the recordings.
    #[serde(default)]
    pub recordings: RecordingsConfig,
    /// Robustness against its own errors, and the meaning of its knobs.
    #[serde(default)]
    pub regularization: RegularizationConfig,
    /// Length and pace of training.
    #[serde(default)]
    pub training: TrainingConfig,
    /// Threads that cut crops.
    #[serde(default)]
    pub loader: WorkersConfig,
    /// Optimiser.
    #[serde(default)]
    pub optimizer: OptimizerConfig,
    /// Schedule of the learning rate.
    #[serde(default)]
    pub schedule: ScheduleConfig,
    /// Thresholds of warnings.
    #[serde(default)]
    pub alerts: AlertsConfig,
}

/// Sizes of a prior's network.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct PriorNetworkConfig {
    /// Units of each layer.
    pub units: usize,
    /// Recurrent layers.
    pub layers: usize,
    /// Layers of attention after them.
    pub attention_layers: usize,
    /// Heads of each of these.
    pub heads: usize,
    /// Frames that attention reaches back, in groups.
    pub window: usize,
    /// Gaussians of the mixture.
    pub components: usize,
    /// Least probability with which one is drawn, relative to the likeliest one, 0 to 1 (min-p).
    pub least: f32,
    /// Number of bars before the present one whose latents are inputs, for a prior that follows
    /// bars.
    pub recall: usize,
    /// Frames of the codec that are drawn at once; several are quicker, but each of them then
    /// varies by itself.
    pub group: usize,
}

impl Default for PriorNetworkConfig {
    fn default() -> Self {
        Self {
            units: 512,
            layers: 2,
            attention_layers: 0,
            heads: 8,
            window: 128,
            components: 16,
            least: 0.2,
            recall: 2,
            group: 1,
        }
    }
}

impl PriorNetworkConfig {
    pub(crate) fn check(&self) -> anyhow::Result<()> {
        check::in_range("network.units", self.units, 4..=4096)?;
        check::in_range("network.layers", self.layers, 0..=8)?;
        check::in_range("network.attention_layers", self.attention_layers, 0..=16)?;
        ensure!(
            self.layers + self.attention_layers > 0,
            "network.layers or network.attention_layers must be above 0"
        );
        ensure!(
            self.attention_layers == 0 || self.heads > 0 && self.units.is_multiple_of(self.heads),
            "network.heads must divide network.units"
        );
        check::in_range("network.window", self.window, 1..=4096)?;
        check::in_range("network.components", self.components, 1..=256)?;
        check::in_range("network.least", self.least, 0.0..=1.0)?;
        check::in_range("network.recall", self.recall, 0..=MAX_BARS_BEFORE)?;
        check::in_range("network.group", self.group, 1..=64)?;
        Ok(())
    }
}

/// Changes to what a prior reads in training.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct RegularizationConfig {
    /// Noise on the frames before, in standard deviations of the latents, so that a prior finds its
    /// way back from its own errors: the mean of the crops, each of which has between none and
    /// twice as much.
    pub noise: f64,
    /// Share of the crops whose conditions are hidden, and share of those whose bars before are, so
    /// that a prior can play without them.
    pub hidden: f64,
}

impl Default for RegularizationConfig {
    fn default() -> Self {
        Self {
            noise: 0.1,
            hidden: 0.2,
        }
    }
}

impl RegularizationConfig {
    fn check(self) -> anyhow::Result<()> {
        check::in_range("regularization.noise", self.noise, 0.0..=10.0)?;
        check::in_range("regularization.hidden", self.hidden, 0.0..=1.0)?;
        Ok(())
    }
}

impl PriorConfig {
    /// Reads a configuration and resolves its paths.
    ///
    /// # Errors
    /// Returns an error with the line if the file is missing, is not TOML, has an unknown key, or a
    /// value is out of range.
    pub fn read(path: &Path) -> anyhow::Result<Self> {
        let mut config: Self = read_toml(path)?;
        config.check().with_context(|| path.display().to_string())?;
        let folder = path.parent().unwrap_or(Path::new(""));
        let paths = [
            &mut config.codec,
            &mut config.data,
            &mut config.out,
            &mut config.work,
        ];
        for path in paths
            .into_iter()
            .chain(&mut config.from)
            .chain(&mut config.cache)
        {
            *path = folder.join(&path);
        }
        Ok(config)
    }

    /// Returns a configuration that trains a generator for a codec, or that of a generator, in two
    /// hours.
    ///
    /// # Errors
    /// Returns an error if the file holds no codec, or a path is not UTF-8.
    pub fn for_codec(codec: &Path, data: &Path, out: &Path) -> anyhow::Result<Self> {
        let read = || FeatureRate::from_encoder(&file::read(codec)?);
        let rate = read().with_context(|| codec.display().to_string())?;
        let mut config: Self = without_recipe(WITHOUT_RECIPE, &[("codec", codec)], data, out)?;
        config.network.group = (GROUP_S * f64::from(rate.sample_rate) / rate.hop as f64)
            .round()
            .max(1.0) as usize;
        Ok(config)
    }

    /// Returns a configuration that trains a generator with recordings.
    ///
    /// # Errors
    /// Returns an error if a path is not UTF-8.
    pub fn new(data: &Path, out: &Path) -> anyhow::Result<Self> {
        without_recipe(WITHOUT_RECIPE, &[("codec", out)], data, out)
    }

    fn check(&self) -> anyhow::Result<()> {
        self.network.check()?;
        self.recordings.check()?;
        self.regularization.check()?;
        self.training.check()?;
        self.loader.check()?;
        self.trainer_options().check()
    }
}

impl Recipe for PriorConfig {
    fn tables(&mut self) -> RecipeTables<'_> {
        RecipeTables {
            training: &mut self.training,
            optimizer: &mut self.optimizer,
            schedule: &mut self.schedule,
            alerts: &mut self.alerts,
        }
    }

    fn out(&self) -> &Path {
        &self.out
    }

    fn trainer_options(&self) -> TrainerOptions {
        TrainerOptions::from_recipe(
            &self.work,
            &self.training,
            &self.optimizer,
            &self.schedule,
            &self.alerts,
        )
    }
}
