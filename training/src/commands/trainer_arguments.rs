//! Options of every command that trains.

use std::net::SocketAddr;
use std::path::PathBuf;

use clap::Args;
use clap::builder::PossibleValuesParser;
use ondes_training::distributed::{self, Membership};
use ondes_training::optimizer::OptimizerConfig;
use ondes_training::schedule::ScheduleConfig;
use ondes_training::trainer::endpoint::parse_address;
use ondes_training::trainer::training_config::TrainingConfig;
use ondes_training::trainer::{AlertsConfig, Precision, ProfileOptions, TrainerOptions};

use crate::commands::value_parser;

/// Options of the trainer. Those that are absent leave the configuration as it is.
#[derive(Args)]
#[command(next_help_heading = "Trainer")]
pub struct TrainerArguments {
    /// Optimiser, with its default settings [default: adamw].
    #[arg(long, value_parser = PossibleValuesParser::new(OptimizerConfig::NAMES))]
    optimizer: Option<String>,
    /// Computes each batch in this many parts, one after the other, to need less memory.
    #[arg(long, value_parser = clap::value_parser!(u16).range(1..=4096))]
    accumulate: Option<u16>,
    /// Bound on the memory of the process, such as 8G: program, recordings in memory, and tensors
    /// of the CPU. Batches that need more are computed in parts. On macOS the program does not
    /// count; on Windows tensors are not bounded.
    #[arg(long, value_parser = ondes_training::trainer::training_config::parse_bytes)]
    memory: Option<u64>,
    /// Computes the network's values again in the backward pass: half the memory for a third more
    /// time.
    #[arg(long)]
    checkpoint_activations: bool,
    /// Keeps the checkpoints of so many best validations beside the last one.
    #[arg(long, value_name = "COUNT", value_parser = clap::value_parser!(u16).range(1..=1000))]
    keep_best: Option<u16>,
    /// Precision of the forward pass [default: f32].
    #[arg(long, value_parser = PossibleValuesParser::new(Precision::NAMES))]
    precision: Option<String>,
    /// Decay rate of the mean of the weights that is validated and kept, such as 0.999.
    #[arg(long, value_parser = value_parser::decay)]
    ema: Option<f64>,
    /// Stops after this many validations without progress.
    #[arg(long, value_name = "VALIDATIONS", value_parser = clap::value_parser!(u64).range(1..))]
    patience: Option<u64>,
    /// Stops at this validation loss.
    #[arg(long, value_name = "LOSS", value_parser = value_parser::positive)]
    stop_at: Option<f64>,
    /// Writes TensorBoard event files: scalars, histograms, spectrograms and sound.
    #[arg(long)]
    tensorboard: bool,
    /// Threads of libtorch; 0 for one with recurrent captures, otherwise one per core.
    #[arg(long, value_parser = clap::value_parser!(i32).range(0..=256))]
    threads: Option<i32>,
    /// Device: auto, cpu, cuda or cuda:N; auto selects CUDA if available.
    #[arg(long)]
    device: Option<String>,
    /// Prints where the time of a step goes, libtorch's operators by time, loader and memory, and
    /// advice; with a file, also writes a Chrome trace of five steps.
    #[arg(long, value_name = "JSON", num_args = 0..=1, value_parser = trace_path)]
    profile: Option<Option<PathBuf>>,
    /// Threshold of a warning, such as validation_rise=10%, gradient_norm=100, gradient_rise=10,
    /// memory=8G, data_wait=5% or throughput_drop=20%.
    #[arg(long, value_name = "NAME=VALUE")]
    alert: Vec<String>,
    /// Command that the shell runs at each warning, with ONDES_ALERT, ONDES_ALERT_TEXT,
    /// ONDES_ALERT_VALUE, ONDES_ALERT_BOUND, ONDES_STEP and ONDES_METRICS in its environment.
    /// Without thresholds it has those of validation_rise=10%, gradient_rise=10 and nine tenths of
    /// the memory.
    #[arg(long, value_name = "COMMAND")]
    on_alert: Option<String>,
    /// Serves the metrics in the OpenMetrics format at this address, such as 127.0.0.1:9464, or at
    /// a port of this machine.
    #[arg(long, value_name = "ADDRESS", value_parser = parse_address)]
    metrics: Option<SocketAddr>,
}

/// Parses the path of a trace. The ending tells it from an argument that follows `--profile`.
fn trace_path(text: &str) -> Result<PathBuf, String> {
    let path = PathBuf::from(text);
    let is_json = path
        .extension()
        .is_some_and(|ending| ending.eq_ignore_ascii_case("json"));
    is_json
        .then_some(path)
        .ok_or_else(|| "a trace must end in .json; put --profile without a file last".into())
}

/// Processes that train together.
#[derive(Args)]
#[command(next_help_heading = "Trainer")]
pub struct WorkersArgument {
    /// Processes on this machine, which share each batch; for several machines use torchrun, srun
    /// or mpirun.
    #[arg(long, value_name = "COUNT", value_parser = clap::value_parser!(u16).range(1..=256))]
    pub workers: Option<u16>,
}

impl WorkersArgument {
    /// Connects this process with others, if it is one of several. Returns who it is.
    pub fn join(&self, options: &mut TrainerOptions) -> anyhow::Result<Option<Membership>> {
        let membership = Membership::from_environment()?;
        if let Some(membership) = &membership {
            distributed::join(membership, options)?;
        }
        Ok(membership)
    }
}

/// Schedule of the learning rate.
#[derive(Args)]
#[command(next_help_heading = "Trainer")]
pub struct ScheduleArgument {
    /// Schedule of the learning rate, with its default settings [default: cosine].
    #[arg(long, value_parser = PossibleValuesParser::new(ScheduleConfig::NAMES))]
    schedule: Option<String>,
}

impl ScheduleArgument {
    /// Changes a schedule.
    pub fn apply(&self, schedule: &mut ScheduleConfig) -> anyhow::Result<()> {
        if let Some(name) = &self.schedule {
            *schedule = ScheduleConfig::named(name)?;
        }
        Ok(())
    }
}

impl TrainerArguments {
    fn precision(&self) -> Option<Precision> {
        self.precision.as_deref().and_then(Precision::named)
    }

    fn profile(&self) -> Option<ProfileOptions> {
        self.profile.as_ref().map(|trace| ProfileOptions {
            trace: trace.clone(),
            operators: true,
        })
    }

    fn apply_alerts(&self, alerts: &mut AlertsConfig, bound: Option<u64>) -> anyhow::Result<()> {
        self.alert.iter().try_for_each(|text| alerts.set(text))?;
        self.on_alert
            .iter()
            .for_each(|command| alerts.set_command(command, bound));
        Ok(())
    }

    /// Changes a configuration.
    pub fn apply_to_config(
        &self,
        training: &mut TrainingConfig,
        optimizer: &mut OptimizerConfig,
        alerts: &mut AlertsConfig,
    ) -> anyhow::Result<()> {
        if let Some(name) = &self.optimizer {
            *optimizer = OptimizerConfig::named(name)?;
        }
        training.accumulate = self.accumulate.map_or(training.accumulate, usize::from);
        training.memory = self.memory.or(training.memory);
        training.checkpoint_activations |= self.checkpoint_activations;
        training.keep_best = self.keep_best.map_or(training.keep_best, usize::from);
        training.precision = self.precision().unwrap_or(training.precision);
        training.ema = self.ema.unwrap_or(training.ema);
        training.patience = self.patience.or(training.patience);
        training.stop_at = self.stop_at.or(training.stop_at);
        training.tensorboard |= self.tensorboard;
        training.threads = self.threads.unwrap_or(training.threads);
        if let Some(device) = &self.device {
            training.device.clone_from(device);
        }
        self.apply_alerts(alerts, training.memory)?;
        training.profile = self.profile();
        training.endpoint = self.metrics;
        Ok(())
    }

    /// Changes the settings of a run.
    pub fn apply(&self, options: &mut TrainerOptions) -> anyhow::Result<()> {
        if let Some(name) = &self.optimizer {
            options.optimizer = OptimizerConfig::named(name)?;
        }
        options.accumulate = self.accumulate.map_or(options.accumulate, usize::from);
        options.memory = self.memory.or(options.memory);
        options.checkpoint_activations |= self.checkpoint_activations;
        options.keep_best = self.keep_best.map_or(options.keep_best, usize::from);
        options.precision = self.precision().unwrap_or(options.precision);
        options.ema = self.ema.unwrap_or(options.ema);
        options.patience = self.patience.or(options.patience);
        options.stop_at = self.stop_at.or(options.stop_at);
        if self.tensorboard {
            options.files.tensorboard = Some(options.files.metrics.with_file_name("tensorboard"));
        }
        options.threads = self
            .threads
            .filter(|threads| *threads > 0)
            .unwrap_or(options.threads);
        if let Some(device) = &self.device {
            options.device.clone_from(device);
        }
        self.apply_alerts(&mut options.alerts, options.memory)?;
        options.profile = self.profile();
        options.endpoint = self.metrics;
        Ok(())
    }
}
