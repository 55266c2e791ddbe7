//! All there is to say of a model; `--json` prints exactly this.

use std::path::Path;

use ondes_engine::instrument::Performance;
use ondes_engine::model::{Control, Gear, Levels, Measure, Method, Model, Port, Training, Variant};
use ondes_engine::pipeline::{PipelineError, controls};
use serde::Serialize;

use super::cost::{self, Cost};

/// What a model is, can do and costs.
#[derive(Serialize)]
pub struct Facts {
    /// Name to show.
    pub name: String,
    /// What it is to a player.
    pub kind: &'static str,
    /// One or two sentences.
    pub description: String,
    /// Who made it.
    pub author: String,
    /// SPDX expression.
    pub licence: String,
    /// The file.
    pub file: String,
    /// Its size.
    pub file_bytes: u64,
    /// Version of the file format.
    pub format: u32,
    /// Rate of all audio, Hz.
    pub sample_rate: u32,
    /// Number of weights.
    pub parameters: usize,
    /// What it can do.
    pub methods: Vec<MethodFacts>,
    /// What can be turned, a codec's latents included.
    pub controls: Vec<Control>,
    /// How notes are played; only instruments have it.
    pub performance: Option<Performance>,
    /// What playing it takes, on this machine.
    pub cost: Vec<Cost>,
    /// What it is a capture of.
    pub gear: Option<Gear>,
    /// What its samples were in volts, and how loud it is.
    pub levels: Option<Levels>,
    /// Smaller sizes of it.
    pub variants: Vec<Variant>,
    /// Where it comes from.
    pub training: Option<Training>,
    /// How good it is, on sound that training never heard.
    pub quality: Vec<Measure>,
    /// BLAKE3 hash of header and weights.
    pub content_hash: String,
}

/// One method of a model.
#[derive(Serialize)]
pub struct MethodFacts {
    /// Its name.
    pub name: String,
    /// Samples per step.
    pub block: usize,
    /// What is fed in.
    pub inputs: Vec<Port>,
    /// What comes out.
    pub outputs: Vec<Port>,
    /// Layers.
    pub nodes: usize,
    /// Samples by which what comes out is behind what goes in.
    pub latency_samples: usize,
    /// The same, ms.
    pub latency_ms: f64,
    /// Multiply-adds per second of sound, for one voice or stream.
    pub multiply_adds_per_second: f64,
    /// Samples of silence that it has heard when it begins.
    pub warm_up_samples: usize,
}

/// Gathers the facts, measuring what can be measured in a moment.
///
/// # Errors
/// When the model cannot be played as what it says it is.
pub fn gather(model: &Model, path: &Path, file_bytes: u64) -> Result<Facts, PipelineError> {
    let header = model.header();
    let card = header.card.clone();
    Ok(Facts {
        name: card.name,
        kind: header.kind.name(),
        description: card.description,
        author: card.author,
        licence: card.licence,
        file: path.display().to_string(),
        file_bytes,
        format: header.format,
        sample_rate: header.sample_rate,
        parameters: model.parameters(),
        methods: header.methods.iter().map(|method| describe(method, header.sample_rate)).collect(),
        controls: controls(header),
        performance: header.performance,
        cost: cost::measure(model)?,
        gear: card.gear,
        levels: card.levels,
        variants: header.variants.clone(),
        training: card.training,
        quality: card.quality,
        content_hash: model.content_hash().to_owned(),
    })
}

fn describe(method: &Method, sample_rate: u32) -> MethodFacts {
    let latency_samples = method.latency_samples();
    MethodFacts {
        name: method.name.clone(),
        block: method.block,
        inputs: method.inputs.clone(),
        outputs: method.outputs.clone(),
        nodes: method.nodes.len(),
        latency_samples,
        latency_ms: 1e3 * latency_samples as f64 / f64::from(sample_rate),
        warm_up_samples: method.warm_up,
        multiply_adds_per_second: method.multiply_adds_per_second(sample_rate),
    }
}
