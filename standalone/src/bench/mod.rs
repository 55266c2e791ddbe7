//! `ondes bench`: what a model takes in an audio callback of this machine.
//!
//! [`Trial`] plays it as it would be played live; here every block is measured, and said what came of it.

use std::path::PathBuf;

use anyhow::{anyhow, ensure};
use clap::Args;
use ondes_engine::Kernels;
use ondes_engine::pipeline::{Pipeline, PipelineOptions};
use ondes_engine::realtime::Setup;
use ondes_engine::trial::Trial;
use serde::Serialize;

use crate::interrupt;
use crate::play;
use crate::render::parse_size;
use crate::running::RunningArguments;
use crate::terminal;

/// Sound that is played before anything is measured, seconds: caches, the clock of the CPU, and the model's memory.
const WARM_S: f64 = 0.5;

const EXAMPLES: &str = "\
Examples:
  ondes bench bowed
  ondes bench amp.ondes --block 64 --rate 48000 --seconds 20
  ondes bench wind --json | jq .ns_per_sample.p99

The model runs in the callback, as with --driver inline; what libtorch runs is played by the worker, but is measured in the same way. An instrument holds notes, a new chord every second, with as many
voices as it has, at most four; an effect or a codec hears a sweep and noise, always the same. The load is the share
of the time between two callbacks; what is above 100 % is heard as a gap. Close other programs: they are measured, too.";

/// Measures what a model takes in an audio callback.
#[derive(Args)]
#[command(after_help = EXAMPLES)]
pub struct BenchArguments {
    /// A model's file, or the name of a bundled one (bowed, plucked, wind)
    pub model: PathBuf,
    /// Frames of a block
    #[arg(long, value_name = "FRAMES", default_value_t = 256, value_parser = clap::value_parser!(u32).range(1..=8_192))]
    pub block: u32,
    /// Seconds of sound that are measured, 0.1 to 3600, after half a second that is not
    #[arg(long, value_name = "S", default_value_t = 5.0, value_parser = parse_seconds)]
    pub seconds: f64,
    /// Sample rate [default: the model's]
    #[arg(long, value_name = "HZ", value_parser = clap::value_parser!(u32).range(8_000..=384_000))]
    pub rate: Option<u32>,
    /// Size of a model that holds smaller variants of itself, 0 to 1; 1 is the whole
    #[arg(long, value_name = "SIZE", default_value_t = 1.0, allow_negative_numbers = true, value_parser = parse_size)]
    pub size: f32,
    /// What runs the network.
    #[command(flatten)]
    pub running: RunningArguments,
    /// Prints one JSON object
    #[arg(long)]
    pub json: bool,
}

/// The figures; `--json` prints exactly this.
#[derive(Serialize)]
struct Report {
    /// The model file, or the name of a bundled model.
    model: String,
    /// Its name, from its card.
    name: String,
    /// The variant that played; null for the whole.
    variant: Option<String>,
    /// What it is to a player.
    kind: &'static str,
    /// What it was given.
    input: String,
    /// Hz.
    sample_rate: u32,
    /// Frames of a block.
    block: u32,
    /// Blocks that were measured.
    blocks: usize,
    /// Sound that was measured, s.
    seconds: f64,
    /// Seconds of sound made in a second.
    realtime_factor: f64,
    /// Time for a frame of a block, ns.
    ns_per_sample: Spread,
    /// Share of the time between two callbacks, over all blocks.
    load: f64,
    /// The same of the block that took longest.
    load_worst: f64,
    /// Blocks that took longer than they last.
    late_blocks: usize,
    /// From what is played to what is heard.
    latency_samples: usize,
    /// The same, ms.
    latency_ms: f64,
    /// What computes the network.
    executor: String,
    /// The arithmetic of this CPU that it uses.
    kernels: &'static str,
    /// Subnormal numbers count as zero, as in every callback.
    flush_to_zero: bool,
    /// Memory of weights, states and buffers, bytes.
    memory_bytes: usize,
}

/// Over all blocks.
#[derive(Serialize)]
struct Spread {
    median: f64,
    p99: f64,
    worst: f64,
}

impl Spread {
    /// Of at least one value.
    fn of(mut values: Vec<f64>) -> Self {
        values.sort_by(f64::total_cmp);
        let share = |share: f64| values[((values.len() - 1) as f64 * share).ceil() as usize];
        Self { median: share(0.5), p99: share(0.99), worst: share(1.0) }
    }
}

impl Report {
    /// Some lines for a person.
    fn text(&self) -> String {
        let Self { ns_per_sample: ns, late_blocks, block, .. } = self;
        let late = match late_blocks {
            0 => String::new(),
            late => format!(", {late} of {} blocks too late", self.blocks),
        };
        let variant = self.variant.iter().map(|name| format!(", {}", terminal::plain(name)));
        format!(
            "{}{} ({}), {}\n\
             speed    {:.0}× real time, {:.0} ns/sample (median), {:.0} (99 %), {:.0} (worst)\n\
             load     {:.1} % of a callback of {block} frames at {} Hz, {:.1} % in the worst{late}\n\
             latency  {} samples ({:.1} ms)\n\
             memory   {:.1} MB\n\
             runs on  {}, kernels {}",
            terminal::plain(&self.name),
            variant.collect::<String>(),
            self.kind,
            self.input,
            self.realtime_factor,
            ns.median,
            ns.p99,
            ns.worst,
            100.0 * self.load,
            self.sample_rate,
            100.0 * self.load_worst,
            self.latency_samples,
            self.latency_ms,
            self.memory_bytes as f64 / 1e6,
            self.executor,
            self.kernels,
        )
    }
}

/// Measures a model and says what it takes.
///
/// # Errors
/// One line that names the file and what is wrong with it.
pub fn run(arguments: &BenchArguments) -> anyhow::Result<()> {
    let path = arguments.model.display();
    // Errors are printed without the reasons behind them.
    let (model, _) = play::find(&arguments.model).map_err(|error| anyhow!("{error:#}"))?;
    let header = model.header();
    let sample_rate = arguments.rate.unwrap_or(header.sample_rate);
    let named = |error: String| anyhow!("{path}: {error}");
    let setup = Setup { sample_rate, max_block: arguments.block as usize };
    ensure!(arguments.size >= 1.0 || !header.variants.is_empty(), "{path}: the model has only one size");
    let wish = arguments.running.of(&model).map_err(|error| named(error.to_string()))?;
    let size = arguments.size;
    let options = PipelineOptions { sample_rate, size, wish, ..PipelineOptions::default() };
    let mut trial = Trial::new(&model, setup, &options).map_err(named)?;
    let source = trial.source();
    let options = PipelineOptions { source, ..options };
    let pipeline = Pipeline::new(&model, &options).map_err(|error| named(error.to_string()))?;
    let input = trial.what();
    let blocks_s = play_blocks(&mut trial, arguments.seconds)?;
    trial.check().map_err(named)?;
    if let Some(notice) = trial.notice() {
        terminal::warn(&format!("{path}: {notice}"));
    }
    let block_s = f64::from(arguments.block) / f64::from(sample_rate);
    let taken_s: f64 = blocks_s.iter().sum();
    let blocks = blocks_s.len();
    let seconds = blocks as f64 * block_s;
    let worst_s = blocks_s.iter().copied().fold(0.0, f64::max);
    let report = Report {
        model: path.to_string(),
        name: header.card.name.clone(),
        variant: header.variant(arguments.size).map(|variant| variant.name.clone()),
        kind: header.kind.name(),
        input,
        sample_rate,
        block: arguments.block,
        blocks,
        seconds,
        realtime_factor: seconds / taken_s,
        ns_per_sample: Spread::of(blocks_s.iter().map(|s| 1e9 * s / f64::from(arguments.block)).collect()),
        load: taken_s / seconds,
        load_worst: worst_s / block_s,
        late_blocks: blocks_s.iter().filter(|taken_s| **taken_s > block_s).count(),
        latency_samples: trial.latency_samples(),
        latency_ms: 1e3 * trial.latency_samples() as f64 / f64::from(sample_rate),
        executor: pipeline.executor(),
        kernels: Kernels::detect().name(),
        flush_to_zero: true,
        memory_bytes: pipeline.bytes(),
    };
    terminal::print(&if arguments.json { serde_json::to_string(&report)? } else { report.text() })
}

/// Plays, and gives the time that each block of so many seconds took, seconds; one at least.
fn play_blocks(trial: &mut Trial, seconds: f64) -> anyhow::Result<Vec<f64>> {
    interrupt::listen();
    let (warm, measured) = (trial.blocks(WARM_S), trial.blocks(seconds));
    let mut blocks_s = Vec::with_capacity(measured);
    for block in 0..warm + measured {
        interrupt::check()?;
        let taken = trial.block();
        if block >= warm {
            blocks_s.push(taken.as_secs_f64());
        }
    }
    Ok(blocks_s)
}

fn parse_seconds(text: &str) -> Result<f64, String> {
    match text.parse() {
        Ok(seconds) if (0.1..=3600.0).contains(&seconds) => Ok(seconds),
        _ => Err("expected a number from 0.1 to 3600".into()),
    }
}

#[cfg(test)]
mod tests {
    use super::Spread;

    #[test]
    fn a_spread_is_of_values_that_there_were() {
        let Spread { median, p99, worst } = Spread::of((1..=200).rev().map(f64::from).collect());
        assert_eq!((median, p99, worst), (101.0, 199.0, 200.0));
        let Spread { median, p99, worst } = Spread::of(vec![7.0]);
        assert_eq!((median, p99, worst), (7.0, 7.0, 7.0));
    }
}
