//! `ondes-train`: trains, compresses and compares models.

mod commands;

use std::process::ExitCode;

use clap::{Parser, Subcommand};
use commands::recipe_arguments::RecipeArguments;
use commands::{
    audition, bench, capture, circuit, codec, compare, corpus, data, distill, evaluate, export,
    fit, generator, level, prepare, prune, quantize, report, sweep,
};
use ondes_training::distributed::{GroupError, Membership, launch, quiet};
use ondes_training::trainer::guard::{OutOfMemory, guarded};
use ondes_training::trainer::{Outcome, interrupt};

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
    Corpus(corpus::CorpusArguments),
    /// Plays grooves with the recorded hits of a drum kit, to train codecs and generators on.
    Grooves(corpus::GroovesArguments),
    /// Analyses folders of audio once and writes a dataset, which `fit` and others take as a
    /// folder.
    Prepare(prepare::PrepareArguments),
    /// Tells what is in a dataset, and how fast it can be read.
    #[command(subcommand)]
    Data(data::DataCommand),
    /// Trains an instrument from a folder of audio.
    Fit(Box<RecipeArguments>),
    /// Writes the best model of a checkpoint.
    Export(export::ExportArguments),
    /// Draws loss, validation, learning rate and speed of training runs, and prints a table.
    Report(report::ReportArguments),
    /// Trains a codec from a folder of audio: a small network that gives one sound the timbre of
    /// others.
    Codec(Box<codec::CodecArguments>),
    /// Trains a generator: a prior that makes the latents of a codec by itself, learnt from a
    /// folder of audio.
    Prior(Box<generator::PriorArguments>),
    /// Generates the signal to play through a device before a capture.
    CaptureSignal(capture::SignalArguments),
    /// Processes a file with a simulated circuit, as a device to capture.
    #[command(after_help = circuit::list())]
    Circuit(circuit::CircuitArguments),
    /// Computes the impulse response of a simulated guitar cabinet with its microphone.
    Cabinet(capture::CabinetArguments),
    /// Trains a capture of an amplifier or a pedal from a signal and its recording.
    #[command(after_help = capture::sizes())]
    Capture(Box<capture::CaptureArguments>),
    /// Compresses a trained model to 8 or 16 bits within a bound on the audible loss.
    Quantize(Box<quantize::QuantizeArguments>),
    /// Measures the quality of an instrument, a codec, a generator or a capture on held-out sound.
    Evaluate(Box<evaluate::EvaluateArguments>),
    /// Plays the notes of recordings by MIDI, as a keyboard player would, and compares level, attack,
    /// colour and life with the recordings.
    Audition(audition::AuditionArguments),
    /// Brings an instrument or a generator to a loudness by a gain; less if chords of eight hard notes, or
    /// what the generator plays, would pass full scale.
    Level(level::LevelArguments),
    /// Trains with several settings, stops those that fall behind, and prints a table.
    Sweep(sweep::SweepArguments),
    /// Compares models: size, memory, speed on this machine, and quality on held-out sound.
    Compare(compare::CompareArguments),
    /// Times steps of synthetic networks with every optimiser, and prints a Markdown table.
    Bench(bench::BenchArguments),
    /// Removes the least important channels or weights of a model in rounds, with training after
    /// each.
    Prune(Box<prune::PruneArguments>),
    /// Trains a small student of a large model.
    Distill(Box<distill::DistillArguments>),
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
        Command::Fit(options) => resumable(|| fit::fit(&options)),
        Command::Capture(options) => resumable(|| capture::capture(&options)),
        Command::Codec(options) => resumable(|| codec::codec(&options)),
        Command::Prior(options) => resumable(|| generator::prior(&options)),
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
        Command::Export(options) => export::run(&options),
        Command::Report(options) => report::run(&options),
        Command::Corpus(options) => corpus::make_corpus(&options),
        Command::Grooves(options) => corpus::make_grooves(&options),
        Command::Data(command) => data::run(&command),
        Command::Prepare(arguments) => prepare::run(&arguments),
        Command::CaptureSignal(options) => capture::make_signal(&options),
        Command::Circuit(options) => circuit::run(&options),
        Command::Cabinet(options) => capture::make_cabinet(&options),
        Command::Quantize(options) => quantize::run(&options),
        Command::Audition(options) => audition::run(&options),
        Command::Level(options) => level::run(&options),
        Command::Sweep(options) => sweep::run(&options),
        Command::Compare(options) => compare::run(&options),
        Command::Bench(options) => bench::run(&options),
        Command::Prune(options) => prune::run(&options),
        Command::Distill(options) => distill::run(&options),
        Command::Evaluate(options) => evaluate::run(&options),
    }
}
