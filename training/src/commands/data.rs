//! `ondes-train data`: what is in a dataset, and how fast it can be read.

use std::path::PathBuf;
use std::sync::Arc;

use clap::{Args, Subcommand};
use ondes_training::data::bench::{self, BenchOptions};
use ondes_training::data::playing::Playing;
use ondes_training::data::report::DataReport;
use ondes_training::data::{Dataset, Recordings};

use ondes_training::value_parser;

/// Commands for datasets.
#[derive(Subcommand)]
pub enum DataCommand {
    /// Cuts crops as fast as possible with 1, 2, 4 … threads, prints a table, and names the best
    /// number.
    Bench(BenchArguments),
    /// Tells which pitches, dynamics and envelopes a dataset has, and what to expect of an
    /// instrument.
    Report(ReportArguments),
}

/// Options of `data report`.
#[derive(Args)]
pub struct ReportArguments {
    /// Folder that `ondes-train prepare` wrote.
    dataset: PathBuf,
    /// PNG file to draw.
    #[arg(long, value_name = "PNG")]
    chart: Option<PathBuf>,
}

/// Options of `data bench`.
#[derive(Args)]
pub struct BenchArguments {
    /// Folder that `ondes-train prepare` wrote.
    dataset: PathBuf,
    /// Crops per batch.
    #[arg(long, default_value_t = 8, value_parser = clap::value_parser!(u16).range(1..=4096))]
    batch: u16,
    /// Length of a crop, seconds.
    #[arg(long, default_value_t = 1.0, value_parser = value_parser::positive)]
    clip_seconds: f64,
    /// Number of threads to try, instead of 1, 2, 4 … up to one per core.
    #[arg(long, value_delimiter = ',', value_parser = clap::value_parser!(u16).range(1..=256))]
    workers: Vec<u16>,
    /// Memory for decoded recordings, such as 512M.
    #[arg(long, default_value = "512M", value_parser = ondes_training::byte_size::parse_bytes)]
    cache: u64,
    /// Time for each number of threads.
    #[arg(long, default_value_t = 3.0, value_parser = value_parser::positive)]
    seconds: f64,
}

/// Runs a command.
pub fn run(command: &DataCommand) -> anyhow::Result<()> {
    match command {
        DataCommand::Bench(arguments) => measure(arguments),
        DataCommand::Report(arguments) => report(arguments),
    }
}

fn report(arguments: &ReportArguments) -> anyhow::Result<()> {
    let recordings = Recordings::open(&arguments.dataset)?;
    let report = DataReport::new(&recordings)?;
    println!("{}", report.text());
    if let Some(playing) = Playing::measure(&recordings, report.has_one_dynamic())? {
        println!(
            "how its single notes were played, as `fit` fills the table of a recipe:\n\n{}",
            playing.recipe()?
        );
    }
    if let Some(path) = &arguments.chart {
        report.draw().write_png(path)?;
        println!("{}: written", path.display());
    }
    Ok(())
}

fn measure(arguments: &BenchArguments) -> anyhow::Result<()> {
    let recordings = Recordings::open(&arguments.dataset)?;
    recordings.store.set_cache(arguments.cache);
    let rate = recordings.store.format().rate;
    let frames =
        (arguments.clip_seconds * f64::from(rate.sample_rate) / rate.hop as f64).ceil() as usize;
    let dataset = Arc::new(Dataset::split(&recordings, 0.0, frames.max(1))?);
    let options = BenchOptions {
        batch: usize::from(arguments.batch),
        workers: arguments.workers.iter().copied().map(usize::from).collect(),
        seconds: arguments.seconds,
    };
    print!("{}", bench::run(&dataset, &options)?);
    Ok(())
}
