//! `ondes-train evaluate`, and the figures of a model that was trained.

use std::path::{Path, PathBuf};

use anyhow::{Context, bail};
use clap::Args;
use ondes_engine::model::card::Measure;
use ondes_engine::model::{Kind, Model, file};
use ondes_training::data::{is_recipe, open_folder};
use ondes_training::evaluate::measured::open_measured;
use ondes_training::evaluate::{
    COMMON_RATE, Evaluation, FromTraining, evaluate, evaluate_sounds, feature_rate, picture,
};
use ondes_training::tasks::generator::evaluate::evaluate as evaluate_generator;
use serde::Serialize;

use crate::commands::capture;
use crate::commands::sound_options::{SoundOptions, default_cache};
use crate::commands::write_model::write;

/// Options of `evaluate`.
#[derive(Args)]
pub struct EvaluateArguments {
    /// Instrument, codec, generator or capture; or a folder of what another codec made of the
    /// recordings, under their names.
    model: PathBuf,
    #[command(flatten)]
    sound: SoundOptions,
    /// Folder of the recordings that the model was trained on, to compare with them.
    #[arg(long, value_name = "DIR", requires = "data")]
    training: Option<PathBuf>,
    /// Folder for analysed audio [default: a temporary folder].
    #[arg(long)]
    cache: Option<PathBuf>,
    /// PNG file to draw: spectrograms of the first ten seconds, and of what the model makes of
    /// them, or a generator plays in their place.
    #[arg(long, value_name = "FILE", requires = "data")]
    picture: Option<PathBuf>,
    /// Number of pieces of ten minutes that a generator plays, in which it may drift or fall
    /// silent.
    #[arg(long, value_name = "N", default_value_t = 1, value_parser = clap::value_parser!(u32).range(1..=1000))]
    long_pieces: u32,
    /// Prints one JSON object.
    #[arg(long)]
    json: bool,
}

/// Measures a model, or the sounds of another, and prints the figures.
pub fn run(options: &EvaluateArguments) -> anyhow::Result<()> {
    let model = if options.model.is_dir() {
        None
    } else {
        Some(file::read(&options.model)?)
    };
    let kind = model
        .as_ref()
        .map_or(Kind::Codec, |model| model.header().kind);
    if let (Some(model), Some(dry), Some(wet)) = (&model, &options.sound.dry, &options.sound.wet) {
        return capture::evaluate(model, dry, wet, options.json);
    }
    let data = options
        .sound
        .data
        .as_deref()
        .context("use --data, or --dry and --wet for captures")?;
    if let Some(model) = model
        .as_ref()
        .filter(|_| kind == Kind::Effect && is_recipe(data))
    {
        return capture::evaluate_recipe(model, data, options.json);
    }
    let cache = options.cache.clone().unwrap_or_else(default_cache);
    let rate = model.as_ref().map_or(Ok(COMMON_RATE), feature_rate)?;
    let (measured, learnt) = open_measured(data, &cache, rate, kind)?;
    // All are filtered alike.
    let open = |folder: &Path| open_folder(folder, &cache, rate, measured.store.format().high_pass);
    let learnt = options
        .training
        .as_deref()
        .map(open)
        .transpose()?
        .or(learnt);
    match (&model, &options.picture) {
        (Some(model), Some(path)) => picture::draw(model, &measured)?.write_png(path)?,
        (None, Some(_)) => bail!("--picture needs a model"),
        (_, None) => {}
    }
    let evaluation = match &model {
        Some(model) if kind == Kind::Generator => {
            let evaluation =
                evaluate_generator(model, &measured, learnt.as_ref(), options.long_pieces)?;
            return show(options, &evaluation, |evaluation| {
                println!("{}", evaluation.text())
            });
        }
        Some(model) => evaluate(model, &measured, learnt.as_ref())?,
        None => evaluate_sounds(&open(&options.model)?, &measured, learnt.as_ref())?,
    };
    show(options, &evaluation, print)
}

/// Prints figures, as JSON if that is asked for.
fn show<T: Serialize>(
    options: &EvaluateArguments,
    figures: &T,
    print: impl Fn(&T),
) -> anyhow::Result<()> {
    if options.json {
        println!("{}", serde_json::to_string(figures)?);
    } else {
        print(figures);
    }
    Ok(())
}

/// Prints the figures of an instrument or a codec.
pub fn print(evaluation: &Evaluation) {
    println!("{:.0} s of held-out sound", evaluation.seconds);
    println!("{:32} {:>10} {:>10}", "", "model", evaluation.baseline_name);
    for measure in evaluation.measures() {
        let baseline = measure.baseline.unwrap_or(f64::NAN);
        println!(
            "{:32} {:>10.3} {:>10.3} {}",
            measure.name, measure.value, baseline, measure.unit
        );
    }
    if let Some(FromTraining { model, recordings }) = evaluation.from_training {
        println!(
            "distance of timbres from what was learnt: {model:.1}; of the recordings: {recordings:.1}"
        );
    }
}

/// Writes a model with figures on its card.
pub fn write_with_quality(model: &Model, quality: Vec<Measure>, out: &Path) -> anyhow::Result<()> {
    let mut header = model.header().clone();
    header.card.quality = quality;
    write(&model.with_header(header)?, out)
}
