//! Configuration of `ondes-train codec`: one TOML file per codec.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

use anyhow::{Context, ensure};
use serde::{Deserialize, Serialize};

use crate::check;
use crate::data::{
    Augmentation, DataConfig, FeatureRate, LoaderConfig, RecordedKnob, RecordingsConfig,
};
use crate::optimizer::OptimizerConfig;
use crate::schedule::ScheduleConfig;
use crate::trainer::memory::data_shares;
use crate::trainer::recipe::{Recipe, RecipeTables};
use crate::trainer::recipe_file::{read_toml, without_recipe};
use crate::trainer::training_config::TrainingConfig;
use crate::trainer::{AlertsConfig, TrainerOptions};

/// Codecs have no recorded knobs.
static NO_KNOBS: BTreeMap<String, RecordedKnob> = BTreeMap::new();

/// Settings of a codec without a recipe.
const WITHOUT_RECIPE: &str = "
[augmentation]
pitch = 1.0
gain = 30.0

[training]
minutes = 60.0
clip_seconds = 0.35
learning_rate = 1e-3
ema = 0.999
";

/// Configuration of a training run. Paths are relative to the file's folder.
#[derive(Clone, Debug, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct CodecConfig {
    /// Name of the codec.
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
    /// Folder of training audio.
    pub data: PathBuf,
    /// Folder of audio to measure quality on; without one, the validation files are used.
    #[serde(default)]
    pub held_out: Option<PathBuf>,
    /// Trained codec of the same sizes to start from.
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
    pub network: CodecNetworkConfig,
    /// Selection and filtering of the recordings.
    #[serde(default)]
    pub recordings: RecordingsConfig,
    /// Augmentation of the training crops.
    #[serde(default)]
    pub augmentation: Augmentation,
    /// Reading of the recordings.
    #[serde(default)]
    pub loader: LoaderConfig,
    /// Length and pace of training.
    #[serde(default)]
    pub training: TrainingConfig,
    /// Optimiser.
    #[serde(default)]
    pub optimizer: OptimizerConfig,
    /// Schedule of the learning rate.
    #[serde(default)]
    pub schedule: ScheduleConfig,
    /// Thresholds of warnings.
    #[serde(default)]
    pub alerts: AlertsConfig,
    /// Terms of the loss.
    #[serde(default)]
    pub loss: CodecLossConfig,
}

/// Sizes of a codec's network.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct CodecNetworkConfig {
    /// Sample rate, Hz.
    pub sample_rate: u32,
    /// Bands of the filter bank.
    pub bands: usize,
    /// Channels of the first layer; each stage has twice as many as the one before.
    pub channels: usize,
    /// Stride of each stage. A frame of latents lasts `bands` times their product, samples.
    pub ratios: Vec<usize>,
    /// Latents.
    pub latents: usize,
    /// Magnitudes of the noise in each band.
    pub noise_bands: usize,
    /// Harmonics of the pitch that the encoder hears; 0 for a codec without. For sound of one pitch
    /// at a time.
    pub harmonics: usize,
}

impl Default for CodecNetworkConfig {
    fn default() -> Self {
        Self {
            sample_rate: 48_000,
            bands: 16,
            channels: 48,
            ratios: vec![2, 2, 4],
            latents: 16,
            noise_bands: 5,
            harmonics: 0,
        }
    }
}

impl CodecNetworkConfig {
    /// Returns the length of a frame of latents, samples.
    #[must_use]
    pub fn hop(&self) -> usize {
        self.bands * self.ratios.iter().product::<usize>()
    }

    /// Returns the channels of the latents: the pitch, if the encoder hears it, is the last.
    #[must_use]
    pub fn latent_channels(&self) -> usize {
        self.latents + usize::from(self.harmonics > 0)
    }

    fn check(&self) -> anyhow::Result<()> {
        check::in_range("network.sample_rate", self.sample_rate, 8_000..=192_000)?;
        ensure!(
            [2, 4, 8, 16, 32, 64].contains(&self.bands),
            "network.bands must be 2, 4, 8, 16, 32 or 64"
        );
        check::in_range("network.channels", self.channels, 4..=512)?;
        let ratios_fit = self.ratios.iter().all(|ratio| (1..=8).contains(ratio));
        ensure!(
            ratios_fit && (1..=6).contains(&self.ratios.len()),
            "network.ratios must be 1 to 6 numbers from 1 to 8"
        );
        let hops = 2 * self.bands..=4096;
        ensure!(
            hops.contains(&self.hop()),
            "bands times ratios must be {} to {}",
            hops.start(),
            hops.end()
        );
        check::in_range("network.latents", self.latents, 1..=128)?;
        check::in_range("network.noise_bands", self.noise_bands, 2..=64)?;
        check::in_range("network.harmonics", self.harmonics, 0..=256)?;
        Ok(())
    }
}

/// Terms of a codec's loss.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct CodecLossConfig {
    /// Weight of the A-weighted loudness, in units of 10 dB, beside the spectral distance, which
    /// hardly depends on the decay of notes.
    pub loudness: f64,
    /// Weight of the information in the latents, nats (Kullback-Leibler divergence from a normal
    /// distribution). Much of it makes latents smooth; too much makes them empty.
    pub information: f64,
    /// Information of each latent that is not penalised, mean nats over the frames of a crop (free
    /// bits: Kingma et al., NeurIPS 2016).
    pub free_nats: f64,
}

impl Default for CodecLossConfig {
    fn default() -> Self {
        Self {
            loudness: 0.5,
            information: 1e-3,
            free_nats: 0.25,
        }
    }
}

impl CodecLossConfig {
    fn check(&self) -> anyhow::Result<()> {
        let weights = [
            ("loudness", self.loudness),
            ("information", self.information),
            ("free_nats", self.free_nats),
        ];
        for (name, weight) in weights {
            check::weight(&format!("loss.{name}"), weight)?;
        }
        Ok(())
    }
}

impl CodecConfig {
    /// Reads a configuration and resolves its paths.
    ///
    /// # Errors
    /// Returns an error with the line if the file is missing, is not TOML, has an unknown key, or a
    /// value is out of range.
    pub fn read(path: &Path) -> anyhow::Result<Self> {
        let mut config: Self = read_toml(path)?;
        config.check().with_context(|| path.display().to_string())?;
        let folder = path.parent().unwrap_or(Path::new(""));
        let optional = [&mut config.held_out, &mut config.from, &mut config.cache]
            .into_iter()
            .flatten();
        for path in [&mut config.data, &mut config.out, &mut config.work]
            .into_iter()
            .chain(optional)
        {
            *path = folder.join(&path);
        }
        Ok(config)
    }

    /// Returns the default configuration, an hour of training, for recordings and a model file to
    /// write.
    ///
    /// # Errors
    /// Returns an error if a path is not UTF-8.
    pub fn new(network: CodecNetworkConfig, data: &Path, out: &Path) -> anyhow::Result<Self> {
        let config: Self = without_recipe(WITHOUT_RECIPE, &[], data, out)?;
        Ok(Self { network, ..config })
    }

    pub(crate) fn check(&self) -> anyhow::Result<()> {
        self.network.check()?;
        self.recordings.check()?;
        self.loader.check()?;
        self.training.check()?;
        self.augmentation.check()?;
        ensure!(
            self.augmentation.mix == 0.0 || self.network.harmonics == 0,
            "augmentation.mix needs network.harmonics = 0: two sounds at once have no single pitch"
        );
        self.loss.check()?;
        self.trainer_options().check()
    }

    /// Returns the settings of the dataset.
    #[must_use]
    pub fn data(&self) -> DataConfig<'_> {
        let rate = FeatureRate {
            sample_rate: self.network.sample_rate,
            hop: self.network.hop(),
        };
        DataConfig {
            folder: &self.data,
            held_out: self.held_out.as_deref(),
            cache: self
                .cache
                .clone()
                .unwrap_or_else(|| self.work.join("features")),
            rate,
            recordings: self.recordings,
            knobs: &NO_KNOBS,
            augmentation: self.augmentation,
            memory: self.loader.cache.min(data_shares(self.training.memory)[0]),
            validation_share: self.training.validation_share,
            frames: rate.frames(self.training.clip_seconds),
            seed: self.seed,
        }
    }
}

impl Recipe for CodecConfig {
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
