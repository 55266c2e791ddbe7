//! Cost of a model: size, memory, and time in an audio callback.

use std::path::Path;
use std::sync::Arc;

use anyhow::{Context, anyhow};
use flate2::Compression;
use flate2::write::DeflateEncoder;
use ondes_engine::model::{Model, file};
use ondes_engine::pipeline::{Pipeline, PipelineOptions};
use ondes_engine::realtime::{BenchmarkError, RealtimeBenchmark, Setup};
use serde::Serialize;

use super::candidate::Candidate;
use crate::compression::prune::sparse::zero_share;

/// Length of a timed run, seconds of sound: several control frames, but short enough that many runs
/// are undisturbed.
const RUN_S: f64 = 0.25;
/// Warm-up before the first run, seconds of sound.
const WARM_S: f64 = 0.5;

/// Size and memory of a model.
#[derive(Clone, Debug, Serialize)]
pub struct Cost {
    /// Size of the file, bytes.
    pub file_bytes: u64,
    /// Size of the model alone, compressed with deflate, bytes.
    pub packed_bytes: u64,
    /// Number of weights.
    pub weights: usize,
    /// Share of the weights that are zero, 0 to 1.
    pub zeros: f64,
    /// Memory of weights, states and buffers at the model's sample rate, bytes.
    pub memory_bytes: usize,
    /// Multiply-adds per second of all methods except variants, for one stream.
    pub multiply_adds_per_second: f64,
}

/// Speed at one block size.
#[derive(Clone, Copy, Debug, Serialize)]
pub struct Speed {
    /// Block size, frames.
    pub block: u32,
    /// Mean time of the fastest run, nanoseconds per sample.
    pub ns_per_sample: f64,
    /// Sound per time, relative to real time.
    pub realtime_factor: f64,
}

impl Cost {
    /// Measures a model that was read from `path`.
    ///
    /// # Errors
    /// Returns an error if it cannot be played or the file cannot be read.
    pub fn measure(model: &Arc<Model>, path: &Path) -> anyhow::Result<Self> {
        let header = model.header();
        let options = PipelineOptions {
            sample_rate: header.sample_rate,
            ..PipelineOptions::default()
        };
        let variants = header
            .variants
            .iter()
            .flat_map(|variant| std::iter::once(&variant.method).chain(&variant.room));
        let variants: Vec<&String> = variants.collect();
        let methods = header
            .methods
            .iter()
            .filter(|method| !variants.contains(&&method.name));
        Ok(Self {
            file_bytes: std::fs::metadata(path).context("cannot be read")?.len(),
            packed_bytes: deflated_bytes(&file::serialize(model)?)?,
            weights: model.parameters(),
            zeros: zero_share(model),
            memory_bytes: Pipeline::new(model, &options)?.bytes(),
            multiply_adds_per_second: methods
                .map(|method| method.multiply_adds_per_second(header.sample_rate))
                .sum(),
        })
    }
}

fn deflated_bytes(bytes: &[u8]) -> std::io::Result<u64> {
    use std::io::Write as _;
    let mut encoder = DeflateEncoder::new(Vec::new(), Compression::best());
    encoder.write_all(bytes)?;
    Ok(encoder.finish()?.len() as u64)
}

/// Times each candidate at each block size, at its own sample rate, for `seconds` of sound each.
///
/// # Errors
/// Returns an error with the file of a model that cannot be played.
pub fn speeds(
    candidates: &[Candidate],
    blocks: &[u32],
    seconds: f64,
) -> anyhow::Result<Vec<Vec<Speed>>> {
    let mut benchmarks = Vec::new();
    for candidate in candidates {
        let failed = |error: BenchmarkError| anyhow!("{}: {error}", candidate.path.display());
        for &block in blocks {
            let rate = candidate.model.header().sample_rate;
            let setup = Setup {
                sample_rate: rate,
                max_block: block as usize,
            };
            let mut benchmark =
                RealtimeBenchmark::new(&candidate.model, setup, &PipelineOptions::default())
                    .map_err(failed)?;
            for _ in 0..benchmark.blocks(WARM_S) {
                benchmark.play_block();
            }
            benchmark.check().map_err(failed)?;
            benchmarks.push((benchmark, block, rate, f64::INFINITY));
        }
    }
    for _ in 0..(seconds / RUN_S).ceil().max(1.0) as usize {
        for (benchmark, block, _, fastest_s) in &mut benchmarks {
            let count = benchmark.blocks(RUN_S);
            let elapsed_s: f64 = (0..count)
                .map(|_| benchmark.play_block().as_secs_f64())
                .sum();
            *fastest_s = fastest_s.min(elapsed_s / (count * *block as usize) as f64);
        }
    }
    let speeds: Vec<Speed> = benchmarks
        .iter()
        .map(|&(_, block, rate, fastest_s)| Speed {
            block,
            ns_per_sample: round(1e9 * fastest_s),
            realtime_factor: round(1.0 / (fastest_s * f64::from(rate))),
        })
        .collect();
    Ok(speeds
        .chunks(blocks.len().max(1))
        .map(<[Speed]>::to_vec)
        .collect())
}

/// Rounds to two decimals; further digits are noise.
fn round(value: f64) -> f64 {
    (100.0 * value).round() / 100.0
}
