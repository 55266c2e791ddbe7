//! Configuration of `ondes-train capture`: one TOML file per device, or options of the command
//! line.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

use anyhow::{Context, ensure};
use ondes_engine::model::{Control, Curve, Gear};
use serde::{Deserialize, Serialize};

use super::network_source::NetworkSource;
use super::signal::RATE;
use super::task::CaptureOptions;
use crate::data::WorkersConfig;
use crate::loss::LossWeights;
use crate::optimizer::OptimizerConfig;
use crate::schedule::ScheduleConfig;
use crate::trainer::training_config::{AUTO_BATCH, batch_rows, parse_bytes, read_toml};
use crate::trainer::{AlertsConfig, Length, Precision, RunFiles};

/// Passes through the recordings, unless told otherwise.
const EPOCHS: u64 = 100;
/// Levels of the card, dBu.
const DBU: std::ops::RangeInclusive<f64> = -60.0..=60.0;

/// Configuration of a capture. Paths are relative to the file's folder.
#[derive(Clone, Debug, Serialize, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct CaptureConfig {
    /// Recordings of the device.
    #[serde(rename = "pair")]
    pub pairs: Vec<PairConfig>,
    /// Ranges of the knobs; by default from the lowest to the highest position.
    #[serde(rename = "knob")]
    pub knobs: BTreeMap<String, KnobConfig>,
    /// Size of the network.
    pub size: Option<String>,
    /// Capture to start from.
    pub from: Option<PathBuf>,
    /// Model file to write.
    pub out: Option<PathBuf>,
    /// `.nam` file to write.
    pub nam: Option<PathBuf>,
    /// Sample rate, Hz.
    pub sample_rate: u32,
    /// Seed of initial weights and windows.
    pub seed: u64,
    /// Length and pace of training.
    pub training: CaptureTrainingConfig,
    /// Threads that cut windows.
    pub loader: WorkersConfig,
    /// Optimiser.
    pub optimizer: OptimizerConfig,
    /// Schedule of the learning rate.
    pub schedule: ScheduleConfig,
    /// Thresholds of warnings.
    pub alerts: AlertsConfig,
    /// Terms of the loss; by default the error-to-signal ratio.
    pub loss: Option<LossWeights>,
    /// Card of the model.
    pub card: CardConfig,
}

/// Signal and recording.
#[derive(Clone, Debug, Default, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct PairConfig {
    /// Signal that was played into the device.
    pub dry: PathBuf,
    /// Recording at its output.
    pub wet: PathBuf,
    /// Inverts the polarity of the recording.
    #[serde(default)]
    pub flip: bool,
    /// Positions of the knobs.
    #[serde(default)]
    pub knobs: BTreeMap<String, f32>,
}

/// Range of a knob.
#[derive(Clone, Debug, Default, Serialize, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct KnobConfig {
    /// Lowest position.
    pub min: Option<f32>,
    /// Highest position.
    pub max: Option<f32>,
    /// Position in which the model opens; by default the middle.
    pub default: Option<f32>,
    /// Unit.
    pub unit: String,
    /// Description, one sentence.
    pub description: String,
}

/// Length and pace of training. What is absent depends on the network.
#[derive(Clone, Debug, Default, Serialize, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct CaptureTrainingConfig {
    /// Passes through the recordings.
    pub epochs: Option<u64>,
    /// Trains for about this time instead.
    pub minutes: Option<f64>,
    /// Windows per step, or parallel streams of recurrent networks; `"auto"` finds the largest
    /// number that fits.
    #[serde(deserialize_with = "some_batch_rows")]
    pub batch: Option<usize>,
    /// Bound on the memory of the process, such as "8G".
    pub memory: Option<String>,
    /// Computes the network's values again in the backward pass, to need less memory.
    pub checkpoint_activations: bool,
    /// Checkpoints with the lowest validation losses that are kept beside the last one.
    pub keep_best: usize,
    /// Samples per window, or per chunk of the streams.
    pub window: Option<usize>,
    /// Highest learning rate.
    pub learning_rate: Option<f64>,
    /// Steps from zero to the highest learning rate.
    pub warmup_steps: Option<u64>,
    /// Weight decay of matrices.
    pub weight_decay: Option<f64>,
    /// Largest norm of the gradient.
    pub gradient_norm: Option<f64>,
    /// Largest magnitude of an element of the gradient.
    pub gradient_value: Option<f64>,
    /// Parts that a batch is computed in.
    pub accumulate: Option<usize>,
    /// Decay rate of the mean of the weights that is validated and kept.
    pub ema: Option<f64>,
    /// Precision of the forward pass.
    pub precision: Option<Precision>,
    /// Steps between validations.
    pub validate_every: Option<u64>,
    /// Steps between checkpoints.
    pub checkpoint_every: Option<u64>,
    /// Steps between lines of the log.
    pub log_every: Option<u64>,
    /// Validations without progress after which training stops.
    pub patience: Option<u64>,
    /// Validation loss at which training stops.
    pub stop_at: Option<f64>,
    /// Writes TensorBoard event files.
    pub tensorboard: bool,
    /// Threads of libtorch.
    pub threads: Option<i32>,
    /// `cpu`, `cuda`, `cuda:N`, or `auto`.
    pub device: Option<String>,
}

/// Content of the model's card.
#[derive(Clone, Debug, Default, Serialize, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct CardConfig {
    /// Name; by default that of the recording.
    pub name: String,
    /// Description, one or two sentences.
    pub description: String,
    /// Author of the capture.
    pub author: String,
    /// Licence, an SPDX expression.
    pub licence: String,
    /// Device.
    pub gear: Gear,
    /// Level of full scale at the device's input, dBu.
    pub input_dbu: Option<f64>,
    /// Level of full scale at the device's output, dBu.
    pub output_dbu: Option<f64>,
}

impl Default for CaptureConfig {
    fn default() -> Self {
        Self {
            pairs: Vec::new(),
            knobs: BTreeMap::new(),
            size: None,
            from: None,
            out: None,
            nam: None,
            sample_rate: RATE,
            seed: 0,
            training: CaptureTrainingConfig::default(),
            loader: WorkersConfig::default(),
            optimizer: OptimizerConfig::default(),
            schedule: ScheduleConfig::default(),
            alerts: AlertsConfig::default(),
            loss: None,
            card: CardConfig::default(),
        }
    }
}

impl CaptureConfig {
    /// Reads a configuration and resolves its paths.
    ///
    /// # Errors
    /// Returns an error with the line if the file is missing, is not TOML, has an unknown key, or a
    /// value is out of range.
    pub fn read(path: &Path) -> anyhow::Result<Self> {
        let mut config: Self = read_toml(path)?;
        config.check().with_context(|| path.display().to_string())?;
        let folder = path.parent().unwrap_or(Path::new(""));
        let pairs = config
            .pairs
            .iter_mut()
            .flat_map(|pair| [&mut pair.dry, &mut pair.wet]);
        let files = [&mut config.out, &mut config.nam, &mut config.from]
            .into_iter()
            .flatten();
        pairs
            .chain(files)
            .for_each(|path| *path = folder.join(&path));
        Ok(config)
    }

    /// Checks everything that needs no file.
    ///
    /// # Errors
    /// Returns an error that names the field.
    pub fn check(&self) -> anyhow::Result<()> {
        ensure!(
            !self.pairs.is_empty(),
            "there is no [[pair]] with dry and wet"
        );
        ensure!(
            (8_000..=192_000).contains(&self.sample_rate),
            "sample_rate must be 8000 to 192000"
        );
        let training = &self.training;
        ensure!(
            training.epochs != Some(0),
            "training.epochs must be above 0"
        );
        let minutes = training
            .minutes
            .is_none_or(|minutes| minutes > 0.0 && minutes.is_finite());
        ensure!(minutes, "training.minutes must be above 0");
        let between = |value: Option<usize>, range: std::ops::RangeInclusive<usize>| {
            value.is_none_or(|value| range.contains(&value))
        };
        let batch = training.batch.filter(|batch| *batch != AUTO_BATCH);
        ensure!(
            between(batch, 1..=4096),
            "training.batch must be 1 to 4096, or \"auto\""
        );
        ensure!(
            between(training.window, 64..=1_048_576),
            "training.window must be 64 to 1048576"
        );
        ensure!(
            training
                .threads
                .is_none_or(|threads| (0..=256).contains(&threads)),
            "training.threads must be 0 to 256"
        );
        for (name, level) in [
            ("input_dbu", self.card.input_dbu),
            ("output_dbu", self.card.output_dbu),
        ] {
            ensure!(
                level.is_none_or(|level| DBU.contains(&level)),
                "card.{name} must be -60 to 60"
            );
        }
        if let Some(size) = &self.size {
            super::architecture::Architecture::named(size).context("size")?;
        }
        if let Some(loss) = &self.loss {
            loss.check()?;
        }
        self.loader.check()?;
        let files = RunFiles {
            checkpoint: PathBuf::new(),
            metrics: PathBuf::new(),
            tensorboard: None,
        };
        let network = super::architecture::Architecture::named("nano")?;
        self.options(network, files)?.trainer.check()
    }

    /// Returns the knobs as controls of the model, in the order of [`CaptureConfig::settings`].
    ///
    /// # Errors
    /// Returns an error that names the pair or the knob.
    pub fn controls(&self) -> anyhow::Result<Vec<Control>> {
        let names = self.knob_names();
        if let Some(name) = self.knobs.keys().find(|name| !names.contains(name)) {
            anyhow::bail!("knob.{name}: no pair states its position, knobs = {{ {name} = 5 }}");
        }
        names.into_iter().map(|name| self.control(name)).collect()
    }

    fn knob_names(&self) -> Vec<&String> {
        let mut names: Vec<&String> = self
            .pairs
            .iter()
            .flat_map(|pair| pair.knobs.keys())
            .collect();
        names.sort();
        names.dedup();
        names
    }

    fn control(&self, name: &str) -> anyhow::Result<Control> {
        let mut positions = Vec::new();
        for (index, pair) in self.pairs.iter().enumerate() {
            let position = pair
                .knobs
                .get(name)
                .copied()
                .filter(|position| position.is_finite());
            positions.push(position.with_context(|| {
                format!(
                    "pair {}: the position of knob {name:?} is missing",
                    index + 1
                )
            })?);
        }
        let (low, high) = positions.iter().fold(
            (f32::INFINITY, f32::NEG_INFINITY),
            |(low, high), &position| (low.min(position), high.max(position)),
        );
        ensure!(
            low < high,
            "knob {name:?} is at {low} in all pairs; vary it, or leave it out"
        );
        let own = self.knobs.get(name).cloned().unwrap_or_default();
        let (min, max) = (own.min.unwrap_or(low), own.max.unwrap_or(high));
        for (end, value) in [("min", min), ("max", max)] {
            ensure!(value.is_finite(), "knob.{name}.{end} must be a number");
        }
        ensure!(
            min <= low && high <= max,
            "knob {name:?} is at {low} to {high}, outside {min} to {max}"
        );
        let control = Control {
            name: name.to_owned(),
            unit: own.unit,
            min,
            max,
            default: own.default.unwrap_or(f32::midpoint(min, max)),
            curve: Curve::Linear,
            description: own.description,
        };
        ensure!(
            control.is_valid(),
            "knob.{name}.default must be {min} to {max}"
        );
        Ok(control)
    }

    /// Returns the positions of the knobs in a pair.
    #[must_use]
    pub fn settings(&self, pair: &PairConfig) -> Vec<f32> {
        self.knob_names()
            .into_iter()
            .filter_map(|name| pair.knobs.get(name).copied())
            .collect()
    }

    /// Returns the settings of a run.
    ///
    /// # Errors
    /// Returns an error that names the pair or the knob.
    pub fn options(
        &self,
        network: impl Into<NetworkSource>,
        files: RunFiles,
    ) -> anyhow::Result<CaptureOptions> {
        let mut options = CaptureOptions::new(network, files);
        let own = &self.training;
        options.knobs = self.controls()?;
        options.seed = self.seed;
        options.workers = self.loader.workers;
        options.trainer.auto_batch = own.batch == Some(AUTO_BATCH);
        options.batch = own
            .batch
            .filter(|batch| *batch != AUTO_BATCH)
            .unwrap_or(options.batch);
        options.window = own.window.unwrap_or(options.window);
        options.loss = self.loss.unwrap_or(options.loss);
        let trainer = &mut options.trainer;
        trainer.memory = own
            .memory
            .as_deref()
            .map(parse_bytes)
            .transpose()
            .map_err(anyhow::Error::msg)?;
        trainer.checkpoint_activations = own.checkpoint_activations;
        trainer.keep_best = own.keep_best;
        trainer.length = own.minutes.map_or(
            Length::Epochs(own.epochs.unwrap_or(EPOCHS)),
            Length::Minutes,
        );
        trainer.learning_rate = own.learning_rate.unwrap_or(trainer.learning_rate);
        trainer.warmup_steps = own.warmup_steps.unwrap_or(trainer.warmup_steps);
        trainer.weight_decay = own.weight_decay.unwrap_or(trainer.weight_decay);
        trainer.clip.norm = own.gradient_norm.unwrap_or(trainer.clip.norm);
        trainer.clip.value = own.gradient_value.unwrap_or(trainer.clip.value);
        trainer.accumulate = own.accumulate.unwrap_or(trainer.accumulate);
        trainer.ema = own.ema.unwrap_or(trainer.ema);
        trainer.precision = own.precision.unwrap_or(trainer.precision);
        trainer.optimizer = self.optimizer.clone();
        trainer.schedule = self.schedule.clone();
        trainer.alerts = self.alerts.clone();
        trainer.validate_every = own.validate_every.or(trainer.validate_every);
        trainer.checkpoint_every = own.checkpoint_every.or(trainer.checkpoint_every);
        trainer.log_every = own.log_every.unwrap_or(trainer.log_every);
        trainer.patience = own.patience.or(trainer.patience);
        trainer.stop_at = own.stop_at.or(trainer.stop_at);
        trainer.threads = own
            .threads
            .filter(|threads| *threads > 0)
            .unwrap_or(trainer.threads);
        if let Some(device) = &own.device {
            trainer.device.clone_from(device);
        }
        if own.tensorboard {
            trainer.files.tensorboard = Some(trainer.files.metrics.with_file_name("tensorboard"));
        }
        Ok(options)
    }
}

/// Reads a number of rows, or `"auto"`.
fn some_batch_rows<'de, D: serde::Deserializer<'de>>(source: D) -> Result<Option<usize>, D::Error> {
    batch_rows(source).map(Some)
}
