//! Options of the commands that train from a recipe.

use std::path::{Path, PathBuf};

use anyhow::Context;
use clap::Args;
use ondes_training::recipe_kind::RecipeKind;
use ondes_training::trainer::guard::guarded;
use ondes_training::trainer::recipe::Recipe;
use ondes_training::trainer::{Outcome, Task, Trainer, interrupt};

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
    pub fn paths_for_model(&self, config: &Path) -> anyhow::Result<Option<[&Path; 2]>> {
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
    /// Trains a task, or the folds of a recipe. Returns no trainer if there is nothing to write: of
    /// folds, and in processes other than the first.
    pub fn train<R: Recipe, T: Task>(
        &self,
        kind: RecipeKind,
        mut recipe: R,
        task: impl FnOnce(R) -> anyhow::Result<T>,
    ) -> anyhow::Result<(Outcome, Option<Trainer<T>>)> {
        self.trainer.apply(recipe.tables())?;
        let tables = recipe.tables();
        self.schedule.apply(tables.schedule)?;
        tables.training.minutes = self.minutes.or(tables.training.minutes);
        if let Some(count) = self.folds.count {
            let outcome = self.folds.run(count, &self.config, kind, recipe.out())?;
            return Ok((outcome, None));
        }
        let mut options = recipe.trainer_options();
        let membership = self.workers.join(&mut options)?;
        let has_checkpoint = options.files.checkpoint.exists();
        options.bound_memory()?;
        let task = guarded("the preparation of the data", || task(recipe))?;
        let mut trainer = Trainer::new(task, options)?;
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
