//! Search for the precision of each layer within a bound on the loss.
//!
//! All layers start at the lowest precision. While the loss is too large, the layer that does most
//! harm by itself steps back: from int8 products to int8 weights with f32 products, and from there
//! to f32.
//!
//! The harm of each layer is measured on an excerpt of long sounds first, then on the whole sound
//! for those layers that could be the worst.

use std::collections::{BTreeMap, BTreeSet};

use ondes_engine::Kernels;
use ondes_engine::model::Model;
use ondes_engine::model::compression::{Scaling, WeightPrecision};
use ondes_engine::native::Executor;
use rayon::prelude::*;

use super::compression_loss::CompressionLoss;
use super::reference::Reference;

/// Threads that measure layers; each holds a model of its own.
const MAX_THREADS: usize = 4;
/// Largest difference between ratios on an excerpt and on the whole sound, dB, that cannot change
/// the choice.
const MARGIN_DB: f64 = 3.0;

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
    /// [`Reference::snr_db`] of the model with only this layer compressed, on an excerpt of long
    /// sounds unless it is among the worst.
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
/// Returns an error if a skipped layer does not exist, or the model is compressed already or cannot
/// be played.
pub fn compress(
    original: &Model,
    measure: &CompressionLoss,
    options: &QuantizeOptions,
) -> anyhow::Result<CompressedModel> {
    let layers: Vec<String> = original
        .layers()
        .into_iter()
        .map(|(name, _)| name.to_owned())
        .collect();
    if let Some(unknown) = options.skip.iter().find(|name| !layers.contains(name)) {
        anyhow::bail!(
            "no layer {unknown:?} has weights; available: {}",
            layers.join(", ")
        );
    }
    if !original.weights().are_f32() {
        anyhow::bail!("the model is compressed already; start from the trained model");
    }
    let search = Search::new(original, measure, options)?;
    let mut candidates = search.first_candidates(&layers)?;
    loop {
        let by_layer: BTreeMap<&str, WeightPrecision> = candidates
            .iter()
            .map(|Candidate { choice, .. }| (choice.layer.as_str(), choice.precision))
            .collect();
        let model = original.compressed(options.scaling, |layer| by_layer[layer])?;
        let loss = measure.loss(&model)?;
        let worst = if loss <= options.max_loss {
            None
        } else {
            search.worst(&mut candidates)?
        };
        let Some(worst) = worst else {
            let choices = candidates
                .into_iter()
                .map(|candidate| candidate.choice)
                .collect();
            return Ok(CompressedModel {
                model,
                choices,
                loss,
            });
        };
        let LayerChoice {
            layer,
            precision,
            uses_int8,
            ..
        } = &candidates[worst].choice;
        let back = match precision {
            WeightPrecision::Computed8 if *uses_int8 => WeightPrecision::Stored8,
            _ => WeightPrecision::F32,
        };
        candidates[worst] = search.candidate(&layer.clone(), back)?;
    }
}

/// Choice whose ratio was measured on the whole sound, or first on an excerpt.
struct Candidate {
    choice: LayerChoice,
    is_exact: bool,
}

struct Search<'a> {
    original: &'a Model,
    whole: &'a Reference,
    excerpt: Option<&'a Reference>,
    options: &'a QuantizeOptions,
    /// Layers that compute some products in eight bits if they may; that depends on their shape
    /// alone.
    int8_layers: BTreeSet<String>,
}

impl<'a> Search<'a> {
    fn new(
        original: &'a Model,
        measure: &'a CompressionLoss,
        options: &'a QuantizeOptions,
    ) -> anyhow::Result<Self> {
        let mut int8_layers = BTreeSet::new();
        if options.precision == WeightPrecision::Computed8 {
            let model = original.compressed(options.scaling, |_| WeightPrecision::Computed8)?;
            for method in &model.header().methods {
                let executor = Executor::new(&model, &method.name, Kernels::detect(), 1, 1)?;
                int8_layers.extend(executor.int8_layers().map(str::to_owned));
            }
        }
        Ok(Self {
            original,
            whole: measure.reference(),
            excerpt: measure.excerpt(),
            options,
            int8_layers,
        })
    }

    /// Returns all layers at their first precision.
    fn first_candidates(&self, layers: &[String]) -> anyhow::Result<Vec<Candidate>> {
        let first = |layer: &String| {
            let skipped = self.options.skip.contains(layer);
            self.candidate(
                layer,
                if skipped {
                    WeightPrecision::F32
                } else {
                    self.options.precision
                },
            )
        };
        let threads = std::thread::available_parallelism()
            .map_or(1, usize::from)
            .min(MAX_THREADS);
        let pool = rayon::ThreadPoolBuilder::new()
            .num_threads(threads)
            .build()?;
        pool.install(|| layers.par_iter().map(first).collect())
    }

    /// Measures the effect of compressing one layer alone, on an excerpt if there is one.
    fn candidate(&self, layer: &str, precision: WeightPrecision) -> anyhow::Result<Candidate> {
        let uses_int8 = precision == WeightPrecision::Computed8 && self.int8_layers.contains(layer);
        let reference = self.excerpt.unwrap_or(self.whole);
        let (snr_db, is_exact) = if precision == WeightPrecision::F32 {
            (f64::INFINITY, true)
        } else {
            (
                self.snr_db(layer, precision, reference)?,
                self.excerpt.is_none(),
            )
        };
        Ok(Candidate {
            choice: LayerChoice {
                layer: layer.to_owned(),
                precision,
                snr_db,
                uses_int8,
            },
            is_exact,
        })
    }

    fn snr_db(
        &self,
        layer: &str,
        precision: WeightPrecision,
        reference: &Reference,
    ) -> anyhow::Result<f64> {
        let alone = |name: &str| {
            if name == layer {
                precision
            } else {
                WeightPrecision::F32
            }
        };
        reference.snr_db(&self.original.compressed(self.options.scaling, alone)?)
    }

    /// Returns the index of the compressed layer with the worst ratio on the whole sound; `None` if
    /// none is compressed. Only layers that come close to the worst on the excerpt are measured on
    /// the whole.
    fn worst(&self, candidates: &mut [Candidate]) -> anyhow::Result<Option<usize>> {
        loop {
            let lowest = |is_exact: bool| {
                let compressed = |choice: &LayerChoice| choice.precision != WeightPrecision::F32;
                let considered = candidates.iter().enumerate();
                considered
                    .filter(|(_, candidate)| {
                        candidate.is_exact == is_exact && compressed(&candidate.choice)
                    })
                    .map(|(index, candidate)| (index, candidate.choice.snr_db))
                    .min_by(|(_, a), (_, b)| a.total_cmp(b))
            };
            let (exact, inexact) = (lowest(true), lowest(false));
            let limit = exact.map_or(f64::INFINITY, |(_, snr_db)| snr_db + MARGIN_DB);
            match inexact {
                Some((index, snr_db)) if snr_db <= limit || snr_db.is_nan() => {
                    let Candidate { choice, is_exact } = &mut candidates[index];
                    choice.snr_db = self.snr_db(&choice.layer, choice.precision, self.whole)?;
                    *is_exact = true;
                }
                _ => return Ok(exact.map(|(index, _)| index)),
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use ondes_engine::model::import::rave::import;
    use ondes_tests::rave::Recipe;

    use super::super::reference::CalibrationSound;
    use super::*;
    use crate::tasks::capture::signal::signal;

    /// Returns a codec of random weights with many layers.
    fn codec() -> Model {
        let folder = tempfile::tempdir().expect("a folder");
        let path = folder.path().join("codec.ts");
        Recipe {
            noise: false,
            ..Recipe::v2().small()
        }
        .export(1)
        .0
        .save(&path);
        import(&path, Some("codec"))
            .expect("it is understood")
            .model
    }

    #[test]
    fn an_excerpt_leads_to_the_choices_of_the_whole_sound() {
        let model = codec();
        let sound =
            || CalibrationSound::Sounds(vec![signal(30.0).split_off(15 * 48_000), signal(25.0)]);
        let quick = CompressionLoss::new(&model, sound()).expect("it can be played");
        let whole = CompressionLoss::new(&model, sound())
            .expect("it can be played")
            .without_excerpt();
        assert!(quick.excerpt().is_some());
        let options = |max_loss| QuantizeOptions {
            precision: WeightPrecision::Computed8,
            scaling: Scaling::default(),
            skip: Vec::new(),
            max_loss,
        };
        let run = |measure, max_loss| {
            compress(&model, measure, &options(max_loss)).expect("it is compressed")
        };
        let all = run(&quick, f64::INFINITY);
        assert!(
            all.choices.len() > 20 && all.loss > 0.0,
            "{} layers, {}",
            all.choices.len(),
            all.loss
        );
        for share in [0.7, 0.3] {
            let max_loss = share * all.loss;
            let (quick, whole) = (run(&quick, max_loss), run(&whole, max_loss));
            let chosen = |compressed: &CompressedModel| -> Vec<(String, WeightPrecision, bool)> {
                let choices = compressed.choices.iter();
                choices
                    .map(|choice| (choice.layer.clone(), choice.precision, choice.uses_int8))
                    .collect()
            };
            assert_ne!(chosen(&quick), chosen(&all), "some layer stepped back");
            assert_eq!(chosen(&quick), chosen(&whole));
            assert_eq!(
                (quick.loss, quick.model.weights()),
                (whole.loss, whole.model.weights())
            );
        }
    }
}
