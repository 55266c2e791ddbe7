//! `ondes-train audition`.

use std::path::{Path, PathBuf};

use anyhow::Context;
use clap::Args;
use ondes_engine::instrument::Performance;
use ondes_engine::media::WavBits;
use ondes_engine::model::card::Measure;
use ondes_engine::model::{Model, file};
use ondes_training::data::playing::Playing;
use ondes_training::data::report::DataReport;
use ondes_training::data::{DataConfig, Dataset, Recordings, open_folder};
use ondes_training::evaluate::audition::{Audition, adjusted, audition};
use ondes_training::evaluate::feature_rate;
use ondes_training::tasks::instrument::config::{Config, StatedPerformance};
use ondes_training::tasks::instrument::controls::controls;

use super::capture::write_wav;
use super::sound_options::default_cache;
use super::write_model::write;

/// Options of `audition`.
#[derive(Args)]
pub struct AuditionArguments {
    /// Instrument.
    model: PathBuf,
    /// Folder of single notes, or a dataset that `prepare` wrote.
    #[arg(long, value_name = "FOLDER")]
    recordings: PathBuf,
    /// Measures how the recordings were played and writes that into the model, with the figures.
    #[arg(long)]
    update: bool,
    /// Recipe that tells the knobs of the recordings, and whose `[performance]` goes before what is
    /// measured.
    #[arg(long, value_name = "TOML")]
    recipe: Option<PathBuf>,
    /// Folder for WAV files of what is played, named as the recordings.
    #[arg(long, value_name = "FOLDER")]
    sounds: Option<PathBuf>,
    /// Frequency below which the recordings are attenuated, Hz; a recipe has its own.
    #[arg(long, value_name = "HZ", default_value_t = 30, conflicts_with = "recipe", value_parser = clap::value_parser!(u16).range(0..=500))]
    high_pass: u16,
    /// Folder for analysed audio [default: a temporary folder].
    #[arg(long)]
    cache: Option<PathBuf>,
    /// Prints one JSON object.
    #[arg(long)]
    json: bool,
}

/// Plays the recorded notes by MIDI, and prints how they compare.
pub fn run(options: &AuditionArguments) -> anyhow::Result<()> {
    let mut model = file::read(&options.model)?;
    let cache = options.cache.clone().unwrap_or_else(default_cache);
    let rate = feature_rate(&model)?;
    let recipe = options.recipe.as_deref().map(Config::read).transpose()?;
    let recordings = match &recipe {
        Some(recipe) => Dataset::recordings_of(&DataConfig {
            folder: &options.recordings,
            cache,
            rate,
            ..recipe.data()
        })?,
        None => open_folder(&options.recordings, &cache, rate, options.high_pass)?,
    };
    if options.update {
        let may_hold = recipe.as_ref().is_none_or(|recipe| recipe.attacks);
        let stated = recipe.map(|recipe| recipe.performance).unwrap_or_default();
        model = with_measured(&model, &recordings, &stated)?;
        (model, _) = adjusted(&model, &recordings, None, may_hold)?;
    }
    let hear = |name: &str, sound: &[f32]| {
        options.sounds.as_deref().map_or(Ok(()), |folder| {
            let path = folder.join(Path::new(name).with_extension("wav"));
            write_wav(&path, sound, rate.sample_rate, WavBits::Int24)
        })
    };
    let heard = audition(&model, &recordings, None, hear)
        .with_context(|| options.recordings.display().to_string())?;
    if options.json {
        println!("{}", serde_json::to_string(&heard)?);
    } else {
        println!("{}", heard.text());
    }
    if options.update {
        let mut header = model.header().clone();
        keep(&mut header.card.quality, &heard);
        write(&model.with_header(header)?, &options.model)?;
    }
    Ok(())
}

/// Puts the figures of an audition in the place of earlier ones.
pub fn keep(quality: &mut Vec<Measure>, heard: &Audition) {
    let measures = heard.measures();
    quality.retain(|kept| measures.iter().all(|measure| measure.name != kept.name));
    quality.extend(measures);
}

/// Returns the model with the performance of the recordings.
fn with_measured(
    model: &Model,
    recordings: &Recordings,
    stated: &StatedPerformance,
) -> anyhow::Result<Model> {
    let report = DataReport::new(recordings)?;
    let playing = Playing::measure(recordings, report.has_one_dynamic())?
        .context("there are no single notes of up to 15 s with a pitch")?;
    let performance = stated.over(&playing.performance())?;
    let mut header = model.header().clone();
    let before = controls(&header.performance.unwrap_or_default());
    header
        .controls
        .retain(|control| before.iter().all(|of_all| of_all.name != control.name));
    header.controls.extend(controls(&performance));
    header.performance = Some(Performance {
        polyphony: header.performance.unwrap_or_default().polyphony,
        ..performance
    });
    Ok(model.with_header(header)?)
}
