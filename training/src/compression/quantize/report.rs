//! Report of a compression, layer by layer.

use std::collections::BTreeMap;
use std::time::Instant;

use ondes_engine::Kernels;
use ondes_engine::executor::Execute;
use ondes_engine::model::compression::WeightPrecision;
use ondes_engine::model::{Model, Storage, file};
use ondes_engine::native::Executor;
use serde::Serialize;

use super::search::{CompressedModel, LayerChoice};

/// Blocks that the layers of a method are timed over.
const BLOCKS: u32 = 400;

/// Result of one layer.
#[derive(Clone, Debug, Serialize)]
pub struct LayerReport {
    /// Name of the node.
    pub layer: String,
    /// Storage type of its matrices.
    pub stored: &'static str,
    /// Arithmetic of its products, `int8` or `f32`.
    pub computed: &'static str,
    /// Signal-to-noise ratio if only this layer is compressed, dB; `None` if it makes no error.
    pub snr_db: Option<f64>,
    /// Number of weights.
    pub weights: usize,
    /// Size of the weights, bytes.
    pub bytes: usize,
    /// Share of the time of all nodes of its method; `None` if the method runs as one fused
    /// network.
    pub time_share: Option<f64>,
}

/// Result of a compression.
#[derive(Clone, Debug, Serialize)]
pub struct CompressionReport {
    /// Loss of quality, relative to the original's error.
    pub loss: f64,
    /// Largest allowed loss.
    pub max_loss: f64,
    /// Description of the measure of the loss.
    pub measure: String,
    /// Size of the original's file, bytes.
    pub original_bytes: usize,
    /// Size of the compressed file, bytes.
    pub bytes: usize,
    /// Results of the layers, in the order of the graph.
    pub layers: Vec<LayerReport>,
}

impl CompressionReport {
    /// Summarises a compression and times the compressed model.
    ///
    /// # Errors
    /// Returns an error if a model cannot be serialised or run.
    pub fn new(
        original: &Model,
        compressed: &CompressedModel,
        max_loss: f64,
        measure: String,
    ) -> anyhow::Result<Self> {
        let time_shares = time_shares(&compressed.model)?;
        let layer = |choice: &LayerChoice| {
            let belongs = |name: &str| {
                name.rsplit_once('.')
                    .is_some_and(|(owner, _)| owner == choice.layer)
            };
            let weights = compressed
                .model
                .weights()
                .iter()
                .filter(|(name, _)| belongs(name));
            let tensors: Vec<_> = weights.map(|(_, tensor)| tensor).collect();
            LayerReport {
                layer: choice.layer.clone(),
                stored: tensors
                    .iter()
                    .map(|tensor| tensor.values().storage())
                    .max()
                    .unwrap_or(Storage::F32)
                    .name(),
                computed: if choice.uses_int8 && choice.precision == WeightPrecision::Computed8 {
                    "int8"
                } else {
                    "f32"
                },
                snr_db: choice
                    .snr_db
                    .is_finite()
                    .then_some((10.0 * choice.snr_db).round() / 10.0),
                weights: tensors.iter().map(|tensor| tensor.values().len()).sum(),
                bytes: tensors.iter().map(|tensor| tensor.bytes()).sum(),
                time_share: time_shares.get(&choice.layer).copied(),
            }
        };
        Ok(Self {
            loss: compressed.loss,
            max_loss,
            measure,
            original_bytes: file::serialize(original)?.len(),
            bytes: file::serialize(&compressed.model)?.len(),
            layers: compressed.choices.iter().map(layer).collect(),
        })
    }

    /// Formats the report as a table.
    #[must_use]
    pub fn table(&self) -> String {
        let all: usize = self.layers.iter().map(|layer| layer.bytes).sum();
        let mut text = format!(
            "{:28} {:>6} {:>9} {:>10} {:>8} {:>8} {:>8}\n",
            "layer", "stored", "computed", "weights", "size", "SNR", "time"
        );
        for layer in &self.layers {
            let percent = |share: f64| format!("{:.1} %", 100.0 * share);
            let snr = layer
                .snr_db
                .map_or_else(|| "-".to_owned(), |snr| format!("{snr:.1} dB"));
            let (size, time) = (
                percent(layer.bytes as f64 / all.max(1) as f64),
                layer.time_share.map(percent),
            );
            text += &format!(
                "{:28} {:>6} {:>9} {:>10} {size:>8} {snr:>8} {:>8}\n",
                layer.layer,
                layer.stored,
                layer.computed,
                layer.weights,
                time.unwrap_or_else(|| "-".to_owned())
            );
        }
        let ratio = self.bytes as f64 / self.original_bytes.max(1) as f64;
        text += &format!(
            "size: {} of {} bytes, {ratio:.3} of the original\n",
            self.bytes, self.original_bytes
        );
        text += &format!(
            "loss: {:.2} %, at most {:.2} % ({})",
            100.0 * self.loss,
            100.0 * self.max_loss,
            self.measure
        );
        text
    }
}

/// Returns the share of each node of its method's time, from the fastest of many blocks.
fn time_shares(model: &Model) -> anyhow::Result<BTreeMap<String, f64>> {
    let mut shares = BTreeMap::new();
    for method in &model.header().methods {
        let mut executor = Executor::new(model, &method.name, Kernels::detect(), 1, 1)?;
        let steps: Vec<String> = executor.layers().map(str::to_owned).collect();
        if steps.len() < method.nodes.len() {
            continue;
        }
        let mut fastest = vec![f64::INFINITY; steps.len()];
        for _ in 0..BLOCKS {
            executor.begin(&[0], 1);
            (0..method.inputs.len()).for_each(|port| executor.input(port).fill(0.1));
            for (step, fastest) in fastest.iter_mut().enumerate() {
                let started = Instant::now();
                executor.run_layer(step);
                *fastest = fastest.min(started.elapsed().as_secs_f64());
            }
        }
        let all: f64 = fastest.iter().sum();
        shares.extend(
            steps
                .into_iter()
                .zip(fastest)
                .map(|(step, time)| (step, time / all.max(1e-12))),
        );
    }
    Ok(shares)
}
