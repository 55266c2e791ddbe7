//! `ondes-train`: trains, compresses and compares models.

mod bench_command;
mod capture_command;
mod codec_command;
mod compare_command;
mod data_command;
mod distill_command;
mod evaluate_command;
mod folds;
mod import_rave_command;
mod output_options;
mod prepare_command;
mod prior_command;
mod prune_command;
mod quantize_command;
mod recipe_arguments;
mod sound_options;
mod sweep_command;
mod trainer_arguments;
mod trials;
mod value_parser;

use std::path::{Path, PathBuf};
use std::process::ExitCode;

use anyhow::Context;
use clap::{Parser, Subcommand};
use indicatif::{ProgressBar, ProgressStyle};
use ondes_engine::model::{Model, file};
use ondes_training::capture::rest::silent_at_rest;
use ondes_training::config::Config;
use ondes_training::data::Subset;
use ondes_training::data::report::DataReport;
use ondes_training::distributed::{GroupError, Membership, launch, quiet};
use ondes_training::evaluate::evaluate;
use ondes_training::instrument::InstrumentTask;
use ondes_training::recipe_kind::RecipeKind;
use ondes_training::report::{self, Run};
use ondes_training::trainer::guard::{OutOfMemory, guarded};
use ondes_training::trainer::{Checkpoint, Outcome, interrupt};
use recipe_arguments::RecipeArguments;

/// Trains instruments, captures, codecs and generators, compresses and compares models.
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
        #[arg(value_parser = clap::builder::PossibleValuesParser::new(ondes_physical_models::names()))]
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
    /// Plays grooves with the recorded hits of a drum kit, to train codecs and generators on.
    Grooves {
        /// Folder of the kit, with a folder of recorded hits for each part: kick, snare,
        /// closed-hat, and where there are such side-stick, half-open-hat, open-hat, foot-hat,
        /// high-tom, mid-tom and low-tom.
        kit: PathBuf,
        /// Folder to write to.
        #[arg(long)]
        out: PathBuf,
        /// Length of all grooves, minutes.
        #[arg(long, default_value_t = 30.0, value_parser = value_parser::corpus_minutes)]
        minutes: f64,
        /// Slowest tempo, beats a minute.
        #[arg(long, default_value_t = 70)]
        slowest: u32,
        /// Fastest tempo.
        #[arg(long, default_value_t = 160)]
        fastest: u32,
        /// Seed; equal seeds give equal grooves.
        #[arg(long, default_value_t = 1)]
        seed: u64,
    },
    /// Analyses folders of audio once and writes a dataset, which `fit` and others take as a
    /// folder.
    Prepare(prepare_command::PrepareArguments),
    /// Tells what is in a dataset, and how fast it can be read.
    #[command(subcommand)]
    Data(data_command::DataCommand),
    /// Trains an instrument from a folder of audio.
    Fit(Box<RecipeArguments>),
    /// Writes the best model of a checkpoint.
    Export {
        /// Checkpoint of an interrupted or running training.
        checkpoint: PathBuf,
        /// Model file to write [default: the checkpoint with the ending .ondes].
        #[arg(long)]
        out: Option<PathBuf>,
        /// Writes the model of the last step instead of the best.
        #[arg(long)]
        last: bool,
    },
    /// Draws loss, validation, learning rate and speed of training runs, and prints a table.
    Report {
        /// Logs: `metrics.jsonl` files, or folders that contain one.
        #[arg(required = true)]
        runs: Vec<PathBuf>,
        /// PNG file to draw.
        #[arg(long, value_name = "PNG")]
        chart: Option<PathBuf>,
    },
    /// Trains a codec from a folder of audio: a small network that gives one sound the timbre of
    /// others.
    Codec(Box<codec_command::CodecArguments>),
    /// Trains a generator: a prior that makes the latents of a codec by itself, learnt from a
    /// folder of audio.
    Prior(Box<prior_command::PriorArguments>),
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
    /// Measures the quality of an instrument, a codec, a generator or a capture on held-out sound.
    Evaluate(Box<evaluate_command::EvaluateArguments>),
    /// Trains with several settings, stops those that fall behind, and prints a table.
    Sweep(sweep_command::SweepArguments),
    /// Compares models: size, memory, speed on this machine, and quality on held-out sound.
    Compare(compare_command::CompareArguments),
    /// Times steps of synthetic networks with every optimiser, and prints a Markdown table.
    Bench(bench_command::BenchArguments),
    /// Removes the least important channels or weights of a model in rounds, with training after
    /// each.
    Prune(Box<prune_command::PruneArguments>),
    /// Trains a small student of a large model.
    Distill(Box<distill_command::DistillArguments>),
}

fn main() -> ExitCode {
    keep_memory();
    launch::follow_launcher();
    let arguments = Arguments::parse();
    let membership = Membership::from_environment();
    if let (Ok(None), Some(workers)) = (&membership, arguments.workers()) {
        return launch::run(workers).map_or_else(|error| failed(&error), ExitCode::from);
    }
    let other = membership
        .as_ref()
        .ok()
        .and_then(Option::as_ref)
        .filter(|membership| !membership.is_first());
    let mut saved = other.map(|_| quiet::silence());
    match (run(arguments), &mut saved) {
        (Ok(Outcome::Finished), _) => ExitCode::SUCCESS,
        (Ok(Outcome::Interrupted), _) => ExitCode::from(interrupt::exit_code().max(1)),
        (Err(error), None) => failed(&error),
        (Err(error), Some(saved)) => {
            // The first process reports a lost one.
            if !error.is::<GroupError>() {
                saved.print(&format!(
                    "ondes-train: process {}: {error:#}",
                    other.map_or(0, |other| other.rank)
                ));
            }
            ExitCode::from(2)
        }
    }
}

fn failed(error: &anyhow::Error) -> ExitCode {
    eprintln!("ondes-train: {error:#}");
    ExitCode::from(2)
}

impl Arguments {
    /// Returns the number of processes to start, if there are to be several.
    fn workers(&self) -> Option<usize> {
        let workers = match &self.command {
            Command::Fit(options) => &options.workers,
            Command::Capture(options) => &options.workers,
            Command::Codec(options) => &options.recipe.workers,
            Command::Prior(options) => &options.recipe.workers,
            _ => return None,
        };
        let has_folds = match &self.command {
            Command::Fit(options) => options.folds.count,
            Command::Codec(options) => options.recipe.folds.count,
            Command::Prior(options) => options.recipe.folds.count,
            _ => None,
        };
        // Each of the folds has workers of its own.
        workers
            .workers
            .map(usize::from)
            .filter(|count| *count > 1 && has_folds.is_none())
    }
}

/// Tells the allocator to keep freed memory: returning hundreds of megabytes per step to the system
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

/// Runs a command.
fn run(arguments: Arguments) -> anyhow::Result<Outcome> {
    match arguments.command {
        Command::Fit(options) => resumable(|| fit(&options)),
        Command::Capture(options) => resumable(|| capture_command::capture(&options)),
        Command::Codec(options) => resumable(|| codec_command::codec(&options)),
        Command::Prior(options) => resumable(|| prior_command::prior(&options)),
        other => {
            guarded("the command", || run_whole(other))?;
            Ok(if interrupt::requested() {
                Outcome::Interrupted
            } else {
                Outcome::Finished
            })
        }
    }
}

/// Runs a training, and tells how an interrupted one goes on.
fn resumable(train: impl FnOnce() -> anyhow::Result<Outcome>) -> anyhow::Result<Outcome> {
    let outcome = guarded("the training", train).map_err(|mut error| {
        error
            .downcast_mut::<OutOfMemory>()
            .into_iter()
            .for_each(|missing| missing.is_resumable = true);
        error
    })?;
    if outcome == Outcome::Interrupted {
        eprintln!("--resume goes on");
    }
    Ok(outcome)
}

/// Runs a command that has no checkpoint to resume from.
fn run_whole(command: Command) -> anyhow::Result<()> {
    match command {
        Command::Fit(_) | Command::Capture(_) | Command::Codec(_) | Command::Prior(_) => {
            unreachable!("they can be interrupted")
        }
        Command::Export {
            checkpoint,
            out,
            last,
        } => export(&checkpoint, out, last),
        Command::Report { runs, chart } => {
            let runs = runs
                .iter()
                .map(|path| Run::read(path))
                .collect::<Result<Vec<_>, _>>()?;
            println!("{}", report::table(&runs));
            if let Some(path) = chart {
                report::draw(&runs).write_png(&path)?;
                println!("{}: written", path.display());
            }
            Ok(())
        }
        Command::Corpus {
            name,
            out,
            minutes,
            seed,
        } => {
            let options = ondes_physical_models::CorpusOptions {
                name,
                minutes,
                seed,
            };
            make_corpus(&out, |progress| {
                ondes_physical_models::generate(&options, &out, progress)
            })
        }
        Command::Grooves {
            kit,
            out,
            minutes,
            slowest,
            fastest,
            seed,
        } => {
            let options = ondes_physical_models::drums::DrumsOptions {
                minutes,
                tempos: (slowest, fastest),
                seed,
            };
            make_corpus(&out, |progress| {
                ondes_physical_models::drums::generate(&options, &kit, &out, progress)
            })
        }
        Command::Data(command) => data_command::run(&command),
        Command::Prepare(arguments) => prepare_command::run(&arguments),
        Command::CaptureSignal(options) => capture_command::make_signal(&options),
        Command::Circuit(options) => capture_command::play_circuit(&options),
        Command::Cabinet(options) => capture_command::make_cabinet(&options),
        Command::Quantize(options) => quantize_command::run(&options),
        Command::ImportRave(options) => import_rave_command::run(&options),
        Command::Sweep(options) => sweep_command::run(&options),
        Command::Compare(options) => compare_command::run(&options),
        Command::Bench(options) => bench_command::run(&options),
        Command::Prune(options) => prune_command::run(&options),
        Command::Distill(options) => distill_command::run(&options),
        Command::Evaluate(options) => evaluate_command::run(&options),
    }
}

/// Generates a corpus, and shows its progress.
fn make_corpus(
    out: &Path,
    generate: impl FnOnce(
        &(dyn Fn(usize, usize) + Sync),
    ) -> anyhow::Result<ondes_physical_models::CorpusSummary>,
) -> anyhow::Result<()> {
    let bar = ProgressBar::new(0).with_style(ProgressStyle::with_template(
        "{bar:32} {pos}/{len} phrases {elapsed}",
    )?);
    let summary = generate(&|done, all| {
        bar.set_length(all as u64);
        bar.set_position(done as u64);
    })?;
    bar.finish_and_clear();
    println!(
        "{}: {} files, {:.1} minutes",
        out.display(),
        summary.files,
        summary.seconds / 60.0
    );
    Ok(())
}

/// Writes the best model of a checkpoint.
fn export(path: &Path, out: Option<PathBuf>, last: bool) -> anyhow::Result<()> {
    let checkpoint = Checkpoint::read(path).with_context(|| path.display().to_string())?;
    let model = if last {
        checkpoint.last_model()
    } else {
        checkpoint.best_model()
    };
    let model = model.and_then(|model| Ok(silent_at_rest(&model)?));
    let model = model.with_context(|| path.display().to_string())?;
    let out = out.unwrap_or_else(|| path.with_extension("ondes"));
    file::write(&model, &out)?;
    match checkpoint.progress.best.filter(|_| !last) {
        Some((loss, step)) => println!(
            "{}: written, step {step}, validation loss {loss:.5}",
            out.display()
        ),
        None => println!(
            "{}: written, step {}",
            out.display(),
            checkpoint.progress.step
        ),
    }
    Ok(())
}

/// Trains an instrument and writes it. Returns `Interrupted` if it was stopped; the best model so
/// far is written then, too.
fn fit(options: &RecipeArguments) -> anyhow::Result<Outcome> {
    let mut config = Config::read(&options.config)?;
    options.apply(
        &mut config.training,
        &mut config.optimizer,
        &mut config.schedule,
        &mut config.alerts,
    )?;
    let out = config.out.clone();
    if let Some(count) = options.folds.count {
        return options
            .folds
            .run(count, &options.config, RecipeKind::Instrument, &out);
    }
    let (outcome, trainer) = options.train(config.trainer_options(), || {
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
    evaluate_command::write_evaluated(&model, &out, || {
        evaluate(
            &model,
            dataset.measured(),
            Some(dataset.recordings(Subset::Training)),
        )
    })?;
    Ok(outcome)
}

/// Writes a model, in a new folder if need be, and says so.
fn write(model: &Model, out: &Path) -> anyhow::Result<()> {
    write_silently(model, out)?;
    println!("{}: written", out.display());
    Ok(())
}

/// Writes a model, in a new folder if need be.
fn write_silently(model: &Model, out: &Path) -> anyhow::Result<()> {
    if let Some(folder) = out.parent() {
        std::fs::create_dir_all(folder)
            .with_context(|| format!("{}: cannot create the folder", folder.display()))?;
    }
    Ok(file::write(model, out)?)
}

/// Writes a model before something is measured that belongs on its card, so that it is not lost if
/// that fails.
fn measured<R>(
    model: &Model,
    out: &Path,
    measure: impl FnOnce() -> anyhow::Result<R>,
) -> anyhow::Result<R> {
    write_silently(model, out)?;
    guarded("the measurement of the quality", measure)
        .with_context(|| format!("{}: is written without its quality", out.display()))
}
