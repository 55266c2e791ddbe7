//! Settings of a run that no task needs to know.

use std::ops::Range;
use std::path::{Path, PathBuf};
use std::rc::Rc;

use anyhow::{bail, ensure};
use tch::Device;

use super::alerts::AlertsConfig;
use super::memory;
use super::training_config::{AUTO_BATCH, Length, TrainingConfig};
use crate::check;
use crate::distributed::Group;
use crate::optimizer::OptimizerConfig;
use crate::schedule::ScheduleConfig;

/// Settings of a run.
#[derive(Clone, Debug)]
pub struct TrainerOptions {
    /// Settings that recipes and flags share. `steps`, `minutes`, `clip_seconds` and
    /// `validation_share` are not used, nor is the number of rows in `batch`.
    pub training: TrainingConfig,
    /// Length of the run.
    pub length: Length,
    /// Optimiser.
    pub optimizer: OptimizerConfig,
    /// Schedule of the learning rate.
    pub schedule: ScheduleConfig,
    /// Thresholds of warnings.
    pub alerts: AlertsConfig,
    /// Processes that train together; `None` for this one alone.
    pub group: Option<Rc<Group>>,
    /// Files of the run.
    pub files: RunFiles,
}

/// Files of a run. TensorBoard's are in the folder `tensorboard` beside the log.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct RunFiles {
    /// Checkpoint.
    pub checkpoint: PathBuf,
    /// Log, one JSON object per line.
    pub metrics: PathBuf,
}

impl RunFiles {
    /// Returns files in a work folder.
    #[must_use]
    pub fn in_folder(work: &Path) -> Self {
        Self {
            checkpoint: work.join("checkpoint.safetensors"),
            metrics: work.join("metrics.jsonl"),
        }
    }

    /// Returns a checkpoint, and a log of its name beside it.
    #[must_use]
    pub fn beside(checkpoint: PathBuf) -> Self {
        Self {
            metrics: checkpoint.with_extension("metrics.jsonl"),
            checkpoint,
        }
    }
}

impl TrainerOptions {
    /// Returns settings for a run of that length with AdamW and a cosine.
    #[must_use]
    pub fn new(length: Length, training: TrainingConfig, files: RunFiles) -> Self {
        Self {
            training,
            length,
            optimizer: OptimizerConfig::default(),
            schedule: ScheduleConfig::default(),
            alerts: AlertsConfig::default(),
            group: None,
            files,
        }
    }

    /// Returns the settings of a recipe, with files in its work folder.
    #[must_use]
    pub fn from_recipe(
        work: &Path,
        training: &TrainingConfig,
        optimizer: &OptimizerConfig,
        schedule: &ScheduleConfig,
        alerts: &AlertsConfig,
    ) -> Self {
        Self {
            length: training.length(),
            training: training.clone(),
            optimizer: optimizer.clone(),
            schedule: schedule.clone(),
            alerts: alerts.clone(),
            group: None,
            files: RunFiles::in_folder(work),
        }
    }

    /// Tells whether the largest batch that fits is looked for.
    #[must_use]
    pub fn auto_batch(&self) -> bool {
        self.training.batch == AUTO_BATCH
    }

    /// Checks the settings.
    ///
    /// # Errors
    /// Returns an error that names the first setting out of range.
    pub fn check(&self) -> anyhow::Result<()> {
        let training = &self.training;
        let is_rate = |rate: f64| rate > 0.0 && rate <= 1.0;
        ensure!(
            is_rate(training.learning_rate),
            "training.learning_rate must be above 0, up to 1"
        );
        check::in_range("training.weight_decay", training.weight_decay, 0.0..=1.0)?;
        check::in_range("training.gradient_norm", training.gradient_norm, 0.0..=1e6)?;
        check::in_range(
            "training.gradient_value",
            training.gradient_value,
            0.0..=1e6,
        )?;
        check::not_zero("training.accumulate", training.accumulate as u64)?;
        check::decay_rate("training.ema", training.ema)?;
        check::not_zero("training.validate_every", training.validate_every)?;
        check::not_zero("training.checkpoint_every", training.checkpoint_every)?;
        check::not_zero("training.log_every", training.log_every)?;
        check::not_zero("training.patience", training.patience)?;
        ensure!(
            training.stop_at.is_none_or(|loss| loss > 0.0),
            "training.stop_at must be above 0"
        );
        self.alerts.check()?;
        self.optimizer.check()?;
        self.schedule.check()
    }

    /// Bounds the memory of the process, on the CPU. Call it before the data is opened, which has
    /// its share.
    ///
    /// # Errors
    /// Returns an error if there is no such device, or the bound is too low.
    pub fn bound_memory(&self) -> anyhow::Result<()> {
        if self.training.profile.is_some() {
            memory::count();
        }
        match device(&self.training.device)? == Device::Cpu
            && (self.auto_batch() || self.training.memory.is_some())
        {
            true => memory::bound(self.training.memory),
            false => Ok(()),
        }
    }

    /// Tells whether this process writes files and prints.
    #[must_use]
    pub fn is_first(&self) -> bool {
        self.group.as_ref().is_none_or(|group| group.rank() == 0)
    }

    /// Returns the rows of a batch that this process computes.
    #[must_use]
    pub fn own_rows(&self, rows: usize) -> Range<usize> {
        self.group
            .as_ref()
            .map_or(0..rows, |group| group.rows(rows))
    }

    /// Returns the settings that the mathematics of a run depends on, by name.
    pub(super) fn identity(&self) -> anyhow::Result<Vec<(String, String)>> {
        let text =
            |name: &str, value: &dyn std::fmt::Debug| (name.to_owned(), format!("{value:?}"));
        Ok(vec![
            text("training.learning_rate", &self.training.learning_rate),
            text("training.warmup_steps", &self.training.warmup_steps),
            text("training.weight_decay", &self.training.weight_decay),
            text("training.gradient_norm", &self.training.gradient_norm),
            text("training.gradient_value", &self.training.gradient_value),
            text("training.ema", &self.training.ema),
            text("training.precision", &self.training.precision),
            (
                "optimizer".to_owned(),
                serde_json::to_string(&self.optimizer)?,
            ),
            (
                "schedule".to_owned(),
                serde_json::to_string(&self.schedule)?,
            ),
        ])
    }
}

/// Returns the decay rate of the mean of the weights at a step, counted from 1, whose final value
/// is `ema`: lower at first, so that the mean soon forgets the weights that the run began with
/// (TensorFlow's `ExponentialMovingAverage`).
pub(super) fn ema_decay(ema: f64, step: u64) -> f64 {
    ema.min((1 + step) as f64 / (10 + step) as f64)
}

/// Selects a device: `cpu`, `cuda`, `cuda:N`, or `auto` for CUDA if available.
///
/// # Errors
/// Returns an error if there is no such device.
pub fn device(name: &str) -> anyhow::Result<Device> {
    let gpu = match name {
        "cpu" => return Ok(Device::Cpu),
        "auto" => return Ok(Device::cuda_if_available()),
        "cuda" => Some(0),
        other => other
            .strip_prefix("cuda:")
            .and_then(|index| index.parse::<u8>().ok()),
    };
    let Some(gpu) = gpu else {
        bail!("unknown device {name:?}; available: auto, cpu, cuda, cuda:N")
    };
    let count = tch::Cuda::device_count();
    ensure!(
        i64::from(gpu) < count,
        "the device is {name:?}, but libtorch finds {count} GPUs; use \"auto\" or \"cpu\""
    );
    Ok(Device::Cuda(usize::from(gpu)))
}

#[cfg(test)]
mod tests {
    use super::ema_decay;

    #[test]
    fn a_mean_of_weights_soon_forgets_its_beginning() {
        let beginning: f64 = (1..=30).map(|step| ema_decay(0.999, step)).product();
        assert!(beginning < 1e-6, "{beginning}");
        assert_eq!(
            [
                ema_decay(0.999, 20_000),
                ema_decay(0.5, 20),
                ema_decay(0.0, 1)
            ],
            [0.999, 0.5, 0.0]
        );
    }
}
