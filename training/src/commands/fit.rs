//! `ondes-train fit`.

use ondes_training::data::report::DataReport;
use ondes_training::data::{Dataset, Subset};
use ondes_training::evaluate::audition::adjusted;
use ondes_training::evaluate::evaluate;
use ondes_training::recipe_kind::RecipeKind;
use ondes_training::tasks::instrument::config::Config;
use ondes_training::tasks::instrument::task::InstrumentTask;
use ondes_training::trainer::Outcome;

use super::audition::keep;
use super::evaluate::{print, write_with_quality};
use super::recipe_arguments::RecipeArguments;
use super::write_model::measured;

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
    let (config, dataset) = (trainer.task().config(), trainer.task().dataset());
    let (finished, quality) = measured(&model, &out, || {
        let training = dataset.recordings(Subset::Training);
        let evaluation = evaluate(&model, dataset.measured(), Some(training))?;
        print(&evaluation);
        let mut quality = evaluation.measures();
        // As loud as they are.
        let recordings = Dataset::recordings_of(&config.data())?;
        if !DataReport::new(&recordings)?.are_single_notes {
            return Ok((model.clone(), quality));
        }
        // A model that has learnt little may have no pitch to compare, but is a model.
        match adjusted(&model, &recordings, None, config.attacks) {
            Ok((finished, heard)) => {
                println!("{}", heard.text());
                keep(&mut quality, &heard);
                Ok((finished, quality))
            }
            Err(error) => {
                eprintln!("not played by MIDI: {error:#}");
                Ok((model.clone(), quality))
            }
        }
    })?;
    write_with_quality(&finished, quality, &out)?;
    Ok(outcome)
}
