//! Commands for captures: `capture-signal`, `cabinet`, `capture` and `evaluate`.

use std::path::{Path, PathBuf};

use anyhow::{Context, ensure};
use clap::Args;
use clap::builder::PossibleValuesParser;
use ondes_engine::media::{WavBits, WavWriter};
use ondes_engine::model::limits::OVERSAMPLINGS;
use ondes_engine::model::{Control, Gear, Levels, Measure, Model, file};
use ondes_physical_models::loudspeaker;
use ondes_training::compression::variants;
use ondes_training::loss::LossWeights;
use ondes_training::tasks::capture::aliases;
use ondes_training::tasks::capture::architecture::{Architecture, names, packed_names};
use ondes_training::tasks::capture::config::{CaptureConfig, CardConfig, PairConfig};
use ondes_training::tasks::capture::measure::{Comparison, compare, loudness_db};
use ondes_training::tasks::capture::network_source::NetworkSource;
use ondes_training::tasks::capture::pair::Pair;
use ondes_training::tasks::capture::rest::silent_at_rest;
use ondes_training::tasks::capture::task::CaptureTask;
use ondes_training::tasks::capture::{nam, signal};
use ondes_training::trainer::{Outcome, RunFiles, Trainer, interrupt};

use crate::commands::trainer_arguments::{ScheduleArgument, TrainerArguments, WorkersArgument};
use crate::commands::write_model::{create_parent, measured, write};
use ondes_training::trainer::training_config::parse_batch;
use ondes_training::value_parser;

/// Network if neither `--size` nor `--from` is given.
const DEFAULT_SIZE: &str = "standard";

/// Options of `capture-signal`.
#[derive(Args)]
pub struct SignalArguments {
    /// WAV file to write: 48 kHz, mono, 24 bits.
    #[arg(long)]
    out: PathBuf,
    /// Length, seconds, 30 to 1200.
    #[arg(long, default_value_t = 180.0, value_parser = seconds)]
    seconds: f64,
}

/// Options of `cabinet`.
#[derive(Args)]
pub struct CabinetArguments {
    /// Cabinet.
    #[arg(value_parser = PossibleValuesParser::new(loudspeaker::names()))]
    name: String,
    /// WAV file to write: 48 kHz, mono, 24 bits.
    #[arg(long)]
    out: PathBuf,
}

/// Options of `capture`.
#[derive(Args)]
pub struct CaptureArguments {
    /// TOML file with pairs, knobs and settings; other options override it.
    config: Option<PathBuf>,
    /// Signal that was played into the device; `capture-signal` generates one. Once for all
    /// recordings, or once each.
    #[arg(long, required_unless_present = "config", conflicts_with = "config")]
    dry: Vec<PathBuf>,
    /// Recording at the device's output; several are learnt together.
    #[arg(long, required_unless_present = "config", conflicts_with = "config")]
    wet: Vec<PathBuf>,
    /// Network: standard, lite, feather, nano, a2-full, a2-lite, a2 (both in one file) or
    /// lstm-UNITS [default: that of `--from`, or standard].
    #[arg(long)]
    size: Option<String>,
    /// Model file to write [default: WET or the TOML file with the ending .ondes].
    #[arg(long)]
    out: Option<PathBuf>,
    /// Also writes a `.nam` file, with the knobs at their defaults.
    #[arg(long, value_name = "FILE")]
    nam: Option<PathBuf>,
    /// Starts from this capture, of ours or another program, of any shape; with `--size` it must
    /// have that size.
    #[arg(long, value_name = "BASE")]
    from: Option<PathBuf>,
    /// Passes through the recordings [default: 100].
    #[arg(long, value_parser = clap::value_parser!(u64).range(1..))]
    epochs: Option<u64>,
    /// Trains for about this time instead of a number of epochs.
    #[arg(long, conflicts_with = "epochs", value_parser = value_parser::positive)]
    minutes: Option<f64>,
    /// Resumes from the last checkpoint of the same pairs and options.
    #[arg(long)]
    resume: bool,
    /// Inverts the polarity of all recordings.
    #[arg(long)]
    flip: bool,
    /// Ignores findings that would stop training.
    #[arg(long)]
    force: bool,
    /// Sample rate of the capture, Hz; files at other rates are resampled [default: 48000].
    #[arg(long, value_parser = clap::value_parser!(u32).range(8_000..=192_000))]
    sample_rate: Option<u32>,
    /// Factor of oversampling at which the capture is played unless the player asks for another:
    /// 1, 2, 4 or 8. The command tells which one its aliases need [default: 1].
    #[arg(long, value_name = "FACTOR", value_parser = factor)]
    oversampling: Option<usize>,
    /// Highest learning rate.
    #[arg(long, value_parser = value_parser::positive)]
    learning_rate: Option<f64>,
    /// Windows per step, or parallel streams of a recurrent network; auto for the largest number
    /// that fits into memory.
    #[arg(long, value_parser = parse_batch)]
    batch: Option<usize>,
    /// Samples per window.
    #[arg(long, value_parser = clap::value_parser!(u32).range(64..=1_048_576))]
    window: Option<u32>,
    /// Weight of the spectral distance of the pre-emphasised sounds in the loss.
    #[arg(long, value_parser = value_parser::non_negative)]
    spectral: Option<f64>,
    /// Seed of initial weights and windows [default: 0].
    #[arg(long)]
    seed: Option<u64>,
    #[command(flatten)]
    trainer: TrainerArguments,
    #[command(flatten)]
    pub workers: WorkersArgument,
    #[command(flatten)]
    schedule: ScheduleArgument,
    #[command(flatten)]
    card: CardArguments,
}

/// Content of the model's card.
#[derive(Args)]
#[command(next_help_heading = "Card")]
struct CardArguments {
    /// Name [default: that of the recording].
    #[arg(long)]
    name: Option<String>,
    /// Description, one or two sentences.
    #[arg(long)]
    description: Option<String>,
    /// Author of the capture.
    #[arg(long)]
    author: Option<String>,
    /// Licence, an SPDX expression.
    #[arg(long)]
    licence: Option<String>,
    /// Manufacturer of the device.
    #[arg(long)]
    make: Option<String>,
    /// Model of the device.
    #[arg(long)]
    model: Option<String>,
    /// Kind of device: amp, pedal, preamp …
    #[arg(long = "type")]
    kind: Option<String>,
    /// Character of the sound: clean, overdrive, fuzz, hi_gain …
    #[arg(long)]
    tone: Option<String>,
    /// Level at the device's input of a 1 kHz sine with full-scale peaks in the dry file, dBu.
    #[arg(long, allow_negative_numbers = true, value_parser = value_parser::dbu)]
    input_dbu: Option<f64>,
    /// Level at the device's output of a 1 kHz sine with full-scale peaks in the recording, dBu.
    #[arg(long, allow_negative_numbers = true, value_parser = value_parser::dbu)]
    output_dbu: Option<f64>,
}

fn seconds(text: &str) -> Result<f64, String> {
    value_parser::in_range(
        text,
        |seconds| signal::SECONDS.contains(&seconds),
        "must be 30 to 1200 seconds",
    )
}

fn factor(text: &str) -> Result<usize, String> {
    let factor = text.parse().ok();
    let allowed = factor.filter(|factor| OVERSAMPLINGS.contains(factor));
    allowed.ok_or_else(|| "must be 1, 2, 4 or 8".to_owned())
}

/// Writes the signal to play through a device.
pub fn make_signal(options: &SignalArguments) -> anyhow::Result<()> {
    write_wav(
        &options.out,
        &signal::signal(options.seconds),
        signal::RATE,
        WavBits::Int24,
    )?;
    println!(
        "{}: {} s at {} Hz, 24 bits, mono",
        options.out.display(),
        options.seconds,
        signal::RATE
    );
    Ok(())
}

/// Writes the impulse response of a simulated cabinet.
pub fn make_cabinet(options: &CabinetArguments) -> anyhow::Result<()> {
    let cabinet = loudspeaker::cabinet(&options.name)?;
    let response: Vec<f32> = loudspeaker::impulse_response(cabinet)
        .iter()
        .map(|sample| *sample as f32)
        .collect();
    write_wav(
        &options.out,
        &response,
        loudspeaker::RATE_HZ as u32,
        WavBits::Int24,
    )?;
    println!("{}: {}", options.out.display(), cabinet.description);
    Ok(())
}

/// Returns the configuration of a capture: the file's, overridden by other options.
fn capture_config(options: &CaptureArguments) -> anyhow::Result<CaptureConfig> {
    let mut config = match &options.config {
        Some(path) => CaptureConfig::read(path)?,
        None => CaptureConfig::default(),
    };
    let (dry, wet) = (options.dry.len(), options.wet.len());
    ensure!(
        dry <= 1 || dry == wet,
        "there are {dry} --dry and {wet} --wet; use one --dry for all, or one for each"
    );
    for (dry, wet) in options.dry.iter().cycle().zip(&options.wet) {
        config.pairs.push(PairConfig {
            dry: dry.clone(),
            wet: wet.clone(),
            ..PairConfig::default()
        });
    }
    config
        .pairs
        .iter_mut()
        .for_each(|pair| pair.flip |= options.flip);
    let named = options
        .config
        .as_ref()
        .or(options.wet.first())
        .map(|path| path.with_extension("ondes"));
    config.out = options.out.clone().or(config.out).or(named);
    config.nam = options.nam.clone().or(config.nam);
    config.size = options.size.clone().or(config.size);
    config.from = options.from.clone().or(config.from);
    config.sample_rate = options.sample_rate.unwrap_or(config.sample_rate);
    config.oversampling = options.oversampling.or(config.oversampling);
    config.seed = options.seed.unwrap_or(config.seed);
    let training = &mut config.training;
    if options.epochs.is_some() {
        training.minutes = None;
    }
    training.epochs = options.epochs.or(training.epochs);
    training.minutes = options.minutes.or(training.minutes);
    training.learning_rate = options.learning_rate.or(training.learning_rate);
    training.batch = options.batch.or(training.batch);
    training.window = options
        .window
        .map(|window| window as usize)
        .or(training.window);
    if let Some(spectral) = options.spectral {
        let loss = config.loss.unwrap_or(LossWeights {
            esr: 1.0,
            ..LossWeights::default()
        });
        config.loss = Some(LossWeights {
            spectral_pre_emphasis: spectral,
            ..loss
        });
    }
    options.schedule.apply(&mut config.schedule)?;
    options.card.apply(&mut config.card);
    Ok(config)
}

/// Reads and aligns the pairs.
fn pairs(config: &CaptureConfig) -> impl Iterator<Item = anyhow::Result<Pair>> {
    config.pairs.iter().map(|own| {
        let mut pair = Pair::read(&own.dry, &own.wet, config.sample_rate)?;
        if own.flip {
            pair.flip();
        }
        pair.settings = config.settings(own);
        Ok(pair)
    })
}

/// Reads, checks and aligns the pairs.
fn read_pairs(config: &CaptureConfig, force: bool) -> anyhow::Result<Vec<Pair>> {
    let checked = pairs(config).map(|pair| {
        let pair = pair?;
        if config.pairs.len() > 1 {
            println!("{}", pair.name);
        }
        pair.report(force).with_context(|| pair.name.clone())?;
        Ok(pair)
    });
    checked.collect()
}

/// Trains a capture and writes it. Returns `Interrupted` if it was stopped; the best model so far
/// is written then, too.
pub fn capture(options: &CaptureArguments) -> anyhow::Result<Outcome> {
    let config = capture_config(options)?;
    let out = config.out.clone().context("use --out")?;
    for path in [Some(&out), config.nam.as_ref()].into_iter().flatten() {
        create_parent(path)?;
    }
    let base = config
        .from
        .as_ref()
        .map(|path| file::read(path))
        .transpose()?;
    let size = config
        .size
        .clone()
        .or_else(|| base.as_ref().and_then(Architecture::recognize));
    let (network, base) = match (size, base) {
        (None, Some(base)) => (
            NetworkSource::Given(Box::new(variants::without_variants(&base)?)),
            None,
        ),
        (size, base) => (
            Architecture::named(size.as_deref().unwrap_or(DEFAULT_SIZE))?.into(),
            base,
        ),
    };
    let unnamed = matches!(network, NetworkSource::Given(_)) && config.nam.is_some();
    ensure!(
        !unnamed,
        "--nam needs one of the named sizes; the model of --from has another shape"
    );
    let files = RunFiles::beside(out.with_extension("checkpoint"));
    let mut training = config.options(network.clone(), files)?;
    options.trainer.apply_to_capture(&mut training.trainer)?;
    let membership = options.workers.join(&mut training.trainer)?;
    training.trainer.bound_memory()?;
    let pairs = read_pairs(&config, options.force)?;
    let trainer_options = training.trainer.clone();
    let checkpoint = trainer_options.files.checkpoint.clone();
    let mut trainer = Trainer::new(
        CaptureTask::new(training, &pairs, base.as_ref())?,
        trainer_options,
    )?;
    if options.resume
        || membership
            .as_ref()
            .is_some_and(|membership| membership.restarts > 0 && checkpoint.exists())
    {
        trainer.resume()?;
    }
    interrupt::install()?;
    let outcome = trainer.run()?;
    if membership.is_some_and(|membership| !membership.is_first()) {
        return Ok(outcome);
    }
    let model = with_card(
        &silent_at_rest(&trainer.model()?)?,
        &config.card,
        &config.pairs[0].wet,
    )?;
    let mut header = model.header().clone();
    header.oversampling = config.oversampling.unwrap_or(1);
    header.card.quality = vec![measured(&model, &out, || measure(&model, &pairs))?];
    let model = model.with_header(header)?;
    write(&model, &out)?;
    print_aliases(&model, model.header().oversampling)?;
    if let (Some(path), NetworkSource::New(architecture)) = (&config.nam, &network) {
        let controls = &model.header().controls;
        let defaults: Vec<f32> = controls.iter().map(|control| control.default).collect();
        nam::write(path, architecture, &model, &defaults)?;
        let fixed: Vec<String> = controls
            .iter()
            .map(|knob| format!("{} at {}", knob.name, knob.default))
            .collect();
        match fixed.is_empty() {
            true => println!("{}: written", path.display()),
            false => println!(
                "{}: written; the format has no knobs: {}",
                path.display(),
                fixed.join(", ")
            ),
        }
    }
    if outcome == Outcome::Finished {
        std::fs::remove_file(&checkpoint)
            .with_context(|| format!("{}: cannot be removed", checkpoint.display()))?;
    }
    Ok(outcome)
}

/// Prints how strong the aliases of a capture are at the factor it is played at, and the factor that
/// it needs.
fn print_aliases(model: &Model, factor: usize) -> anyhow::Result<()> {
    let found = aliases::strongest_db(model, factor)?;
    let advice = match aliases::needed_factor(model)? {
        Some(needed) if needed > factor => {
            format!("; use --oversampling {needed}, here or where you play it")
        }
        Some(_) => String::new(),
        None => "; no oversampling makes them inaudible".to_owned(),
    };
    println!("aliases {found:.0} dB{advice}");
    Ok(())
}

/// Measures and prints the quality on each pair; returns the mean error on the held-out parts.
fn measure(model: &Model, pairs: &[Pair]) -> anyhow::Result<Measure> {
    let comparisons = pairs
        .iter()
        .map(|pair| compare(model, pair))
        .collect::<Result<Vec<_>, _>>()?;
    for (comparison, pair) in comparisons.iter().zip(pairs) {
        if pairs.len() > 1 {
            println!("{}", pair.name);
        }
        print_comparison(comparison);
    }
    let mean = |value: &dyn Fn(&Measure) -> f64| {
        let mean = comparisons
            .iter()
            .map(|comparison| value(&comparison.held_out))
            .sum::<f64>()
            / pairs.len() as f64;
        (1e6 * mean).round() / 1e6
    };
    let first = &comparisons.first().context("there is no pair")?.held_out;
    let baseline = mean(&|measure| measure.baseline.unwrap_or(f64::NAN));
    Ok(Measure {
        value: mean(&|measure| measure.value),
        baseline: Some(baseline),
        ..first.clone()
    })
}

/// Measures a capture on a pair.
pub fn evaluate(model: &Model, dry: &Path, wet: &Path, json: bool) -> anyhow::Result<()> {
    let pair = Pair::read(dry, wet, model.header().sample_rate)?;
    if json {
        println!("{}", serde_json::to_string(&compare(model, &pair)?)?);
        return Ok(());
    }
    pair.report(true)?;
    print_comparison(&compare(model, &pair)?);
    Ok(())
}

/// Measures a capture on the pairs of a recipe, which may be at other positions of its knobs than it
/// has learnt.
pub fn evaluate_recipe(model: &Model, recipe: &Path, json: bool) -> anyhow::Result<()> {
    let config = CaptureConfig {
        sample_rate: model.header().sample_rate,
        ..CaptureConfig::read(recipe)?
    };
    let names =
        |knobs: &[Control]| -> Vec<String> { knobs.iter().map(|knob| knob.name.clone()).collect() };
    let (theirs, own) = (names(&config.controls()?), names(&model.header().controls));
    ensure!(
        theirs == own,
        "{}: has the knobs {theirs:?}, the model {own:?}; they must be equal",
        recipe.display()
    );
    let pairs = pairs(&config).collect::<anyhow::Result<Vec<_>>>()?;
    if json {
        let compared = pairs.iter().map(|pair| compare(model, pair));
        let compared = compared.collect::<Result<Vec<_>, _>>()?;
        println!("{}", serde_json::to_string(&compared)?);
        return Ok(());
    }
    let mean = measure(model, &pairs)?;
    println!(
        "{}: {:.5} in the mean of the held-out parts",
        mean.name, mean.value
    );
    Ok(())
}

/// Lists the sizes, for the help of the command.
pub fn sizes() -> String {
    let names = [names(), packed_names()].concat().join(", ");
    format!("Sizes: {names}, or lstm- with another number of units up to 128.")
}

fn print_comparison(comparison: &Comparison) {
    println!(
        "{:32} {:>10} {:>10} {:>10}",
        "", "seconds", "model", "dry signal"
    );
    let parts = [
        (
            "held out",
            comparison.held_out_seconds,
            &comparison.held_out,
        ),
        ("all", comparison.seconds, &comparison.all),
    ];
    for (part, seconds, measure) in parts {
        let baseline = measure.baseline.unwrap_or(f64::NAN);
        let name = format!("{}, {part}", measure.name);
        println!(
            "{name:32} {seconds:>10.1} {:>10.5} {baseline:>10.5}",
            measure.value
        );
    }
}

/// Fills in the model's card.
fn with_card(model: &Model, own: &CardConfig, wet: &Path) -> anyhow::Result<Model> {
    let mut header = model.header().clone();
    let card = &mut header.card;
    let stem = || {
        wet.file_stem()
            .map(|stem| stem.to_string_lossy().into_owned())
            .unwrap_or_default()
    };
    card.name = if own.name.is_empty() {
        stem()
    } else {
        own.name.clone()
    };
    card.description.clone_from(&own.description);
    card.author.clone_from(&own.author);
    card.licence.clone_from(&own.licence);
    card.gear = (own.gear != Gear::default()).then(|| own.gear.clone());
    card.levels = Some(Levels {
        input_dbu: own.input_dbu,
        output_dbu: own.output_dbu,
        loudness_db: Some(loudness_db(model)?),
    });
    Ok(model.with_header(header)?)
}

impl CardArguments {
    /// Changes a card where options are given.
    fn apply(&self, card: &mut CardConfig) {
        let gear = &mut card.gear;
        let fields = [
            (&mut card.name, &self.name),
            (&mut card.description, &self.description),
            (&mut card.author, &self.author),
            (&mut card.licence, &self.licence),
            (&mut gear.make, &self.make),
            (&mut gear.model, &self.model),
            (&mut gear.kind, &self.kind),
            (&mut gear.tone, &self.tone),
        ];
        for (field, option) in fields {
            if let Some(text) = option {
                field.clone_from(text);
            }
        }
        card.input_dbu = self.input_dbu.or(card.input_dbu);
        card.output_dbu = self.output_dbu.or(card.output_dbu);
    }
}

pub fn write_wav(path: &Path, sound: &[f32], rate: u32, bits: WavBits) -> anyhow::Result<()> {
    create_parent(path)?;
    let mut file = WavWriter::create(path, rate, 1, bits)?;
    file.write(&[sound])?;
    Ok(file.finish()?)
}
