//! `ondes-train codec`.

use std::path::PathBuf;

use clap::Args;
use ondes_training::codec::{CodecConfig, CodecTask};
use ondes_training::evaluate::evaluate;
use ondes_training::trainer::{Outcome, Trainer, interrupt};

use crate::trainer_arguments::{ScheduleArgument, TrainerArguments, WorkersArgument};
use crate::{print_evaluation, value_parser, write_evaluated};

/// Options of `codec`.
#[derive(Args)]
pub struct CodecArguments {
    /// TOML file with data, network and training; examples are in `training/recipes`.
    config: PathBuf,
    /// Trained codec to start from: a few minutes of new sound then need less than an hour.
    #[arg(long, value_name = "MODEL")]
    from: Option<PathBuf>,
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
}

/// Trains a codec and writes it. Returns `Interrupted` if it was stopped; the best model so far is written then, too.
pub fn codec(options: &CodecArguments) -> anyhow::Result<Outcome> {
    let mut config = CodecConfig::read(&options.config)?;
    options.trainer.apply_to_config(&mut config.training, &mut config.optimizer)?;
    options.schedule.apply(&mut config.schedule)?;
    config.training.minutes = options.minutes.or(config.training.minutes);
    config.from = options.from.clone().or(config.from);
    let mut trainer_options = config.trainer_options();
    let membership = options.workers.join(&mut trainer_options)?;
    let has_checkpoint = trainer_options.files.checkpoint.exists();
    let out = config.out.clone();
    let mut trainer = Trainer::new(CodecTask::new(config)?, trainer_options)?;
    if options.resume || membership.as_ref().is_some_and(|membership| membership.restarts > 0 && has_checkpoint) {
        trainer.resume()?;
    }
    interrupt::install()?;
    let outcome = trainer.run()?;
    if membership.is_some_and(|membership| !membership.is_first()) {
        return Ok(outcome);
    }
    let trained = trainer.model()?;
    let task = trainer.task();
    let model = task.finished(&trained)?;
    let evaluation = evaluate(&model, task.dataset().measured(), None)?;
    print_evaluation(&evaluation);
    write_evaluated(&model, &evaluation, &out)?;
    Ok(outcome)
}
