//! Information about a model; `--json` prints exactly these fields.

use std::collections::BTreeMap;
use std::path::Path;

use ondes_engine::instrument::Performance;
use ondes_engine::model::program::Setting;
use ondes_engine::model::{
    Control, Gear, Levels, Measure, Method, Model, Port, Storage, Training, Variant,
};
use ondes_engine::pipeline::{PipelineError, controls};
use serde::Serialize;

use super::cost::{self, PlaybackCost};

/// Speed in times real time from which a model counts as playable in real time.
const REALTIME_MARGIN: f64 = 2.0;

/// Card, abilities and cost of a model.
#[derive(Serialize)]
pub struct ModelInfo {
    /// Name on the card.
    pub name: String,
    /// Kind of the model.
    pub kind: &'static str,
    /// Description on the card.
    pub description: String,
    /// Author of the model.
    pub author: String,
    /// Licence, an SPDX expression.
    pub licence: String,
    /// Path of the file.
    pub file: String,
    /// Size of the file.
    pub file_bytes: u64,
    /// Version of the file format.
    pub format: u32,
    /// Sample rate of all audio, Hz.
    pub sample_rate: u32,
    /// Factor at which an effect is oversampled, unless the player asks for another.
    pub oversampling: usize,
    /// Number of weights.
    pub parameters: usize,
    /// Storage of the weights, by type.
    pub storage: Vec<StorageInfo>,
    /// Methods of the model.
    pub methods: Vec<MethodInfo>,
    /// Controls, a codec's latents included.
    pub controls: Vec<Control>,
    /// Settings of a TorchScript program that are no numbers.
    pub settings: Vec<Setting>,
    /// Range and polyphony; instruments only.
    pub performance: Option<Performance>,
    /// Number of recorded attacks.
    pub attacks: usize,
    /// Notes about a TorchScript program; null for other models.
    pub program: Option<Vec<String>>,
    /// Plays at least twice as fast as real time, which leaves a reserve for other programs and
    /// slow moments.
    pub holds_in_real_time: bool,
    /// Cost of playing on this machine.
    pub cost: Vec<PlaybackCost>,
    /// Gear that was captured.
    pub gear: Option<Gear>,
    /// Calibration of input and output levels, and loudness.
    pub levels: Option<Levels>,
    /// Smaller variants of the model.
    pub variants: Vec<Variant>,
    /// Training data and settings.
    pub training: Option<Training>,
    /// Quality on held-out sound.
    pub quality: Vec<Measure>,
    /// BLAKE3 hash of header and weights.
    pub content_hash: String,
}

/// Weights of one storage type.
#[derive(Serialize)]
pub struct StorageInfo {
    /// `F32`, `F16`, `BF16` or `I8`.
    pub storage: &'static str,
    /// Number of weights.
    pub weights: usize,
    /// Size with scales, bytes.
    pub bytes: usize,
}

/// Method of a model.
#[derive(Serialize)]
pub struct MethodInfo {
    /// Name of the method.
    pub name: String,
    /// Samples per step.
    pub block: usize,
    /// Input ports.
    pub inputs: Vec<Port>,
    /// Output ports.
    pub outputs: Vec<Port>,
    /// Number of graph nodes.
    pub nodes: usize,
    /// Latency, samples.
    pub latency_samples: usize,
    /// Latency, ms.
    pub latency_ms: f64,
    /// Multiply-adds per second of sound, for one voice or stream.
    pub multiply_adds_per_second: f64,
    /// Samples of silence that are processed before the first input.
    pub warm_up_samples: usize,
    /// Names of the input channels, if a TorchScript model has them.
    pub input_labels: Vec<String>,
    /// Names of the output channels, if a TorchScript model has them.
    pub output_labels: Vec<String>,
}

/// Gathers the information about a model and measures its cost.
///
/// # Errors
/// Returns an error if the model cannot be played as its kind.
pub fn gather(model: &Model, path: &Path, file_bytes: u64) -> Result<ModelInfo, PipelineError> {
    let header = model.header();
    let card = header.card.clone();
    let cost = cost::measure(model)?;
    Ok(ModelInfo {
        name: card.name,
        kind: header.kind.name(),
        description: card.description,
        author: card.author,
        licence: card.licence,
        file: path.display().to_string(),
        file_bytes,
        format: header.format,
        sample_rate: header.sample_rate,
        oversampling: header.oversampling,
        parameters: model.parameters(),
        storage: storage(model),
        methods: header
            .methods
            .iter()
            .map(|method| describe(model, method))
            .collect(),
        controls: controls(header),
        settings: model
            .program()
            .map(|program| program.settings.clone())
            .unwrap_or_default(),
        performance: header.performance,
        attacks: model.attacks().map_or(0, |attacks| attacks.len()),
        program: model.program().map(|program| program.notes.clone()),
        holds_in_real_time: cost
            .iter()
            .all(|cost| cost.realtime_factor >= REALTIME_MARGIN),
        cost,
        gear: card.gear,
        levels: card.levels,
        variants: header.variants.clone(),
        training: card.training,
        quality: card.quality,
        content_hash: model.content_hash().to_owned(),
    })
}

fn storage(model: &Model) -> Vec<StorageInfo> {
    let mut by_storage = BTreeMap::new();
    for (_, tensor) in model.weights().iter() {
        let (weights, bytes) = by_storage
            .entry(tensor.values().storage())
            .or_insert((0, 0));
        *weights += tensor.values().len();
        *bytes += tensor.bytes();
    }
    let info = |(storage, (weights, bytes)): (Storage, _)| StorageInfo {
        storage: storage.name(),
        weights,
        bytes,
    };
    by_storage.into_iter().map(info).collect()
}

fn describe(model: &Model, method: &Method) -> MethodInfo {
    let sample_rate = model.header().sample_rate;
    let latency_samples = model.latency_samples(method);
    let call = model
        .program()
        .and_then(|program| program.calls.get(&method.name));
    MethodInfo {
        name: method.name.clone(),
        block: method.block,
        inputs: method.inputs.clone(),
        outputs: method.outputs.clone(),
        nodes: method.nodes.len(),
        latency_samples,
        latency_ms: 1e3 * latency_samples as f64 / f64::from(sample_rate),
        warm_up_samples: method.warm_up,
        multiply_adds_per_second: method.multiply_adds_per_second(sample_rate),
        input_labels: call
            .map(|call| call.input_labels.clone())
            .unwrap_or_default(),
        output_labels: call
            .map(|call| call.output_labels.clone())
            .unwrap_or_default(),
    }
}
