//! `ondes bench`: the load of a model in an audio callback on this machine.
//!
//! Measures every block of a [`RealtimeBenchmark`], which plays the model as it would be played
//! live.

use std::fmt::Display;
use std::path::PathBuf;
use std::sync::Arc;

use anyhow::{anyhow, ensure};
use clap::Args;
use ondes_engine::Kernels;
use ondes_engine::pipeline::{Pipeline, PipelineOptions};
use ondes_engine::realtime::RealtimeBenchmark;
use ondes_engine::realtime::Setup;
use serde::Serialize;

use crate::argument_parsers::{SIZE, number_in};
use crate::executor_arguments::ExecutorArguments;
use crate::program_arguments::ProgramArguments;
use crate::render::speed;
use crate::terminal;
use crate::{help, interrupt, open_model};

/// Length of sound played before the measurement, seconds: warms up caches, CPU clock and the
/// model's state.
const WARM_UP_S: f64 = 0.5;

const EXAMPLES: &str = "\
Examples:
  ondes bench bowed
  ondes bench amp.ondes --block 64 --sample-rate 48000 --seconds 20
  ondes bench wind --json | jq .ns_per_sample.p99

The model runs in the audio callback, as with `ondes play --driver inline`. The input of an instrument is held notes, a
new chord every second with up to four voices; that of an effect or codec is always the same sweep and noise. Load is
the share of the time between two callbacks; above 100 % there are dropouts. Close other programs before measuring.";

/// Measures the load of a model in an audio callback
#[derive(Args)]
#[command(after_help = help::with_models(EXAMPLES))]
pub struct BenchArguments {
    /// Model file, or a bundled model by its name
    pub model: PathBuf,
    /// Block length, 1 to 8192 frames
    #[arg(long, value_name = "FRAMES", default_value_t = 256, value_parser = clap::value_parser!(u32).range(1..=8_192))]
    pub block: u32,
    /// Length of sound to measure, 0.1 to 3600 seconds, after half a second of warm-up
    #[arg(long, value_name = "S", default_value_t = 5.0, value_parser = number_in(0.1..=3600.0))]
    pub seconds: f64,
    /// Sample rate, 8000 to 384000 Hz [default: the model's]
    #[arg(long, value_name = "HZ", value_parser = clap::value_parser!(u32).range(8_000..=384_000))]
    pub sample_rate: Option<u32>,
    /// Size of a model with smaller variants, 0 to 1; 1 is the whole model
    #[arg(long, value_name = "SIZE", default_value_t = 1.0, allow_negative_numbers = true, value_parser = number_in(SIZE))]
    pub size: f32,
    /// Method and settings of a TorchScript model.
    #[command(flatten)]
    pub program: ProgramArguments,
    /// Executor of the network.
    #[command(flatten)]
    pub executor_arguments: ExecutorArguments,
    /// Print one JSON object
    #[arg(long)]
    pub json: bool,
}

/// Results; `--json` prints exactly these fields.
#[derive(Serialize)]
struct BenchReport {
    /// Model file, or name of a bundled model.
    model: String,
    /// Name on the model's card.
    name: String,
    /// Variant that played; null for the whole model.
    variant: Option<String>,
    /// Kind of the model.
    kind: &'static str,
    /// Description of the test input.
    input: String,
    /// Sample rate, Hz.
    sample_rate: u32,
    /// Block length, frames.
    block: u32,
    /// Number of measured blocks.
    blocks: usize,
    /// Length of the measured sound, s.
    seconds: f64,
    /// Seconds of sound per second of computation.
    realtime_factor: f64,
    /// Time per frame of a block, ns.
    ns_per_sample: Percentiles,
    /// Computation time as a share of the time between callbacks, over all blocks.
    load: f64,
    /// Load of the slowest block.
    load_worst: f64,
    /// Blocks that took longer than their own length.
    late_blocks: usize,
    /// Latency of the model, samples.
    latency_samples: usize,
    /// Latency of the model, ms.
    latency_ms: f64,
    /// Executor that ran the network.
    executor: String,
    /// Instruction set that the kernels use.
    kernels: &'static str,
    /// Subnormal numbers were flushed to zero, as in every callback.
    flush_to_zero: bool,
    /// Memory of weights, states and buffers, bytes.
    memory_bytes: usize,
}

/// Distribution over all blocks.
#[derive(Serialize)]
struct Percentiles {
    median: f64,
    p99: f64,
    worst: f64,
}

impl Percentiles {
    /// Computes the percentiles of at least one value.
    fn new(mut values: Vec<f64>) -> Self {
        values.sort_by(f64::total_cmp);
        let share = |share: f64| values[((values.len() - 1) as f64 * share).ceil() as usize];
        Self {
            median: share(0.5),
            p99: share(0.99),
            worst: share(1.0),
        }
    }
}

impl BenchReport {
    /// Formats the results for the terminal, in several lines.
    fn text(&self) -> String {
        let Self {
            ns_per_sample: ns,
            late_blocks,
            block,
            ..
        } = self;
        let late = match late_blocks {
            0 => String::new(),
            late => format!(", {late} of {} blocks too late", self.blocks),
        };
        let variant = self
            .variant
            .iter()
            .map(|name| format!(", {}", terminal::sanitize(name)));
        format!(
            "{}{} ({}), {}\n\
             speed    {}× real time, {:.0} ns/sample (median), {:.0} (99 %), {:.0} (worst)\n\
             load     {:.1} % of a callback of {block} frames at {} Hz, {:.1} % in the worst{late}\n\
             latency  {} samples ({:.1} ms)\n\
             memory   {:.1} MB\n\
             runs on  {}, kernels {}",
            terminal::sanitize(&self.name),
            variant.collect::<String>(),
            self.kind,
            self.input,
            speed(self.realtime_factor),
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

/// Runs the benchmark and prints the results.
///
/// # Errors
/// Returns an error that names the model and what is wrong with it.
pub fn run(arguments: &BenchArguments) -> anyhow::Result<()> {
    let path = arguments.model.display();
    // The program prints an error without its sources.
    let (model, _) = open_model::find(&arguments.model).map_err(|error| anyhow!("{error:#}"))?;
    let model = Arc::new(
        arguments
            .program
            .apply(Arc::unwrap_or_clone(model), &arguments.model)?,
    );
    let header = model.header();
    let sample_rate = arguments.sample_rate.unwrap_or(header.sample_rate);
    let with_path = |error: &dyn Display| anyhow!("{path}: {error}");
    let setup = Setup {
        sample_rate,
        max_block: arguments.block as usize,
    };
    ensure!(
        arguments.size >= 1.0 || !header.variants.is_empty(),
        "{path}: the model has no smaller variants; leave out --size"
    );
    let executor = arguments
        .executor_arguments
        .selection_for(&model)
        .map_err(|error| with_path(&error))?;
    let size = arguments.size;
    let options = PipelineOptions {
        sample_rate,
        size,
        executor,
        ..PipelineOptions::default()
    };
    let mut benchmark =
        RealtimeBenchmark::new(&model, setup, &options).map_err(|error| with_path(&error))?;
    let source = benchmark.source();
    let options = PipelineOptions { source, ..options };
    let pipeline = Pipeline::new(&model, &options).map_err(|error| with_path(&error))?;
    let input = benchmark.load_description();
    let blocks_s = play_blocks(&mut benchmark, arguments.seconds)?;
    benchmark.check().map_err(|error| with_path(&error))?;
    if let Some(notice) = benchmark.warning() {
        terminal::warn(&format!("{path}: {notice}"));
    }
    let block_s = f64::from(arguments.block) / f64::from(sample_rate);
    let taken_s: f64 = blocks_s.iter().sum();
    let blocks = blocks_s.len();
    let seconds = blocks as f64 * block_s;
    let worst_s = blocks_s.iter().copied().fold(0.0, f64::max);
    let report = BenchReport {
        model: path.to_string(),
        name: header.card.name.clone(),
        variant: header
            .variant(arguments.size)
            .map(|variant| variant.name.clone()),
        kind: header.kind.name(),
        input,
        sample_rate,
        block: arguments.block,
        blocks,
        seconds,
        realtime_factor: seconds / taken_s,
        ns_per_sample: Percentiles::new(
            blocks_s
                .iter()
                .map(|s| 1e9 * s / f64::from(arguments.block))
                .collect(),
        ),
        load: taken_s / seconds,
        load_worst: worst_s / block_s,
        late_blocks: blocks_s
            .iter()
            .filter(|taken_s| **taken_s > block_s)
            .count(),
        latency_samples: benchmark.latency_samples(),
        latency_ms: 1e3 * benchmark.latency_samples() as f64 / f64::from(sample_rate),
        executor: pipeline.executor(),
        kernels: Kernels::detect().name(),
        flush_to_zero: true,
        memory_bytes: pipeline.bytes(),
    };
    terminal::print(&if arguments.json {
        serde_json::to_string(&report)?
    } else {
        report.text()
    })
}

/// Plays `seconds` of sound, at least one block, and returns the time of each block in seconds.
fn play_blocks(benchmark: &mut RealtimeBenchmark, seconds: f64) -> anyhow::Result<Vec<f64>> {
    let (warm, measured) = (benchmark.blocks(WARM_UP_S), benchmark.blocks(seconds));
    let mut blocks_s = Vec::with_capacity(measured);
    for block in 0..warm + measured {
        interrupt::check()?;
        let taken = benchmark.play_block();
        if block >= warm {
            blocks_s.push(taken.as_secs_f64());
        }
    }
    Ok(blocks_s)
}

#[cfg(test)]
mod tests {
    use super::Percentiles;

    #[test]
    fn percentiles_are_measured_values() {
        let Percentiles { median, p99, worst } =
            Percentiles::new((1..=200).rev().map(f64::from).collect());
        assert_eq!((median, p99, worst), (101.0, 199.0, 200.0));
        let Percentiles { median, p99, worst } = Percentiles::new(vec![7.0]);
        assert_eq!((median, p99, worst), (7.0, 7.0, 7.0));
    }
}
