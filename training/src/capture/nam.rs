//! `.nam` files, for other players: JSON with all weights in one list.

use std::path::Path;

use anyhow::Context;
use ondes_engine::model::{Model, Weights};
use serde_json::{Value, json};

use super::architecture::Architecture;

/// Writes a capture of that architecture.
///
/// # Errors
/// One line with the file and the reason.
pub fn write(path: &Path, architecture: &Architecture, model: &Model) -> anyhow::Result<()> {
    let header = model.header();
    let file = describe(architecture, model.weights(), header.sample_rate, &metadata(model));
    let part = path.with_extension("nam.part");
    let written = std::fs::write(&part, file.to_string()).and_then(|()| std::fs::rename(&part, path));
    written.with_context(|| format!("{}: cannot be written", path.display()))
}

/// The content of a file. Weights that the architecture does not name are left out.
#[must_use]
pub fn describe(architecture: &Architecture, weights: &Weights, sample_rate: u32, metadata: &Value) -> Value {
    let (name, version) = architecture.family();
    // A float that is written as a double is read again as it was.
    let flat: Vec<f64> = flat(architecture, weights).into_iter().map(f64::from).collect();
    json!({
        "version": version,
        "architecture": name,
        "config": architecture.config(),
        "metadata": metadata,
        "sample_rate": sample_rate,
        "weights": flat,
    })
}

/// All weights in the order of the format.
fn flat(architecture: &Architecture, weights: &Weights) -> Vec<f32> {
    let values = |name: &str| {
        let found = weights.iter().find(|(other, _)| *other == name);
        found.map_or_else(Vec::new, |(_, tensor)| tensor.floats().into_owned())
    };
    match architecture {
        Architecture::WaveNet { .. } => {
            let mut flat: Vec<f32> = architecture.slots().iter().flat_map(|slot| values(&slot.name)).collect();
            flat.extend(architecture.head_scale());
            flat
        }
        Architecture::Lstm { hidden } => {
            // A row has the weight of the input, then those of the state; after the bias comes the state to start from, of zeros.
            let [from_input, from_state] = ["layer0.weight_ih", "layer0.weight_hh"].map(values);
            let mut flat = Vec::new();
            for (input, state) in from_input.iter().zip(from_state.chunks_exact(*hidden)) {
                flat.push(*input);
                flat.extend(state);
            }
            flat.extend(values("layer0.bias_ih"));
            flat.extend(std::iter::repeat_n(0.0, 2 * hidden));
            flat.extend(["head.weight", "head.bias"].into_iter().flat_map(values));
            flat
        }
    }
}

/// What the card says, in the format's words.
fn metadata(model: &Model) -> Value {
    let card = &model.header().card;
    let text = |text: &str| if text.is_empty() { Value::Null } else { json!(text) };
    let gear = card.gear.clone().unwrap_or_default();
    let levels = card.levels.unwrap_or_default();
    let error = card.quality.iter().find(|measure| measure.name == super::measure::ESR).map(|measure| measure.value);
    json!({
        "name": text(&card.name),
        "modeled_by": text(&card.author),
        "gear_make": text(&gear.make),
        "gear_model": text(&gear.model),
        "gear_type": text(&gear.kind),
        "tone_type": text(&gear.tone),
        "loudness": levels.loudness_db,
        "input_level_dbu": levels.input_dbu,
        "output_level_dbu": levels.output_dbu,
        "training": { "validation_esr": error },
    })
}
