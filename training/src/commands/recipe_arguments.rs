//! Options of the commands that train from a recipe.

use std::path::{Path, PathBuf};

use anyhow::Context;
use clap::Args;
use ondes_training::optimizer::OptimizerConfig;
use ondes_training::schedule::ScheduleConfig;
use ondes_training::trainer::guard::guarded;
use ondes_training::trainer::training_config::TrainingConfig;
use ondes_training::trainer::{AlertsConfig, Outcome, Task, Trainer, TrainerOptions, interrupt};

use crate::commands::folds::FoldOptions;
use crate::commands::trainer_arguments::{ScheduleArgument, TrainerArguments, WorkersArgument};
use ondes_training::value_parser;

/// Options of `fit`, `codec` and `prior`.
#[derive(Args)]
pub struct RecipeArguments {
    /// TOML file with data, network and training; examples are in `training/recipes`.
    pub config: PathBuf,
    /// Resumes from the last checkpoint of this configuration.
    #[arg(long)]
    resume: bool,
    /// Trains for about this time instead of the configured number of steps.
    #[arg(long, value_parser = value_parser::positive)]
    minutes: Option<f64>,
    #[command(flatten)]
    trainer: TrainerArguments,
    #[command(flatten)]
    pub workers: WorkersArgument,
    #[command(flatten)]
    schedule: ScheduleArgument,
    #[command(flatten)]
    pub folds: FoldOptions,
}

/// Options of `codec` and `prior` that replace those of the recipe, or together with a trained
/// model the whole of it.
#[derive(Args)]
pub struct SoundArguments {
    /// Folder of the recordings to learn. With it and `--out`, a trained model may take the place
    /// of the TOML file.
    #[arg(long, value_name = "FOLDER")]
    data: Option<PathBuf>,
    /// Model file to write.
    #[arg(long, value_name = "MODEL")]
    out: Option<PathBuf>,
}

impl SoundArguments {
    /// Returns the folder and the model file of a run from a trained model; nothing if `config` is
    /// a recipe.
    ///
    /// # Errors
    /// Returns an error if an option is missing.
    pub fn of_model(&self, config: &Path) -> anyhow::Result<Option<[&Path; 2]>> {
        if config
            .extension()
            .is_none_or(|extension| extension != "ondes")
        {
            return Ok(None);
        }
        let missing = |option: &str| {
            format!(
                "{}: a model in place of a recipe needs {option}",
                config.display()
            )
        };
        let data = self.data.as_deref().with_context(|| missing("--data"))?;
        let out = self.out.as_deref().with_context(|| missing("--out"))?;
        Ok(Some([data, out]))
    }

    /// Changes the paths of a configuration.
    pub fn apply(&self, data: &mut PathBuf, out: &mut PathBuf) {
        for (path, given) in [(data, &self.data), (out, &self.out)] {
            if let Some(given) = given {
                path.clone_from(given);
            }
        }
    }
}

impl RecipeArguments {
    /// Changes a configuration.
    pub fn apply(
        &self,
        training: &mut TrainingConfig,
        optimizer: &mut OptimizerConfig,
        schedule: &mut ScheduleConfig,
        alerts: &mut AlertsConfig,
    ) -> anyhow::Result<()> {
        self.trainer.apply(training, optimizer, alerts)?;
        self.schedule.apply(schedule)?;
        training.minutes = self.minutes.or(training.minutes);
        Ok(())
    }

    /// Trains a task. Returns no trainer in processes other than the first, which have nothing to
    /// write.
    pub fn train<T: Task>(
        &self,
        mut options: TrainerOptions,
        task: impl FnOnce() -> anyhow::Result<T>,
    ) -> anyhow::Result<(Outcome, Option<Trainer<T>>)> {
        let membership = self.workers.join(&mut options)?;
        let has_checkpoint = options.files.checkpoint.exists();
        options.bound_memory()?;
        let mut trainer = Trainer::new(guarded("the preparation of the data", task)?, options)?;
        if self.resume
            || membership
                .as_ref()
                .is_some_and(|membership| membership.restarts > 0 && has_checkpoint)
        {
            trainer.resume()?;
        }
        interrupt::install()?;
        let outcome = trainer.run()?;
        let writes = membership.is_none_or(|membership| membership.is_first());
        Ok((outcome, writes.then_some(trainer)))
    }
}
