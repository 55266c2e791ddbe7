//! `ondes-train`: makes what Ondes plays.

mod capture_command;
mod compare_command;
mod distill_command;
mod import_rave_command;
mod number;
mod prune_command;
mod quantise_command;
mod smaller;
mod sound_options;

use std::path::{Path, PathBuf};
use std::process::ExitCode;

use anyhow::Context;
use clap::{Parser, Subcommand};
use indicatif::{ProgressBar, ProgressStyle};
use ondes_engine::model::{Model, file};
use ondes_training::config::Config;
use ondes_training::dataset::hear;
use ondes_training::evaluate::{Evaluation, evaluate, feature_rate};
use ondes_training::trainer::Trainer;
use sound_options::{Sound, usual_cache};

/// Trains neural instruments from sound, and captures of amplifiers and pedals.
#[derive(Parser)]
#[command(version, about)]
struct Arguments {
    #[command(subcommand)]
    command: Command,
}

#[derive(Subcommand)]
enum Command {
    /// Makes a training corpus with a physical model.
    Corpus {
        /// Which instrument to model.
        #[arg(value_parser = clap::builder::PossibleValuesParser::new(ondes_corpus::names()))]
        name: String,
        /// Folder to write to.
        #[arg(long)]
        out: PathBuf,
        /// Length of the whole corpus, minutes.
        #[arg(long, default_value_t = 12.0)]
        minutes: f64,
        /// Another seed, another corpus; the same seed, the same corpus.
        #[arg(long, default_value_t = 1)]
        seed: u64,
    },
    /// Trains an instrument from a folder of audio.
    Fit {
        /// What to train, from what, and how long; `training/recipes` has examples.
        config: PathBuf,
        /// Goes on from the last checkpoint of this configuration.
        #[arg(long)]
        resume: bool,
    },
    /// Makes the signal to play through a device that is to be captured.
    CaptureSignal(capture_command::Signal),
    /// Plays a file through one of our own circuits, as a device to capture.
    Circuit(capture_command::Circuit),
    /// Trains a capture of an amplifier or a pedal from what was played into it and what came out.
    #[command(after_help = capture_command::sizes())]
    Capture(Box<capture_command::Capture>),
    /// Writes a trained model in fewer bits, as far as that is not heard.
    Quantize(Box<quantise_command::Quantise>),
    /// Converts a RAVE export; `ondes import` does the same without libtorch.
    #[command(hide = true)]
    ImportRave(import_rave_command::ImportRave),
    /// Measures an instrument or a capture on sound that it was not trained on.
    Evaluate {
        /// The instrument or capture.
        model: PathBuf,
        #[command(flatten)]
        sound: Sound,
        /// Folder in which what was heard is kept; by default one of the system's temporary folders.
        #[arg(long)]
        cache: Option<PathBuf>,
        /// Prints one JSON object.
        #[arg(long)]
        json: bool,
    },
    /// Holds models side by side: size, memory, time on this machine, and quality on sound that they were not trained on.
    Compare(compare_command::Compare),
    /// Makes a model smaller by leaving out what does least, with training after each round.
    Prune(Box<prune_command::Prune>),
    /// Trains a small student of a large teacher.
    Distill(Box<distill_command::Distill>),
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

/// Keeps memory that was freed: a step frees and takes hundreds of megabytes, and handing these back to the system each time
/// costs as much as the arithmetic.
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
        Command::Capture(options) => capture_command::capture(&options),
        Command::Quantize(options) => quantise_command::quantise(&options),
        Command::ImportRave(options) => import_rave_command::run(&options),
        Command::Compare(options) => compare_command::run(&options),
        Command::Prune(options) => prune_command::run(&options),
        Command::Distill(options) => distill_command::run(&options),
        Command::Evaluate { model, sound, cache, json } => {
            let model = file::read(&model)?;
            if let (Some(dry), Some(wet)) = (&sound.dry, &sound.wet) {
                return capture_command::evaluate(&model, dry, wet, json);
            }
            let data = sound.data.context("either --data or --dry and --wet is needed")?;
            let cache = cache.unwrap_or_else(usual_cache);
            let evaluation = evaluate(&model, &hear(&data, &cache, feature_rate(&model)?)?)?;
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
    let options = ondes_corpus::Options { name, minutes, seed };
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
    let mut trainer = Trainer::new(config.clone())?;
    if resume {
        trainer.resume()?;
    }
    trainer.run()?;
    let model = trainer.model()?;
    let evaluation = match &config.held_out {
        Some(folder) => evaluate(&model, &hear(folder, &config.work.join("features"), feature_rate(&model)?)?)?,
        None => evaluate(&model, trainer.validation_files())?,
    };
    print_evaluation(&evaluation);
    let mut header = model.header().clone();
    header.card.quality = evaluation.measures();
    let model = Model::new(header, model.weights().clone())?;
    if let Some(folder) = config.out.parent() {
        std::fs::create_dir_all(folder).with_context(|| format!("{}: cannot be made", folder.display()))?;
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
