//! `ondes-train sweep`: trains with several settings.

use std::fmt::Write;
use std::path::{Path, PathBuf};

use anyhow::{Context, ensure};
use clap::Args;
use clap::builder::PossibleValuesParser;
use ondes_engine::files;
use ondes_training::data::folds::{Fold, mean_and_deviation};
use ondes_training::recipe_kind::RecipeKind;
use ondes_training::sweep::{Curve, Settings, Variation, grid, random};
use ondes_training::trainer::interrupt;
use ondes_training::trainer::recipe_file::read_toml;
use serde_json::json;
use toml::{Table, Value};

use crate::commands::folds::FoldOptions;
use crate::commands::trials::{
    self, Base, RunOptions, Status, Trial, TrialResult, default_jobs, reasons,
};

/// Options of `sweep`.
#[derive(Args)]
pub struct SweepArguments {
    /// TOML file of an instrument, a capture, a codec or a generator.
    config: PathBuf,
    /// Field with its values, such as `training.learning_rate=1e-3,2e-3`, or, with `--random`,
    /// `training.batch=4..32`.
    #[arg(long, required = true, value_parser = Variation::parse)]
    vary: Vec<Variation>,
    /// Tries so many random settings instead of all combinations.
    #[arg(long, value_name = "TRIALS", value_parser = clap::value_parser!(u16).range(1..=10_000))]
    random: Option<u16>,
    /// Seed of random settings.
    #[arg(long, default_value_t = 1)]
    seed: u64,
    /// Lets trials that fall behind the median of the others go on.
    #[arg(long)]
    no_stopping: bool,
    /// Kind of the recipe [default: as its fields tell; an instrument if they suit a codec as
    /// well].
    #[arg(long, value_parser = PossibleValuesParser::new(RecipeKind::NAMES))]
    kind: Option<String>,
    /// Folder of the trials [default: the TOML file with the ending .sweep].
    #[arg(long)]
    work: Option<PathBuf>,
    #[command(flatten)]
    folds: FoldOptions,
}

/// Settings with their trials: one, or one for each fold.
struct Setting {
    described: String,
    trials: Vec<usize>,
    /// Mean of the best validation losses of its trials and their deviation; `None` if one has
    /// failed.
    loss: Option<[f64; 2]>,
}

/// Trains all trials and prints a table.
pub fn run(options: &SweepArguments) -> anyhow::Result<()> {
    let recipe: Table = read_toml(&options.config)?;
    let kind = options
        .kind
        .as_deref()
        .and_then(RecipeKind::named)
        .unwrap_or_else(|| RecipeKind::detect(&recipe));
    let all = match options.random {
        Some(trials) => random(&options.vary, usize::from(trials), options.seed),
        None => grid(&options.vary)?,
    };
    ensure!(
        options.folds.count.is_none() || kind != RecipeKind::Capture,
        "--folds is for recordings; a capture is validated on the end of each of its pairs"
    );
    let work = options
        .work
        .clone()
        .unwrap_or_else(|| options.config.with_extension("sweep"));
    let work = std::path::absolute(work)?;
    let mut trials = Vec::new();
    let mut settings: Vec<Setting> = Vec::new();
    for own in all {
        let described = own
            .iter()
            .map(|(field, value)| format!("{field} {value}"))
            .collect::<Vec<_>>()
            .join(", ");
        let first = trials.len();
        let folds: Vec<Settings> = match options.folds.count {
            Some(count) => Fold::all(count)
                .map(|fold| options.folds.settings(fold))
                .collect(),
            None => vec![Vec::new()],
        };
        for fold in folds {
            let folder = work.join(format!("trial{:03}", trials.len() + 1));
            trials.push(Trial {
                folder,
                settings: [own.clone(), fold].concat(),
                kind,
                options: Vec::new(),
            });
        }
        settings.push(Setting {
            described,
            trials: (first..trials.len()).collect(),
            loss: None,
        });
    }
    interrupt::install()?;
    let base = Base {
        recipe: &recipe,
        folder: options.config.parent().unwrap_or(Path::new("")),
    };
    let run_options = RunOptions {
        jobs: options.folds.jobs.map_or_else(default_jobs, usize::from),
        // Losses of different folds cannot be compared.
        stops_behind: !options.no_stopping && options.folds.count.is_none(),
        has_threads: recipe
            .get("training")
            .and_then(|training| training.get("threads"))
            .is_some()
            || options
                .vary
                .iter()
                .any(|variation| variation.field == "training.threads"),
    };
    let results = trials::run(&trials, &base, &run_options)?;
    if interrupt::requested() {
        eprintln!("the same command goes on");
    }
    let best = |index: &usize| {
        let result = results[*index]
            .as_ref()
            .filter(|result| result.status != Status::Failed)?;
        let model = trials[*index].model().exists();
        let losses = trials[*index].curve().into_iter().map(|(_, loss)| loss);
        losses
            .min_by(f64::total_cmp)
            .filter(|loss| result.reason.is_none() && model && loss.is_finite())
    };
    for setting in &mut settings {
        let losses: Option<Vec<f64>> = setting.trials.iter().map(best).collect();
        setting.loss = losses.map(|losses| mean_and_deviation(&losses));
    }
    settings.sort_by(|a, b| mean(a).total_cmp(&mean(b)));
    print!("{}", table(&trials, &results, &settings));
    write_json(&work, &trials, &results)?;
    let ended = settings
        .first()
        .is_some_and(|setting| setting.loss.is_some());
    let failed = results
        .iter()
        .flatten()
        .filter(|result| result.status == Status::Failed)
        .count();
    ensure!(
        ended || failed == 0,
        "no trial has ended: {}",
        reasons(&results)
    );
    Ok(())
}

fn mean(setting: &Setting) -> f64 {
    setting.loss.map_or(f64::INFINITY, |[mean, _]| mean)
}

/// Returns the settings in a table, the best first.
fn table(trials: &[Trial], results: &[Option<TrialResult>], settings: &[Setting]) -> String {
    let mut text = format!(
        "{:>10} {:>10} {:>8} {:9} settings\n",
        "validation", "deviation", "step", ""
    );
    for setting in settings {
        let own = || {
            setting
                .trials
                .iter()
                .filter_map(|&index| Some((index, results[index].as_ref()?)))
        };
        let Some((_, first)) = own().next() else {
            continue;
        };
        // Of several folds, the one that failed.
        let result = own()
            .map(|(_, result)| result)
            .find(|result| result.status == Status::Failed)
            .unwrap_or(first);
        let status = format!("{:?}", result.status).to_lowercase();
        let last = |curve: Curve| curve.last().map_or(0, |(step, _)| *step);
        let step = own()
            .map(|(index, _)| last(trials[index].curve()))
            .max()
            .unwrap_or(0);
        let [loss, deviation] = match setting.loss {
            Some([mean, deviation]) if setting.trials.len() > 1 => {
                [mean, deviation].map(|value| format!("{value:.5}"))
            }
            Some([mean, _]) => [format!("{mean:.5}"), String::new()],
            None => ["–".to_owned(), String::new()],
        };
        let _ = write!(
            text,
            "{loss:>10} {deviation:>10} {step:>8} {status:9} {}",
            setting.described
        );
        let _ = match &result.reason {
            Some(reason) => writeln!(text, ": {reason}"),
            None => writeln!(text),
        };
    }
    match settings.first() {
        Some(Setting {
            trials: own,
            loss: Some(_),
            ..
        }) if own.len() == 1 => {
            let _ = writeln!(text, "best: {}", trials[own[0]].model().display());
        }
        Some(Setting {
            described,
            loss: Some(_),
            ..
        }) => {
            let _ = writeln!(text, "best: {described}");
        }
        _ => {}
    }
    text
}

/// Writes all results as JSON, into the folder of the trials.
fn write_json(
    work: &Path,
    trials: &[Trial],
    results: &[Option<TrialResult>],
) -> anyhow::Result<()> {
    let row = |(trial, result): (&Trial, &Option<TrialResult>)| {
        let result = result.as_ref()?;
        let best = trial.curve().into_iter().min_by(|a, b| a.1.total_cmp(&b.1));
        let settings: Table = trial
            .settings
            .iter()
            .cloned()
            .collect::<toml::map::Map<String, Value>>();
        Some(json!({
            "settings": settings,
            "status": result.status,
            "reason": result.reason,
            "validation": best.map(|(_, loss)| loss),
            "step": best.map(|(step, _)| step),
            "model": trial.model().exists().then(|| trial.model()),
        }))
    };
    let rows: Vec<_> = trials.iter().zip(results).filter_map(row).collect();
    let path = work.join("results.json");
    files::write(&path, &serde_json::to_vec_pretty(&rows)?)
        .with_context(|| path.display().to_string())
}
