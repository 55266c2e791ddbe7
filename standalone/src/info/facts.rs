//! All there is to say of a model; `--json` prints exactly this.

use std::collections::BTreeMap;
use std::path::Path;

use ondes_engine::instrument::Performance;
use ondes_engine::model::{Control, Gear, Levels, Measure, Method, Model, Port, Storage, Training, Variant};
use ondes_engine::pipeline::{PipelineError, controls};
use serde::Serialize;

use super::cost::{self, Cost};

/// How many times faster than real time a model must play to hold in it.
const MARGIN: f64 = 2.0;

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
    /// What these are stored as.
    pub storage: Vec<StorageFacts>,
    /// What it can do.
    pub methods: Vec<MethodFacts>,
    /// What can be turned, a codec's latents included.
    pub controls: Vec<Control>,
    /// How notes are played; only instruments have it.
    pub performance: Option<Performance>,
    /// What there is to say of it as a program; null for what is none.
    pub program: Option<Vec<String>>,
    /// Whether it plays twice as fast as time passes, or faster: what is left is for other programs and bad moments.
    pub holds_in_real_time: bool,
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

/// Weights that are stored in one way.
#[derive(Serialize)]
pub struct StorageFacts {
    /// `F32`, `F16`, `BF16` or `I8`.
    pub storage: &'static str,
    /// How many.
    pub weights: usize,
    /// What they take, with their scales.
    pub bytes: usize,
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
    /// Names of the channels that go in, where a program gives them.
    pub input_labels: Vec<String>,
    /// Names of the channels that come out.
    pub output_labels: Vec<String>,
}

/// Gathers the facts, measuring what can be measured in a moment.
///
/// # Errors
/// When the model cannot be played as what it says it is.
pub fn gather(model: &Model, path: &Path, file_bytes: u64) -> Result<Facts, PipelineError> {
    let header = model.header();
    let card = header.card.clone();
    let cost = cost::measure(model)?;
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
        storage: storage(model),
        methods: header.methods.iter().map(|method| describe(model, method)).collect(),
        controls: controls(header),
        performance: header.performance,
        program: model.program().map(|program| program.notes.clone()),
        holds_in_real_time: cost.iter().all(|cost| cost.realtime_factor >= MARGIN),
        cost,
        gear: card.gear,
        levels: card.levels,
        variants: header.variants.clone(),
        training: card.training,
        quality: card.quality,
        content_hash: model.content_hash().to_owned(),
    })
}

fn storage(model: &Model) -> Vec<StorageFacts> {
    let mut by_storage = BTreeMap::new();
    for (_, tensor) in model.weights().iter() {
        let (weights, bytes) = by_storage.entry(tensor.values().storage()).or_insert((0, 0));
        *weights += tensor.values().len();
        *bytes += tensor.bytes();
    }
    let facts = |(storage, (weights, bytes)): (Storage, _)| StorageFacts { storage: storage.name(), weights, bytes };
    by_storage.into_iter().map(facts).collect()
}

fn describe(model: &Model, method: &Method) -> MethodFacts {
    let sample_rate = model.header().sample_rate;
    let latency_samples = model.latency_samples(method);
    let call = model.program().and_then(|program| program.calls.get(&method.name));
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
        input_labels: call.map(|call| call.input_labels.clone()).unwrap_or_default(),
        output_labels: call.map(|call| call.output_labels.clone()).unwrap_or_default(),
    }
}
