//! `ondes-train`: trains, compresses and compares models.

mod capture_command;
mod compare_command;
mod distill_command;
mod import_rave_command;
mod output_options;
mod prune_command;
mod quantize_command;
mod sound_options;
mod value_parser;

use std::path::{Path, PathBuf};
use std::process::ExitCode;

use anyhow::Context;
use clap::{Parser, Subcommand};
use indicatif::{ProgressBar, ProgressStyle};
use ondes_engine::model::{Model, file};
use ondes_training::config::Config;
use ondes_training::dataset::load_features;
use ondes_training::evaluate::{Evaluation, evaluate, feature_rate};
use ondes_training::trainer::InstrumentTrainer;
use sound_options::{SoundOptions, default_cache};

/// Trains instruments and captures, compresses and compares models.
#[derive(Parser)]
#[command(version, about)]
struct Arguments {
    #[command(subcommand)]
    command: Command,
}

#[derive(Subcommand)]
enum Command {
    /// Generates a training corpus with a physical model of an instrument.
    Corpus {
        /// Instrument.
        #[arg(value_parser = clap::builder::PossibleValuesParser::new(ondes_corpus::names()))]
        name: String,
        /// Folder to write to.
        #[arg(long)]
        out: PathBuf,
        /// Length of the corpus, minutes.
        #[arg(long, default_value_t = 12.0, value_parser = value_parser::corpus_minutes)]
        minutes: f64,
        /// Seed; equal seeds give equal corpora.
        #[arg(long, default_value_t = 1)]
        seed: u64,
    },
    /// Trains an instrument from a folder of audio.
    Fit {
        /// TOML file with data, network and training; examples are in `training/recipes`.
        config: PathBuf,
        /// Resumes from the last checkpoint of this configuration.
        #[arg(long)]
        resume: bool,
    },
    /// Generates the signal to play through a device before a capture.
    CaptureSignal(capture_command::SignalArguments),
    /// Processes a file with a simulated circuit, as a device to capture.
    Circuit(capture_command::CircuitArguments),
    /// Computes the impulse response of a simulated guitar cabinet with its microphone.
    Cabinet(capture_command::CabinetArguments),
    /// Trains a capture of an amplifier or a pedal from a signal and its recording.
    #[command(after_help = capture_command::sizes())]
    Capture(Box<capture_command::CaptureArguments>),
    /// Compresses a trained model to 8 or 16 bits within a bound on the audible loss.
    Quantize(Box<quantize_command::QuantizeArguments>),
    /// Converts a RAVE export; `ondes import` does the same without libtorch.
    #[command(hide = true)]
    ImportRave(import_rave_command::ImportRaveArguments),
    /// Measures the quality of an instrument or a capture on held-out sound.
    Evaluate {
        /// Instrument or capture.
        model: PathBuf,
        #[command(flatten)]
        sound: SoundOptions,
        /// Folder for analysed audio [default: a temporary folder].
        #[arg(long)]
        cache: Option<PathBuf>,
        /// Prints one JSON object.
        #[arg(long)]
        json: bool,
    },
    /// Compares models: size, memory, speed on this machine, and quality on held-out sound.
    Compare(compare_command::CompareArguments),
    /// Removes the least important channels or weights of a model in rounds, with training after each.
    Prune(Box<prune_command::PruneArguments>),
    /// Trains a small student of a large model.
    Distill(Box<distill_command::DistillArguments>),
}

fn main() -> ExitCode {
    keep_memory();
    match run(Arguments::parse()) {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            eprintln!("ondes-train: {error:#}");
            ExitCode::from(2)
        }
    }
}

/// Tells the allocator to keep freed memory: returning hundreds of megabytes per step to the system costs as much as
/// the arithmetic.
fn keep_memory() {
    #[cfg(all(target_os = "linux", target_env = "gnu"))]
    // SAFETY: called before any thread is started; both parameters are documented in mallopt(3).
    #[expect(unsafe_code)]
    unsafe {
        libc::mallopt(libc::M_MMAP_MAX, 0);
        libc::mallopt(libc::M_TRIM_THRESHOLD, libc::c_int::MAX);
    }
}

fn run(arguments: Arguments) -> anyhow::Result<()> {
    match arguments.command {
        Command::Corpus { name, out, minutes, seed } => make_corpus(name, &out, minutes, seed),
        Command::Fit { config, resume } => fit(&config, resume),
        Command::CaptureSignal(options) => capture_command::make_signal(&options),
        Command::Circuit(options) => capture_command::play_circuit(&options),
        Command::Cabinet(options) => capture_command::make_cabinet(&options),
        Command::Capture(options) => capture_command::capture(&options),
        Command::Quantize(options) => quantize_command::run(&options),
        Command::ImportRave(options) => import_rave_command::run(&options),
        Command::Compare(options) => compare_command::run(&options),
        Command::Prune(options) => prune_command::run(&options),
        Command::Distill(options) => distill_command::run(&options),
        Command::Evaluate { model, sound, cache, json } => {
            let model = file::read(&model)?;
            if let (Some(dry), Some(wet)) = (&sound.dry, &sound.wet) {
                return capture_command::evaluate(&model, dry, wet, json);
            }
            let data = sound.data.context("use --data for instruments, or --dry and --wet for captures")?;
            let cache = cache.unwrap_or_else(default_cache);
            let evaluation = evaluate(&model, &load_features(&data, &cache, feature_rate(&model)?)?)?;
            if json {
                println!("{}", serde_json::to_string(&evaluation)?);
            } else {
                print_evaluation(&evaluation);
            }
            Ok(())
        }
    }
}

fn make_corpus(name: String, out: &Path, minutes: f64, seed: u64) -> anyhow::Result<()> {
    let bar = ProgressBar::new(0).with_style(ProgressStyle::with_template("{bar:32} {pos}/{len} phrases {elapsed}")?);
    let options = ondes_corpus::CorpusOptions { name, minutes, seed };
    let summary = ondes_corpus::generate(&options, out, |done, all| {
        bar.set_length(all as u64);
        bar.set_position(done as u64);
    })?;
    bar.finish_and_clear();
    println!("{}: {} files, {:.1} minutes", out.display(), summary.files, summary.seconds / 60.0);
    Ok(())
}

fn fit(path: &Path, resume: bool) -> anyhow::Result<()> {
    let config = Config::read(path)?;
    let mut trainer = InstrumentTrainer::new(config.clone())?;
    if resume {
        trainer.resume()?;
    }
    trainer.run()?;
    let model = trainer.model()?;
    let evaluation = match &config.held_out {
        Some(folder) => {
            evaluate(&model, &load_features(folder, &config.work.join("features"), feature_rate(&model)?)?)?
        }
        None => evaluate(&model, trainer.validation_files())?,
    };
    print_evaluation(&evaluation);
    let mut header = model.header().clone();
    header.card.quality = evaluation.measures();
    let model = Model::new(header, model.weights().clone())?;
    if let Some(folder) = config.out.parent() {
        std::fs::create_dir_all(folder).with_context(|| format!("{}: cannot create the folder", folder.display()))?;
    }
    file::write(&model, &config.out)?;
    println!("{}: written", config.out.display());
    Ok(())
}

fn print_evaluation(evaluation: &Evaluation) {
    println!("{:.0} s of held-out sound", evaluation.seconds);
    println!("{:32} {:>10} {:>10}", "", "model", "sawtooth");
    for measure in evaluation.measures() {
        let baseline = measure.baseline.unwrap_or(f64::NAN);
        println!("{:32} {:>10.3} {:>10.3} {}", measure.name, measure.value, baseline, measure.unit);
    }
}
