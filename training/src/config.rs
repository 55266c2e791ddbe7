//! Configuration of `ondes-train fit`: one TOML file per instrument.

use std::path::{Path, PathBuf};

use anyhow::{Context, ensure};
use ondes_engine::files;
use ondes_engine::files::shortened;
use ondes_engine::instrument::Performance;
use serde::{Deserialize, Serialize};

use crate::loss::LossWeights;
use crate::optimizer::OptimizerConfig;
use crate::schedule::ScheduleConfig;
use crate::trainer::{Clip, Length, Precision, RunFiles, TrainerOptions};

/// Largest recipe, bytes; far above any real one.
pub(crate) const MAX_BYTES: u64 = 1 << 20;

/// Configuration of a training run. Paths are relative to the file's folder.
#[derive(Clone, Debug, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Config {
    /// Name of the instrument.
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
    /// Model file to write.
    pub out: PathBuf,
    /// Folder for analysed audio and checkpoints.
    pub work: PathBuf,
    /// Seed of initial weights, crops and noise.
    #[serde(default)]
    pub seed: u64,
    /// Sizes of the network.
    #[serde(default)]
    pub network: NetworkConfig,
    /// Length and pace of training.
    #[serde(default)]
    pub training: TrainingConfig,
    /// Optimiser.
    #[serde(default)]
    pub optimizer: OptimizerConfig,
    /// Schedule of the learning rate.
    #[serde(default)]
    pub schedule: ScheduleConfig,
    /// Terms of the loss; by default the multi-scale spectral distance.
    #[serde(default)]
    pub loss: Option<LossWeights>,
    /// Mapping of notes to pitch and loudness.
    #[serde(default)]
    pub performance: Performance,
}

/// Sizes of an instrument's network.
#[derive(Clone, Debug, Serialize, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct NetworkConfig {
    /// Sample rate, Hz.
    pub sample_rate: u32,
    /// Samples per control frame.
    pub hop: usize,
    /// Harmonics of the oscillator.
    pub harmonics: usize,
    /// Bands of the noise filter.
    pub noise_bands: usize,
    /// Units of each layer that reads pitch or loudness.
    pub input_units: usize,
    /// Units of the recurrent layer.
    pub recurrent_units: usize,
    /// Units of the layer after it.
    pub output_units: usize,
    /// Length of the room's impulse response, seconds.
    pub room_seconds: f64,
}

impl Default for NetworkConfig {
    fn default() -> Self {
        Self {
            sample_rate: 48_000,
            hop: 192,
            harmonics: 80,
            noise_bands: 65,
            input_units: 64,
            recurrent_units: 144,
            output_units: 128,
            room_seconds: 0.3,
        }
    }
}

/// Length and pace of training.
#[derive(Clone, Debug, Serialize, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct TrainingConfig {
    /// Optimiser steps.
    pub steps: u64,
    /// Trains for about this time instead of a number of steps.
    pub minutes: Option<f64>,
    /// Crops per step.
    pub batch: usize,
    /// Length of a crop, seconds.
    pub clip_seconds: f64,
    /// Highest learning rate.
    pub learning_rate: f64,
    /// Steps from zero to the highest learning rate; the schedule follows.
    pub warmup_steps: u64,
    /// Weight decay of matrices.
    pub weight_decay: f64,
    /// Largest Euclidean norm of the gradient over all weights; longer gradients are clipped. 0 for no limit.
    pub gradient_norm: f64,
    /// Largest magnitude of an element of the gradient. 0 for no limit.
    pub gradient_value: f64,
    /// Parts that a batch is computed in, one after the other, to need less memory.
    pub accumulate: usize,
    /// Decay rate of the mean of the weights that is validated and kept, such as 0.999; 0 for the weights themselves.
    pub ema: f64,
    /// Precision of the forward pass: `f32`, `bf16` or `f16`.
    pub precision: Precision,
    /// Share of the files used for validation.
    pub validation_share: f64,
    /// Steps between validations.
    pub validate_every: u64,
    /// Steps between checkpoints.
    pub checkpoint_every: u64,
    /// Steps between lines of the log.
    pub log_every: u64,
    /// Validations without progress after which training stops.
    pub patience: Option<u64>,
    /// Validation loss at which training stops.
    pub stop_at: Option<f64>,
    /// Writes TensorBoard event files to the work folder.
    pub tensorboard: bool,
    /// Threads of libtorch; 0 for one per core.
    pub threads: i32,
    /// `cpu`, `cuda`, `cuda:N`, or `auto`.
    pub device: String,
}

impl Default for TrainingConfig {
    fn default() -> Self {
        Self {
            steps: 6_000,
            minutes: None,
            batch: 8,
            clip_seconds: 1.0,
            learning_rate: 2e-3,
            warmup_steps: 200,
            weight_decay: 1e-4,
            gradient_norm: 3.0,
            gradient_value: 0.0,
            accumulate: 1,
            ema: 0.0,
            precision: Precision::default(),
            validation_share: 0.1,
            validate_every: 250,
            checkpoint_every: 250,
            log_every: 10,
            patience: None,
            stop_at: None,
            tensorboard: false,
            threads: 0,
            device: "auto".into(),
        }
    }
}

impl Config {
    /// Reads a configuration and resolves its paths.
    ///
    /// # Errors
    /// Returns an error with the line if the file is missing, is not TOML, has an unknown key, or a value is out of
    /// range.
    pub fn read(path: &Path) -> anyhow::Result<Self> {
        let name = path.display();
        let text = files::read_to_string(path, MAX_BYTES).with_context(|| format!("{name}: cannot be read"))?;
        let mut config: Self = toml::from_str(&text).map_err(|error| {
            let line = error.span().map_or(1, |span| text[..span.start].lines().count().max(1));
            anyhow::anyhow!("{name}: line {line}: {}", shortened(error.message()))
        })?;
        config.check().with_context(|| name.to_string())?;
        let folder = path.parent().unwrap_or(Path::new(""));
        for path in [&mut config.data, &mut config.out, &mut config.work].into_iter().chain(&mut config.held_out) {
            *path = folder.join(&path);
        }
        Ok(config)
    }

    pub(crate) fn check(&self) -> anyhow::Result<()> {
        let (network, training) = (&self.network, &self.training);
        ensure!((8_000..=192_000).contains(&network.sample_rate), "network.sample_rate must be 8000 to 192000");
        ensure!((16..=4096).contains(&network.hop), "network.hop must be 16 to 4096");
        ensure!((1..=512).contains(&network.harmonics), "network.harmonics must be 1 to 512");
        ensure!((2..=1025).contains(&network.noise_bands), "network.noise_bands must be 2 to 1025");
        let units = [network.input_units, network.recurrent_units, network.output_units];
        ensure!(units.iter().all(|units| (1..=4096).contains(units)), "units must be 1 to 4096");
        ensure!((0.001..=10.0).contains(&network.room_seconds), "network.room_seconds must be 0.001 to 10");
        ensure!(training.steps > 0, "training.steps must be above 0");
        ensure!((1..=4096).contains(&training.batch), "training.batch must be 1 to 4096");
        ensure!((0.1..=60.0).contains(&training.clip_seconds), "training.clip_seconds must be 0.1 to 60");
        ensure!((0..=1024).contains(&training.threads), "training.threads must be 0 to 1024");
        ensure!((0.0..=0.9).contains(&training.validation_share), "training.validation_share must be 0 to 0.9");
        ensure!(
            training.minutes.is_none_or(|minutes| minutes > 0.0 && minutes.is_finite()),
            "training.minutes must be above 0"
        );
        self.loss().check()?;
        self.trainer_options().check()
    }

    /// Returns the terms of the loss.
    #[must_use]
    pub fn loss(&self) -> LossWeights {
        self.loss.unwrap_or(LossWeights { spectral: 1.0, ..LossWeights::default() })
    }

    /// Returns the settings of the trainer.
    #[must_use]
    pub fn trainer_options(&self) -> TrainerOptions {
        let training = &self.training;
        let files = RunFiles {
            checkpoint: self.work.join("checkpoint.safetensors"),
            metrics: self.work.join("metrics.jsonl"),
            tensorboard: training.tensorboard.then(|| self.work.join("tensorboard")),
        };
        let length = training.minutes.map_or(Length::Steps(training.steps), Length::Minutes);
        TrainerOptions {
            warmup_steps: training.warmup_steps,
            weight_decay: training.weight_decay,
            clip: Clip { norm: training.gradient_norm, value: training.gradient_value },
            accumulate: training.accumulate,
            ema: training.ema,
            precision: training.precision,
            optimizer: self.optimizer.clone(),
            schedule: self.schedule.clone(),
            validate_every: Some(training.validate_every),
            checkpoint_every: Some(training.checkpoint_every),
            log_every: training.log_every,
            patience: training.patience,
            stop_at: training.stop_at,
            threads: training.threads,
            device: training.device.clone(),
            ..TrainerOptions::new(length, training.learning_rate, files)
        }
    }

    /// Returns the number of frames of a crop.
    #[must_use]
    pub fn clip_frames(&self) -> usize {
        (self.training.clip_seconds * f64::from(self.network.sample_rate) / self.network.hop as f64).ceil() as usize
    }
}
