//! Options of every command that trains.

use std::net::SocketAddr;
use std::path::PathBuf;

use clap::Args;
use clap::builder::PossibleValuesParser;
use ondes_training::distributed::{self, Membership};
use ondes_training::optimizer::OptimizerConfig;
use ondes_training::schedule::ScheduleConfig;
use ondes_training::trainer::endpoint::parse_address;
use ondes_training::trainer::recipe::RecipeTables;
use ondes_training::trainer::training_config::TrainingOverrides;
use ondes_training::trainer::{ProfileOptions, TrainerOptions};

/// Options of the trainer. Those that are absent leave the configuration as it is.
#[derive(Args)]
#[command(next_help_heading = "Trainer")]
pub struct TrainerArguments {
    /// Optimiser, with its default settings [default: adamw].
    #[arg(long, value_parser = PossibleValuesParser::new(OptimizerConfig::NAMES))]
    optimizer: Option<String>,
    #[command(flatten)]
    training: TrainingOverrides,
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
    /// Changes a recipe.
    pub fn apply(&self, tables: RecipeTables<'_>) -> anyhow::Result<()> {
        let RecipeTables {
            training,
            optimizer,
            alerts,
            ..
        } = tables;
        if let Some(name) = &self.optimizer {
            *optimizer = OptimizerConfig::named(name)?;
        }
        training.override_with(&self.training)?;
        self.alert.iter().try_for_each(|text| alerts.set(text))?;
        if let Some(command) = &self.on_alert {
            alerts.set_command(command, training.memory);
        }
        training.profile = self.profile.as_ref().map(|trace| ProfileOptions {
            trace: trace.clone(),
            operators: true,
        });
        training.endpoint = self.metrics;
        Ok(())
    }

    /// Changes the settings of a capture's run. 0 threads select those of its network.
    pub fn apply_to_capture(&self, options: &mut TrainerOptions) -> anyhow::Result<()> {
        let threads = options.training.threads;
        self.apply(RecipeTables {
            training: &mut options.training,
            optimizer: &mut options.optimizer,
            schedule: &mut options.schedule,
            alerts: &mut options.alerts,
        })?;
        if options.training.threads == 0 {
            options.training.threads = threads;
        }
        Ok(())
    }
}
