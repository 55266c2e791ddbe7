//! How each layer can be stored so that no more is lost than may be.
//!
//! All layers begin in the fewest bits. While too much is lost, the one that alone does most harm takes a step back: from
//! products of bytes to bytes that are multiplied as floats, and from there to floats.

use std::collections::BTreeMap;

use ondes_engine::Kernels;
use ondes_engine::model::Model;
use ondes_engine::model::compression::{Precision, Scaling};
use ondes_engine::native::Executor;

use super::compression_loss::CompressionLoss;

/// What may be chosen.
#[derive(Clone, Debug)]
pub struct QuantizeOptions {
    /// What layers begin as.
    pub precision: Precision,
    /// How scales are found.
    pub scaling: Scaling,
    /// Layers that stay as they are.
    pub skip: Vec<String>,
    /// The most that may be lost, as [`CompressionLoss::loss`] measures it.
    pub max_loss: f64,
}

/// A layer and what became of it.
#[derive(Clone, Debug)]
pub struct LayerChoice {
    /// The node's name.
    pub layer: String,
    /// How it is stored.
    pub precision: Precision,
    /// [`CompressionLoss::snr_db`] of the model in which this layer alone is stored so.
    pub snr_db: f64,
    /// Whether some of its products are computed on bytes.
    pub uses_int8: bool,
}

/// A compressed model.
pub struct CompressedModel {
    /// The model.
    pub model: Model,
    /// Its layers, in the order of the graph.
    pub choices: Vec<LayerChoice>,
    /// What is lost.
    pub loss: f64,
}

/// Compresses a model as far as its bounds let it.
///
/// # Errors
/// When a layer that is to be skipped is not there, the model is compressed already or cannot be played.
pub fn compress(
    original: &Model,
    compression_loss: &CompressionLoss,
    bounds: &QuantizeOptions,
) -> anyhow::Result<CompressedModel> {
    let layers: Vec<String> = original.layers().into_iter().map(|(name, _)| name.to_owned()).collect();
    if let Some(unknown) = bounds.skip.iter().find(|name| !layers.contains(name)) {
        anyhow::bail!("no layer {unknown:?} has weights; those that have are {}", layers.join(", "));
    }
    if !original.weights().are_f32() {
        anyhow::bail!("some of its weights are in fewer bits already; start from the model as it was trained");
    }
    let search = Search { original, compression_loss, scaling: bounds.scaling };
    let begin = |layer: &String| if bounds.skip.contains(layer) { Precision::F32 } else { bounds.precision };
    let mut choices =
        layers.iter().map(|layer| search.choice(layer, begin(layer))).collect::<anyhow::Result<Vec<_>>>()?;
    loop {
        let by_layer: BTreeMap<&str, Precision> =
            choices.iter().map(|choice| (choice.layer.as_str(), choice.precision)).collect();
        let model = original.compressed(bounds.scaling, |layer| by_layer[layer])?;
        let loss = compression_loss.loss(&model)?;
        let compressed = choices.iter_mut().filter(|choice| choice.precision != Precision::F32);
        let worst = compressed.min_by(|a, b| a.snr_db.total_cmp(&b.snr_db));
        match worst {
            Some(worst) if loss.is_nan() || loss > bounds.max_loss => {
                let back = match worst.precision {
                    Precision::Computed8 if worst.uses_int8 => Precision::Stored8,
                    _ => Precision::F32,
                };
                *worst = search.choice(&worst.layer, back)?;
            }
            _ => return Ok(CompressedModel { model, choices, loss }),
        }
    }
}

struct Search<'a> {
    original: &'a Model,
    compression_loss: &'a CompressionLoss,
    scaling: Scaling,
}

impl Search<'_> {
    /// What compressing one layer alone does.
    fn choice(&self, layer: &str, precision: Precision) -> anyhow::Result<LayerChoice> {
        let choice = |snr_db, uses_int8| LayerChoice { layer: layer.to_owned(), precision, snr_db, uses_int8 };
        if precision == Precision::F32 {
            return Ok(choice(f64::INFINITY, false));
        }
        let alone = |name: &str| if name == layer { precision } else { Precision::F32 };
        let model = self.original.compressed(self.scaling, alone)?;
        Ok(choice(self.compression_loss.snr_db(&model)?, uses_int8(&model)?))
    }
}

/// Whether some products of a model are computed on bytes.
fn uses_int8(model: &Model) -> anyhow::Result<bool> {
    for method in &model.header().methods {
        if Executor::new(model, &method.name, Kernels::detect(), 1, 1)?.int8_layers().next().is_some() {
            return Ok(true);
        }
    }
    Ok(false)
}
