//! Compresses a RAVE v2 with 31.5 million random weights to int8: with all layers measured on the
//! whole sound, and with an excerpt first. `-- SECONDS` sets the length of the sound, 30 by
//! default; the bound makes some layers step back.

use std::time::Instant;

use ondes_engine::model::Model;
use ondes_engine::model::compression::{Scaling, WeightPrecision};
use ondes_engine::model::import::rave::import;
use ondes_tests::rave::Recipe;
use ondes_training::compression::quantize::compression_loss::CompressionLoss;
use ondes_training::compression::quantize::reference::CalibrationSound;
use ondes_training::compression::quantize::search::{CompressedModel, QuantizeOptions, compress};
use ondes_training::tasks::capture::signal::signal;

fn codec() -> Model {
    let folder = tempfile::tempdir().expect("a folder");
    let path = folder.path().join("v2.ts");
    Recipe::v2().export(1).0.save(&path);
    import(&path, Some("RAVE v2"))
        .expect("it is understood")
        .model
}

fn timed(
    name: &str,
    model: &Model,
    loss: &CompressionLoss,
    max_loss: f64,
) -> (CompressedModel, f64) {
    let (precision, scaling) = (WeightPrecision::Computed8, Scaling::default());
    let started = Instant::now();
    let compressed = compress(
        model,
        loss,
        &QuantizeOptions {
            precision,
            scaling,
            skip: Vec::new(),
            max_loss,
        },
    );
    let (compressed, seconds) = (
        compressed.expect("it is compressed"),
        started.elapsed().as_secs_f64(),
    );
    let floats = compressed
        .choices
        .iter()
        .filter(|choice| choice.precision != precision)
        .count();
    println!(
        "{name}: {seconds:.1} s, {floats} of {} layers stepped back",
        compressed.choices.len()
    );
    (compressed, seconds)
}

fn main() {
    let seconds = std::env::args()
        .skip(1)
        .find_map(|argument| argument.parse().ok())
        .unwrap_or(30.0);
    let model = codec();
    let loss = || {
        CompressionLoss::new(&model, CalibrationSound::Sounds(vec![signal(seconds)]))
            .expect("it plays")
    };
    let quick = loss();
    let (all, _) = timed("excerpt, no bound", &model, &quick, f64::INFINITY);
    let max_loss = 0.8 * all.loss;
    let (quick, quick_s) = timed("excerpt", &model, &quick, max_loss);
    let (whole, whole_s) = timed("whole sound", &model, &loss().without_excerpt(), max_loss);
    let same = quick.model.weights() == whole.model.weights();
    println!(
        "{:.1} times as fast, {}",
        whole_s / quick_s,
        if same {
            "same weights"
        } else {
            "OTHER WEIGHTS"
        }
    );
}
