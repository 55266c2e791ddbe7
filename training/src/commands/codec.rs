//! `ondes-train codec`.

use std::path::PathBuf;

use anyhow::Context;
use clap::Args;
use ondes_engine::model::file;
use ondes_training::evaluate::evaluate;
use ondes_training::recipe_kind::RecipeKind;
use ondes_training::tasks::codec::network::sizes;
use ondes_training::tasks::codec::{CodecConfig, CodecTask};
use ondes_training::trainer::Outcome;

use crate::commands::evaluate::{print, write_with_quality};
use crate::commands::recipe_arguments::{RecipeArguments, SoundArguments};
use crate::commands::write_model::measured;

/// Options of `codec`.
#[derive(Args)]
pub struct CodecArguments {
    #[command(flatten)]
    pub recipe: RecipeArguments,
    #[command(flatten)]
    sound: SoundArguments,
    /// Trained codec of the same sizes to start from.
    #[arg(long, value_name = "MODEL")]
    from: Option<PathBuf>,
}

/// Trains a codec and writes it. Returns `Interrupted` if it was stopped; the best model so far is
/// written then, too.
pub fn codec(options: &CodecArguments) -> anyhow::Result<Outcome> {
    let path = &options.recipe.config;
    let mut config = match options.sound.paths_for_model(path)? {
        Some([data, out]) => {
            let read = || sizes(&file::read(path)?);
            let network = read().with_context(|| path.display().to_string())?;
            CodecConfig {
                from: Some(path.clone()),
                ..CodecConfig::new(network, data, out)?
            }
        }
        None => CodecConfig::read(path)?,
    };
    options.sound.apply(&mut config.data, &mut config.out);
    config.from = options.from.clone().or(config.from);
    let out = config.out.clone();
    let (outcome, trainer) = options
        .recipe
        .train(RecipeKind::Codec, config, CodecTask::new)?;
    let Some(mut trainer) = trainer else {
        return Ok(outcome);
    };
    let trained = trainer.model()?;
    let task = trainer.task();
    let model = task.finished(&trained)?;
    let evaluation = measured(&model, &out, || {
        evaluate(&model, task.dataset().measured(), None)
    })?;
    print(&evaluation);
    write_with_quality(&model, evaluation.measures(), &out)?;
    Ok(outcome)
}
