//! Commands for captures: `capture-signal`, `circuit`, `cabinet`, `capture` and `evaluate`.

use std::path::{Path, PathBuf};

use anyhow::{Context, ensure};
use clap::Args;
use clap::builder::PossibleValuesParser;
use ondes_corpus::{circuits, loudspeaker};
use ondes_engine::media::{WavBits, WavWriter, read_mono};
use ondes_engine::model::{Gear, Levels, Model, file};
use ondes_training::capture::architecture::{Architecture, names};
use ondes_training::capture::measure::{Comparison, compare, loudness_db};
use ondes_training::capture::network_source::NetworkSource;
use ondes_training::capture::pair::Pair;
use ondes_training::capture::task::{CaptureOptions, CaptureTask};
use ondes_training::capture::{nam, signal};
use ondes_training::trainer::{Length, Outcome, RunFiles, Trainer, interrupt};
use ondes_training::variants;

use crate::trainer_arguments::{ScheduleArgument, TrainerArguments};
use crate::value_parser;

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

/// Options of `circuit`.
#[derive(Args)]
pub struct CircuitArguments {
    /// Circuit.
    #[arg(value_parser = PossibleValuesParser::new(circuits::names()))]
    name: String,
    /// Audio file to process; several channels are mixed to mono.
    #[arg(long = "in", value_name = "DRY")]
    input: PathBuf,
    /// WAV file to write: the same sample rate, mono, 32-bit float.
    #[arg(long, value_name = "WET")]
    out: PathBuf,
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
    /// Signal that was played into the device; `capture-signal` generates one.
    #[arg(long)]
    dry: PathBuf,
    /// Recording at the device's output.
    #[arg(long)]
    wet: PathBuf,
    /// Network: standard, lite, feather, nano, a2-full, a2-lite or lstm-UNITS [default: that of `--from`, or standard].
    #[arg(long)]
    size: Option<String>,
    /// Model file to write [default: WET with the ending .ondes].
    #[arg(long)]
    out: Option<PathBuf>,
    /// Also writes a `.nam` file.
    #[arg(long, value_name = "FILE")]
    nam: Option<PathBuf>,
    /// Starts from this capture, of ours or another program, of any shape; with `--size` it must have that size.
    #[arg(long, value_name = "BASE")]
    from: Option<PathBuf>,
    /// Passes through the recording.
    #[arg(long, default_value_t = 100, value_parser = clap::value_parser!(u64).range(1..))]
    epochs: u64,
    /// Trains for about this time instead of a number of epochs.
    #[arg(long, conflicts_with = "epochs", value_parser = value_parser::positive)]
    minutes: Option<f64>,
    /// Resumes from the last checkpoint of the same pair and options.
    #[arg(long)]
    resume: bool,
    /// Inverts the polarity of the recording.
    #[arg(long)]
    flip: bool,
    /// Ignores findings that would stop training.
    #[arg(long)]
    force: bool,
    /// Sample rate of the capture, Hz; files at other rates are resampled.
    #[arg(
        long,
        alias = "rate",
        default_value_t = signal::RATE,
        value_parser = clap::value_parser!(u32).range(8_000..=192_000)
    )]
    sample_rate: u32,
    /// Highest learning rate.
    #[arg(long, value_parser = value_parser::positive)]
    learning_rate: Option<f64>,
    /// Windows per step, or parallel streams of a recurrent network.
    #[arg(long, value_parser = clap::value_parser!(u16).range(1..=4096))]
    batch: Option<u16>,
    /// Samples per window.
    #[arg(long, value_parser = clap::value_parser!(u32).range(64..=1_048_576))]
    window: Option<u32>,
    /// Weight of the spectral distance of the pre-emphasised sounds in the loss.
    #[arg(long, default_value_t = 0.0, value_parser = value_parser::non_negative)]
    spectral: f64,
    /// Seed of initial weights and windows.
    #[arg(long, default_value_t = 0)]
    seed: u64,
    #[command(flatten)]
    trainer: TrainerArguments,
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
    #[arg(long, default_value = "")]
    description: String,
    /// Author of the capture.
    #[arg(long, default_value = "")]
    author: String,
    /// Licence, an SPDX expression.
    #[arg(long, default_value = "")]
    licence: String,
    /// Manufacturer of the device.
    #[arg(long, default_value = "")]
    make: String,
    /// Model of the device.
    #[arg(long, default_value = "")]
    model: String,
    /// Kind of device: amp, pedal, preamp …
    #[arg(long = "type", default_value = "")]
    kind: String,
    /// Character of the sound: clean, overdrive, fuzz, hi_gain …
    #[arg(long, default_value = "")]
    tone: String,
    /// Level at the device's input of a 1 kHz sine with full-scale peaks in the dry file, dBu.
    #[arg(long, allow_negative_numbers = true, value_parser = value_parser::dbu)]
    input_dbu: Option<f64>,
    /// Level at the device's output of a 1 kHz sine with full-scale peaks in the recording, dBu.
    #[arg(long, allow_negative_numbers = true, value_parser = value_parser::dbu)]
    output_dbu: Option<f64>,
}

fn seconds(text: &str) -> Result<f64, String> {
    value_parser::in_range(text, |seconds| signal::SECONDS.contains(&seconds), "must be 30 to 1200 seconds")
}

/// Writes the signal to play through a device.
pub fn make_signal(options: &SignalArguments) -> anyhow::Result<()> {
    write_wav(&options.out, &signal::signal(options.seconds), signal::RATE, WavBits::Int24)?;
    println!("{}: {} s at {} Hz, 24 bits, mono", options.out.display(), options.seconds, signal::RATE);
    Ok(())
}

/// Processes a file with a circuit.
pub fn play_circuit(options: &CircuitArguments) -> anyhow::Result<()> {
    let circuit = circuits::circuit(&options.name)?;
    let (dry, rate) = read_mono(&options.input)?;
    let wet = circuit.play(&dry, f64::from(rate)).with_context(|| options.name.clone())?;
    write_wav(&options.out, &wet, rate, WavBits::Float32)?;
    println!("{}: {}, {:.1} s", options.out.display(), circuit.description, wet.len() as f64 / f64::from(rate));
    Ok(())
}

/// Writes the impulse response of a simulated cabinet.
pub fn make_cabinet(options: &CabinetArguments) -> anyhow::Result<()> {
    let cabinet = loudspeaker::cabinet(&options.name)?;
    let response: Vec<f32> = loudspeaker::impulse_response(cabinet).iter().map(|sample| *sample as f32).collect();
    write_wav(&options.out, &response, loudspeaker::RATE_HZ as u32, WavBits::Int24)?;
    println!("{}: {}", options.out.display(), cabinet.description);
    Ok(())
}

/// Returns the settings of a run.
fn capture_options(options: &CaptureArguments, network: NetworkSource, out: &Path) -> anyhow::Result<CaptureOptions> {
    let files = RunFiles {
        checkpoint: out.with_extension("checkpoint"),
        metrics: out.with_extension("metrics.jsonl"),
        tensorboard: None,
    };
    let mut training = CaptureOptions::new(network, files);
    training.seed = options.seed;
    training.loss.spectral_pre_emphasis = options.spectral;
    training.batch = options.batch.map_or(training.batch, usize::from);
    training.window = options.window.map_or(training.window, |window| window as usize);
    training.trainer.length = options.minutes.map_or(Length::Epochs(options.epochs), Length::Minutes);
    training.trainer.learning_rate = options.learning_rate.unwrap_or(training.trainer.learning_rate);
    options.trainer.apply(&mut training.trainer)?;
    options.schedule.apply(&mut training.trainer.schedule)?;
    Ok(training)
}

/// Trains a capture and writes it. Returns `Interrupted` if it was stopped; the best model so far is written then, too.
pub fn capture(options: &CaptureArguments) -> anyhow::Result<Outcome> {
    let out = options.out.clone().unwrap_or_else(|| options.wet.with_extension("ondes"));
    for path in [Some(&out), options.nam.as_ref()].into_iter().flatten() {
        create_parent(path)?;
    }
    let base = options.from.as_ref().map(|path| file::read(path)).transpose()?;
    let size = options.size.clone().or_else(|| base.as_ref().and_then(Architecture::of));
    let (network, base) = match (size, base) {
        (None, Some(base)) => (NetworkSource::Given(Box::new(variants::without_variants(&base)?)), None),
        (size, base) => (Architecture::named(size.as_deref().unwrap_or(DEFAULT_SIZE))?.into(), base),
    };
    let unnamed = matches!(network, NetworkSource::Given(_)) && options.nam.is_some();
    ensure!(!unnamed, "--nam needs one of the named sizes; the model of --from has another shape");
    let mut pair = Pair::read(&options.dry, &options.wet, options.sample_rate)?;
    pair.report(options.force)?;
    if options.flip {
        pair.flip();
    }
    let training = capture_options(options, network.clone(), &out)?;
    let trainer_options = training.trainer.clone();
    let checkpoint = trainer_options.files.checkpoint.clone();
    let mut trainer = Trainer::new(CaptureTask::new(training, &pair, base.as_ref())?, trainer_options)?;
    if options.resume {
        trainer.resume()?;
    }
    interrupt::install()?;
    let outcome = trainer.run()?;
    let model = with_card(&trainer.model()?, &options.card, &options.wet)?;
    let comparison = compare(&model, &pair)?;
    print_comparison(&comparison);
    let mut header = model.header().clone();
    header.card.quality = vec![comparison.held_out];
    let model = Model::new(header, model.weights().clone())?;
    file::write(&model, &out)?;
    println!("{}: written", out.display());
    if let (Some(path), NetworkSource::New(architecture)) = (&options.nam, &network) {
        nam::write(path, architecture, &model)?;
        println!("{}: written", path.display());
    }
    if outcome == Outcome::Finished {
        std::fs::remove_file(&checkpoint).with_context(|| format!("{}: cannot be removed", checkpoint.display()))?;
    }
    Ok(outcome)
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

/// Lists the sizes, for the help of the command.
pub fn sizes() -> String {
    format!("Sizes: {}, or lstm- with another number of units up to 128.", names().join(", "))
}

fn print_comparison(comparison: &Comparison) {
    println!("{:32} {:>10} {:>10} {:>10}", "", "seconds", "model", "dry signal");
    let parts =
        [("held out", comparison.held_out_seconds, &comparison.held_out), ("all", comparison.seconds, &comparison.all)];
    for (part, seconds, measure) in parts {
        let baseline = measure.baseline.unwrap_or(f64::NAN);
        let name = format!("{}, {part}", measure.name);
        println!("{name:32} {seconds:>10.1} {:>10.5} {baseline:>10.5}", measure.value);
    }
}

/// Fills in the model's card.
fn with_card(model: &Model, options: &CardArguments, wet: &Path) -> anyhow::Result<Model> {
    let mut header = model.header().clone();
    let card = &mut header.card;
    let stem = || wet.file_stem().map(|stem| stem.to_string_lossy().into_owned()).unwrap_or_default();
    card.name = options.name.clone().unwrap_or_else(stem);
    card.description.clone_from(&options.description);
    card.author.clone_from(&options.author);
    card.licence.clone_from(&options.licence);
    let gear = Gear {
        make: options.make.clone(),
        model: options.model.clone(),
        kind: options.kind.clone(),
        tone: options.tone.clone(),
    };
    card.gear = (gear != Gear::default()).then_some(gear);
    card.levels = Some(Levels {
        input_dbu: options.input_dbu,
        output_dbu: options.output_dbu,
        loudness_db: Some(loudness_db(model)?),
    });
    Ok(Model::new(header, model.weights().clone())?)
}

fn create_parent(path: &Path) -> anyhow::Result<()> {
    match path.parent() {
        Some(folder) => {
            std::fs::create_dir_all(folder).with_context(|| format!("{}: cannot create the folder", folder.display()))
        }
        None => Ok(()),
    }
}

fn write_wav(path: &Path, sound: &[f32], rate: u32, bits: WavBits) -> anyhow::Result<()> {
    create_parent(path)?;
    let mut file = WavWriter::create(path, rate, 1, bits)?;
    file.write(&[sound])?;
    Ok(file.finish()?)
}
