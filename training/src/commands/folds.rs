//! `--folds`: trains once for each fold of the recordings, and tells mean and deviation of what is
//! measured.

use std::collections::BTreeMap;
use std::ffi::OsString;
use std::path::Path;

use anyhow::{Context, ensure};
use clap::Args;
use clap::builder::{PossibleValuesParser, TypedValueParser};
use ondes_engine::files;
use ondes_engine::model::{Measure, file};
use ondes_training::data::folds::{Fold, FoldBy, mean_and_deviation};
use ondes_training::recipe_kind::RecipeKind;
use ondes_training::sweep::Settings;
use ondes_training::trainer::recipe_file::read_toml;
use ondes_training::trainer::{Outcome, interrupt};
use serde::Serialize;
use toml::{Table, Value};

use crate::commands::trials::{self, Base, RunOptions, Trial, TrialResult, default_jobs, reasons};

/// Options of the training that those of the folds do not take, with their number of values.
const OWN_OPTIONS: [(&str, usize); 6] = [
    ("--folds", 1),
    ("--folds-by", 1),
    ("--jobs", 1),
    ("--out", 1),
    ("--resume", 0),
    ("--metrics", 1),
];

/// Options of folds.
#[derive(Args)]
#[command(next_help_heading = "Folds")]
pub struct FoldOptions {
    /// Trains this number of models, each validated on another part of the recordings, and prints
    /// mean and deviation of every figure.
    #[arg(long = "folds", value_name = "COUNT", value_parser = clap::value_parser!(u16).range(2..=1000))]
    pub count: Option<u16>,
    /// Folds are of recordings, or of pitches with all of their recordings.
    #[arg(long = "folds-by", value_name = "PART", default_value = "recording",
        value_parser = PossibleValuesParser::new(FoldBy::NAMES).map(|name| by(&name)))]
    pub by: FoldBy,
    /// Trainings at once [default: as many as cores and memory allow].
    #[arg(long, value_name = "COUNT", value_parser = clap::value_parser!(u16).range(1..=256))]
    pub jobs: Option<u16>,
}

fn by(name: &str) -> FoldBy {
    if name == FoldBy::NAMES[1] {
        FoldBy::Pitch
    } else {
        FoldBy::Recording
    }
}

/// Figure over all folds.
#[derive(Serialize)]
struct Figure {
    name: String,
    unit: String,
    mean: f64,
    deviation: f64,
    /// Mean of the baseline, if the figure has one.
    baseline: Option<f64>,
    values: Vec<f64>,
}

/// Report that is written as JSON.
#[derive(Serialize)]
struct Report {
    folds: u16,
    by: FoldBy,
    figures: Vec<Figure>,
    trials: Vec<TrialResult>,
}

impl FoldOptions {
    /// Returns the fields of a recipe that select a fold.
    pub fn settings(&self, fold: Fold) -> Settings {
        let by = FoldBy::NAMES[usize::from(self.by == FoldBy::Pitch)];
        vec![
            ("recordings.fold".to_owned(), Value::from(fold.to_string())),
            ("recordings.fold_by".to_owned(), Value::from(by)),
        ]
    }

    /// Trains the folds of a recipe with the further options of this process; prints the figures,
    /// and writes them beside the model `out` that the recipe names.
    ///
    /// # Errors
    /// Returns an error if a training fails.
    pub fn run(
        &self,
        count: u16,
        recipe: &Path,
        kind: RecipeKind,
        out: &Path,
    ) -> anyhow::Result<Outcome> {
        ensure!(
            recipe
                .extension()
                .is_none_or(|extension| extension != "ondes"),
            "{}: --folds needs a recipe",
            recipe.display()
        );
        let table: Table = read_toml(recipe)?;
        let work = std::path::absolute(out.with_extension("folds"))?;
        let options = further_options(std::env::args_os().skip(2), recipe);
        let in_recipe = table
            .get("training")
            .and_then(|training| training.get("threads"))
            .is_some();
        let has_threads = in_recipe
            || options
                .iter()
                .any(|option| option.to_string_lossy().starts_with("--threads"));
        let trials: Vec<Trial> = Fold::all(count)
            .enumerate()
            .map(|(index, fold)| Trial {
                folder: work.join(format!("fold{:02}", index + 1)),
                settings: self.settings(fold),
                kind,
                options: options.clone(),
            })
            .collect();
        interrupt::install()?;
        let base = Base {
            recipe: &table,
            folder: recipe.parent().unwrap_or(Path::new("")),
        };
        let jobs = self.jobs.map_or_else(default_jobs, usize::from);
        let options = RunOptions {
            jobs,
            stops_behind: false,
            has_threads,
        };
        let (first, others) = trials.split_at(jobs.min(trials.len()));
        let mut results = trials::run(first, &base, &options)?;
        // Where none of the first has ended, the others would fail for the same reason.
        if results
            .iter()
            .flatten()
            .any(|result| result.reason.is_none())
        {
            results.extend(trials::run(others, &base, &options)?);
        }
        results.resize_with(trials.len(), || None);
        if interrupt::requested() {
            return Ok(Outcome::Interrupted);
        }
        let ended = trials
            .iter()
            .zip(&results)
            .filter(|(_, result)| result.as_ref().is_some_and(|r| r.reason.is_none()));
        let measured = ended
            .map(|(trial, _)| measures(&trial.model()))
            .collect::<anyhow::Result<Vec<_>>>()?;
        let failed = results.len() - measured.len();
        ensure!(
            !measured.is_empty(),
            "no fold has ended: {}",
            reasons(&results)
        );
        let report = Report {
            folds: count,
            by: self.by,
            figures: figures(&measured),
            trials: results.iter().flatten().cloned().collect(),
        };
        print(&report, measured.len());
        let path = out.with_extension("folds.json");
        files::write(&path, &serde_json::to_vec_pretty(&report)?)
            .with_context(|| path.display().to_string())?;
        println!("{}: written", path.display());
        ensure!(
            failed == 0,
            "{failed} of {count} folds failed: {}",
            reasons(&results)
        );
        Ok(Outcome::Finished)
    }
}

/// Returns the options of a command that its folds take as well: all but the recipe and those of
/// this module.
fn further_options(arguments: impl Iterator<Item = OsString>, recipe: &Path) -> Vec<OsString> {
    let mut kept = Vec::new();
    let mut arguments = arguments.peekable();
    let mut has_recipe = false;
    while let Some(argument) = arguments.next() {
        let text = argument.to_string_lossy().into_owned();
        let name = text.split('=').next().unwrap_or_default();
        if let Some((_, values)) = OWN_OPTIONS.iter().find(|(own, _)| *own == name) {
            if !text.contains('=') {
                (0..*values).for_each(|_| drop(arguments.next()));
            }
        } else if !has_recipe && argument == recipe.as_os_str() {
            has_recipe = true;
        } else {
            kept.push(argument);
        }
    }
    kept
}

/// Returns the figures of a model: its validation loss, and those of its card.
fn measures(path: &Path) -> anyhow::Result<Vec<Measure>> {
    let card = file::read(path)?.header().card.clone();
    let validation = card.training.map(|training| Measure {
        name: "validation loss".into(),
        unit: String::new(),
        value: training.validation_loss,
        baseline: None,
    });
    Ok(validation.into_iter().chain(card.quality).collect())
}

/// Returns mean and deviation of the figures that all models have, in the order of the first.
fn figures(models: &[Vec<Measure>]) -> Vec<Figure> {
    let by_name = |model: &Vec<Measure>| -> BTreeMap<String, Measure> {
        model
            .iter()
            .map(|measure| (measure.name.clone(), measure.clone()))
            .collect()
    };
    let models: Vec<(&Vec<Measure>, BTreeMap<String, Measure>)> =
        models.iter().map(|model| (model, by_name(model))).collect();
    let Some((first, _)) = models.first() else {
        return Vec::new();
    };
    let figure = |measure: &Measure| {
        let all: Vec<&Measure> = models
            .iter()
            .filter_map(|(_, model)| model.get(&measure.name))
            .collect();
        let values: Vec<f64> = all.iter().map(|measure| measure.value).collect();
        let baselines: Option<Vec<f64>> = all.iter().map(|measure| measure.baseline).collect();
        let [mean, deviation] = mean_and_deviation(&values);
        (values.len() == models.len()).then(|| Figure {
            name: measure.name.clone(),
            unit: measure.unit.clone(),
            mean,
            deviation,
            baseline: baselines.map(|baselines| mean_and_deviation(&baselines)[0]),
            values,
        })
    };
    first.iter().filter_map(figure).collect()
}

fn print(report: &Report, ended: usize) {
    let by = FoldBy::NAMES[usize::from(report.by == FoldBy::Pitch)];
    println!("{ended} of {} folds by {by}", report.folds);
    println!(
        "{:36} {:>10} {:>10} {:>10}",
        "", "mean", "deviation", "baseline"
    );
    for Figure {
        name,
        unit,
        mean,
        deviation,
        baseline,
        ..
    } in &report.figures
    {
        let baseline = baseline.map_or_else(String::new, |baseline| format!("{baseline:.5}"));
        println!("{name:36} {mean:>10.5} {deviation:>10.5} {baseline:>10} {unit}");
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn folds_take_all_options_but_their_own() {
        let arguments = [
            "a.toml",
            "--folds",
            "3",
            "--ema",
            "0.9",
            "--jobs=2",
            "--resume",
            "--out",
            "b.ondes",
            "--tensorboard",
        ];
        let kept = further_options(arguments.iter().map(OsString::from), Path::new("a.toml"));
        assert_eq!(kept, ["--ema", "0.9", "--tensorboard"]);
    }

    #[test]
    fn figures_that_all_have_are_summed_up() {
        let measure = |name: &str, value: f64, baseline: Option<f64>| Measure {
            name: name.into(),
            unit: String::new(),
            value,
            baseline,
        };
        let models = [
            vec![measure("a", 1.0, Some(4.0)), measure("b", 5.0, None)],
            vec![measure("a", 3.0, Some(6.0))],
        ];
        let figures = figures(&models);
        assert_eq!(figures.len(), 1);
        assert_eq!(
            (
                figures[0].mean,
                figures[0].baseline,
                figures[0].values.clone()
            ),
            (2.0, Some(5.0), vec![1.0, 3.0])
        );
        assert!((figures[0].deviation - 2.0_f64.sqrt()).abs() < 1e-12);
    }
}
