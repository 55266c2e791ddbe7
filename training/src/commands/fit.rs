//! `ondes-train fit`.

use ondes_training::data::Subset;
use ondes_training::data::report::DataReport;
use ondes_training::evaluate::evaluate;
use ondes_training::recipe_kind::RecipeKind;
use ondes_training::tasks::instrument::config::Config;
use ondes_training::tasks::instrument::task::InstrumentTask;
use ondes_training::trainer::Outcome;

use super::evaluate::write_evaluated;
use super::recipe_arguments::RecipeArguments;

/// Trains an instrument and writes it. Returns `Interrupted` if it was stopped; the best model so
/// far is written then, too.
pub fn fit(options: &RecipeArguments) -> anyhow::Result<Outcome> {
    let config = Config::read(&options.config)?;
    let out = config.out.clone();
    let (outcome, trainer) = options.train(RecipeKind::Instrument, config, |config| {
        let task = InstrumentTask::new(config)?;
        eprintln!(
            "{}\n{}",
            DataReport::new(task.dataset().all())?.text(),
            task.config().settings()
        );
        Ok(task)
    })?;
    let Some(mut trainer) = trainer else {
        return Ok(outcome);
    };
    let model = trainer.model()?;
    let dataset = trainer.task().dataset();
    write_evaluated(&model, &out, || {
        let training = dataset.recordings(Subset::Training);
        evaluate(&model, dataset.measured(), Some(training))
    })?;
    Ok(outcome)
}
