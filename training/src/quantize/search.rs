//! Search for the precision of each layer within a bound on the loss.
//!
//! All layers start at the lowest precision. While the loss is too large, the layer that does most harm by itself steps
//! back: from int8 products to int8 weights with f32 products, and from there to f32.

use std::collections::BTreeMap;

use ondes_engine::Kernels;
use ondes_engine::model::Model;
use ondes_engine::model::compression::{Scaling, WeightPrecision};
use ondes_engine::native::Executor;

use super::compression_loss::CompressionLoss;

/// Options of [`compress`].
#[derive(Clone, Debug)]
pub struct QuantizeOptions {
    /// Precision that layers start at.
    pub precision: WeightPrecision,
    /// Computation of the scales.
    pub scaling: Scaling,
    /// Layers that stay in f32.
    pub skip: Vec<String>,
    /// Largest allowed loss, as measured by [`CompressionLoss::loss`].
    pub max_loss: f64,
}

/// Precision of a layer.
#[derive(Clone, Debug)]
pub struct LayerChoice {
    /// Name of the node.
    pub layer: String,
    /// Storage and arithmetic.
    pub precision: WeightPrecision,
    /// [`CompressionLoss::snr_db`] of the model with only this layer compressed.
    pub snr_db: f64,
    /// Some of its products are computed in int8.
    pub uses_int8: bool,
}

/// Compressed model.
pub struct CompressedModel {
    /// The model.
    pub model: Model,
    /// Precision of each layer, in the order of the graph.
    pub choices: Vec<LayerChoice>,
    /// Loss of quality.
    pub loss: f64,
}

/// Compresses a model within the bound on the loss.
///
/// # Errors
/// Returns an error if a skipped layer does not exist, or the model is compressed already or cannot be played.
pub fn compress(
    original: &Model,
    measure: &CompressionLoss,
    options: &QuantizeOptions,
) -> anyhow::Result<CompressedModel> {
    let layers: Vec<String> = original.layers().into_iter().map(|(name, _)| name.to_owned()).collect();
    if let Some(unknown) = options.skip.iter().find(|name| !layers.contains(name)) {
        anyhow::bail!("no layer {unknown:?} has weights; available: {}", layers.join(", "));
    }
    if !original.weights().are_f32() {
        anyhow::bail!("the model is compressed already; start from the trained model");
    }
    let search = Search { original, measure, scaling: options.scaling };
    let initial = |layer: &String| if options.skip.contains(layer) { WeightPrecision::F32 } else { options.precision };
    let mut choices =
        layers.iter().map(|layer| search.choice(layer, initial(layer))).collect::<anyhow::Result<Vec<_>>>()?;
    loop {
        let by_layer: BTreeMap<&str, WeightPrecision> =
            choices.iter().map(|choice| (choice.layer.as_str(), choice.precision)).collect();
        let model = original.compressed(options.scaling, |layer| by_layer[layer])?;
        let loss = measure.loss(&model)?;
        let compressed = choices.iter_mut().filter(|choice| choice.precision != WeightPrecision::F32);
        let worst = compressed.min_by(|a, b| a.snr_db.total_cmp(&b.snr_db));
        match worst {
            Some(worst) if loss.is_nan() || loss > options.max_loss => {
                let back = match worst.precision {
                    WeightPrecision::Computed8 if worst.uses_int8 => WeightPrecision::Stored8,
                    _ => WeightPrecision::F32,
                };
                *worst = search.choice(&worst.layer, back)?;
            }
            _ => return Ok(CompressedModel { model, choices, loss }),
        }
    }
}

struct Search<'a> {
    original: &'a Model,
    measure: &'a CompressionLoss,
    scaling: Scaling,
}

impl Search<'_> {
    /// Measures the effect of compressing one layer alone.
    fn choice(&self, layer: &str, precision: WeightPrecision) -> anyhow::Result<LayerChoice> {
        let choice = |snr_db, uses_int8| LayerChoice { layer: layer.to_owned(), precision, snr_db, uses_int8 };
        if precision == WeightPrecision::F32 {
            return Ok(choice(f64::INFINITY, false));
        }
        let alone = |name: &str| if name == layer { precision } else { WeightPrecision::F32 };
        let model = self.original.compressed(self.scaling, alone)?;
        Ok(choice(self.measure.snr_db(&model)?, uses_int8(&model)?))
    }
}

/// Tells whether any product of a model is computed in int8.
fn uses_int8(model: &Model) -> anyhow::Result<bool> {
    for method in &model.header().methods {
        if Executor::new(model, &method.name, Kernels::detect(), 1, 1)?.int8_layers().next().is_some() {
            return Ok(true);
        }
    }
    Ok(false)
}
