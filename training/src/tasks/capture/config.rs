//! Configuration of `ondes-train capture`: one TOML file per device, or options of the command
//! line.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

use anyhow::{Context, ensure};
use ondes_engine::model::limits::OVERSAMPLINGS;
use ondes_engine::model::{Control, Curve, Gear};
use serde::{Deserialize, Serialize};

use super::network_source::NetworkSource;
use super::signal::RATE;
use super::task::CaptureOptions;
use crate::check;
use crate::data::WorkersConfig;
use crate::loss::LossWeights;
use crate::optimizer::OptimizerConfig;
use crate::schedule::ScheduleConfig;
use crate::trainer::recipe_file::read_toml;
use crate::trainer::training_config::{AUTO_BATCH, TrainingOverrides, check_batch};
use crate::trainer::{AlertsConfig, Length, RunFiles, TrainerOptions};

/// Passes through the recordings, unless told otherwise.
const EPOCHS: u64 = 100;

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
    /// Factor of oversampling at which the capture is to be played, against aliases.
    pub oversampling: Option<usize>,
    /// Seed of initial weights and windows.
    pub seed: u64,
    /// Length and pace of training.
    pub training: TrainingOverrides,
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
            oversampling: None,
            seed: 0,
            training: TrainingOverrides::default(),
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
        check::in_range("sample_rate", self.sample_rate, 8_000..=192_000)?;
        if let Some(factor) = self.oversampling {
            ensure!(
                OVERSAMPLINGS.contains(&factor),
                "oversampling must be 1, 2, 4 or 8"
            );
        }
        let training = &self.training;
        check::not_zero("training.epochs", training.epochs)?;
        if let Some(minutes) = training.minutes {
            check::positive("training.minutes", minutes)?;
        }
        if let Some(batch) = training.batch {
            check_batch(batch)?;
        }
        if let Some(window) = training.window {
            check::in_range("training.window", window, 64..=1_048_576)?;
        }
        if let Some(threads) = training.threads {
            check::in_range("training.threads", threads, 0..=256)?;
        }
        for (name, level) in [
            ("input_dbu", self.card.input_dbu),
            ("output_dbu", self.card.output_dbu),
        ] {
            if let Some(level) = level {
                check::in_range(&format!("card.{name}"), level, -60.0..=60.0)?;
            }
        }
        if let Some(size) = &self.size {
            super::architecture::Architecture::named(size).context("size")?;
        }
        if let Some(loss) = &self.loss {
            loss.check()?;
        }
        self.loader.check()?;
        let network = super::architecture::Architecture::named("nano")?;
        self.options(network, RunFiles::default())?.trainer.check()
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
        options.batch = own
            .batch
            .filter(|batch| *batch != AUTO_BATCH)
            .unwrap_or(options.batch);
        options.window = own.window.unwrap_or(options.window);
        options.loss = self.loss.unwrap_or(options.loss);
        options.trainer = TrainerOptions {
            length: own.minutes.map_or(
                Length::Epochs(own.epochs.unwrap_or(EPOCHS)),
                Length::Minutes,
            ),
            optimizer: self.optimizer.clone(),
            schedule: self.schedule.clone(),
            alerts: self.alerts.clone(),
            ..options.trainer
        };
        options.trainer.training.override_with(&TrainingOverrides {
            threads: own.threads.filter(|threads| *threads > 0),
            ..own.clone()
        })?;
        Ok(options)
    }
}
