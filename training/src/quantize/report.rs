//! What became of each layer, and what it weighs.

use std::collections::BTreeMap;
use std::time::Instant;

use ondes_engine::Kernels;
use ondes_engine::model::compression::Precision;
use ondes_engine::model::{Model, Storage, file};
use ondes_engine::native::Executor;
use serde::Serialize;

use super::search::{CompressedModel, LayerChoice};

/// Blocks of a method that its layers are timed over.
const BLOCKS: u32 = 400;

/// One line.
#[derive(Clone, Debug, Serialize)]
pub struct LayerReport {
    /// The node's name.
    pub layer: String,
    /// What its matrices are stored as.
    pub stored: &'static str,
    /// What its products are computed on.
    pub computed: &'static str,
    /// How far the sound is above the error that this layer alone makes, dB; none where it makes none that is heard.
    pub snr_db: Option<f64>,
    /// Weights.
    pub weights: usize,
    /// Bytes of the weights.
    pub bytes: usize,
    /// Share of the time of all layers, with and without weights, of a method; none where a method runs as a whole.
    pub time_share: Option<f64>,
}

/// All of it.
#[derive(Clone, Debug, Serialize)]
pub struct CompressionReport {
    /// What was lost, as a share of the original's error.
    pub loss: f64,
    /// The most that might be.
    pub max_loss: f64,
    /// What the loss was measured by.
    pub measure: String,
    /// Bytes of the original's file.
    pub original_bytes: usize,
    /// Bytes of the file.
    pub bytes: usize,
    /// Its layers.
    pub layers: Vec<LayerReport>,
}

impl CompressionReport {
    /// Sums up a compressed model.
    ///
    /// # Errors
    /// When a model cannot be laid out or run.
    pub fn new(original: &Model, compressed: &CompressedModel, max_loss: f64, measure: String) -> anyhow::Result<Self> {
        let time_shares = time_shares(&compressed.model)?;
        let row = |choice: &LayerChoice| {
            let owned = |name: &str| name.rsplit_once('.').is_some_and(|(owner, _)| owner == choice.layer);
            let weights = compressed.model.weights().iter().filter(|(name, _)| owned(name));
            let tensors: Vec<_> = weights.map(|(_, tensor)| tensor).collect();
            LayerReport {
                layer: choice.layer.clone(),
                stored: tensors.iter().map(|tensor| tensor.values().storage()).max().unwrap_or(Storage::F32).name(),
                computed: if choice.uses_int8 && choice.precision == Precision::Computed8 { "int8" } else { "f32" },
                snr_db: choice.snr_db.is_finite().then_some((10.0 * choice.snr_db).round() / 10.0),
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
            layers: compressed.choices.iter().map(row).collect(),
        })
    }

    /// The lines for a person.
    #[must_use]
    pub fn table(&self) -> String {
        let all: usize = self.layers.iter().map(|row| row.bytes).sum();
        let mut text = format!(
            "{:28} {:>6} {:>9} {:>10} {:>8} {:>8} {:>8}\n",
            "layer", "stored", "computed", "weights", "size", "SNR", "time"
        );
        for row in &self.layers {
            let percent = |share: f64| format!("{:.1} %", 100.0 * share);
            let snr = row.snr_db.map_or_else(|| "-".to_owned(), |snr| format!("{snr:.1} dB"));
            let (size, time) = (percent(row.bytes as f64 / all.max(1) as f64), row.time_share.map(percent));
            text += &format!(
                "{:28} {:>6} {:>9} {:>10} {size:>8} {snr:>8} {:>8}\n",
                row.layer,
                row.stored,
                row.computed,
                row.weights,
                time.unwrap_or_else(|| "-".to_owned())
            );
        }
        let ratio = self.bytes as f64 / self.original_bytes.max(1) as f64;
        text += &format!("size: {} of {} bytes, {ratio:.3} of the original\n", self.bytes, self.original_bytes);
        text += &format!("loss: {:.2} %, {:.2} % may be ({})", 100.0 * self.loss, 100.0 * self.max_loss, self.measure);
        text
    }
}

/// The share of each layer of the time that its method takes; the least of many blocks counts.
fn time_shares(model: &Model) -> anyhow::Result<BTreeMap<String, f64>> {
    let mut shares = BTreeMap::new();
    for method in &model.header().methods {
        let mut executor = Executor::new(model, &method.name, Kernels::detect(), 1, 1)?;
        let steps: Vec<String> = executor.layers().map(str::to_owned).collect();
        if steps.len() < method.nodes.len() {
            continue;
        }
        let mut least = vec![f64::INFINITY; steps.len()];
        for _ in 0..BLOCKS {
            executor.begin(&[0], 1);
            (0..method.inputs.len()).for_each(|port| executor.input(port).fill(0.1));
            for (step, least) in least.iter_mut().enumerate() {
                let begun = Instant::now();
                executor.run_layer(step);
                *least = least.min(begun.elapsed().as_secs_f64());
            }
        }
        let all: f64 = least.iter().sum();
        shares.extend(steps.into_iter().zip(least).map(|(step, time)| (step, time / all.max(1e-12))));
    }
    Ok(shares)
}
