//! What a model costs: bytes on disk and in memory, and time in an audio callback.

use std::path::Path;
use std::sync::Arc;

use anyhow::{Context, anyhow};
use flate2::Compression;
use flate2::write::DeflateEncoder;
use ondes_engine::model::{Model, file};
use ondes_engine::pipeline::{Pipeline, PipelineOptions};
use ondes_engine::realtime::Setup;
use ondes_engine::realtime::Trial;
use serde::Serialize;

use super::Candidate;
use crate::prune::sparse::zeros;

/// Length of one run, seconds of sound: long enough for some control frames, short enough that many find the machine idle.
const RUN_S: f64 = 0.25;
/// Sound before the first run, seconds.
const WARM_S: f64 = 0.5;

/// Size and memory.
#[derive(Clone, Debug, Serialize)]
pub struct Cost {
    /// The file, bytes.
    pub file_bytes: u64,
    /// What it plays, as a file of its own that is packed (deflate), bytes.
    pub packed_bytes: u64,
    /// Number of weights.
    pub weights: usize,
    /// Share of them that are zero, 0 to 1.
    pub zeros: f64,
    /// Weights, states and buffers of one that plays at its own rate, bytes.
    pub memory_bytes: usize,
    /// Of all its methods but variants, for one stream, per second.
    pub multiply_adds_per_second: f64,
}

/// Time.
#[derive(Clone, Copy, Debug, Serialize)]
pub struct Speed {
    /// Frames of a block.
    pub block: u32,
    /// The least mean of all runs, nanoseconds per sample.
    pub ns_per_sample: f64,
    /// Seconds of sound made in a second.
    pub realtime_factor: f64,
}

impl Cost {
    /// Of a model that was read from that file.
    ///
    /// # Errors
    /// When it cannot be played, or the file is gone.
    pub fn of(model: &Arc<Model>, path: &Path) -> anyhow::Result<Self> {
        let header = model.header();
        let options = PipelineOptions { sample_rate: header.sample_rate, ..PipelineOptions::default() };
        let variants = header.variants.iter().flat_map(|variant| std::iter::once(&variant.method).chain(&variant.room));
        let variants: Vec<&String> = variants.collect();
        let methods = header.methods.iter().filter(|method| !variants.contains(&&method.name));
        Ok(Self {
            file_bytes: std::fs::metadata(path).context("cannot be read")?.len(),
            packed_bytes: packed(&file::serialize(model)?)?,
            weights: model.parameters(),
            zeros: zeros(model),
            memory_bytes: Pipeline::new(model, &options)?.bytes(),
            multiply_adds_per_second: methods.map(|method| method.multiply_adds_per_second(header.sample_rate)).sum(),
        })
    }
}

fn packed(bytes: &[u8]) -> std::io::Result<u64> {
    use std::io::Write as _;
    let mut encoder = DeflateEncoder::new(Vec::new(), Compression::best());
    encoder.write_all(bytes)?;
    Ok(encoder.finish()?.len() as u64)
}

/// For each candidate the time that it takes with each block, at its own rate; so many seconds of sound are played for each.
///
/// # Errors
/// One line with the file that cannot be played.
pub fn speeds(candidates: &[Candidate], blocks: &[u32], seconds: f64) -> anyhow::Result<Vec<Vec<Speed>>> {
    let mut trials = Vec::new();
    for candidate in candidates {
        let failed = |reason: String| anyhow!("{}: {reason}", candidate.path.display());
        for &block in blocks {
            let rate = candidate.model.header().sample_rate;
            let setup = Setup { sample_rate: rate, max_block: block as usize };
            let mut trial = Trial::new(&candidate.model, setup, &PipelineOptions::default()).map_err(failed)?;
            for _ in 0..trial.blocks(WARM_S) {
                trial.block();
            }
            trial.check().map_err(failed)?;
            trials.push((trial, block, rate, f64::INFINITY));
        }
    }
    for _ in 0..(seconds / RUN_S).ceil().max(1.0) as usize {
        for (trial, block, _, least_s) in &mut trials {
            let count = trial.blocks(RUN_S);
            let taken_s: f64 = (0..count).map(|_| trial.block().as_secs_f64()).sum();
            *least_s = least_s.min(taken_s / (count * *block as usize) as f64);
        }
    }
    let speeds: Vec<Speed> = trials
        .iter()
        .map(|&(_, block, rate, least_s)| Speed {
            block,
            ns_per_sample: round(1e9 * least_s),
            realtime_factor: round(1.0 / (least_s * f64::from(rate))),
        })
        .collect();
    Ok(speeds.chunks(blocks.len().max(1)).map(<[Speed]>::to_vec).collect())
}

/// Two digits after the point: more is noise.
fn round(value: f64) -> f64 {
    (100.0 * value).round() / 100.0
}
