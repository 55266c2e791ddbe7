//! Speed of the loader by the number of its threads.

use std::fmt::Write;
use std::sync::Arc;
use std::thread::available_parallelism;
use std::time::Instant;

use tch::Device;

use super::crops::Dataset;
use super::loader::{Loader, LoaderStats};
use super::rows::{RowSource, StepRows};
use crate::trainer::memory::data_shares;

/// Batches before those that are timed.
const UNTIMED_BATCHES: u64 = 3;
/// Share of the highest speed that fewer threads must reach to be recommended.
const NEARLY_BEST: f64 = 0.95;

/// Settings of a measurement.
#[derive(Clone, Debug)]
pub struct BenchOptions {
    /// Crops per batch.
    pub batch: usize,
    /// Numbers of threads; empty for 1, 2, 4 … up to one per core.
    pub workers: Vec<usize>,
    /// Time for each, seconds.
    pub seconds: f64,
}

/// Speed with one number of threads.
#[derive(Clone, Copy, Debug)]
pub struct LoaderSpeed {
    /// Threads.
    pub workers: usize,
    /// Crops per second.
    pub crops_per_second: f64,
    /// Batches per second.
    pub batches_per_second: f64,
    /// Counts over the measurement.
    pub stats: LoaderStats,
}

/// Measures a loader.
///
/// # Errors
/// Returns an error if a shard cannot be read or is damaged.
pub fn measure(
    dataset: &Arc<Dataset>,
    batch: usize,
    workers: usize,
    seconds: f64,
) -> anyhow::Result<LoaderSpeed> {
    let mut loader = Loader::new(
        dataset.clone(),
        StepRows::new(batch),
        workers,
        data_shares(None)[1],
    );
    let before = dataset.reads();
    let mut step = 0;
    let mut take = || {
        step += 1;
        loader.take(step - 1, 0..batch, Device::Cpu).map(drop)
    };
    (0..UNTIMED_BATCHES).try_for_each(|_| take())?;
    let started = Instant::now();
    let mut batches = 0;
    while batches == 0 || started.elapsed().as_secs_f64() < seconds {
        take()?;
        batches += 1;
    }
    let batches_per_second = f64::from(batches) / started.elapsed().as_secs_f64();
    let mut stats = loader.stats();
    stats.reads = stats.reads.since(before);
    Ok(LoaderSpeed {
        workers,
        crops_per_second: batches_per_second * batch as f64,
        batches_per_second,
        stats,
    })
}

/// Measures all numbers of threads; returns a Markdown table and the best number.
///
/// # Errors
/// Returns an error if a shard cannot be read or is damaged.
pub fn run(dataset: &Arc<Dataset>, options: &BenchOptions) -> anyhow::Result<String> {
    let cores = available_parallelism().map_or(1, usize::from);
    let doubled = std::iter::successors(Some(1), |workers| Some(2 * workers))
        .take_while(|&workers| workers < cores);
    let all: Vec<usize> = if options.workers.is_empty() {
        doubled.chain([cores]).collect()
    } else {
        options.workers.clone()
    };
    let mut text =
        "| threads | batches/s | crops/s | × real time | batch, ms: mean, p95, p99 | from memory | MB/s read |\n\
                    |---|---|---|---|---|---|---|\n"
            .to_owned();
    let mut speeds = Vec::new();
    for workers in all {
        let speed = measure(dataset, options.batch, workers, options.seconds)?;
        let [mean, p95, p99] = speed.stats.latency.map(|seconds| 1e3 * seconds);
        let reads = speed.stats.reads;
        let rows = (reads.cache_hits + reads.cache_misses).max(1);
        let _ = writeln!(
            text,
            "| {workers} | {:.1} | {:.0} | {:.0} | {mean:.2}, {p95:.2}, {p99:.2} | {:.0} % | {:.1} |",
            speed.batches_per_second,
            speed.crops_per_second,
            speed.crops_per_second * dataset.crop_seconds(),
            100.0 * reads.cache_hits as f64 / rows as f64,
            1e-6 * reads.bytes as f64 / options.seconds
        );
        speeds.push(speed);
    }
    let most = speeds
        .iter()
        .map(|speed| speed.crops_per_second)
        .fold(0.0, f64::max);
    let best = speeds
        .iter()
        .find(|speed| speed.crops_per_second >= NEARLY_BEST * most);
    let _ = writeln!(
        text,
        "\nbest number of threads: {}",
        best.map_or(1, |speed| speed.workers)
    );
    Ok(text)
}
