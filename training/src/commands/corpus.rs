//! `ondes-train corpus` and `grooves`: generated recordings to train on.

use std::path::{Path, PathBuf};

use clap::Args;
use clap::builder::PossibleValuesParser;
use indicatif::{ProgressBar, ProgressStyle};
use ondes_physical_models::drums::{self, DrumsOptions};
use ondes_physical_models::{CorpusOptions, CorpusSummary};

use ondes_training::value_parser;

/// Options of `corpus`.
#[derive(Args)]
pub struct CorpusArguments {
    /// Instrument.
    #[arg(value_parser = PossibleValuesParser::new(ondes_physical_models::names()))]
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
}

/// Options of `grooves`.
#[derive(Args)]
pub struct GroovesArguments {
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
}

/// Generates phrases of a physical model.
pub fn make_corpus(options: &CorpusArguments) -> anyhow::Result<()> {
    let corpus = CorpusOptions {
        name: options.name.clone(),
        minutes: options.minutes,
        seed: options.seed,
    };
    with_progress(&options.out, |progress| {
        ondes_physical_models::generate(&corpus, &options.out, progress)
    })
}

/// Generates grooves of a drum kit.
pub fn make_grooves(options: &GroovesArguments) -> anyhow::Result<()> {
    let drums = DrumsOptions {
        minutes: options.minutes,
        tempos: (options.slowest, options.fastest),
        seed: options.seed,
    };
    with_progress(&options.out, |progress| {
        drums::generate(&drums, &options.kit, &options.out, progress)
    })
}

/// Generates a corpus, and shows its progress.
fn with_progress(
    out: &Path,
    generate: impl FnOnce(&(dyn Fn(usize, usize) + Sync)) -> anyhow::Result<CorpusSummary>,
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
