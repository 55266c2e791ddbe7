//! Settings of a run that no task needs to know.

use std::net::SocketAddr;
use std::ops::Range;
use std::path::PathBuf;
use std::rc::Rc;

use anyhow::{bail, ensure};
use tch::Device;

use super::alerts::AlertsConfig;
use super::memory;
use super::parameters::Clip;
use super::precision::Precision;
use super::profile::ProfileOptions;
use crate::distributed::Group;
use crate::optimizer::OptimizerConfig;
use crate::schedule::ScheduleConfig;

/// Length of a run.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Length {
    /// Steps.
    Steps(u64),
    /// Passes through the data; steps where crops are drawn at random.
    Epochs(u64),
    /// As many steps as fit into these minutes, at the speed of the first.
    Minutes(f64),
}

/// Settings of a run.
#[derive(Clone, Debug)]
pub struct TrainerOptions {
    /// Length of the run.
    pub length: Length,
    /// Highest learning rate.
    pub learning_rate: f64,
    /// Steps from zero to the highest learning rate.
    pub warmup_steps: u64,
    /// Weight decay of matrices.
    pub weight_decay: f64,
    /// Limits of the gradient.
    pub clip: Clip,
    /// Parts that a batch is computed in, one after the other.
    pub accumulate: usize,
    /// Finds the largest batch that fits; the task's is only the first guess.
    pub auto_batch: bool,
    /// Bound on the memory of the process, bytes; by default most of what is free for tensors of
    /// the CPU.
    pub memory: Option<u64>,
    /// Computes the network's values again in the backward pass, to need less memory.
    pub checkpoint_activations: bool,
    /// Checkpoints with the lowest validation losses that are kept beside the last one.
    pub keep_best: usize,
    /// Decay rate of the mean of the weights that is validated and kept; 0 for the weights
    /// themselves.
    pub ema: f64,
    /// Precision of the forward pass.
    pub precision: Precision,
    /// Optimiser.
    pub optimizer: OptimizerConfig,
    /// Schedule of the learning rate.
    pub schedule: ScheduleConfig,
    /// Steps between validations; by default an epoch.
    pub validate_every: Option<u64>,
    /// Steps between checkpoints; by default an epoch.
    pub checkpoint_every: Option<u64>,
    /// Steps between lines of the log.
    pub log_every: u64,
    /// Validations without progress after which the run stops.
    pub patience: Option<u64>,
    /// Validation loss at which the run stops.
    pub stop_at: Option<f64>,
    /// Threads of libtorch; 0 for one per core.
    pub threads: i32,
    /// `cpu`, `cuda`, `cuda:N`, or `auto`.
    pub device: String,
    /// Measures where the time of a step goes.
    pub profile: Option<ProfileOptions>,
    /// Thresholds of warnings.
    pub alerts: AlertsConfig,
    /// Address that metrics are served at.
    pub endpoint: Option<SocketAddr>,
    /// Processes that train together; `None` for this one alone.
    pub group: Option<Rc<Group>>,
    /// Files of the run.
    pub files: RunFiles,
}

/// Files of a run.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct RunFiles {
    /// Checkpoint.
    pub checkpoint: PathBuf,
    /// Log, one JSON object per line.
    pub metrics: PathBuf,
    /// Folder of TensorBoard event files; `None` for none.
    pub tensorboard: Option<PathBuf>,
}

impl TrainerOptions {
    /// Returns settings for a run of that length with AdamW, a cosine and no limits.
    #[must_use]
    pub fn new(length: Length, learning_rate: f64, files: RunFiles) -> Self {
        Self {
            length,
            learning_rate,
            warmup_steps: 0,
            weight_decay: 0.0,
            clip: Clip::default(),
            accumulate: 1,
            auto_batch: false,
            memory: None,
            checkpoint_activations: false,
            keep_best: 0,
            ema: 0.0,
            precision: Precision::default(),
            optimizer: OptimizerConfig::default(),
            schedule: ScheduleConfig::default(),
            validate_every: None,
            checkpoint_every: None,
            log_every: 10,
            patience: None,
            stop_at: None,
            threads: 0,
            device: "auto".into(),
            profile: None,
            alerts: AlertsConfig::default(),
            endpoint: None,
            group: None,
            files,
        }
    }

    /// Checks the settings.
    ///
    /// # Errors
    /// Returns an error that names the first setting out of range.
    pub fn check(&self) -> anyhow::Result<()> {
        let is_rate = |rate: f64| rate > 0.0 && rate <= 1.0;
        ensure!(
            is_rate(self.learning_rate),
            "training.learning_rate must be above 0, up to 1"
        );
        ensure!(
            (0.0..=1.0).contains(&self.weight_decay),
            "training.weight_decay must be 0 to 1"
        );
        ensure!(
            (0.0..=1e6).contains(&self.clip.norm),
            "training.gradient_norm must be 0 to 1e6"
        );
        ensure!(
            (0.0..=1e6).contains(&self.clip.value),
            "training.gradient_value must be 0 to 1e6"
        );
        ensure!(self.accumulate > 0, "training.accumulate must be above 0");
        ensure!(
            (0.0..1.0).contains(&self.ema),
            "training.ema must be 0 to below 1"
        );
        ensure!(
            self.validate_every != Some(0),
            "training.validate_every must be above 0"
        );
        ensure!(
            self.checkpoint_every != Some(0),
            "training.checkpoint_every must be above 0"
        );
        ensure!(self.log_every > 0, "training.log_every must be above 0");
        ensure!(
            self.patience != Some(0),
            "training.patience must be above 0"
        );
        ensure!(
            self.stop_at.is_none_or(|loss| loss > 0.0),
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
        if self.profile.is_some() {
            memory::count();
        }
        match device(&self.device)? == Device::Cpu && (self.auto_batch || self.memory.is_some()) {
            true => memory::bound(self.memory),
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
            text("training.learning_rate", &self.learning_rate),
            text("training.warmup_steps", &self.warmup_steps),
            text("training.weight_decay", &self.weight_decay),
            text("training.gradient_norm", &self.clip.norm),
            text("training.gradient_value", &self.clip.value),
            text("training.ema", &self.ema),
            text("training.precision", &self.precision),
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
