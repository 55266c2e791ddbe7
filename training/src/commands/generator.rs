//! `ondes-train prior`.

use std::path::PathBuf;

use clap::Args;
use ondes_training::recipe_kind::RecipeKind;
use ondes_training::tasks::generator::{PriorConfig, PriorTask};
use ondes_training::trainer::Outcome;

use crate::commands::recipe_arguments::{RecipeArguments, SoundArguments};
use crate::commands::write_model::{measured, write};

/// Options of `prior`.
#[derive(Args)]
pub struct PriorArguments {
    #[command(flatten)]
    pub recipe: RecipeArguments,
    #[command(flatten)]
    sound: SoundArguments,
    /// Trained generator to start from, with its codec and its sizes.
    #[arg(long, value_name = "MODEL")]
    from: Option<PathBuf>,
}

/// Trains a prior and writes a generator. Returns `Interrupted` if it was stopped; the best model
/// so far is written then, too.
pub fn prior(options: &PriorArguments) -> anyhow::Result<Outcome> {
    let path = &options.recipe.config;
    let mut config = match options.sound.paths_for_model(path)? {
        Some([data, out]) => PriorConfig::for_codec(path, data, out)?,
        None => PriorConfig::read(path)?,
    };
    options.sound.apply(&mut config.data, &mut config.out);
    config.from = options.from.clone().or(config.from);
    let out = config.out.clone();
    let (outcome, trainer) = options
        .recipe
        .train(RecipeKind::Generator, config, PriorTask::new)?;
    let Some(mut trainer) = trainer else {
        return Ok(outcome);
    };
    let trained = trainer.model()?;
    let task = trainer.task();
    let model = measured(&trained, &out, || task.finished(&trained))?;
    for measure in &model.header().card.quality {
        println!(
            "{:36} {:>10.3} {}",
            measure.name, measure.value, measure.unit
        );
    }
    let [linear, memoryless] = task.baselines();
    println!("{:36} {linear:>10.3} nats", "by a linear prediction");
    println!(
        "{:36} {memoryless:>10.3} nats",
        "by a mixture without memory"
    );
    write(&model, &out)?;
    Ok(outcome)
}
